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

/* A connection. What a request needs is in memory that it has only meanwhile, its link's output too. */
typedef struct aco__http1_connection {
    aco__http_connection_t is; /* its link is first: a task that waits holds no second pointer */
    union {
        aco__at_end_t at_end; /* of its task, if the server has made that; */
        const char *location; /* else of who serves it, in a task of its own */
    };
    struct aco__http_workspace *space; /* NULL: idle */
    const char **work; /* where its task's work stands; NULL: not known yet */
    int64_t idle_until; /* when the wait for the next request ends; 0: not known yet */
} aco__http1_connection_t;

/* What a request needs: */
typedef struct aco__http_workspace {
    aco__http_exchange_t x; /* first */
    aco__http1_t http; /* its stream */
    struct aco__http_workspace *next_unflushed, **place_unflushed; /* place: NULL: not there */
    unsigned char in_handler;
    llhttp_t parser;
    aco__http_head_t head;
    struct aco__http_workspace *next; /* that nobody uses */
    size_t sz; /* of this record and what follows it: headers, the request's memory, output */
} aco__http_workspace_t;

/* ---- Memory for requests ---- */

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
    space->x.stream = &space->http;
    space->x.version = &aco__http1_version;
    space->x.blocks = NULL;
    memset(&space->x.trailers, 0, sizeof space->x.trailers);
    aco__http1_prepare(&space->http, &server->options);
    space->http.incoming.trailers = &space->x.trailers;
    space->in_handler = 0;
    space->place_unflushed = NULL;
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

static char *arena_of(const aco__http_workspace_t *space)
{
    return (char *)(space->head.headers + space->head.most);
}

/* The connection gets it. */
static void take_workspace(aco__http1_connection_t *c, aco__http_workspace_t *space)
{
    c->space = space;
    c->is.link.out = arena_of(space) + HTTP_ARENA;
    space->x.work_known = &c->work;
    aco__http1_use(&space->http, &c->is.link);
    aco__http_parse_by(&space->http.incoming, &space->parser, HTTP_REQUEST);
}

static void give_workspace(aco__http1_connection_t *c)
{
    aco__http_workspace_t *space = c->space;
    if (!space)
        return;
    ACO__ASSERT(!space->x.blocks && !space->x.websocket && !space->place_unflushed); /* the keeper sends its output */
    c->is.link.out = NULL;
    c->space = NULL;
    space->next = c->is.server->spare;
    c->is.server->spare = space;
}

/* Begins a request. 0, or -1 and errno. */
static int begin_request(aco__http1_connection_t *c)
{
    aco__http_workspace_t *space = c->space ? c->space : new_workspace(c->is.server);
    aco__http1_t *h;
    if (!space)
        return -1;
    ACO__ASSERT(!space->in_handler && !space->place_unflushed); /* nothing is left of the last request */
    if (!c->space)
        take_workspace(c, space);
    h = &space->http;
    aco__http_request_begin(&space->x, arena_of(space));
    space->x.is.fd = c->is.link.own.fd;
    space->x.is.stream = c->is.link.stream;
    h->incoming.may_continue = 0;
    aco__http_body_begin(&h->outgoing, 0, 0, 0);
    aco__http_message_begin(&h->incoming, &space->head);
    return 0;
}

/* ---- Output of earlier replies, while a handler runs ---- */

static void unlist_unflushed(aco__http_workspace_t *space)
{
    if (!space->place_unflushed)
        return;
    ACO__ASSERT(*space->place_unflushed == space);
    ACO__ASSERT(!space->next_unflushed || space->next_unflushed->place_unflushed == &space->next_unflushed);
    *space->place_unflushed = space->next_unflushed;
    if (space->next_unflushed)
        space->next_unflushed->place_unflushed = space->place_unflushed;
    space->place_unflushed = NULL;
}

static void list_unflushed(aco__http_workspace_t *space)
{
    aco_http_server_t *server = space->x.server;
    ACO__ASSERT(!space->place_unflushed && space->http.link->is_plain);
    space->next_unflushed = server->unflushed;
    if (space->next_unflushed)
        space->next_unflushed->place_unflushed = &space->next_unflushed;
    space->place_unflushed = &server->unflushed;
    server->unflushed = space;
    (void)aco_unpark(server->keeper);
}

void aco__http_send_unflushed(aco_http_server_t *server)
{
    while (server->unflushed) {
        aco__http_workspace_t *space = server->unflushed;
        ACO__ASSERT(space->in_handler); /* else its own task sends */
        unlist_unflushed(space);
        aco__http_try_send(space->http.link);
        aco__io_spend("an HTTP server", NULL); /* there may be thousands of them */
    }
}

/* ---- Connections ---- */

static const char task_place[] = "an HTTP connection";

static const char *location_of(const aco__http1_connection_t *c)
{
    return c->is.has_own_task ? task_place : c->location;
}

/* Reads a head. 0; a status with which to refuse it; -1: there is none. */
ACO__SWITCHES static int read_head(aco__http1_connection_t *c, const char *location)
{
    aco__http_incoming_t *in = &c->space->http.incoming;
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
    return aco__http1_understand(&c->space->x);
}

/* Reads what a handler left of the body, if it is not much. Whether the connection can go on. */
ACO__SWITCHES static int discard_body(aco__http1_connection_t *c, const char *location)
{
    aco__http_incoming_t *in = &c->space->http.incoming;
    uint64_t limit = in->head->body + HTTP_DISCARDED;
    if (in->may_continue || c->space->x.is.length > HTTP_DISCARDED)
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
    aco__http_outgoing_t *out = &c->space->http.outgoing;
    if (aco_unlikely(c->space->x.reply.encoder != NULL))
        aco__http_end_coding(&c->space->x, location);
    else if (out->left < 0 && !out->is_bodiless && aco_check_cancelled() != 0)
        c->space->x.reply.is_aborted = 1;
    if (!c->space->x.reply.is_aborted &&
        aco__http_end_body_with(out, c->space->x.reply.trailers, c->space->x.reply.trailers_n, location) == 0)
        return;
    (void)aco__http_send(&c->is.link, NULL, 0, 0, location);
    if (!c->is.link.error && aco_check_cancelled() != 0)
        c->is.link.error = errno;
    c->is.link.is_broken = 1;
}

/* Answers a request whose head is there. */
ACO__SWITCHES static void handle(aco__http1_connection_t *c, const char *location)
{
    aco__http_exchange_t *x = &c->space->x;
    aco__http_link_t *link = &c->is.link;
    const aco__http_incoming_t *in = &c->space->http.incoming;
    int status;
    ACO__ASSERT(!c->is.is_idle && !c->space->in_handler && in->has_head && !x->reply.has_begun);
    if (link->out_n && (!link->is_plain || !x->server->keeper))
        (void)aco__http_send(link, NULL, 0, 0, location);
    else if (link->out_n)
        list_unflushed(c->space);
    c->space->in_handler = 1;
    if (aco_unlikely(c->is.is_refused | x->server->measures))
        status = c->is.is_refused ? 503 : aco__http_measure_route(x, &c->is.heavy);
    else
        status = aco__http_call_route(x);
    c->space->in_handler = 0;
    unlist_unflushed(c->space);
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

/* When that time is over; 0: it is not known when it has begun. */
static int64_t until_idle_for(int64_t time, int64_t began)
{
    return aco_likely(!began) ? 0 : time < ACO_FOREVER - began ? began + time : ACO_FOREVER;
}

ACO__SWITCHES static void log_exchange(aco__http1_connection_t *c)
{
    const aco_http_server_options_t *options = &c->is.server->options;
    aco__http_report_once(&c->is, aco__http1_error_of(&c->space->http), &c->space->x.is);
    c->idle_until = until_idle_for(options->idle_time, aco__http_observe(&c->space->x.is));
    if (options->log)
        options->log(&c->space->x.is, options->log_arg);
    aco__http_request_end(&c->space->x);
}

/* Whether the peer lacks something of what was to be sent. */
static int is_cut(const aco__http1_connection_t *c)
{
    return c->space ? aco__http_is_cut(&c->space->http.outgoing) : c->is.link.is_broken || c->is.link.out_n > 0;
}

/* After a reply that ends the connection although the client may still send: bytes that arrive at a closed socket would
 * make the system drop what the client has not read of the reply. */
ACO__SWITCHES static void linger(aco__http1_connection_t *c, int has_ended, const char *location)
{
    aco__http_input_t *in = &c->is.link.in;
    aco_scope_t scope;
    size_t left = LINGER_BYTES;
    if (is_cut(c) || !in->buffer || aco_scope_begin_at(&scope, aco_after(LINGER_MS * ACO_MILLISECOND), location) != 0)
        return;
    if (has_ended || aco__http_link_shutdown(&c->is.link, location) == 0)
        for (ssize_t n = 1; n > 0 && left > in->size; left -= n > 0 ? (size_t)n : 0)
            n = aco__http_link_read(&c->is.link, in->buffer, in->size, location);
    (void)aco_scope_end(&scope);
}

/* Whether its first bytes are those of HTTP/2, which a client sends that knows the server. */
static int has_preface(const aco__http1_connection_t *c)
{
#ifdef ACO_CONFIG_HTTP2
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const aco__http_input_t *in = &c->is.link.in;
    return c->is.server->options.max_streams > 0 && !*aco_stream_protocol(c->is.link.stream) &&
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
    const aco__http_link_t *link = &c->is.link;
    return !link->is_plain && c->is.server->options.max_streams > 0 &&
           strcmp(aco_stream_protocol(link->stream), "h2") == 0;
#else
    (void)c;
    return 0;
#endif
}

/* `session`: that it has had on another thread; NULL: it begins. */
ACO__SWITCHES
static void serve_http2(aco__http1_connection_t *c, struct aco__http2 *session, const char *location)
{
    aco__http2_serve(&c->is, session, location);
    if (c->is.link.stream) /* else another thread has it */
        linger(c, 0, location);
}

/* Whether the connection goes on. */
ACO__SWITCHES static __attribute__((noinline)) int serve_request(aco__http1_connection_t *c)
{
    const char *location = location_of(c);
    aco__http_incoming_t *in;
    int status;
    if (begin_request(c) != 0)
        return 0;
    in = &c->space->http.incoming;
    status = read_head(c, location);
    if (status < 0)
        return 0;
    if (status == 505 && !c->is.has_served && has_preface(c)) {
        aco__http_request_end(&c->space->x);
        give_workspace(c);
        serve_http2(c, NULL, location);
        return 0;
    }
    if (status > 0) {
        in->is_persistent = 0;
        in->body_error = status == 413 ? EFBIG : EBADMSG; /* nobody knows where it is */
        aco__http_refuse(&c->space->x, status, location);
        if (c->space->x.reply.has_begun)
            end_reply(c, location);
        (void)aco__http_send(&c->is.link, NULL, 0, 0, location);
        log_exchange(c);
        linger(c, 0, location);
        return 0;
    }
    if ((c->is.server->options.max_requests > 0 && ++c->is.requests >= (unsigned)c->is.server->options.max_requests) ||
        c->is.is_refused)
        c->space->x.reply.will_close = 1;
    handle(c, location);
    if (c->is.link.is_broken || !c->space->x.reply.has_begun) {
        log_exchange(c);
        return 0;
    }
    if (!in->has_all && (c->space->x.reply.will_close || !discard_body(c, location))) {
        (void)aco__http_send(&c->is.link, NULL, 0, 0, location);
        log_exchange(c);
        linger(c, 0, location);
        return 0;
    }
    log_exchange(c);
    ACO__ASSERT(c->space->http.outgoing.left == 0); /* the reply is whole */
    aco__http_message_end(in);
    c->is.has_served = 1;
    return !c->space->x.reply.will_close;
}

/* After a request that began then. Goes to another thread's server, if this thread has stalled. Whether it has. */
ACO__SWITCHES static __attribute__((noinline)) int leave_thread(aco__http1_connection_t *c, int64_t began,
                                                                const char *location)
{
    aco__http_member_t *member = c->is.server->member;
    const aco__http_link_t *link = &c->is.link;
    int64_t now = c->idle_until == ACO_FOREVER ? aco_now() : c->idle_until - c->is.server->options.idle_time;
    ACO__ASSERT(member && !c->space);
    if (now - began > HTTP_STALL)
        aco__http_suspect(member, now);
    if (!aco__http_has_stalled(member, now) || c->is.heavy || c->is.is_refused || !aco__http_can_move(link))
        return 0;
    return aco__http_move(&c->is, NULL, location);
}

/* ---- Waiting for a request ----
 *
 * An idle connection on a share stack keeps a copy of its frames. So the wait has no frame here but the one of
 * run_connection(), which holds nothing but the record: what comes before and after the wait is in functions that are
 * not inline. */

enum { REQUEST_NONE, REQUEST_HERE, REQUEST_AWAITED };

/* A wait is over, with this result and errno, or there was none. */
ACO__SWITCHES static __attribute__((noinline)) int look_for_request(aco__http1_connection_t *c, int waited)
{
    const char *location = location_of(c);
    aco__http_link_t *link = &c->is.link;
    const ssize_t n = aco__http_take_first(link, waited, location);
    if (n == HTTP_NOTHING_YET)
        return REQUEST_AWAITED;
    aco__http_end_idle(&c->is);
    if (n > 0 && aco__http_skip_empty_lines(link))
        return REQUEST_HERE;
    if (n == 0 || (n < 0 && c->is.idle.error != ECANCELED) || (n > 0 && aco_now() >= c->idle_until))
        return REQUEST_NONE;
    if (n > 0) /* empty lines neither prolong the wait, nor keep other tasks from running */
        aco__io_spend("an HTTP connection", location);
    aco__http_drop_input(link);
    return aco__http_begin_idle(&c->is, HTTP_AWAITS, &c->idle_until, location) == 0 ? REQUEST_AWAITED : REQUEST_NONE;
}

/* Begins to wait. Nothing of the last request is held meanwhile. */
ACO__SWITCHES static __attribute__((noinline)) int begin_to_wait(aco__http1_connection_t *c)
{
    const char *location = location_of(c);
    const aco_http_server_options_t *options = &c->is.server->options;
    if (aco_likely(!c->idle_until))
        c->idle_until = aco_after(c->is.is_refused ? options->head_time : options->idle_time);
    if (c->is.link.out_n && aco__http_send(&c->is.link, NULL, 0, 0, location) != 0)
        return REQUEST_NONE;
    ACO__ASSERT(!c->is.link.out_n && (!c->space || !c->space->in_handler)); /* its memory goes */
    if (c->space) {
        const int64_t began = c->space->x.is.began;
        give_workspace(c);
        if (aco_unlikely(c->idle_until - began > c->is.server->suspect_after) && leave_thread(c, began, location))
            return REQUEST_NONE;
    }
    if (aco__http_begin_idle(&c->is, HTTP_AWAITS, &c->idle_until, location) != 0)
        return REQUEST_NONE;
    if (c->is.link.is_plain && !c->is.has_served) /* the first one: it may be there */
        return look_for_request(c, 0);
    aco__http_drop_input(&c->is.link);
    return REQUEST_AWAITED;
}

/* Whether the peer has sent more, or may still do so, although the connection ends: nobody has told it before the last
 * reply. */
static int may_send(aco__http1_connection_t *c)
{
    const aco__http_link_t *link = &c->is.link;
    const aco__http_workspace_t *space = c->space;
    return link->in.end > link->in.begin ||
           (space &&
            (space->http.incoming.may_switch || (space->http.incoming.is_persistent && space->x.reply.will_close))) ||
           aco__http_has_unread(link);
}

/* Whether the connection, which is new here, speaks HTTP/1 from now on. `session`: as above. */
ACO__SWITCHES static __attribute__((noinline)) int begins_http1(aco__http1_connection_t *c, struct aco__http2 *session)
{
    const char *location = location_of(c);
    if (aco_unlikely(c->is.server->member != NULL) && !c->is.is_placed && aco__http_place(&c->is, location))
        return 0;
    if (c->is.server->options.open && c->is.link.is_plain && aco__http_open_stream(&c->is, location) != 0)
        return 0;
    if (!session && !has_agreed_on_http2(c))
        return 1;
    serve_http2(c, session, location);
    return 0;
}

/* After the last reply. The system is told that more comes, and sends the end with it, in one packet. That is
 * shutdown(): close() sends neither if a child of fork() has the connection, too, and if the peer has sent something
 * unread by then, it sends a reset instead. */
ACO__SWITCHES static __attribute__((noinline)) void finish_output(aco__http1_connection_t *c)
{
    const char *location = location_of(c);
    aco__http_link_t *link = &c->is.link;
    int has_ended = 0;
    if (link->out_n && aco__http_send(link, NULL, 0, 1, location) == 0 && link->is_plain && !is_cut(c))
        has_ended = aco__http_link_shutdown(link, location) == 0;
    if (link->stream && may_send(c))
        linger(c, has_ended, location);
}

/* Requests have come at once. */
ACO__SWITCHES static __attribute__((noinline)) void spend_on_next(const aco__http1_connection_t *c)
{
    aco__io_spend(task_place, location_of(c));
}

/* Without a frame: it ends with a jump. */
ACO__SWITCHES static __attribute__((noinline)) int await_input(aco__http1_connection_t *c)
{
    return aco__http_await_first(&c->is.link, location_of(c));
}

ACO__SWITCHES static inline __attribute__((always_inline)) void serve_requests(aco__http1_connection_t *c)
{
    do {
        int how = REQUEST_HERE;
        if (aco__http_skip_empty_lines(&c->is.link))
            spend_on_next(c);
        else
            how = begin_to_wait(c);
        while (how == REQUEST_AWAITED)
            how = look_for_request(c, await_input(c));
        if (how == REQUEST_NONE)
            return;
    } while (serve_request(c));
    finish_output(c);
}

/* A connection that has no task yet. */
typedef struct newcomer {
    aco_http_server_t *server;
    struct aco__http_address *address; /* NULL: nobody counts it */
    aco__http1_connection_t *record; /* NULL: it is on the task's stack */
    int fd;
    aco_stream_t *stream; /* on it, made there; NULL: none */
    struct aco__http2 *session; /* that it has had there; NULL: none */
    int is_moved; /* from another thread's server */
    unsigned requests; /* that were handled there */
} newcomer_t;

/* Not in the record: few servers count. */
static void count_until_end(const newcomer_t *newcomer)
{
    if (newcomer->address && aco_defer(aco__http_address_leave, newcomer->address) != 0)
        aco__http_address_leave(newcomer->address);
}

/* The handler has called aco_exit(): the reply lacks something. */
static void abandon_handler(aco__http1_connection_t *c)
{
    aco__http_workspace_t *space = c->space;
    unlist_unflushed(space);
    aco__http_try_send(&c->is.link); /* earlier replies */
    c->is.link.is_broken = 1;
    if (space->x.websocket)
        aco__http_drop_websocket(&space->x);
    space->in_handler = 0; /* another connection gets it */
}

/* The connection ends, also by aco_exit(). Nothing waits. */
static void end_connection(aco__http1_connection_t *c)
{
    int is_reply_cut;
    if (c->space && c->space->in_handler)
        abandon_handler(c);
    is_reply_cut = is_cut(c);
    if (c->space)
        aco__http_request_end(&c->space->x);
    give_workspace(c);
    aco__http_leave_server(&c->is);
    aco__http_link_close(&c->is.link, is_reply_cut);
    if (c->is.is_allocated)
        aco__service_free(c, sizeof *c);
}

/* The connection begins, on a socket or on a stream. */
static void begin_connection(aco__http1_connection_t *c, int is_allocated, aco_http_server_t *server, int fd,
                             aco_stream_t *stream, int is_moved)
{
    memset(c, 0, sizeof *c);
    c->is.is_allocated = is_allocated != 0;
    c->is.is_moved = is_moved != 0;
    aco__http1_open_link(&c->is.link, fd, stream, &server->options);
    aco__http_join_server(&c->is, server);
    c->is.is_moved = 0;
    c->is.is_placed = is_moved != 0;
}

/* What is told of it, and the end of what it had. */
ACO__SWITCHES static __attribute__((noinline)) void leave_connection(aco__http1_connection_t *c)
{
    const int head_error = c->space ? c->space->http.incoming.head_error : 0;
    aco__http_report_once(&c->is, c->is.link.error ? c->is.link.error : head_error, NULL);
    if (c->is.has_own_task) {
        aco__task_at_end(NULL);
        end_connection(c);
    } else {
        (void)aco_defer_pop(1);
    }
}

/* Serves the connection until it ends, and frees it. */
ACO__SWITCHES
static inline __attribute__((always_inline)) void run_connection(aco__http1_connection_t *c, struct aco__http2 *session)
{
    if (begins_http1(c, session))
        serve_requests(c);
    leave_connection(c);
}

/* The task calls aco_exit(). */
static void exits(aco__at_end_t *at_end)
{
    aco__http1_connection_t *c =
        (aco__http1_connection_t *)(void *)((char *)at_end - offsetof(aco__http1_connection_t, at_end));
    c->is.is_idle = 0; /* in `open`: that scope has ended with the task */
    end_connection(c);
}

/* A task begins with this record, for this newcomer, which is freed. Its session. */
static __attribute__((noinline)) struct aco__http2 *begin_newcomer(aco__http1_connection_t *c, int is_allocated,
                                                                   newcomer_t *newcomer)
{
    struct aco__http2 *session = newcomer->session;
    count_until_end(newcomer);
    begin_connection(c, is_allocated, newcomer->server, newcomer->fd, newcomer->stream, newcomer->is_moved);
    c->is.requests = newcomer->requests;
    c->is.has_own_task = 1;
    c->at_end.ends = exits;
    aco__service_free(newcomer, sizeof *newcomer);
    aco__task_at_end(&c->at_end);
    return session;
}

/* The record is on the stack: the first page, which an idle connection holds anyway, has room for it. */
ACO__SWITCHES static void *connection(void *newcomer)
{
    aco__http1_connection_t record;
    run_connection(&record, begin_newcomer(&record, 0, newcomer));
    return NULL;
}

/* Others use the record while a share stack has another task's frames. */
ACO__SWITCHES static void *connection_on_share_stack(void *newcomer)
{
    aco__http1_connection_t *c = ((newcomer_t *)newcomer)->record;
    run_connection(c, begin_newcomer(c, 1, newcomer));
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
    newcomer->session = move ? move->http2 : NULL;
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
    aco__http_input_t *in = &link->in;
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
        if (put_input(&c->is.link, bytes, n) == 0)
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
    c->location = location;
    run_connection(c, NULL);
    return 0;
}
