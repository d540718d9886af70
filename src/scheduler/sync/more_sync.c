/* Reader-writer lock, once, barrier, event. */
#include "scheduler/sync/back_off.h"
#include "scheduler/sync/more_sync.h"
#include "scheduler/sync/readers.h"
#include "scheduler/wait.h"

/* ---- Reader-writer lock ---- */

static int fail_busy(void)
{
    errno = EBUSY;
    return -1;
}

/* Locks without waiting, if nobody is before the caller: whether it did. */
static int take(aco__tasks_t *s, aco_t *task, aco_rwlock_t *lock, int writes)
{
    const aco__waiter_t *first = lock->aco__waiters.first;
    if (lock->writer || (first && first->wait->error != ACO__LEFT_FREE) || (writes && lock->readers))
        return 0;
    if (writes)
        lock->writer = task;
    else {
        lock->readers++;
        aco__reader_joins(s, lock, task);
    }
    return 1;
}

ACO__SWITCHES int aco__rwlock_lock(aco_rwlock_t *lock, int writes, aco__wait_t *wait, const char *location)
{
    const char *call = writes ? "aco_rwlock_wrlock" : "aco_rwlock_rdlock";
    aco__thread_t *self = aco__self();
    if (aco__check_waiting(self, call) != 0)
        return -1;
    if (take(aco__tasks(self), self->task, lock, writes))
        return 0;
    if (lock->writer == self->task)
        return aco__fail(0, EDEADLK, call, self->task, "has already locked %p for writing", (void *)lock);
    aco__uses_waiting(self, &lock->aco__waiters, lock, call);
    if (aco__wait_prepare(self, wait, writes ? ACO__WAIT_WRLOCK : ACO__WAIT_RDLOCK, lock, location) != 0)
        return -1;
    aco__wait_in(&lock->aco__waiters, wait);
    return aco__wait_start(self, wait);
}

static int try_lock(aco_rwlock_t *lock, int writes, const char *call)
{
    aco__thread_t *self = aco__self();
    aco_t *task = aco__current(self);
    if (!task)
        return aco__fail_waiting(call);
    aco__uses(self, &lock->aco__waiters, lock, call);
    return take(aco__tasks(self), task, lock, writes) ? 0 : fail_busy();
}

int aco__rwlock_trylock_or_back_off(aco_rwlock_t *lock, int writes)
{
    aco__thread_t *self = aco__self();
    int result = writes ? aco_rwlock_try_wrlock(lock) : aco_rwlock_try_rdlock(lock);
    if (self->scheduler)
        aco__tasks(self)->backs_off = result != 0 ? aco__current(self) : NULL;
    return result;
}

int aco__rwlock_again(aco__wait_t *wait)
{
    aco__thread_t *self = aco__self();
    aco_rwlock_t *lock = (aco_rwlock_t *)(uintptr_t)wait->object;
    int passes = 0;
    do {
        int failed = 0;
        ACO__ASSERT(wait->task == self->task && wait->waiter.queue == &lock->aco__waiters);
        *aco__task_flags(wait->task) &= ~(size_t)TASK_EARLY;
        aco__tasks(self)->backs_off = NULL;
        wait->error = 0;
        if (aco__rwlock_take(self, lock, wait) ||
            (self->scoped_tasks && (failed = aco__scope_admit(self, wait)) != 0)) {
            aco__dequeue(&wait->waiter);
            aco__rwlock_pass(self, lock); /* readers behind this one */
            return failed;
        }
        aco__wait_on(self, wait, ++passes);
    } while (wait->error == ACO__LEFT_FREE);
    return aco__wait_result(wait);
}

int aco_rwlock_try_rdlock(aco_rwlock_t *lock)
{
    return try_lock(lock, 0, "aco_rwlock_try_rdlock");
}

int aco_rwlock_try_wrlock(aco_rwlock_t *lock)
{
    return try_lock(lock, 1, "aco_rwlock_try_wrlock");
}

int aco_rwlock_unlock(aco_rwlock_t *lock)
{
    static const char call[] = "aco_rwlock_unlock";
    aco__thread_t *self = aco__self();
    const aco_t *task = aco__current(self);
    aco__waiter_t *first;
    if (!task)
        return aco__fail_waiting(call);
    if (lock->writer ? lock->writer != task : !lock->readers)
        return aco__fail(0, EPERM, call, task, "has not locked %p", (void *)lock);
    aco__uses(self, &lock->aco__waiters, lock, call);
    if (lock->writer)
        lock->writer = NULL;
    else {
        lock->readers--;
        aco__reader_leaves(aco__tasks(self), lock, task);
    }
    first = lock->aco__waiters.first;
    if (first && aco__tasks(self)->backs_off == task && aco__may_leave_free(first->wait))
        aco__leave_free(self, first);
    else if (first)
        aco__rwlock_pass(self, lock);
    return 0;
}

/* ---- Once ---- */

ACO__SWITCHES int aco__once_enter(aco_once_t *once, aco__wait_t *wait, const char *location)
{
    static const char call[] = "aco_once";
    aco__thread_t *self = aco__self();
    if (once->done)
        return 1;
    if (aco__check_waiting(self, call) != 0)
        return -1;
    if (!once->running) {
        once->running = self->task;
        return 0;
    }
    if (once->running == self->task)
        return aco__fail(0, EDEADLK, call, self->task,
                         "is called by its own function, or one that a task here ended in");
    aco__uses_waiting(self, &once->aco__waiters, once, call);
    if (aco__wait_prepare(self, wait, ACO__WAIT_ONCE, once, location) != 0)
        return -1;
    aco__wait_in(&once->aco__waiters, wait);
    return aco__wait_start(self, wait);
}

int aco__once_leave(aco_once_t *once, int result)
{
    aco__thread_t *self = aco__self();
    aco__uses(self, &once->aco__waiters, once, "aco_once");
    ACO__ASSERT(once->running && !once->done);
    once->running = NULL;
    once->done = result == 0;
    while (once->aco__waiters.first) { /* if it failed, the first of them runs its own */
        aco__wake(self, once->aco__waiters.first->wait, 0);
        if (result != 0)
            break;
    }
    return result == 0 ? 0 : -1;
}

/* ---- Barrier ---- */

ACO__SWITCHES int aco__barrier_wait(aco_barrier_t *barrier, aco__wait_t *wait, const char *location)
{
    static const char call[] = "aco_barrier_wait";
    aco__thread_t *self = aco__self();
    if (!barrier->count)
        return aco__fail(0, EINVAL, call, NULL, "the barrier's count is 0");
    if (aco__check_waiting(self, call) != 0)
        return -1;
    aco__uses_waiting(self, &barrier->aco__waiters, barrier, call);
    ACO__ASSERT(!barrier->arrived == !barrier->aco__waiters.first);
    if (barrier->arrived + 1 == barrier->count) {
        barrier->arrived = 0;
        while (barrier->aco__waiters.first)
            aco__wake(self, barrier->aco__waiters.first->wait, 0);
        return 1;
    }
    if (aco__wait_prepare(self, wait, ACO__WAIT_BARRIER, barrier, location) != 0)
        return -1;
    barrier->arrived++;
    aco__wait_in(&barrier->aco__waiters, wait);
    return aco__wait_start(self, wait);
}

/* ---- Event ---- */

void aco_event_set(aco_event_t *event)
{
    aco__thread_t *self = aco__self();
    aco__uses(self, &event->aco__waiters, event, "aco_event_set");
    event->is_set = 1;
    while (event->aco__waiters.first)
        aco__wake(self, event->aco__waiters.first->wait, 0);
}

void aco_event_reset(aco_event_t *event)
{
    aco__uses(aco__self(), &event->aco__waiters, event, "aco_event_reset");
    event->is_set = 0;
}

ACO__SWITCHES int aco__event_wait(aco_event_t *event, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    if (aco__check_waiting(self, "aco_event_wait") != 0)
        return -1;
    if (event->is_set)
        return 0;
    aco__uses_waiting(self, &event->aco__waiters, event, "aco_event_wait");
    if (aco__wait_prepare(self, wait, ACO__WAIT_EVENT, event, location) != 0)
        return -1;
    aco__wait_in(&event->aco__waiters, wait);
    return aco__wait_start(self, wait);
}
