/* Groups: tasks that belong together. Whoever begins a group waits for all of them, and they are cancelled together.
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
 * Members. A member is a task that aco_group_spawn() makes. It is not joined: it is destroyed when it ends, and another
 * task may then have its address. It *fails* by returning ACO_ERROR, with errno as the reason; whatever else it
 * returns, or aco_exit(), is success.
 *
 * Scope. A group is a scope (aco/scope.h), from aco_group_begin() to aco_group_end(), for the task that began it and
 * for all members. So what ends a scope around the group, a deadline or a cancelling, ends the waits of its members,
 * and aco_scope_cancel(&group.scope) cancels the group alone.
 *
 * The end. aco_group_end() returns when all members have ended. Nothing interrupts it: if the group is cancelled, its
 * members' waits fail, they return, and then the call does. A task that ends inside a group that it began aborts the
 * process with a message: its members would be left alone.
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
    size_t limit;             /* at most so many members at once: spawning waits until fewer run. 0: no limit. The task
                                 that began the group may set it any time. Spawners that wait notice a higher limit at
                                 the next aco_group_spawn() or aco_group_end(), or when a member ends */
    size_t running;           /* members that have not ended, and places that waiting spawners were given */
    size_t succeeded, failed; /* members that have ended so */
    int error;                /* the errno of the first that failed (EINVAL if that was 0); 0: none has failed */
    aco_group_policy_t policy;
    void *result;             /* what the first that succeeded returned; NULL: none has */
    struct aco__task_record *aco__first, *aco__last; /* the members */
    aco__queue_t aco__spawners;
    aco__wait_t *aco__ender;  /* the wait of aco_group_end(), or NULL */
} aco_group_t;

/* Begins a group without members. The calling task is inside its scope until it calls aco_group_end(). 0, or -1 and
 * errno: EPERM (the caller is not a task), EINVAL (NULL, an unknown policy). */
ACO_API int aco_group_begin_at(aco_group_t *group, aco_group_policy_t policy, const char *location);
#define aco_group_begin(group, policy) aco_group_begin_at(group, policy, ACO_PLACE)

/* Makes a task that runs fn(arg), as aco_spawn() does, as a member of the group. With a limit, waits until fewer
 * members run; those who wait get the places in their order. Any task of the thread may call it until aco_group_end()
 * returns. NULL and errno: those of aco_spawn(); ETIMEDOUT, ECANCELED (the group's scope, or the caller's, has ended);
 * ESRCH (the group has ended), EINVAL (NULL), EPERM (another thread's, or the caller cannot wait for a place). */
ACO__CALL aco_t *aco_group_spawn_at(aco_group_t *group, aco_function_t fn, void *arg, const aco_options_t *opts,
                                    void **result, const char *location);
#define aco_group_spawn(group, fn, arg, opts) aco_group_spawn_at(group, fn, arg, opts, NULL, ACO_PLACE)
/* The same; *result becomes what the member returns, when it ends. `result` must be valid until aco_group_end(). */
#define aco_group_spawn_result(group, fn, arg, opts, result) aco_group_spawn_at(group, fn, arg, opts, result, ACO_PLACE)

/* Waits until no member runs and leaves the group's scope. 0 if the group succeeded: with ACO_FIRST_SUCCESS, if a
 * member succeeded or there was none; else, if no member failed. -1 and errno: `error`; or, with the group still open,
 * EPERM (its scope is not the innermost one of the calling task, or the caller cannot wait), EINVAL (NULL). */
ACO__CALL int aco_group_end_at(aco_group_t *group, const char *location);
#define aco_group_end(group) aco_group_end_at(group, ACO_PLACE)

ACO__END_C

#include "detail/group_inline.h"

#endif
