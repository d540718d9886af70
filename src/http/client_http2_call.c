/* A client's request of HTTP/2 and its response: sending the body, reading, the end. */
#include "http/client_http2.h"

#ifdef ACO_CONFIG_HTTP2

#include "http/text.h"

enum { C2_PART = 8192 }; /* bytes of read_body */

/* ---- Data that goes out ---- */

/* nghttp2 asks for data. */
static ssize_t c2_give_data(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t n, uint32_t *flags,
                            nghttp2_data_source *source, void *connection)
{
    aco__http2_call_t *s = source->ptr;
    size_t left = aco__http2_data_left(&s->data), given = left < n ? left : n;
    (void)buffer;
    (void)connection;
    if (!given && !s->is_whole) {
        s->is_deferred = 1;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (given == left && s->is_whole) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (s->own_trailers_n) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            if (nghttp2_submit_trailer(session, id, s->own_trailers, s->own_trailers_n) != 0)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
    }
    return (ssize_t)given;
}

/* There is more of the body, or its end. */
static void c2_has_data(aco__http2_call_t *s)
{
    if (s->is_deferred && s->is_open && !s->h->error) {
        s->is_deferred = 0;
        (void)nghttp2_session_resume_data(s->h->wire.session, s->id);
    }
    aco__http2_peer_writes(s->h);
}

/* Waits for a change. 0, or -1 and errno. */
ACO__SWITCHES static int c2_wait(aco__http2_call_t *s, const char *location)
{
    aco_event_reset(&s->changed);
    return aco_event_wait_at(&s->changed, location);
}

static int c2_error(const aco__http2_call_t *s, const char *call)
{
    return aco__service_fail(s->error, call, s->reason);
}

/* Whether the server takes the body: 0; 1: the response makes the rest needless, or has ended; -1 and errno. */
static int c2_check_sending(const aco__http2_call_t *s, int until_head)
{
    if (s->error)
        return c2_error(s, CLIENT_CALL);
    return s->has_all || !s->is_open || (until_head && s->has_head);
}

/* Waits until all was taken. As c2_check_sending(). */
ACO__SWITCHES static int c2_await_taken(aco__http2_call_t *s, int until_head, const char *location)
{
    int result = 0;
    c2_has_data(s);
    while (aco__http2_data_left(&s->data) && (result = c2_check_sending(s, until_head)) == 0)
        if (c2_wait(s, location) != 0)
            return -1;
    return result;
}

/* Resets the request. */
static void c2_reset(aco__http2_call_t *s, uint32_t code)
{
    if (!s->is_open || s->h->error || s->was_reset)
        return;
    s->was_reset = 1;
    aco__http2_count_reset(&s->h->wire, s->id);
    if (nghttp2_submit_rst_stream(s->h->wire.session, NGHTTP2_FLAG_NONE, s->id, code) != 0)
        s->h->wire.cut_off(&s->h->wire, NGHTTP2_INTERNAL_ERROR, ENOMEM); /* or the server goes on with it */
}

/* Sends the caller's memory, which stays where it is meanwhile. If it is cut, so is the request. As
 * c2_check_sending(). */
ACO__SWITCHES
static int c2_write_direct(aco__http2_call_t *s, const char *p, size_t n, const char *location)
{
    int result, error;
    s->data.direct = p;
    s->data.direct_n = n;
    result = c2_await_taken(s, 0, location);
    if (result == 0)
        return 0;
    error = errno;
    s->data.direct_n = 0;
    c2_reset(s, s->has_all ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL);
    aco__http2_call_fails(s, ECONNRESET, "a write was cut");
    errno = error;
    return result;
}

/* Sends the next bytes, the caller's memory as it is or collected. As c2_check_sending(). */
ACO__SWITCHES
static int c2_write_part(aco__http2_call_t *s, const char *p, size_t n, int until_head, const char *location)
{
    aco__http2_buffer_t *out = &s->data.out;
    int result;
    if (n > HTTP2_STREAM_OUT / 2 && !until_head && !aco__may_move(p))
        return c2_write_direct(s, p, n, location);
    for (size_t part; n; p += part, n -= part) {
        part = n < HTTP2_STREAM_OUT ? n : HTTP2_STREAM_OUT;
        if (out->end - out->begin + part > HTTP2_STREAM_OUT && (result = c2_await_taken(s, until_head, location)) != 0)
            return result;
        if (aco__http2_make_room(out, HTTP2_LEAST_OUT, part, CLIENT_CALL) != 0)
            return -1;
        aco__http_put(out->bytes + out->end, p, part);
        out->end += part;
    }
    c2_has_data(s);
    return 0;
}

/* As c2_check_sending(). */
ACO__SWITCHES
static int c2_send(aco__http2_call_t *s, const char *p, size_t n, int until_head, const char *location)
{
    int result = c2_check_sending(s, until_head);
    if (result != 0)
        return result;
    if (s->left >= 0 && n > (uint64_t)s->left)
        return aco__service_fail(EMSGSIZE, CLIENT_CALL, "the body is longer than its length");
    result = n ? c2_write_part(s, p, n, until_head, location) : 0;
    if (result == 0 && s->left >= 0)
        s->left -= (int64_t)n;
    return result;
}

/* The body's end. 0, or -1 and errno. */
static int c2_end_body(aco__http2_call_t *s, const aco_http_header_t *trailers, size_t n)
{
    if (s->left > 0)
        return aco__service_fail(EMSGSIZE, CLIENT_CALL, "the body is shorter than its length");
    if (aco__http2_keep_trailers(s, trailers, n) != 0)
        return -1;
    s->is_whole = 1;
    c2_has_data(s);
    return 0;
}

/* ---- A call's body ---- */

/* Waits for "100 Continue" for some time. As c2_check_sending(). */
ACO__SWITCHES static int c2_await_continue(aco__http2_call_t *s, int64_t time, const char *location)
{
    const int64_t until = aco_after(time);
    int result;
    aco__http2_peer_writes(s->h);
    while ((result = c2_check_sending(s, 1)) == 0 && !s->may_send) {
        aco_event_reset(&s->changed);
        if (aco_event_wait_until_at(&s->changed, until, location) != 0)
            return errno == ETIMEDOUT && aco_check_cancelled() == 0 ? 0 : -1;
    }
    return result;
}

/* Sends what read_body gives. As c2_check_sending(). */
ACO__SWITCHES
static int c2_send_read(aco__http2_call_t *s, const aco_http_call_t *call, int *has_read, const char *location)
{
    size_t sz = C2_PART;
    char *part = aco__service_allocate(&sz, CLIENT_CALL); /* too large for a small stack */
    ssize_t n = 0;
    int result;
    if (!part)
        return -1;
    while ((result = c2_check_sending(s, 1)) == 0) {
        *has_read = 1;
        n = call->read_body(call->read_arg, part, C2_PART);
        if (n <= 0 || (result = c2_send(s, part, (size_t)n, 1, location)) != 0)
            break;
    }
    aco__service_free(part, sz);
    return n < 0 ? -1 : result;
}

/* As c2_check_sending(). */
ACO__SWITCHES
static int c2_send_body(aco__http2_call_t *s, const aco_http_call_t *call, int *has_read, const char *location)
{
    int result = call->continue_time ? c2_await_continue(s, call->continue_time, location) : 0;
    if (result == 0)
        result = call->read_body ? c2_send_read(s, call, has_read, location)
                                 : c2_send(s, call->body, (size_t)call->length, 1, location);
    return result == 0 ? c2_end_body(s, call->trailers, call->trailer_count) : result;
}

/* ---- The call ---- */

/* NULL and errno. */
static aco__http2_call_t *c2_new_call(aco__http2_peer_t *h)
{
    enum { FIELDS = 12 }; /* of which there is room at first */
    size_t headers = FIELDS * sizeof(aco_http_header_t);
    size_t sz = sizeof(aco__http2_call_t) + headers + HTTP2_TEXT;
    aco__http2_call_t *s = aco__service_allocate(&sz, CLIENT_CALL);
    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    s->sz = sz;
    s->h = h;
    s->answer.client = h->client;
    s->answer.http2 = s;
    s->headers = (aco_http_header_t *)(void *)(s + 1);
    s->most = FIELDS;
    s->text = (char *)s->headers + headers;
    s->text_end = (char *)s + sz;
    s->reset_code = -1;
    s->has_caller = 1;
    s->next = h->first;
    s->place = &h->first;
    if (s->next)
        s->next->place = &s->next;
    h->first = s;
    return s;
}

/* Gives a stream back that was granted and not used, or the place in the queue. */
static void c2_leave_queue(aco__http2_call_t *s)
{
    aco__http2_peer_t *h = s->h;
    aco__http2_call_t **at = &h->queue;
    if (s->is_granted) {
        s->is_granted = 0;
        h->open--;
        if (!h->error)
            aco__http2_grant(h);
    }
    if (!s->is_queued)
        return;
    while (*at != s)
        at = &(*at)->next_waiting;
    *at = s->next_waiting;
    if (!*at)
        h->queue_end = at;
    s->is_queued = 0;
}

/* Waits for its turn to have a stream. 0, or -1 and errno. */
ACO__SWITCHES static int c2_await_stream(aco__http2_call_t *s, const char *location)
{
    aco__http2_peer_t *h = s->h;
    s->is_queued = 1;
    s->next_waiting = NULL;
    *h->queue_end = s;
    h->queue_end = &s->next_waiting;
    if (aco__http2_read_on(h) != 0)
        return -1;
    aco__http2_grant(h);
    aco__http2_peer_writes(h);
    while (!s->is_granted) {
        if (s->error)
            return c2_error(s, CLIENT_CALL);
        if (c2_wait(s, location) != 0)
            return -1;
    }
    return s->error ? c2_error(s, CLIENT_CALL) : 0;
}

void aco__http2_end_call(aco__http2_call_t *s)
{
    aco__http2_peer_t *h = s->h;
    size_t unread = s->body.end - s->body.begin;
    int error = errno;
    c2_leave_queue(s);
    if (!h->error && unread)
        (void)nghttp2_session_consume_connection(h->wire.session, unread);
    s->body.begin = s->body.end = 0;
    c2_reset(s, s->has_all ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL);
    aco__http2_peer_writes(h);
    s->has_caller = 0;
    aco__http2_release_call(s);
    aco__http2_rest(h);
    errno = error;
}

static void c2_fill_in(aco__http2_call_t *s, int is_head)
{
    aco_http_response_t *r = &s->answer.is;
    const char *length;
    r->minor = 0;
    r->major = 2;
    r->headers = s->headers;
    r->header_count = s->count;
    r->length = -1;
    if ((s->has_all && s->body.begin == s->body.end) || is_head) {
        r->length = 0;
    } else if (aco__http_find(s->headers, s->count, "content-length", &length)) {
        r->length = 0; /* nghttp2 has checked that it is a number, and counts the bytes */
        for (; *length >= '0' && *length <= '9'; length++)
            if (r->length <= (INT64_MAX - 9) / 10)
                r->length = 10 * r->length + *length - '0';
    }
}

/* Waits for the response's head. 0, or -1 and errno. */
ACO__SWITCHES static int c2_await_head(aco__http2_call_t *s, const char *location)
{
    while (!s->has_head) {
        if (s->error)
            return c2_error(s, CLIENT_CALL);
        if (c2_wait(s, location) != 0)
            return -1;
    }
    return 0;
}

int aco__http2_await_response(aco__http2_call_t *s, int is_head, const char *location)
{
    const int64_t time = s->answer.client->options.head_time;
    aco_scope_t scope;
    int result;
    if (aco__http_begin_time(&scope, time, location) != 0)
        return -1;
    result = c2_await_head(s, location);
    aco__http_end_time(&scope, time, result < 0, "head_time is over");
    if (result == 0)
        c2_fill_in(s, is_head);
    return result;
}

/* Sends the request and waits for the head of the response, unless the caller writes the body. 0, or -1 and errno. */
ACO__SWITCHES
static int c2_exchange(aco__http2_call_t *s, const aco__http_step_t *step, int *has_read, const char *location)
{
    int result;
    if (c2_await_stream(s, location) != 0 || aco__http2_submit_call(s, step, c2_give_data) != 0)
        return -1;
    s->h->requests++;
    result = step->has_body ? c2_send_body(s, step->call, has_read, location) : 0;
    if (result < 0)
        return -1;
    aco__http2_peer_writes(s->h);
    return step->streams ? 0 : aco__http2_await_response(s, strcmp(step->method, "HEAD") == 0, location);
}

/* Whether a request that has failed with errno may be sent once more. As aco__http2_ask(). */
static int c2_again(const aco__http2_call_t *s, const aco__http_step_t *step, int was_used, int has_read)
{
    const aco_http_client_options_t *options = &s->answer.client->options;
    int is_lost = s->h->error == ECONNRESET || s->h->error == EPIPE; /* the connection was kept for too long */
    if (!s->error || errno != s->error || has_read)
        return -1;
    if (s->reset_code == NGHTTP2_REFUSED_STREAM)
        return 1;
    if (s->reset_code == NGHTTP2_HTTP_1_1_REQUIRED && !step->streams && (!step->url->is_tls || options->open_http1_arg))
        return CLIENT_NEEDS_HTTP1;
    return was_used && is_lost && !s->has_any && aco__http_may_repeat(step) ? 1 : -1;
}

int aco__http2_ask(aco__http2_peer_t *h, const aco__http_step_t *step, aco__http_answer_t **answer,
                   const char *location)
{
    aco__http2_call_t *s = c2_new_call(h);
    int was_used = h->requests > 0, has_read = 0, again;
    *answer = NULL;
    if (!s) {
        aco__http2_rest(h);
        errno = ENOMEM;
        return -1;
    }
    if (c2_exchange(s, step, &has_read, location) == 0) {
        *answer = &s->answer;
        return 0;
    }
    again = c2_again(s, step, was_used, has_read);
    aco__http2_end_call(s); /* keeps errno */
    return again;
}

/* ---- What callers write and read ---- */

int aco__http2_write_call(aco__http2_call_t *s, const void *p, size_t n, const char *call, const char *location)
{
    int result;
    if (s->is_whole)
        return aco__service_fail(EINVAL, call, "the body has ended");
    result = c2_send(s, p, n, 0, location);
    return result > 0 ? aco__service_fail(EPIPE, call, "the response has ended") : result;
}

int aco__http2_end_call_body(aco__http2_call_t *s, const aco_http_header_t *trailers, size_t n, const char *call)
{
    if (s->is_whole)
        return aco__service_fail(EINVAL, call, "the body has ended");
    if (s->error)
        return c2_error(s, call);
    return c2_end_body(s, trailers, n);
}

void aco__http2_flush_call(aco__http2_call_t *s, int until_end, const char *location)
{
    const int64_t until = aco_after(ACO_SECOND);
    aco__http2_peer_writes(s->h);
    while ((!s->has_sent_all || until_end) && s->is_open && !s->error) {
        aco_event_reset(&s->changed);
        if (aco_event_wait_until_at(&s->changed, until, location) != 0)
            break;
    }
}

ssize_t aco__http2_read_call(aco__http2_call_t *s, void *p, size_t n, const char *call, const char *location)
{
    aco__http2_peer_t *h = s->h;
    while (n && s->body.begin == s->body.end && !s->has_all) {
        if (s->error)
            return c2_error(s, call);
        if (c2_wait(s, location) != 0)
            return -1;
    }
    n = aco__http2_read_buffer(&h->wire, &s->body, s->is_open ? s->id : 0, p, n);
    if (n)
        aco__http2_peer_writes(h);
    return (ssize_t)n;
}

const aco_http_header_t *aco__http2_call_trailers(const aco__http2_call_t *s, size_t *count)
{
    *count = s->trailers;
    return s->headers + s->count;
}

int64_t aco__http2_reset_code(const aco__http2_call_t *s)
{
    return s->reset_code;
}

int aco__http2_is_heard(const aco__http2_call_t *s)
{
    return s->h->has_heard ? 1 : s->h->error ? -1 : 0;
}

#endif
