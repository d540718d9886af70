/* A request with its reply, as the server keeps them: request.c. */
#ifndef ACO_HTTP_REQUEST_H
#define ACO_HTTP_REQUEST_H

#include "http/reply.h"
#include "http/route.h"
#include "http/trailers.h"
#include "service/blocks.h"
#include "http/version.h"

#include "aco/detail/http_observer.h"

enum { HTTP_ARENA = 1024 }; /* bytes of a request's memory before it needs more */

typedef struct aco__http_exchange {
    aco_http_request_t is; /* what handlers see */
    struct aco_http_server_s *server;
    const aco__http_version_t *version;
    void *stream; /* what the version knows it by. The version also fills in `is`, and: */
    unsigned char is_head; /* the method is HEAD */
    unsigned char is_connect; /* a handshake of WebSocket by HTTP/2, whose answer is any 2xx */
    unsigned char is_seen; /* it is counted among those that have begun */
    unsigned char client_left; /* client_watch.c's: the client is gone, so nobody waits for the server's own reply */
    aco__http_match_t match; /* route.c's */
    aco__http_reply_t reply; /* reply.c's; a version may set will_close, and ends the reply */
    struct aco__http_client_watch *watch; /* client_watch.c's: the innermost; or NULL */
    struct aco__http_drain *drain; /* drain.c's: the innermost; or NULL */
    const char ***work_known; /* where aco__work_place() of the task that runs handlers is kept; NULL: nowhere */
    void *span; /* the tracer's (aco/detail/http_observer.h); NULL: none */
    struct aco_websocket_s *websocket; /* websocket.c's: that the connection has become; or NULL */
    /* Memory of the request, request.c's: */
    char *at, *end;
    aco__block_t *blocks; /* more of it */
    aco__http_trailers_t trailers;
    char *all; /* what aco_http_request_read_all() has got */
    size_t all_n, all_room;
} aco__http_exchange_t;

static inline aco__http_exchange_t *aco__http_exchange_of(const aco_http_request_t *request)
{
    return (aco__http_exchange_t *)(uintptr_t)request;
}

/* Begins a request, whose memory is the HTTP_ARENA bytes at `arena`. The version, its stream and the server stay. */
ACO__HIDDEN void aco__http_request_begin(aco__http_exchange_t *x, char *arena);
/* Understands the target. 0; or the status with which to refuse the request. */
ACO__HIDDEN int aco__http_understand_target(aco__http_exchange_t *x);
/* Ends it: frees its memory. */
ACO__HIDDEN void aco__http_free_memory(aco__http_exchange_t *x);
/* In drain.c: its task ends inside these scopes. */
ACO__HIDDEN void aco__http_leave_drains(aco__http_exchange_t *x);
static inline void aco__http_request_end(aco__http_exchange_t *x)
{
    if (aco_unlikely(x->is_seen))
        __atomic_fetch_add(&aco__http_requests_ended, 1, __ATOMIC_RELAXED);
    x->is_seen = 0;
    if (aco_unlikely(x->drain != NULL))
        aco__http_leave_drains(x);
    if (x->blocks || x->trailers.bytes)
        aco__http_free_memory(x);
}

#endif
