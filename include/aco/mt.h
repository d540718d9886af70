/* Locks, channels and other objects between threads: for tasks of any scheduler, and for threads that have none
 * (library acorn_threads). C++: aco/threads.hpp.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Threads. Any thread may use these objects, in a task or in its root context. A task that waits lets the other tasks
 * of its thread run, as with the objects of aco/scheduler.h; those belong to one thread and are faster there. In the
 * root context the whole thread waits: its tasks do not run meanwhile, and pthread_cancel() does not end the wait. A
 * coroutine outside all tasks may not wait (EPERM), nor may what cannot wait in a task (aco/scheduler.h). No call is
 * async-signal-safe. No pointer may be NULL unless its text says so.
 *
 * Order. Tasks and threads wait in one queue, first come, first served: what becomes free is handed to the one that has
 * waited longest.
 *
 * Failing. Scopes and deadlines end the waits of tasks; deadlines also end the waits of threads. A wait fails as in
 * aco/scheduler.h, with ETIMEDOUT, ECANCELED, or ENOMEM before anything has changed; the contracts below do not repeat
 * these, nor EPERM. Deadlines are on the clock of aco_now(). What a waiter was handed is never dropped. Waits for these
 * objects are no deadlock: another thread may end them. Reports say what kind of object a task waits for, not who has
 * it, because most of these objects do not know that.
 *
 * Memory. All zeros is the initial state, except of a channel, and there is nothing to destroy. An object must stay
 * while calls use it. In the child of fork(), only objects that no other thread used may be used. */
#ifndef ACO_MT_H
#define ACO_MT_H

#include "scheduler.h"

ACO__BEGIN_C

typedef struct aco__mt_place { /* of one waiter */
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

/* Locks the mutex; waits while it is locked. The mutex does not know its owner: whoever locks it twice waits for ever.
 * Returns 0; on error -1 with errno. */
ACO_API int aco_mt_mutex_lock_until_at(aco_mt_mutex_t *mutex, int64_t deadline, const char *location);
#define aco_mt_mutex_lock_until(mutex, deadline) aco_mt_mutex_lock_until_at(mutex, deadline, ACO_PLACE)
#define aco_mt_mutex_lock(mutex) aco_mt_mutex_lock_until_at(mutex, ACO_FOREVER, ACO_PLACE)
/* Locks the mutex if it is free. Returns 0; on error -1 with errno EBUSY (it is locked). */
ACO_API int aco_mt_mutex_try_lock(aco_mt_mutex_t *mutex);
/* Unlocks the mutex; any task or thread may do that. Returns 0; on error -1 with errno EPERM (it is not locked). */
ACO_API int aco_mt_mutex_unlock(aco_mt_mutex_t *mutex);

/* ---- Condition --------------------------------------------------------------------------------------------------- */

typedef struct aco_mt_cond_s {
    aco__mt_t aco__waiters;
} aco_mt_cond_t;

/* Unlocks `mutex`, which the caller has locked, waits to be woken, and locks it again, as aco_cond_wait() does. The
 * mutex is locked again however the wait ends, and nothing ends the wait for it. Returns 0; on error -1 with errno
 * EPERM (the mutex is not locked, or the caller cannot wait: then nothing has changed), ETIMEDOUT, ECANCELED, ENOMEM
 * (after these three, others may have had the mutex meanwhile). */
ACO_API int aco_mt_cond_wait_until_at(aco_mt_cond_t *cond, aco_mt_mutex_t *mutex, int64_t deadline,
                                      const char *location);
#define aco_mt_cond_wait_until(cond, mutex, deadline)                                                                  \
    aco_mt_cond_wait_until_at(cond, mutex, deadline, ACO_PLACE)
#define aco_mt_cond_wait(cond, mutex) aco_mt_cond_wait_until_at(cond, mutex, ACO_FOREVER, ACO_PLACE)
/* Wakes the one that has waited longest, or all. The woken ones queue for the mutex. A broadcast puts the tasks of one
 * thread next to each other in that queue: they run in one round of their thread's queue, unless one of them waits with
 * the mutex locked. */
ACO_API void aco_mt_cond_signal(aco_mt_cond_t *cond);
ACO_API void aco_mt_cond_broadcast(aco_mt_cond_t *cond);

/* ---- Reader-writer lock: many readers or one writer -------------------------------------------------------------- */

/* Fair, like aco_rwlock_t: a reader waits behind a writer that waits. The lock does not know its owners. */
typedef struct aco_mt_rwlock_s {
    aco__mt_t aco__waiters;
    int aco__is_writing;
    size_t aco__readers;
} aco_mt_rwlock_t;

/* Locks for reading, or for writing; waits until that is possible. Returns 0; on error -1 with errno. */
ACO_API int aco_mt_rwlock_rdlock_until_at(aco_mt_rwlock_t *lock, int64_t deadline, const char *location);
#define aco_mt_rwlock_rdlock_until(lock, deadline) aco_mt_rwlock_rdlock_until_at(lock, deadline, ACO_PLACE)
#define aco_mt_rwlock_rdlock(lock) aco_mt_rwlock_rdlock_until_at(lock, ACO_FOREVER, ACO_PLACE)
ACO_API int aco_mt_rwlock_wrlock_until_at(aco_mt_rwlock_t *lock, int64_t deadline, const char *location);
#define aco_mt_rwlock_wrlock_until(lock, deadline) aco_mt_rwlock_wrlock_until_at(lock, deadline, ACO_PLACE)
#define aco_mt_rwlock_wrlock(lock) aco_mt_rwlock_wrlock_until_at(lock, ACO_FOREVER, ACO_PLACE)
/* Locks without waiting. Returns 0; on error -1 with errno EBUSY (it would have to wait). */
ACO_API int aco_mt_rwlock_try_rdlock(aco_mt_rwlock_t *lock);
ACO_API int aco_mt_rwlock_try_wrlock(aco_mt_rwlock_t *lock);
/* Unlocks for the writer or for one reader; any task or thread may do that. Returns 0; on error -1 with errno EPERM
 * (nobody has it). */
ACO_API int aco_mt_rwlock_unlock(aco_mt_rwlock_t *lock);

/* ---- Semaphore --------------------------------------------------------------------------------------------------- */

typedef struct aco_mt_semaphore_s {
    aco__mt_t aco__waiters;
    size_t aco__value;
} aco_mt_semaphore_t;
#define ACO_MT_SEMAPHORE_INIT(value) {{0, NULL, NULL}, value}

/* Takes a unit; waits while none is free. Returns 0; on error -1 with errno. */
ACO_API int aco_mt_semaphore_acquire_until_at(aco_mt_semaphore_t *semaphore, int64_t deadline,
                                              const char *location);
#define aco_mt_semaphore_acquire_until(semaphore, deadline)                                                            \
    aco_mt_semaphore_acquire_until_at(semaphore, deadline, ACO_PLACE)
#define aco_mt_semaphore_acquire(semaphore)                                                                            \
    aco_mt_semaphore_acquire_until_at(semaphore, ACO_FOREVER, ACO_PLACE)
/* Takes a unit without waiting. Returns 0; on error -1 with errno EAGAIN (none is free). */
ACO_API int aco_mt_semaphore_try_acquire(aco_mt_semaphore_t *semaphore);
/* Gives a unit back, or a further one; any task or thread may do that. */
ACO_API void aco_mt_semaphore_release(aco_mt_semaphore_t *semaphore);

/* ---- Wait group -------------------------------------------------------------------------------------------------- */

typedef struct aco_mt_wait_group_s {
    aco__mt_t aco__waiters;
    size_t aco__count;
} aco_mt_wait_group_t;

/* Adds `n`, which may be negative, to the count. At zero all waiters go on. Returns 0; on error -1 with errno ERANGE
 * (the count would be less than zero, or too large: it stays as it was). */
ACO_API int aco_mt_wait_group_add(aco_mt_wait_group_t *group, ptrdiff_t n);
/* The same as aco_mt_wait_group_add(group, -1). */
ACO_API int aco_mt_wait_group_done(aco_mt_wait_group_t *group);
/* Waits until the count is zero. Returns 0; on error -1 with errno. */
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

/* Sets the event: all waiters go on, and later waits return at once, until it is reset. */
ACO_API void aco_mt_event_set(aco_mt_event_t *event);
/* Resets the event: later waits wait. */
ACO_API void aco_mt_event_reset(aco_mt_event_t *event);
/* Waits until the event is set. Returns 0; on error -1 with errno. */
ACO_API int aco_mt_event_wait_until_at(aco_mt_event_t *event, int64_t deadline, const char *location);
#define aco_mt_event_wait_until(event, deadline) aco_mt_event_wait_until_at(event, deadline, ACO_PLACE)
#define aco_mt_event_wait(event) aco_mt_event_wait_until_at(event, ACO_FOREVER, ACO_PLACE)

/* ---- Once -------------------------------------------------------------------------------------------------------- */

typedef struct aco_mt_once_s {
    aco__mt_t aco__waiters;
    int done; /* atomic, read-only */
    const void *aco__runner;
} aco_mt_once_t;

/* Runs fn(arg), unless an earlier call for this `once` has run its function with success. While another task or thread
 * runs its function, the call waits; the deadline limits only this wait. `fn` returns 0 for success. If it does not,
 * the one that has waited longest runs its own function, or else the next caller does. `fn` runs in the calling task or
 * thread, on its stack. It may wait; it must neither throw nor end the task or thread, which would keep `once`
 * (aco_once()). Returns 0; on error -1 with the errno that `fn` left if it did not return 0, or EDEADLK (`fn` calls
 * this). */
ACO_API int aco_mt_once_until_at(aco_mt_once_t *once, int (*fn)(void *arg), void *arg, int64_t deadline,
                                 const char *location);
#define aco_mt_once_until(once, fn, arg, deadline) aco_mt_once_until_at(once, fn, arg, deadline, ACO_PLACE)
#define aco_mt_once(once, fn, arg) aco_mt_once_until_at(once, fn, arg, ACO_FOREVER, ACO_PLACE)

/* ---- Channel ----------------------------------------------------------------------------------------------------- */

/* A channel like aco_channel_t, from any threads to any threads. */
typedef struct aco_mt_channel_s aco_mt_channel_t;

#define ACO_UNBOUNDED SIZE_MAX /* as a capacity: sending never waits */

/* Makes a channel; the arguments are those of aco_channel_new(). The memory for elements grows as they are sent. The
 * caller owns the channel. Returns it; on error NULL with errno EINVAL (too large), ENOMEM. */
ACO_API aco_mt_channel_t *aco_mt_channel_new(size_t capacity, size_t element_size);
/* Frees the channel and the elements in it. Nobody may use the channel any more. NULL: nothing happens. */
ACO_API void aco_mt_channel_destroy(aco_mt_channel_t *channel);
/* Closes the channel, as aco_channel_close() does. Returns 0; on error -1 with errno EINVAL (NULL), EPIPE (closed
 * before). */
ACO_API int aco_mt_channel_close(aco_mt_channel_t *channel);
/* Send and receive elements as aco_channel_send() and aco_channel_receive() do. Return 0; on error -1 with errno EPIPE
 * (closed; for a receiver, closed and empty), EINVAL (the channel is NULL, or the element to send is; the element is on
 * a share stack on which the caller runs), ENOMEM (also: for one more element; nothing was sent), or that of a failed
 * wait. */
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
/* Send and receive without waiting. Return 0; on error -1 with errno as above, but EAGAIN where those calls wait. */
ACO_API int aco_mt_channel_try_send(aco_mt_channel_t *channel, const void *element);
ACO_API int aco_mt_channel_try_receive(aco_mt_channel_t *channel, void *element);

/* ---- Select ------------------------------------------------------------------------------------------------------ */

/* One of the operations that aco_mt_select() chooses from: on a channel between threads, or on a channel of the calling
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

/* Does one of the `n` cases: the first that is ready; each call starts its search at another case. Waits and returns as
 * aco_select() does. The cases must stay as they are until the call returns, and must not be on a share stack (EINVAL).
 * A thread outside tasks may call it only if all channels are channels between threads (EPERM). If a channel has no
 * memory for one more element (ENOMEM), nothing was done. The time of a call grows with the square of `n`. A channel in
 * `local` is a little slower from then on. */
ACO_API int aco_mt_select_until_at(aco_mt_select_case_t *cases, int n, int64_t deadline, const char *location);
#define aco_mt_select_until(cases, n, deadline) aco_mt_select_until_at(cases, n, deadline, ACO_PLACE)
#define aco_mt_select(cases, n) aco_mt_select_until_at(cases, n, ACO_FOREVER, ACO_PLACE)
/* Does one of the cases as aco_mt_select() does, but without waiting. Any thread may call it. Returns the index of the
 * case; on error -1 with errno EAGAIN (no case is ready), EINVAL, ENOMEM. */
ACO_API int aco_mt_try_select(aco_mt_select_case_t *cases, int n);

ACO__END_C

#endif
