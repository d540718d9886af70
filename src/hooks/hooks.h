/* What must be done at every switch of some coroutines: those with ACO_OWN_EXCEPTIONS, those that are measured, and all of them
 * under a sanitizer or in a process that is traced. These are instrumented: they have ACO__INSTRUMENTED, so that every resume of
 * them takes the slow path. A yield does nothing more: the resumer does both sides' part, before it leaves and after it has come
 * back. In a process without such tools nothing is asked at a switch. */
#ifndef ACO_HOOKS_H
#define ACO_HOOKS_H

#include "stack/stack.h"

/* What belongs to the resumer while an instrumented coroutine runs. */
typedef struct aco__resumer_state {
    void *exceptions[3];
    void *fiber, *fake_stack;
    const void *stack_bottom;
    size_t stack_size;
#ifdef ACO__SHADOW_STACKS
    uintptr_t shadow; /* its token */
#endif
} aco__resumer_state_t;

/* ---- instrument.c: the coroutine and scheduler layers call these, in this order of a coroutine's life ---- */
/* `co` is made: gives it what it needs, and ACO__INSTRUMENTED if it needs anything. 0, or -1 and errno. */
ACO__HIDDEN int aco__instrument_new(aco_t *co, int own_exceptions);
/* It is about to be made as new. */
ACO__HIDDEN ACO__COLD void aco__frames_restarted(aco_t *co);
static inline void aco__instrument_restarted(aco_t *co)
{
    if (aco_unlikely(aco__upcalls.notes_frames))
        aco__frames_restarted(co);
}
/* The calling resumer leaves for it, and has come back. */
ACO__HIDDEN void aco__instrument_enter(aco_t *co, aco__resumer_state_t *resumer_state);
ACO__HIDDEN void aco__instrument_leave(aco_t *co, aco__resumer_state_t *resumer_state);
ACO__HIDDEN void aco__instrument_transfer(aco_t *from, aco_t *to);
/* Takes ACO__INSTRUMENTED off again if there is no more need for it. */
ACO__HIDDEN void aco__instrument_no_more(aco_t *co);

/* ---- exceptions.c: the C++ run time's record of the exceptions that the thread is handling ---- */
/* It is the thread's and not the coroutine's, unless the coroutine has ACO_OWN_EXCEPTIONS: it is put aside while the coroutine
 * is unwound. */
typedef struct aco__exceptions {
    void *words[3];
} aco__exceptions_t;
ACO__HIDDEN int aco__has_own_exceptions(const aco_t *co);
ACO__HIDDEN void aco__exceptions_aside(const aco_t *co, aco__exceptions_t *kept);
ACO__HIDDEN void aco__exceptions_back(const aco_t *co, const aco__exceptions_t *kept);
/* Finds the run time again, for a coroutine that is to have its own. */
ACO__HIDDEN void aco__exceptions_find(void);
/* Swaps the thread's record for `in`. */
ACO__HIDDEN void aco__exceptions_swap(void *out[3], void *const in[3]);
ACO__HIDDEN extern void *const aco__no_exceptions[3];

/* ---- sanitizers.c ---- */
/* The frames of the running coroutine are about to be unwound. */
ACO__HIDDEN void aco__sanitize_unwind(void);
/* The frames from `sp` up to `end` mean nothing any more. */
ACO__HIDDEN void aco__sanitize_frames_freed(const void *sp, const void *end);
/* No call passed the arguments of the function that is entered next. */
ACO__HIDDEN void aco__sanitize_arguments(void);
/* The thread caches the stack of a coroutine that was destroyed while it was suspended. */
ACO__HIDDEN void aco__sanitize_cached(const aco_share_stack_t *stack);
/* A coroutine has this name from now on. */
ACO__HIDDEN void aco__sanitize_named(const aco__cold_t *cold);
/* For instrument.c: Valgrind must know of each copy of its frames. */
ACO__HIDDEN int aco__sanitize_copies(const aco_t *co);
/* A sanitizer that needs fibers or stacks gives the coroutine its own. */
ACO__HIDDEN void aco__sanitize_new(aco__cold_t *cold);
ACO__HIDDEN void aco__sanitize_destroyed(aco_t *co, aco__cold_t *cold);
ACO__HIDDEN void aco__sanitize_enter(const aco_t *co, const aco__cold_t *cold, aco__resumer_state_t *resumer_state);
ACO__HIDDEN void aco__sanitize_leave(aco__cold_t *cold, int for_good, const aco__resumer_state_t *resumer_state);
ACO__HIDDEN void aco__sanitize_transfer_from(const aco_t *to, const aco__cold_t *next, aco__cold_t *cold);
ACO__HIDDEN void aco__sanitize_transfer_to(const aco__cold_t *next);

/* ---- profile.c: how deep stacks go ---- */
/* Begins to measure a new coroutine of a thread that measures, by its entry function. */
ACO__HIDDEN void aco__usage_begin(aco_t *co, aco_function_t entry);
/* It was left by a switch, or is about to, with its stack pointer at `sp`; it has ended, or is destroyed. For one whose cold data
 * has `usage`. */
ACO__HIDDEN void aco__usage_left(const aco_t *co, aco__cold_t *cold, const void *sp);
ACO__HIDDEN void aco__usage_end(const aco_t *co, aco__cold_t *cold);
/* aco_stack_trim() for aco__blocks_some(): of the tasks of thread `self`, which runs none. */
ACO__HIDDEN int aco__task_trim(aco_t *co, void *self);

/* ---- shadow_stack.c ---- */
/* The calling thread's return addresses are compared with those on a shadow stack. What does not switch the shadow stack too must
 * fail: after the first switch the next return would kill the process. */
ACO__HIDDEN int aco__has_shadow_stack(void);
/* aco__fail() for a thread with a shadow stack; 0 where there is none. */
ACO__HIDDEN int aco__fail_shadow_stack(int fatal, const char *call);

#endif
