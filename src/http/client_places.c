/* Places for requests. Each request has one of its host and one of all from before it connects until its response ends,
 * so a client has no more connections in use than places. Those that are kept make room for new ones (client.c). */
#include "http/client_places.h"
#include "http/text.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <string.h>

void aco__http_places_open(aco__http_places_t *places, int most, int most_of_host)
{
    memset(places, 0, sizeof *places);
    places->most = most > 0 ? (size_t)most : 0;
    places->most_of_host = most_of_host > 0 ? (size_t)most_of_host : 0;
    places->free.value = places->most;
}

static aco__http_host_t *find_host(const aco__http_places_t *places, int is_tls, const char *name, const char *port)
{
    for (aco__http_host_t *host = places->hosts; host; host = host->next)
        if (host->is_tls == is_tls && aco__http_same(host->name, name) && strcmp(host->port, port) == 0)
            return host;
    return NULL;
}

/* NULL and errno. */
static aco__http_host_t *add_host(aco__http_places_t *places, int is_tls, const char *name, const char *port)
{
    size_t n = strlen(name) + 1, sz = sizeof(aco__http_host_t) + n;
    aco__http_host_t *host = aco__service_new(&sz, "aco_http_call");
    if (!host)
        return NULL;
    host->sz = sz;
    host->is_tls = is_tls;
    host->free.value = places->most_of_host;
    memcpy(host->port, port, strlen(port) + 1);
    memcpy(host->name, name, n);
    host->next = places->hosts;
    places->hosts = host;
    return host;
}

static void leave_host(aco__http_places_t *places, aco__http_host_t *host)
{
    aco__http_host_t **at = &places->hosts;
    ACO__ASSERT(host->users > 0);
    if (--host->users > 0)
        return;
    while (*at != host)
        at = &(*at)->next;
    *at = host->next;
    aco__service_free(host, host->sz);
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
    *at = NULL;
    if (places->most_of_host) {
        host = find_host(places, is_tls, name, port);
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
    if (places->most)
        aco_semaphore_release(&places->free);
    if (at) {
        aco_semaphore_release(&at->free);
        leave_host(places, at);
    }
    errno = error;
}
