/* Scopes: a deadline and a cancel switch for all that a task does inside.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_scope_t scope;
 *   aco_scope_begin(&scope, aco_after(2 * ACO_SECOND));
 *   if (ask(server) == 0 && read_answer(server, &answer) == 0) // waits, here or in functions that they call
 *       use(&answer);
 *   else if (scope.error == ETIMEDOUT)
 *       puts("no answer within two seconds");
 *   aco_scope_end(&scope);
 *
 * Ending. A scope ends early when its deadline passes (ETIMEDOUT) or when aco_scope_cancel() is called for it
 * (ECANCELED). Then every wait inside fails with -1 and that errno: a wait that has begun, and each later one until the
 * task leaves the scope by aco_scope_end(). The calls that wait are those of aco/scheduler.h with an `_at` form.
 *   - What a task has got, it keeps. A task that was handed a value, a unit, a lock or a result is woken with success,
 *     even if its scope ends before it runs. A call that need not wait succeeds in an ended scope too.
 *   - aco_cond_wait() locks its mutex again before it fails, however long that takes. A join that fails leaves the task
 *     to be joined again. A send that fails has sent nothing.
 *   - aco_task_yield() and aco_sleep(0) do not fail: ask aco_check_cancelled() in a loop that never waits.
 *   - A deadline that passes while other tasks run is noticed within one round of the queue.
 *
 * Nesting. Scopes of one task nest: it ends the one that it began last. The end of a scope is the end of all scopes
 * inside. So the earliest deadline counts, and an inner scope cannot extend an outer one. A shield is a scope that the
 * end of the scopes around it does not reach: for cleanup that must wait. Deferred calls (aco_defer()) may not wait at
 * all.
 *
 * Tasks. A new task has no scope: what its spawner does inside a scope does not bind it. A member of a group
 * (aco/group.h) is in the group's scope. A task that ends leaves its scopes.
 *
 * Memory. A scope is a plain structure, usually a local variable. It needs no destruction besides aco_scope_end(), and
 * must not be moved or freed before that. All waits inside a scope share one timer. The first scope of a task on a
 * share stack allocates memory: -1 and ENOMEM. An inner coroutine on a share stack cannot have one there (EINVAL).
 *
 * Threads. A scope belongs to the thread of its task. Other threads may only cancel it. */
#ifndef ACO_SCOPE_H
#define ACO_SCOPE_H

#include "scheduler.h"

ACO__BEGIN_C

/* A scope. Read-only. */
typedef struct aco_scope_s {
    int error; /* why it ended early: ETIMEDOUT or ECANCELED; 0: it has not, or only with a scope around it */
    unsigned aco__flags;
    aco_t *aco__task;                  /* the task that began it; NULL: it has been left */
    struct aco_scope_s *aco__outer;    /* the scope around it; NULL: none */
    int64_t aco__deadline;             /* its own */
    struct aco_scope_s *aco__limit;    /* the scope with the earliest deadline that counts in this one; NULL: none */
    struct aco_scope_s *aco__ended_by; /* the scope because of which waits in this one fail; NULL: they do not */
    struct aco_scope_s *aco__pending;  /* links scopes that have just ended */
    aco__post_t aco__post;             /* another thread's wish to cancel it */
    const char *aco__location;
} aco_scope_t;

/* Begins a scope that ends at `deadline` on the clock of aco_now(), or never: ACO_FOREVER. The calling task is inside
 * until it calls aco_scope_end(). 0, or -1 and errno: EPERM (the caller is not a task), EINVAL (NULL). */
ACO_API int aco_scope_begin_at(aco_scope_t *scope, int64_t deadline, const char *location);
#define aco_scope_begin(scope, deadline) aco_scope_begin_at(scope, deadline, ACO_PLACE)

/* The same for a shield: the ends and deadlines of scopes around it do not count inside. */
ACO_API int aco_shield_begin_at(aco_scope_t *scope, int64_t deadline, const char *location);
#define aco_shield_begin(scope, deadline) aco_shield_begin_at(scope, deadline, ACO_PLACE)

/* Leaves a scope or a shield, ended or not. `error` and aco_scope_ended_by() keep their answers. 0, with errno
 * unchanged; or -1 and errno: EPERM (it is not the innermost scope of the calling task), EBUSY (a group's), EINVAL
 * (NULL). */
ACO_API int aco_scope_end(aco_scope_t *scope);

/* Ends a scope with ECANCELED. Tasks that wait inside are woken; they run later. Nothing happens if it has ended
 * before. 0, or -1 and errno: ESRCH (its task has left it), EPERM (another thread's, not open), EINVAL (NULL). Any
 * thread, if the scheduler of the scope's thread is open (aco_scheduler_open()); the scope ends soon after. It must not
 * be left before the call returns, and its task must leave it by aco_scope_end() or aco_exit(), not by returning. */
ACO_API int aco_scope_cancel(aco_scope_t *scope);

/* The scope because of which waits inside `scope`, not NULL, fail or failed: itself, or one around it; NULL: they do
 * not fail. The answer may have been left since. */
ACO_API const aco_scope_t *aco_scope_ended_by(const aco_scope_t *scope);

/* Whether the calling task may go on: 0, or -1 with the errno with which a wait would fail now, ETIMEDOUT or ECANCELED.
 * Also EPERM (the caller is not a task). Looks at the clock if there is a deadline. */
ACO_API int aco_check_cancelled(void);

/* The deadline that counts for a wait of the calling task. ACO_FOREVER: there is none, or the caller is not a task. */
ACO_API int64_t aco_deadline(void);

ACO__END_C

#endif
