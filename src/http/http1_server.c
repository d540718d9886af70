/* A server's connections: a task for each, which answers requests of HTTP/1 in order. */
#define _GNU_SOURCE
#include "http/balance.h"
#include "http/http1.h"
#include "http/http1_server.h"
#include "http/http2.h"
#include "http/per_address.h"
#include "http/server_connection.h"
#include "http/websocket_internal.h"

#include "aco/detail/descriptors.h"

#include <string.h>

enum { LINGER_BYTES = 1 << 20, LINGER_MS = 1000 };

/* A connection. Its link's output and what else a request needs is in memory that it has only meanwhile. */
typedef struct aco__http1_connection {
    aco__http_connection_t is;
    aco__at_end_t at_end; /* of its task, if the server has made that; else `ends` is NULL */
    aco__http1_t http; /* the stream of its exchange */
    aco__http_exchange_t *x; /* NULL: idle */
    struct aco__http1_connection *next_unflushed, **place_unflushed; /* place: NULL: not there */
    unsigned char in_handler;
    unsigned char is_placed; /* it came from another thread */
    unsigned char heavy; /* for how many requests it does not move: balance.h */
    unsigned char is_allocated; /* by itself; 0: it is on the stack */
    unsigned requests; /* that were handled, if they have a limit */
    const char **work; /* where its task's work stands; NULL: not known yet */
    int64_t ended; /* when the last request was, if it was observed; else 0 */
} aco__http1_connection_t;

/* What a request needs: */
typedef struct aco__http_workspace {
    aco__http_exchange_t x; /* first */
    llhttp_t parser;
    aco__http_head_t head;
    struct aco__http_workspace *next; /* that nobody uses */
    size_t sz; /* of this record and what follows it: headers, the request's memory, output */
} aco__http_workspace_t;

/* ---- Memory for requests ---- */

static aco__http_workspace_t *workspace_of(aco__http_exchange_t *x)
{
    return (aco__http_workspace_t *)(void *)x;
}

static aco__http_workspace_t *new_workspace(aco_http_server_t *server)
{
    aco__http_workspace_t *space = server->spare;
    size_t headers = (size_t)server->options.max_headers * sizeof(aco_http_header_t);
    size_t sz = sizeof *space + headers + HTTP_ARENA + HTTP_OUT;
    if (aco_likely(space != NULL)) {
        server->spare = space->next;
        return space;
    }
    space = aco__service_allocate(&sz, "aco_http_serve");
    if (!space)
        return NULL;
    space->sz = sz;
    space->x.server = server;
    space->x.version = &aco__http1_version;
    space->x.blocks = NULL;
    memset(&space->x.trailers, 0, sizeof space->x.trailers);
    space->head.headers = (aco_http_header_t *)(void *)(space + 1);
    space->head.most = (size_t)server->options.max_headers;
    return space;
}

void aco__http_free_spare(aco_http_server_t *server)
{
    while (server->spare) {
        aco__http_workspace_t *space = server->spare;
        server->spare = space->next;
        aco__service_free(space, space->sz);
    }
}

/* Begins a request. 0, or -1 and errno. */
static int begin_request(aco__http1_connection_t *c)
{
    aco__http1_t *h = &c->http;
    aco__http_workspace_t *space = c->x ? workspace_of(c->x) : new_workspace(c->is.server);
    char *arena;
    if (!space)
        return -1;
    ACO__ASSERT(!c->in_handler && !c->place_unflushed); /* nothing is left of the last request */
    arena = (char *)(space->head.headers + space->head.most);
    if (!c->x) {
        c->x = &space->x;
        c->x->stream = h;
        c->x->work_known = &c->work;
        aco__http_parse_by(&h->incoming, &space->parser, HTTP_REQUEST);
        h->incoming.trailers = &c->x->trailers;
        h->link.out = arena + HTTP_ARENA;
    }
    aco__http_request_begin(c->x, arena);
    c->x->is.fd = h->link.own.fd;
    c->x->is.stream = h->link.stream;
    h->incoming.may_continue = 0;
    aco__http_body_begin(&h->outgoing, 0, 0, 0);
    aco__http_message_begin(&h->incoming, &space->head);
    return 0;
}

static void give_workspace(aco__http1_connection_t *c)
{
    aco__http_workspace_t *space;
    if (!c->x)
        return;
    ACO__ASSERT(!c->x->blocks && !c->x->websocket && !c->place_unflushed); /* the keeper sends of its output */
    space = workspace_of(c->x);
    c->http.link.out = NULL;
    space->next = c->is.server->spare;
    c->is.server->spare = space;
    c->x = NULL;
}

/* ---- Output of earlier replies, while a handler runs ---- */

static void unlist_unflushed(aco__http1_connection_t *c)
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

static void list_unflushed(aco__http1_connection_t *c)
{
    aco_http_server_t *server = c->is.server;
    ACO__ASSERT(!c->place_unflushed && c->http.link.is_plain);
    c->next_unflushed = server->unflushed;
    if (c->next_unflushed)
        c->next_unflushed->place_unflushed = &c->next_unflushed;
    c->place_unflushed = &server->unflushed;
    server->unflushed = c;
    (void)aco_unpark(server->keeper);
}

void aco__http_send_unflushed(aco_http_server_t *server)
{
    while (server->unflushed) {
        aco__http1_connection_t *c = server->unflushed;
        ACO__ASSERT(c->in_handler); /* else its own task sends */
        unlist_unflushed(c);
        aco__http_try_send(&c->http.link);
        aco__io_spend("an HTTP server", NULL); /* there may be thousands of them */
    }
}

/* ---- Connections ---- */

/* Reads a head. 0; a status with which to refuse it; -1: there is none. */
ACO__SWITCHES static int read_head(aco__http1_connection_t *c, const char *location)
{
    aco__http_incoming_t *in = &c->http.incoming;
    const aco__http_head_t *head = in->head;
    size_t most = (size_t)c->is.server->options.max_head;
    aco_scope_t scope;
    int parsed = aco__http_parse_head(in), status = 0;
    if (parsed == 0) {
        if (aco_scope_begin_at(&scope, aco_after(c->is.server->options.head_time), location) != 0)
            return -1;
        while (parsed == 0 && aco__http_head_size(in) <= most && status == 0) {
            ssize_t n = aco__http_more_head(in, location);
            if (n > 0)
                parsed = aco__http_parse_head(in);
            else
                status = n < 0 && scope.error == ETIMEDOUT && head->target ? 408 : -1;
            if (status < 0)
                in->head_error = n < 0 ? errno : ECONNRESET;
        }
        (void)aco_scope_end(&scope);
    }
    if (status)
        return status;
    if (parsed < 0)
        return head->refusal;
    if (aco__http_head_size(in) > most)
        return !head->count || head->target_end > in->link->in.buffer + in->link->in.begin + most ? 414 : 431;
    return aco__http1_understand(c->x);
}

/* Reads what a handler left of the body, if it is not much. Whether the connection can go on. */
ACO__SWITCHES static int discard_body(aco__http1_connection_t *c, const char *location)
{
    aco__http_incoming_t *in = &c->http.incoming;
    uint64_t limit = in->head->body + HTTP_DISCARDED;
    if (in->may_continue || c->x->is.length > HTTP_DISCARDED)
        return 0;
    while (!in->has_all) {
        if (in->body_error || in->head->body > limit || aco__http_skip_body(in, "aco_http_serve", location) < 0)
            return 0;
    }
    return 1;
}

/* Ends the reply, if it is whole. A handler whose end the length does not prove may have been cancelled. */
ACO__SWITCHES static void end_reply(aco__http1_connection_t *c, const char *location)
{
    aco__http_outgoing_t *out = &c->http.outgoing;
    if (aco_unlikely(c->x->reply.encoder != NULL))
        aco__http_end_coding(c->x, location);
    else if (out->left < 0 && !out->is_bodiless && aco_check_cancelled() != 0)
        c->x->reply.is_aborted = 1;
    if (!c->x->reply.is_aborted &&
        aco__http_end_body_with(out, c->x->reply.trailers, c->x->reply.trailers_n, location) == 0)
        return;
    (void)aco__http_send(&c->http.link, NULL, 0, 0, location);
    if (!c->http.link.error && aco_check_cancelled() != 0)
        c->http.link.error = errno;
    c->http.link.is_broken = 1;
}

/* Answers a request whose head is there. */
ACO__SWITCHES static void handle(aco__http1_connection_t *c, const char *location)
{
    aco__http_exchange_t *x = c->x;
    aco__http_link_t *link = &c->http.link;
    const aco__http_incoming_t *in = &c->http.incoming;
    int status;
    ACO__ASSERT(!c->is.is_idle && !c->in_handler && in->has_head && !x->reply.has_begun);
    if (link->out_n && (!link->is_plain || !x->server->keeper))
        (void)aco__http_send(link, NULL, 0, 0, location);
    else if (link->out_n)
        list_unflushed(c);
    c->in_handler = 1;
    if (aco_unlikely(c->is.is_refused | x->server->measures))
        status = c->is.is_refused ? 503 : aco__http_measure_route(x, &c->heavy);
    else
        status = aco__http_call_route(x);
    c->in_handler = 0;
    unlist_unflushed(c);
    if (x->websocket) {
        aco__http_end_websocket(x, location);
        x->reply.is_aborted = 0; /* its last frame tells how it ended */
    }
    if (!status && !x->reply.has_begun && aco_check_cancelled() != 0)
        aco__http_report_once(&c->is, errno, &x->is);
    if (!status && !x->reply.has_begun)
        status = aco__http_status_of_body(in->body_error ? in->body_error : in->read_error);
    if (status && !x->reply.has_begun && !link->is_broken && !x->client_left)
        aco__http_refuse(x, status, location);
    if (x->reply.has_begun && !x->reply.is_taken)
        end_reply(c, location);
}

ACO__SWITCHES static void log_exchange(aco__http1_connection_t *c)
{
    const aco_http_server_options_t *options = &c->is.server->options;
    aco__http_report_once(&c->is, aco__http1_error_of(&c->http), &c->x->is);
    c->ended = aco__http_observe(&c->x->is);
    if (options->log)
        options->log(&c->x->is, options->log_arg);
    aco__http_request_end(c->x);
}

/* After a reply that ends the connection although the client may still send: bytes that arrive at a closed socket would
 * make the system drop what the client has not read of the reply. */
ACO__SWITCHES static void linger(aco__http1_connection_t *c, const char *location)
{
    aco_io_reader_t *in = &c->http.link.in;
    aco_scope_t scope;
    size_t left = LINGER_BYTES;
    if (aco__http_is_cut(&c->http.outgoing) || !in->buffer ||
        aco_scope_begin_at(&scope, aco_after(LINGER_MS * ACO_MILLISECOND), location) != 0)
        return;
    if (aco__http_link_shutdown(&c->http.link, location) == 0)
        for (ssize_t n = 1; n > 0 && left > in->size; left -= n > 0 ? (size_t)n : 0)
            n = aco__http_link_read(&c->http.link, in->buffer, in->size, location);
    (void)aco_scope_end(&scope);
}

/* Whether its first bytes are those of HTTP/2, which a client sends that knows the server. */
static int has_preface(const aco__http1_connection_t *c)
{
#ifdef ACO_CONFIG_HTTP2
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const aco_io_reader_t *in = &c->http.link.in;
    return c->is.server->options.max_streams > 0 && !*aco_stream_protocol(c->http.link.stream) &&
           in->end - in->begin >= sizeof preface - 1 &&
           memcmp(in->buffer + in->begin, preface, sizeof preface - 1) == 0;
#else
    (void)c;
    return 0;
#endif
}

/* Whether TLS has agreed on it. */
static int has_agreed_on_http2(const aco__http1_connection_t *c)
{
#ifdef ACO_CONFIG_HTTP2
    const aco__http_link_t *link = &c->http.link;
    return !link->is_plain && c->is.server->options.max_streams > 0 &&
           strcmp(aco_stream_protocol(link->stream), "h2") == 0;
#else
    (void)c;
    return 0;
#endif
}

ACO__SWITCHES static void serve_http2(aco__http1_connection_t *c, const char *location)
{
    aco__http2_serve(&c->is, location);
    linger(c, location);
}

/* Whether the connection goes on. Not inline: an idle connection holds the frames of what calls it. */
ACO__SWITCHES static __attribute__((noinline)) int serve_request(aco__http1_connection_t *c, const char *location)
{
    aco__http_incoming_t *in = &c->http.incoming;
    int status, is_first = !in->has_all;
    if (begin_request(c) != 0)
        return 0;
    status = read_head(c, location);
    if (status < 0)
        return 0;
    if (status == 505 && is_first && has_preface(c)) {
        aco__http_request_end(c->x);
        give_workspace(c);
        serve_http2(c, location);
        return 0;
    }
    if (status > 0) {
        in->is_persistent = 0;
        in->body_error = status == 413 ? EFBIG : EBADMSG; /* nobody knows where it is */
        aco__http_refuse(c->x, status, location);
        if (c->x->reply.has_begun)
            end_reply(c, location);
        (void)aco__http_send(&c->http.link, NULL, 0, 0, location);
        log_exchange(c);
        linger(c, location);
        return 0;
    }
    if ((c->is.server->options.max_requests > 0 && ++c->requests >= (unsigned)c->is.server->options.max_requests) ||
        c->is.is_refused)
        c->x->reply.will_close = 1;
    handle(c, location);
    if (c->http.link.is_broken || !c->x->reply.has_begun) {
        log_exchange(c);
        return 0;
    }
    if (!in->has_all && (c->x->reply.will_close || !discard_body(c, location))) {
        (void)aco__http_send(&c->http.link, NULL, 0, 0, location);
        log_exchange(c);
        linger(c, location);
        return 0;
    }
    log_exchange(c);
    ACO__ASSERT(c->http.outgoing.left == 0); /* the reply is whole */
    aco__http_message_end(in);
    return !c->x->reply.will_close;
}

static int can_move(const aco__http_link_t *link)
{
    const aco_stream_functions_t *functions = link->stream->functions;
    return !link->has_half && (link->is_plain || (functions->can_move && functions->can_move(link->stream)));
}

/* After a request that began then. Goes to another thread's server, if this thread has stalled. Whether it has. */
ACO__SWITCHES static __attribute__((noinline)) int leave_thread(aco__http1_connection_t *c, int64_t began,
                                                                int64_t until, const char *location)
{
    aco__http_member_t *member = c->is.server->member;
    const aco__http_link_t *link = &c->http.link;
    int64_t now = until == ACO_FOREVER ? aco_now() : until - c->is.server->options.idle_time;
    ACO__ASSERT(member && !c->x);
    if (now - began > HTTP_STALL)
        aco__http_suspect(member, now);
    if (!aco__http_has_stalled(member, now) || c->heavy || c->is.is_refused || !can_move(link))
        return 0;
    return aco__http_move(&c->is, c->requests, location);
}

/* Waits for bytes without holding buffers; again when the server ends, for another time. 0, or -1. */
ACO__SWITCHES static int await_bytes(aco__http1_connection_t *c, int64_t *until, const char *location)
{
    ssize_t n;
    if (c->http.link.out_n && aco__http_send(&c->http.link, NULL, 0, 0, location) != 0)
        return -1;
    ACO__ASSERT(!c->http.link.out_n && !c->in_handler); /* its memory goes */
    if (c->x) {
        const int64_t began = c->x->is.began;
        give_workspace(c);
        if (aco_unlikely(*until - began > c->is.server->suspect_after) && leave_thread(c, began, *until, location))
            return -1;
    }
    do {
        if (aco__http_begin_idle(&c->is, HTTP_AWAITS, until, location) != 0)
            return -1;
        n = aco__http_await(&c->http.link, !c->http.incoming.has_all, location);
        aco__http_end_idle(&c->is);
    } while (n < 0 && c->is.idle.error == ECANCELED);
    return n > 0 ? 0 : -1;
}

/* Waits for a request. Empty lines are none: they neither prolong the wait, nor keep other tasks from running. 0, or
 * -1. */
ACO__SWITCHES static int await_request(aco__http1_connection_t *c, const char *location)
{
    const aco_http_server_options_t *options = &c->is.server->options;
    const int64_t time = c->is.is_refused ? options->head_time : options->idle_time;
    int64_t until = aco_unlikely(c->ended != 0) && time < ACO_FOREVER - c->ended ? c->ended + time : aco_after(time);
    while (await_bytes(c, &until, location) == 0) {
        if (aco__http_skip_empty_lines(&c->http.link))
            return 0;
        if (aco_now() >= until)
            break;
        aco__io_spend("an HTTP connection", location);
    }
    return -1;
}

/* Whether the peer has sent more, or may still do so, although the connection ends: nobody has told it before the last
 * reply. */
static int may_send(aco__http1_connection_t *c)
{
    const aco__http_link_t *link = &c->http.link;
    return link->in.end > link->in.begin || c->http.incoming.may_switch ||
           (c->http.incoming.is_persistent && c->x && c->x->reply.will_close) || aco__http_has_input(link);
}

ACO__SWITCHES static void serve_connection(aco__http1_connection_t *c, const char *location)
{
    if (aco_unlikely(c->is.server->member != NULL) && !c->is_placed && aco__http_place(&c->is, location))
        return;
    if (c->is.server->options.open && c->http.link.is_plain && aco__http_open_stream(&c->is, location) != 0)
        return;
    if (has_agreed_on_http2(c)) {
        serve_http2(c, location);
        return;
    }
    do {
        if (aco__http_skip_empty_lines(&c->http.link))
            aco__io_spend("an HTTP connection", location); /* requests that have come at once */
        else if (await_request(c, location) != 0)
            return;
    } while (serve_request(c, location));
    if (c->http.link.out_n)
        (void)aco__http_send(&c->http.link, NULL, 0, 0, location);
    if (c->http.link.stream && may_send(c))
        linger(c, location);
}

/* A connection that has no task yet. */
typedef struct newcomer {
    aco_http_server_t *server;
    struct aco__http_address *address; /* NULL: nobody counts it */
    aco__http1_connection_t *record; /* NULL: it is on the task's stack */
    int fd;
    aco_stream_t *stream; /* on it, made there; NULL: none */
    int is_moved; /* from another thread's server */
    unsigned requests; /* that were handled there */
} newcomer_t;

/* Not in the record: few servers count. */
static void count_until_end(const newcomer_t *newcomer)
{
    if (newcomer->address && aco_defer(aco__http_address_leave, newcomer->address) != 0)
        aco__http_address_leave(newcomer->address);
}

/* The connection ends, also by aco_exit(). Nothing waits. */
static void end_connection(aco__http1_connection_t *c)
{
    if (c->in_handler) { /* the same there: the reply lacks something */
        aco__http_try_send(&c->http.link); /* earlier replies */
        c->http.link.is_broken = 1;
        if (c->x->websocket)
            aco__http_drop_websocket(c->x);
    }
    unlist_unflushed(c);
    if (c->x)
        aco__http_request_end(c->x);
    give_workspace(c);
    ACO__ASSERT(!c->place_unflushed); /* its memory goes */
    aco__http_leave_server(&c->is);
    aco__http_link_close(&c->http.link, aco__http_is_cut(&c->http.outgoing));
    if (c->is_allocated)
        aco__service_free(c, sizeof *c);
}

/* The connection begins, on a socket or on a stream. */
static void begin_connection(aco__http1_connection_t *c, int is_allocated, aco_http_server_t *server, int fd,
                             aco_stream_t *stream, int is_moved)
{
    memset(c, 0, sizeof *c);
    c->is_allocated = (unsigned char)is_allocated;
    c->is.is_moved = (unsigned char)is_moved;
    aco__http1_open(&c->http, fd, stream, &server->options);
    aco__http_join_server(&c->is, server, &c->http.link);
    c->is.is_moved = 0;
    c->is_placed = (unsigned char)is_moved;
}

/* Serves the connection until it ends, and frees it. Callers end with this call, for which they need no frame. */
ACO__SWITCHES static void run_connection(aco__http1_connection_t *c, const char *location)
{
    serve_connection(c, location);
    aco__http_report_once(&c->is, c->http.link.error ? c->http.link.error : c->http.incoming.head_error, NULL);
    if (c->at_end.ends) {
        aco__task_at_end(NULL);
        end_connection(c);
    } else {
        (void)aco_defer_pop(1);
    }
}

/* The task calls aco_exit(). */
static void exits(aco__at_end_t *at_end)
{
    aco__http1_connection_t *c =
        (aco__http1_connection_t *)(void *)((char *)at_end - offsetof(aco__http1_connection_t, at_end));
    c->is.is_idle = 0; /* in `open`: that scope has ended with the task */
    end_connection(c);
}

ACO__SWITCHES static void run_newcomer(aco__http1_connection_t *c, int is_allocated, newcomer_t *newcomer)
{
    begin_connection(c, is_allocated, newcomer->server, newcomer->fd, newcomer->stream, newcomer->is_moved);
    c->requests = newcomer->requests;
    c->at_end.ends = exits;
    aco__service_free(newcomer, sizeof *newcomer);
    aco__task_at_end(&c->at_end);
    run_connection(c, "an HTTP connection");
}

/* The record is on the stack: the first page, which an idle connection holds anyway, has room for it. */
ACO__SWITCHES static void *connection(void *newcomer)
{
    aco__http1_connection_t record;
    count_until_end(newcomer);
    run_newcomer(&record, 0, newcomer);
    return NULL;
}

/* Others use the record while a share stack has another task's frames. */
ACO__SWITCHES static void *connection_on_share_stack(void *arg)
{
    newcomer_t *newcomer = arg;
    count_until_end(newcomer);
    run_newcomer(newcomer->record, 1, newcomer);
    return NULL;
}

int aco__http_connect(aco_http_server_t *server, int fd, struct aco__http_address *address,
                      const aco__http_move_t *move, const char *location)
{
    const aco_options_t *task = server->options.task;
    aco_function_t run = task && task->stack ? connection_on_share_stack : connection;
    size_t sz = sizeof(newcomer_t), record_sz = sizeof(aco__http1_connection_t);
    newcomer_t *newcomer = aco__service_allocate(&sz, "aco_http_serve");
    if (!newcomer)
        return -1;
    newcomer->record = NULL;
    if (run != connection && !(newcomer->record = aco__service_allocate(&record_sz, "aco_http_serve"))) {
        aco__service_free(newcomer, sizeof *newcomer);
        return -1;
    }
    newcomer->server = server;
    newcomer->address = address;
    newcomer->fd = fd;
    newcomer->stream = move ? move->stream : NULL;
    newcomer->is_moved = move != NULL;
    newcomer->requests = move ? move->requests : 0;
    if (aco_group_spawn_at(&server->group, run, newcomer, NULL, task, location))
        return 0;
    if (newcomer->record)
        aco__service_free(newcomer->record, sizeof(aco__http1_connection_t));
    aco__service_free(newcomer, sizeof *newcomer);
    return -1;
}

/* ---- A connection that was accepted elsewhere ---- */

/* Its first bytes were read there. 0, or -1 and errno. */
static int put_input(aco__http_link_t *link, const void *bytes, size_t n)
{
    aco_io_reader_t *in = &link->in;
    size_t sz = in->size;
    ACO__ASSERT(n <= in->size && !in->buffer);
    if (n && !(in->buffer = aco__service_allocate(&sz, "aco_http_serve_connection")))
        return -1;
    if (n)
        memcpy(in->buffer, bytes, n);
    in->end = n;
    return 0;
}

/* NULL and errno. */
static aco__http1_connection_t *new_connection(aco_http_server_t *server, aco_stream_t *stream, const void *bytes,
                                               size_t n)
{
    static const char call[] = "aco_http_serve_connection";
    size_t sz = sizeof(aco__http1_connection_t);
    aco__http1_connection_t *c = NULL;
    int error;
    if (!aco_current_task())
        aco__service_fail(EPERM, call, "the caller is not a task");
    else if (n > (size_t)server->options.max_head)
        aco__service_fail(EINVAL, call, "more bytes than max_head");
    else
        c = aco__service_allocate(&sz, call);
    if (c) {
        begin_connection(c, 1, server, -1, stream, 0);
        if (put_input(&c->http.link, bytes, n) == 0)
            return c;
    }
    error = errno;
    if (c)
        end_connection(c);
    else
        aco_stream_close(stream);
    errno = error;
    return NULL;
}

/* Deferred: the task is its caller's, and perhaps goes on. */
static void end_served(void *connection)
{
    aco__http1_connection_t *c = connection;
    if (c->is.is_idle) /* aco_exit() in `open` */
        aco__http_end_idle(&c->is);
    end_connection(c);
}

int aco_http_serve_connection_at(aco_http_server_t *server, aco_stream_t *stream, const void *bytes, size_t n,
                                 const char *location)
{
    aco__http1_connection_t *c = stream ? new_connection(server, stream, bytes, n) : NULL;
    int error;
    if (!c)
        return -1;
    if (aco_defer(end_served, c) != 0) {
        error = errno;
        end_connection(c);
        errno = error;
        return -1;
    }
    run_connection(c, location);
    return 0;
}
