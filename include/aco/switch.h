/* The switch: one architecture's inline assembly behind one contract.
 *
 * Part of <aco.h>; not to be included by itself. Everything named aco__ is internal and may change.
 *
 * An architecture file (aco/arch/<arch>.h) provides, under these names:
 *
 *   ACO__ARCH                    its name, a string
 *   aco__self()                  the calling thread's aco__thread_t. Computed anew on every call by a volatile asm: a
 *                                coroutine may come back on another thread, so no compiler may keep it (docs/switch.md, 8)
 *   aco__running()               aco__self()->running in one step
 *   aco__switch_resume(co, fp)   leave for `co`, which is suspended and has its frames in place; come back when it yields
 *   aco__switch_yield(co, fp)    leave `co`, the running coroutine, for its resumer; come back when it is resumed
 *   aco__switch_exit(co)         leave `co`, the running coroutine, for its resumer and never come back
 *   aco__fp_read, aco__fp_load   the floating-point environment's control words; ACO__FP_STATUS: their status bits
 *   ACO__ENTRY_BELOW_TOP         how far below a stack's top an entry function's return address stands
 *
 * Both switches take `fp`, a compile-time 0 or 1: 1 keeps the floating-point control words of the two sides apart.
 *
 * Arrival. Both return the word that the other side left in the first register: the control block's address of the
 * coroutine just left (resume) or of the one that now runs (yield). Its lowest bit is the arrival mark: "something
 * happened, call aco__arrived() before anything else". The ordinary path never sets it and pays one test for it.
 *
 * Rules that every architecture file keeps (reasons and measurements in docs/switch.md):
 *   - it never writes below the stack pointer and never pushes on x86-64 (the red zone belongs to the function around it)
 *   - it declares clobbered, or saves by hand, every register that the ABI lets a caller keep across a call, and every one
 *     that a call would clobber
 *   - `jmp`, not `ret`, between stacks; a landing pad at the arrival label when the unit is built with them
 *   - nothing is reloaded through the new stack pointer to find the next one
 *   - when a coroutine arrives for the first time, `pc` is its entry function, `sp` is as the ABI wants it there, and the
 *     word at `sp` is the return address aco__returned */
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

/* What a thread needs to switch; one per thread, at a fixed thread-local address. The assembly below uses `resumer`,
 * `fp_control`, `fp_control2`, `fp_load_always` and `running` at the offsets asserted in src/core.c. */
typedef struct aco__thread {
    aco__context_t resumer;    /* who resumed the running coroutine, and where it shall go on */
    uint32_t fp_control;       /* the resumer's: MXCSR */
    uint16_t fp_control2;      /* the resumer's: x87 control word */
    int8_t fp_load_always;     /* this processor loads MXCSR faster than it can be compared; -1: it has none */
    uint8_t ready;             /* aco__thread_ready() was here */
    struct aco_s *running;     /* the running coroutine, NULL while none runs */
    struct aco_s *main_co;     /* the thread's newest main coroutine object, or NULL */
    void (*last_word)(void);   /* what aco_thread_init() was given */
    struct aco__heap *heap;    /* where control blocks and save areas come from */
    uint32_t new_fp_control;   /* the environment that new coroutines start with */
    uint16_t new_fp_control2;
} __attribute__((aligned(64))) aco__thread_t;

#if defined(ACO_CONFIG_NO_INLINE)
/* the exported functions need no assembly here */
#elif defined(__x86_64__) && !defined(__ILP32__) && defined(__ELF__)
#include "arch/x86_64.h"
#elif defined(__i386__) && defined(__ELF__)
#include "arch/i386.h"
#else
#error "acorn: this architecture or object format has no switch yet (there are x86-64 and i386 on ELF systems)"
#endif

#endif
