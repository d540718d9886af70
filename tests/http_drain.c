/* Handlers that wait, and are told when their server ends: aco_http_drain_begin() (aco/http.h). */
#define _GNU_SOURCE
#include <aco/websocket.h>
#ifdef HTTP_WITH_HTTP2
#include "http2_client.h"
#else
#include "http_tests.h"
#endif

static int waiting; /* handlers */

static void wait_for_drain(aco_http_request_t *request)
{
    CHECK_EQ(aco_http_drain_begin(request), 0);
    CHECK_EQ(aco_http_drain_begin(request), 0);
    waiting++;
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    waiting--;
    CHECK_EQ(aco_http_is_draining(request), 1);
    CHECK_EQ(aco_http_drain_end(request), 1);
    CHECK_EQ(aco_http_drain_end(request), 1);
    CHECK_EQ(aco_sleep(1), 0); /* it waits again */
}

static void polls(aco_http_request_t *request, void *text)
{
    wait_for_drain(request);
    FAILS_WITH(aco_http_drain_end(request), EPERM);
    tells(request, text);
}

static void *waits_besides(void *request)
{
    wait_for_drain(request);
    return NULL;
}

/* A task of the handler's has its own. */
static void polls_in_tasks(aco_http_request_t *request, void *text)
{
    aco_t *other = aco_spawn(waits_besides, request, NULL);
    wait_for_drain(request);
    CHECK_EQ(aco_join(other, NULL), 0);
    tells(request, text);
}

/* It ends before the server does. */
static void does_not_wait(aco_http_request_t *request, void *text)
{
    aco_scope_t scope;
    CHECK_EQ(aco_http_drain_begin(request), 0);
    CHECK_EQ(aco_scope_begin(&scope, ACO_FOREVER), 0);
    FAILS_WITH(aco_http_drain_end(request), EPERM);
    CHECK_EQ(aco_scope_end(&scope), 0);
    CHECK_EQ(aco_http_drain_end(request), 0);
    tells(request, text);
}

static void exits(aco_http_request_t *request, void *text)
{
    (void)text;
    CHECK_EQ(aco_http_drain_begin(request), 0);
    CHECK_EQ(aco_http_drain_begin(request), 0);
    aco_exit();
}

/* By something else than the server's end. */
static void is_late(aco_http_request_t *request, void *text)
{
    aco_scope_t scope;
    CHECK_EQ(aco_scope_begin(&scope, aco_now()), 0);
    CHECK_EQ(aco_http_drain_begin(request), 0);
    FAILS_WITH(aco_sleep(ACO_SECOND), ETIMEDOUT);
    CHECK_EQ(aco_http_drain_end(request), 0);
    CHECK_EQ(aco_scope_end(&scope), 0);
    tells(request, text);
}

static void talks(aco_http_request_t *request, void *arg)
{
    aco_websocket_t *socket = aco_websocket_accept(request, NULL);
    const char *data;
    size_t n;
    (void)arg;
    CHECK(socket != NULL);
    CHECK_EQ(aco_http_drain_begin(request), 0);
    waiting++;
    while (aco_websocket_receive(socket, &data, &n) > 0)
        CHECK_EQ(aco_websocket_send(socket, ACO_WEBSOCKET_TEXT, data, n), 0);
    waiting--;
    CHECK_EQ(aco_http_drain_end(request), 1);
    CHECK_EQ(aco_websocket_close(socket, 1001, "bye"), 0);
}

static const aco_http_route_t routes[] = {
    {"GET", "/", polls, "told"},   {"GET", "/tasks", polls_in_tasks, "told"}, {"GET", "/short", does_not_wait, "short"},
    {"GET", "/exit", exits, NULL}, {"GET", "/late", is_late, "late"},         {"GET", "/chat", talks, NULL},
    {NULL, NULL, NULL, NULL}};

static void await_handlers(int n)
{
    while (waiting < n)
        aco_task_yield();
}

static void *tells_waiting_handlers(void *on_share_stack)
{
    static const char *const paths[] = {"/", "/tasks"};
    static const char *const others[] = {"/short", "/late"};
    aco_share_stack_t *shared = on_share_stack ? aco_share_stack_new(0) : NULL;
    const aco_options_t task = {.stack = shared};
    stage_t stage = {0};
    int fds[2];
    char text[200];
    stage.server.lame_time = ACO_MILLISECOND;
    stage.server.task = shared ? &task : NULL;
    start(&stage, routes);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n" HOST "\r\n", others[i]);
        ask(&stage, text);
        CHECK_TEXT("others", body(), others[i] + 1);
    }
    ask(&stage, "GET /exit HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n" HOST "\r\n", paths[i]);
        fds[i] = dial(&stage);
        CHECK(aco_io_write_all(fds[i], text, strlen(text)) > 0);
    }
    await_handlers(3);
    aco_scope_cancel(&stage.scope);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(read_to_end(fds[i]), 0);
        CHECK_TEXT("told", body(), "told");
        CHECK_HAS("Connection: close");
        aco_io_close(fds[i]); /* the server waits for it */
    }
    CHECK_EQ(aco_join(stage.task, NULL), 0);
    CHECK_EQ(stage.error, ECANCELED);
    CHECK_EQ(waiting, 0);
    if (shared)
        aco_share_stack_destroy(shared);
    return NULL;
}

static void *tells_on_private_stacks(void *arg)
{
    tells_waiting_handlers(NULL);
    return arg;
}

static void *tells_on_share_stacks(void *arg)
{
    tells_waiting_handlers("shared");
    return arg;
}

/* The client gets the code of a server that goes away. */
static void *ends_websockets(void *arg)
{
    aco_http_client_t *client = aco_http_client_new(NULL);
    aco_websocket_t *socket;
    stage_t stage = {0};
    const char *data;
    char url[64];
    size_t n;
    start(&stage, routes);
    snprintf(url, sizeof url, "ws://127.0.0.1:%s/chat", stage.port);
    socket = aco_websocket_connect(client, url, NULL, 0, NULL);
    CHECK(socket != NULL);
    CHECK_EQ(aco_websocket_send(socket, ACO_WEBSOCKET_TEXT, "a", 1), 0);
    CHECK_EQ(aco_websocket_receive(socket, &data, &n), ACO_WEBSOCKET_TEXT);
    aco_scope_cancel(&stage.scope);
    CHECK_EQ(aco_websocket_receive(socket, &data, &n), 0);
    CHECK_EQ(aco_websocket_code(socket), 1001);
    aco_websocket_end(socket);
    aco_http_client_destroy(client);
    CHECK_EQ(aco_join(stage.task, NULL), 0);
    return arg;
}

/* Of connections that were accepted elsewhere; begun after the end. */
typedef struct other {
    aco_http_server_t *server;
    aco_stream_t *stream;
} other_t;

static void *serves_one(void *arg)
{
    other_t *other = arg;
    CHECK_EQ(aco_http_serve_connection(other->server, other->stream, NULL, 0), 0);
    return NULL;
}

static void *tells_other_servers(void *arg)
{
    const aco_http_server_options_t options = {.routes = routes};
    for (int is_late_client = 0; is_late_client < 2; is_late_client++) {
        aco_stream_t *pair[2];
        other_t other = {aco_http_server_new(&options), NULL};
        aco_t *task;
        CHECK_EQ(aco_stream_pair(pair, 4096), 0);
        other.stream = pair[0];
        task = aco_spawn(serves_one, &other, NULL);
        if (is_late_client)
            aco_http_server_stop(other.server);
        CHECK_EQ(aco_stream_write_all(pair[1], GET(""), sizeof GET("") - 1), (ssize_t)sizeof GET("") - 1);
        if (!is_late_client) {
            await_handlers(1);
            aco_http_server_stop(other.server);
        }
        got[aco_stream_read(pair[1], got, sizeof got - 1)] = 0;
        CHECK_TEXT("told", body(), "told");
        aco_stream_close(pair[1]); /* the server waits for it */
        CHECK_EQ(aco_join(task, NULL), 0);
        aco_http_server_destroy(other.server);
    }
    return arg;
}

#ifdef HTTP_WITH_HTTP2
static void *tells_handlers_of_http2(void *arg)
{
    static h2_client_t client;
    stage_t stage = {0};
    int ids[3];
    start(&stage, routes);
    h2_connect(&client, aco_stream_open(dial(&stage)));
    ids[0] = h2_request(&client, "GET", "/exit", NULL, 0);
    ids[1] = h2_request(&client, "GET", "/", NULL, 0);
    ids[2] = h2_request(&client, "GET", "/tasks", NULL, 0);
    h2_await(&client, ids[0]);
    await_handlers(3);
    aco_scope_cancel(&stage.scope);
    for (int i = 1; i < 3; i++) {
        h2_await(&client, ids[i]);
        CHECK_TEXT("told", h2_reply(&client, ids[i])->body, "told");
    }
    h2_close(&client);
    CHECK_EQ(aco_join(stage.task, NULL), 0);
    return arg;
}
#endif

int main(void)
{
    static const aco_function_t tests[] = {
        tells_on_private_stacks, tells_on_share_stacks, ends_websockets, tells_other_servers,
#ifdef HTTP_WITH_HTTP2
        tells_handlers_of_http2,
#endif
    };
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http_drain");
}
