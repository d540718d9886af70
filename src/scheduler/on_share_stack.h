/* on_share_stack.c: tasks on share stacks. */
#ifndef ACO_ON_SHARE_STACK_H
#define ACO_ON_SHARE_STACK_H

#include "scheduler/task.h"

/* Prepares a new one, which is no task yet: it will begin with begin(). 0, or -1 and errno. */
ACO__HIDDEN int aco__on_share_stack_prepare(aco_t *co, aco__arrival_t *first, aco_function_t fn);
/* One ends, and still runs on the stack. */
ACO__HIDDEN void aco__on_share_stack_ends(aco__thread_t *self, aco_t *task);

#endif
