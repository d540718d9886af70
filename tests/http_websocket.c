/* WebSocket (include/aco/websocket.h): handshakes, frames byte by byte, ends and limits. The client is a socket that
 * sends what the table says. tests/io/websocket_peers.py has other implementations.
 *
 * http_websocket serve: serves instead: /echo, /ask (closes with a code of the message). */
#define _GNU_SOURCE
#include <aco/sync.h>
#include <aco/websocket.h>
#include "io_tests.h"

#include <string.h>

static char address[ACO_IO_ADDRESS_SIZE], got[1 << 20];
static size_t got_n;
static aco_websocket_options_t options;
static int last_error; /* of the handler's last receive; 0: it returned 0 */
static int last_code;
static aco_http_server_options_t server;

/* ---- The server ---- */

static void echo(aco_http_request_t *request, void *unused)
{
    aco_websocket_t *socket;
    const char *data;
    size_t n;
    int type;
    (void)unused;
    aco_http_reply_header(request, "X-Added", "yes");
    socket = aco_websocket_accept(request, &options);
    if (!socket) {
        last_error = errno;
        return;
    }
    CHECK_EQ(aco_http_reply(request, 200, NULL, "", 0), -1);
    CHECK(aco_websocket_accept(request, &options) == NULL && errno == EBUSY);
    while ((type = aco_websocket_receive(socket, &data, &n)) > 0) {
        CHECK_EQ(data[n], 0);
        CHECK_EQ(aco_websocket_send(socket, type, data, n), 0);
    }
    last_error = type < 0 ? errno : 0;
    last_code = aco_websocket_code(socket);
    CHECK_EQ(aco_websocket_receive(socket, &data, &n), type); /* the same again */
    if (type < 0)
        CHECK_EQ(errno, last_error);
    CHECK(strcmp(aco_http_request_header(request, "Host"), "a.test") == 0); /* what the request had is still there */
}

/* Echoes compressed messages. */
static void echo_deflated(aco_http_request_t *request, void *compresses)
{
    const aco_websocket_options_t deflating = {.compresses = (int)(intptr_t)compresses};
    aco_websocket_t *socket = aco_websocket_accept(request, &deflating);
    const char *data;
    size_t n;
    int type;
    while (socket && (type = aco_websocket_receive(socket, &data, &n)) > 0)
        CHECK_EQ(aco_websocket_send(socket, type, data, n), 0);
}

/* Closes with the code that it is told, and expects what comes after that. */
static void ask(aco_http_request_t *request, void *unused)
{
    aco_websocket_t *socket = aco_websocket_accept(request, &options);
    const char *data;
    size_t n;
    (void)unused;
    CHECK(socket != NULL);
    if (socket && aco_websocket_receive(socket, &data, &n) > 0)
        last_error = aco_websocket_close(socket, atoi(data), "because") == 0 ? 0 : errno;
}

/* Misuse; and the handler returns without a close. */
static void misuse(aco_http_request_t *request, void *unused)
{
    const aco_websocket_options_t reserved = {.aco__reserved = {NULL, request}};
    aco_websocket_t *socket;
    char long_reason[200];
    (void)unused;
    FAILS_WITH(aco_websocket_accept(request, &reserved) ? 0 : -1, EINVAL);
    socket = aco_websocket_accept(request, &options);
    memset(long_reason, 'a', sizeof long_reason);
    long_reason[199] = 0;
    FAILS_WITH(aco_websocket_send(socket, 3, "a", 1), EINVAL);
    FAILS_WITH(aco_websocket_send(socket, ACO_WEBSOCKET_TEXT, "\xff", 1), EINVAL);
    FAILS_WITH(aco_websocket_close(socket, 1005, NULL), EINVAL);
    FAILS_WITH(aco_websocket_close(socket, 999, NULL), EINVAL);
    FAILS_WITH(aco_websocket_close(socket, 1016, NULL), EINVAL);
    FAILS_WITH(aco_websocket_close(socket, 2999, NULL), EINVAL);
    FAILS_WITH(aco_websocket_close(socket, 1000, long_reason), EINVAL);
    FAILS_WITH(aco_websocket_close(socket, 1000, "\xc0\x80"), EINVAL);
    CHECK_EQ(aco_websocket_code(socket), 1006);
}

typedef struct shared {
    aco_websocket_t *socket;
    int done;
} shared_t;

static void *sends_many(void *arg)
{
    static char large[9000];
    const shared_t *shared = arg;
    memset(large, 'l', sizeof large);
    for (int i = 0; i < 40; i++) {
        CHECK_EQ(aco_websocket_send(shared->socket, ACO_WEBSOCKET_BINARY, large, i & 1 ? sizeof large : 10), 0);
        aco_task_yield();
    }
    return NULL;
}

/* Several tasks send at once. */
static void sends_at_once(aco_http_request_t *request, void *unused)
{
    shared_t shared = {aco_websocket_accept(request, &options), 0};
    aco_group_t group;
    (void)unused;
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 4; i++)
        member(&group, sends_many, &shared);
    aco_group_end(&group);
    CHECK_EQ(aco_websocket_close(shared.socket, 1000, NULL), 0);
}

static turns_t turns;

/* To a client that takes all at once. Others have their turns all the same. */
static void sends_in_a_row(aco_http_request_t *request, void *unused)
{
    enum { MESSAGES = 1280 };
    aco_websocket_t *socket = aco_websocket_accept(request, &options);
    int enough = 1 << 20;
    (void)unused;
    CHECK_EQ(setsockopt(request->fd, SOL_SOCKET, SO_SNDBUF, &enough, sizeof enough), 0);
    turns.n = 0;
    for (int i = 0; i < MESSAGES; i++)
        CHECK_EQ(aco_websocket_send(socket, ACO_WEBSOCKET_TEXT, "m", 1), 0);
    CHECK(turns.n >= MESSAGES / 128);
}

static aco_semaphore_t has_stalled;
static size_t sent_before; /* messages that were sent until the client's side was full */

/* In a scope that has ended, to a client that takes nothing: what was not sent can be sent again, and the client's ping
 * is answered later. */
static void goes_on(aco_http_request_t *request, void *unused)
{
    aco_websocket_t *socket = aco_websocket_accept(request, &options);
    aco_scope_t scope;
    const char *data;
    size_t n;
    (void)unused;
    CHECK_EQ(aco_scope_begin(&scope, aco_now()), 0);
    for (sent_before = 0; aco_websocket_send(socket, ACO_WEBSOCKET_BINARY, "m", 1) == 0;)
        sent_before++;
    CHECK_EQ(errno, ETIMEDOUT);
    FAILS_WITH(aco_websocket_send(socket, ACO_WEBSOCKET_BINARY, "m", 1), ETIMEDOUT);
    for (int i = 0; i < 2; i++)
        FAILS_WITH(aco_websocket_receive(socket, &data, &n), ETIMEDOUT);
    CHECK_EQ(aco_scope_end(&scope), 0);
    aco_semaphore_release(&has_stalled);
    CHECK_EQ(aco_websocket_send(socket, ACO_WEBSOCKET_BINARY, "m", 1), 0);
    CHECK_EQ(aco_websocket_receive(socket, &data, &n), 0);
}

/* To a client that takes nothing: the answer finds no room in time, and is sent when the handler has returned. */
static void answers_late(aco_http_request_t *request, void *unused)
{
    aco_scope_t scope;
    (void)unused;
    CHECK_EQ(aco_scope_begin(&scope, aco_now()), 0);
    for (sent_before = 0; send(request->fd, "m", 1, MSG_DONTWAIT) == 1;)
        sent_before++;
    CHECK(aco_websocket_accept(request, &options) == NULL && errno == ETIMEDOUT);
    CHECK_EQ(aco_scope_end(&scope), 0);
    aco_semaphore_release(&has_stalled);
}

/* A reply to an earlier request, which stays in the server's buffer. */
static void tells_much(aco_http_request_t *request, void *unused)
{
    static char much[4096];
    (void)unused;
    memset(much, 'm', sizeof much);
    CHECK_EQ(aco_http_reply(request, 200, NULL, much, sizeof much), 0);
}

/* The client takes nothing, and the scope has ended: the handshake is not answered, so the handler replies. */
static void replies_instead(aco_http_request_t *request, void *unused)
{
    static char much[5000];
    aco_scope_t scope;
    (void)unused;
    memset(much, 'n', sizeof much - 1);
    CHECK_EQ(aco_http_reply_header(request, "X", much), 0);
    for (size_t n = sizeof much; n > 0; n = n > 1)
        while (aco_io_send(request->fd, much, n, MSG_DONTWAIT) > 0)
            ;
    CHECK_EQ(aco_scope_begin(&scope, aco_now()), 0);
    for (int i = 0; i < 2; i++)
        CHECK(aco_websocket_accept(request, &options) == NULL && errno == ETIMEDOUT);
    CHECK_EQ(aco_scope_end(&scope), 0);
    aco_semaphore_release(&has_stalled);
    CHECK_EQ(aco_http_reply(request, 200, NULL, "instead", 7), 0);
}

/* ---- The client ---- */

static const char handshake[] =
    "GET /echo HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: keep-alive, "
    "Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";

static int dial(void)
{
    char host[64];
    char *port;
    snprintf(host, sizeof host, "%.60s", address);
    port = strrchr(host, ':');
    *port++ = 0;
    return aco_io_dial("tcp", host, port, NULL);
}

static void read_to_end(int fd)
{
    ssize_t n;
    got_n = 0;
    while (got_n < sizeof got - 1 && (n = aco_io_read(fd, got + got_n, sizeof got - 1 - got_n)) > 0)
        got_n += (size_t)n;
    got[got_n] = 0;
}

/* What comes behind the head of the reply. */
static char *frames(void)
{
    char *end = strstr(got, "\r\n\r\n");
    return end ? end + 4 : got + got_n;
}

static size_t frames_n(void)
{
    return (size_t)(got + got_n - frames());
}

/* Sends the request and the frames, whole or in pieces, and reads all that comes. */
static void exchange(const char *path, const char *more_headers, const char *bytes, size_t n, size_t piece)
{
    char request[1024];
    int head = snprintf(request, sizeof request, "GET %s%s%s\r\n", path, handshake + strlen("GET /echo"), more_headers);
    int fd = dial();
    char all[4096];
    size_t all_n = (size_t)head + n;
    CHECK(fd >= 0 && all_n <= sizeof all);
    memcpy(all, request, (size_t)head);
    memcpy(all + head, bytes, n);
    last_error = -1;
    for (size_t sent = 0; sent < all_n; sent += piece) {
        if (aco_io_write_all(fd, all + sent, piece < all_n - sent ? piece : all_n - sent) < 0)
            break;
        for (int i = 0; i < 130 && piece < all_n && !IS_SIMULATED; i++) /* the poller's turn comes after some rounds */
            aco_task_yield();
    }
    read_to_end(fd);
    CHECK_EQ(aco_io_close(fd), 0);
}

/* ---- Handshakes ---- */

static void *shakes_hands(void *unused)
{
    static const struct {
        const char *request, *answer;
        int error;
    } cases[] = {
        {"POST /any HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
         "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
         "400", EPROTO},
        {"GET /any HTTP/1.0\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
         "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
         "400", EPROTO},
        {"GET /any HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
         "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
         "400", EPROTO},
        {"GET /any HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nSec-WebSocket-Key: "
         "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
         "400", EPROTO},
        {"GET /any HTTP/1.1\r\nHost: a.test\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
         "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
         "400", EPROTO},
        {"GET /any HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
         "dGhlIHNhbXBsZSBub25jZQ=\r\nSec-WebSocket-Version: 13\r\n\r\n",
         "400", EPROTO},
        {"GET /any HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: "
         "13\r\n\r\n",
         "400", EPROTO},
        {"GET /any HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
         "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
         "400", EPROTO},
        {"GET /any HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: "
         "1\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\nx",
         "400", EPROTO},
        {"GET /any HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
         "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Version: 13\r\n\r\n",
         "400", EPROTO},
        {"GET /any HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
         "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 8\r\n\r\n",
         "426", EPROTO},
    };
    static const char close[] = "\x88\x80\1\2\3\4";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = dial();
        CHECK(aco_io_write_all(fd, cases[i].request, strlen(cases[i].request)) > 0);
        CHECK_EQ(aco_io_shutdown(fd, SHUT_WR), 0);
        read_to_end(fd);
        CHECK_EQ(aco_io_close(fd), 0);
        if (strncmp(got + 9, cases[i].answer, 3) != 0)
            fprintf(stderr, "handshake %zu: %.60s\n", i, got);
        CHECK(strncmp(got + 9, cases[i].answer, 3) == 0);
        CHECK_EQ(last_error, cases[i].error);
    }
    CHECK(strstr(got, "Sec-WebSocket-Version: 13\r\n") != NULL);
    exchange("/echo", "", close, 6, 4096);
    CHECK(strncmp(got, "HTTP/1.1 101 ", 13) == 0);
    CHECK(strstr(got, "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") != NULL); /* RFC 6455, 1.3 */
    CHECK(strstr(got, "\r\nX-Added: yes\r\n") != NULL && strstr(got, "Protocol: ") == NULL);
    options.protocols = "b, a";
    exchange("/echo", "Sec-WebSocket-Protocol: c, a\r\nSec-WebSocket-Protocol: b\r\n", close, 6, 4096);
    CHECK(strstr(got, "\r\nSec-WebSocket-Protocol: b\r\n") != NULL);
    exchange("/echo", "Sec-WebSocket-Protocol: c\r\n", close, 6, 4096);
    CHECK(strstr(got, "Protocol: ") == NULL);
    options.protocols = NULL;
    return unused;
}

static void *checks_origins(void *unused)
{
    static const struct {
        const char *origins, *origin;
        int is_allowed;
    } cases[] = {{NULL, "http://a.test", 1},
                 {NULL, "https://A.test", 1},
                 {NULL, "http://a.test:81", 0},
                 {NULL, "http://evil.test", 0},
                 {NULL, "null", 0},
                 {"*", "http://evil.test", 1},
                 {"http://b, https://c:1", "https://c:1", 1},
                 {"http://b, https://c:1", "https://c", 0},
                 {"http://b", "http://a.test", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[80];
        snprintf(header, sizeof header, "Origin: %s\r\nConnection: close\r\n", cases[i].origin);
        options.origins = cases[i].origins;
        exchange("/echo", header, "\x88\x80\1\2\3\4", 6, 4096);
        if (strncmp(got + 9, cases[i].is_allowed ? "101" : "403", 3) != 0)
            fprintf(stderr, "origin %zu: %.40s\n", i, got);
        CHECK(strncmp(got + 9, cases[i].is_allowed ? "101" : "403", 3) == 0);
    }
    options.origins = NULL;
    return unused;
}

/* Of several origins none is taken. Upgrade and Connection are lists. */
static void *reads_all_lines(void *unused)
{
    static const char begin[] = "GET /echo HTTP/1.1\r\nHost: a.test\r\nSec-WebSocket-Version: 13\r\n"
                                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    static const char upgrade[] = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
    static const char *const cases[][3] = {
        {upgrade, "Origin: http://a.test\r\n", "101"},
        {upgrade, "Origin: http://a.test\r\nOrigin: http://evil.test\r\n", "400"},
        {upgrade, "Origin: http://evil.test\r\nOrigin: http://a.test\r\n", "400"},
        {upgrade, "Origin: http://a.test\r\norigin: http://a.test\r\n", "400"},
        {upgrade, "Origin:\r\nOrigin: http://a.test\r\n", "400"},
        {upgrade, "Origin: http://a.test, http://a.test\r\n", "403"},
        {"Upgrade: h2c, WebSocket\r\nConnection: Upgrade\r\n", "", "101"},
        {"Upgrade: h2c\r\nUpgrade: websocket\r\nConnection: keep-alive\r\nConnection: upgrade\r\n", "", "101"},
        {"Upgrade: h2c, websockets\r\nConnection: Upgrade\r\n", "", "400"},
        {"Upgrade: \"websocket\"\r\nConnection: Upgrade\r\n", "", "400"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char request[512];
        int n = snprintf(request, sizeof request, "%s%s%s\r\n", begin, cases[i][0], cases[i][1]), fd = dial();
        CHECK_EQ(aco_io_write_all(fd, request, (size_t)n), n);
        CHECK_EQ(aco_io_shutdown(fd, SHUT_WR), 0);
        read_to_end(fd);
        CHECK_EQ(aco_io_close(fd), 0);
        if (strncmp(got + 9, cases[i][2], 3) != 0)
            fprintf(stderr, "case %zu: %.40s\n", i, got);
        CHECK(strncmp(got, "HTTP/1.1 ", 9) == 0 && strncmp(got + 9, cases[i][2], 3) == 0);
    }
    return unused;
}

/* An empty field hides neither the key nor the origin. */
static void *takes_empty_fields(void *unused)
{
    static const char begin[] = "GET /echo HTTP/1.1\r\nHost: a.test\r\nX:\r\nUpgrade: websocket\r\nY:\r\n"
                                "Connection: Upgrade\r\nX: \r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                                "Sec-WebSocket-Protocol:\r\nSec-WebSocket-Version: 13\r\n";
    static const char *const origins[][2] = {
        {"", "101"}, {"X:\r\nOrigin: http://a.test\r\n", "101"}, {"X:\r\nOrigin: http://evil.test\r\n", "403"}};
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++)
        for (int piecewise = 0; piecewise < 2; piecewise++) {
            char request[sizeof begin + 64];
            int n = snprintf(request, sizeof request, "%s%s\r\n", begin, origins[i][0]), fd = dial();
            size_t piece = piecewise ? 1 : (size_t)n;
            for (size_t sent = 0; sent < (size_t)n; sent += piece) {
                CHECK(aco_io_write_all(fd, request + sent, piece) > 0);
                aco_task_yield();
            }
            CHECK_EQ(aco_io_shutdown(fd, SHUT_WR), 0);
            read_to_end(fd);
            CHECK_EQ(aco_io_close(fd), 0);
            CHECK(strncmp(got, "HTTP/1.1 ", 9) == 0 && strncmp(got + 9, origins[i][1], 3) == 0);
        }
    return unused;
}

/* ---- Frames ---- */

/* What is sent, without masks and with lengths of a byte; it is sent with masks. */
static const struct {
    const char *name, *sent;
    size_t sent_n;
    const char *answer;
    size_t answer_n;
    int error, code;
} frame_cases[] = {
#define CASE(name, sent, answer, error, code) {name, sent, sizeof(sent) - 1, answer, sizeof(answer) - 1, error, code}
#define ENDS(name, sent, answer) CASE(name, sent "\x88\0", answer "\x88\0", 0, 1005)
#define FAILS(name, sent) CASE(name, sent, "\x88", EBADMSG, 1006)
    ENDS("text", "\x81\5hello", "\x81\5hello"),
    ENDS("binary", "\x82\3\0\xff\1", "\x82\3\0\xff\1"),
    ENDS("nothing", "\x81\0", "\x81\0"),
    ENDS("fragments", "\1\2he\0\1l\x80\2lo", "\x81\5hello"),
    ENDS("empty fragments", "\1\0\0\0\x80\0", "\x81\0"),
    ENDS("a ping between", "\1\2he\x89\3abc\x80\3llo", "\x8a\3abc\x81\5hello"),
    ENDS("a pong", "\x8a\1x", ""),
    ENDS("a character in two", "\1\1\xc3\x80\1\xa4", "\x81\2\xc3\xa4"),
    CASE("with a code", "\x88\2\x03\xe8", "\x88\2\x03\xe8", 0, 1000),
    CASE("with a reason",
         "\x88\5\x0f\xa0"
         "bye",
         "\x88\2\x0f\xa0", 0, 4000),
    CASE("after the close", "\x88\0\x81\1x", "\x88\0", 0, 1005),
    FAILS("a reserved bit", "\xc1\1x"),
    FAILS("a reserved type", "\x83\1x"),
    FAILS("a reserved control", "\x8b\1x"),
    FAILS("a ping in two", "\x09\1x\x80\1y"),
    FAILS("a close in two", "\x08\0\x80\0"),
    FAILS("a continuation of nothing", "\x80\1x"),
    FAILS("a message in a message", "\1\1x\x81\1y"),
    FAILS("a close of one byte", "\x88\1\x03"),
    FAILS("code 999", "\x88\2\x03\xe7"),
    FAILS("code 1004", "\x88\2\x03\xec"),
    FAILS("code 1005", "\x88\2\x03\xed"),
    FAILS("code 1006", "\x88\2\x03\xee"),
    FAILS("code 1015", "\x88\2\x03\xf7"),
    FAILS("code 5000", "\x88\2\x13\x88"),
    FAILS("a reason that is no text", "\x88\3\x03\xe8\xff"),
    FAILS("no text", "\x81\1\xff"),
    FAILS("half a character", "\x81\1\xc3"),
    FAILS("too long a form", "\x81\2\xc0\x80"),
    FAILS("too long a form of 3", "\x81\3\xe0\x80\x80"),
    FAILS("too long a form of 4", "\x81\4\xf0\x80\x80\x80"),
    FAILS("a surrogate", "\x81\3\xed\xa0\x80"),
    FAILS("beyond Unicode", "\x81\4\xf4\x90\x80\x80"),
    ENDS("the last character", "\x81\4\xf4\x8f\xbf\xbf", "\x81\4\xf4\x8f\xbf\xbf"),
};

/* Adds masks. The number of bytes. */
static size_t mask_frames(char *to, const char *sent, size_t n)
{
    static const char mask[4] = {0x12, (char)0xf3, 0x00, 0x77};
    size_t at = 0;
    for (size_t i = 0; i < n;) {
        size_t length = (unsigned char)sent[i + 1];
        to[at++] = sent[i];
        to[at++] = (char)(length | 0x80);
        memcpy(to + at, mask, 4);
        at += 4;
        for (size_t k = 0; k < length; k++)
            to[at++] = (char)(sent[i + 2 + k] ^ mask[k % 4]);
        i += 2 + length;
    }
    return at;
}

static void *takes_frames(void *unused)
{
    static const size_t pieces[] = {4096, 1, 7};
    for (size_t i = 0; i < sizeof frame_cases / sizeof *frame_cases; i++)
        for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
            char bytes[256];
            size_t n = mask_frames(bytes, frame_cases[i].sent, frame_cases[i].sent_n);
            int before = check_failures;
            exchange("/echo", "", bytes, n, pieces[k]);
            CHECK(frames_n() >= frame_cases[i].answer_n &&
                  memcmp(frames(), frame_cases[i].answer, frame_cases[i].answer_n) == 0);
            CHECK(frame_cases[i].error || frames_n() == frame_cases[i].answer_n);
            CHECK_EQ(last_error, frame_cases[i].error);
            CHECK_EQ(last_code, frame_cases[i].code);
            if (check_failures > before)
                fprintf(stderr, "%s, in pieces of %zu\n", frame_cases[i].name, pieces[k]);
        }
    return unused;
}

/* Frames that the table cannot have. */
static void *takes_more_frames(void *unused)
{
    static const struct {
        const char *bytes;
        size_t n;
        int code, error; /* what the server closes with */
    } cases[] = {{"\x81\1x", 3, 1002, EBADMSG},                              /* without a mask */
                 {"\x81\xfe\0\5\1\1\1\1hello", 13, 1002, EBADMSG},           /* a length that fits into less */
                 {"\x81\xff\0\0\0\0\0\0\1\0\1\1\1\1", 14, 1002, EBADMSG},    /* the same */
                 {"\x81\xff\x80\0\0\0\0\0\0\0\1\1\1\1", 14, 1002, EBADMSG},  /* more than 2^63 */
                 {"\x89\xfe\0\x7e\1\1\1\1", 8, 1002, EBADMSG},               /* a long ping */
                 {"\x88\xfe\0\x7e\1\1\1\1", 8, 1002, EBADMSG},               /* a long close */
                 {"\x82\xff\0\0\0\0\0\1\0\0\1\1\1\1", 14, 1009, EFBIG},      /* more than max_message */
                 {"\2\xff\0\0\0\0\xff\xff\xff\xff\1\1\1\1", 14, 1009, EFBIG}};
    options.max_message = 65535;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const unsigned char *f;
        exchange("/echo", "", cases[i].bytes, cases[i].n, 4096);
        f = (unsigned char *)frames();
        CHECK(frames_n() > 4 && f[0] == 0x88 && f[1] == frames_n() - 2);
        CHECK_EQ(f[2] << 8 | f[3], cases[i].code);
        CHECK_EQ(last_error, cases[i].error);
    }
    options.max_message = 4;
    exchange("/echo", "", "\2\x83\0\0\0\0abc\x80\x82\0\0\0\0de", 17, 4096); /* the sum of fragments */
    CHECK_EQ(last_error, EFBIG);
    options.max_message = 0;
    return unused;
}

/* Sizes around the forms of lengths and the buffers, there and back. */
static void *passes_sizes(void *unused)
{
    static const size_t sizes[] = {125, 126, 2047, 2048, 2049, 4095, 4096, 4097, 20000, 65535, 65536, 300000};
    static unsigned char sent[300014], back[300014];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i], head = n < 126 ? 2 : n < 65536 ? 4 : 10, all = 0;
        int fd = dial();
        aco_scope_t scope;
        char request[512];
        int length = snprintf(request, sizeof request, "%s\r\n", handshake);
        sent[0] = 0x82;
        sent[1] = (unsigned char)(0x80 | (head == 2 ? n : head == 4 ? 126 : 127));
        for (size_t k = 2; k < head; k++)
            sent[k] = (unsigned char)((uint64_t)n >> 8 * (head - 1 - k));
        memset(sent + head, 0, 4);
        for (size_t k = 0; k < n; k++)
            sent[head + 4 + k] = (unsigned char)(k * 7 + k / 256);
        aco_scope_begin(&scope, aco_after(60 * ACO_SECOND));
        CHECK(aco_io_write_all(fd, request, (size_t)length) > 0);
        while (all < 4 || memcmp(back + all - 4, "\r\n\r\n", 4) != 0) {
            CHECK_EQ(aco_io_read(fd, back + all, 1), 1);
            all++;
        }
        CHECK(aco_io_write_all(fd, sent, n + head + 4) > 0);
        CHECK_EQ(aco_io_read_exactly(fd, back, n + head), (ssize_t)(n + head));
        sent[1] &= 127;
        CHECK(memcmp(back, sent, head) == 0 && memcmp(back + head, sent + head + 4, n) == 0);
        CHECK(aco_io_write_all(fd, "\x88\x80\0\0\0\0", 6) > 0);
        CHECK_EQ(aco_io_read_exactly(fd, back, 2), 2);
        aco_scope_end(&scope);
        CHECK_EQ(aco_io_close(fd), 0);
    }
    return unused;
}

/* ---- Ends ---- */

static void *ends(void *unused)
{
    const unsigned char *f;
    size_t messages = 0;
    int fd = dial();
    exchange("/ask", "",
             "\x81\x84\0\0\0\0"
             "4321\x82\x81\0\0\0\0x\x88\x80\0\0\0\0",
             23, 4096); /* a message between */
    CHECK_EQ(last_error, 0);
    CHECK(memcmp(frames(),
                 "\x88\x09\x10\xe1"
                 "because",
                 frames_n()) == 0);
    exchange("/misuse", "", "\x88\x80\0\0\0\0", 6, 4096);
    CHECK(memcmp(frames(), "\x88\2\x03\xe9", 4) == 0); /* 1001 */
    CHECK(aco_io_write_all(fd, handshake, sizeof handshake - 1) > 0 && aco_io_write_all(fd, "\r\n\x81", 3) > 0);
    CHECK_EQ(aco_io_shutdown(fd, SHUT_WR), 0); /* in the middle of a frame */
    read_to_end(fd);
    CHECK_EQ(aco_io_close(fd), 0);
    CHECK_EQ(last_error, ECONNRESET);
    exchange("/at-once", "", "\x88\x80\0\0\0\0", 6, 4096);
    f = (unsigned char *)frames();
    for (size_t n = frames_n(); n > 2 && f[0] == 0x82; messages++) {
        size_t head = f[1] < 126 ? 2 : 4, length = f[1] < 126 ? f[1] : (size_t)(f[2] << 8 | f[3]);
        CHECK(length == 10 || length == 9000);
        CHECK(f[head] == 'l' && f[head + length - 1] == 'l');
        f += head + length;
        n -= head + length;
    }
    CHECK_EQ(messages, 160);
    return unused;
}

static void *serve(void *listener);

/* Sends this by a socket of the host's own, where a small frame is sent whole or not at all. Reads when the handler has
 * stalled. */
static void exchange_late(const char *request, size_t n)
{
    char name[ACO_IO_ADDRESS_SIZE];
    int listener, fd;
    aco_group_t group;
    snprintf(name, sizeof name, "/tmp/acorn-websocket-%d", (int)getpid());
    listener = aco_io_listen("unix", name, NULL, NULL);
    CHECK(listener >= 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, serve, &listener);
    fd = aco_io_dial("unix", name, NULL, NULL);
    CHECK(aco_io_write_all(fd, request, n) > 0);
    CHECK_EQ(aco_semaphore_acquire(&has_stalled), 0);
    read_to_end(fd);
    CHECK_EQ(aco_io_close(fd), 0);
    aco_scope_cancel(&group.scope);
    aco_group_end(&group);
    CHECK_EQ(unlink(name), 0);
}

static void *goes_on_after_scopes(void *unused)
{
    static const char ping_and_close[] = "\x89\x80\0\0\0\0\x88\x80\0\0\0\0";
    char request[512];
    int n = snprintf(request, sizeof request, "GET /on%s\r\n", handshake + strlen("GET /echo"));
    memcpy(request + n, ping_and_close, sizeof ping_and_close - 1);
    exchange_late(request, (size_t)n + sizeof ping_and_close - 1);
    CHECK_EQ(frames_n(), 3 * (sent_before + 1) + 4);
    CHECK(memcmp(got + got_n - 7, "\x82\1m\x8a\0\x88\0", 7) == 0);
    n = snprintf(request, sizeof request, "GET /late%s\r\n", handshake + strlen("GET /echo"));
    exchange_late(request, (size_t)n);
    CHECK(got_n > sent_before && strncmp(got + sent_before, "HTTP/1.1 101 ", 13) == 0);
    CHECK(frames_n() == 4 && memcmp(frames(), "\x88\2\x03\xe9", 4) == 0);
    return unused;
}

/* No frame follows the reply of a handler whose handshake was not answered. */
static void *replies_after_scopes(void *unused)
{
    char request[512];
    int n = snprintf(request, sizeof request, "GET /much HTTP/1.1\r\nHost: a.test\r\n\r\nGET /instead%s%s",
                     handshake + strlen("GET /echo"), "Connection: close\r\n\r\n");
    exchange_late(request, (size_t)n);
    CHECK(got_n > 7 && memcmp(got + got_n - 7, "instead", 7) == 0);
    return unused;
}

/* A silent peer gets a ping, and later a close; one whose message does not end, a close. */
static void *limits_times(void *unused)
{
    options.idle_time = 20 * ACO_MILLISECOND;
    exchange("/echo", "", "", 0, 4096);
    CHECK_EQ(last_error, ETIMEDOUT);
    CHECK(memcmp(frames(), "\x89\0\x88", 3) == 0 && memcmp(frames() + 4, "\x03\xe9", 2) == 0);
    options.message_time = 20 * ACO_MILLISECOND;
    options.idle_time = -1;
    exchange("/echo", "", "\1\x81\0\0\0\0x", 7, 4096);
    CHECK_EQ(last_error, ETIMEDOUT);
    CHECK(memcmp(frames() + 2, "\x03\xe9", 2) == 0);
    options.message_time = ACO_FOREVER - 1; /* ends with time itself */
    exchange("/echo", "", "\1\x81\0\0\0\0x\x80\x81\0\0\0\0y\x88\x80\0\0\0\0", 20, 1);
    CHECK_EQ(last_error, 0);
    options.message_time = options.idle_time = 0;
    return unused;
}

#ifdef COUNTS_MEMORY
/* A message for which there is no memory, even an empty one, is the last: it is not skipped. */
static void starve(aco_http_request_t *request, void *unused)
{
    aco_websocket_t *socket = aco_websocket_accept(request, &options);
    const char *data;
    size_t n;
    (void)unused;
    lacks_memory = "aco_websocket_receive";
    FAILS_WITH(aco_websocket_receive(socket, &data, &n), ENOMEM);
    lacks_memory = NULL;
    FAILS_WITH(aco_websocket_receive(socket, &data, &n), ENOMEM);
}

static void *lacks_room(void *unused)
{
    static const struct {
        const char *bytes;
        size_t n;
    } messages[] = {{"\x81\x80\0\0\0\0\x81\x81\0\0\0\0x", 13}, {"\x81\x81\0\0\0\0x\x81\x81\0\0\0\0x", 14}};
    for (size_t i = 0; i < 2; i++) {
        exchange("/starve", "", messages[i].bytes, messages[i].n, 4096);
        CHECK(frames()[0] == (char)0x88 && memcmp(frames() + 2, "\x03\xf3", 2) == 0); /* 1011 */
    }
    return unused;
}
#else
static void *lacks_room(void *unused)
{
    return unused;
}
#endif

/* Behind another request, so that the two fill the server's buffer. */
static void *follows_requests(void *unused)
{
    enum { BUFFER = 16 << 10, FIRST = 15300 };
    char all[BUFFER + 1];
    int n, fd = dial();
    memset(all, 'p', sizeof all);
    n = snprintf(all, sizeof all, "GET /plain HTTP/1.1\r\nHost: a.test\r\nX: ");
    all[n] = 'p';
    memcpy(all + FIRST - 4, "\r\n\r\n", 4);
    memcpy(all + FIRST, handshake, sizeof handshake - 1);
    memcpy(all + FIRST + sizeof handshake - 1, "Y: ", 3);
    memcpy(all + BUFFER - 8, "\r\n\r\n", 4);
    CHECK(aco_io_write_all(fd, all, BUFFER - 4) > 0);
    for (int i = 0; i < 3; i++) {
        char bytes[128], part[100];
        memset(part, 'a' + i, 100);
        bytes[0] = (char)0x82;
        bytes[1] = (char)(100 | 0x80);
        memset(bytes + 2, 0, 4);
        memcpy(bytes + 6, part, 100);
        CHECK(aco_io_write_all(fd, bytes, 106) > 0);
    }
    CHECK(aco_io_write_all(fd, "\x88\x80\0\0\0\0", 6) > 0);
    read_to_end(fd);
    CHECK_EQ(aco_io_close(fd), 0);
    CHECK(got_n > 308 && memcmp(got + got_n - 2, "\x88\0", 2) == 0 && got[got_n - 3] == 'c');
    return unused;
}

static void plain(aco_http_request_t *request, void *unused)
{
    (void)unused;
    aco_http_reply(request, 200, NULL, "", 0);
}

/* ---- All of it ---- */

static void *is_fair(void *unused)
{
    start_counting(&turns);
    exchange("/in-a-row", "", "", 0, 4096);
    CHECK(frames_n() > 1280 * 3);
    stop_counting(&turns);
    return unused;
}

static void *serve(void *listener)
{
    static const aco_http_route_t routes[] = {{NULL, "/any", echo, NULL},
                                              {"GET", "/echo", echo, NULL},
                                              {"GET", "/deflate", echo_deflated, (void *)ACO_WEBSOCKET_COMPRESS},
                                              {"GET", "/windows", echo_deflated, (void *)ACO_WEBSOCKET_KEEP_WINDOWS},
                                              {"GET", "/ask", ask, NULL},
                                              {"GET", "/misuse", misuse, NULL},
                                              {"GET", "/plain", plain, NULL},
                                              {"GET", "/at-once", sends_at_once, NULL},
                                              {"GET", "/in-a-row", sends_in_a_row, NULL},
                                              {"GET", "/on", goes_on, NULL},
                                              {"GET", "/late", answers_late, NULL},
                                              {"GET", "/much", tells_much, NULL},
                                              {"GET", "/instead", replies_instead, NULL},
#ifdef COUNTS_MEMORY
                                              {"GET", "/starve", starve, NULL},
#endif
                                              {NULL, NULL, NULL, NULL}};
    server.routes = routes;
    aco_http_serve(*(int *)listener, &server);
    return NULL;
}

static void *run_all(void *unused)
{
    static const aco_function_t tests[] = {shakes_hands, checks_origins,    reads_all_lines, takes_empty_fields,
                                           takes_frames, takes_more_frames, passes_sizes,    ends,
                                           limits_times, follows_requests,  lacks_room};
    static const aco_function_t in_kernel[] = {is_fair, /* a task counts turns: time stands still */
                                               goes_on_after_scopes,
                                               replies_after_scopes}; /* a full buffer takes whole frames or none */
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL), little = 8192;
    aco_group_t group;
    CHECK_EQ(setsockopt(listener, SOL_SOCKET, SO_SNDBUF, &little, sizeof little), 0); /* so that sends wait */
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, serve, &listener);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tests[i](NULL);
    for (size_t i = 0; i < sizeof in_kernel / sizeof *in_kernel && !IS_SIMULATED; i++)
        in_kernel[i](NULL);
    aco_scope_cancel(&group.scope);
    aco_group_end(&group);
    return unused;
}

static void *serve_others(void *unused)
{
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    options.protocols = "chat,superchat";
    fprintf(stderr, "listening on %s\n", address);
    serve(&listener);
    return unused;
}

int main(int argc, char **argv)
{
    int before;
    (void)argv;
    run_task(warms_up, NULL);
    before = count_blocks();
    run_task(argc > 1 ? serve_others : run_all, NULL);
    CHECK_EQ(count_blocks(), before);
    return check_result("http_websocket");
}
