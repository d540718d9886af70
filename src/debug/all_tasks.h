/* all_tasks.c: what all tasks do. */
#ifndef ACO_ALL_TASKS_H
#define ACO_ALL_TASKS_H

#include "debug/page.h"

/* /debug/pprof/tasks; `name`: "tasks" or "goroutine" */
ACO__SWITCHES ACO__HIDDEN void aco__tasks_page(aco_http_request_t *request, void *name);

#endif
