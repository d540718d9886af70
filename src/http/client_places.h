/* Places for requests: how many connections a client uses at once: client_places.c. */
#ifndef ACO_HTTP_CLIENT_PLACES_H
#define ACO_HTTP_CLIENT_PLACES_H

#include "http/client_url.h"
#include "base/invariants.h"

#include "aco/scheduler.h"

/* A server, or a proxy, that has users: requests with a place, or that wait for one. */
typedef struct aco__http_host {
    struct aco__http_host *next;
    size_t sz, users;
    aco_semaphore_t free; /* places */
    int is_tls;
    char port[CLIENT_PORT], name[];
} aco__http_host_t;

typedef struct aco__http_places {
    size_t most, most_of_host; /* 0: no limit */
    aco_semaphore_t free; /* places */
    aco__http_host_t *hosts;
} aco__http_places_t;

ACO__HIDDEN void aco__http_places_open(aco__http_places_t *places, int most, int most_of_host);
/* Takes a place for a request to this host; *at: NULL if hosts have no limit. First come, first served, for each host
 * and then in all: those who wait for one host do not stop those for another. 0, or -1 and errno. */
ACO__SWITCHES
ACO__HIDDEN int aco__http_take_place(aco__http_places_t *places, int is_tls, const char *name, const char *port,
                                     aco__http_host_t **at, const char *location);
/* Gives it back; whoever has waited longest gets it. Keeps errno and does not switch. */
ACO__HIDDEN void aco__http_leave_place(aco__http_places_t *places, aco__http_host_t *at);

#endif
