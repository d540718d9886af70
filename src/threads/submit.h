/* Groups and their members: submit.c. */
#ifndef ACO_THREADS_SUBMIT_H
#define ACO_THREADS_SUBMIT_H

#include "threads/set.h"

/* The worker's thread: starts items of its own and, if it searches, else of others. Whether it has started any. */
ACO__HIDDEN int aco__threads_start(aco__set_worker_t *worker, int searches, int is_idle);
/* The worker's thread: passes the ends of groups on to members. */
ACO__HIDDEN void aco__threads_pass_ends(const aco__set_worker_t *worker);
ACO__HIDDEN void aco__threads_group_ended(aco__worker_t *worker, aco_scope_t *scope);
/* The worker's tasks never run again. */
ACO__HIDDEN void aco__threads_abandon(aco__set_worker_t *worker);
/* In the child of fork(), on the thread that called it. */
ACO__HIDDEN void aco__threads_forget_others(aco__set_worker_t *worker);

#endif
