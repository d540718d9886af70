/* Calls for the same server that come while one connects wait for it where HTTP/2 is likely: they would share the
 * connection anyway. */
#include "http/client_dial.h"
#include "http/text.h"

#include "aco/sync.h"

#include <string.h>

struct aco__http_dial {
    struct aco__http_dial *next;
    size_t sz;
    size_t users; /* who connects, and those who wait */
    aco_event_t ended;
    int error; /* with which it has; EAGAIN: another call may try */
    int is_tls;
    char port[CLIENT_PORT], name[];
};

static void leave_dial(aco__http_dial_t *dial)
{
    if (--dial->users == 0)
        aco__service_free(dial, dial->sz);
}

/* Waits for another call. 1, or -1 and errno. */
ACO__SWITCHES static int await_dial(aco__http_dial_t *dial, const char *location)
{
    int result, error;
    dial->users++;
    result = aco_event_wait_at(&dial->ended, location);
    error = result == 0 ? dial->error : errno;
    leave_dial(dial);
    errno = error;
    return result != 0 || (error && error != EAGAIN) ? -1 : 1;
}

int aco__http_share_dial(aco_http_client_t *client, const aco__http_client_url_t *url, aco__http_dial_t **own,
                         const char *location)
{
    size_t n = strlen(url->address) + 1, sz = sizeof(aco__http_dial_t) + n;
    aco__http_dial_t *dial;
    *own = NULL;
    for (dial = client->dials; dial; dial = dial->next)
        if (dial->is_tls == url->is_tls && aco__http_same(dial->name, url->address) &&
            strcmp(dial->port, url->port) == 0)
            return await_dial(dial, location);
    dial = aco__service_new(&sz, CLIENT_CALL);
    if (!dial)
        return -1;
    dial->sz = sz;
    dial->users = 1;
    dial->is_tls = url->is_tls;
    memcpy(dial->port, url->port, strlen(url->port) + 1);
    memcpy(dial->name, url->address, n);
    dial->next = client->dials;
    client->dials = dial;
    *own = dial;
    return 0;
}

void aco__http_end_dial(aco_http_client_t *client, aco__http_dial_t *dial, int error)
{
    aco__http_dial_t **at = &client->dials;
    int kept = errno;
    while (*at != dial)
        at = &(*at)->next;
    *at = dial->next;
    dial->error = error && aco_check_cancelled() != 0 ? EAGAIN : error; /* the caller's own end is nobody else's */
    aco_event_set(&dial->ended);
    leave_dial(dial);
    errno = kept;
}
