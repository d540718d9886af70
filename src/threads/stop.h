/* How a set is stopped: stop.c. */
#ifndef ACO_THREADS_STOP_H
#define ACO_THREADS_STOP_H

#include "threads/set.h"

/* The worker's thread: ends the scopes that end when the set is stopped, if it is. */
ACO__HIDDEN void aco__threads_end_stops(const aco__set_worker_t *worker);
/* Returns run(threads, worker), during which a thread listens for SIGINT and SIGTERM; or an errno. */
ACO__HIDDEN int aco__threads_run_watched(aco_threads_t *threads, aco__set_worker_t *worker,
                                         int (*run)(aco_threads_t *threads, aco__set_worker_t *worker));
/* The first worker's thread: ends that thread, if there is one. */
ACO__HIDDEN void aco__threads_end_watch(aco_threads_t *threads);

#endif
