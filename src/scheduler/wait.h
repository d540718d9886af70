/* How tasks wait: a ring of the tasks that can run, and queues of the tasks that wait. Used by all files of the
 * scheduler.
 *
 * The ring is a circular list through the tasks' `fp`. self->task is the running task, self->last_task the one with the
 * last turn. A task that becomes runnable is inserted between the two. In a waiting task `fp` is the address of its
 * aco__wait_t with the lowest bit set.
 *
 * A task's stack record is a cache line that spawning and ending access anyway. Some of its fields have a meaning for
 * share stacks only, and for tasks they hold the thread, the joiner and the TASK_… flags. A task on a share stack has
 * the last two in its annex. */
#ifndef ACO_WAIT_H
#define ACO_WAIT_H

#include "scheduler/task.h"

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

#define ACO__NO_END "a detached task has no stack_memory: its end is not known"

enum {
    TASK_DETACHED = 1,
    TASK_PERMIT = 2,
    TASK_SCOPED = 4,       /* its aco__task_record_t is valid */
    TASK_EARLY = 8,        /* on a share stack: it is runnable, and still in a mutex's queue */
    TASK_PASSED_OVER = 16, /* it waits for a lock that must be handed to it */
    TASK_SELECTION = 32    /* and the bits above: the number of its selects */
};

static inline __attribute__((always_inline)) size_t *aco__task_flags(const aco_t *task)
{
    return aco__is_on_private(task) ? &task->share_stack->aco__use.task_flags : &aco__annex(task)->flags;
}

static inline __attribute__((always_inline)) aco_t **aco__task_joiner(const aco_t *task)
{
    return aco__is_on_private(task) ? &task->share_stack->aco__link.joiner : &aco__annex(task)->joiner;
}

/* ---- The ring ---- */

/* Makes `task` the last in the ring. */
static inline void aco__ring_append(aco__thread_t *self, aco_t *task)
{
    ACO__ASSERT(!self->task == !self->last_task);
    ACO__ASSERT(!self->task || aco__task_next(self->last_task) == self->task); /* the ring is closed */
    if (aco_likely(self->task != NULL)) {
        aco__set_task_next(task, self->task);
        aco__set_task_next(self->last_task, task);
    } else {
        aco__set_task_next(task, task);
        self->task = task;
    }
    self->last_task = task;
}

/* The next task has its turn. */
static inline void aco__ring_turn(aco__thread_t *self)
{
    ACO__ASSERT(!aco__task_wait(self->task) && aco__task_next(self->last_task) == self->task);
    self->last_task = self->task;
    self->task = aco__task_next(self->task);
}

/* Removes the task that has its turn. */
static inline void aco__ring_remove(aco__thread_t *self)
{
    aco_t *next = aco__task_next(self->task);
    ACO__ASSERT(!aco__task_wait(self->task)); /* its `fp` is a link */
    ACO__ASSERT(aco__task_next(self->last_task) == self->task);
    if (aco_likely(next != self->task)) {
        aco__set_task_next(self->last_task, next);
        self->task = next;
    } else {
        self->task = self->last_task = NULL;
    }
}

/* ---- Queues ---- */

static inline void aco__enqueue(aco__queue_t *queue, aco__waiter_t *waiter)
{
    ACO__ASSERT(!queue->first == !queue->last && (!queue->last || !queue->last->next));
    waiter->queue = queue;
    waiter->next = NULL;
    waiter->previous = queue->last;
    *(queue->last ? &queue->last->next : &queue->first) = waiter;
    queue->last = waiter;
}

static inline void aco__dequeue(aco__waiter_t *waiter)
{
    aco__queue_t *queue = waiter->queue;
    ACO__ASSERT(queue != NULL); /* a place leaves its queue once */
    ACO__ASSERT((waiter->previous ? waiter->previous->next : queue->first) == waiter);
    ACO__ASSERT((waiter->next ? waiter->next->previous : queue->last) == waiter);
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it is in a queue
    *(waiter->previous ? &waiter->previous->next : &queue->first) = waiter->next;
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
    *(waiter->next ? &waiter->next->previous : &queue->last) = waiter->previous;
    waiter->queue = NULL;
}

/* ---- inbox.c: messages from other threads ---- */
/* Posts to the scheduler: it will call post->run(). A post that is under way already is not posted again. Any thread;
 * async-signal-safe on a thread other than the scheduler's, if its wake function is. */
ACO__HIDDEN void aco__inbox_post(aco__tasks_t *s, aco__post_t *post);
/* Makes sure that the post is not under way. Only the scheduler's thread may call these. */
ACO__HIDDEN void aco__inbox_forget(aco__tasks_t *s, aco__post_t *post);
/* Forgets the posts for which unwanted(post, arg) is not 0. */
ACO__HIDDEN void aco__inbox_filter(aco__tasks_t *s, int (*unwanted)(const aco__post_t *post, const void *arg),
                                   const void *arg);
/* Removes the first post and returns it; NULL: there is none. */
ACO__HIDDEN aco__post_t *aco__inbox_take(aco__tasks_t *s);
/* Runs what was posted. Returns whether anything was. */
ACO__HIDDEN int aco__inbox_run(aco__thread_t *self, aco__tasks_t *s);
/* Whether news of other threads may make a task runnable. */
static inline int aco__expects_news(const aco__tasks_t *s)
{
    return s->open || s->askers;
}
/* Whether anything can be posted to the scheduler while it runs tasks. */
static inline int aco__inbox_is_used(const aco__tasks_t *s)
{
    return s->dumps || s->blocked || aco__expects_news(s);
}
/* The thread has nothing else to do until that time: spins, if that is likely to pay (scheduler/spin.h). Whether
 * something was posted. `now` is the time. */
ACO__HIDDEN int aco__inbox_spin(aco__tasks_t *s, int64_t now, int64_t until);
/* Says that the thread is about to wait for events, or has. The first returns 0 if something was posted before. */
ACO__HIDDEN int aco__inbox_sleeps(aco__tasks_t *s);
ACO__HIDDEN void aco__inbox_awake(aco__tasks_t *s);
/* The thread ends: waits until nobody is about to post any more; and frees what nobody will run. */
ACO__HIDDEN void aco__inbox_close(aco__tasks_t *s);
ACO__HIDDEN void aco__inbox_drop(aco__tasks_t *s);
/* Posts a call of fn(arg): aco_post(). 0, or -1 and errno ENOMEM. */
ACO__HIDDEN int aco__inbox_call(aco__tasks_t *s, void (*fn)(void *arg), void *arg);
static inline int aco__is_posted(const aco__post_t *post)
{
    return __atomic_load_n(&post->next, __ATOMIC_RELAXED) != NULL;
}

/* ---- scope.c ---- */
enum { /* aco_scope_t.aco__flags */
    ACO__SCOPE_SHIELD = 1,
    ACO__SCOPE_GROUP = 2,  /* it is the first field of one */
    ACO__SCOPE_MT = 4, /* acorn_threads began it and must end it */
    ACO__SCOPE_TOLD = 8    /* and is told when it ends early */
};
/* The record of a task; it becomes valid. NULL and errno on failure; not for a task on a private stack. */
ACO__HIDDEN aco__task_record_t *aco__scope_record(aco__thread_t *self, const aco_t *task);
ACO__HIDDEN int aco__scope_begin(const char *call, aco_scope_t *scope, int64_t deadline, unsigned flags,
                                 const char *location);
/* 0 if this is the innermost scope of the calling task; else -1. */
ACO__HIDDEN int aco__scope_check_end(const aco__thread_t *self, const char *call, const aco_scope_t *scope);
/* The running task leaves its innermost scope. */
ACO__HIDDEN void aco__scope_leave(aco__thread_t *self, aco_scope_t *scope);
/* Ends a scope early with `error`, and all scopes inside; interrupts the waits there. */
ACO__HIDDEN void aco__scope_finish(aco__thread_t *self, aco_scope_t *scope, int error);
/* The running task, whose scopes are in use, is about to wait: 0; or -1 and errno if it must not, see
 * aco__wait_prepare(). */
ACO__HIDDEN int aco__scope_admit(aco__thread_t *self, const aco__wait_t *wait);
/* Before the thread sleeps: removes timers of scopes that were left, or moves them to the scopes' next deadlines, as
 * long as the first timer is such a one and due before `until`. ACO_FOREVER: so that a deadlock is noticed. Less: what
 * stays in place at worst wakes the thread once. */
ACO__HIDDEN void aco__scope_timers_refresh(aco__thread_t *self, int64_t until);
/* The task of this record ends. */
ACO__HIDDEN void aco__scopes_leave(aco__thread_t *self, aco__task_record_t *record);

/* ---- member.c ---- */
/* Gives places to the spawners that wait, as far as the limit allows. */
ACO__HIDDEN void aco__group_pass_places(aco__thread_t *self, aco_group_t *group);
/* A place in the group is free. */
ACO__HIDDEN void aco__group_free_place(aco__thread_t *self, aco_group_t *group);
/* A task ends with this result, while there are tasks with TASK_SCOPED or other threads that may post. */
ACO__HIDDEN void aco__scoped_task_ends(aco__thread_t *self, aco_t *task, void *result);

/* ---- Waiting ---- */

/* ---- inner.c: coroutines that a task resumed. They are inner coroutines, and the task waits for them ---- */
/* The task of the inner coroutine that runs. NULL: nothing runs, or not in a task, or the task cleans up. */
ACO__HIDDEN ACO__COLD aco_t *aco__task_around(const aco__thread_t *self);
/* 0 if the caller is an inner coroutine that may wait; else -1. */
ACO__HIDDEN ACO__COLD int aco__check_inner(aco__thread_t *self, const char *call);

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

/* ---- wait.c ---- */
/* Ends a wait early with `error`, or with success if `error` is 0. */
ACO__HIDDEN void aco__interrupt(aco__thread_t *self, aco__wait_t *wait, int error);
/* Gives the lock to the first in its queue that can have it now: a writer, or all readers before the next writer. */
ACO__HIDDEN void aco__rwlock_pass(aco__thread_t *self, aco_rwlock_t *lock);
/* Locks it for this wait, if it is free for that: whether it is. */
ACO__HIDDEN int aco__rwlock_take(aco_rwlock_t *lock, const aco__wait_t *wait);

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

/* The result of a wait that has ended. */
static inline int aco__wait_result(const aco__wait_t *wait)
{
    if (!wait->error)
        return 0;
    errno = wait->error;
    return -1;
}

/* ---- more_sync.c ---- */
/* The task of a wait with ACO__LEFT_FREE runs: takes the lock, or waits on. 0, or -1 and errno. */
ACO__SWITCHES ACO__HIDDEN ACO__COLD int aco__rwlock_again(aco__wait_t *wait);

/* ---- timer.c ---- */
/* Allocates what `count` more timers need. 0, or -1 and errno. */
ACO__HIDDEN int aco__timers_reserve(aco__thread_t *self, size_t count, const char *call);
/* Sets a timer, which must be reserved: due(timed) at `deadline`. */
ACO__HIDDEN void aco__timer_set(aco__thread_t *self, aco__timed_t *timed, int64_t deadline,
                                void (*due)(aco__thread_t *self, aco__timed_t *timed));
ACO__HIDDEN void aco__timer_cancel(aco__tasks_t *s, aco__timed_t *timed);
/* Has a timer first in the heap, if there is any. */
ACO__HIDDEN void aco__timers_settle(aco__tasks_t *s);
/* Removes the timers with a deadline in the past and calls their due(). The time of that; 0: there is none. */
ACO__HIDDEN int64_t aco__timers_expire(aco__thread_t *self);

/* Ends a wait: removes it from its queues and makes the task runnable. */
static inline void aco__wake(aco__thread_t *self, aco__wait_t *wait, int error)
{
    ACO__ASSERT(aco__task_wait(wait->task) == wait); /* it waits for this, and is not in the ring */
    ACO__ASSERT(wait->task->share_stack->aco__thread == self);
    for (aco__waiter_t *waiter = wait->first; waiter; waiter = waiter->other)
        if (waiter->queue)
            aco__dequeue(waiter);
    wait->error = error;
    aco__ring_append(self, wait->task);
    if (aco_unlikely(wait->timer.index != 0)) /* last: a jump, so nothing need be saved for it */
        aco__timer_cancel(aco__tasks(self), &wait->timer);
}

/* ---- on_share_stack.c ---- */
/* Prepares a new one, which is no task yet: it will begin with begin(). 0, or -1 and errno. */
ACO__HIDDEN int aco__on_share_stack_prepare(aco_t *co, aco__arrival_t *first, aco_function_t fn);
/* One ends, and still runs on the stack. */
ACO__HIDDEN void aco__on_share_stack_ends(aco__thread_t *self, aco_t *task);

/* ---- scheduler.c ---- */
/* The thread's scheduler, created if needed. NULL after a failure. */
ACO__HIDDEN aco__tasks_t *aco__scheduler_of(aco__thread_t *self, const char *call);
/* The thread's scheduler, created if needed, with the memory that the poll task needs. NULL after a failure. */
ACO__HIDDEN aco__tasks_t *aco__polling_scheduler_of(aco__thread_t *self, const char *call);

/* ---- poll_task.c ---- */
/* Gives aco_run() a turn in each round of the ring. 0, or -1 and errno. aco__poll_task_stop() undoes it. */
ACO__HIDDEN int aco__poll_task_start(aco__thread_t *self);
ACO__HIDDEN void aco__poll_task_stop(aco__thread_t *self);

/* ---- channel.c ---- */
/* Writes into text[sz] what a wait for several channels waits for. */
ACO__HIDDEN void aco__describe_select(const aco__wait_t *wait, char *text, size_t sz);

/* ---- valid.c ---- */
#ifdef ACO__INVARIANTS
/* Aborts if what the calling thread's scheduler keeps does not fit together. It may have none yet. */
ACO_API void aco__scheduler_valid(const aco__thread_t *self);
/* The parts that only channel.c and inbox.c know. The queue of those that wait to send, or to receive. */
ACO__HIDDEN const aco__queue_t *aco__channel_check(const aco_channel_t *channel, int sends);
ACO__HIDDEN void aco__select_check(const aco__wait_t *wait);
ACO__HIDDEN void aco__inbox_check(const aco__tasks_t *s);
#endif

/* ---- report.c ---- */
/* Prints where the tasks of the thread wait. Returns -1 with EDEADLK. */
ACO__HIDDEN ACO__COLD int aco__fail_deadlock(const aco__thread_t *self);
/* The task ends: its name is kept for reports. */
ACO__HIDDEN ACO__COLD void aco__remember_name(aco__thread_t *self, const aco_t *task);

/* ---- signals.c ---- */
/* Unblocks what the thread was asked to unblock. Called where no task runs: tasks may give the inbox no turn. */
ACO__HIDDEN void aco__signals_settle(aco__thread_t *self, aco__tasks_t *s);
/* The thread ends: nobody asks it any more to unblock signals. */
ACO__HIDDEN void aco__listens_no_more(aco__tasks_t *s);

/* ---- dump_signal.c ---- */
/* From now on the signal has the scheduler dump its tasks. 0, or -1 and errno. */
ACO__HIDDEN int aco__dump_signal_start(aco__tasks_t *s, int signal, int fd, const char *call);
ACO__HIDDEN void aco__dump_signal_stop(aco__tasks_t *s);

/* ---- poller.c ---- */
/* The wait, which is in its queue, lasts until another thread has answered: by a post that wakes the queue. `ask`,
 * unless NULL, is called when it has begun. */
ACO__SWITCHES
ACO__HIDDEN void aco__wait_for_answer(aco__thread_t *self, aco__wait_t *wait, void (*ask)(void *arg), void *arg);

/* ---- stuck.c ---- */
enum { ACO__MOST_STUCK_REPORTS = 16 }; /* of a thread */
/* For a watched thread, which is about to wait until `deadline`, or runs tasks (0): reports tasks that wait for each
 * other, from time to time. Returns until when to wait. */
ACO__HIDDEN int64_t aco__stuck_check(const aco__thread_t *self, aco__tasks_t *s, int64_t deadline);
/* report.c: says what those tasks, `n` of them, wait for that is_stuck(task, arg) names. */
ACO__HIDDEN void aco__report_stuck(const aco__thread_t *self, int (*is_stuck)(const aco_t *task, const void *arg),
                                   const void *arg, size_t n);

/* ---- watchdog.c ---- */
/* How often watched threads look for tasks that wait for each other, in nanoseconds. */
ACO__HIDDEN int64_t aco__watch_interval(void);
ACO__HIDDEN_EXTERN int8_t aco__watchdog_is_on; /* 1; or 0; -1: not decided. Atomic */
/* Begins or ends to watch the thread, as aco__watchdog_is_on has it. */
ACO__HIDDEN ACO__COLD void aco__watch_change(aco__thread_t *self, aco__tasks_t *s);
static inline void aco__watch_if_wanted(aco__thread_t *self, aco__tasks_t *s)
{
    if (aco_unlikely(__atomic_load_n(&aco__watchdog_is_on, __ATOMIC_RELAXED) != s->is_watched))
        aco__watch_change(self, s);
}
/* Sets the limit, 0: none, and watches the thread, if it has one. 0, or -1 and errno. */
ACO__HIDDEN int aco__watch_limit(aco__thread_t *self, aco__tasks_t *s, int64_t limit_ns, const char *call);
/* The thread ends. */
ACO__HIDDEN void aco__unwatch(aco__tasks_t *s);

#endif
