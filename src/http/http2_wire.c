/* What both sides of HTTP/2 have in common: the session, the bytes of bodies, and the sending. One task of a connection
 * asks nghttp2 for frames and sends them together. */
#ifdef ACO_CONFIG_HTTP2

#include "http/coder_memory.h"
#include "http/http2_wire.h"
#include "http/text.h"

/* ---- The session ---- */

static int h2_on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *connection)
{
    (void)session;
    return aco__http2_count_frame(connection, hd->type, hd->length, hd->flags) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* A field that HTTP does not allow: the message is wrong. */
static int h2_on_wrong_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                             const uint8_t *value, size_t value_n, uint8_t flags, void *connection)
{
    (void)name;
    (void)name_n;
    (void)value;
    (void)value_n;
    (void)flags;
    (void)connection;
    (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_PROTOCOL_ERROR);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* 0, or an error of nghttp2's. */
static int h2_make_session(aco__http2_wire_t *wire, void (*set_callbacks)(nghttp2_session_callbacks *), int is_server)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    int result = nghttp2_session_callbacks_new(&callbacks);
    if (result == 0)
        result = nghttp2_option_new(&option);
    if (result == 0) {
        nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, h2_on_begin_frame);
        nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, h2_on_wrong_field);
        set_callbacks(callbacks);
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_option_set_max_reserved_remote_streams(option, 0);
        result = is_server ? nghttp2_session_server_new3(&wire->session, callbacks, wire, option, &aco__http2_memory)
                           : nghttp2_session_client_new3(&wire->session, callbacks, wire, option, &aco__http2_memory);
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return result;
}

int aco__http2_begin_session(aco__http2_wire_t *wire, void (*set_callbacks)(nghttp2_session_callbacks *), int is_server,
                             const nghttp2_settings_entry *settings, size_t n, int32_t window)
{
    aco__http2_be_patient(&wire->patience);
    if (h2_make_session(wire, set_callbacks, is_server) == 0 &&
        nghttp2_submit_settings(wire->session, NGHTTP2_FLAG_NONE, settings, n) == 0 &&
        nghttp2_session_set_local_window_size(wire->session, NGHTTP2_FLAG_NONE, 0, window) == 0)
        return 0;
    nghttp2_session_del(wire->session);
    errno = ENOMEM;
    return -1;
}

/* ---- Fields ---- */

int aco__http2_is_of_connection(const char *name, size_t n)
{
    return aco__http_is(name, n, "keep-alive") || aco__http_is(name, n, "proxy-connection") ||
           aco__http_is(name, n, "upgrade");
}

/* ---- Bodies ---- */

void aco__http2_free_buffer(aco__http2_buffer_t *buffer)
{
    if (buffer->bytes)
        aco__service_free(buffer->bytes, buffer->room);
    memset(buffer, 0, sizeof *buffer);
}

int aco__http2_make_room(aco__http2_buffer_t *buffer, size_t least, size_t n, const char *call)
{
    enum { GROWTH = 4 }; /* it begins anew each time that all was taken */
    size_t have = buffer->end - buffer->begin, room = buffer->room < least ? least : buffer->room;
    char *larger;
    if (buffer->bytes && n <= buffer->room - buffer->end)
        return 0;
    while (room < have + n)
        room = room <= SIZE_MAX / GROWTH ? GROWTH * room : have + n;
    if (buffer->bytes && room == buffer->room) {
        memmove(buffer->bytes, buffer->bytes + buffer->begin, have);
    } else {
        larger = aco__service_allocate(&room, call);
        if (!larger)
            return -1;
        if (have)
            aco__http_put(larger, buffer->bytes + buffer->begin, have);
        if (buffer->bytes)
            aco__service_free(buffer->bytes, buffer->room);
        buffer->bytes = larger;
        buffer->room = room;
    }
    buffer->begin = 0;
    buffer->end = have;
    return 0;
}

/* So many bytes were taken. */
static void h2_drop_taken(aco__http2_buffer_t *buffer, size_t n)
{
    buffer->begin += n;
    ACO__ASSERT(buffer->begin <= buffer->end);
    if (buffer->begin < buffer->end)
        return;
    buffer->begin = buffer->end = 0;
    if (!buffer->is_filled)
        aco__http2_free_buffer(buffer);
}

size_t aco__http2_read_buffer(aco__http2_wire_t *wire, aco__http2_buffer_t *buffer, int32_t id, void *p, size_t n)
{
    size_t have = buffer->end - buffer->begin;
    n = n < have ? n : have;
    if (!n)
        return 0;
    memcpy(p, buffer->bytes + buffer->begin, n);
    h2_drop_taken(buffer, n);
    if (id)
        (void)nghttp2_session_consume(wire->session, id, n);
    else
        (void)nghttp2_session_consume_connection(wire->session, n);
    return n;
}

/* Takes these bytes of what is to be sent: first those that were collected. */
static char *h2_take(aco__http2_data_t *data, char *to, size_t n)
{
    aco__http2_buffer_t *out = &data->out;
    size_t collected = out->end - out->begin, part = n < collected ? n : collected;
    if (part) {
        to = aco__http_put(to, out->bytes + out->begin, part);
        h2_drop_taken(out, part);
    }
    n -= part;
    if (!n)
        return to;
    to = aco__http_put(to, data->direct, n);
    data->direct += n;
    data->direct_n -= n;
    return to;
}

int aco__http2_put_data(aco__http2_wire_t *wire, aco__http2_data_t *data, const uint8_t *head, size_t n)
{
    enum { FRAME_HEAD = 9 };
    ACO__ASSERT(wire->out);
    if (n > aco__http2_data_left(data)) /* the frame has waited, and the task has taken its bytes back: a reset */
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (FRAME_HEAD + n > HTTP2_OUT - wire->out_n) {
        wire->is_full = 1;
        return NGHTTP2_ERR_WOULDBLOCK;
    }
    (void)h2_take(data, aco__http_put(wire->out + wire->out_n, head, FRAME_HEAD), n);
    wire->out_n += FRAME_HEAD + n;
    return 0;
}

/* ---- The writer ---- */

/* Collects frames. */
static void h2_fill(aco__http2_wire_t *wire)
{
    wire->out_n = 0;
    wire->is_full = 0;
    ACO__NO_SWITCH_BEGIN();
    while (!wire->is_full) {
        ssize_t n = (ssize_t)wire->rest_n;
        if (!n)
            n = nghttp2_session_mem_send(wire->session, &wire->rest);
        wire->rest_n = n > 0 ? (size_t)n : 0;
        if (n < 0) { /* no memory: a frame is lost */
            wire->link->is_broken = 1;
            wire->link->error = ENOMEM;
        }
        if (n <= 0)
            break;
        if (wire->rest_n > HTTP2_OUT - wire->out_n)
            break;
        aco__http_put(wire->out + wire->out_n, wire->rest, wire->rest_n);
        wire->out_n += wire->rest_n;
        wire->rest_n = 0;
    }
    ACO__NO_SWITCH_END();
}

int aco__http2_has_output(const aco__http2_wire_t *wire)
{
    return !wire->is_writing && !wire->link->is_broken && (wire->rest_n || nghttp2_session_want_write(wire->session));
}

void aco__http2_send_all(aco__http2_wire_t *wire, const char *call, const char *location)
{
    aco__http_link_t *link = wire->link;
    size_t sz = HTTP2_OUT;
    ACO__ASSERT(wire->is_writing && !wire->out);
    wire->out = aco__service_allocate(&sz, call);
    if (!wire->out) {
        link->is_broken = 1;
        link->error = ENOMEM;
    }
    while (!link->is_broken) {
        h2_fill(wire);
        if (!wire->out_n || aco__http_send(link, wire->out, wire->out_n, 0, location) != 0)
            break;
    }
    if (wire->out)
        aco__service_free(wire->out, sz);
    wire->out = NULL;
    wire->is_writing = 0;
}

#else
typedef int aco__http2_wire_is_empty;
#endif
