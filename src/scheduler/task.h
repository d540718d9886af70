/* A thread's scheduler. */
#ifndef ACO_TASK_H
#define ACO_TASK_H

#include "coroutine/internal.h"

typedef struct aco__timer {
    int64_t deadline;  /* on the clock of aco_now() */
    uint64_t sequence; /* of two with the same deadline the one that was set first is first */
    struct aco__wait *wait;
} aco__timer_t;

/* Besides what stands in the thread's record. */
typedef struct aco__tasks {
    struct aco__scheduler base; /* what lower layers know */
    aco_t poll_task;     /* stands in the ring for aco_run(): its turn is the timers' and the idle hook's */
    char poll_task_is_queued;
    unsigned rounds;     /* turns of the poll task */
    unsigned selections;
    int (*idle)(void *ctx, int64_t timeout_ns);
    void *idle_ctx;
    aco__timer_t *timers; /* a heap */
    size_t timers_count, timers_sz; /* timers_sz: bytes */
    uint64_t timers_set;
    int64_t trimmed_at;  /* on the clock of aco_now() */
    size_t trim_from;
} aco__tasks_t;

/* NULL until the thread spawns a task. */
static inline aco__tasks_t *aco__tasks(const aco__thread_t *self)
{
    return (aco__tasks_t *)self->scheduler;
}

#endif
