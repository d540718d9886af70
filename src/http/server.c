/* Servers: they accept connections, and end them.
 *
 * The server's own task accepts. Another one, the keeper, has the group of the connections, which the end of a scope
 * around the server must not end at once: their requests get time to end. The keeper also sends the replies to
 * pipelined requests that wait for the reply of a handler that waits.
 *
 * The end: nothing that the system has received is dropped. What waits to be accepted is accepted (backlog.c), an idle
 * connection is closed only after a last look, and a reply that ends a connection says so. Clients that use a
 * connection all the time begin their next request within moments of a reply, which may have gone out before the
 * server was stopped: therefore idle connections stay open for a while. */
#include "base/reserved.h"
#include "http/backlog.h"
#include "http/balance.h"
#include "http/drain.h"
#include "http/failure.h"
#include "http/http1_server.h"
#include "http/link.h"
#include "http/per_address.h"
#include "http/route.h"
#include "http/server.h"
#include "http/server_connection.h"

#include <string.h>

enum { DRAIN_IDLE_MS = 500 };

static void free_server(aco_http_server_t *server)
{
    ACO__ASSERT(!server->first && !server->unflushed && !server->drains);
    aco__http_free_spare(server);
    aco__http_free_drains(server);
    aco__http_addresses_free(server->addresses);
    aco__http_free_member(server->member);
    aco__service_free(server, server->sz);
}

/* The keeper's turn comes when the handlers wait. */
ACO__SWITCHES static void *keep(void *arg)
{
    aco_http_server_t *server = arg;
    aco_scope_t shield;
    if (server->is_left) {
        free_server(server);
        return NULL;
    }
    (void)aco_shield_begin(&shield, ACO_FOREVER); /* a set of threads may be cancelled with all its tasks */
    aco_group_begin(&server->group, ACO_KEEP_GOING);
    aco_event_set(&server->group_has_begun);
    server->group.limit = (size_t)server->options.max_connections;
    if (server->group.limit)
        server->group.limit += (size_t)server->options.max_refused;
    while (!server->is_ending) {
        (void)aco_park("an HTTP server");
        aco__http_send_unflushed(server);
    }
    (void)aco_group_end(&server->group);
    (void)aco_scope_end(&shield);
    return NULL;
}

/* ---- Serving ---- */

/* The connection that was taken last has no task and gets none. */
static void drop_taken(aco_http_server_t *server)
{
    (void)aco_io_close(server->taken);
    aco__http_address_leave(server->taken_address);
    server->taken = -1;
    server->taken_address = NULL;
}

/* The connection that was taken last gets its task. 0; or -1: a scope has ended, and it has none yet. */
ACO__SWITCHES static int add_connection(aco_http_server_t *server, const char *location)
{
    aco_http_failure_t failure = {ACO_HTTP_FAILED, 0, server->taken, NULL, NULL};
    if (server->addresses && !server->taken_address &&
        aco__http_address_enter(server->addresses, server->taken, 0, &server->taken_address) != 0) {
        failure.kind = ACO_HTTP_REFUSED;
        failure.error = ECONNREFUSED;
    } else if (aco__http_connect(server, server->taken, server->taken_address, NULL, location) == 0) {
        server->taken = -1;
        server->taken_address = NULL;
        return 0;
    } else {
        failure.error = errno;
        if (aco_check_cancelled() != 0)
            return -1;
    }
    aco__http_report(server, &failure);
    drop_taken(server);
    return 0;
}

static void set_time(int64_t *time, int64_t seconds)
{
    *time = *time < 0 ? ACO_FOREVER : *time ? *time : seconds * ACO_SECOND;
}

/* HTTP/2. */
static void set_streams(aco_http_server_options_t *options)
{
    options->max_streams = options->max_streams ? options->max_streams : 100;
    options->max_streams_in_all = options->max_streams_in_all ? options->max_streams_in_all : 10000;
    options->stream_window = options->stream_window ? options->stream_window : 65536;
    options->connection_window = options->connection_window ? options->connection_window : 1 << 20;
    options->max_buffered = options->max_buffered ? options->max_buffered : 64 << 20;
}

/* Fills in the defaults. 0, or -1 and errno. */
static int set_options(aco_http_server_options_t *options, const char *call)
{
    options->max_head = options->max_head ? options->max_head : 15 << 10;
    options->max_headers = options->max_headers ? options->max_headers : 100;
    options->max_connections = options->max_connections < 0 ? 0
                               : options->max_connections   ? options->max_connections
                                                            : 10000;
    options->max_refused = options->max_refused < 0 ? 0 : options->max_refused;
    options->max_body = options->max_body ? options->max_body : 1 << 20;
    set_time(&options->head_time, 10);
    set_time(&options->idle_time, 60);
    set_time(&options->body_time, 60);
    set_time(&options->write_time, 30);
    options->write_rate = options->write_rate < 0 ? 0 : options->write_rate ? options->write_rate : 240;
    options->body_rate = options->body_rate < 0 ? 0 : options->body_rate;
    set_time(&options->drain_time, 10);
    set_streams(options);
    if (!options->drain_idle_time)
        options->drain_idle_time = DRAIN_IDLE_MS * ACO_MILLISECOND;
    set_time(&options->drain_idle_time, 0);
    if (options->max_head < 64 || options->max_head > 1 << 20 || options->max_headers < 1 ||
        options->max_headers > 1000)
        return aco__service_fail(EINVAL, call, "the limits of headers");
    if (options->stream_window < 1024 || options->connection_window < 65535)
        return aco__service_fail(EINVAL, call, "a window");
    if (ACO__RESERVED_IS_SET(options))
        return aco__service_fail(EINVAL, call, "a reserved option is not 0");
    return aco__http_check_routes(options->routes, options->groups, call);
}

/* What the options ask for, of a server with a listener. 0, or -1 and errno. */
static int set_up(aco_http_server_t *server, const char *call)
{
    if (set_options(&server->options, call) != 0)
        return -1;
    if (server->options.max_per_address > 0)
        server->addresses = aco__http_addresses_new((unsigned)server->options.max_per_address);
    return server->options.max_per_address > 0 && !server->addresses ? -1 : 0;
}

/* Until that fails, with errno. */
ACO__SWITCHES static void accept_all(aco_http_server_t *server, int listener, const char *location)
{
    do {
        if (server->taken < 0)
            server->taken = aco_io_accept_at(listener, location);
    } while (server->taken >= 0 && add_connection(server, location) == 0);
}

/* After the scope around the server has ended. The errno with which accepting ended. */
ACO__SWITCHES static int accept_until(aco_http_server_t *server, int listener, int64_t deadline, const char *location)
{
    aco_scope_t shield;
    int error;
    if (aco_shield_begin_at(&shield, deadline, location) != 0)
        return errno;
    accept_all(server, listener, location);
    error = errno;
    (void)aco_scope_end(&shield);
    return error;
}

/* The connection that was taken last gets its place: if there are too many, some must end first. Handshakes have the
 * time for idle connections. */
ACO__SWITCHES static void place_taken(aco_http_server_t *server, int64_t until, const char *location)
{
    (void)accept_until(server, -1, server->idle_until < until ? server->idle_until : until, location);
    if (server->taken < 0)
        return;
    aco__http_end_waits(server, HTTP_OPENS);
    (void)accept_until(server, -1, until, location);
}

/* Accepts all that waits, unless it is left to others, and nothing can switch between the last failure to accept and
 * the return. If no descriptor is free, some must become so first. */
ACO__SWITCHES static void empty_backlog(aco_http_server_t *server, int listener, int64_t until, const char *location)
{
    int is_own = !aco_io_is_shared(listener), error = 0;
    int64_t wait = is_own ? aco__http_close_door(listener) : 0;
    if (is_own)
        error = accept_until(server, listener, aco_after(wait), location);
    for (;;) {
        int64_t deadline = 0;
        if (server->taken >= 0) {
            place_taken(server, until, location);
            if (server->taken >= 0)
                break;
        } else if (wait && error == ETIMEDOUT && aco_now() < until &&
                   aco__http_has_more(listener, &server->taken, &server->reserve)) {
            deadline = aco_after(wait);
        } else {
            return;
        }
        if (is_own)
            error = accept_until(server, listener, deadline, location);
    }
    drop_taken(server);
}

/* Lets requests end in their time, and handshakes in that for idle connections; then cancels them. */
ACO__SWITCHES static void drain(aco_http_server_t *server, int64_t until, const char *location)
{
    int64_t idle_until = server->idle_until < until ? server->idle_until : until;
    aco_scope_t shield;
    (void)aco_unpark(server->keeper);
    (void)aco_shield_begin_at(&shield, ACO_FOREVER, location);
    if (aco_join_until_at(server->keeper, NULL, idle_until, location) != 0) {
        aco__http_end_waits(server, HTTP_OPENS);
        if (aco_join_until_at(server->keeper, NULL, until, location) != 0) {
            (void)aco_scope_cancel(&server->group.scope);
            (void)aco_join_at(server->keeper, NULL, location);
        }
    }
    (void)aco_scope_end(&shield);
}

/* Accepts until the server is stopped, and ends it. The errno with which accepting ended. */
ACO__SWITCHES static int serve(aco_http_server_t *server, int listener, const char *location)
{
    const aco_http_server_options_t *options = &server->options;
    int64_t until;
    int error, was_stopped;
    server->reserve = aco__http_reserve(listener);
    if (!options->balance || aco__http_join_balance(server, aco__http_connect) == 0)
        accept_all(server, listener, location);
    error = errno;
    aco__http_leave_balance(server, location);
    was_stopped = aco_check_cancelled() != 0;
    server->is_draining = 1;
    aco__http_tell_drains(server);
    if (was_stopped && options->lame_time > 0)
        (void)accept_until(server, listener, aco_after(options->lame_time), location);
    server->is_ending = 1;
    until = aco_after(options->drain_time);
    server->idle_until = aco_after(options->drain_idle_time);
    aco__http_end_waits(server, HTTP_AWAITS);
    aco__http_tell_drains(server);
    if (was_stopped)
        empty_backlog(server, listener, until, location);
    (void)aco_io_close(listener);
    aco__http_give_reserve(&server->reserve);
    drain(server, until, location);
    return error;
}

/* Makes the keeper and waits until it has begun the group: a caller that cannot wait is noticed here. 0, or -1 and
 * errno; then *server is NULL, if the keeper will free it. */
ACO__SWITCHES static int begin_keeping(aco_http_server_t **begun, const char *location)
{
    aco_http_server_t *server = *begun;
    aco_scope_t shield;
    int failed;
    if (!aco_current_task())
        return aco__service_fail(EPERM, "aco_http_serve", "the caller is not a task");
    server->keeper = aco_spawn(keep, server, NULL);
    if (!server->keeper)
        return -1;
    failed = aco_shield_begin_at(&shield, ACO_FOREVER, location) != 0;
    if (!failed) {
        failed = aco_event_wait_at(&server->group_has_begun, location) != 0;
        (void)aco_scope_end(&shield);
    }
    if (!failed)
        return 0;
    server->is_left = 1; /* it has not run yet */
    *begun = NULL;
    (void)aco_detach(server->keeper);
    return -1;
}

/* A server with these options, which nobody has checked yet. NULL and errno. */
static aco_http_server_t *allocate_server(const aco_http_server_options_t *options, const char *call)
{
    size_t sz = sizeof(aco_http_server_t);
    aco_http_server_t *server = aco__service_new(&sz, call);
    if (!server)
        return NULL;
    server->sz = sz;
    if (options)
        server->options = *options;
    server->taken = -1;
    server->suspect_after = INT64_MAX;
    return server;
}

int aco_http_serve_at(int listener, const aco_http_server_options_t *options, const char *location)
{
    static const char call[] = "aco_http_serve";
    aco_http_server_t *server;
    int error;
    if (listener < 0)
        return -1; /* with what aco_io_listen() left */
    server = allocate_server(options, call);
    if (server && set_up(server, call) == 0 && begin_keeping(&server, location) == 0) {
        error = serve(server, listener, location);
    } else {
        error = errno;
        ACO__ASSERT(!server || !server->keeper); /* it would use the server */
        (void)aco_io_close(listener);
    }
    if (server)
        free_server(server);
    errno = error;
    return -1;
}

int aco_http_has_http2(void)
{
#ifdef ACO_CONFIG_HTTP2
    return 1;
#else
    return 0;
#endif
}

/* ---- Without a listener ---- */

aco_http_server_t *aco_http_server_new(const aco_http_server_options_t *options)
{
    static const char call[] = "aco_http_server_new";
    aco_http_server_t *server = allocate_server(options, call);
    if (server && set_options(&server->options, call) != 0) {
        free_server(server);
        return NULL;
    }
    if (server)
        server->options.open = NULL; /* the connections are streams already */
    return server;
}

void aco_http_server_stop(aco_http_server_t *server)
{
    server->is_draining = server->is_ending = 1;
    aco__http_end_waits(server, HTTP_AWAITS);
    aco__http_tell_drains(server);
}

void aco_http_server_destroy(aco_http_server_t *server)
{
    if (server)
        free_server(server);
}
