/* What a version of HTTP does for a request and its reply: a table, of which each version has one (http1.h).
 *
 * The way of a request. A version reads its head, fills in an exchange (request.h) and calls aco__http_call_route()
 * (route.h). What the handler calls is the same in all versions (request.c, reply.c, static.c, websocket.c) and comes
 * back here. After the handler the version ends the reply, which only it can. The routes, limits, the listener and the
 * end belong to the server (server.h), which knows nothing of messages. */
#ifndef ACO_HTTP_VERSION_H
#define ACO_HTTP_VERSION_H

#include "http/link.h"

struct aco__http_exchange;

typedef struct aco__http_version {
    /* As aco_http_request_read(). */
    ACO__SWITCHES ssize_t (*read)(struct aco__http_exchange *x, void *p, size_t n, const char *call,
                                  const char *location);
    /* The body is not read any more: each read fails with this error. */
    void (*fail_body)(struct aco__http_exchange *x, int error);
    /* As aco_http_request_limit_body(), with times and sizes as in the options. */
    void (*limit_body)(struct aco__http_exchange *x, int64_t max_body, int64_t body_time);
    /* Sends the head of the reply, with its headers; or collects it. `type` has type_n bytes, 0: none; `length`: of the
     * body; less than 0: not known. It may decide that the connection will close. 0, or -1 and errno: nothing was
     * sent. */
    ACO__SWITCHES int (*begin)(struct aco__http_exchange *x, int status, const char *type, size_t type_n,
                               int64_t length, const char *location);
    /* As aco_http_reply_write(), _write_file() and _flush(). Of a reply without a body the first two send nothing. */
    ACO__SWITCHES int (*write)(struct aco__http_exchange *x, const void *p, size_t n, const char *call,
                               const char *location);
    ACO__SWITCHES int (*write_file)(struct aco__http_exchange *x, int fd, int64_t offset, int64_t n, const char *call,
                                    const char *location);
    ACO__SWITCHES int (*flush)(struct aco__http_exchange *x, const char *location);
    /* What was written is sent soon. Does not wait. NULL: this version cannot do that. */
    ACO__SWITCHES void (*push)(struct aco__http_exchange *x);
    /* The link that will carry another protocol if the request is answered so; NULL: it does not ask for that, or
     * other requests use the link, too. */
    aco__http_link_t *(*other_protocol)(const struct aco__http_exchange *x);
    /* Collects the head of that answer, with these fields, which it may change, and the reply's headers. Without a link
     * of its own the protocol has the bodies. 0, or -1 and errno. */
    ACO__SWITCHES int (*switch_protocol)(struct aco__http_exchange *x, char *fields, size_t n, const char *location);
    /* As aco_http_take_over(), of a request without a reply. NULL: this version cannot do that. */
    ACO__SWITCHES
    aco_stream_t *(*take_over)(struct aco__http_exchange *x, const void **bytes, size_t *n, const char *call,
                               const char *location);
    /* The errno with which the connection has failed in this request; 0: it has not. */
    int (*error_of)(const struct aco__http_exchange *x);
    /* It notices by itself that the client has left, and calls aco__http_client_left(). */
    unsigned char tells_end;
} aco__http_version_t;

#endif
