/* Spans of HTTP: a server's requests, which continue what their traceparent names, and a client's calls. Paths and
 * queries may hold secrets: routes and hosts are what a span tells of them. */
#define _GNU_SOURCE
#include "debug/span_http.h"

#include "aco/detail/http_observer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SPAN_ROUTE = 64, FIRST_SERVER_ERROR = 500, FIRST_ERROR = 400 };

/* ---- Servers ---- */

/* The only header with this name; NULL: there is none, or several. */
static const char *only_header(const aco_http_request_t *request, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, name) == 0) {
            if (value)
                return NULL;
            value = request->headers[i].value;
        }
    return value;
}

/* Stores the lines of tracestate as one; "" if they are too long. */
static void join_tracestate(const aco_http_request_t *request, char *text, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < request->header_count; i++) {
        const char *value = request->headers[i].value;
        size_t more = strlen(value);
        if (strcasecmp(request->headers[i].name, "tracestate") != 0 || !more)
            continue;
        if (n + more + 2 > room) {
            n = 0;
            break;
        }
        if (n)
            text[n++] = ',';
        memcpy(text + n, value, more);
        n += more;
    }
    text[n] = 0;
}

static void name_request(char *name, size_t room, const char *method, const char *route)
{
    (void)snprintf(name, room, "%.20s %.*s", method, SPAN_ROUTE, route);
}

static void *request_begins(const aco_http_request_t *request)
{
    const char *route = request->route ? request->route->path : "";
    char name[ACO__SPAN_NAME], state[ACO__TRACESTATE + 1];
    aco_span_t *span;
    if (!__atomic_load_n(&aco__spans_are_on, __ATOMIC_ACQUIRE))
        return NULL;
    join_tracestate(request, state, sizeof state);
    name_request(name, sizeof name, request->method, route);
    span = aco_span_continue(name, ACO_SPAN_SERVER, only_header(request, "traceparent"), state);
    if (!span)
        return NULL;
    span->began -= aco_now() - request->began;
    aco_span_set_text(span, "http.request.method", request->method);
    if (request->route)
        aco_span_set_text(span, "http.route", route);
    return span;
}

static void request_ends(const aco_http_request_t *request, void *arg)
{
    aco_span_t *span = arg;
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
    aco__traceparent_write(call->parent, &own->context);
    call->headers[0] = (aco_http_header_t){"traceparent", call->parent};
    if (own->state)
        call->headers[1] = (aco_http_header_t){"tracestate", own->state};
}

static void call_ends(aco__http_traced_t *call, int status)
{
    aco_span_t *span = call->span;
    int error = errno;
    if (!span)
        return;
    if (status)
        aco_span_set_number(span, "http.response.status_code", status);
    if (!status || status >= FIRST_ERROR)
        aco_span_fail(span, status ? "" : strerror(error));
    aco_span_end(span);
    errno = error;
}

void aco__spans_of_http(void)
{
    static const aco__http_tracer_t tracer = {request_begins, request_ends, call_begins, call_ends};
    __atomic_store_n(&aco__http_tracer, &tracer, __ATOMIC_RELEASE);
}
