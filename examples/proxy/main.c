/* A reverse proxy: proxy [OPTIONS] HOST:PORT...
 *   -l PORT   where it listens (8080; 0: any)           -s PORT   of the status page, /metrics is beside it (8081)
 *   -t N      threads (1; 0: one for each processor)    -h PATH   what health checks ask for (/health)
 *   -c MS     between health checks (1000)              -T MS     for a backend to begin its answer (5000)
 *   -S MS     for its next part (30000)                 -R MS     for a request (60000)
 *   -d MS     that requests have after Ctrl-C (10000)
 *
 * Each thread has a listener, connections to the backends, and a task for each client. A request goes to the backend
 * with the fewest requests. If that fails before its answer has begun, another one is asked: always if it could not be
 * reached, else for idempotent methods only, and not with bodies beyond 64 KiB. An answer that breaks off in the middle
 * breaks off for the client, too. At most three backends are asked: the request may be what kills them. Without an
 * answer the client gets 503 (none could be reached), 504 (none began in time) or 502. Ctrl-C or SIGTERM: no connection
 * is accepted any more, requests may end. */
#define _GNU_SOURCE /* getopt() */
#include "proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

proxy_t proxy;

static char port[8] = "8080", status_port[8] = "8081";

/* Stores the port that was found. */
static int listen_on(char *at, size_t size, unsigned flags, const char *name)
{
    aco_io_options_t options = {.flags = flags};
    char address[ACO_IO_ADDRESS_SIZE];
    int fd = aco_io_listen("tcp", "127.0.0.1", at, &options);
    if (fd < 0 || aco_io_local_address(fd, address, sizeof address) != 0) {
        fprintf(stderr, "%s\n", aco_error_message());
        return -1;
    }
    if (name)
        fprintf(stderr, "%s on %s\n", name, address);
    snprintf(at, size, "%s", strrchr(address, ':') + 1);
    return fd;
}

/* Until the threads are stopped. */
static void serve_until_stop(int listener, const aco_http_route_t *routes)
{
    aco_http_server_options_t server = {.routes = routes, .max_body = -1, .drain_time = proxy.drain_time};
    aco_stop_t stop;
    aco_stop_begin(&stop, ACO_FOREVER);
    aco_http_serve(listener, &server);
    if (errno != ECANCELED)
        fprintf(stderr, "%s\n", aco_error_message());
    aco_stop_end(&stop);
}

static void *serve_status(void *listener)
{
    static const aco_http_route_t routes[] = {
        {"GET", "/", show_status, NULL}, {"GET", "/metrics", show_metrics, NULL}, {NULL, NULL, NULL, NULL}};
    serve_until_stop((int)(intptr_t)listener, routes);
    return NULL;
}

/* What only the first thread does. */
static void begin_others(aco_group_t *group, int listener)
{
    aco_group_begin(group, ACO_KEEP_GOING);
    if (listener < 0)
        return;
    aco_group_spawn(group, serve_status, (void *)(intptr_t)listener, NULL);
    for (int i = 0; i < proxy.count; i++)
        aco_group_spawn(group, check_backend, &proxy.backends[i], NULL);
}

static int listeners[2]; /* of the first thread: clients', and the status page's */

static void *serve(void *arg)
{
    static const aco_http_route_t routes[] = {{NULL, "/*", forward, NULL}, {NULL, NULL, NULL, NULL}};
    int is_first = aco_threads_index() == 0, listener = listeners[0];
    char same[sizeof port];
    aco_group_t others;
    (void)arg;
    memcpy(same, port, sizeof port);
    if (!is_first)
        listener = listen_on(same, sizeof same, ACO_IO_REUSEPORT, NULL);
    if (listener < 0 || forward_begin() != 0)
        return ACO_ERROR;
    begin_others(&others, is_first ? listeners[1] : -1);
    serve_until_stop(listener, routes);
    aco_scope_cancel(&others.scope);
    aco_group_end(&others);
    forward_end();
    return NULL;
}

static int usage(void)
{
    fprintf(stderr, "proxy [-l PORT] [-s PORT] [-t THREADS] [-h PATH] [-c MS] [-T MS] [-S MS] [-R MS] [-d MS] "
                    "HOST:PORT...\n");
    return 2;
}

static int64_t milliseconds(const char *text)
{
    return atoll(text) * ACO_MILLISECOND;
}

/* The number of threads, or -1. */
static int parse(int argc, char **argv)
{
    int threads = 1, option;
    proxy.health_path = "/health";
    proxy.check_interval = ACO_SECOND;
    proxy.try_time = 5 * ACO_SECOND;
    proxy.stall_time = 30 * ACO_SECOND;
    proxy.request_time = 60 * ACO_SECOND;
    proxy.drain_time = 10 * ACO_SECOND;
    while ((option = getopt(argc, argv, "l:s:t:h:c:T:S:R:d:")) != -1) {
        switch (option) {
        case 'l':
            snprintf(port, sizeof port, "%s", optarg);
            break;
        case 's':
            snprintf(status_port, sizeof status_port, "%s", optarg);
            break;
        case 't':
            threads = atoi(optarg);
            break;
        case 'h':
            proxy.health_path = optarg;
            break;
        case 'c':
            proxy.check_interval = milliseconds(optarg);
            break;
        case 'T':
            proxy.try_time = milliseconds(optarg);
            break;
        case 'S':
            proxy.stall_time = milliseconds(optarg);
            break;
        case 'R':
            proxy.request_time = milliseconds(optarg);
            break;
        case 'd':
            proxy.drain_time = milliseconds(optarg);
            break;
        default:
            return -1;
        }
    }
    for (; optind < argc && proxy.count < MOST_BACKENDS && strlen(argv[optind]) < 256; proxy.count++) {
        proxy.backends[proxy.count].address = argv[optind++];
        proxy.backends[proxy.count].is_up = 1; /* until something fails */
    }
    return optind == argc && proxy.count > 0 && threads >= 0 ? threads : -1;
}

int main(int argc, char **argv)
{
    aco_threads_options_t options = {0};
    int threads = parse(argc, argv), failed;
    if (threads < 0)
        return usage();
    proxy.began = aco_now();
    listeners[0] = listen_on(port, sizeof port, ACO_IO_REUSEPORT, "listening");
    listeners[1] = listen_on(status_port, sizeof status_port, 0, "status");
    if (listeners[0] < 0 || listeners[1] < 0)
        return 1;
    options.flags = ACO_THREADS_INTERRUPTIBLE;
    options.drain_ns = proxy.drain_time + ACO_SECOND; /* each server cancels what is left, before */
    failed = aco_threads_run(threads, serve, NULL, &options) != 0 && errno != EINTR;
    fprintf(stderr, "%s\n", failed ? aco_error_message() : "ended");
    return failed;
}
