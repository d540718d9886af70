/* Groups: tasks that belong together. Who begins a group waits for all of them, and they are cancelled together.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_group_t group;
 *   aco_group_begin(&group, ACO_CANCEL_ON_FAILURE);
 *   for (int i = 0; i < n; i++)
 *       if (!aco_group_spawn(&group, fetch, &pages[i], NULL))
 *           break;
 *   if (aco_group_end(&group) != 0) // waits for all
 *       perror("one of the pages");
 *
 * Members. A member is a task that aco_group_spawn() makes. Nobody joins it: it is destroyed when it ends, and another
 * task may then have its address. It *fails* by returning ACO_ERROR, with errno as the reason. Any other result is
 * success, and so is aco_exit().
 *
 * Scope. A group is a scope (aco/scope.h), from aco_group_begin() to aco_group_end(), for the task that began it and
 * for all members. When a scope around the group ends, by its deadline or by cancelling, the waits of the members end
 * too. aco_scope_cancel(&group.scope) cancels the group alone.
 *
 * The end. aco_group_end() returns when all members have ended. Nothing interrupts it: if the group is cancelled, its
 * members' waits fail, they return, and then the call does. If a task ends inside a group that it began, the process
 * aborts with a message: the members would be left alone.
 *
 * Memory. A group is a plain structure, usually a local variable, and needs no memory besides its tasks'.
 *
 * Threads. A group belongs to the thread of its task. */
#ifndef ACO_GROUP_H
#define ACO_GROUP_H

#include "scope.h"

ACO__BEGIN_C

typedef enum aco_group_policy_e {
    ACO_CANCEL_ON_FAILURE, /* the first member that fails cancels the group */
    ACO_KEEP_GOING,        /* failures are counted */
    ACO_FIRST_SUCCESS      /* the first member that succeeds cancels the group; failures are counted */
} aco_group_policy_t;

/* A group. Read-only, except `limit`. */
typedef struct aco_group_s {
    aco_scope_t scope;        /* of the members and of the task that began the group, while inside */
    size_t limit;             /* the most members at once: spawning waits until fewer run. 0: no limit. The task that
                                 began the group may set it any time. Spawners that wait notice a higher limit at the
                                 next aco_group_spawn() or aco_group_end(), or when a member ends */
    size_t running;           /* members that have not ended, and places that were given to waiting spawners */
    size_t succeeded, failed; /* how many members have ended with success, and with a failure */
    int error;                /* the errno of the first member that failed (EINVAL if it was 0); 0: none has failed */
    aco_group_policy_t policy;
    void *result;             /* what the first member that succeeded returned; NULL: none has */
    struct aco__task_record *aco__first, *aco__last; /* the members */
    aco__queue_t aco__spawners;
    aco__wait_t *aco__ender;  /* the wait of aco_group_end(), or NULL */
} aco_group_t;

/* Begins a group without members. The calling task is inside its scope until it calls aco_group_end(). Returns 0; on
 * error -1 with errno EPERM (the caller is in no task), EINVAL (NULL, an unknown policy; the group or a scope around it
 * is on a share stack), ENOMEM (of a task on a share stack). */
ACO_API int aco_group_begin_at(aco_group_t *group, aco_group_policy_t policy, const char *location);
#define aco_group_begin(group, policy) aco_group_begin_at(group, policy, ACO_PLACE)

/* Makes a task that runs fn(arg), as aco_spawn() does, as a member of the group. If the group has reached its `limit`,
 * waits until fewer members run; spawners get places in the order in which they came. Any task of the thread may call
 * it until aco_group_end() returns. Returns the task; on error NULL with errno as aco_spawn(), or ETIMEDOUT, ECANCELED
 * (the group's scope, or the caller's while it waits, has ended), ESRCH (the group has ended), EINVAL (NULL), EPERM (it
 * is another thread's, or the caller cannot wait for a place). */
ACO__CALL aco_t *aco_group_spawn_at(aco_group_t *group, aco_function_t fn, void *arg, void **result,
                                    const aco_options_t *options, const char *location);
#define aco_group_spawn(group, fn, arg, options) aco_group_spawn_at(group, fn, arg, NULL, options, ACO_PLACE)
/* As aco_group_spawn(). When the member ends, *result becomes what it returned. `result` must be valid until
 * aco_group_end(). Also fails with EINVAL if `result` is on a share stack. */
#define aco_group_spawn_result(group, fn, arg, result, options) \
    aco_group_spawn_at(group, fn, arg, result, options, ACO_PLACE)

/* Waits until no member runs, and leaves the group's scope. Returns 0 if the group succeeded: with ACO_FIRST_SUCCESS,
 * if a member succeeded or there was none; else, if no member failed. If the group failed, returns -1 with errno
 * `error`. If the call fails itself, the group is still open: returns -1 with errno EPERM (its scope is not the
 * innermost one of the calling task, or the caller cannot wait), EINVAL (NULL). */
ACO__CALL int aco_group_end_at(aco_group_t *group, const char *location);
#define aco_group_end(group) aco_group_end_at(group, ACO_PLACE)

ACO__END_C

#include "detail/group_inline.h"

#endif
