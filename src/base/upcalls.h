/* Calls from base, stack, tools and coroutine to the layers above. Those layers fill in the functions before
 * main() (ACO__AT_LOAD). A function that is NULL is not called. None of them is on the fast path. */
#ifndef ACO_UPCALLS_H
#define ACO_UPCALLS_H

#include "base/invariants.h"

struct aco__scratch;

typedef struct aco__upcalls {
    /* tools/sanitizers.c. Leak checkers know the heap and the threads' stacks. These two tell them about other memory
     * that contains pointers. */
    void (*region_new)(const void *p, size_t sz);
    void (*region_freed)(const void *p, size_t sz);
    /* Registers a stack with Valgrind; returns its number, 0 without Valgrind. */
    unsigned (*register_stack)(const void *lowest, const void *end);
    void (*deregister_stack)(unsigned number);
    /* A stack has been laid out; a stack is about to be freed. */
    void (*stack_new)(aco_share_stack_t *stack);
    void (*stack_freed)(aco_share_stack_t *stack);
    /* The frames of `co` are about to be copied to its share stack; the contents of its save area are no longer
     * needed. */
    void (*frames_restored)(const aco_t *co);
    void (*area_freed)(const aco_t *co);
    /* scheduler/on_share_stack.c: the frames of a task on a share stack, or the bytes that they are saved in, have
     * been copied from `from` to `to`. */
    void (*task_moved)(aco_t *task, const void *from, size_t sz, void *to);
    /* scheduler/on_share_stack.c: the function of a task on a share stack. */
    aco_function_t (*entry_of_shared_task)(const aco_t *task);
    /* AddressSanitizer is present. Its shadow memory for a stack cannot be copied, so each coroutine on a share stack
     * gets a private one. */
    int share_stacks_are_private;
    /* A sanitizer or a trace is present that must know about every coroutine. */
    int instruments_all;
    /* A sanitizer keeps notes about the bytes of frames. */
    int notes_frames;

    /* stack/overflow.c: a thread is about to make its first coroutine. */
    void (*thread_begins)(void);

    /* tools/instrument.c: a coroutine is about to be freed. */
    void (*destroyed)(aco_t *co);

#ifdef ACO__INVARIANTS
    /* stack/cold_data.c: the name of `co`, for messages. */
    const char *(*name)(const aco_t *co);
#endif

    /* tools/trace.c: the process is about to die. May be called in any context. */
    void (*process_dies)(void);

    /* coroutine/create.c: frees the thread's cached coroutines. */
    void (*cache_free)(aco__thread_t *self);
    /* coroutine/entry.c: sets the contexts and the return address of a new scratch stack. */
    void (*scratch_new)(struct aco__scratch *scratch, void *top);
    /* coroutine/locals.c: destroys the values of the root context. */
    void (*root_values_destroy)(struct aco__scratch *scratch);

#ifdef ACO__SHADOW_STACKS
    /* coroutine/entry/x86_64.inc: puts aco__returned on the new shadow stack that has its token here, and a new
     * token below it. */
    void (*shadow_begin)(uintptr_t token);
#endif
#ifdef _WIN32
    /* The library is being unloaded: these free the process's pools and measurements. */
    void (*pools_end)(void);
    void (*usages_end)(void);
#endif
} aco__upcalls_t;

#ifdef ACO_CONFIG_LIBACO_ONLY
static const aco__upcalls_t aco__upcalls; /* coroutine/entry.c has its contents: only scratch_new */
#else
ACO__HIDDEN_EXTERN aco__upcalls_t aco__upcalls;
#endif

/* Calls the upcall `name`, if it is set, with these arguments in parentheses. */
#define ACO__UPCALL(name, arguments)                                                                                   \
    do {                                                                                                               \
        if (aco__upcalls.name)                                                                                         \
            aco__upcalls.name arguments;                                                                               \
    } while (0)

/* The part of a thread's scheduler that lower layers use. The scheduler fills it in. */
struct aco__scheduler {
    void (*reap)(struct aco__scheduler *s);
    void (*thread_ends)(aco__thread_t *self);
    __attribute__((noreturn)) void (*end_task)(aco_t *co, void *result); /* ends the running task */
    aco_t *zombie;   /* a task that has ended; its stack was still in use when it left */
    char is_running; /* aco_run() is running */
};

/* Frees the zombie's block and stack. Must not be called while a task ends. */
static inline void aco__reap(const aco__thread_t *self)
{
    if (aco_unlikely(self->scheduler != NULL) && self->scheduler->zombie)
        self->scheduler->reap(self->scheduler);
}

#endif
