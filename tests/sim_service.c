/* A service (aco/service.h) on a node of a simulation, under load, gets signals at random moments: an end loses no
 * request that was accepted, every configuration is freed once, when nobody uses it any more, and the end says what has
 * happened. The service is aco_http_serve(), which guards its connections itself, or a server of its own protocol,
 * whose connections are members of aco_service_group().
 *
 * Half of the runs have faults of the network. Then a client cannot know what the service's machine has: a request is
 * accepted when its handler has begun. The other runs are calm: nothing is lost, and the way takes less than half of
 * the time that aco_http_serve() gives a handshake. There it is accepted when the client is connected.
 *
 * tests/sim_faults.py puts faults into the library and counts the seeds until one of the scenarios finds each.
 *
 * sim_service [option of aco_sim_main()]... -- SCENARIO */
#include <aco/group.h>
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
enum { MOST_MS = 20, MOST_CALM_MS = 9 }; /* one way through the network */

static aco_sim_t *sim; /* the run */
static int is_calm;    /* it has no faults of the network */
static int is_http;    /* its service is aco_http_serve() */

#define MUST(condition) ((condition) ? (void)0 : (void)aco_sim_fail(sim, #condition))

static int pause_up_to(int64_t ns)
{
    return aco_sleep((int64_t)aco_sim_random(sim, (uint64_t)ns));
}

/* Until one of the next so many whole milliseconds: what happens on different threads then often happens at one time,
 * and the seed decides the order. */
static int pause_ticks(uint64_t most)
{
    const int64_t begun = aco_now() % ACO_MILLISECOND;
    return aco_sleep((int64_t)(1 + aco_sim_random(sim, most)) * ACO_MILLISECOND - begun);
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
    int64_t connected[CLIENTS * QUESTIONS]; /* when its client was; 0: it was not */
    int answered[CLIENTS * QUESTIONS]; /* its client has the whole answer */
    int64_t signalled; /* when it got the first signal to end; 0: it did not */
    configuration_t configurations[CONFIGURATIONS];
    int loads, has_loaded; /* has_loaded: in this life */
    int64_t load_began;
} lives;

static void *load(void *arg)
{
    configuration_t *configuration = &lives.configurations[lives.loads++ % CONFIGURATIONS];
    (void)arg;
    lives.load_began = aco_now();
    (void)pause_ticks(20);
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

/* 0, or -1: it is cancelled, so there is no answer. One could still be sent: that need not wait. */
static int work(aco_service_t *service, int number)
{
    aco_service_config_t *config;
    const configuration_t *configuration;
    int failed;
    MUST(number >= 0 && number < CLIENTS * QUESTIONS && !lives.begun_in[number]);
    lives.begun_in[number] = lives.number;
    failed = pause_ticks(5) != 0;
    config = aco_service_config(service);
    configuration = config->value;
    MUST(!configuration->is_freed);
    if (aco_sim_random(sim, 2))
        failed |= pause_up_to(200 * ACO_MILLISECOND) != 0;
    MUST(!configuration->is_freed);
    aco_service_config_release(config);
    return failed ? -1 : 0;
}

/* GET /NUMBER */
static void answer(aco_http_request_t *request, void *service)
{
    int number = atoi(request->path + 1), length;
    char text[32];
    if (work(service, number) != 0)
        return;
    length = snprintf(text, sizeof text, "answer %d.", number);
    (void)aco_http_reply(request, 200, "text/plain", text, (size_t)length);
}

static int serve_http(aco_service_t *service, int listener)
{
    const aco_http_route_t routes[] = {{"GET", "/*", answer, service}, {NULL, NULL, NULL, NULL}};
    const aco_http_server_options_t server = {.routes = routes, .drain_time = 600 * ACO_SECOND};
    return aco_http_serve(listener, &server);
}

typedef struct connection {
    aco_service_t *service;
    int fd;
} connection_t;

/* The number that the request names; -1: it does not come. */
static int number_from(int fd)
{
    char text[512];
    size_t got = 0;
    ssize_t n = 0;
    do {
        got += (size_t)n;
        text[got] = 0;
        if (strstr(text, "\r\n\r\n"))
            return atoi(text + strlen("GET /"));
    } while (got < sizeof text - 1 && (n = aco_io_read(fd, text + got, sizeof text - 1 - got)) > 0);
    return -1;
}

static void *converse(void *arg)
{
    connection_t *connection = arg;
    int number = number_from(connection->fd), length;
    char text[64];
    if (number >= 0 && work(connection->service, number) == 0) {
        length = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n\r\nanswer %d.", number);
        (void)aco_io_write_all(connection->fd, text, (size_t)length);
    }
    (void)aco_io_close(connection->fd);
    free(connection);
    return NULL;
}

static void accept_members(aco_service_t *service, int listener)
{
    int fd;
    while ((fd = aco_io_accept(listener)) >= 0) {
        connection_t *connection = malloc(sizeof *connection);
        MUST(connection);
        *connection = (connection_t){service, fd};
        MUST(aco_group_spawn(aco_service_group(service), converse, connection, NULL));
    }
}

static int serve_members(aco_service_t *service, int listener)
{
    int error;
    accept_members(service, listener);
    accept_members(service, listener); /* what waits */
    error = errno;
    (void)aco_io_close(listener);
    errno = error;
    return -1;
}

static int serve(aco_service_t *service, void *arg)
{
    int listener = aco_service_listen(service, "http", "tcp", NULL, "80", NULL);
    (void)arg;
    if (listener < 0)
        return -1;
    aco_service_ready(service);
    return is_http ? serve_http(service, listener) : serve_members(service, listener);
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
        lives.connected[number] = fd >= 0 ? aco_now() : 0;
        lives.answered[number] = fd >= 0 && ask_by(fd, number);
        if (fd >= 0)
            (void)aco_io_close(fd);
        MUST(aco_scope_end(&scope) == 0);
        (void)pause_up_to(100 * ACO_MILLISECOND);
    }
    return NULL;
}

/* ---- Scenarios ---- */

static void tell_to_end(aco_sim_node_t *node)
{
    if (!lives.signalled)
        lives.signalled = aco_now();
    MUST(aco_sim_signal(node, SIGTERM) == 0);
}

static void await_end(const aco_sim_node_t *node)
{
    while (!lives.is_over && aco_sim_node_is_up(node))
        (void)aco_sleep(10 * ACO_MILLISECOND);
}

static void end_it(aco_sim_node_t *node)
{
    tell_to_end(node);
    await_end(node);
    MUST(lives.is_over && lives.error == 0);
}

static void end_once(aco_sim_node_t *node)
{
    (void)pause_up_to(ACO_SECOND);
    (void)aco_sleep(1); /* until it waits: before, the signal would end the node */
    end_it(node);
}

static int times_cancelled, times_killed;

/* A second signal cancels, a third one kills, and so does one that comes when the service listens no more. */
static void end_twice(aco_sim_node_t *node)
{
    (void)pause_up_to(ACO_SECOND);
    (void)aco_sleep(1);
    for (uint64_t left = 2 + aco_sim_random(sim, 2); left > 0 && !lives.is_over && aco_sim_node_is_up(node); left--) {
        tell_to_end(node);
        (void)pause_up_to(200 * ACO_MILLISECOND);
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
        (void)pause_ticks(aco_sim_random(sim, 2) ? 20 : 300);
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
        (void)pause_up_to(300 * ACO_MILLISECOND);
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

/* By the last life. Of a first one in a calm run its client knows it: aco_http_serve() lets handshakes end before it
 * closes its listener; another server accepts what has come before the stop. */
static int is_accepted(int number)
{
    const int64_t connected = lives.connected[number];
    if (lives.begun_in[number] == lives.number)
        return 1;
    return is_calm && lives.number == 1 && connected &&
           (is_http || connected + MOST_CALM_MS * ACO_MILLISECOND < lives.signalled);
}

static void judge(void)
{
    const int has_drained = lives.is_over && lives.error == 0;
    for (int i = 0; i < CLIENTS * QUESTIONS; i++)
        if (has_drained && is_accepted(i) && !lives.answered[i])
            aco_sim_fail(sim, "a request that was accepted is lost");
    for (int i = 0; lives.is_over && i < CONFIGURATIONS; i++)
        if (lives.configurations[i].is_loaded == lives.number && !lives.configurations[i].is_freed)
            aco_sim_fail(sim, "a configuration is not freed");
}

static void run_scenario(aco_sim_t *run, void *scenario)
{
    aco_sim_link_t link = {.loss = 0.05, .latency = {ACO_MILLISECOND, MOST_MS * ACO_MILLISECOND}};
    aco_t *clients[CLIENTS];
    aco_sim_node_t *node;
    sim = run;
    is_calm = aco_sim_random(sim, 2) != 0;
    is_http = aco_sim_random(sim, 2) != 0;
    if (is_calm) {
        link.loss = 0;
        link.latency.max = MOST_CALM_MS * ACO_MILLISECOND;
    }
    memset(&lives, 0, sizeof lives);
    node = aco_sim_node_main(sim, "service", "10.0.0.1", live, NULL);
    MUST(aco_sim_link(sim, "*", "*", &link) == 0);
    if (!is_calm)
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
