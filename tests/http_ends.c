/* Bodies that stop in the middle, and messages that lack something (include/aco/http.h): what the time of a body is,
 * how reading goes on after a scope has ended, and that the peer of a cut message sees a failure. Bad input on small
 * stacks. */
#define _GNU_SOURCE
#include "system/system.h" /* first */
#include <aco/sync.h>
#include <aco/websocket.h>
#include "fails.h"
#include "http_tests.h"
#include "sanitizers.h"

#include <sys/wait.h>

static aco_semaphore_t turn; /* what a handler or peer waits for the other one by; 0 between tests */

/* ---- The time of a body ---- */

static const aco_http_route_t routes[] = {
    {"GET", "/", tells, "hello\n"},           {"POST", "/echo", echoes, NULL},      {"POST", "/stream", streams, NULL},
    {"POST", "/nothing", says_nothing, NULL}, {"GET", "/text", streams_text, NULL}, {NULL, NULL, NULL, NULL}};

/* Bytes that are none of the body's, more of them than are read at once: the server waits for the rest. */
static void *limits_framing(void *arg)
{
    static const char *const targets[][2] = {
        {"/echo", "408"}, {"/stream", "200"}, {"/nothing", "500"}, {"/none", "404"}};
    static const char *const framings[] = {"1;", "1\r\na\r\n0\r\nX: "}; /* an extension, a trailer */
    stage_t stage = {0};
    char text[9000];
    (void)arg;
    stage.server.body_time = 10 * ACO_MILLISECOND;
    stage.server.head_time = stage.server.idle_time = -1;
    start(&stage, routes);
    for (size_t i = 0; i < 8; i++) {
        const char *const *target = targets[i / 2];
        int fd = dial(&stage), n;
        n = snprintf(text, sizeof text, "POST %s HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n%s", target[0],
                     framings[i % 2]);
        memset(text + n, 'a', 8000);
        CHECK(aco_io_write_all(fd, text, (size_t)n + 8000) > 0);
        read_to_end(fd);
        CHECK_TEXT(target[0], statuses(), target[1]);
        aco_io_close(fd);
    }
    stop(&stage);
    return NULL;
}

/* A peer whose bytes are always there: no read waits. After the head it sends the same again and again, up to a number
 * that only a fault reaches; once that takes longer than the limit. */
static const char *steady_head, *steady_part;
static size_t steady_part_n;
static int steady_reads, slow_read;

static void be_steady(const char *head, const char *part, size_t n, int slow)
{
    steady_head = head;
    steady_part = part;
    steady_part_n = n;
    steady_reads = 0;
    slow_read = slow;
}

static ssize_t steady_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    int64_t until = aco_now() + 2 * ACO_MILLISECOND;
    const char *bytes = steady_reads++ ? steady_part : steady_head;
    size_t bytes_n = bytes == steady_part ? steady_part_n : strlen(bytes);
    (void)stream;
    (void)location;
    while (steady_reads == slow_read && aco_now() < until)
        ;
    CHECK(n >= bytes_n);
    memcpy(p, bytes, bytes_n);
    return steady_reads < 1000 ? (ssize_t)bytes_n : 0;
}

static ssize_t steady_write(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    (void)stream;
    (void)location;
    got_n = n < sizeof got ? n : sizeof got - 1;
    memcpy(got, p, got_n);
    got[got_n] = 0;
    return (ssize_t)n;
}

static ssize_t written_nothing(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    (void)stream, (void)p, (void)n, (void)location;
    return 0;
}

static void steady_close(aco_stream_t *stream)
{
    aco_io_close(stream->fd);
    free(stream);
}

static aco_stream_t *steady_open(int fd, void *arg)
{
    static const aco_stream_functions_t functions = {.read = steady_read, .write = steady_write, .close = steady_close};
    (void)arg;
    return own_stream(fd, &functions);
}

static void ignores_failure(const aco_http_failure_t *failure, void *arg)
{
    (void)arg;
    CHECK_EQ(failure->error, EIO);
}

static aco_stream_t *mute_open(int fd, void *arg)
{
    static const aco_stream_functions_t functions = {
        .read = steady_read, .write = written_nothing, .close = steady_close};
    (void)arg;
    return own_stream(fd, &functions);
}

/* A stream of the program's whose writes write nothing, and tell no error. */
static void *fails_on_mute_streams(void *arg)
{
    uint64_t failures[ACO_HTTP_FAILURES] = {0};
    stage_t stage = {0};
    char byte;
    int fd;
    stage.server.open = mute_open;
    stage.server.failures = failures;
    stage.server.failed = ignores_failure;
    start(&stage, routes);
    be_steady("GET / HTTP/1.1\r\n" HOST "\r\n", "", 0, 0);
    fd = aco_io_dial("tcp4", "127.0.0.1", stage.port, NULL);
    CHECK(fd < 0 || aco_io_read(fd, &byte, 1) < 0); /* cut, perhaps before the client has seen that it is connected */
    CHECK_EQ(errno, ECONNRESET);
    aco_io_close(fd);
    stop(&stage);
    CHECK_EQ(failures[ACO_HTTP_FAILED], 1);
    return arg;
}

static void counts_body(aco_http_request_t *request, void *arg)
{
    static char part[1 << 16];
    (void)arg;
    CHECK_EQ(aco_http_request_read(request, part, sizeof part), 1);
    FAILS_WITH(aco_http_request_read(request, part, sizeof part), ETIMEDOUT);
    FAILS_WITH(aco_http_request_read(request, part, sizeof part), ETIMEDOUT);
    CHECK_EQ(steady_reads, 2);
}

static void *limits_steady_peers(void *arg)
{
    static const aco_http_route_t counted[] = {{"POST", "/count", counts_body, NULL}, {NULL, NULL, NULL, NULL}};
    stage_t stage = {0};
    char byte;
    int fd;
    (void)arg;
    stage.server.body_time = ACO_MILLISECOND;
    stage.server.open = steady_open;
    start(&stage, counted);
    be_steady("POST /count HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\n", "b", 1, 2);
    fd = dial(&stage);
    CHECK(aco_io_read(fd, &byte, 1) <= 0); /* the end */
    aco_io_close(fd);
    CHECK_TEXT("a steady peer", statuses(), "408");
    stop(&stage);
    return NULL;
}

/* The client takes nothing of a file that no buffer has room for. */
static void gives_file(aco_http_request_t *request, void *file)
{
    enum { SIZE = 64 << 20 };
    int fd = dup(fileno(file));
    CHECK_EQ(ftruncate(fd, SIZE), 0);
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, SIZE), 0);
    FAILS_WITH(aco_http_reply_write_file(request, fd, INT64_MAX, SIZE), EINVAL);
    FAILS_WITH(aco_http_reply_write_file(request, fd, 0, SIZE), ETIMEDOUT);
    CHECK_EQ(aco_http_connection_error(request), ETIMEDOUT);
    CHECK_EQ(aco_io_close(fd), 0);
    aco_semaphore_release(&turn);
}

static void *tells_of_files(void *arg)
{
    FILE *file = tmpfile();
    const aco_http_route_t given[] = {{"GET", "/", gives_file, file}, {NULL, NULL, NULL, NULL}};
    uint64_t failures[ACO_HTTP_FAILURES] = {0};
    stage_t stage = {0};
    int fd;
    CHECK(file != NULL);
    stage.server.write_time = 10 * ACO_MILLISECOND;
    stage.server.failures = failures;
    start(&stage, given);
    fd = dial(&stage);
    CHECK(aco_io_write_all(fd, "GET / HTTP/1.1\r\n" HOST "\r\n", 27) > 0);
    CHECK_EQ(aco_semaphore_acquire(&turn), 0);
    stop(&stage);
    CHECK_EQ(failures[ACO_HTTP_SLOW], 1);
    aco_io_close(fd);
    CHECK_EQ(fclose(file), 0);
    return arg;
}

/* A message without an end; and, in a scope that has ended, a peer that always sends more. */
static void receives(aco_http_request_t *request, void *how)
{
    aco_websocket_options_t options = {.message_time = how ? 0 : ACO_MILLISECOND};
    aco_websocket_t *socket = aco_websocket_accept(request, &options);
    aco_scope_t scope;
    const char *data;
    size_t n;
    CHECK_EQ(aco_scope_begin(&scope, how ? aco_now() : ACO_FOREVER), 0);
    if (how && strcmp(how, "close") == 0)
        FAILS_WITH(aco_websocket_close(socket, 1000, NULL), ETIMEDOUT);
    else
        FAILS_WITH(aco_websocket_receive(socket, &data, &n), ETIMEDOUT);
    CHECK_EQ(aco_scope_end(&scope), 0);
    CHECK(steady_reads < 10);
}

static void *limits_steady_websockets(void *arg)
{
    static const aco_http_route_t received[] = {{"GET", "/fragments", receives, NULL},
                                                {"GET", "/pings", receives, "receive"},
                                                {"GET", "/messages", receives, "close"},
                                                {NULL, NULL, NULL, NULL}};
    static const char *const parts[] = {"\0\x80\0\0\0\0", "\x89\x80\0\0\0\0", "\x82\x80\0\0\0\0"};
    stage_t stage = {0};
    (void)arg;
    stage.server.open = steady_open;
    start(&stage, received);
    for (int i = 0; i < 3; i++) {
        char head[300], byte;
        int fd;
        snprintf(head, sizeof head,
                 "GET %s HTTP/1.1\r\n" HOST "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
                 "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n%s",
                 received[i].path,
                 i == 0 ? "\1\x81"
                          "1111"
                          "b"
                        : ""); /* a message begins */
        be_steady(head, parts[i], 6, 2);
        fd = dial(&stage);
        CHECK(aco_io_read(fd, &byte, 1) <= 0); /* the end */
        aco_io_close(fd);
    }
    stop(&stage);
    return NULL;
}

/* ---- Reading on ---- */

static const char *const framings[][3] = {
    {"Content-Length: 10\r\n", "first", "later"},
    {"Transfer-Encoding: chunked\r\n", "5\r\nfirst\r\n5", "\r\nlater\r\n0\r\n\r\n"},
};

/* Begins a scope that has ended, and says with which error. */
static int begin_ended(aco_scope_t *scope, int is_cancelled)
{
    CHECK_EQ(aco_scope_begin(scope, is_cancelled ? ACO_FOREVER : aco_now()), 0);
    if (is_cancelled)
        CHECK_EQ(aco_scope_cancel(scope), 0);
    return is_cancelled ? ECANCELED : ETIMEDOUT;
}

static char text[1 << 16]; /* more than a server's buffer: a body of known length comes here directly */

static void reads_on(aco_http_request_t *request, void *arg)
{
    aco_scope_t scope;
    size_t n = 0;
    ssize_t part = 1;
    int error;
    while (n < 5 && (part = aco_http_request_read(request, text + n, sizeof text - n)) > 0)
        n += (size_t)part;
    CHECK_EQ(n, 5);
    error = begin_ended(&scope, arg != NULL);
    FAILS_WITH(aco_http_request_read(request, text + n, sizeof text - n), error);
    FAILS_WITH(aco_http_request_read(request, text + n, 1), error);
    CHECK_EQ(aco_scope_end(&scope), 0);
    aco_semaphore_release(&turn);
    while ((part = aco_http_request_read(request, text + n, sizeof text - n)) > 0)
        n += (size_t)part;
    CHECK_EQ(part, 0);
    CHECK_EQ(aco_http_reply(request, 200, NULL, text, n), 0);
}

static void reads_all_on(aco_http_request_t *request, void *arg)
{
    aco_scope_t scope;
    char *all;
    size_t n = 0;
    int error = begin_ended(&scope, arg != NULL);
    FAILS_WITH(aco_http_request_read_all(request, 100, &n) ? 0 : -1, error);
    CHECK_EQ(aco_scope_end(&scope), 0);
    aco_semaphore_release(&turn);
    all = aco_http_request_read_all(request, 10, &n);
    CHECK(all != NULL && n == 10 && all[10] == 0);
    CHECK(aco_http_request_read_all(request, 10, NULL) == all);
    CHECK_EQ(aco_http_reply(request, 200, NULL, all, n), 0);
}

static void *servers_read_on(void *arg)
{
    static const aco_http_route_t on[] = {{"GET", "/", tells, "hello\n"},
                                          {"POST", "/0", reads_on, NULL},
                                          {"POST", "/1", reads_on, "cancelled"},
                                          {"POST", "/2", reads_all_on, NULL},
                                          {"POST", "/3", reads_all_on, "cancelled"},
                                          {NULL, NULL, NULL, NULL}};
    stage_t stage = {0};
    char request[200];
    (void)arg;
    start(&stage, on);
    for (int i = 0; i < 8; i++) {
        const char *const *framing = framings[i % 2];
        int fd = dial(&stage);
        int n =
            snprintf(request, sizeof request, "POST /%d HTTP/1.1\r\n" HOST "%s\r\n%s", i / 2, framing[0], framing[1]);
        CHECK(aco_io_write_all(fd, request, (size_t)n) > 0);
        CHECK_EQ(aco_semaphore_acquire(&turn), 0);
        n = snprintf(request, sizeof request, "%s%s", framing[2], GET(""));
        CHECK(aco_io_write_all(fd, request, (size_t)n) > 0);
        aco_io_shutdown(fd, SHUT_WR);
        read_to_end(fd);
        CHECK_TEXT("the next request follows", statuses(), "200 200");
        CHECK(strncmp(body(), "firstlater", 10) == 0);
        aco_io_close(fd);
    }
    stop(&stage);
    return NULL;
}

typedef struct peer {
    int listener, framing;
    char url[ACO_IO_ADDRESS_SIZE + 16];
} peer_t;

static void listen_as_peer(peer_t *peer)
{
    char address[ACO_IO_ADDRESS_SIZE];
    peer->listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(peer->listener, address, sizeof address), 0);
    snprintf(peer->url, sizeof peer->url, "http://%s/", address);
}

/* Answers two requests on one connection. */
static void *answers_in_parts(void *arg)
{
    const peer_t *peer = arg;
    int fd = aco_io_accept(peer->listener);
    CHECK(fd >= 0);
    for (int i = 0; i < 2; i++) {
        const char *const *framing = framings[peer->framing];
        char reply[200];
        int n = snprintf(reply, sizeof reply, "HTTP/1.1 200 OK\r\n%s\r\n%s", framing[0], framing[1]);
        CHECK(aco_io_read(fd, got, 1000) > 0); /* the request, in one piece */
        CHECK(aco_io_write_all(fd, reply, (size_t)n) > 0);
        CHECK_EQ(aco_semaphore_acquire(&turn), 0);
        CHECK(aco_io_write_all(fd, framing[2], strlen(framing[2])) > 0);
    }
    aco_io_close(fd);
    return NULL;
}

static void *clients_read_on(void *arg)
{
    peer_t peer = {0};
    (void)arg;
    listen_as_peer(&peer);
    for (int i = 0; i < 2; i++) {
        aco_http_client_t *client = aco_http_client_new(NULL);
        aco_group_t group;
        peer.framing = i;
        aco_group_begin(&group, 0);
        member(&group, answers_in_parts, &peer);
        for (int is_cancelled = 0; is_cancelled < 2; is_cancelled++) {
            aco_http_response_t *response = aco_http_get(client, peer.url);
            aco_scope_t scope;
            ssize_t part = 1;
            size_t n = 0;
            int error;
            CHECK(response != NULL);
            while (n < 5 && (part = aco_http_response_read(response, text + n, sizeof text - n)) > 0)
                n += (size_t)part;
            error = begin_ended(&scope, is_cancelled);
            FAILS_WITH(aco_http_response_read(response, text + n, sizeof text - n), error);
            FAILS_WITH(aco_http_response_read(response, text + n, 1), error);
            CHECK_EQ(aco_scope_end(&scope), 0);
            aco_semaphore_release(&turn);
            while ((part = aco_http_response_read(response, text + n, sizeof text - n)) > 0)
                n += (size_t)part;
            CHECK(part == 0 && n == 10 && memcmp(text, "firstlater", 10) == 0);
            aco_http_response_end(response); /* and keeps the connection */
        }
        CHECK_EQ(aco_group_end(&group), 0);
        aco_http_client_destroy(client);
    }
    aco_io_close(peer.listener);
    return NULL;
}

static aco_http_client_t *root_client;
static aco_http_response_t *root_response;
static peer_t root_peer;
static int root_fd;

static void *begins_to_answer(void *arg)
{
    static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst";
    (void)arg;
    root_fd = aco_io_accept(root_peer.listener);
    CHECK(aco_io_write_all(root_fd, reply, sizeof reply - 1) > 0);
    return NULL;
}

static void *begins_to_read(void *arg)
{
    aco_group_t group;
    (void)arg;
    listen_as_peer(&root_peer);
    aco_group_begin(&group, 0);
    member(&group, begins_to_answer, NULL);
    root_client = aco_http_client_new(NULL);
    root_response = aco_http_get(root_client, root_peer.url);
    CHECK(root_response && aco_http_response_read(root_response, text, 5) == 5);
    CHECK_EQ(aco_group_end(&group), 0);
    return NULL;
}

static void *ends_reading(void *arg)
{
    (void)arg;
    CHECK(aco_io_write_all(root_fd, "later", 5) > 0);
    CHECK(aco_http_response_read(root_response, text, 5) == 5 && memcmp(text, "later", 5) == 0);
    aco_http_response_end(root_response);
    aco_http_client_destroy(root_client);
    aco_io_close(root_fd);
    aco_io_close(root_peer.listener);
    return NULL;
}

/* Outside of tasks, where nothing can wait. */
static void reads_on_after_root(void)
{
    run_task(begins_to_read, NULL);
    for (int i = 0; i < 2; i++)
        FAILS_WITH(aco_http_response_read(root_response, text, 5), EPERM);
    run_task(ends_reading, NULL);
}

/* ---- Cut replies ---- */

static int64_t length_of(const aco_http_request_t *request)
{
    return strcmp(request->query, "length") == 0 ? INT64_C(1) << 40 : -1;
}

static void begins(aco_http_request_t *request)
{
    CHECK_EQ(aco_http_reply_begin(request, 200, NULL, length_of(request)), 0);
    CHECK_EQ(aco_http_reply_write(request, "part", 4), 0);
}

static void aborts(aco_http_request_t *request, void *arg)
{
    (void)arg;
    begins(request);
    aco_http_reply_abort(request);
}

static void sends_short_file(aco_http_request_t *request, void *arg)
{
    int fd = aco_file_open("/dev/null", O_RDONLY, 0);
    (void)arg;
    begins(request);
    FAILS_WITH(aco_http_reply_write_file(request, fd, 0, 5), EIO);
    CHECK_EQ(aco_http_reply_write(request, "more", 4), 0);
    aco_io_close(fd);
}

/* To a client that takes nothing, up to the end of a scope, or of write_time. */
static void sends_too_much(aco_http_request_t *request, void *has_scope)
{
    aco_scope_t scope;
    begins(request);
    aco_scope_begin(&scope, has_scope ? aco_now() : ACO_FOREVER);
    while (aco_http_reply_write(request, text, sizeof text) == 0)
        ;
    CHECK_EQ(errno, ETIMEDOUT);
    aco_scope_end(&scope);
    aco_semaphore_release(&turn);
}

static void ends_early(aco_http_request_t *request, void *begins_first)
{
    CHECK(aco_http_request_allocate(request, 10000) != NULL);
    if (begins_first)
        begins(request);
    if (begins_first)
        CHECK_EQ(aco_http_reply_flush(request), 0);
    aco_exit();
}

/* Does not notice that it was cancelled. */
static void is_cancelled(aco_http_request_t *request, void *arg)
{
    (void)arg;
    begins(request);
    CHECK_EQ(aco_http_reply_flush(request), 0);
    aco_semaphore_release(&turn);
    CHECK_EQ(aco_sleep(ACO_FOREVER), -1);
}

static const aco_http_route_t cut[] = {{"GET", "/abort", aborts, NULL},
                                       {"GET", "/file", sends_short_file, NULL},
                                       {"GET", "/exit", ends_early, NULL},
                                       {"GET", "/exit/later", ends_early, "later"},
                                       {"GET", "/scope", sends_too_much, "scope"},
                                       {"GET", "/time", sends_too_much, NULL},
                                       {"GET", "/cancelled", is_cancelled, NULL},
                                       {"GET", "/text", streams_text, NULL},
                                       {NULL, NULL, NULL, NULL}};

/* How the stream ends: 0 or errno. */
static int end_of(int fd)
{
    ssize_t n;
    for (got_n = 0; (n = aco_io_read(fd, got + got_n, sizeof got - 1 - got_n)) > 0; got_n += (size_t)n)
        if (got_n > sizeof got / 2)
            got_n = 0;
    got[got_n] = 0;
    return n < 0 ? errno : 0;
}

static void cut_visibly(const aco_options_t *task)
{
    static const char *const versions[] = {" HTTP/1.0\r\n\r\n", "?length HTTP/1.0\r\n\r\n",
                                           " HTTP/1.1\r\nHost: a\r\n\r\n", "?length HTTP/1.1\r\nHost: a\r\n\r\n"};
    enum { VERSIONS = sizeof versions / sizeof versions[0] };
    stage_t stage = {0};
    stage.server.task = task;
    stage.server.write_time = 10 * ACO_MILLISECOND;
    stage.server.drain_time = 1;
    start(&stage, cut);
    for (size_t i = 0; cut[i + 1].path; i++)
        for (size_t k = 0; k < VERSIONS; k++) {
            char request[100];
            int fd = dial(&stage), n = snprintf(request, sizeof request, "GET %s%s", cut[i].path, versions[k]);
            CHECK(aco_io_write_all(fd, request, (size_t)n) > 0);
            if (cut[i].handler == sends_too_much || cut[i].handler == is_cancelled)
                CHECK_EQ(aco_semaphore_acquire(&turn), 0);
            if (cut[i].handler == is_cancelled)
                stop(&stage);
            n = end_of(fd);
            if (n != ECONNRESET)
                fprintf(stderr, "%s%s: the end is %d\n", cut[i].path, versions[k], n);
            CHECK_EQ(n, ECONNRESET);
            CHECK(got_n < 5 || memcmp(got + got_n - 5, "0\r\n\r\n", 5) != 0);
            aco_io_close(fd);
            if (cut[i].handler == is_cancelled)
                start(&stage, cut);
        }
    for (size_t k = 0; k < VERSIONS; k += 2) { /* a whole one */
        char request[100];
        int fd = dial(&stage), n = snprintf(request, sizeof request, "GET /text%s", versions[k]);
        CHECK(aco_io_write_all(fd, request, (size_t)n) > 0);
        aco_io_shutdown(fd, SHUT_WR);
        CHECK_EQ(end_of(fd), 0);
        CHECK_TEXT("the body", body(), k ? "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n" : "abc");
        aco_io_close(fd);
    }
    stop(&stage);
}

static void exits_as_websocket(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK(aco_websocket_accept(request, NULL) != NULL);
    aco_exit();
}

/* What the connection has then besides its task's reply: an earlier one that was not sent yet; a WebSocket. */
static void exits_with_more(const aco_options_t *task)
{
    static const aco_http_route_t exiting[] = {{"GET", "/text", streams_text, NULL},
                                               {"GET", "/exit", ends_early, NULL},
                                               {"GET", "/socket", exits_as_websocket, NULL},
                                               {NULL, NULL, NULL, NULL}};
    static const char *const requests[] = {
        "GET /text HTTP/1.1\r\nHost: a\r\n\r\nGET /exit HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"};
    stage_t stage = {.server = {.task = task}};
    start(&stage, exiting);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        int fd = dial(&stage);
        CHECK(aco_io_write_all(fd, requests[i], strlen(requests[i])) > 0);
        CHECK_EQ(end_of(fd), ECONNRESET);
        CHECK(memcmp(got, "HTTP/1.1 ", 9) == 0);
        aco_io_close(fd);
    }
    stop(&stage);
}

static void *cuts_visibly(void *arg)
{
    aco_options_t task = {0};
    (void)arg;
    cut_visibly(NULL);
    exits_with_more(NULL);
    task.stack = aco_share_stack_new(0);
    cut_visibly(&task);
    exits_with_more(&task);
    aco_share_stack_destroy(task.stack);
    return NULL;
}

/* A connection's task that ends before its first request. */
static aco_stream_t *exits(int fd, void *arg)
{
    (void)fd;
    (void)arg;
    aco_exit();
}

static void *ends_before_requests(void *arg)
{
    aco_options_t task = {0};
    stage_t stage = {.server = {.open = exits, .task = &task}};
    (void)arg;
    task.stack = aco_share_stack_new(0);
    for (int i = 0; i < 2; i++) {
        int fd;
        start(&stage, routes);
        fd = dial(&stage);
        CHECK_EQ(end_of(fd), 0);
        aco_io_close(fd);
        stop(&stage);
        stage.server.task = NULL;
    }
    aco_share_stack_destroy(task.stack);
    return NULL;
}

/* A client whose body fails in the middle. */
static ssize_t fails_later(void *left, void *p, size_t n)
{
    if ((*(int *)left)-- == 0) {
        errno = EIO;
        return -1;
    }
    memset(p, 'b', n);
    return (ssize_t)n;
}

static void *takes_request(void *arg)
{
    int fd = aco_io_accept(((peer_t *)arg)->listener);
    CHECK_EQ(end_of(fd), ECONNRESET);
    CHECK(got_n < 5 || memcmp(got + got_n - 5, "0\r\n\r\n", 5) != 0);
    aco_io_close(fd);
    return NULL;
}

static void *clients_cut_visibly(void *arg)
{
    aco_http_client_t *client = aco_http_client_new(NULL);
    peer_t peer = {0};
    (void)arg;
    listen_as_peer(&peer);
    for (int i = 0; i < 2; i++) {
        int left = 3;
        aco_http_call_t call = {.method = "POST", .url = peer.url, .length = i ? 1 << 20 : -1};
        aco_group_t group;
        call.read_body = fails_later;
        call.read_arg = &left;
        aco_group_begin(&group, 0);
        member(&group, takes_request, &peer);
        errno = 0;
        CHECK(aco_http_call(client, &call) == NULL && errno == EIO);
        CHECK_EQ(aco_group_end(&group), 0);
    }
    aco_io_close(peer.listener);
    aco_http_client_destroy(client);
    return NULL;
}

/* ---- Idle connections ---- */

/* Connections use one memory for their requests, one after the other: what failed in one is not the next one's. */
static void *forgets_failures(void *arg)
{
    static const char half[] = "GET / HTTP/1.1\r\nHo", whole[] = "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n";
    uint64_t failures[ACO_HTTP_FAILURES] = {0};
    stage_t stage = {.server = {.failures = failures}};
    (void)arg;
    start(&stage, routes);
    talk(&stage, half, sizeof half - 1, IN_ONE_PIECE);
    for (int i = 0; i < 3; i++) {
        talk(&stage, whole, sizeof whole - 1, IN_ONE_PIECE);
        CHECK_TEXT("the next connection", statuses(), "200");
    }
    talk(&stage, "", 0, IN_ONE_PIECE);
    stop(&stage);
    CHECK_EQ(failures[ACO_HTTP_LEFT], 1);
    return NULL;
}

#if defined __OPTIMIZE__ && defined __x86_64__
enum { MOST_IDLE_FRAMES = SANITIZED || !SMALL_FRAMES ? 0 : 256 }; /* bytes. 152 by gcc 12 with -O2 */
#else
enum { MOST_IDLE_FRAMES = 0 }; /* not known */
#endif

static aco_t *task_of_first;

static void tells_task(aco_http_request_t *request, void *first)
{
    if (!*(aco_t **)first)
        *(aco_t **)first = aco_current_task();
    tells(request, "hello\n");
}

/* The first connection is idle, and another one runs on the stack that both share. How much of the first one's frames
 * that has moved away is known when the first one has surely begun to wait. */
static void *holds_few_frames(void *arg)
{
    static const char request[] = "GET / HTTP/1.1\r\n" HOST "\r\n";
    const aco_http_route_t telling[] = {{"GET", "/", tells_task, &task_of_first}, {NULL, NULL, NULL, NULL}};
    aco_options_t task = {.stack = aco_share_stack_new(0)};
    stage_t stage = {.server = {.task = &task}};
    int fds[2];
    (void)arg;
    task_of_first = NULL;
    start(&stage, telling);
    for (int i = 0; i < 2; i++) {
        fds[i] = dial(&stage);
        CHECK(aco_io_write_all(fds[i], request, sizeof request - 1) > 0);
        CHECK_EQ(read_reply(fds[i]), 200);
    }
    for (int i = 0; i < 100 && task_of_first->save_stack.valid_sz > MOST_IDLE_FRAMES; i++) {
        CHECK(aco_io_write_all(fds[1], request, sizeof request - 1) > 0);
        CHECK_EQ(read_reply(fds[1]), 200);
    }
    CHECK(!MOST_IDLE_FRAMES || task_of_first->save_stack.valid_sz <= MOST_IDLE_FRAMES);
    for (int i = 0; i < 2; i++)
        aco_io_close(fds[i]);
    stop(&stage);
    aco_share_stack_destroy(task.stack);
    return NULL;
}

/* ---- Small stacks ---- */

#ifdef __OPTIMIZE__
enum { LEAST_STACK = SANITIZED || !SMALL_FRAMES ? 0 : 4096 };
#else
enum { LEAST_STACK = SANITIZED || !SMALL_FRAMES ? 0 : 8192 };
#endif

typedef struct question {
    aco_http_client_t *client;
    const char *port, *path, *body;
    int status;
} question_t;

static void leads_on(aco_http_request_t *request, void *to)
{
    CHECK_EQ(aco_http_reply_header(request, "Location", to), 0);
    CHECK_EQ(aco_http_reply(request, 302, NULL, NULL, 0), 0);
}

static ssize_t makes_body(void *left, void *p, size_t n)
{
    size_t *parts = left;
    if (*parts == 0)
        return 0;
    --*parts;
    memset(p, 'b', n);
    return (ssize_t)n;
}

static void *asks(void *arg)
{
    question_t *q = arg;
    size_t parts = 3;
    aco_http_call_t call = {.url = text, .read_arg = &parts, .length = q->body ? -1 : 0};
    aco_http_response_t *response;
    char *at = stpcpy(stpcpy(stpcpy(text, "http://127.0.0.1:"), q->port), q->path);
    CHECK(at < text + sizeof text);
    call.method = q->body ? "POST" : NULL;
    call.read_body = q->body ? makes_body : NULL;
    response = aco_http_call(q->client, &call);
    q->status = response ? response->status : errno;
    aco_http_response_end(response); /* with the body unread */
    return NULL;
}

/* Calls need no more than the least stack. */
static void *asks_with_little_stack(void *arg)
{
    static const aco_http_route_t redirects[] = {
        {"GET", "/", tells, "hello\n"},   {"GET", "/text", streams_text, NULL},
        {"POST", "/echo", echoes, NULL},  {"POST", "/stream", streams, NULL},
        {"GET", "/to", leads_on, "text"}, {"GET", "/whole", leads_on, "ftp://a/"},
        {NULL, NULL, NULL, NULL}};
    static const struct {
        const char *path, *body;
        int status;
    } cases[] = {{"/", NULL, 200},   {"/text", NULL, 200},     {"/none", NULL, 404}, {"/\x80", NULL, EINVAL},
                 {"/to", NULL, 200}, {"/whole", NULL, EINVAL}, {"/echo", "b", 200},  {"/stream", "b", 200}};
    stage_t stage = {0};
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_options_t options = {.stack_size = LEAST_STACK};
    (void)arg;
    start(&stage, redirects);
    for (size_t i = 0; i < 16 * sizeof cases / sizeof cases[0]; i++) { /* stacks begin at different places */
        size_t k = i % (sizeof cases / sizeof cases[0]);
        question_t question = {client, stage.port, cases[k].path, cases[k].body, 0};
        aco_t *task = aco_spawn(asks, &question, &options);
        CHECK(task != NULL);
        CHECK_EQ(aco_join(task, NULL), 0);
        CHECK_EQ(question.status, cases[k].status);
    }
    aco_http_client_destroy(client);
    stop(&stage);
    return NULL;
}

/* What a server does by itself needs no more, either. */
static void *needs_little_stack(void *arg)
{
    static const char *const requests[] = {
        "",
        "nonsense\r\n\r\n",
        "GET / HTTP/9.1\r\n" HOST "\r\n",
        "BREW / HTTP/1.1\r\n" HOST "\r\n",
        "GET /%zz HTTP/1.1\r\n" HOST "\r\n",
        "GET / HTTP/1.1\r\n" HOST HOST "\r\n",
        "GET /none HTTP/1.1\r\n" HOST "\r\n",
        "PUT /text HTTP/1.1\r\n" HOST "\r\n",
        "POST /none HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nabc",
        "POST /none HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nabc",
        "POST /none HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nabcde",
        "POST /none HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "POST /none HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "POST /none HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n",
        "POST /none HTTP/1.1\r\n" HOST "Expect: wonders\r\nContent-Length: 5\r\n\r\n",
    };
    aco_options_t task = {.stack_size = LEAST_STACK};
    stage_t stage = {0};
    (void)arg;
    stage.server.task = &task;
    stage.server.max_head = 1000;
    start(&stage, routes);
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        for (int k = 0; k < 16; k++) /* stacks begin at different places of their first page */
            talk(&stage, requests[i], strlen(requests[i]), IN_ONE_PIECE);
    memset(text, 'a', 2000);
    talk(&stage, text, 2000, IN_ONE_PIECE);
    stop(&stage);
    return NULL;
}

/* ---- The end behind the last reply ---- */

static ssize_t (*real_send)(int fd, const void *p, size_t n, int flags);
static int (*real_shutdown)(int fd, int how);
static int held_sends, half_closes; /* of both sides; the client holds none */

static ssize_t counts_held_send(int fd, const void *p, size_t n, int flags)
{
#ifdef MSG_MORE
    held_sends += (flags & MSG_MORE) != 0;
#endif
    return real_send(fd, p, n, flags);
}

static int counts_half_close(int fd, int how)
{
    half_closes++;
    return real_shutdown(fd, how);
}

/* The reply comes whole, and no reset behind it. */
static void says_all(const stage_t *stage, const char *asked, int client_ends, const char *said)
{
    int fd = dial(stage);
    held_sends = half_closes = 0;
    CHECK(aco_io_write_all(fd, asked, strlen(asked)) > 0);
    if (client_ends)
        CHECK_EQ(aco_io_shutdown(fd, SHUT_WR), 0);
    CHECK_EQ(read_to_end(fd), 0);
    CHECK_TEXT(asked, statuses(), said);
    aco_io_close(fd);
}

/* A reply and the end behind it are one packet, and the reply comes whatever the client sends meanwhile: the server
 * closes its half before it looks. */
static void *ends_with_the_reply(void *arg)
{
    static const char last[] = "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n";
    static const char first[] = "GET / HTTP/1.1\r\n" HOST "\r\nGET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n";
    static const char more[] = "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n";
    stage_t stage = {0};
    real_send = aco__system.send;
    real_shutdown = aco__system.shutdown;
    aco__system.send = counts_held_send;
    aco__system.shutdown = counts_half_close;
    start(&stage, routes);
    says_all(&stage, last, 0, "200");
    CHECK_EQ(half_closes, 1);
#ifdef MSG_MORE
    CHECK_EQ(held_sends, 1);
#endif
    says_all(&stage, last, 1, "200");
    CHECK_EQ(half_closes, 2); /* the client's, and the server's */
    says_all(&stage, first, 0, "200 200");
    CHECK_EQ(half_closes, 1);
    says_all(&stage, more, 0, "200");
    CHECK_EQ(half_closes, 1);
    stop(&stage);
    aco__system.send = real_send;
    aco__system.shutdown = real_shutdown;
    return arg;
}

static int children_may_end[2];
static pid_t child;

/* The child has the connection while it lives. */
static void forks(aco_http_request_t *request, void *arg)
{
    char byte;
    (void)arg;
    child = fork();
    if (child == 0) {
        close(children_may_end[1]);
        while (read(children_may_end[0], &byte, 1) < 0)
            ;
        _exit(0);
    }
    CHECK_EQ(aco_http_reply(request, 200, NULL, "", 0), 0);
}

/* So the close of the connection sends nothing. */
static void *ends_beside_children(void *arg)
{
    static const aco_http_route_t forking[] = {{"GET", "/", forks, NULL}, {NULL, NULL, NULL, NULL}};
    stage_t stage = {0};
    int status = -1;
    if (UNDER_TSAN)
        return arg;
    CHECK_EQ(pipe(children_may_end), 0);
    start(&stage, forking);
    says_all(&stage, "GET / HTTP/1.0\r\n\r\n", 0, "200");
    close(children_may_end[0]);
    close(children_may_end[1]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    stop(&stage);
    return arg;
}

/* A peer that sends more when the server has looked whether it has, and has not closed the connection yet. */
static int client_of_more = -1;

static ssize_t (*real_recv)(int fd, void *p, size_t n, int flags);

static ssize_t recv_before_more(int fd, void *p, size_t n, int flags)
{
    ssize_t received = real_recv(fd, p, n, flags);
    if (flags & MSG_PEEK && client_of_more >= 0) {
        CHECK_EQ(real_send(client_of_more, "\r\n", 2, MSG_NOSIGNAL), 2);
        client_of_more = -1;
    }
    return received;
}

/* The reply is not lost by the reset that the close sends. */
static void *replies_to_late_senders(void *arg)
{
    stage_t stage = {0};
    int fd;
    char byte;
    real_send = aco__system.send;
    real_recv = aco__system.recv;
    aco__system.recv = recv_before_more;
    start(&stage, routes);
    fd = client_of_more = dial(&stage);
    CHECK(aco_io_write_all(fd, "GET / HTTP/1.0\r\n\r\n", 18) > 0);
    CHECK_EQ(aco_io_read(fd, &byte, 1), 1);
    CHECK_EQ(client_of_more, -1);
    aco_io_close(fd);
    stop(&stage);
    aco__system.recv = real_recv;
    return arg;
}

int main(void)
{
    static const aco_function_t tests[] = {limits_framing,         limits_steady_peers,    limits_steady_websockets,
                                           servers_read_on,        clients_read_on,        cuts_visibly,
                                           ends_before_requests,   clients_cut_visibly,    needs_little_stack,
                                           asks_with_little_stack, tells_of_files,         fails_on_mute_streams,
                                           forgets_failures,       holds_few_frames,       ends_with_the_reply,
                                           ends_beside_children,   replies_to_late_senders};
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    reads_on_after_root();
    return check_result("http_ends");
}
