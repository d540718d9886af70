/* How tasks wait: the ring of those that can run, and the queues of those that cannot. For scheduler.c and what stands on it:
 * timer.c, sync.c, channel.c, deadlock.c.
 *
 * The ring goes through the tasks' `fp`: the running task is self->task, the one whose turn comes last self->last_task, and what
 * is made runnable is inserted between the two. In a task that waits `fp` is the address of its aco__wait_t with the lowest bit
 * set. A task's stack record, a cache line that spawning and ending look at anyhow, holds in fields that are else a
 * share stack's: its thread, its joiner, and TASK_… flags. */
#ifndef ACO_WAIT_H
#define ACO_WAIT_H

#include "scheduler/task.h"

#include "aco/scheduler.h"

enum { /* aco__wait_t.kind, and what `object` is then */
    ACO__WAIT_PARK,       /* the user's text */
    ACO__WAIT_JOIN,       /* a task */
    ACO__WAIT_SLEEP,      /* NULL */
    ACO__WAIT_MUTEX,      /* what it is called, and so on */
    ACO__WAIT_COND,
    ACO__WAIT_SEMAPHORE,
    ACO__WAIT_GROUP,
    ACO__WAIT_SEND,
    ACO__WAIT_RECEIVE,
    ACO__WAIT_SELECT      /* the cases, as many as it has places in queues */
};

enum { TASK_DETACHED = 1, TASK_PERMIT = 2, TASK_SELECTION = 4 /* and above: how often it has selected */ };

static inline size_t *aco__task_flags(const aco_t *task)
{
    return &task->share_stack->aco__use.task_flags;
}

static inline aco_t **aco__task_joiner(const aco_t *task)
{
    return &task->share_stack->aco__link.joiner;
}

/* ---- The ring ---- */

static inline void aco__task_link(aco_t *task, const aco_t *next)
{
    memcpy(&task->fp, &next, sizeof next);
}

/* Its turn comes after those of all others. */
static inline void aco__ring_append(aco__thread_t *self, aco_t *task)
{
    if (aco_likely(self->task != NULL)) {
        aco__task_link(task, self->task);
        aco__task_link(self->last_task, task);
    } else {
        aco__task_link(task, task);
        self->task = task;
    }
    self->last_task = task;
}

/* Takes out the one whose turn it is. */
static inline void aco__ring_remove(aco__thread_t *self)
{
    aco_t *next = aco__task_next(self->task);
    if (aco_likely(next != self->task)) {
        aco__task_link(self->last_task, next);
        self->task = next;
    } else {
        self->task = self->last_task = NULL;
    }
}

/* ---- Queues ---- */

static inline void aco__enqueue(aco__queue_t *queue, aco__waiter_t *waiter)
{
    waiter->queue = queue;
    waiter->next = NULL;
    waiter->previous = queue->last;
    *(queue->last ? &queue->last->next : &queue->first) = waiter;
    queue->last = waiter;
}

static inline void aco__dequeue(aco__waiter_t *waiter)
{
    aco__queue_t *queue = waiter->queue;
    *(waiter->previous ? &waiter->previous->next : &queue->first) = waiter->next;
    *(waiter->next ? &waiter->next->previous : &queue->last) = waiter->previous;
    waiter->queue = NULL;
}

/* ---- Waiting ---- */

/* Why the caller cannot wait, to be refused: -1. */
ACO__HIDDEN ACO__COLD int aco__fail_waiting(const char *call);

/* 0 if the caller is a task that may wait; else refused. A resumer other than aco_run() is that of a cleanup. */
static inline __attribute__((always_inline)) int aco__check_waiting(const aco__thread_t *self, const char *call)
{
    return aco_likely(self->running && self->running == self->task && !self->resuming) ? 0 : aco__fail_waiting(call);
}

/* The running task is going to wait for `object`, as yet in no queue. */
static inline void aco__wait_prepare(const aco__thread_t *self, aco__wait_t *wait, unsigned kind, const void *object, const char *location)
{
    wait->task = self->running;
    wait->kind = kind;
    wait->object = object;
    wait->location = location;
    wait->error = 0;
    wait->value = NULL;
    wait->first = wait->woken = NULL;
    wait->time_out = NULL;
    wait->timer = 0;
}

/* The same, in `queue`. */
static inline void aco__wait_in(aco__queue_t *queue, aco__wait_t *wait)
{
    wait->first = &wait->waiter;
    wait->waiter.wait = wait;
    wait->waiter.other = NULL;
    aco__enqueue(queue, &wait->waiter);
}

/* It can run no more. Returns what the first half of a call that waits does. */
static inline int aco__wait_start(aco__thread_t *self, aco__wait_t *wait)
{
    uintptr_t link = (uintptr_t)wait | 1;
    aco__ring_remove(self);
    memcpy(&wait->task->fp, &link, sizeof link);
    return ACO__MUST_WAIT;
}

/* ---- timer.c ---- */
/* In so many nanoseconds, 0 or more, the wait is over with ETIMEDOUT. 0, or refused for lack of memory: -1. */
ACO__HIDDEN int aco__timer_set(aco__thread_t *self, aco__wait_t *wait, int64_t ns, const char *call);
ACO__HIDDEN void aco__timer_cancel(aco__tasks_t *s, aco__wait_t *wait);
/* Ends the waits whose time is over. */
ACO__HIDDEN void aco__timers_expire(aco__thread_t *self);

/* Ends a wait: takes it out of its queues and makes the task runnable. */
static inline void aco__wake(aco__thread_t *self, aco__wait_t *wait, int error)
{
    for (aco__waiter_t *waiter = wait->first; waiter; waiter = waiter->other)
        if (waiter->queue)
            aco__dequeue(waiter);
    if (aco_unlikely(wait->timer != 0))
        aco__timer_cancel(aco__tasks(self), wait);
    wait->error = error;
    aco__ring_append(self, wait->task);
}

/* ---- poll_task.c ---- */
/* Sees to it that aco_run() has a turn in each round; no longer. 0, or -1 and errno. */
ACO__HIDDEN int aco__poll_task_start(aco__thread_t *self);
ACO__HIDDEN void aco__poll_task_stop(aco__thread_t *self);

/* ---- channel.c ---- */
/* What a wait for several channels waits for, into text[sz]. */
ACO__HIDDEN void aco__describe_select(const aco__wait_t *wait, char *text, size_t sz);

/* ---- deadlock.c ---- */
/* Prints where each of the thread's tasks waits, and refuses: -1. */
ACO__HIDDEN ACO__COLD int aco__fail_deadlock(const aco__thread_t *self);

#endif
