/* Acorn: stackful coroutines for C and C++, with an API of its own and libaco's.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Coroutines. A coroutine is a function with its own stack. It can suspend itself at any depth of calls and later goes
 * on there. aco_new() makes a coroutine. aco_send() resumes it. aco_yield_value() suspends it and returns to its
 * resumer. docs/guide.md has first programs. A suspended coroutine can be resumed by any other coroutine, and by the
 * root context: the thread itself, outside of all coroutines. libaco calls the root context the main coroutine. Its
 * calls need an object for it: a main coroutine object.
 *
 * Stacks. By default a coroutine has a private stack, and a switch copies nothing. Several coroutines can run on one
 * share stack instead. Then only one of them has its frames there. When another one is resumed, the library copies the
 * live bytes of the first to its save area.
 *
 * Threads. A coroutine runs on the thread that resumes it. Any thread may resume a coroutine with a private stack, but
 * only one thread at a time: hand it over with a lock or an atomic variable. A share stack and its coroutines belong to
 * the thread that first resumes a coroutine on it. While one thread runs a coroutine, other threads may only make the
 * calls for it that are marked "Any thread". If a thread ends inside a coroutine (pthread_exit(), pthread_cancel()),
 * the frames of that coroutine are unwound. The frames of its resumers are not. Afterwards that coroutine may only be
 * destroyed.
 *
 * Signals. The library is not async-signal-safe: a handler that interrupted a call of this library must not call it.
 *
 * Memory. Save areas grow on demand. If there is no memory for that, a resume fails. A yield or an end aborts the
 * process if the frames of its resumer must come back from a save area and there is no memory for that.
 *
 * Errors. A call of our own API that fails changes nothing. It returns -1, NULL or ACO_ERROR, sets errno, and
 * aco_error_message() says why. Where ENOMEM is documented, a call may fail with EAGAIN instead: the kernel's limit
 * on mappings is reached, and the message names it. libaco's calls do what they promise, or print such a message on
 * stderr after "acorn: " and abort the process. So outside a coroutine aco_yield_value() returns ACO_ERROR and
 * aco_yield() aborts. A function that only coroutines call need not check for that. Every build checks:
 *   - that the coroutine is not NULL (except in aco_destroy()), has not ended, is not running, is not resuming another
 *     one, and is no main coroutine object;
 *   - that a coroutine is running at a yield, an exit and aco_get_arg(), and that none destroys itself;
 *   - that a coroutine is not used after its destruction, as long as its memory is neither used again nor returned to
 *     the system;
 *   - that no coroutine on a share stack is started but not ended when the stack is destroyed;
 *   - that a share stack has not overflowed, when its bytes are copied, when a coroutine on it ends and when it is
 *     destroyed;
 *   - that the entry function of aco_create() does not return;
 *   - that the thread is the right one, when a coroutine on a share stack is first resumed and when its frames are
 *     copied.
 * A debug build also checks:
 *   - at every resume, that the thread is the right one;
 *   - at every yield, that the stack has not overflowed;
 *   - at both, that no unit with ACO_CONFIG_SHARE_FPU_MXCSR_ENV switches a coroutine with a floating-point environment
 *     of its own.
 * A release build does not notice that the wrong thread resumes a coroutine whose frames are on its share stack. No
 * build notices that two threads resume one coroutine at the same time. A unit is a debug build if it defines ACO_DEBUG
 * to 1. A unit that defines neither ACO_DEBUG nor NDEBUG is one if it is compiled without optimisation. Debug and
 * release units can be linked together.
 *
 * Options: macros to define before this header is included.
 *   ACO_CONFIG_SHARE_FPU_MXCSR_ENV   Coroutines of aco_create() share the floating-point environment of their resumer,
 *                                    as coroutines of aco_new() do. Switches are faster. Right if no coroutine changes
 *                                    rounding, precision, exception masks or flush-to-zero. Define it for all units of
 *                                    a program or for none
 *   ACO_CONFIG_UCONTEXT              Switch by the C library's <ucontext.h>, for architectures without a file in
 *                                    aco/arch/. The library must be built with it too. Slow, and frames become large
 *   ACO_CONFIG_NO_CFI                No unwind directives in the inline assembly (docs/debugging.md)
 *   ACO_CONFIG_LIBACO_ONLY           Declare libaco's names only: a program may then use all others itself. Compile the
 *                                    amalgamated aco.c with it too: aco.c is then small, defines no other names either,
 *                                    and exports the inline calls only with ACO_CONFIG_NO_INLINE. (With a sanitizer
 *                                    aco.c stays whole, because sanitizers need the rest)
 *   ACO_CONFIG_NO_INLINE             Call exported functions instead of inline code: the header then has no assembly.
 *                                    These functions check what a release build checks. They serve every coroutine,
 *                                    with a floating-point environment of its own or without */
#ifndef ACO_H
#define ACO_H

#include "aco/detail/config.h" /* first: it stops compilers that it cannot serve */

/* More than this header needs: programs written for libaco rely on the headers that libaco's aco.h includes. */
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

#include "aco/detail/coroutine.h"

/* The level of libaco's API that this header provides. */
#define ACO_VERSION_MAJOR 1
#define ACO_VERSION_MINOR 2
#define ACO_VERSION_PATCH 4

/* This library's own version. */
#define ACORN_VERSION_MAJOR 0
#define ACORN_VERSION_MINOR 2
#define ACORN_VERSION_PATCH 0
#define ACORN_VERSION_STRING "0.2.0"

ACO__BEGIN_C

typedef struct aco_s aco_t;                         /* a coroutine */
typedef struct aco_share_stack_s aco_share_stack_t; /* a stack */
#ifndef ACO__LIBACO_NAMES
typedef struct aco_pool_s aco_pool_t;               /* a pool of private stacks: aco/pool.h */

/* ---- Life: new, restart, destroy --------------------------------------------------------------------------------- */

/* An entry function for aco_new(). Its return value is the coroutine's result. */
typedef void *(*aco_function_t)(void *arg);

/* How to make a coroutine. Initialise it with {0} and set what you need. 0 in a field stands for the default; NULL for
 * the whole structure stands for all defaults. Later versions turn reserved fields into options. */
typedef struct aco_options_s {
    size_t stack_size;        /* bytes of its private stack, at least 4 KiB. Rounded up: to a power of two up to 8 MiB;
                                 above that, and outside of pools (aco/pool.h), to pages or less. 0: 256 KiB */
    aco_share_stack_t *stack; /* run on this share stack instead of a private one */
    size_t save_size;         /* with `stack`: bytes to reserve for its save area. 0: what the first save needs */
    const char *name;         /* for aco_name(). Copied, at most ACO_NAME_SIZE - 1 bytes */
    unsigned flags;           /* ACO_OWN_FP, …, or'ed */
    unsigned aco__reserved0;  /* reserved fields are 0 */
    aco_pool_t *pool;         /* where its private stack comes from (aco/pool.h). NULL: the process's default pool */
    void *stack_memory;       /* the memory of its private stack: `stack_size` bytes that the caller owns, at least
                                 12 KiB. The library uses up to 4224 of them itself. No guard page: an overflow is
                                 noticed in the same way as under ACO_NO_GUARD. The caller frees a coroutine's memory
                                 after the coroutine, a task's after joining the task or ending its group.
                                 NULL: memory of `pool` */
    void *aco__reserved[2];
} aco_options_t;

enum {
    ACO_OWN_FP = 1,         /* keep a floating-point environment (rounding, precision, exception masks, flush-to-zero)
                               of its own. Its switches are slower. Units compiled with
                               ACO_CONFIG_SHARE_FPU_MXCSR_ENV cannot ask for it (EINVAL) */
    ACO_SHARED_FP = 2,      /* share the resumer's environment: the default */
    ACO_OWN_EXCEPTIONS = 4, /* C++: keep the exceptions that the coroutine handles apart from the thread's. It can then
                               be suspended inside a catch block while others are inside theirs. The default in
                               aco.hpp */
    ACO_NO_GUARD = 8,       /* no guard page below its private stack */
    ACO_DETACHED = 16,      /* for aco_spawn() only (aco/scheduler.h): the task is not joined */
    ACO_SHARED_EXCEPTIONS = 32 /* C++: the exceptions that the coroutine handles are the thread's. It must not be
                               suspended inside a catch block while others enter or leave theirs. The default of
                               aco_new() */
};
enum { ACO_NAME_SIZE = 32 }; /* bytes of a name, with the 0 at its end */

/* What aco_send() and the other calls that pass values return on error. A coroutine must not yield, send or return
 * it. */
#define ACO_ERROR (ACO__POINTER(void, &aco_error_mark))
extern ACO_API char aco_error_mark;

/* Makes a coroutine that runs fn(arg) when it is first resumed. `options` may be NULL and is not kept. The caller owns
 * the coroutine and destroys it. The thread needs no preparation. Any thread. Returns the coroutine; on error NULL with
 * errno EINVAL (`fn` is NULL, an option is out of bounds), ENOMEM, EAGAIN (a limit of the kernel or of the pool is
 * reached; the message names it), ENOTSUP (the thread has a shadow stack that the library cannot switch:
 * docs/platforms.md). */
ACO__CALL aco_t *aco_new(aco_function_t fn, void *arg, const aco_options_t *options);

/* Restarts a coroutine made by aco_new(), with another function and argument. It must be done, or never resumed. It
 * keeps its stack, name and options, and loses its slot and its coroutine-local values. Returns 0; on error -1 with
 * errno EINVAL (NULL, or made by aco_create()), EBUSY (not done), ESRCH (destroyed), EPERM (a task that lives). */
ACO__CALL int aco_restart(aco_t *co, aco_function_t fn, void *arg);
#endif

/* Frees a coroutine: its control block, save area and private stack, but not a share stack. Also frees a main coroutine
 * object. Ignores NULL. Destroying a suspended coroutine releases nothing that its frames hold: no deferred call and no
 * destructor runs, and a debug build warns once on stderr. Where they must run, call aco_cancel() first. A coroutine
 * that destroys itself aborts the process. Any thread, while no other thread uses the coroutine; but only its own
 * thread may free a main coroutine object. */
ACO__CALL void aco_destroy(aco_t *co);

#ifndef ACO__LIBACO_NAMES
/* ---- Switching --------------------------------------------------------------------------------------------------- */

/* Resumes `co`: runs it until it yields, returns or exits. The caller is now its resumer. In `co`, the
 * aco_yield_value() that suspended it returns `value`. At the first resume there is no such call, so `value` is
 * ignored; a debug build warns if it is not NULL. Returns what the coroutine yielded, or its result: aco_state() and
 * co->is_end tell which. On error ACO_ERROR with errno EINVAL (NULL, a main coroutine object), ESRCH (done or
 * destroyed), EBUSY (running, or resuming another one), EPERM (it belongs to another thread), ENOMEM. */
ACO__CALL void *aco_send(aco_t *co, void *value);

/* Suspends the running coroutine; its resumer's aco_send() returns `value`. Returns when the coroutine is resumed: the
 * value of that aco_send(), or NULL if another call resumed it. On error ACO_ERROR with errno EPERM (no coroutine is
 * running). */
ACO__CALL void *aco_yield_value(void *value);

/* Suspends the running coroutine and runs `co` in its place: the caller's resumer becomes the resumer of `co`. If `co`
 * is the caller, returns at once. Returns 0 when the caller is resumed; on error -1 with the errno of aco_send(), and
 * EPERM also if no coroutine is running, if the running one is a task (aco/scheduler.h) or in its cleanup, or if `co`
 * has ACO_OWN_EXCEPTIONS and the caller does not. */
ACO__CALL int aco_yield_to(aco_t *co);

/* aco_yield_to() with a value: the call that suspended `co` returns `value`, as after aco_send(). Returns what
 * aco_yield_value() would return, or `value` itself if `co` is the caller; on error ACO_ERROR with the errno of
 * aco_yield_to(). */
ACO__CALL void *aco_transfer(aco_t *co, void *value);

/* Ends the running coroutine as aco_exit() does, and runs `co` in its place as aco_transfer() does. On success it does
 * not return. On error the caller goes on: returns -1 with the errno of aco_yield_to(), and EINVAL if `co` is the
 * caller. If the caller's own cleanup makes the transfer impossible, the process aborts. */
ACO_API int aco_exit_to(aco_t *co, void *value);

/* Calls fn(arg) on a stack of its own and returns its result: for deep recursion, and for foreign code that needs more
 * stack than the caller has. `options` says how to make the stack; it must not name a share stack. `fn` runs in a
 * coroutine of its own, with its own name, values and deferred calls. When `fn` yields, the caller yields the same
 * value, and the yield in `fn` returns what the caller then receives. If the caller is no coroutine, a yield in `fn`
 * fails. If the caller is a task, `fn` may wait. If the caller is cancelled, the coroutine of `fn` is cancelled first.
 * Returns the result of `fn`; on error ACO_ERROR with the errno of aco_new(), and EPERM (in a generator). */
ACO_API void *aco_call_on_stack(aco_function_t fn, void *arg, const aco_options_t *options);

/* Starts to load what a resume of `co` will touch: the control block, and up to 200 bytes of a save area right behind
 * it. For a loop that resumes many coroutines in an order of its own: call it about eight resumes ahead. It waits for
 * nothing and reads nothing, so `co` may be any address. */
ACO__CALL void aco_prefetch(const aco_t *co);

/* The second step after aco_prefetch(), about four resumes ahead. It reads the control block, which should have arrived
 * by now, and starts to load the innermost frame or the rest of the save area. It pays off if coroutines return to
 * values on a private stack, or if their save area is large or was made without a size; otherwise it only costs. `co`
 * must be a coroutine that was not destroyed. */
ACO__CALL void aco_prefetch_stack(const aco_t *co);

/* ---- State ------------------------------------------------------------------------------------------------------- */

typedef enum aco_state_e {
    ACO_STATE_READY,     /* never resumed */
    ACO_STATE_RUNNING,   /* on the calling thread. A coroutine that another thread runs looks suspended, or ready */
    ACO_STATE_RESUMING,  /* waits for a coroutine that it resumed */
    ACO_STATE_SUSPENDED, /* has yielded */
    ACO_STATE_DONE       /* has returned or exited, or was cancelled */
} aco_state_t;

/* Returns what `co`, which must not be NULL, is doing. A main coroutine object is running or resuming. */
ACO_API aco_state_t aco_state(const aco_t *co);

/* Returns the result of a coroutine that is done: what its entry function returned, or NULL after aco_exit() or
 * aco_cancel(). On error ACO_ERROR with errno EINVAL (NULL), EBUSY (not done), ESRCH (destroyed). */
ACO_API void *aco_result(const aco_t *co);

/* Returns 1 if the calling thread runs no coroutine, 0 if it runs one. */
ACO__CALL int aco_is_in_main_co(void);

/* Stores the bounds of the stack that `co` runs on: from *lo up to, not including, *hi. On a share stack the frames of
 * a suspended coroutine may be in its save area instead. Any thread. Returns 0; on error -1 with errno EINVAL (NULL, a
 * main coroutine object). */
ACO_API int aco_stack_bounds(const aco_t *co, void **lo, void **hi);

/* Returns the name of `co`, or "". The string lives as long as the coroutine. */
ACO_API const char *aco_name(const aco_t *co);

/* Gives `co` a name; keeps at most ACO_NAME_SIZE - 1 bytes. Returns 0; on error -1 with errno EINVAL (NULL, a main
 * coroutine object), ESRCH (destroyed), ENOMEM. */
ACO_API int aco_set_name(aco_t *co, const char *name);

/* Calls visit(co, arg) for every coroutine that the calling thread made and that was not destroyed, in no particular
 * order. Also visits coroutines of ended threads whose memory this thread took over. `visit` must not make, resume or
 * destroy coroutines. If it returns something other than 0, aco_each() stops and returns that; else aco_each() returns
 * 0; on error -1 with errno EINVAL (`visit` is NULL). */
ACO_API int aco_each(int (*visit)(aco_t *co, void *arg), void *arg);

/* ---- Cleanup: defer, cancel, exit -------------------------------------------------------------------------------- */

/* Calls fn(arg) when the running coroutine ends: by returning, by aco_exit() or by aco_cancel(). Deferred calls run on
 * the coroutine's stack, the last deferred one first. aco_cancel() makes the call when it unwinds the frame of the
 * function that deferred it. An inlined function counts as its caller; on i386, a call deferred from another language
 * may count as deferred by a function that the caller calls. `fn` must not yield, throw or end the coroutine. If it
 * defers a call, that call is next. Returns 0; on error -1 with errno EPERM (no coroutine is running), EINVAL,
 * ENOMEM. */
ACO__CALL int aco_defer(void (*fn)(void *), void *arg);

/* Removes the last deferred call, and makes it now if `call` is not 0. Use it before the function that deferred the
 * call returns. During cleanup it removes the call that is due next. Returns 0; on error -1 with errno EPERM (no
 * coroutine is running), ENOENT (none deferred). */
ACO_API int aco_defer_pop(int call);

/* Ends a coroutine. A suspended one is resumed to unwind its stack, from the innermost frame outward. For each frame,
 * first the calls deferred in it run, the last one first; then its C++ destructors, if the frame has unwind tables. In
 * C, a cleanup attribute counts as a destructor under -fexceptions (ACO_CLEANUP). Then the coroutine is done. The
 * unwinder needs about 8 KiB of free stack. A coroutine that was never resumed becomes done and runs nothing. One that
 * is done stays so. Cleanup may resume other coroutines; a yield in it aborts the process, and aco_yield_to() fails.
 * Returns 0; on error -1 with errno EINVAL (NULL, a main coroutine object), ESRCH (destroyed), EBUSY (running, or
 * resuming another one), EPERM (it belongs to another thread), ENOMEM. */
ACO_API int aco_cancel(aco_t *co);

/* __attribute__((cleanup(fn))), for cleanups that aco_cancel() must run. Without -fexceptions aco_cancel() would skip
 * them silently, so a unit without that option does not compile. */
#ifdef __EXCEPTIONS
#define ACO_CLEANUP(fn) __attribute__((cleanup(fn)))
#else
#define ACO_CLEANUP(fn) aco_cleanup_needs_fexceptions
#endif
#endif

/* Ends the running coroutine: makes the deferred calls, sets is_end, and returns to its resumer. Unwinds nothing: no
 * destructor of a frame runs. */
ACO_API __attribute__((noreturn)) void aco_exit(void);

/* aco_exit() for a caller that knows the running coroutine. */
ACO_API __attribute__((noreturn)) void aco_exit1(aco_t *co);

#ifndef ACO__LIBACO_NAMES
/* ---- Coroutine-local storage ------------------------------------------------------------------------------------- */

/* The slot: one pointer for each coroutine besides `arg`, NULL at first. If `co` is NULL, it is the slot of the running
 * coroutine, or of the root context if none is running. aco_slot() returns the pointer. aco_set_slot() returns 0; on
 * error -1 with errno ESRCH (destroyed), ENOMEM. */
ACO_API void *aco_slot(const aco_t *co);
ACO_API int aco_set_slot(aco_t *co, void *p);

/* Keys: each names a value that every coroutine has for itself. At most ACO_LOCAL_KEYS exist at a time.
 * aco_local_key_create() makes one. When a coroutine ends, `destructor` (or NULL) is called with each value that is not
 * NULL: on the coroutine's stack, after the deferred calls, in no particular order. If destructors set values again,
 * this is repeated, up to four rounds in all. Values of the root context are destroyed when the thread ends. Destroying
 * a coroutine that has not ended calls no destructor. Any thread. Returns 0; on error -1 with errno EAGAIN (no key
 * left), EINVAL (`key` is NULL). */
typedef struct aco_local_key_s {
    uint32_t index, generation;
} aco_local_key_t;
enum { ACO_LOCAL_KEYS = 1024 };
ACO_API int aco_local_key_create(aco_local_key_t *key, void (*destructor)(void *));

/* Deletes a key. Calls no destructor: release the values first. Any thread. Returns 0; on error -1 with errno EINVAL
 * (not a key). */
ACO_API int aco_local_key_delete(aco_local_key_t key);

/* Returns the value of the running coroutine, or of the root context if none is running. NULL: no value was set, or
 * `key` is not a key. */
ACO_API void *aco_get_local(aco_local_key_t key);
/* Sets that value. Returns 0; on error -1 with errno EINVAL (not a key), ENOMEM. */
ACO_API int aco_set_local(aco_local_key_t key, void *value);

/* Declares a coroutine-local variable, at file scope:
 *
 *   ACO_LOCAL(int, counter);
 *
 * *counter() is then the running coroutine's own counter, or the root context's, 0 at first. The name is local to the
 * unit: in a header it declares another variable in each unit. To share one variable between units, write a function:
 * one unit has the variable and `int *shared_counter(void) { return counter(); }`, and a header has the prototype of
 * that function. The memory is freed with the coroutine and aligned as malloc() aligns. Do not keep the address in
 * another coroutine. Without memory the process aborts. */
#define ACO_LOCAL(type, name)                                                                                          \
    static __attribute__((unused)) type *name(void)                                                                    \
    {                                                                                                                  \
        static aco__local_t local = {sizeof(type), 0, 0, 0};                                                           \
        return ACO__POINTER(type, aco__local(&local, #name));                                                          \
    }                                                                                                                  \
    struct aco_s

/* ---- Diagnostics and memory -------------------------------------------------------------------------------------- */

/* Returns why the last failed call of this thread failed: "<call>: [coroutine <address>: ]<reason>", or "" if none has
 * failed. The string lives until the next failure. */
ACO_API const char *aco_error_message(void);

/* Explains a stack overflow into a guard page before it ends the process: a line on stderr names the coroutine, the
 * bounds of its stack, and how to make it larger. A large frame can step over the guard page, so a fault in the 1 MiB
 * below it is explained too. Then the signal (SIGSEGV, SIGBUS) does what it did before.
 *
 * By default the library does this by itself. It installs its handler when the process makes its first coroutine, and
 * gives each thread that makes coroutines an alternate signal stack (64 KiB of address space) if it has none. It leaves
 * a signal alone that the program ignores or handles without SA_ONSTACK. It installs the handler only once: a handler
 * that the program installs later takes its place, and may call it. The environment variable ACO_EXPLAIN_OVERFLOW
 * changes this. 0: never install it. 1: install it before whatever handler there is.
 *
 * This call installs it in any case, before the handler that is there, and gives the calling thread its signal stack.
 * Between the library's own installation and this call, do not install a handler that calls the one it replaced.
 * Returns 0; on error -1 with errno ENOMEM, EAGAIN, ENOSYS (on Windows, where a fault is described on the stack where
 * it happened, and that has no room left). */
ACO_API int aco_explain_overflow(void);

/* Where the library gets its memory; by default from mmap and malloc. Each function gets `ctx`. `map` returns `sz`
 * zeroed bytes, aligned to `align` (a power of two, at least the page size), in which mprotect() can set guard pages.
 * `unmap` gives back a whole mapping. `allocate` returns memory as malloc() does; `release` gives it back. NULL from
 * `map` or `allocate` means "no memory". Any thread may call these functions, and they must not call this library. Call
 * aco_set_allocator() before the library's first use. Any thread. Returns 0; on error -1 with errno EINVAL (a function
 * is missing), EBUSY (too late). */
typedef struct aco_allocator_s {
    void *(*map)(size_t sz, size_t align, void *ctx);
    void (*unmap)(void *p, size_t sz, void *ctx);
    void *(*allocate)(size_t sz, void *ctx);
    void (*release)(void *p, size_t sz, void *ctx);
    void *ctx;
} aco_allocator_t;
ACO_API int aco_set_allocator(const aco_allocator_t *allocator);

/* malloc() that aborts the process where malloc() would return NULL. The caller frees the memory with free(). Any
 * thread. */
ACO__CALL void *aco_mem_new(size_t sz);
#endif

/* Assertions, under NDEBUG too. One that fails prints a line on stderr, then calls abort(). */
#define aco_assert(EX) ((aco_likely(EX)) ? ((void)0) : aco__assert_failed(#EX, __FILE__, __LINE__, __func__))
#define aco_assertptr(ptr)                                                                                             \
    ((aco_likely((ptr) != NULL)) ? ((void)0) : aco__assert_failed(#ptr " != NULL", __FILE__, __LINE__, __func__))
#define aco_assertalloc_bool(b) ((aco_likely(b)) ? ((void)0) : aco__alloc_failed(__FILE__, __LINE__, __func__))
#define aco_assertalloc_ptr(ptr)                                                                                       \
    ((aco_likely((ptr) != NULL)) ? ((void)0) : aco__alloc_failed(__FILE__, __LINE__, __func__))

/* ---- libaco's calls: share stacks, coroutines on them ------------------------------------------------------------ */

/* An entry function for aco_create(). It must end by aco_exit(), and not return. */
typedef void (*aco_cofuncp_t)(void);

/* Prepares the calling thread for libaco's other calls. New coroutines start with the floating-point control words that
 * the thread has now. If a coroutine returns from its entry function, `last_word` is called on its stack, where
 * aco_get_co() returns the coroutine; then the process aborts. NULL stands for a last word that prints this as a
 * line. */
ACO_API void aco_thread_init(aco_cofuncp_t last_word);

/* Makes a share stack of at least `sz` bytes; 0 means 2 MiB, and the least is 4096. With a guard page the size is
 * rounded up to pages, without one to 64 bytes. The stack's field `sz` is that size or at most a page more, and with a
 * guard page it is whole pages. The guard page below the stack turns an overflow into SIGSEGV. Without one, an overflow
 * is detected when the stack's bytes are next copied. The caller owns the stack. Aborts if the system has no memory or
 * no mapping left. Any thread. */
ACO_API aco_share_stack_t *aco_share_stack_new2(size_t sz, char guard_page_enabled);

/* aco_share_stack_new2(sz, 1). */
ACO_API aco_share_stack_t *aco_share_stack_new(size_t sz);

/* Frees the stack. Every coroutine that was started on it must have ended or been destroyed, else the process aborts.
 * Any thread, while no other thread uses the stack. */
ACO_API void aco_share_stack_destroy(aco_share_stack_t *sstk);

/* Makes a coroutine on a share stack. It keeps a floating-point environment of its own unless
 * ACO_CONFIG_SHARE_FPU_MXCSR_ENV is defined. If all arguments are NULL or 0, makes the thread's main coroutine object
 * instead, which the other coroutines need.
 *   main_co         the main coroutine object of the thread that will run it
 *   share_stack     the stack that it will run on. It must outlive the coroutine's last use, except its destruction
 *   save_stack_sz   bytes to reserve for its save area, right behind the control block; 0: the first save takes what it
 *                   needs. The area grows on demand. If coroutines are resumed in random order, the best size is the
 *                   save_stack.max_cpsz of similar coroutines
 *   fp, arg         its entry function, and what aco_get_arg() returns there; `arg` may be NULL
 * The caller owns the coroutine and destroys it. Aborts without memory. Any thread. */
ACO__CALL aco_t *aco_create(aco_t *main_co, aco_share_stack_t *share_stack, size_t save_stack_sz, aco_cofuncp_t fp,
                            void *arg);

/* Runs `co` until it yields or exits. `co` must not have ended. The caller is the root context of co->main_co's thread,
 * or a coroutine on that thread. */
ACO__CALL void aco_resume(aco_t *co);

/* Suspends the running coroutine; its resumer's aco_resume() returns. This call returns when the coroutine is
 * resumed. */
ACO__CALL void aco_yield(void);

/* aco_yield() for a caller that knows the running coroutine: `co` must be it. */
ACO__CALL void aco_yield1(aco_t *co);

/* Both return the running coroutine. If none is running: the thread's newest main coroutine object, or NULL if there is
 * none. */
ACO__CALL aco_t *aco_get_co(void);
ACO__CALL aco_t *aco_co(void);

/* Returns aco_get_co()->arg. A coroutine must be running. */
ACO__CALL void *aco_get_arg(void);

/* Returns 1 if `co` is a main coroutine object, else 0. */
ACO__CALL int aco_is_main_co(const aco_t *co);

#ifndef ACO__LIBACO_NAMES
/* Restarts a coroutine made by aco_create(), with another entry function and argument. It must have ended, or never
 * been resumed. It keeps its stack, save area and statistics, and loses its slot and values. */
ACO_API void aco_reset(aco_t *co, aco_cofuncp_t fp, void *arg);
#endif

/* ---- Fields that programs may read ------------------------------------------------------------------------------- */

/* A save area: where a coroutine's live bytes are while another coroutine has its frames on the share stack. */
typedef struct aco_save_stack_s {
    void *ptr;         /* the save area */
    size_t sz;         /* its size in bytes; 0 before the first save if no size was given */
    size_t valid_sz;   /* bytes saved in it now; 0 while the coroutine's frames are on the stack */
    size_t max_cpsz;   /* the most bytes ever copied at one switch: the size to pass to aco_create() */
    size_t ct_save;    /* how often bytes were saved */
    size_t ct_restore; /* how often bytes were restored */
} aco_save_stack_t;

/* A stack, share or private: its record, which stands at the top of the stack. */
struct aco_share_stack_s {
    void *ptr;               /* its lowest byte */
    size_t sz;               /* its size in bytes: frames are from ptr up to ptr + sz. In a share stack with a guard
                                page this record is there too, at the end */
    aco_t *owner;            /* the coroutine that has its frames on it, or NULL */
    char guard_page_enabled; /* 1: an overflow is a SIGSEGV */
    /* internal */
    char aco__private;               /* it belongs to one coroutine and is freed with it */
    char aco__cacheable;             /* it has the default pool and size: a thread may cache it */
    unsigned char aco__trim_mask;    /* of the numbers of looks at tasks' stacks: where it has 1, those that trim it
                                        have 0. Its highest bit: it is not trimmed */
    void *aco__top;                  /* the end of a coroutine's live bytes: the entry function's return address */
    struct aco__thread *aco__thread; /* the thread that runs coroutines on it; NULL: none is started */
    union {
        const void *heap; /* of a private stack: the heap of its coroutine's block, whose thread may cache both;
                             the address of this record: no thread may */
        struct aco_share_stack_s *instead_of; /* ASan: the share stack that it replaces for one coroutine, or NULL */
    } aco__home;
    /* For unwinders, never NULL: the thread on which the stack's coroutine began; and, while that coroutine waits for
     * one that it resumed, the context of its own resumer. */
    struct aco__thread *const *aco__owner_thread;
    const struct aco__context *aco__resumer_context;
    union {
        aco_t *destroyed; /* of a share stack: coroutines that other threads destroyed, for this thread to free */
        aco_t *joiner;    /* of a task's stack: the task that joins it, or NULL */
    } aco__link;
    union {
        size_t started;    /* of a share stack: coroutines started on it that have neither ended nor been destroyed */
        size_t task_flags; /* of a task's stack: TASK_DETACHED, … */
    } aco__use;
    void *aco__map;                  /* the mapping: address and size */
    size_t aco__map_sz;
    struct aco__region *aco__region; /* the pool's region that it is part of, or NULL */
    unsigned aco__registered;        /* Valgrind's number for it, or 0 */
    unsigned aco__colour;            /* bytes of `sz` beyond what the stack was made with */
    void *aco__task_entry;           /* of a task's stack: the task's entry function */
};

/* A coroutine: its control block. Programs may write `arg`; in a coroutine of aco.hpp they must not. */
struct aco_s {
    aco__context_t aco__self;       /* internal: where it goes on. The switch uses the fields from here to aco__state */
    uint32_t aco__fp_control;
    uint16_t aco__fp_control2;
    unsigned char aco__state;       /* ACO__SUSPENDED, …: aco/detail/coroutine.h */
    char is_end;                    /* 1 after aco_exit(), return or cancellation */
    aco_share_stack_t *share_stack; /* the stack it runs on; NULL in a main coroutine object */
    void *arg;                      /* the argument of aco_create() or aco_new() */
    aco_cofuncp_t fp;               /* its entry function; NULL in a main coroutine object */
    /* A coroutine of aco_new() on a private stack ends here. */
    aco_t *main_co;                 /* its thread's main coroutine object; NULL in such an object and after aco_new() */
    aco_save_stack_t save_stack;
};

ACO__END_C

/* ---- Internal from here on --------------------------------------------------------------------------------------- */

#ifndef ACO__LIBACO_NAMES
#include "aco/calling_convention.h"
#endif
#include "aco/detail/library.h"
#ifndef ACO_CONFIG_NO_INLINE
#include "aco/detail/aco_inline.h"
#endif
#ifdef ACO__LIBACO_NAMES
#undef ACO_API
#endif

#endif
