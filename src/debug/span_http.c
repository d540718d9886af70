/* Spans of HTTP: a server's requests, which continue what their traceparent names, and a client's calls. Paths and
 * queries may hold secrets: routes and hosts are what a span tells of them. */
#define _GNU_SOURCE
#include "debug/samples.h"
#include "debug/span_http.h"
#include "debug/span_queue.h"

#include "aco/detail/http_observer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SPAN_ROUTE = 64, FIRST_SERVER_ERROR = 500, FIRST_ERROR = 400 };

/* ---- Servers ---- */

typedef struct incoming {
    const char *parent; /* the only traceparent; NULL: there is none, or there are several */
    int parents;
    size_t state_n;
    int is_state_too_long;
    char state[ACO__TRACESTATE + 1]; /* the lines of tracestate as one */
} incoming_t;

static void add_state(incoming_t *in, const char *value)
{
    size_t n = strlen(value);
    if (!n)
        return;
    in->is_state_too_long |= in->state_n + n + 2 > sizeof in->state;
    if (in->is_state_too_long)
        return;
    if (in->state_n)
        in->state[in->state_n++] = ',';
    memcpy(in->state + in->state_n, value, n);
    in->state_n += n;
}

static void read_headers(incoming_t *in, const aco_http_request_t *request)
{
    in->parent = NULL;
    in->parents = in->is_state_too_long = 0;
    in->state_n = 0;
    for (size_t i = 0; i < request->header_count; i++) {
        const aco_http_header_t *header = &request->headers[i];
        if ((header->name[0] | 0x20) != 't') /* most are others */
            continue;
        if (strcasecmp(header->name, "traceparent") == 0)
            in->parent = in->parents++ ? NULL : header->value;
        else if (strcasecmp(header->name, "tracestate") == 0)
            add_state(in, header->value);
    }
    in->state[in->is_state_too_long ? 0 : in->state_n] = 0;
}

static void *request_begins(const aco_http_request_t *request)
{
    const char *route = request->route ? request->route->path : "";
    incoming_t in;
    aco_span_t *span;
    if (!__atomic_load_n(&aco__spans_are_on, __ATOMIC_ACQUIRE))
        return NULL;
    read_headers(&in, request);
    span = aco_span_continue("", ACO_SPAN_SERVER, in.parent, in.state);
    if (!span || !(span->context.flags & ACO__IS_SAMPLED))
        return span;
    (void)snprintf(span->name, sizeof span->name, "%.20s %.*s", request->method, SPAN_ROUTE, route);
    span->began -= aco_now() - request->began;
    aco_span_set_text(span, "http.request.method", request->method);
    if (request->route)
        aco_span_set_text(span, "http.route", route);
    return span;
}

static void request_ends(const aco_http_request_t *request, void *arg)
{
    aco_span_t *span = arg;
    if (!aco__span_is_open(span))
        return; /* it has ended with one around it, of the connection's task */
    if (!(span->context.flags & ACO__IS_SAMPLED)) {
        aco_span_end(span);
        return;
    }
    if (request->status)
        aco_span_set_number(span, "http.response.status_code", request->status);
    if (!request->status || request->status >= FIRST_SERVER_ERROR)
        aco_span_fail(span, request->status ? "" : "no reply");
    aco_span_end(span);
}

/* ---- Clients ---- */

/* "host:port" of a URL. */
static void set_host(aco_span_t *span, const char *url)
{
    const char *host = strstr(url, "://");
    char text[SPAN_ROUTE];
    host = host ? host + 3 : url;
    (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(host, "/?#"), host);
    aco_span_set_text(span, "server.address", text);
}

/* The call is one inside of this span. */
static void put_headers(aco__http_traced_t *call, const aco_span_t *span)
{
    aco__traceparent_write(call->parent, &span->context);
    call->headers[0] = (aco_http_header_t){"traceparent", call->parent};
    if (span->state)
        call->headers[1] = (aco_http_header_t){"tracestate", span->state};
}

static void call_begins(aco__http_traced_t *call, const char *method, const char *url, int streams)
{
    const aco_span_t *own = aco__span_own();
    if (!own)
        return; /* a trace of a call alone tells nothing that the caller does not know */
    if (!streams) { /* who streams knows when it ends */
        aco_span_t *span = aco__span_begin(method, ACO_SPAN_CLIENT, &own->context, own->state);
        aco_span_set_text(span, "http.request.method", method);
        if (span)
            set_host(span, url);
        call->span = span;
        own = span ? span : own;
    }
    put_headers(call, own);
}

static void call_ends(aco__http_traced_t *call, int status)
{
    aco_span_t *span = call->span;
    int error = errno;
    if (!aco__span_is_open(span)) /* NULL; or it has ended with one around it, by the body's function */
        return;
    if (status)
        aco_span_set_number(span, "http.response.status_code", status);
    if (!status || status >= FIRST_ERROR)
        aco_span_fail(span, status ? "" : strerror(error));
    aco_span_end(span);
    errno = error;
}

/* ---- gRPC ---- */

static void set_method(aco_span_t *span, const char *method)
{
    aco_span_set_text(span, "rpc.system.name", "grpc");
    aco_span_set_text(span, "rpc.method", method);
}

static void set_status(aco_span_t *span, const char *status, int has_failed)
{
    aco_span_set_text(span, "rpc.response.status_code", status);
    if (has_failed) {
        aco_span_set_text(span, "error.type", status);
        aco_span_fail(span, status);
    }
}

static void rpc_begins(aco__http_traced_t *call, const char *method, const char *target)
{
    const aco_span_t *own = aco__span_own();
    aco_span_t *span;
    if (!own)
        return;
    span = aco__span_begin_apart(method, ACO_SPAN_CLIENT, &own->context, own->state);
    if (span) {
        set_method(span, method);
        aco_span_set_text(span, "server.address", target);
    }
    call->span = span;
    put_headers(call, span ? span : own);
}

static void rpc_ends(aco__http_traced_t *call, const char *status, int has_failed)
{
    const int error = errno;
    aco_span_t *span = call->span;
    if (!span)
        return;
    set_status(span, status, has_failed);
    aco__span_finish(span);
    errno = error;
}

static void rpc_is_served(void *arg, const char *method, const char *status, int has_failed)
{
    aco_span_t *span = arg;
    if (!aco__span_is_open(span) || !(span->context.flags & ACO__IS_SAMPLED))
        return;
    if (method)
        aco__sample_text(span->name, sizeof span->name, method);
    set_method(span, method ? method : "_OTHER");
    set_status(span, status, has_failed);
}

void aco__spans_of_http(void)
{
    static const aco__http_tracer_t tracer = {request_begins, request_ends, call_begins,  call_ends,
                                              rpc_begins,     rpc_ends,     rpc_is_served};
    __atomic_store_n(&aco__http_tracer, &tracer, __ATOMIC_RELEASE);
}
