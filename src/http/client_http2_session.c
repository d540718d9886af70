/* A client's session of HTTP/2: what nghttp2 is told and tells, what has come, how requests and connections end. */
#include "http/client_http2.h"

#ifdef ACO_CONFIG_HTTP2

#include "http/text.h"

static const char c2_place[] = "an HTTP/2 client's connection";

enum {
    C2_STREAM_WINDOW = 256 << 10, /* bytes of a response's body that are held before they are read */
    C2_CONNECTION_WINDOW = 4 << 20, /* the same of a connection's responses */
    C2_WRITE_SECONDS = 60, /* a server that takes no byte for so long is dead */
    C2_INTERIM = 16
};

/* ---- The end of requests and of connections ---- */

/* Who waits for a stream, or has not sent anything on it yet, must look for another connection. The first request of
 * a connection only learns that it has failed. */
static void c2_refuse_unsent(aco__http2_peer_t *h)
{
    for (aco__http2_call_t *s = h->first; s; s = s->next)
        if (s->is_queued || s->is_granted || (s->is_open && !s->has_sent_head && h->requests > 1)) {
            s->is_queued = 0;
            s->reset_code = NGHTTP2_REFUSED_STREAM;
            aco__http2_call_fails(s, ECONNREFUSED, "the server takes no further requests on this connection");
        }
    h->queue = NULL;
    h->queue_end = &h->queue;
}

/* The connection gets no further requests. */
static void c2_leave(aco__http2_peer_t *h)
{
    h->is_leaving = 1;
    c2_refuse_unsent(h);
    aco__http2_wake_peer(h);
}

void aco__http2_fail_peer(aco__http2_peer_t *h, int error, const char *reason)
{
    aco__http2_call_t *next;
    if (h->error)
        return;
    h->error = error;
    h->wire.link->is_broken = 1;
    c2_leave(h);
    for (aco__http2_call_t *s = h->first; s; s = next) {
        next = s->next;
        s->is_open = 0;
        aco__http2_call_fails(s, error, reason);
        aco__http2_release_call(s);
    }
}

static void c2_cut_off(aco__http2_wire_t *wire, uint32_t code, int error)
{
    if (wire->refusal)
        return;
    wire->refusal = error;
    (void)nghttp2_session_terminate_session(wire->session, code);
    aco__http2_wake_peer((aco__http2_peer_t *)(void *)wire);
}

static uint32_t c2_most_streams(const aco__http2_peer_t *h)
{
    return nghttp2_session_get_remote_settings(h->wire.session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

void aco__http2_grant(aco__http2_peer_t *h)
{
    while (h->queue && h->open < c2_most_streams(h)) {
        aco__http2_call_t *s = h->queue;
        h->queue = s->next_waiting;
        if (!h->queue)
            h->queue_end = &h->queue;
        s->is_queued = 0;
        s->is_granted = 1;
        h->open++;
        aco_event_set(&s->changed);
    }
}

void aco__http2_release_call(aco__http2_call_t *s)
{
    aco__http2_peer_t *h = s->h;
    if (s->is_open || s->has_caller)
        return;
    ACO__ASSERT(*s->place == s && !s->is_queued && !s->is_granted);
    *s->place = s->next;
    if (s->next)
        s->next->place = s->place;
    aco__http2_free_buffer(&s->body);
    aco__http2_free_buffer(&s->data.out);
    aco__blocks_free(&s->more);
    if (s->own_trailers)
        aco__service_free(s->own_trailers, s->own_trailers_sz);
    aco__service_free(s, s->sz);
    if (!h->first)
        aco__http2_wake_peer(h);
}

/* ---- What nghttp2 tells. None of it may switch ---- */

static aco__http2_call_t *c2_call(nghttp2_session *session, int32_t id)
{
    return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

static int c2_on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *connection)
{
    aco__http2_call_t *s = c2_call(session, frame->hd.stream_id);
    (void)connection;
    if (s)
        aco__http2_begin_response(s);
    return 0;
}

static int c2_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                        const uint8_t *value, size_t value_n, uint8_t flags, void *connection)
{
    aco__http2_call_t *s = c2_call(session, frame->hd.stream_id);
    (void)flags;
    (void)connection;
    return s && s->has_caller
               ? aco__http2_add_response_field(s, (const char *)name, name_n, (const char *)value, value_n)
               : 0;
}

/* A head, or the trailers. 0, or an error of nghttp2's. */
static int c2_on_head(aco__http2_peer_t *h, aco__http2_call_t *s)
{
    int result = aco__http2_end_response_head(s);
    if (result == 0 && !s->has_head) { /* an interim response */
        if (aco__http2_count(&h->wire))
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        if (++s->interims >= C2_INTERIM)
            result = NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    aco_event_set(&s->changed);
    if (result == 0)
        return 0;
    aco__http2_call_fails(s, EBADMSG, "too many interim responses, or a wrong one");
    s->was_reset = 1;
    return nghttp2_submit_rst_stream(h->wire.session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_PROTOCOL_ERROR) == 0
               ? 0
               : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int c2_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *connection)
{
    aco__http2_peer_t *h = connection;
    aco__http2_call_t *s = c2_call(session, frame->hd.stream_id);
    int type = frame->hd.type, result = 0;
    if (type == NGHTTP2_GOAWAY)
        c2_leave(h);
    else if (type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK))
        aco__http2_grant(h);
    else if (type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK)
        h->was_pinged = 0;
    else if (s && type == NGHTTP2_RST_STREAM)
        s->reset_code = frame->rst_stream.error_code;
    if (!s || (type != NGHTTP2_HEADERS && type != NGHTTP2_DATA))
        return 0;
    if (type == NGHTTP2_HEADERS)
        result = c2_on_head(h, s);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        s->has_all = 1;
        aco__http2_count_use(&h->wire, 1);
        aco_event_set(&s->changed);
    }
    return result;
}

static int c2_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *connection)
{
    enum { LEAST = 4096 };
    aco__http2_call_t *s = c2_call(session, id);
    aco__http2_count_padded(&((aco__http2_peer_t *)connection)->wire, flags);
    if (!s || !s->has_caller || s->error || aco__http2_make_room(&s->body, LEAST, n, CLIENT_CALL) != 0) {
        if (s && s->has_caller)
            aco__http2_call_fails(s, ENOMEM, "memory for the response");
        (void)nghttp2_session_consume_connection(session, n);
        return 0;
    }
    aco__http_put(s->body.bytes + s->body.end, p, n);
    s->body.end += n;
    aco_event_set(&s->changed);
    return 0;
}

/* Something was sent. */
static int c2_on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *connection)
{
    aco__http2_peer_t *h = connection;
    aco__http2_call_t *s = c2_call(session, frame->hd.stream_id);
    int type = frame->hd.type;
    if (type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR && !h->wire.refusal) {
        h->wire.refusal = EPROTO; /* nghttp2 itself ends the connection: the server broke the rules */
        aco__http2_wake_peer(h);
    } else if (type == NGHTTP2_DATA) {
        aco__http2_count_sent(&h->wire, frame->hd.length);
        if (s && frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
            s->has_sent_all = 1;
            aco_event_set(&s->changed);
        }
    } else if (type == NGHTTP2_RST_STREAM && s && !s->was_reset) {
        aco__http2_call_fails(s, EBADMSG, "the response is wrong, or beyond the limits");
        (void)aco__http2_count(&h->wire);
    }
    if (s && type == NGHTTP2_HEADERS)
        s->has_sent_head = 1;
    return 0;
}

static int c2_on_close(nghttp2_session *session, int32_t id, uint32_t code, void *connection)
{
    aco__http2_peer_t *h = connection;
    aco__http2_call_t *s = c2_call(session, id);
    if (!s)
        return 0;
    (void)nghttp2_session_set_stream_user_data(session, id, NULL);
    ACO__ASSERT(s->is_open && h->open > 0);
    s->is_open = 0;
    h->open--;
    aco__http2_grant(h);
    if (code == NGHTTP2_REFUSED_STREAM && !s->was_reset) { /* also by GOAWAY */
        s->reset_code = code;
        aco__http2_call_fails(s, ECONNREFUSED, "the server has refused the request");
    }
    aco__http2_call_fails(s, ECONNRESET, "the server has reset the request");
    aco__http2_release_call(s);
    return 0;
}

/* nghttp2 sends data of a request. */
static int c2_take_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                        nghttp2_data_source *source, void *connection)
{
    aco__http2_peer_t *h = connection;
    aco__http2_call_t *s = source->ptr;
    int result = aco__http2_put_data(&h->wire, &s->data, head, n);
    (void)session;
    (void)frame;
    if (result == 0 && !aco__http2_data_left(&s->data))
        aco_event_set(&s->changed);
    return result;
}

/* ---- The session ---- */

static void c2_set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, c2_on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, c2_on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, c2_on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, c2_on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, c2_on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, c2_on_close);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, c2_take_data);
}

/* 0, or -1 and errno. */
static int c2_begin_session(aco__http2_peer_t *h)
{
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, C2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)h->client->options.max_head},
    };
    return aco__http2_begin_session(&h->wire, c2_set_callbacks, 0, settings, sizeof settings / sizeof settings[0],
                                    C2_CONNECTION_WINDOW);
}

int aco__http2_speak(aco__http_peer_t *peer)
{
    size_t sz = sizeof(aco__http2_peer_t);
    aco__http2_peer_t *h = aco__service_new(&sz, c2_place);
    if (!h)
        return -1;
    h->sz = sz;
    h->peer = peer;
    h->client = peer->answer.client;
    h->queue_end = &h->queue;
    h->wire.link = &peer->link;
    h->wire.cut_off = c2_cut_off;
    h->heard = aco_now();
    peer->link.write_time = C2_WRITE_SECONDS * ACO_SECOND;
    if (c2_begin_session(h) == 0) {
        peer->http2 = h;
        return 0;
    }
    aco__service_free(h, sz);
    errno = ENOMEM;
    return -1;
}

void aco__http2_hang_up(aco__http2_peer_t *h)
{
    ACO__ASSERT(!h->first && !h->is_reading && !h->wire.is_writing && !h->is_used);
    if (!h->error && nghttp2_session_terminate_session(h->wire.session, NGHTTP2_NO_ERROR) == 0 &&
        h->wire.link->is_plain && !h->wire.rest_n) {
        const uint8_t *frame;
        ssize_t n = nghttp2_session_mem_send(h->wire.session, &frame);
        if (n > 0 && (size_t)n <= HTTP_OUT && !h->wire.link->out_n) {
            aco__http_filled(h->wire.link, aco__http_put(h->wire.link->out, frame, (size_t)n));
            aco__http_try_send(h->wire.link);
        }
    }
    nghttp2_session_del(h->wire.session);
    aco__service_free(h, h->sz);
}

/* ---- What comes ---- */

void aco__http2_parse_peer(aco__http2_peer_t *h)
{
    aco__http_input_t *in = &h->wire.link->in;
    ssize_t n = 0;
    ACO__NO_SWITCH_BEGIN();
    if (in->end > in->begin)
        n = nghttp2_session_mem_recv(h->wire.session, (const uint8_t *)in->buffer + in->begin, in->end - in->begin);
    if (n > 0) {
        aco__http2_count_bytes(&h->wire, (size_t)n);
        h->heard = aco_now();
        h->has_heard = 1;
    }
    in->begin = in->end = 0;
    if (n < 0)
        c2_cut_off(&h->wire, NGHTTP2_PROTOCOL_ERROR, n == NGHTTP2_ERR_NOMEM ? ENOMEM : EPROTO);
    ACO__NO_SWITCH_END();
}

int aco__http2_take_input(aco__http2_peer_t *h)
{
    ssize_t n;
    if (aco_scope_begin_at(&h->waiting, aco_now(), c2_place) != 0)
        return -1;
    n = aco__http_await(h->wire.link, 1, c2_place);
    (void)aco_scope_end(&h->waiting);
    if (n > 0)
        aco__http2_parse_peer(h);
    return n > 0 ? 1 : n < 0 && h->waiting.error == ETIMEDOUT ? 0 : -1;
}

int aco__http2_catch_up(aco__http_peer_t *peer)
{
    aco__http2_peer_t *h = peer->http2;
    int came;
    do
        came = aco__http2_take_input(h);
    while (came > 0 && !h->wire.refusal && aco_stream_has_input(peer->link.stream));
    aco__http_drop_input(&peer->link);
    return came >= 0 && !h->is_leaving && !h->wire.refusal && nghttp2_session_check_request_allowed(h->wire.session);
}

int aco__http2_takes_websockets(const aco__http2_peer_t *h)
{
    return nghttp2_session_get_remote_settings(h->wire.session, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1;
}

#endif
