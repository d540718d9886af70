/* Replies: the calls by which handlers send them. */
#include "http/reply.h"
#include "http/request.h"
#include "http/server.h"
#include "http/text.h"

#include "aco/detail/for_grpc.h"

#include <string.h>

enum { HTTP_MOST_FIELDS = 6144 }; /* bytes of the headers that a handler adds */

/* ---- Headers ---- */

/* Room for a line of `n` bytes behind these, which it counts. NULL and errno. */
static char *line_room(aco__http_exchange_t *x, size_t n, char **lines, size_t *lines_n, size_t *lines_room,
                       const char *call)
{
    if (n > HTTP_MOST_FIELDS - *lines_n) {
        aco__service_fail(ENOMEM, call, "the headers of a reply have 6 KiB");
        return NULL;
    }
    if (n > *lines_room - *lines_n) {
        size_t room = 2 * *lines_room + n + 128;
        char *larger = aco_http_request_allocate(&x->is, room);
        if (!larger)
            return NULL;
        aco__http_put(larger, *lines, *lines_n);
        *lines = larger;
        *lines_room = room;
    }
    *lines_n += n;
    return *lines + *lines_n - n;
}

static void put_line(char *at, const char *name, size_t name_n, const char *value, size_t value_n)
{
    at = aco__http_put(at, name, name_n);
    at = aco__http_put(at, ": ", 2);
    at = aco__http_put(at, value, value_n);
    aco__http_put(at, "\r\n", 2);
}

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
    if (x->reply.has_begun)
        return aco__service_fail(EBUSY, call, "the reply has begun");
    if (aco__http_same(name, "connection")) {
        x->reply.will_close = 1; /* the version tells the client */
        return 0;
    }
    at = line_room(x, n, &x->reply.fields, &x->reply.fields_n, &x->reply.fields_room, call);
    if (!at)
        return -1;
    put_line(at, name, name_n, value, value_n);
    x->reply.has_date |= (unsigned char)aco__http_same(name, "date");
    return 0;
}

/* Whether it tells how to read the message, or who gets it: then it comes too late (RFC 9110, 6.5.1). */
static int must_come_first(const char *name)
{
    static const char *const names[] = {"content-length",
                                        "transfer-encoding",
                                        "content-encoding",
                                        "content-type",
                                        "content-range",
                                        "connection",
                                        "host",
                                        "te",
                                        "trailer",
                                        "upgrade",
                                        "keep-alive",
                                        "proxy-connection",
                                        "set-cookie",
                                        "authorization"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (aco__http_same(name, names[i]))
            return 1;
    return 0;
}

int aco_http_reply_trailer(aco_http_request_t *request, const char *name, const char *value)
{
    static const char call[] = "aco_http_reply_trailer";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    size_t name_n = name ? strlen(name) : 0, value_n = value ? strlen(value) : 0;
    char *at;
    if (!value || !aco__http_is_token(name, name_n) || !aco__http_is_value(value, value_n) || must_come_first(name))
        return aco__service_fail(EINVAL, call, "HTTP does not allow this name or value");
    if (x->reply.is_taken || (x->reply.has_begun && (x->reply.has_length || x->reply.is_bodiless)))
        return aco__service_fail(EBUSY, call, "the reply has a length, or no body");
    at = line_room(x, name_n + value_n + 4, &x->reply.trailers, &x->reply.trailers_n, &x->reply.trailers_room, call);
    if (!at)
        return -1;
    put_line(at, name, name_n, value, value_n);
    return 0;
}

/* ---- The calls ---- */

ACO__SWITCHES
static int begin_reply(aco__http_exchange_t *x, int status, const char *type, int64_t length, const char *call,
                       const char *location)
{
    const size_t type_n = type ? strlen(type) : 0;
    if (x->reply.has_begun)
        return aco__service_fail(EBUSY, call, "the reply has begun");
    if (status < 200 || status > 599 || type_n > 1024 || !aco__http_is_value(type, type_n))
        return aco__service_fail(EINVAL, call, "the status, or the content type");
    x->reply.has_length = length >= 0;
    x->reply.is_bodiless = x->is_head || status == 204 || status == 304;
    if (x->reply.is_aborted) { /* what failed had not begun: nothing of this reply is missing */
        x->reply.is_aborted = 0;
        x->reply.will_close = 1;
    }
    if (x->version->begin(x, status, type, type_n, length, location) != 0)
        return -1;
    x->reply.has_begun = 1;
    x->is.status = status;
    return 0;
}

int aco_http_reply_at(aco_http_request_t *request, int status, const char *type, const void *body, size_t n,
                      const char *location)
{
    static const char call[] = "aco_http_reply";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    if (n > PTRDIFF_MAX)
        return aco__service_fail(EINVAL, call, "the body is too long");
    if (begin_reply(x, status, type, (int64_t)n, call, location) != 0)
        return -1;
    if (!x->reply.is_bodiless)
        request->sent = n;
    return x->version->write(x, body, n, call, location);
}

int aco_http_reply_begin_at(aco_http_request_t *request, int status, const char *type, int64_t length,
                            const char *location)
{
    return begin_reply(aco__http_exchange_of(request), status, type, length, "aco_http_reply_begin", location);
}

static int check_not_taken(const aco__http_exchange_t *x, const char *call)
{
    return x->reply.is_taken ? aco__service_fail(EBUSY, call, "the connection was taken over") : 0;
}

static int check_begun(const aco__http_exchange_t *x, const char *call)
{
    if (check_not_taken(x, call) != 0)
        return -1;
    return x->reply.has_begun ? 0 : aco__service_fail(EINVAL, call, "the reply has not begun");
}

/* A part is lacking. Where a length was told, the client counts. */
static int fail_to_write(aco__http_exchange_t *x)
{
    if (!x->reply.has_length)
        x->reply.is_aborted = 1;
    return -1;
}

int aco_http_reply_write_at(aco_http_request_t *request, const void *p, size_t n, const char *location)
{
    static const char call[] = "aco_http_reply_write";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    if (check_begun(x, call) != 0)
        return -1;
    if (x->version->write(x, p, n, call, location) != 0)
        return fail_to_write(x);
    if (!x->reply.is_bodiless)
        request->sent += n;
    return 0;
}

int aco_http_reply_flush_at(aco_http_request_t *request, const char *location)
{
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    return check_not_taken(x, "aco_http_reply_flush") == 0 ? x->version->flush(x, location) : -1;
}

void aco__http_reply_push(aco_http_request_t *request)
{
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    if (x->version->push && !x->reply.is_taken)
        x->version->push(x);
}

int aco_http_reply_write_file_at(aco_http_request_t *request, int fd, int64_t offset, int64_t n, const char *location)
{
    static const char call[] = "aco_http_reply_write_file";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    if (check_begun(x, call) != 0)
        return -1;
    if (x->version->write_file(x, fd, offset, n, call, location) != 0)
        return fail_to_write(x);
    if (!x->reply.is_bodiless)
        request->sent += (uint64_t)n;
    return 0;
}

void aco_http_reply_abort(aco_http_request_t *request)
{
    aco__http_exchange_of(request)->reply.is_aborted = 1;
}

/* Whether the program has made the reply. */
ACO__SWITCHES static int refuse_by_program(aco__http_exchange_t *x, int status)
{
    const aco_http_server_options_t *options = &x->server->options;
    if (!options->refused || x->reply.is_refusal)
        return 0;
    x->reply.is_refusal = 1;
    options->refused(&x->is, status, options->refused_arg);
    x->reply.is_refusal = 0;
    return x->reply.has_begun;
}

int aco__http_answer(aco__http_exchange_t *x, int status, const char *location)
{
    size_t n = 0;
    const char *line = aco__http_status_line(status, &n) + sizeof "HTTP/1.1 " - 1;
    char text[64];
    if (x->reply.has_begun)
        return aco__service_fail(EBUSY, "aco_http_reply", "the reply has begun");
    if (refuse_by_program(x, status))
        return 0;
    n -= sizeof "HTTP/1.1 " - 1;
    aco__http_put(text, line, n);
    text[n - 2] = '\n';
    return aco_http_reply_at(&x->is, status, "text/plain", text, n - 1, location);
}

int aco__http_switch(aco__http_exchange_t *x, const char *fields, size_t n, const char *location)
{
    if (x->reply.is_refusal)
        return aco__service_fail(EPERM, "aco_websocket_accept", "the request was refused");
    if (x->version->switch_protocol(x, fields, n, location) != 0)
        return -1;
    x->reply.has_begun = 1;
    x->is.status = 101;
    return 0;
}
