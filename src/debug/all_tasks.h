/* all_tasks.c: what all tasks do. */
#ifndef ACO_ALL_TASKS_H
#define ACO_ALL_TASKS_H

#include "debug/page.h"
#include "system/system.h"

#include "aco/detail/inspect.h"

#include <pthread.h>

/* /debug/pprof/tasks; `name`: "tasks", "goroutine", or "leaked": only those that wait for each other for ever */
ACO__SWITCHES ACO__HIDDEN void aco__tasks_page(aco_http_request_t *request, void *name);
/* Has all threads look at their tasks, which add what they see under the lock. Waits until all have answered, for
 * `patience_ms` at most; missing() gets the others, as of aco__inspect_end(). After it no thread adds anything. */
ACO__SWITCHES ACO__HIDDEN void aco__look_at_all(aco__inspection_t *inspection, pthread_mutex_t *lock, int patience_ms,
                                                void (*missing)(void *arg, long thread, int has_begun), void *arg);
enum { ACO__PATIENCE_MS = 700 }; /* then a thread does not give way */
/* /debug/pprof/block, mutex: for how long tasks wait; `kinds`: an int with those of aco/detail/inspect.h, by looks at
 * all tasks for some time. /debug/pprof/stacks, `kinds` NULL: how much of their stacks they have touched */
ACO__SWITCHES ACO__HIDDEN void aco__waits_page(aco_http_request_t *request, void *kinds);

#endif
