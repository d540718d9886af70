/* pages.c: the pages. */
#ifndef ACO_PAGES_H
#define ACO_PAGES_H

#include "debug/page.h"

/* Middleware of a server that is not public: refuses requests whose Host is no loopback address. A page of a browser
 * could reach the port by a name of its own that resolves to the loopback address. */
ACO__SWITCHES ACO__HIDDEN void aco__debug_check_host(aco_http_request_t *request, void *unused);
/* Whether this is a loopback address, or "localhost". */
ACO__HIDDEN int aco__debug_is_loopback(const char *host);

/* aco_debug_routes() */
ACO__HIDDEN const aco_http_route_t *aco__debug_routes(void);

#endif
