/* scopes.c: deadlines and cancelling. */
#ifndef ACO_SCOPES_H
#define ACO_SCOPES_H

#include "scheduler/task.h"

enum { /* aco_scope_t.aco__flags */
    ACO__SCOPE_SHIELD = 1,
    ACO__SCOPE_GROUP = 2,  /* it is the first field of one */
    ACO__SCOPE_MT = 4, /* acorn_threads began it and must end it */
    ACO__SCOPE_TOLD = 8    /* and is told when it ends early */
};
/* The record of a task; it becomes valid. NULL and errno on failure; not for a task on a private stack. */
ACO__HIDDEN aco__task_record_t *aco__scope_record(aco__thread_t *self, const aco_t *task);
ACO__HIDDEN int aco__scope_begin(const char *call, aco_scope_t *scope, int64_t deadline, unsigned flags,
                                 const char *location);
/* 0 if this is the innermost scope of the calling task; else -1. */
ACO__HIDDEN int aco__scope_check_end(const aco__thread_t *self, const char *call, const aco_scope_t *scope);
/* The running task leaves its innermost scope. */
ACO__HIDDEN void aco__scope_leave(aco__thread_t *self, aco_scope_t *scope);
/* Ends a scope early with `error`, and all scopes inside; interrupts the waits there. */
ACO__HIDDEN void aco__scope_finish(aco__thread_t *self, aco_scope_t *scope, int error);
/* The running task, whose scopes are in use, is about to wait: 0; or -1 and errno if it must not, see
 * aco__wait_prepare(). */
ACO__HIDDEN int aco__scope_admit(aco__thread_t *self, const aco__wait_t *wait);
/* Before the thread sleeps: removes timers of scopes that were left, or moves them to the scopes' next deadlines, as
 * long as the first timer is such a one and due before `until`. ACO_FOREVER: so that a deadlock is noticed. Less: what
 * stays in place at worst wakes the thread once. */
ACO__HIDDEN void aco__scope_timers_refresh(aco__thread_t *self, int64_t until);
/* No post of another thread cancels a scope of the task any more: it ends. */
ACO__HIDDEN void aco__scopes_forget_posts(aco__tasks_t *s, const aco_t *task);

#endif
