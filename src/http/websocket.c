/* WebSocket: the handshake, and frames in both directions. The connection's link carries them: its input buffer has the
 * frames behind the request's head, which stays where it is; its output has a frame's head, and small payloads. */
#include "base/reserved.h"
#include "http/link.h"
#include "http/reply.h"
#include "http/request.h"
#include "http/text.h"
#include "http/websocket_internal.h"
#include "http/websocket_key.h"

#include "aco/sync.h"
#include "aco/websocket.h"

#include <string.h>

enum { CONTINUATION = 0, TEXT = ACO_WEBSOCKET_TEXT, BINARY = ACO_WEBSOCKET_BINARY, CLOSE = 8, PING = 9, PONG = 10 };
enum { MOST_CONTROL = 125, CLOSE_S = 5, SMALL = 2048, DIRECT = 4096 };

struct aco_websocket_s {
    aco__http_link_t *link;
    aco_websocket_options_t options;
    char protocol[64];
    aco_semaphore_t turn; /* one task sends */
    unsigned char has_sent_close, is_pinged;
    int code; /* the peer's; 1006: it has not closed */
    int error; /* why nothing can be received any more */
    /* The frame that comes in: */
    unsigned char in_frame, is_final, opcode;
    unsigned char mask[4];
    uint64_t left; /* bytes of its payload to come */
    unsigned char control[MOST_CONTROL];
    size_t control_n;
    /* The message: */
    int type; /* 0: none has begun */
    int64_t deadline; /* of the message, if `type` tells that one has begun */
    char *bytes;
    size_t n, room;
};

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

/* ---- The handshake ---- */

/* The header with this name, if there is only one; else NULL. *n: how many there are. */
static const char *header_of(const aco_http_request_t *request, const char *name, size_t *n)
{
    const char *value;
    *n = aco__http_find(request->headers, request->header_count, name, &value);
    return *n == 1 ? value : NULL;
}

/* Whether the client wants to go on with WebSocket, perhaps among other protocols. */
static int wants_websocket(const aco_http_request_t *request)
{
    aco__http_list_t list = {"", request->headers, request->header_count, "Upgrade"};
    const char *at;
    for (size_t n; (at = aco__http_next(&list, &n)) != NULL;)
        if (aco__http_is(at, n, "websocket"))
            return 1;
    return 0;
}

static int is_key(const char *key)
{
    size_t n = key ? strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") : 0;
    return n == HTTP_WEBSOCKET_KEY - 2 && strcmp(key + n, "==") == 0;
}

static int may_connect(const char *origin, const char *origins, const char *host)
{
    const aco__http_list_t list = {origins, NULL, 0, NULL};
    const char *at;
    if (!origin || (origins && strcmp(origins, "*") == 0))
        return 1;
    if (origins)
        return aco__http_has(list, origin, strlen(origin));
    at = strstr(origin, "://");
    return at && aco__http_same(at + 3, host);
}

/* The first of the server's subprotocols that the client speaks. */
static void choose_protocol(aco_websocket_t *socket, const aco_http_request_t *request)
{
    const aco__http_list_t offered = {"", request->headers, request->header_count, "Sec-WebSocket-Protocol"};
    aco__http_list_t list = {socket->options.protocols ? socket->options.protocols : "", NULL, 0, NULL};
    const char *word;
    for (size_t n; (word = aco__http_next(&list, &n)) != NULL;)
        if (n < sizeof socket->protocol && aco__http_has(offered, word, n)) {
            *aco__http_put(socket->protocol, word, n) = 0;
            return;
        }
}

/* 0; or the status with which to refuse the handshake. Of several keys, versions or origins none is taken: whatever
 * stands before the server could have looked at another one. */
static int check_handshake(const aco__http_exchange_t *x, const aco_websocket_options_t *options, const char **key)
{
    const aco_http_request_t *request = &x->is;
    size_t keys, versions, origins;
    const char *version = header_of(request, "Sec-WebSocket-Version", &versions);
    const char *origin = header_of(request, "Origin", &origins);
    *key = header_of(request, "Sec-WebSocket-Key", &keys);
    if (strcmp(request->method, "GET") != 0 || !x->version->other_protocol(x) || !wants_websocket(request) ||
        !is_key(*key) || versions > 1 || origins > 1)
        return 400;
    if (!version || strcmp(version, "13") != 0)
        return 426;
    return may_connect(origin, options->origins, request->host) ? 0 : 403;
}

ACO__SWITCHES
static int refuse_handshake(aco_http_request_t *request, int status, const char *call, const char *location)
{
    if (status == 426) {
        (void)aco_http_reply_header(request, "Upgrade", "websocket");
        (void)aco_http_reply_header(request, "Sec-WebSocket-Version", "13");
    }
    (void)aco__http_answer(aco__http_exchange_of(request), status, location);
    return status == 403 ? aco__service_fail(EACCES, call, "a page of this origin may not connect")
                         : aco__service_fail(EPROTO, call, "this is no handshake of WebSocket");
}

ACO__SWITCHES
static int send_answer(const aco_websocket_t *socket, aco__http_exchange_t *x, const char *key, const char *location)
{
    char fields[256], *at;
    at = HTTP_PUT(fields, "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ");
    at = HTTP_PUT(aco__http_put_accepted(at, key), "\r\n");
    if (*socket->protocol) {
        at = HTTP_PUT(at, "Sec-WebSocket-Protocol: ");
        at = HTTP_PUT(aco__http_put(at, socket->protocol, strlen(socket->protocol)), "\r\n");
    }
    ACO__ASSERT((size_t)(at - fields) <= sizeof fields);
    if (aco__http_switch(x, fields, (size_t)(at - fields), location) != 0)
        return -1;
    return aco__http_send(socket->link, NULL, 0, 0, location);
}

static int64_t limit_or(int64_t limit, int64_t value, int64_t none)
{
    return limit < 0 ? none : limit ? limit : value;
}

aco_websocket_t *aco_websocket_accept_at(aco_http_request_t *request, const aco_websocket_options_t *options,
                                         const char *location)
{
    static const char call[] = "aco_websocket_accept";
    static const aco_websocket_options_t defaults;
    static const aco_semaphore_t one = ACO_SEMAPHORE_INIT(1);
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    aco_websocket_t *socket;
    size_t sz = sizeof *socket;
    const char *key;
    int status;
    options = options ? options : &defaults;
    if (x->reply.has_begun) {
        aco__service_fail(EBUSY, call, "the reply has begun");
        return NULL;
    }
    if (ACO__RESERVED_IS_SET(options)) {
        aco__service_fail(EINVAL, call, "a reserved option is not 0");
        return NULL;
    }
    status = check_handshake(x, options, &key);
    if (status) {
        refuse_handshake(request, status, call, location);
        return NULL;
    }
    socket = aco__service_allocate(&sz, call);
    if (!socket)
        return NULL;
    memset(socket, 0, sizeof *socket);
    socket->link = x->version->other_protocol(x);
    socket->options = *options;
    socket->options.max_message = limit_or(options->max_message, 1 << 20, INT64_MAX);
    socket->options.message_time = limit_or(options->message_time, 60 * ACO_SECOND, ACO_FOREVER);
    socket->options.idle_time = limit_or(options->idle_time, 60 * ACO_SECOND, ACO_FOREVER);
    socket->turn = one;
    socket->code = 1006;
    choose_protocol(socket, request);
    x->websocket = socket; /* the handler's return frees it */
    if (send_answer(socket, x, key, location) == 0)
        return socket;
    if (!x->reply.has_begun) { /* the handler may try again, or reply */
        x->websocket = NULL;
        aco__service_free(socket, sizeof *socket);
    }
    return NULL;
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

ACO__SWITCHES static int send_frame(aco_websocket_t *socket, int opcode, const void *p, size_t n, const char *location)
{
    aco__http_link_t *link = socket->link;
    unsigned char *at;
    size_t head = n < 126 ? 2 : n <= UINT16_MAX ? 4 : 10, small = n <= SMALL ? n : 0;
    int result = -1;
    ACO__ASSERT(opcode < CLOSE || n <= MOST_CONTROL);
    if (aco_semaphore_acquire_at(&socket->turn, location) != 0)
        return -1;
    /* Each frame was sent, or taken back. The answer may be left, if the handler got no socket: a close follows. */
    ACO__ASSERT(link->is_broken || !link->out_n || opcode == CLOSE);
    at = (unsigned char *)aco__http_room(link, head + small, location);
    if (socket->has_sent_close)
        errno = EPIPE;
    else if (at) {
        at[0] = (unsigned char)(0x80 | opcode);
        at[1] = (unsigned char)(head == 2 ? n : head == 4 ? 126 : 127);
        for (size_t i = 2; i < head; i++)
            at[i] = (unsigned char)((uint64_t)n >> 8 * (head - 1 - i));
        aco__http_filled(link, aco__http_put((char *)at + head, p, small));
        socket->has_sent_close = opcode == CLOSE;
        result = aco__http_send(link, small ? NULL : p, small ? 0 : n, 0, location);
        if (result != 0 && !link->is_broken)
            take_back(socket, head + small, opcode);
    }
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
    return send_frame(socket, type, p, n, location);
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
    if (first & 0x70)
        return "a frame has reserved bits";
    if (!(second & 0x80))
        return "a frame has no mask";
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
    size_t head;
    ACO__ASSERT(!socket->in_frame && socket->left == 0 && socket->n <= (uint64_t)socket->options.max_message);
    if (await_head(socket, 2, location) != 0)
        return -1;
    p = (const unsigned char *)link->in.buffer + link->at;
    head = (p[1] & 127) < 126 ? 2 : (p[1] & 127) == 126 ? 4 : 10;
    if (p[1] & 0x80 && await_head(socket, head + 4, location) != 0)
        return -1;
    p = (const unsigned char *)link->in.buffer + link->at;
    length = head == 2 ? p[1] & 127 : 0;
    for (size_t i = 2; p[1] & 0x80 && i < head; i++)
        length = length << 8 | p[i];
    fault = fault_of(socket, p[0], p[1], length);
    if (fault)
        return breaks_protocol(socket, fault, location);
    socket->opcode = p[0] & 15;
    if (socket->opcode < CLOSE && length > (uint64_t)socket->options.max_message - socket->n)
        return fail(socket, 1009, EFBIG, "the message is too long", location);
    socket->is_final = p[0] >> 7;
    socket->left = length;
    ACO__ASSERT(link->in.end - link->at >= head + 4);
    memcpy(socket->mask, p + head, 4);
    socket->in_frame = 1;
    link->at += head + 4;
    if (socket->opcode >= CLOSE)
        socket->control_n = 0;
    else if (socket->opcode != CONTINUATION) {
        socket->type = socket->opcode;
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

/* The type of the message that has come, or -1 and errno. */
ACO__SWITCHES static int end_message(aco_websocket_t *socket, const char *location)
{
    int type = socket->type;
    ACO__ASSERT(type && socket->left == 0);
    socket->type = 0;
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

static void drop_message(aco_websocket_t *socket)
{
    if (socket->bytes)
        aco__service_free(socket->bytes, socket->room);
    socket->bytes = NULL;
    socket->n = socket->room = 0;
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

void aco__http_end_websocket(aco__http_exchange_t *x, const char *location)
{
    aco_websocket_t *socket = x->websocket;
    if (!socket->has_sent_close && !socket->link->is_broken)
        (void)send_close(socket, 1001, NULL, 0, location);
    drop_message(socket);
    aco__service_free(socket, sizeof *socket);
    x->websocket = NULL;
}

int aco_websocket_code(const aco_websocket_t *socket)
{
    return socket->code;
}

const char *aco_websocket_protocol(const aco_websocket_t *socket)
{
    return socket->protocol;
}
