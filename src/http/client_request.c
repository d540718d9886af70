/* Requests of clients with their bodies, while the response may come already. */
#include "http/client_peer.h"
#include "http/text.h"

#include "aco/detail/descriptors.h"

#include <poll.h>
#include <string.h>

enum { BODY_PART = 4096, BODY_PIECE = 65536 }; /* of read_body; between two looks on a stream that is no socket */

/* As aco__http_read_one_head(), while output is left, which must not be waited for: the server may not take any. Within
 * head_time. */
ACO__SWITCHES static int read_head_first(aco__http_peer_t *peer, const aco__http_step_t *step, const char *location)
{
    const int64_t time = peer->answer.client->options.head_time;
    const size_t out_n = peer->link.out_n;
    aco_scope_t scope;
    int result;
    if (aco__http_begin_time(&scope, time, location) != 0)
        return -1;
    peer->link.out_n = 0;
    result = aco__http_read_one_head(peer, strcmp(step->method, "HEAD") == 0, location);
    peer->link.out_n = out_n;
    aco__http_end_time(&scope, time, result < 0, "head_time is over");
    return result;
}

/* Waits for the first bytes of a response, or for what reading it tells: the end, a failure. 1; 0: nothing has come
 * until this time; -1 and errno. */
ACO__SWITCHES static int await_response_bytes(aco__http_peer_t *peer, int64_t until, const char *location)
{
    aco_scope_t scope;
    ssize_t n;
    int error;
    if (aco_scope_begin_at(&scope, until, location) != 0)
        return -1;
    n = aco__http_await(&peer->link, 0, location);
    error = errno;
    (void)aco_scope_end(&scope);
    if (n >= 0)
        return 1;
    aco__http_drop_input(&peer->link);
    errno = error;
    if (error == ETIMEDOUT && scope.error == ETIMEDOUT)
        return aco_check_cancelled() == 0 ? 0 : -1;
    return aco__http_is_passing() ? -1 : 1;
}

/* The same without waiting. Over TLS what has come may be only a message of TLS's own. */
ACO__SWITCHES static int has_bytes(aco__http_peer_t *peer, const char *location)
{
    if (peer->link.in.begin < peer->link.in.end)
        return 1;
    if (aco__http_is_quiet(peer))
        return 0;
    return peer->link.is_plain ? 1 : await_response_bytes(peer, aco_now(), location);
}

/* Reads a response that has come before the body was sent. 0: it was an interim one, or there is none; 1: the body is
 * not sent further, what has come is in peer->early; -1 and errno. */
ACO__SWITCHES static int take_early(aco__http_peer_t *peer, const aco__http_step_t *step, const char *location)
{
    int has;
    while ((has = has_bytes(peer, location)) > 0) {
        int result = read_head_first(peer, step, location);
        if (result < 0)
            return -1;
        if (result > 0 && peer->interims)
            return aco__service_fail(ECONNRESET, CLIENT_CALL, "the connection ended before the response");
        peer->early = result > 0 ? EARLY_END : EARLY_RESPONSE;
        if (result > 0 || !aco__http_is_interim(peer))
            return 1;
    }
    return has;
}

/* Waits until the socket takes more. As take_early(). */
ACO__SWITCHES static int await_room(aco__http_peer_t *peer, const aco__http_step_t *step, const char *location)
{
    struct pollfd look = {peer->link.own.fd, POLLIN | POLLOUT, 0};
    if (aco__io_poll(&look, 1, ACO_FOREVER, CLIENT_CALL, location) < 0)
        return -1;
    return (look.revents & ~POLLOUT) ? take_early(peer, step, location) : 0;
}

/* Sends what was collected, on a socket. As take_early(). */
ACO__SWITCHES static int drain_out(aco__http_peer_t *peer, const aco__http_step_t *step, const char *location)
{
    int result = 0;
    while (result == 0 && peer->link.out_n) {
        const size_t before = peer->link.out_n;
        aco__http_try_send(&peer->link);
        if (peer->link.out_n == before)
            result = await_room(peer, step, location);
    }
    return result;
}

/* Sends bytes of a body with a length, on a socket, without copying them. As take_early(). */
ACO__SWITCHES
static int send_directly(aco__http_peer_t *peer, const aco__http_step_t *step, const char *p, size_t n,
                         const char *location)
{
    int result = drain_out(peer, step, location);
    while (result == 0 && n) {
        ssize_t sent = aco_io_send_at(peer->link.own.fd, p, n, MSG_DONTWAIT, location);
        if (sent > 0) {
            p += sent;
            n -= (size_t)sent;
            peer->outgoing.left -= sent;
        } else if (sent < 0 && errno != EAGAIN) {
            peer->link.is_broken = 1;
            return -1;
        } else
            result = await_room(peer, step, location);
    }
    return result;
}

/* Sends the next bytes of the body. As take_early(). */
ACO__SWITCHES
static int send_part(aco__http_peer_t *peer, const aco__http_step_t *step, const char *p, size_t n,
                     const char *location)
{
    if (peer->link.is_plain && !peer->outgoing.is_chunked && n > HTTP_OUT / 2 && n <= (uint64_t)peer->outgoing.left)
        return send_directly(peer, step, p, n, location);
    while (n) {
        const size_t most = peer->link.is_plain ? BODY_PART : BODY_PIECE, piece = n < most ? n : most;
        int result = peer->link.is_plain ? drain_out(peer, step, location) : take_early(peer, step, location);
        if (result != 0)
            return result;
        if (aco__http_write_body(&peer->outgoing, p, piece, CLIENT_CALL, location) != 0)
            return -1;
        p += piece;
        n -= piece;
    }
    return 0;
}

/* Waits for "100 Continue", or another response, for some time. As take_early(). */
ACO__SWITCHES static int await_continue(aco__http_peer_t *peer, const aco__http_step_t *step, const char *location)
{
    const int64_t until = aco_after(step->call->continue_time);
    int has;
    if (aco__http_send(&peer->link, NULL, 0, 0, location) != 0)
        return -1;
    has = await_response_bytes(peer, until, location);
    if (has <= 0)
        return has;
    return take_early(peer, step, location);
}

/* Sends the body and its end. As take_early(). */
ACO__SWITCHES static int send_body(aco__http_peer_t *peer, const aco__http_step_t *step, const char *location)
{
    const aco_http_call_t *call = step->call;
    size_t sz = BODY_PART;
    int result = call->continue_time ? await_continue(peer, step, location) : 0;
    char *part;
    ssize_t n = 0;
    if (result != 0)
        return result;
    if (!call->read_body)
        return send_part(peer, step, call->body, (size_t)call->length, location);
    part = aco__service_allocate(&sz, CLIENT_CALL); /* too large for a small stack */
    if (!part)
        return -1;
    while ((result = take_early(peer, step, location)) == 0 &&
           (n = call->read_body(call->read_arg, part, BODY_PART)) > 0)
        if ((result = send_part(peer, step, part, (size_t)n, location)) != 0)
            break;
    aco__service_free(part, sz);
    return n < 0 ? -1 : result;
}

/* The body's end, with the call's trailers if it is sent in chunks. 0, or -1 and errno. */
ACO__SWITCHES static int end_body(aco__http_peer_t *peer, const aco__http_step_t *step, const char *location)
{
    enum { MOST = 6 << 10 }; /* bytes */
    const aco_http_call_t *call = step->call;
    size_t n = 0, sz;
    char *lines, *at;
    int result;
    for (size_t i = 0; i < call->trailer_count; i++)
        n += strlen(call->trailers[i].name) + strlen(call->trailers[i].value) + 4;
    if (!n || !step->has_body || !peer->outgoing.is_chunked)
        return aco__http_end_body(&peer->outgoing, location);
    if (n > MOST)
        return aco__service_fail(EMSGSIZE, CLIENT_CALL, "too many trailers");
    sz = n;
    lines = at = aco__service_allocate(&sz, CLIENT_CALL);
    if (!lines)
        return -1;
    for (size_t i = 0; i < call->trailer_count; i++) {
        at = HTTP_PUT(aco__http_put(at, call->trailers[i].name, strlen(call->trailers[i].name)), ": ");
        at = HTTP_PUT(aco__http_put(at, call->trailers[i].value, strlen(call->trailers[i].value)), "\r\n");
    }
    result = aco__http_end_body_with(&peer->outgoing, lines, n, location);
    aco__service_free(lines, sz);
    return result;
}

/* What was collected is not sent either: reading the response would wait until the server takes it. */
static void drop_rest(aco__http_peer_t *peer)
{
    if (!peer->link.out_n)
        return;
    peer->link.out_n = 0;
    peer->outgoing.left = -1; /* the request is cut */
}

/* Sends a request. As take_early(). */
int aco__http_send_request(aco__http_peer_t *peer, const aco__http_step_t *step, const char *location)
{
    int result;
    peer->interims = 0;
    peer->early = EARLY_NOTHING;
    result = aco__http_send_head(peer, step, location);
    if (result == 0 && step->has_body)
        result = send_body(peer, step, location);
    if (result == 0)
        result = end_body(peer, step, location);
    if (result > 0)
        drop_rest(peer);
    return result == 0 ? aco__http_send(&peer->link, NULL, 0, 0, location) : result;
}
