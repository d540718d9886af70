/* The record of a thread's scheduler. */
#ifndef ACO_TASK_H
#define ACO_TASK_H

#include "coroutine/internal.h"

#include "aco/scheduler.h"

enum { ACO__LATE_NS = 10000000 }; /* later wakes and longer runs are counted */

typedef struct aco__timer {
    int64_t deadline;  /* on the clock of aco_now() */
    uint64_t sequence; /* orders timers with the same deadline: the first one set is first */
    struct aco__wait *wait;
} aco__timer_t;

/* What the thread record does not hold. */
typedef struct aco__tasks {
    struct aco__scheduler base; /* what lower layers use */
    aco_t poll_task;     /* takes turns in the ring for aco_run(), which serves timers and the idle hook */
    char poll_task_is_queued;
    unsigned rounds;     /* turns of the poll task */
    unsigned selections;
    int (*idle)(void *ctx, int64_t timeout_ns);
    void *idle_ctx;
    aco__timer_t *timers; /* a heap */
    size_t timers_count, timers_sz; /* timers_sz: bytes */
    uint64_t timers_set;
    aco_run_stats_t stats;
    char measures_runs;
    int64_t trimmed_at;  /* on the clock of aco_now() */
    size_t trim_from;
} aco__tasks_t;

/* NULL until the thread spawns a task. */
static inline aco__tasks_t *aco__tasks(const aco__thread_t *self)
{
    return (aco__tasks_t *)self->scheduler;
}

#endif
