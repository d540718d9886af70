/* Windows on x86-64: the bounds of the running stack in the thread environment block. Included by switch.h.
 *
 * Exceptions end where the stack ends by these bounds, and functions with large frames probe the pages in between: they change
 * with the stack. Each side keeps its own in its frame and puts them back as it arrives: a coroutine may be suspended on the
 * stack of a generator that it consumes, and that of a thread's own flow of control grows. What arrives for the first
 * time, src/entry/, sets them by the record of its stack, all of whose pages are there from the beginning. GuaranteedStackBytes
 * stays: the system heeds it as it lets a stack grow, and these do not.
 * Source of the offsets: winternl.h's TEB, winnt.h's NT_TIB. */
#ifndef ACO_TEB_H
#define ACO_TEB_H

#define ACO__EXCEPTION_LIST "%%gs:0x00"     /* handlers on the stack; -1: none. Wine has them on x86-64 too */
#define ACO__STACK_BASE "%%gs:0x08"         /* above the stack's highest byte */
#define ACO__STACK_LIMIT "%%gs:0x10"        /* its lowest byte that has memory */
#define ACO__DEALLOCATION_STACK "%%gs:0x1478" /* its lowest byte */

typedef struct aco__bounds {
    void *handlers, *base, *limit, *deallocation;
} aco__bounds_t;

ACO__FORCE_INLINE aco__bounds_t aco__bounds_read(void)
{
    aco__bounds_t bounds;
    __asm__ volatile("movq " ACO__STACK_BASE ",%0\n\t"
                     "movq " ACO__STACK_LIMIT ",%1\n\t"
                     "movq " ACO__DEALLOCATION_STACK ",%2\n\t"
                     "movq " ACO__EXCEPTION_LIST ",%3"
                     : "=r"(bounds.base), "=r"(bounds.limit), "=r"(bounds.deallocation), "=r"(bounds.handlers));
    return bounds;
}

ACO__FORCE_INLINE void aco__bounds_set(aco__bounds_t bounds)
{
    __asm__ volatile("movq %0," ACO__STACK_BASE "\n\t"
                     "movq %1," ACO__STACK_LIMIT "\n\t"
                     "movq %2," ACO__DEALLOCATION_STACK "\n\t"
                     "movq %3," ACO__EXCEPTION_LIST
                     : : "r"(bounds.base), "r"(bounds.limit), "r"(bounds.deallocation), "r"(bounds.handlers) : "memory");
}

#define ACO__BOUNDS_KEEP aco__bounds_t aco__kept_bounds = aco__bounds_read()
#define ACO__BOUNDS_BACK aco__bounds_set(aco__kept_bounds)

#endif
