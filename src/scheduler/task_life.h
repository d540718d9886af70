/* task_life.c: how a task begins, ends, and is freed. */
#ifndef ACO_TASK_LIFE_H
#define ACO_TASK_LIFE_H

#include "scheduler/task.h"

/* A new task begins here, on its stack. */
ACO__HIDDEN ACO__ARRIVAL_ABI void aco__task_begin(ACO__ARRIVAL_PARAMETERS);
/* The running task ends: `end_task` of the scheduler's record. */
ACO__HIDDEN __attribute__((noreturn)) void aco__task_end_running(aco_t *task, void *result);
/* Frees the task that has ended last and still stood on its stack: `reap` of the record. */
ACO__HIDDEN void aco__task_reap(struct aco__scheduler *s);
/* 0 if `task` is a live task of this thread; else -1 and errno. */
ACO__HIDDEN int aco__task_check(const aco__thread_t *self, const char *call, const aco_t *task);
/* Whether `task` is a task that has ended and was neither destroyed nor restarted. */
ACO__HIDDEN int aco__task_has_ended(const aco_t *task);

/* While such a task lives, its thread's tasks switch through aco_run(). */
static inline int aco__needs_slow_switch(const aco_t *task)
{
    return (task->aco__state & (ACO__INSTRUMENTED | ACO__SHARES_FP)) != ACO__SHARES_FP;
}

#endif
