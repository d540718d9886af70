/* What must be done at every switch of some coroutines: those with ACO_OWN_EXCEPTIONS, and all of them under a sanitizer or in a
 * process that is traced. They bear ACO__INSTRUMENTED, so that every resume of them takes the slow path; nothing is asked of a yield,
 * since the resumer does both sides' part, before it leaves and after it has come back. */
#ifndef ACO_TRACK_H
#define ACO_TRACK_H

#include "base/internal.h"

/* What stands outside of a coroutine while it runs. */
typedef struct aco__resumer_state {
    void *exceptions[3];
    void *fiber, *fake_stack;
    const void *stack_bottom;
    size_t stack_size;
#ifdef ACO__SHADOW_STACKS
    uintptr_t shadow; /* its token */
#endif
} aco__resumer_state_t;

/* The C++ run time's record of the exceptions that the thread is handling are not the coroutine's, unless it keeps its own:
 * they are put aside while it is unwound. */
typedef struct aco__exceptions {
    void *words[3];
} aco__exceptions_t;
ACO__HIDDEN int aco__has_own_exceptions(const aco_t *co);
ACO__HIDDEN void aco__exceptions_aside(const aco_t *co, aco__exceptions_t *kept);
ACO__HIDDEN void aco__exceptions_back(const aco_t *co, const aco__exceptions_t *kept);

/* Whether a sanitizer is in this process that must know of each coroutine, or it is traced. */
ACO__HIDDEN int aco__tools_present(void);
/* Whether it is AddressSanitizer, whose notes about a stack's bytes cannot be copied with them. */
ACO__HIDDEN int aco__share_stacks_are_private(void);
/* Memory of the library's that has pointers in it, for leak checkers, which know the heap and the threads' stacks. */
ACO__HIDDEN void aco__instrument_region_new(const void *p, size_t sz);
ACO__HIDDEN void aco__instrument_region_freed(const void *p, size_t sz);
/* A stack is laid out; it is given up, and what is on it means nothing any more. */
ACO__HIDDEN void aco__instrument_stack_new(aco_share_stack_t *stack);
ACO__HIDDEN void aco__instrument_stack_freed(aco_share_stack_t *stack);
/* Its coroutine is destroyed while it is suspended; a thread keeps the stack. */
ACO__HIDDEN void aco__instrument_cached(const aco_share_stack_t *stack);
/* Valgrind's number for a stack; 0 without Valgrind. */
ACO__HIDDEN unsigned aco__register_stack(const void *lowest, const void *end);
ACO__HIDDEN void aco__deregister_stack(unsigned number);
/* A coroutine has this name from now on. */
ACO__HIDDEN void aco__instrument_named(const aco__cold_t *cold);
/* `co` is made: gives it what it needs, and ACO__INSTRUMENTED if it needs anything. 0, or -1 and errno. */
ACO__HIDDEN int aco__instrument_new(aco_t *co, int own_exceptions);
/* Takes ACO__INSTRUMENTED off again if there is no more need for it. */
ACO__HIDDEN void aco__instrument_no_more(aco_t *co);
/* The frames of the running coroutine are about to be unwound. */
ACO__HIDDEN void aco__instrument_unwind(void);
/* The frames from `sp` up to `end` mean nothing any more. */
ACO__HIDDEN void aco__instrument_frames_freed(const void *sp, const void *end);
/* What the function has been given that is entered next was not passed by a call. */
ACO__HIDDEN void aco__instrument_arguments(void);
/* Those of `co` are about to be copied to its share stack. */
ACO__HIDDEN void aco__instrument_frames_restored(const aco_t *co);
/* What was saved of them means nothing any more. */
ACO__HIDDEN void aco__instrument_area_freed(const aco_t *co);
/* `co` is about to be made as new. */
ACO__HIDDEN void aco__instrument_restarted(aco_t *co);
ACO__HIDDEN void aco__instrument_destroyed(aco_t *co);
ACO__HIDDEN void aco__instrument_enter(aco_t *co, aco__resumer_state_t *outside);
ACO__HIDDEN void aco__instrument_leave(aco_t *co, aco__resumer_state_t *outside);
ACO__HIDDEN void aco__instrument_transfer(aco_t *from, aco_t *to);

/* A function that a sanitizer must not instrument: it switches, or tells the sanitizer of a switch. MemorySanitizer must know of
 * it all the same, or what it calls would not know which arguments are initialised; its own, and what it reads, pass for that. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define ACO__NO_SANITIZE __attribute__((no_sanitize("memory")))
#define ACO__FOREIGN_ENTRY ACO__NO_SANITIZE
#endif
#endif
#if defined(ACO__NO_SANITIZE)
#elif defined(__clang__)
#define ACO__NO_SANITIZE __attribute__((disable_sanitizer_instrumentation, no_sanitize("address", "thread")))
#else
#define ACO__NO_SANITIZE __attribute__((no_sanitize("address"), no_sanitize("thread")))
#endif
/* One that has parameters and is entered by a switch or called by code that is not instrumented. */
#ifndef ACO__FOREIGN_ENTRY
#define ACO__FOREIGN_ENTRY
#endif

#endif
