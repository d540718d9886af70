/* A connection's bytes: input that llhttp parses in place, and output that is collected.
 *
 * The input buffer is lent (aco/io_buffer.h) while a message is there. A message's head stays where it was parsed until
 * the message is done, so the fields of a request point into the buffer; its body passes behind the head. Output is
 * sent before the link waits for input, so several replies to pipelined requests need one system call. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "http/link.h"
#include "http/text.h"
#include "system/system.h"

#include "aco/detail/descriptors.h"
#include "aco/file.h"

#include <poll.h>
#include <string.h>

/* ---- What llhttp tells ---- */

static aco__http_link_t *link_of(const llhttp_t *parser)
{
    return parser->data;
}

/* In the buffer, which llhttp only reads. */
static char *in_buffer(const char *p)
{
    return (char *)(uintptr_t)p;
}

static int refuse(aco__http_head_t *head, int status)
{
    if (!head->refusal)
        head->refusal = status;
    return HPE_USER;
}

static int on_url(llhttp_t *parser, const char *p, size_t n)
{
    aco__http_head_t *head = link_of(parser)->head;
    if (!head->target)
        head->target = in_buffer(p);
    head->target_end = in_buffer(p) + n;
    return 0;
}

static void count(unsigned char *times)
{
    if (*times < 2)
        ++*times;
}

/* Remembers what the glue itself needs of a header. */
static void look_at(aco__http_head_t *head, const char *name, size_t name_n, const char *value, size_t value_n)
{
    switch (name_n) {
    case 4:
        if (aco__http_is(name, name_n, "host")) {
            count(&head->hosts);
            head->host = value;
        }
        break;
    case 6:
        if (aco__http_is(name, name_n, "expect")) {
            count(&head->expects);
            head->expects_continue = (unsigned char)aco__http_is(value, value_n, "100-continue");
        }
        break;
    case 14:
        if (aco__http_is(name, name_n, "content-length"))
            count(&head->lengths);
        break;
    case 17:
        if (aco__http_is(name, name_n, "transfer-encoding")) {
            count(&head->encodings);
            head->is_chunked = (unsigned char)aco__http_is(value, value_n, "chunked");
        }
        break;
    default:
        break;
    }
}

static int on_header_field(llhttp_t *parser, const char *p, size_t n)
{
    aco__http_link_t *link = link_of(parser);
    aco__http_head_t *head = link->head;
    if (link->has_head) /* a trailer: dropped */
        return 0;
    if (!head->in_field) {
        if (head->count == head->most)
            return refuse(head, 431);
        head->headers[head->count].name = p;
        head->headers[head->count++].value = NULL;
        head->in_field = 1;
    }
    head->name_end = in_buffer(p) + n;
    return 0;
}

/* llhttp tells of an empty value at the place where it notices that it is empty, which is in the next line. */
static int on_header_value(llhttp_t *parser, const char *p, size_t n)
{
    aco__http_link_t *link = link_of(parser);
    aco__http_head_t *head = link->head;
    if (link->has_head || n == 0)
        return 0;
    if (!head->headers[head->count - 1].value)
        head->headers[head->count - 1].value = p;
    head->value_end = in_buffer(p) + n;
    return 0;
}

/* The field is complete: its texts get their ends, in bytes of its own line, which llhttp has read. */
static int on_header_value_complete(llhttp_t *parser)
{
    aco__http_link_t *link = link_of(parser);
    aco__http_head_t *head = link->head;
    aco_http_header_t *header;
    char *end;
    if (link->has_head)
        return 0;
    ACO__ASSERT(head->count > 0 && head->count <= head->most);
    header = &head->headers[head->count - 1];
    if (!header->value) /* an empty one: the name's end does for it */
        header->value = head->value_end = head->name_end;
    *head->name_end = 0;
    for (end = head->value_end; end > header->value && (end[-1] == ' ' || end[-1] == '\t');)
        end--;
    *end = 0;
    head->in_field = 0;
    look_at(head, header->name, (size_t)(head->name_end - header->name), header->value, (size_t)(end - header->value));
    return 0;
}

static int has_body(const llhttp_t *response)
{
    int status = response->status_code;
    if (response->flags & F_SKIPBODY || status < 200 || status == 204 || status == 304)
        return 0;
    return response->flags & F_CHUNKED || !(response->flags & F_CONTENT_LENGTH) || response->content_length > 0;
}

/* llhttp skips bare line ends before a message, takes other protocols' names, and lets a client skip line ends. */
static int begins_well(const aco__http_link_t *link)
{
    const char *at = link->in.buffer + link->in.begin;
    if (link->parser->type == HTTP_RESPONSE)
        return memcmp(at, "HTTP/", 5) == 0;
    while (at[0] == '\r' && at[1] == '\n')
        at += 2;
    return *at != '\r' && *at != '\n';
}

/* The reason of a response, or a part of it, of which llhttp checks nothing. */
static int on_status(llhttp_t *parser, const char *p, size_t n)
{
    return aco__http_is_value(p, n) ? 0 : refuse(link_of(parser)->head, 400);
}

/* A message without a body is parsed to its end at once. Before a body the parser stops. */
static int on_headers_complete(llhttp_t *parser)
{
    aco__http_link_t *link = link_of(parser);
    aco__http_head_t *head = link->head;
    link->has_head = 1;
    llhttp_set_lenient_optional_cr_before_lf(parser, 0); /* chunks have no bare line feeds */
    if (!begins_well(link) || (parser->type == HTTP_RESPONSE && parser->status_code < 100))
        return refuse(head, 400);
    if (parser->type == HTTP_RESPONSE && head->encodings && !(parser->flags & F_CHUNKED))
        return refuse(head, 400); /* llhttp would read up to the connection's end */
    if (link->gets_no_body || (parser->type == HTTP_RESPONSE && !has_body(parser)))
        parser->flags |= F_SKIPBODY; /* llhttp would wait for one with a length, also of 304 */
    link->is_persistent = !(parser->flags & F_CONNECTION_CLOSE) && llhttp_should_keep_alive(parser);
    if (parser->type == HTTP_RESPONSE)
        return has_body(parser) ? HPE_PAUSED : 0;
    link->may_switch = parser->upgrade;
    parser->upgrade = 0; /* the parser itself goes on */
    if (parser->method == HTTP_CONNECT)
        return refuse(head, 501);
    /* Of what two programs could understand differently, llhttp refuses most. */
    if (head->lengths > 1 || head->encodings > 1 || (head->lengths && head->encodings))
        return refuse(head, 400);
    if (head->encodings && parser->http_minor == 0)
        return refuse(head, 400);
    if (head->encodings && !head->is_chunked)
        return refuse(head, (parser->flags & F_CHUNKED) != 0 ? 501 : 400);
    if (parser->content_length > INT64_MAX)
        return refuse(head, 413);
    return parser->flags & F_CHUNKED || parser->content_length > 0 ? HPE_PAUSED : 0;
}

static int on_body(llhttp_t *parser, const char *p, size_t n)
{
    aco__http_link_t *link = link_of(parser);
    if (!link->head->sink) /* nobody reads a body */
        return HPE_USER;
    link->head->body += n;
    if (link->head->body > link->most_body) {
        link->body_error = EFBIG;
        return HPE_USER;
    }
    if (link->head->sink + link->head->sunk != p)
        memmove(link->head->sink + link->head->sunk, p, n);
    link->head->sunk += n;
    return 0;
}

static int on_message_complete(llhttp_t *parser)
{
    aco__http_link_t *link = link_of(parser);
    link->has_all = 1;
    /* A trailer cannot end the connection, and behind an interim response the final one comes: llhttp must parse what
     * follows. Nothing else reads these flags now. */
    if (link->is_persistent || (parser->type == HTTP_RESPONSE && parser->status_code < 200))
        parser->flags = (uint16_t)((parser->flags & ~F_CONNECTION_CLOSE) | F_CONNECTION_KEEP_ALIVE | F_SKIPBODY);
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_status = on_status,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* ---- What must hold ---- */

#ifdef ACO__INVARIANTS
/* The positions in the input are in order, whatever the peer sends. */
static int is_input_in_order(const aco__http_link_t *link)
{
    const aco_io_reader_t *in = &link->in;
    return in->begin <= link->at && link->at <= in->end && in->end <= in->size && (in->buffer || !in->end);
}
#endif

/* ---- Opening, closing ---- */

void aco__http_link_open(aco__http_link_t *link, int fd, size_t in_size)
{
    memset(link, 0, sizeof *link);
    link->fd = fd;
    link->body_time = ACO_FOREVER;
    aco_io_reader_open(&link->in, fd, NULL, in_size);
}

void aco__http_link_parse_by(aco__http_link_t *link, llhttp_t *parser, llhttp_type_t type)
{
    link->parser = parser;
    llhttp_init(parser, type, &settings);
    link->parser->data = link;
}

void aco__http_link_close(aco__http_link_t *link)
{
    static const struct linger reset = {1, 0};
    const aco_http_transport_t *transport = link->transport;
    int is_cut = aco__http_is_cut(link);
    aco_io_reader_close(&link->in);
    if (is_cut && link->fd >= 0)
        (void)aco__system.setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (transport)
        (is_cut && transport->abort ? transport->abort : transport->close)(link->stream);
    else if (link->fd >= 0)
        (void)aco_io_close(link->fd);
}

int aco__http_is_passing(void)
{
    int error = errno, is_passing = error == ENOMEM || error == EPERM || error == EAGAIN;
    if (error == ETIMEDOUT || error == ECANCELED) /* the system's, too, and a closed descriptor's */
        is_passing = aco_check_cancelled() != 0;
    errno = error;
    return is_passing;
}

/* ---- Input ---- */

ssize_t aco__http_link_read(aco__http_link_t *link, void *p, size_t n, const char *location)
{
    return link->transport ? link->transport->read(link->stream, p, n, location)
                           : aco_io_read_at(link->fd, p, n, location);
}

int aco__http_link_shutdown(aco__http_link_t *link, const char *location)
{
    if (!link->transport)
        return aco_io_shutdown(link->fd, SHUT_WR);
    return link->transport->shutdown ? link->transport->shutdown(link->stream, location) : -1;
}

/* Reads behind what is there. */
ACO__SWITCHES static ssize_t append(aco__http_link_t *link, const char *location)
{
    aco_io_reader_t *in = &link->in;
    ssize_t n;
    ACO__ASSERT(in->end < in->size); /* a read of nothing would look like the stream's end */
    n = aco__http_link_read(link, in->buffer + in->end, in->size - in->end, location);
    if (n > 0)
        in->end += (size_t)n;
    return n;
}

/* Waits until something has come, without a buffer. 0, or -1 and errno. */
ACO__SWITCHES static int await_input(aco__http_link_t *link, const char *location)
{
    aco_io_reader_close(&link->in);
    if (!link->transport)
        return aco__io_await_input(link->fd, location);
    return link->transport->wait_readable ? link->transport->wait_readable(link->stream, location) : 0;
}

ssize_t aco__http_await(aco__http_link_t *link, const char *location)
{
    aco_io_reader_t *in = &link->in;
    int is_first = !link->has_all && !link->transport; /* something may have come already */
    ACO__ASSERT(in->begin == in->end); /* it would be lost with the buffer */
    for (;; is_first = 0) {
        size_t sz = in->size;
        ssize_t n;
        int is_over = !is_first && await_input(link, location) != 0, error = errno;
        if (is_over && link->transport && !aco__http_has_input(link)) /* a last look; without one, below */
            return -1;
        if (!in->buffer && !(in->buffer = aco__service_allocate(&sz, "aco_http_serve")))
            return -1;
        if (link->transport)
            return append(link, location);
        n = aco__io_recv_now(link->fd, in->buffer, in->size);
        if (n > 0)
            in->end = (size_t)n;
        if (n < 0 && is_over)
            errno = error;
        if (n >= 0 || errno != EAGAIN || is_over)
            return n;
    }
}

int aco__http_is_readable(int fd)
{
    struct pollfd look = {fd, POLLIN, 0};
    return aco__system.poll(&look, 1, 0) > 0;
}

int aco__http_has_input(const aco__http_link_t *link)
{
    if (link->transport && link->transport->has_input && link->transport->has_input(link->stream))
        return 1;
    return aco__http_is_readable(link->fd);
}

void aco__http_message_begin(aco__http_link_t *link, aco__http_head_t *head)
{
    link->head = head;
    link->head->sink = NULL;
    link->at = link->in.begin;
    ACO__ASSERT(is_input_in_order(link));
    link->head->body = link->head->framing = 0;
    link->has_head = link->has_all = link->may_switch = 0;
    link->body_error = link->read_error = 0;
    link->body_until = 0;
    llhttp_set_lenient_optional_cr_before_lf(link->parser, link->parser->type == HTTP_RESPONSE);
}

/* Feeds the parser `n` bytes that stand at link->at. 0, or -1: they are wrong. */
static int feed(aco__http_link_t *link, size_t n)
{
    llhttp_errno_t error;
    ACO__ASSERT(is_input_in_order(link) && n <= link->in.end - link->at);
    error = llhttp_execute(link->parser, link->in.buffer + link->at, n);
    if (aco_likely(error == HPE_PAUSED)) {
        link->at = (size_t)(llhttp_get_error_pos(link->parser) - link->in.buffer);
        ACO__ASSERT(is_input_in_order(link));
        llhttp_resume(link->parser);
        return 0;
    }
    if (error != HPE_OK)
        return -1;
    link->at += n;
    return 0;
}

/* The status for a head that llhttp does not accept. */
static int status_of_error(const aco__http_link_t *link)
{
    llhttp_errno_t error = llhttp_get_errno(link->parser);
    const char *word = link->in.buffer + link->in.begin, *reason = llhttp_get_error_reason(link->parser);
    const char *end = word, *limit = link->in.buffer + link->in.end;
    while (end < limit && aco__http_is_token(end, 1))
        end++;
    if (error == HPE_PAUSED_H2_UPGRADE || (reason && strcmp(reason, "Invalid HTTP version") == 0))
        return 505;
    return error == HPE_INVALID_METHOD && end > word && (end == limit || *end == ' ') ? 501 : 400;
}

static void shift_text(const char **text, size_t by)
{
    if (*text)
        *text -= by;
}

static void shift(char **text, size_t by)
{
    if (*text)
        *text -= by;
}

/* Moves a message to the buffer's start, before anybody else has pointers to its head. */
static void move_head(aco__http_link_t *link)
{
    aco_io_reader_t *in = &link->in;
    aco__http_head_t *head = link->head;
    size_t by = in->begin;
    ACO__ASSERT(is_input_in_order(link));
    memmove(in->buffer, in->buffer + by, in->end - by);
    for (size_t i = 0; i < head->count; i++) {
        shift_text(&head->headers[i].name, by);
        shift_text(&head->headers[i].value, by);
    }
    shift(&head->target, by);
    shift(&head->target_end, by);
    shift(&head->name_end, by);
    shift(&head->value_end, by);
    shift_text(&head->host, by);
    in->begin = 0;
    in->end -= by;
    link->at -= by;
    link->keep -= by;
}

int aco__http_parse_head(aco__http_link_t *link)
{
    size_t n = link->in.end - link->at;
    if (n && feed(link, n) != 0) {
        if (!link->head->refusal)
            link->head->refusal = status_of_error(link);
        return -1;
    }
    link->keep = link->at;
    if (link->has_head && (!link->has_all || link->may_switch) && link->in.size - link->keep < HTTP_BEHIND_HEAD)
        move_head(link); /* for its body, or the other protocol */
    return link->has_head;
}

ssize_t aco__http_more_head(aco__http_link_t *link, const char *location)
{
    ACO__ASSERT(!link->has_head); /* nobody has pointers to it */
    if (link->in.begin > 0)
        move_head(link);
    if (link->out_n && aco__http_send(link, NULL, 0, 0, location) != 0)
        return -1;
    return append(link, location);
}

ssize_t aco__http_more_input(aco__http_link_t *link, const char *location)
{
    aco_io_reader_t *in = &link->in;
    size_t n = in->end - link->at;
    ACO__ASSERT(is_input_in_order(link) && in->begin <= link->keep && link->keep <= link->at);
    if (n)
        memmove(in->buffer + link->keep, in->buffer + link->at, n);
    link->at = link->keep;
    in->end = link->keep + n;
    return append(link, location);
}

static ssize_t body_fails(aco__http_link_t *link, int error, const char *call, const char *reason)
{
    link->body_error = error;
    link->is_persistent = 0;
    return aco__service_fail(error, call, reason);
}

ACO__SWITCHES static ssize_t more_body(aco__http_link_t *link, char *direct, size_t n, const char *location)
{
    if (link->out_n && aco__http_send(link, NULL, 0, 0, location) != 0)
        return -1;
    if (direct)
        return aco__http_link_read(link, direct, n, location);
    return aco__http_more_input(link, location);
}

/* Within the body's time, which a peer can use up without a wait: a read that finds bytes succeeds also later. */
ACO__SWITCHES static ssize_t more_body_in_time(aco__http_link_t *link, char *direct, size_t n, const char *location)
{
    aco_scope_t scope;
    ssize_t got;
    if (link->body_time == ACO_FOREVER)
        return more_body(link, direct, n, location);
    if (!link->body_until)
        link->body_until = aco_after(link->body_time);
    else if (aco_now() >= link->body_until) {
        errno = link->body_error = ETIMEDOUT;
        return -1;
    }
    if (aco_scope_begin_at(&scope, link->body_until, location) != 0)
        return -1;
    got = more_body(link, direct, n, location);
    (void)aco_scope_end(&scope);
    if (got < 0 && scope.error == ETIMEDOUT)
        link->body_error = ETIMEDOUT;
    return got;
}

/* Reads more of the body behind the head. If `direct`, into the caller's memory: of a body of known length only.
 * The number of bytes, 0 at the stream's end; -1 and errno: the next call can succeed if aco__http_is_passing(). */
ACO__SWITCHES static ssize_t await_body(aco__http_link_t *link, char *direct, size_t n, const char *location)
{
    ssize_t got;
    if (link->must_not_wait) {
        errno = EAGAIN;
        return -1;
    }
    got = more_body_in_time(link, direct, n, location);
    if (got < 0 && !link->body_error && !aco__http_is_passing())
        link->body_error = errno;
    return got;
}

/* The end of the stream, which may be the end of a response. */
static ssize_t end_of_stream(aco__http_link_t *link, const char *call)
{
    link->is_persistent = 0;
    if (link->parser->type == HTTP_RESPONSE && !link->has_all)
        (void)feed(link, 0); /* the parser goes on behind the head, even if no body has come */
    if (link->parser->type == HTTP_RESPONSE && llhttp_finish(link->parser) == HPE_OK && link->has_all)
        return 0;
    if (link->has_all)
        return 0;
    return body_fails(link, ECONNRESET, call, "the connection ended before the body");
}

/* The same as feed(), for a body. What is sent around it has a limit, too: it would cost time for nothing. */
static int feed_body(aco__http_link_t *link, size_t n)
{
    size_t before = link->at, sunk = link->head->sunk;
    if (feed(link, n) != 0)
        return -1;
    link->head->framing += link->at - before - (link->head->sunk - sunk);
    if (link->head->framing <= HTTP_FRAMING ||
        (link->head->framing - HTTP_FRAMING) / HTTP_FRAMING_RATIO <= link->head->body)
        return 0;
    link->body_error = link->parser->type == HTTP_REQUEST ? EFBIG : EBADMSG;
    return -1;
}

ACO__SWITCHES
static ssize_t read_body(aco__http_link_t *link, void *p, size_t n, const char *call, const char *location)
{
    while (!link->has_all && link->head->sunk == 0 && n > 0) {
        size_t have = link->in.end - link->at;
        /* A body with a length has nothing but its bytes. */
        int is_direct = !have && link->parser->flags & F_CONTENT_LENGTH && n >= link->in.size - link->keep;
        ssize_t came = (ssize_t)have;
        if (link->body_error) {
            errno = link->body_error;
            return -1;
        }
        if (is_direct && n > link->parser->content_length)
            n = (size_t)link->parser->content_length;
        if (!have)
            came = await_body(link, is_direct ? p : NULL, n, location);
        if (came < 0)
            return -1;
        if (came == 0)
            return end_of_stream(link, call);
        if (is_direct) {
            llhttp_errno_t error = llhttp_execute(link->parser, p, (size_t)came);
            if (error == HPE_PAUSED)
                llhttp_resume(link->parser);
            else if (error != HPE_OK)
                return body_fails(link, link->body_error ? link->body_error : EBADMSG, call, "the body is too long");
        } else if (feed_body(link, (size_t)came < n ? (size_t)came : n) != 0) {
            return link->body_error ? body_fails(link, link->body_error, call, "the body is too long")
                                    : body_fails(link, EBADMSG, call, llhttp_get_error_reason(link->parser));
        }
    }
    return (ssize_t)link->head->sunk;
}

ssize_t aco__http_read_body(aco__http_link_t *link, void *p, size_t n, const char *call, const char *location)
{
    ssize_t got;
    link->head->sink = p;
    link->head->sunk = 0;
    got = read_body(link, p, n, call, location);
    ACO__ASSERT(link->head->sunk <= n);
    link->head->sink = NULL; /* the caller's memory may go */
    link->read_error = got < 0 ? errno : 0;
    return got;
}

/* Bytes move to the front of where they come, which the caller has not seen yet. */
ssize_t aco__http_skip_body(aco__http_link_t *link, const char *call, const char *location)
{
    return aco__http_read_body(link, link->in.buffer + link->keep, link->in.size - link->keep, call, location);
}

void aco__http_message_end(aco__http_link_t *link)
{
    aco_io_reader_t *in = &link->in;
    ACO__ASSERT(link->has_all && is_input_in_order(link)); /* or a rest of it becomes the next message */
    in->begin = link->at;
    if (in->begin == in->end)
        in->begin = in->end = 0;
}

/* ---- Output ---- */

ACO__SWITCHES
static ssize_t put_out(aco__http_link_t *link, struct iovec *parts, int n, int flags, const char *location)
{
    struct msghdr message;
    if (link->transport)
        return link->transport->write(link->stream, parts[0].iov_base, parts[0].iov_len, location);
    if (n == 1)
        return aco_io_send_at(link->fd, parts[0].iov_base, parts[0].iov_len, flags, location);
    memset(&message, 0, sizeof message);
    message.msg_iov = parts;
    message.msg_iovlen = (size_t)n;
    return aco_io_sendmsg_at(link->fd, &message, flags, location);
}

/* With a limit for the case that the peer takes nothing. */
ACO__SWITCHES
static ssize_t put_out_waiting(aco__http_link_t *link, struct iovec *parts, int n, int flags, const char *location)
{
    aco_scope_t scope;
    ssize_t sent;
    if (aco_scope_begin_at(&scope, aco_after(link->write_time), location) != 0)
        return -1;
    sent = put_out(link, parts, n, flags, location);
    (void)aco_scope_end(&scope);
    return sent;
}

/* What was not sent of the output. -1, as aco__http_send(). */
static int keep_output(aco__http_link_t *link, const struct iovec *rest)
{
    ACO__ASSERT(!link->out_n && rest->iov_len <= HTTP_OUT); /* nobody else has written meanwhile */
    memmove(link->out, rest->iov_base, rest->iov_len);
    link->out_n = rest->iov_len;
    return -1;
}

int aco__http_send(aco__http_link_t *link, const void *p, size_t n, int is_more, const char *location)
{
    struct iovec parts[2], *first = parts;
    int left = 0, may_wait = link->transport != NULL;
#ifdef MSG_MORE
    int flags = is_more ? MSG_MORE : 0;
#else
    int flags = 0;
    (void)is_more;
#endif
    ACO__ASSERT(link->out_n <= HTTP_OUT);
    if (!may_wait)
        aco__io_spend("an HTTP connection", location); /* first: the keeper may send of the output meanwhile */
    if (link->out_n) {
        parts[left].iov_base = link->out;
        parts[left++].iov_len = link->out_n;
    }
    if (n) {
        parts[left].iov_base = (void *)(uintptr_t)p;
        parts[left++].iov_len = n;
    }
    link->out_n = 0;
    if (link->is_broken) {
        errno = EPIPE;
        return -1;
    }
    while (left > 0 && !link->is_broken) {
        ssize_t sent = may_wait ? put_out_waiting(link, first, left, flags, location)
                                : put_out(link, first, left, flags | MSG_DONTWAIT, location);
        if (sent < 0 && errno == EAGAIN && !may_wait) {
            may_wait = 1;
            continue;
        }
        if (sent < 0 && !n && !link->transport && aco__http_is_passing())
            return keep_output(link, first);
        if (sent < 0) {
            link->is_broken = 1;
            link->error = errno;
        }
        while (sent > 0 && left > 0) {
            size_t part = (size_t)sent < first->iov_len ? (size_t)sent : first->iov_len;
            first->iov_base = (char *)first->iov_base + part;
            first->iov_len -= part;
            sent -= (ssize_t)part;
            if (first->iov_len == 0) {
                first++;
                left--;
            }
        }
    }
    return left > 0 ? -1 : 0;
}

void aco__http_try_send(aco__http_link_t *link)
{
    ssize_t sent;
    if (link->transport || link->is_broken || !link->out_n)
        return;
    ACO__NO_SWITCH_BEGIN(); /* the connection's task would add to the output */
    sent = aco_io_send(link->fd, link->out, link->out_n, MSG_DONTWAIT);
    if (sent > 0) {
        ACO__ASSERT((size_t)sent <= link->out_n);
        link->out_n -= (size_t)sent;
        memmove(link->out, link->out + sent, link->out_n);
    }
    ACO__NO_SWITCH_END();
}

char *aco__http_room(aco__http_link_t *link, size_t n, const char *location)
{
    ACO__ASSERT(n <= HTTP_OUT && link->out_n <= HTTP_OUT);
    if (n > HTTP_OUT - link->out_n && aco__http_send(link, NULL, 0, 0, location) != 0)
        return NULL;
    if (link->is_broken) {
        errno = EPIPE;
        return NULL;
    }
    return link->out + link->out_n;
}

/* ---- The outgoing body ---- */

/* "5A\r\n" */
static char *put_chunk_size(char *at, size_t n)
{
    char digits[16];
    size_t count_of = 0;
    do
        digits[count_of++] = "0123456789ABCDEF"[n % 16];
    while ((n /= 16) != 0);
    while (count_of > 0)
        *at++ = digits[--count_of];
    return aco__http_put(at, "\r\n", 2);
}

enum { CHUNK_AROUND = 20 }; /* the size, and two line ends */

int aco__http_write_body(aco__http_link_t *link, const void *p, size_t n, const char *call, const char *location)
{
    int is_small = n <= HTTP_OUT / 2;
    char *begin, *at;
    ACO__ASSERT(!link->is_chunked || link->left < 0);
    if (link->left >= 0 && n > (uint64_t)link->left)
        return aco__service_fail(EMSGSIZE, call, "more bytes than were announced");
    if (link->is_bodiless || n == 0) {
        if (link->left >= 0)
            link->left -= (int64_t)n;
        return 0;
    }
    begin = aco__http_room(link, (is_small ? n : 0) + CHUNK_AROUND, location);
    if (!begin)
        return -1;
    at = link->is_chunked ? put_chunk_size(begin, n) : begin;
    if (is_small)
        at = aco__http_put(at, p, n);
    else {
        link->out_n += (size_t)(at - begin);
        if (aco__http_send(link, p, n, 0, location) != 0)
            return -1;
        begin = at = link->out;
    }
    if (link->is_chunked)
        at = aco__http_put(at, "\r\n", 2);
    ACO__ASSERT((size_t)(at - begin) <= (is_small ? n : 0) + CHUNK_AROUND);
    link->out_n += (size_t)(at - begin);
    if (link->left >= 0)
        link->left -= (int64_t)n;
    return 0;
}

int aco__http_end_body(aco__http_link_t *link, const char *location)
{
    char *at;
    if (link->left > 0 && !link->is_bodiless) {
        errno = EMSGSIZE;
        return -1;
    }
    if (link->is_chunked && !link->is_bodiless) {
        at = aco__http_room(link, 5, location);
        if (!at)
            return -1;
        aco__http_put(at, "0\r\n\r\n", 5);
        link->out_n += 5;
    }
    link->left = 0;
    return 0;
}

/* ---- Files ---- */

/* 0; 1: the file has no sendfile(); -1 and errno. */
ACO__SWITCHES static int send_file(aco__http_link_t *link, int fd, int64_t offset, int64_t n, const char *location)
{
    enum { AT_ONCE = 1 << 20 }; /* so that others run in between */
    int64_t at = offset, end = offset + n;
    while (at < end) {
        aco_scope_t scope;
        ssize_t sent;
        if (aco_scope_begin_at(&scope, aco_after(link->write_time), location) != 0)
            return -1;
        sent = aco_io_sendfile_at(link->fd, fd, &at, end - at < AT_ONCE ? (size_t)(end - at) : AT_ONCE, location);
        (void)aco_scope_end(&scope);
        if (sent < 0 && (errno == EINVAL || errno == ENOSYS) && at == offset)
            return 1;
        if (sent < 0 && !aco__http_is_passing()) {
            link->is_broken = 1;
            link->error = errno;
        }
        if (sent == 0)
            errno = EIO;
        if (sent <= 0)
            return -1;
        ACO__ASSERT(sent <= link->left && at - offset <= n);
        link->left -= sent;
        aco__service_yield();
    }
    return 0;
}

int aco__http_write_file(aco__http_link_t *link, int fd, int64_t offset, int64_t n, const char *call,
                         const char *location)
{
    enum { SMALL = 16384 }; /* a copy costs less than the calls around sendfile() */
    size_t sz = n < SMALL ? (size_t)n : SMALL;
    char *buffer;
    int result = 0;
    if (n < 0 || offset < 0 || (link->left >= 0 && n > link->left))
        return aco__service_fail(n < 0 || offset < 0 ? EINVAL : EMSGSIZE, call, "the number of bytes");
    if (link->is_bodiless || n == 0) {
        if (link->left >= 0)
            link->left -= n;
        return 0;
    }
    if (n > SMALL && !link->transport && link->left >= 0) {
        if (aco__http_send(link, NULL, 0, 1, location) != 0)
            return -1;
        result = send_file(link, fd, offset, n, location);
        if (result <= 0)
            return result;
    }
    buffer = aco__service_allocate(&sz, call);
    if (!buffer)
        return -1;
    for (result = 0; n > 0 && result == 0;) {
        ssize_t got = aco_file_pread_at(fd, buffer, (uint64_t)n < sz ? (size_t)n : sz, offset, location);
        if (got == 0)
            errno = EIO;
        result = got <= 0 ? -1 : aco__http_write_body(link, buffer, (size_t)got, call, location);
        offset += got;
        n -= got;
    }
    aco__service_free(buffer, sz);
    return result;
}
