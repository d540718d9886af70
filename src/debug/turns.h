/* turns.c: a trace of tasks' turns. */
#ifndef ACO_TURNS_H
#define ACO_TURNS_H

#include "debug/page.h"

/* /debug/pprof/trace: which task ran when, and what it waited for, for Perfetto */
ACO__SWITCHES ACO__HIDDEN void aco__turns_page(aco_http_request_t *request, void *unused);

#endif
