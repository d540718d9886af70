/* A handler takes its connection over, for another protocol. */
#include "http/client_watch.h"
#include "http/request.h"

aco_stream_t *aco_http_take_over_at(aco_http_request_t *request, const void **bytes, size_t *n, const char *location)
{
    static const char call[] = "aco_http_take_over";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    aco_stream_t *stream;
    if (x->reply.is_refusal) {
        aco__service_fail(EPERM, call, "the request was refused");
        return NULL;
    }
    if (x->reply.has_begun || !x->version->take_over) {
        aco__service_fail(x->reply.has_begun ? EBUSY : ENOTSUP, call,
                          x->reply.has_begun ? "the reply has begun" : "other requests use the connection");
        return NULL;
    }
    stream = x->version->take_over(x, bytes, n, call, location);
    if (!stream)
        return NULL;
    x->reply.has_begun = x->reply.is_taken = 1; /* nothing can be replied any more */
    aco__http_stop_watching(x);
    return stream;
}
