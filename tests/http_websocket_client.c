/* WebSocket clients (include/aco/websocket.h), and compressed messages both ways. With a URL as argument it sends what
 * a server of others shall echo (tests/io/websocket_peers.py). */
#define _GNU_SOURCE
#include <aco/sync.h>
#include <aco/websocket.h>
#include "http_tests.h"

char *aco__http_put_accepted(char *at, const char *key); /* src/http/websocket_key.h */

#ifdef HTTP_WITH_ZLIB
enum { HAS_DEFLATE = 1 };
#else
enum { HAS_DEFLATE = 0 };
#endif

static aco_websocket_options_t server_options;
static int last_error, last_code;

static void echo(aco_http_request_t *request, void *arg)
{
    aco_websocket_t *socket = aco_websocket_accept(request, &server_options);
    const char *data;
    size_t n;
    int type = -1;
    (void)arg;
    while (socket && (type = aco_websocket_receive(socket, &data, &n)) > 0)
        CHECK_EQ(aco_websocket_send(socket, type, data, n), 0);
    last_error = type < 0 ? errno : 0;
    last_code = socket ? aco_websocket_code(socket) : 0;
}

static void moves(aco_http_request_t *request, void *arg)
{
    CHECK_EQ(aco_http_reply_header(request, "Location", arg), 0);
    CHECK_EQ(aco_http_reply(request, 302, NULL, "elsewhere", 9), 0);
}

static const aco_http_route_t routes[] = {
    {"GET", "/", echo, NULL}, {"GET", "/moved", moves, (void *)"/"}, {NULL, NULL, NULL, NULL}};

static char large[3 << 20];

static void fill_large(void)
{
    for (size_t n = 0; n < sizeof large - 1; n += strlen(large + n))
        snprintf(large + n, sizeof large - n, "message %zu of many, ", n * n % 1000);
}

static const char *url_of(const stage_t *stage, const char *path)
{
    static char url[100];
    snprintf(url, sizeof url, "ws://127.0.0.1:%s%s", stage->port, path);
    return url;
}

static void check_echo(aco_websocket_t *socket, int type, const char *p, size_t n)
{
    const char *data;
    size_t data_n = 0;
    CHECK_EQ(aco_websocket_send(socket, type, p, n), 0);
    CHECK_EQ(aco_websocket_receive(socket, &data, &data_n), type);
    CHECK(data_n == n && memcmp(data, p, n) == 0 && data[n] == 0);
}

static void check_sizes(aco_websocket_t *socket)
{
    static const size_t sizes[] = {0, 1, 63, 64, 125, 126, 1000, 2048, 2049, 5000, 65535, 65536, 100000, 1 << 20};
    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            check_echo(socket, ACO_WEBSOCKET_TEXT, large, sizes[i]);
            check_echo(socket, ACO_WEBSOCKET_BINARY, large + 1000, sizes[i]);
        }
}

/* The library's two sides, by all they can agree on. */
static void *talks_to_itself(void *arg)
{
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_websocket_options_t options = {.protocols = "other, chat"};
    stage_t stage = {0};
    server_options.protocols = "chat";
    start(&stage, routes);
    for (int i = 0; i < 9; i++) {
        aco_websocket_t *socket;
        options.compresses = i % 3;
        server_options.compresses = i / 3;
        socket = aco_websocket_connect(client, url_of(&stage, i % 2 ? "/moved" : "/"), NULL, 0, &options);
        CHECK(socket != NULL);
        CHECK_TEXT("chosen", aco_websocket_protocol(socket), "chat");
        check_sizes(socket);
        CHECK_EQ(aco_websocket_close(socket, 3000, "done"), 0);
        CHECK_EQ(aco_websocket_code(socket), 3000);
        FAILS_WITH(aco_websocket_send(socket, ACO_WEBSOCKET_TEXT, "x", 1), EPIPE);
        aco_websocket_end(socket);
        while (!last_code)
            aco_task_yield();
        CHECK(last_error == 0 && last_code == 3000);
        last_code = 0;
    }
    aco_websocket_end(aco_websocket_connect(client, url_of(&stage, "/"), NULL, 0, NULL));
    while (!last_code)
        aco_task_yield();
    CHECK_EQ(last_code, 1001);
    aco_websocket_end(NULL);
    aco_http_client_destroy(client);
    server_options = (aco_websocket_options_t){0};
    stop(&stage);
    return arg;
}

static void replies(aco_http_request_t *request, void *arg)
{
    (void)arg;
    CHECK_EQ(aco_http_reply(request, 200, NULL, "x", 1), 0);
}

/* It needs a connection of its own: one that is kept is closed for it, where the host may have no more. */
static void *takes_the_place_of_a_kept_one(void *arg)
{
    static const aco_http_route_t both[] = {
        {"GET", "/", echo, NULL}, {"GET", "/plain", replies, NULL}, {NULL, NULL, NULL, NULL}};
    const aco_http_client_options_t options = {.max_per_host = 1};
    aco_http_client_t *client = aco_http_client_new(&options);
    stage_t stage = {.server = {.max_connections = 1}};
    aco_http_response_t *response;
    aco_websocket_t *socket;
    char url[100];
    start(&stage, both);
    snprintf(url, sizeof url, "http://127.0.0.1:%s/plain", stage.port);
    response = aco_http_get(client, url);
    CHECK(response && response->status == 200);
    aco_http_response_end(response);
    socket = aco_websocket_connect(client, url_of(&stage, "/"), NULL, 0, NULL);
    check_echo(socket, ACO_WEBSOCKET_TEXT, "text", 4);
    last_code = 0;
    aco_websocket_end(socket);
    while (!last_code)
        aco_task_yield();
    last_code = 0;
    aco_http_client_destroy(client);
    stop(&stage);
    return arg;
}

/* Messages that are small only as long as they are compressed. */
static void *refuses_bombs(void *arg)
{
    static char zeros[4 << 20];
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_websocket_options_t options = {0};
    stage_t stage = {0};
    start(&stage, routes);
    for (int mode = ACO_WEBSOCKET_COMPRESS; HAS_DEFLATE && mode <= ACO_WEBSOCKET_KEEP_WINDOWS; mode++) {
        aco_websocket_t *socket;
        const char *data;
        size_t n;
        options.compresses = server_options.compresses = mode;
        socket = aco_websocket_connect(client, url_of(&stage, "/"), NULL, 0, &options);
        check_echo(socket, ACO_WEBSOCKET_BINARY, zeros, 1 << 20);
        CHECK_EQ(aco_websocket_send(socket, ACO_WEBSOCKET_BINARY, zeros, sizeof zeros), 0);
        CHECK_EQ(aco_websocket_receive(socket, &data, &n), 0);
        CHECK_EQ(aco_websocket_code(socket), 1009);
        aco_websocket_end(socket);
    }
    aco_http_client_destroy(client);
    server_options = (aco_websocket_options_t){0};
    stop(&stage);
    return arg;
}

/* ---- A peer that takes nothing for a while ---- */

static aco_event_t begins_to_take;
static int taken;

static void takes_late(aco_http_request_t *request, void *arg)
{
    aco_websocket_t *socket = aco_websocket_accept(request, NULL);
    const char *data;
    size_t n;
    (void)arg;
    CHECK_EQ(aco_event_wait(&begins_to_take), 0);
    while (aco_websocket_receive(socket, &data, &n) > 0)
        taken++;
    last_code = aco_websocket_code(socket);
}

/* A scope ends while a client sends a large message, of which the peer may have a part: nothing follows it. */
static void *gives_up_sending(void *arg)
{
    static const size_t sizes[] = {2049, 4096, 4097, 100000};
    static const aco_http_route_t route[] = {{"GET", "/", takes_late, NULL}, {NULL, NULL, NULL, NULL}};
    aco_http_client_t *client = aco_http_client_new(NULL);
    stage_t stage = {0};
    start(&stage, route);
    last_code = 0; /* that of a test before */
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        aco_websocket_t *socket = aco_websocket_connect(client, url_of(&stage, "/"), NULL, 0, NULL);
        aco_scope_t scope;
        int sent = 0;
        CHECK_EQ(aco_scope_begin(&scope, aco_after(20 * ACO_MILLISECOND)), 0);
        while (aco_websocket_send(socket, ACO_WEBSOCKET_BINARY, large, sizes[i]) == 0)
            sent++;
        CHECK_EQ(errno, ETIMEDOUT);
        aco_scope_end(&scope);
        FAILS_WITH(aco_websocket_send(socket, ACO_WEBSOCKET_BINARY, large, sizes[i]), EPIPE);
        aco_event_set(&begins_to_take);
        aco_websocket_end(socket);
        while (!last_code)
            aco_task_yield();
        CHECK_EQ(last_code, 1006);
        CHECK(taken <= sent); /* the end may have overtaken some */
        last_code = taken = 0;
        aco_event_reset(&begins_to_take);
    }
    aco_http_client_destroy(client);
    stop(&stage);
    return arg;
}

/* What the server answers to offers. */
static void *negotiates(void *arg)
{
    static const struct {
        int mode;
        const char *offer, *answer;
    } cases[] = {
        {ACO_WEBSOCKET_PLAIN, "permessage-deflate", ""},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "", ""},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "permessage-deflate", "permessage-deflate"},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "x-other, permessage-deflate; client_max_window_bits", "permessage-deflate"},
        {ACO_WEBSOCKET_COMPRESS, "Permessage-Deflate",
         "permessage-deflate; server_no_context_takeover; client_no_context_takeover"},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "permessage-deflate ;server_no_context_takeover; client_max_window_bits=10",
         "permessage-deflate; server_no_context_takeover"},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "permessage-deflate; server_max_window_bits=\"11\"",
         "permessage-deflate; server_max_window_bits=11"},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "permessage-deflate; server_max_window_bits=8, permessage-deflate",
         "permessage-deflate"},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "permessage-deflate; server_max_window_bits=15; client_max_window_bits=15",
         "permessage-deflate; server_max_window_bits=15"},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "permessage-deflate; server_max_window_bits", ""},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "permessage-deflate; server_max_window_bits=16", ""},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "permessage-deflate; server_max_window_bits=08", ""},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "permessage-deflate; client_max_window_bits=", ""},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "permessage-deflate; client_max_window_bits; client_max_window_bits", ""},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "permessage-deflate; server_no_context_takeover=1", ""},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "permessage-deflate; unknown", ""},
        {ACO_WEBSOCKET_KEEP_WINDOWS, "permessage-deflate;", ""},
    };
    stage_t stage = {0};
    start(&stage, routes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char request[512], wanted[200] = "";
        server_options.compresses = cases[i].mode;
        snprintf(request, sizeof request,
                 "GET / HTTP/1.1\r\n" HOST "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: %s\r\n\r\n",
                 cases[i].offer);
        ask(&stage, request);
        snprintf(wanted, sizeof wanted, "\r\nSec-WebSocket-Extensions: %s\r\n", cases[i].answer);
        CHECK(strncmp(got, "HTTP/1.1 101", 12) == 0);
        CHECK(*cases[i].answer && HAS_DEFLATE ? strstr(got, wanted) != NULL
                                              : strstr(got, "Sec-WebSocket-Extensions") == NULL);
    }
    server_options = (aco_websocket_options_t){0};
    stop(&stage);
    return arg;
}

/* ---- A server that answers as it is told ---- */

typedef struct script {
    const char *answer; /* "@" stands for the answer to the key */
    const char *frames;
    size_t frames_n;
    int is_proxy; /* it makes a tunnel first */
    int listener;
} script_t;

static void read_request_head(int fd)
{
    for (got_n = 0, got[0] = 0; !strstr(got, "\r\n\r\n");) {
        ssize_t n = aco_io_read(fd, got + got_n, sizeof got - got_n - 1);
        CHECK(n > 0);
        got_n += (size_t)n;
        got[got_n] = 0;
    }
}

static void *answers(void *arg)
{
    static const char tunnel[] = "HTTP/1.1 200 OK\r\n\r\n";
    const script_t *script = arg;
    char text[1024], *at = text;
    int fd = aco_io_accept(script->listener);
    read_request_head(fd);
    if (script->is_proxy) {
        CHECK(strncmp(got, "CONNECT a.test:80 HTTP/1.1\r\n", 28) == 0);
        CHECK(aco_io_write_all(fd, tunnel, sizeof tunnel - 1) > 0);
        read_request_head(fd);
    }
    CHECK(strncmp(got, "GET /path?query HTTP/1.1\r\n", 26) == 0);
    CHECK(strstr(got, "X-Own: yes\r\n") && strstr(got, "Sec-WebSocket-Protocol: a, b\r\n"));
    for (const char *from = script->answer; *from; from++)
        if (*from == '@')
            at = aco__http_put_accepted(at, strstr(got, "Sec-WebSocket-Key: ") + 19);
        else
            *at++ = *from;
    memcpy(at, script->frames, script->frames_n);
    at += script->frames_n;
    CHECK(aco_io_write_all(fd, text, (size_t)(at - text)) > 0);
    aco_io_shutdown(fd, SHUT_WR);
    read_to_end(fd);
    CHECK_EQ(aco_io_close(fd), 0);
    return NULL;
}

#define SWITCHES "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
#define ACCEPTS SWITCHES "Sec-WebSocket-Accept: @\r\n"
#define DEFLATES "Sec-WebSocket-Extensions: permessage-deflate"
#define ANEW "; server_no_context_takeover"

static void *takes_answers(void *arg)
{
    static const struct {
        const char *name, *answer, *frames;
        size_t frames_n;
        int error, received; /* of connecting, or 0; the errno of receiving, or 0: a message */
        int compresses;
    } cases[] = {
#define CASE(name, answer, frames, error, received, compresses) \
    {name, answer "\r\n", frames, sizeof frames - 1, error, received, compresses}
        CASE("a text at once", ACCEPTS, "\x81\5hello", 0, 0, 0),
        CASE("a subprotocol", ACCEPTS "Sec-WebSocket-Protocol: b\r\n", "\x81\5hello", 0, 0, 0),
        CASE("behind hints", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" ACCEPTS, "\x81\5hello", 0, 0, 0),
        CASE("fragments", ACCEPTS, "\1\2he\x89\1p\x80\3llo", 0, 0, 0),
        CASE("a mask", ACCEPTS, "\x81\x85\0\0\0\0hello", 0, EBADMSG, 0),
        CASE("a reserved bit", ACCEPTS, "\xc1\5hello", 0, EBADMSG, 0),
        CASE("a cut", ACCEPTS, "\x81\5hell", 0, ECONNRESET, 0),
        CASE("an end", ACCEPTS, "", 0, ECONNRESET, 0),
        CASE("no message", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", "", EPROTO, 0, 0),
        CASE("forbidden", "HTTP/1.1 403 No\r\nContent-Length: 2\r\n", "no", EACCES, 0, 0),
        CASE("another protocol", "HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: @\r\n",
             "", EPROTO, 0, 0),
        CASE("a wrong key", SWITCHES "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", "", EPROTO, 0, 0),
        CASE("no key", SWITCHES, "", EPROTO, 0, 0),
        CASE("two keys", ACCEPTS "Sec-WebSocket-Accept: @\r\n", "", EPROTO, 0, 0),
        CASE("a foreign subprotocol", ACCEPTS "Sec-WebSocket-Protocol: c\r\n", "", EPROTO, 0, 0),
        CASE("two subprotocols", ACCEPTS "Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: b\r\n", "", EPROTO, 0,
             0),
        CASE("an extension", ACCEPTS DEFLATES "\r\n", "", EPROTO, 0, 0),
#ifdef HTTP_WITH_ZLIB
        CASE("compressed", ACCEPTS DEFLATES "\r\n", "\xc1\7\xca\x48\xcd\xc9\xc9\7\0", 0, 0, ACO_WEBSOCKET_KEEP_WINDOWS),
        CASE("in two blocks", ACCEPTS DEFLATES ANEW "\r\n", "\xc1\x0d\xf2\x48\5\0\0\0\xff\xff\xca\xc9\xc9\7\0", 0, 0,
             ACO_WEBSOCKET_COMPRESS),
        CASE("a last block", ACCEPTS DEFLATES ANEW "\r\n", "\xc1\x08\xf3\x48\xcd\xc9\xc9\7\0\0", 0, 0,
             ACO_WEBSOCKET_COMPRESS),
        CASE("a reference over a last block", ACCEPTS DEFLATES "\r\n",
             "\xc1\x08\xf3\x48\xcd\xc9\xc9\7\0\0\xc1\5\xca\0\x11\0\0", 0, 0, ACO_WEBSOCKET_KEEP_WINDOWS),
        CASE("in fragments", ACCEPTS DEFLATES "\r\n", "\x41\3\xca\x48\xcd\x80\4\xc9\xc9\7\0", 0, 0,
             ACO_WEBSOCKET_KEEP_WINDOWS),
        CASE("a small window", ACCEPTS DEFLATES "; client_max_window_bits=8; server_max_window_bits=10\r\n",
             "\x81\5hello", 0, 0, ACO_WEBSOCKET_KEEP_WINDOWS),
        CASE("wrong codes", ACCEPTS DEFLATES "\r\n", "\xc1\3\xff\xff\xff", 0, EBADMSG, ACO_WEBSOCKET_KEEP_WINDOWS),
        CASE("the bit in a fragment", ACCEPTS DEFLATES "\r\n", "\1\1h\xc0\1i", 0, EBADMSG, ACO_WEBSOCKET_KEEP_WINDOWS),
        CASE("a cut in a block", ACCEPTS DEFLATES "\r\n", "\xc1\4\xca\x48\xcd\xc9", 0, EBADMSG,
             ACO_WEBSOCKET_KEEP_WINDOWS),
        CASE("the bit in a ping", ACCEPTS DEFLATES "\r\n", "\xc9\1h", 0, EBADMSG, ACO_WEBSOCKET_KEEP_WINDOWS),
        CASE("windows that were not to be kept", ACCEPTS DEFLATES "\r\n", "", EPROTO, 0, ACO_WEBSOCKET_COMPRESS),
        CASE("twice", ACCEPTS DEFLATES ", permessage-deflate\r\n", "", EPROTO, 0, ACO_WEBSOCKET_KEEP_WINDOWS),
        CASE("a parameter", ACCEPTS DEFLATES "; x\r\n", "", EPROTO, 0, ACO_WEBSOCKET_KEEP_WINDOWS),
#endif
    };
    static const aco_http_header_t own = {"X-Own", "yes"};
    char port[8], address[ACO_IO_ADDRESS_SIZE], url[ACO_IO_ADDRESS_SIZE + 32];
    script_t script = {.listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL)};
    aco_http_client_options_t by_proxy = {.proxy_host = "127.0.0.1", .proxy_port = port};
    aco_http_client_t *clients[2];
    CHECK_EQ(aco_io_local_address(script.listener, address, sizeof address), 0);
    snprintf(port, sizeof port, "%s", strchr(address, ':') + 1);
    clients[0] = aco_http_client_new(NULL);
    clients[1] = aco_http_client_new(&by_proxy);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        const size_t k = i / 2;
        const aco_websocket_options_t options = {.protocols = "a, b", .compresses = cases[k].compresses};
        aco_websocket_t *socket;
        const char *data;
        size_t n = 0;
        aco_t *task;
        script.answer = cases[k].answer;
        script.frames = cases[k].frames;
        script.frames_n = cases[k].frames_n;
        script.is_proxy = i % 2;
        task = aco_spawn(answers, &script, NULL);
        snprintf(url, sizeof url, "WS://%s/path?query", script.is_proxy ? "a.test" : address);
        errno = 0;
        socket = aco_websocket_connect(clients[i % 2], url, &own, 1, &options);
        CHECK(!socket == (cases[k].error != 0));
        if (!socket)
            CHECK_EQ(errno, cases[k].error);
        else if (cases[k].received)
            FAILS_WITH(aco_websocket_receive(socket, &data, &n), cases[k].received);
        else {
            CHECK_EQ(aco_websocket_receive(socket, &data, &n), ACO_WEBSOCKET_TEXT);
            do
                CHECK(n == 5 && strcasecmp(data, "hello") == 0);
            while (aco_websocket_receive(socket, &data, &n) > 0);
            CHECK_EQ(errno, ECONNRESET);
        }
        aco_websocket_end(socket);
        CHECK_EQ(aco_join(task, NULL), 0);
    }
    CHECK_EQ(aco_io_close(script.listener), 0);
    aco_http_client_destroy(clients[0]);
    aco_http_client_destroy(clients[1]);
    return arg;
}

static void *refuses_misuse(void *arg)
{
    static const aco_http_header_t wrong[] = {{"upgrade", "x"}, {"Connection", "close"}, {"Sec-WebSocket-Key", "x"}};
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_websocket_options_t options = {.compresses = 3};
    CHECK(!aco_websocket_connect(client, "http://a.test/", NULL, 0, NULL) && errno == EINVAL);
    CHECK(!aco_websocket_connect(client, NULL, NULL, 0, NULL) && errno == EINVAL);
    CHECK(!aco_websocket_connect(client, "ws:///", NULL, 0, NULL) && errno == EINVAL);
    CHECK(!aco_websocket_connect(client, "wss://a.test/", NULL, 0, NULL) && errno == EINVAL); /* no `open` */
    CHECK(!aco_websocket_connect(client, "ws://a.test/", NULL, 0, &options) && errno == EINVAL);
    options.compresses = 0;
    options.protocols = "a\r\nb";
    CHECK(!aco_websocket_connect(client, "ws://a.test/", NULL, 0, &options) && errno == EINVAL);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK(!aco_websocket_connect(client, "ws://a.test/", &wrong[i], 1, NULL) && errno == EINVAL);
    aco_http_client_destroy(client);
    return arg;
}

/* ---- With servers of others ---- */

static void *talks_to_others(void *url)
{
    aco_http_client_t *client = aco_http_client_new(NULL);
    for (int mode = 0; mode < 3; mode++) {
        const aco_websocket_options_t options = {.compresses = mode, .protocols = "echo", .max_message = 4 << 20};
        aco_websocket_t *socket = aco_websocket_connect(client, url, NULL, 0, &options);
        CHECK(socket != NULL);
        CHECK_TEXT("chosen", aco_websocket_protocol(socket), "echo");
        check_sizes(socket);
        check_echo(socket, ACO_WEBSOCKET_TEXT, large, sizeof large - 1);
        CHECK_EQ(aco_websocket_close(socket, 1000, "done"), 0);
        CHECK_EQ(aco_websocket_code(socket), 1000);
        aco_websocket_end(socket);
    }
    aco_http_client_destroy(client);
    return NULL;
}

int main(int argc, char **argv)
{
    static const aco_function_t tests[] = {
        talks_to_itself, takes_the_place_of_a_kept_one, refuses_bombs, gives_up_sending, negotiates, takes_answers,
        refuses_misuse};
    fill_large();
    if (argc > 1)
        run_task(talks_to_others, argv[1]);
    else
        run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http_websocket_client");
}
