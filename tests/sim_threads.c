/* Promises of simulations with threads: one goes on at a time, the seed decides which, and a seed repeats. */
#include "sim_checks.h"

#include <aco/io.h>
#include <aco/mt.h>
#include <aco/offload.h>
#include <aco/scope.h>
#include <aco/sim.h>
#include <aco/threads.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 200, THREADS = 3 };

#define PASSES(scenario) check_passes(#scenario, scenario, NULL, sim_runs(RUNS))
#define FAILS_BY(scenario, reason) check_fails_by(#scenario, scenario, NULL, RUNS, reason)

static aco_t *spawned(aco_function_t fn, void *arg)
{
    aco_t *task = aco_spawn(fn, arg, NULL);
    CHECK(task != NULL);
    return task;
}

/* ---- Offload ---- */

static int log_length, orders[2], seen[2];

static void *write_down(void *number)
{
    if (log_length < 2)
        seen[log_length++] = (int)(intptr_t)number;
    return number;
}

static void *offload_it(void *number)
{
    void *result = NULL;
    CHECK(aco_offload(write_down, number, &result, NULL) == 0 && result == number);
    return NULL;
}

static void offload_two(aco_sim_t *sim, void *arg)
{
    aco_t *first, *second;
    int64_t now = aco_now();
    (void)sim, (void)arg;
    log_length = 0;
    first = spawned(offload_it, (void *)0);
    second = spawned(offload_it, (void *)1);
    CHECK(aco_join(first, NULL) == 0 && aco_join(second, NULL) == 0);
    CHECK(log_length == 2 && seen[0] + seen[1] == 1);
    CHECK_EQ(aco_now(), now);
    orders[seen[0]]++;
}

/* Of a job that waits on its thread, in virtual time. */
static void *wait_a_second(void *event)
{
    int64_t until = aco_after(ACO_SECOND);
    CHECK(aco_mt_event_wait_until(event, until) == -1 && errno == ETIMEDOUT);
    CHECK_EQ(aco_now(), until);
    return NULL;
}

static void time_passes_for_all(aco_sim_t *sim, void *arg)
{
    aco_mt_event_t event = {0};
    int64_t began = aco_now();
    (void)sim, (void)arg;
    CHECK(aco_offload(wait_a_second, &event, NULL, NULL) == 0);
    CHECK_EQ(aco_now(), began + ACO_SECOND);
}

/* ---- A thread and a task ---- */

typedef struct table {
    aco_mt_channel_t *ping, *pong;
} table_t;

static void *answer(void *arg)
{
    table_t *table = arg;
    int ball;
    while (aco_mt_channel_receive(table->ping, &ball) == 0) {
        ball++;
        CHECK(aco_mt_channel_send(table->pong, &ball) == 0);
    }
    return NULL;
}

static void *offload_answer(void *table)
{
    CHECK(aco_offload(answer, table, NULL, NULL) == 0);
    return NULL;
}

static void ping_pong(aco_sim_t *sim, void *arg)
{
    table_t table = {aco_mt_channel_new(0, sizeof(int)), aco_mt_channel_new(1, sizeof(int))};
    aco_t *thread = spawned(offload_answer, &table);
    (void)sim, (void)arg;
    for (int i = 0; i < 10; i++) {
        int ball = i;
        CHECK(aco_mt_channel_send(table.ping, &ball) == 0 && aco_mt_channel_receive(table.pong, &ball) == 0);
        CHECK_EQ(ball, i + 1);
    }
    CHECK(aco_mt_channel_close(table.ping) == 0 && aco_join(thread, NULL) == 0);
    aco_mt_channel_destroy(table.ping);
    aco_mt_channel_destroy(table.pong);
}

typedef struct target {
    aco_scheduler_t *scheduler;
    aco_t *task;
    aco_scope_t *scope;
    int posted;
} target_t;

static void note_post(void *target)
{
    ((target_t *)target)->posted++;
}

static void *reach(void *arg)
{
    target_t *target = arg;
    CHECK(aco_post(target->scheduler, note_post, target) == 0);
    CHECK(aco_unpark(target->task) == 0);
    CHECK(aco_scope_cancel(target->scope) == 0);
    return NULL;
}

static void *offload_reach(void *target)
{
    CHECK(aco_offload(reach, target, NULL, NULL) == 0);
    return NULL;
}

static void threads_reach_tasks(aco_sim_t *sim, void *arg)
{
    target_t target = {aco_scheduler_open(), aco_current_task(), NULL, 0};
    aco_scope_t scope;
    aco_t *thread;
    (void)sim, (void)arg;
    CHECK(aco_scope_begin(&scope, ACO_FOREVER) == 0);
    target.scope = &scope;
    thread = spawned(offload_reach, &target);
    while (aco_sleep(ACO_SECOND) == 0)
        ;
    CHECK_EQ(errno, ECANCELED);
    CHECK(aco_scope_end(&scope) == 0);
    CHECK(aco_join(thread, NULL) == 0);
    CHECK(aco_park("what came before") == 0 && target.posted == 1);
    CHECK(aco_scheduler_close() == 0);
}

/* ---- Sets ---- */

typedef struct shared {
    aco_mt_channel_t *channel;
    aco_mt_mutex_t mutex;
    aco_mt_semaphore_t semaphore;
    aco_mt_wait_group_t senders;
    int received, sum, inside, where[THREADS];
} shared_t;

static void *send_some(void *arg)
{
    shared_t *shared = arg;
    for (int i = 1; i <= 3; i++)
        CHECK(aco_mt_channel_send(shared->channel, &i) == 0);
    CHECK(aco_mt_wait_group_done(&shared->senders) == 0);
    return NULL;
}

static void *receive_all(void *arg)
{
    shared_t *shared = arg;
    int value;
    while (aco_mt_channel_receive(shared->channel, &value) == 0) {
        CHECK(aco_mt_semaphore_acquire(&shared->semaphore) == 0);
        CHECK(shared->inside++ == 0);
        aco_task_yield();
        shared->inside--;
        aco_mt_semaphore_release(&shared->semaphore);
        CHECK(aco_mt_mutex_lock(&shared->mutex) == 0);
        shared->received++;
        shared->sum += value;
        CHECK(aco_mt_mutex_unlock(&shared->mutex) == 0);
    }
    return NULL;
}

static void *work_in_set(void *arg)
{
    shared_t *shared = arg;
    aco_t *sender = spawned(send_some, shared), *receiver = spawned(receive_all, shared);
    if (aco_threads_index() == 0) {
        CHECK(aco_mt_wait_group_wait(&shared->senders) == 0);
        CHECK(aco_mt_channel_close(shared->channel) == 0);
    }
    CHECK(aco_join(sender, NULL) == 0 && aco_join(receiver, NULL) == 0);
    return NULL;
}

static void *run_set(void *shared)
{
    CHECK(aco_threads_run(THREADS, work_in_set, shared, NULL) == 0);
    return NULL;
}

static void sets_share_objects(aco_sim_t *sim, void *arg)
{
    shared_t shared;
    (void)sim, (void)arg;
    memset(&shared, 0, sizeof shared);
    shared.channel = aco_mt_channel_new(aco_sim_random(sim, 3), sizeof(int));
    aco_mt_semaphore_release(&shared.semaphore);
    CHECK(aco_mt_wait_group_add(&shared.senders, THREADS) == 0);
    CHECK(aco_offload(run_set, &shared, NULL, NULL) == 0);
    CHECK_EQ(shared.received, 3 * THREADS);
    CHECK_EQ(shared.sum, 6 * THREADS);
    aco_mt_channel_destroy(shared.channel);
}

static void *note_where(void *shared)
{
    ((shared_t *)shared)->where[aco_threads_index()]++;
    aco_sleep(ACO_MILLISECOND);
    return NULL;
}

static void *submit_some(void *shared)
{
    aco_mt_group_t group;
    CHECK(aco_mt_group_begin(&group, ACO_KEEP_GOING) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(aco_submit(&group, note_where, shared, NULL) == 0);
    CHECK(aco_mt_group_end(&group) == 0);
    return NULL;
}

static void *run_submitters(void *shared)
{
    aco_threads_options_t options = {0};
    options.flags = ACO_THREADS_FIRST_ONLY;
    CHECK(aco_threads_run(THREADS, submit_some, shared, &options) == 0);
    return NULL;
}

static int moved; /* runs in which another thread than the first ran a member */

static void work_is_shared(aco_sim_t *sim, void *arg)
{
    shared_t shared;
    (void)sim, (void)arg;
    memset(&shared, 0, sizeof shared);
    CHECK(aco_offload(run_submitters, &shared, NULL, NULL) == 0);
    CHECK_EQ(shared.where[0] + shared.where[1] + shared.where[2], 8);
    moved += shared.where[0] != 8;
}

static void *until_stopped(void *stopper)
{
    aco_stop_t stop;
    CHECK(aco_stop_begin(&stop, ACO_FOREVER) == 0);
    if (aco_threads_index() == (int)(intptr_t)stopper)
        CHECK(aco_threads_stop(aco_threads_current()) == 0);
    CHECK(aco_sleep(3600 * ACO_SECOND) == -1 && errno == ECANCELED);
    CHECK(aco_stop_end(&stop) == 0);
    return NULL;
}

static void *run_until_stopped(void *stopper)
{
    aco_threads_options_t options = {0};
    int64_t now = aco_now();
    options.flags = ACO_THREADS_INTERRUPTIBLE;
    CHECK(aco_threads_run(THREADS, until_stopped, stopper, &options) == 0);
    CHECK_EQ(aco_now(), now);
    return NULL;
}

static void sets_stop(aco_sim_t *sim, void *arg)
{
    (void)arg;
    CHECK(aco_offload(run_until_stopped, (void *)(intptr_t)aco_sim_random(sim, THREADS), NULL, NULL) == 0);
}

/* ---- The network ---- */

static void *echo_once(void *listener)
{
    int fd = aco_io_accept((int)(intptr_t)listener);
    char bytes[5];
    CHECK(aco_io_read_exactly(fd, bytes, sizeof bytes) == 5 && aco_io_write_all(fd, bytes, sizeof bytes) == 5);
    CHECK(aco_io_close(fd) == 0);
    return NULL;
}

static void *serve_or_call(void *listener)
{
    char bytes[5] = "";
    int fd;
    if (aco_threads_index() == 0)
        return echo_once(listener);
    if (aco_threads_index() > 1)
        return NULL;
    fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
    CHECK(fd >= 0 && aco_io_write_all(fd, "hello", 5) == 5 && aco_io_read_exactly(fd, bytes, 5) == 5);
    CHECK(memcmp(bytes, "hello", 5) == 0 && aco_io_close(fd) == 0);
    return NULL;
}

static void *run_network(void *listener)
{
    CHECK(aco_threads_run(THREADS, serve_or_call, listener, NULL) == 0);
    return NULL;
}

static void threads_use_the_network(aco_sim_t *sim, void *arg)
{
    int listener = aco_io_listen("tcp", "10.0.0.1", "7", NULL);
    (void)sim, (void)arg;
    CHECK(aco_offload(run_network, (void *)(intptr_t)listener, NULL, NULL) == 0);
    CHECK(aco_io_close(listener) == 0);
}

/* Each thread has a listener of the port, and one of them gets the connection. */
static void *accept_one(void *accepted)
{
    aco_io_options_t options = {0};
    aco_stop_t stop;
    int listener, fd;
    options.flags = ACO_IO_REUSEPORT;
    listener = aco_io_listen("tcp", "10.0.0.1", "7", &options);
    CHECK(listener >= 0 && aco_stop_begin(&stop, ACO_FOREVER) == 0);
    if (aco_threads_index() == 0) {
        fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
        CHECK(fd >= 0 && aco_sleep(ACO_SECOND) == 0 && aco_io_close(fd) == 0);
        CHECK(aco_threads_stop(aco_threads_current()) == 0);
    }
    while ((fd = aco_io_accept(listener)) >= 0) {
        ++*(int *)accepted;
        CHECK(aco_io_close(fd) == 0);
    }
    CHECK(errno == ECANCELED && aco_stop_end(&stop) == 0 && aco_io_close(listener) == 0);
    return NULL;
}

static void *run_listeners(void *accepted)
{
    CHECK(aco_threads_run(THREADS, accept_one, accepted, NULL) == 0);
    return NULL;
}

static void threads_share_a_port(aco_sim_t *sim, void *arg)
{
    int accepted = 0;
    (void)sim, (void)arg;
    CHECK(aco_offload(run_listeners, &accepted, NULL, NULL) == 0);
    CHECK(accepted <= 1); /* 0: it came to the first thread's, which ends */
}

/* ---- Failures ---- */

static void *wait_for_ever(void *event)
{
    (void)aco_mt_event_wait(event);
    return NULL;
}

static void nobody_goes_on(aco_sim_t *sim, void *arg)
{
    aco_mt_event_t *event = calloc(1, sizeof *event); /* the thread stays */
    (void)sim, (void)arg;
    (void)aco_offload(wait_for_ever, event, NULL, NULL);
}

static void *wait_in_set(void *event)
{
    aco_set_name(aco_current_task(), aco_threads_index() ? "the second" : "the first");
    return wait_for_ever(event);
}

static void *run_waiting(void *event)
{
    (void)aco_threads_run(2, wait_in_set, event, NULL);
    return NULL;
}

static void tasks_wait_for_ever(aco_sim_t *sim, void *arg)
{
    aco_mt_event_t *event = calloc(1, sizeof *event);
    (void)sim, (void)arg;
    aco_set_name(aco_current_task(), "the scenario");
    (void)aco_offload(run_waiting, event, NULL, NULL);
}

static void keep(void *arg, void *result)
{
    (void)arg, (void)result;
}

static void a_thread_stays(aco_sim_t *sim, void *arg)
{
    aco_mt_event_t *event = calloc(1, sizeof *event);
    aco_scope_t scope;
    (void)sim, (void)arg;
    CHECK(aco_scope_begin(&scope, aco_after(ACO_SECOND)) == 0);
    CHECK(aco_offload(wait_for_ever, event, NULL, keep) == -1);
    CHECK(aco_scope_end(&scope) == 0);
}

static void *fail_there(void *sim)
{
    aco_sim_fail(sim, "a thread says so");
    return NULL;
}

static void a_thread_fails_it(aco_sim_t *sim, void *arg)
{
    (void)arg;
    (void)aco_offload(fail_there, sim, NULL, NULL);
}

static void *never_run(void *arg)
{
    CHECK(!"the set begins");
    return arg;
}

static void *run_pinned(void *unused)
{
    aco_threads_options_t options = {0};
    options.flags = ACO_THREADS_PIN;
    (void)aco_threads_run(THREADS, never_run, NULL, &options);
    return unused;
}

static void threads_are_bound(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    (void)aco_offload(run_pinned, NULL, NULL, NULL);
}

/* ---- Nodes ---- */

static void *offload_later(void *arg)
{
    aco_sleep(ACO_SECOND);
    (void)aco_offload(write_down, arg, NULL, NULL);
    return NULL;
}

static void a_node_offloads(aco_sim_t *sim, void *arg)
{
    CHECK(aco_sim_node(sim, "a", "10.0.0.1", offload_later, arg) != NULL);
    aco_sleep(2 * ACO_SECOND);
}

/* The pool has a thread that waits for work. */
static void a_node_offloads_too(aco_sim_t *sim, void *arg)
{
    CHECK(aco_sim_node(sim, "a", "10.0.0.1", offload_later, arg) != NULL);
    aco_sleep(ACO_SECOND - ACO_MILLISECOND);
    (void)aco_offload(write_down, arg, NULL, NULL);
    aco_sleep(ACO_SECOND);
}

static void *tick(void *count)
{
    for (;; ++*(int *)count)
        aco_sleep(ACO_SECOND);
    return NULL;
}

static void *make_node(void *sim)
{
    CHECK(aco_sim_node(sim, "b", "10.0.0.2", tick, sim) == NULL && errno == EINVAL);
    CHECK(aco_sim_nemesis(sim, ACO_SIM_FAULT_ALL) < 0 && errno == EINVAL);
    return NULL;
}

/* The scenario has threads, while nodes go on and crash. */
static void nodes_and_threads(aco_sim_t *sim, void *arg)
{
    int ticks = 0;
    aco_sim_node_t *node = aco_sim_node(sim, "a", "10.0.0.1", tick, &ticks);
    for (int i = 0; i < 3; i++) {
        CHECK(aco_offload(make_node, sim, NULL, NULL) == 0);
        CHECK(aco_sim_restart(node) == 0);
        sets_share_objects(sim, arg);
        aco_sleep(3 * ACO_SECOND + ACO_MILLISECOND);
    }
    CHECK(ticks >= 9);
}

static void *spin(void *flag)
{
    aco_mt_mutex_t mutex = {0};
    while (!*(int *)flag && aco_mt_mutex_lock(&mutex) == 0)
        (void)aco_mt_mutex_unlock(&mutex);
    return NULL;
}

static int never_set;

static void a_thread_spins(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    (void)aco_offload(spin, &never_set, NULL, NULL);
}

/* ---- Races are found ---- */

static void *add_one(void *sum)
{
    static aco_mt_mutex_t mutex;
    int was;
    (void)aco_mt_mutex_lock(&mutex);
    was = *(int *)sum;
    (void)aco_mt_mutex_unlock(&mutex);
    (void)aco_mt_mutex_lock(&mutex); /* too late: another thread may have been here */
    *(int *)sum = was + 1;
    (void)aco_mt_mutex_unlock(&mutex);
    return NULL;
}

static void *offload_addition(void *sum)
{
    CHECK(aco_offload(add_one, sum, NULL, NULL) == 0);
    return NULL;
}

static void an_addition_is_lost(aco_sim_t *sim, void *arg)
{
    int sum = 0;
    aco_t *first = spawned(offload_addition, &sum), *second = spawned(offload_addition, &sum);
    (void)arg;
    CHECK(aco_join(first, NULL) == 0 && aco_join(second, NULL) == 0);
    if (sum != 2)
        aco_sim_fail(sim, "an addition is lost");
}

typedef struct bell {
    aco_mt_mutex_t mutex;
    aco_mt_cond_t rings;
    int has_rung;
} bell_t;

/* It does not hold the mutex from the look to the wait. */
static void *listen_badly(void *arg)
{
    bell_t *bell = arg;
    int has_rung;
    (void)aco_mt_mutex_lock(&bell->mutex);
    has_rung = bell->has_rung;
    (void)aco_mt_mutex_unlock(&bell->mutex);
    (void)aco_mt_mutex_lock(&bell->mutex);
    if (!has_rung)
        (void)aco_mt_cond_wait(&bell->rings, &bell->mutex);
    (void)aco_mt_mutex_unlock(&bell->mutex);
    return NULL;
}

static void *offload_listener(void *bell)
{
    (void)aco_offload(listen_badly, bell, NULL, NULL);
    return NULL;
}

static void a_wake_up_is_lost(aco_sim_t *sim, void *arg)
{
    bell_t *bell = calloc(1, sizeof *bell); /* the thread may stay */
    aco_t *listener = spawned(offload_listener, bell);
    (void)arg;
    for (uint64_t n = aco_sim_random(sim, 5); n; n--)
        aco_task_yield();
    if (aco_mt_mutex_lock(&bell->mutex) == 0) {
        bell->has_rung = 1;
        aco_mt_cond_signal(&bell->rings);
        (void)aco_mt_mutex_unlock(&bell->mutex);
    }
    if (aco_join(listener, NULL) == 0)
        free(bell);
}

int main(void)
{
    PASSES(offload_two);
    CHECK(orders[0] && orders[1]);
    PASSES(time_passes_for_all);
    PASSES(ping_pong);
    PASSES(threads_reach_tasks);
    PASSES(sets_share_objects);
    PASSES(work_is_shared);
    CHECK(moved);
    PASSES(sets_stop);
    PASSES(threads_use_the_network);
    PASSES(threads_share_a_port);
    FAILS_BY(an_addition_is_lost, "an addition is lost");
    FAILS_BY(a_wake_up_is_lost, "a deadlock: no thread can ever go on");
    FAILS_BY(nobody_goes_on, "a deadlock: no thread can ever go on");
    FAILS_BY(tasks_wait_for_ever, "a deadlock: no thread can ever go on");
    CHECK(strstr(captured_text, "the scenario") && strstr(captured_text, "the second"));
    CHECK(strstr(captured_text, "the first"));
    FAILS_BY(a_thread_stays, "thread 2 is left behind: it waits for ever in pthread_cond_wait");
    FAILS_BY(a_thread_fails_it, "a thread says so");
    FAILS_BY(threads_are_bound, "sched_setaffinity() is not simulated");
    FAILS_BY(a_node_offloads, "node \"a\" needs another thread");
    FAILS_BY(a_node_offloads_too, "node \"a\" needs another thread");
    FAILS_BY(a_thread_spins, "threads go on for ever");
    PASSES(nodes_and_threads);
    PASSES(sets_share_objects); /* after all that */
    return check_result("sim_threads");
}
