/* Work at every switch of some coroutines: those with ACO_OWN_EXCEPTIONS, those that are measured, and all of them
 * under a sanitizer or in a traced process. These coroutines are instrumented: they have the flag ACO__INSTRUMENTED,
 * and every resume of them takes the slow path. A yield does nothing more than usual. The resumer does the work of both
 * sides: its part before it leaves, the coroutine's part after the switch back. Other coroutines pay nothing at a
 * switch. */
#ifndef ACO_TOOLS_H
#define ACO_TOOLS_H

#include "stack/stack.h"

/* The resumer's state while an instrumented coroutine runs. */
typedef struct aco__resumer_state {
    aco__exceptions_t exceptions;
    int own_exceptions; /* `exceptions` is valid: the coroutine was entered with exceptions of its own */
    void *fiber, *fake_stack;
    const void *stack_bottom;
    size_t stack_size;
#ifdef ACO__SHADOW_STACKS
    uintptr_t shadow; /* the shadow stack's token */
#endif
} aco__resumer_state_t;

#ifndef ACO_CONFIG_LIBACO_ONLY
/* ---- instrument.c: called by the coroutine and scheduler layers, in this order in a coroutine's life ---- */
/* Prepares a new coroutine, and gives it ACO__INSTRUMENTED if it needs that. 0, or -1 and errno. */
ACO__HIDDEN int aco__instrument_new(aco_t *co, int own_exceptions);
/* `co` is about to be restarted. */
ACO__HIDDEN ACO__COLD void aco__frames_restarted(aco_t *co);
static inline void aco__instrument_restarted(aco_t *co)
{
    if (aco_unlikely(aco__upcalls.notes_frames))
        aco__frames_restarted(co);
}
/* The caller is about to resume `co`; the caller has just got control back from `co`. */
ACO__HIDDEN void aco__instrument_enter(aco_t *co, aco__resumer_state_t *resumer_state);
ACO__HIDDEN void aco__instrument_leave(aco_t *co, aco__resumer_state_t *resumer_state);
ACO__HIDDEN void aco__instrument_transfer(aco_t *from, aco_t *to);
/* Removes ACO__INSTRUMENTED if nothing needs it any more. */
ACO__HIDDEN void aco__instrument_no_more(aco_t *co);

/* ---- exceptions.c: the C++ run time's record of the exceptions that the thread is handling ---- */
ACO__HIDDEN int aco__has_own_exceptions(const aco_t *co);
/* Looks for the C++ run time again, because a coroutine with ACO_OWN_EXCEPTIONS needs it. */
ACO__HIDDEN void aco__exceptions_find(void);
/* Stores the thread's record in `kept` and empties it, while frames without exceptions of their own are unwound. */
ACO__HIDDEN void aco__exceptions_aside(aco__exceptions_t *kept);
/* Whether a catch block is handling an exception. */
ACO__HIDDEN int aco__exceptions_handled(void);
/* Leaves all catch blocks: those of the thread's record, and then those of `hidden`. */
ACO__HIDDEN void aco__exceptions_end(const aco__exceptions_t *hidden);

/* ---- sanitizers.c ---- */
/* The frames of the running coroutine are about to be unwound. */
ACO__HIDDEN void aco__sanitize_unwind(void);
/* The frames from `sp` up to `end` are no longer in use. */
ACO__HIDDEN void aco__sanitize_frames_freed(const void *sp, const void *end);
/* A switch, not a call, is about to pass the arguments of the function that is entered next. */
ACO__HIDDEN void aco__sanitize_arguments(void);
/* A coroutine was destroyed while suspended, and its stack goes to the cache. */
ACO__HIDDEN void aco__sanitize_cached(const aco_share_stack_t *stack);
/* A coroutine got a new name. */
ACO__HIDDEN void aco__sanitize_named(const aco__cold_t *cold);
/* For instrument.c: whether Valgrind must be told about each copy of the frames of `co`. */
ACO__HIDDEN int aco__sanitize_copies(const aco_t *co);
/* These tell a sanitizer that tracks fibers or stacks about a new coroutine, a destroyed one, and each switch. */
ACO__HIDDEN void aco__sanitize_new(aco__cold_t *cold);
ACO__HIDDEN void aco__sanitize_destroyed(aco_t *co, aco__cold_t *cold);
ACO__HIDDEN void aco__sanitize_enter(const aco_t *co, const aco__cold_t *cold, aco__resumer_state_t *resumer_state);
ACO__HIDDEN void aco__sanitize_leave(aco__cold_t *cold, int for_good, const aco__resumer_state_t *resumer_state);
ACO__HIDDEN void aco__sanitize_transfer_from(const aco_t *to, const aco__cold_t *next, aco__cold_t *cold);
ACO__HIDDEN void aco__sanitize_transfer_to(const aco__cold_t *next);

/* ---- profile.c: the depth of stacks ---- */
/* Starts to measure a new coroutine in a thread that measures. Results are grouped by entry function. */
ACO__HIDDEN void aco__usage_begin(aco_t *co, aco_function_t entry);
/* For a coroutine with cold data and `usage`. aco__usage_left(): a switch left it or is about to, with its stack
 * pointer at `sp`. aco__usage_end(): it has ended or is being destroyed. */
ACO__HIDDEN void aco__usage_left(const aco_t *co, aco__cold_t *cold, const void *sp);
ACO__HIDDEN void aco__usage_end(const aco_t *co, aco__cold_t *cold);
/* In `aco__trim_mask`: the task has left inside an inner coroutine. If that is on `stack_memory` in a frame of
 * the task, the stack pointer is there, and other frames of the task are below. */
enum { ACO__TRIM_NEVER = 0x80 };
/* aco_stack_trim() of a task of the calling thread that waits on a private stack. */
ACO__HIDDEN void aco__task_trim(const aco_t *co);

/* ---- shadow_stack.c ---- */
/* aco__fail() if the thread has a shadow stack; else returns 0. */
ACO__HIDDEN int aco__fail_shadow_stack(int fatal, const char *call);
#else /* the program has none of these */

static inline int aco__instrument_new(const aco_t *co, int own_exceptions)
{
    (void)co, (void)own_exceptions;
    return 0;
}
static inline void aco__instrument_enter(const aco_t *co, const aco__resumer_state_t *resumer_state)
{
    (void)co, (void)resumer_state;
}
static inline void aco__instrument_leave(const aco_t *co, const aco__resumer_state_t *resumer_state)
{
    (void)co, (void)resumer_state;
}
static inline void aco__instrument_restarted(const aco_t *co)
{
    (void)co;
}
static inline int aco__fail_shadow_stack(int fatal, const char *call)
{
    return aco__has_shadow_stack() ? aco__fail(fatal, ENOTSUP, call, NULL, "the thread has a shadow stack") : 0;
}

#endif

#endif
