/* Connections of a server: the list of them, their idle times, their streams, what is told of their failures. */
#include "http/balance.h"
#include "http/failure.h"
#include "http/server_connection.h"

void aco__http_join_server(aco__http_connection_t *c, aco_http_server_t *server)
{
    if (aco_likely(!c->is_moved))
        __atomic_fetch_add(&aco__http_connections_begun, 1, __ATOMIC_RELAXED);
    if (server->member && !c->is_moved)
        aco__http_count_in(server->member, 1);
    c->server = server;
    if (aco_unlikely(server->options.max_refused) && server->keeper && server->options.max_connections) {
        c->is_refused = server->serving >= server->options.max_connections && !c->is_moved;
        c->is_counted = !c->is_refused;
        server->serving += c->is_counted;
    }
    c->next = server->first;
    c->place = &server->first;
    if (c->next)
        c->next->place = &c->next;
    server->first = c;
}

void aco__http_leave_server(aco__http_connection_t *c)
{
    if (aco_likely(!c->is_moved))
        __atomic_fetch_add(&aco__http_connections_ended, 1, __ATOMIC_RELAXED);
    if (c->server->member && !c->is_moved)
        aco__http_count_in(c->server->member, -1);
    ACO__ASSERT(!c->is_idle); /* its memory goes */
    c->server->serving -= c->is_counted;
    ACO__ASSERT(*c->place == c && (!c->next || c->next->place == &c->next));
    *c->place = c->next;
    if (c->next)
        c->next->place = c->place;
}

void aco__http_end_waits(aco_http_server_t *server, int how)
{
    ACO__NO_SWITCH_BEGIN(); /* connections would leave the list */
    for (aco__http_connection_t *c = server->first; c; c = c->next)
        if (c->is_idle == how)
            (void)aco_scope_cancel(&c->idle);
    ACO__NO_SWITCH_END();
}

int aco__http_open_stream(aco__http_connection_t *c, const char *location)
{
    const aco_http_server_options_t *options = &c->server->options;
    aco__http_link_t *link = &c->link;
    aco_http_failure_t failure = {ACO_HTTP_HANDSHAKE, 0, -1, NULL, NULL};
    int64_t until = aco_after(options->head_time);
    if (aco__http_begin_idle(c, HTTP_OPENS, &until, location) != 0)
        return -1;
    errno = 0;
    aco__http_link_use(link, options->open(link->own.fd, options->open_arg));
    failure.error = c->idle.error ? ETIMEDOUT : errno;
    aco__http_end_idle(c);
    if (link->stream)
        return 0;
    aco__http_report(c->server, &failure);
    return -1;
}

void aco__http_report_first(aco__http_connection_t *c, int error, const aco_http_request_t *request)
{
    aco_http_failure_t failure = {ACO_HTTP_FAILED, error, c->link.own.fd, NULL, request};
    c->is_reported = 1;
    aco__http_report(c->server, &failure);
}
