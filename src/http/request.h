/* A request and its reply, as the server keeps them, and what requests' heads mean: request.c. */
#ifndef ACO_HTTP_REQUEST_H
#define ACO_HTTP_REQUEST_H

#include "http/incoming.h"

enum {
    HTTP_ARENA = 1024, /* bytes of a request's memory before it needs more */
    HTTP_PARAMS = 8, /* of a route */
    HTTP_DISCARDED = 65536 /* bytes of an unread body that are read to keep the connection */
};

typedef struct aco__http_block {
    struct aco__http_block *next;
    size_t sz;
} aco__http_block_t;

typedef struct aco__http_param {
    const char *name, *value;
    size_t name_n;
} aco__http_param_t;

struct aco__http_connection;

/* A request and its reply. */
typedef struct aco__http_exchange {
    aco_http_request_t is; /* what handlers see */
    struct aco__http_connection *connection;
    struct aco__http_exchange *next; /* that nobody uses */
    llhttp_t parser;
    aco__http_head_t head;
    char *at, *end; /* memory of the request */
    aco__http_block_t *blocks; /* more of it */
    char *fields; /* headers of the reply, as they are sent */
    size_t fields_n, fields_room;
    aco__http_param_t params[HTTP_PARAMS];
    size_t param_count;
    const char *allow[8]; /* methods of routes whose path fits */
    size_t allow_count;
    unsigned char has_begun; /* the reply */
    unsigned char may_continue; /* the client waits for "100 Continue" */
    unsigned char is_head; /* the method is HEAD */
    unsigned char will_close;
    unsigned char is_aborted;
    struct aco_websocket_s *websocket; /* that the connection has become; or NULL */
    char *all; /* what aco_http_request_read_all() has got */
    size_t all_n, all_room;
    size_t sz; /* of this record and what follows it: headers, memory, output */
} aco__http_exchange_t;

static inline aco__http_exchange_t *aco__http_exchange_of(const aco_http_request_t *request)
{
    return (aco__http_exchange_t *)(uintptr_t)request;
}

/* Understands a request's head. 0; or the status with which to refuse it. */
ACO__HIDDEN int aco__http_understand(aco__http_exchange_t *x);
ACO__HIDDEN void aco__http_free_blocks(aco__http_exchange_t *x);

#endif
