/* stuck.c: tasks that wait for each other. */
#ifndef ACO_STUCK_H
#define ACO_STUCK_H

#include "scheduler/record.h"

enum { ACO__MOST_STUCK_REPORTS = 16 }; /* of a thread */
/* Calls see() for all tasks of the thread that wait for each other for ever. -1: no memory. */
ACO__HIDDEN int aco__stuck_each(const aco__thread_t *self, void (*see)(const aco_t *task, void *arg), void *arg);
/* For a watched thread, which is about to wait until `deadline`, or runs tasks (0): reports tasks that wait for each
 * other, from time to time. Returns until when to wait. */
ACO__HIDDEN int64_t aco__stuck_check(const aco__thread_t *self, aco__tasks_t *s, int64_t deadline);

#endif
