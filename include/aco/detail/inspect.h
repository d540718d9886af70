/* Between acorn and acorn_debug: what the tasks of all threads do, and what a signal has interrupted. Not for
 * programs. */
#ifndef ACO_DETAIL_INSPECT_H
#define ACO_DETAIL_INSPECT_H

#include "for_libraries.h"

ACO__BEGIN_C

/* What a task waits for: a lock or a permit, other tasks or threads, a descriptor, or time. */
enum { ACO__SEEN_LOCK = 1, ACO__SEEN_TASKS = 2, ACO__SEEN_IO = 4, ACO__SEEN_TIME = 8 };

/* A task, for the time of one call. Texts and frames are valid only then. */
typedef struct aco__task_seen {
    const aco_t *task;
    long thread;           /* its number */
    const char *name;      /* "": none */
    const char *state;     /* "runs", "can run", "has not begun", "waits" */
    const char *waits_for; /* "for mutex …"; "": it does not wait, or no text is wanted */
    const char *location;  /* of the wait; NULL: unknown */
    const char *place;     /* the same for aco__place_text(); it lasts */
    const char *holder_at; /* if texts are wanted: where the holder of the lock waits; NULL: unknown, or it does not */
    const void *spawned_at; /* the return address of the call that spawned it; NULL: unknown */
    const char *work;      /* aco__work_place(); "": unknown */
    const void *entry;     /* its function */
    const void *group;     /* of which it is a member; NULL: none */
    int waits_kind;        /* ACO__SEEN_…; 0: it does not wait */
    const void *lock;      /* for which it waits; NULL: for none */
    int fd;                /* for which it waits; -1: none */
    const struct aco_scope_s *scope; /* the innermost; NULL: none */
    int64_t waited_ms;     /* at most so long; 0 if it does not wait */
    int64_t stack_bytes;   /* that it has touched, on a private stack; 0: unknown, or not wanted */
    int64_t stack_size;    /* of that stack; 0: it has none that aco_stack_high_water() knows */
    void *const *frames;   /* return addresses, the innermost first */
    int frame_count;
} aco__task_seen_t;

/* A look at the tasks of all threads. Each thread looks at its own, some in each round. The memory is shared with the
 * threads: free() is called when nobody has it any more. */
typedef struct aco__inspection {
    /* On the task's thread, in its root context; threads call it at the same time. It must not wait. */
    void (*see)(struct aco__inspection *inspection, const aco__task_seen_t *task);
    void (*free)(struct aco__inspection *inspection);
    int wants_text;   /* `waits_for` is wanted */
    int wants_stacks; /* `stack_bytes` is wanted, a system call for each task */
    int wants_stuck;  /* only tasks that wait for each other for ever; a thread looks at them at once */
    unsigned number;  /* of the inspection: aco__inspect_begin() gives it */
    int is_over;      /* nobody calls see() any more. Atomic */
    unsigned pending; /* threads that have not seen all of their tasks. Atomic */
    unsigned holders; /* atomic */
} aco__inspection_t;
enum { ACO__MOST_SEEN_FRAMES = 64 };

/* From now on threads answer to looks: aco_run() gets control in each round. A thread whose aco_run() runs already
 * answers from its next wait or round with a turn of aco_run() on. 0, or -1 and errno. Any thread. */
ACO_API int aco__inspect_on(void);
/* Asks all threads that have a scheduler. Fill in the first five fields. */
ACO_API void aco__inspect_begin(aco__inspection_t *inspection);
/* How many threads have not answered. */
ACO_API unsigned aco__inspect_pending(const aco__inspection_t *inspection);
/* Ends the look: who has not answered is not waited for. Calls missing() for each such thread, with its
 * number, and whether it has seen some of its tasks; it must not call the library. */
ACO_API void aco__inspect_end(aco__inspection_t *inspection, void (*missing)(void *arg, long thread, int has_begun),
                              void *arg);
/* Who has begun it does not use it any more. */
ACO_API void aco__inspect_release(aco__inspection_t *inspection);

/* A place as scopes and waits have it, as text, in `text` or elsewhere; "": unknown. */
ACO_API const char *aco__place_text(const char *location, char *text, size_t size);

/* What a thread's scheduler has done. The numbers are read while the thread goes on. */
typedef struct aco__thread_seen {
    long thread;
    size_t tasks;
    uint64_t spawned, late_wakes, turns; /* turns: an odd number while tasks run */
    const void *task; /* the one whose turn it is; it may be gone */
} aco__thread_seen_t;
/* Stores up to `n` threads that have a scheduler. Returns how many there are. */
ACO_API size_t aco__inspect_threads(aco__thread_seen_t *threads, size_t n);

/* A task that has just woken over 10 ms after its sleep or its time limit ended; on its thread, in its root context. It
 * must not wait. Each of at most ACO__MOST_LATE of those that wake at once is told, then how many more there were:
 * task->task is NULL and `late_ns` their sum. Else `n` is 1. */
typedef void (*aco__late_observer_t)(const aco__task_seen_t *task, size_t n, int64_t late_ns);
/* From now on this observer is told, instead of the one before, which may still run; NULL: nobody. Any thread. */
ACO_API void aco__inspect_late(aco__late_observer_t observer);
enum { ACO__MOST_LATE = 16 };

/* A turn of a task has ended, on its thread, in its root context; valid for the time of the call. */
typedef struct aco__turn_seen {
    const aco_t *task; /* it may be gone */
    const char *name, *work; /* "": none */
    const char *next; /* "ended", "gave way", "waits for a lock", … Lasts */
    const char *location; /* of the wait; NULL: unknown. For aco__place_text() */
    long thread;
    int64_t began, ended; /* on the clock of aco_now() */
} aco__turn_seen_t;
typedef void (*aco__turn_observer_t)(const aco__turn_seen_t *turn);
/* From now on the observer, which must not wait, is told of all turns of tasks, until the next call; NULL: nobody. A
 * call to the observer before may still run then. Threads begin when they next come to aco_run(); those that begin to
 * have tasks later do not. Tasks then switch through aco_run(). Any thread. */
ACO_API void aco__inspect_turns(aco__turn_observer_t observer);

/* Where it stands what the running task works on, for profiles: a text, stored atomically, that must last as long as it
 * stands there; NULL: nothing. The place lasts as long as the task. NULL outside tasks, or without memory. */
ACO_API const char **aco__work_place(void);
enum { ACO__WORK_SIZE = 64 };

/* What a signal's handler has interrupted. */
typedef struct aco__sample {
    char task[ACO_NAME_SIZE]; /* "": no name, or no task */
    char work[ACO__WORK_SIZE]; /* that of aco__work_place(), cut; "": none */
    int frame_count;
    void *frames[ACO__MOST_SEEN_FRAMES]; /* the first is where it was interrupted, the others return addresses */
} aco__sample_t;
/* Any thread, before the first handler calls the next function. 0; -1: frames cannot be walked in a handler here. */
ACO_API int aco__sample_prepare(void);
/* In a handler: stores what it has interrupted, up to the first function of the running coroutine, or of the thread.
 * `handler_returns`: the return address of the handler's first function; NULL: the task's name alone. It is
 * async-signal-safe, frames after aco__sample_prepare(). */
ACO_API void aco__sample_interrupted(aco__sample_t *sample, const void *handler_returns);

ACO__END_C

#endif
