/* Tasks on every core: threads with a scheduler each, and work that any of them may start (library acorn_threads).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static void *sum(void *tree_or_leaf); // a task: may wait, and submit more
 *
 *   static void *first(void *trees)
 *   {
 *       aco_mt_group_t group;
 *       aco_mt_group_begin(&group, ACO_CANCEL_ON_FAILURE);
 *       for (int i = 0; i < 1000; i++)
 *           aco_submit(&group, sum, &((tree_t *)trees)[i], NULL);
 *       return aco_mt_group_end(&group) == 0 ? NULL : ACO_ERROR; // waits for all
 *   }
 *   ...
 *   aco_threads_options_t options = {0};
 *   options.flags = ACO_THREADS_FIRST_ONLY;
 *   aco_threads_run(0, first, trees, &options); // on as many threads as the process may use
 *
 * A set of threads. aco_threads_run() makes a set: the calling thread and n - 1 new ones. Each thread of the set has a
 * scheduler of its own and runs tasks until all tasks of all threads have ended. A task that has started stays on its
 * thread. The objects of aco/scheduler.h, scope.h, group.h and the library acorn_io belong to one thread, as it says
 * there.
 *
 * Submitted work. aco_submit() gives a function to the whole set. A thread starts it as a new task: the one that
 * submitted it, in a later round of its queue, or one without runnable tasks, whichever comes first. Until then the
 * function has no stack and costs a few words. A thread starts the newest work of its own tasks first; from other
 * threads it takes the oldest first. Work that comes from a thread outside the set, or for one thread, runs in the
 * order of submission. A submitted function may do all that a task may. Its stack is one of the default pool, of the
 * default size.
 *
 * Groups. Each submitted function is a member of a group; members of one group may run on different threads. The rules
 * are those of aco/group.h: a member fails by returning ACO_ERROR with errno as the reason, and the task that began the
 * group waits for all members. The group is a scope. Its deadline counts for the members, and its end reaches them, on
 * other threads soon after. A function that starts after the end of the group's scope is called all the same, and its
 * waits fail. If a function gets no stack although all tasks of its thread wait, it is not called and counts as failed
 * with ENOMEM.
 *
 * Ends. A thread of the set may end although it has tasks, or its aco_run() may fail. Then the members on it count as
 * failed with ECANCELED, its groups are cancelled, and the other threads go on. After such a failure of its aco_run()
 * the thread runs no tasks any more (EBUSY). In the child of fork() only the thread that called fork() is left. The
 * groups of that thread go on; their members that other threads were to run count as failed with ECANCELED. The thread
 * runs all that it submits. If it was in no set, its aco_submit() fails with ECANCELED.
 *
 * Errors are reported as in aco/scheduler.h. Linux and other POSIX systems. */
#ifndef ACO_THREADS_H
#define ACO_THREADS_H

#include "detail/worker.h"
#include "group.h"

ACO__BEGIN_C

/* ---- Sets of threads --------------------------------------------------------------------------------------------- */

typedef struct aco_threads_s aco_threads_t; /* a set of threads; valid until its aco_threads_run() returns */

enum { /* aco_threads_options_t.flags */
    ACO_THREADS_FIRST_ONLY = 1,  /* only the first thread, which is the calling one, runs `fn` */
    ACO_THREADS_PIN = 2,         /* each thread stays on a processor of its own, while there are enough. Linux */
    ACO_THREADS_KEEP_GOING = 4,  /* a failure does not cancel the others */
    ACO_THREADS_INTERRUPTIBLE = 8 /* SIGINT and SIGTERM end the set, as below. Others who listen for them get them too
                                     (aco/process.h). Works only while all threads outside the set block these signals,
                                     and until the calling thread ends, even if it ends inside a task */
};

/* What the signals do, in this order. Without `drain_ns` it begins with step 2:
 *  1. The first signal stops the set, as aco_threads_stop() does. If all tasks end, aco_threads_run() returns 0.
 *  2. `drain_ns` later, or at the next signal, the set is cancelled, as by aco_threads_cancel(). aco_threads_run()
 *     fails with EINTR as soon as all tasks have ended.
 *  3. If tasks do not end although they are cancelled, one more signal has its own action, even if others listen for
 *     it: as a rule it ends the process. If it was a second signal that cancelled the set, this happens after two
 *     seconds without another signal. */

/* Zero in a field, or NULL for the whole structure, means the default. */
typedef struct aco_threads_options_s {
    unsigned flags;
    int64_t drain_ns; /* nanoseconds between the stop and the cancellation; 0: no stop */
    void *aco__reserved[3]; /* reserved fields are 0 */
} aco_threads_options_t;

/* Runs fn(arg) as a task on each of `n` threads (0: aco_threads_usable()). The calling thread is the first of them;
 * tasks that it has already take part. Returns when all tasks of all threads have ended, detached ones too. So a task
 * that waits in a shield without a deadline keeps the call for ever, even if the set is cancelled.
 *
 * `fn` fails by returning ACO_ERROR. The first failure cancels the set, as aco_threads_cancel() does. If the failing
 * thread has other tasks, which may take their time, a line on stderr says so at once.
 *
 * Returns 0; on error -1 with the errno of the first `fn` that failed (EINVAL if that was 0), EPERM (a coroutine calls
 * it), EBUSY (the thread is in a set, or its aco_run() runs), EINVAL (n or drain_ns less than 0, n too large, fn is
 * NULL, unknown flags), EAGAIN and ENOMEM (a thread or its task cannot be made: then no `fn` has been called, and tasks
 * that the thread had are cancelled), or one of aco_run(). */
ACO_API int aco_threads_run(int n, aco_function_t fn, void *arg, const aco_threads_options_t *options);

/* Returns how many threads the process can use at once, at least 1: the processors that its affinity and the quota of
 * its cgroup (version 2 or 1, rounded up) allow. */
ACO_API int aco_threads_usable(void);

/* Returns the set of the calling thread; NULL: it is in none. */
ACO_API aco_threads_t *aco_threads_current(void);

/* Returns the calling thread's number in its set: 0 for the thread that called aco_threads_run(); -1: it is in no
 * set. */
ACO_API int aco_threads_index(void);

/* Returns how many threads the set has made, the caller of aco_threads_run() included. Threads that joined later do not
 * count. */
ACO_API int aco_threads_count(const aco_threads_t *threads);

typedef struct aco_threads_stats_s {
    size_t queued;     /* submitted functions that any thread may start and none has started */
    size_t stolen;     /* how many of them threads have taken from other threads, since the set began */
    unsigned sleeping; /* threads that have looked for something to run, and found nothing */
} aco_threads_stats_t;

/* Stores the statistics of the set. Those of one thread are aco_run_stats() and aco_io_stats(), on that thread. Any
 * thread. Returns 0; on error -1 with errno EINVAL (NULL). */
ACO_API int aco_threads_stats(const aco_threads_t *threads, aco_threads_stats_t *stats);

/* Stops the set and cancels all its tasks, also detached ones and tasks spawned later. Their waits fail with ECANCELED,
 * as if aco_scope_cancel() had ended a scope around each whole task (aco/scope.h); waits in a shield go on. A task that
 * goes on after ECANCELED must end by itself. Any thread; not async-signal-safe. Returns 0; on error -1 with errno
 * EINVAL (NULL). */
ACO_API int aco_threads_cancel(aco_threads_t *threads);

/* Stops the set: on all its threads the scopes of aco_stop_begin() end. Everything else goes on. Any thread; not
 * async-signal-safe. Returns 0; on error -1 with errno EINVAL (NULL). */
ACO_API int aco_threads_stop(aco_threads_t *threads);

/* A scope (aco/scope.h) that also ends, with ECANCELED, when the set of its thread is stopped or cancelled, wherever
 * the task is. A server accepts connections and waits for requests inside such a scope, and answers outside. */
typedef struct aco_stop_s {
    aco_scope_t scope;
    struct aco_stop_s *aco__next, *aco__previous;
} aco_stop_t;

/* Begins such a scope; `deadline` as for aco_scope_begin(). If the set has been stopped, the scope has ended already.
 * Returns 0; on error -1 with errno EPERM (the caller is not a task of a set's thread), EINVAL (NULL, on a share
 * stack), ENOMEM (of a task on a share stack). */
ACO_API int aco_stop_begin_at(aco_stop_t *stop, int64_t deadline, const char *location);
#define aco_stop_begin(stop, deadline) aco_stop_begin_at(stop, deadline, ACO_PLACE)
/* Leaves the scope. The task must not end before it has done so. Returns 0, with errno unchanged; on error -1 with
 * errno EPERM (it is not the innermost scope of the calling task), EINVAL (NULL). */
ACO_API int aco_stop_end(aco_stop_t *stop);

/* The calling thread, one of the program's own, joins the set. It runs fn(arg) as a task, and submitted work, until it
 * has no task left; if `fn` is NULL, it runs submitted work until all tasks of the set have ended. A failure of `fn` is
 * one of the set, as in aco_threads_run(). The set must not end before the call has begun. Returns 0; on error -1 with
 * the errno of `fn` if that failed, EINVAL (the set is NULL), ESRCH (the set has ended), EAGAIN (64 threads are in the
 * set by this call), or EPERM, EBUSY, ENOMEM and those of aco_run() as aco_threads_run(). */
ACO_API int aco_threads_join(aco_threads_t *threads, aco_function_t fn, void *arg);

/* ---- Submitted work ---------------------------------------------------------------------------------------------- */

/* A group with members on several threads. Read-only; `failed`, `error` and `result` may be read when it has ended. A
 * plain structure, not on a share stack. */
typedef struct aco_mt_group_s {
    aco_scope_t scope;      /* of the task that began the group, while inside. When it ends, the members' scopes end */
    aco_group_policy_t policy;
    int error;              /* the errno of the first member that failed; 0: none has. Atomic */
    size_t failed;          /* members that have failed. Atomic */
    void *result;           /* with ACO_FIRST_SUCCESS, what the first member that succeeded returned */
    int succeeded;          /* with ACO_FIRST_SUCCESS, whether a member has. Atomic */
    int aco__ended;         /* the errno with which the members' waits fail; 0: they do not. Atomic */
    int64_t aco__deadline;
    struct aco__set_worker *aco__owner; /* the thread of its task */
    char aco__padding[64];  /* keeps what other threads write and what that thread writes in different cache lines */
    size_t aco__pending;    /* members that have not ended, counted by other threads (src/threads/submit.c). Atomic */
    char aco__more_padding[64];
    size_t aco__own;        /* members that have not ended, counted by the thread of its task */
    int aco__is_open;       /* its task has not called aco_mt_group_end() yet */
    struct aco_mt_group_s *aco__next, *aco__previous; /* other groups that this thread's tasks began */
    aco__answer_t aco__answer;
} aco_mt_group_t;

/* Begins a group without members. The calling task is inside the group's scope until it calls aco_mt_group_end().
 * Returns 0; on error -1 with errno EPERM (the caller is not a task of a set's thread, or cannot wait), EINVAL (NULL,
 * on a share stack, an unknown policy), ENOMEM. */
ACO_API int aco_mt_group_begin_at(aco_mt_group_t *group, aco_group_policy_t policy, const char *location);
#define aco_mt_group_begin(group, policy) aco_mt_group_begin_at(group, policy, ACO_PLACE)

/* Waits until all members have ended, and leaves the group's scope. Nothing interrupts the wait. A task must not end
 * inside a group that it began. Returns 0 if the group succeeded (aco_group_end() says when), else -1 with `error` as
 * errno. With the group still open: -1 with errno EPERM (its scope is not the innermost one of the calling task, or the
 * caller cannot wait), EINVAL (NULL). */
ACO_API int aco_mt_group_end_at(aco_mt_group_t *group, const char *location);
#define aco_mt_group_end(group) aco_mt_group_end_at(group, ACO_PLACE)

typedef enum aco_submit_where_e {
    ACO_SUBMIT_ANYWHERE, /* any thread of the set, as above */
    ACO_SUBMIT_TO,       /* only the thread with the number `thread` */
    ACO_SUBMIT_EVENLY    /* the thread with the fewest unfinished members from this and ACO_SUBMIT_TO; ties go in turn.
                            For work that lasts, such as connections. Threads that have joined get none */
} aco_submit_where_t;

/* Zero in a field, or NULL for the whole structure, means the default. */
typedef struct aco_submit_options_s {
    aco_submit_where_t where; /* which thread runs the function */
    int thread;
    void **result;            /* becomes what the function returns; valid after aco_mt_group_end(). NULL: dropped */
    void *aco__reserved[2];   /* reserved fields are 0 */
} aco_submit_options_t;

/* Has a thread of the group's set run fn(arg) as a member of the group. Any thread may call this, in a task or not,
 * until the group's task calls aco_mt_group_end(); after that only members may. Returns 0; on error -1 with errno
 * ETIMEDOUT, ECANCELED (the group's scope has ended), ESRCH (aco_mt_group_end() has returned; there is no thread with
 * the number; all threads that could get it have ended), EINVAL (NULL, unknown options, the result is on a share
 * stack), ENOMEM. */
ACO_API int aco_submit(aco_mt_group_t *group, aco_function_t fn, void *arg, const aco_submit_options_t *options);

/* Not for programs. As `result` it says: *arg begins with a pointer to a function, void (*)(void *arg), that frees
 * `arg`. That function is called if `fn` will not be, on any thread, before the group ends. */
#ifdef __cplusplus
#define ACO__FREED_UNRUN reinterpret_cast<void **>(static_cast<uintptr_t>(1))
#else
#define ACO__FREED_UNRUN ((void **)(uintptr_t)1)
#endif

/* Divides [begin, end) into parts and calls fn(from, to, arg) for each, on all threads of the calling task's set.
 * Returns when all calls have returned. A part has `grain` elements, the last one perhaps fewer; 0: chosen by the size.
 * `fn` returns 0, or -1 with errno: then parts that have not begun are left out. They are also left out when a scope of
 * the caller ends. The caller makes all calls itself if it is no task, in no set or in a set of one thread, or if there
 * is one part only. Returns 0; on error -1 with the errno of `fn`, or ETIMEDOUT, ECANCELED (a scope has ended), EINVAL
 * (NULL, begin > end; or others take part and the caller is on a share stack), EPERM (others take part and the caller
 * cannot wait), ENOMEM. */
ACO_API int aco_parallel_for(size_t begin, size_t end, size_t grain, int (*fn)(size_t from, size_t to, void *arg),
                             void *arg);

ACO__END_C

#endif
