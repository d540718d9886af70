/* Promises of signals in a simulation (aco_sim_signal()): who blocks one takes it, and who does not ends; they stay on
 * their node, whose listeners all hear them; a set of threads is stopped and cancelled; a crash leaves none behind. */
#include "system/system.h"
#include "fails.h"
#include "sim_checks.h"

#include <aco/io.h>
#include <aco/mt.h>
#include <aco/process.h>
#include <aco/scope.h>
#include <aco/sim.h>
#include <aco/threads.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

enum { RUNS = 30 };

static aco_sim_t *sim; /* the run */

#define MUST(condition) ((condition) ? (void)0 : (void)aco_sim_fail(sim, #condition))

#define PASSES(scenario, arg) check_passes(#scenario, scenario, arg, sim_runs(RUNS))
#define FAILS_BY(scenario, reason) check_fails_by(#scenario, scenario, NULL, sim_runs(RUNS), reason)

static void pause_at_random(void)
{
    (void)aco_sleep(1 + (int64_t)aco_sim_random(sim, 20) * ACO_MILLISECOND);
}

/* ---- Nobody listens ---- */

static void *sleep_on(void *arg)
{
    while (aco_sleep(ACO_SECOND) == 0)
        continue;
    return arg;
}

static void *sleep_as_main(void *arg)
{
    aco_spawn(sleep_on, arg, NULL);
    (void)aco_run();
    return arg;
}

static int begun;

static void *return_as_main(void *arg)
{
    begun++;
    return arg;
}

/* The threads of the node have ended before. */
static void ends_a_node_at_rest(aco_sim_t *of_run, void *arg)
{
    aco_sim_node_t *node;
    sim = of_run;
    begun = 0;
    node = aco_sim_node_main(sim, "node", "10.0.0.1", return_as_main, arg);
    pause_at_random();
    MUST(begun == 1 && aco_sim_signal(node, SIGTERM) == 0);
    pause_at_random();
    MUST(!aco_sim_node_is_up(node) && aco_sim_restart(node) == 0);
    pause_at_random();
    MUST(begun == 2 && aco_sim_node_is_up(node));
}

static void ends_a_node(aco_sim_t *of_run, void *has_threads)
{
    static const int signals[] = {SIGTERM, SIGKILL, SIGPIPE, SIGSEGV};
    aco_sim_node_t *node;
    sim = of_run;
    node = has_threads ? aco_sim_node_main(sim, "node", "10.0.0.1", sleep_as_main, NULL)
                       : aco_sim_node(sim, "node", "10.0.0.1", sleep_on, NULL);
    MUST(aco_sim_signal(node, SIGCHLD) == 0 && aco_sim_signal(node, SIGURG) == 0);
    pause_at_random();
    MUST(aco_sim_node_is_up(node));
    MUST(aco_sim_signal(node, signals[aco_sim_random(sim, 4)]) == 0);
    pause_at_random();
    MUST(!aco_sim_node_is_up(node));
    FAILS_WITH(aco_sim_signal(node, SIGTERM), ESRCH);
    MUST(aco_sim_restart(node) == 0);
    pause_at_random();
    MUST(aco_sim_node_is_up(node));
}

static void is_misused(aco_sim_t *of_run, void *arg)
{
    aco_sim_node_t *node = aco_sim_node(of_run, "node", "10.0.0.1", sleep_on, arg);
    FAILS_WITH(aco_sim_signal(NULL, SIGTERM), EINVAL);
    FAILS_WITH(aco_sim_signal(node, 0), EINVAL);
    FAILS_WITH(aco_sim_signal(node, 65), EINVAL);
    FAILS_WITH(aco_sim_signal(node, SIGSTOP), EINVAL);
    FAILS_WITH(aco_sim_signal(node, SIGCONT), EINVAL);
}

static void *listen_in_vain(void *arg)
{
    static const int signals[] = {SIGTERM};
    aco_interrupt_t interrupt;
    if (aco_interrupt_begin(&interrupt, signals, 1) == 0)
        (void)aco_interrupt_end(&interrupt);
    return arg;
}

static void listens_without_threads(aco_sim_t *of_run, void *arg)
{
    (void)aco_sim_node(of_run, "node", "10.0.0.1", listen_in_vain, arg);
    (void)aco_sleep(ACO_SECOND);
}

static void *end_itself(void *arg)
{
    MUST(aco_sleep(ACO_MILLISECOND) == 0 && aco__system.kill(aco__system.getpid(), SIGTERM) == 0);
    return arg;
}

static void *end_as_main(void *arg)
{
    aco_spawn(end_itself, arg, NULL);
    (void)aco_run();
    return arg;
}

/* The end of a node interrupts a call in which the scenario's thread sleeps with all of its tasks; it tells what is
 * left. */
static void interrupts_a_sleep(aco_sim_t *of_run, void *arg)
{
    struct timespec left = {1, 0};
    aco_sim_node_t *node;
    int64_t begin;
    sim = of_run;
    node = aco_sim_node_main(sim, "node", "10.0.0.1", end_as_main, arg);
    begin = aco_now();
    while (aco__system.nanosleep(&left, &left) != 0)
        MUST(errno == EINTR && aco_now() - begin < ACO_SECOND);
    MUST(aco_now() - begin >= ACO_SECOND);
    pause_at_random();
    MUST(!aco_sim_node_is_up(node));
}

/* ---- Listeners ---- */

enum { NODES = 2, THREADS = 2, LISTENERS = 3 };

/* Of a node. */
static struct heard {
    int begun, interrupted, signals, is_over;
} heard[NODES];

static void *be_interrupted(void *of_node)
{
    static const int signals[] = {SIGINT, SIGTERM};
    struct heard *of = of_node;
    aco_interrupt_t interrupt;
    MUST(aco_interrupt_begin(&interrupt, signals, 2) == 0);
    of->begun++;
    MUST(aco_park("the signal") != 0 && errno == ECANCELED);
    of->interrupted += interrupt.signal == SIGTERM;
    MUST(aco_interrupt_end(&interrupt) == 0);
    return NULL;
}

static void *count_signals(void *of_node)
{
    static const int signals[] = {SIGHUP, SIGTERM};
    struct heard *of = of_node;
    int fd = aco_signal_open(signals, 2);
    of->begun++;
    while (aco_signal_wait(fd, NULL) == SIGHUP)
        of->signals++;
    (void)aco_io_close(fd);
    return NULL;
}

/* Each thread blocks each of the signals, or they would end the node. */
static void *listen_on_thread(void *of_node)
{
    for (int i = 0; i < LISTENERS; i++)
        aco_detach(aco_spawn(be_interrupted, of_node, NULL));
    return count_signals(of_node);
}

static void *listen_as_main(void *of_node)
{
    MUST(aco_threads_run(THREADS, listen_on_thread, of_node, NULL) == 0);
    ((struct heard *)of_node)->is_over = 1;
    return NULL;
}

/* The first node may crash before, with listeners. */
static void are_heard_by_all(aco_sim_t *of_run, void *arg)
{
    aco_sim_node_t *nodes[NODES];
    (void)arg;
    sim = of_run;
    memset(heard, 0, sizeof heard);
    nodes[0] = aco_sim_node_main(sim, "first", "10.0.0.1", listen_as_main, &heard[0]);
    nodes[1] = aco_sim_node_main(sim, "second", "10.0.0.2", listen_as_main, &heard[1]);
    pause_at_random();
    if (aco_sim_random(sim, 2)) {
        heard[0].begun = 0;
        MUST(aco_sim_restart(nodes[0]) == 0);
        pause_at_random();
    }
    MUST(heard[0].begun == THREADS * (1 + LISTENERS) && heard[1].begun == THREADS * (1 + LISTENERS));
    MUST(aco_sim_signal(nodes[0], SIGHUP) == 0 && aco_sim_signal(nodes[0], SIGHUP) == 0); /* they become one */
    pause_at_random();
    MUST(heard[0].signals == THREADS);
    MUST(aco_sim_signal(nodes[0], SIGTERM) == 0);
    pause_at_random();
    MUST(heard[0].interrupted == THREADS * LISTENERS && heard[0].is_over);
    MUST(heard[1].interrupted == 0 && heard[1].signals == 0 && aco_sim_node_is_up(nodes[1]));
    MUST(aco_sim_signal(nodes[1], SIGTERM) == 0);
    pause_at_random();
    MUST(heard[1].interrupted == THREADS * LISTENERS && heard[1].is_over);
}

/* ---- A set of threads ---- */

static struct set {
    int stopped, is_over, error;
} set;

static void *work_until_stop(void *takes_long)
{
    aco_stop_t stop;
    MUST(aco_stop_begin(&stop, ACO_FOREVER) == 0);
    MUST(aco_park("the stop") != 0 && errno == ECANCELED);
    (void)aco_stop_end(&stop);
    set.stopped++;
    return aco_sleep(takes_long ? 100 * ACO_SECOND : ACO_MILLISECOND) == 0 ? NULL : ACO_ERROR;
}

static void *run_set(void *takes_long)
{
    const aco_threads_options_t options = {.flags = ACO_THREADS_INTERRUPTIBLE, .drain_ns = 10 * ACO_SECOND};
    set.error = aco_threads_run(2, work_until_stop, takes_long, &options) == 0 ? 0 : errno;
    set.is_over = 1;
    return NULL;
}

/* It drains in time, or is cancelled, by the time or by a second signal. */
static void ends_a_set(aco_sim_t *of_run, void *takes_long)
{
    aco_sim_node_t *node;
    sim = of_run;
    memset(&set, 0, sizeof set);
    node = aco_sim_node_main(sim, "node", "10.0.0.1", run_set, takes_long);
    pause_at_random();
    MUST(aco_sim_signal(node, SIGTERM) == 0);
    (void)aco_sleep(ACO_SECOND);
    MUST(set.stopped == 2 && set.is_over == !takes_long);
    if (takes_long && aco_sim_random(sim, 2)) {
        MUST(aco_sim_signal(node, SIGINT) == 0);
        (void)aco_sleep(ACO_SECOND);
    }
    (void)aco_sleep(10 * ACO_SECOND);
    MUST(set.is_over && set.error == (takes_long ? EINTR : 0));
}

static void *never_end(void *unused)
{
    aco_scope_t shield;
    aco_shield_begin(&shield, ACO_FOREVER);
    (void)aco_sleep_until(ACO_FOREVER);
    MUST(!"the end of time");
    return unused;
}

static void *run_without_end(void *drain_ns)
{
    const aco_threads_options_t options = {.flags = ACO_THREADS_INTERRUPTIBLE, .drain_ns = *(const int64_t *)drain_ns};
    (void)aco_threads_run(2, never_end, NULL, &options);
    MUST(!"its tasks go on");
    return NULL;
}

/* Tasks that do not end when they are cancelled have two seconds since the second signal, at most until the third one.
 * Without a drain the second one is the last. */
static void ends_a_set_that_goes_on(aco_sim_t *of_run, void *arg)
{
    int64_t drain_ns;
    aco_sim_node_t *node;
    (void)arg;
    sim = of_run;
    drain_ns = aco_sim_random(sim, 2) ? 100 * ACO_SECOND : 0;
    node = aco_sim_node_main(sim, "node", "10.0.0.1", run_without_end, &drain_ns);
    pause_at_random();
    MUST(aco_sim_signal(node, SIGTERM) == 0);
    (void)aco_sleep(10 * ACO_SECOND);
    MUST(aco_sim_node_is_up(node) && aco_sim_signal(node, aco_sim_random(sim, 2) ? SIGINT : SIGTERM) == 0);
    (void)aco_sleep(1900 * ACO_MILLISECOND);
    MUST(aco_sim_node_is_up(node) == (drain_ns != 0));
    if (drain_ns && aco_sim_random(sim, 2))
        MUST(aco_sim_signal(node, SIGTERM) == 0 && aco_sleep(50 * ACO_MILLISECOND) == 0);
    else
        (void)aco_sleep(200 * ACO_MILLISECOND);
    MUST(!aco_sim_node_is_up(node));
}

/* Its first thread waits for the one that takes the signals. At the end of the run the set goes on. */
static void crashes_a_set(aco_sim_t *of_run, void *takes_long)
{
    aco_sim_node_t *node;
    sim = of_run;
    node = aco_sim_node_main(sim, "node", "10.0.0.1", run_set, takes_long);
    for (int i = 0; i < 3; i++) {
        pause_at_random();
        if (aco_sim_random(sim, 2))
            MUST(aco_sim_signal(node, SIGTERM) == 0);
        if (aco_sim_random(sim, 2))
            pause_at_random();
        MUST(aco_sim_restart(node) == 0);
    }
    pause_at_random();
    memset(&set, 0, sizeof set);
    MUST(aco_sim_signal(node, SIGTERM) == 0 && aco_sleep(ACO_SECOND) == 0);
    MUST(set.stopped == 2 && !set.is_over);
}

int main(void)
{
    static int yes;
    sim_alarm(120);
    PASSES(ends_a_node, NULL);
    PASSES(ends_a_node, &yes);
    PASSES(ends_a_node_at_rest, NULL);
    PASSES(interrupts_a_sleep, NULL);
    PASSES(is_misused, NULL);
    FAILS_BY(listens_without_threads, "node \"node\" listens for signals: make it by aco_sim_node_main()");
    PASSES(are_heard_by_all, NULL);
    PASSES(ends_a_set, NULL);
    PASSES(ends_a_set, &yes);
    PASSES(ends_a_set_that_goes_on, NULL);
    PASSES(crashes_a_set, &yes);
    return check_result("sim_signals");
}
