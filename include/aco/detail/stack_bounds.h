/* Windows on x86-64: the bounds of the running stack, in the thread environment block (TEB).
 *
 * The system uses these bounds: exception handling stops at the end of the stack, and a function with a large frame
 * probes the pages up to there. So they change with the stack. Each side of a switch keeps its own bounds in its frame
 * and writes them back when it arrives. It cannot take them from the stack's record: a coroutine may be suspended on
 * the stack of a generator that it consumes, and the stack of the root context grows. A first arrival (in
 * src/coroutine/entry/) sets them from the stack's record: all pages of our stacks are there from the beginning.
 * GuaranteedStackBytes stays as it is: the system reads it when a stack grows, and ours do not. Source of the offsets:
 * winternl.h's TEB, winnt.h's NT_TIB. */
#ifndef ACO_DETAIL_STACK_BOUNDS_H
#define ACO_DETAIL_STACK_BOUNDS_H

#include "config.h"

#define ACO__EXCEPTION_LIST "0x00"       /* the handlers on the stack; -1: none. Wine uses them on x86-64 too */
#define ACO__STACK_BASE "0x08"           /* the end of the stack: the address above its highest byte */
#define ACO__STACK_LIMIT "0x10"          /* its lowest byte that has memory */
#define ACO__DEALLOCATION_STACK "0x1478" /* its lowest byte */

typedef struct aco__bounds {
    void *handlers, *base, *limit, *deallocation;
} aco__bounds_t;

ACO__FORCE_INLINE aco__bounds_t aco__bounds_read(void)
{
    aco__bounds_t bounds;
    __asm__ volatile("movq %%gs:" ACO__STACK_BASE ",%0\n\t"
                     "movq %%gs:" ACO__STACK_LIMIT ",%1\n\t"
                     "movq %%gs:" ACO__DEALLOCATION_STACK ",%2\n\t"
                     "movq %%gs:" ACO__EXCEPTION_LIST ",%3"
                     : "=r"(bounds.base), "=r"(bounds.limit), "=r"(bounds.deallocation), "=r"(bounds.handlers));
    return bounds;
}

ACO__FORCE_INLINE void aco__bounds_set(aco__bounds_t bounds)
{
    __asm__ volatile("movq %0,%%gs:" ACO__STACK_BASE "\n\t"
                     "movq %1,%%gs:" ACO__STACK_LIMIT "\n\t"
                     "movq %2,%%gs:" ACO__DEALLOCATION_STACK "\n\t"
                     "movq %3,%%gs:" ACO__EXCEPTION_LIST
                     : : "r"(bounds.base), "r"(bounds.limit), "r"(bounds.deallocation), "r"(bounds.handlers)
                     : "memory");
}

#define ACO__BOUNDS_KEEP aco__bounds_t aco__kept_bounds = aco__bounds_read()
#define ACO__BOUNDS_BACK aco__bounds_set(aco__kept_bounds)

#endif
