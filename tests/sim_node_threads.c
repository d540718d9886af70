/* Promises of nodes with threads (aco_sim_node_main()): they serve, crash at any time, start again, are suspended; a
 * race between two threads of one is found; a seed repeats. */
#include "sim_checks.h"

#include <aco/io.h>
#include <aco/mt.h>
#include <aco/offload.h>
#include <aco/scope.h>
#include <aco/threads.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 20, THREADS = 2, CLIENTS = 2, QUESTIONS = 20 };

#define PASSES(scenario, arg) check_passes(#scenario, scenario, arg, sim_runs(RUNS))
#define FAILS_BY(scenario, arg, reason) check_fails_by(#scenario, scenario, arg, 1000, reason)

/* ---- A service with two threads, which gives numbers out ---- */

typedef struct service {
    int is_broken;     /* it reads and writes the number in two sections */
    int uses_all;      /* groups, jobs, timers and objects between threads, too */
    int started, ended, given, found_dead;
    aco_mt_mutex_t mutex;
    aco_mt_event_t never;
    uint32_t next;
} service_t;

static uint32_t take_number(service_t *service)
{
    uint32_t number;
    aco_mt_mutex_lock(&service->mutex);
    number = service->next;
    if (service->is_broken) {
        aco_mt_mutex_unlock(&service->mutex);
        aco_mt_mutex_lock(&service->mutex);
    }
    service->next = number + 1;
    aco_mt_mutex_unlock(&service->mutex);
    return number;
}

typedef struct connection {
    service_t *service;
    int fd;
} connection_t;

static void *answer(void *arg)
{
    connection_t connection = *(connection_t *)arg;
    char byte;
    free(arg);
    while (aco_io_read(connection.fd, &byte, 1) == 1) {
        uint32_t number = take_number(connection.service);
        if (aco_io_write_all(connection.fd, &number, sizeof number) != sizeof number)
            break;
    }
    aco_io_close(connection.fd);
    return NULL;
}

static void *tick(void *service)
{
    while (aco_sleep(7 * ACO_MILLISECOND) == 0)
        ((service_t *)service)->found_dead += ((service_t *)service)->ended;
    return NULL;
}

static void *wait_on_thread(void *service)
{
    aco_mt_event_wait_until(&((service_t *)service)->never, aco_after(20 * ACO_MILLISECOND));
    return NULL;
}

static void *offload_often(void *service)
{
    while (aco_offload(wait_on_thread, service, NULL, NULL) == 0)
        ;
    return NULL;
}

static void *submit_often(void *service)
{
    aco_mt_group_t group;
    CHECK(aco_mt_group_begin(&group, ACO_KEEP_GOING) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(aco_submit(&group, tick, service, NULL) == 0);
    (void)aco_mt_group_end(&group);
    return NULL;
}

static void *wait_for_event(void *service)
{
    aco_mt_event_wait(&((service_t *)service)->never);
    return NULL;
}

static void spawn(aco_function_t fn, void *arg)
{
    aco_t *task = aco_spawn(fn, arg, NULL);
    CHECK(task != NULL && aco_detach(task) == 0);
}

static void *serve(void *arg)
{
    service_t *service = arg;
    aco_io_options_t options = {0};
    int listener, fd;
    options.flags = ACO_IO_REUSEPORT;
    listener = aco_io_listen("tcp", NULL, "7", &options);
    CHECK(listener >= 0);
    if (service->uses_all) {
        spawn(tick, service);
        spawn(offload_often, service);
        spawn(submit_often, service);
        spawn(wait_for_event, service);
    }
    while ((fd = aco_io_accept(listener)) >= 0) {
        connection_t *connection = malloc(sizeof *connection);
        *connection = (connection_t){service, fd};
        spawn(answer, connection);
    }
    CHECK(!"the service goes on for ever");
    return NULL;
}

/* The node's main(). It lets numbers begin anew at a thousand for each start. */
static void *run_service(void *arg)
{
    service_t *service = arg;
    memset(&service->mutex, 0, sizeof service->mutex);
    memset(&service->never, 0, sizeof service->never);
    service->next = (uint32_t)++service->started * 1000;
    service->ended = 0;
    CHECK(aco_threads_run(THREADS, serve, service, NULL) == 0);
    CHECK(!"the set goes on for ever");
    return NULL;
}

/* ---- Its clients ---- */

typedef struct client {
    aco_sim_t *sim;
    service_t *service;
    char *is_given; /* numbers */
    int questions, answers;
} client_t;

/* 0: there is no answer in time. */
static uint32_t ask(void)
{
    uint32_t number = 0;
    aco_scope_t scope;
    int fd;
    CHECK(aco_scope_begin(&scope, aco_after(100 * ACO_MILLISECOND)) == 0);
    fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
    if (fd < 0 || aco_io_write_all(fd, "?", 1) != 1 || aco_io_read_exactly(fd, &number, sizeof number) != sizeof number)
        number = 0;
    (void)aco_scope_end(&scope);
    if (fd >= 0)
        aco_io_close(fd);
    return number;
}

static void *ask_often(void *arg)
{
    client_t *client = arg;
    for (; client->questions > 0; client->questions--) {
        uint32_t number = ask();
        if (number && client->is_given[number]++)
            aco_sim_fail(client->sim, "a number is given twice");
        client->answers += number != 0;
        aco_sleep((int64_t)aco_sim_random(client->sim, 20) * ACO_MILLISECOND);
    }
    return NULL;
}

enum { MOST_STARTS = 8, NUMBERS = (MOST_STARTS + 1) * 1000 };
static int answers, crashes; /* in all runs */

static void serves_and_crashes(aco_sim_t *sim, void *arg)
{
    service_t service = *(const service_t *)arg;
    char is_given[NUMBERS] = {0};
    client_t clients[CLIENTS];
    aco_sim_node_t *node = aco_sim_node_main(sim, "service", "10.0.0.1", run_service, &service);
    CHECK(node != NULL);
    if (service.is_broken) /* questions come at one time */
        aco_sim_link(sim, "*", "*", &(aco_sim_link_t){.latency = {ACO_MILLISECOND, ACO_MILLISECOND}});
    for (int i = 0; i < CLIENTS; i++) {
        char name[] = "client 0", address[] = "10.0.1.1";
        name[7] = address[7] = (char)('1' + i);
        clients[i] = (client_t){sim, &service, is_given, QUESTIONS, 0};
        CHECK(aco_sim_node(sim, name, address, ask_often, &clients[i]) != NULL);
    }
    for (int i = 0; i < 4; i++) {
        aco_sleep((int64_t)aco_sim_random(sim, 200 * ACO_MILLISECOND));
        if (aco_sim_random(sim, 4) == 0)
            CHECK(aco_sim_suspend(node) == 0);
        CHECK(aco_sim_crash(node, ACO_SIM_CRASH_ANY) == 0);
        aco_task_yield();
        service.ended = 1; /* no thread of the node goes on: tick() would see it */
        crashes++;
        aco_sleep((int64_t)aco_sim_random(sim, 100 * ACO_MILLISECOND));
        CHECK_EQ(service.found_dead, 0);
        CHECK(aco_sim_restart(node) == 0);
    }
    while (clients[0].questions + clients[1].questions > 0)
        aco_sleep(50 * ACO_MILLISECOND);
    aco_sleep(100 * ACO_MILLISECOND);
    CHECK(ask() >= (uint32_t)service.started * 1000);
    answers += clients[0].answers + clients[1].answers;
}

/* ---- Suspending ---- */

static void *count_up(void *counter)
{
    for (;;) {
        aco_sleep(ACO_MILLISECOND);
        ++((int *)counter)[aco_threads_index()];
    }
    return NULL;
}

static void *run_counters(void *counter)
{
    (void)aco_threads_run(THREADS, count_up, counter, NULL);
    return NULL;
}

static void stands_still(aco_sim_t *sim, void *arg)
{
    int *counter = calloc(THREADS, sizeof *counter), before;
    aco_sim_node_t *node = aco_sim_node_main(sim, "counter", "10.0.0.1", run_counters, counter);
    (void)arg;
    aco_sleep(10 * ACO_MILLISECOND);
    CHECK(aco_sim_suspend(node) == 0);
    aco_task_yield();
    before = counter[0] + counter[1];
    CHECK(before > 0);
    aco_sleep(ACO_SECOND);
    CHECK_EQ(counter[0] + counter[1], before);
    CHECK(aco_sim_resume(node) == 0);
    aco_sleep(10 * ACO_MILLISECOND);
    CHECK(counter[0] + counter[1] > before);
    CHECK(aco_sim_crash(node, ACO_SIM_CRASH_RESET) == 0);
    aco_sleep(10 * ACO_MILLISECOND); /* nobody uses the counters any more */
    free(counter);
}

/* ---- Ends of another kind ---- */

static void *return_at_once(void *started)
{
    ++*(int *)started;
    return NULL;
}

static void main_returns(aco_sim_t *sim, void *arg)
{
    int started = 0;
    aco_sim_node_t *node = aco_sim_node_main(sim, "short", "10.0.0.1", return_at_once, &started);
    (void)arg;
    CHECK(node && aco_sleep(ACO_SECOND) == 0 && started == 1 && aco_sim_node_is_up(node));
    CHECK(aco_sim_restart(node) == 0 && aco_sleep(ACO_SECOND) == 0 && started == 2);
    CHECK(aco_sim_restart(node) == 0); /* and the run ends: it may not have begun */
}

static void a_run_fails(aco_sim_t *sim, void *arg)
{
    service_t *service = calloc(1, sizeof *service);
    (void)arg;
    service->uses_all = 1;
    CHECK(aco_sim_node_main(sim, "service", "10.0.0.1", run_service, service) != NULL);
    aco_sleep((int64_t)aco_sim_random(sim, 50 * ACO_MILLISECOND));
    aco_sim_fail(sim, "so it ends");
    aco_sleep(ACO_SECOND);
    free(service);
}

static void *fail_on_node(void *sim)
{
    CHECK(aco_sim_crash(NULL, ACO_SIM_CRASH_ANY) == -1 && errno == EINVAL);
    CHECK(aco_sim_node_main(sim, "other", "10.0.0.2", return_at_once, NULL) == NULL && errno == EINVAL);
    aco_sim_fail(sim, "a thread of a node says so");
    return NULL;
}

static void a_thread_fails_it(aco_sim_t *sim, void *arg)
{
    (void)arg;
    CHECK(aco_sim_node_main(sim, NULL, "10.0.0.1", fail_on_node, sim) == NULL && errno == EINVAL);
    CHECK(aco_sim_node_main(sim, "failing", "10.0.0.1", NULL, sim) == NULL && errno == EINVAL);
    CHECK(aco_sim_node_main(sim, "failing", "10.0.0.1", fail_on_node, sim) != NULL);
    aco_sleep(ACO_SECOND);
}

static void fails_without_end(aco_sim_t *sim, void *arg)
{
    service_t *service = calloc(1, sizeof *service); /* it stays */
    (void)arg;
    CHECK(aco_sim_node_main(sim, "waiting", "10.0.0.1", wait_on_thread, service) != NULL);
    (void)aco_mt_event_wait(&service->never);
}

int main(void)
{
    service_t sound = {0}, large = {0}, broken = {0};
    large.uses_all = 1;
    broken.is_broken = 1;
    PASSES(serves_and_crashes, &sound);
    PASSES(serves_and_crashes, &large);
    CHECK(answers > 0 && crashes > 0);
    FAILS_BY(serves_and_crashes, &broken, "a number is given twice");
    PASSES(stands_still, NULL);
    PASSES(main_returns, NULL);
    for (int i = 0; i < 5; i++)
        FAILS_BY(a_run_fails, NULL, "so it ends");
    FAILS_BY(a_thread_fails_it, NULL, "a thread of a node says so");
    FAILS_BY(fails_without_end, NULL, "a deadlock");
    return check_result("sim_node_threads");
}
