/* HTTP/1: what it does for a request and its reply: http1.c. */
#ifndef ACO_HTTP_HTTP1_H
#define ACO_HTTP_HTTP1_H

#include "http/incoming.h"
#include "http/outgoing.h"
#include "http/request.h"

enum { HTTP_DISCARDED = 65536 }; /* bytes of an unread body that are read to keep the connection */

/* The stream of an exchange. Its connection has one at a time, and none while it is idle. */
typedef struct aco__http1 {
    aco__http_link_t *link; /* the connection's */
    aco__http_incoming_t incoming;
    aco__http_outgoing_t outgoing;
} aco__http1_t;

ACO__HIDDEN extern const aco__http_version_t aco__http1_version;

/* A server's link, on a socket, or on a stream if that is not NULL. */
ACO__HIDDEN void aco__http1_open_link(aco__http_link_t *link, int fd, aco_stream_t *stream,
                                      const aco_http_server_options_t *options);
/* Prepares a record for exchanges of connections of such a server. */
ACO__HIDDEN void aco__http1_prepare(aco__http1_t *h, const aco_http_server_options_t *options);
/* The record is a connection's from now on. */
static inline void aco__http1_use(aco__http1_t *h, aco__http_link_t *link)
{
    h->link = h->incoming.link = h->outgoing.link = link;
    h->incoming.is_persistent = 0;
    h->incoming.head_error = 0;
}
/* Understands the head of a request, and fills it in. 0; or the status with which to refuse it. */
ACO__HIDDEN int aco__http1_understand(aco__http_exchange_t *x);
/* The errno with which the connection has failed; 0: it has not. */
static inline int aco__http1_error_of(const aco__http1_t *h)
{
    return h->link->error ? h->link->error : h->incoming.body_error == ECONNRESET ? ECONNRESET : h->incoming.head_error;
}

#endif
