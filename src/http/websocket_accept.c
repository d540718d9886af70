/* WebSocket's handshake in servers. */
#include "http/reply.h"
#include "http/text.h"
#include "http/tunnel.h"
#include "http/websocket_internal.h"
#include "http/websocket_key.h"

#include <string.h>

/* The header with this name, if there is only one; else NULL. *n: how many there are. */
static const char *header_of(const aco_http_request_t *request, const char *name, size_t *n)
{
    const char *value;
    *n = aco__http_find(request->headers, request->header_count, name, &value);
    return *n == 1 ? value : NULL;
}

/* Whether the client wants to go on with WebSocket, perhaps among other protocols: a question of HTTP/1. */
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
    if (!x->is_connect && (strcmp(request->method, "GET") != 0 || !x->version->other_protocol(x) ||
                           !wants_websocket(request) || !is_key(*key)))
        return 400;
    if (versions > 1 || origins > 1)
        return 400;
    if (!version || strcmp(version, "13") != 0)
        return 426;
    return may_connect(origin, options->origins, request->host) ? 0 : 403;
}

ACO__SWITCHES
static int refuse_handshake(aco_http_request_t *request, int status, const char *call, const char *location)
{
    if (status == 426 && (aco_http_reply_header(request, "Upgrade", "websocket") != 0 ||
                          aco_http_reply_header(request, "Sec-WebSocket-Version", "13") != 0))
        status = 500;
    (void)aco__http_answer(aco__http_exchange_of(request), status, location);
    return status == 403 ? aco__service_fail(EACCES, call, "a page of this origin may not connect")
                         : aco__service_fail(EPROTO, call, "this is no handshake of WebSocket");
}

ACO__SWITCHES
static int send_answer(aco_websocket_t *socket, aco__http_exchange_t *x, const char *key, const char *location)
{
    const aco__http_list_t offers = {"", x->is.headers, x->is.header_count, "Sec-WebSocket-Extensions"};
    char fields[320 + WS_EXTENSION], extension[WS_EXTENSION], *at;
    at = fields;
    if (!x->is_connect) {
        at = HTTP_PUT(at, "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ");
        at = HTTP_PUT(aco__http_put_accepted(at, key), "\r\n");
    }
    if (*socket->protocol) {
        at = HTTP_PUT(at, "Sec-WebSocket-Protocol: ");
        at = HTTP_PUT(aco__http_put(at, socket->protocol, strlen(socket->protocol)), "\r\n");
    }
    aco__http_deflate_choose(socket, offers, extension);
    if (*extension) {
        at = HTTP_PUT(at, "Sec-WebSocket-Extensions: ");
        at = HTTP_PUT(aco__http_put(at, extension, strlen(extension)), "\r\n");
    }
    ACO__ASSERT((size_t)(at - fields) <= sizeof fields);
    if (aco__http_switch(x, fields, (size_t)(at - fields), location) != 0)
        return -1;
    return aco__http_send(socket->link, NULL, 0, 0, location);
}

aco_websocket_t *aco_websocket_accept_at(aco_http_request_t *request, const aco_websocket_options_t *options,
                                         const char *location)
{
    static const char call[] = "aco_websocket_accept";
    static const aco_websocket_options_t defaults;
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    aco_websocket_t *socket;
    const char *key;
    int status;
    options = options ? options : &defaults;
    if (x->reply.has_begun) {
        aco__service_fail(EBUSY, call, "the reply has begun");
        return NULL;
    }
    socket = aco__http_websocket_new(options, call);
    if (!socket)
        return NULL;
    status = check_handshake(x, options, &key);
    if (status) {
        aco__http_websocket_free(socket);
        refuse_handshake(request, status, call, location);
        return NULL;
    }
    if (x->is_connect && !(socket->tunnel = aco__http_tunnel_new(x, NULL))) {
        aco__http_websocket_free(socket);
        return NULL;
    }
    socket->link = socket->tunnel ? &socket->tunnel->link : x->version->other_protocol(x);
    choose_protocol(socket, request);
    x->websocket = socket; /* the handler's return frees it */
    if (send_answer(socket, x, key, location) == 0)
        return socket;
    if (!x->reply.has_begun) { /* the handler may try again, or reply */
        x->websocket = NULL;
        aco__http_websocket_free(socket);
    }
    return NULL;
}
