/* Promises of gRPC servers (include/aco/grpc.h) over a network that delays, loses and resets, with a node that crashes:
 * each call of a client ends with a status in time, none is done twice, an answer is right, and when all has healed the
 * server answers again. Without crashes nothing of its memory is left. The client is Acorn's for HTTP/2. */
#define _GNU_SOURCE
#include "io_tests.h"
#include "sim_checks.h"

#include <aco/grpc.h>
#include <aco/scope.h>

enum { RUNS = 40, CALLERS = 4, CALLS = 8, MOST_CALLS = 2 * CALLERS * CALLS, HEAD = 5 /* bytes before a message */ };

typedef struct world {
    aco_sim_t *sim;
    aco_http_client_t *client;
    aco_scope_t scope; /* of the server */
    int numbers; /* of calls */
    int times[MOST_CALLS]; /* they were done */
    int statuses[ACO_GRPC_UNAUTHENTICATED + 1];
} world_t;

static int seen[ACO_GRPC_UNAUTHENTICATED + 1]; /* statuses, in all runs */

/* ---- The server ---- */

static int number_of(const void *message, size_t n)
{
    int number = -1;
    if (n == sizeof number)
        memcpy(&number, message, n);
    return number;
}

/* Answers with the request's number plus one. */
static int counts(aco_grpc_call_t *call, void *arg)
{
    world_t *w = arg;
    const void *message;
    size_t n;
    int number;
    if (aco_grpc_read_only(call, &message, &n) != 0)
        return ACO_GRPC_FROM_ERRNO;
    number = number_of(message, n);
    CHECK(number >= 0 && number < w->numbers);
    CHECK_EQ(++w->times[number], 1);
    (void)aco_sleep((int64_t)aco_sim_random(w->sim, 100) * ACO_MILLISECOND);
    number++;
    return aco_grpc_write(call, &number, sizeof number) == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
}

static void *serve_grpc(void *arg)
{
    world_t *w = arg;
    aco_grpc_server_t *server = aco_grpc_server_new(NULL);
    int listener = aco_io_listen("tcp", "10.0.0.1", "80", NULL);
    CHECK(server && listener >= 0);
    CHECK_EQ(aco_grpc_server_add(server, "/test.Test/Count", counts, w), 0);
    CHECK_EQ(aco_scope_begin(&w->scope, ACO_FOREVER), 0);
    CHECK_EQ(aco_grpc_serve(listener, server, NULL), -1);
    (void)aco_scope_end(&w->scope);
    aco_grpc_server_destroy(server);
    return NULL;
}

/* ---- Clients ---- */

/* The status that came; that of errno, if none did. The answer is in *number. */
static int status_of(aco_http_response_t *response, int *number)
{
    char bytes[64];
    size_t n = 0;
    ssize_t some = 1;
    const char *status = NULL;
    while (response && some > 0 && n < sizeof bytes) {
        some = aco_http_response_read(response, bytes + n, sizeof bytes - n);
        n += some > 0 ? (size_t)some : 0;
    }
    if (!response || some < 0)
        return aco_grpc_status_of_errno(errno);
    status = aco_http_response_trailer(response, "grpc-status");
    status = status ? status : aco_http_response_header(response, "grpc-status");
    CHECK(status != NULL); /* a whole response has one */
    *number = n == HEAD + sizeof *number ? number_of(bytes + HEAD, sizeof *number) : -1;
    return status ? atoi(status) : ACO_GRPC_UNKNOWN;
}

static int call_once(world_t *w, int64_t time)
{
    static const aco_http_header_t headers[] = {{"Content-Type", "application/grpc"}, {"TE", "trailers"}};
    char body[HEAD + sizeof(int)] = {0, 0, 0, 0, sizeof(int)};
    aco_http_call_t call = {.method = "POST",
                            .url = "http://10.0.0.1/test.Test/Count",
                            .headers = headers,
                            .header_count = 2,
                            .body = body,
                            .length = sizeof body};
    aco_http_response_t *response;
    aco_scope_t scope;
    int64_t began = aco_now();
    int number = w->numbers++, answer = -1, status;
    memcpy(body + HEAD, &number, sizeof number);
    CHECK_EQ(aco_scope_begin(&scope, aco_after(time)), 0);
    response = aco_http_call(w->client, &call);
    status = status_of(response, &answer);
    aco_http_response_end(response);
    (void)aco_scope_end(&scope);
    CHECK(aco_now() - began <= time);
    CHECK(status >= 0 && status <= ACO_GRPC_UNAUTHENTICATED);
    CHECK(status || (answer == number + 1 && w->times[number] == 1));
    w->statuses[status]++;
    seen[status]++;
    return status;
}

static void *calls_often(void *arg)
{
    world_t *w = arg;
    for (int i = 0; i < CALLS; i++) {
        (void)call_once(w, (1 + (int64_t)aco_sim_random(w->sim, 5000)) * ACO_MILLISECOND);
        (void)aco_sleep((int64_t)aco_sim_random(w->sim, 500) * ACO_MILLISECOND);
    }
    return NULL;
}

static void run_clients(world_t *w)
{
    aco_t *tasks[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        tasks[i] = aco_spawn(calls_often, w, NULL);
    for (int i = 0; i < CALLERS; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
}

/* The server answers again. */
static void heals(world_t *w)
{
    const aco_sim_link_t good = {.loss = 0};
    CHECK_EQ(aco_sim_link(w->sim, "*", "*", &good), 0);
    (void)aco_sleep(1000 * ACO_SECOND); /* what was lost is sent again, or its connection has ended */
    (void)call_once(w, 60 * ACO_SECOND); /* finds out which connections are left */
    CHECK_EQ(call_once(w, 60 * ACO_SECOND), ACO_GRPC_OK);
}

static void begin_world(world_t *w, aco_sim_t *sim)
{
    const aco_http_client_options_t options = {.prior_knowledge = 1, .ping_time = 10 * ACO_SECOND};
    const aco_sim_link_t bad = {.latency = {0, 50 * ACO_MILLISECOND}, .resets = 0.01, .loss = 0.02};
    memset(w, 0, sizeof *w);
    w->sim = sim;
    w->client = aco_http_client_new(&options);
    CHECK(w->client != NULL);
    CHECK_EQ(aco_sim_link(sim, "*", "*", &bad), 0);
}

static void survives_crashes(aco_sim_t *sim, void *arg)
{
    static world_t w; /* what a crash leaves points to it */
    aco_sim_node_t *node;
    (void)arg;
    begin_world(&w, sim);
    node = aco_sim_node(sim, "server", "10.0.0.1", serve_grpc, &w);
    CHECK(node != NULL);
    CHECK_EQ(aco_sim_nemesis(sim, ACO_SIM_FAULT_CRASH | ACO_SIM_FAULT_PARTITION | ACO_SIM_FAULT_LOSS), 0);
    run_clients(&w);
    CHECK_EQ(aco_sim_nemesis(sim, 0), 0);
    heals(&w);
    aco_http_client_destroy(w.client);
}

/* On one machine, so that it ends in order. */
static void gives_memory_back(aco_sim_t *sim, void *arg)
{
    world_t w;
    aco_t *server;
    int before;
    warms_up(arg);
    before = count_blocks();
    begin_world(&w, sim);
    server = aco_spawn(serve_grpc, &w, NULL);
    run_clients(&w);
    heals(&w);
    aco_http_client_destroy(w.client);
    aco_scope_cancel(&w.scope);
    CHECK_EQ(aco_join(server, NULL), 0);
    CHECK_EQ(count_blocks(), before);
}

int main(void)
{
    sim_alarm(60);
    passes(gives_memory_back, NULL, RUNS);
    passes(survives_crashes, NULL, RUNS);
    CHECK(seen[ACO_GRPC_OK] > 0 && seen[ACO_GRPC_DEADLINE_EXCEEDED] > 0 && seen[ACO_GRPC_UNAVAILABLE] > 0);
    return check_result("sim_grpc");
}
