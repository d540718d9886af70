/* An HTTP/1.1 client on llhttp: GET requests on a kept-alive connection. The server is here too; it has
 * /objects/NUMBER. */
#ifndef CLIENTS_HTTP_H
#define CLIENTS_HTTP_H
#include "network.h"

#include <llhttp.h>

typedef struct http_client {
    network_t *network;
    llhttp_t parser;
    llhttp_settings_t settings;
    client_sink_t *sink;
    int complete;
} http_client_t;

static int http_on_body(llhttp_t *parser, const char *data, size_t size)
{
    client_sink_t *sink = ((http_client_t *)parser->data)->sink;
    sink->take(sink, data, size);
    return 0;
}

static int http_on_complete(llhttp_t *parser)
{
    ((http_client_t *)parser->data)->complete = 1;
    return HPE_PAUSED;
}

BENCH_FUNCTION void http_client_init(http_client_t *c, network_t *network)
{
    memset(c, 0, sizeof *c);
    c->network = network;
    llhttp_settings_init(&c->settings);
    c->settings.on_body = http_on_body;
    c->settings.on_message_complete = http_on_complete;
    llhttp_init(&c->parser, HTTP_RESPONSE, &c->settings);
    c->parser.data = c;
}

static char *http_append(char *at, const char *text)
{
    size_t n = strlen(text);
    memcpy(at, text, n);
    return at + n;
}

CLIENT_LAYER void http_write_request(http_client_t *c, const char *path)
{
    char request[512], *end = http_append(request, "GET ");
    native_must(strlen(path) < sizeof request / 2, "the path is too long");
    end = http_append(end, path);
    end = http_append(end, " HTTP/1.1\r\nHost: storage.example\r\nUser-Agent: acorn\r\nAccept: */*\r\n\r\n");
    network_send(c->network, request, (size_t)(end - request));
}

/* 0; or -1 if the data is no HTTP or the connection was closed before the end. */
CLIENT_LAYER int http_read_some(http_client_t *c)
{
    const char *data;
    size_t size = network_receive(c->network, &data, SIZE_MAX);
    llhttp_errno_t error = size ? llhttp_execute(&c->parser, data, size) : llhttp_finish(&c->parser);
    if (c->complete) { /* no byte may follow the response */
        llhttp_resume(&c->parser);
        return size == 0 || llhttp_get_error_pos(&c->parser) == data + size ? 0 : -1;
    }
    return size == 0 || error != HPE_OK ? -1 : 0;
}

CLIENT_LAYER int http_read_response(http_client_t *c)
{
    for (c->complete = 0; !c->complete;)
        if (http_read_some(c) != 0)
            return -1;
    return c->parser.status_code;
}

/* Returns the response's status and passes its body to `sink`; -1 without a response, and the connection is then
 * useless. */
CLIENT_LAYER int http_get(http_client_t *c, const char *path, client_sink_t *sink)
{
    c->sink = sink;
    http_write_request(c, path);
    return http_read_response(c);
}

/* ---- The server ---- */

BENCH_FUNCTION void http_serve(network_t *n, const char *request, size_t size)
{
    static const char start[] = "GET /objects/";
    static const char found[] = "HTTP/1.1 200 OK\r\nServer: storage\r\nContent-Type: application/octet-stream\r\n"
                                "Content-Length: 1000000\r\nConnection: keep-alive\r\n\r\n";
    static const char missing[] = "HTTP/1.1 404 Not Found\r\nServer: storage\r\nContent-Length: 14\r\n\r\n"
                                  "no such object";
    size_t object = 0, at = sizeof start - 1;
    if (size == 0)
        return;
    if (size <= at || memcmp(request, start, at) != 0 || memcmp(request + size - 4, "\r\n\r\n", 4) != 0)
        object = OBJECTS;
    for (; object < OBJECTS && request[at] >= '0' && request[at] <= '9'; at++)
        object = object * 10 + (size_t)(request[at] - '0');
    if (object < OBJECTS && request[at] == ' ') {
        network_answer(n, found, sizeof found - 1);
        network_answer(n, objects_bytes + object, OBJECT_SIZE);
    } else {
        network_answer(n, missing, sizeof missing - 1);
    }
}

#endif
