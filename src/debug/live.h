/* live.c: the page for people. */
#ifndef ACO_LIVE_H
#define ACO_LIVE_H

#include "debug/page.h"

/* /debug/live */
ACO__SWITCHES ACO__HIDDEN void aco__live_page(aco_http_request_t *request, void *unused);

#endif
