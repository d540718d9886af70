/* For the tests of HTTP/2: a client on nghttp2, whose calls wait only for its task. */
#ifndef HTTP2_CLIENT_H
#define HTTP2_CLIENT_H

#include "http_tests.h"

#include <nghttp2/nghttp2.h>

enum { H2_REPLIES = 64, H2_BODY = 1 << 19 };

typedef struct h2_reply {
    int id, status, is_closed;
    uint32_t error_code;
    size_t n;
    char *body; /* with a 0 behind it */
    char trailers[128];
    int has_head;
    /* The request's body: */
    const char *content;
    size_t left;
} h2_reply_t;

typedef struct h2_client {
    aco_stream_t *stream;
    nghttp2_session *session;
    h2_reply_t replies[H2_REPLIES];
    int count;
    int goaways, last_id, pongs, is_over;
    uint32_t goaway_code;
    size_t sent_body;
    /* What it does, set by tests: */
    const char *trailer; /* the value of "x-sum" behind the next bodies */
    int hides_length; /* of the next bodies */
    int takes_nothing; /* of bodies */
    uint32_t window; /* of streams, at h2_connect(); 0: the default */
} h2_client_t;

static inline h2_reply_t *h2_find(h2_client_t *c, int id)
{
    for (int i = 0; i < c->count; i++)
        if (c->replies[i].id == id)
            return &c->replies[i];
    return NULL;
}

static inline const h2_reply_t *h2_reply(h2_client_t *c, int id)
{
    h2_reply_t *reply = h2_find(c, id);
    CHECK(reply != NULL && reply->is_closed);
    reply->body[reply->n] = 0;
    return reply;
}

/* ---- Callbacks ---- */

static ssize_t h2c_send(nghttp2_session *session, const uint8_t *p, size_t n, int flags, void *client)
{
    h2_client_t *c = client;
    (void)session;
    (void)flags;
    return aco_stream_write_all(c->stream, p, n) == (ssize_t)n ? (ssize_t)n : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int h2c_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                      const uint8_t *value, size_t value_n, uint8_t flags, void *client)
{
    h2_reply_t *reply = h2_find(client, frame->hd.stream_id);
    (void)session;
    (void)name_n;
    (void)value_n;
    (void)flags;
    CHECK(reply != NULL);
    if (strcmp((const char *)name, ":status") == 0) {
        reply->status = atoi((const char *)value);
    } else if (frame->headers.cat == NGHTTP2_HCAT_HEADERS && reply->has_head) {
        size_t n = strlen(reply->trailers);
        snprintf(reply->trailers + n, sizeof reply->trailers - n, "%s=%s ", (const char *)name, (const char *)value);
    }
    return 0;
}

static int h2c_frame(nghttp2_session *session, const nghttp2_frame *frame, void *client)
{
    h2_client_t *c = client;
    h2_reply_t *reply = h2_find(c, frame->hd.stream_id);
    (void)session;
    if (frame->hd.type == NGHTTP2_HEADERS && reply)
        reply->has_head = reply->status >= 200;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        c->goaways++;
        c->last_id = frame->goaway.last_stream_id;
        c->goaway_code = frame->goaway.error_code;
    }
    if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK)
        c->pongs++;
    return 0;
}

static int h2c_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *client)
{
    h2_client_t *c = client;
    h2_reply_t *reply = h2_find(c, id);
    (void)flags;
    CHECK(reply != NULL && n < H2_BODY - reply->n);
    memcpy(reply->body + reply->n, p, n);
    reply->n += n;
    if (!c->takes_nothing)
        nghttp2_session_consume(session, id, n);
    return 0;
}

static int h2c_close(nghttp2_session *session, int32_t id, uint32_t code, void *client)
{
    h2_reply_t *reply = h2_find(client, id);
    (void)session;
    CHECK(reply != NULL);
    reply->is_closed = 1;
    reply->error_code = code;
    return 0;
}

static ssize_t h2c_read(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
                        nghttp2_data_source *source, void *client)
{
    h2_client_t *c = client;
    h2_reply_t *reply = h2_find(c, id);
    const char *trailer = source->ptr;
    if (n > reply->left)
        n = reply->left;
    memcpy(p, reply->content, n);
    reply->content += n;
    reply->left -= n;
    c->sent_body += n;
    if (!reply->left)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!reply->left && trailer) {
        nghttp2_nv field = {(uint8_t *)(uintptr_t)"x-sum", (uint8_t *)(uintptr_t)trailer, 5, strlen(trailer), 0};
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        CHECK_EQ(nghttp2_submit_trailer(session, id, &field, 1), 0);
    }
    return (ssize_t)n;
}

/* ---- Calls ---- */

/* Takes the stream over. */
static inline void h2_connect(h2_client_t *c, aco_stream_t *stream)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, c->window};
    uint32_t wanted = c->window;
    memset(c, 0, sizeof *c);
    CHECK(stream != NULL);
    c->stream = stream;
    CHECK_EQ(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_send_callback(callbacks, h2c_send);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, h2c_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, h2c_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, h2c_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, h2c_close);
    CHECK_EQ(nghttp2_option_new(&option), 0);
    nghttp2_option_set_no_auto_window_update(option, 1);
    CHECK_EQ(nghttp2_session_client_new2(&c->session, callbacks, c, option), 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    CHECK_EQ(nghttp2_submit_settings(c->session, 0, &window, wanted ? 1 : 0), 0);
}

/* Sends what there is, and reads what comes. */
static inline void h2_step(h2_client_t *c)
{
    static uint8_t bytes[16384];
    ssize_t n;
    if (c->is_over || nghttp2_session_send(c->session) != 0) {
        c->is_over = 1;
        return;
    }
    n = aco_stream_read(c->stream, bytes, sizeof bytes);
    if (n <= 0)
        c->is_over = 1;
    else
        CHECK_EQ(nghttp2_session_mem_recv(c->session, bytes, (size_t)n), n);
    if (nghttp2_session_send(c->session) != 0)
        c->is_over = 1;
}

static inline void h2_await(h2_client_t *c, int id)
{
    while (!c->is_over && !h2_find(c, id)->is_closed)
        h2_step(c);
}

/* Until the server has understood all that was sent. */
static inline void h2_round(h2_client_t *c)
{
    int wanted = c->pongs + 1;
    CHECK_EQ(nghttp2_submit_ping(c->session, 0, NULL), 0);
    while (!c->is_over && c->pongs < wanted)
        h2_step(c);
}

/* Begins a request. Its stream. */
static inline int h2_request(h2_client_t *c, const char *method, const char *path, const char *content, size_t n)
{
    char length[24];
    const char *texts[] = {":method",    method, ":path",          path,  ":scheme", "http",
                           ":authority", "test", "content-length", length};
    nghttp2_nv fields[5];
    nghttp2_data_provider provider = {{.ptr = (void *)(uintptr_t)c->trailer}, h2c_read};
    h2_reply_t *reply = &c->replies[c->count++];
    int has_length = content && !c->hides_length;
    CHECK(c->count <= H2_REPLIES);
    snprintf(length, sizeof length, "%zu", n);
    for (int i = 0; i < 5; i++) {
        nghttp2_nv field = {(uint8_t *)(uintptr_t)texts[2 * i], (uint8_t *)(uintptr_t)texts[2 * i + 1],
                            strlen(texts[2 * i]), strlen(texts[2 * i + 1]), 0};
        fields[i] = field;
    }
    memset(reply, 0, sizeof *reply);
    reply->body = malloc(H2_BODY);
    CHECK(reply->body != NULL);
    reply->content = content;
    reply->left = n;
    reply->id = nghttp2_submit_request(c->session, NULL, fields, has_length ? 5 : 4, content ? &provider : NULL, NULL);
    CHECK(reply->id > 0);
    return reply->id;
}

static inline void h2_reset(h2_client_t *c, int id)
{
    CHECK_EQ(nghttp2_submit_rst_stream(c->session, 0, id, NGHTTP2_CANCEL), 0);
}

static inline void h2_close(h2_client_t *c)
{
    nghttp2_session_del(c->session);
    for (int i = 0; i < c->count; i++)
        free(c->replies[i].body);
    aco_stream_close(c->stream);
    memset(c, 0, sizeof *c);
}

#endif
