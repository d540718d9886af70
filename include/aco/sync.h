/* More that tasks wait for: a reader-writer lock, a barrier, an event, and code that runs once. Mutex, condition,
 * semaphore and wait group are in aco/scheduler.h; docs/scheduler.md has a table of what other libraries call these.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What aco/scheduler.h says holds here too: all zeros is the initial state, there is nothing to destroy, and everything
 * belongs to one thread. Blocking calls obey scopes and have `_at` and `_until` forms; aco_once() has no `_until`.
 * Tasks that wait for the same thing are served in their order. A call that wakes many tasks lets them run in one
 * round. */
#ifndef ACO_SYNC_H
#define ACO_SYNC_H

#include "scheduler.h"

ACO__BEGIN_C

/* ---- Reader-writer lock: many readers or one writer -------------------------------------------------------------- */

/* Fair: a reader waits behind a waiting writer, so neither kind starves the other. A task that has the lock for reading
 * must not lock it again, not even for reading: if a writer waits in between, both wait for ever. That is not
 * checked. Reports name the writer that has it. Of readers they name three, and count the others; but only count those
 * who have locked it before somebody might ask (aco_tasks_dump_on(), acorn_debug), as notes are not free. */
typedef struct aco_rwlock_s {
    aco_t *writer;  /* NULL: no writer has it. Read-only, like the next */
    size_t readers; /* how many readers have it */
    aco__queue_t aco__waiters;
} aco_rwlock_t;
#define ACO_RWLOCK_INIT {NULL, 0, {NULL, NULL, NULL}}

/* Lock for reading, or for writing. Return 0; on error -1 with errno EDEADLK (the caller has it for writing), EPERM
 * (the caller cannot wait). */
ACO__CALL int aco_rwlock_rdlock_at(aco_rwlock_t *lock, const char *location);
#define aco_rwlock_rdlock(lock) aco_rwlock_rdlock_at(lock, ACO_PLACE)
ACO__CALL int aco_rwlock_rdlock_until_at(aco_rwlock_t *lock, int64_t deadline, const char *location);
#define aco_rwlock_rdlock_until(lock, deadline) aco_rwlock_rdlock_until_at(lock, deadline, ACO_PLACE)
ACO__CALL int aco_rwlock_wrlock_at(aco_rwlock_t *lock, const char *location);
#define aco_rwlock_wrlock(lock) aco_rwlock_wrlock_at(lock, ACO_PLACE)
ACO__CALL int aco_rwlock_wrlock_until_at(aco_rwlock_t *lock, int64_t deadline, const char *location);
#define aco_rwlock_wrlock_until(lock, deadline) aco_rwlock_wrlock_until_at(lock, deadline, ACO_PLACE)
/* Lock without waiting. Return 0; on error -1 with errno EBUSY (it would have to wait), EPERM (the caller is in no
 * task). */
ACO_API int aco_rwlock_try_rdlock(aco_rwlock_t *lock);
ACO_API int aco_rwlock_try_wrlock(aco_rwlock_t *lock);
/* Unlocks what the caller has. Returns 0; on error -1 with errno EPERM (nobody has it, or a writer that is not the
 * caller). */
ACO_API int aco_rwlock_unlock(aco_rwlock_t *lock);

/* ---- Once -------------------------------------------------------------------------------------------------------- */

typedef struct aco_once_s {
    int done;        /* read-only, like the next */
    aco_t *running;  /* the task that runs the function now, or NULL */
    aco__queue_t aco__waiters;
} aco_once_t;
#define ACO_ONCE_INIT {0, NULL, {NULL, NULL, NULL}}

/* Runs fn(arg), unless a call for this `once` has run its function with success. Waits while another task runs its
 * function. `fn` returns 0 for success. If it fails, the caller that has waited longest, or else the next one, runs its
 * own function. `fn` runs in the calling task; it may wait, but must neither throw nor end the task. A task that ends
 * in it keeps `once`, as it would keep a mutex: others wait in vain. Returns 0; on error -1 with errno EDEADLK (`fn`
 * calls this, or a task that ended in it had the caller's address), EPERM (the caller cannot wait), or what `fn` left
 * there if it did not return 0. */
ACO__CALL int aco_once_at(aco_once_t *once, int (*fn)(void *arg), void *arg, const char *location);
#define aco_once(once, fn, arg) aco_once_at(once, fn, arg, ACO_PLACE)

/* ---- Barrier: tasks wait for each other -------------------------------------------------------------------------- */

typedef struct aco_barrier_s {
    size_t count;   /* how many tasks meet, at least 1. Set it before the first use; read-only afterwards */
    size_t arrived; /* read-only */
    aco__queue_t aco__waiters;
} aco_barrier_t;
#define ACO_BARRIER_INIT(count) {count, 0, {NULL, NULL, NULL}}

/* Waits until `count` tasks wait here. Then all go on, and the barrier is as it was at first. A task whose wait fails
 * does not count. Returns 1 to the task that came last, 0 to the others; on error -1 with errno EINVAL (the count is
 * 0), EPERM (the caller cannot wait). */
ACO__CALL int aco_barrier_wait_at(aco_barrier_t *barrier, const char *location);
#define aco_barrier_wait(barrier) aco_barrier_wait_at(barrier, ACO_PLACE)
ACO__CALL int aco_barrier_wait_until_at(aco_barrier_t *barrier, int64_t deadline, const char *location);
#define aco_barrier_wait_until(barrier, deadline) aco_barrier_wait_until_at(barrier, deadline, ACO_PLACE)

/* ---- Event: something that has happened, or not ------------------------------------------------------------------ */

typedef struct aco_event_s {
    int is_set; /* read-only */
    aco__queue_t aco__waiters;
} aco_event_t;
#define ACO_EVENT_INIT {0, {NULL, NULL, NULL}}

/* Sets the event, and wakes all tasks that wait for it. */
ACO_API void aco_event_set(aco_event_t *event);
ACO_API void aco_event_reset(aco_event_t *event);
/* Waits until the event is set. A task that was woken returns 0 even if the event was reset since. Returns 0; on error
 * -1 with errno EPERM (the caller cannot wait). */
ACO__CALL int aco_event_wait_at(aco_event_t *event, const char *location);
#define aco_event_wait(event) aco_event_wait_at(event, ACO_PLACE)
ACO__CALL int aco_event_wait_until_at(aco_event_t *event, int64_t deadline, const char *location);
#define aco_event_wait_until(event, deadline) aco_event_wait_until_at(event, deadline, ACO_PLACE)

ACO__END_C

#include "detail/sync_inline.h"

#endif
