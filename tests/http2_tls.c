/* ALPN chooses the version of HTTP (include/aco/http.h, aco/tls.h): on one port, clients that offer "h2" get HTTP/2,
 * the others HTTP/1.1. Large bodies pass TLS's records. */
#define _GNU_SOURCE
#include "http2_client.h"
#include "tls_certificates.h"

#include <aco/tls.h>
#include <signal.h>

static certificate_t self;
static stage_t stage;
static h2_client_t client;
static char text[200000];

static aco_tls_config_t *configure(unsigned flags, const char *protocols)
{
    aco_tls_config_t *config = aco_tls_config_new(flags);
    CHECK(config != NULL);
    if (flags & ACO_TLS_SERVER)
        CHECK_EQ(aco_tls_config_certificate(config, self.file, self.key_file), 0);
    else
        CHECK_EQ(aco_tls_config_trust(config, self.file), 0);
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

static const aco_http_route_t routes[] = {
    {"GET", "/", tells_protocol, NULL}, {"POST", "/", streams, NULL}, {NULL, NULL, NULL, NULL}};

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
    free_certificate(&self);
    return check_result("http2_tls");
}
