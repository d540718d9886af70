/* How tasks wait: what a wait is, how it begins and ends. */
#ifndef ACO_WAIT_H
#define ACO_WAIT_H

#include "scheduler/inner.h"
#include "scheduler/queue.h"
#include "scheduler/ring.h"
#include "scheduler/sync/scopes.h"
#include "scheduler/timer.h"

#include "aco/scheduler.h"
#include "aco/sync.h"

enum { /* aco__wait_t.kind; the comments say what `object` is */
    ACO__WAIT_PARK,       /* the user's text */
    ACO__WAIT_JOIN,       /* the task to join */
    ACO__WAIT_SLEEP,      /* NULL */
    ACO__WAIT_MUTEX,      /* the mutex; likewise below */
    ACO__WAIT_COND,
    ACO__WAIT_SEMAPHORE,
    ACO__WAIT_GROUP,
    ACO__WAIT_SEND,
    ACO__WAIT_RECEIVE,
    ACO__WAIT_SELECT,     /* the cases; each is in its channel's queue */
    ACO__WAIT_PLACE,      /* the group; likewise below */
    ACO__WAIT_MEMBERS,
    ACO__WAIT_RELOCK,     /* the mutex, after a wait for a condition */
    ACO__WAIT_RDLOCK,
    ACO__WAIT_WRLOCK,
    ACO__WAIT_ONCE,
    ACO__WAIT_BARRIER,
    ACO__WAIT_EVENT,
    ACO__WAIT_READABLE,   /* the descriptor, as an integer; likewise below */
    ACO__WAIT_WRITABLE,
    ACO__WAIT_ANSWER,     /* the function whose end another thread will tell; NULL: the system will */
    ACO__WAIT_MT          /* a text: what another thread will give */
};

enum { ACO__WAIT_RELAY = ACO__WAIT_MT + 1 }; /* no task's: aco__relay_t. Object: NULL */

/* In place of a timer's index: makes aco__wake_at() look at the kind. */
#define ACO__NO_TIMER SIZE_MAX

/* Fails with the reason why the caller cannot wait: -1. */
ACO__HIDDEN ACO__COLD int aco__fail_waiting(const char *call);

/* The task in which the caller runs, in its cleanup or not; NULL: in none. */
static inline __attribute__((always_inline)) aco_t *aco__current(const aco__thread_t *self)
{
    return aco_likely(self->running && self->running == self->task) ? self->task : aco__task_around(self);
}

/* Whether the caller is a task that may wait, and not an inner coroutine. A task has a resumer other than aco_run()
 * only while it cleans up; then it may not wait. */
static inline __attribute__((always_inline)) int aco__is_in_task(const aco__thread_t *self)
{
    return self->running && self->running == self->task && !self->resuming;
}

/* 0 if the caller may wait: then it runs in self->task. Else -1. */
ACO__SWITCHES static inline __attribute__((always_inline)) int aco__check_waiting(aco__thread_t *self, const char *call)
{
    ACO__MAY_SWITCH(call, NULL);
    return aco_likely(aco__is_in_task(self)) ? 0 : aco__check_inner(self, call);
}

/* The caller is about to wait. For an inner coroutine it forbids the inline switch, until aco__task_leave(). */
static inline void aco__wait_slowly_inside(aco__thread_t *self)
{
    self->slow_switch_tasks += self->running != self->task;
}

#define ACO__TRIMMED ((uint64_t)1 << 32) /* in a wait's `since`: its task's stack was trimmed meanwhile */

/* Fills in `wait`: the running task is going to wait for `object`. The wait is in no queue yet. */
ACO__SWITCHES
static inline void aco__wait_fill(const aco__thread_t *self, aco__wait_t *wait, unsigned kind, const void *object,
                                  const char *location)
{
    ACO__MAY_SWITCH("a call that waits", location);
    wait->task = self->task;
    wait->kind = kind;
    wait->object = object;
    wait->location = location;
    wait->error = 0;
    wait->value = NULL;
    wait->first = wait->woken = NULL;
    wait->timer.index = 0;
    wait->since = self->looked_at;
}

/* The innermost scope of a task; NULL: none. */
static inline aco_scope_t *aco__innermost(const aco_t *task)
{
    aco_scope_t *scope = *aco__task_flags(task) & TASK_SCOPED ? aco__task_record(task)->scope : NULL;
    ACO__ASSERT(!scope || scope->aco__task || scope->aco__flags & ACO__SCOPE_MT); /* it has not been left */
    return scope;
}

/* Whether the running task may wait, in the common case: it waits itself and not in a generator, and its scopes have
 * neither ended nor a deadline. */
static inline int aco__may_wait(const aco__thread_t *self, const aco__wait_t *wait)
{
    const aco_scope_t *scope;
    if (aco_likely(!self->scoped_tasks))
        return 1;
    if (aco_unlikely(self->running != self->task ||
                     !(aco__is_on_private(self->task) || aco__is_on_its_stack(self->task, wait))))
        return 0;
    scope = aco__innermost(self->task);
    return !scope || (!scope->aco__ended_by && !scope->aco__limit);
}

/* The same for a wait that the end of the task's scope ends: 0; or -1 and errno if the scope has ended, or without
 * memory for a scope's timer. */
ACO__SWITCHES
static inline int aco__wait_prepare(aco__thread_t *self, aco__wait_t *wait, unsigned kind, const void *object,
                                    const char *location)
{
    aco__wait_fill(self, wait, kind, object, location);
    return aco_likely(aco__may_wait(self, wait)) ? 0 : aco__scope_admit(self, wait);
}

/* ---- Objects belong to the thread that uses them first ---- */

/* `self` uses an object of another thread, or for the first time. Aborts if the other thread lives, or its tasks wait
 * for the object. */
ACO__HIDDEN ACO__COLD void aco__use_by(aco__thread_t **thread, aco__thread_t *self, const void *object, int has_waiters,
                                       const char *call);
/* A call that may wake the tasks in the object's queue, or changes the object. Without tasks there, only programs with
 * a debug unit are checked. */
static inline void aco__uses(aco__thread_t *self, aco__queue_t *queue, const void *object, const char *call)
{
    if (aco_unlikely(queue->first ? queue->thread != self : aco__debug_units))
        aco__use_by(&queue->thread, self, object, queue->first != NULL, call);
}
/* A task is about to wait for the object, or waits. */
static inline void aco__uses_waiting(aco__thread_t *self, aco__queue_t *queue, const void *object, const char *call)
{
    if (aco_unlikely(queue->thread != self))
        aco__use_by(&queue->thread, self, object, queue->first != NULL, call);
}

/* Puts the wait into `queue`. */
static inline void aco__wait_in(aco__queue_t *queue, aco__wait_t *wait)
{
    wait->first = &wait->waiter;
    wait->waiter.wait = wait;
    wait->waiter.other = NULL;
    aco__enqueue(queue, &wait->waiter);
}

/* Puts it into the queues of more places, which are linked by `other`; NULL: none. */
static inline void aco__wait_in_more(aco__wait_t *wait, aco__waiter_t *more)
{
    wait->waiter.other = more;
    for (; more; more = more->other) {
        more->wait = wait;
        aco__enqueue(more->queue, more);
    }
}

/* Removes the running task from the ring: it waits now. Returns what the first half of a waiting call returns. */
static inline int aco__wait_start(aco__thread_t *self, aco__wait_t *wait)
{
    ACO__ASSERT(wait->task == self->task); /* it was filled in during this turn */
    aco__ring_remove(self);
    aco__set_task_wait(wait->task, wait);
    return ACO__MUST_WAIT;
}

/* Ends a wait early with `error`, or with success if `error` is 0. */
ACO__HIDDEN void aco__interrupt(aco__thread_t *self, aco__wait_t *wait, int error);
/* Gives the lock to the first in its queue that can have it now: a writer, or all readers before the next writer. */
ACO__HIDDEN void aco__rwlock_pass(aco__thread_t *self, aco_rwlock_t *lock);
/* Locks it for this wait, if it is free for that: whether it is. */
ACO__HIDDEN int aco__rwlock_take(const aco__thread_t *self, aco_rwlock_t *lock, const aco__wait_t *wait);

/* The result of a wait that has ended. */
static inline int aco__wait_result(const aco__wait_t *wait)
{
    if (!wait->error)
        return 0;
    errno = wait->error;
    return -1;
}

/* Ends a task's wait: removes it from its queues and makes the task runnable. Leaves its timer. */
static inline void aco__wake_untimed(aco__thread_t *self, aco__wait_t *wait, int error)
{
    ACO__ASSERT(wait->kind != ACO__WAIT_RELAY);      /* else aco__wake_at() */
    ACO__ASSERT(aco__task_wait(wait->task) == wait); /* it waits for this, and is not in the ring */
    ACO__ASSERT(wait->task->share_stack->aco__thread == self);
    for (aco__waiter_t *waiter = wait->first; waiter; waiter = waiter->other)
        if (waiter->queue)
            aco__dequeue(waiter);
    wait->error = error;
    aco__ring_append(self, wait->task);
}

/* The same, with its timer. */
static inline void aco__wake(aco__thread_t *self, aco__wait_t *wait, int error)
{
    aco__wake_untimed(self, wait, error);
    if (aco_unlikely(wait->timer.index != 0)) /* last: a jump, so nothing need be saved for it */
        aco__timer_cancel(aco__tasks(self), &wait->timer);
}

/* Ends the wait at a place, if its task has a timer or it is of a relay. */
ACO__HIDDEN void aco__wake_slowly(aco__waiter_t *place, int error, aco__thread_t *self);
/* Ends the wait at a place. To tell tasks from relays costs a task nothing: its timer is looked at in any case. */
static inline void aco__wake_at(aco__thread_t *self, aco__waiter_t *place, int error)
{
    if (aco_likely(place->wait->timer.index == 0))
        aco__wake_untimed(self, place->wait, error);
    else
        aco__wake_slowly(place, error, self);
}

#endif
