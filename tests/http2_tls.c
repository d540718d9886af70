/* ALPN chooses the version of HTTP (include/aco/http.h, aco/tls.h): on one port, clients that offer "h2" get HTTP/2,
 * the others HTTP/1.1. Large bodies pass TLS's records. */
#define _GNU_SOURCE
#include "http2_client.h"
#include "tls_certificates.h"

#include <aco/tls.h>
#include <aco/websocket.h>
#include <signal.h>

static certificate_t self;
static stage_t stage;
static h2_client_t client;
static char text[200000];

static aco_tls_config_t *configure(unsigned flags, const char *protocols)
{
    aco_tls_config_t *config = configure_self_signed(&self, flags);
    if (protocols)
        CHECK_EQ(aco_tls_config_alpn(config, protocols), 0);
    return config;
}

static aco_stream_t *connect_with(const char *protocols)
{
    aco_tls_config_t *config = configure(0, protocols);
    aco_tls_t *tls = aco_tls_connect(dial(&stage), "localhost", config);
    CHECK(tls != NULL);
    aco_tls_config_destroy(config);
    return aco_tls_stream(tls);
}

static void tells_protocol(aco_http_request_t *request, void *arg)
{
    char part[40];
    int n =
        snprintf(part, sizeof part, "%d.%d %s", request->major, request->minor, aco_stream_protocol(request->stream));
    (void)arg;
    CHECK_EQ(aco_http_reply(request, 200, NULL, part, (size_t)n), 0);
}

static void sends_back(aco_http_request_t *request, void *arg)
{
    size_t n;
    const char *body = aco_http_request_read_all(request, sizeof text, &n);
    (void)arg;
    CHECK(body != NULL);
    CHECK_EQ(aco_http_reply(request, 200, NULL, body, n), 0);
}

static void echoes_message(aco_http_request_t *request, void *arg)
{
    aco_websocket_t *socket = aco_websocket_accept(request, NULL);
    const char *data;
    size_t n;
    CHECK(socket != NULL);
    while (aco_websocket_receive(socket, &data, &n) > 0)
        CHECK_EQ(aco_websocket_send(socket, ACO_WEBSOCKET_TEXT, data, n), 0);
    (void)arg;
}

static const aco_http_route_t routes[] = {{"GET", "/", tells_protocol, NULL},
                                          {"POST", "/", streams, NULL},
                                          {"PUT", "/", sends_back, NULL},
                                          {"GET", "/socket", echoes_message, NULL},
                                          {NULL, NULL, NULL, NULL}};

static void check_http2(void)
{
    int id;
    h2_connect(&client, connect_with("http/1.1,h2"));
    CHECK_TEXT("ALPN", aco_stream_protocol(client.stream), "h2");
    id = h2_request(&client, "GET", "/", NULL, 0);
    h2_await(&client, id);
    CHECK_TEXT("the version", h2_reply(&client, id)->body, "2.0 h2");
    memset(text, 'x', sizeof text);
    id = h2_request(&client, "POST", "/", text, sizeof text);
    h2_await(&client, id);
    CHECK_EQ(h2_reply(&client, id)->n, sizeof text);
    CHECK(memcmp(h2_reply(&client, id)->body, text, sizeof text) == 0);
    h2_close(&client);
}

static void check_http1(const char *protocols, const char *wanted)
{
    static const char question[] = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    aco_stream_t *stream = connect_with(protocols);
    char answer[400];
    ssize_t n;
    CHECK_EQ(aco_stream_write_all(stream, question, sizeof question - 1), (ssize_t)sizeof question - 1);
    n = aco_stream_read_exactly(stream, answer, sizeof answer - 1);
    CHECK(n > 0);
    answer[n > 0 ? n : 0] = 0;
    CHECK(strstr(answer, wanted) != NULL);
    aco_stream_close(stream);
}

/* ---- The library's client ---- */

static char url[64];

static void check_client(aco_http_client_t *http, const char *wanted)
{
    char part[40] = "";
    aco_http_response_t *r = aco_http_get(http, url);
    CHECK(r != NULL);
    CHECK_EQ(r->major, wanted[0] - '0');
    CHECK(aco_http_response_read(r, part, sizeof part - 1) > 0);
    CHECK_TEXT("the version", part, wanted);
    aco_http_response_end(r);
}

static void check_bodies(aco_http_client_t *http)
{
    static char part[70000];
    aco_http_call_t call = {.method = "PUT", .url = url, .body = text, .length = sizeof text};
    aco_http_response_t *r = aco_http_call(http, &call);
    size_t all = 0;
    CHECK(r != NULL);
    for (ssize_t n; (n = aco_http_response_read(r, part, sizeof part)) > 0; all += (size_t)n)
        CHECK(memcmp(part, text + all, (size_t)n) == 0);
    CHECK_EQ(all, sizeof text);
    aco_http_response_end(r);
}

/* A WebSocket needs HTTP/1.1, for which `open` gets another configuration, or a connection of HTTP/2 that is there. */
static void check_websocket(aco_http_client_t *http, int fits)
{
    aco_websocket_t *socket;
    const char *data;
    size_t n;
    char at[64];
    snprintf(at, sizeof at, "wss://localhost:%s/socket", stage.port);
    socket = aco_websocket_connect(http, at, NULL, 0, NULL);
    CHECK_EQ(socket != NULL, fits);
    if (!socket) {
        CHECK_EQ(errno, EPROTONOSUPPORT);
        return;
    }
    CHECK_EQ(aco_websocket_send(socket, ACO_WEBSOCKET_TEXT, "abc", 3), 0);
    CHECK_EQ(aco_websocket_receive(socket, &data, &n), ACO_WEBSOCKET_TEXT);
    CHECK_EQ(n, 3);
    aco_websocket_end(socket);
}

static void check_clients(void)
{
    aco_tls_config_t *both = configure(0, "h2,http/1.1"), *old = configure(0, "http/1.1");
    aco_http_client_options_t options = {.open = aco_tls_http_connect, .open_arg = both};
    aco_http_client_t *http = aco_http_client_new(&options);
    CHECK(http != NULL);
    snprintf(url, sizeof url, "https://localhost:%s/", stage.port);
    check_websocket(http, 0);
    for (int i = 0; i < 3; i++)
        check_client(http, "2.0 h2");
    check_bodies(http);
    check_websocket(http, 1);
    aco_http_client_destroy(http);
    options.open_http1_arg = old;
    http = aco_http_client_new(&options);
    CHECK(http != NULL);
    check_websocket(http, 1);
    check_client(http, "2.0 h2");
    check_websocket(http, 1);
    check_client(http, "2.0 h2");
    aco_http_client_destroy(http);
    options.open_arg = old;
    http = aco_http_client_new(&options);
    CHECK(http != NULL);
    for (int i = 0; i < 3; i++)
        check_client(http, "1.1 http/1.1");
    check_bodies(http);
    aco_http_client_destroy(http);
    aco_tls_config_destroy(both);
    aco_tls_config_destroy(old);
}

static void *alpn_chooses(void *arg)
{
    aco_tls_config_t *config = configure(ACO_TLS_SERVER, "h2,http/1.1");
    stage.server.open = aco_tls_http_accept;
    stage.server.open_arg = config;
    start(&stage, routes);
    CHECK(aco_http_has_http2());
    check_http2();
    check_http1("http/1.1", "1.1 http/1.1");
    check_http1(NULL, "1.1 ");
    check_clients();
    stop(&stage);
    aco_tls_config_destroy(config);
    return arg;
}

/* ---- A full server ---- */

static int fetch_status(const char *protocols)
{
    aco_tls_config_t *config = configure(0, protocols);
    aco_http_client_options_t options = {.open = aco_tls_http_connect, .open_arg = config};
    aco_http_client_t *http = aco_http_client_new(&options);
    aco_http_response_t *r = aco_http_get(http, url);
    int status = r ? r->status : -errno;
    aco_http_response_end(r);
    aco_http_client_destroy(http);
    aco_tls_config_destroy(config);
    return status;
}

/* What a refused connection gets by its version; who asks for nothing after the handshake has head_time. */
static void *full_servers_refuse(void *arg)
{
    aco_tls_config_t *config = configure(ACO_TLS_SERVER, "h2,http/1.1");
    static const char *const protocols[] = {"h2", "http/1.1", NULL};
    aco_stream_t *served, *silent;
    char answer[200];
    stage.server = (aco_http_server_options_t){.open = aco_tls_http_accept, .open_arg = config};
    stage.server.max_connections = stage.server.max_refused = 1;
    stage.server.idle_time = -1;
    start(&stage, routes);
    snprintf(url, sizeof url, "https://localhost:%s/", stage.port);
    served = connect_with("http/1.1");
    CHECK_EQ(aco_stream_write_all(served, GET(""), sizeof GET("") - 1), (ssize_t)sizeof GET("") - 1);
    CHECK(aco_stream_read(served, answer, sizeof answer) > 0);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(fetch_status(protocols[i % 3]), 503);
    aco_stream_close(served);
    stop(&stage);
    stage.server.head_time = 200 * ACO_MILLISECOND; /* also for the handshakes */
    start(&stage, routes);
    served = connect_with("http/1.1");
    for (int i = 0; i < 3; i++) {
        silent = connect_with(protocols[i]);
        while (aco_stream_read(silent, answer, sizeof answer) > 0) /* HTTP/2: its settings */
            continue;
        aco_stream_close(silent);
    }
    aco_stream_close(served);
    stop(&stage);
    aco_tls_config_destroy(config);
    return arg;
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    make_certificate(&self, "self", &(how_t){.names = "DNS:localhost"});
    run_task(warms_up, NULL);
    run_task(alpn_chooses, NULL);
    run_task(full_servers_refuse, NULL);
    free_certificate(&self);
    return check_result("http2_tls");
}
