/* Connections that fail: what is told of them. */
#include "http/failure.h"
#include "http/server.h"
#include "system/system.h"

#include <stdio.h>
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

/* In one call, and without stdio's buffer, which would be on the stack. */
static void print(const aco_http_failure_t *failure)
{
    const aco_http_request_t *request = failure->request;
    char line[256];
    int n = snprintf(line, sizeof line - 1, "acorn: an HTTP connection failed: %s%s%.64s%s%s\n",
                     request ? request->method : "", request ? " " : "", request ? request->target : "",
                     request ? ": " : "", failure->message);
    if (n >= (int)sizeof line - 1) {
        n = sizeof line - 1;
        line[n - 1] = '\n';
    }
    if (n > 0)
        (void)!aco__system.write(2, line, (size_t)n);
}

void aco__http_report(aco_http_server_t *server, aco_http_failure_t *failure)
{
    const aco_http_server_options_t *options = &server->options;
    int kind = kind_of(failure->error), is_handshake;
    is_handshake = failure->kind == ACO_HTTP_HANDSHAKE && kind == ACO_HTTP_FAILED && failure->error != ECANCELED;
    if (!is_handshake && failure->kind != ACO_HTTP_REFUSED)
        failure->kind = kind;
    failure->message = is_handshake && failure->error ? aco_error_message() : strerror(failure->error);
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
