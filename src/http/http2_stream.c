/* A request of HTTP/2 and its reply: what the handler's calls do, and the task that runs it. */
#ifdef ACO_CONFIG_HTTP2

#include "http/balance.h"
#include "http/client_watch.h"
#include "http/failure.h"
#include "http/http2.h"
#include "http/server_connection.h"
#include "http/text.h"
#include "http/websocket_internal.h"

#include "aco/file.h"

#include <string.h>

enum { HTTP2_LEAST_IN = 1024 }; /* bytes of a buffer */

static const char stream_place[] = "an HTTP/2 request";

/* ---- The request's body ---- */

void aco__http2_put_body(aco__http2_stream_t *s, const uint8_t *p, size_t n)
{
    aco_http_server_t *server = s->h->server;
    const aco_http_server_options_t *options = &server->options;
    s->body_n += n;
    if (!s->body_error && options->max_buffered > 0 && server->buffered + n > (size_t)options->max_buffered)
        s->body_error = ENOBUFS;
    if (!s->body_error && !s->is_whole && aco__http2_make_room(&s->body, HTTP2_LEAST_IN, n, "aco_http_serve") != 0)
        s->body_error = ENOBUFS;
    if (s->body_error || s->is_whole) { /* nobody reads it */
        (void)nghttp2_session_consume_connection(s->h->wire.session, n);
    } else {
        aco__http_put(s->body.bytes + s->body.end, p, n);
        s->body.end += n;
        server->buffered += n;
    }
    aco_event_set(&s->changed);
}

/* The bytes that were not read are dropped, so that the connection's other streams can go on. */
static void h2_drop_body(aco__http2_stream_t *s)
{
    size_t n = s->body.end - s->body.begin;
    if (n)
        (void)nghttp2_session_consume_connection(s->h->wire.session, n);
    s->h->server->buffered -= n;
    aco__http2_free_buffer(&s->body);
}

/* The client waits to be told that it may send the body. */
static void h2_send_continue(aco__http2_stream_t *s)
{
    const nghttp2_nv field = aco__http2_field(":status", 7, "100", 3);
    if (s->may_continue && s->is_open && !s->has_response && !s->body_n &&
        nghttp2_submit_headers(s->h->wire.session, NGHTTP2_FLAG_NONE, s->id, NULL, &field, 1, NULL) < 0)
        aco__http2_reset(s, NGHTTP2_INTERNAL_ERROR);
    s->may_continue = 0;
}

/* The limit is looked at when the body is read: until then the handler may set another one. */
static void h2_check_size(aco__http2_stream_t *s)
{
    if (!s->body_error && s->max_body >= 0 && s->body_n > (uint64_t)s->max_body)
        s->body_error = EFBIG;
}

/* Waits for more of the body, or its end, in its time. 0, or -1 and errno. */
ACO__SWITCHES static int h2_await_body(aco__http2_stream_t *s, const char *location)
{
    int64_t time = s->body_time, until;
    if (s->body_error) {
        errno = s->body_error;
        return -1;
    }
    if (!s->body_until)
        s->body_until = time == ACO_FOREVER ? ACO_FOREVER : aco_after(time);
    until = aco__http_later_by(s->body_until, s->body_n, s->h->server->options.body_rate);
    aco_event_reset(&s->changed);
    if (aco_event_wait_until_at(&s->changed, until, location) == 0)
        return 0;
    if (errno == ETIMEDOUT && aco_check_cancelled() == 0)
        errno = s->body_error = ETIMEDOUT;
    return -1;
}

ACO__SWITCHES
static ssize_t h2_read_body(aco__http2_stream_t *s, void *p, size_t n, const char *location)
{
    if (n && !s->has_all)
        h2_send_continue(s);
    h2_check_size(s);
    while (n && !s->body_error && s->body.begin == s->body.end && !s->has_all) {
        aco__http2_want_write(s->h, location);
        if (h2_await_body(s, location) != 0)
            return -1;
        h2_check_size(s);
    }
    if (n && s->body_error) {
        errno = s->body_error;
        return -1;
    }
    n = aco__http2_read_buffer(&s->h->wire, &s->body, s->is_open ? s->id : 0, p, n);
    s->h->server->buffered -= n;
    if (n)
        aco__http2_want_write(s->h, location);
    return (ssize_t)n;
}

ACO__SWITCHES
static ssize_t http2_read(aco__http_exchange_t *x, void *p, size_t n, const char *call, const char *location)
{
    aco__http2_stream_t *s = aco__http2_stream_of(x);
    ssize_t got = h2_read_body(s, p, n, location);
    (void)call;
    s->read_error = got < 0 ? errno : 0;
    return got;
}

static void http2_fail_body(aco__http_exchange_t *x, int error)
{
    aco__http2_stream_t *s = aco__http2_stream_of(x);
    s->body_error = error;
    h2_drop_body(s);
    aco_event_set(&s->changed);
}

static void http2_limit_body(aco__http_exchange_t *x, int64_t max_body, int64_t body_time)
{
    aco__http2_stream_t *s = aco__http2_stream_of(x);
    s->max_body = max_body;
    s->body_time = body_time;
    s->body_until = 0;
}

/* ---- The reply's head ---- */

enum { H2_OWN_FIELDS = 4, H2_FIELDS_ON_STACK = 12 };

#define H2_FIELD(name, value, value_n) aco__http2_field(name, sizeof(name) - 1, value, value_n)

/* The next line of fields, as HTTP/1 sends them, becomes a field. The line behind it. */
static char *h2_next_field(char *line, nghttp2_nv *field)
{
    size_t name_n = strcspn(line, ":"), value_n = strcspn(line + name_n + 2, "\r");
    for (size_t i = 0; i < name_n; i++)
        if (line[i] >= 'A' && line[i] <= 'Z')
            line[i] = (char)(line[i] + ('a' - 'A'));
    *field = aco__http2_field(line, name_n, line + name_n + 2, value_n);
    return line + name_n + 2 + value_n + 2;
}

/* Those of all lines. How many. */
static size_t h2_put_fields(char *at, size_t n, nghttp2_nv *fields)
{
    const char *end = n ? at + n : at;
    size_t count_of = 0;
    while (at < end) {
        const char *name = at;
        size_t name_n;
        at = h2_next_field(at, &fields[count_of]);
        name_n = fields[count_of].namelen;
        if (!aco__http2_is_of_connection(name, name_n) && !aco__http_is(name, name_n, "te"))
            count_of++;
    }
    return count_of;
}

static size_t h2_count_lines(const char *at, size_t n)
{
    const char *end = n ? at + n : at;
    size_t count_of = 0;
    for (; at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        count_of++;
    return count_of;
}

/* Room for that many fields. NULL and errno. */
static nghttp2_nv *h2_fields_room(aco__http_exchange_t *x, nghttp2_nv *on_stack, size_t n)
{
    return n <= H2_FIELDS_ON_STACK ? on_stack : aco_http_request_allocate(&x->is, n * sizeof *on_stack);
}

/* Sends the trailers after the data. Whether there are any. */
static int h2_submit_trailers(nghttp2_session *session, aco__http2_stream_t *s, int32_t id)
{
    nghttp2_nv on_stack[H2_FIELDS_ON_STACK], *fields = on_stack;
    size_t n = h2_count_lines(s->trailers, s->trailers_n), sz = n * sizeof *fields;
    int result;
    if (!n)
        return 0;
    if (n > H2_FIELDS_ON_STACK && !(fields = aco__service_allocate(&sz, "aco_http_reply_trailer"))) {
        aco__http2_reset(s, NGHTTP2_INTERNAL_ERROR);
        return 1; /* the client must not see an end */
    }
    result = nghttp2_submit_trailer(session, id, fields, h2_put_fields(s->trailers, s->trailers_n, fields));
    if (fields != on_stack)
        aco__service_free(fields, sz);
    if (result != 0)
        aco__http2_reset(s, NGHTTP2_INTERNAL_ERROR);
    return 1;
}

/* nghttp2 asks for data. */
static ssize_t h2_give_data(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t n, uint32_t *flags,
                            nghttp2_data_source *source, void *connection)
{
    aco__http2_stream_t *s = source->ptr;
    size_t pending = aco__http2_pending(s), given = pending < n ? pending : n;
    (void)buffer;
    (void)connection;
    if (!given && !s->is_whole) {
        s->is_deferred = 1;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (given == pending && s->is_whole) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (h2_submit_trailers(session, s, id))
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    }
    return (ssize_t)given;
}

static int h2_submit_response(aco__http2_stream_t *s, const nghttp2_nv *fields, size_t n, int has_body)
{
    nghttp2_data_provider provider = {{.ptr = s}, h2_give_data};
    int result = nghttp2_submit_response(s->h->wire.session, s->id, fields, n, has_body ? &provider : NULL);
    if (result == 0)
        return 0;
    return aco__service_fail(result == NGHTTP2_ERR_NOMEM ? ENOMEM : EPIPE, "aco_http_reply", nghttp2_strerror(result));
}

/* The status, and the date if the reply has none. How many. */
static size_t h2_put_own(const aco__http_exchange_t *x, const char *digits, nghttp2_nv *fields)
{
    fields[0] = H2_FIELD(":status", digits, 3);
    if (x->reply.has_date)
        return 1;
    fields[1] = H2_FIELD("date", aco__http_date_now(&x->server->date), HTTP_DATE);
    return 2;
}

static int http2_begin(aco__http_exchange_t *x, int status, const char *type, size_t type_n, int64_t length,
                       const char *location)
{
    aco__http2_stream_t *s = aco__http2_stream_of(x);
    nghttp2_nv on_stack[H2_FIELDS_ON_STACK], *fields;
    char digits[24], number[24];
    size_t n;
    (void)location;
    if (!s->is_open || s->error) {
        errno = s->error ? s->error : EPIPE;
        return -1;
    }
    fields = h2_fields_room(x, on_stack, H2_OWN_FIELDS + h2_count_lines(x->reply.fields, x->reply.fields_n));
    if (!fields)
        return -1;
    (void)aco__http_put_number(digits, (uint64_t)status);
    n = h2_put_own(x, digits, fields);
    if (type_n)
        fields[n++] = H2_FIELD("content-type", type, type_n);
    if (length >= 0 && status != 204 && !(status == 304 && length == 0))
        fields[n++] =
            H2_FIELD("content-length", number, (size_t)(aco__http_put_number(number, (uint64_t)length) - number));
    n += h2_put_fields(x->reply.fields, x->reply.fields_n, fields + n);
    if (h2_submit_response(s, fields, n, !x->reply.is_bodiless && length != 0) != 0)
        return -1;
    s->has_response = 1;
    s->may_continue = 0;
    s->left = length;
    return 0;
}

/* The handler's memory goes before the trailers are sent. 0, or -1. */
static int h2_keep_trailers(aco__http2_stream_t *s)
{
    const aco__http_reply_t *reply = &s->x.reply;
    s->trailers_room = reply->trailers_n;
    if (!s->trailers_room || s->left >= 0 || reply->is_bodiless)
        return 0;
    s->trailers = aco__service_allocate(&s->trailers_room, "aco_http_reply_trailer");
    if (!s->trailers)
        return -1;
    aco__http_put(s->trailers, reply->trailers, reply->trailers_n);
    s->trailers_n = reply->trailers_n;
    return 0;
}

/* ---- The reply's body ---- */

/* Whether nothing of it reaches the client any more. 0, or -1 and errno. */
static int h2_check_open(const aco__http2_stream_t *s)
{
    if (s->is_open && !s->error)
        return 0;
    errno = s->error && s->error != ECONNRESET ? s->error : EPIPE;
    return -1;
}

/* Waits until the client has taken something, in the time that is left to it. 0, or -1 and errno. */
ACO__SWITCHES static int h2_await_change(aco__http2_stream_t *s, const char *location)
{
    const aco_http_server_options_t *options = &s->h->server->options;
    const size_t before = aco__http2_pending(s);
    const int64_t rest = options->write_time - s->late, left = rest < 0 ? 0 : rest, until = aco_after(left);
    int result;
    aco_event_reset(&s->changed);
    result = aco_event_wait_until_at(&s->changed, until, location);
    if (options->write_rate && options->write_time != ACO_FOREVER) {
        int error = errno;
        int64_t late = s->late + aco_now() - (until - left);
        int64_t taken = aco__http_time_of(before - aco__http2_pending(s), options->write_rate);
        s->late = late > taken ? late - taken : 0;
        errno = error;
    }
    return result;
}

/* Waits until all was taken; the client may take nothing for so long. 0, or -1 and errno. */
ACO__SWITCHES static int h2_await_taken(aco__http2_stream_t *s, const char *location)
{
    aco__http2_has_data(s);
    aco__http2_want_write(s->h, location);
    while (aco__http2_pending(s)) {
        size_t before = aco__http2_pending(s);
        if (h2_check_open(s) != 0)
            return -1;
        if (h2_await_change(s, location) == 0)
            continue;
        if (errno != ETIMEDOUT || aco_check_cancelled() != 0)
            return -1;
        if (aco__http2_pending(s) < before)
            continue;
        errno = s->error = ETIMEDOUT;
        return -1;
    }
    return 0;
}

/* Room for `n` bytes, at most HTTP2_STREAM_OUT, behind what was collected. NULL and errno. */
ACO__SWITCHES static char *h2_out_room(aco__http2_stream_t *s, size_t n, const char *call, const char *location)
{
    if (s->data.out.end - s->data.out.begin + n > HTTP2_STREAM_OUT && h2_await_taken(s, location) != 0)
        return NULL;
    return aco__http2_make_room(&s->data.out, HTTP2_LEAST_OUT, n, call) == 0 ? s->data.out.bytes + s->data.out.end
                                                                             : NULL;
}

/* Sends the caller's memory, which stays where it is meanwhile. How many bytes were taken; errno if not all. */
ACO__SWITCHES static size_t h2_write_direct(aco__http2_stream_t *s, const char *p, size_t n, const char *location)
{
    size_t left;
    ACO__ASSERT(!s->data.direct_n);
    s->data.direct = p;
    s->data.direct_n = n;
    (void)h2_await_taken(s, location);
    left = s->data.direct_n;
    s->data.direct_n = 0;
    return n - left;
}

/* A part. How many bytes were taken or collected; 0 and errno. */
ACO__SWITCHES
static size_t h2_write_part(aco__http2_stream_t *s, const char *p, size_t n, const char *call, const char *location)
{
    char *to;
    if (h2_check_open(s) != 0)
        return 0;
    if (n > HTTP2_STREAM_OUT / 2 && !aco__may_move(p))
        return h2_write_direct(s, p, n, location);
    if (n > HTTP2_STREAM_OUT)
        n = HTTP2_STREAM_OUT;
    to = h2_out_room(s, n, call, location);
    if (!to || h2_check_open(s) != 0)
        return 0;
    aco__http_put(to, p, n);
    s->data.out.end += n;
    return n;
}

ACO__SWITCHES
static int http2_write(aco__http_exchange_t *x, const void *p, size_t n, const char *call, const char *location)
{
    aco__http2_stream_t *s = aco__http2_stream_of(x);
    if (s->left >= 0 && n > (uint64_t)s->left)
        return aco__service_fail(EMSGSIZE, call, "more bytes than were announced");
    if (x->reply.is_bodiless) {
        s->left -= s->left > 0 ? (int64_t)n : 0;
        return 0;
    }
    for (size_t done = 0; done < n;) {
        size_t part = h2_write_part(s, (const char *)p + done, n - done, call, location);
        done += part;
        if (s->left > 0)
            s->left -= (int64_t)part;
        if (!part || (done < n && h2_check_open(s) != 0))
            return -1;
        if (done < n && aco_check_cancelled() != 0)
            return -1;
    }
    return 0;
}

ACO__SWITCHES
static int http2_write_file(aco__http_exchange_t *x, int fd, int64_t offset, int64_t n, const char *call,
                            const char *location)
{
    aco__http2_stream_t *s = aco__http2_stream_of(x);
    int is_wrong = n < 0 || offset < 0 || n > INT64_MAX - offset;
    if (is_wrong || (s->left >= 0 && n > s->left))
        return aco__service_fail(is_wrong ? EINVAL : EMSGSIZE, call, "the number of bytes");
    if (x->reply.is_bodiless) {
        s->left -= s->left > 0 ? n : 0;
        return 0;
    }
    while (n > 0) {
        size_t part = n < HTTP2_STREAM_OUT ? (size_t)n : HTTP2_STREAM_OUT;
        char *to = h2_check_open(s) == 0 ? h2_out_room(s, part, call, location) : NULL;
        ssize_t got = -1;
        if (to && h2_check_open(s) == 0) {
            s->data.out.is_filled = 1;
            got = aco__http_read_part(fd, to, part, &offset, &n, location);
            s->data.out.is_filled = 0;
        }
        if (got < 0)
            return -1;
        if (to != s->data.out.bytes + s->data.out.end) /* what stood before it was sent meanwhile */
            memmove(s->data.out.bytes + s->data.out.end, to, (size_t)got);
        s->data.out.end += (size_t)got;
        if (s->left > 0)
            s->left -= got;
    }
    return 0;
}

ACO__SWITCHES static int http2_flush(aco__http_exchange_t *x, const char *location)
{
    aco__http2_stream_t *s = aco__http2_stream_of(x);
    if (!x->reply.has_begun)
        return 0;
    return h2_check_open(s) != 0 && !s->has_ended ? -1 : h2_await_taken(s, location);
}

ACO__SWITCHES static void http2_push(aco__http_exchange_t *x)
{
    aco__http2_stream_t *s = aco__http2_stream_of(x);
    if (!x->reply.has_begun || h2_check_open(s) != 0)
        return;
    aco__http2_has_data(s);
    aco__http2_want_write(s->h, stream_place);
}

/* ---- Another protocol: in the bodies (RFC 8441) ---- */

static aco__http_link_t *http2_other_protocol(const aco__http_exchange_t *x)
{
    (void)x;
    return NULL;
}

ACO__SWITCHES
static int http2_switch_protocol(aco__http_exchange_t *x, char *lines, size_t lines_n, const char *location)
{
    aco__http2_stream_t *s = aco__http2_stream_of(x);
    const size_t most =
        H2_OWN_FIELDS + h2_count_lines(lines, lines_n) + h2_count_lines(x->reply.fields, x->reply.fields_n);
    nghttp2_nv on_stack[H2_FIELDS_ON_STACK], *fields;
    size_t n;
    if (h2_check_open(s) != 0 || (fields = h2_fields_room(x, on_stack, most)) == NULL)
        return -1;
    n = h2_put_own(x, "200", fields);
    n += h2_put_fields(lines, lines_n, fields + n);
    n += h2_put_fields(x->reply.fields, x->reply.fields_n, fields + n);
    if (h2_submit_response(s, fields, n, 1) != 0)
        return -1;
    s->has_response = 1;
    s->may_continue = 0;
    s->left = -1;
    http2_limit_body(x, -1, ACO_FOREVER); /* those of messages are WebSocket's */
    aco__http2_want_write(s->h, location);
    return 0;
}

static int http2_error_of(const aco__http_exchange_t *x)
{
    const aco__http2_stream_t *s = aco__http2_stream_of(x);
    return s->error ? s->error : s->body_error == ECONNRESET ? ECONNRESET : s->h->c->link.error;
}

const aco__http_version_t aco__http2_version = {
    .read = http2_read,
    .fail_body = http2_fail_body,
    .limit_body = http2_limit_body,
    .begin = http2_begin,
    .write = http2_write,
    .write_file = http2_write_file,
    .flush = http2_flush,
    .push = http2_push,
    .other_protocol = http2_other_protocol,
    .switch_protocol = http2_switch_protocol,
    .take_over = NULL,
    .error_of = http2_error_of,
    .tells_end = 1,
};

/* ---- The task ---- */

/* Whether the windows have room for what is left, besides what they have promised to others. */
static int h2_has_room(const aco__http2_stream_t *s)
{
    const aco__http2_t *h = s->h;
    size_t n = aco__http2_pending(s);
    int32_t all = nghttp2_session_get_remote_window_size(h->wire.session);
    int32_t own = nghttp2_session_get_stream_remote_window_size(h->wire.session, s->id);
    return n == 0 || (own > 0 && n <= (size_t)own && all > 0 && n + h->promised <= (size_t)all);
}

/* Ends the reply, if it is whole. What the windows have no room for must be taken in time. */
ACO__SWITCHES static void h2_end_reply(aco__http2_stream_t *s, const char *location)
{
    aco__http_exchange_t *x = &s->x;
    if (x->reply.encoder)
        aco__http_end_coding(x, location);
    else if (s->left < 0 && !x->reply.is_bodiless && aco_check_cancelled() != 0)
        x->reply.is_aborted = 1;
    if (x->reply.is_aborted || s->error || (s->left > 0 && !x->reply.is_bodiless) || h2_keep_trailers(s) != 0) {
        aco__http2_reset(s, s->error == ETIMEDOUT ? NGHTTP2_CANCEL : NGHTTP2_INTERNAL_ERROR);
        return;
    }
    s->is_whole = 1;
    h2_drop_body(s);
    if (s->is_open && h2_has_room(s)) {
        s->promised = aco__http2_pending(s);
        s->h->promised += s->promised;
        aco__http2_has_data(s);
    } else if (s->is_open && h2_await_taken(s, location) != 0) {
        aco__http2_reset(s, NGHTTP2_CANCEL);
    }
}

/* Nobody reads the rest of the request. Some clients take a reset for a failure if they have not seen the reply before,
 * so they get some time; the window bounds what they send in it. */
ACO__SWITCHES static void h2_end_request(aco__http2_stream_t *s, const char *location)
{
    enum { REPLY_SEEN_MS = 1000 };
    int64_t until = aco_after(REPLY_SEEN_MS * ACO_MILLISECOND);
    if (s->has_all || !s->is_whole)
        return;
    aco__http2_want_write(s->h, location);
    while (!s->has_all && s->is_open && !s->error && !s->h->has_end && aco_now() < until) {
        aco_event_reset(&s->changed);
        if (aco_event_wait_until_at(&s->changed, until, location) != 0)
            break;
    }
    if (!s->has_all)
        aco__http2_reset(s, NGHTTP2_NO_ERROR);
}

ACO__SWITCHES static void h2_log(aco__http2_stream_t *s)
{
    const aco_http_server_options_t *options = &s->h->server->options;
    aco_http_failure_t failure = {ACO_HTTP_FAILED, s->error, s->x.is.fd, NULL, &s->x.is};
    if (s->error)
        aco__http_report(s->h->server, &failure);
    (void)aco__http_observe(&s->x.is);
    if (options->log)
        options->log(&s->x.is, options->log_arg);
}

/* A closed stream is no longer one that ends, or becomes it. */
static void h2_set_ending(aco__http2_stream_t *s, int is_ending)
{
    s->h->ending += is_ending - s->is_ending;
    s->is_ending = (unsigned char)is_ending;
}

/* Tells the program. As long as its functions wait, the stream counts among those that the client may have. */
ACO__SWITCHES static void h2_tell_end(aco__http2_stream_t *s)
{
    s->is_logged = 1;
    h2_set_ending(s, 0);
    h2_log(s);
    s->is_logged = 0;
    h2_set_ending(s, !s->is_open);
}

/* What the handler did not reply. 0: it has, or nobody waits for it. */
ACO__SWITCHES static int h2_status_without_reply(aco__http2_stream_t *s, int status)
{
    if (s->x.reply.has_begun || s->error || s->x.client_left)
        return 0;
    if (!status && aco_check_cancelled() != 0)
        aco__http_report_once(s->h->c, errno, &s->x.is);
    return status ? status : aco__http_status_of_body(s->body_error ? s->body_error : s->read_error);
}

ACO__SWITCHES static int h2_call_route(aco__http2_stream_t *s)
{
    aco__http_exchange_t *x = &s->x;
    aco_http_server_t *server = x->server;
    int status = aco_unlikely(server->measures) ? aco__http_measure_route(x, &s->h->c->heavy) : aco__http_call_route(x);
    if (aco_unlikely(server->member != NULL)) {
        const int64_t now = aco_now();
        if (now - x->is.began > HTTP_STALL)
            aco__http_suspect(server->member, now);
    }
    return status;
}

ACO__SWITCHES static void h2_answer(aco__http2_stream_t *s, const char *location)
{
    aco__http_exchange_t *x = &s->x;
    int status = s->refusal;
    if (status)
        s->body_error = status == 413 ? EFBIG : EBADMSG;
    else if (s->h->c->is_refused)
        status = 503;
    else
        status = h2_status_without_reply(s, h2_call_route(s));
    if (x->websocket) {
        aco__http_end_websocket(x, location);
        x->reply.is_aborted = 0; /* its last frame tells how it ended */
        s->left = 0;
    }
    x->reply.will_close |= s->h->c->is_refused;
    if (status)
        aco__http_refuse(x, status, location);
    if (x->reply.has_begun)
        h2_end_reply(s, location);
    h2_tell_end(s);
    if (x->reply.will_close)
        aco__http2_leave(s->h);
    h2_end_request(s, location);
}

/* The task's end, also by aco_exit(). Nothing waits. */
static void h2_end_task(void *stream)
{
    aco__http2_stream_t *s = stream;
    if (!s->is_whole) {
        aco__http2_reset(s, NGHTTP2_INTERNAL_ERROR);
        aco__http2_wake_reader(s->h); /* who has it sent */
    }
    if (s->x.websocket)
        aco__http_drop_websocket(&s->x);
    s->data.direct_n = 0; /* it may have been on the task's stack */
    h2_drop_body(s);
    aco__http_request_end(&s->x);
    s->has_task = 0;
    s->until = aco_after(s->h->server->options.write_time);
    aco__http2_release(s);
}

void *aco__http2_run_stream(void *stream)
{
    aco__http2_stream_t *s = stream;
    aco__http2_t *h = s->h;
    h->server->fresh_streams--;
    if (aco_defer(h2_end_task, s) != 0) {
        h2_end_task(s);
    } else {
        h2_answer(s, stream_place);
        (void)aco_defer_pop(1);
    }
    aco__http2_write(h, stream_place);
    aco__http2_may_leave_thread(h);
    return NULL;
}

#else
typedef int aco__http2_stream_is_empty;
#endif
