/* TLS connections that move between the servers of two threads (aco_http_balance_t): between two requests, with what
 * OpenSSL knows of them. The clients are on a thread of their own. */
#define _GNU_SOURCE
#include <aco/http.h>
#include <aco/tls.h>
#include "threads_tests.h"
#include "tls_certificates.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static certificate_t self;
static aco_http_balance_t balance;
static aco_tls_config_t *serving, *asking;
static aco_threads_t *set;
static int ports[2], are_open, handshakes;

/* ---- The servers ---- */

static void reply_thread(aco_http_request_t *request, void *arg)
{
    char body[2] = {(char)('0' + aco_threads_index()), 0};
    (void)arg;
    CHECK(aco_tls_of_stream(request->stream) != NULL);
    CHECK_EQ(aco_http_reply(request, 200, "text/plain", body, 1), 0);
}

static void heavy(aco_http_request_t *request, void *arg)
{
    const int64_t until = aco_after(6 * ACO_MILLISECOND);
    while (aco_now() < until)
        sched_yield();
    reply_thread(request, arg);
}

static aco_stream_t *accepts(int fd, void *config)
{
    add(&handshakes, 1);
    return aco_tls_http_accept(fd, config);
}

static void *serves(void *arg)
{
    static const aco_http_route_t routes[] = {
        {"GET", "/", reply_thread, NULL}, {"GET", "/heavy", heavy, NULL}, {NULL, NULL, NULL, NULL}};
    const aco_http_server_options_t options = {.routes = routes,
                                               .balance = &balance,
                                               .open = accepts,
                                               .open_arg = serving,
                                               .drain_idle_time = 20 * ACO_MILLISECOND};
    int me = aco_threads_index(), listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    char address[ACO_IO_ADDRESS_SIZE];
    aco_stop_t stop;
    (void)arg;
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    ports[me] = atoi(strchr(address, ':') + 1);
    CHECK_EQ(aco_stop_begin(&stop, ACO_FOREVER), 0);
    if (me == 0)
        set = aco_threads_current();
    add(&are_open, 1);
    FAILS_WITH(aco_http_serve(listener, &options), ECANCELED);
    CHECK_EQ(aco_stop_end(&stop), 0);
    return NULL;
}

static void *runs(void *arg)
{
    CHECK_EQ(aco_threads_run(2, serves, arg, NULL), 0);
    return NULL;
}

/* ---- The clients: each has one connection ---- */

typedef struct call {
    aco_http_client_t *client;
    char url[64];
    int thread; /* that has answered */
} call_t;

static void *calls(void *arg)
{
    call_t *call = arg;
    char body[2] = "?";
    aco_http_response_t *response = aco_http_get(call->client, call->url);
    CHECK(response && response->status == 200 && aco_http_response_read(response, body, 1) == 1);
    aco_http_response_end(response);
    call->thread = body[0] - '0';
    return NULL;
}

static int call(aco_http_client_t *client, int port, const char *path)
{
    call_t call = {client, "", -1};
    aco_t *task;
    snprintf(call.url, sizeof call.url, "https://127.0.0.1:%d%s", port, path);
    CHECK((task = aco_spawn(calls, &call, NULL)) != NULL);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    return call.thread;
}

static void check_moves(void)
{
    const aco_http_client_options_t options = {.open = aco_tls_http_connect, .open_arg = asking};
    aco_http_client_t *stalling = aco_http_client_new(&options), *other = aco_http_client_new(&options),
                      *moving = aco_http_client_new(&options);
    int thread = 0;
    CHECK_EQ(call(other, ports[1], "/"), 1);
    CHECK_EQ(call(stalling, ports[0], "/"), 0);
    CHECK_EQ(call(moving, ports[0], "/"), 0);
    for (int i = 0; i < 30 && thread == 0; i++) {
        CHECK_EQ(call(stalling, ports[0], "/heavy"), 0);
        thread = call(moving, ports[0], "/");
    }
    CHECK_EQ(thread, 1);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(call(moving, ports[0], "/"), 1);
    CHECK_EQ(load(&handshakes), 3);
    aco_http_client_destroy(stalling);
    aco_http_client_destroy(other);
    aco_http_client_destroy(moving);
}

int main(void)
{
    pthread_t thread;
    signal(SIGPIPE, SIG_IGN);
    make_certificate(&self, "balance", &(how_t){.names = "IP:127.0.0.1"});
    serving = configure_self_signed(&self, ACO_TLS_SERVER);
    asking = configure_self_signed(&self, 0);
    CHECK_EQ(pthread_create(&thread, NULL, runs, NULL), 0);
    while (load(&are_open) < 2)
        sched_yield();
    check_moves();
    CHECK_EQ(aco_threads_stop(set), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(balance.moved >= 1 && !balance.aco__members);
    aco_tls_config_destroy(serving);
    aco_tls_config_destroy(asking);
    free_certificate(&self);
    return check_result("threads_https_balance");
}
