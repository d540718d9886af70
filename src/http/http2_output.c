/* What a server's connection of HTTP/2 sends, by one task at a time (http2_wire.c). */
#ifdef ACO_CONFIG_HTTP2

#include "http/http2.h"

static const char write_place[] = "an HTTP/2 connection's writer";

/* ---- Data of streams ---- */

int aco__http2_take_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                         nghttp2_data_source *source, void *connection)
{
    aco__http2_t *h = connection;
    aco__http2_stream_t *s = source->ptr;
    size_t promised = s->promised < n ? s->promised : n;
    int result = aco__http2_put_data(&h->wire, &s->data, head, n);
    (void)session;
    (void)frame;
    if (result != 0)
        return result;
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
    (void)nghttp2_session_resume_data(s->h->wire.session, s->id);
}

/* ---- The writer ---- */

/* Sends until there is nothing more. */
ACO__SWITCHES static void h2_send_all(aco__http2_t *h, const char *location)
{
    aco__http_link_t *link = &h->c->link;
    aco__http2_send_all(&h->wire, "aco_http_serve", location);
    if (link->is_broken)
        aco__http2_fail_streams(h);
    if (link->is_broken ||
        (!nghttp2_session_want_read(h->wire.session) && !nghttp2_session_want_write(h->wire.session)))
        aco__http2_wake_reader(h);
}

ACO__SWITCHES static void *h2_writer(void *connection)
{
    h2_send_all(connection, write_place);
    aco__http2_may_leave_thread(connection);
    return NULL;
}

void aco__http2_want_write(aco__http2_t *h, const char *location)
{
    if (!aco__http2_has_output(&h->wire))
        return;
    h->wire.is_writing = 1;
    if (aco_group_spawn_at(&h->group, h2_writer, h, NULL, h->server->options.task, location))
        return;
    h->wire.is_writing = 0;
    h->c->link.is_broken = 1;
    h->c->link.error = errno;
    aco__http2_fail_streams(h);
    aco__http2_wake_reader(h);
}

void aco__http2_write(aco__http2_t *h, const char *location)
{
    if (!aco__http2_has_output(&h->wire))
        return;
    h->wire.is_writing = 1;
    aco__service_yield();
    h2_send_all(h, location);
}

#else
typedef int aco__http2_output_is_empty;
#endif
