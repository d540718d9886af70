/* Sending of HTTP/2, for both sides: one task of a connection asks nghttp2 for frames and sends them together. */
#ifdef ACO_CONFIG_HTTP2

#include "http/http2_wire.h"
#include "http/text.h"

/* ---- Memory for nghttp2: the library's, which wants to know sizes ---- */

enum { H2_SIZE_BEFORE = 16 };

static void *h2_malloc(size_t n, void *user)
{
    size_t sz = n + H2_SIZE_BEFORE;
    char *p = n > SIZE_MAX - H2_SIZE_BEFORE ? NULL : aco__service_allocate(&sz, "an HTTP/2 connection");
    (void)user;
    if (!p)
        return NULL;
    memcpy(p, &sz, sizeof sz);
    return p + H2_SIZE_BEFORE;
}

static void h2_free(void *p, void *user)
{
    size_t sz;
    (void)user;
    if (!p)
        return;
    memcpy(&sz, (char *)p - H2_SIZE_BEFORE, sizeof sz);
    aco__service_free((char *)p - H2_SIZE_BEFORE, sz);
}

static void *h2_calloc(size_t count, size_t n, void *user)
{
    void *p = n && count > SIZE_MAX / n ? NULL : h2_malloc(count * n, user);
    return p ? memset(p, 0, count * n) : NULL;
}

static void *h2_realloc(void *p, size_t n, void *user)
{
    size_t sz;
    void *larger;
    if (!p)
        return h2_malloc(n, user);
    memcpy(&sz, (char *)p - H2_SIZE_BEFORE, sizeof sz);
    if (n <= sz - H2_SIZE_BEFORE)
        return p;
    larger = h2_malloc(n, user);
    if (!larger)
        return NULL;
    memcpy(larger, p, sz - H2_SIZE_BEFORE);
    h2_free(p, user);
    return larger;
}

nghttp2_mem aco__http2_memory = {NULL, h2_malloc, h2_free, h2_calloc, h2_realloc};

/* ---- Bodies ---- */

void aco__http2_free_buffer(aco__http2_buffer_t *buffer)
{
    if (buffer->bytes)
        aco__service_free(buffer->bytes, buffer->room);
    memset(buffer, 0, sizeof *buffer);
}

int aco__http2_make_room(aco__http2_buffer_t *buffer, size_t least, size_t n, const char *call)
{
    size_t have = buffer->end - buffer->begin, room = buffer->room < least ? least : buffer->room;
    char *larger;
    if (buffer->bytes && n <= buffer->room - buffer->end)
        return 0;
    while (room < have + n)
        room *= 2;
    if (room == buffer->room) {
        memmove(buffer->bytes, buffer->bytes + buffer->begin, have);
    } else {
        larger = aco__service_allocate(&room, call);
        if (!larger)
            return -1;
        if (have)
            aco__http_put(larger, buffer->bytes + buffer->begin, have);
        aco__http2_free_buffer(buffer);
        buffer->bytes = larger;
        buffer->room = room;
    }
    buffer->begin = 0;
    buffer->end = have;
    return 0;
}

/* Takes these bytes of what is to be sent: first those that were collected. */
static char *h2_take(aco__http2_data_t *data, char *to, size_t n)
{
    aco__http2_buffer_t *out = &data->out;
    size_t collected = out->end - out->begin, part = n < collected ? n : collected;
    if (part)
        to = aco__http_put(to, out->bytes + out->begin, part);
    out->begin += part;
    if (out->begin == out->end)
        out->begin = out->end = 0;
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
