/* poll_task.c: turns of aco_run() among those of tasks. */
#ifndef ACO_POLL_TASK_H
#define ACO_POLL_TASK_H

#include "scheduler/record.h"

/* Gives aco_run() a turn in each round of the ring. 0, or -1 and errno. aco__poll_task_stop() undoes it. */
ACO__HIDDEN int aco__poll_task_start(aco__thread_t *self);
ACO__HIDDEN void aco__poll_task_stop(aco__thread_t *self);

#endif
