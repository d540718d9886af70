/* Mutexes that a hooked task holds while it waits. Another task of its thread that locks one would block the thread,
 * and with it the holder: a deadlock. Or it would be granted a recursive mutex, which takes it for the holder. So such
 * a task waits here, and looks again and again.
 *
 * Only mutexes that the thread itself holds are waited for: what another thread holds, it releases. Acorn's own locks
 * are never held by a task that waits, so no switch comes where acorn does not expect it. */
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

static void report(const pthread_mutex_t *mutex, const char *why)
{
    fprintf(stderr, "acorn: pthread_mutex_lock: a hooked task wants the mutex %p, which its own thread holds: %s\n",
            (const void *)mutex, why);
}

/* Sleeps; a lock cannot fail, so no scope ends it. 0, or -1: the caller cannot wait. */
static int nap_for_lock(int64_t ns)
{
    aco_scope_t shield;
    int result;
    if (aco_shield_begin(&shield, ACO_FOREVER) != 0)
        return -1;
    result = aco__hook_sleep(aco_after(ns), "libc's pthread_mutex_lock()");
    (void)aco_scope_end(&shield);
    return result == 0 ? 0 : -1;
}

/* Waits until no other task of the thread has it. */
static void wait_for_holder(const pthread_mutex_t *mutex)
{
    const aco_t *task = aco_current_task();
    int64_t ns = SHORTEST_NAP_NS;
    for (unsigned naps = 0; is_another_tasks(mutex, task); naps++) {
        if (nap_for_lock(ns) != 0) {
            report(mutex, "a deadlock, as the task cannot wait");
            return;
        }
        if (naps == NAPS_BEFORE_REPORT)
            report(mutex, "it has waited for ten seconds");
        ns = ns < LONGEST_LOCK_NAP_NS / 2 ? 2 * ns : LONGEST_LOCK_NAP_NS;
    }
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

ACO__HOOK(int, pthread_mutex_lock, (pthread_mutex_t *mutex))
{
    int error, result;
    if (!aco__hooked())
        return aco__libc()->pthread_mutex_lock(mutex);
    error = errno;
    if (is_another_tasks(mutex, aco_current_task()))
        wait_for_holder(mutex);
    errno = error;
    result = aco__libc()->pthread_mutex_lock(mutex);
    if (result == 0 && is_recursive(mutex))
        note_locked(mutex);
    return result;
}

/* Also by a task that is not hooked any more. */
ACO__HOOK(int, pthread_mutex_unlock, (pthread_mutex_t *mutex))
{
    if (aco_unlikely(aco__hook_self.tasks != 0) && held_mutexes)
        note_unlocked(mutex);
    return aco__libc()->pthread_mutex_unlock(mutex);
}
