/* Several locks at once: how tasks that back off leave their locks free. */
#ifndef ACO_BACK_OFF_H
#define ACO_BACK_OFF_H

#include "scheduler/wait.h"

/* Several locks at once. Tasks in std::lock() wait for one lock, try the others, and unlock all if one is taken. If
 * each unlock handed over, three tasks could go round for ever: each finds a lock taken by one that has not run since
 * it was handed it. So a task that backs off leaves its locks free. The first in a lock's queue becomes runnable and
 * keeps its place; it gets the lock when it runs, unless a task before it has taken it. Then a lock that is not free is
 * one that is used, or that was handed over after use, and one of the tasks gets all that it wants. Waits with a
 * deadline of their own are handed over to as always, and one that has been passed over often is from then on: a task
 * that fails to lock something else each time would keep the lock for ever. */
enum {
    ACO__LEFT_FREE = -1, /* the `error` of such a wait, until its task runs or is handed the lock */
    ACO__MOST_PASSES = 64
};

static inline int aco__may_leave_free(const aco__wait_t *first)
{
    return first->error == ACO__LEFT_FREE ||
           (!first->timer.index && !(*aco__task_flags(first->task) & TASK_PASSED_OVER));
}

/* The task waits on: the lock was taken before its turn, for the nth time. */
ACO__SWITCHES static inline void aco__wait_on(aco__thread_t *self, aco__wait_t *wait, int n)
{
    if (n == ACO__MOST_PASSES)
        *aco__task_flags(wait->task) |= TASK_PASSED_OVER;
    aco__wait_start(self, wait);
    aco__task_leave(wait->task);
    *aco__task_flags(wait->task) &= ~(size_t)TASK_PASSED_OVER;
}

/* Makes a task runnable that stays in the queue. */
static inline void aco__run_queued(aco__thread_t *self, aco__waiter_t *waiter)
{
    aco_t *task = waiter->wait->task;
    ACO__ASSERT(waiter->queue && aco__task_wait(task) == waiter->wait); /* it is not in the ring yet */
    ACO__ASSERT(!(*aco__task_flags(task) & TASK_EARLY));
    if (!aco__is_on_private(task)) {
        *aco__task_flags(task) |= TASK_EARLY;
        aco__annex(task)->wait = waiter->wait;
    }
    aco__ring_append(self, task);
}

static inline void aco__leave_free(aco__thread_t *self, aco__waiter_t *first)
{
    if (first->wait->error == ACO__LEFT_FREE) /* it is runnable already */
        return;
    first->wait->error = ACO__LEFT_FREE;
    aco__run_queued(self, first);
}

#endif
