/* Replies: their heads, and the calls by which handlers send them. */
#define _GNU_SOURCE /* clock_gettime() */
#include "http/link.h"
#include "http/reply.h"
#include "http/request.h"
#include "http/server.h"
#include "http/text.h"
#include "system/system.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HTTP_MOST_FIELDS = 6144 }; /* bytes of the headers that a handler adds */

/* ---- Headers ---- */

int aco_http_reply_header(aco_http_request_t *request, const char *name, const char *value)
{
    static const char call[] = "aco_http_reply_header";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    size_t name_n = name ? strlen(name) : 0, value_n = value ? strlen(value) : 0, n = name_n + value_n + 4;
    char *at;
    if (!value || !aco__http_is_token(name, name_n) || !aco__http_is_value(value, value_n))
        return aco__service_fail(EINVAL, call, "HTTP does not allow this name or value");
    if (aco__http_same(name, "content-length") || aco__http_same(name, "transfer-encoding") ||
        (aco__http_same(name, "connection") && !aco__http_same(value, "close")))
        return aco__service_fail(EINVAL, call, "the server sends this header itself");
    if (x->has_begun)
        return aco__service_fail(EBUSY, call, "the reply has begun");
    if (aco__http_same(name, "connection")) {
        x->will_close = 1; /* put_framing() sends it */
        return 0;
    }
    if (n > HTTP_MOST_FIELDS - x->fields_n)
        return aco__service_fail(ENOMEM, call, "the headers of a reply have 6 KiB");
    if (n > x->fields_room - x->fields_n) {
        size_t room = 2 * x->fields_room + n + 128;
        char *fields = aco_http_request_allocate(request, room);
        if (!fields)
            return -1;
        if (x->fields_n)
            memcpy(fields, x->fields, x->fields_n);
        x->fields = fields;
        x->fields_room = room;
    }
    at = aco__http_put(x->fields + x->fields_n, name, name_n);
    at = aco__http_put(at, ": ", 2);
    at = aco__http_put(at, value, value_n);
    aco__http_put(at, "\r\n", 2);
    x->fields_n += n;
    return 0;
}

/* The text of the Date header, made once a second. */
static const char *date_of(aco__http_server_t *server)
{
    int64_t now = aco_now();
    if (aco_unlikely(now >= server->date_until)) {
        struct timespec wall;
        aco__system.clock_gettime(CLOCK_REALTIME, &wall);
        aco__http_put_date(server->date, wall.tv_sec);
        server->date_until = now + ACO_SECOND - wall.tv_nsec;
    }
    return server->date;
}

/* How the end of the reply is told. `length`: of its body; less than 0: not known. */
static char *put_framing(aco__http_exchange_t *x, char *at, int status, int64_t length)
{
    int is_chunked = length < 0 && x->is.minor > 0, is_bodiless = x->is_head || status == 204 || status == 304;
    aco__http_body_begin(&x->connection->outgoing, length, is_chunked, is_bodiless);
    if (length < 0 && !is_chunked && !is_bodiless)
        x->will_close = 1;
    if (status != 204 && !(status == 304 && length <= 0)) {
        if (length >= 0)
            at = HTTP_PUT(aco__http_put_number(HTTP_PUT(at, "Content-Length: "), (uint64_t)length), "\r\n");
        else if (is_chunked)
            at = HTTP_PUT(at, "Transfer-Encoding: chunked\r\n");
    }
    if (x->will_close)
        return HTTP_PUT(at, "Connection: close\r\n");
    return x->is.minor > 0 ? at : HTTP_PUT(at, "Connection: keep-alive\r\n");
}

/* Whether the connection ends because the server does. Requests behind this one that have come are still answered. */
static int ends_with_server(const aco__http_exchange_t *x)
{
    const aco__http_link_t *link = &x->connection->link;
    if (!x->connection->server->is_ending)
        return 0;
    return !x->connection->incoming.has_all || (link->in.end == link->at && !aco__http_has_input(link));
}

/* The bytes that begin_reply() puts around the status line, the content type and the handler's fields, at most. */
enum {
    MOST_OWN_FIELDS = HTTP_DATE + sizeof "Date: \r\nContent-Type: \r\nContent-Length: 18446744073709551615\r\n"
                                         "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n"
};

/* Puts the head of the reply into the output. 0, or -1 and errno. */
ACO__SWITCHES
static int begin_reply(aco__http_exchange_t *x, int status, const char *type, int64_t length, const char *call,
                       const char *location)
{
    aco__http_link_t *link = &x->connection->link;
    const aco__http_incoming_t *in = &x->connection->incoming;
    size_t line_n = 0, type_n = type ? strlen(type) : 0;
    const char *line = aco__http_status_line(status, &line_n);
    char *at, other[32];
    if (x->has_begun)
        return aco__service_fail(EBUSY, call, "the reply has begun");
    if (status < 200 || status > 599 || type_n > 1024 || !aco__http_is_value(type, type_n))
        return aco__service_fail(EINVAL, call, "the status, or the content type");
    if (!line) {
        line = other;
        line_n = (size_t)snprintf(other, sizeof other, "HTTP/1.1 %d \r\n", status);
    }
    if (!in->is_persistent || x->may_continue || ends_with_server(x) ||
        (!in->has_all && x->is.length > HTTP_DISCARDED && in->head->body == 0)) /* nobody is going to read that */
        x->will_close = 1;
    at = aco__http_room(link, line_n + type_n + x->fields_n + MOST_OWN_FIELDS, location);
    if (!at)
        return -1;
    at = aco__http_put(at, line, line_n);
    at = HTTP_PUT(at, "Date: ");
    at = aco__http_put(at, date_of(x->connection->server), HTTP_DATE);
    at = HTTP_PUT(at, "\r\n");
    if (type_n)
        at = HTTP_PUT(aco__http_put(HTTP_PUT(at, "Content-Type: "), type, type_n), "\r\n");
    if (x->fields_n)
        at = aco__http_put(at, x->fields, x->fields_n);
    at = put_framing(x, at, status, length);
    at = HTTP_PUT(at, "\r\n");
    ACO__ASSERT((size_t)(at - link->out) - link->out_n <= line_n + type_n + x->fields_n + MOST_OWN_FIELDS);
    aco__http_filled(link, at);
    x->has_begun = 1;
    x->is.status = status;
    return 0;
}

/* ---- The calls ---- */

int aco_http_reply_at(aco_http_request_t *request, int status, const char *type, const void *body, size_t n,
                      const char *location)
{
    static const char call[] = "aco_http_reply";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    if (n > PTRDIFF_MAX)
        return aco__service_fail(EINVAL, call, "the body is too long");
    if (begin_reply(x, status, type, (int64_t)n, call, location) != 0)
        return -1;
    if (!x->connection->outgoing.is_bodiless)
        request->sent = n;
    return aco__http_write_body(&x->connection->outgoing, body, n, call, location);
}

int aco_http_reply_begin_at(aco_http_request_t *request, int status, const char *type, int64_t length,
                            const char *location)
{
    return begin_reply(aco__http_exchange_of(request), status, type, length, "aco_http_reply_begin", location);
}

static int check_begun(const aco__http_exchange_t *x, const char *call)
{
    return x->has_begun ? 0 : aco__service_fail(EINVAL, call, "the reply has not begun");
}

/* A part is lacking. Where a length was told, the client counts. */
static int fail_to_write(aco__http_exchange_t *x)
{
    if (x->connection->outgoing.left < 0)
        x->is_aborted = 1;
    return -1;
}

int aco_http_reply_write_at(aco_http_request_t *request, const void *p, size_t n, const char *location)
{
    static const char call[] = "aco_http_reply_write";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    if (check_begun(x, call) != 0)
        return -1;
    if (aco__http_write_body(&x->connection->outgoing, p, n, call, location) != 0)
        return fail_to_write(x);
    if (!x->connection->outgoing.is_bodiless)
        request->sent += n;
    return 0;
}

int aco_http_reply_flush_at(aco_http_request_t *request, const char *location)
{
    return aco__http_send(&aco__http_exchange_of(request)->connection->link, NULL, 0, 0, location);
}

int aco_http_reply_write_file_at(aco_http_request_t *request, int fd, int64_t offset, int64_t n, const char *location)
{
    static const char call[] = "aco_http_reply_write_file";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    if (check_begun(x, call) != 0)
        return -1;
    if (aco__http_write_file(&x->connection->outgoing, fd, offset, n, call, location) != 0)
        return fail_to_write(x);
    if (!x->connection->outgoing.is_bodiless)
        request->sent += (uint64_t)n;
    return 0;
}

void aco_http_reply_abort(aco_http_request_t *request)
{
    aco__http_exchange_of(request)->is_aborted = 1;
}

int aco__http_answer(aco__http_exchange_t *x, int status, const char *location)
{
    size_t n = 0;
    const char *line = aco__http_status_line(status, &n) + sizeof "HTTP/1.1 " - 1;
    char text[64];
    n -= sizeof "HTTP/1.1 " - 1;
    aco__http_put(text, line, n);
    text[n - 2] = '\n';
    return aco_http_reply_at(&x->is, status, "text/plain", text, n - 1, location);
}
