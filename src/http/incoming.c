/* Messages of HTTP/1, which llhttp parses where the link holds them. */
#include "http/incoming.h"
#include "http/text.h"
#include "http/trailers.h"

#include <string.h>

/* ---- What llhttp tells ---- */

static aco__http_incoming_t *incoming_of(const llhttp_t *parser)
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
    aco__http_head_t *head = incoming_of(parser)->head;
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

/* A part of a trailer. */
static int keep_trailer(aco__http_incoming_t *in, const char *p, size_t n, int where)
{
    if (!in->trailers || aco__http_add_trailer(in->trailers, p, n, where) == 0)
        return 0;
    in->body_error = errno == ENOMEM ? ENOMEM : in->parser->type == HTTP_REQUEST ? EFBIG : EBADMSG;
    return HPE_USER;
}

static int on_header_field(llhttp_t *parser, const char *p, size_t n)
{
    aco__http_incoming_t *in = incoming_of(parser);
    aco__http_head_t *head = in->head;
    if (in->has_head)
        return keep_trailer(in, p, n, HTTP_IN_NAME);
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
    aco__http_incoming_t *in = incoming_of(parser);
    aco__http_head_t *head = in->head;
    if (in->has_head)
        return keep_trailer(in, p, n, HTTP_IN_VALUE);
    if (n == 0)
        return 0;
    if (!head->headers[head->count - 1].value)
        head->headers[head->count - 1].value = p;
    head->value_end = in_buffer(p) + n;
    return 0;
}

/* The field is complete: its texts get their ends, in bytes of its own line, which llhttp has read. */
static int on_header_value_complete(llhttp_t *parser)
{
    aco__http_incoming_t *in = incoming_of(parser);
    aco__http_head_t *head = in->head;
    aco_http_header_t *header;
    char *end;
    if (in->has_head)
        return keep_trailer(in, "", 0, HTTP_BEHIND_VALUE);
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
static int begins_well(const aco__http_incoming_t *in)
{
    const char *at = in->link->in.buffer + in->link->in.begin;
    if (in->parser->type == HTTP_RESPONSE)
        return memcmp(at, "HTTP/", 5) == 0;
    while (at[0] == '\r' && at[1] == '\n')
        at += 2;
    return *at != '\r' && *at != '\n';
}

/* The reason of a response, or a part of it, of which llhttp checks nothing. */
static int on_status(llhttp_t *parser, const char *p, size_t n)
{
    return aco__http_is_value(p, n) ? 0 : refuse(incoming_of(parser)->head, 400);
}

/* A message without a body is parsed to its end at once. Before a body the parser stops. */
static int on_headers_complete(llhttp_t *parser)
{
    aco__http_incoming_t *in = incoming_of(parser);
    aco__http_head_t *head = in->head;
    in->has_head = 1;
    if (parser->type == HTTP_RESPONSE)
        llhttp_set_lenient_optional_cr_before_lf(parser, 0); /* chunks have no bare line feeds */
    if (!begins_well(in) || (parser->type == HTTP_RESPONSE && parser->status_code < 100))
        return refuse(head, 400);
    if (parser->type == HTTP_RESPONSE && head->encodings && !(parser->flags & F_CHUNKED))
        return refuse(head, 400); /* llhttp would read up to the connection's end */
    if (in->gets_no_body || (parser->type == HTTP_RESPONSE && !has_body(parser)))
        parser->flags |= F_SKIPBODY; /* llhttp would wait for one with a length, also of 304 */
    in->is_persistent = !(parser->flags & F_CONNECTION_CLOSE) && llhttp_should_keep_alive(parser);
    in->may_switch = parser->type == HTTP_RESPONSE ? parser->status_code == 101 : parser->upgrade;
    parser->upgrade = 0; /* the parser itself goes on */
    if (parser->type == HTTP_RESPONSE)
        return has_body(parser) ? HPE_PAUSED : 0;
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
    aco__http_incoming_t *in = incoming_of(parser);
    if (!in->head->sink) /* nobody reads a body */
        return HPE_USER;
    in->head->body += n;
    if (in->head->body > in->most_body) {
        in->body_error = EFBIG;
        return HPE_USER;
    }
    if (in->head->sink + in->head->sunk != p)
        memmove(in->head->sink + in->head->sunk, p, n);
    in->head->sunk += n;
    return 0;
}

static int on_message_complete(llhttp_t *parser)
{
    aco__http_incoming_t *in = incoming_of(parser);
    in->has_all = 1;
    /* A trailer cannot end the connection, and behind an interim response the final one comes: llhttp must parse what
     * follows. Nothing else reads these flags now. */
    if (in->is_persistent || (parser->type == HTTP_RESPONSE && parser->status_code < 200))
        parser->flags = (uint16_t)((parser->flags & ~F_CONNECTION_CLOSE) | F_CONNECTION_KEEP_ALIVE | F_SKIPBODY);
    return HPE_PAUSED;
}

static const llhttp_settings_t parser_settings = {
    .on_url = on_url,
    .on_status = on_status,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* ---- Messages ---- */

void aco__http_incoming_open(aco__http_incoming_t *in, aco__http_link_t *link)
{
    memset(in, 0, sizeof *in);
    in->link = link;
    in->body_time = ACO_FOREVER;
}

void aco__http_parse_by(aco__http_incoming_t *in, llhttp_t *parser, llhttp_type_t type)
{
    in->parser = parser;
    llhttp_init(parser, type, &parser_settings);
    in->parser->data = in;
}

void aco__http_message_begin(aco__http_incoming_t *in, aco__http_head_t *head)
{
    aco_http_header_t *headers = head->headers;
    size_t most = head->most;
    memset(head, 0, sizeof *head);
    head->headers = headers;
    head->most = most;
    in->head = head;
    in->link->at = in->link->in.begin;
    ACO__ASSERT(aco__http_is_in_order(in->link));
    in->has_head = in->has_all = in->may_switch = 0;
    in->body_error = in->read_error = 0;
    in->body_until = 0;
    if (in->parser->type == HTTP_RESPONSE)
        llhttp_set_lenient_optional_cr_before_lf(in->parser, 1);
}

/* Feeds the parser `n` bytes that stand at link->at. 0, or -1: they are wrong. */
static int feed(aco__http_incoming_t *in, size_t n)
{
    aco__http_link_t *link = in->link;
    llhttp_errno_t error;
    ACO__ASSERT(aco__http_is_in_order(link) && n <= link->in.end - link->at);
    error = llhttp_execute(in->parser, link->in.buffer + link->at, n);
    if (aco_likely(error == HPE_PAUSED)) {
        link->at = (size_t)(llhttp_get_error_pos(in->parser) - link->in.buffer);
        ACO__ASSERT(aco__http_is_in_order(link));
        llhttp_resume(in->parser);
        return 0;
    }
    if (error != HPE_OK)
        return -1;
    link->at += n;
    return 0;
}

/* The status for a head that llhttp does not accept. */
static int status_of_error(const aco__http_incoming_t *in)
{
    const aco__http_link_t *link = in->link;
    llhttp_errno_t error = llhttp_get_errno(in->parser);
    const char *word = link->in.buffer + link->in.begin, *reason = llhttp_get_error_reason(in->parser);
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
static void move_head(aco__http_incoming_t *in)
{
    aco__http_link_t *link = in->link;
    aco__http_head_t *head = in->head;
    size_t by = link->in.begin;
    ACO__ASSERT(aco__http_is_in_order(link));
    memmove(link->in.buffer, link->in.buffer + by, link->in.end - by);
    for (size_t i = 0; i < head->count; i++) {
        shift_text(&head->headers[i].name, by);
        shift_text(&head->headers[i].value, by);
    }
    shift(&head->target, by);
    shift(&head->target_end, by);
    shift(&head->name_end, by);
    shift(&head->value_end, by);
    shift_text(&head->host, by);
    link->in.begin = 0;
    link->in.end -= by;
    link->at -= by;
    link->keep -= by;
}

int aco__http_parse_head(aco__http_incoming_t *in)
{
    aco__http_link_t *link = in->link;
    size_t n = link->in.end - link->at;
    if (n && feed(in, n) != 0) {
        if (!in->head->refusal)
            in->head->refusal = status_of_error(in);
        return -1;
    }
    link->keep = link->at;
    if (in->has_head && (!in->has_all || in->may_switch) && link->in.size - link->keep < HTTP_BEHIND_HEAD)
        move_head(in); /* for its body, or the other protocol */
    return in->has_head;
}

ssize_t aco__http_more_head(aco__http_incoming_t *in, const char *location)
{
    aco__http_link_t *link = in->link;
    ACO__ASSERT(!in->has_head); /* nobody has pointers to it */
    if (link->in.begin > 0)
        move_head(in);
    if (link->out_n && aco__http_send(link, NULL, 0, 0, location) != 0)
        return -1;
    return aco__http_append(link, location);
}

static ssize_t body_fails(aco__http_incoming_t *in, int error, const char *call, const char *reason)
{
    in->body_error = error;
    in->is_persistent = 0;
    return aco__service_fail(error, call, reason);
}

ACO__SWITCHES static ssize_t more_body(aco__http_incoming_t *in, char *direct, size_t n, const char *location)
{
    aco__http_link_t *link = in->link;
    if (link->out_n && aco__http_send(link, NULL, 0, 0, location) != 0)
        return -1;
    if (direct)
        return aco__http_link_read(link, direct, n, location);
    return aco__http_more_input(link, location);
}

/* Until when more of the body may come. */
static int64_t limit_of_body(const aco__http_incoming_t *in)
{
    return aco__http_later_by(in->body_until, in->head->body, in->body_rate);
}

/* Within the body's time, which a peer can use up without a wait: a read that finds bytes succeeds also later. */
ACO__SWITCHES static ssize_t more_body_in_time(aco__http_incoming_t *in, char *direct, size_t n, const char *location)
{
    aco_scope_t scope;
    ssize_t got;
    if (in->body_time == ACO_FOREVER)
        return more_body(in, direct, n, location);
    if (!in->body_until)
        in->body_until = aco_after(in->body_time);
    else if (aco_now() >= limit_of_body(in)) {
        errno = in->body_error = ETIMEDOUT;
        return -1;
    }
    if (aco_scope_begin_at(&scope, limit_of_body(in), location) != 0)
        return -1;
    got = more_body(in, direct, n, location);
    (void)aco_scope_end(&scope);
    if (got < 0 && scope.error == ETIMEDOUT)
        in->body_error = ETIMEDOUT;
    return got;
}

/* Reads more of the body behind the head. If `direct`, into the caller's memory: of a body of known length only.
 * The number of bytes, 0 at the stream's end; -1 and errno: the next call can succeed if aco__http_is_passing(). */
ACO__SWITCHES static ssize_t await_body(aco__http_incoming_t *in, char *direct, size_t n, const char *location)
{
    ssize_t got;
    if (in->must_not_wait) {
        errno = EAGAIN;
        return -1;
    }
    got = more_body_in_time(in, direct, n, location);
    if (got < 0 && !in->body_error && !aco__http_is_passing())
        in->body_error = errno;
    return got;
}

/* The end of the stream, which may be the end of a response. */
static ssize_t end_of_stream(aco__http_incoming_t *in, const char *call)
{
    in->is_persistent = 0;
    if (in->parser->type == HTTP_RESPONSE && !in->has_all)
        (void)feed(in, 0); /* the parser goes on behind the head, even if no body has come */
    if (in->parser->type == HTTP_RESPONSE && llhttp_finish(in->parser) == HPE_OK && in->has_all)
        return 0;
    if (in->has_all)
        return 0;
    return body_fails(in, ECONNRESET, call, "the connection ended before the body");
}

/* The same as feed(), for a body. What is sent around it has a limit, too: it would cost time for nothing. */
static int feed_body(aco__http_incoming_t *in, size_t n)
{
    size_t before = in->link->at, sunk = in->head->sunk;
    if (feed(in, n) != 0)
        return -1;
    in->head->framing += in->link->at - before - (in->head->sunk - sunk);
    if (in->head->framing <= HTTP_FRAMING || (in->head->framing - HTTP_FRAMING) / HTTP_FRAMING_RATIO <= in->head->body)
        return 0;
    in->body_error = in->parser->type == HTTP_REQUEST ? EFBIG : EBADMSG;
    return -1;
}

ACO__SWITCHES
static ssize_t read_body(aco__http_incoming_t *in, void *p, size_t n, const char *call, const char *location)
{
    const aco__http_link_t *link = in->link;
    while (!in->has_all && in->head->sunk == 0 && n > 0) {
        size_t have = link->in.end - link->at;
        /* A body with a length has nothing but its bytes. */
        int is_direct = !have && in->parser->flags & F_CONTENT_LENGTH && n >= link->in.size - link->keep;
        ssize_t came = (ssize_t)have;
        if (in->body_error) {
            errno = in->body_error;
            return -1;
        }
        if (is_direct && n > in->parser->content_length)
            n = (size_t)in->parser->content_length;
        if (!have)
            came = await_body(in, is_direct ? p : NULL, n, location);
        if (came < 0)
            return -1;
        if (came == 0)
            return end_of_stream(in, call);
        if (is_direct) {
            llhttp_errno_t error = llhttp_execute(in->parser, p, (size_t)came);
            if (error == HPE_PAUSED)
                llhttp_resume(in->parser);
            else if (error != HPE_OK)
                return body_fails(in, in->body_error ? in->body_error : EBADMSG, call, "the body is too long");
        } else if (feed_body(in, (size_t)came < n ? (size_t)came : n) != 0) {
            return in->body_error == ENOMEM ? body_fails(in, ENOMEM, call, "memory for trailers")
                   : in->body_error         ? body_fails(in, in->body_error, call, "the body is too long")
                                            : body_fails(in, EBADMSG, call, llhttp_get_error_reason(in->parser));
        }
    }
    return (ssize_t)in->head->sunk;
}

ssize_t aco__http_read_body(aco__http_incoming_t *in, void *p, size_t n, const char *call, const char *location)
{
    ssize_t got;
    in->head->sink = p;
    in->head->sunk = 0;
    got = read_body(in, p, n, call, location);
    ACO__ASSERT(in->head->sunk <= n);
    in->head->sink = NULL; /* the caller's memory may go */
    in->read_error = got < 0 ? errno : 0;
    return got;
}

/* Bytes move to the front of where they come, which the caller has not seen yet. */
ssize_t aco__http_skip_body(aco__http_incoming_t *in, const char *call, const char *location)
{
    const aco__http_link_t *link = in->link;
    return aco__http_read_body(in, link->in.buffer + link->keep, link->in.size - link->keep, call, location);
}

void aco__http_message_end(aco__http_incoming_t *in)
{
    aco__http_link_t *link = in->link;
    ACO__ASSERT(in->has_all && aco__http_is_in_order(link)); /* or a rest of it becomes the next message */
    link->in.begin = link->at;
    if (link->in.begin == link->in.end)
        link->in.begin = link->in.end = 0;
}
