/* state.c: what the live page shows. */
#ifndef ACO_STATE_H
#define ACO_STATE_H

#include "debug/page.h"

/* /debug/state: threads, tasks by stack and by age, scopes and groups, connections, as JSON */
ACO__SWITCHES ACO__HIDDEN void aco__state_page(aco_http_request_t *request, void *unused);

#endif
