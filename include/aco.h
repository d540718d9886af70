/* Acorn: stackful coroutines for C and C++, with libaco's API.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A thread's own flow of control is its main coroutine; others are made by aco_create() and run on a share stack. A share
 * stack used by one coroutine is its private stack, and switching copies nothing. When several use one, the bytes that are
 * live on it are saved to the outgoing coroutine's save area as another one needs the stack ("copying").
 *
 * Threads. Coroutines, share stacks and main coroutines belong to the thread that runs them; threads share nothing. What a
 * thread other than that one may do is said at each function ("Any thread").
 *
 * No call may be made by a signal handler that interrupts one.
 *
 * Errors. The functions here return what they promise or abort the process, after one line on stderr that begins with
 * "acorn: ", the call and the coroutine, and gives the reason. What is checked when:
 *   always          the argument is NULL; the coroutine has ended; it is a main coroutine; a coroutine is resumed by a
 *                   coroutine; yield, exit and the getters without a running coroutine; a coroutine destroys itself, or is
 *                   used after it was destroyed, while its memory is neither used again nor given back; destroying a share
 *                   stack with started coroutines that have not ended; a share stack found overflowed when its bytes are
 *                   saved, when its coroutine ends and when it is destroyed; returning from an entry function
 *   first resume, and whenever frames must be copied: also that the thread is the right one
 *   debug builds    at every resume that the thread is the right one, at every yield that the stack has not overflowed, and
 *                   at both that units compiled with and without ACO_CONFIG_SHARE_FPU_MXCSR_ENV are not mixed
 * A unit is a debug build when ACO_DEBUG is defined to 1, or not defined while neither NDEBUG is nor the compiler
 * optimises. Release and debug units may be linked together.
 *
 * Options, defined before this header is included:
 *   ACO_CONFIG_SHARE_FPU_MXCSR_ENV   coroutines share one floating-point environment (x87 control word, MXCSR). Faster;
 *                                    right when none of them changes rounding, precision, masks or flush-to-zero. To be
 *                                    defined for all units of a program or for none
 *   ACO_CONFIG_NO_INLINE             call the exported functions; the header then holds no assembly. For compilers without
 *                                    GNU assembly. They serve both kinds of coroutines */
#ifndef ACO_H
#define ACO_H

/* More than this header needs: programs written for libaco rely on what its header brought in. */
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifndef _WIN32
#include <sys/mman.h>
#include <unistd.h>
#endif

/* The level of libaco's API that this header provides. */
#define ACO_VERSION_MAJOR 1
#define ACO_VERSION_MINOR 2
#define ACO_VERSION_PATCH 4

/* This library's own version. */
#define ACORN_VERSION_MAJOR 0
#define ACORN_VERSION_MINOR 1
#define ACORN_VERSION_PATCH 0
#define ACORN_VERSION_STRING "0.1.0"

#if defined(_WIN32)
#define ACO_API
#else
#define ACO_API __attribute__((visibility("default")))
#endif
#define ACO__COLD __attribute__((cold, noinline))
/* The calls on the fast path are inline functions. One unit of the library (src/core.c) defines the same bodies as exported
 * functions, for languages that cannot use this header; ACO_CONFIG_NO_INLINE declares those. */
#if defined(ACO_CONFIG_NO_INLINE)
#define ACO__FAST ACO_API
#elif !defined(ACO__FAST)
#define ACO__FAST static inline __attribute__((always_inline, unused))
#endif

#ifdef __GNUC__
#define aco_likely(x) (__builtin_expect(!!(x), 1))
#define aco_unlikely(x) (__builtin_expect(!!(x), 0))
#else
#define aco_likely(x) (!!(x))
#define aco_unlikely(x) (!!(x))
#endif

#ifndef ACO_DEBUG
#if !defined(NDEBUG) && !defined(__OPTIMIZE__)
#define ACO_DEBUG 1
#else
#define ACO_DEBUG 0
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* An entry function. It must end by aco_exit(), not by returning. */
typedef void (*aco_cofuncp_t)(void);

typedef struct aco_s aco_t;

/* Where a coroutine's live bytes are kept while another one has its share stack. All fields are read-only. */
typedef struct aco_save_stack_s {
    void *ptr;         /* the save area */
    size_t sz;         /* its size in bytes */
    size_t valid_sz;   /* bytes saved in it now; 0 while the coroutine's frames are on the stack */
    size_t max_cpsz;   /* the most bytes ever saved or restored at one switch: the size to ask of aco_create() */
    size_t ct_save;    /* how often bytes were saved */
    size_t ct_restore; /* how often bytes were restored */
} aco_save_stack_t;

/* A stack to run coroutines on. All fields are read-only. */
typedef struct aco_share_stack_s {
    void *ptr;               /* its lowest byte */
    size_t sz;               /* its size in bytes */
    aco_t *owner;            /* the coroutine whose frames are on it, or NULL */
    char guard_page_enabled; /* 1: overflow is a SIGSEGV */
    /* internal */
    void *aco__top;                  /* where a coroutine's saved bytes end: the address of the outermost return address */
    struct aco__thread *aco__thread; /* the thread that runs coroutines on it, or NULL while none is started */
    size_t aco__started;             /* coroutines that were started on it and have neither ended nor been destroyed */
    aco_t *aco__left;                /* coroutines destroyed by other threads, to be freed by this one */
    void *aco__map;                  /* what the system gave: address and size */
    size_t aco__map_sz;
} aco_share_stack_t;

#ifdef __cplusplus
}
#endif
#include "aco/switch.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A coroutine: its control block. All fields are read-only, but for `arg`, which is the user's. */
struct aco_s {
    aco__context_t aco__self;    /* internal: where it left off, the switch's business up to and with aco__state */
    uint32_t aco__fp_control;
    uint16_t aco__fp_control2;
    unsigned char aco__state;    /* ACO__… below; 0 only while suspended with its frames in place */
    char is_end;                 /* 1 after aco_exit() */
    aco_share_stack_t *share_stack; /* the stack it runs on; NULL in a main coroutine */
    void *arg;                   /* what aco_create() was given, for aco_get_arg() */
    aco_cofuncp_t fp;            /* its entry function; NULL in a main coroutine */
    aco_t *main_co;              /* the main coroutine that resumes it; NULL in a main coroutine */
    aco_save_stack_t save_stack;
};

/* aco__state: the low bits say why a resume needs the slow path, the high ones how the coroutine was made. */
enum {
    ACO__SUSPENDED = 0, /* yielded, frames on its stack */
    ACO__READY = 1,     /* never resumed */
    ACO__SAVED = 2,     /* yielded, frames in the save area */
    ACO__ENDED = 3,
    ACO__MAIN = 4,
    ACO__GONE = 5,      /* destroyed; seen until the memory is used again */
    ACO__STATE = 0x0f,
    ACO__SHARES_FP = 0x80 /* does not keep a floating-point environment of its own */
};

/* Whether the unit keeps floating-point environments apart. src/core.c asks the coroutine instead. */
#if defined(ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
#define ACO__OWN_FP(co) 0
#elif !defined(ACO__OWN_FP)
#define ACO__OWN_FP(co) 1
#endif

/* ---- Threads ---------------------------------------------------------------------------------------------------------- */

/* Prepares the calling thread; to be called once before its other calls. Its floating-point control words become those
 * that new coroutines start with. `last_word` (or NULL) is called when a coroutine returns from its entry function, on that
 * coroutine's stack, with aco_get_co() naming it; the process then aborts. The default prints that line. */
ACO_API void aco_thread_init(aco_cofuncp_t last_word);

/* ---- Share stacks ----------------------------------------------------------------------------------------------------- */

/* A new share stack of at least `sz` bytes; 0 means 2 MiB. Its `sz` is at least 4096 and at least what was asked, and with
 * a guard page a multiple of the page size. The guard page lies below it and is inaccessible: overflow ends in SIGSEGV.
 * Without one, an overflow is noticed later, when the stack's bytes are next looked at. The caller owns the stack. Aborts
 * when the system has no memory or no mapping left. Any thread. */
ACO_API aco_share_stack_t *aco_share_stack_new2(size_t sz, char guard_page_enabled);

/* aco_share_stack_new2(sz, 1). */
ACO_API aco_share_stack_t *aco_share_stack_new(size_t sz);

/* Gives the stack back. Every coroutine that was started on it must have ended or been destroyed, else the process aborts. Any
 * thread, once no other uses the stack. */
ACO_API void aco_share_stack_destroy(aco_share_stack_t *sstk);

/* ---- Coroutines ------------------------------------------------------------------------------------------------------- */

/* A new coroutine. All arguments NULL or 0: the thread's main coroutine object, needed before others can be made. Else
 * none but `arg` and `save_stack_sz` may be NULL or 0:
 *   main_co         the main coroutine of the thread that will run it
 *   share_stack     the stack that it will run on; it must outlive the coroutine's last resume
 *   save_stack_sz   bytes to reserve for its save area, at least; 0 for 64. It grows as needed; the best value is the save_stack.max_cpsz
 *                   of coroutines like it. The area lies right behind the control block while it is no larger than asked
 *   fp, arg         its entry function, and what aco_get_arg() shall return there
 * The caller owns the coroutine and destroys it. Aborts when memory runs out. Any thread. */
ACO__FAST aco_t *aco_create(aco_t *main_co, aco_share_stack_t *share_stack, size_t save_stack_sz, aco_cofuncp_t fp, void *arg);

/* Runs `co` until it yields or exits. The caller is the main coroutine co->main_co; `co` has not ended. */
ACO__FAST void aco_resume(aco_t *co);

/* Suspends the running coroutine: its resumer's aco_resume() returns. Returns when it is resumed. */
ACO__FAST void aco_yield(void);

/* aco_yield() for a caller that knows the running coroutine, and must be right. */
ACO__FAST void aco_yield1(aco_t *co);

/* Ends the running coroutine: sets is_end, and its resumer's aco_resume() returns. Nothing on its stack is unwound. */
ACO_API __attribute__((noreturn)) void aco_exit(void);

/* aco_exit() for a caller that knows the running coroutine. */
ACO_API __attribute__((noreturn)) void aco_exit1(aco_t *co);

/* The running coroutine; in the main coroutine its newest object, or NULL where none was made or that one is destroyed. */
ACO__FAST aco_t *aco_get_co(void);
ACO__FAST aco_t *aco_co(void);

/* aco_get_co()->arg. There must be a running coroutine. */
ACO__FAST void *aco_get_arg(void);

/* Whether `co` is a main coroutine object: 1 or 0. */
ACO__FAST int aco_is_main_co(const aco_t *co);

/* Makes a coroutine that has ended, or was never resumed, as new, with another entry function and argument. It keeps its
 * stack, its save area and its statistics. */
ACO_API void aco_reset(aco_t *co, aco_cofuncp_t fp, void *arg);

/* Frees a coroutine or a main coroutine object: control block and save area, not the share stack, and nothing that a
 * suspended coroutine holds in its frames. The running coroutine cannot destroy itself: it aborts the process. Any thread,
 * while no other uses the coroutine; a main coroutine object: its own thread. */
ACO_API void aco_destroy(aco_t *co);

/* ---- Memory and assertions -------------------------------------------------------------------------------------------- */

/* malloc() that aborts instead of returning NULL; the result is the caller's, to be freed by free(). Any thread. */
ACO__FAST void *aco_mem_new(size_t sz);

/* Assertions that hold under NDEBUG too: on failure one line on stderr, then abort(). */
#define aco_assert(EX) ((aco_likely(EX)) ? ((void)0) : aco__assert_failed(#EX, __FILE__, __LINE__, __func__))
#define aco_assertptr(ptr) ((aco_likely((ptr) != NULL)) ? ((void)0) : aco__assert_failed(#ptr " != NULL", __FILE__, __LINE__, __func__))
#define aco_assertalloc_bool(b) ((aco_likely(b)) ? ((void)0) : aco__alloc_failed(__FILE__, __LINE__, __func__))
#define aco_assertalloc_ptr(ptr) ((aco_likely((ptr) != NULL)) ? ((void)0) : aco__alloc_failed(__FILE__, __LINE__, __func__))

/* ---- Internal from here on -------------------------------------------------------------------------------------------- */

ACO_API ACO__COLD __attribute__((noreturn)) void aco__assert_failed(const char *what, const char *file, int line, const char *function);
ACO_API ACO__COLD __attribute__((noreturn)) void aco__alloc_failed(const char *file, int line, const char *function);
ACO_API aco_t *aco__create(aco_t *main_co, aco_share_stack_t *share_stack, size_t save_stack_sz, aco_cofuncp_t fp, void *arg, int own_fp);
ACO_API __attribute__((noinline)) void aco__resume_slow(aco_t *co); /* makes `co` resumable, or aborts */
ACO_API ACO__COLD void aco__resume_check(aco_t *co, int own_fp); /* all checks, then aco__resume_slow() where needed */
ACO_API ACO__COLD void aco__yield_check(aco_t *co, int own_fp);
ACO_API ACO__COLD void aco__arrived(uintptr_t mark);             /* acts on an arrival mark */
ACO_API ACO__COLD __attribute__((noreturn)) void aco__nobody_runs(const char *call);

#if defined(ACO_CONFIG_NO_INLINE) && defined(ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
#define aco_create(main_co, share_stack, save_stack_sz, fp, arg) aco__create(main_co, share_stack, save_stack_sz, fp, arg, 0)
#endif

#ifndef ACO_CONFIG_NO_INLINE

ACO__FAST int aco_is_main_co(const aco_t *co)
{
    return co->main_co == NULL;
}

ACO__FAST void *aco_mem_new(size_t sz)
{
    void *p = malloc(sz ? sz : 1);
    aco_assertalloc_ptr(p);
    return p;
}

ACO__FAST aco_t *aco_create(aco_t *main_co, aco_share_stack_t *share_stack, size_t save_stack_sz, aco_cofuncp_t fp, void *arg)
{
    return aco__create(main_co, share_stack, save_stack_sz, fp, arg, ACO__OWN_FP(NULL));
}

#ifndef ACO__SWITCHES_ELSEWHERE

/* The call to aco__arrived() is what keeps a switching function from being a leaf, and so from using the red zone, whose
 * bytes a copying stack would lose. It must neither become a tail call (the empty asm stands after it) nor be inlined. */
#define ACO__ARRIVE(word)                                                                                              \
    do {                                                                                                               \
        if (aco_unlikely((word) & 1)) {                                                                                \
            aco__arrived(word);                                                                                        \
            __asm__ volatile("");                                                                                      \
        }                                                                                                              \
    } while (0)

ACO__FAST void aco_resume(aco_t *co)
{
    uintptr_t word;
#if ACO_DEBUG
    aco__resume_check(co, ACO__OWN_FP(co));
#else
    if (aco_unlikely(co == NULL || (co->aco__state & ACO__STATE) != ACO__SUSPENDED || aco__running() != NULL))
        aco__resume_slow(co);
#endif
    word = aco__switch_resume(co, ACO__OWN_FP(co));
    ACO__ARRIVE(word);
}

ACO__FAST void aco_yield1(aco_t *co)
{
    uintptr_t word;
    if (aco_unlikely(co == NULL))
        aco__nobody_runs("aco_yield1");
#if ACO_DEBUG
    aco__yield_check(co, ACO__OWN_FP(co));
#endif
    word = aco__switch_yield(co, ACO__OWN_FP(co));
    ACO__ARRIVE(word);
}

ACO__FAST void aco_yield(void)
{
    aco_t *co = aco__running();
    if (aco_unlikely(co == NULL))
        aco__nobody_runs("aco_yield");
    aco_yield1(co);
}

#endif

ACO__FAST aco_t *aco_get_co(void)
{
    aco_t *co = aco__running();
    return aco_likely(co != NULL) ? co : aco__self()->main_co;
}

ACO__FAST aco_t *aco_co(void)
{
    return aco_get_co();
}

ACO__FAST void *aco_get_arg(void)
{
    aco_t *co = aco__running();
    if (aco_unlikely(co == NULL))
        aco__nobody_runs("aco_get_arg");
    return co->arg;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
