/* The switch: one architecture's inline assembly behind one contract.
 *
 * Part of <aco.h>; not to be included by itself. Everything named aco__ is internal and may change.
 *
 * An architecture file (aco/arch/<arch>.h) provides, under these names:
 *
 *   ACO__ARCH                    its name, a string
 *   aco__where(), aco__where_t   how the switches find the calling thread's aco__thread_t: its address, or what is cheaper.
 *                                Computed anew on every call by a volatile asm: a coroutine may come back on another
 *                                thread, so no compiler may keep it (docs/switch.md, 8)
 *   aco__self_at(), aco__running_at()   from there the thread record, and its `running`
 *   ACO__RESUME, ACO__YIELD, ACO__TRANSFER, ACO__EXIT, ACO__ENTER
 *                                the switches, as statements inside the functions below; the first three take the code that
 *                                exchanges floating-point control words: ACO__FP_SWAP with ACO__FP_RARE, or ACO__FP_NONE.
 *                                ACO__LEAVING_REGISTER: where a transfer wants the block that it leaves
 *   aco__fp_read, aco__fp_load   the floating-point environment's control words; ACO__FP_STATUS: their status bits
 *   ACO__ARRIVAL_PARAMETERS, ACO__ARRIVAL_ABI
 *                                how a function that a switch enters from its beginning declares what crossed
 *   ACO__ENTRY_BELOW_TOP         how far below a stack's top an entry function finds its stack pointer
 *   ACO__LINK_REGISTER           defined where return addresses are passed in a register: aco__begin and aco__begin_entry are
 *                                assembly there, and load it
 *
 * Without one, aco/arch/ucontext.h declares the functions at the end of this file as the library's (ACO_CONFIG_UCONTEXT).
 *
 * Three registers cross every switch: the control block's address, aco__where(), and the value passed.
 *
 * Arrival. The switches return the word that the other side left in the first register: the control block's address of the
 * coroutine just left (resume) or of the one that now runs (yield, transfer). Its lowest bit is the arrival mark: "something
 * happened, call aco__arrived() before anything else". The ordinary path never sets it and pays one test for it.
 *
 * Rules that every architecture file keeps (reasons and measurements in docs/switch.md):
 *   - it never writes below the stack pointer, and never pushes where there is a red zone, which belongs to the function
 *     around it
 *   - it declares clobbered, or saves by hand, every register that the ABI lets a caller keep across a call, and every one
 *     that a call would clobber
 *   - `jmp`, not `ret`, between stacks; a landing pad at the arrival label when the unit is built with them
 *   - nothing is reloaded through the new stack pointer to find the next one
 *   - when a coroutine arrives for the first time, `pc` is a function, `sp` is as the ABI wants it there, and the word at
 *     `sp` is the return address aco__returned, on all architectures */
#ifndef ACO_SWITCH_H
#define ACO_SWITCH_H

#define ACO__FORCE_INLINE static inline __attribute__((always_inline, unused))

/* Where a side that does not run left off. First member of a control block and of a thread's record. */
typedef struct aco__context {
    void *sp;   /* stack pointer */
    void *pc;   /* where to go on */
    void *bp;   /* frame pointer: compilers refuse it as a clobber */
    void *base; /* base pointer of over-aligned frames, where a compiler mistakes a clobber of it */
} aco__context_t;

/* What a thread needs to switch; one per thread, at a fixed thread-local address. The assembly uses `resumer`,
 * `fp_control`, `fp_control2`, `fp_load_always` and `running` at the offsets asserted in src/core.c. */
typedef struct aco__thread {
    aco__context_t resumer;    /* who resumed the running coroutine, and where it shall go on */
    uint32_t fp_control;       /* the resumer's: MXCSR */
    uint16_t fp_control2;      /* the resumer's: x87 control word */
    int8_t fp_load_always;     /* this processor loads MXCSR faster than it can be compared; -1: it has none */
    uint8_t ready;             /* the fields for new coroutines are set */
    struct aco_s *running;     /* the running coroutine, NULL while none runs */
    struct aco_s *resuming;    /* the coroutine that resumed the running one; NULL: the thread's own flow of control did */
    struct aco_s *spare;       /* destroyed coroutines kept with their stacks, to be made again */
    uint32_t spares;
    uint32_t new_fp_control;   /* the environment that new coroutines start with */
    uint16_t new_fp_control2;
    uint16_t outermost_fp_control2;
    uint32_t outermost_fp_control;
    aco__context_t outermost;  /* the thread's own flow of control, while a coroutine that it resumed resumes another */
    struct aco_s *main_co;     /* the thread's newest main coroutine object, or NULL */
    void (*last_word)(void);   /* what aco_thread_init() was given */
    struct aco__heap *heap;    /* where control blocks and save areas come from */
    struct aco__rare *rare;    /* what few threads need */
    struct aco__cancel *cancel; /* the innermost unwinding of a coroutine or generator that is ended */
    struct aco_s *task;        /* whose turn it is: the running task, or the next to run; NULL: no task is runnable */
    struct aco_s *last_task;   /* the one before it in the ring of runnable tasks, whose turn comes last */
    uint32_t tasks;            /* spawned and not ended */
    uint32_t uncommon_tasks;   /* those of them that no inline switch may leave or enter */
    uint32_t measures;         /* aco_stack_measure() */
    uint32_t lock;             /* what the thread is about to do with the process lock */
    struct aco__scheduler *scheduler; /* the rest of it, NULL until a task is spawned */
    char message[256];         /* why the last refused call was refused */
} __attribute__((aligned(64))) aco__thread_t;

#if (defined(__x86_64__) || defined(__i386__)) && !defined(ACO_CONFIG_NO_INLINE)
#include "arch/x86_fp.h"
#endif

#if defined(ACO_CONFIG_NO_INLINE)
/* the exported functions need no assembly here */
#elif defined(ACO_CONFIG_UCONTEXT)
#include "arch/ucontext.h"
#elif defined(__x86_64__) && !defined(__ILP32__) && defined(__ELF__)
#include "arch/x86_64.h"
#elif defined(__i386__) && defined(__ELF__)
#include "arch/i386.h"
#elif defined(__aarch64__) && !defined(__ILP32__) && defined(__ELF__)
#include "arch/aarch64.h"
#else
#error "acorn: no switch for this architecture or object format; -DACO_CONFIG_UCONTEXT takes the C library's <ucontext.h> (docs/platforms.md)"
#endif

#ifndef ACO_CONFIG_NO_INLINE

ACO__FORCE_INLINE aco__thread_t *aco__self(void)
{
    return aco__self_at(aco__where());
}

ACO__FORCE_INLINE struct aco_s *aco__running(void)
{
    return aco__running_at(aco__where());
}
#endif

#if !defined(ACO_CONFIG_NO_INLINE) && !defined(ACO_CONFIG_UCONTEXT)

/* `where`: aco__where(), just now. `fp`, a compile-time 0 or 1: 1 keeps the floating-point control words of the two sides apart, if the coroutine has its
 * own. `passed`: the value that the other side gets, then the one that it sent. */

/* Leaves for `co`, which is suspended and has its frames in place; comes back when it yields or ends. */
ACO__FORCE_INLINE uintptr_t aco__switch_resume(aco__where_t where, struct aco_s *co, void **passed, int fp)
{
    void *value = *passed;
    if (fp)
        ACO__RESUME(ACO__FP_SWAP, ACO__FP_RARE);
    else
        ACO__RESUME(ACO__FP_NONE, ACO__FP_NONE);
    *passed = value;
    return (uintptr_t)co;
}

/* Leaves `co`, the running coroutine, for its resumer; comes back when it is resumed. */
ACO__FORCE_INLINE uintptr_t aco__switch_yield(aco__where_t where, struct aco_s *co, void **passed, int fp)
{
    void *value = *passed;
    if (fp)
        ACO__YIELD(ACO__FP_SWAP, ACO__FP_RARE);
    else
        ACO__YIELD(ACO__FP_NONE, ACO__FP_NONE);
    *passed = value;
    return (uintptr_t)co;
}

/* Leaves `from`, the running coroutine, for `co`, of the same kind where `fp` is 1, which runs in its place;
 * comes back when `from` is resumed. */
ACO__FORCE_INLINE uintptr_t aco__switch_transfer(aco__where_t where, struct aco_s *from, struct aco_s *co, void **passed, int fp)
{
    void *value = *passed;
    register struct aco_s *leaving ACO__LEAVING_REGISTER = from;
    if (fp)
        ACO__TRANSFER(ACO__FP_SWAP, ACO__FP_RARE);
    else
        ACO__TRANSFER(ACO__FP_NONE, ACO__FP_NONE);
    *passed = value;
    return (uintptr_t)co;
}

/* Leaves for the resumer and never comes back. */
ACO__FORCE_INLINE __attribute__((noreturn)) void aco__switch_exit(aco__where_t where, uintptr_t word, void *value)
{
    ACO__EXIT;
    __builtin_unreachable();
}

/* Goes on in `co`, which aco__running() names already, and never comes back. */
ACO__FORCE_INLINE __attribute__((noreturn)) void aco__switch_enter(aco__where_t where, struct aco_s *co, uintptr_t word, void *value)
{
    ACO__ENTER;
    __builtin_unreachable();
}

#endif

#endif
