/* Calls from base and stack to the layers above them: functions that those layers fill in before main() (ACO__AT_LOAD). NULL:
 * there is nobody to be called. None of them is on the fast path. */
#ifndef ACO_UPCALLS_H
#define ACO_UPCALLS_H

#include "os/platform.h"

struct aco__scratch;

typedef struct aco__upcalls {
    /* hooks/sanitizers.c. Leak checkers know the heap and the threads' stacks; these tell them of other memory that has
     * pointers in it. */
    void (*region_new)(const void *p, size_t sz);
    void (*region_freed)(const void *p, size_t sz);
    /* Valgrind's number for a stack; 0 without Valgrind. */
    unsigned (*register_stack)(const void *lowest, const void *end);
    void (*deregister_stack)(unsigned number);
    /* A stack is laid out; it is about to be freed. */
    void (*stack_new)(aco_share_stack_t *stack);
    void (*stack_freed)(aco_share_stack_t *stack);
    /* The frames of `co` are about to be copied to its share stack; what its save area holds is no longer needed. */
    void (*frames_restored)(const aco_t *co);
    void (*area_freed)(const aco_t *co);
    /* AddressSanitizer is here, and its notes about a stack's bytes cannot be copied: each coroutine on a share stack gets a
     * private one. */
    int share_stacks_are_private;
    /* A sanitizer or a trace is here that must know of each coroutine. */
    int instruments_all;
    /* A sanitizer keeps notes about the bytes of frames. */
    int notes_frames;

    /* hooks/instrument.c: a coroutine is about to be freed. */
    void (*destroyed)(aco_t *co);

    /* hooks/trace.c: the process is about to die, from any context. */
    void (*process_dies)(void);

    /* coroutine/create.c: frees the coroutines that the thread caches. */
    void (*cache_free)(aco__thread_t *self);
    /* coroutine/entry.c: gives a new scratch stack its contexts and its return address. */
    void (*scratch_new)(struct aco__scratch *scratch, void *top);
    /* coroutine/locals.c: destroys the values of the thread's root context. */
    void (*root_values_destroy)(struct aco__scratch *scratch);

#ifdef ACO__SHADOW_STACKS
    /* src/entry/x86_64.inc: puts aco__returned on the new shadow stack with this token, and another token below it. */
    void (*shadow_begin)(uintptr_t token);
#endif
#ifdef _WIN32
    /* The library is unloaded: what the process has of pools and of measurements goes back. */
    void (*pools_end)(void);
    void (*usages_end)(void);
#endif
} aco__upcalls_t;

ACO__HIDDEN extern aco__upcalls_t aco__upcalls;

/* Calls it, if it is there, with these arguments in parentheses. */
#define ACO__UPCALL(name, arguments)                                                                                   \
    do {                                                                                                               \
        if (aco__upcalls.name)                                                                                         \
            aco__upcalls.name arguments;                                                                               \
    } while (0)

/* The part of a thread's scheduler that lower layers know; the scheduler sets it when it makes its record. */
struct aco__scheduler {
    void (*reap)(struct aco__scheduler *s);
    void (*thread_ends)(aco__thread_t *self);
    __attribute__((noreturn)) void (*end_task)(aco_t *co, void *result); /* the running task */
    aco_t *zombie;   /* a task that has ended; its stack was still needed to leave it */
    char is_running; /* aco_run() is */
};

/* Frees the zombie's block and stack. Not while a task ends. */
static inline void aco__reap(const aco__thread_t *self)
{
    if (aco_unlikely(self->scheduler != NULL) && self->scheduler->zombie)
        self->scheduler->reap(self->scheduler);
}

#endif
