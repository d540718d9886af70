/* WebSockets over HTTP/2 (RFC 8441): the library's two sides, handshakes that are none, and what hostile clients do.
 * With "serve" it serves others (tests/io/node_peers.py); with a URL it talks to another server. */
#define _GNU_SOURCE
#include "http2_client.h"

#include <aco/sync.h>
#include <aco/websocket.h>
#include <signal.h>

static stage_t stage;
static h2_client_t client;
static aco_websocket_options_t server_options;
static int last_major, last_error, last_code, ended;

static void echo_messages(aco_http_request_t *request, void *arg)
{
    aco_websocket_t *socket = aco_websocket_accept(request, &server_options);
    const char *data;
    size_t n;
    int type = -1;
    (void)arg;
    last_major = request->major;
    CHECK_TEXT("the method", request->method, "GET");
    while (socket && (type = aco_websocket_receive(socket, &data, &n)) > 0)
        if (aco_websocket_send(socket, type, data, n) != 0) {
            type = -1;
            break;
        }
    last_error = type < 0 ? errno : 0;
    last_code = socket ? aco_websocket_code(socket) : 0;
    ended++;
}

static void moves(aco_http_request_t *request, void *arg)
{
    CHECK_EQ(aco_http_reply_header(request, "Location", arg), 0);
    CHECK_EQ(aco_http_reply(request, 302, NULL, "elsewhere", 9), 0);
}

static void leaves(aco_http_request_t *request, void *arg)
{
    aco_websocket_t *socket = aco_websocket_accept(request, NULL);
    CHECK(socket && aco_websocket_send(socket, ACO_WEBSOCKET_TEXT, "bye", 3) == 0);
    (void)arg;
    aco_exit();
}

/* Sends until nobody takes it. */
static void pours(aco_http_request_t *request, void *arg)
{
    static char much[5000];
    aco_websocket_t *socket = aco_websocket_accept(request, NULL);
    (void)arg;
    while (socket && aco_websocket_send(socket, ACO_WEBSOCKET_BINARY, much, sizeof much) == 0)
        ;
    last_error = errno;
    ended++;
}

static const aco_http_route_t routes[] = {
    {"GET", "/", tells, "hello"},     {"GET", "/ws", echo_messages, NULL}, {"GET", "/moved", moves, (void *)"/ws"},
    {"GET", "/leaves", leaves, NULL}, {"GET", "/pours", pours, NULL},      {NULL, NULL, NULL, NULL}};

static void begin(void)
{
    memset(&stage, 0, sizeof stage);
    memset(&server_options, 0, sizeof server_options);
    last_major = last_error = last_code = ended = 0;
}

/* ---- The library's two sides ---- */

static char large[300000];

static const char *url_of(const char *scheme, const char *path)
{
    static char url[100];
    snprintf(url, sizeof url, "%s://127.0.0.1:%s%s", scheme, stage.port, path);
    return url;
}

static void check_echo(aco_websocket_t *socket, int type, const char *p, size_t n)
{
    const char *data;
    size_t data_n = 0;
    CHECK_EQ(aco_websocket_send(socket, type, p, n), 0);
    CHECK_EQ(aco_websocket_receive(socket, &data, &data_n), type);
    CHECK(data_n == n && memcmp(data, p, n) == 0);
}

static void check_sizes(aco_websocket_t *socket)
{
    static const size_t sizes[] = {0, 1, 64, 125, 126, 1000, 2049, 5000, 8193, 16385, 65536, sizeof large - 1};
    for (size_t n = 0; n < sizeof large - 1; n += strlen(large + n))
        snprintf(large + n, sizeof large - n, "message %zu, ", n * n % 1000);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_echo(socket, ACO_WEBSOCKET_TEXT, large, sizes[i]);
        check_echo(socket, ACO_WEBSOCKET_BINARY, large, sizes[i]);
    }
}

static aco_http_client_t *new_client(void)
{
    const aco_http_client_options_t options = {.prior_knowledge = 1};
    return aco_http_client_new(&options);
}

static void check_get(aco_http_client_t *http)
{
    aco_http_response_t *response = aco_http_get(http, url_of("http", "/"));
    char part[100];
    CHECK(response && response->status == 200 && response->major == 2);
    while (aco_http_response_read(response, part, sizeof part) > 0)
        ;
    aco_http_response_end(response);
}

static void await_ends(int n)
{
    while (ended < n)
        aco_task_yield();
}

static void *talks_to_itself(void *arg)
{
    aco_http_client_t *http = new_client();
    begin();
    stage.server.max_per_address = 1; /* all goes by one connection */
    start(&stage, routes);
    check_get(http);
    for (int i = 0; i < 9; i++) {
        const aco_websocket_options_t options = {.protocols = "other, chat", .compresses = i % 3};
        aco_websocket_t *socket;
        server_options.compresses = i / 3;
        server_options.protocols = "chat";
        socket = aco_websocket_connect(http, url_of("ws", i % 2 ? "/moved" : "/ws"), NULL, 0, &options);
        CHECK(socket && last_major == 2);
        CHECK_TEXT("chosen", aco_websocket_protocol(socket), "chat");
        check_sizes(socket);
        check_get(http); /* beside it */
        CHECK_EQ(aco_websocket_close(socket, 3000, "done"), 0);
        CHECK_EQ(aco_websocket_code(socket), 3000);
        FAILS_WITH(aco_websocket_send(socket, ACO_WEBSOCKET_TEXT, "x", 1), EPIPE);
        aco_websocket_end(socket);
        await_ends(i + 1);
        CHECK(last_error == 0 && last_code == 3000);
    }
    aco_websocket_end(aco_websocket_connect(http, url_of("ws", "/ws"), NULL, 0, NULL));
    await_ends(10);
    CHECK_EQ(last_code, 1001);
    CHECK(!aco_websocket_connect(http, url_of("ws", "/"), NULL, 0, NULL) && errno == EPROTO); /* no WebSocket there */
    CHECK(!aco_websocket_connect(http, url_of("ws", "/none"), NULL, 0, NULL) && errno == EPROTO);
    aco_http_client_destroy(http);
    stop(&stage);
    return arg;
}

/* A handshake's fields count once: they fit where their bytes and the rest fit. */
static void *long_lines_fit(void *arg)
{
    char protocols[400] = "chat, ";
    const aco_websocket_options_t options = {.protocols = protocols, .compresses = 1};
    aco_http_client_t *http = new_client();
    begin();
    memset(protocols + 6, 'p', 300);
    stage.server.max_head = 1600;
    start(&stage, routes);
    server_options.protocols = "chat";
    check_get(http);
    aco_websocket_end(aco_websocket_connect(http, url_of("ws", "/ws"), NULL, 0, &options));
    await_ends(1);
    CHECK_EQ(last_major, 2);
    aco_http_client_destroy(http);
    stop(&stage);
    return arg;
}

/* Without a connection of HTTP/2 there is nothing that would have been announced. */
static void *begins_by_http1(void *arg)
{
    aco_http_client_t *http = new_client();
    aco_websocket_t *socket;
    begin();
    start(&stage, routes);
    socket = aco_websocket_connect(http, url_of("ws", "/ws"), NULL, 0, NULL);
    CHECK(socket && last_major == 1);
    aco_websocket_end(socket);
    aco_http_client_destroy(http);
    stop(&stage);
    return arg;
}

static void *is_closed_by_the_end(void *arg)
{
    aco_http_client_t *http = new_client();
    aco_websocket_t *socket;
    const char *data;
    size_t n;
    begin();
    stage.server.drain_time = 10 * ACO_MILLISECOND;
    start(&stage, routes);
    check_get(http);
    socket = aco_websocket_connect(http, url_of("ws", "/ws"), NULL, 0, NULL);
    CHECK(socket && last_major == 2);
    aco_scope_cancel(&stage.scope);
    CHECK(aco_websocket_receive(socket, &data, &n) <= 0);
    aco_websocket_end(socket);
    CHECK_EQ(aco_join(stage.task, NULL), 0);
    CHECK_EQ(ended, 1);
    aco_http_client_destroy(http);
    return arg;
}

/* ---- Handshakes ---- */

typedef struct content { /* what a stream sends; behind it there is no end unless it `ends` */
    const char *bytes;
    size_t n;
    int ends;
} content_t;

static content_t contents[H2_REPLIES];

static ssize_t gives(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
                     nghttp2_data_source *source, void *unused)
{
    content_t *content = source->ptr;
    (void)session;
    (void)id;
    (void)unused;
    if (n > content->n)
        n = content->n;
    if (n) {
        memcpy(p, content->bytes, n);
        content->bytes += n;
        content->n -= n;
    }
    if (!content->n && content->ends)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return n || content->ends ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
}

/* A handshake for this path, in which one field has another value; NULL: it is missing. */
static h2_reply_t *asks(const char *path, const char *name, const char *value)
{
    const char *texts[][2] = {
        {":method", "CONNECT"}, {":protocol", "websocket"},      {":scheme", "http"}, {":authority", "test"},
        {":path", path},        {"sec-websocket-version", "13"}, {"origin", NULL}};
    nghttp2_nv fields[7];
    size_t n = 0;
    content_t *content = &contents[client.count];
    h2_reply_t *reply = &client.replies[client.count++];
    nghttp2_data_provider provider = {{.ptr = content}, gives};
    memset(content, 0, sizeof *content);
    memset(reply, 0, sizeof *reply);
    for (size_t i = 0; i < 7; i++) {
        const char *text = name && strcmp(name, texts[i][0]) == 0 ? value : texts[i][1];
        const nghttp2_nv field = {(uint8_t *)(uintptr_t)texts[i][0], (uint8_t *)(uintptr_t)text, strlen(texts[i][0]),
                                  text ? strlen(text) : 0, 0};
        if (text)
            fields[n++] = field;
    }
    reply->body = malloc(H2_BODY);
    CHECK(reply->body != NULL);
    reply->id = nghttp2_submit_request(client.session, NULL, fields, n, &provider, NULL);
    CHECK(reply->id > 0);
    return reply;
}

static void says(const h2_reply_t *reply, const char *bytes, size_t n, int ends)
{
    content_t *content = &contents[reply - client.replies];
    content->bytes = bytes;
    content->n = n;
    content->ends = ends;
    (void)nghttp2_session_resume_data(client.session, reply->id);
}
#define SAYS(reply, bytes, ends) says(reply, bytes, sizeof bytes - 1, ends)

/* The frames that have come. */
static void check_got(h2_reply_t *reply, const char *bytes, size_t n)
{
    while (!client.is_over && !reply->is_closed && reply->n < n)
        h2_step(&client);
    CHECK(reply->n == n && memcmp(reply->body, bytes, n) == 0);
}
#define GOT(reply, bytes) check_got(reply, bytes, sizeof bytes - 1)

static void connects(void)
{
    start(&stage, routes);
    h2_connect(&client, aco_stream_open(dial(&stage)));
    h2_round(&client);
}

static void end_both(void)
{
    h2_close(&client);
    stop(&stage);
}

static void *other_handshakes_are_refused(void *arg)
{
    static const struct {
        const char *path, *name, *value;
        int status; /* 0: the stream is reset */
    } cases[] = {
        {"/ws", ":protocol", "WebSocket", 200},
        {"/ws", ":protocol", "connect-udp", 501},
        {"/ws", ":protocol", NULL, 0}, /* then there may be no path */
        {"/ws", ":path", NULL, 0},
        {"/ws", ":scheme", NULL, 0},
        {"/ws", ":authority", NULL, 0},
        {"/ws", ":method", "GET", 0},
        {"/ws", ":path", "/none", 404},
        {"/ws", ":path", "/", 400}, /* it would answer 200 */
        {"/ws", ":path", "*", 0},
        {"/ws", "sec-websocket-version", "12", 426},
        {"/ws", "sec-websocket-version", NULL, 426},
        {"/ws", "origin", "http://test", 200},
        {"/ws", "origin", "http://evil", 403},
    };
    begin();
    connects();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        h2_reply_t *reply = asks(cases[i].path, cases[i].name, cases[i].value);
        while (!client.is_over && !reply->is_closed && !reply->has_head)
            h2_step(&client);
        if (reply->status != cases[i].status)
            fprintf(stderr, "case %zu: %d\n", i, reply->status);
        CHECK_EQ(reply->status, cases[i].status);
        if (!cases[i].status)
            CHECK_EQ(reply->error_code, NGHTTP2_PROTOCOL_ERROR);
        if (!reply->is_closed)
            h2_reset(&client, reply->id);
    }
    h2_round(&client);
    CHECK(!client.is_over && client.goaways == 0);
    end_both();
    return arg;
}

/* ---- Hostile clients ---- */

#define HELLO "\x81\x85\0\0\0\0hello"

static void *frames_come_in_any_data(void *arg)
{
    h2_reply_t *reply;
    begin();
    connects();
    reply = asks("/ws", NULL, NULL);
    SAYS(reply, HELLO, 0); /* before the answer */
    GOT(reply, "\x81\5hello");
    CHECK_EQ(reply->status, 200);
    for (size_t i = 0; i < sizeof HELLO - 1; i++) {
        says(reply, &HELLO[i], 1, 0);
        h2_round(&client);
    }
    GOT(reply, "\x81\5hello\x81\5hello");
    SAYS(reply, HELLO HELLO "\x88\x82\0\0\0\0\x03\xe8", 1);
    GOT(reply, "\x81\5hello\x81\5hello\x81\5hello\x81\5hello\x88\2\x03\xe8");
    h2_await(&client, reply->id);
    CHECK_EQ(reply->error_code, NGHTTP2_NO_ERROR);
    CHECK(ended == 1 && last_error == 0 && last_code == 1000);
    end_both();
    return arg;
}

static void *cuts_reach_the_handler(void *arg)
{
    h2_reply_t *reply;
    begin();
    connects();
    reply = asks("/ws", NULL, NULL);
    SAYS(reply, "\x81\x85\0\0\0\0he", 0); /* a part of a message, and a reset */
    h2_round(&client);
    h2_reset(&client, reply->id);
    h2_round(&client);
    await_ends(1);
    CHECK_EQ(last_error, ECONNRESET);
    reply = asks("/ws", NULL, NULL);
    SAYS(reply, "\x81\x85\0\0\0\0he", 1); /* the end of the stream */
    h2_await(&client, reply->id);
    CHECK(ended == 2 && last_error == ECONNRESET);
    reply = asks("/ws", NULL, NULL);
    SAYS(reply, "\x81\5hello", 0); /* no mask */
    GOT(reply, "\x88\x15\x03\xea"
               "a frame has no mask");
    CHECK_EQ(last_error, EBADMSG);
    SAYS(reply, "", 1);
    h2_round(&client);
    CHECK(reply->is_closed);
    reply = asks("/leaves", NULL, NULL); /* its task ends without a close */
    h2_await(&client, reply->id);
    CHECK_EQ(reply->error_code, NGHTTP2_INTERNAL_ERROR);
    reply = asks("/ws", NULL, NULL);
    h2_round(&client);
    h2_close(&client); /* the connection */
    await_ends(4);
    CHECK_EQ(last_error, ECONNRESET);
    stop(&stage);
    return arg;
}

static void *count_as_requests(void *arg)
{
    enum { MOST = 4 };
    h2_reply_t *replies[MOST + 2];
    begin();
    stage.server.max_streams = MOST;
    stage.server.idle_time = ACO_MILLISECOND; /* of connections: they are not idle */
    connects();
    for (int i = 0; i < MOST; i++) {
        replies[i] = asks("/ws", NULL, NULL);
        SAYS(replies[i], HELLO, 0);
        GOT(replies[i], "\x81\5hello");
    }
    nghttp2_session_set_stream_user_data(client.session, replies[0]->id, NULL);
    h2_reset(&client, replies[0]->id);
    h2_round(&client);
    await_ends(1);
    replies[MOST] = asks("/ws", NULL, NULL); /* its place is free */
    SAYS(replies[MOST], HELLO, 0);
    GOT(replies[MOST], "\x81\5hello");
    for (int i = 1; i <= MOST; i++) {
        SAYS(replies[i], "\x88\x80\0\0\0\0", 1);
        h2_await(&client, replies[i]->id);
    }
    await_ends(MOST + 1);
    end_both();
    return arg;
}

/* The client's end of a stream comes together with the next request: that has the place. */
static void *the_next_follows_the_end(void *arg)
{
    h2_reply_t *reply, *next;
    begin();
    stage.server.max_streams = 1;
    connects();
    reply = asks("/ws", NULL, NULL);
    SAYS(reply, "\x88\x82\0\0\0\0\x03\xe8", 0);
    GOT(reply, "\x88\2\x03\xe8");
    h2_round(&client);
    next = asks("/ws", NULL, NULL);
    SAYS(next, HELLO, 0);
    SAYS(reply, "", 1);
    GOT(next, "\x81\5hello");
    SAYS(next, "\x88\x80\0\0\0\0", 1);
    h2_await(&client, next->id);
    await_ends(2);
    end_both();
    return arg;
}

/* A client that takes nothing stops the handler, which holds little meanwhile, and ends it after write_time. */
static void *slow_clients_stop_the_handler(void *arg)
{
    h2_reply_t *reply;
    begin();
    stage.server.write_time = 20 * ACO_MILLISECOND;
    connects();
    client.takes_nothing = 1;
    reply = asks("/pours", NULL, NULL);
    h2_await(&client, reply->id);
    CHECK(reply->n <= 65535);
    CHECK(ended == 1 && (last_error == ETIMEDOUT || last_error == EPIPE));
    end_both();
    return arg;
}

/* ---- With servers of others ---- */

static void *talks_to_others(void *address)
{
    aco_http_client_t *http = new_client();
    snprintf(stage.port, sizeof stage.port, "%s", (const char *)address);
    check_get(http);
    for (int i = 0; i < 2; i++) {
        const aco_websocket_options_t options = {.protocols = "echo"};
        aco_websocket_t *socket = aco_websocket_connect(http, url_of("ws", "/ws"), NULL, 0, &options);
        CHECK(socket != NULL);
        CHECK_TEXT("chosen", aco_websocket_protocol(socket), "echo");
        check_sizes(socket);
        CHECK_EQ(aco_websocket_close(socket, 1000, "done"), 0);
        CHECK_EQ(aco_websocket_code(socket), 1000);
        aco_websocket_end(socket);
    }
    aco_http_client_destroy(http);
    return NULL;
}

int main(int argc, char **argv)
{
    static const aco_function_t tests[] = {
        talks_to_itself,          begins_by_http1,        is_closed_by_the_end, other_handshakes_are_refused,
        frames_come_in_any_data,  cuts_reach_the_handler, count_as_requests,    slow_clients_stop_the_handler,
        the_next_follows_the_end, long_lines_fit,
    };
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && strcmp(argv[1], "serve") == 0) {
        server_options.compresses = ACO_WEBSOCKET_KEEP_WINDOWS;
        server_options.protocols = "echo";
        return serve_others(routes, NULL);
    }
    if (argc > 1) {
        run_task(talks_to_others, argv[1]);
        return check_result("http2_websocket, with others");
    }
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http2_websocket");
}
