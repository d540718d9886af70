/* Promises of HTTP/2, in many orders (include/aco/http.h): a client whose connections travel slowly and are reset gets
 * whole and right responses, and messages of WebSockets, or errors, what is not idempotent is done at most once, and
 * nobody waits for ever. */
#include "sim_checks.h"

#include "aco/http.h"
#include "aco/io.h"
#include "aco/scope.h"
#include "aco/websocket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { CALLERS = 6, CALLS = 5, MOST = 70000 };

typedef struct world {
    int listener;
    aco_scope_t scope; /* of the server */
    aco_http_server_options_t server;
    aco_http_client_t *client;
    aco_sim_t *sim;
    int numbers; /* of calls that are done once */
    int times[2 * CALLERS * CALLS + 1]; /* they were done */
    int has_faults, answers;
} world_t;

static char bytes[MOST];

static void is_done_once(aco_http_request_t *request, void *arg)
{
    world_t *w = arg;
    int number = request->query ? atoi(request->query) : -1;
    CHECK(number >= 0 && number < w->numbers);
    CHECK_EQ(++w->times[number], 1);
    (void)aco_sleep((int64_t)aco_sim_random(w->sim, 50) * ACO_MILLISECOND);
    (void)aco_http_reply(request, 200, NULL, "done", 4);
}

static void sends_back(aco_http_request_t *request, void *arg)
{
    char part[3000];
    ssize_t n;
    (void)arg;
    if (aco_http_reply_begin(request, 200, NULL, -1) != 0)
        return;
    while ((n = aco_http_request_read(request, part, sizeof part)) > 0)
        if (aco_http_reply_write(request, part, (size_t)n) != 0)
            return;
    if (n == 0)
        (void)aco_http_reply_trailer(request, "x-end", "yes");
}

static void sends_messages_back(aco_http_request_t *request, void *arg)
{
    aco_websocket_t *socket = aco_websocket_accept(request, NULL);
    const char *data;
    size_t n;
    int type;
    (void)arg;
    while (socket && (type = aco_websocket_receive(socket, &data, &n)) > 0)
        if (aco_websocket_send(socket, type, data, n) != 0)
            break;
}

static void *serve(void *arg)
{
    world_t *w = arg;
    CHECK(aco_scope_begin(&w->scope, ACO_FOREVER) == 0);
    CHECK_EQ(aco_http_serve(w->listener, &w->server), -1);
    (void)aco_scope_end(&w->scope);
    return NULL;
}

/* How many bytes of a whole response have come; -1: it is not whole. */
static ssize_t read_all(aco_http_response_t *response, size_t most)
{
    char part[5000];
    ssize_t n;
    size_t all = 0;
    while ((n = aco_http_response_read(response, part, sizeof part)) > 0) {
        CHECK(all + (size_t)n <= most);
        CHECK(most < 10 || memcmp(part, bytes + all, (size_t)n) == 0);
        all += (size_t)n;
    }
    return n < 0 ? -1 : (ssize_t)all;
}

static void call_once(world_t *w)
{
    char url[64];
    aco_http_call_t call = {.method = "POST", .url = url, .body = "x", .length = 1};
    aco_http_response_t *response;
    snprintf(url, sizeof url, "http://10.0.0.1/once?%d", w->numbers++);
    response = aco_http_call(w->client, &call);
    CHECK(response || w->has_faults);
    if (!response)
        return;
    CHECK_EQ(response->major, 2);
    if (read_all(response, 4) == 4)
        w->answers++;
    else
        CHECK(w->has_faults);
    aco_http_response_end(response);
}

typedef struct written {
    aco_http_response_t *response;
    size_t n;
} written_t;

static void *writes(void *arg)
{
    const written_t *body = arg;
    size_t half = body->n / 2;
    if (aco_http_call_write(body->response, bytes, half) == 0 &&
        aco_http_call_write(body->response, bytes + half, body->n - half) == 0)
        (void)aco_http_call_end(body->response, NULL, 0);
    return NULL;
}

/* One task writes while this one reads, in this scope, which ends here. */
static void call_both_ways(world_t *w, aco_scope_t *scope)
{
    const aco_http_call_t call = {.method = "POST", .url = "http://10.0.0.1/back"};
    written_t body = {aco_http_call_begin(w->client, &call), 10 + (size_t)aco_sim_random(w->sim, MOST - 10)};
    aco_t *writer;
    CHECK(body.response || w->has_faults);
    if (!body.response) {
        (void)aco_scope_end(scope);
        return;
    }
    writer = aco_spawn(writes, &body, NULL);
    if (aco_http_response_await(body.response) == 0 && read_all(body.response, body.n) == (ssize_t)body.n) {
        const char *end = aco_http_response_trailer(body.response, "x-end");
        CHECK(end && strcmp(end, "yes") == 0);
        w->answers++;
    } else {
        CHECK(w->has_faults);
        (void)aco_cancel(writer); /* it may have ended */
    }
    (void)aco_scope_end(scope);
    CHECK(aco_join(writer, NULL) == 0);
    aco_http_response_end(body.response);
}

static void chat(world_t *w)
{
    aco_websocket_t *socket = aco_websocket_connect(w->client, "ws://10.0.0.1/chat", NULL, 0, NULL);
    const size_t n = (size_t)aco_sim_random(w->sim, MOST);
    const char *data;
    size_t came;
    int type = -1;
    CHECK(socket || w->has_faults);
    if (!socket)
        return;
    if (aco_websocket_send(socket, ACO_WEBSOCKET_TEXT, bytes, n) == 0)
        type = aco_websocket_receive(socket, &data, &came);
    CHECK(type <= 0 || (type == ACO_WEBSOCKET_TEXT && came == n && memcmp(data, bytes, n) == 0));
    if (type > 0 && aco_websocket_close(socket, 1000, NULL) == 0)
        w->answers++;
    else
        CHECK(w->has_faults);
    aco_websocket_end(socket);
}

static void *calls(void *arg)
{
    world_t *w = arg;
    for (int i = 0; i < CALLS; i++) {
        int64_t time = (int64_t)aco_sim_random(w->sim, 2000) * ACO_MILLISECOND;
        aco_scope_t scope;
        CHECK(aco_scope_begin(&scope, w->has_faults ? aco_after(time) : ACO_FOREVER) == 0);
        switch (aco_sim_random(w->sim, 3)) {
        case 0:
            call_both_ways(w, &scope);
            break;
        case 1:
            chat(w);
            (void)aco_scope_end(&scope);
            break;
        default:
            call_once(w);
            (void)aco_scope_end(&scope);
        }
    }
    return NULL;
}

static void run_callers(world_t *w)
{
    aco_t *tasks[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        tasks[i] = aco_spawn(calls, w, NULL);
    for (int i = 0; i < CALLERS; i++)
        CHECK(aco_join(tasks[i], NULL) == 0);
}

static void survives(aco_sim_t *sim, void *arg)
{
    world_t w = {.sim = sim, .has_faults = 1};
    const aco_http_route_t routes[] = {{"POST", "/once", is_done_once, &w},
                                       {"POST", "/back", sends_back, &w},
                                       {"GET", "/chat", sends_messages_back, &w},
                                       {NULL, NULL, NULL, NULL}};
    const aco_http_client_options_t options = {.prior_knowledge = 1, .ping_time = 10 * ACO_SECOND};
    const aco_sim_link_t bad = {.latency = {0, 50 * ACO_MILLISECOND}, .resets = 0.02, .loss = 0.02}, good = {.loss = 0};
    aco_t *server;
    (void)arg;
    w.server.routes = routes;
    w.server.max_streams = 4;
    w.client = aco_http_client_new(&options);
    w.listener = aco_io_listen("tcp", "0.0.0.0", "80", NULL);
    CHECK(w.client && w.listener >= 0);
    server = aco_spawn(serve, &w, NULL);
    CHECK(aco_sim_link(sim, "*", "*", &bad) == 0);
    run_callers(&w);
    CHECK(aco_sim_link(sim, "*", "*", &good) == 0);
    (void)aco_sleep(1000 * ACO_SECOND); /* what was lost is sent again, or its connection has ended */
    call_once(&w); /* finds out which connections are left */
    w.has_faults = w.answers = 0;
    run_callers(&w);
    CHECK_EQ(w.answers, CALLERS * CALLS);
    aco_http_client_destroy(w.client);
    aco_scope_cancel(&w.scope);
    CHECK(aco_join(server, NULL) == 0);
}

int main(void)
{
    sim_alarm(60);
    for (size_t i = 0; i < MOST; i++)
        bytes[i] = (char)('a' + i % 23);
    passes(survives, NULL, 50);
    return check_result("sim_http2");
}
