/* A service (aco/service.h) on a node of a simulation, under load and faults of the network, gets signals at random
 * moments: it loses no request that a handler has begun, every configuration is freed once, when nobody uses it any
 * more, and its end says what has happened. tests/sim_faults.py puts faults into the library and counts the seeds until
 * one of the scenarios finds each.
 *
 * sim_service [option of aco_sim_main()]... -- SCENARIO */
#include <aco/http.h>
#include <aco/io.h>
#include <aco/scope.h>
#include <aco/service.h>
#include <aco/sim.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, CLIENTS = 3, QUESTIONS = 12, CONFIGURATIONS = 32 };

static aco_sim_t *sim; /* the run */

#define MUST(condition) ((condition) ? (void)0 : (void)aco_sim_fail(sim, #condition))

static void pause_up_to(int64_t ns)
{
    (void)aco_sleep((int64_t)aco_sim_random(sim, (uint64_t)ns));
}

/* Until one of the next so many whole milliseconds: what happens on different threads then often happens at one time,
 * and the seed decides the order. */
static void pause_ticks(uint64_t most)
{
    const int64_t begun = aco_now() % ACO_MILLISECOND;
    (void)aco_sleep((int64_t)(1 + aco_sim_random(sim, most)) * ACO_MILLISECOND - begun);
}

/* ---- The service ---- */

typedef struct configuration {
    int is_loaded, is_freed;
} configuration_t;

/* What all lives of the node have done. The run's threads take turns, so nothing here needs a lock. */
static struct lives {
    int number;     /* of the present one, from 1 on */
    int is_over;    /* it has ended by itself */
    int error;      /* and so */
    int begun_in[CLIENTS * QUESTIONS]; /* in which life a request's handler was called; 0: it was not */
    int answered[CLIENTS * QUESTIONS]; /* its client has the whole answer */
    configuration_t configurations[CONFIGURATIONS];
    int loads, has_loaded; /* has_loaded: in this life */
    int64_t load_began;
} lives;

static void *load(void *arg)
{
    configuration_t *configuration = &lives.configurations[lives.loads++ % CONFIGURATIONS];
    (void)arg;
    lives.load_began = aco_now();
    pause_ticks(20);
    if (lives.has_loaded && aco_sim_random(sim, 8) == 0) {
        errno = ENOENT;
        return NULL;
    }
    configuration->is_loaded = lives.number;
    lives.has_loaded = 1;
    return configuration;
}

static void unload(void *value, void *arg)
{
    configuration_t *configuration = value;
    (void)arg;
    MUST(!configuration->is_freed);
    configuration->is_freed = 1;
}

/* GET /NUMBER */
static void answer(aco_http_request_t *request, void *service)
{
    int number = atoi(request->path + 1), length;
    aco_service_config_t *config;
    const configuration_t *configuration;
    char text[32];
    MUST(number >= 0 && number < CLIENTS * QUESTIONS && !lives.begun_in[number]);
    lives.begun_in[number] = lives.number;
    pause_ticks(5);
    config = aco_service_config(service);
    configuration = config->value;
    MUST(!configuration->is_freed);
    if (aco_sim_random(sim, 2))
        pause_up_to(200 * ACO_MILLISECOND);
    MUST(!configuration->is_freed);
    aco_service_config_release(config);
    length = snprintf(text, sizeof text, "answer %d.", number);
    (void)aco_http_reply(request, 200, "text/plain", text, (size_t)length);
}

static int serve(aco_service_t *service, void *arg)
{
    const aco_http_route_t routes[] = {{"GET", "/*", answer, service}, {NULL, NULL, NULL, NULL}};
    const aco_http_server_options_t server = {.routes = routes, .drain_time = 600 * ACO_SECOND};
    int listener = aco_service_listen(service, "http", "tcp", NULL, "80", NULL);
    (void)arg;
    if (listener < 0)
        return -1;
    aco_service_ready(service);
    return aco_http_serve(listener, &server);
}

static void *live(void *arg)
{
    const aco_service_options_t options = {.threads = THREADS,
                                           .lame_time = (int64_t)aco_sim_random(sim, 2) * 100 * ACO_MILLISECOND,
                                           .drain_time = 1200 * ACO_SECOND,
                                           .load = load,
                                           .unload = unload};
    int failed;
    lives.number++;
    lives.is_over = lives.has_loaded = 0;
    failed = aco_service_run(serve, arg, &options) != 0;
    lives.error = failed ? errno : 0;
    lives.is_over = 1;
    return NULL;
}

/* ---- Its clients ---- */

/* Whether the whole answer has come. */
static int ask_by(int fd, int number)
{
    char text[512], wanted[32];
    int length = snprintf(text, sizeof text, "GET /%d HTTP/1.1\r\nHost: service\r\nConnection: close\r\n\r\n", number);
    size_t got = 0;
    ssize_t n = 0;
    if (aco_io_write_all(fd, text, (size_t)length) != length)
        return 0;
    while (got < sizeof text - 1 && (n = aco_io_read(fd, text + got, sizeof text - 1 - got)) > 0)
        got += (size_t)n;
    text[got] = 0;
    snprintf(wanted, sizeof wanted, "\r\n\r\nanswer %d.", number);
    return n == 0 && strncmp(text, "HTTP/1.1 200 ", 13) == 0 && strstr(text, wanted);
}

static void *ask_often(void *first)
{
    for (int i = 0; i < QUESTIONS; i++) {
        int number = (int)(intptr_t)first + i, fd;
        aco_scope_t scope;
        MUST(aco_scope_begin(&scope, aco_after(3600 * ACO_SECOND)) == 0);
        fd = aco_io_dial("tcp", "10.0.0.1", "80", NULL);
        lives.answered[number] = fd >= 0 && ask_by(fd, number);
        if (fd >= 0)
            (void)aco_io_close(fd);
        MUST(aco_scope_end(&scope) == 0);
        pause_up_to(100 * ACO_MILLISECOND);
    }
    return NULL;
}

/* ---- Scenarios ---- */

static void await_end(const aco_sim_node_t *node)
{
    while (!lives.is_over && aco_sim_node_is_up(node))
        (void)aco_sleep(10 * ACO_MILLISECOND);
}

static void end_it(aco_sim_node_t *node)
{
    MUST(aco_sim_signal(node, SIGTERM) == 0);
    await_end(node);
    MUST(lives.is_over && lives.error == 0);
}

static void end_once(aco_sim_node_t *node)
{
    pause_up_to(ACO_SECOND);
    (void)aco_sleep(1); /* until it waits: before, the signal would end the node */
    end_it(node);
}

static int times_cancelled, times_killed;

/* A second signal cancels, a third one kills, and so does one that comes when the service listens no more. */
static void end_twice(aco_sim_node_t *node)
{
    pause_up_to(ACO_SECOND);
    (void)aco_sleep(1);
    for (uint64_t left = 2 + aco_sim_random(sim, 2); left > 0 && !lives.is_over && aco_sim_node_is_up(node); left--) {
        MUST(aco_sim_signal(node, SIGTERM) == 0);
        pause_up_to(200 * ACO_MILLISECOND);
    }
    await_end(node);
    times_killed += !lives.is_over;
    times_cancelled += lives.is_over && lives.error;
    MUST(!lives.is_over || lives.error == 0 || lives.error == EINTR);
}

static void reload_often(aco_sim_node_t *node)
{
    (void)aco_sleep(100 * ACO_MILLISECOND); /* the first one is there */
    for (uint64_t left = aco_sim_random(sim, 6); left > 0; left--) {
        const int64_t sent = aco_now();
        MUST(aco_sim_signal(node, SIGHUP) == 0);
        pause_ticks(aco_sim_random(sim, 2) ? 20 : 300);
        if (left > 1)
            continue;
        (void)aco_sleep(ACO_SECOND);
        MUST(lives.load_began >= sent);
    }
    end_it(node);
}

/* It starts again after a crash. */
static void restart_often(aco_sim_node_t *node)
{
    for (uint64_t left = 1 + aco_sim_random(sim, 3); left > 0; left--) {
        pause_up_to(300 * ACO_MILLISECOND);
        (void)aco_sleep(1);
        if (aco_sim_random(sim, 2))
            MUST(aco_sim_signal(node, aco_sim_random(sim, 2) ? SIGHUP : SIGKILL) == 0);
        if (aco_sim_random(sim, 2))
            (void)aco_task_yield();
        MUST(aco_sim_restart(node) == 0);
    }
    end_once(node);
}

typedef struct scenario {
    const char *name;
    void (*run)(aco_sim_node_t *node);
} scenario_t;

static const scenario_t scenarios[] = {
    {"ends", end_once}, {"twice", end_twice}, {"reloads", reload_often}, {"restarts", restart_often}};

static void judge(void)
{
    const int has_drained = lives.is_over && lives.error == 0;
    for (int i = 0; i < CLIENTS * QUESTIONS; i++)
        if (has_drained && lives.begun_in[i] == lives.number && !lives.answered[i])
            aco_sim_fail(sim, "a request that was accepted is lost");
    for (int i = 0; lives.is_over && i < CONFIGURATIONS; i++)
        if (lives.configurations[i].is_loaded == lives.number && !lives.configurations[i].is_freed)
            aco_sim_fail(sim, "a configuration is not freed");
}

static void run_scenario(aco_sim_t *run, void *scenario)
{
    const aco_sim_link_t link = {.loss = 0.05, .latency = {ACO_MILLISECOND, 20 * ACO_MILLISECOND}};
    aco_t *clients[CLIENTS];
    aco_sim_node_t *node;
    sim = run;
    memset(&lives, 0, sizeof lives);
    node = aco_sim_node_main(sim, "service", "10.0.0.1", live, NULL);
    MUST(aco_sim_link(sim, "*", "*", &link) == 0);
    MUST(aco_sim_nemesis(sim, ACO_SIM_FAULT_PARTITION | ACO_SIM_FAULT_ONE_WAY | ACO_SIM_FAULT_SLOW) == 0);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = aco_spawn(ask_often, (void *)(intptr_t)(i * QUESTIONS), NULL);
    ((const scenario_t *)scenario)->run(node);
    for (int i = 0; i < CLIENTS; i++)
        (void)aco_join(clients[i], NULL);
    judge();
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (argc < 2 || strcmp(argv[argc - 1], scenarios[i].name) != 0)
            continue;
        failed = aco_sim_main(argc, argv, run_scenario, NULL, (void *)(uintptr_t)&scenarios[i]);
        if (scenarios[i].run == end_twice)
            printf("%d were cancelled, %d killed\n", times_cancelled, times_killed);
        return failed;
    }
    fprintf(stderr, "usage: %s [OPTION]... -- SCENARIO\n", argv[0]);
    return 2;
}
