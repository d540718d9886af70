/* Places for requests: how many connections a client uses at once: client_places.c. */
#ifndef ACO_HTTP_CLIENT_PLACES_H
#define ACO_HTTP_CLIENT_PLACES_H

#include "http/client_common.h"

typedef struct aco__http_places {
    size_t most, most_of_host; /* 0: no limit */
    aco__http_common_t *common; /* has the places: those of all threads; NULL: there are these, of one thread */
    aco_semaphore_t free;
    aco__http_host_t *hosts;
} aco__http_places_t;

ACO__HIDDEN void aco__http_places_open(aco__http_places_t *places, size_t most, size_t most_of_host,
                                       aco__http_common_t *common);
/* Takes a place for a request to this host; *at: NULL if hosts have no limit. First come, first served, for each host
 * and then in all: those who wait for one host do not stop those for another. 0, or -1 and errno. */
ACO__SWITCHES
ACO__HIDDEN int aco__http_take_place(aco__http_places_t *places, int is_tls, const char *name, const char *port,
                                     aco__http_host_t **at, const char *location);
/* Gives it back; whoever has waited longest gets it. Keeps errno and does not switch. */
ACO__HIDDEN void aco__http_leave_place(aco__http_places_t *places, aco__http_host_t *at);
/* How many places are free now, of those with a limit: of this host; NULL: in all. */
static inline size_t aco__http_free_places(const aco__http_places_t *places, const aco__http_host_t *at)
{
    ACO__ASSERT(at ? places->most_of_host : places->most);
    if (aco_unlikely(places->common != NULL))
        return aco__http_count_common(places->common, at);
    return at ? at->free.value : places->free.value;
}

#endif
