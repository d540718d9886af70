/* The thread that serves the pages: it begins by a call, or by the environment when the library is loaded. */
#define _GNU_SOURCE
#include "base/reserved.h"
#include "debug/debug_server.h"
#include "debug/live.h"
#include "debug/metrics.h"
#include "debug/pages.h"
#include "os/os.h"
#include "system/own_thread.h"
#include "system/system.h"

#include "aco/detail/for_libraries.h"
#include "aco/detail/inspect.h"
#include "aco/scope.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { HOST_SIZE = 128, PORT_SIZE = 16, TASK_STACK = 128 << 10, DRAIN_MS = 100 };

static const char serve_call[] = "aco_debug_serve";

typedef enum server_state { IS_STOPPED, IS_STARTING, IS_OPEN, IS_STOPPING, HAS_FAILED } server_state_t;

static pthread_mutex_t server_lock = PTHREAD_MUTEX_INITIALIZER; /* protects all below */
static pthread_cond_t server_changed = PTHREAD_COND_INITIALIZER;
static server_state_t state;
static pthread_t thread;
static int has_atfork; /* a child leaves it to its parent */
static char host[HOST_SIZE], port[PORT_SIZE];
static int is_public, listener = -1, server_error, open_port;
static aco_scope_t *scope; /* around the server; NULL: none */
static int is_by_environment; /* nobody waits for the thread: it says itself how it began */

const char aco__debug_environment;

/* ---- The thread ---- */

static void set_state(server_state_t to)
{
    aco__system.pthread_mutex_lock(&server_lock);
    state = to;
    aco__system.pthread_cond_broadcast(&server_changed);
    aco__system.pthread_mutex_unlock(&server_lock);
}

/* The thread serves, or it does not and ends. */
static void has_begun(int error)
{
    if (is_by_environment && error) {
        aco__service_warn("ACO_DEBUG", "%s", strerror(error));
    } else if (is_by_environment) {
        aco__service_warn("ACO_DEBUG", "http://%s:%d/debug/pprof/", strchr(host, ':') ? "[::1]" : host, open_port);
    }
    server_error = error;
    set_state(error ? HAS_FAILED : IS_OPEN);
}

/* The port of the listener. */
static int port_of(int fd)
{
    char text[ACO_IO_ADDRESS_SIZE];
    const char *colon = aco_io_local_address(fd, text, sizeof text) == 0 ? strrchr(text, ':') : NULL;
    return colon ? (int)strtol(colon + 1, NULL, 10) : 0;
}

ACO__SWITCHES static void *serve_pages(void *unused)
{
    /* Who has gone needs no profile, and others wait for it. */
    static const aco_http_middleware_t all[] = {
        {aco__debug_check_host, NULL}, {aco_http_end_with_client, NULL}, {NULL, NULL}};
    static const aco_options_t task = {.name = "acorn_debug", .stack_size = TASK_STACK};
    static const aco_http_route_t first_page[] = {{"GET", "/", aco__live_page, NULL}, {NULL, NULL, NULL, NULL}};
    static const aco_http_group_t groups[] = {{first_page, NULL}, {NULL, NULL}};
    aco_http_server_options_t options = {.routes = aco__debug_routes(),
                                         .groups = groups,
                                         .max_connections = 32,
                                         .max_body = 256 << 10,
                                         .drain_time = DRAIN_MS * ACO_MILLISECOND,
                                         .drain_idle_time = 1,
                                         .task = &task};
    aco_scope_t whole;
    options.middleware = is_public ? all + 1 : all;
    if (aco_scope_begin(&whole, ACO_FOREVER) != 0) {
        int error = errno;
        aco__system.close(listener);
        listener = -1;
        has_begun(error);
        return unused;
    }
    aco__system.pthread_mutex_lock(&server_lock);
    scope = &whole;
    aco__system.pthread_mutex_unlock(&server_lock);
    has_begun(0);
    (void)aco_http_serve(listener, &options);
    aco__system.pthread_mutex_lock(&server_lock);
    scope = NULL;
    listener = -1; /* aco_http_serve() has closed it */
    aco__system.pthread_mutex_unlock(&server_lock);
    (void)aco_scope_end(&whole);
    return unused;
}

static void *serves(void *unused)
{
    static const aco_options_t of_task = {.name = "acorn_debug", .stack_size = TASK_STACK};
    aco_t *task;
    int error;
    (void)aco__system.prctl(PR_SET_NAME, "acorn_debug", 0L, 0L, 0L); /* for the page, ps and perf */
    listener = aco_io_listen("tcp", host, port, NULL);
    error = errno;
    open_port = listener < 0 ? 0 : port_of(listener);
    task = listener < 0 || !aco_scheduler_open() ? NULL : aco_spawn(serve_pages, NULL, &of_task);
    if (!task) {
        error = listener < 0 ? error : ENOMEM;
        if (listener >= 0)
            aco__system.close(listener);
        listener = -1;
        has_begun(error);
        return unused;
    }
    (void)aco_detach(task);
    (void)aco_run();
    (void)aco_scheduler_close();
    return unused;
}

/* ---- Calls ---- */

/* Takes "127.0.0.1:6060" or "[::1]:6060" apart. 0, or -1. */
static int take_address(const char *address)
{
    const char *colon = address ? strrchr(address, ':') : NULL;
    size_t n = colon ? (size_t)(colon - address) : 0;
    if (!n || n >= HOST_SIZE || !colon[1] || strlen(colon + 1) >= PORT_SIZE)
        return -1;
    if (address[0] == '[' && address[n - 1] == ']') {
        address++;
        n -= 2;
    }
    memcpy(host, address, n);
    host[n] = 0;
    if (strcmp(host, "localhost") == 0)
        memcpy(host, "127.0.0.1", sizeof "127.0.0.1"); /* aco_io_listen() looks up no names */
    memcpy(port, colon + 1, strlen(colon + 1) + 1);
    return 0;
}

/* A child has no such thread. Its copy of the listener would keep the port: clients would wait for ever. */
static void leave_to_parent(void)
{
    const pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
    const pthread_cond_t free_cond = PTHREAD_COND_INITIALIZER;
    if ((state == IS_STARTING || state == IS_OPEN) && listener >= 0) /* a server that stops may have closed it */
        aco__system.close(listener);
    listener = -1;
    state = IS_STOPPED;
    scope = NULL;
    server_lock = free_lock; /* another thread may have held it */
    server_changed = free_cond;
}

/* A thread that the environment began has failed: nobody has waited for it. The caller has the lock. */
static void join_failed(void)
{
    if (state != HAS_FAILED)
        return;
    aco__system.pthread_join(thread, NULL);
    state = IS_STOPPED;
}

/* The caller has the lock. The port, or -1 and errno; 0 and more: the thread says what came of it. */
static int start_server(const char *address, const aco_debug_options_t *options, int by_environment)
{
    int error;
    join_failed();
    if (state != IS_STOPPED)
        return aco__service_fail(EBUSY, serve_call, "the pages are served already");
    if (options && ACO__RESERVED_IS_SET(options))
        return aco__service_fail(EINVAL, serve_call, "a reserved option is not 0");
    if (take_address(address) != 0)
        return aco__service_fail(EINVAL, serve_call, "the address is not of the form HOST:PORT");
    is_public = options && options->is_public;
    if (!is_public && !aco__debug_is_loopback(host))
        return aco__service_fail(EACCES, serve_call, "the address is no loopback address: is_public allows it");
    if (aco__inspect_on() != 0)
        return -1;
    aco__metrics_count_http();
    if (!has_atfork)
        has_atfork = pthread_atfork(NULL, NULL, leave_to_parent) == 0;
    is_by_environment = by_environment;
    state = IS_STARTING;
    error = aco__own_thread(&thread, SIGPROF, serves, NULL); /* it is in profiles */
    if (error) {
        state = IS_STOPPED;
        return aco__service_fail(error, serve_call, "no thread");
    }
    if (by_environment)
        return 0; /* the thread says its port, or what went wrong */
    while (state == IS_STARTING)
        aco__system.pthread_cond_wait(&server_changed, &server_lock);
    if (state == IS_OPEN)
        return open_port;
    join_failed();
    return aco__service_fail(server_error, serve_call, strerror(server_error));
}

static int serve(const char *address, const aco_debug_options_t *options, int by_environment)
{
    int result, error;
    aco__system.pthread_mutex_lock(&server_lock);
    result = start_server(address, options, by_environment);
    error = errno;
    aco__system.pthread_mutex_unlock(&server_lock);
    errno = error;
    return result;
}

int aco_debug_serve(const char *address, const aco_debug_options_t *options)
{
    return serve(address, options, 0);
}

const aco_http_route_t *aco_debug_routes(void)
{
    return aco__debug_routes();
}

void aco_debug_stop(void)
{
    int is_ours;
    aco__system.pthread_mutex_lock(&server_lock);
    while (state == IS_STARTING)
        aco__system.pthread_cond_wait(&server_changed, &server_lock);
    join_failed();
    is_ours = state == IS_OPEN;
    if (is_ours)
        state = IS_STOPPING;
    if (is_ours && scope)
        (void)aco_scope_cancel(scope);
    while (!is_ours && state == IS_STOPPING) /* another thread stops it */
        aco__system.pthread_cond_wait(&server_changed, &server_lock);
    aco__system.pthread_mutex_unlock(&server_lock);
    if (!is_ours)
        return;
    aco__system.pthread_join(thread, NULL);
    set_state(IS_STOPPED);
}

/* ---- The environment ---- */

/* Does not wait: dlopen() may run it with the loader's lock held, which the new thread needs. */
static __attribute__((constructor)) void serve_by_environment(void)
{
    const char *address = getenv("ACO_DEBUG");
    if (!address || !*address)
        return;
    if (serve(address, NULL, 1) < 0)
        aco__service_warn("ACO_DEBUG", "%s", aco_error_message());
}
