/* member.c: the ends of a group's members. */
#ifndef ACO_MEMBER_H
#define ACO_MEMBER_H

#include "scheduler/task.h"

/* Gives places to the spawners that wait, as far as the limit allows. */
ACO__HIDDEN void aco__group_pass_places(aco__thread_t *self, aco_group_t *group);
/* A place in the group is free. */
ACO__HIDDEN void aco__group_free_place(aco__thread_t *self, aco_group_t *group);
/* The task ends with this result and errno: it leaves its scopes and its group, and no post leads to it. */
ACO__HIDDEN void aco__task_leaves_scopes(aco__thread_t *self, aco_t *task, void *result, int error);
/* A task ends with this result, while there are tasks with TASK_SCOPED or other threads that may post. */
ACO__HIDDEN void aco__scoped_task_ends(aco__thread_t *self, aco_t *task, void *result);

#endif
