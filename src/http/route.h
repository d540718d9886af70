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
    int status; /* to answer; 0: a route fits */
    unsigned char in_handler; /* or in that answer */
    const aco_http_middleware_t *left[2]; /* to be called: the server's, the group's */
} aco__http_match_t;

/* 0, or -1 and errno: a route is not allowed. */
ACO__HIDDEN int aco__http_check_routes(const aco_http_route_t *routes, const aco_http_group_t *groups,
                                       const char *call);
/* Calls the handler of the first route that fits, inside the middleware. 0; or the status to answer. */
ACO__SWITCHES ACO__HIDDEN int aco__http_call_route(struct aco__http_exchange *x);
/* Answers with the status that the call above has returned, or another one. */
ACO__SWITCHES ACO__HIDDEN void aco__http_refuse(struct aco__http_exchange *x, int status, const char *location);

#endif
