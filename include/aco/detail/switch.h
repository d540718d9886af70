/* The switches: aco__switch_resume() and its relatives, one contract for all architectures.
 *
 * A file include/aco/arch/ARCH.h provides, under these names:
 *
 *   aco__tls_ref_read(), aco__slot_value()
 *                                what thread.h finds the thread record by: for ACO__THREAD_TLS the reference itself,
 *                                computed by a volatile asm; for ACO__THREAD_SLOT the word at an offset from the thread
 *                                pointer
 *   aco__self_at(), aco__running_at(), aco__exceptions_at(), ACO__TLS_REF_IS_OFFSET
 *                                where the reference is an offset and not an address: the thread record, and its
 *                                `running`
 *   aco__nothing_runs_at(), ACO__NOTHING_RUNS_IS_A_FLAG
 *                                where an asm can test `running` in place: whether it is NULL
 *   ACO__RESUME, ACO__YIELD, ACO__TRANSFER, ACO__EXIT, ACO__ENTER
 *                                the switches, as statements in the functions below. The first three take two pieces of
 *                                code: one tests whether the coroutine has its own floating-point environment. If so,
 *                                the other, behind the jump, swaps the control words. The pairs are ACO__FP_SWAP with
 *                                ACO__FP_SLOW, and ACO__FP_NONE with ACO__FP_NEVER
 *   ACO__LEAVING_REGISTER        the register in which a transfer expects the control block that it leaves
 *   ACO__PEER_SWAP, ACO__PEER_SWAP_LAST, ACO__PEER_BASE
 *                                the same for generators
 *   aco__fp_read(), aco__fp_load(), ACO__FP_STATUS
 *                                the control words of the floating-point environment, and which of their bits are
 *                                status
 *   ACO__ARRIVAL_PARAMETERS, ACO__ARRIVAL_ABI
 *                                how to declare a function that a switch enters from its beginning
 *   ACO__ENTRY_BELOW_TOP         how far below a stack's top the stack pointer of an entry function is
 *   ACO__RETURN_WORD             where the return address of an entry function is, in words above its stack pointer
 *   ACO__ARGUMENTS_ROOM          bytes to keep free at the stack pointer of a function with an in-stack generator,
 *                                because its compiler stores arguments there without moving the stack pointer
 *   ACO__BEGINS_IN_ASSEMBLY      defined where aco__begin and aco__begin_entry are assembly, because return addresses
 *                                are passed in a register or parameters are not passed in the registers that cross a
 *                                switch
 *   ACO__ARRIVES_IN_ASSEMBLY     defined where aco__arrive is assembly too: the beginning of any other function that a
 *                                switch enters. The function's address is then where the context has a frame pointer
 *
 * The files of x86 contain statements. The others name registers and instructions; arch/statements.h makes the
 * statements. Under ACO_CONFIG_UCONTEXT, arch/ucontext.h declares the switches below as functions of the library.
 *
 * Three registers cross every switch: the control block's address, the thread reference and the value.
 *
 * Arrival. A switch returns the tagged coroutine pointer that the other side left in the first register: the address of
 * the coroutine just left (resume), or of the one that now runs (yield, transfer). Its lowest bit is the interrupt
 * flag: if it is set, call aco__interrupted() before anything else. Usually it is 0, and costs one test.
 *
 * Rules for every architecture (docs/switch.md has reasons and measurements):
 *   - A switch writes nothing below the stack pointer. Where there is a red zone it pushes nothing: the red zone
 *     belongs to the surrounding function.
 *   - It declares as clobbered, or saves by hand, every register that the ABI preserves across a call and every
 *     register that a call may change.
 *   - It goes from stack to stack by a jump, not by a return. The arrival label has a landing pad where the unit is
 *     built with landing pads.
 *   - It loads nothing through the new stack pointer that the next switch needs to find its way.
 *   - When a coroutine arrives for the first time, `pc` is a function, `sp` is as the ABI wants it there, and the word
 *     ACO__RETURN_WORD above it is the return address aco__returned. */
#ifndef ACO_DETAIL_SWITCH_H
#define ACO_DETAIL_SWITCH_H

#include "thread.h"

#ifdef _WIN32
#include "stack_bounds.h"
#else /* only Windows must know the bounds of the running stack */
#define ACO__BOUNDS_KEEP
#define ACO__BOUNDS_BACK
#endif

/* The value of a register variable, read from the register. Without this asm gcc assumes that the variable still has
 * the value last stored there. In a loop it then drops the next store of the same value, although calls in between have
 * changed the register. */
#define ACO__HELD(variable)                                                                                            \
    __extension__({                                                                                                    \
        __typeof__(variable) aco__held = (variable);                                                                   \
        __asm__("" : "+r"(aco__held));                                                                                 \
        aco__held;                                                                                                     \
    })

/* Computes a variable's value here. gcc would otherwise compute it where it loads the register variables of a switch,
 * perhaps by a call (a conversion, a thread-local address), which would change the registers loaded before. */
#define ACO__COMPUTED(variable) __asm__("" : "+r"(variable))

#ifndef ACO_CONFIG_UCONTEXT

ACO__BEGIN_C

/* `tls`: what aco__tls_ref() has just returned. `fp`, a compile-time 0 or 1: with 1 the two sides keep their
 * floating-point control words apart, if the coroutine has its own. `*value_ref`: the value for the other side, and
 * then the value from it. */

/* Goes to `co`, which is suspended with its frames on its stack. Returns when `co` yields or ends. */
ACO__FORCE_INLINE uintptr_t aco__switch_resume(aco__tls_ref_t tls, struct aco_s *co, void **value_ref, int fp)
{
    void *value = *value_ref;
    ACO__BOUNDS_KEEP;
    if (fp)
        ACO__RESUME(ACO__FP_SWAP, ACO__FP_SLOW);
    else
        ACO__RESUME(ACO__FP_NONE, ACO__FP_NEVER);
    ACO__BOUNDS_BACK;
    *value_ref = value;
    return (uintptr_t)co;
}

/* Goes from `co`, the running coroutine, to its resumer. Returns when `co` is resumed. */
ACO__FORCE_INLINE uintptr_t aco__switch_yield(aco__tls_ref_t tls, struct aco_s *co, void **value_ref, int fp)
{
    void *value = *value_ref;
    ACO__BOUNDS_KEEP;
    if (fp)
        ACO__YIELD(ACO__FP_SWAP, ACO__FP_SLOW);
    else
        ACO__YIELD(ACO__FP_NONE, ACO__FP_NEVER);
    ACO__BOUNDS_BACK;
    *value_ref = value;
    return (uintptr_t)co;
}

/* Goes from `from`, the running coroutine, to `co`, which runs in its place. Returns when `from` is resumed. Where `fp`
 * is 1, both have a floating-point environment of their own or neither has. */
ACO__FORCE_INLINE uintptr_t aco__switch_transfer(aco__tls_ref_t tls, struct aco_s *from, struct aco_s *co,
                                                 void **value_ref, int fp)
{
    void *value = *value_ref;
    ACO__BOUNDS_KEEP;
    register struct aco_s *leaving ACO__LEAVING_REGISTER = from;
    if (fp)
        ACO__TRANSFER(ACO__FP_SWAP, ACO__FP_SLOW);
    else
        ACO__TRANSFER(ACO__FP_NONE, ACO__FP_NEVER);
    ACO__BOUNDS_BACK;
    *value_ref = value;
    return (uintptr_t)co;
}

/* Goes to the resumer for good. */
ACO__FORCE_INLINE __attribute__((noreturn)) void aco__switch_exit(aco__tls_ref_t tls, uintptr_t tagged, void *value)
{
    ACO__EXIT;
    __builtin_unreachable();
}

/* Goes to `co` for good. The thread record already names `co` as running. */
ACO__FORCE_INLINE __attribute__((noreturn))
void aco__switch_enter(aco__tls_ref_t tls, struct aco_s *co, uintptr_t tagged, void *value)
{
    ACO__ENTER;
    __builtin_unreachable();
}

/* Goes to `peer`, the other side of a generator. Returns when it comes back: *peer then says where it goes on next, and
 * peer->pc is NULL if it has ended. */
ACO__FORCE_INLINE void aco__switch_swap(aco__context_t *peer, void **value_ref)
{
    void *value = *value_ref, *sp = peer->sp, *pc = peer->pc, *bp = peer->bp;
    ACO__BOUNDS_KEEP;
    register void *base ACO__PEER_BASE = peer->base;
    (void)pc;
    ACO__PEER_SWAP;
    peer->sp = sp;
    peer->pc = pc;
    peer->bp = bp;
    peer->base = ACO__HELD(base);
    ACO__BOUNDS_BACK;
    *value_ref = value;
}

/* Goes to `peer` for good: this side has ended. */
ACO__FORCE_INLINE __attribute__((noreturn)) void aco__switch_swap_last(const aco__context_t *peer, void *value)
{
    void *sp = peer->sp, *pc = peer->pc, *bp = peer->bp;
    register void *base ACO__PEER_BASE = peer->base;
    (void)pc;
    ACO__PEER_SWAP_LAST;
    __builtin_unreachable();
}

ACO__END_C

#endif

#endif
