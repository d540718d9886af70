/* WebSocket: frames and messages in both directions. The connection's link carries them: its input buffer has the
 * frames behind the handshake's head, which stays where it is; its output has a frame's head, and small payloads. */
#include "base/reserved.h"
#include "http/text.h"
#include "http/tunnel.h"
#include "http/websocket_internal.h"
#include "system/system.h"

#include <string.h>

enum { CONTINUATION = 0, TEXT = ACO_WEBSOCKET_TEXT, BINARY = ACO_WEBSOCKET_BINARY, CLOSE = 8, PING = 9, PONG = 10 };
enum { MOST_CONTROL = WS_MOST_CONTROL, CLOSE_S = 5, SMALL = 2048, DIRECT = 4096, DEFLATED = 0x40 };

static const char receive_call[] = "aco_websocket_receive";

/* ---- Texts ---- */

/* Whether it is UTF-8: no surrogates, nothing longer than need be. */
static int is_utf8(const unsigned char *p, size_t n)
{
    for (const unsigned char *end = n ? p + n : p; p < end;) { /* an empty text may be NULL */
        unsigned first = *p++, low = 0x80, high = 0xbf;
        int more = first < 0x80 ? 0 : first < 0xc2 ? -1 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : -1;
        if (more < 0 || end - p < more)
            return 0;
        low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : low;
        high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : high;
        for (; more > 0; more--, p++, low = 0x80, high = 0xbf)
            if (*p < low || *p > high)
                return 0;
    }
    return 1;
}

/* ---- Options, memory ---- */

static int64_t limit_or(int64_t limit, int64_t value, int64_t none)
{
    return limit < 0 ? none : limit ? limit : value;
}

aco_websocket_t *aco__http_websocket_new(const aco_websocket_options_t *options, const char *call)
{
    static const aco_semaphore_t one = ACO_SEMAPHORE_INIT(1);
    aco_websocket_t *socket;
    size_t sz = sizeof *socket;
    if (ACO__RESERVED_IS_SET(options) || options->compresses < 0 || options->compresses > ACO_WEBSOCKET_KEEP_WINDOWS) {
        aco__service_fail(EINVAL, call, "an option");
        return NULL;
    }
    socket = aco__service_new(&sz, call);
    if (!socket)
        return NULL;
    socket->options = *options;
    socket->options.max_message = limit_or(options->max_message, 1 << 20, INT64_MAX);
    socket->options.message_time = limit_or(options->message_time, 60 * ACO_SECOND, ACO_FOREVER);
    socket->options.idle_time = limit_or(options->idle_time, 60 * ACO_SECOND, ACO_FOREVER);
    socket->turn = one;
    socket->code = 1006;
    return socket;
}

static void drop_message(aco_websocket_t *socket)
{
    if (socket->bytes)
        aco__service_free(socket->bytes, socket->room);
    socket->bytes = NULL;
    socket->n = socket->room = 0;
}

void aco__http_websocket_free(aco_websocket_t *socket)
{
    drop_message(socket);
    aco__http_deflate_end(socket);
    if (socket->tunnel)
        aco__http_tunnel_free(socket->tunnel);
    aco__service_free(socket, sizeof *socket);
}

/* ---- Sending ---- */

/* A scope has ended while the peer took nothing: the caller may send the frame again. The peer cannot do without the
 * end of one of which it has the begin. */
static void take_back(aco_websocket_t *socket, size_t frame, int opcode)
{
    aco__http_link_t *link = socket->link;
    int error = errno;
    if (link->out_n < frame)
        link->is_broken = 1;
    else {
        link->out_n -= frame;
        socket->has_sent_close &= opcode != CLOSE;
    }
    errno = error;
}

/* A new mask, which nobody can foresee. 0, or -1 and errno. */
static int next_mask(aco_websocket_t *socket, unsigned char mask[WS_MASK])
{
    if (!socket->keys_n) {
        if (aco__system.getrandom(socket->keys, sizeof socket->keys, 0) != (ssize_t)sizeof socket->keys)
            return -1;
        socket->keys_n = sizeof socket->keys;
    }
    socket->keys_n -= WS_MASK;
    memcpy(mask, socket->keys + socket->keys_n, WS_MASK);
    return 0;
}

/* Writes bytes behind `at`, masked from their byte `from` on. The end. */
static unsigned char *put_masked(unsigned char *at, const unsigned char *p, size_t n, const unsigned char *mask,
                                 size_t from)
{
    for (size_t i = 0; i < n; i++)
        at[i] = p[i] ^ mask[(from + i) & 3];
    return at + n;
}

/* Sends a large payload in masked parts. 0, or -1 and errno. */
ACO__SWITCHES static int send_masked(aco_websocket_t *socket, const unsigned char *p, size_t n,
                                     const unsigned char *mask, const char *location)
{
    aco__http_link_t *link = socket->link;
    for (size_t done = 0, part; done < n; done += part) {
        char *at = aco__http_room(link, DIRECT, location);
        if (!at)
            break;
        part = n - done < DIRECT ? n - done : DIRECT;
        aco__http_filled(link, (char *)put_masked((unsigned char *)at, p + done, part, mask, done));
        if (part == n - done && aco__http_send(link, NULL, 0, 0, location) == 0)
            return 0;
    }
    link->is_broken = 1; /* the peer has a part of the frame */
    return -1;
}

/* Writes a frame's head. Behind it. */
static unsigned char *put_head(unsigned char *at, int first, size_t n, const unsigned char *mask)
{
    size_t head = n < 126 ? 2 : n <= UINT16_MAX ? 4 : 10;
    at[0] = (unsigned char)(0x80 | first);
    at[1] = (unsigned char)((head == 2 ? n : head == 4 ? 126 : 127) | (mask ? 0x80 : 0));
    for (size_t i = 2; i < head; i++)
        at[i] = (unsigned char)((uint64_t)n >> 8 * (head - 1 - i));
    at += head;
    return mask ? (unsigned char *)aco__http_put((char *)at, mask, WS_MASK) : at;
}

/* By who has the turn. `first`: the opcode, perhaps with the bit of compressed messages. 0, or -1 and errno. */
ACO__SWITCHES static int put_frame(aco_websocket_t *socket, int first, const void *p, size_t n, const char *location)
{
    enum { MOST_HEAD = 10 + WS_MASK };
    aco__http_link_t *link = socket->link;
    const size_t small = n <= SMALL ? n : 0;
    unsigned char mask[WS_MASK], *at, *end;
    int result;
    /* Each frame was sent, or taken back. The answer may be left, if the handler got no socket: a close follows. */
    ACO__ASSERT(link->is_broken || !link->out_n || first == CLOSE);
    if (socket->response && next_mask(socket, mask) != 0)
        return -1;
    at = (unsigned char *)aco__http_room(link, MOST_HEAD + small, location);
    if (!at)
        return -1;
    end = put_head(at, first, n, socket->response ? mask : NULL);
    end = socket->response ? put_masked(end, p, small, mask, 0) : (unsigned char *)aco__http_put((char *)end, p, small);
    aco__http_filled(link, (char *)end);
    socket->has_sent_close = first == CLOSE;
    if (small < n && socket->response)
        return send_masked(socket, p, n, mask, location);
    result = aco__http_send(link, small ? NULL : p, small ? 0 : n, 0, location);
    if (result != 0 && !link->is_broken)
        take_back(socket, (size_t)(end - at), first);
    return result;
}

ACO__SWITCHES static int send_frame(aco_websocket_t *socket, int opcode, const void *p, size_t n, const char *location)
{
    int result = -1;
    ACO__ASSERT(opcode < CLOSE || n <= MOST_CONTROL);
    if (aco_semaphore_acquire_at(&socket->turn, location) != 0)
        return -1;
    if (socket->has_sent_close)
        errno = EPIPE;
    else
        result = put_frame(socket, opcode, p, n, location);
    aco_semaphore_release(&socket->turn);
    return result;
}

/* Sends a message compressed. 0, or -1 and errno. */
ACO__SWITCHES static int send_deflated(aco_websocket_t *socket, int type, const void *p, size_t n, const char *location)
{
    int result = -1;
    char *bytes = NULL;
    size_t sz = 0;
    if (aco_semaphore_acquire_at(&socket->turn, location) != 0) /* the order of compressing is that of sending */
        return -1;
    if (socket->has_sent_close)
        errno = EPIPE;
    else if ((bytes = aco__http_deflate(socket, p, &n, &sz, location)) != NULL)
        result = put_frame(socket, DEFLATED | type, bytes, n, location);
    if (result != 0)
        aco__http_deflate_anew(socket);
    if (bytes)
        aco__service_free(bytes, sz);
    aco_semaphore_release(&socket->turn);
    return result;
}

int aco_websocket_send_at(aco_websocket_t *socket, int type, const void *p, size_t n, const char *location)
{
    static const char call[] = "aco_websocket_send";
    if (type != TEXT && type != BINARY)
        return aco__service_fail(EINVAL, call, "the type");
    if (type == TEXT && !is_utf8(p, n))
        return aco__service_fail(EINVAL, call, "the text is no UTF-8");
    return aco__http_is_deflated(socket, n) ? send_deflated(socket, type, p, n, location)
                                            : send_frame(socket, type, p, n, location);
}

ACO__SWITCHES
static int send_close(aco_websocket_t *socket, int code, const char *reason, size_t n, const char *location)
{
    char text[MOST_CONTROL] = {(char)(code >> 8), (char)code};
    ACO__ASSERT(n <= sizeof text - 2);
    aco__http_put(text + 2, reason, n);
    return send_frame(socket, CLOSE, text, n + 2, location);
}

/* ---- Receiving ---- */

/* Nothing can be received any more. `code`: what the peer is told; 0: nothing. */
ACO__SWITCHES static int fail(aco_websocket_t *socket, int code, int error, const char *reason, const char *location)
{
    if (code && !socket->has_sent_close)
        (void)send_close(socket, code, reason, strlen(reason), location);
    socket->error = error;
    return aco__service_fail(error, receive_call, reason);
}

ACO__SWITCHES static int breaks_protocol(aco_websocket_t *socket, const char *reason, const char *location)
{
    return fail(socket, 1002, EBADMSG, reason, location);
}

/* Waits for more: at `direct`, or in the link's buffer. The number of bytes; -1 and errno. */
ACO__SWITCHES static ssize_t more(aco_websocket_t *socket, char *direct, size_t n, const char *location)
{
    const aco_websocket_options_t *options = &socket->options;
    for (;;) {
        aco_scope_t scope;
        int64_t until = socket->type ? socket->deadline : aco_after(options->idle_time);
        ssize_t got;
        if (socket->type && aco_now() >= until) /* a read that finds bytes succeeds also later */
            return fail(socket, 1001, ETIMEDOUT, "the message takes too long", location);
        if (aco_scope_begin_at(&scope, until, location) != 0)
            return -1;
        got = direct ? aco__http_link_read(socket->link, direct, n, location)
                     : aco__http_more_input(socket->link, location);
        (void)aco_scope_end(&scope);
        if (got > 0) {
            socket->is_pinged = 0;
            return got;
        }
        if (!scope.error && aco_check_cancelled() == 0)
            socket->link->error = got < 0 ? errno : ECONNRESET;
        if (got == 0)
            return fail(socket, 0, ECONNRESET, "the connection ended without a close", location);
        if (scope.error != ETIMEDOUT || aco_check_cancelled() != 0) {
            if (!aco__http_is_passing())
                socket->error = errno;
            return -1;
        }
        if (socket->type || socket->is_pinged)
            return fail(socket, 1001, ETIMEDOUT, "the peer takes too long", location);
        if (!socket->has_sent_close && send_frame(socket, PING, "", 0, location) != 0)
            return -1;
        socket->is_pinged = 1;
    }
}

/* Waits until `n` bytes of a frame's head are there. 0, or -1 and errno. */
ACO__SWITCHES static int await_head(aco_websocket_t *socket, size_t n, const char *location)
{
    aco__http_link_t *link = socket->link;
    while (link->in.end - link->at < n)
        if (more(socket, NULL, 0, location) < 0)
            return -1;
    return 0;
}

static const char *fault_of(const aco_websocket_t *socket, unsigned first, unsigned second, uint64_t length)
{
    unsigned opcode = first & 15;
    if (first & 0x30 || (first & DEFLATED && (!socket->deflating.is_on || opcode == CONTINUATION || opcode >= CLOSE)))
        return "a frame has reserved bits";
    if (!(second & 0x80) != (socket->response != NULL))
        return socket->response ? "a server's frame has a mask" : "a frame has no mask";
    if (opcode > PONG || (opcode > BINARY && opcode < CLOSE))
        return "a frame is of an unknown type";
    if (opcode >= CLOSE && (!(first & 0x80) || length > MOST_CONTROL))
        return "a control frame is too long, or a fragment";
    if (opcode == CONTINUATION ? !socket->type : opcode < CLOSE && socket->type)
        return "a fragment has no begin, or no end";
    if (length >> 63 || ((second & 127) == 126 && length < 126) || ((second & 127) == 127 && length <= UINT16_MAX))
        return "a frame's length";
    return NULL;
}

/* Reads the head of a frame. 0, or -1 and errno. */
ACO__SWITCHES static int begin_frame(aco_websocket_t *socket, const char *location)
{
    aco__http_link_t *link = socket->link;
    const unsigned char *p;
    const char *fault;
    uint64_t length;
    size_t head, mask_n;
    ACO__ASSERT(!socket->in_frame && socket->left == 0 && socket->n <= (uint64_t)socket->options.max_message);
    if (await_head(socket, 2, location) != 0)
        return -1;
    p = (const unsigned char *)link->in.buffer + link->at;
    head = (p[1] & 127) < 126 ? 2 : (p[1] & 127) == 126 ? 4 : 10;
    mask_n = p[1] & 0x80 ? WS_MASK : 0;
    if (!mask_n != (socket->response != NULL)) /* the frame is refused, whatever follows */
        head = 2, mask_n = 0;
    if (await_head(socket, head + mask_n, location) != 0)
        return -1;
    p = (const unsigned char *)link->in.buffer + link->at;
    length = head == 2 ? p[1] & 127 : 0;
    for (size_t i = 2; i < head; i++)
        length = length << 8 | p[i];
    fault = fault_of(socket, p[0], p[1], length);
    if (fault)
        return breaks_protocol(socket, fault, location);
    socket->opcode = p[0] & 15;
    if (socket->opcode < CLOSE && length > (uint64_t)socket->options.max_message - socket->n)
        return fail(socket, 1009, EFBIG, "the message is too long", location);
    socket->is_final = p[0] >> 7;
    socket->left = length;
    ACO__ASSERT(link->in.end - link->at >= head + mask_n);
    memset(socket->mask, 0, sizeof socket->mask);
    memcpy(socket->mask, p + head, mask_n);
    socket->in_frame = 1;
    link->at += head + mask_n;
    if (socket->opcode >= CLOSE)
        socket->control_n = 0;
    else if (socket->opcode != CONTINUATION) {
        socket->type = socket->opcode;
        socket->is_deflated = (p[0] & DEFLATED) != 0;
        socket->deadline = aco_after(socket->options.message_time);
    }
    return 0;
}

/* Room for `n` more bytes of the message, and a 0. 0, or -1 and errno. */
ACO__SWITCHES static int make_room(aco_websocket_t *socket, size_t n, const char *location)
{
    size_t sz = 2 * socket->room > socket->n + n + 1 ? 2 * socket->room : socket->n + n + 1;
    char *larger;
    if (socket->n + n < socket->room)
        return 0;
    larger = aco__service_allocate(&sz, receive_call);
    if (!larger)
        return fail(socket, 1011, ENOMEM, "no memory for the message", location);
    aco__http_put(larger, socket->bytes, socket->n);
    if (socket->bytes)
        aco__service_free(socket->bytes, socket->room);
    socket->bytes = larger;
    socket->room = sz;
    return 0;
}

static void unmask(aco_websocket_t *socket, unsigned char *p, size_t n)
{
    unsigned char mask[4];
    ACO__ASSERT(n <= socket->left);
    for (size_t i = 0; i < n; i++)
        p[i] ^= socket->mask[i & 3];
    for (size_t i = 0; i < 4; i++) /* for what follows */
        mask[i] = socket->mask[(i + n) & 3];
    memcpy(socket->mask, mask, 4);
    socket->left -= n;
}

/* Reads what comes next of the frame's payload. 0, or -1 and errno. */
ACO__SWITCHES static int read_payload(aco_websocket_t *socket, const char *location)
{
    aco__http_link_t *link = socket->link;
    size_t have = link->in.end - link->at, n = have < socket->left ? have : (size_t)socket->left;
    int is_control = socket->opcode >= CLOSE;
    unsigned char *to;
    if (have == 0 && (is_control || socket->left < DIRECT))
        return more(socket, NULL, 0, location) < 0 ? -1 : 0;
    if (have == 0)
        n = socket->left < 4 * DIRECT ? (size_t)socket->left : 4 * DIRECT; /* memory for what comes, not for what may */
    if (!is_control && make_room(socket, n, location) != 0)
        return -1;
    ACO__ASSERT(is_control ? socket->control_n + n <= MOST_CONTROL : socket->n + n < socket->room);
    to = is_control ? socket->control + socket->control_n : (unsigned char *)socket->bytes + socket->n;
    if (have == 0) {
        ssize_t got = more(socket, (char *)to, n, location);
        if (got < 0)
            return -1;
        n = (size_t)got;
    } else {
        memcpy(to, link->in.buffer + link->at, n);
        link->at += n;
    }
    unmask(socket, to, n);
    *(is_control ? &socket->control_n : &socket->n) += n;
    return 0;
}

/* Whether it may be sent. */
static int is_close_code(int code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

/* The peer closes. 0, or -1 and errno. */
ACO__SWITCHES static int answer_close(aco_websocket_t *socket, const char *location)
{
    int code = socket->control_n < 2 ? 1005 : socket->control[0] << 8 | socket->control[1];
    if (socket->control_n == 1 || (socket->control_n > 1 && !is_close_code(code)))
        return breaks_protocol(socket, "the close code", location);
    if (socket->control_n > 2 && !is_utf8(socket->control + 2, socket->control_n - 2))
        return fail(socket, 1007, EBADMSG, "the reason is no UTF-8", location);
    socket->code = code;
    if (!socket->has_sent_close) /* with its own code */
        (void)send_frame(socket, CLOSE, socket->control, socket->control_n < 2 ? 0 : 2, location);
    return 0;
}

/* 1: go on; 0: the peer has closed; -1 and errno. */
ACO__SWITCHES static int end_control(aco_websocket_t *socket, const char *location)
{
    if (socket->opcode == CLOSE)
        return answer_close(socket, location);
    if (socket->opcode == PING && !socket->has_sent_close &&
        send_frame(socket, PONG, socket->control, socket->control_n, location) != 0)
        return -1;
    return 1;
}

/* 0, or -1 and errno. */
ACO__SWITCHES static int inflate_message(aco_websocket_t *socket, const char *location)
{
    switch (aco__http_inflate(socket, location)) {
    case 0:
        return 0;
    case EFBIG:
        return fail(socket, 1009, EFBIG, "the message is too long", location);
    case EBADMSG:
        return fail(socket, 1007, EBADMSG, "the compressed message is wrong", location);
    default:
        return fail(socket, 1011, ENOMEM, "no memory for the message", location);
    }
}

/* The type of the message that has come, or -1 and errno. */
ACO__SWITCHES static int end_message(aco_websocket_t *socket, const char *location)
{
    int type = socket->type;
    ACO__ASSERT(type && socket->left == 0);
    socket->type = 0;
    if (socket->is_deflated && inflate_message(socket, location) != 0)
        return -1;
    if (make_room(socket, 0, location) != 0)
        return -1;
    socket->bytes[socket->n] = 0;
    if (type == TEXT && !is_utf8((unsigned char *)socket->bytes, socket->n))
        return fail(socket, 1007, EBADMSG, "the text is no UTF-8", location);
    return type;
}

/* The type of a message; 0: the peer has closed; -1 and errno. */
ACO__SWITCHES static int receive(aco_websocket_t *socket, const char *location)
{
    do {
        int result = 1;
        if (!socket->in_frame && begin_frame(socket, location) != 0)
            return -1;
        while (socket->left > 0)
            if (read_payload(socket, location) != 0)
                return -1;
        if (socket->opcode >= CLOSE)
            result = end_control(socket, location);
        if (result < 0) /* the frame is there for the next call, which answers it */
            return -1;
        socket->in_frame = 0;
        if (result == 0)
            return 0;
        if (socket->opcode < CLOSE && socket->is_final)
            return end_message(socket, location);
    } while (aco_check_cancelled() == 0); /* a peer can send pings and fragments for ever */
    return -1;
}

int aco_websocket_receive_at(aco_websocket_t *socket, const char **data, size_t *n, const char *location)
{
    int type;
    if (socket->error) {
        errno = socket->error;
        return -1;
    }
    if (socket->code != 1006)
        return 0;
    if (!socket->type) /* the last one was delivered */
        drop_message(socket);
    type = receive(socket, location);
    if (type > 0) {
        *data = socket->bytes;
        *n = socket->n;
    }
    return type;
}

/* ---- The end ---- */

int aco_websocket_close_at(aco_websocket_t *socket, int code, const char *reason, const char *location)
{
    static const char call[] = "aco_websocket_close";
    size_t n = reason ? strlen(reason) : 0, dropped_n;
    const char *dropped;
    aco_scope_t scope;
    int result;
    if (!is_close_code(code))
        return aco__service_fail(EINVAL, call, "the code");
    if (n > MOST_CONTROL - 2 || !is_utf8((const unsigned char *)reason, n))
        return aco__service_fail(EINVAL, call, "the reason is too long, or no UTF-8");
    if (!socket->has_sent_close && send_close(socket, code, reason, n, location) != 0)
        return -1;
    if (aco_scope_begin_at(&scope, aco_after(CLOSE_S * ACO_SECOND), location) != 0)
        return -1;
    do
        result = aco_websocket_receive_at(socket, &dropped, &dropped_n, location);
    while (result > 0 && aco_check_cancelled() == 0);
    (void)aco_scope_end(&scope);
    return result > 0 ? -1 : result;
}

ACO__SWITCHES static void leave(aco_websocket_t *socket, const char *location)
{
    if (!socket->has_sent_close && !socket->link->is_broken)
        (void)send_close(socket, 1001, NULL, 0, location);
}

void aco__http_drop_websocket(aco__http_exchange_t *x)
{
    aco__http_websocket_free(x->websocket);
    x->websocket = NULL;
}

void aco__http_end_websocket(aco__http_exchange_t *x, const char *location)
{
    leave(x->websocket, location);
    aco__http_drop_websocket(x);
}

void aco_websocket_end_at(aco_websocket_t *socket, const char *location)
{
    if (!socket)
        return;
    ACO__ASSERT(socket->response); /* a server's ends with its handler */
    leave(socket, location);
    if (socket->tunnel && aco__http2_end_call_body(socket->tunnel->call, NULL, 0, "aco_websocket_end") == 0)
        aco__http2_flush_call(socket->tunnel->call, socket->code != 1006, location); /* it ends, too */
    aco_http_response_end(socket->response);
    aco__http_websocket_free(socket);
}

int aco_websocket_code(const aco_websocket_t *socket)
{
    return socket->code;
}

const char *aco_websocket_protocol(const aco_websocket_t *socket)
{
    return socket->protocol;
}
