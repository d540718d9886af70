/* The hosts of which a client counts requests: client_hosts.c. */
#ifndef ACO_HTTP_CLIENT_HOSTS_H
#define ACO_HTTP_CLIENT_HOSTS_H

#include "http/client_url.h"
#include "base/invariants.h"

#include "aco/scheduler.h"

/* Places between threads: client_common.c. With its lock. */
typedef struct aco__http_turns {
    size_t free; /* places; 0 while somebody waits */
    struct aco__http_turn *first, **last; /* who waits, the longest first */
} aco__http_turns_t;

/* A server, or a proxy, that has users: requests with a place, or that wait for one. */
typedef struct aco__http_host {
    struct aco__http_host *next;
    size_t sz, users;
    aco_semaphore_t free; /* places of one thread; */
    aco__http_turns_t turns; /* or of several */
    int is_tls;
    char port[CLIENT_PORT], name[];
} aco__http_host_t;

/* NULL: it has no users. */
ACO__HIDDEN aco__http_host_t *aco__http_find_host(aco__http_host_t *hosts, int is_tls, const char *name,
                                                  const char *port);
/* A host that is in no list yet. NULL and errno. */
ACO__HIDDEN aco__http_host_t *aco__http_new_host(int is_tls, const char *name, const char *port);
ACO__HIDDEN void aco__http_free_host(aco__http_host_t *host);
/* A user less. Whether it was the last one: then the host is in no list any more. */
ACO__HIDDEN int aco__http_leave_host(aco__http_host_t **hosts, aco__http_host_t *host);

#endif
