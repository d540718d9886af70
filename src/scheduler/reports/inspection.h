/* inspection.c: what the tasks of all threads do, for a thread that asks. */
#ifndef ACO_INSPECTION_H
#define ACO_INSPECTION_H

#include "scheduler/record.h"

/* The thread has a scheduler; it ends, or answers no more. */
ACO__HIDDEN void aco__inspect_join(aco__thread_t *self, aco__tasks_t *s);
ACO__HIDDEN void aco__inspect_leave(aco__tasks_t *s);
/* The thread tells of turns (s->tells_turns): one has ended. `is_left`: the task lives; `name` is a copy. */
ACO__HIDDEN ACO__COLD void aco__inspect_turn(aco__thread_t *self, aco__tasks_t *s, const aco_t *task, int is_left,
                                             int64_t began, const char *name);

#endif
