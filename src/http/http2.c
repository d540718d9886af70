/* A server's connections of HTTP/2: what comes in, and the end. */
#include "http/http2.h"

#ifdef ACO_CONFIG_HTTP2

#include "http/balance.h"
#include "http/client_watch.h"
#include "http/failure.h"

#include "aco/detail/descriptors.h"

#include <string.h>

static const char h2_place[] = "an HTTP/2 connection";

/* ---- What nghttp2 tells. None of it may switch ---- */

static aco__http2_stream_t *h2_stream(nghttp2_session *session, int32_t id)
{
    return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

/* A head must come in its time: nothing else can come on the connection meanwhile. */
static void h2_begin_head(aco__http2_t *h)
{
    if (!h->in_head && !h->leaving)
        h->until = aco_after(h->server->options.head_time);
    h->in_head = 1;
}

static int h2_ends_head(const aco__http2_t *h)
{
    int type = h->frame[3];
    return (type == NGHTTP2_HEADERS || type == NGHTTP2_CONTINUATION) && h->frame[4] & NGHTTP2_FLAG_END_HEADERS;
}

/* The next byte of a frame's head. */
static void h2_follow_frame(aco__http2_t *h, uint8_t byte)
{
    h->frame[h->frame_n++] = byte;
    if (h->frame_n < sizeof h->frame)
        return;
    h->frame_n = 0;
    h->frame_left = (size_t)h->frame[0] << 16 | (size_t)h->frame[1] << 8 | h->frame[2];
    if (h->frame[3] == NGHTTP2_HEADERS || h->frame[3] == NGHTTP2_CONTINUATION)
        h2_begin_head(h);
    if (!h->frame_left && h2_ends_head(h))
        h->in_head = 0;
}

/* Knows whether a head has come in part. nghttp2 does not tell of the ends of those that it drops. */
static void h2_follow(aco__http2_t *h, const uint8_t *p, size_t n)
{
    while (n) {
        size_t part = !h->frame_left ? 1 : n < h->frame_left ? n : h->frame_left;
        if (!h->frame_left) {
            h2_follow_frame(h, *p);
        } else {
            h->frame_left -= part;
            if (!h->frame_left && h2_ends_head(h))
                h->in_head = 0;
        }
        p += part;
        n -= part;
    }
}

static int h2_on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *connection)
{
    aco__http2_t *h = connection;
    aco__http2_stream_t *s;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST || frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    s = h->filling = aco__http2_begin_stream(h, frame->hd.stream_id);
    if (s) {
        s->x.version = &aco__http2_version;
        return 0;
    }
    return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM) == 0
               ? 0
               : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int h2_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                        const uint8_t *value, size_t value_n, uint8_t flags, void *connection)
{
    aco__http2_stream_t *s = ((aco__http2_t *)connection)->filling;
    if (!s || s->id != frame->hd.stream_id) /* trailers, or a refused head */
        s = h2_stream(session, frame->hd.stream_id);
    (void)flags;
    return s ? aco__http2_add_field(s, (const char *)name, name_n, (const char *)value, value_n) : 0;
}

static int h2_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *connection)
{
    aco__http2_t *h = connection;
    aco__http2_stream_t *s = h2_stream(session, frame->hd.stream_id);
    int is_head = frame->hd.type == NGHTTP2_HEADERS, is_last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (!s || (!is_head && frame->hd.type != NGHTTP2_DATA))
        return 0;
    if (is_last)
        s->has_all = 1;
    if (is_head && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        aco__http2_end_head(s, !is_last);
        s->has_task = 1; /* soon */
        *h->begun_end = s;
        h->begun_end = &s->next_begun;
    } else if (is_last) {
        aco_event_set(&s->changed);
    }
    return 0;
}

static int h2_on_wrong_frame(nghttp2_session *session, const nghttp2_frame *frame, int error, void *connection)
{
    aco__http2_t *h = connection;
    (void)session;
    (void)frame;
    if (error == NGHTTP2_ERR_REFUSED_STREAM) { /* it counts now: a client that reads nothing is never told */
        h->refused++;
        (void)aco__http2_count(&h->wire);
    }
    return 0;
}

static int h2_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *connection)
{
    aco__http2_stream_t *s = h2_stream(session, id);
    aco__http2_count_padded(&((aco__http2_t *)connection)->wire, flags);
    if (s)
        aco__http2_put_body(s, p, n);
    else
        (void)nghttp2_session_consume_connection(session, n);
    return 0;
}

/* nghttp2 itself ends the connection: the peer broke the rules. */
static void h2_on_goaway(aco__http2_t *h, uint32_t code)
{
    if (code == NGHTTP2_NO_ERROR || h->wire.refusal)
        return;
    h->wire.refusal = code == NGHTTP2_ENHANCE_YOUR_CALM ? ECONNREFUSED : EPROTO;
    h->leaving = HTTP2_LEAVES;
    aco__http2_wake_reader(h);
}

/* Something was sent. */
static int h2_on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *connection)
{
    aco__http2_t *h = connection;
    aco__http2_stream_t *s = h2_stream(session, frame->hd.stream_id);
    int type = frame->hd.type;
    if (type == NGHTTP2_GOAWAY)
        h2_on_goaway(h, frame->goaway.error_code);
    else if (type == NGHTTP2_DATA)
        aco__http2_count_sent(&h->wire, frame->hd.length);
    else if (type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code == NGHTTP2_REFUSED_STREAM && h->refused)
        h->refused--;
    else if (type == NGHTTP2_RST_STREAM && (!s || !s->was_reset)) /* the client is to blame */
        (void)aco__http2_count(&h->wire);
    if (!s || (type != NGHTTP2_DATA && type != NGHTTP2_HEADERS) || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    s->has_ended = 1;
    aco__http2_count_use(&h->wire, 1);
    aco_event_set(&s->changed);
    return 0;
}

static int h2_on_close(nghttp2_session *session, int32_t id, uint32_t code, void *connection)
{
    aco__http2_stream_t *s = h2_stream(session, id);
    aco__http2_t *h = connection;
    if (!s)
        return 0;
    if (h->filling == s)
        h->filling = NULL;
    (void)nghttp2_session_set_stream_user_data(session, id, NULL);
    s->is_open = 0;
    s->is_ending = s->is_whole && !s->is_logged && s->has_task;
    h->ending += s->is_ending;
    h->promised -= s->promised;
    s->promised = 0;
    if (code != NGHTTP2_NO_ERROR || !s->has_ended)
        aco__http2_fail_stream(s, ECONNRESET);
    aco_event_set(&s->changed);
    aco__http2_release(s);
    return 0;
}

/* ---- The session ---- */

static void h2_set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, h2_on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, h2_on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, h2_on_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, h2_on_wrong_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, h2_on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, h2_on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, h2_on_close);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, aco__http2_take_data);
}

/* 0, or -1 and errno. */
static int h2_begin_session(aco__http2_t *h)
{
    const aco_http_server_options_t *options = &h->server->options;
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)options->max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, (uint32_t)options->stream_window},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)options->max_head},
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
    };
    return aco__http2_begin_session(&h->wire, h2_set_callbacks, 1, settings, sizeof settings / sizeof settings[0],
                                    options->connection_window);
}

/* NULL and errno. */
static aco__http2_t *h2_new(aco__http_connection_t *c)
{
    size_t sz = sizeof(aco__http2_t);
    aco__http2_t *h = aco__service_new(&sz, h2_place);
    if (!h)
        return NULL;
    h->sz = sz;
    h->server = c->server;
    h->begun_end = &h->begun;
    h->frame_left = NGHTTP2_CLIENT_MAGIC_LEN;
    h->wire.cut_off = aco__http2_cut_off;
    if (h2_begin_session(h) == 0)
        return h;
    aco__service_free(h, sz);
    errno = ENOMEM;
    return NULL;
}

/* ---- The end ---- */

/* The server ends: the client is told, but requests that are on their way are still answered. */
static void h2_begin_to_leave(aco__http2_t *h)
{
    h->leaving = HTTP2_WILL_LEAVE;
    h->until = aco_after(h->server->options.drain_idle_time);
    (void)nghttp2_submit_shutdown_notice(h->wire.session);
}

/* The client sends no more. What it has asked for, it may still read. */
static void h2_end_input(aco__http2_t *h)
{
    for (aco__http2_stream_t *s = h->first; s; s = s->next) {
        if (!s->has_all && !s->body_error)
            s->body_error = ECONNRESET;
        if (s->has_task)
            aco__http_client_left(&s->x);
        aco_event_set(&s->changed);
    }
}

/* nghttp2 has gone. */
static void h2_free_all(aco__http2_t *h)
{
    nghttp2_session_del(h->wire.session);
    while (h->first) {
        ACO__ASSERT(!h->first->has_task);
        h->first->is_open = 0;
        aco__http2_release(h->first);
    }
    ACO__ASSERT(!h->streams && !h->wire.out);
    aco__service_free(h, h->sz);
}

/* ---- Reading ---- */

/* Lets tasks of requests begin before there are more: each that waits for its turn has a stack, and the heads of many
 * connections would come first. 64 connections of 100 streams took 6400 stacks, and three times the processor time. */
ACO__SWITCHES static void h2_let_begin(const aco_http_server_t *server)
{
    enum { H2_FRESH = 64 };
    while (server->fresh_streams >= H2_FRESH)
        aco__service_yield();
}

/* Those whose heads have come get their tasks. */
ACO__SWITCHES static void h2_spawn_streams(aco__http2_t *h, const char *location)
{
    while (h->begun) {
        aco__http2_stream_t *s = h->begun;
        h2_let_begin(h->server);
        h->begun = s->next_begun;
        if (!h->begun)
            h->begun_end = &h->begun;
        if (s->is_open &&
            aco_group_spawn_at(&h->group, aco__http2_run_stream, s, NULL, h->server->options.task, location)) {
            h->server->fresh_streams++;
            continue;
        }
        s->has_task = 0; /* the client has reset it already; or there is no memory */
        if (s->is_open)
            aco__http2_reset(s, NGHTTP2_REFUSED_STREAM);
        else
            aco__http2_release(s);
    }
}

/* nghttp2 does not take it. */
static void h2_refuse_input(aco__http2_t *h, int error)
{
    if (error == NGHTTP2_ERR_NOMEM)
        aco__http2_cut_off(&h->wire, NGHTTP2_INTERNAL_ERROR, ENOMEM);
    else if (error == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
        aco__http2_cut_off(&h->wire, NGHTTP2_PROTOCOL_ERROR, EPROTO);
    else /* too much that it would have to keep */
        aco__http2_cut_off(&h->wire, NGHTTP2_ENHANCE_YOUR_CALM, ECONNREFUSED);
}

/* What has come. 0, or -1: the connection cannot go on. */
ACO__SWITCHES static int h2_parse(aco__http2_t *h, const char *location)
{
    aco__http_input_t *in = &h->c->link.in;
    ssize_t n = 0;
    h2_let_begin(h->server);
    ACO__NO_SWITCH_BEGIN();
    if (in->end > in->begin)
        n = nghttp2_session_mem_recv(h->wire.session, (const uint8_t *)in->buffer + in->begin, in->end - in->begin);
    if (n > 0) {
        h2_follow(h, (const uint8_t *)in->buffer + in->begin, (size_t)n);
        aco__http2_count_bytes(&h->wire, (size_t)n);
    }
    in->begin = in->end = 0;
    if (n < 0)
        h2_refuse_input(h, (int)n);
    ACO__NO_SWITCH_END();
    h2_spawn_streams(h, location);
    aco__http2_want_write(h, location);
    return n < 0 ? -1 : 0;
}

/* From time to time: the end of the last stream does not wake this task. Streams whose tasks have ended have a rest of
 * a reply for which the windows had room; if it is only its end, or the client has made them smaller, it may never be
 * taken. */
static void h2_look(aco__http2_t *h)
{
    const aco_http_server_options_t *options = &h->server->options;
    int64_t now = aco_now();
    if (now < h->look)
        return;
    h->look = aco_after(options->write_time < options->idle_time ? options->write_time : options->idle_time);
    for (aco__http2_stream_t *s = h->first; s; s = s->next)
        if (s->has_head && !s->has_task && s->is_open && !s->was_reset && s->until <= now)
            aco__http2_reset(s, NGHTTP2_CANCEL);
}

static int64_t h2_wait_until(const aco__http2_t *h)
{
    const aco_http_server_options_t *options = &h->server->options;
    int64_t idle_time = h->c->is_refused ? options->head_time : options->idle_time;
    int64_t until = h->leaving || h->in_head ? h->until : ACO_FOREVER;
    if (h->streams)
        return h->look < until ? h->look : until;
    if (h->leaving || h->in_head)
        return until;
    return h->idle_since > ACO_FOREVER - idle_time ? ACO_FOREVER : h->idle_since + idle_time;
}

enum { H2_CAME, H2_LATE, H2_LOOK, H2_OVER };

/* Waits for frames without holding a buffer. */
ACO__SWITCHES static int h2_await(aco__http2_t *h, const char *location)
{
    aco__http_connection_t *c = h->c;
    int64_t until = h2_wait_until(h);
    ssize_t n;
    int how = h->leaving && h->server->is_ending ? HTTP_ENDS : HTTP_AWAITS;
    if (aco__http_begin_idle(c, how, &until, location) != 0)
        return H2_OVER;
    n = aco__http_await(&c->link, 0, location);
    h->has_end = n == 0;
    aco__http_end_idle(c);
    if (n > 0)
        return H2_CAME;
    if (n < 0 && c->idle.error == ECANCELED)
        return H2_LOOK;
    return n < 0 && c->idle.error == ETIMEDOUT ? H2_LATE : H2_OVER;
}

/* Some time is over. Whether the connection goes on. */
static int h2_be_late(aco__http2_t *h)
{
    if (h->in_head && aco_now() >= h->until) {
        aco__http2_cut_off(&h->wire, NGHTTP2_NO_ERROR, ETIMEDOUT);
        return 0;
    }
    if (aco_now() < h2_wait_until(h)) /* another reason was there */
        return 1;
    aco__http2_leave(h);
    return 1;
}

/* ---- Another thread ---- */

/* Whether nothing of the connection is here but its session: no request, no part of a frame, nothing to send. */
static int h2_is_still(const aco__http2_t *h)
{
    return !h->streams && !h->filling && !h->in_head && !h->frame_n && !h->frame_left && !h->leaving &&
           !h->wire.is_writing && !h->wire.rest_n && !nghttp2_session_want_write(h->wire.session) &&
           !h->c->link.is_broken;
}

/* Goes to another thread's server, if this one has stalled. Whether the session is no longer here: it has gone, or
 * there was no memory to stay. */
ACO__SWITCHES static int h2_leave_thread(aco__http2_t *h, const char *location)
{
    aco__http_connection_t *c = h->c;
    if (!h2_is_still(h) || c->heavy || c->is_refused || !aco__http_has_stalled(c->server->member, aco_now()) ||
        !aco__http_can_move(&c->link))
        return 0;
    (void)aco_group_end_at(&h->group, location); /* tasks that have nothing left to do */
    aco__http_drop_input(&c->link);
    if (h2_is_still(h) && aco__http_move(c, h, location))
        return 1;
    if (aco_group_begin_at(&h->group, ACO_KEEP_GOING, location) == 0)
        return 0;
    aco__http_report_once(c, errno, NULL);
    h2_free_all(h);
    return 1;
}

/* Until the connection has ended, or its client must not do more. Whether the session is no longer here. */
ACO__SWITCHES static int h2_read(aco__http2_t *h, const char *location)
{
    while (h2_parse(h, location) == 0) {
        int how;
        aco__io_spend("an HTTP connection", location); /* both before the look: nobody wakes this task until it waits */
        if (aco_unlikely(h->server->measures) && h2_leave_thread(h, location))
            return 1;
        if (h->server->is_ending && !h->leaving) {
            h2_begin_to_leave(h);
            aco__http2_want_write(h, location);
        }
        if (h->c->link.is_broken || h->wire.refusal || (h->leaving == HTTP2_LEAVES && !h->streams) ||
            !(nghttp2_session_want_read(h->wire.session) || nghttp2_session_want_write(h->wire.session)))
            return 0;
        how = h2_await(h, location);
        h2_look(h);
        if (how == H2_OVER || (how == H2_LATE && !h2_be_late(h)))
            return 0;
    }
    return 0;
}

/* How it has ended. */
ACO__SWITCHES static void h2_report(aco__http2_t *h)
{
    aco_http_failure_t failure = {ACO_HTTP_REFUSED, h->wire.refusal, h->c->link.own.fd, NULL, NULL};
    if (!h->wire.refusal || h->c->is_reported)
        return;
    if (h->wire.refusal == ETIMEDOUT || h->wire.refusal == ENOMEM)
        failure.kind = ACO_HTTP_FAILED;
    h->c->is_reported = 1;
    aco__http_report(h->server, &failure);
}

void aco__http2_serve(aco__http_connection_t *c, aco__http2_t *session, const char *location)
{
    aco__http2_t *h = session ? session : h2_new(c);
    if (h) {
        h->c = c;
        h->server = c->server;
        h->wire.link = &c->link;
        h->idle_since = aco_now();
    }
    if (!h || aco_group_begin_at(&h->group, ACO_KEEP_GOING, location) != 0) {
        aco__http_report_once(c, errno, NULL);
        if (h)
            h2_free_all(h);
        return;
    }
    if (h2_read(h, location))
        return;
    if (h->has_end && !c->link.is_broken)
        h2_end_input(h);
    else
        aco__http2_fail_streams(h);
    aco__http2_want_write(h, location);
    h2_report(h);
    (void)aco_group_end_at(&h->group, location);
    h2_free_all(h);
}

#else

/* Nobody calls it. */
void aco__http2_serve(aco__http_connection_t *c, struct aco__http2 *session, const char *location)
{
    (void)session;
    (void)location;
    c->link.is_broken = 1;
}

#endif
