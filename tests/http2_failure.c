/* HTTP/2 in the server (include/aco/http.h) when memory runs out: each allocation of the library's and of nghttp2's
 * fails once, on either side, also of the library's client; and two of the server's in a row. No request waits for
 * ever, and nothing stays allocated. */
#define _GNU_SOURCE
#include "http2_client.h"
#include "no_handshakes.h"

#include <aco/websocket.h>
#include <signal.h>

void *__real_aco__service_allocate(size_t *sz, const char *call);
void *__wrap_aco__service_allocate(size_t *sz, const char *call);

static long left; /* allocations until one fails; less than 0: none does */
static int has_failed, in_a_row = 1; /* how many fail */

void *__wrap_aco__service_allocate(size_t *sz, const char *call)
{
    if (left >= 0 && left-- < in_a_row) {
        has_failed = 1;
        errno = ENOMEM;
        return NULL;
    }
    return __real_aco__service_allocate(sz, call);
}

static void echoes_what_it_can(aco_http_request_t *request, void *arg)
{
    size_t n = 0;
    const char *text = aco_http_request_read_all(request, 4000, &n);
    (void)arg;
    if (!text)
        return;
    (void)aco_http_reply_trailer(request, "X-Sum", "1");
    if (aco_http_reply_begin(request, 200, NULL, -1) == 0)
        (void)aco_http_reply_write(request, text, n);
}

/* The client knows that only by the stream's end. */
static void aborts(aco_http_request_t *request, void *arg)
{
    (void)arg;
    if (aco_http_reply_begin(request, 200, NULL, -1) == 0 && aco_http_reply_write(request, "part", 4) == 0)
        (void)aco_http_reply_flush(request);
    aco_http_reply_abort(request);
}

static void echoes_a_message(aco_http_request_t *request, void *arg)
{
    aco_websocket_t *socket = aco_websocket_accept(request, NULL);
    const char *data;
    size_t n;
    (void)arg;
    while (socket && aco_websocket_receive(socket, &data, &n) > 0)
        if (aco_websocket_send(socket, ACO_WEBSOCKET_BINARY, data, n) != 0)
            break;
}

static const aco_http_route_t routes[] = {
    {NULL, "/", echoes_what_it_can, NULL},
    {NULL, "/aborts", aborts, NULL},
    {NULL, "/chat", echoes_a_message, NULL},
    {NULL, NULL, NULL, NULL},
};
static stage_t stage;
static h2_client_t client;
static const char text[3000];

static void *asks_while_one_fails(void *which)
{
    enum { REQUESTS = 4 };
    int ids[REQUESTS];
    memset(&stage.server, 0, sizeof stage.server);
    stage.server.failed = ignores;
    start(&stage, routes);
    h2_connect(&client, aco_stream_open(dial(&stage)));
    left = *(int *)which + in_a_row - 1;
    client.trailer = "1";
    ids[0] = h2_request(&client, "GET", "/", NULL, 0);
    ids[1] = h2_request(&client, "POST", "/", text, sizeof text);
    ids[2] = h2_request(&client, "POST", "/", text, 30);
    ids[3] = h2_request(&client, "GET", "/aborts", NULL, 0);
    for (int i = 0; i < REQUESTS; i++)
        h2_await(&client, ids[i]);
    left = -1;
    h2_close(&client);
    stop(&stage);
    return NULL;
}

/* ---- The same with the library's client ---- */

static aco_http_client_t *calling;
static char url[64], websocket_url[64];

/* A call may fail, but it ends. */
static void *calls(void *arg)
{
    const aco_http_header_t trailer = {"x-a", "b"};
    const aco_http_call_t call = {.method = "POST",
                                  .url = url,
                                  .body = text,
                                  .length = *(const int *)arg,
                                  .trailers = &trailer,
                                  .trailer_count = 1};
    aco_http_response_t *r = aco_http_call(calling, &call);
    char part[1000];
    if (!r)
        return NULL;
    while (aco_http_response_read(r, part, sizeof part) > 0)
        ;
    (void)aco_http_response_trailer(r, "x-sum");
    aco_http_response_end(r);
    return NULL;
}

static void *streams_while_one_fails(void *arg)
{
    const aco_http_call_t call = {.method = "POST", .url = url};
    aco_http_response_t *r = aco_http_call_begin(calling, &call);
    char part[1000];
    if (!r)
        return arg;
    if (aco_http_call_write(r, text, 2000) == 0 && aco_http_call_end(r, NULL, 0) == 0 &&
        aco_http_response_await(r) == 0)
        while (aco_http_response_read(r, part, sizeof part) > 0)
            ;
    aco_http_response_end(r);
    return arg;
}

static void *chats_while_one_fails(void *arg)
{
    const char *data;
    size_t n;
    aco_websocket_t *socket = aco_websocket_connect(calling, websocket_url, NULL, 0, NULL);
    if (!socket)
        return arg;
    if (aco_websocket_send(socket, ACO_WEBSOCKET_BINARY, text, sizeof text) == 0)
        (void)aco_websocket_receive(socket, &data, &n);
    aco_websocket_end(socket);
    return arg;
}

static void *calls_while_one_fails(void *which)
{
    const aco_http_client_options_t options = {.prior_knowledge = 1};
    int sizes[] = {0, 10, 3000};
    aco_t *tasks[3];
    memset(&stage.server, 0, sizeof stage.server);
    stage.server.failed = ignores;
    start(&stage, routes);
    snprintf(url, sizeof url, "http://127.0.0.1:%s/", stage.port);
    snprintf(websocket_url, sizeof websocket_url, "ws://127.0.0.1:%s/chat", stage.port);
    calling = aco_http_client_new(&options);
    CHECK(calling != NULL);
    for (int i = 0; i < 3; i++)
        CHECK((tasks[i] = aco_spawn(calls, &sizes[i], NULL)) != NULL);
    left = *(int *)which;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
    (void)streams_while_one_fails(NULL);
    (void)chats_while_one_fails(NULL);
    left = -1;
    (void)calls(&sizes[1]); /* what is left of the connection does no harm */
    aco_http_client_destroy(calling);
    stop(&stage);
    return NULL;
}

static void fail_each(aco_function_t test)
{
    int which = 0;
    do {
        has_failed = 0;
        run_task(test, &which);
    } while (has_failed && ++which < 1000);
    CHECK(which > 30);
}

int main(void)
{
    left = -1;
    signal(SIGPIPE, SIG_IGN);
    run_task(warms_up, NULL);
    fail_each(asks_while_one_fails);
    fail_each(calls_while_one_fails);
    in_a_row = 2;
    fail_each(asks_while_one_fails);
    return check_result("http2_failure");
}
