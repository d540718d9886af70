/* The process lock, and what a fork does with it. */
#include "base/base.h"

/* A child has whole what the lock protects, whoever forked. ThreadSanitizer sees the lock being taken and not the child's
 * release: there this is left out. */
ACO__OPTIONAL(void, __tsan_switch_to_fiber, (void *fiber, unsigned flags));

/* What the thread's record says of it. A signal handler that forks may have interrupted the lock's owner, or a thread that is
 * about to take it: its child finds things half changed, and may only exec. */
enum { LOCK_WANTED = 1, LOCK_FOR_FORK = 2 };

void aco__lock(void)
{
    __atomic_store_n(&aco__self()->lock, LOCK_WANTED, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    aco__os_lock();
}

void aco__unlock(void)
{
    aco__os_unlock();
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&aco__self()->lock, 0, __ATOMIC_RELAXED);
}

static void before_fork(void)
{
    if (__atomic_load_n(&aco__self()->lock, __ATOMIC_RELAXED))
        return;
    aco__lock();
    __atomic_store_n(&aco__self()->lock, LOCK_FOR_FORK, __ATOMIC_RELAXED);
}

static void after_fork(void)
{
    if (__atomic_load_n(&aco__self()->lock, __ATOMIC_RELAXED) == LOCK_FOR_FORK)
        aco__unlock();
}

ACO__AT_LOAD static void keep_lock_over_fork(void)
{
    if (!__tsan_switch_to_fiber)
        aco__os_at_fork(before_fork, after_fork, after_fork);
}
