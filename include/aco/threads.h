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
 *           aco_submit(&group, sum, &((tree_t *)trees)[i]);
 *       return aco_mt_group_end(&group) == 0 ? NULL : ACO_ERROR; // waits for all
 *   }
 *   ...
 *   aco_threads_options_t options = {0};
 *   options.flags = ACO_THREADS_FIRST_ONLY;
 *   aco_threads_run(0, first, trees, &options); // on as many threads as the process may use
 *
 * A set of threads. Each thread of a set has a scheduler of its own: aco_threads_run() makes the calling thread and
 * n - 1 new ones run tasks, until all tasks of all threads have ended. A task that has started stays on its thread.
 * What aco/scheduler.h, scope.h, group.h and the library acorn_io have belongs to one thread, as it says there.
 *
 * Submitted work. aco_submit() gives a function to the whole set: whichever thread is idle first starts it, as a task
 * of its own. Until then it has no stack and costs a few words. A thread starts first what its own tasks have submitted
 * last; a thread without runnable tasks takes work from others, what they have submitted first. What is submitted by
 * another thread than those of the set, or by aco_submit_to(), runs in the order of submission. A submitted function
 * may do all that a task may. Its stack is one of the default pool, of the default size.
 *
 * Groups. Each submitted function is a member of a group, which it may share with members on other threads. As
 * with aco/group.h, a member fails by returning ACO_ERROR with errno as the reason, whoever began the group waits for
 * all members, and a group is a scope: its deadline counts for the members, and its end reaches them, on other threads
 * soon after. A function that starts in a group that has ended is called all the same: its waits fail. One for which no
 * stack can be had, although all tasks of its thread wait, counts as failed with ENOMEM and is not called.
 *
 * Ends. If a thread of the set ends although it has tasks, or its aco_run() fails, its members count as failed with
 * ECANCELED and its groups are cancelled; the others go on. After such a failure the thread runs no tasks any more
 * (EBUSY). In the child of fork(), only the thread that called it is there: its groups go on without the members that
 * other threads were to run, which count as failed with ECANCELED. It takes all that it submits; if it was in no set,
 * aco_submit() fails with ECANCELED.
 *
 * Errors are those of aco/scheduler.h. Linux and other POSIX systems. */
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
                                     (aco/process.h). Only while threads of the program that are not of the set block
                                     these signals, and until the calling thread ends, also in a task */
};

/* What the signals do, in this order. Without `drain_ns` it begins with the second:
 *  1. The first signal stops the set, as aco_threads_stop() does. If all tasks end, aco_threads_run() returns 0.
 *  2. `drain_ns` later, or with the next signal, the set is cancelled, as by aco_threads_cancel(), and
 *     aco_threads_run() fails with EINTR as soon as all tasks have ended.
 *  3. If tasks do not end although they are cancelled, one more signal has its own action, whoever else listens for it:
 *     as a rule it ends the process. Two seconds after a second signal that has cancelled the set, that happens
 *     without one. */

/* Zero in a field, and NULL for the whole, stands for the default. */
typedef struct aco_threads_options_s {
    unsigned flags;
    int64_t drain_ns; /* nanoseconds between the stop and the cancellation; 0: no stop */
    void *aco__reserved[3]; /* reserved fields are 0 */
} aco_threads_options_t;

/* Runs fn(arg) as a task on each of `n` threads (0: aco_threads_usable()), and returns when all tasks of all threads
 * have ended, detached ones too. So a task that waits in a shield without a deadline keeps the call for ever, also when
 * the set is cancelled. The calling thread is the first of them; its tasks take part. `fn` fails by returning
 * ACO_ERROR: the first that does cancels the set, as by aco_threads_cancel(), and aco_threads_run() fails with its
 * errno (EINVAL if that was 0). If its thread has other tasks, which may take their time, a line on stderr says it at
 * once. Also -1 and errno: EPERM (a coroutine calls it), EBUSY (the thread is in a set, or its aco_run() runs),
 * EINVAL (n less than 0 or too large, NULL, unknown flags), EAGAIN and ENOMEM (a thread or its task cannot be made:
 * then no `fn` has been called, and tasks that the thread had are cancelled), or those of aco_run(). */
ACO_API int aco_threads_run(int n, aco_function_t fn, void *arg, const aco_threads_options_t *options);

/* How many threads the process can use at once: the processors that its affinity and its cgroup's quota (version 2 or
 * 1, rounded up) allow; at least 1. */
ACO_API int aco_threads_usable(void);

/* The set of the calling thread; NULL: it is in none. */
ACO_API aco_threads_t *aco_threads_current(void);

/* The calling thread's number in its set: 0 is the one that called aco_threads_run(). -1: it is in none. */
ACO_API int aco_threads_index(void);

/* How many threads the set has made, and the calling one; those that joined later do not count. */
ACO_API int aco_threads_count(const aco_threads_t *threads);

/* Stops the set and cancels all its tasks, detached ones and those that are spawned later too: it is as if each had
 * begun in a scope (aco/scope.h) for which aco_scope_cancel() is called. So shields protect, and a task that goes on
 * after ECANCELED must end by itself. Any thread; not async-signal-safe. 0, or -1 and errno EINVAL. */
ACO_API int aco_threads_cancel(aco_threads_t *threads);

/* Stops the set: the scopes of aco_stop_begin() end on all its threads. The rest goes on. Any thread; not
 * async-signal-safe. 0, or -1 and errno EINVAL. */
ACO_API int aco_threads_stop(aco_threads_t *threads);

/* A scope (aco/scope.h) that ends with ECANCELED also when the set of its thread is stopped or cancelled, wherever the
 * task is: a server accepts connections and waits for requests in one, and answers outside. */
typedef struct aco_stop_s {
    aco_scope_t scope;
    struct aco_stop_s *aco__next, *aco__previous;
} aco_stop_t;

/* As aco_scope_begin(), with such a scope. If the set has been stopped, it has ended. 0, or -1 and errno: EPERM (the
 * caller is not a task of a set's thread), EINVAL (NULL, on a share stack). */
ACO_API int aco_stop_begin_at(aco_stop_t *stop, int64_t deadline, const char *location);
#define aco_stop_begin(stop, deadline) aco_stop_begin_at(stop, deadline, ACO_PLACE)
/* Leaves it. The task must not end before. 0, with errno unchanged; or -1 and errno: EPERM (it is not the innermost
 * scope of the calling task), EINVAL (NULL). */
ACO_API int aco_stop_end(aco_stop_t *stop);

/* A thread of the program joins the set: it runs fn(arg) as a task, and submitted work, until no tasks are left on it;
 * with NULL for `fn`, until all tasks of the set have ended. The set must not end before the call has begun. 0; or -1
 * and errno: that with which `fn` failed, ESRCH (the set has ended), EAGAIN (64 threads have joined), and those of
 * aco_threads_run(). */
ACO_API int aco_threads_join(aco_threads_t *threads, aco_function_t fn, void *arg);

/* ---- Submitted work ---------------------------------------------------------------------------------------------- */

/* A group with members on several threads. Read-only; `failed`, `error` and `result` when it has ended. It is a plain
 * structure, not on a share stack. */
typedef struct aco_mt_group_s {
    aco_scope_t scope;      /* of the task that began the group, while inside; its end is that of the members' scopes */
    aco_group_policy_t policy;
    int error;              /* the errno of the first member that failed; 0: none has. Atomic, like the next three */
    size_t failed;          /* members that have failed */
    void *result;           /* with ACO_FIRST_SUCCESS, what the first member that succeeded returned */
    int succeeded;          /* with ACO_FIRST_SUCCESS, whether a member has */
    int aco__ended;         /* the errno with which the members' waits fail; 0: they do not. Atomic */
    int64_t aco__deadline;
    struct aco__crew *aco__owner; /* the thread of its task */
    char aco__padding[64];  /* what other threads write and what that thread does are in cache lines of their own */
    size_t aco__pending;    /* members that have not ended: src/threads/submit.c says which. Atomic */
    char aco__more_padding[64];
    size_t aco__own;        /* the other ones, counted by the thread of its task */
    int aco__is_open;       /* it has not come to its end */
    struct aco_mt_group_s *aco__next, *aco__previous; /* others that this thread's tasks began */
    aco__answer_t aco__answer;
} aco_mt_group_t;

/* Begins a group without members. The calling task is inside its scope until it calls aco_mt_group_end(). 0, or -1
 * and errno: EPERM (the caller is not a task of a set's thread), EINVAL (NULL, on a share stack, an unknown policy). */
ACO_API int aco_mt_group_begin_at(aco_mt_group_t *group, aco_group_policy_t policy, const char *location);
#define aco_mt_group_begin(group, policy) aco_mt_group_begin_at(group, policy, ACO_PLACE)

/* Waits until all members have ended, and leaves the group's scope. Nothing interrupts it. A task must not end inside a
 * group that it began. 0 if the group succeeded, as for aco_group_end(). -1 and errno: `error`; or, with the group
 * still open, EPERM (its scope is not the innermost one of the calling task, or the caller cannot wait), EINVAL. */
ACO_API int aco_mt_group_end_at(aco_mt_group_t *group, const char *location);
#define aco_mt_group_end(group) aco_mt_group_end_at(group, ACO_PLACE)

/* Has a thread of the group's set run fn(arg) as a member of the group. If `result` is not NULL, *result becomes what
 * it returns; it is valid after aco_mt_group_end(). Any thread may call it, in a task or not, before the group's
 * task calls aco_mt_group_end(); afterwards its members may. 0, or -1 and errno: ETIMEDOUT, ECANCELED (the group's
 * scope has ended), EINVAL (NULL), ENOMEM. */
ACO_API int aco_submit_result(aco_mt_group_t *group, aco_function_t fn, void *arg, void **result);
#define aco_submit(group, fn, arg) aco_submit_result(group, fn, arg, NULL)

/* The same for the thread with this number; no other runs it. Also ESRCH: there is no such thread. */
ACO_API int aco_submit_to(int thread, aco_mt_group_t *group, aco_function_t fn, void *arg, void **result);

/* The same for the thread with the fewest members that this call and aco_submit_to() have given it and that have not
 * ended; of several, for each in turn. For what lasts, such as connections: aco_submit() goes to whoever is idle at
 * that moment. Threads that have joined get none. ESRCH: all others have ended. */
ACO_API int aco_submit_evenly(aco_mt_group_t *group, aco_function_t fn, void *arg, void **result);

/* Not for programs: as `result`, says that *arg begins with a function, a void (*)(void *arg), that frees it. It is
 * called if `fn` will not be: on any thread, before the group ends. */
#ifdef __cplusplus
#define ACO__FREED_UNRUN reinterpret_cast<void **>(static_cast<uintptr_t>(1))
#else
#define ACO__FREED_UNRUN ((void **)(uintptr_t)1)
#endif

/* Calls fn(from, to, arg) for parts of [begin, end) that cover it, on all threads of the calling task's set, and
 * returns when all calls have returned. A part has `grain` elements or, the last one, fewer; 0: chosen by the size.
 * `fn` returns 0, or -1 with errno: then parts that have not begun are left out. In no set, the calling task or thread
 * makes all calls. 0, or -1 and errno: that of `fn`; ETIMEDOUT, ECANCELED, ENOMEM; EINVAL (NULL, begin > end), EPERM,
 * and on a share stack EINVAL. */
ACO_API int aco_parallel_for(size_t begin, size_t end, size_t grain, int (*fn)(size_t from, size_t to, void *arg),
                             void *arg);

ACO__END_C

#endif
