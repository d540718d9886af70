/* gRPC over TLS (include/aco/grpc.h, aco/tls.h): a channel asks for the target by name, also if it goes to an address
 * of it in turn, and fails if the server does not speak HTTP/2 or has no certificate of that name. */
#define _GNU_SOURCE
#include "grpc_tests.h"
#include "tls_certificates.h"

#include <aco/tls.h>
#include <signal.h>

static certificate_t self;
static stage_t stage;

static aco_tls_config_t *configure(unsigned flags, const char *protocols)
{
    aco_tls_config_t *config = configure_self_signed(&self, flags);
    CHECK_EQ(aco_tls_config_alpn(config, protocols), 0);
    return config;
}

/* Calls to this host, by a client that offers these protocols, end with this status. */
static void calls_end(const char *host, const char *protocols, int round_robin, int status)
{
    aco_tls_config_t *config = configure(0, protocols);
    const aco_grpc_channel_options_t options = {
        .open = aco_tls_http_connect, .open_arg = config, .round_robin = round_robin};
    char target[64];
    aco_grpc_channel_t *channel;
    snprintf(target, sizeof target, "%s:%s", host, stage.port);
    channel = aco_grpc_channel_new(target, &options);
    CHECK(channel != NULL);
    for (int i = 0; i < 3; i++) {
        aco_grpc_call_t *call = aco_grpc_call_new(channel, "/test.Test/Echo", NULL);
        const void *message;
        size_t n;
        if (aco_grpc_write_only(call, "hello", 5) == 0 && aco_grpc_read_only(call, &message, &n) == 0)
            CHECK(n == 5 && memcmp(message, "hello", 5) == 0);
        CHECK_EQ(aco_grpc_finish(call), status);
        aco_grpc_call_destroy(call);
    }
    aco_grpc_channel_destroy(channel);
    aco_tls_config_destroy(config);
}

static void *calls(void *arg)
{
    aco_tls_config_t *config = configure(ACO_TLS_SERVER, "h2,http/1.1");
    aco_grpc_server_t *server = aco_grpc_server_new(NULL);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Echo", echo, NULL), 0);
    stage.server.failed = ignores; /* clients that refuse the certificate */
    stage.server.open = aco_tls_http_accept;
    stage.server.open_arg = config;
    stage.server.groups = aco_grpc_server_groups(server);
    start(&stage, NULL);
    calls_end("localhost", "h2", 0, ACO_GRPC_OK);
    calls_end("localhost", "h2", 1, ACO_GRPC_OK);
    calls_end("127.0.0.1", "h2", 0, ACO_GRPC_UNAVAILABLE);
    calls_end("localhost", "http/1.1", 0, ACO_GRPC_UNAVAILABLE);
    stop(&stage);
    aco_grpc_server_destroy(server);
    aco_tls_config_destroy(config);
    return arg;
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    make_certificate(&self, "self", &(how_t){.names = "DNS:localhost"});
    run_task(warms_up, NULL);
    run_task(calls, NULL);
    free_certificate(&self);
    return check_result("grpc_tls");
}
