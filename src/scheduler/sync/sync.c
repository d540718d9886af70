/* Mutex, condition variable, semaphore, wait group. A task that releases something hands it to the first task in the
 * queue. */
#include "scheduler/sync/back_off.h"
#include "scheduler/sync/more_sync.h"
#include "scheduler/wait.h"

#include "aco/detail/relay.h"

/* ---- Mutex ---- */

static int check_owner(const aco__thread_t *self, const char *call, const aco_mutex_t *mutex)
{
    const aco_t *task = aco__current(self);
    if (aco_unlikely(!task))
        return aco__fail_waiting(call);
    if (aco_unlikely(mutex->owner != task))
        return aco__fail(0, EPERM, call, task, "has not locked the mutex %p", (const void *)mutex);
    return 0;
}

/* The calls of the fast paths below are at their ends, so that these need not save registers. */

ACO__SWITCHES
static __attribute__((noinline)) int wait_for_mutex(aco__thread_t *self, aco_mutex_t *mutex, aco__wait_t *wait,
                                                    const char *location)
{
    static const char call[] = "aco_mutex_lock";
    if (mutex->owner == self->task)
        return aco__fail(0, EDEADLK, call, self->task, "has already locked the mutex %p", (void *)mutex);
    aco__uses_waiting(self, &mutex->aco__waiters, mutex, call);
    if (aco__wait_prepare(self, wait, ACO__WAIT_MUTEX, mutex, location) != 0)
        return -1;
    aco__wait_in(&mutex->aco__waiters, wait);
    return aco__wait_start(self, wait);
}

ACO__SWITCHES
ACO__FORCE_INLINE int lock_mutex(aco__thread_t *self, aco_mutex_t *mutex, aco__wait_t *wait, const char *location)
{
    if (aco_likely(!mutex->owner)) {
        mutex->owner = self->task;
        return 0;
    }
    if (aco_unlikely(mutex->owner == self->task || mutex->aco__waiters.thread != self || self->scoped_tasks))
        return wait_for_mutex(self, mutex, wait, location);
    aco__wait_fill(self, wait, ACO__WAIT_MUTEX, mutex, location);
    aco__wait_in(&mutex->aco__waiters, wait);
    return aco__wait_start(self, wait);
}

ACO__SWITCHES
ACO__COLD static int lock_inside(aco__thread_t *self, aco_mutex_t *mutex, aco__wait_t *wait, const char *location)
{
    return aco__check_inner(self, "aco_mutex_lock") != 0 ? -1 : lock_mutex(self, mutex, wait, location);
}

ACO__SWITCHES int aco__mutex_lock(aco_mutex_t *mutex, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    return aco_likely(aco__is_in_task(self)) ? lock_mutex(self, mutex, wait, location)
                                             : lock_inside(self, mutex, wait, location);
}

/* std::lock() has failed to get one of its mutexes: it will unlock those that it has, and wait for this one. */
int aco__mutex_trylock_or_back_off(aco_mutex_t *mutex)
{
    aco__thread_t *self = aco__self();
    int result = aco_mutex_try_lock(mutex);
    if (self->scheduler)
        aco__tasks(self)->backs_off = result != 0 ? aco__current(self) : NULL;
    return result;
}

int aco_mutex_try_lock(aco_mutex_t *mutex)
{
    aco__thread_t *self = aco__self();
    aco_t *task = aco__current(self);
    if (!task)
        return aco__fail_waiting("aco_mutex_try_lock");
    aco__uses(self, &mutex->aco__waiters, mutex, "aco_mutex_try_lock");
    if (mutex->owner) {
        errno = EBUSY;
        return -1;
    }
    mutex->owner = task;
    return 0;
}

/* The tasks of these waits were woken by a broadcast. They become runnable now, in one round, instead of one after the
 * other as each unlocks the mutex. They stay in the queue, and the mutex is handed to them in its order; one that has
 * its turn without the mutex waits again (aco__cond_again()). */
static void run_early(aco__thread_t *self, aco__waiter_t *waiter)
{
    for (; waiter && waiter->wait->kind == ACO__WAIT_RELOCK && aco__task_wait(waiter->wait->task);
         waiter = waiter->next)
        aco__run_queued(self, waiter);
}

/* See ACO__LEFT_FREE. A wait for a condition keeps its error. */
static int may_leave_free(const aco__thread_t *self, const aco_t *holder, const aco__wait_t *first)
{
    return aco__tasks(self)->backs_off == holder && aco__may_leave_free(first) &&
           (first->error == ACO__LEFT_FREE || (first->kind == ACO__WAIT_MUTEX && !first->value));
}

static void leave_free(aco__thread_t *self, aco_mutex_t *mutex, aco__waiter_t *first)
{
    ACO__ASSERT(first == mutex->aco__waiters.first);
    mutex->owner = NULL;
    first->wait->kind = ACO__WAIT_RELOCK; /* nothing wakes it again */
    aco__leave_free(self, first);
}

/* The task of such a wait runs: takes the mutex, or waits on. 0, or -1 and errno. */
ACO__SWITCHES ACO__COLD static int lock_again(aco__wait_t *wait)
{
    aco__thread_t *self = aco__self();
    aco_mutex_t *mutex = (aco_mutex_t *)(uintptr_t)wait->object;
    aco_t *task = wait->task;
    int passes = 0;
    do {
        ACO__ASSERT(task == self->task && wait->kind == ACO__WAIT_RELOCK);
        *aco__task_flags(task) &= ~(size_t)TASK_EARLY;
        aco__tasks(self)->backs_off = NULL;
        wait->error = 0;
        wait->kind = ACO__WAIT_MUTEX;
        if (mutex->owner == task)
            return 0;
        ACO__ASSERT(wait->waiter.queue == &mutex->aco__waiters);
        if (!mutex->owner) {
            aco__dequeue(&wait->waiter);
            mutex->owner = task;
            return 0;
        }
        if (self->scoped_tasks && aco__scope_admit(self, wait) != 0) {
            aco__dequeue(&wait->waiter);
            return -1;
        }
        aco__wait_on(self, wait, ++passes);
    } while (wait->error == ACO__LEFT_FREE);
    return aco__wait_result(wait);
}

ACO__SWITCHES int aco__wait_failed(const aco__wait_t *wait)
{
    aco__wait_t *own = (aco__wait_t *)(uintptr_t)wait;
    if (wait->error != ACO__LEFT_FREE)
        return aco__wait_result(wait);
    return wait->kind == ACO__WAIT_RELOCK ? lock_again(own) : aco__rwlock_again(own);
}

/* What is not the common case: `holder` backs off, or a task that is runnable already gets the mutex. */
ACO__COLD static void hand_over_slowly(aco__thread_t *self, aco_mutex_t *mutex, const aco_t *holder,
                                       aco__waiter_t *first)
{
    aco__waiter_t *next = first->next;
    aco__uses_waiting(self, &mutex->aco__waiters, mutex, "aco_mutex_unlock");
    if (aco__tasks(self)->backs_off != holder)
        aco__tasks(self)->backs_off = NULL;
    if (may_leave_free(self, holder, first->wait)) {
        leave_free(self, mutex, first);
        return;
    }
    if (first->wait->kind == ACO__WAIT_RELAY || aco__task_wait(first->wait->task))
        aco__wake_at(self, first, first->wait->error);
    else {
        aco__dequeue(first);
        *aco__task_flags(first->wait->task) &= ~(size_t)TASK_EARLY;
    }
    run_early(self, next);
}

ACO__FORCE_INLINE void hand_over(aco__thread_t *self, aco_mutex_t *mutex, const aco_t *holder)
{
    aco__waiter_t *first = mutex->aco__waiters.first;
    ACO__ASSERT(mutex->owner == holder);
    ACO__ASSERT(!first || first->wait->kind == ACO__WAIT_RELAY ||
                (first->wait->task != holder &&
                 (first->wait->kind == ACO__WAIT_MUTEX || first->wait->kind == ACO__WAIT_RELOCK)));
    mutex->owner = first ? first->wait->task : NULL;
    if (!first)
        return;
    if (aco_likely(first->wait->kind != ACO__WAIT_RELOCK && mutex->aco__waiters.thread == self &&
                   !aco__tasks(self)->backs_off))
        aco__wake_at(self, first, first->wait->error); /* keeps the error of the condition wait before */
    else
        hand_over_slowly(self, mutex, holder, first);
}

ACO__COLD static int unlock_inside(aco__thread_t *self, aco_mutex_t *mutex)
{
    if (check_owner(self, "aco_mutex_unlock", mutex) != 0)
        return -1;
    hand_over(self, mutex, mutex->owner);
    return 0;
}

int aco_mutex_unlock(aco_mutex_t *mutex)
{
    aco__thread_t *self = aco__self();
    const aco_t *task = self->running;
    if (aco_unlikely(!task || task != self->task || task != mutex->owner))
        return unlock_inside(self, mutex);
    hand_over(self, mutex, task);
    return 0;
}

int aco__relay_lock(aco__relay_t *relay, aco__relay_place_t *place, aco_mutex_t *mutex)
{
    aco__uses_waiting(aco__self(), &mutex->aco__waiters, mutex, "aco_mutex_lock");
    if (!mutex->owner) {
        mutex->owner = relay->wait.task;
        return 0;
    }
    return aco__relay_wait(relay, place, &mutex->aco__waiters); /* also if another of its places has locked it */
}

/* ---- Condition variable ---- */

ACO__SWITCHES int aco__cond_wait(aco_cond_t *cond, aco_mutex_t *mutex, aco__wait_t *wait, const char *location)
{
    static const char call[] = "aco_cond_wait";
    aco__thread_t *self = aco__self();
    if (aco__check_waiting(self, call) != 0 || check_owner(self, call, mutex) != 0)
        return -1;
    aco__uses_waiting(self, &cond->aco__waiters, cond, call);
    if (aco__wait_prepare(self, wait, ACO__WAIT_COND, cond, location) != 0)
        return -1;
    wait->value = mutex;
    aco__wait_in(&cond->aco__waiters, wait);
    aco__wait_start(self, wait);
    hand_over(self, mutex, wait->task);
    return ACO__MUST_WAIT;
}

void aco__cond_again(aco__wait_t *wait)
{
    aco__thread_t *self = aco__self();
    ACO__ASSERT(wait->kind == ACO__WAIT_RELOCK && wait->value && wait->waiter.queue);
    wait->kind = ACO__WAIT_MUTEX; /* from now on it becomes runnable with the mutex only */
    *aco__task_flags(wait->task) &= ~(size_t)TASK_EARLY;
    aco__wait_slowly_inside(self);
    aco__wait_start(self, wait);
}

void aco_cond_signal(aco_cond_t *cond)
{
    aco__thread_t *self = aco__self();
    aco__uses(self, &cond->aco__waiters, cond, "aco_cond_signal");
    ACO__ASSERT(!cond->aco__waiters.first || cond->aco__waiters.first->wait->kind == ACO__WAIT_COND);
    if (cond->aco__waiters.first)
        aco__interrupt(self, cond->aco__waiters.first->wait, 0);
}

void aco_cond_broadcast(aco_cond_t *cond)
{
    aco_mutex_t *mutex = cond->aco__waiters.first ? cond->aco__waiters.first->wait->value : NULL;
    int is_free = mutex && !mutex->owner;
    aco__uses(aco__self(), &cond->aco__waiters, cond, "aco_cond_broadcast");
    while (cond->aco__waiters.first)
        aco_cond_signal(cond);
    if (is_free) /* the first one has it now */
        run_early(aco__self(), mutex->aco__waiters.first);
}

/* ---- Semaphore ---- */

ACO__SWITCHES int aco__semaphore_acquire(aco_semaphore_t *semaphore, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    if (aco__check_waiting(self, "aco_semaphore_acquire") != 0)
        return -1;
    if (aco_likely(semaphore->value)) {
        semaphore->value--;
        return 0;
    }
    aco__uses_waiting(self, &semaphore->aco__waiters, semaphore, "aco_semaphore_acquire");
    if (aco__wait_prepare(self, wait, ACO__WAIT_SEMAPHORE, semaphore, location) != 0)
        return -1;
    aco__wait_in(&semaphore->aco__waiters, wait);
    return aco__wait_start(self, wait);
}

int aco_semaphore_try_acquire(aco_semaphore_t *semaphore)
{
    aco__uses(aco__self(), &semaphore->aco__waiters, semaphore, "aco_semaphore_try_acquire");
    if (!semaphore->value) {
        errno = EAGAIN;
        return -1;
    }
    semaphore->value--;
    return 0;
}

void aco_semaphore_release(aco_semaphore_t *semaphore)
{
    aco__thread_t *self = aco__self();
    aco__uses(self, &semaphore->aco__waiters, semaphore, "aco_semaphore_release");
    if (semaphore->aco__waiters.first)
        aco__wake_at(self, semaphore->aco__waiters.first, 0);
    else
        semaphore->value++;
}

int aco__relay_acquire(aco__relay_t *relay, aco__relay_place_t *place, aco_semaphore_t *semaphore)
{
    aco__uses_waiting(aco__self(), &semaphore->aco__waiters, semaphore, "aco_semaphore_acquire");
    if (semaphore->value) {
        semaphore->value--;
        return 0;
    }
    return aco__relay_wait(relay, place, &semaphore->aco__waiters);
}

/* ---- Wait group ---- */

static int add(aco_wait_group_t *group, ptrdiff_t n, const char *call)
{
    aco__thread_t *self = aco__self();
    size_t more = (size_t)n, less = 0 - more;
    aco__uses(self, &group->aco__waiters, group, call);
    if (n < 0 ? less > group->count : more > SIZE_MAX - group->count)
        return aco__fail(0, ERANGE, call, NULL, "cannot add %td to the wait group %p, whose count is %zu", n,
                         (void *)group, group->count);
    group->count += more;
    while (!group->count && group->aco__waiters.first)
        aco__wake(self, group->aco__waiters.first->wait, 0);
    return 0;
}

int aco_wait_group_add(aco_wait_group_t *group, ptrdiff_t n)
{
    return add(group, n, "aco_wait_group_add");
}

int aco_wait_group_done(aco_wait_group_t *group)
{
    return add(group, -1, "aco_wait_group_done");
}

ACO__SWITCHES int aco__wait_group_wait(aco_wait_group_t *group, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    if (aco__check_waiting(self, "aco_wait_group_wait") != 0)
        return -1;
    if (!group->count)
        return 0;
    aco__uses_waiting(self, &group->aco__waiters, group, "aco_wait_group_wait");
    if (aco__wait_prepare(self, wait, ACO__WAIT_GROUP, group, location) != 0)
        return -1;
    aco__wait_in(&group->aco__waiters, wait);
    return aco__wait_start(self, wait);
}
