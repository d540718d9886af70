/* Locks that a hooked task holds while it waits. Another task of its thread that wants one would block the thread, and
 * with it the holder: a deadlock. Or it would be granted a recursive mutex, which takes it for the holder. So such a
 * task waits here, and looks again and again.
 *
 * Of mutexes it waits only for those that the thread itself holds: what another thread holds, it releases. Read-write
 * locks and semaphores do not tell who holds them: any is waited for. Acorn's own locks are never held by a task that
 * waits, so no switch comes where acorn does not expect it. */
#include "hook/hook.h"

#include "aco/scope.h"

#include <stdio.h>

const char aco__hooks_of_locks = 1;

enum { SHORTEST_NAP_NS = 50000, LONGEST_LOCK_NAP_NS = 10000000, KINDS = 127, NAPS_BEFORE_REPORT = 1000 };

/* A recursive mutex that a hooked task has locked. */
typedef struct held {
    struct held *next;
    const pthread_mutex_t *mutex;
    const aco_t *task;
    unsigned depth;
} held_t;
static __thread held_t *held_mutexes __attribute__((tls_model("initial-exec")));

static int is_recursive(const pthread_mutex_t *mutex)
{
    int kind = mutex->__data.__kind & KINDS;
    return (kind & 3) == PTHREAD_MUTEX_RECURSIVE;
}

/* Whether the calling thread holds it. glibc stores the holder in all kinds of mutexes. */
static int is_held_here(const pthread_mutex_t *mutex)
{
    return __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) == aco__hook_self.thread;
}

static held_t **find_held(const pthread_mutex_t *mutex)
{
    held_t **link = &held_mutexes;
    while (*link && (*link)->mutex != mutex)
        link = &(*link)->next;
    return link;
}

/* Whether another task of this thread has it: of a recursive one, a hooked task. */
static int is_another_tasks(const pthread_mutex_t *mutex, const aco_t *task)
{
    if (is_recursive(mutex)) {
        const held_t *held = *find_held(mutex);
        return held && held->task != task;
    }
    return is_held_here(mutex);
}

static void report(const char *location, const void *lock, const char *why)
{
    fprintf(stderr, "acorn: %s: a hooked task wants the lock %p, which its own thread may hold: %s\n", location, lock,
            why);
}

typedef struct naps {
    const char *location;
    const void *lock;
    int64_t ns;
    unsigned count;
} naps_t;

/* Sleeps, longer each time; a lock cannot fail, so no scope ends it. 0, or -1: the caller cannot wait. */
static int nap_for_lock(naps_t *naps)
{
    aco_scope_t shield;
    int result;
    if (aco_shield_begin(&shield, ACO_FOREVER) != 0)
        return -1;
    result = aco__hook_sleep(aco_after(naps->ns), naps->location);
    (void)aco_scope_end(&shield);
    naps->ns = naps->ns < LONGEST_LOCK_NAP_NS / 2 ? 2 * naps->ns : LONGEST_LOCK_NAP_NS;
    if (result != 0)
        report(naps->location, naps->lock, "a deadlock, as the task cannot wait");
    else if (naps->count++ == NAPS_BEFORE_REPORT)
        report(naps->location, naps->lock, "it has waited for ten seconds");
    return result == 0 ? 0 : -1;
}

/* The deadline of a time of the clock CLOCK_REALTIME, which may be set meanwhile. */
static int64_t deadline_of_real_time(const struct timespec *until)
{
    struct timespec now;
    int64_t seconds, ns;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    seconds = (int64_t)until->tv_sec - now.tv_sec;
    if (seconds > INT64_MAX / ACO_SECOND / 2)
        return ACO_FOREVER;
    ns = seconds < 0 ? 0 : seconds * ACO_SECOND + until->tv_nsec - now.tv_nsec;
    return aco_after(ns > 0 ? ns : 0);
}

/* Waits until no other task of the thread has it, or the deadline has come. */
static void wait_for_holder(const pthread_mutex_t *mutex, int64_t deadline)
{
    const aco_t *task = aco_current_task();
    naps_t naps = {"libc's pthread_mutex_lock()", mutex, SHORTEST_NAP_NS, 0};
    int error = errno;
    while (is_another_tasks(mutex, task) && (deadline == ACO_FOREVER || aco_now() < deadline))
        if (nap_for_lock(&naps) != 0)
            break;
    errno = error;
}

/* A hooked task has locked a recursive mutex. Without memory it counts for the thread, as without hooks. */
static void note_locked(const pthread_mutex_t *mutex)
{
    held_t **link = find_held(mutex), *held = *link;
    if (!held) {
        held = malloc(sizeof *held);
        if (!held)
            return;
        held->next = NULL;
        held->mutex = mutex;
        held->task = aco_current_task();
        held->depth = 0;
        *link = held;
    }
    held->depth++;
}

static void note_unlocked(const pthread_mutex_t *mutex)
{
    held_t **link = find_held(mutex), *held = *link;
    if (!held || --held->depth)
        return;
    *link = held->next;
    free(held);
}

static int locked(const pthread_mutex_t *mutex, int result)
{
    if (result == 0 && is_recursive(mutex))
        note_locked(mutex);
    return result;
}

ACO__HOOK(int, pthread_mutex_lock, (pthread_mutex_t *mutex))
{
    if (!aco__hooked())
        return aco__libc()->pthread_mutex_lock(mutex);
    wait_for_holder(mutex, ACO_FOREVER);
    return locked(mutex, aco__libc()->pthread_mutex_lock(mutex));
}

ACO__HOOK(int, pthread_mutex_timedlock, (pthread_mutex_t *mutex, const struct timespec *until))
{
    if (!aco__hooked())
        return aco__libc()->pthread_mutex_timedlock(mutex, until);
    wait_for_holder(mutex, deadline_of_real_time(until));
    return is_recursive(mutex) && is_another_tasks(mutex, aco_current_task())
               ? ETIMEDOUT
               : locked(mutex, aco__libc()->pthread_mutex_timedlock(mutex, until));
}

ACO__HOOK(int, pthread_mutex_trylock, (pthread_mutex_t *mutex))
{
    if (!aco__hooked())
        return aco__libc()->pthread_mutex_trylock(mutex);
    return is_recursive(mutex) && is_another_tasks(mutex, aco_current_task())
               ? EBUSY
               : locked(mutex, aco__libc()->pthread_mutex_trylock(mutex));
}

/* Also by a task that is not hooked any more. */
ACO__HOOK(int, pthread_mutex_unlock, (pthread_mutex_t *mutex))
{
    if (aco_unlikely(aco__hook_self.tasks != 0) && held_mutexes)
        note_unlocked(mutex);
    return aco__libc()->pthread_mutex_unlock(mutex);
}

/* ---- Read-write locks ---- */

static int lock_by_trying(int (*try_lock)(pthread_rwlock_t *lock), int (*wait_for_lock)(pthread_rwlock_t *lock),
                          pthread_rwlock_t *lock, const char *location)
{
    naps_t naps = {location, lock, SHORTEST_NAP_NS, 0};
    int error = errno, result;
    if (!aco__hooked())
        return wait_for_lock(lock);
    while ((result = try_lock(lock)) == EBUSY)
        if (nap_for_lock(&naps) != 0) {
            result = wait_for_lock(lock);
            break;
        }
    errno = error;
    return result;
}

ACO__HOOK(int, pthread_rwlock_rdlock, (pthread_rwlock_t *lock))
{
    return lock_by_trying(pthread_rwlock_tryrdlock, aco__libc()->pthread_rwlock_rdlock, lock,
                          "libc's pthread_rwlock_rdlock()");
}

ACO__HOOK(int, pthread_rwlock_wrlock, (pthread_rwlock_t *lock))
{
    return lock_by_trying(pthread_rwlock_trywrlock, aco__libc()->pthread_rwlock_wrlock, lock,
                          "libc's pthread_rwlock_wrlock()");
}

/* ---- Semaphores ---- */

/* Tries until the deadline: HOOK_TRIES_AGAIN if it has it, HOOK_BLOCKS; HOOK_GIVES_UP with errno. */
static int get_by_trying(sem_t *semaphore, int64_t deadline, const char *location)
{
    int64_t ns = SHORTEST_NAP_NS;
    int result;
    while (sem_trywait(semaphore) != 0) {
        int64_t now = aco_now(), until = now + ns;
        if (errno != EAGAIN)
            return HOOK_GIVES_UP;
        if (now >= deadline) {
            errno = ETIMEDOUT;
            return HOOK_GIVES_UP;
        }
        result = aco__hook_sleep(until < deadline ? until : deadline, location);
        if (result != 0)
            return result == HOOK_CANNOT_WAIT ? HOOK_BLOCKS : HOOK_GIVES_UP;
        ns = ns < LONGEST_LOCK_NAP_NS / 2 ? 2 * ns : LONGEST_LOCK_NAP_NS;
    }
    return HOOK_TRIES_AGAIN;
}

ACO__HOOK(int, sem_wait, (sem_t *semaphore))
{
    int error = errno, action = HOOK_BLOCKS;
    if (aco__hooked())
        action = get_by_trying(semaphore, ACO_FOREVER, "libc's sem_wait()");
    return action == HOOK_BLOCKS ? aco__libc()->sem_wait(semaphore)
                                 : (int)aco__hook_result(action == HOOK_TRIES_AGAIN ? 0 : -1, error);
}

ACO__HOOK(int, sem_timedwait, (sem_t *semaphore, const struct timespec *until))
{
    int error = errno, action = HOOK_BLOCKS;
    if (until->tv_nsec >= 0 && until->tv_nsec < ACO_SECOND && aco__hooked())
        action = get_by_trying(semaphore, deadline_of_real_time(until), "libc's sem_timedwait()");
    return action == HOOK_BLOCKS ? aco__libc()->sem_timedwait(semaphore, until)
                                 : (int)aco__hook_result(action == HOOK_TRIES_AGAIN ? 0 : -1, error);
}
