/* Places for requests that the threads of a client have in common: client_common.c. */
#ifndef ACO_HTTP_CLIENT_COMMON_H
#define ACO_HTTP_CLIENT_COMMON_H

#include "http/client_hosts.h"

typedef struct aco__http_common aco__http_common_t;

/* `most`, `most_of_host`: 0: no limit. NULL and errno. */
ACO__HIDDEN aco__http_common_t *aco__http_common_new(size_t most, size_t most_of_host, const char *call);
/* Nobody has a place, or waits for one. NULL: nothing happens. */
ACO__HIDDEN void aco__http_common_free(aco__http_common_t *common);

/* As aco__http_take_place() and aco__http_leave_place(), for the tasks of any thread. */
ACO__SWITCHES
ACO__HIDDEN int aco__http_take_common(aco__http_common_t *common, int is_tls, const char *name, const char *port,
                                      aco__http_host_t **at, const char *location);
ACO__HIDDEN void aco__http_leave_common(aco__http_common_t *common, aco__http_host_t *at);
/* How many are free now: of this host; NULL: in all. */
ACO__HIDDEN size_t aco__http_count_common(aco__http_common_t *common, const aco__http_host_t *at);

#endif
