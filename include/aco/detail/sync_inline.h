/* Part of <aco/sync.h>: the bodies of its inline calls. */
#ifndef ACO_DETAIL_SYNC_INLINE_H
#define ACO_DETAIL_SYNC_INLINE_H

ACO__BEGIN_C

/* As aco__mutex_trylock_or_back_off(), for reading or for writing. */
ACO_API int aco__rwlock_trylock_or_back_off(aco_rwlock_t *lock, int writes);

#ifndef ACO_CONFIG_NO_INLINE

/* First halves, as in scheduler_inline.h. */
ACO_API int aco__rwlock_lock(aco_rwlock_t *lock, int writes, aco__wait_t *wait, const char *location);
ACO_API int aco__barrier_wait(aco_barrier_t *barrier, aco__wait_t *wait, const char *location);
ACO_API int aco__event_wait(aco_event_t *event, aco__wait_t *wait, const char *location);
/* 0: the caller shall run the function and then call aco__once_leave(). 1: it was run with success. */
ACO_API int aco__once_enter(aco_once_t *once, aco__wait_t *wait, const char *location);
ACO_API int aco__once_leave(aco_once_t *once, int result);

ACO__WAITS(aco_rwlock_rdlock, (aco_rwlock_t *lock),
           (aco__uses_debug(&lock->aco__waiters, lock, "aco_rwlock_rdlock"),
            aco__rwlock_lock(lock, 0, &wait, location)))
ACO__WAITS(aco_rwlock_wrlock, (aco_rwlock_t *lock),
           (aco__uses_debug(&lock->aco__waiters, lock, "aco_rwlock_wrlock"),
            aco__rwlock_lock(lock, 1, &wait, location)))
ACO__WAITS(aco_barrier_wait, (aco_barrier_t *barrier),
           (aco__uses_debug(&barrier->aco__waiters, barrier, "aco_barrier_wait"),
            aco__barrier_wait(barrier, &wait, location)))
ACO__WAITS(aco_event_wait, (aco_event_t *event),
           (aco__uses_debug(&event->aco__waiters, event, "aco_event_wait"),
            aco__event_wait(event, &wait, location)))

ACO__FORCE_INLINE int ACO__BODY_OF(aco_once_at)(aco_once_t *once, int (*fn)(void *arg), void *arg,
                                                const char *location)
{
    aco__wait_t wait;
    int entered;
    if (aco_likely(once->done))
        return 0;
    aco__uses_debug(&once->aco__waiters, once, "aco_once");
    do { /* again, after another task has run its function */
        entered = aco__once_enter(once, &wait, location);
        if (entered == 0)
            return aco__once_leave(once, fn(arg));
        entered = aco__wait_end(entered, &wait);
    } while (entered == 0);
    return entered > 0 ? 0 : -1;
}

#endif

ACO__END_C

#endif
