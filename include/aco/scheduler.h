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
 * Tasks. Each thread has a scheduler, made when the thread spawns its first task. A task is a coroutine of type aco_t:
 * names, slots, coroutine-local storage, aco_defer(), aco_exit() and aco_state() work for it too. Only the scheduler
 * resumes a task. On a task, aco_send(), aco_yield_to(), aco_cancel() and aco_restart() fail with EPERM; aco_resume()
 * and aco_destroy() abort. A task may make, resume and destroy other coroutines. A task that has ended is a coroutine
 * that is done, until it is joined.
 *
 * Share stacks. A task may run on a share stack, together with other tasks and coroutines. Then it needs memory only
 * for its live bytes, and this holds:
 *   - The calls below take addresses of its local variables, for what the call itself uses (elements, select cases,
 *     scopes). Nobody else may use these addresses while the task waits. So other tasks cannot cancel a scope there.
 *   - A group, the scopes around it and the variable for aco_group_spawn_result() must be elsewhere (EINVAL).
 *   - Such a task cannot wait in a generator with its own stack: EPERM; aco_task_yield() and aco_group_end() abort.
 *   - Without memory to save frames the process aborts.
 *
 * Order. Runnable tasks stand in one queue, first in, first out. aco_run() runs the first one until it yields, waits or
 * ends. A task that yields goes to the end of the queue; so does a new task, and a task that is woken. Waking a task
 * does not switch to it. If several tasks wait for one thing, the one that came first is woken first. From then on it
 * owns what it waited for (a mutex, a unit of a semaphore, a value of a channel): no other task can take it before the
 * woken task runs. A call that wakes many tasks at once (a broadcast, closing a channel, a wait group at zero, the end
 * of a scope) lets all of them run in the next round of the queue. A task that neither yields nor waits lets no other
 * task run.
 *
 * Waiting. aco_join(), aco_park(), aco_sleep(), aco_mutex_lock() and the like stop only the calling task. An inner
 * coroutine (one that a task or another inner coroutine resumed) may call them too, and so may a generator. Then its
 * task waits, and afterwards the caller itself goes on. Until then nobody else can resume, cancel or destroy the
 * caller. Locks and scopes that it takes belong to its task. It must not yield inside a scope that it began. Blocking
 * calls fail with EPERM in the root context, in a coroutine that is in no task, in cleanup (aco_defer()), and in an
 * inner coroutine on a share stack. The contracts below then say "the caller cannot wait". Non-blocking calls work in
 * all of these, except that calls for a mutex, a reader-writer lock (aco/sync.h) or a scope (aco/scope.h) need a task;
 * they work in cleanup. Blocking calls have `_at` forms that take a location, a static string, for reports of a
 * deadlock. The plain forms are macros that pass their own file and line.
 *
 * Deadlock. If no task is runnable, none waits with a time limit, and no idle hook can wake one, aco_run() fails. First
 * it prints for each waiting task where it waits and for what.
 *
 * Threads. Tasks belong to the thread that made them. All objects below belong to the thread that uses them first:
 * while that thread lives, no other thread may use them, except by calls that say so. Other threads send news by those
 * calls, or through an idle hook. A channel that two threads share aborts the process with a message. So does any other
 * object when a task waits for it; debug builds notice each use. Calls for tasks of another thread fail with EPERM.
 * Only aco_join() and aco_detach() of one that has ended do not, and no aco_unpark() of it may be on its way then.
 *
 * Floating point. Tasks share the thread's environment (rounding and so on) unless they are spawned with ACO_OWN_FP.
 * While a task with its own environment lives, every switch between the thread's tasks costs several times more. Tasks
 * with ACO_OWN_EXCEPTIONS, and sanitizers, cost as much. A unit compiled with ACO_CONFIG_SHARE_FPU_MXCSR_ENV may spawn
 * tasks with ACO_OWN_FP; in them its code must call aco_task_yield(), never aco_yield().
 *
 * Deadlines. Blocking calls have `_until` forms that take a deadline on the clock of aco_now(). If the wait is not over
 * by then, they return -1 with errno ETIMEDOUT. A call that need not wait succeeds even if the deadline has passed.
 * Without memory these forms fail with ENOMEM before they change anything. ACO_FOREVER means no deadline, as in the
 * plain forms. Scopes (aco/scope.h) limit all waits of a task at once, and cancel them: then each call that must wait
 * fails with ETIMEDOUT or ECANCELED.
 *
 * Errors are reported as in aco.h: -1 or NULL, errno, and aco_error_message(). Expected errors leave no message:
 * EAGAIN, EBUSY of aco_mutex_try_lock(), ETIMEDOUT, ECANCELED, and EPIPE of a closed channel. The contracts below do
 * not list ETIMEDOUT and ECANCELED, nor ENOMEM of a wait in a scope with a deadline. */
#ifndef ACO_SCHEDULER_H
#define ACO_SCHEDULER_H

#include "../aco.h"
#include "detail/waiter.h"

#define ACO_PLACE (__FILE__ ":" ACO__TEXT(__LINE__)) /* the location that the plain forms pass */

ACO__BEGIN_C

/* ---- Tasks ------------------------------------------------------------------------------------------------------- */

/* Makes a task that runs fn(arg), and puts it at the end of the queue. `options` as for aco_new(); ACO_DETACHED is
 * allowed too: nobody joins such a task. It is destroyed when it ends, and another one may then have its address. Any
 * other task must be joined or detached. Returns the task; on error NULL with errno as aco_new(), EINVAL (also:
 * ACO_DETACHED with stack_memory), EPERM (its share stack belongs to another thread). */
ACO_API aco_t *aco_spawn(aco_function_t fn, void *arg, const aco_options_t *options);

/* Runs tasks until none is left. Call it in the root context. Returns 0; on error -1 with errno EDEADLK (see above; the
 * waiting tasks stay as they are: wake one and call aco_run() again), EPERM (a coroutine calls it), EBUSY (the idle
 * hook calls it; or it failed before in a set of threads, aco/threads.h), or the errno of a poller (aco/io.h) or idle
 * hook that failed. */
ACO_API int aco_run(void);

/* Runs tasks until none can run, or for about a millisecond: for a program that keeps its own event loop. The loop
 * calls it again at the time *next on the clock of aco_now(), when aco_io_poll_fd() (aco/io.h) is readable, and after
 * it has spawned or woken tasks itself. If tasks can run already, *next is not after now. If there is no such time,
 * *next is ACO_FOREVER. The call finds no deadlocks, since the loop may wake anybody. It calls the idle hook only as
 * aco_run() does while tasks run. Returns 1 if tasks are left, 0 if not; on error -1 with errno EINVAL (NULL), EPERM
 * and EBUSY as aco_run(), ENOMEM, or the errno of a poller or hook that failed. */
ACO_API int aco_run_ready(int64_t *next);

/* What the calling thread's scheduler has seen. While a task neither yields nor waits, all others starve and wakes come
 * late. aco_run_measure() tells which task it is. */
typedef struct aco_run_stats_s {
    size_t tasks;            /* tasks that have not ended */
    uint64_t late_wakes;     /* sleeps and time limits that ended more than 10 ms late */
    int64_t latest_wake_ns;  /* how late the latest one was */
    /* By aco_run_measure(). A run begins with a task's turn and lasts until the task yields, waits or ends. */
    uint64_t runs, long_runs; /* all runs; those longer than 10 ms */
    int64_t longest_run_ns;
    char longest_run_name[ACO_NAME_SIZE]; /* the name of the task with the longest run, or "" */
} aco_run_stats_t;

/* Fills in *stats. Returns 0; on error -1 with errno EINVAL (NULL). */
ACO_API int aco_run_stats(aco_run_stats_t *stats);

/* Starts (`on` not 0) or ends measuring runs in the calling thread. While it is on, switches between tasks cost several
 * times more. Each start sets runs, long_runs and longest_run_ns to 0, and longest_run_name to "". Returns 0; on error
 * -1 with errno ENOMEM. */
ACO_API int aco_run_measure(int on);

/* Writes to descriptor `fd` (2: stderr) what the calling thread's tasks do. Each task that has not ended gets a line:
 * its address and name; what it waits for and where, or whether it can run; how long it has waited; when its wait and
 * its scope end; its group; its entry function. Of many tasks at one place it writes 8, and how many more there are.
 * The time waited is an upper bound: it counts from the scheduler's last clock reading before the wait. The scheduler
 * reads the clock in each round with sleepers, time limits or aco_tasks_dump_on(). The report of a deadlock has the
 * same lines. Uses some 8 KiB of stack. Returns 0; on error -1 with the errno of a write. */
ACO_API int aco_tasks_dump(int fd);

/* From now on `signal` (SIGUSR1 or the like) makes the calling thread's scheduler call aco_tasks_dump(fd). `signal` 0
 * ends that for this thread; the handler stays. The process has one handler for the signal. It only tells the
 * schedulers of the threads that called this, and each one dumps in its next round of the queue. So a thread does not
 * dump while one of its tasks neither yields nor waits; outside of aco_run() it dumps when that is called next. The
 * signal wakes a sleeping aco_run(). An aco_run() that waits in an idle hook wakes if the signal ends the hook's wait
 * (EINTR), or by aco_on_wake()'s function, which must be async-signal-safe then. Costs a switch to aco_run() and back
 * in each round. Returns 0; on error -1 with errno EINVAL (no such signal), EAGAIN (256 threads have it), ENOMEM,
 * ENOSYS (Windows). */
ACO_API int aco_tasks_dump_on(int signal, int fd);

/* Sets the limit of the process's watchdog: a thread that notices when a task has run for longer than `limit_ns`
 * nanoseconds without yielding or waiting. While the task still runs, the watchdog has a report printed on stderr: the
 * task's address, name and entry function, how long it has run, and its backtrace as of aco_backtrace_print(), where
 * that exists. It reports each such run once, and 16 runs at most; a call starts the count again. A limit of 0 ends the
 * watchdog; the longest limit is 49 days. It watches the calling thread from now on, and any other from its next
 * aco_run(). In a program with a debug unit the limit is a second by default. The environment variable ACO_WATCHDOG
 * sets the default of any program in milliseconds, 0 for none. Times during which the whole process was stopped do not
 * count. A child of fork() has no watchdog until it calls this.
 *
 * aco_run() of a watched thread also reports tasks that wait for each other for ever while others go on. Each of them
 * waits, without a time limit, for another one of them: for a lock that it has, for its end (aco_join()), for its
 * aco_once(), or for a group with it as a member. aco_run() looks for them once in a limit at most, reports them once,
 * and goes on. It makes 16 such reports for each thread at most.
 *
 * The first kind of report is printed by the task's thread, in a handler of the signal SIGURG. It interrupts the system
 * calls that any signal interrupts (sleep(), epoll_wait(); not read()). The report is a line without name and backtrace
 * if the program has its own handler for the signal, has given the thread a signal stack below 32 KiB, or blocks the
 * signal. With glibc on i386 and s390x it never has a backtrace. A watched thread pays a switch to aco_run() and back
 * in each round of the queue. Returns 0; on error -1 with errno EINVAL (less than 0), ENOMEM, EAGAIN (no thread could
 * be made), ENOSYS (Windows). */
ACO_API int aco_watchdog(int64_t limit_ns);

/* Gives every other runnable task its turn. In a task, aco_yield() does the same, slower. Returns 0; on error -1 with
 * errno EPERM (the caller cannot wait). */
ACO__CALL int aco_task_yield(void);

/* Waits until `task` has ended, and destroys it. If `result` is not NULL, *result becomes the task's result: what its
 * function returned, or NULL after aco_exit(). A caller that cannot wait may join a task that has already ended.
 * Returns 0; on error -1 with errno EINVAL (NULL, not a task, detached), ESRCH (joined before), EDEADLK (the task is
 * the caller), EBUSY (another task joins it), EPERM (it is another thread's, or the caller cannot wait). */
ACO__CALL int aco_join_at(aco_t *task, void **result, const char *location);
#define aco_join(task, result) aco_join_at(task, result, ACO_PLACE)
ACO__CALL int aco_join_until_at(aco_t *task, void **result, int64_t deadline, const char *location);
#define aco_join_until(task, result, deadline) aco_join_until_at(task, result, deadline, ACO_PLACE)

/* Returns the task in which the caller runs: the caller itself, or the task of an inner coroutine. NULL: in none. */
ACO_API aco_t *aco_current_task(void);

/* Says that nobody will join `task`. The task is destroyed when it ends, or now if it has ended. Returns 0; on error -1
 * with errno EINVAL (NULL, not a task, detached before, it runs on stack_memory), ESRCH (joined before), EBUSY (a task
 * joins it), EPERM (it is another thread's). */
ACO_API int aco_detach(aco_t *task);

/* Waits until aco_unpark() is called for the calling task. Returns at once if that has happened since the task's last
 * aco_park(). `what`, a static string or NULL, tells a deadlock report what the task waits for. Returns 0; on error -1
 * with errno EPERM (the caller cannot wait). */
ACO__CALL int aco_park_at(const char *what, const char *location);
#define aco_park(what) aco_park_at(what, ACO_PLACE)
ACO__CALL int aco_park_until_at(const char *what, int64_t deadline, const char *location);
#define aco_park_until(what, deadline) aco_park_until_at(what, deadline, ACO_PLACE)

/* Ends the aco_park() of `task`. If the task is not in one, its next aco_park() returns at once; several calls count as
 * one. Any thread may call it if the task's scheduler is open (aco_scheduler_open()). Until a call on another thread
 * returns, nobody may join the task, and a detached task must not end. When a task that other threads unpark has ended,
 * free it by aco_join() or aco_detach(), never by aco_destroy(). The call is async-signal-safe on a thread other than
 * the task's, if aco_on_wake()'s function is. Returns 0; on error -1 with errno EINVAL (NULL, not a task), ESRCH (it
 * has ended), EPERM (it is another thread's, whose scheduler is not open). */
ACO_API int aco_unpark(aco_t *task);

/* ---- Time and events --------------------------------------------------------------------------------------------- */

/* Returns the time of a clock that never goes back, in nanoseconds. */
ACO_API int64_t aco_now(void);

/* Returns the deadline `ns` nanoseconds from now: now if `ns` is less than 0, ACO_FOREVER if it is too far away. */
ACO_API int64_t aco_after(int64_t ns);

#define ACO_FOREVER INT64_MAX /* no deadline */
#define ACO_MICROSECOND INT64_C(1000)
#define ACO_MILLISECOND INT64_C(1000000)
#define ACO_SECOND INT64_C(1000000000)

/* Waits for at least `ns` nanoseconds; if that is 0 or less, does what aco_task_yield() does. The task that is due
 * first runs first; among equals, the one that called first. Returns 0; on error -1 with errno EPERM (the caller cannot
 * wait), ENOMEM. */
ACO__CALL int aco_sleep_at(int64_t ns, const char *location);
#define aco_sleep(ns) aco_sleep_at(ns, ACO_PLACE)
/* Waits until `deadline`; if that has passed, for at least one round of the queue. Returns as aco_sleep(): 0 when the
 * time has come, not ETIMEDOUT. */
ACO__CALL int aco_sleep_until_at(int64_t deadline, const char *location);
#define aco_sleep_until(deadline) aco_sleep_until_at(deadline, ACO_PLACE)

/* Sets the idle hook, by which aco_run() waits in an event loop; NULL: none. When no task is runnable, aco_run() calls
 * idle(ctx, timeout_ns) in the root context. The hook waits for events, for at most `timeout_ns` nanoseconds (-1: no
 * limit), and wakes or spawns tasks. It is called with a timeout of 0 once in many rounds while tasks run, and before
 * a deadline ends a wait: what came earlier is in time. It returns 1, also when the time is over; 0 if it has nothing
 * to wait for and will never wake a task; or -1 and errno, with which aco_run() then fails. No exception may leave it.
 * aco_on_idle() returns 0; on error -1 with errno ENOMEM. */
ACO_API int aco_on_idle(int (*idle)(void *ctx, int64_t timeout_ns), void *ctx);

/* ---- Other threads ----------------------------------------------------------------------------------------------- */

typedef struct aco_scheduler_s aco_scheduler_t; /* a thread's scheduler, for calls from other threads */

/* Opens the calling thread's scheduler for other threads: they may call aco_post(), aco_unpark() and aco_scope_cancel()
 * (aco/scope.h) for it. Then aco_run() looks for their news in each round of the queue, which costs a switch to
 * aco_run() and back. Where it would report a deadlock, it waits for news; without futexes (not Linux) it looks every
 * millisecond. It still returns when no task is left. The scheduler is valid until the thread ends; the other threads
 * must stop calling before. Returns the scheduler; on error NULL with errno ENOMEM. */
ACO_API aco_scheduler_t *aco_scheduler_open(void);
/* Undoes one aco_scheduler_open(), on the same thread. Returns 0; on error -1 with errno EINVAL (it is not open). */
ACO_API int aco_scheduler_close(void);

/* Has aco_run() call fn(arg) on the scheduler's thread, in its root context. There `fn` may wake and spawn tasks but
 * not wait, and no exception may leave it. The calls that one thread posts are made in their order. If aco_run() does
 * not run, the next one makes the call. Any thread may post. Returns 0; on error -1 with errno EPIPE (not open),
 * ENOMEM, EINVAL (NULL). */
ACO_API int aco_post(aco_scheduler_t *scheduler, void (*fn)(void *arg), void *arg);

/* Sets the function that ends the wait of an idle hook; NULL: none, then news waits until the hook returns. When other
 * threads have news while the hook waits, they call wake(ctx), and the hook must return soon; for example, `wake`
 * writes to an eventfd that the hook polls. It must not wait, and hooks (aco/hook.h) do not act in it. Set it before
 * aco_scheduler_open(). When this returns, no thread is still in the function that was set before. Returns 0; on error
 * -1 with errno EBUSY (the scheduler is open), ENOMEM. */
ACO_API int aco_on_wake(void (*wake)(void *ctx), void *ctx);

/* ---- Waiting for each other: all zeros is the initial state, and there is nothing to destroy --------------------- */

/* A mutex protects data that other tasks must not change while a task waits for something else. */
typedef struct aco_mutex_s {
    aco_t *owner; /* NULL: free. Read-only */
    aco__queue_t aco__waiters;
} aco_mutex_t;
#define ACO_MUTEX_INIT {NULL, {NULL, NULL, NULL}}

/* Locks the mutex; waits while another task has it. Returns 0; on error -1 with errno EDEADLK (the caller has it),
 * EPERM (the caller cannot wait). */
ACO__CALL int aco_mutex_lock_at(aco_mutex_t *mutex, const char *location);
#define aco_mutex_lock(mutex) aco_mutex_lock_at(mutex, ACO_PLACE)
ACO__CALL int aco_mutex_lock_until_at(aco_mutex_t *mutex, int64_t deadline, const char *location);
#define aco_mutex_lock_until(mutex, deadline) aco_mutex_lock_until_at(mutex, deadline, ACO_PLACE)
/* Locks the mutex if it is free, without waiting. Returns 0; on error -1 with errno EBUSY (a task has it, perhaps the
 * caller), EPERM (the caller is in no task). */
ACO_API int aco_mutex_try_lock(aco_mutex_t *mutex);
/* Unlocks the mutex. Returns 0; on error -1 with errno EPERM (the caller does not have it). */
ACO_API int aco_mutex_unlock(aco_mutex_t *mutex);

/* A condition: tasks wait until something is true of the data that a mutex protects. */
typedef struct aco_cond_s {
    aco__queue_t aco__waiters;
} aco_cond_t;
#define ACO_COND_INIT {{NULL, NULL, NULL}}

/* Unlocks `mutex`, waits to be woken, and locks it again. Only aco_cond_signal() and aco_cond_broadcast() wake it:
 * there are no spurious wakes. Returns 0; on error -1 with errno EPERM (the caller does not have the mutex, or cannot
 * wait). */
ACO__CALL int aco_cond_wait_at(aco_cond_t *cond, aco_mutex_t *mutex, const char *location);
#define aco_cond_wait(cond, mutex) aco_cond_wait_at(cond, mutex, ACO_PLACE)
/* The same until `deadline`. After ETIMEDOUT the caller has the mutex again; after ENOMEM it was never unlocked. */
ACO__CALL int aco_cond_wait_until_at(aco_cond_t *cond, aco_mutex_t *mutex, int64_t deadline, const char *location);
#define aco_cond_wait_until(cond, mutex, deadline) aco_cond_wait_until_at(cond, mutex, deadline, ACO_PLACE)
/* These wake the task that has waited longest, or all. A woken task queues for the mutex behind the tasks that wait for
 * it already. Woken tasks that stand next to each other in that queue run in one round. Each gets the mutex if the one
 * before it has unlocked it by then; else it waits on. */
ACO_API void aco_cond_signal(aco_cond_t *cond);
ACO_API void aco_cond_broadcast(aco_cond_t *cond);

/* A semaphore: a number of units. */
typedef struct aco_semaphore_s {
    size_t value; /* free units. Set it before the first use; read-only afterwards */
    aco__queue_t aco__waiters;
} aco_semaphore_t;
#define ACO_SEMAPHORE_INIT(value) {value, {NULL, NULL, NULL}}

/* Takes a unit; waits while none is free. Returns 0; on error -1 with errno EPERM (the caller cannot wait). */
ACO__CALL int aco_semaphore_acquire_at(aco_semaphore_t *semaphore, const char *location);
#define aco_semaphore_acquire(semaphore) aco_semaphore_acquire_at(semaphore, ACO_PLACE)
ACO__CALL int aco_semaphore_acquire_until_at(aco_semaphore_t *semaphore, int64_t deadline, const char *location);
#define aco_semaphore_acquire_until(semaphore, deadline)                                                               \
    aco_semaphore_acquire_until_at(semaphore, deadline, ACO_PLACE)
/* Takes a unit if one is free, without waiting. Returns 0; on error -1 with errno EAGAIN (none is free). */
ACO_API int aco_semaphore_try_acquire(aco_semaphore_t *semaphore);
/* Gives a unit back, or adds one. */
ACO_API void aco_semaphore_release(aco_semaphore_t *semaphore);

/* A wait group: tasks wait until its count is zero. */
typedef struct aco_wait_group_s {
    size_t count; /* read-only */
    aco__queue_t aco__waiters;
} aco_wait_group_t;
#define ACO_WAIT_GROUP_INIT {0, {NULL, NULL, NULL}}

/* Adds `n`, which may be negative, to the count. At zero all waiting tasks are woken. Returns 0; on error -1 with errno
 * ERANGE (the count would be less than zero, or too large). */
ACO_API int aco_wait_group_add(aco_wait_group_t *group, ptrdiff_t n);
/* Calls aco_wait_group_add(group, -1). */
ACO_API int aco_wait_group_done(aco_wait_group_t *group);
/* Waits until the count is zero. Returns 0; on error -1 with errno EPERM (the caller cannot wait). */
ACO__CALL int aco_wait_group_wait_at(aco_wait_group_t *group, const char *location);
#define aco_wait_group_wait(group) aco_wait_group_wait_at(group, ACO_PLACE)
ACO__CALL int aco_wait_group_wait_until_at(aco_wait_group_t *group, int64_t deadline, const char *location);
#define aco_wait_group_wait_until(group, deadline) aco_wait_group_wait_until_at(group, deadline, ACO_PLACE)

/* ---- Channels ---------------------------------------------------------------------------------------------------- */

/* A channel carries elements of one size from tasks to tasks, in order. */
typedef struct aco_channel_s aco_channel_t;

/* Makes a channel for elements of `element_size` bytes; 0 is allowed. It holds up to `capacity` elements; with a
 * capacity of 0 a sender waits for a receiver. Only channels of aco/mt.h may have no bound (ACO_UNBOUNDED). The caller
 * owns the channel. Returns it; on error NULL with errno EINVAL (too large), ENOMEM. */
ACO_API aco_channel_t *aco_channel_new(size_t capacity, size_t element_size);

/* Frees the channel and the elements in it. Returns 0; on error -1 with errno EINVAL (NULL), EBUSY (tasks wait for
 * it). */
ACO_API int aco_channel_destroy(aco_channel_t *channel);

/* Closes the channel. From then on senders fail with EPIPE, waiting ones too. Receivers get the elements that are left;
 * then they fail with EPIPE. Returns 0; on error -1 with errno EINVAL (NULL), EPIPE (closed before). */
ACO_API int aco_channel_close(aco_channel_t *channel);

/* Sends a copy of *element. Waits while the channel is full; with a capacity of 0, until a receiver has the element.
 * Returns 0; on error -1 with errno EPIPE (closed), EPERM (the caller cannot wait), EINVAL (the channel is NULL; or the
 * element is, and elements have more than 0 bytes). */
ACO__CALL int aco_channel_send_at(aco_channel_t *channel, const void *element, const char *location);
#define aco_channel_send(channel, element) aco_channel_send_at(channel, element, ACO_PLACE)
ACO__CALL int aco_channel_send_until_at(aco_channel_t *channel, const void *element, int64_t deadline,
                                        const char *location);
#define aco_channel_send_until(channel, element, deadline)                                                             \
    aco_channel_send_until_at(channel, element, deadline, ACO_PLACE)

/* Receives into *element; NULL drops the element. Waits while the channel is empty. Returns 0; on error -1 with errno
 * EPIPE (closed and empty), EPERM (the caller cannot wait), EINVAL (the channel is NULL). */
ACO__CALL int aco_channel_receive_at(aco_channel_t *channel, void *element, const char *location);
#define aco_channel_receive(channel, element) aco_channel_receive_at(channel, element, ACO_PLACE)
ACO__CALL int aco_channel_receive_until_at(aco_channel_t *channel, void *element, int64_t deadline,
                                           const char *location);
#define aco_channel_receive_until(channel, element, deadline)                                                          \
    aco_channel_receive_until_at(channel, element, deadline, ACO_PLACE)

/* These send and receive without waiting. They fail as the calls above, but with EAGAIN where those wait. */
ACO_API int aco_channel_try_send(aco_channel_t *channel, const void *element);
ACO_API int aco_channel_try_receive(aco_channel_t *channel, void *element);

typedef enum aco_select_operation_e { ACO_SELECT_SEND, ACO_SELECT_RECEIVE } aco_select_operation_t;

/* One of the operations that aco_select() chooses from. */
typedef struct aco_select_case_s {
    aco_channel_t *channel; /* NULL: never ready */
    void *element;          /* to send from (not NULL, unless elements have 0 bytes), or receive into (NULL: drop it) */
    aco_select_operation_t operation;
    int error;              /* of the chosen case: 0; EPIPE: the channel is closed, nothing was done */
    aco__waiter_t aco__waiter;
} aco_select_case_t;

/* Does one of the `n` cases: the first one that is ready. Each call starts its search at another case. If none is
 * ready, waits for one. Several cases may have the same channel. Returns the index of the case; on error -1 with errno
 * EINVAL (`n` is negative, the cases are NULL, or an element to send is), EPERM (the caller cannot wait). */
ACO__CALL int aco_select_at(aco_select_case_t *cases, int n, const char *location);
#define aco_select(cases, n) aco_select_at(cases, n, ACO_PLACE)
ACO__CALL int aco_select_until_at(aco_select_case_t *cases, int n, int64_t deadline, const char *location);
#define aco_select_until(cases, n, deadline) aco_select_until_at(cases, n, deadline, ACO_PLACE)
/* The same without waiting. Fails with EAGAIN if none is ready. */
ACO_API int aco_try_select(aco_select_case_t *cases, int n);

ACO__END_C

#include "detail/scheduler_inline.h"

#endif
