/* The hosts of which a client counts requests. */
#include "http/client_hosts.h"
#include "http/text.h"

#include "aco/detail/for_libraries.h"

#include <string.h>

aco__http_host_t *aco__http_find_host(aco__http_host_t *hosts, int is_tls, const char *name, const char *port)
{
    for (aco__http_host_t *host = hosts; host; host = host->next)
        if (host->is_tls == is_tls && aco__http_same(host->name, name) && strcmp(host->port, port) == 0)
            return host;
    return NULL;
}

aco__http_host_t *aco__http_new_host(int is_tls, const char *name, const char *port)
{
    size_t n = strlen(name) + 1, sz = sizeof(aco__http_host_t) + n;
    aco__http_host_t *host = aco__service_new(&sz, "aco_http_call");
    if (!host)
        return NULL;
    host->sz = sz;
    host->is_tls = is_tls;
    memcpy(host->port, port, strlen(port) + 1);
    memcpy(host->name, name, n);
    return host;
}

void aco__http_free_host(aco__http_host_t *host)
{
    aco__service_free(host, host->sz);
}

int aco__http_leave_host(aco__http_host_t **hosts, aco__http_host_t *host)
{
    aco__http_host_t **at = hosts;
    ACO__ASSERT(host->users > 0);
    if (--host->users > 0)
        return 0;
    while (*at != host)
        at = &(*at)->next;
    *at = host->next;
    return 1;
}
