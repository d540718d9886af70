/* A client and a cookie jar that the tasks of several threads share (aco/http.h, aco/cookie_jar.h): each thread has
 * connections of its own, for which the limits count. Also in simulations. */
#include <aco/cookie_jar.h>
#include <aco/http.h>
#include <aco/mt.h>
#include <aco/threads.h>
#include "check.h"

#ifdef SIMULATED_RUNS
#include <aco/offload.h>
#include <aco/sim.h>
#include "sim_runs.h"
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, TASKS = 3, CALLS = 4 };

typedef struct world {
    aco_http_client_t *client;
    aco_cookie_jar_t *jar;
    aco_mt_event_t is_open;
    aco_mt_wait_group_t callers;
    aco_scope_t scope; /* of the server */
    char url[ACO_IO_ADDRESS_SIZE + 16];
    int opened; /* connections */
} world_t;

/* ---- The server ---- */

static aco_stream_t *counts(int fd, void *world)
{
    ((world_t *)world)->opened++;
    return aco_stream_open(fd);
}

/* Each thread gets a cookie of its own. */
static void sets_cookie(aco_http_request_t *request, void *arg)
{
    char cookie[40];
    (void)arg;
    snprintf(cookie, sizeof cookie, "t%.8s=1", aco_http_request_header(request, "X-Thread"));
    CHECK_EQ(aco_http_reply_header(request, "Set-Cookie", cookie), 0);
    CHECK_EQ(aco_http_reply(request, 200, "text/plain", "ok", 2), 0);
}

static void *serves(void *arg)
{
    static const aco_http_route_t routes[] = {{"GET", "/", sets_cookie, NULL}, {NULL, NULL, NULL, NULL}};
    world_t *w = arg;
    aco_http_server_options_t options = {.routes = routes, .open = counts, .open_arg = w};
    char address[ACO_IO_ADDRESS_SIZE];
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    snprintf(w->url, sizeof w->url, "http://%s/", address);
    options.drain_idle_time = ACO_MILLISECOND;
    CHECK_EQ(aco_scope_begin(&w->scope, ACO_FOREVER), 0);
    aco_mt_event_set(&w->is_open);
    CHECK(aco_http_serve(listener, &options) == -1 && errno == ECANCELED);
    CHECK_EQ(aco_scope_end(&w->scope), 0);
    return NULL;
}

/* ---- The callers ---- */

static void calls_once(world_t *w)
{
    char thread[12], body[4];
    const aco_http_header_t header = {"X-Thread", thread};
    aco_http_call_t call = {.url = w->url, .headers = &header, .header_count = 1};
    aco_http_response_t *response;
    snprintf(thread, sizeof thread, "%d", aco_threads_index());
    response = aco_http_call(w->client, &call);
    CHECK(response != NULL);
    if (!response)
        return;
    CHECK_EQ(response->status, 200);
    while (aco_http_response_read(response, body, sizeof body) > 0)
        continue;
    aco_http_response_end(response);
}

static void *calls(void *world)
{
    for (int i = 0; i < CALLS; i++)
        calls_once(world);
    return NULL;
}

static void *works(void *arg)
{
    world_t *w = arg;
    aco_t *server = NULL, *tasks[TASKS];
    if (aco_threads_index() == 0)
        CHECK((server = aco_spawn(serves, w, NULL)) != NULL);
    CHECK_EQ(aco_mt_event_wait(&w->is_open), 0);
    for (int i = 0; i < TASKS; i++)
        CHECK((tasks[i] = aco_spawn(calls, w, NULL)) != NULL);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
    if (aco_threads_index() % 2) {
        aco_http_client_close_idle(w->client);
        calls_once(w); /* by a new connection */
    }
    CHECK_EQ(aco_mt_wait_group_done(&w->callers), 0);
    if (!server)
        return NULL;
    CHECK_EQ(aco_mt_wait_group_wait(&w->callers), 0);
    CHECK_EQ(aco_scope_cancel(&w->scope), 0);
    CHECK_EQ(aco_join(server, NULL), 0);
    return NULL;
}

static void *runs_set(void *world)
{
    CHECK_EQ(aco_threads_run(THREADS, works, world, NULL), 0);
    return NULL;
}

static void counts_cookie(const aco_cookie_t *cookie, void *count)
{
    CHECK(cookie->name[0] == 't' && strcmp(cookie->value, "1") == 0);
    ++*(int *)count;
}

static void begin(world_t *w)
{
    aco_http_client_options_t options = {.max_per_host = 1, .is_shared = 1};
    memset(w, 0, sizeof *w);
    options.jar = w->jar = aco_cookie_jar_new(NULL);
    CHECK(w->jar != NULL);
    w->client = aco_http_client_new(&options);
    CHECK(w->client != NULL);
    aco_http_client_close_idle(w->client); /* this thread has none */
    CHECK_EQ(aco_mt_wait_group_add(&w->callers, THREADS), 0);
}

/* The threads of the set have ended, and have left connections. */
static void end(world_t *w)
{
    int cookies = 0;
    CHECK_EQ(w->opened, THREADS + THREADS / 2);
    aco_cookie_jar_each(w->jar, counts_cookie, &cookies);
    CHECK_EQ(cookies, THREADS);
    aco_http_client_destroy(w->client);
    aco_cookie_jar_destroy(w->jar);
}

#ifdef SIMULATED_RUNS
static void scenario(aco_sim_t *sim, void *arg)
{
    static world_t w;
    (void)sim, (void)arg;
    begin(&w);
    CHECK_EQ(aco_offload(runs_set, &w, NULL, NULL), 0);
    end(&w);
}

int main(void)
{
    aco_sim_options_t options = {.check = 1};
    aco_sim_stats_t stats;
    sim_alarm(100);
    if (aco_sim_run(scenario, NULL, sim_runs(SIMULATED_RUNS), &stats, &options) != 0) {
        CHECK(!"the simulation");
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)stats.seed, stats.reason);
    }
    return check_result("sim_threads_http_client");
}
#else
int main(void)
{
    static world_t w;
    for (int i = 0; i < 20; i++) {
        begin(&w);
        runs_set(&w);
        end(&w);
    }
    return check_result("threads_http_client");
}
#endif
