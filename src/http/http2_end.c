/* How streams of HTTP/2, and connections, are ended: what to tell the client, and whom to wake. */
#ifdef ACO_CONFIG_HTTP2

#include "http/balance.h"
#include "http/client_watch.h"
#include "http/http2.h"

void aco__http2_reset(aco__http2_stream_t *s, uint32_t code)
{
    s->was_reset = 1;
    if (!s->is_open || s->h->server->group.scope.error) /* when drain_time is over, the connection's end says so */
        return;
    aco__http2_count_reset(&s->h->wire, s->id);
    if (nghttp2_submit_rst_stream(s->h->wire.session, NGHTTP2_FLAG_NONE, s->id, code) != 0)
        aco__http2_cut_off(&s->h->wire, NGHTTP2_INTERNAL_ERROR, ENOMEM); /* or the client waits for the rest for ever */
}

void aco__http2_fail_stream(aco__http2_stream_t *s, int error)
{
    if (s->error || !s->has_task)
        return;
    s->error = error;
    if (!s->has_all && !s->body_error)
        s->body_error = error;
    aco__http_client_left(&s->x);
    aco_event_set(&s->changed);
}

void aco__http2_wake_reader(aco__http2_t *h)
{
    if (h->c->is_idle)
        (void)aco_scope_cancel(&h->c->idle);
}

void aco__http2_may_leave_thread(aco__http2_t *h)
{
    if (aco_unlikely(h->server->measures) && !h->streams && aco__http_has_stalled(h->server->member, aco_now()))
        aco__http2_wake_reader(h);
}

void aco__http2_leave(aco__http2_t *h)
{
    if (h->leaving == HTTP2_LEAVES)
        return;
    h->leaving = HTTP2_LEAVES;
    h->until = ACO_FOREVER;
    (void)nghttp2_submit_goaway(h->wire.session, NGHTTP2_FLAG_NONE,
                                nghttp2_session_get_last_proc_stream_id(h->wire.session), NGHTTP2_NO_ERROR, NULL, 0);
    aco__http2_wake_reader(h);
}

void aco__http2_cut_off(aco__http2_wire_t *wire, uint32_t code, int error)
{
    aco__http2_t *h = (aco__http2_t *)(void *)wire;
    if (wire->refusal)
        return;
    wire->refusal = error;
    h->leaving = HTTP2_LEAVES;
    (void)nghttp2_session_terminate_session(wire->session, code);
    aco__http2_wake_reader(h);
}

/* The client has left, or drain_time is over. */
void aco__http2_fail_streams(aco__http2_t *h)
{
    int error = h->server->group.scope.error ? ECANCELED : ECONNRESET;
    for (aco__http2_stream_t *s = h->first; s; s = s->next)
        aco__http2_fail_stream(s, error);
}

#else
typedef int aco__http2_end_is_empty;
#endif
