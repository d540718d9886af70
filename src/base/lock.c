/* The process lock, held across fork(). */
#include "base/base.h"

/* Links thread.c: link-time optimisation does not see that assembly names the thread record. */
static __attribute__((used)) aco__thread_t *const *const thread_record = &aco__nobody;

#ifdef ACO__INVARIANTS
const char aco__process_lock;
#endif

#ifdef _WIN32
/* There is no fork(). And a thread that ends may have no record any more: aco__self() would make another one. */
void aco__lock(void)
{
    ACO__LOCKED_BEGIN(&aco__process_lock);
    aco__os_lock();
}

void aco__unlock(void)
{
    aco__os_unlock();
    ACO__LOCKED_END(&aco__process_lock);
}
#else
/* A fork() takes the lock first. So what the lock protects is consistent in the child, whichever thread forks. Not
 * under ThreadSanitizer, which sees that the lock is taken but not that the child releases it. */
ACO__OPTIONAL(void, __tsan_switch_to_fiber, (void *fiber, unsigned flags));

/* The values of `lock` in the thread record. A signal handler that forks may have interrupted the thread that holds the
 * lock, or that is about to take it. Its child may find inconsistent data and may only exec. */
enum { LOCK_WANTED = 1, LOCK_FOR_FORK = 2 };

void aco__lock(void)
{
    __atomic_store_n(&aco__self()->lock, LOCK_WANTED, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    ACO__LOCKED_BEGIN(&aco__process_lock);
    aco__os_lock();
}

void aco__unlock(void)
{
    aco__os_unlock();
    ACO__LOCKED_END(&aco__process_lock);
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

/* Before the libraries beside this one register theirs, by ACO__AT_LOAD: fork() takes their locks first then, and who
 * has one of them may wait for this one. In a static program the linker decides within one priority. */
static __attribute__((constructor(99))) void keep_lock_over_fork(void)
{
    if (!__tsan_switch_to_fiber)
        aco__os_at_fork(before_fork, after_fork, after_fork);
}
#endif
