/* For the tests of aco/threads.h. */
#ifndef THREADS_TESTS_H
#define THREADS_TESTS_H

#ifdef IN_SIMULATION
#include "system/system.h" /* before what is public */
#endif

#include <aco/threads.h>
#include "check.h"
#include "sanitizers.h"
#include "until.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8 }; /* more than processors: threads are interrupted everywhere */

static inline int load(const int *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void add(int *p, int n)
{
    __atomic_fetch_add(p, n, __ATOMIC_ACQ_REL);
}

/* Runs fn(arg) on the first of n threads. */
static inline int run_first(int n, aco_function_t fn, void *arg)
{
    aco_threads_options_t options = {0};
    options.flags = ACO_THREADS_FIRST_ONLY;
    return aco_threads_run(n, fn, arg, &options);
}

/* Runs a test with a set of threads, and checks that it succeeds. */
static inline void run_on(int n, aco_function_t fn, void *arg)
{
    if (run_first(n, fn, arg) != 0) {
        fprintf(stderr, "aco_threads_run: %s: %s\n", strerror(errno), aco_error_message());
        CHECK(!"aco_threads_run");
    }
}

static inline void begin(aco_mt_group_t *group, aco_group_policy_t policy)
{
    CHECK_EQ(aco_mt_group_begin(group, policy), 0);
}

#define TO(number) (&(aco_submit_options_t){.where = ACO_SUBMIT_TO, .thread = (number)})
#define EVENLY (&(aco_submit_options_t){.where = ACO_SUBMIT_EVENLY})

static inline void submit(aco_mt_group_t *group, aco_function_t fn, void *arg)
{
    CHECK_EQ(aco_submit(group, fn, arg, NULL), 0);
}

static inline void submit_to(int thread, aco_mt_group_t *group, aco_function_t fn, void *arg)
{
    CHECK_EQ(aco_submit(group, fn, arg, TO(thread)), 0);
}

/* ---- All tests of a program ---- */

/* The same tests in some runs of a simulation (tests/sim.cmake): each in a child process, so that variables have their
 * first values. They are what a node does as its main(), and threads of the test's own are the node's. Who waits by
 * calling sched_yield() lets time pass. */
#ifdef IN_SIMULATION
#include <aco/sim.h>
#include "sim_runs.h"

#include <sys/wait.h>
#include <time.h>

static inline int let_time_pass(int64_t ns)
{
    const struct timespec time = {0, (long)ns};
    return aco__system.nanosleep(&time, NULL);
}

#define pthread_create(...) aco__system.pthread_create(__VA_ARGS__)
#define pthread_join(...) aco__system.pthread_join(__VA_ARGS__)
#define pthread_mutex_lock(mutex) aco__system.pthread_mutex_lock(mutex)
#define pthread_mutex_unlock(mutex) aco__system.pthread_mutex_unlock(mutex)
#define pthread_cond_wait(condition, mutex) aco__system.pthread_cond_wait(condition, mutex)
#define pthread_cond_broadcast(condition) aco__system.pthread_cond_broadcast(condition)
#define pthread_sigmask(how, signals, before) aco__system.pthread_sigmask(how, signals, before)
#define kill(process, signal) aco__system.kill(process, signal)
#define sched_yield() let_time_pass(ACO_MICROSECOND)
#define usleep(microseconds) let_time_pass((microseconds) * ACO_MICROSECOND)

typedef struct simulated_main {
    void (*run_all)(void);
    int is_over;
} simulated_main_t;

static inline void *run_as_main(void *of)
{
    simulated_main_t *m = of;
    m->run_all();
    m->is_over = 1;
    return NULL;
}

static inline void simulate_main(aco_sim_t *sim, void *of)
{
    const simulated_main_t *m = of;
    CHECK(aco_sim_node_main(sim, "main", "10.0.0.1", run_as_main, of) != NULL);
    while (!m->is_over)
        aco_sleep(10 * ACO_SECOND);
}

static inline void simulate_seed(void (*run_all)(void), uint64_t seed)
{
    simulated_main_t m = {run_all, 0};
    aco_sim_options_t how = {0};
    aco_sim_stats_t result;
    how.seed = seed;
    how.events = 20;
    CHECK_EQ(aco_sim_run(simulate_main, &m, 1, &result, &how), 0);
}

static inline void simulate_in_child(void (*run_all)(void), uint64_t seed)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        simulate_seed(run_all, seed);
        if (check_failures)
            fprintf(stderr, "this was seed %llu\n", (unsigned long long)seed);
        fflush(NULL);
        _exit(check_failures != 0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static inline void run_all_tests(void (*run_all)(void))
{
    for (uint64_t seed = 1; !UNDER_TSAN && seed <= sim_runs(IN_SIMULATION) && !check_failures; seed++)
        simulate_in_child(run_all, seed);
    if (UNDER_TSAN) /* it does not follow a process with coroutines through fork() */
        simulate_seed(run_all, 1);
}
#else
static inline void run_all_tests(void (*run_all)(void))
{
    run_all();
}
#endif

/* In a loop that looks for what other threads do: in a simulation they go on at certain calls only. */
static inline void let_others_go_on(void)
{
    if (IS_SIMULATED)
        sched_yield();
}

/* In a task: the thread's other tasks run until they wait. In a simulation they run in any order: one turn is not
 * enough. */
static inline void let_others_wait(void)
{
    if (IS_SIMULATED)
        aco_sleep(1);
    else
        aco_task_yield();
}

#endif
