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
 * Tasks. Each thread has a scheduler, made when it spawns its first task. A task is a coroutine of type aco_t; names,
 * slots, coroutine-local storage, aco_defer(), aco_exit() and aco_state() work for tasks too.
 * Only the scheduler resumes a task: for a task aco_send(), aco_yield_to(), aco_cancel() and aco_restart() fail with
 * EPERM, and aco_resume() and aco_destroy() abort. A task may make, resume and destroy other coroutines. A task that
 * has ended is a coroutine that is done, until it is joined.
 *
 * Share stacks. A task may run on a share stack, together with other tasks and coroutines: then it needs memory for its
 * live bytes only. The calls below may be given addresses of its local variables, as far as the call itself uses them
 * (elements, select cases, scopes); nobody else may use these addresses while the task waits, so other tasks cannot
 * cancel a scope there. A group must be elsewhere, and so must the scopes around it and what aco_group_spawn_result()
 * stores into (EINVAL). Such a task cannot wait in a generator with its own stack (EPERM; aco_task_yield() and
 * aco_group_end() abort). Without memory to save frames the process aborts.
 *
 * Order. Runnable tasks stand in one queue, first in, first out. aco_run() runs the first one until it yields, waits or
 * ends. A task that yields goes to the end of the queue; so does a new task, and a task that is woken. Waking a task
 * does not switch to it. Of the tasks that wait for the same thing, the one that came first is woken first. From then
 * on it owns what it waited for (a mutex, a unit of a semaphore, a value of a channel): no other task can take it
 * before the woken task runs. What wakes many tasks at once (a broadcast, a closed channel, a wait group at zero, the
 * end of a scope) lets all of them run in the next round of the queue. A task that neither yields nor waits lets no
 * other task run.
 *
 * Waiting. aco_join(), aco_park(), aco_sleep(), aco_mutex_lock() and the like stop the calling task only. An inner
 * coroutine, which a task resumed or another inner coroutine did, may call them, and so may a generator: its task
 * waits, and afterwards it goes on itself. While it waits, nobody else can resume, cancel or destroy it. Locks and
 * scopes that it takes are its task's; it must not yield inside a scope that it began. The calls fail with EPERM in the
 * root context, in a coroutine that is in no task, in cleanup (aco_defer()), and in an inner coroutine on a share
 * stack. Non-blocking calls work in all of these. Only aco_mutex_try_lock() and aco_mutex_unlock() need a task; they
 * work in cleanup. Blocking calls have `_at` forms that take a static location string, for reports of a
 * deadlock; the plain forms are macros that pass their own file and line.
 *
 * Deadlock. If no task is runnable, none waits with a time limit, and no idle hook can wake one, aco_run() fails. First
 * it prints for each waiting task where it waits and for what.
 *
 * Threads. Tasks belong to the thread that made them, and all objects below to the thread that uses them first; while
 * it lives, no other thread may use them, except by calls that say so. News from other threads comes in by those calls,
 * or through an idle hook. A channel that two threads share aborts the process with a message, and so does any other
 * object when a task waits for it; debug builds notice each use. Calls for tasks of another thread fail with EPERM.
 *
 * Floating point. Tasks share the thread's environment (rounding and so on) unless they are spawned with ACO_OWN_FP.
 * While a task with its own environment lives, every switch between the thread's tasks costs several times more. The
 * same holds for ACO_OWN_EXCEPTIONS and for sanitizers. A unit compiled with ACO_CONFIG_SHARE_FPU_MXCSR_ENV may spawn
 * tasks with ACO_OWN_FP; in them its code must call aco_task_yield(), never aco_yield().
 *
 * Deadlines. Blocking calls have `_until` forms with a deadline on the clock of aco_now(): -1 and ETIMEDOUT if the wait
 * is not over by then. They also fail with ENOMEM, before they change anything. A call that need not wait succeeds even
 * if the deadline has passed. With ACO_FOREVER as deadline they are the plain forms. Scopes (aco/scope.h) limit all
 * waits of a task at once, and cancel them: then each blocking call fails with ETIMEDOUT or ECANCELED.
 *
 * Errors are those of aco.h: -1 or NULL, errno, and aco_error_message(). Expected answers leave no message: EAGAIN,
 * EBUSY of aco_mutex_try_lock(), ETIMEDOUT, ECANCELED, and EPIPE of a closed channel. What follows does not repeat
 * ETIMEDOUT, ECANCELED and, of a wait in a scope with a deadline, ENOMEM. */
#ifndef ACO_SCHEDULER_H
#define ACO_SCHEDULER_H

#include "../aco.h"
#include "detail/waiter.h"

#define ACO_PLACE (__FILE__ ":" ACO__TEXT(__LINE__)) /* the location that the plain forms pass */

ACO__BEGIN_C

/* ---- Tasks ------------------------------------------------------------------------------------------------------- */

/* Makes a task that runs fn(arg), at the end of the queue. `opts` as for aco_new(), except that ACO_DETACHED is
 * allowed: such a task is not joined. It is destroyed when it ends, and another one may then have its address. Any
 * other task must be joined or detached. NULL and errno as aco_new(); also EPERM: its share stack belongs to another
 * thread. */
ACO_API aco_t *aco_spawn(aco_function_t fn, void *arg, const aco_options_t *opts);

/* Runs tasks until none is left, and returns 0. Call it in the root context. -1 and errno: EDEADLK (see above; the
 * waiting tasks stay as they are: wake one and call aco_run() again), EPERM (a coroutine calls it), EBUSY (the idle
 * hook calls it), or the errno of an idle hook that failed. */
ACO_API int aco_run(void);

/* For an event loop that is not to be given up for aco_run(): runs tasks until none can run, or for about a
 * millisecond, and returns: 1 if tasks are left, 0 if not. The loop calls it again at the time *next on the clock of
 * aco_now() (not after now: tasks can run already; ACO_FOREVER: none), when aco_io_poll_fd() (aco/io.h) is readable,
 * and after it has spawned or woken tasks itself. It finds no deadlocks: the loop may wake anybody. It does not call
 * the idle hook, except as aco_run() does while tasks run. -1 and errno: EINVAL (NULL), EPERM, EBUSY as aco_run(),
 * ENOMEM, or that of a poller or hook that failed. */
ACO_API int aco_run_ready(int64_t *next);

/* What the calling thread's scheduler has seen. A task that neither yields nor waits lets all others starve: then wakes
 * are late. Which task it is, a measurement tells: aco_run_measure(). */
typedef struct aco_run_stats_s {
    size_t tasks;            /* tasks that have not ended */
    uint64_t late_wakes;     /* sleeps and time limits that ended more than 10 ms after their time */
    int64_t latest_wake_ns;  /* the most that one was late */
    /* Measured: a run begins with a task's turn and lasts until it yields, waits or ends. */
    uint64_t runs, long_runs; /* all; those of more than 10 ms */
    int64_t longest_run_ns;
    char longest_run_name[ACO_NAME_SIZE]; /* the name of the task with the longest run, or "" */
} aco_run_stats_t;

/* 0, or -1 and errno EINVAL (NULL). */
ACO_API int aco_run_stats(aco_run_stats_t *stats);

/* Starts (`on` not 0) or ends the measurement of runs in the calling thread. While it lasts, switches between tasks
 * cost several times more. Starting it again sets runs, long_runs and longest_run to 0. 0, or -1 and errno ENOMEM. */
ACO_API int aco_run_measure(int on);

/* Says what the calling thread's tasks do: writes to descriptor `fd` (2: stderr) a line for each task that has not
 * ended, with its address and name, what it waits for and where, or whether it can run; how long at most it has waited;
 * when its wait and its scope end; its group; and its entry function. Of many tasks at one place it writes 8 and how
 * many more there are. "At most": since the scheduler last looked at the clock before the wait, which it does in each
 * round with sleepers, time limits or aco_tasks_dump_on(). The report of a deadlock has the same lines. Uses some 8 KiB
 * of stack. 0, or -1 and the errno of a write. */
ACO_API int aco_tasks_dump(int fd);

/* From now on the signal (SIGUSR1 or the like) makes the calling thread's scheduler call aco_tasks_dump(fd). The
 * signal's handler, for the process, only tells the schedulers of the threads that called this; each dumps in its next
 * round of the queue, so not while a task neither yields nor waits, and outside of aco_run() when that is called next.
 * A sleeping aco_run() is woken; one that waits in an idle hook wakes if the signal ends the hook's wait (EINTR), or by
 * aco_on_wake()'s function, which must be async-signal-safe then. It costs one way to aco_run() and back in each round.
 * `signal` 0: no more for this thread; the handler stays. 0, or -1 and errno: EINVAL (no such signal), EAGAIN (256
 * threads have it), ENOMEM, ENOSYS (Windows). */
ACO_API int aco_tasks_dump_on(int signal, int fd);

/* The watchdog of the process: a thread that notices a task that has run for longer than `limit_ns` nanoseconds without
 * yielding or waiting, and has it named on stderr while it still runs: address, name, entry function, for how long, and
 * its backtrace as of aco_backtrace_print(), where that exists. It does so once for each such run, and for 16 at most;
 * a call starts the count again. 0 ends it. It watches the calling thread from now on, and any other from its next
 * aco_run(). In a program with a debug unit the limit is a second by default; the environment variable ACO_WATCHDOG
 * sets the default of any program in milliseconds, 0 for none. The longest limit is 49 days. A child of fork() has no
 * watchdog until it calls this. Times during which the whole process was stopped do not count.
 *
 * aco_run() of a watched thread also reports tasks that wait for each other for ever while others go on: each waits,
 * without a time limit, for a lock, a join, an aco_once() or a group's members of another one. It looks for them once
 * in a limit at most, and reports them once; 16 such groups for each thread. It goes on.
 *
 * The task's thread prints the report, in a handler of the signal SIGURG, which ends the system calls that signals end
 * (sleep(), epoll_wait(); not read()). A line without name and backtrace is printed if the program has a handler of its
 * own for the signal, has given the thread a signal stack below 32 KiB, or blocks the signal; with glibc on i386 and
 * s390x there is never a backtrace. A watched thread pays one way to aco_run() and back in each round of the queue. 0,
 * or -1 and errno: EINVAL (less than 0), ENOMEM, EAGAIN (no thread could be made), ENOSYS (Windows). */
ACO_API int aco_watchdog(int64_t limit_ns);

/* Gives every other runnable task its turn. 0, or -1 and errno EPERM (the caller is not a task). In a task, aco_yield()
 * does the same, slower. */
ACO__CALL int aco_task_yield(void);

/* Waits until `task` has ended and destroys it. If `result` is not NULL, *result becomes the task's result: what its
 * function returned, or NULL after aco_exit(). If the task has already ended, a caller that cannot wait may join it
 * too. 0, or -1 and errno: EINVAL (NULL, not a task, detached), ESRCH (joined before), EDEADLK (the caller itself),
 * EBUSY (another task joins it), EPERM (another thread's, or the caller cannot wait). */
ACO__CALL int aco_join_at(aco_t *task, void **result, const char *location);
#define aco_join(task, result) aco_join_at(task, result, ACO_PLACE)
ACO__CALL int aco_join_until_at(aco_t *task, void **result, int64_t deadline, const char *location);
#define aco_join_until(task, result, deadline) aco_join_until_at(task, result, deadline, ACO_PLACE)

/* The task in which the caller runs: itself, or that of an inner coroutine. NULL: in none. */
ACO_API aco_t *aco_current_task(void);

/* Says that nobody will join `task`: it is destroyed when it ends; at once if it has ended. 0, or -1 and errno: EINVAL
 * (NULL, not a task, detached before, it runs on stack_memory), ESRCH (joined before), EBUSY (a task joins it), EPERM
 * (another thread's). */
ACO_API int aco_detach(aco_t *task);

/* Waits until aco_unpark() is called for the calling task. Returns at once if that has happened since the task's last
 * aco_park(). `what`, a static string or NULL, tells a deadlock report what the task waits for. 0, or -1 and errno
 * EPERM. */
ACO__CALL int aco_park_at(const char *what, const char *location);
#define aco_park(what) aco_park_at(what, ACO_PLACE)
ACO__CALL int aco_park_until_at(const char *what, int64_t deadline, const char *location);
#define aco_park_until(what, deadline) aco_park_until_at(what, deadline, ACO_PLACE)

/* Ends the aco_park() of `task`. If the task is not in one, its next aco_park() returns at once; several calls count as
 * one. 0, or -1 and errno: EINVAL (NULL, not a task), ESRCH (it has ended), EPERM (another thread's, not open). Any
 * thread, if the task's scheduler is open (aco_scheduler_open()) and the task is not joined, and, if it is detached,
 * does not end, before the call returns; such a task must not be given to aco_destroy(). Async-signal-safe on a thread
 * other than the task's, if aco_on_wake()'s function is. */
ACO_API int aco_unpark(aco_t *task);

/* ---- Time and events --------------------------------------------------------------------------------------------- */

/* The time of a clock that never goes back, in nanoseconds. */
ACO_API int64_t aco_now(void);

/* The deadline `ns` nanoseconds from now; now, if `ns` is less than 0. ACO_FOREVER if that is too far away. */
ACO_API int64_t aco_after(int64_t ns);

#define ACO_FOREVER INT64_MAX /* as a deadline: none */
#define ACO_MICROSECOND INT64_C(1000)
#define ACO_MILLISECOND INT64_C(1000000)
#define ACO_SECOND INT64_C(1000000000)

/* Waits for at least `ns` nanoseconds; 0 or less: as aco_task_yield(). The task that is due first runs first; among
 * equals, the one that called first. 0, or -1 and errno EPERM, ENOMEM. */
ACO__CALL int aco_sleep_at(int64_t ns, const char *location);
#define aco_sleep(ns) aco_sleep_at(ns, ACO_PLACE)
/* Waits until `deadline`; with one in the past, for at least one round of the queue. 0 as above, not ETIMEDOUT. */
ACO__CALL int aco_sleep_until_at(int64_t deadline, const char *location);
#define aco_sleep_until(deadline) aco_sleep_until_at(deadline, ACO_PLACE)

/* Sets the idle hook, where an event loop plugs in; NULL: none. When no task is runnable, aco_run() calls idle(ctx,
 * timeout_ns). The hook waits for events, at most that long (-1: no limit), and wakes or spawns tasks. It returns 1,
 * also when the time is over; 0 if it has nothing to wait for and will never wake a task; or -1 and errno, with which
 * aco_run() then fails. While tasks run, it is called with a timeout of 0 once in many rounds. It runs in the root
 * context, and no exception may leave it. 0, or -1 and errno ENOMEM. */
ACO_API int aco_on_idle(int (*idle)(void *ctx, int64_t timeout_ns), void *ctx);

/* ---- Other threads ----------------------------------------------------------------------------------------------- */

typedef struct aco_scheduler_s aco_scheduler_t; /* a thread's scheduler, for calls from other threads */

/* Opens the calling thread's scheduler for other threads: they may call aco_post(), aco_unpark() and aco_scope_cancel()
 * (aco/scope.h) for it. Then aco_run() looks for their news in each round, which costs one way to aco_run() and back,
 * and waits for news where it would report a deadlock; without futexes (not Linux) it looks every millisecond. It still
 * returns when no task is left. The scheduler is valid until the thread ends; the other threads must stop before. NULL
 * and errno ENOMEM. */
ACO_API aco_scheduler_t *aco_scheduler_open(void);
/* Undoes one aco_scheduler_open(), on the same thread. 0, or -1 and errno EINVAL (it is not open). */
ACO_API int aco_scheduler_close(void);

/* Has aco_run() call fn(arg) on the scheduler's thread, in its root context, where it may wake and spawn tasks but not
 * wait; no exception may leave it. Calls of one thread are made in their order. If aco_run() does not run, the next one
 * makes the call. 0, or -1 and errno: EPIPE (not open), ENOMEM, EINVAL (NULL). Any thread. */
ACO_API int aco_post(aco_scheduler_t *scheduler, void (*fn)(void *arg), void *arg);

/* For an idle hook: when other threads have news while the hook waits, they call wake(ctx), which makes the hook return
 * soon; for example, it writes to an eventfd that the hook polls. NULL: none; then news wait until the hook returns.
 * Set it before aco_scheduler_open(). 0, or -1 and errno: EBUSY (it is open), ENOMEM. */
ACO_API int aco_on_wake(void (*wake)(void *ctx), void *ctx);

/* ---- Waiting for each other: all zeros is the initial state, and there is nothing to destroy --------------------- */

/* A mutex: protects data that other tasks must not change while a task waits for something else. */
typedef struct aco_mutex_s {
    aco_t *owner; /* NULL: free. Read-only */
    aco__queue_t aco__waiters;
} aco_mutex_t;
#define ACO_MUTEX_INIT {NULL, {NULL, NULL, NULL}}

/* Locks the mutex; waits while another task has it. 0, or -1 and errno: EDEADLK (the caller has it), EPERM (the caller
 * is not a task). */
ACO__CALL int aco_mutex_lock_at(aco_mutex_t *mutex, const char *location);
#define aco_mutex_lock(mutex) aco_mutex_lock_at(mutex, ACO_PLACE)
ACO__CALL int aco_mutex_lock_until_at(aco_mutex_t *mutex, int64_t deadline, const char *location);
#define aco_mutex_lock_until(mutex, deadline) aco_mutex_lock_until_at(mutex, deadline, ACO_PLACE)
/* The same without waiting. 0, or -1 and errno: EBUSY (a task has it, perhaps the caller), EPERM (the caller is not a
 * task). */
ACO_API int aco_mutex_try_lock(aco_mutex_t *mutex);
/* 0, or -1 and errno EPERM (the caller does not have it). */
ACO_API int aco_mutex_unlock(aco_mutex_t *mutex);

/* A condition: tasks wait for something to become true about the data that a mutex protects. */
typedef struct aco_cond_s {
    aco__queue_t aco__waiters;
} aco_cond_t;
#define ACO_COND_INIT {{NULL, NULL, NULL}}

/* Unlocks `mutex`, waits to be woken, and locks it again. Only the two calls below wake it: there are no spurious
 * wakes. 0, or -1 and errno EPERM (the caller does not have the mutex). */
ACO__CALL int aco_cond_wait_at(aco_cond_t *cond, aco_mutex_t *mutex, const char *location);
#define aco_cond_wait(cond, mutex) aco_cond_wait_at(cond, mutex, ACO_PLACE)
/* With a limit: ETIMEDOUT with the mutex locked again, ENOMEM with the mutex never unlocked. `timeout_ns` less than 0:
 * no limit. */
ACO__CALL int aco_cond_wait_until_at(aco_cond_t *cond, aco_mutex_t *mutex, int64_t deadline, const char *location);
#define aco_cond_wait_until(cond, mutex, deadline) aco_cond_wait_until_at(cond, mutex, deadline, ACO_PLACE)
ACO__CALL int aco_cond_wait_for_at(aco_cond_t *cond, aco_mutex_t *mutex, int64_t timeout_ns, const char *location);
#define aco_cond_wait_for(cond, mutex, timeout_ns) aco_cond_wait_for_at(cond, mutex, timeout_ns, ACO_PLACE)
/* Wakes the task that has waited longest, or all. A woken task queues for the mutex behind the tasks that wait for it
 * already. Woken tasks that are next to each other in that queue run in one round: each gets the mutex if the one
 * before it has unlocked it by then, else it waits on. */
ACO_API void aco_cond_signal(aco_cond_t *cond);
ACO_API void aco_cond_broadcast(aco_cond_t *cond);

/* A semaphore: a number of units. */
typedef struct aco_semaphore_s {
    size_t value; /* free units. Set it before the first use; read-only afterwards */
    aco__queue_t aco__waiters;
} aco_semaphore_t;
#define ACO_SEMAPHORE_INIT(value) {value, {NULL, NULL, NULL}}

/* Takes a unit; waits while none is free. 0, or -1 and errno EPERM. */
ACO__CALL int aco_semaphore_acquire_at(aco_semaphore_t *semaphore, const char *location);
#define aco_semaphore_acquire(semaphore) aco_semaphore_acquire_at(semaphore, ACO_PLACE)
ACO__CALL int aco_semaphore_acquire_until_at(aco_semaphore_t *semaphore, int64_t deadline, const char *location);
#define aco_semaphore_acquire_until(semaphore, deadline)                                                               \
    aco_semaphore_acquire_until_at(semaphore, deadline, ACO_PLACE)
/* The same without waiting. 0, or -1 and errno EAGAIN (none is free). */
ACO_API int aco_semaphore_try_acquire(aco_semaphore_t *semaphore);
/* Returns a unit, or adds one. */
ACO_API void aco_semaphore_release(aco_semaphore_t *semaphore);

/* A wait group: tasks wait until its count is zero. */
typedef struct aco_wait_group_s {
    size_t count; /* read-only */
    aco__queue_t aco__waiters;
} aco_wait_group_t;
#define ACO_WAIT_GROUP_INIT {0, {NULL, NULL, NULL}}

/* Adds `n`, which may be negative, to the count; at zero all waiting tasks are woken. 0, or -1 and errno ERANGE (the
 * count would be less than zero, or too large). */
ACO_API int aco_wait_group_add(aco_wait_group_t *group, ptrdiff_t n);
/* aco_wait_group_add(group, -1) */
ACO_API int aco_wait_group_done(aco_wait_group_t *group);
/* Waits until the count is zero. 0, or -1 and errno EPERM. */
ACO__CALL int aco_wait_group_wait_at(aco_wait_group_t *group, const char *location);
#define aco_wait_group_wait(group) aco_wait_group_wait_at(group, ACO_PLACE)
ACO__CALL int aco_wait_group_wait_until_at(aco_wait_group_t *group, int64_t deadline, const char *location);
#define aco_wait_group_wait_until(group, deadline) aco_wait_group_wait_until_at(group, deadline, ACO_PLACE)

/* ---- Channels ---------------------------------------------------------------------------------------------------- */

/* A channel: carries elements of one size from tasks to tasks, in order. */
typedef struct aco_channel_s aco_channel_t;

/* Makes a channel for elements of `element_size` bytes; 0 is allowed. It holds up to `capacity` elements; with a
 * capacity of 0 a sender waits for a receiver. The caller owns it. NULL and errno EINVAL (too large), ENOMEM. */
ACO_API aco_channel_t *aco_channel_new(size_t capacity, size_t element_size);

/* Frees the channel and the elements in it. 0, or -1 and errno EINVAL (NULL), EBUSY (tasks wait for it). */
ACO_API int aco_channel_destroy(aco_channel_t *channel);

/* Closes the channel. Senders fail with EPIPE, waiting ones too. Receivers get the elements that are left; then they
 * fail with EPIPE. 0, or -1 and errno EINVAL (NULL), EPIPE (closed before). */
ACO_API int aco_channel_close(aco_channel_t *channel);

/* Sends a copy of *element. Waits while the channel is full; without capacity, until a receiver has the element. 0, or
 * -1 and errno: EPIPE (closed), EPERM, EINVAL (the channel is NULL, or the element is and does not have 0 bytes). */
ACO__CALL int aco_channel_send_at(aco_channel_t *channel, const void *element, const char *location);
#define aco_channel_send(channel, element) aco_channel_send_at(channel, element, ACO_PLACE)
ACO__CALL int aco_channel_send_until_at(aco_channel_t *channel, const void *element, int64_t deadline,
                                        const char *location);
#define aco_channel_send_until(channel, element, deadline)                                                             \
    aco_channel_send_until_at(channel, element, deadline, ACO_PLACE)

/* Receives into *element; NULL drops the element. Waits while the channel is empty. 0, or -1 and errno: EPIPE (closed
 * and empty), EPERM, EINVAL (the channel is NULL). */
ACO__CALL int aco_channel_receive_at(aco_channel_t *channel, void *element, const char *location);
#define aco_channel_receive(channel, element) aco_channel_receive_at(channel, element, ACO_PLACE)
ACO__CALL int aco_channel_receive_until_at(aco_channel_t *channel, void *element, int64_t deadline,
                                           const char *location);
#define aco_channel_receive_until(channel, element, deadline)                                                          \
    aco_channel_receive_until_at(channel, element, deadline, ACO_PLACE)

/* The same without waiting: also EAGAIN. */
ACO_API int aco_channel_try_send(aco_channel_t *channel, const void *element);
ACO_API int aco_channel_try_receive(aco_channel_t *channel, void *element);

typedef enum aco_select_operation_e { ACO_SELECT_SEND, ACO_SELECT_RECEIVE } aco_select_operation_t;

/* One of the operations that aco_select() chooses from. */
typedef struct aco_select_case_s {
    aco_channel_t *channel; /* NULL: never ready */
    void *element;          /* to send from (not NULL, unless elements have 0 bytes), or receive into (NULL: drop it) */
    aco_select_operation_t operation;
    int error;              /* of the chosen case: 0, or EPIPE: the channel is closed, nothing was done */
    aco__waiter_t aco__waiter;
} aco_select_case_t;

/* Does one of the `n` cases: the first one that is ready; each call starts its search at another case. If none is
 * ready, waits for one, at most `timeout_ns` nanoseconds (less than 0: no limit; 0: not at all). Returns the index of
 * the case; or -1 and errno: EAGAIN (timeout 0), ETIMEDOUT, EINVAL, EPERM, ENOMEM. Several cases may have the same
 * channel. */
ACO__CALL int aco_select_at(aco_select_case_t *cases, int n, int64_t timeout_ns, const char *location);
#define aco_select(cases, n, timeout_ns) aco_select_at(cases, n, timeout_ns, ACO_PLACE)
ACO__CALL int aco_select_until_at(aco_select_case_t *cases, int n, int64_t deadline, const char *location);
#define aco_select_until(cases, n, deadline) aco_select_until_at(cases, n, deadline, ACO_PLACE)

ACO__END_C

#include "detail/scheduler_inline.h"

#endif
