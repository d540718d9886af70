/* Connections that fail: what is told of them. */
#include "http/failure.h"
#include "http/server.h"

#include "aco/detail/for_libraries.h"

#include <string.h>

static int kind_of(int error)
{
    switch (error) {
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED:
    case ENOTCONN:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
        return ACO_HTTP_LEFT;
    case ETIMEDOUT:
        return ACO_HTTP_SLOW;
    default:
        return ACO_HTTP_FAILED;
    }
}

static void print(const aco_http_failure_t *failure)
{
    const aco_http_request_t *request = failure->request;
    aco__service_warn("an HTTP connection failed", "%s%s%.64s%s%s", request ? request->method : "", request ? " " : "",
                      request ? request->target : "", request ? ": " : "", failure->message);
}

/* Until the end of drain_time nothing but its own code cancels a handler. */
static const char *reason(const aco_http_server_t *server, int error)
{
    return error == ECANCELED && server->group.scope.error ? "the server's drain_time is over" : strerror(error);
}

void aco__http_report(aco_http_server_t *server, aco_http_failure_t *failure)
{
    const aco_http_server_options_t *options = &server->options;
    int kind = kind_of(failure->error), is_handshake;
    is_handshake = failure->kind == ACO_HTTP_HANDSHAKE && kind == ACO_HTTP_FAILED && failure->error != ECANCELED;
    if (!is_handshake && failure->kind != ACO_HTTP_REFUSED)
        failure->kind = kind;
    failure->message = is_handshake && failure->error ? aco_error_message() : reason(server, failure->error);
    if (!failure->error) { /* `open` tells nothing */
        failure->error = EPROTO;
        failure->message = "the handshake";
    }
    if (options->failures)
        __atomic_fetch_add(&options->failures[failure->kind], 1, __ATOMIC_RELAXED);
    if (options->failed)
        options->failed(failure, options->failed_arg);
    else if (failure->kind == ACO_HTTP_HANDSHAKE || failure->kind == ACO_HTTP_FAILED)
        print(failure);
}
