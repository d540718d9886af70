/* poll_task.c: turns of aco_run() among those of tasks. */
#ifndef ACO_POLL_TASK_H
#define ACO_POLL_TASK_H

#include "scheduler/record.h"

/* Gives aco_run() a turn in each round of the ring. 0, or -1 and errno. aco__poll_task_stop() undoes it. */
ACO__HIDDEN int aco__poll_task_start(aco__thread_t *self);
ACO__HIDDEN void aco__poll_task_stop(aco__thread_t *self);
/* Whether the thread waits for a time or an event: aco_run() looks for these while tasks run. */
static inline int aco__awaits_events(const aco__tasks_t *s)
{
    return (s->poller && s->poller->waiters) || s->timers_count || s->until || s->idle || s->is_watched;
}

#endif
