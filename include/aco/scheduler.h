/* A scheduler: coroutines that take turns and wait for each other, as tasks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static void *greet(void *name)
 *   {
 *       for (int i = 0; i < 3; i++) {
 *           printf("%s\n", (char *)name);
 *           aco_task_yield();
 *       }
 *       return NULL;
 *   }
 *   ...
 *   aco_options_t detached = {0};
 *   detached.flags = ACO_DETACHED;
 *   aco_spawn(greet, "hello", &detached);
 *   aco_spawn(greet, "world", &detached);
 *   if (aco_run() != 0)
 *       error(aco_error_message());
 *
 * Each thread has a scheduler, made when it spawns its first task. A task is a coroutine on a private stack, of the type
 * aco_t; names, slots, coroutine-local storage, aco_defer(), aco_exit() and aco_state() are for tasks too. The scheduler alone
 * resumes it: aco_resume(), aco_send(), aco_yield_to(), aco_cancel(), aco_restart() and aco_destroy() are refused with EPERM or,
 * as each does with errors, abort. A task may make, resume and destroy ordinary coroutines. When it has ended, it is an ordinary
 * coroutine that is done until it is joined.
 *
 * Order. Tasks that can run stand in one queue, first come, first served: aco_run() runs the first one until it yields, waits or
 * ends. Who yields goes to the end of the queue; so does a new task, and one that is woken, each as that happens. What wakes
 * a task does not switch to it. Of those who wait for the same thing the one that came first is woken first, and gets what it
 * waited for at that moment: a mutex, a unit of a semaphore and a value of a channel are handed over, nobody can
 * come between. A task that never yields nor waits lets no other one run.
 *
 * Waiting. aco_join(), aco_park(), aco_sleep(), locking a mutex and the like stop the calling task only. They must be called by
 * a task itself, not by the thread's own flow of control, by a coroutine that a task resumed, or in a cleanup (aco_defer()):
 * EPERM. What does not wait may be called by all of these, but for a mutex, which a task owns. What can wait has a form with the
 * suffix _at, which takes the place to name in a report of a deadlock, a string that stays; the plain form is a macro that gives
 * the file and line where it stands.
 *
 * Deadlock: no task can run, none sleeps, and there is no idle hook that something could come from. aco_run() then prints a
 * line for each waiting task that says where it waits and for what, and fails.
 *
 * Threads. Tasks, and all objects below, belong to the thread that made them, and no other may use them. What other threads
 * have to say comes in by an idle hook.
 *
 * Floating point. Tasks share the thread's environment (rounding and so on) unless spawned with ACO_OWN_FP. As long as a task
 * with an environment of its own lives, switching between any of the thread's tasks costs several times more. The same goes
 * for ACO_OWN_EXCEPTIONS, and for sanitizers. A unit compiled with ACO_CONFIG_SHARE_FPU_MXCSR_ENV may spawn such tasks, but they
 * must not call its plain aco_yield().
 *
 * Errors are those of aco.h: -1 or NULL, errno, and aco_error_message(). Answers that a program asked for leave no message:
 * EAGAIN, EBUSY of aco_mutex_trylock(), ETIMEDOUT, and EPIPE of a closed channel. */
#ifndef ACO_SCHEDULER_H
#define ACO_SCHEDULER_H

#ifndef ACO_H
#include "../aco.h"
#endif
#include "switching.h"

/* As ACO__FAST in aco.h; the unit that has the exported forms is src/scheduler.c. */
#if defined(ACO_CONFIG_NO_INLINE)
#define ACO__TASK_CALL ACO_API
#elif !defined(ACO__TASK_CALL)
#define ACO__TASK_CALL static inline __attribute__((always_inline, unused))
#endif

#define ACO__TEXT_OF_(x) #x
#define ACO__TEXT_OF(x) ACO__TEXT_OF_(x)
#define ACO_PLACE (__FILE__ ":" ACO__TEXT_OF(__LINE__)) /* what the plain forms pass as `place` */

#ifdef __cplusplus
extern "C" {
#endif

/* A place in a queue of those who wait, and the queue. On the waiting task's stack. */
typedef struct aco__waiter {
    struct aco__waiter *next, *previous;
    struct aco__queue *queue;  /* NULL: in none */
    struct aco__wait *wait;
    struct aco__waiter *other; /* the next one of the same wait */
    void *element;             /* what a channel takes, or where it puts what it gives */
} aco__waiter_t;

typedef struct aco__queue {
    aco__waiter_t *first, *last;
} aco__queue_t;

/* ---- Tasks ------------------------------------------------------------------------------------------------------------- */

/* A new task, which is to run fn(arg), at the end of the queue. `opts` as for aco_new(), but that `stack` must be NULL, that
 * tasks share the floating-point environment by default, and that ACO_DETACHED makes one that nobody joins: it is gone when
 * it ends, and its address may be another's then. Else it is to be joined, or detached. NULL and errno as aco_new(). */
ACO_API aco_t *aco_spawn(aco_function_t fn, void *arg, const aco_options_t *opts);

/* Runs tasks until none is left: 0. The thread's own flow of control calls it. -1 and errno: EDEADLK (described above; the
 * waiting tasks stay as they are, and may be woken and aco_run() called again), EPERM (a coroutine calls), EBUSY (the idle hook
 * calls), ENOMEM, or what an idle hook left there. */
ACO_API int aco_run(void);

/* Lets all other tasks that can run have their turn. 0, or -1 and errno EPERM (the caller is not a task). A task's plain
 * aco_yield() does the same, slower. */
ACO__TASK_CALL int aco_task_yield(void);

/* Waits until `task` has ended, stores in *result, if that is not NULL, what its function returned (NULL after aco_exit()), and
 * destroys it. One that has ended already may be joined by anyone. 0, or -1 and errno: EINVAL (NULL, not a task, detached),
 * ESRCH (joined before), EDEADLK (the caller itself), EBUSY (another task is joining it), EPERM. */
ACO__TASK_CALL int aco_join_at(aco_t *task, void **result, const char *location);
#define aco_join(task, result) aco_join_at(task, result, ACO_PLACE)

/* Nobody is going to join `task`: it is destroyed when it ends, at once if it has. 0, or -1 and errno: EINVAL (NULL, not a
 * task, detached before), ESRCH (joined before), EBUSY (being joined), EPERM (another thread's). */
ACO_API int aco_detach(aco_t *task);

/* Waits until another one calls aco_unpark() with the calling task; at once if that has happened since its last aco_park().
 * `what`, a string that stays, or NULL, says in a report what it waits for. 0, or -1 and errno EPERM. */
ACO__TASK_CALL int aco_park_at(const char *what, const char *location);
#define aco_park(what) aco_park_at(what, ACO_PLACE)

/* Ends the aco_park() of `task`; if it is not in one, its next one returns at once, however often this was called. 0, or -1
 * and errno: EINVAL (NULL, not a task), ESRCH (it has ended), EPERM (another thread's). */
ACO_API int aco_unpark(aco_t *task);

/* ---- Time and events --------------------------------------------------------------------------------------------------- */

/* Nanoseconds of a clock that never goes back. */
ACO_API int64_t aco_now(void);

/* Waits for at least so many nanoseconds; 0 or less: as aco_task_yield(). Who is due first runs first, of several the one that
 * called first. 0, or -1 and errno EPERM, ENOMEM. */
ACO__TASK_CALL int aco_sleep_at(int64_t ns, const char *location);
#define aco_sleep(ns) aco_sleep_at(ns, ACO_PLACE)

/* Where an event loop plugs in. While no task can run, aco_run() calls idle(ctx, timeout_ns), which waits for events, at most so
 * long (-1: no limit), and wakes tasks, or spawns them. It returns 1, also when the time is over; 0 if it has nothing to wait
 * for and nothing can come from it; or -1 and errno, and aco_run() fails with that. While tasks run, it is called with a
 * timeout of 0 once in many rounds. It runs on the thread's own flow of control, and no exception may leave it. NULL: none. 0, or
 * -1 and errno ENOMEM. */
ACO_API int aco_on_idle(int (*idle)(void *ctx, int64_t timeout_ns), void *ctx);

/* ---- Waiting for each other: all zeros is the initial state, and there is nothing to destroy --------------------------- */

/* A mutex: for what must not be changed by others while a task waits for something else. */
typedef struct aco_mutex_s {
    aco_t *owner; /* NULL: free. Read-only */
    aco__queue_t aco__waiters;
} aco_mutex_t;
#define ACO_MUTEX_INIT {NULL, {NULL, NULL}}

/* 0, or -1 and errno: EDEADLK (the caller has it), EPERM (the caller is not a task). */
ACO__TASK_CALL int aco_mutex_lock_at(aco_mutex_t *mutex, const char *location);
#define aco_mutex_lock(mutex) aco_mutex_lock_at(mutex, ACO_PLACE)
/* The same without waiting: 0, or -1 and errno: EBUSY (a task has it, be it the caller), EPERM (the caller is not a task). */
ACO_API int aco_mutex_trylock(aco_mutex_t *mutex);
/* 0, or -1 and errno EPERM (the caller does not have it). */
ACO_API int aco_mutex_unlock(aco_mutex_t *mutex);

/* A condition: something about what a mutex protects that tasks wait for. */
typedef struct aco_cond_s {
    aco__queue_t aco__waiters;
} aco_cond_t;
#define ACO_COND_INIT {{NULL, NULL}}

/* Unlocks `mutex`, waits to be woken, and locks it again. Nobody wakes it but the two calls below: it returns once for
 * each. 0, or -1 and errno EPERM (the caller does not have the mutex). */
ACO__TASK_CALL int aco_cond_wait_at(aco_cond_t *cond, aco_mutex_t *mutex, const char *location);
#define aco_cond_wait(cond, mutex) aco_cond_wait_at(cond, mutex, ACO_PLACE)
/* The same for at most so many nanoseconds; less than 0: without a limit. Also ETIMEDOUT, with the mutex locked again, and
 * ENOMEM, with the mutex never unlocked. */
ACO__TASK_CALL int aco_cond_wait_for_at(aco_cond_t *cond, aco_mutex_t *mutex, int64_t timeout_ns, const char *location);
#define aco_cond_wait_for(cond, mutex, timeout_ns) aco_cond_wait_for_at(cond, mutex, timeout_ns, ACO_PLACE)
/* Wakes the one that waits longest, or all. A task that is woken waits for the mutex behind those who do already. */
ACO_API void aco_cond_signal(aco_cond_t *cond);
ACO_API void aco_cond_broadcast(aco_cond_t *cond);

/* A semaphore: so many units of something. */
typedef struct aco_semaphore_s {
    size_t value; /* units that are free. Read-only but for setting it before its first use */
    aco__queue_t aco__waiters;
} aco_semaphore_t;
#define ACO_SEMAPHORE_INIT(value) {value, {NULL, NULL}}

/* Takes a unit, waiting for it if need be. 0, or -1 and errno EPERM. */
ACO__TASK_CALL int aco_semaphore_acquire_at(aco_semaphore_t *semaphore, const char *location);
#define aco_semaphore_acquire(semaphore) aco_semaphore_acquire_at(semaphore, ACO_PLACE)
/* The same without waiting: 0, or -1 and errno EAGAIN (none is free). */
ACO_API int aco_semaphore_try_acquire(aco_semaphore_t *semaphore);
/* Gives a unit back, or adds one. */
ACO_API void aco_semaphore_release(aco_semaphore_t *semaphore);

/* A wait group: waits until a count is zero. */
typedef struct aco_wait_group_s {
    size_t count; /* Read-only */
    aco__queue_t aco__waiters;
} aco_wait_group_t;
#define ACO_WAIT_GROUP_INIT {0, {NULL, NULL}}

/* Adds `n`, which may be negative, to the count; at zero all that wait are woken. 0, or -1 and errno ERANGE (the count would be
 * less than zero, or more than it can hold). */
ACO_API int aco_wait_group_add(aco_wait_group_t *group, ptrdiff_t n);
/* aco_wait_group_add(group, -1) */
ACO_API int aco_wait_group_done(aco_wait_group_t *group);
/* Waits until the count is zero. 0, or -1 and errno EPERM. */
ACO__TASK_CALL int aco_wait_group_wait_at(aco_wait_group_t *group, const char *location);
#define aco_wait_group_wait(group) aco_wait_group_wait_at(group, ACO_PLACE)

/* ---- Channels ---------------------------------------------------------------------------------------------------------- */

/* A channel carries elements of one size from tasks to tasks, in order. */
typedef struct aco_channel_s aco_channel_t;

/* A new channel for elements of `element_size` bytes, perhaps 0. It holds up to `capacity` of them; with 0 a sender waits for a
 * receiver. The caller owns it. NULL and errno EINVAL (too large), ENOMEM. */
ACO_API aco_channel_t *aco_channel_new(size_t capacity, size_t element_size);

/* Frees it, and the elements in it. 0, or -1 and errno EINVAL (NULL), EBUSY (tasks wait for it). */
ACO_API int aco_channel_destroy(aco_channel_t *channel);

/* Nothing more can be sent: waiting senders fail with EPIPE; receivers get what is there, then they fail so too. 0, or -1 and
 * errno EINVAL (NULL), EPIPE (closed before). */
ACO_API int aco_channel_close(aco_channel_t *channel);

/* Sends *element, copied. Waits while the channel is full; without capacity, until a receiver has it. 0, or -1 and errno:
 * EPIPE (closed), EPERM, EINVAL (a NULL, but for elements of no bytes). */
ACO__TASK_CALL int aco_channel_send_at(aco_channel_t *channel, const void *element, const char *location);
#define aco_channel_send(channel, element) aco_channel_send_at(channel, element, ACO_PLACE)

/* Receives into *element, unless that is NULL. Waits while there is nothing. 0, or -1 and errno: EPIPE (closed, and nothing
 * left), EPERM, EINVAL (the channel is NULL). */
ACO__TASK_CALL int aco_channel_receive_at(aco_channel_t *channel, void *element, const char *location);
#define aco_channel_receive(channel, element) aco_channel_receive_at(channel, element, ACO_PLACE)

/* The same without waiting: also EAGAIN. */
ACO_API int aco_channel_try_send(aco_channel_t *channel, const void *element);
ACO_API int aco_channel_try_receive(aco_channel_t *channel, void *element);

typedef enum aco_select_operation_e { ACO_SELECT_SEND, ACO_SELECT_RECEIVE } aco_select_operation_t;

/* One of several things that aco_select() may do. */
typedef struct aco_select_case_s {
    aco_channel_t *channel; /* NULL: never ready */
    void *element;          /* to send from, or receive into */
    aco_select_operation_t operation;
    int error;              /* of the case that was chosen: 0, or EPIPE: the channel is closed and nothing was done */
    aco__waiter_t aco__waiter;
} aco_select_case_t;

/* Does one of the first `n` of `cases`: the first one that can be done, looking from another one on each time. If there is
 * none, waits for one, at most so many nanoseconds; less than 0: without a limit; 0: not at all. Returns which one it was; or -1
 * and errno: EAGAIN (timeout 0), ETIMEDOUT, EINVAL, EPERM, ENOMEM. A channel may be in several cases. */
ACO__TASK_CALL int aco_select_at(aco_select_case_t *cases, int n, int64_t timeout_ns, const char *location);
#define aco_select(cases, n, timeout_ns) aco_select_at(cases, n, timeout_ns, ACO_PLACE)

/* ---- Internal from here on -------------------------------------------------------------------------------------------- */

/* What a task waits for; on its stack. */
typedef struct aco__wait {
    aco_t *task;
    const void *object;
    const char *location;
    unsigned kind;                              /* of object: ACO__WAIT_… in src/scheduler/wait.h */
    int error;                                  /* what comes of it; 0: well */
    void *value;                                /* the result of a joined task; of a wait for a condition: the mutex */
    aco__waiter_t *first;                       /* its places in queues, NULL: none */
    aco__waiter_t *woken;                       /* which of them was served */
    void (*time_out)(struct aco__wait *wait);   /* what else happens when time is over; NULL: it is woken */
    size_t timer;                               /* where its timer stands in the heap, from 1 on; 0: it has none */
    aco__waiter_t waiter;                       /* the place of a wait for one thing */
} aco__wait_t;

/* The first halves of what can wait. 0: done. -1: refused. ACO__MUST_WAIT: the calling task is no more among those that can
 * run, and leaves now. The switch is inline, in the caller: a function that switched inside the library would return to where
 * the processor does not expect it. */
enum { ACO__MUST_WAIT = -2 };
ACO_API int aco__join(aco_t *task, void **result, aco__wait_t *wait, const char *location);
ACO_API int aco__park(const char *what, aco__wait_t *wait, const char *location);
ACO_API int aco__sleep(int64_t ns, aco__wait_t *wait, const char *location);
ACO_API int aco__mutex_lock(aco_mutex_t *mutex, aco__wait_t *wait, const char *location);
ACO_API int aco__cond_wait(aco_cond_t *cond, aco_mutex_t *mutex, int64_t timeout_ns, aco__wait_t *wait, const char *location);
ACO_API int aco__semaphore_acquire(aco_semaphore_t *semaphore, aco__wait_t *wait, const char *location);
ACO_API int aco__wait_group_wait(aco_wait_group_t *group, aco__wait_t *wait, const char *location);
ACO_API int aco__channel_send(aco_channel_t *channel, const void *element, aco__wait_t *wait, const char *location);
ACO_API int aco__channel_receive(aco_channel_t *channel, void *element, aco__wait_t *wait, const char *location);
ACO_API int aco__select(aco_select_case_t *cases, int n, int64_t timeout_ns, aco__wait_t *wait, const char *location);
ACO_API int aco__select_result(aco_select_case_t *cases, const aco__wait_t *wait);

ACO_API ACO__COLD int aco__wait_failed(const aco__wait_t *wait); /* -1 and errno */
ACO_API ACO__COLD void aco__task_leave(aco_t *task);             /* leaves by way of aco_run() */
ACO_API ACO__COLD int aco__task_yield(void);                     /* aco_task_yield() off the fast path */

#ifndef ACO_CONFIG_NO_INLINE

/* The next one in the ring of tasks that can run. It stands where the entry function does in a coroutine that is not a task. */
ACO__FORCE_INLINE aco_t *aco__task_next(const aco_t *task)
{
    aco_t *next;
    memcpy(&next, &task->fp, sizeof next);
    return next;
}

/* More tasks than a cache has room for: the one after next has its innermost frame fetched, and its successor its block. For
 * fewer the two loads would only cost. */
enum { ACO__TASKS_IN_CACHE = 16384 };
ACO__FORCE_INLINE void aco__task_prefetch(const aco__thread_t *self, const aco_t *next)
{
    if (aco_unlikely(self->tasks > ACO__TASKS_IN_CACHE)) {
        const aco_t *after = aco__task_next(next);
        __builtin_prefetch(after->aco__self.sp);
        __builtin_prefetch(aco__task_next(after), 1);
    }
}

/* Tasks hand control to each other, without aco_run() in between: the ring's next one is one load away. */
ACO__TASK_CALL int aco_task_yield(void)
{
    aco__tls_ref_t tls = aco__tls_ref();
    aco__thread_t *self = aco__self_at(tls);
    aco_t *from = self->running, *to;
    uintptr_t tagged;
    void *value = NULL;
    if (aco_unlikely(from == NULL || from != self->task || self->slow_switch_tasks != 0))
        return aco__task_yield();
#if ACO_DEBUG
    aco__yield_check(from, 1);
#endif
    to = aco__task_next(from);
    if (to == from)
        return 0;
    *(aco_t *volatile *)&self->task = to; /* gcc would make one vector of the two, and the next yield wait for it */
    self->last_task = from;
    aco__task_prefetch(self, to);
    tagged = aco__switch_transfer(tls, from, to, &value, 0);
    ACO__CHECK_INTERRUPT(tagged);
    return 0;
}

/* The second half of what can wait: runs who is next, and comes back when the calling task was woken and has its turn. */
ACO__FORCE_INLINE void aco__wait_leave(const aco__wait_t *wait)
{
    aco__tls_ref_t tls = aco__tls_ref();
    aco__thread_t *self = aco__self_at(tls);
    aco_t *from = wait->task, *to = self->task;
    uintptr_t tagged;
    void *value = NULL;
    if (aco_unlikely(to == NULL || self->slow_switch_tasks != 0)) {
        aco__task_leave(from);
    } else {
        tagged = aco__switch_transfer(tls, from, to, &value, 0);
        ACO__CHECK_INTERRUPT(tagged);
    }
}

ACO__FORCE_INLINE int aco__wait_end(int result, const aco__wait_t *wait)
{
    if (result != ACO__MUST_WAIT)
        return result;
    aco__wait_leave(wait);
    return aco_unlikely(wait->error != 0) ? aco__wait_failed(wait) : 0;
}

ACO__TASK_CALL int aco_join_at(aco_t *task, void **result, const char *location)
{
    aco__wait_t wait;
    int done = aco__join(task, result, &wait, location);
    if (done != ACO__MUST_WAIT)
        return done;
    aco__wait_leave(&wait);
    if (result)
        *result = wait.value;
    return 0;
}

ACO__TASK_CALL int aco_park_at(const char *what, const char *location)
{
    aco__wait_t wait;
    return aco__wait_end(aco__park(what, &wait, location), &wait);
}

ACO__TASK_CALL int aco_sleep_at(int64_t ns, const char *location)
{
    aco__wait_t wait;
    return ns > 0 ? aco__wait_end(aco__sleep(ns, &wait, location), &wait) : aco_task_yield();
}

ACO__TASK_CALL int aco_mutex_lock_at(aco_mutex_t *mutex, const char *location)
{
    aco__wait_t wait;
    return aco__wait_end(aco__mutex_lock(mutex, &wait, location), &wait);
}

ACO__TASK_CALL int aco_cond_wait_at(aco_cond_t *cond, aco_mutex_t *mutex, const char *location)
{
    aco__wait_t wait;
    return aco__wait_end(aco__cond_wait(cond, mutex, -1, &wait, location), &wait);
}

ACO__TASK_CALL int aco_cond_wait_for_at(aco_cond_t *cond, aco_mutex_t *mutex, int64_t timeout_ns, const char *location)
{
    aco__wait_t wait;
    return aco__wait_end(aco__cond_wait(cond, mutex, timeout_ns, &wait, location), &wait);
}

ACO__TASK_CALL int aco_semaphore_acquire_at(aco_semaphore_t *semaphore, const char *location)
{
    aco__wait_t wait;
    return aco__wait_end(aco__semaphore_acquire(semaphore, &wait, location), &wait);
}

ACO__TASK_CALL int aco_wait_group_wait_at(aco_wait_group_t *group, const char *location)
{
    aco__wait_t wait;
    return aco__wait_end(aco__wait_group_wait(group, &wait, location), &wait);
}

ACO__TASK_CALL int aco_channel_send_at(aco_channel_t *channel, const void *element, const char *location)
{
    aco__wait_t wait;
    return aco__wait_end(aco__channel_send(channel, element, &wait, location), &wait);
}

ACO__TASK_CALL int aco_channel_receive_at(aco_channel_t *channel, void *element, const char *location)
{
    aco__wait_t wait;
    return aco__wait_end(aco__channel_receive(channel, element, &wait, location), &wait);
}

ACO__TASK_CALL int aco_select_at(aco_select_case_t *cases, int n, int64_t timeout_ns, const char *location)
{
    aco__wait_t wait;
    int result = aco__select(cases, n, timeout_ns, &wait, location);
    if (result != ACO__MUST_WAIT)
        return result;
    aco__wait_leave(&wait);
    return aco__select_result(cases, &wait);
}

#endif

/* aco_task_yield() as a function to call, for programs that yield in many places: its code stands once in each unit. */
static ACO_SWITCHING __attribute__((noinline, unused)) void aco_task_yield_call(void)
{
    aco_task_yield();
}

#ifdef __cplusplus
}
#endif

#endif
