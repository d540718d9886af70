/* all_tasks.c: what all tasks do. */
#ifndef ACO_ALL_TASKS_H
#define ACO_ALL_TASKS_H

#include "debug/page.h"

/* /debug/pprof/tasks; `name`: "tasks", "goroutine", or "leaked": only those that wait for each other for ever */
ACO__SWITCHES ACO__HIDDEN void aco__tasks_page(aco_http_request_t *request, void *name);
/* /debug/pprof/block, mutex: for how long tasks wait; `kinds`: an int with those of aco/detail/inspect.h, by looks at
 * all tasks for some time. /debug/pprof/stacks, `kinds` NULL: how much of their stacks they have touched */
ACO__SWITCHES ACO__HIDDEN void aco__waits_page(aco_http_request_t *request, void *kinds);

#endif
