/* A client whose limits count for several threads together (limits_in_all of aco/http.h): never more requests at once
 * than places, also while calls that wait for one are cancelled, and none is lost. Also in simulations. */
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
#include <string.h>

enum { THREADS = 4, TASKS = 3, CALLS = 6, HOSTS = 2, MOST = 3, MOST_OF_HOST = 2 };

typedef struct host {
    int listener;
    int held, most_held; /* responses. Atomic */
    char url[ACO_IO_ADDRESS_SIZE + 16];
} host_t;

typedef struct world {
    aco_http_client_t *client;
    aco_mt_event_t is_open;
    aco_mt_wait_group_t callers;
    aco_scope_t scope; /* of the servers */
    host_t hosts[HOSTS];
    int held, most_held; /* responses. Atomic, like the next one */
    int cancelled; /* calls */
} world_t;

static world_t world;

/* ---- The servers ---- */

static void says_ok(aco_http_request_t *request, void *arg)
{
    (void)arg;
    (void)aco_http_reply(request, 200, "text/plain", "ok", 2); /* its client may be gone */
}

static void *serves_host(void *arg)
{
    const host_t *host = arg;
    const aco_http_route_t routes[] = {{"GET", "/", says_ok, NULL}, {NULL, NULL, NULL, NULL}};
    aco_http_server_options_t options = {.routes = routes, .drain_idle_time = ACO_MILLISECOND};
    CHECK(aco_http_serve(host->listener, &options) == -1 && errno == ECANCELED);
    return NULL;
}

static void *serves(void *arg)
{
    char address[ACO_IO_ADDRESS_SIZE];
    aco_group_t group;
    (void)arg;
    for (host_t *host = world.hosts; host < world.hosts + HOSTS; host++) {
        host->listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
        CHECK_EQ(aco_io_local_address(host->listener, address, sizeof address), 0);
        snprintf(host->url, sizeof host->url, "http://%s/", address);
    }
    CHECK_EQ(aco_scope_begin(&world.scope, ACO_FOREVER), 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < HOSTS; i++)
        CHECK(aco_group_spawn(&group, serves_host, &world.hosts[i], NULL) != NULL);
    aco_mt_event_set(&world.is_open);
    (void)aco_group_end(&group);
    (void)aco_scope_end(&world.scope);
    return NULL;
}

/* ---- Calls ---- */

/* Others go on. */
static void pass_time(void)
{
#ifdef SIMULATED_RUNS
    (void)aco_sleep(3 * ACO_MILLISECOND);
#else
    for (int i = 0; i < 4; i++)
        (void)aco_task_yield();
#endif
}

static void hold(int *held, int *most)
{
    int n = __atomic_add_fetch(held, 1, __ATOMIC_SEQ_CST), seen = __atomic_load_n(most, __ATOMIC_SEQ_CST);
    while (n > seen && !__atomic_compare_exchange_n(most, &seen, n, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        continue;
}

/* A call has a place at least from its response's head to its end. */
static void calls_once(host_t *host)
{
    aco_http_response_t *response = aco_http_get(world.client, host->url);
    if (!response) {
        CHECK_EQ(errno, ECANCELED);
        __atomic_fetch_add(&world.cancelled, 1, __ATOMIC_SEQ_CST);
        return;
    }
    CHECK_EQ(response->status, 200);
    hold(&world.held, &world.most_held);
    hold(&host->held, &host->most_held);
    pass_time();
    __atomic_fetch_sub(&host->held, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&world.held, 1, __ATOMIC_SEQ_CST);
    aco_http_response_end(response);
}

static void *calls(void *arg)
{
    for (int i = 0; i < CALLS; i++)
        calls_once(&world.hosts[(i + aco_threads_index()) % HOSTS]);
    return arg;
}

typedef struct stay_t {
    aco_scope_t scope;
    int has_begun, has_ended;
} stay_t;

/* In a scope that another task ends. */
static void *calls_for_a_while(void *arg)
{
    stay_t *stay = arg;
    CHECK_EQ(aco_scope_begin(&stay->scope, ACO_FOREVER), 0);
    stay->has_begun = 1;
    (void)calls(NULL);
    stay->has_ended = 1;
    (void)aco_scope_end(&stay->scope);
    return NULL;
}

/* Some of the tasks wait for places, others for connections. */
static void call_and_cancel(void)
{
    stay_t stays[TASKS];
    aco_t *tasks[TASKS];
    memset(stays, 0, sizeof stays);
    for (int i = 0; i < TASKS; i++)
        CHECK((tasks[i] = aco_spawn(calls_for_a_while, &stays[i], NULL)) != NULL);
    for (int i = 0; i < TASKS; i++) {
        do
            pass_time();
        while (!stays[i].has_begun);
        if (i % 2 == 0 && !stays[i].has_ended)
            (void)aco_scope_cancel(&stays[i].scope);
    }
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
}

/* All places are free: one task gets them all, and nobody gets another one. */
static void take_all(void)
{
    aco_http_response_t *responses[MOST];
    aco_scope_t scope;
    for (int i = 0; i < MOST; i++)
        CHECK((responses[i] = aco_http_get(world.client, world.hosts[i % HOSTS].url)) != NULL);
    for (int i = 0; i < HOSTS; i++) {
        CHECK_EQ(aco_scope_begin(&scope, aco_after(ACO_MILLISECOND)), 0);
        CHECK(aco_http_get(world.client, world.hosts[i].url) == NULL && errno == ETIMEDOUT);
        (void)aco_scope_end(&scope);
    }
    for (int i = 0; i < MOST; i++)
        aco_http_response_end(responses[i]);
}

/* ---- The threads ---- */

static void ends_servers(aco_t *server)
{
    CHECK_EQ(aco_mt_wait_group_wait(&world.callers), 0);
    take_all();
    CHECK_EQ(aco_scope_cancel(&world.scope), 0);
    CHECK_EQ(aco_join(server, NULL), 0);
}

static void *works(void *arg)
{
    aco_t *server = NULL, *tasks[TASKS];
    if (aco_threads_index() == 0)
        CHECK((server = aco_spawn(serves, NULL, NULL)) != NULL);
    CHECK_EQ(aco_mt_event_wait(&world.is_open), 0);
    for (int i = 0; i < TASKS; i++)
        CHECK((tasks[i] = aco_spawn(calls, NULL, NULL)) != NULL);
    call_and_cancel();
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
    aco_http_client_close_idle(world.client);
    CHECK_EQ(aco_mt_wait_group_done(&world.callers), 0);
    if (server)
        ends_servers(server);
    return arg;
}

static void *runs_set(void *arg)
{
    CHECK_EQ(aco_threads_run(THREADS, works, NULL, NULL), 0);
    return arg;
}

static int all_cancelled, all_most; /* over the runs */

static void begin(void)
{
    const aco_http_client_options_t options = {
        .max_connections = MOST, .max_per_host = MOST_OF_HOST, .is_shared = 1, .limits_in_all = 1};
    memset(&world, 0, sizeof world);
    world.client = aco_http_client_new(&options);
    CHECK(world.client != NULL);
    CHECK_EQ(aco_mt_wait_group_add(&world.callers, THREADS), 0);
}

static void end(void)
{
    CHECK(world.most_held <= MOST);
    for (int i = 0; i < HOSTS; i++)
        CHECK(world.hosts[i].most_held <= MOST_OF_HOST);
    all_most = world.most_held > all_most ? world.most_held : all_most;
    all_cancelled += world.cancelled;
    aco_http_client_destroy(world.client);
}

static void check_options(void)
{
    aco_http_client_options_t options = {.max_connections = 1, .limits_in_all = 1};
    aco_http_client_t *client;
    CHECK(!aco_http_client_new(&options) && errno == EINVAL);
    options.is_shared = 1;
    options.max_connections = -1; /* no limit, so there is nothing in common */
    CHECK((client = aco_http_client_new(&options)) != NULL);
    aco_http_client_destroy(client);
}

#ifdef SIMULATED_RUNS
static void scenario(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    begin();
    CHECK_EQ(aco_offload(runs_set, NULL, NULL, NULL), 0);
    end();
}

int main(void)
{
    aco_sim_options_t options = {.check = 1};
    aco_sim_stats_t stats;
    sim_alarm(100);
    check_options();
    if (aco_sim_run(scenario, NULL, sim_runs(SIMULATED_RUNS), &stats, &options) != 0) {
        CHECK(!"the simulation");
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)stats.seed, stats.reason);
    }
    CHECK(all_cancelled > 0 && all_most == MOST);
    return check_result("sim_threads_http_client_limits");
}
#else
int main(void)
{
    check_options();
    for (int i = 0; i < 20; i++) {
        begin();
        runs_set(NULL);
        end();
    }
    return check_result("threads_http_client_limits");
}
#endif
