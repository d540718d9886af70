/* Servers: a task for each connection, and routes.
 *
 * The server's own task accepts. Another one, the keeper, has the group of the connections, which the end of a scope
 * around the server must not end at once: their requests get time to end. The keeper also sends the replies to
 * pipelined requests that wait for the reply of a handler that waits.
 *
 * The end: nothing that the system has received is dropped. What waits to be accepted is accepted (backlog.c), an idle
 * connection is closed only after a last look, and a reply that ends a connection says so. Clients that use a
 * connection all the time begin their next request within moments of a reply, which may have gone out before the
 * server was stopped: therefore idle connections stay open for a while. */
#define _GNU_SOURCE
#include "http/backlog.h"
#include "http/failure.h"
#include "http/incoming.h"
#include "http/link.h"
#include "http/outgoing.h"
#include "http/reply.h"
#include "http/request.h"
#include "http/server.h"
#include "http/text.h"
#include "http/websocket_internal.h"

#include "aco/detail/descriptors.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { LINGER_BYTES = 1 << 20, LINGER_MS = 1000, DRAIN_IDLE_MS = 500 };
/* What an idle connection does: waits for a request; makes its stream; either, in the time that it has at the end. */
enum { AWAITS = 1, OPENS, ENDS };

/* ---- Exchanges ---- */

static aco__http_exchange_t *new_exchange(aco__http_server_t *server)
{
    aco__http_exchange_t *x = server->spare;
    size_t headers = (size_t)server->options.max_headers * sizeof(aco_http_header_t);
    size_t sz = sizeof *x + headers + HTTP_ARENA + HTTP_OUT;
    if (aco_likely(x != NULL)) {
        server->spare = x->next;
        return x;
    }
    x = aco__service_allocate(&sz, "aco_http_serve");
    if (!x)
        return NULL;
    x->sz = sz;
    x->blocks = NULL;
    x->head.headers = (aco_http_header_t *)(void *)(x + 1);
    x->head.most = (size_t)server->options.max_headers;
    return x;
}

/* Begins a request: all but what stays, the headers' memory and the size. */
static void reset(aco__http_connection_t *c)
{
    aco__http_exchange_t *x = c->x;
    aco_http_header_t *headers = x->head.headers;
    size_t most = x->head.most;
    ACO__ASSERT(!x->blocks && !c->in_handler && !c->place_unflushed); /* nothing is left of the last request */
    memset(&x->is, 0, sizeof x->is);
    memset(&x->head, 0, sizeof x->head);
    x->head.headers = headers;
    x->head.most = most;
    x->at = (char *)(headers + most);
    x->end = x->at + HTTP_ARENA;
    x->fields_n = x->fields_room = x->param_count = x->allow_count = 0;
    x->has_begun = x->may_continue = x->is_head = x->will_close = x->is_aborted = 0;
    x->websocket = NULL;
    x->all = NULL;
    x->all_n = x->all_room = 0;
    x->is.method = x->is.target = x->is.path = x->is.query = x->is.host = "";
    x->is.fd = c->link.fd;
    x->is.began = aco_now();
    aco__http_body_begin(&c->outgoing, 0, 0, 0);
}

/* 0, or -1 and errno. */
static int take_exchange(aco__http_connection_t *c)
{
    if (!c->x) {
        c->x = new_exchange(c->server);
        if (!c->x)
            return -1;
        c->x->connection = c;
        aco__http_parse_by(&c->incoming, &c->x->parser, HTTP_REQUEST);
        c->link.out = (char *)(c->x->head.headers + c->x->head.most) + HTTP_ARENA;
    }
    reset(c);
    return 0;
}

static void give_exchange(aco__http_connection_t *c)
{
    if (!c->x)
        return;
    ACO__ASSERT(!c->x->blocks && !c->x->websocket && !c->place_unflushed); /* the keeper sends of its output */
    c->link.out = NULL;
    c->x->next = c->server->spare;
    c->server->spare = c->x;
    c->x = NULL;
}

/* ---- Routes ---- */

static void add_param(aco__http_exchange_t *x, const char *name, size_t name_n, const char *value)
{
    ACO__ASSERT(x->param_count < HTTP_PARAMS);
    x->params[x->param_count].name = name;
    x->params[x->param_count].name_n = name_n;
    x->params[x->param_count++].value = value;
}

/* Whether a path fits a route's, and its parts that have names. 1, 0; -1 and errno. */
static int fits(aco__http_exchange_t *x, const char *pattern)
{
    const char *path = x->is.path;
    x->param_count = 0;
    while (*pattern) {
        size_t name_n = *pattern == '{' ? strcspn(pattern, "}") : 0, n;
        char *value;
        if (*pattern == '*' && !pattern[1]) {
            add_param(x, "*", 1, path);
            return 1;
        }
        if (!name_n) {
            if (*pattern++ != *path++)
                return 0;
            continue;
        }
        n = strcspn(path, "/");
        value = n ? aco_http_request_allocate(&x->is, n + 1) : NULL;
        if (!value)
            return n ? -1 : 0;
        *aco__http_put(value, path, n) = 0;
        add_param(x, pattern + 1, name_n - 1, value);
        path += n;
        pattern += name_n + 1;
    }
    return !*path;
}

static int takes_method(const char *wanted, const aco__http_exchange_t *x)
{
    return !wanted || strcmp(wanted, x->is.method) == 0 || (x->is_head && strcmp(wanted, "GET") == 0);
}

/* Calls the handler of the first route that fits. 0; or the status to answer. */
ACO__SWITCHES static int call_handler(aco__http_exchange_t *x)
{
    const aco_http_route_t *route = x->connection->server->options.routes;
    for (; route && route->path; route++) {
        int fit = fits(x, route->path);
        if (fit < 0)
            return 500;
        if (!fit)
            continue;
        if (takes_method(route->method, x)) {
            route->handler(&x->is, route->arg);
            return 0;
        }
        if (x->allow_count < sizeof x->allow / sizeof x->allow[0])
            x->allow[x->allow_count++] = route->method;
    }
    return x->allow_count ? 405 : 404;
}

static void add_allow(aco__http_exchange_t *x)
{
    char text[128];
    size_t n = 0;
    for (size_t i = 0; i < x->allow_count; i++) {
        int has_head = strcmp(x->allow[i], "GET") == 0;
        int part = snprintf(text + n, sizeof text - n, "%s%s%s", i ? ", " : "", x->allow[i], has_head ? ", HEAD" : "");
        if (part < 0 || (size_t)part >= sizeof text - n)
            break;
        n += (size_t)part;
    }
    text[n] = 0;
    (void)aco_http_reply_header(&x->is, "Allow", text);
}

/* ---- Output of earlier replies, while a handler runs ---- */

static void unlist_unflushed(aco__http_connection_t *c)
{
    if (!c->place_unflushed)
        return;
    ACO__ASSERT(*c->place_unflushed == c);
    ACO__ASSERT(!c->next_unflushed || c->next_unflushed->place_unflushed == &c->next_unflushed);
    *c->place_unflushed = c->next_unflushed;
    if (c->next_unflushed)
        c->next_unflushed->place_unflushed = c->place_unflushed;
    c->place_unflushed = NULL;
}

static void list_unflushed(aco__http_connection_t *c)
{
    aco__http_server_t *server = c->server;
    ACO__ASSERT(!c->place_unflushed && !c->link.transport);
    c->next_unflushed = server->unflushed;
    if (c->next_unflushed)
        c->next_unflushed->place_unflushed = &c->next_unflushed;
    c->place_unflushed = &server->unflushed;
    server->unflushed = c;
    (void)aco_unpark(server->keeper);
}

static void free_server(aco__http_server_t *server)
{
    ACO__ASSERT(!server->first && !server->unflushed);
    while (server->spare) {
        aco__http_exchange_t *x = server->spare;
        server->spare = x->next;
        aco__service_free(x, x->sz);
    }
    aco__service_free(server, server->sz);
}

/* The keeper's turn comes when the handlers wait. */
ACO__SWITCHES static void *keep(void *arg)
{
    aco__http_server_t *server = arg;
    aco_scope_t shield;
    if (server->is_left) {
        free_server(server);
        return NULL;
    }
    (void)aco_shield_begin(&shield, ACO_FOREVER); /* a set of threads may be cancelled with all its tasks */
    aco_group_begin(&server->group, ACO_KEEP_GOING);
    aco_event_set(&server->group_has_begun);
    server->group.limit = (size_t)server->options.max_connections;
    while (!server->is_ending) {
        (void)aco_park("an HTTP server");
        while (server->unflushed) {
            aco__http_connection_t *c = server->unflushed;
            ACO__ASSERT(c->in_handler); /* else its own task sends */
            unlist_unflushed(c);
            aco__http_try_send(&c->link);
            aco__io_spend("an HTTP server", NULL); /* there may be thousands of them */
        }
    }
    (void)aco_group_end(&server->group);
    (void)aco_scope_end(&shield);
    return NULL;
}

/* ---- Connections ---- */

/* Once, if there was an error. */
ACO__SWITCHES static void report(aco__http_connection_t *c, int error, const aco_http_request_t *request)
{
    aco_http_failure_t failure = {ACO_HTTP_FAILED, error, c->link.fd, NULL, request};
    if (!error || c->is_reported)
        return;
    c->is_reported = 1;
    aco__http_report(c->server, &failure);
}

/* Reads a head. 0; a status with which to refuse it; -1: there is none. */
ACO__SWITCHES static int read_head(aco__http_connection_t *c, const char *location)
{
    aco__http_incoming_t *in = &c->incoming;
    size_t most = (size_t)c->server->options.max_head;
    aco_scope_t scope;
    int parsed = aco__http_parse_head(in), status = 0;
    if (parsed == 0) {
        if (aco_scope_begin_at(&scope, aco_after(c->server->options.head_time), location) != 0)
            return -1;
        while (parsed == 0 && aco__http_head_size(in) <= most && status == 0) {
            ssize_t n = aco__http_more_head(in, location);
            if (n > 0)
                parsed = aco__http_parse_head(in);
            else
                status = n < 0 && scope.error == ETIMEDOUT && c->x->head.target ? 408 : -1;
            if (status < 0)
                c->error = n < 0 ? errno : ECONNRESET;
        }
        (void)aco_scope_end(&scope);
    }
    if (status)
        return status;
    if (parsed < 0)
        return c->x->head.refusal;
    if (aco__http_head_size(in) > most)
        return !c->x->head.count || c->x->head.target_end > c->link.in.buffer + c->link.in.begin + most ? 414 : 431;
    return aco__http_understand(c->x);
}

/* Reads what a handler left of the body, if it is not much. Whether the connection can go on. */
ACO__SWITCHES static int discard_body(aco__http_connection_t *c, const char *location)
{
    aco__http_exchange_t *x = c->x;
    uint64_t limit = c->incoming.head->body + HTTP_DISCARDED;
    if (x->may_continue || x->is.length > HTTP_DISCARDED)
        return 0;
    while (!c->incoming.has_all) {
        if (c->incoming.body_error || c->incoming.head->body > limit ||
            aco__http_skip_body(&c->incoming, "aco_http_serve", location) < 0)
            return 0;
    }
    return 1;
}

static int status_of_body(int error)
{
    return error == EFBIG ? 413 : error == EBADMSG ? 400 : error == ETIMEDOUT ? 408 : 500;
}

/* Ends the reply, if it is whole. A handler whose end the length does not prove may have been cancelled. */
ACO__SWITCHES static void end_reply(aco__http_connection_t *c, const char *location)
{
    if (c->outgoing.left < 0 && !c->outgoing.is_bodiless && aco_check_cancelled() != 0)
        c->x->is_aborted = 1;
    if (!c->x->is_aborted && aco__http_end_body(&c->outgoing, location) == 0)
        return;
    (void)aco__http_send(&c->link, NULL, 0, 0, location);
    if (!c->link.error && aco_check_cancelled() != 0)
        c->link.error = errno;
    c->link.is_broken = 1;
}

/* Answers a request whose head is there. */
ACO__SWITCHES static void handle(aco__http_connection_t *c, const char *location)
{
    aco__http_exchange_t *x = c->x;
    int status;
    ACO__ASSERT(!c->is_idle && !c->in_handler && c->incoming.has_head && !x->has_begun);
    if (c->link.out_n && c->link.transport)
        (void)aco__http_send(&c->link, NULL, 0, 0, location);
    else if (c->link.out_n)
        list_unflushed(c);
    c->in_handler = 1;
    status = call_handler(x);
    c->in_handler = 0;
    unlist_unflushed(c);
    if (x->websocket) {
        aco__http_end_websocket(x, location);
        x->is_aborted = 0; /* its last frame tells how it ended */
    }
    if (!status && !x->has_begun && aco_check_cancelled() != 0)
        report(c, errno, &x->is);
    if (!status && !x->has_begun)
        status = status_of_body(c->incoming.body_error ? c->incoming.body_error : c->incoming.read_error);
    if (status && !x->has_begun && !c->link.is_broken) {
        if (status == 405)
            add_allow(x);
        (void)aco__http_answer(x, status, location);
    }
    if (x->has_begun)
        end_reply(c, location);
}

ACO__SWITCHES static void log_exchange(aco__http_exchange_t *x)
{
    const aco_http_server_t *options = &x->connection->server->options;
    report(x->connection, aco__http_error_of(x->connection), &x->is);
    if (options->log)
        options->log(&x->is, options->log_arg);
    if (x->blocks)
        aco__http_free_blocks(x);
}

/* After a reply that ends the connection although the client may still send: bytes that arrive at a closed socket would
 * make the system drop what the client has not read of the reply. */
ACO__SWITCHES static void linger(aco__http_connection_t *c, const char *location)
{
    aco_io_reader_t *in = &c->link.in;
    aco_scope_t scope;
    size_t left = LINGER_BYTES;
    if (aco__http_is_cut(&c->outgoing) || !in->buffer ||
        aco_scope_begin_at(&scope, aco_after(LINGER_MS * ACO_MILLISECOND), location) != 0)
        return;
    if (aco__http_link_shutdown(&c->link, location) == 0)
        for (ssize_t n = 1; n > 0 && left > in->size; left -= n > 0 ? (size_t)n : 0)
            n = aco__http_link_read(&c->link, in->buffer, in->size, location);
    (void)aco_scope_end(&scope);
}

/* Whether the connection goes on. Not inline: an idle connection holds the frames of what calls it. */
ACO__SWITCHES static __attribute__((noinline)) int serve_request(aco__http_connection_t *c, const char *location)
{
    aco__http_incoming_t *in = &c->incoming;
    int status;
    if (take_exchange(c) != 0)
        return 0;
    aco__http_message_begin(in, &c->x->head);
    status = read_head(c, location);
    if (status < 0)
        return 0;
    if (status > 0) {
        in->is_persistent = 0;
        if (aco__http_answer(c->x, status, location) == 0 && aco__http_end_body(&c->outgoing, location) == 0)
            (void)aco__http_send(&c->link, NULL, 0, 0, location);
        log_exchange(c->x);
        linger(c, location);
        return 0;
    }
    handle(c, location);
    if (c->link.is_broken || !c->x->has_begun) {
        log_exchange(c->x);
        return 0;
    }
    if (!in->has_all && (c->x->will_close || !discard_body(c, location))) {
        (void)aco__http_send(&c->link, NULL, 0, 0, location);
        log_exchange(c->x);
        linger(c, location);
        return 0;
    }
    log_exchange(c->x);
    ACO__ASSERT(c->outgoing.left == 0); /* the reply is whole */
    aco__http_message_end(in);
    return !c->x->will_close;
}

/* While nothing is requested: for this time at most; when the server ends, for its time for that, which begins anew: a
 * connection may have got its turn only now. 0, or -1. */
static int begin_idle(aco__http_connection_t *c, int how, int64_t limit, const char *location)
{
    const aco__http_server_t *server = c->server;
    ACO__ASSERT(!c->is_idle && !c->in_handler && !c->x);
    if (server->is_ending && server->options.drain_idle_time < limit)
        limit = server->options.drain_idle_time;
    if (aco_scope_begin_at(&c->idle, aco_after(limit), location) != 0)
        return -1;
    c->is_idle = (unsigned char)(server->is_ending ? ENDS : how);
    return 0;
}

static void end_idle(aco__http_connection_t *c)
{
    ACO__ASSERT(c->is_idle);
    c->is_idle = 0;
    (void)aco_scope_end(&c->idle);
}

/* Waits for a request without holding buffers; again when the server ends, for another time. 0, or -1. */
ACO__SWITCHES static int await_request(aco__http_connection_t *c, const char *location)
{
    ssize_t n;
    if (c->link.out_n && aco__http_send(&c->link, NULL, 0, 0, location) != 0)
        return -1;
    ACO__ASSERT(!c->link.out_n); /* its memory goes */
    give_exchange(c);
    do {
        if (begin_idle(c, AWAITS, c->server->options.idle_time, location) != 0)
            return -1;
        n = aco__http_await(&c->link, !c->incoming.has_all, location);
        end_idle(c);
    } while (n < 0 && c->idle.error == ECANCELED);
    return n > 0 ? 0 : -1;
}

/* Makes the stream on the descriptor. 0, or -1. */
ACO__SWITCHES static int open_stream(aco__http_connection_t *c, const char *location)
{
    const aco_http_server_t *options = &c->server->options;
    aco_http_failure_t failure = {ACO_HTTP_HANDSHAKE, 0, -1, NULL, NULL};
    if (begin_idle(c, OPENS, options->head_time, location) != 0)
        return -1;
    errno = 0;
    c->link.stream = options->open(c->link.fd, &c->link.transport, options->open_arg);
    failure.error = c->idle.error ? ETIMEDOUT : errno;
    end_idle(c);
    if (c->link.stream)
        return 0;
    c->link.transport = NULL;
    c->link.fd = -1;
    aco__http_report(c->server, &failure);
    return -1;
}

/* Whether the peer has sent more, or may still do so, although the connection ends: nobody has told it before the last
 * reply. */
static int may_send(aco__http_connection_t *c)
{
    aco__http_link_t *link = &c->link;
    return link->in.end > link->in.begin || c->incoming.may_switch ||
           (c->incoming.is_persistent && c->x && c->x->will_close) || aco__http_has_input(link);
}

ACO__SWITCHES static void serve_connection(aco__http_connection_t *c, const char *location)
{
    if (c->server->options.open && open_stream(c, location) != 0)
        return;
    do {
        if (c->link.in.begin != c->link.in.end)
            aco__io_spend("an HTTP connection", location); /* requests that have come at once */
        else if (await_request(c, location) != 0)
            return;
    } while (serve_request(c, location));
    if (c->link.out_n)
        (void)aco__http_send(&c->link, NULL, 0, 0, location);
    if (may_send(c))
        linger(c, location);
}

/* A connection that has no task yet. */
typedef struct newcomer {
    aco__http_server_t *server;
    int fd;
} newcomer_t;

/* The end of the connection's task, also by aco_exit(). Nothing waits. */
static void end_connection(void *arg)
{
    aco__http_connection_t *c = arg;
    size_t sz = c->sz;
    if (c->is_idle) /* aco_exit() in `open` */
        end_idle(c);
    if (c->in_handler) { /* the same there: the reply lacks something */
        aco__http_try_send(&c->link); /* earlier replies */
        c->link.is_broken = 1;
        if (c->x->websocket)
            aco__http_end_websocket(c->x, NULL);
    }
    unlist_unflushed(c);
    if (c->x && c->x->blocks)
        aco__http_free_blocks(c->x);
    give_exchange(c);
    ACO__ASSERT(!c->is_idle && !c->place_unflushed); /* its memory goes */
    ACO__ASSERT(*c->place == c && (!c->next || c->next->place == &c->next));
    *c->place = c->next;
    if (c->next)
        c->next->place = c->place;
    aco__http_link_close(&c->link, aco__http_is_cut(&c->outgoing));
    if (sz)
        aco__service_free(c, sz);
}

ACO__SWITCHES static void run_connection(aco__http_connection_t *c, newcomer_t *newcomer, size_t sz)
{
    aco__http_server_t *server = newcomer->server;
    memset(c, 0, sizeof *c);
    c->sz = sz;
    aco__http_link_open(&c->link, newcomer->fd, (size_t)server->options.max_head + HTTP_BEHIND_HEAD);
    aco__service_free(newcomer, sizeof *newcomer);
    aco__http_incoming_open(&c->incoming, &c->link);
    c->outgoing.link = &c->link;
    c->incoming.most_body = server->options.max_body < 0 ? UINT64_MAX : (uint64_t)server->options.max_body;
    c->link.write_time = server->options.write_time;
    c->incoming.body_time = server->options.body_time;
    c->server = server;
    c->next = server->first;
    c->place = &server->first;
    if (c->next)
        c->next->place = &c->next;
    server->first = c;
    if (aco_defer(end_connection, c) != 0) {
        end_connection(c);
        return;
    }
    serve_connection(c, "an HTTP connection");
    report(c, c->link.error ? c->link.error : c->error, NULL);
    (void)aco_defer_pop(1);
}

/* The record is on the stack: the first page, which an idle connection holds anyway, has room for it. */
ACO__SWITCHES static void *connection(void *newcomer)
{
    aco__http_connection_t record;
    run_connection(&record, newcomer, 0);
    return NULL;
}

/* Others use the record while a share stack has another task's frames. */
ACO__SWITCHES static void *connection_on_share_stack(void *arg)
{
    newcomer_t *newcomer = arg;
    size_t sz = sizeof(aco__http_connection_t);
    aco__http_connection_t *record = aco__service_allocate(&sz, "aco_http_serve");
    if (!record) {
        (void)aco_io_close(newcomer->fd);
        aco__service_free(newcomer, sizeof *newcomer);
        return NULL;
    }
    run_connection(record, newcomer, sz);
    return NULL;
}

/* The connection that was taken last gets its task. 0; or -1: a scope has ended, and it has none yet. */
ACO__SWITCHES static int add_connection(aco__http_server_t *server, const char *location)
{
    aco_http_failure_t failure = {ACO_HTTP_FAILED, 0, server->taken, NULL, NULL};
    const aco_options_t *task = server->options.task;
    aco_function_t run = task && task->stack ? connection_on_share_stack : connection;
    size_t sz = sizeof(newcomer_t);
    newcomer_t *newcomer = aco__service_allocate(&sz, "aco_http_serve");
    if (newcomer) {
        newcomer->server = server;
        newcomer->fd = server->taken;
        server->taken = -1;
        if (aco_group_spawn_at(&server->group, run, newcomer, task, NULL, location))
            return 0;
        server->taken = newcomer->fd;
        aco__service_free(newcomer, sizeof *newcomer);
    }
    failure.error = errno;
    if (aco_check_cancelled() != 0)
        return -1;
    aco__http_report(server, &failure);
    (void)aco_io_close(server->taken);
    server->taken = -1;
    return 0;
}

/* ---- Serving ---- */

static void set_time(int64_t *time, int64_t seconds)
{
    *time = *time < 0 ? ACO_FOREVER : *time ? *time : seconds * ACO_SECOND;
}

/* Fills in the defaults. 0, or -1 and errno. */
static int set_options(aco_http_server_t *options)
{
    options->max_head = options->max_head ? options->max_head : 15 << 10;
    options->max_headers = options->max_headers ? options->max_headers : 100;
    options->max_connections = options->max_connections < 0 ? 0
                               : options->max_connections   ? options->max_connections
                                                            : 10000;
    options->max_body = options->max_body ? options->max_body : 1 << 20;
    set_time(&options->head_time, 10);
    set_time(&options->idle_time, 60);
    set_time(&options->body_time, 60);
    set_time(&options->write_time, 30);
    set_time(&options->drain_time, 10);
    if (!options->drain_idle_time)
        options->drain_idle_time = DRAIN_IDLE_MS * ACO_MILLISECOND;
    set_time(&options->drain_idle_time, 0);
    if (options->max_head < 64 || options->max_head > 1 << 20 || options->max_headers < 1 ||
        options->max_headers > 1000)
        return aco__service_fail(EINVAL, "aco_http_serve", "the limits of headers");
    for (const aco_http_route_t *route = options->routes; route && route->path; route++) {
        size_t params = 0;
        for (const char *at = route->path; *at; at++) {
            if (*at == '{' && (!strchr(at, '}') || strchr(at, '}') == at + 1))
                return aco__service_fail(EINVAL, "aco_http_serve", "a route has a name without an end");
            params += *at == '{' || *at == '*';
        }
        if (params > HTTP_PARAMS || !route->handler)
            return aco__service_fail(EINVAL, "aco_http_serve", "a route has no handler, or more than 8 names");
    }
    return 0;
}

/* Until that fails, with errno. */
ACO__SWITCHES static void accept_all(aco__http_server_t *server, int listener, const char *location)
{
    do {
        if (server->taken < 0)
            server->taken = aco_io_accept_at(listener, location);
    } while (server->taken >= 0 && add_connection(server, location) == 0);
}

/* After the scope around the server has ended. The errno with which accepting ended. */
ACO__SWITCHES static int accept_until(aco__http_server_t *server, int listener, int64_t deadline, const char *location)
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

/* Ends this wait of all connections. */
static void end_waits(aco__http_server_t *server, int how)
{
    ACO__NO_SWITCH_BEGIN(); /* connections would leave the list */
    for (aco__http_connection_t *c = server->first; c; c = c->next)
        if (c->is_idle == how)
            (void)aco_scope_cancel(&c->idle);
    ACO__NO_SWITCH_END();
}

/* The connection that was taken last gets its place: if there are too many, some must end first. Handshakes have the
 * time for idle connections. */
ACO__SWITCHES static void place_taken(aco__http_server_t *server, int64_t until, const char *location)
{
    (void)accept_until(server, -1, server->idle_until < until ? server->idle_until : until, location);
    if (server->taken < 0)
        return;
    end_waits(server, OPENS);
    (void)accept_until(server, -1, until, location);
}

/* Accepts all that waits, unless it is left to others, and nothing can switch between the last failure to accept and
 * the return. If no descriptor is free, some must become so first: not for a Unix socket, which is always readable
 * after its shutdown. */
ACO__SWITCHES static void empty_backlog(aco__http_server_t *server, int listener, int64_t until, const char *location)
{
    int is_own = !server->options.shares_listener, error = 0;
    int64_t wait = is_own ? aco__http_close_door(listener) : 0;
    if (is_own)
        error = accept_until(server, listener, aco_after(wait), location);
    for (;;) {
        int64_t deadline = 0;
        if (server->taken >= 0)
            place_taken(server, until, location);
        else if (wait && error == ETIMEDOUT && aco__http_is_readable(listener) && aco_now() < until)
            deadline = aco_after(wait);
        else
            return;
        if (server->taken >= 0)
            break;
        if (is_own)
            error = accept_until(server, listener, deadline, location);
    }
    (void)aco_io_close(server->taken);
}

/* Lets requests end in their time, and handshakes in that for idle connections; then cancels them. */
ACO__SWITCHES static void drain(aco__http_server_t *server, int64_t until, const char *location)
{
    int64_t idle_until = server->idle_until < until ? server->idle_until : until;
    aco_scope_t shield;
    (void)aco_unpark(server->keeper);
    (void)aco_shield_begin_at(&shield, ACO_FOREVER, location);
    if (aco_join_until_at(server->keeper, NULL, idle_until, location) != 0) {
        end_waits(server, OPENS);
        if (aco_join_until_at(server->keeper, NULL, until, location) != 0) {
            (void)aco_scope_cancel(&server->group.scope);
            (void)aco_join_at(server->keeper, NULL, location);
        }
    }
    (void)aco_scope_end(&shield);
}

/* Accepts until the server is stopped, and ends it. The errno with which accepting ended. */
ACO__SWITCHES static int serve(aco__http_server_t *server, int listener, const char *location)
{
    const aco_http_server_t *options = &server->options;
    int64_t until;
    int error, was_stopped;
    accept_all(server, listener, location);
    error = errno;
    was_stopped = aco_check_cancelled() != 0;
    server->is_draining = 1;
    if (was_stopped && options->lame_time > 0)
        (void)accept_until(server, listener, aco_after(options->lame_time), location);
    server->is_ending = 1;
    until = aco_after(options->drain_time);
    server->idle_until = aco_after(options->drain_idle_time);
    end_waits(server, AWAITS);
    if (was_stopped)
        empty_backlog(server, listener, until, location);
    (void)aco_io_close(listener);
    drain(server, until, location);
    return error;
}

/* Makes the keeper and waits until it has begun the group: a caller that cannot wait is noticed here. 0, or -1 and
 * errno; then *server is NULL, if the keeper will free it. */
ACO__SWITCHES static int begin_keeping(aco__http_server_t **begun, const char *location)
{
    aco__http_server_t *server = *begun;
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

int aco_http_serve_at(int listener, const aco_http_server_t *options, const char *location)
{
    static const char call[] = "aco_http_serve";
    aco__http_server_t *server = NULL;
    size_t sz = sizeof *server;
    int error;
    if (listener < 0)
        return -1; /* with what aco_io_listen() left */
    if (!options)
        (void)aco__service_fail(EINVAL, call, "the pointer to the server is NULL");
    else if ((server = aco__service_allocate(&sz, call)) != NULL) {
        memset(server, 0, sizeof *server);
        server->sz = sz;
        server->options = *options;
        server->taken = -1;
    }
    if (server && set_options(&server->options) == 0 && begin_keeping(&server, location) == 0) {
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

int aco_http_is_draining(const aco_http_request_t *request)
{
    return aco__http_exchange_of(request)->connection->server->is_draining;
}

int aco_http_connection_error(const aco_http_request_t *request)
{
    return aco__http_error_of(aco__http_exchange_of(request)->connection);
}
