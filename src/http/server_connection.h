/* A connection as its server knows it, in any version of HTTP: server_connection.c. */
#ifndef ACO_HTTP_SERVER_CONNECTION_H
#define ACO_HTTP_SERVER_CONNECTION_H

#include "http/link.h"
#include "http/request.h"
#include "http/server.h"

#include "aco/detail/http_observer.h"

/* What an idle connection does: waits for a request; makes its stream; either, in the time that it has at the end. */
enum { HTTP_AWAITS = 1, HTTP_OPENS, HTTP_ENDS };

typedef struct aco__http_connection {
    aco__http_link_t link; /* first */
    aco_http_server_t *server;
    struct aco__http_connection *next, **place; /* of the server's */
    aco_scope_t idle;
    unsigned char is_idle : 2; /* in that scope: what it does there; else 0 */
    unsigned char is_reported : 1; /* its failure */
    unsigned char is_refused : 1; /* there are max_connections without it: it gets one reply, 503 */
    unsigned char is_counted : 1; /* among the server's `serving` */
    unsigned char is_moved : 1; /* it came from another thread's server, or has gone to one: balance.c */
    unsigned char is_placed : 1; /* it came from another thread */
    unsigned char has_served : 1; /* a request */
    unsigned char is_allocated : 1; /* its record, by itself; 0: it is on the stack */
    unsigned char has_own_task : 1; /* which the server has made */
    unsigned char heavy; /* for how many requests it does not move: balance.h */
    unsigned requests; /* that were handled, if they have a limit */
} aco__http_connection_t;

/* A request is over. The time, if somebody observes that; else 0. */
static inline int64_t aco__http_observe(const aco_http_request_t *request)
{
    const aco__http_exchange_t *x = aco__http_exchange_of(request);
    aco__http_observer_t observer = __atomic_load_n(&aco__http_observer, __ATOMIC_RELAXED);
    int64_t now = 0;
    if (aco_unlikely(x->span != NULL))
        __atomic_load_n(&aco__http_tracer, __ATOMIC_RELAXED)->request_ends(request, x->span);
    if (aco_unlikely(observer != NULL)) {
        now = aco_now();
        observer(request, now);
    }
    return now;
}

/* Puts a connection, whose link is open, among the server's, and takes it away. */
ACO__HIDDEN void aco__http_join_server(aco__http_connection_t *c, aco_http_server_t *server);
ACO__HIDDEN void aco__http_leave_server(aco__http_connection_t *c);
/* While nothing is requested: until then at most; when the server ends, for its time for that, which begins anew: a
 * connection may have got its turn only now. With HTTP_ENDS it knows itself. Stores when it ends. 0, or -1. */
static inline int aco__http_begin_idle(aco__http_connection_t *c, int how, int64_t *until, const char *location)
{
    const aco_http_server_t *server = c->server;
    int64_t end = server->is_ending && how != HTTP_ENDS ? aco_after(server->options.drain_idle_time) : ACO_FOREVER;
    ACO__ASSERT(!c->is_idle);
    if (end < *until)
        *until = end;
    if (aco_scope_begin_at(&c->idle, *until, location) != 0)
        return -1;
    c->is_idle = (server->is_ending ? HTTP_ENDS : how) & 3;
    return 0;
}
static inline void aco__http_end_idle(aco__http_connection_t *c)
{
    ACO__ASSERT(c->is_idle);
    c->is_idle = 0;
    (void)aco_scope_end(&c->idle);
}
/* Ends this wait of all the server's connections. Does not switch. */
ACO__HIDDEN void aco__http_end_waits(aco_http_server_t *server, int how);
/* Makes the stream on the descriptor. 0, or -1. */
ACO__SWITCHES ACO__HIDDEN int aco__http_open_stream(aco__http_connection_t *c, const char *location);
ACO__SWITCHES
ACO__HIDDEN void aco__http_report_first(aco__http_connection_t *c, int error, const aco_http_request_t *request);
/* Reports a failure, once, if there was an error. */
ACO__SWITCHES
static inline void aco__http_report_once(aco__http_connection_t *c, int error, const aco_http_request_t *request)
{
    if (aco_unlikely(error && !c->is_reported))
        aco__http_report_first(c, error, request);
}

#endif
