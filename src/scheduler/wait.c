/* The parts of waiting that are not inline: who the caller is, why it cannot wait, and how a wait ends early. */
#include "scheduler/sync/back_off.h"
#include "scheduler/sync/readers.h"
#include "scheduler/wait.h"

#include "aco/detail/relay.h"
#include "base/slab.h"

aco_t *aco__task_around(const aco__thread_t *self)
{
    aco_t *task = self->task;
    return self->running && task && task != self->running && aco__in_turn(aco__tasks(self)) && aco__is_task(task) ? task
                                                                                                             : NULL;
}

int aco__fail_waiting(const char *call)
{
    const aco__thread_t *self = aco__self();
    const aco_t *running = self->running;
    const char *why = "is not a task and cannot wait";
    if (!running)
        why = "the root context is not a task and cannot wait";
    else if (running == self->task || aco__task_around(self))
        why = "is in its cleanup and cannot wait";
    return aco__fail(0, EPERM, call, running, "%s", why);
}

static int is_of(const struct aco__heap *heap, const aco__thread_t *thread)
{
    return __atomic_load_n(&heap->thread, __ATOMIC_RELAXED) == thread;
}

/* Whether a thread that has made coroutines has not ended. */
static int lives(const aco__thread_t *thread)
{
    const struct aco__heap *heap = __atomic_load_n(&aco__heaps, __ATOMIC_ACQUIRE);
    while (heap && !is_of(heap, thread))
        heap = heap->next;
    return heap != NULL;
}

void aco__use_by(aco__thread_t **thread, aco__thread_t *self, const void *object, int has_waiters, const char *call)
{
    const aco__thread_t *other = __atomic_load_n(thread, __ATOMIC_RELAXED);
    if (other && other != self && (has_waiters || lives(other)))
        aco__die(call, NULL, "%p belongs to another thread; only aco_post(), aco_unpark() and aco_scope_cancel() work "
                 "between threads", object);
    __atomic_store_n(thread, self, __ATOMIC_RELAXED);
}

void aco__use_check(aco__queue_t *queue, const void *object, const char *call)
{
    aco__use_by(&queue->thread, aco__self(), object, queue->first != NULL, call);
}

/* Ends a wait for a condition: it becomes a wait for the mutex, which nothing interrupts. Several such waits are often
 * behind each other in the mutex's queue, after a broadcast; sync.c makes all of them runnable at once. */
static void relock(aco__thread_t *self, aco__wait_t *wait, int error)
{
    aco_mutex_t *mutex = wait->value;
    ACO__ASSERT(wait->kind == ACO__WAIT_COND && mutex); /* its `value` is a mutex */
    ACO__ASSERT(mutex->owner != wait->task);
    if (!mutex->owner) {
        mutex->owner = wait->task;
        aco__wake(self, wait, error);
        return;
    }
    aco__dequeue(&wait->waiter);
    if (wait->timer.index)
        aco__timer_cancel(aco__tasks(self), &wait->timer);
    wait->error = error;
    wait->kind = ACO__WAIT_RELOCK;
    wait->object = mutex;
    aco__enqueue(&mutex->aco__waiters, &wait->waiter);
}

int aco__rwlock_take(const aco__thread_t *self, aco_rwlock_t *lock, const aco__wait_t *wait)
{
    int writes = wait->kind == ACO__WAIT_WRLOCK;
    ACO__ASSERT(writes || wait->kind == ACO__WAIT_RDLOCK);
    ACO__ASSERT(!lock->writer || !lock->readers);
    if (lock->writer || (writes && lock->readers))
        return 0;
    if (writes)
        lock->writer = wait->task;
    else {
        lock->readers++;
        aco__reader_joins(aco__tasks(self), lock, wait->task);
    }
    return 1;
}

void aco__rwlock_pass(aco__thread_t *self, aco_rwlock_t *lock)
{
    aco__waiter_t *first;
    while ((first = lock->aco__waiters.first) != NULL && aco__rwlock_take(self, lock, first->wait)) {
        if (aco_likely(first->wait->error != ACO__LEFT_FREE)) {
            aco__wake(self, first->wait, 0);
            continue;
        }
        ACO__ASSERT(!aco__task_wait(first->wait->task)); /* its task is runnable already */
        aco__dequeue(first);
        first->wait->error = 0;
        *aco__task_flags(first->wait->task) &= ~(size_t)TASK_EARLY;
    }
}

void aco__interrupt(aco__thread_t *self, aco__wait_t *wait, int error)
{
    void *object = (void *)(uintptr_t)wait->object;
    ACO__ASSERT(aco__task_wait(wait->task) == wait);
    switch (wait->kind) {
    case ACO__WAIT_MEMBERS:
    case ACO__WAIT_RELOCK:
        return;
    case ACO__WAIT_MUTEX:
    case ACO__WAIT_ANSWER:
    case ACO__WAIT_MT:
        if (wait->value) /* a wait for a condition has become one for the mutex; the answer is on its way */
            return;
        break;
    case ACO__WAIT_COND:
        relock(self, wait, error);
        return;
    case ACO__WAIT_JOIN:
        ACO__ASSERT(*aco__task_joiner(object) == wait->task);
        *aco__task_joiner(object) = NULL;
        break;
    case ACO__WAIT_BARRIER:
        ACO__ASSERT(((aco_barrier_t *)object)->arrived);
        ((aco_barrier_t *)object)->arrived--;
        break;
    default:
        break;
    }
    aco__wake(self, wait, error);
    if (wait->kind == ACO__WAIT_WRLOCK) /* readers that waited behind it */
        aco__rwlock_pass(self, object);
}

/* Out of line, so that the wake of a relay's place saves no registers. */
static __attribute__((noinline)) void wake_timed(aco__wait_t *wait, int error, aco__thread_t *self)
{
    aco__wake(self, wait, error);
}

void aco__wake_slowly(aco__waiter_t *place, int error, aco__thread_t *self)
{
    if (place->wait->kind == ACO__WAIT_RELAY)
        aco__relay_end((aco__relay_place_t *)(void *)place, error);
    else
        wake_timed(place->wait, error, self);
}

/* ---- Deadlines of single waits ---- */

int aco__wait_reserve(const char *call)
{
    aco__thread_t *self = aco__self();
    if (!aco__tasks(self)) /* without a scheduler the caller is no task: the wait says so */
        return 0;
    return aco__timers_reserve(self, 2, call); /* one for the scope of the task */
}

static void wait_due(aco__thread_t *self, aco__timed_t *timed)
{
    aco__wait_t *wait = (aco__wait_t *)(void *)((char *)timed - offsetof(aco__wait_t, timer));
    ACO__ASSERT(aco__task_wait(wait->task) == wait); /* a wait that has ended has no timer */
    aco__interrupt(self, wait, wait->kind == ACO__WAIT_SLEEP ? 0 : ETIMEDOUT);
}

void aco__wait_limit(aco__wait_t *wait, int64_t deadline)
{
    ACO__ASSERT(!wait->timer.index);
    aco__timer_set(aco__self(), &wait->timer, deadline, wait_due);
}
