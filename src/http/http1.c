/* HTTP/1: the heads of requests and replies, and their bodies. */
#include "http/http1.h"
#include "http/server.h"
#include "http/text.h"

#include "aco/detail/descriptors.h"

#include <stdio.h>
#include <string.h>

static aco__http1_t *http1_of(const aco__http_exchange_t *x)
{
    return x->stream;
}

static void limit_body(aco__http_incoming_t *in, int64_t max_body, int64_t body_time)
{
    in->most_body = max_body < 0 ? UINT64_MAX : (uint64_t)max_body;
    in->body_time = body_time;
    in->body_until = 0;
}

void aco__http1_open_link(aco__http_link_t *link, int fd, aco_stream_t *stream,
                          const aco_http_server_options_t *options)
{
    size_t in_size = (size_t)options->max_head + HTTP_BEHIND_HEAD;
    if (stream)
        aco__http_link_open_on(link, stream, in_size);
    else
        aco__http_link_open(link, fd, in_size);
    link->write_time = options->write_time;
    link->write_rate = options->write_rate;
}

void aco__http1_prepare(aco__http1_t *h, const aco_http_server_options_t *options)
{
    aco__http_incoming_open(&h->incoming, NULL);
    limit_body(&h->incoming, options->max_body, options->body_time);
    h->incoming.body_rate = options->body_rate;
}

/* ---- Requests ---- */

int aco__http1_understand(aco__http_exchange_t *x)
{
    aco__http1_t *h = http1_of(x);
    aco__http_incoming_t *in = &h->incoming;
    const aco__http_head_t *head = in->head;
    const llhttp_t *parser = in->parser;
    if (parser->http_major != 1 || parser->http_minor > 1)
        return 505;
    limit_body(in, x->server->options.max_body, x->server->options.body_time); /* the last request's handler's ended */
    /* llhttp takes several spaces, and other protocols' names. */
    if (!head->target || head->target[-2] == ' ' || memcmp(head->target_end, " HTTP/", 6) != 0)
        return 400;
    ACO__ASSERT(head->target - in->link->in.buffer >= 2 &&
                head->target_end - in->link->in.buffer <= (ptrdiff_t)in->link->keep);
    *head->target_end = 0;
    x->is.method = llhttp_method_name((llhttp_method_t)parser->method);
    x->is.target = head->target;
    x->is.major = 1;
    x->is.minor = parser->http_minor;
    x->is.headers = head->headers;
    x->is.header_count = head->count;
    x->is.length = head->is_chunked && !in->has_all ? -1 : in->has_all ? 0 : (int64_t)parser->content_length;
    x->is.host = head->host ? head->host : "";
    x->is_head = parser->method == HTTP_HEAD;
    if (head->hosts > 1 || (!head->hosts && x->is.minor > 0))
        return 400;
    if (!aco__http_is_authority(x->is.host, strlen(x->is.host)))
        return 400;
    if (x->is.length > 0 && (uint64_t)x->is.length > in->most_body)
        return 413;
    if (head->expects && (head->expects > 1 || !head->expects_continue) && x->is.minor > 0)
        return 417;
    h->incoming.may_continue = head->expects && x->is.minor > 0 && !in->has_all;
    return aco__http_understand_target(x);
}

/* The client waits to be told that it may send the body. */
ACO__SWITCHES static int send_continue(aco__http_exchange_t *x, aco__http1_t *h, const char *location)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    aco__http_link_t *link = h->link;
    char *at;
    if (x->reply.has_begun || link->in.end > link->at) { /* it did not wait */
        h->incoming.may_continue = 0;
        return 0;
    }
    at = aco__http_room(link, sizeof text - 1, location);
    if (!at)
        return -1;
    h->incoming.may_continue = 0;
    aco__http_filled(link, HTTP_PUT(at, text));
    return 0;
}

ACO__SWITCHES
static ssize_t http1_read(aco__http_exchange_t *x, void *p, size_t n, const char *call, const char *location)
{
    aco__http1_t *h = http1_of(x);
    if (h->incoming.has_all)
        return 0;
    if (h->incoming.may_continue && !h->incoming.body_error && send_continue(x, h, location) != 0)
        return -1;
    return aco__http_read_body(&h->incoming, p, n, call, location);
}

static void http1_limit_body(aco__http_exchange_t *x, int64_t max_body, int64_t body_time)
{
    limit_body(&http1_of(x)->incoming, max_body, body_time);
}

static void http1_fail_body(aco__http_exchange_t *x, int error)
{
    http1_of(x)->incoming.body_error = error;
}

/* ---- Replies ---- */

static char *put_date(aco_http_server_t *server, char *at)
{
    return HTTP_PUT(aco__http_put(HTTP_PUT(at, "Date: "), aco__http_date_now(&server->date), HTTP_DATE), "\r\n");
}

/* How the end of the reply is told. `length`: of its body; less than 0: not known. */
static char *put_framing(aco__http_exchange_t *x, char *at, int status, int64_t length)
{
    int is_chunked = length < 0 && x->is.minor > 0;
    aco__http_body_begin(&http1_of(x)->outgoing, length, is_chunked, x->reply.is_bodiless);
    if (length < 0 && !is_chunked && !x->reply.is_bodiless)
        x->reply.will_close = 1;
    if (status != 204 && !(status == 304 && length <= 0)) {
        if (length >= 0)
            at = HTTP_PUT(aco__http_put_number(HTTP_PUT(at, "Content-Length: "), (uint64_t)length), "\r\n");
        else if (is_chunked)
            at = HTTP_PUT(at, "Transfer-Encoding: chunked\r\n");
    }
    if (x->reply.will_close)
        return HTTP_PUT(at, "Connection: close\r\n");
    return x->is.minor > 0 ? at : HTTP_PUT(at, "Connection: keep-alive\r\n");
}

/* Whether the connection ends because the server does. Requests behind this one that have come are still answered. */
static int ends_with_server(const aco__http_exchange_t *x)
{
    const aco__http1_t *h = http1_of(x);
    if (!x->server->is_ending)
        return 0;
    return !h->incoming.has_all || (h->link->in.end == h->link->at && !aco__http_has_input(h->link));
}

/* The bytes that http1_begin() puts around the status line, the content type and the handler's fields, at most. */
enum {
    MOST_OWN_FIELDS = HTTP_DATE + sizeof "Date: \r\nContent-Type: \r\nContent-Length: 18446744073709551615\r\n"
                                         "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n"
};

ACO__SWITCHES
static int http1_begin(aco__http_exchange_t *x, int status, const char *type, size_t type_n, int64_t length,
                       const char *location)
{
    aco__http1_t *h = http1_of(x);
    const aco__http_incoming_t *in = &h->incoming;
    const size_t fields_n = x->reply.fields_n;
    size_t line_n = 0;
    const char *line = aco__http_status_line(status, &line_n);
    char *at, other[32];
    if (!line) {
        line = other;
        line_n = (size_t)snprintf(other, sizeof other, "HTTP/1.1 %d \r\n", status);
    }
    if (!in->is_persistent || h->incoming.may_continue || ends_with_server(x) ||
        (!in->has_all && x->is.length > HTTP_DISCARDED && in->head->body == 0)) /* nobody is going to read that */
        x->reply.will_close = 1;
    at = aco__http_room(h->link, line_n + type_n + fields_n + MOST_OWN_FIELDS, location);
    if (!at)
        return -1;
    at = aco__http_put(at, line, line_n);
    if (!x->reply.has_date)
        at = put_date(x->server, at);
    if (type_n)
        at = HTTP_PUT(aco__http_put(HTTP_PUT(at, "Content-Type: "), type, type_n), "\r\n");
    if (fields_n)
        at = aco__http_put(at, x->reply.fields, fields_n);
    at = put_framing(x, at, status, length);
    at = HTTP_PUT(at, "\r\n");
    ACO__ASSERT((size_t)(at - h->link->out) - h->link->out_n <= line_n + type_n + fields_n + MOST_OWN_FIELDS);
    aco__http_filled(h->link, at);
    return 0;
}

ACO__SWITCHES
static int http1_write(aco__http_exchange_t *x, const void *p, size_t n, const char *call, const char *location)
{
    return aco__http_write_body(&http1_of(x)->outgoing, p, n, call, location);
}

ACO__SWITCHES
static int http1_write_file(aco__http_exchange_t *x, int fd, int64_t offset, int64_t n, const char *call,
                            const char *location)
{
    return aco__http_write_file(&http1_of(x)->outgoing, fd, offset, n, call, location);
}

ACO__SWITCHES static int http1_flush(aco__http_exchange_t *x, const char *location)
{
    return aco__http_send(http1_of(x)->link, NULL, 0, 0, location);
}

/* ---- Another protocol ---- */

static aco__http_link_t *http1_other_protocol(const aco__http_exchange_t *x)
{
    aco__http1_t *h = http1_of(x);
    return h->incoming.may_switch && h->incoming.has_all && x->is.minor > 0 ? h->link : NULL;
}

ACO__SWITCHES
static int http1_switch_protocol(aco__http_exchange_t *x, char *fields, size_t n, const char *location)
{
    static const char line[] = "HTTP/1.1 101 Switching Protocols\r\n";
    aco__http1_t *h = http1_of(x);
    char *at = aco__http_room(h->link, sizeof line + n + x->reply.fields_n + 2, location);
    if (!at)
        return -1;
    at = aco__http_put(HTTP_PUT(at, line), fields, n);
    at = HTTP_PUT(aco__http_put(at, x->reply.fields, x->reply.fields_n), "\r\n");
    aco__http_filled(h->link, at);
    x->reply.will_close = 1;
    aco__http_body_begin(&h->outgoing, 0, 0, 0);
    return 0;
}

/* What handlers see of the connection is gone: it looks broken, by no failure. */
static void forget_stream(aco__http_exchange_t *x, aco__http_link_t *link)
{
    link->stream = NULL;
    link->own.fd = -1;
    link->is_broken = 1;
    x->is.fd = -1;
    x->is.stream = NULL;
}

ACO__SWITCHES
static aco_stream_t *http1_take_over(aco__http_exchange_t *x, const void **bytes, size_t *n, const char *call,
                                     const char *location)
{
    aco__http1_t *h = http1_of(x);
    aco__http_link_t *link = h->link;
    aco_stream_t *stream = link->stream;
    if (!h->incoming.has_all) {
        aco__service_fail(EBUSY, call, "the body was not read");
        return NULL;
    }
    if ((link->out_n || link->is_broken) && aco__http_send(link, NULL, 0, 0, location) != 0) /* earlier replies */
        return NULL;
    if (stream == &link->own && !(stream = aco__stream_of_fd(link->own.fd)))
        return NULL;
    *bytes = link->in.buffer + link->at;
    *n = link->in.end - link->at;
    forget_stream(x, link);
    return stream;
}

/* ---- The table ---- */

static int http1_error_of(const aco__http_exchange_t *x)
{
    return aco__http1_error_of(http1_of(x));
}

const aco__http_version_t aco__http1_version = {
    .read = http1_read,
    .fail_body = http1_fail_body,
    .limit_body = http1_limit_body,
    .begin = http1_begin,
    .write = http1_write,
    .write_file = http1_write_file,
    .flush = http1_flush,
    .push = NULL,
    .other_protocol = http1_other_protocol,
    .switch_protocol = http1_switch_protocol,
    .take_over = http1_take_over,
    .error_of = http1_error_of,
};
