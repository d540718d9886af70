/* Locks and channels between threads: for tasks of any scheduler, and for threads that have none (acorn_threads).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any thread may use these objects, in a task or in its root context. A task waits alone, as with the objects of
 * aco/scheduler.h, which belong to one thread and are faster there. In the root context the thread waits; its tasks do
 * not run meanwhile. Tasks and threads wait in one queue, first come, first served: what becomes free is handed to the
 * one that has waited longest.
 *
 * Scopes and deadlines count for tasks; a deadline also for threads. Waits fail as those of aco/scheduler.h do, with
 * ETIMEDOUT, ECANCELED, or ENOMEM before anything has changed, and what was obtained is never dropped. Waits for these
 * objects are no deadlock: another thread may end them. All zeros is the initial state, except of a channel, and there
 * is nothing to destroy; an object must stay while calls use it. Not for coroutines outside of tasks (EPERM), and not
 * async-signal-safe. In the child of fork(), only objects that no other thread used may be used. */
#ifndef ACO_SHARED_H
#define ACO_SHARED_H

#include "scheduler.h"

ACO__BEGIN_C

typedef struct aco__shared {
    uint32_t lock; /* held for a few instructions */
    struct aco__sharer *first, *last; /* those that wait */
} aco__shared_t;

/* ---- Mutex ------------------------------------------------------------------------------------------------------- */

typedef struct aco_shared_mutex_s {
    aco__shared_t aco__waiters;
    int aco__is_locked;
} aco_shared_mutex_t;

/* Locks the mutex. It does not know its owner: whoever locks it twice waits for ever. 0, or -1 and errno. */
ACO_API int aco_shared_mutex_lock_until_at(aco_shared_mutex_t *mutex, int64_t deadline, const char *location);
#define aco_shared_mutex_lock_until(mutex, deadline) aco_shared_mutex_lock_until_at(mutex, deadline, ACO_PLACE)
#define aco_shared_mutex_lock(mutex) aco_shared_mutex_lock_until_at(mutex, ACO_FOREVER, ACO_PLACE)
/* 0, or -1 and errno EBUSY. */
ACO_API int aco_shared_mutex_trylock(aco_shared_mutex_t *mutex);
/* Any task or thread may unlock it. 0, or -1 and errno EPERM (it is not locked). */
ACO_API int aco_shared_mutex_unlock(aco_shared_mutex_t *mutex);

/* ---- Semaphore --------------------------------------------------------------------------------------------------- */

typedef struct aco_shared_semaphore_s {
    aco__shared_t aco__waiters;
    size_t aco__value;
} aco_shared_semaphore_t;
#define ACO_SHARED_SEMAPHORE_INIT(value) {{0, NULL, NULL}, value}

/* Takes a unit; waits while none is free. 0, or -1 and errno. */
ACO_API int aco_shared_semaphore_acquire_until_at(aco_shared_semaphore_t *semaphore, int64_t deadline,
                                                  const char *location);
#define aco_shared_semaphore_acquire_until(semaphore, deadline)                                                        \
    aco_shared_semaphore_acquire_until_at(semaphore, deadline, ACO_PLACE)
#define aco_shared_semaphore_acquire(semaphore)                                                                        \
    aco_shared_semaphore_acquire_until_at(semaphore, ACO_FOREVER, ACO_PLACE)
/* 0, or -1 and errno EAGAIN. */
ACO_API int aco_shared_semaphore_try_acquire(aco_shared_semaphore_t *semaphore);
ACO_API void aco_shared_semaphore_release(aco_shared_semaphore_t *semaphore);

/* ---- Event ------------------------------------------------------------------------------------------------------- */

/* Something that has happened, or not yet. */
typedef struct aco_shared_event_s {
    aco__shared_t aco__waiters;
    int aco__is_set;
} aco_shared_event_t;

/* Sets it: all that wait go on, and later waits return at once, until it is reset. */
ACO_API void aco_shared_event_set(aco_shared_event_t *event);
ACO_API void aco_shared_event_reset(aco_shared_event_t *event);
/* Waits until it is set. 0, or -1 and errno. */
ACO_API int aco_shared_event_wait_until_at(aco_shared_event_t *event, int64_t deadline, const char *location);
#define aco_shared_event_wait_until(event, deadline) aco_shared_event_wait_until_at(event, deadline, ACO_PLACE)
#define aco_shared_event_wait(event) aco_shared_event_wait_until_at(event, ACO_FOREVER, ACO_PLACE)

/* ---- Channel ----------------------------------------------------------------------------------------------------- */

/* As aco_channel_t, from any threads to any threads. */
typedef struct aco_shared_channel_s aco_shared_channel_t;

#define ACO_UNBOUNDED SIZE_MAX /* as a capacity: sending never waits, and fails with ENOMEM without memory */

/* NULL and errno EINVAL (too large), ENOMEM. */
ACO_API aco_shared_channel_t *aco_shared_channel_new(size_t capacity, size_t element_size);
/* Nobody may use the channel any more. NULL: nothing happens. */
ACO_API void aco_shared_channel_destroy(aco_shared_channel_t *channel);
/* 0, or -1 and errno EINVAL (NULL), EPIPE (closed before). */
ACO_API int aco_shared_channel_close(aco_shared_channel_t *channel);
/* 0, or -1 and errno: EPIPE (closed; for a receiver, and empty), EINVAL (NULL, or the element is on a share stack on
 * which the caller runs), those of waits. Elements as for aco_channel_send() and aco_channel_receive(). */
ACO_API int aco_shared_channel_send_until_at(aco_shared_channel_t *channel, const void *element, int64_t deadline,
                                             const char *location);
#define aco_shared_channel_send_until(channel, element, deadline)                                                      \
    aco_shared_channel_send_until_at(channel, element, deadline, ACO_PLACE)
#define aco_shared_channel_send(channel, element)                                                                      \
    aco_shared_channel_send_until_at(channel, element, ACO_FOREVER, ACO_PLACE)
ACO_API int aco_shared_channel_receive_until_at(aco_shared_channel_t *channel, void *element, int64_t deadline,
                                                const char *location);
#define aco_shared_channel_receive_until(channel, element, deadline)                                                   \
    aco_shared_channel_receive_until_at(channel, element, deadline, ACO_PLACE)
#define aco_shared_channel_receive(channel, element)                                                                   \
    aco_shared_channel_receive_until_at(channel, element, ACO_FOREVER, ACO_PLACE)
/* The same without waiting: also EAGAIN. */
ACO_API int aco_shared_channel_try_send(aco_shared_channel_t *channel, const void *element);
ACO_API int aco_shared_channel_try_receive(aco_shared_channel_t *channel, void *element);

ACO__END_C

#endif
