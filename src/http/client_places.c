/* Places for requests. Each request has one of its host and one of all from before it connects until its response ends,
 * so a client has no more connections in use than places. Those that are kept make room for new ones (client.c). */
#include "http/client_places.h"

#include <errno.h>
#include <string.h>

void aco__http_places_open(aco__http_places_t *places, size_t most, size_t most_of_host, aco__http_common_t *common)
{
    memset(places, 0, sizeof *places);
    places->most = most;
    places->most_of_host = most_of_host;
    places->free.value = places->most;
    places->common = common;
}

/* NULL and errno. */
static aco__http_host_t *add_host(aco__http_places_t *places, int is_tls, const char *name, const char *port)
{
    aco__http_host_t *host = aco__http_new_host(is_tls, name, port);
    if (!host)
        return NULL;
    host->free.value = places->most_of_host;
    host->next = places->hosts;
    places->hosts = host;
    return host;
}

static void leave_host(aco__http_places_t *places, aco__http_host_t *host)
{
    if (aco__http_leave_host(&places->hosts, host))
        aco__http_free_host(host);
}

/* 0, or -1 and errno. */
ACO__SWITCHES static int enter_host(aco__http_places_t *places, aco__http_host_t *host, const char *location)
{
    host->users++;
    if (aco_semaphore_acquire_at(&host->free, location) == 0)
        return 0;
    leave_host(places, host);
    return -1;
}

int aco__http_take_place(aco__http_places_t *places, int is_tls, const char *name, const char *port,
                         aco__http_host_t **at, const char *location)
{
    aco__http_host_t *host = NULL;
    if (aco_unlikely(places->common != NULL))
        return aco__http_take_common(places->common, is_tls, name, port, at, location);
    *at = NULL;
    if (places->most_of_host) {
        host = aco__http_find_host(places->hosts, is_tls, name, port);
        if (!host && !(host = add_host(places, is_tls, name, port)))
            return -1;
        if (enter_host(places, host, location) != 0)
            return -1;
    }
    if (places->most && aco_semaphore_acquire_at(&places->free, location) != 0) {
        if (host) {
            aco_semaphore_release(&host->free);
            leave_host(places, host);
        }
        return -1;
    }
    *at = host;
    return 0;
}

void aco__http_leave_place(aco__http_places_t *places, aco__http_host_t *at)
{
    int error = errno;
    if (aco_unlikely(places->common != NULL)) {
        aco__http_leave_common(places->common, at);
        return;
    }
    if (places->most)
        aco_semaphore_release(&places->free);
    if (at) {
        aco_semaphore_release(&at->free);
        leave_host(places, at);
    }
    errno = error;
}
