/* What a connection of HTTP/2 sends. One task writes: it asks nghttp2 for frames and sends them together. */
#ifdef ACO_CONFIG_HTTP2

#include "http/http2.h"
#include "http/text.h"

static const char write_place[] = "an HTTP/2 connection's writer";

/* ---- Data of streams ---- */

/* Takes these bytes of what the stream has: first those that were collected. */
static char *h2_take(aco__http2_stream_t *s, char *to, size_t n)
{
    size_t collected = s->out_end - s->out_begin, part = n < collected ? n : collected;
    if (part)
        to = aco__http_put(to, s->out + s->out_begin, part);
    s->out_begin += part;
    if (s->out_begin == s->out_end)
        s->out_begin = s->out_end = 0;
    n -= part;
    if (!n)
        return to;
    to = aco__http_put(to, s->direct, n);
    s->direct += n;
    s->direct_n -= n;
    return to;
}

int aco__http2_take_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                         nghttp2_data_source *source, void *connection)
{
    enum { FRAME_HEAD = 9 };
    aco__http2_t *h = connection;
    aco__http2_stream_t *s = source->ptr;
    size_t promised = s->promised < n ? s->promised : n;
    (void)session;
    (void)frame;
    ACO__ASSERT(h->out);
    if (n > aco__http2_pending(s)) /* the frame has waited, and the handler has taken its bytes back: a reset */
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (FRAME_HEAD + n > HTTP2_OUT - h->out_n) {
        h->is_full = 1;
        return NGHTTP2_ERR_WOULDBLOCK;
    }
    (void)h2_take(s, aco__http_put(h->out + h->out_n, head, FRAME_HEAD), n);
    h->out_n += FRAME_HEAD + n;
    s->promised -= promised;
    h->promised -= promised;
    if (!aco__http2_pending(s))
        aco_event_set(&s->changed);
    return 0;
}

void aco__http2_has_data(aco__http2_stream_t *s)
{
    if (!s->is_deferred || !s->is_open)
        return;
    s->is_deferred = 0;
    (void)nghttp2_session_resume_data(s->h->session, s->id);
}

/* ---- The writer ---- */

/* Collects frames. */
static void h2_fill(aco__http2_t *h)
{
    h->out_n = 0;
    h->is_full = 0;
    ACO__NO_SWITCH_BEGIN();
    while (!h->is_full) {
        ssize_t n = (ssize_t)h->rest_n;
        if (!n)
            n = nghttp2_session_mem_send(h->session, &h->rest);
        h->rest_n = n > 0 ? (size_t)n : 0;
        if (n < 0) { /* no memory: a frame is lost */
            h->c->link->is_broken = 1;
            h->c->link->error = ENOMEM;
        }
        if (n <= 0)
            break;
        if (h->rest_n > HTTP2_OUT - h->out_n)
            break;
        aco__http_put(h->out + h->out_n, h->rest, h->rest_n);
        h->out_n += h->rest_n;
        h->rest_n = 0;
    }
    ACO__NO_SWITCH_END();
}

/* Sends until there is nothing more. */
ACO__SWITCHES static void h2_send_all(aco__http2_t *h, const char *location)
{
    aco__http_link_t *link = h->c->link;
    size_t sz = HTTP2_OUT;
    ACO__ASSERT(h->is_writing && !h->out);
    h->out = aco__service_allocate(&sz, "aco_http_serve");
    if (!h->out) {
        link->is_broken = 1;
        link->error = ENOMEM;
    }
    while (!link->is_broken) {
        h2_fill(h);
        if (!h->out_n || aco__http_send(link, h->out, h->out_n, 0, location) != 0)
            break;
    }
    if (h->out)
        aco__service_free(h->out, sz);
    h->out = NULL;
    h->is_writing = 0;
    if (link->is_broken)
        aco__http2_fail_streams(h);
    if (link->is_broken || (!nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session)))
        aco__http2_wake_reader(h);
}

static int h2_has_output(const aco__http2_t *h)
{
    return !h->is_writing && !h->c->link->is_broken && (h->rest_n || nghttp2_session_want_write(h->session));
}

ACO__SWITCHES static void *h2_writer(void *connection)
{
    h2_send_all(connection, write_place);
    return NULL;
}

void aco__http2_want_write(aco__http2_t *h, const char *location)
{
    if (!h2_has_output(h))
        return;
    h->is_writing = 1;
    if (aco_group_spawn_at(&h->group, h2_writer, h, NULL, h->server->options.task, location))
        return;
    h->is_writing = 0;
    h->c->link->is_broken = 1;
    h->c->link->error = errno;
    aco__http2_fail_streams(h);
    aco__http2_wake_reader(h);
}

void aco__http2_write(aco__http2_t *h, const char *location)
{
    if (!h2_has_output(h))
        return;
    h->is_writing = 1;
    aco__service_yield();
    h2_send_all(h, location);
}

#else
typedef int aco__http2_output_is_empty;
#endif
