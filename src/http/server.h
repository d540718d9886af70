/* A server and its connections: server.c. */
#ifndef ACO_HTTP_SERVER_H
#define ACO_HTTP_SERVER_H

#include "http/outgoing.h"
#include "http/request.h"
#include "http/text.h"

#include "aco/group.h"
#include "aco/sync.h"

typedef struct aco__http_server {
    aco_http_server_t options; /* with the defaults filled in */
    size_t sz;
    struct aco__http_connection *first;
    struct aco__http_connection *unflushed; /* their handlers run, and they have output of earlier replies */
    aco__http_exchange_t *spare;
    aco_group_t group;
    aco_t *keeper;
    aco_event_t group_has_begun;
    int taken; /* a connection that was accepted and has no task yet; -1: none */
    unsigned char is_draining; /* stopped: handlers are told */
    unsigned char is_ending; /* replies end their connections */
    unsigned char is_left; /* aco_http_serve() could not wait: the keeper frees this record */
    int64_t idle_until; /* when it ends: connections without a request are closed */
    int64_t date_until; /* on the clock of aco_now() */
    char date[HTTP_DATE];
} aco__http_server_t;

typedef struct aco__http_connection {
    aco__http_link_t link;
    aco__http_incoming_t incoming;
    aco__http_outgoing_t outgoing;
    aco__http_server_t *server;
    aco__http_exchange_t *x; /* NULL: idle */
    struct aco__http_connection *next, **place; /* of the server's connections */
    struct aco__http_connection *next_unflushed, **place_unflushed; /* place: NULL: not there */
    aco_scope_t idle;
    unsigned char is_idle; /* in that scope: what it does there (server.c); else 0 */
    unsigned char is_reported; /* its failure */
    unsigned char in_handler;
    int error; /* of reading a head; 0: none */
    size_t sz; /* of this record, as allocated; 0: it is on the stack */
} aco__http_connection_t;

/* The errno with which the connection has failed in this request; 0: it has not. */
static inline int aco__http_error_of(const aco__http_connection_t *c)
{
    return c->link.error ? c->link.error : c->incoming.body_error == ECONNRESET ? ECONNRESET : c->error;
}

#endif
