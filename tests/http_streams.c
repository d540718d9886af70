/* HTTP on connections that were accepted elsewhere, and connections that a handler takes over (include/aco/http.h): on
 * streams of memory and of sockets, in any pieces; their ends, scopes, no memory. */
#define _GNU_SOURCE
#include <aco/websocket.h>
#include "failing_service.h"
#include "http_tests.h"

#include <aco/sync.h>
#include <signal.h>

/* ---- Handlers ---- */

static aco_semaphore_t gate, reached;

static void waits(aco_http_request_t *request, void *arg)
{
    (void)arg;
    aco_semaphore_release(&reached);
    if (aco_semaphore_acquire(&gate) == 0)
        CHECK_EQ(aco_http_reply(request, 200, NULL, "late", 4), 0);
}

static void sends_file(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply_file(request, "/proc/self", "cmdline"), 0); /* without a length of its own */
}

static void echoes_messages(aco_http_request_t *request, void *arg)
{
    aco_websocket_t *socket = aco_websocket_accept(request, NULL);
    const char *data;
    size_t n;
    int type;
    (void)arg;
    CHECK(socket != NULL);
    while (socket && (type = aco_websocket_receive(socket, &data, &n)) > 0)
        CHECK_EQ(aco_websocket_send(socket, type, data, n), 0);
}

/* Another protocol: what was read already, and then each piece, in brackets. */
static void *brackets(void *arg)
{
    aco_stream_t *stream = arg;
    char part[64];
    ssize_t n;
    while ((n = aco_stream_read(stream, part, sizeof part)) > 0) {
        struct iovec parts[] = {{(char[]){"["}, 1}, {part, (size_t)n}, {(char[]){"]"}, 1}};
        CHECK_EQ(aco_stream_write_parts(stream, parts, 3), 0);
    }
    aco_stream_close(stream);
    return NULL;
}

static aco_t *taker; /* a task that goes on with the stream after the handler */
static int takes_later, taking_error;

static void takes_over(aco_http_request_t *request, void *arg)
{
    static const char hello[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: brackets\r\nConnection: Upgrade\r\n\r\n";
    const void *bytes;
    size_t n;
    aco_stream_t *stream = aco_http_take_over(request, &bytes, &n);
    (void)arg;
    taking_error = stream ? 0 : errno;
    if (!stream)
        return;
    FAILS_WITH(aco_http_reply(request, 200, NULL, NULL, 0), EBUSY);
    CHECK(aco_http_take_over(request, &bytes, &n) == NULL && errno == EBUSY);
    CHECK_EQ(aco_http_connection_error(request), 0);
    CHECK_EQ(request->fd, -1);
    CHECK_EQ(aco_stream_write_all(stream, hello, sizeof hello - 1), sizeof hello - 1);
    CHECK_EQ(aco_stream_write_all(stream, bytes, n), (ssize_t)n);
    if (!takes_later) {
        brackets(stream);
        return;
    }
    taker = aco_spawn(brackets, stream, NULL);
    CHECK(taker != NULL);
}

static void replies_then_takes(aco_http_request_t *request, void *arg)
{
    const void *bytes;
    size_t n;
    (void)arg;
    CHECK_EQ(aco_http_reply(request, 200, NULL, NULL, 0), 0);
    CHECK(aco_http_take_over(request, &bytes, &n) == NULL && errno == EBUSY);
}

static char seen_protocol[16], seen_peer[ACO_IO_ADDRESS_SIZE];

static void looks_at_stream(aco_http_request_t *request, void *arg)
{
    (void)arg;
    snprintf(seen_protocol, sizeof seen_protocol, "%s", aco_stream_protocol(request->stream));
    if (aco_stream_peer_address(request->stream, seen_peer, sizeof seen_peer) != 0)
        snprintf(seen_peer, sizeof seen_peer, "%s", strerror(errno));
    CHECK_EQ(aco_stream_fd(request->stream), request->fd);
    CHECK_EQ(aco_http_reply(request, 200, NULL, NULL, 0), 0);
}

static const aco_http_route_t routes[] = {{"GET", "/", tells, "hello\n"},
                                          {"POST", "/echo", echoes, NULL},
                                          {"GET", "/wait", waits, NULL},
                                          {"GET", "/file", sends_file, NULL},
                                          {"GET", "/ws", echoes_messages, NULL},
                                          {NULL, "/take", takes_over, NULL},
                                          {"GET", "/both", replies_then_takes, NULL},
                                          {"GET", "/look", looks_at_stream, NULL},
                                          {NULL, NULL, NULL, NULL}};

/* ---- A connection ---- */

enum { MEMORY, SOCKET, KINDS };
static int kind;
static int failed_kind, failed_error, logged; /* what the options' functions were told */

static void notes_failure(const aco_http_failure_t *failure, void *arg)
{
    (void)arg;
    failed_kind = failure->kind;
    failed_error = failure->error;
}

static void notes_request(const aco_http_request_t *request, void *arg)
{
    (void)request, (void)arg;
    logged++;
}

static void make_ends(aco_stream_t *ends[2])
{
    int fds[2];
    if (kind == MEMORY) {
        CHECK_EQ(aco_stream_pair(ends, 5), 0);
        return;
    }
    make_tcp(fds);
    ends[0] = aco_stream_open(fds[0]);
    ends[1] = aco_stream_open(fds[1]);
    CHECK(ends[0] && ends[1]);
}

typedef struct served {
    aco_http_server_t *server;
    aco_stream_t *stream;
    const char *begun;
    size_t begun_n;
    aco_scope_t scope;
    int result, error;
} served_t;

static void *serves_connection(void *arg)
{
    served_t *s = arg;
    aco_scope_begin(&s->scope, ACO_FOREVER);
    s->result = aco_http_serve_connection(s->server, s->stream, s->begun, s->begun_n);
    s->error = errno;
    aco_scope_end(&s->scope);
    return NULL;
}

static aco_http_server_t *new_server(void)
{
    aco_http_server_options_t options = {
        .routes = routes, .failed = notes_failure, .log = notes_request, .drain_idle_time = ACO_MILLISECOND};
    aco_http_server_t *server = aco_http_server_new(&options);
    CHECK(server != NULL);
    failed_error = logged = 0;
    return server;
}

/* Reads to the end, or up to this text. */
static void read_up_to(aco_stream_t *stream, const char *text)
{
    ssize_t n = 1;
    for (got_n = 0; n > 0 && got_n < sizeof got - 1 && !(text && strstr(got, text));) {
        n = aco_stream_read(stream, got + got_n, sizeof got - 1 - got_n);
        got_n += n > 0 ? (size_t)n : 0;
        got[got_n] = 0;
    }
    CHECK_EQ(n < 0, 0);
}

typedef struct sender {
    aco_stream_t *stream;
    const char *text;
    size_t n, piece;
} sender_t;

static void *sends(void *arg)
{
    const sender_t *s = arg;
    for (size_t at = 0; at < s->n; at += s->piece) {
        size_t n = s->n - at < s->piece ? s->n - at : s->piece;
        if (aco_stream_write_all(s->stream, s->text + at, n) < 0)
            return NULL; /* it was cut */
        aco_task_yield();
    }
    (void)aco_stream_shutdown(s->stream);
    return NULL;
}

/* Sends this, of which the first bytes were read by somebody else, and reads to the end. */
static const char *converse(const char *text, size_t text_n, size_t begun_n, size_t piece)
{
    aco_stream_t *ends[2];
    aco_group_t group;
    served_t s = {.server = new_server(), .begun = text, .begun_n = begun_n};
    sender_t sender = {NULL, text + begun_n, text_n - begun_n, piece};
    make_ends(ends);
    s.stream = ends[1];
    sender.stream = ends[0];
    got[0] = 0;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, serves_connection, &s);
    member(&group, sends, &sender);
    read_up_to(ends[0], NULL);
    aco_group_end(&group);
    CHECK_EQ(s.result, 0);
    aco_stream_close(ends[0]);
    aco_http_server_destroy(s.server);
    return got;
}

#define ALL_OF(text) text, sizeof(text) - 1
#define UPGRADE "Upgrade: brackets\r\nConnection: Upgrade\r\n"

static const char ask_to_wait[] = "GET /wait HTTP/1.1\r\n" HOST "\r\n";
static const char ask_to_take[] = "GET /take HTTP/1.1\r\n" HOST UPGRADE "\r\n";
static const char several[] = GET("") POST("Content-Length: 3\r\n", "abc") "GET /file HTTP/1.1\r\n" HOST "\r\n";

static void *serves_in_pieces(void *arg)
{
    for (size_t begun = 0; begun < sizeof several; begun += begun < 20 ? 1 : 17)
        for (size_t piece = 1; piece < 300; piece = piece * 3 + 1) {
            converse(several, sizeof several - 1, begun, piece);
            CHECK_TEXT("in pieces", statuses(), "200 200 200");
            CHECK_EQ(logged, 3);
            CHECK_EQ(failed_error, 0);
        }
    return arg;
}

static void *looks(void *arg)
{
    converse(ALL_OF("GET /look HTTP/1.1\r\n" HOST "\r\n"), 4, 9);
    CHECK_TEXT("it looked", statuses(), "200");
    CHECK(strcmp(seen_protocol, "") == 0);
    if (kind == MEMORY)
        CHECK(strcmp(seen_peer, strerror(ENOTSUP)) == 0);
    else
        CHECK(strncmp(seen_peer, "127.0.0.1:", 10) == 0);
    return arg;
}

static void *serves_websockets(void *arg)
{
    /* "hello", masked by zeros; a close */
    static const char text[] = "GET /ws HTTP/1.1\r\n" HOST "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
                               "\x81\x85\0\0\0\0hello\x88\x82\0\0\0\0\x03\xe8";
    for (size_t begun = 0; begun < sizeof text; begun += 13) {
        converse(ALL_OF(text), begun, 3);
        CHECK_HAS("101 Switching Protocols");
        CHECK(got_n > 11 && memcmp(got + got_n - 11, "\x81\x05hello\x88\x02\x03\xe8", 11) == 0);
    }
    return arg;
}

/* ---- Taking over ---- */

static void *takes(void *arg)
{
    static const char text[] = GET("") "GET /take HTTP/1.1\r\n" HOST UPGRADE "\r\nfirst";
    for (takes_later = 0; takes_later < 2; takes_later++)
        for (size_t begun = 0; begun < sizeof text; begun += 11) {
            converse(ALL_OF(text), begun, 200);
            if (takes_later)
                CHECK_EQ(aco_join(taker, NULL), 0);
            CHECK_EQ(taking_error, 0);
            CHECK_EQ(logged, 2);
            CHECK_EQ(failed_error, 0);
            CHECK_HAS("hello\nHTTP/1.1 101 Switching Protocols\r\n");
            CHECK(strstr(got, "\r\n\r\nf") || strstr(got, "\r\n\r\n[f"));
        }
    return arg;
}

static void *takes_not(void *arg)
{
    converse(ALL_OF("POST /take HTTP/1.1\r\n" HOST "Content-Length: 9999\r\n\r\nx"), 0, 99);
    CHECK_EQ(taking_error, EBUSY);
    CHECK_TEXT("the body is left", statuses(), "500");
    converse(ALL_OF("GET /both HTTP/1.1\r\n" HOST "\r\n"), 0, 99);
    CHECK_TEXT("a reply is there", statuses(), "200");
    return arg;
}

/* Of the server with a listener: it waits for the handler, and not for what follows it. */
static void *ends_after_taking(void *arg)
{
    for (takes_later = 0; takes_later < 2; takes_later++) {
        stage_t stage = {.server = {.drain_time = takes_later ? ACO_FOREVER : ACO_MILLISECOND}};
        int fd;
        char answer[8];
        start(&stage, routes);
        fd = dial(&stage);
        CHECK(aco_io_write_all(fd, ask_to_take, sizeof ask_to_take - 1) > 0);
        while (aco_io_read_exactly(fd, answer, 1) == 1 && *answer != '\n')
            ;
        stop(&stage);
        if (takes_later) {
            char head[256];
            CHECK(aco_io_read(fd, head, sizeof head) > 0); /* the rest of it */
            CHECK_EQ(aco_io_write_all(fd, "x", 1), 1);
            CHECK_EQ(aco_io_read_exactly(fd, answer, 3), 3);
            CHECK(memcmp(answer, "[x]", 3) == 0);
            CHECK_EQ(aco_io_shutdown(fd, SHUT_WR), 0);
            CHECK_EQ(aco_join(taker, NULL), 0);
        }
        CHECK_EQ(aco_io_close(fd), 0);
    }
    return arg;
}

/* ---- Ends ---- */

static void *stops(void *arg)
{
    aco_stream_t *idle[2], *busy[2];
    aco_group_t group;
    served_t first = {.server = new_server()}, second = {.server = first.server};
    make_ends(idle);
    make_ends(busy);
    first.stream = idle[1];
    second.stream = busy[1];
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, serves_connection, &first);
    member(&group, serves_connection, &second);
    CHECK(aco_stream_write_all(busy[0], ask_to_wait, sizeof ask_to_wait - 1) > 0);
    CHECK_EQ(aco_semaphore_acquire(&reached), 0);
    aco_http_server_stop(first.server);
    read_up_to(idle[0], NULL);
    CHECK_EQ(got_n, 0);
    aco_semaphore_release(&gate);
    read_up_to(busy[0], NULL);
    CHECK_TEXT("the last one", statuses(), "200");
    CHECK_HAS("Connection: close\r\n");
    aco_stream_close(idle[0]);
    aco_stream_close(busy[0]);
    aco_group_end(&group);
    CHECK(first.result == 0 && second.result == 0);
    aco_http_server_destroy(first.server);
    return arg;
}

/* The caller's scope ends, while the connection is idle or a handler waits. */
static void *obeys_scopes(void *arg)
{
    for (int is_busy = 0; is_busy < 2; is_busy++) {
        aco_stream_t *ends[2];
        aco_group_t group;
        served_t s = {.server = new_server()};
        make_ends(ends);
        s.stream = ends[1];
        aco_group_begin(&group, ACO_KEEP_GOING);
        member(&group, serves_connection, &s);
        aco_task_yield();
        if (is_busy) {
            CHECK(aco_stream_write_all(ends[0], ask_to_wait, sizeof ask_to_wait - 1) > 0);
            CHECK_EQ(aco_semaphore_acquire(&reached), 0);
        }
        aco_scope_cancel(&s.scope);
        aco_group_end(&group);
        CHECK_EQ(s.result, 0);
        aco_stream_close(ends[0]);
        aco_http_server_destroy(s.server);
    }
    return arg;
}

/* ---- Refused, and no memory ---- */

static void *refuses(void *arg)
{
    aco_http_server_options_t options = {.max_head = 1};
    aco_stream_t *ends[2];
    aco_http_server_t *server;
    char byte;
    CHECK(aco_http_server_new(&options) == NULL && errno == EINVAL);
    CHECK(strstr(aco_error_message(), "aco_http_server_new: ") != NULL);
    aco_http_server_destroy(NULL);
    server = aco_http_server_new(NULL);
    CHECK(server != NULL);
    errno = ENOENT;
    CHECK(aco_http_serve_connection(server, NULL, NULL, 0) == -1 && errno == ENOENT);
    make_ends(ends);
    FAILS_WITH(aco_http_serve_connection(server, ends[1], got, (15 << 10) + 1), EINVAL);
    CHECK_EQ(aco_stream_read(ends[0], &byte, 1), 0); /* it was closed */
    aco_stream_close(ends[0]);
    aco_http_server_destroy(server);
    return arg;
}

static void *has_no_memory(void *arg)
{
    static const char text[] = GET("") "GET /take HTTP/1.1\r\n" HOST UPGRADE "\r\nfirst";
    int is_left = 1;
    takes_later = 0;
    for (int i = 0; is_left && i < 100; i++) {
        aco_stream_t *ends[2];
        aco_group_t group;
        served_t s = {.server = new_server(), .begun = text, .begun_n = 20};
        sender_t sender = {NULL, text + 20, sizeof text - 21, 99};
        long before;
        make_ends(ends);
        before = live;
        sender.stream = ends[0];
        s.stream = ends[1];
        aco_group_begin(&group, ACO_KEEP_GOING);
        member(&group, serves_connection, &s);
        allocations_left = i;
        member(&group, sends, &sender);
        while (aco_stream_read(ends[0], got, sizeof got) > 0)
            ;
        aco_group_end(&group);
        is_left = allocations_left < 0;
        allocations_left = -1;
        CHECK(s.result == 0 || s.error == ENOMEM);
        aco_stream_close(ends[0]);
        aco_http_server_destroy(s.server);
        CHECK(live < before);
    }
    CHECK(!is_left);
    return arg;
}

int main(void)
{
    static const aco_function_t tests[] = {serves_in_pieces, looks,        serves_websockets, takes, takes_not, stops,
                                           refuses,          obeys_scopes, has_no_memory};
    static const aco_function_t once[] = {ends_after_taking};
    signal(SIGPIPE, SIG_IGN);
    for (kind = 0; kind < KINDS; kind++) {
        long before = live;
        run_http_tests(tests, sizeof tests / sizeof *tests);
        CHECK(kind == 0 || live == before);
    }
    run_http_tests(once, 1);
    return check_result("http_streams");
}
