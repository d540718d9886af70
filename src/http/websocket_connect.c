/* WebSocket's handshake in clients: a request of an HTTP client, whose connection then carries frames. */
#include "http/base64.h"
#include "http/client_peer.h"
#include "http/text.h"
#include "http/tunnel.h"
#include "http/websocket_internal.h"
#include "http/websocket_key.h"
#include "system/system.h"

#include <stdio.h>
#include <string.h>

static const char connect_call[] = "aco_websocket_connect";

enum { WS_FIELDS = 1024 }; /* bytes of the handshake's own headers */

typedef struct shake { /* too large for a small stack */
    char url[CLIENT_URL + CLIENT_USER + 4];
    char key[HTTP_WEBSOCKET_KEY + 8];
    char fields[WS_FIELDS];
} shake_t;

/* "ws://…" as HTTP has it. 0, or -1 and errno. */
static int rewrite_url(shake_t *shake, const char *url)
{
    const size_t n = url ? strlen(url) : 0;
    const int is_tls = n > 6 && aco__http_is(url, 6, "wss://"), is_plain = n > 5 && aco__http_is(url, 5, "ws://");
    if ((!is_tls && !is_plain) || n + 3 > sizeof shake->url)
        return aco__service_fail(EINVAL, connect_call, "the URL is none of ws:// or wss://, or too long");
    (void)snprintf(shake->url, sizeof shake->url, "http%s", url + 2);
    return 0;
}

static int make_key(char key[HTTP_WEBSOCKET_KEY + 8])
{
    unsigned char bytes[16];
    if (aco__system.getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -1;
    *aco__http_put_base64(key, bytes, sizeof bytes) = 0;
    return 0;
}

/* Whether the call sends only headers that are not the handshake's. */
static int check_headers(const aco_http_header_t *headers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (aco__http_same(headers[i].name, "upgrade") ||
            (strlen(headers[i].name) > 14 && aco__http_begins(headers[i].name, "sec-websocket-", 14)))
            return aco__service_fail(EINVAL, connect_call, "the handshake has this header itself");
    return 0;
}

/* The headers of the request. 0, or -1 and errno. */
static int make_fields(shake_t *shake, const aco_websocket_options_t *options)
{
    const char *protocols = options->protocols ? options->protocols : "";
    const char *extension = aco__http_deflate_offer(options);
    const int n =
        snprintf(shake->fields, sizeof shake->fields,
                 "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: %s\r\n%s%s%s%s%s%s",
                 shake->key, *protocols ? "Sec-WebSocket-Protocol: " : "", protocols, *protocols ? "\r\n" : "",
                 *extension ? "Sec-WebSocket-Extensions: " : "", extension, *extension ? "\r\n" : "");
    if (n >= (int)sizeof shake->fields || !aco__http_is_value(protocols, strlen(protocols)))
        return aco__service_fail(EINVAL, connect_call, "the subprotocols");
    return 0;
}

static int has_word(const aco_http_response_t *response, const char *name, const char *word)
{
    aco__http_list_t list = {"", response->headers, response->header_count, name};
    const char *at;
    for (size_t n; (at = aco__http_next(&list, &n)) != NULL;)
        if (aco__http_is(at, n, word))
            return 1;
    return 0;
}

/* The server's choice of the subprotocols. 0; -1: it is none of them. */
static int take_protocol(aco_websocket_t *socket, const aco_http_response_t *response)
{
    const aco__http_list_t offered = {socket->options.protocols ? socket->options.protocols : "", NULL, 0, NULL};
    const char *value;
    size_t n;
    switch (aco__http_find(response->headers, response->header_count, "Sec-WebSocket-Protocol", &value)) {
    case 0:
        return 0;
    case 1:
        n = strlen(value);
        if (n >= sizeof socket->protocol || !aco__http_has(offered, value, n))
            return -1;
        memcpy(socket->protocol, value, n + 1);
        return 0;
    default:
        return -1;
    }
}

/* What is wrong with the answer of HTTP/1; NULL: nothing. */
static const char *fault_of_switch(const aco_http_response_t *response, const char *key)
{
    char wanted[32] = "";
    const char *accepted;
    *aco__http_put_accepted(wanted, key) = 0;
    if (!has_word(response, "Upgrade", "websocket") || !has_word(response, "Connection", "upgrade"))
        return "the server goes on with another protocol";
    if (aco__http_find(response->headers, response->header_count, "Sec-WebSocket-Accept", &accepted) != 1 ||
        strcmp(accepted, wanted) != 0)
        return "the server's answer to the key is wrong";
    return NULL;
}

/* What is wrong with the server's answer; NULL: nothing. */
static const char *fault_of_answer(aco_websocket_t *socket, const aco_http_response_t *response, const char *key)
{
    const aco__http_list_t extensions = {"", response->headers, response->header_count, "Sec-WebSocket-Extensions"};
    const char *fault = response->major == 1 ? fault_of_switch(response, key) : NULL;
    if (fault)
        return fault;
    if (take_protocol(socket, response) != 0)
        return "the server has chosen a subprotocol that was not offered";
    return aco__http_deflate_agree(socket, extensions) != 0 ? "the server has chosen an extension that was not offered"
                                                            : NULL;
}

/* 0, or -1 and errno. */
static int agree(aco_websocket_t *socket, const shake_t *shake)
{
    aco_http_response_t *response = socket->response;
    const char *fault;
    char reason[48];
    if (response->status != (response->major == 1 ? 101 : 200)) {
        (void)snprintf(reason, sizeof reason, "the server answers %d", response->status);
        return aco__service_fail(response->status == 403 ? EACCES : EPROTO, connect_call, reason);
    }
    fault = fault_of_answer(socket, response, shake->key);
    return fault ? aco__service_fail(EPROTO, connect_call, fault) : 0;
}

/* What carries the frames. 0, or -1 and errno. */
static int take_link(aco_websocket_t *socket)
{
    aco__http_answer_t *answer = aco__http_answer_of(socket->response);
    if (answer->http2 && !(socket->tunnel = aco__http_tunnel_new(NULL, answer->http2)))
        return -1;
    socket->link = socket->tunnel ? &socket->tunnel->link : &((aco__http_peer_t *)(void *)answer)->link;
    socket->link->write_time = socket->options.message_time;
    return 0;
}

/* 0, or -1 and errno. */
ACO__SWITCHES
static int shake_hands(aco_http_client_t *client, aco_websocket_t *socket, shake_t *shake, const char *url,
                       const aco_http_header_t *headers, size_t header_count, const char *location)
{
    aco_http_call_t call;
    if (rewrite_url(shake, url) != 0 || check_headers(headers, header_count) != 0 || make_key(shake->key) != 0 ||
        make_fields(shake, &socket->options) != 0)
        return -1;
    memset(&call, 0, sizeof call);
    call.url = shake->url;
    call.headers = headers;
    call.header_count = header_count;
    socket->response = aco__http_call_with(client, &call, (aco__http_step_t){.upgrade = shake->fields}, location);
    if (!socket->response)
        return -1;
    if (take_link(socket) == 0 && agree(socket, shake) == 0)
        return 0;
    aco_http_response_end(socket->response);
    return -1;
}

aco_websocket_t *aco_websocket_connect_at(aco_http_client_t *client, const char *url, const aco_http_header_t *headers,
                                          size_t header_count, const aco_websocket_options_t *options,
                                          const char *location)
{
    static const aco_websocket_options_t defaults;
    aco_websocket_t *socket = aco__http_websocket_new(options ? options : &defaults, connect_call);
    size_t sz = sizeof(shake_t);
    shake_t *shake = socket ? aco__service_allocate(&sz, connect_call) : NULL;
    int result = -1, error;
    if (shake) {
        result = shake_hands(client, socket, shake, url, headers, header_count, location);
        error = errno;
        aco__service_free(shake, sz);
        errno = error;
    }
    if (result == 0)
        return socket;
    error = errno;
    if (socket)
        aco__http_websocket_free(socket);
    errno = error;
    return NULL;
}
