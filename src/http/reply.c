/* Replies: the calls by which handlers send them. */
#include "http/reply.h"
#include "http/request.h"
#include "http/server.h"
#include "http/text.h"

#include "aco/detail/for_grpc.h"

#include <string.h>

/* As the end of begin_reply(). If it fails, the headers are as before: the handler may try again. */
ACO__SWITCHES static __attribute__((noinline)) int
begin_compressed(aco__http_exchange_t *x, int status, const char *type, int64_t length, const char *location)
{
    const aco__http_reply_t before = x->reply;
    if (aco__http_begin_coding(x, status, type, &length) == 0 &&
        x->version->begin(x, status, type, type ? strlen(type) : 0, length, location) == 0) {
        x->reply.has_begun = 1;
        x->is.status = status;
        return 0;
    }
    aco__http_free_encoder(x, x->reply.encoder);
    x->reply = before;
    return -1;
}

ACO__SWITCHES
static int begin_reply(aco__http_exchange_t *x, int status, const char *type, int64_t length, const char *call,
                       const char *location)
{
    const size_t type_n = type ? strlen(type) : 0;
    if (x->reply.has_begun)
        return aco__service_fail(EBUSY, call, "the reply has begun");
    if (status < 200 || status > 599 || type_n > 1024 || !aco__http_is_value(type, type_n))
        return aco__service_fail(EINVAL, call, "the status, or the content type");
    if (aco_unlikely(x->is_connect) && status < 300) /* this is no WebSocket, and must not look like one */
        status = 400;
    x->reply.has_length = length >= 0; /* that the handler keeps */
    x->reply.is_bodiless = x->is_head || status == 204 || status == 304;
    if (x->reply.is_aborted) { /* what failed had not begun: nothing of this reply is missing */
        x->reply.is_aborted = 0;
        x->reply.will_close = 1;
    }
    if (aco_unlikely(x->reply.compression != NULL))
        return begin_compressed(x, status, type, length, location);
    if (x->version->begin(x, status, type, type_n, length, location) != 0)
        return -1;
    x->reply.has_begun = 1;
    x->is.status = status;
    return 0;
}

/* Sends the next bytes of a body. 0, or -1 and errno. */
ACO__SWITCHES
static int put_body(aco__http_exchange_t *x, const void *p, size_t n, const char *call, const char *location)
{
    if (aco_unlikely(x->reply.encoder != NULL))
        return aco__http_write_coded(x, p, n, call, location);
    return x->version->write(x, p, n, call, location);
}

/* Counts what was written of it; an encoder does that itself. */
static void count_sent(aco__http_exchange_t *x, uint64_t n)
{
    if (!x->reply.is_bodiless && !x->reply.encoder)
        x->is.sent += n;
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
    count_sent(x, n);
    return put_body(x, body, n, call, location);
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
    if (put_body(x, p, n, call, location) != 0)
        return fail_to_write(x);
    count_sent(x, n);
    return 0;
}

int aco_http_reply_flush_at(aco_http_request_t *request, const char *location)
{
    static const char call[] = "aco_http_reply_flush";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    if (check_not_taken(x, call) != 0)
        return -1;
    if (x->reply.encoder && aco__http_flush_coded(x, call, location) != 0)
        return -1;
    return x->version->flush(x, location);
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
    int result;
    if (check_begun(x, call) != 0)
        return -1;
    result = x->reply.encoder ? aco__http_write_file_coded(x, fd, offset, n, call, location)
                              : x->version->write_file(x, fd, offset, n, call, location);
    if (result != 0)
        return fail_to_write(x);
    count_sent(x, (uint64_t)n);
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

int aco__http_switch(aco__http_exchange_t *x, char *fields, size_t n, const char *location)
{
    if (x->reply.is_refusal)
        return aco__service_fail(EPERM, "aco_websocket_accept", "the request was refused");
    if (x->version->switch_protocol(x, fields, n, location) != 0)
        return -1;
    x->reply.has_begun = 1;
    x->is.status = x->is_connect ? 200 : 101;
    return 0;
}
