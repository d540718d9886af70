/* inner.c: coroutines that a task resumed. They are inner coroutines, and the task waits for them. */
#ifndef ACO_INNER_H
#define ACO_INNER_H

#include "scheduler/task.h"

/* The task of the inner coroutine that runs. NULL: nothing runs, or not in a task, or the task cleans up. */
ACO__HIDDEN ACO__COLD aco_t *aco__task_around(const aco__thread_t *self);
/* Whether the caller is an inner coroutine that may wait. */
ACO__HIDDEN ACO__COLD int aco__may_leave_inner(const aco__thread_t *self);
/* The same, with the reason why not: 0; or -1 and errno. */
ACO__HIDDEN ACO__COLD int aco__check_inner(aco__thread_t *self, const char *call);

#endif
