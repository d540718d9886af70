/* Acorn: stackful coroutines for C and C++: an API of its own, and libaco's, on one control block and one switch.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A coroutine is a function with a stack of its own that can suspend itself in the middle, from any depth of calls, and be
 * resumed there. A thread's own flow of control is its main coroutine; others are made by aco_new() or aco_create(). A stack
 * that belongs to one coroutine is private, and switching copies nothing. When several coroutines use one share stack, the
 * bytes that are live on it are saved to the outgoing coroutine's save area as another one needs the stack ("copying").
 *
 * Threads. A coroutine runs on the thread that resumes it. One on a private stack made by aco_new() may be resumed by any
 * thread, by one at a time, and what one thread did must have been handed over to the next (by a lock or an atomic variable).
 * Those on a share stack belong to the thread that runs coroutines there. A coroutine that another thread is running must be
 * left alone, but for what is said at a function ("Any thread"). A thread that ends inside a coroutine (pthread_exit(),
 * pthread_cancel()) unwinds that coroutine's frames, not its resumers'; such a coroutine may only be destroyed after.
 *
 * No call may be made by a signal handler that interrupts one.
 *
 * Memory for frames that must be copied is asked for as another coroutine needs the stack: a resume is refused when there is
 * none; a yield to a resumer on the same share stack cannot be, and aborts.
 *
 * Errors. This library's own calls refuse what they cannot do: they return -1, NULL or ACO_ERROR as said at each, set errno,
 * and leave a line that says why in aco_error_message(); nothing is changed. Where ENOMEM is named, EAGAIN may come instead:
 * the kernel's limit on mappings is reached, and the line names it. libaco's calls return what they promise or abort
 * the process after printing that line on stderr, after "acorn: ". What is checked when:
 *   always          the argument is NULL; the coroutine has ended, is running, is resuming another or is a main coroutine;
 *                   yield, exit and the getters without a running coroutine; a coroutine destroys itself, or is
 *                   used after it was destroyed, while its memory is neither used again nor given back; destroying a share
 *                   stack with started coroutines that have not ended; a share stack found overflowed when its bytes are
 *                   saved, when its coroutine ends and when it is destroyed; returning from the entry function of aco_create()
 *   first resume, and whenever frames must be copied: also that the thread is the right one
 *   debug builds    at every resume that the thread is the right one, at every yield that the stack has not overflowed, and
 *                   at both that a coroutine with a floating-point environment of its own is not switched by a unit compiled
 *                   with ACO_CONFIG_SHARE_FPU_MXCSR_ENV
 * In release builds the fast path asks nothing more: a coroutine on a share stack that is resumed by another thread while its
 * frames are in place is not noticed, nor is one that is resumed while another thread runs it.
 * Under ACO_CONFIG_NO_INLINE resume and yield are the library's own, and check as in release builds.
 * A unit is a debug build when ACO_DEBUG is defined to 1, or not defined while neither NDEBUG is nor the compiler
 * optimises. Release and debug units may be linked together.
 *
 * Options, defined before this header is included:
 *   ACO_CONFIG_SHARE_FPU_MXCSR_ENV   coroutines share one floating-point environment (x87 control word, MXCSR). Faster;
 *                                    right when none of them changes rounding, precision, masks or flush-to-zero. To be
 *                                    defined for all units of a program or for none. aco_new() can ask for it by the coroutine
 *   ACO_CONFIG_UCONTEXT              the switch is the C library's <ucontext.h>, for architectures that aco/arch/ has no switch
 *                                    for; the library must be built with it too. Slow, and frames become large
 *   ACO_CONFIG_NO_CFI                no unwind directives in the inline assembly: docs/debugging.md
 *   ACO_CONFIG_NO_INLINE             call the exported functions; the header then holds no assembly. For compilers without
 *                                    GNU assembly. They serve both kinds of coroutines */
#ifndef ACO_H
#define ACO_H

#if defined(_MSC_VER) && !defined(__clang__) /* clang-cl is untested */
#error "acorn: MSVC has neither GNU inline assembly nor GNU attributes: compile with mingw-w64's gcc or clang"
#endif

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
/* The calls on the fast path are inline functions. One unit of the library (src/coroutine/create.c) defines the same bodies as exported
 * functions, for languages that cannot use this header; ACO_CONFIG_NO_INLINE declares those. */
#if defined(ACO_CONFIG_NO_INLINE)
#define ACO__FAST ACO_API
#elif !defined(ACO__FAST)
#define ACO__FAST static inline __attribute__((always_inline, unused))
#endif

#if defined(__GNUC__)
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

/* An entry function for aco_create(). It must end by aco_exit(), not by returning. */
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
    char aco__private;               /* it belongs to one coroutine and is freed with it */
    char aco__cacheable;              /* it is of the default pool and size: threads keep some of these */
    void *aco__top;                  /* where a coroutine's saved bytes end: the address of the outermost return address */
    struct aco__thread *aco__thread; /* the thread that runs coroutines on it, or NULL while none is started */
    aco_t *aco__left;                /* coroutines destroyed by other threads, to be freed by this one */
    struct aco__thread *const *aco__owner_thread; /* for unwinders: names the thread on which its coroutine began; never NULL */
    const struct aco__context *aco__resumer_context; /* its coroutine's resumer's while that one waits, resuming another; never NULL */
    size_t aco__started;             /* coroutines that were started on it and have neither ended nor been destroyed */
    void *aco__map;                  /* what the system gave: address and size */
    size_t aco__map_sz;
    struct aco__region *aco__region; /* the pool's region that it is part of, or NULL */
    struct aco_share_stack_s *aco__instead_of; /* the share stack for which one coroutine has this (ASan), or NULL */
    unsigned aco__registered;      /* Valgrind's number for it, or 0 */
} aco_share_stack_t;

#ifdef __cplusplus
}
#endif
#include "aco/switch.h"
#include "aco/switching.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A coroutine: its control block. All fields are read-only, but for `arg`, which is the user's (in one of aco.hpp it is not). */
struct aco_s {
    aco__context_t aco__self;    /* internal: where it left off, the switch's business up to and with aco__state */
    uint32_t aco__fp_control;
    uint16_t aco__fp_control2;
    unsigned char aco__state;    /* ACO__… below; its low half is 0 only while suspended with its frames in place, or running */
    char is_end;                 /* 1 after aco_exit(), return or cancellation */
    aco_share_stack_t *share_stack; /* the stack it runs on; NULL in a main coroutine */
    void *arg;                   /* what aco_create() or aco_new() was given */
    aco_cofuncp_t fp;            /* its entry function; NULL in a main coroutine */
    /* The rest is not there in a coroutine that aco_new() made on a private stack. */
    aco_t *main_co;              /* the main coroutine that resumes it; NULL in a main coroutine and after aco_new() */
    aco_save_stack_t save_stack;
};

/* aco__state: the low half says why a resume needs the slow path, the high half how the coroutine was made. */
enum {
    ACO__SUSPENDED = 0, /* yielded, frames on its stack; or running */
    ACO__READY = 1,     /* never resumed, and on a share stack */
    ACO__SAVED = 2,     /* yielded, frames in the save area */
    ACO__ENDED = 3,
    ACO__MAIN = 4,
    ACO__DESTROYED = 5,      /* destroyed; seen until the memory is used again */
    ACO__RESUMING = 6,  /* waits for a coroutine that it resumed, frames on its stack */
    ACO__RESUMING_SAVED = 7, /* the same, frames in the save area */
    ACO__STATUS = 0x07,
    ACO__INSTRUMENTED = 0x08, /* every switch takes the slow path: something must be done there */
    ACO__FAST_MASK = ACO__STATUS | ACO__INSTRUMENTED,
    ACO__HAS_COLD = 0x10,    /* has an aco__cold_t with something in it */
    ACO__PRIVATE = 0x20,  /* has its stack to itself, which holds its aco__cold_t; the block ends after `fp` */
    ACO__FROM_NEW = 0x40,   /* made by aco_new() */
    ACO__SHARES_FP = 0x80, /* does not keep a floating-point environment of its own */
    ACO__TASK = ACO__MAIN | ACO__PRIVATE, /* a task that has not ended: no main coroutine object is private */
    ACO__TASK_MASK = ACO__STATUS | ACO__PRIVATE,
    ACO__MOST_CACHED = 64,
    ACO__SLAB = 2 << 20   /* bytes and alignment of a slab, which begins with its heap's address */
};

/* Whether the unit keeps floating-point environments apart. src/coroutine/create.c asks the coroutine instead. */
#if defined(ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
#define ACO__OWN_FP(co) 0
#elif !defined(ACO__OWN_FP)
#define ACO__OWN_FP(co) 1 /* if it has one: the switch looks */
#endif

/* ---- Coroutines: this library's own calls ------------------------------------------------------------------------------ */

/* An entry function for aco_new(). What it returns is the coroutine's result. */
typedef void *(*aco_function_t)(void *arg);

typedef struct aco_pool_s aco_pool_t; /* of private stacks: aco/pool.h */

/* How a coroutine is to be made. Zero in a field, and NULL for the whole, stands for the default: initialise with {0} and
 * set what is wanted; later versions add fields from the reserved ones. */
typedef struct aco_options_s {
    size_t stack_size;        /* of its private stack, in bytes, rounded up to a power of two (4 KiB … 8 MiB) or, beyond, to
                                 the page size; 0: 256 KiB */
    aco_share_stack_t *stack; /* run on this share stack instead of a private one */
    size_t save_size;         /* bytes to reserve for its save area, with `stack`; 0: 64 */
    const char *name;         /* for aco_name(); copied, at most ACO_NAME_SIZE - 1 bytes */
    unsigned flags;           /* ACO_OWN_FP, … or'ed */
    unsigned aco__reserved0;  /* reserved fields are 0 */
    aco_pool_t *pool;         /* where its private stack comes from (aco/pool.h); NULL: the process's default pool */
    void *aco__reserved[3];
} aco_options_t;

enum {
    ACO_OWN_FP = 1,         /* keep a floating-point environment of its own: the default, but for units compiled with
                               ACO_CONFIG_SHARE_FPU_MXCSR_ENV, which cannot (EINVAL) */
    ACO_SHARED_FP = 2,      /* share the resumer's: faster */
    ACO_OWN_EXCEPTIONS = 4, /* C++: keep exceptions that are being handled apart, so that it may be suspended inside a catch
                               block while others are in theirs. Switching costs more */
    ACO_NO_GUARD = 8,       /* no guard page below its private stack */
    ACO_DETACHED = 16,      /* for aco_spawn() only (aco/scheduler.h): nobody joins the task */
    ACO_NAME_SIZE = 32
};

/* What calls that return a value return when they refuse; no coroutine may pass it. */
#define ACO_ERROR ((void *)&aco_error_mark)
extern ACO_API char aco_error_mark;

/* A new coroutine, which runs fn(arg) when it is first resumed. `opts` may be NULL and is not kept. The caller owns it and
 * destroys it. The thread needs no preparation. NULL and errno on failure: EINVAL (`fn` is NULL, an option out of bounds),
 * ENOMEM, EAGAIN (a limit of the kernel or of the pool is reached; aco_error_message() names it), ENOTSUP (the thread has a
 * shadow stack that cannot be switched: docs/platforms.md). Any thread. */
ACO__FAST aco_t *aco_new(aco_function_t fn, void *arg, const aco_options_t *opts);

/* Makes a coroutine of aco_new() that is done, or was never resumed, as new. It keeps its stack, name and options; its slot
 * and coroutine-local values are gone. 0, or -1 and errno: EINVAL (NULL, or made by aco_create()), EBUSY (not done), ESRCH
 * (destroyed). */
ACO_API int aco_restart(aco_t *co, aco_function_t fn, void *arg);

/* Runs `co` until it yields, returns or exits. `value` is what its aco_yield_value() returns; the first one only starts it
 * and is ignored (a debug build prints a warning when it is not NULL). Any coroutine, and the thread's own flow of control,
 * may resume any suspended one; it becomes its resumer. Returns what the coroutine yielded, or its result: ask aco_state() or
 * is_end which. ACO_ERROR and errno: EINVAL (NULL, a main coroutine), ESRCH (done or destroyed), EBUSY (running, or resuming
 * another), EPERM (it belongs to another thread), ENOMEM. */
ACO__FAST void *aco_send(aco_t *co, void *value);

/* Suspends the running coroutine and makes its resumer's aco_send() return `value`. Returns what it is next sent; NULL when
 * it is resumed otherwise. ACO_ERROR and errno EPERM when no coroutine is running. */
ACO__FAST void *aco_yield_value(void *value);

/* Suspends the running coroutine and runs `co` in its place: the next yield of `co` returns to what was the running
 * one's resumer, which is now its own. Returns when the caller is resumed: 0; at once if `co` is the running one: 0; or
 * refuses at once: -1, and errno as aco_send(), or EPERM also when no coroutine is running, when the running one is a task
 * (aco/scheduler.h) or in its cleanup, and when one of the two has ACO_OWN_EXCEPTIONS and the other has not. */
ACO__FAST int aco_yield_to(aco_t *co);

/* Starts to fetch what a resume of `co` will touch: of one on a share stack the control block and a save area of up to 200 bytes
 * behind it; of one on a private stack the control block. It reads nothing and waits for nothing. To be called some eight
 * resumes ahead by a loop that resumes many coroutines in an order of its own. `co` may be anything. */
ACO__FAST void aco_prefetch(const aco_t *co);

/* The second step, for private stacks and large save areas: reads the control block, which should have arrived by now, and
 * starts to fetch the innermost frame, or the rest of the save area. To be called some four resumes ahead, for coroutines that
 * come back to values on their stack; where there are none, or the save area is small, it only costs. `co` is not NULL and was
 * not destroyed. */
ACO__FAST void aco_prefetch_stack(const aco_t *co);

typedef enum aco_state_e {
    ACO_STATE_READY,     /* never resumed */
    ACO_STATE_RUNNING,   /* by the calling thread; one that another thread runs looks suspended, or ready until it yields */
    ACO_STATE_RESUMING,  /* waits for a coroutine that it resumed */
    ACO_STATE_SUSPENDED, /* yielded */
    ACO_STATE_DONE       /* returned, exited or cancelled */
} aco_state_t;

/* What `co`, not NULL, is doing. A main coroutine is running or resuming. */
ACO_API aco_state_t aco_state(const aco_t *co);

/* What the entry function of a coroutine that is done returned; NULL after aco_exit() or aco_cancel(). ACO_ERROR and errno
 * EINVAL (NULL) or EBUSY (not done). */
ACO_API void *aco_result(const aco_t *co);

/* Has the running coroutine call fn(arg) when it ends: by returning, by aco_exit() or by aco_cancel(); the last deferred
 * first, on its own stack. For aco_cancel() the call belongs to the function that called aco_defer(), inlined ones counting as
 * their caller; on i386, where other languages call the exported function, perhaps to a function that the caller calls. 0, or -1
 * and errno: EPERM (no coroutine is running), EINVAL, ENOMEM. `fn` must not yield, throw or end the coroutine; what it defers
 * itself is called next. */
ACO__FAST int aco_defer(void (*fn)(void *), void *arg);

/* Takes the last deferred call back, making it now if `call` is not 0: to be used before the function that deferred it returns.
 * In a cleanup it takes the call that is due next, whoever deferred it. 0, or -1 and errno: EPERM (no coroutine is running),
 * ENOENT (nothing is deferred). */
ACO_API int aco_defer_pop(int call);

/* Ends a coroutine. One that is suspended is resumed to unwind its stack: frame by frame from the innermost, first the calls
 * deferred in the frame, the last first, then its C++ destructors (where the frame has unwind tables; a cleanup attribute in
 * C under -fexceptions counts as one); the unwinder needs some 8 KiB of free stack for it. Then it is done. One that never
 * started becomes done and runs nothing; one that is done stays as it is. Cleanup may resume other coroutines; a yield in it
 * aborts the process, and aco_yield_to() is refused. 0, or -1 and errno: EINVAL (NULL, a main coroutine), ESRCH (destroyed),
 * EBUSY (running, or resuming another), EPERM (belongs to another thread), ENOMEM. */
ACO_API int aco_cancel(aco_t *co);

/* Whether the calling thread runs no coroutine: 1 or 0. */
ACO__FAST int aco_is_in_main_co(void);

/* The bounds of the stack that `co` runs on: addresses from *lo up to and without *hi. The frames of a suspended coroutine on a
 * share stack may be in its save area instead. 0, or -1 and errno EINVAL (NULL, a main coroutine). Any thread. */
ACO_API int aco_stack_bounds(const aco_t *co, void **lo, void **hi);

/* Its name; "" if none was given. The string lives as long as the coroutine. */
ACO_API const char *aco_name(const aco_t *co);

/* Names it anew, keeping at most ACO_NAME_SIZE - 1 bytes. 0, or -1 and errno EINVAL, ENOMEM. */
ACO_API int aco_set_name(aco_t *co, const char *name);

/* Calls visit(co, arg) for every coroutine made by the calling thread, or by one that ended and whose memory it took
 * over, and not destroyed; in no particular order. Stops when `visit` returns other than 0, and returns that; else 0.
 * `visit` must not make, resume or destroy coroutines. */
ACO_API int aco_each(int (*visit)(aco_t *co, void *arg), void *arg);

/* The line that says why this thread's last refused call refused: "<call>: [coroutine <address>: ]<reason>"; "" before there
 * was one. It lives until the next. */
ACO_API const char *aco_error_message(void);

/* ---- Stack overflow ---------------------------------------------------------------------------------------------------- */

/* Has an overflow into a stack's guard page explained before it ends the process: a line on stderr that names the coroutine,
 * its stack's bounds, and how to make it larger; then what the program had set for the signal (SIGSEGV, SIGBUS) before
 * this call, or the default action. Each thread that runs coroutines is to call it: the line is written on an alternate signal
 * stack, which it makes if the thread has none. 0, or -1 and errno ENOMEM, EAGAIN, ENOSYS (Windows: a fault is described on the
 * stack that it happened on, which has no room left). */
ACO_API int aco_explain_overflow(void);

/* ---- Coroutine-local storage ------------------------------------------------------------------------------------------- */

/* One pointer for the user per coroutine besides `arg`, NULL at first; co may be NULL for the running one, or the thread's own
 * flow of control. aco_set_slot(): 0, or -1 and errno ENOMEM. */
ACO_API void *aco_slot(const aco_t *co);
ACO_API int aco_set_slot(aco_t *co, void *p);

/* Keys for values that differ from coroutine to coroutine; at most ACO_KEYS at a time. `destructor` (or NULL) is called with
 * a value that is not NULL when its coroutine ends, on that coroutine's stack, after the deferred calls, in no particular
 * order and up to four times while destructors set values anew; for a value of a thread's own flow of control when the thread
 * ends. Destroying a coroutine that has not ended calls none. 0, or -1 and errno EAGAIN (no key left), EINVAL (not a key).
 * Any thread. */
typedef struct aco_key_s {
    uint32_t index, generation;
} aco_key_t;
enum { ACO_KEYS = 1024 };
ACO_API int aco_key_create(aco_key_t *key, void (*destructor)(void *));

/* No destructor is called; the values are the user's business before. */
ACO_API int aco_key_delete(aco_key_t key);

/* The running coroutine's value, or that of the thread's own flow of control; NULL if none was set, or not a key. */
ACO_API void *aco_get_local(aco_key_t key);
/* 0, or -1 and errno EINVAL (not a key), ENOMEM. */
ACO_API int aco_set_local(aco_key_t key, void *value);

/* Declares a coroutine-local variable at file scope: ACO_LOCAL(int, counter); then *counter() is the running coroutine's (or
 * the thread's own flow of control's), zero at first. Each name is local to its unit. The memory is freed with the coroutine;
 * the address must not be kept in another. It is aligned as malloc() aligns. Aborts when memory runs out. */
#define ACO_LOCAL(type, name)                                                                                          \
    static __attribute__((unused)) type *name(void)                                                                    \
    {                                                                                                                  \
        static aco__local_t local = {sizeof(type), 0, 0, 0};                                                           \
        return (type *)aco__local(&local, #name);                                                                      \
    }                                                                                                                  \
    struct aco_s

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

/* ---- Coroutines: libaco's calls ---------------------------------------------------------------------------------------- */

/* A new coroutine. All arguments NULL or 0: the thread's main coroutine object, needed before others can be made. Else
 * none but `arg` and `save_stack_sz` may be NULL or 0:
 *   main_co         the main coroutine of the thread that will run it
 *   share_stack     the stack that it will run on; it must outlive the coroutine's last use but its destruction
 *   save_stack_sz   bytes to reserve for its save area, at least; 0 for 64. It grows as needed; the best value is the
 *                   save_stack.max_cpsz of coroutines like it. The area lies right behind the control block while it is no
 *                   larger than asked
 *   fp, arg         its entry function, and what aco_get_arg() shall return there
 * The caller owns the coroutine and destroys it. Aborts when memory runs out. Any thread. */
ACO__FAST aco_t *aco_create(aco_t *main_co, aco_share_stack_t *share_stack, size_t save_stack_sz, aco_cofuncp_t fp, void *arg);

/* Runs `co`, which has not ended, until it yields or exits. The caller is the main coroutine co->main_co, or a coroutine of
 * its thread. */
ACO__FAST void aco_resume(aco_t *co);

/* Suspends the running coroutine: its resumer's aco_resume() returns. Returns when it is resumed. */
ACO__FAST void aco_yield(void);

/* aco_yield() for a caller that knows the running coroutine, and must be right. */
ACO__FAST void aco_yield1(aco_t *co);

/* Ends the running coroutine: makes the deferred calls, sets is_end, and its resumer's aco_resume() returns. Nothing on its
 * stack is unwound. */
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

/* Makes a coroutine of aco_create() that has ended, or was never resumed, as new, with another entry function and argument. It
 * keeps its stack, its save area and its statistics, not its coroutine-local values. */
ACO_API void aco_reset(aco_t *co, aco_cofuncp_t fp, void *arg);

/* Frees a coroutine or a main coroutine object: control block, save area and private stack, not a share stack, and nothing
 * that a suspended coroutine holds in its frames: no deferred call, no destructor, no key's destructor runs (a debug build
 * prints a warning, once); aco_cancel() first where they shall. The running coroutine cannot destroy itself: it aborts the
 * process. Any thread, while no other uses the coroutine; a main coroutine object: its own thread. */
ACO__FAST void aco_destroy(aco_t *co);

/* ---- Memory and assertions -------------------------------------------------------------------------------------------- */

/* Where the library gets its memory: its own choice by default (mmap and malloc). Each function gets `ctx`. `map` returns
 * `sz` zeroed bytes aligned to `align`, a power of two and at least the page size, that guard pages can be set in (mprotect),
 * `unmap` takes whole mappings back; `allocate` returns memory as malloc(), `release` takes it back; NULL from either is "no
 * memory". They must not call this library. To be set before the library's first use: 0, or -1 and errno EINVAL (a function is
 * missing), EBUSY (too late). Any thread; they are called by any. */
typedef struct aco_allocator_s {
    void *(*map)(size_t sz, size_t align, void *ctx);
    void (*unmap)(void *p, size_t sz, void *ctx);
    void *(*allocate)(size_t sz, void *ctx);
    void (*release)(void *p, size_t sz, void *ctx);
    void *ctx;
} aco_allocator_t;
ACO_API int aco_set_allocator(const aco_allocator_t *allocator);

/* malloc() that aborts instead of returning NULL; the result is the caller's, to be freed by free(). Any thread. */
ACO__FAST void *aco_mem_new(size_t sz);

/* Assertions that hold under NDEBUG too: on failure one line on stderr, then abort(). */
#define aco_assert(EX) ((aco_likely(EX)) ? ((void)0) : aco__assert_failed(#EX, __FILE__, __LINE__, __func__))
#define aco_assertptr(ptr)                                                                                             \
    ((aco_likely((ptr) != NULL)) ? ((void)0) : aco__assert_failed(#ptr " != NULL", __FILE__, __LINE__, __func__))
#define aco_assertalloc_bool(b) ((aco_likely(b)) ? ((void)0) : aco__alloc_failed(__FILE__, __LINE__, __func__))
#define aco_assertalloc_ptr(ptr) ((aco_likely((ptr) != NULL)) ? ((void)0) : aco__alloc_failed(__FILE__, __LINE__, __func__))

/* ---- Internal from here on -------------------------------------------------------------------------------------------- */

ACO_API ACO__COLD __attribute__((noreturn))
void aco__assert_failed(const char *what, const char *file, int line, const char *function);
ACO_API ACO__COLD __attribute__((noreturn)) void aco__alloc_failed(const char *file, int line, const char *function);
ACO_API aco_t *aco__create(aco_t *main_co, aco_share_stack_t *share_stack, size_t save_stack_sz, aco_cofuncp_t fp, void *arg,
                           int own_fp);
ACO_API aco_t *aco__new(aco_function_t fn, void *arg, const aco_options_t *opts, int own_fp);
/* For a `co` that cannot be resumed at once. 1: now it can. 0: it was; *value is what came back, ACO_ERROR if it was refused.
 * The first aborts instead. */
ACO_API __attribute__((noinline)) int aco__resume_slow(aco_t *co);
ACO_API __attribute__((noinline)) int aco__send_slow(aco_t *co, void **value);
ACO_API __attribute__((noinline)) int aco__yield_to_slow(aco_t *co);
/* The same with all checks. `own_fp`: whether the unit keeps floating-point environments apart. */
ACO_API ACO__COLD int aco__resume_check(aco_t *co, int own_fp);
ACO_API ACO__COLD int aco__send_check(aco_t *co, void **value, int own_fp);
ACO_API ACO__COLD void aco__yield_check(aco_t *co, int own_fp);
ACO_API void aco__destroy(aco_t *co);
ACO_API ACO__COLD void aco__destroy_checked(aco_t *co);         /* aco_destroy() of a debug build */
ACO_API ACO__COLD void aco__interrupted(uintptr_t interrupt_flag);             /* acts on an arrival mark */
ACO_API ACO__COLD void *aco__not_yielded(const char *call);      /* refuses: no coroutine is running */
/* Resumes `co`, suspended, with fn(arg) called at the point where it is suspended; it may throw. As aco_send() else. */
ACO_API void *aco__inject(aco_t *co, void (*fn)(void *), void *arg, const char *call);
ACO_API int aco__defer(void (*fn)(void *), void *arg, void *frame);
/* An entry function that calls run(itself), for a C++ function `run` that catches all exceptions and has nothing else to clean
 * up: a cancellation ends there and does not enter its handler. */
typedef struct aco__guarded_s {
    void (*run)(struct aco__guarded_s *itself);
} aco__guarded_t;
ACO_API void *aco__guarded_entry(void *guarded);
/* Whether the calling coroutine shares the stack of `co`; if so aco_error_message() and errno say
 * that no values can be passed. */
ACO_API int aco__is_on_stack_of(const aco_t *co);
ACO_API int aco__is_cancelled(void);                             /* whether the running coroutine is being cancelled */
typedef struct aco__local_s {
    size_t size;
    uint32_t index, generation, made;
} aco__local_t;
ACO_API void *aco__local(aco__local_t *local, const char *name);
ACO_API ACO__COLD __attribute__((noreturn)) void aco__nothing_runs(const char *call);

/* An address in the calling function's frame. */
#if defined(__riscv) || defined(__loongarch__) /* the frame pointer is where the caller's frame begins */
#define ACO__FRAME ((char *)__builtin_frame_address(0) - sizeof(void *))
#else
#define ACO__FRAME __builtin_frame_address(0)
#endif
#if defined(ACO_CONFIG_NO_INLINE) && defined(__GNUC__)
#define aco_defer(fn, arg) aco__defer(fn, arg, ACO__FRAME)
#endif
#if defined(ACO_CONFIG_NO_INLINE) && defined(ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
#define aco_new(fn, arg, opts) aco__new(fn, arg, opts, 0)
#define aco_create(main_co, share_stack, save_stack_sz, fp, arg) aco__create(main_co, share_stack, save_stack_sz, fp, arg, 0)
#endif

#ifndef ACO_CONFIG_NO_INLINE

/* Where a coroutine of aco_new() begins. */
ACO_API ACO__ARRIVAL_ABI void aco__begin(ACO__ARRIVAL_PARAMETERS);

ACO__FAST int aco_is_main_co(const aco_t *co)
{
    return co->share_stack == NULL;
}

/* The block's fields for a start from the beginning. */
ACO__FORCE_INLINE void aco__prepare(aco__thread_t *self, aco_t *co, aco_function_t fn, void *arg)
{
    ACO__ARRIVAL_ABI void (*begin)(ACO__ARRIVAL_PARAMETERS) = aco__begin;
    memcpy(&co->aco__self.pc, &begin, sizeof begin);
    co->aco__self.sp = co->share_stack->aco__top;
    co->aco__self.bp = NULL; /* ends the chain of frame pointers */
    co->aco__fp_control = self->new_fp_control;
    co->aco__fp_control2 = self->new_fp_control2;
    memcpy(&co->fp, &fn, sizeof fn);
    co->arg = arg;
    co->is_end = 0;
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

/* The call to aco__interrupted() is what keeps a switching function from being a leaf, and so from using the red zone, whose
 * bytes a copying stack would lose. It must neither become a tail call (the empty asm stands after it) nor be inlined. */
#define ACO__CHECK_INTERRUPT(tagged)                                                                                              \
    do {                                                                                                               \
        if (aco_unlikely((tagged) & 1)) {                                                                                \
            aco__interrupted(tagged);                                                                                        \
            __asm__ volatile("");                                                                                      \
        }                                                                                                              \
    } while (0)

#ifndef ACO__SWITCHES_IN_ASSEMBLY

ACO__FAST void *aco_send(aco_t *co, void *value)
{
    uintptr_t tagged;
    aco__tls_ref_t tls = aco__tls_ref();
#if ACO_DEBUG
    if (!aco__send_check(co, &value, ACO__OWN_FP(co)))
        return value;
#else
    if (aco_unlikely(co == NULL || (co->aco__state & ACO__FAST_MASK) != 0 || aco__running_at(tls) != NULL)) {
        void *sent = value; /* its address is taken on this path only */
        if (!aco__send_slow(co, &sent))
            return sent;
        tls = aco__tls_ref();
    }
#endif
    ACO__COMPUTED(value);
    tagged = aco__switch_resume(tls, co, &value, ACO__OWN_FP(co));
    ACO__CHECK_INTERRUPT(tagged);
    return value;
}

ACO__FAST void aco_resume(aco_t *co)
{
    uintptr_t tagged;
    aco__tls_ref_t tls = aco__tls_ref();
    void *value = NULL;
#if ACO_DEBUG
    if (!aco__resume_check(co, ACO__OWN_FP(co)))
        return;
#else
    if (aco_unlikely(co == NULL || (co->aco__state & ACO__FAST_MASK) != 0 || aco__running_at(tls) != NULL)) {
        if (!aco__resume_slow(co))
            return;
        tls = aco__tls_ref();
    }
#endif
    tagged = aco__switch_resume(tls, co, &value, ACO__OWN_FP(co));
    ACO__CHECK_INTERRUPT(tagged);
}

ACO__FAST void *aco_yield_value(void *value)
{
    uintptr_t tagged;
    aco__tls_ref_t tls = aco__tls_ref();
    aco_t *co = aco__running_at(tls);
    if (aco_unlikely(co == NULL))
        return aco__not_yielded("aco_yield_value");
#if ACO_DEBUG
    aco__yield_check(co, ACO__OWN_FP(co));
#endif
    ACO__COMPUTED(value);
    tagged = aco__switch_yield(tls, co, &value, ACO__OWN_FP(co));
    ACO__CHECK_INTERRUPT(tagged);
    return value;
}

ACO__FORCE_INLINE void aco__yield_at(aco__tls_ref_t tls, aco_t *co, const char *call)
{
    uintptr_t tagged;
    void *value = NULL;
    if (aco_unlikely(co == NULL))
        aco__nothing_runs(call);
#if ACO_DEBUG
    aco__yield_check(co, ACO__OWN_FP(co));
#endif
    tagged = aco__switch_yield(tls, co, &value, ACO__OWN_FP(co));
    ACO__CHECK_INTERRUPT(tagged);
}

ACO__FAST void aco_yield1(aco_t *co)
{
    aco__yield_at(aco__tls_ref(), co, "aco_yield1");
}

ACO__FAST void aco_yield(void)
{
    aco__tls_ref_t tls = aco__tls_ref();
    aco__yield_at(tls, aco__running_at(tls), "aco_yield");
}

#endif

ACO__FAST int aco_yield_to(aco_t *co)
{
#if ACO_DEBUG
    return aco__yield_to_slow(co);
#else
    aco__tls_ref_t tls = aco__tls_ref();
    aco_t *from = aco__running_at(tls);
    uintptr_t tagged;
    void *value;
    if (aco_unlikely(from == NULL || co == NULL || ((co->aco__state | from->aco__state) & ACO__FAST_MASK) != 0 ||
                     ((co->aco__state ^ from->aco__state) & ACO__SHARES_FP) != 0))
        return aco__yield_to_slow(co);
    value = NULL;
    tagged = aco__switch_transfer(tls, from, co, &value, ACO__OWN_FP(co));
    ACO__CHECK_INTERRUPT(tagged);
    return 0;
#endif
}

/* A thread keeps the ordinary ones among its destroyed private coroutines, with their stacks: to make one of them again is a
 * matter of a few stores. */
ACO__FORCE_INLINE aco_t *aco__cache_pop(aco__thread_t *self)
{
    aco_t *co = self->cached;
    self->cached = (aco_t *)co->aco__self.base;
    self->cached_count--;
    return co;
}

ACO__FORCE_INLINE aco_t *aco__cache_reuse(aco__thread_t *self, aco_function_t fn, void *arg, int own_fp)
{
    aco_t *co = aco__cache_pop(self);
    co->aco__state = (unsigned char)(own_fp ? ACO__FROM_NEW | ACO__PRIVATE : ACO__FROM_NEW | ACO__PRIVATE | ACO__SHARES_FP);
    aco__prepare(self, co, fn, arg);
    return co;
}

ACO__FAST aco_t *aco_new(aco_function_t fn, void *arg, const aco_options_t *opts)
{
    aco__thread_t *self = aco__self();
    if (aco_unlikely(!self->cached || opts || !fn))
        return aco__new(fn, arg, opts, ACO__OWN_FP(NULL));
    return aco__cache_reuse(self, fn, arg, ACO__OWN_FP(NULL));
}

/* Keeps one, if it is ordinary. */
ACO__FORCE_INLINE int aco__cache_put(aco__thread_t *self, aco_t *co)
{
    if (!co->share_stack->aco__cacheable || self->cached_count >= ACO__MOST_CACHED ||
        *(struct aco__heap **)((uintptr_t)co & ~(uintptr_t)(ACO__SLAB - 1)) != self->heap) /* where its slab begins */
        return 0;
    co->aco__state = ACO__FROM_NEW | ACO__PRIVATE | ACO__DESTROYED;
    co->aco__self.base = self->cached;
    self->cached = co;
    self->cached_count++;
    return 1;
}

ACO__FAST void aco_destroy(aco_t *co)
{
    if (aco_unlikely(!co || (__atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & ~ACO__SHARES_FP) !=
                                (ACO__FROM_NEW | ACO__PRIVATE | ACO__ENDED) ||
                     !aco__cache_put(aco__self(), co)))
        aco__destroy(co);
}
#if ACO_DEBUG
#define aco_destroy(co) aco__destroy_checked(co)
#endif

/* The frame's address tells aco_cancel() which destructors come after the call. */
#ifndef ACO__DEFER_IN_ASSEMBLY
ACO__FAST int aco_defer(void (*fn)(void *), void *arg)
{
#ifdef ACO__EXPORTED_FORMS /* the caller's frame begins behind this one */
#if defined(__clang__) && (defined(__aarch64__) || defined(__arm__)) /* whose __builtin_dwarf_cfa() is the frame pointer */
    return aco__defer(fn, arg, (char *)__builtin_frame_address(0) + 2 * sizeof(void *));
#else
    return aco__defer(fn, arg, __builtin_dwarf_cfa());
#endif
#else
    return aco__defer(fn, arg, ACO__FRAME);
#endif
}
#endif

enum { ACO__PREFETCH_LINES = 5, ACO__CACHE_LINE = 64 };

ACO__FAST void aco_prefetch(const aco_t *co)
{
    for (int i = 0; i < ACO__PREFETCH_LINES; i++)
        __builtin_prefetch((const void *)((uintptr_t)co + (uintptr_t)i * ACO__CACHE_LINE), 1);
}

ACO__FAST void aco_prefetch_stack(const aco_t *co)
{
    uintptr_t p = (uintptr_t)co->aco__self.sp;
    size_t sz = 3 * ACO__CACHE_LINE;
    if (!(co->aco__state & ACO__PRIVATE)) {
        size_t most = (ACO__PREFETCH_LINES + 16) * ACO__CACHE_LINE;
        p = (uintptr_t)co->save_stack.ptr;
        sz = co->save_stack.valid_sz < most ? co->save_stack.valid_sz : most;
    }
    for (uintptr_t end = p + sz; p < end; p += ACO__CACHE_LINE)
        __builtin_prefetch((const void *)p, 1);
}

ACO__FAST int aco_is_in_main_co(void)
{
    return aco__running() == NULL;
}

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
        aco__nothing_runs("aco_get_arg");
    return co->arg;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
