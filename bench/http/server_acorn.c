/* The server of bench-http: server_acorn PORT ROOT [CHAIN KEY]
 *   /hello, /4k, /1m   so many bytes of memory
 *   /files/NAME        ROOT/NAME
 *   /stall             computes for 100 ms
 *   /late              waits for 1 ms, then does the same
 *   /offload           has another thread do the same
 * With CHAIN and KEY it speaks TLS. The variable THREADS has the number of its threads, and SHARED puts connections on
 * a share stack. With BALANCED its threads balance their connections. With STOPS it ends at SIGTERM, for
 * ../http_stop.py. */
#include <aco/http.h>
#include <aco/offload.h>
#include <aco/threads.h>
#include <aco/tls.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char block[1 << 20];
static aco_tls_config_t *config;
static char port[8];
static const char *root;

static void hello(aco_http_request_t *request, void *arg)
{
    (void)arg;
    aco_http_reply(request, 200, "text/plain", "Hello, world", 12);
}

static void reply_bytes(aco_http_request_t *request, void *number)
{
    aco_http_reply(request, 200, "application/octet-stream", block, (size_t)(uintptr_t)number);
}

static void reply_file(aco_http_request_t *request, void *arg)
{
    (void)arg;
    aco_http_reply_file(request, root, aco_http_request_param(request, "*"));
}

static void *compute(void *arg)
{
    const int64_t until = aco_after(100 * ACO_MILLISECOND);
    while (aco_now() < until)
        ;
    return arg;
}

static void stall(aco_http_request_t *request, void *arg)
{
    compute(NULL);
    hello(request, arg);
}

static void stall_late(aco_http_request_t *request, void *arg)
{
    aco_sleep(ACO_MILLISECOND);
    stall(request, arg);
}

static void offload(aco_http_request_t *request, void *arg)
{
    aco_offload(compute, NULL, NULL, NULL);
    hello(request, arg);
}

static int listen_here(void)
{
    aco_io_options_t options = {.flags = ACO_IO_REUSEPORT};
    return aco_io_listen("tcp", "127.0.0.1", port, &options);
}

static void *serve_until_stopped(int listener, const aco_http_server_options_t *server)
{
    aco_stop_t stop;
    int error;
    aco_stop_begin(&stop, ACO_FOREVER);
    aco_http_serve(listener, server);
    error = errno;
    aco_stop_end(&stop);
    return error == ECANCELED ? NULL : ACO_ERROR;
}

static void *serve(void *listener)
{
    static const aco_http_route_t routes[] = {{"GET", "/hello", hello, NULL},
                                              {"GET", "/4k", reply_bytes, (void *)(uintptr_t)4096},
                                              {"GET", "/1m", reply_bytes, (void *)(uintptr_t)sizeof block},
                                              {"GET", "/files/*", reply_file, NULL},
                                              {"GET", "/stall", stall, NULL},
                                              {"GET", "/late", stall_late, NULL},
                                              {"GET", "/offload", offload, NULL},
                                              {NULL, NULL, NULL, NULL}};
    static aco_http_balance_t balance;
    aco_options_t how = {.stack = getenv("SHARED") ? aco_share_stack_new(0) : NULL};
    aco_http_server_options_t server = {.routes = routes, .task = &how};
    int is_first = aco_threads_index() <= 0;
    if (getenv("BALANCED"))
        server.balance = &balance;
    if (config) {
        server.open = aco_tls_http_accept;
        server.open_arg = config;
    }
    if (getenv("STOPS"))
        return serve_until_stopped(is_first ? (int)(intptr_t)listener : listen_here(), &server);
    aco_http_serve(is_first ? (int)(intptr_t)listener : listen_here(), &server);
    return fprintf(stderr, "%s\n", aco_error_message()), ACO_ERROR;
}

int main(int argc, char **argv)
{
    char address[ACO_IO_ADDRESS_SIZE];
    int threads = getenv("THREADS") ? atoi(getenv("THREADS")) : 1, listener;
    snprintf(port, sizeof port, "%s", argc > 1 ? argv[1] : "8080");
    root = argc > 2 ? argv[2] : ".";
    if (argc > 4) {
        config = aco_tls_config_new(ACO_TLS_SERVER);
        if (aco_http_has_http2())
            aco_tls_config_alpn(config, "h2,http/1.1");
        if (!config || aco_tls_config_certificate(config, argv[3], argv[4]) != 0)
            return fprintf(stderr, "%s\n", aco_error_message()), 1;
    }
    listener = listen_here();
    if (listener < 0 || aco_io_local_address(listener, address, sizeof address) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), 1;
    snprintf(port, sizeof port, "%s", strrchr(address, ':') + 1);
    fprintf(stderr, "listening on %s\n", address);
    if (threads > 1 || getenv("STOPS")) {
        aco_threads_options_t options = {.flags = getenv("STOPS") ? ACO_THREADS_INTERRUPTIBLE : 0,
                                         .drain_ns = 20 * ACO_SECOND};
        return aco_threads_run(threads, serve, (void *)(intptr_t)listener, &options) != 0;
    }
    return aco_spawn(serve, (void *)(intptr_t)listener, NULL) && aco_run() == 0 ? 0 : 1;
}
