/* The thread record: what a thread needs in order to switch; and the ways to find it. config.h chooses one of four:
 *
 *   ACO__THREAD_TLS       ELF's thread-local variable aco__thread, at an offset that the dynamic linker fixes at
 *                         program start (initial-exec). The fastest way
 *   ACO__THREAD_FOUND     a function of the library. ACO_CONFIG_DYNAMIC_TLS chooses it, for a library that is loaded
 *                         where static thread-local memory is not available (musl's dlopen()). The library and all
 *                         units must be compiled with it
 *   ACO__THREAD_SLOT      systems without ELF's thread-local variables. The record is allocated dynamically; a slot of
 *                         the thread's block holds its address
 *   ACO__THREAD_FALLBACK  ACO_CONFIG_UCONTEXT: aco__tls_ref_read() is a function of the library (arch/ucontext.h)
 *
 * aco__tls_ref() tells the switches where the record is: it returns its address or, with ACO__THREAD_TLS on x86, its
 * offset from the thread pointer (ACO__TLS_REF_IS_OFFSET). Another thread may resume a coroutine, so no compiler may
 * keep the result across a switch: each call computes it anew, by a volatile asm or by a function that no compiler sees
 * through (docs/switch.md, rule 8). */
#ifndef ACO_DETAIL_THREAD_H
#define ACO_DETAIL_THREAD_H

#include "arch.h"
#include "coroutine.h"

struct aco__thread {
    aco__context_t resumer;   /* where the running coroutine's resumer goes on */
    uint32_t fp_control;      /* the resumer's: on x86, MXCSR */
    uint16_t fp_control2;     /* the resumer's: on x86, the x87 control word */
    int8_t fp_load_always;    /* x86. 1: this processor loads MXCSR faster than it compares it; -1: it has no MXCSR */
    uint8_t ready;            /* the fields for new coroutines are set */
    struct aco_s *running;    /* the running coroutine; NULL: none */
    struct aco_s *resuming;   /* the coroutine that resumed the running one; NULL: the root context did */
    struct aco_s *cached;     /* destroyed coroutines, kept with their stacks for aco_new() */
    int32_t cached_room;      /* how many more it may keep */
    uint32_t new_fp_control;  /* the environment that new coroutines start with */
    uint16_t new_fp_control2;
    uint16_t root_fp_control2;
    uint32_t root_fp_control;
    aco__context_t root;      /* the root context, while a coroutine that it resumed resumes another */
    const aco__context_t *unwind_parent; /* for unwinders: `resumer`, or no context while its frames are elsewhere */
    aco__exceptions_t *exceptions; /* the thread's; NULL: not looked for yet, or the process has no C++ run time */
    struct aco_s *main_co;    /* the thread's newest main coroutine object, or NULL */
    void (*last_word)(void);  /* the function given to aco_thread_init() */
    struct aco__heap *heap;   /* where control blocks and save areas come from */
    struct aco__scratch *scratch; /* what few threads need */
    struct aco__cancel *cancel;   /* the innermost coroutine or generator that is being unwound */
    struct aco_s *task;       /* the running task, or the next one to run; NULL: no task is runnable */
    struct aco_s *last_task;  /* the task before it in the ring of runnable tasks: its turn comes last */
    uint32_t tasks;           /* tasks that were spawned and have not ended */
    uint32_t slow_switch_tasks; /* how many of them no inline switch may leave or enter */
    uint32_t measures;        /* aco_stack_measure() */
    uint32_t lock;            /* whether the thread holds or wants the process lock: src/base/lock.c */
    struct aco__scheduler *scheduler; /* the rest of the scheduler; NULL until a task is spawned */
    uint32_t scoped_tasks;    /* tasks that have had a scope */
    uint32_t looked_at;       /* when the scheduler last looked at the clock, in milliseconds modulo 2^32 */
    uint32_t spawned;         /* tasks that were spawned, modulo 2^32 */
    struct aco_s *depot;      /* what the cache has no room for (src/coroutine/depot.c); NULL: nothing */
    uint16_t depot_count, depot_low; /* full caches there; the fewest since it was trimmed */
    uint32_t depot_trimmed_at; /* milliseconds */
    char message[228 - 2 * sizeof(void *)]; /* why the last failed call failed */
#ifdef _WIN32
    struct aco__thread *next, **link; /* the list of all threads' records */
#endif
} __attribute__((aligned(64)));

ACO__BEGIN_C

#if defined(ACO__THREAD_SLOT)
/* The slot's offset; before it is known, the offset of a slot that holds 0. */
extern ACO_API uintptr_t aco__thread_slot;
ACO_API ACO__COLD aco__thread_t *aco__thread_new(void); /* makes the calling thread's record; aborts without memory */
ACO__FORCE_INLINE aco__tls_ref_t aco__tls_ref(void)
{
    aco__tls_ref_t tls = aco__slot_value(aco__thread_slot);
    return aco_likely(tls != 0) ? tls : (aco__tls_ref_t)aco__thread_new();
}
#elif defined(ACO__THREAD_FOUND)
ACO_API aco__thread_t *aco__thread_found(void); /* the calling thread's record */
ACO__FORCE_INLINE aco__tls_ref_t aco__tls_ref(void)
{
    return (aco__tls_ref_t)aco__thread_found();
}
#else
ACO__FORCE_INLINE aco__tls_ref_t aco__tls_ref(void)
{
    return aco__tls_ref_read();
}
#endif

#ifndef ACO__TLS_REF_IS_OFFSET /* else the architecture's file has these three */
ACO__FORCE_INLINE aco__thread_t *aco__self_at(aco__tls_ref_t tls)
{
    return (aco__thread_t *)tls;
}

ACO__FORCE_INLINE struct aco_s *aco__running_at(aco__tls_ref_t tls)
{
    return ((volatile aco__thread_t *)tls)->running;
}

ACO__FORCE_INLINE const aco__exceptions_t *aco__exceptions_at(aco__tls_ref_t tls)
{
    return ((volatile aco__thread_t *)tls)->exceptions;
}
#endif

#ifndef ACO__NOTHING_RUNS_IS_A_FLAG /* else the architecture's file tests the word in place: no load */
/* Whether no coroutine runs. */
ACO__FORCE_INLINE int aco__nothing_runs_at(aco__tls_ref_t tls)
{
    return aco__running_at(tls) == NULL;
}
#endif

ACO__FORCE_INLINE aco__thread_t *aco__self(void)
{
    return aco__self_at(aco__tls_ref());
}

ACO__FORCE_INLINE struct aco_s *aco__running(void)
{
    return aco__running_at(aco__tls_ref());
}

ACO__END_C

#endif
