/* Which handler a request gets: route.c. */
#ifndef ACO_HTTP_ROUTE_H
#define ACO_HTTP_ROUTE_H

#include "base/invariants.h"

#include "aco/http.h"

struct aco__http_exchange;

enum { HTTP_PARAMS = 8 }; /* of a route */

/* What route.c has found out about a request. */
typedef struct aco__http_match {
    struct {
        const char *name, *value;
        size_t name_n;
    } params[HTTP_PARAMS];
    size_t param_count;
    const char *allow[8]; /* methods of routes whose path fits */
    size_t allow_count;
} aco__http_match_t;

/* 0, or -1 and errno: a route is not allowed. */
ACO__HIDDEN int aco__http_check_routes(const aco_http_route_t *routes, const char *call);
/* Calls the handler of the first route that fits. 0; or the status to answer. */
ACO__SWITCHES ACO__HIDDEN int aco__http_call_route(struct aco__http_exchange *x);
/* Adds the header "Allow" to a reply with 405. */
ACO__HIDDEN void aco__http_add_allow(struct aco__http_exchange *x);

#endif
