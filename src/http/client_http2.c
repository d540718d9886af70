/* A client's connections of HTTP/2: who reads and writes, which are in use, when they rest. */
#include "http/client_http2.h"

#ifdef ACO_CONFIG_HTTP2

#include "aco/detail/descriptors.h"

static const char c2_task_place[] = "an HTTP/2 client's connection";

/* ---- Rest ---- */

/* Takes it out of the list of those in use. */
static void c2_leave_list(aco__http2_peer_t *h)
{
    aco__http2_peer_t **at;
    if (!h->is_used)
        return;
    for (at = &h->client->http2; *at != h; at = &(*at)->next)
        ;
    *at = h->next;
    h->is_used = 0;
}

void aco__http2_rest(aco__http2_peer_t *h)
{
    aco_http_client_t *client = h->client;
    aco__http_peer_t *peer = h->peer;
    aco__http_host_t *place = peer->place;
    if (h->first || h->is_reading || h->wire.is_writing)
        return;
    c2_leave_list(h);
    peer->place = NULL;
    if (!client || h->is_leaving || h->wire.link->is_broken || h->wire.refusal ||
        !nghttp2_session_check_request_allowed(h->wire.session))
        aco__http_close_peer(peer);
    else
        aco__http_keep_peer(client, peer);
    if (client)
        aco__http_leave_place(&client->places, place);
}

/* ---- Reading and writing ---- */

/* Nothing has come for long. Whether the server has its time to answer. */
static int c2_ping(aco__http2_peer_t *h)
{
    if (h->was_pinged)
        return 0;
    h->was_pinged = 1;
    h->heard = aco_now();
    (void)nghttp2_submit_ping(h->wire.session, NGHTTP2_FLAG_NONE, NULL);
    return 1;
}

/* Waits for frames without holding a buffer. Whether the connection goes on. */
ACO__SWITCHES static int c2_await(aco__http2_peer_t *h)
{
    const int64_t time = h->client ? h->client->options.ping_time : 0;
    ssize_t n;
    int error;
    if (aco_scope_begin_at(&h->waiting, time && h->heard <= ACO_FOREVER - time ? h->heard + time : ACO_FOREVER,
                           c2_task_place) != 0) {
        aco__http2_fail_peer(h, errno, "no memory");
        return 0;
    }
    h->is_waiting = 1;
    n = aco__http_await(h->wire.link, 0, c2_task_place);
    error = errno;
    h->is_waiting = 0;
    (void)aco_scope_end(&h->waiting);
    if (n > 0 || (n < 0 && h->waiting.error == ECANCELED))
        return 1;
    if (n < 0 && h->waiting.error == ETIMEDOUT) {
        if (c2_ping(h))
            return 1;
        aco__http2_fail_peer(h, ETIMEDOUT, "the server has not answered a ping");
    } else {
        aco__http2_fail_peer(h, n == 0 ? ECONNRESET : error, "the connection ended before the response");
    }
    return 0;
}

/* The link takes no more. What the server had sent before still counts: responses, or GOAWAY. */
ACO__SWITCHES static void c2_hear_out(aco__http2_peer_t *h)
{
    while (!h->wire.refusal && aco__http2_take_input(h) > 0)
        ;
}

/* Whether there is something to read for. */
ACO__SWITCHES static int c2_goes_on(aco__http2_peer_t *h)
{
    if (!h->error && h->wire.link->is_broken)
        c2_hear_out(h);
    if (h->wire.refusal && !h->wire.is_writing)
        aco__http2_fail_peer(h, h->wire.refusal,
                             h->wire.refusal == ECONNREFUSED ? "the server costs too much for nothing"
                                                             : "the server has broken HTTP/2's rules");
    if (!h->error && h->wire.link->is_broken)
        aco__http2_fail_peer(h, h->wire.link->error ? h->wire.link->error : ECONNRESET, "the connection has failed");
    if (!h->error && !nghttp2_session_want_read(h->wire.session) && !nghttp2_session_want_write(h->wire.session))
        aco__http2_fail_peer(h, ECONNRESET, "the server has ended the connection");
    return !h->error && h->first;
}

ACO__SWITCHES static void *c2_read(void *connection)
{
    aco__http2_peer_t *h = connection;
    do {
        aco__http2_parse_peer(h);
        aco__http2_peer_writes(h);
        aco__io_spend("an HTTP connection", c2_task_place);
    } while (c2_goes_on(h) && c2_await(h));
    aco__http_drop_input(h->wire.link);
    h->is_reading = 0;
    aco__http2_rest(h);
    return NULL;
}

ACO__SWITCHES static void *c2_write(void *connection)
{
    aco__http2_peer_t *h = connection;
    aco__http2_send_all(&h->wire, CLIENT_CALL, c2_task_place);
    if (h->wire.link->is_broken || h->wire.refusal)
        aco__http2_wake_peer(h);
    aco__http2_rest(h);
    return NULL;
}

/* 0, or -1 and errno. */
static int c2_spawn(aco__http2_peer_t *h, aco_function_t fn)
{
    aco_t *task = aco_spawn(fn, h, NULL);
    return task ? aco_detach(task) : -1;
}

void aco__http2_peer_writes(aco__http2_peer_t *h)
{
    if (h->error || !aco__http2_has_output(&h->wire))
        return;
    h->wire.is_writing = 1;
    if (c2_spawn(h, c2_write) == 0)
        return;
    h->wire.is_writing = 0;
    aco__http2_fail_peer(h, errno, "no task for writing");
}

int aco__http2_read_on(aco__http2_peer_t *h)
{
    if (h->is_reading || h->error)
        return 0;
    h->is_reading = 1;
    h->heard = aco_now();
    h->was_pinged = 0;
    if (c2_spawn(h, c2_read) == 0)
        return 0;
    h->is_reading = 0;
    return -1;
}

/* ---- Those that are in use ---- */

aco__http2_peer_t *aco__http2_used_peer(const aco_http_client_t *client, const aco__http_client_url_t *url)
{
    for (aco__http2_peer_t *h = client->http2; h; h = h->next)
        if (!h->is_leaving && !h->wire.refusal && !h->wire.link->is_broken &&
            aco__http_leads_to(h->peer, client, url) && nghttp2_session_check_request_allowed(h->wire.session))
            return h;
    return NULL;
}

void aco__http2_use(aco__http_peer_t *peer, aco__http_host_t *place)
{
    aco__http2_peer_t *h = peer->http2;
    ACO__ASSERT(!h->is_used && !h->first);
    peer->place = place;
    h->next = h->client->http2;
    h->client->http2 = h;
    h->is_used = 1;
}

void aco__http2_forget_client(aco_http_client_t *client)
{
    while (client->http2) {
        aco__http2_peer_t *h = client->http2;
        c2_leave_list(h);
        aco__http_leave_place(&client->places, h->peer->place);
        h->peer->place = NULL;
        h->client = NULL;
        h->is_leaving = 1;
        aco__http2_wake_peer(h);
    }
}

#endif
