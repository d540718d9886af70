/* trim.c: pages of waiting tasks' stacks. */
#ifndef ACO_SCHEDULER_TRIM_H
#define ACO_SCHEDULER_TRIM_H

#include "scheduler/record.h"

/* Goes on with the look at the thread's tasks, at up to `most` control blocks. It trims stacks. `before`: the time of
 * the last call. Sets `trim_again`. */
ACO__HIDDEN void aco__trim_some_tasks(aco__thread_t *self, aco__tasks_t *s, int64_t before, size_t most);

#endif
