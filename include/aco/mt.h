/* Locks, channels and the like between threads: for tasks of any scheduler, and for threads that have none
 * (acorn_threads). C++: aco/threads.hpp.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any thread may use these objects, in a task or in its root context. A task waits alone, as with the objects of
 * aco/scheduler.h, which belong to one thread and are faster there. In the root context the thread waits, also if
 * pthread_cancel() is called for it; its tasks do not run meanwhile. Tasks and threads wait in one queue, first come,
 * first served: what becomes free is handed to the one that has waited longest.
 *
 * Scopes and deadlines count for tasks; a deadline also for threads. Waits fail as those of aco/scheduler.h do, with
 * ETIMEDOUT, ECANCELED, or ENOMEM before anything has changed, and what was obtained is never dropped. Waits for these
 * objects are no deadlock: another thread may end them. All zeros is the initial state, except of a channel, and there
 * is nothing to destroy; an object must stay while calls use it. Not for coroutines outside of tasks (EPERM), and not
 * async-signal-safe. In the child of fork(), only objects that no other thread used may be used. */
#ifndef ACO_MT_H
#define ACO_MT_H

#include "scheduler.h"

ACO__BEGIN_C

typedef struct aco__mt_place { /* of one that waits */
    struct aco__mt_place *next, *previous;
    struct aco__mt_waiter *waiter;
    void *element;
    int is_queued;
} aco__mt_place_t;

typedef struct aco__mt {
    uint32_t lock; /* held for a few instructions */
    aco__mt_place_t *first, *last;
} aco__mt_t;

/* ---- Mutex ------------------------------------------------------------------------------------------------------- */

typedef struct aco_mt_mutex_s {
    aco__mt_t aco__waiters;
    int aco__is_locked;
} aco_mt_mutex_t;

/* Locks the mutex. It does not know its owner: whoever locks it twice waits for ever. 0, or -1 and errno. */
ACO_API int aco_mt_mutex_lock_until_at(aco_mt_mutex_t *mutex, int64_t deadline, const char *location);
#define aco_mt_mutex_lock_until(mutex, deadline) aco_mt_mutex_lock_until_at(mutex, deadline, ACO_PLACE)
#define aco_mt_mutex_lock(mutex) aco_mt_mutex_lock_until_at(mutex, ACO_FOREVER, ACO_PLACE)
/* 0, or -1 and errno EBUSY. */
ACO_API int aco_mt_mutex_try_lock(aco_mt_mutex_t *mutex);
/* Any task or thread may unlock it. 0, or -1 and errno EPERM (it is not locked). */
ACO_API int aco_mt_mutex_unlock(aco_mt_mutex_t *mutex);

/* ---- Condition --------------------------------------------------------------------------------------------------- */

typedef struct aco_mt_cond_s {
    aco__mt_t aco__waiters;
} aco_mt_cond_t;

/* As aco_cond_wait(), with a mutex that the caller has locked. Whatever ends the wait, the mutex is locked again then:
 * nothing ends the wait for that. 0; or -1 and errno: EPERM (the mutex is not locked, or the caller cannot wait), and
 * ENOMEM on a share stack: then it was never unlocked. */
ACO_API int aco_mt_cond_wait_until_at(aco_mt_cond_t *cond, aco_mt_mutex_t *mutex, int64_t deadline,
                                      const char *location);
#define aco_mt_cond_wait_until(cond, mutex, deadline)                                                                  \
    aco_mt_cond_wait_until_at(cond, mutex, deadline, ACO_PLACE)
#define aco_mt_cond_wait(cond, mutex) aco_mt_cond_wait_until_at(cond, mutex, ACO_FOREVER, ACO_PLACE)
/* Wakes the one that has waited longest, or all. Those that are woken queue for the mutex; of a broadcast, those of one
 * thread behind each other: they run in one round of its queue, unless one of them waits with the mutex locked. */
ACO_API void aco_mt_cond_signal(aco_mt_cond_t *cond);
ACO_API void aco_mt_cond_broadcast(aco_mt_cond_t *cond);

/* ---- Reader-writer lock: many readers or one writer -------------------------------------------------------------- */

/* Fair, as aco_rwlock_t: a reader waits behind a writer that waits. It does not know its owners. */
typedef struct aco_mt_rwlock_s {
    aco__mt_t aco__waiters;
    int aco__is_writing;
    size_t aco__readers;
} aco_mt_rwlock_t;

/* Locks for reading, or for writing. 0, or -1 and errno. */
ACO_API int aco_mt_rwlock_rdlock_until_at(aco_mt_rwlock_t *lock, int64_t deadline, const char *location);
#define aco_mt_rwlock_rdlock_until(lock, deadline) aco_mt_rwlock_rdlock_until_at(lock, deadline, ACO_PLACE)
#define aco_mt_rwlock_rdlock(lock) aco_mt_rwlock_rdlock_until_at(lock, ACO_FOREVER, ACO_PLACE)
ACO_API int aco_mt_rwlock_wrlock_until_at(aco_mt_rwlock_t *lock, int64_t deadline, const char *location);
#define aco_mt_rwlock_wrlock_until(lock, deadline) aco_mt_rwlock_wrlock_until_at(lock, deadline, ACO_PLACE)
#define aco_mt_rwlock_wrlock(lock) aco_mt_rwlock_wrlock_until_at(lock, ACO_FOREVER, ACO_PLACE)
/* 0, or -1 and errno EBUSY. */
ACO_API int aco_mt_rwlock_try_rdlock(aco_mt_rwlock_t *lock);
ACO_API int aco_mt_rwlock_try_wrlock(aco_mt_rwlock_t *lock);
/* Any task or thread may unlock it, for the writer or for one reader. 0, or -1 and errno EPERM (nobody has it). */
ACO_API int aco_mt_rwlock_unlock(aco_mt_rwlock_t *lock);

/* ---- Semaphore --------------------------------------------------------------------------------------------------- */

typedef struct aco_mt_semaphore_s {
    aco__mt_t aco__waiters;
    size_t aco__value;
} aco_mt_semaphore_t;
#define ACO_MT_SEMAPHORE_INIT(value) {{0, NULL, NULL}, value}

/* Takes a unit; waits while none is free. 0, or -1 and errno. */
ACO_API int aco_mt_semaphore_acquire_until_at(aco_mt_semaphore_t *semaphore, int64_t deadline,
                                              const char *location);
#define aco_mt_semaphore_acquire_until(semaphore, deadline)                                                            \
    aco_mt_semaphore_acquire_until_at(semaphore, deadline, ACO_PLACE)
#define aco_mt_semaphore_acquire(semaphore)                                                                            \
    aco_mt_semaphore_acquire_until_at(semaphore, ACO_FOREVER, ACO_PLACE)
/* 0, or -1 and errno EAGAIN. */
ACO_API int aco_mt_semaphore_try_acquire(aco_mt_semaphore_t *semaphore);
ACO_API void aco_mt_semaphore_release(aco_mt_semaphore_t *semaphore);

/* ---- Wait group -------------------------------------------------------------------------------------------------- */

typedef struct aco_mt_wait_group_s {
    aco__mt_t aco__waiters;
    size_t aco__count;
} aco_mt_wait_group_t;

/* Adds `n`, which may be negative, to the count; at zero all that wait go on. 0, or -1 and errno ERANGE (the count
 * would be less than zero, or too large). */
ACO_API int aco_mt_wait_group_add(aco_mt_wait_group_t *group, ptrdiff_t n);
/* aco_mt_wait_group_add(group, -1) */
ACO_API int aco_mt_wait_group_done(aco_mt_wait_group_t *group);
/* Waits until the count is zero. 0, or -1 and errno. */
ACO_API int aco_mt_wait_group_wait_until_at(aco_mt_wait_group_t *group, int64_t deadline,
                                            const char *location);
#define aco_mt_wait_group_wait_until(group, deadline)                                                                  \
    aco_mt_wait_group_wait_until_at(group, deadline, ACO_PLACE)
#define aco_mt_wait_group_wait(group) aco_mt_wait_group_wait_until_at(group, ACO_FOREVER, ACO_PLACE)

/* ---- Event ------------------------------------------------------------------------------------------------------- */

/* Something that has happened, or not yet. */
typedef struct aco_mt_event_s {
    aco__mt_t aco__waiters;
    int aco__is_set;
} aco_mt_event_t;

/* Sets it: all that wait go on, and later waits return at once, until it is reset. */
ACO_API void aco_mt_event_set(aco_mt_event_t *event);
ACO_API void aco_mt_event_reset(aco_mt_event_t *event);
/* Waits until it is set. 0, or -1 and errno. */
ACO_API int aco_mt_event_wait_until_at(aco_mt_event_t *event, int64_t deadline, const char *location);
#define aco_mt_event_wait_until(event, deadline) aco_mt_event_wait_until_at(event, deadline, ACO_PLACE)
#define aco_mt_event_wait(event) aco_mt_event_wait_until_at(event, ACO_FOREVER, ACO_PLACE)

/* ---- Once -------------------------------------------------------------------------------------------------------- */

typedef struct aco_mt_once_s {
    aco__mt_t aco__waiters;
    int done; /* atomic, read-only */
    const void *aco__runner;
} aco_mt_once_t;

/* Runs fn(arg), unless a call for this `once` has run its function with success. Waits while another task or thread
 * runs it; the deadline is for that wait. `fn` returns 0 for success; else the one that has waited longest, or the next
 * caller, runs its own. It may wait; it must neither throw nor end the task. 0; or -1 and errno: what `fn` left there
 * if it did not return 0; EDEADLK (`fn` calls this). */
ACO_API int aco_mt_once_until_at(aco_mt_once_t *once, int (*fn)(void *arg), void *arg, int64_t deadline,
                                 const char *location);
#define aco_mt_once_until(once, fn, arg, deadline) aco_mt_once_until_at(once, fn, arg, deadline, ACO_PLACE)
#define aco_mt_once(once, fn, arg) aco_mt_once_until_at(once, fn, arg, ACO_FOREVER, ACO_PLACE)

/* ---- Channel ----------------------------------------------------------------------------------------------------- */

/* As aco_channel_t, from any threads to any threads. */
typedef struct aco_mt_channel_s aco_mt_channel_t;

#define ACO_UNBOUNDED SIZE_MAX /* as a capacity: sending never waits, and fails with ENOMEM without memory */

/* NULL and errno EINVAL (too large), ENOMEM. */
ACO_API aco_mt_channel_t *aco_mt_channel_new(size_t capacity, size_t element_size);
/* Nobody may use the channel any more. NULL: nothing happens. */
ACO_API void aco_mt_channel_destroy(aco_mt_channel_t *channel);
/* 0, or -1 and errno EINVAL (NULL), EPIPE (closed before). */
ACO_API int aco_mt_channel_close(aco_mt_channel_t *channel);
/* 0, or -1 and errno: EPIPE (closed; for a receiver, and empty), EINVAL (NULL, or the element is on a share stack on
 * which the caller runs), those of waits. Elements as for aco_channel_send() and aco_channel_receive(). */
ACO_API int aco_mt_channel_send_until_at(aco_mt_channel_t *channel, const void *element, int64_t deadline,
                                         const char *location);
#define aco_mt_channel_send_until(channel, element, deadline)                                                          \
    aco_mt_channel_send_until_at(channel, element, deadline, ACO_PLACE)
#define aco_mt_channel_send(channel, element)                                                                          \
    aco_mt_channel_send_until_at(channel, element, ACO_FOREVER, ACO_PLACE)
ACO_API int aco_mt_channel_receive_until_at(aco_mt_channel_t *channel, void *element, int64_t deadline,
                                            const char *location);
#define aco_mt_channel_receive_until(channel, element, deadline)                                                       \
    aco_mt_channel_receive_until_at(channel, element, deadline, ACO_PLACE)
#define aco_mt_channel_receive(channel, element)                                                                       \
    aco_mt_channel_receive_until_at(channel, element, ACO_FOREVER, ACO_PLACE)
/* The same without waiting: also EAGAIN. */
ACO_API int aco_mt_channel_try_send(aco_mt_channel_t *channel, const void *element);
ACO_API int aco_mt_channel_try_receive(aco_mt_channel_t *channel, void *element);

/* ---- Select ------------------------------------------------------------------------------------------------------ */

/* One of the operations that aco_mt_select() chooses from: on a channel between threads, or on one of the calling
 * task's thread. */
typedef struct aco_mt_select_case_s {
    aco_mt_channel_t *channel; /* NULL: `local` counts */
    void *element;                 /* to send from, or receive into, as in aco_select_case_t */
    aco_select_operation_t operation;
    int error;                     /* of the chosen case: 0, or EPIPE: the channel is closed, nothing was done */
    aco_channel_t *local;          /* NULL, and no `channel`: never ready. With `channel`: EINVAL */
    struct aco_mt_select_case_s *aco__next;
    aco__mt_place_t aco__place;
    aco__waiter_t aco__waiter;
} aco_mt_select_case_t;

/* As aco_select(): does one of the `n` cases, the first that is ready, beginning its search at another one each time.
 * The cases must stay as they are until it returns, and must not be on a share stack (EINVAL). Without waiting
 * (timeout_ns 0) any thread may call it, else a task; or a thread, if all are channels between threads (EPERM). Its
 * time grows with the square of `n`. A channel in `local` is a little slower from then on. ENOMEM of an unbounded
 * channel: nothing was done. */
ACO_API int aco_mt_select_at(aco_mt_select_case_t *cases, int n, int64_t timeout_ns, const char *location);
#define aco_mt_select(cases, n, timeout_ns) aco_mt_select_at(cases, n, timeout_ns, ACO_PLACE)
ACO_API int aco_mt_select_until_at(aco_mt_select_case_t *cases, int n, int64_t deadline, const char *location);
#define aco_mt_select_until(cases, n, deadline) aco_mt_select_until_at(cases, n, deadline, ACO_PLACE)

ACO__END_C

#endif
