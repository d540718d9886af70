/* Mutex, condition variable, semaphore, wait group. A task that releases something hands it to the first task in the
 * queue. */
#include "scheduler/wait.h"


/* ---- Mutex ---- */

/* 0 if the caller is a task, in its cleanup or not; else -1. */
static int check_is_task(const aco__thread_t *self, const char *call)
{
    return aco_likely(self->running && self->running == self->task) ? 0 : aco__fail_waiting(call);
}

static int check_owner(const aco__thread_t *self, const char *call, const aco_mutex_t *mutex)
{
    if (check_is_task(self, call) != 0)
        return -1;
    if (aco_unlikely(mutex->owner != self->running))
        return aco__fail(0, EPERM, call, self->running, "has not locked the mutex %p", (const void *)mutex);
    return 0;
}

int aco__mutex_lock(aco_mutex_t *mutex, aco__wait_t *wait, const char *location)
{
    static const char call[] = "aco_mutex_lock";
    aco__thread_t *self = aco__self();
    if (aco__check_waiting(self, call) != 0)
        return -1;
    if (aco_likely(!mutex->owner)) {
        mutex->owner = self->running;
        return 0;
    }
    if (mutex->owner == self->running)
        return aco__fail(0, EDEADLK, call, self->running, "has already locked the mutex %p", (void *)mutex);
    if (aco__wait_prepare(self, wait, ACO__WAIT_MUTEX, mutex, location) != 0)
        return -1;
    aco__wait_in(&mutex->aco__waiters, wait);
    return aco__wait_start(self, wait);
}

int aco_mutex_trylock(aco_mutex_t *mutex)
{
    aco__thread_t *self = aco__self();
    if (check_is_task(self, "aco_mutex_trylock") != 0)
        return -1;
    if (mutex->owner) {
        errno = EBUSY;
        return -1;
    }
    mutex->owner = self->running;
    return 0;
}

static void hand_over(aco__thread_t *self, aco_mutex_t *mutex)
{
    aco__waiter_t *first = mutex->aco__waiters.first;
    mutex->owner = first ? first->wait->task : NULL;
    if (first)
        aco__wake(self, first->wait, first->wait->error); /* keeps the error of the condition wait before */
}

int aco_mutex_unlock(aco_mutex_t *mutex)
{
    aco__thread_t *self = aco__self();
    if (check_owner(self, "aco_mutex_unlock", mutex) != 0)
        return -1;
    hand_over(self, mutex);
    return 0;
}

/* ---- Condition variable ---- */

int aco__cond_wait(aco_cond_t *cond, aco_mutex_t *mutex, aco__wait_t *wait, const char *location)
{
    static const char call[] = "aco_cond_wait";
    aco__thread_t *self = aco__self();
    if (aco__check_waiting(self, call) != 0 || check_owner(self, call, mutex) != 0)
        return -1;
    if (aco__wait_prepare(self, wait, ACO__WAIT_COND, cond, location) != 0)
        return -1;
    wait->value = mutex;
    aco__wait_in(&cond->aco__waiters, wait);
    aco__wait_start(self, wait);
    hand_over(self, mutex);
    return ACO__MUST_WAIT;
}

void aco_cond_signal(aco_cond_t *cond)
{
    if (cond->aco__waiters.first)
        aco__interrupt(aco__self(), cond->aco__waiters.first->wait, 0);
}

void aco_cond_broadcast(aco_cond_t *cond)
{
    while (cond->aco__waiters.first)
        aco_cond_signal(cond);
}

/* ---- Semaphore ---- */

int aco__semaphore_acquire(aco_semaphore_t *semaphore, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    if (aco__check_waiting(self, "aco_semaphore_acquire") != 0)
        return -1;
    if (aco_likely(semaphore->value)) {
        semaphore->value--;
        return 0;
    }
    if (aco__wait_prepare(self, wait, ACO__WAIT_SEMAPHORE, semaphore, location) != 0)
        return -1;
    aco__wait_in(&semaphore->aco__waiters, wait);
    return aco__wait_start(self, wait);
}

int aco_semaphore_try_acquire(aco_semaphore_t *semaphore)
{
    if (!semaphore->value) {
        errno = EAGAIN;
        return -1;
    }
    semaphore->value--;
    return 0;
}

void aco_semaphore_release(aco_semaphore_t *semaphore)
{
    if (semaphore->aco__waiters.first)
        aco__wake(aco__self(), semaphore->aco__waiters.first->wait, 0);
    else
        semaphore->value++;
}

/* ---- Wait group ---- */

static int add(aco_wait_group_t *group, ptrdiff_t n, const char *call)
{
    aco__thread_t *self = aco__self();
    size_t more = (size_t)n, less = 0 - more;
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

int aco__wait_group_wait(aco_wait_group_t *group, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    if (aco__check_waiting(self, "aco_wait_group_wait") != 0)
        return -1;
    if (!group->count)
        return 0;
    if (aco__wait_prepare(self, wait, ACO__WAIT_GROUP, group, location) != 0)
        return -1;
    aco__wait_in(&group->aco__waiters, wait);
    return aco__wait_start(self, wait);
}
