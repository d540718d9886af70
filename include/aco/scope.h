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
 *   - aco_cond_wait() locks its mutex again before it fails, however long that takes. After a failed join, the task can
 *     be joined again. A send that fails has sent nothing.
 *   - aco_task_yield() and aco_sleep(0) do not fail: a loop that never waits asks aco_check_cancelled().
 *   - A deadline that passes while other tasks run is noticed within one round of the queue.
 *
 * Nesting. Scopes of one task nest: it leaves them in reverse order. When a scope ends, all scopes inside it end too.
 * So the earliest deadline counts, and an inner scope cannot extend an outer one. A shield is a scope that does not end
 * with the scopes around it: for cleanup that must wait. Deferred calls (aco_defer()) may not wait at all.
 *
 * Tasks. A new task has no scope: the scopes of its spawner do not bind it. A member of a group (aco/group.h) is in the
 * group's scope. A task that ends leaves its scopes.
 *
 * Memory. A scope is a plain structure, usually a local variable. It must not be moved or freed before aco_scope_end(),
 * and needs no other destruction. All waits inside a scope share one timer. The first scope of a task on a share stack
 * allocates memory, and may fail with ENOMEM. An inner coroutine on a share stack cannot have a scope there (EINVAL).
 *
 * Threads. A scope belongs to the thread of its task. Other threads may only cancel it. */
#ifndef ACO_SCOPE_H
#define ACO_SCOPE_H

#include "scheduler.h"

ACO__BEGIN_C

/* A scope. Read-only. */
typedef struct aco_scope_s {
    int error; /* why it ended early: ETIMEDOUT, ECANCELED; 0: it has not, or only because one around it has */
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

/* Begins a scope that ends at `deadline` on the clock of aco_now(); with ACO_FOREVER, never. The calling task is inside
 * until it calls aco_scope_end(). Returns 0; on error -1 with errno EPERM (the caller is in no task), EINVAL (NULL, or
 * on the share stack of an inner coroutine), ENOMEM (of a task on a share stack). */
ACO_API int aco_scope_begin_at(aco_scope_t *scope, int64_t deadline, const char *location);
#define aco_scope_begin(scope, deadline) aco_scope_begin_at(scope, deadline, ACO_PLACE)

/* Begins a shield, as aco_scope_begin() does a scope: inside, ends and deadlines of scopes around it do not count. */
ACO_API int aco_shield_begin_at(aco_scope_t *scope, int64_t deadline, const char *location);
#define aco_shield_begin(scope, deadline) aco_shield_begin_at(scope, deadline, ACO_PLACE)

/* Leaves a scope or a shield, ended or not. `error` and aco_scope_ended_by() keep their answers. Returns 0 and leaves
 * errno unchanged; on error -1 with errno EPERM (it is not the innermost scope of the calling task), EBUSY (it is a
 * group's), EINVAL (NULL). */
ACO_API int aco_scope_end(aco_scope_t *scope);

/* Ends a scope with ECANCELED. Tasks that wait inside are woken; they run later. Nothing happens if the scope has ended
 * before. Any thread may call it if the scheduler of the scope's thread is open (aco_scheduler_open()); then the scope
 * ends soon after. In that case the task must not leave the scope before the call returns, and must leave it by
 * aco_scope_end() or aco_exit(), not by returning. Returns 0; on error -1 with errno ESRCH (its task has left it),
 * EPERM (it is another thread's, whose scheduler is not open), EINVAL (NULL). */
ACO_API int aco_scope_cancel(aco_scope_t *scope);

/* Returns the scope whose end makes waits inside `scope`, not NULL, fail or made them fail: `scope` itself or one
 * around it. NULL: they do not fail. The returned scope may have been left since. */
ACO_API const aco_scope_t *aco_scope_ended_by(const aco_scope_t *scope);

/* Tells whether the calling task may go on. Looks at the clock if there is a deadline. Returns 0 if it may; else -1
 * with the errno that a wait would fail with now: ETIMEDOUT or ECANCELED. Also EPERM (the caller is in no task). */
ACO_API int aco_check_cancelled(void);

/* Returns the deadline that counts for a wait of the calling task. ACO_FOREVER: there is none, or the caller is in no
 * task. */
ACO_API int64_t aco_deadline(void);

ACO__END_C

#endif
