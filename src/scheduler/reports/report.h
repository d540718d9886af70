/* report.c: lines on what tasks do. */
#ifndef ACO_REPORT_H
#define ACO_REPORT_H

#include "scheduler/record.h"

/* Prints where the tasks of the thread wait. Returns -1 with EDEADLK. */
ACO__HIDDEN ACO__COLD int aco__fail_deadlock(const aco__thread_t *self);
/* The task ends: its name is kept for reports. */
ACO__HIDDEN ACO__COLD void aco__remember_name(aco__thread_t *self, const aco_t *task);
/* Says what those tasks, `n` of them, wait for that is_stuck(task, arg) names. */
ACO__HIDDEN void aco__report_stuck(const aco__thread_t *self, int (*is_stuck)(const aco_t *task, const void *arg),
                                   const void *arg, size_t n);

/* What this kind of wait (wait.h) is for: ACO__SEEN_…. */
ACO__HIDDEN int aco__kind_of_wait(unsigned kind);
enum { ACO__REPORT_TEXT = 256 };
/* Fills in what a task of the thread does: all but `thread`, `work`, the frames and the stack of *seen. `text` is for
 * its texts. */
ACO__HIDDEN void aco__report_task(const aco__thread_t *self, const aco_t *task, int wants_text,
                                  char text[3 * ACO__REPORT_TEXT], aco__task_seen_t *seen);

#endif
