/* listeners.c: which signals the process listens for. */
#ifndef ACO_LISTENERS_H
#define ACO_LISTENERS_H

#include "scheduler/record.h"

/* Unblocks what the thread was asked to unblock. Called where no task runs: tasks may give the inbox no turn. */
ACO__HIDDEN void aco__signals_settle(aco__thread_t *self, aco__tasks_t *s);
/* The thread ends: nobody asks it any more to unblock signals. */
ACO__HIDDEN void aco__listens_no_more(aco__tasks_t *s);

#endif
