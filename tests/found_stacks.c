/* What reviewers found of stacks and measuring, once each. */
#define _GNU_SOURCE
#include "aco/pool.h"
#include "aco/scheduler.h"
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

static aco_pool_t *pool;
static int served, refused;

static void *serve(void *arg)
{
    served++;
    return arg;
}

/* A pool of one stack serves one task after the other: the stack of the one that ended is free for the next. */
static void *accept_all(void *arg)
{
    aco_options_t options = {.stack_size = 64 << 10, .flags = ACO_DETACHED, .pool = pool};
    for (int i = 0; i < 100; i++) {
        refused += !aco_spawn(serve, NULL, &options);
        aco_task_yield();
        aco_task_yield();
    }
    return arg;
}

static void *join_one(void *arg)
{
    aco_options_t options = {.stack_size = 64 << 10, .pool = pool};
    aco_pool_stats_t stats;
    CHECK_EQ(aco_join(aco_spawn(serve, NULL, &options), NULL), 0);
    CHECK_EQ(aco_pool_stats(pool, &stats), 0);
    CHECK_EQ(stats.in_use, 0);
    return arg;
}

static void stacks_of_ended_tasks(void)
{
    aco_pool_options_t options = {.most_stacks = 1};
    const aco_options_t detached = {.flags = ACO_DETACHED};
    pool = aco_pool_new(&options);
    CHECK(aco_spawn(accept_all, NULL, &detached) != NULL);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(served, 100);
    CHECK_EQ(refused, 0);
    CHECK(aco_spawn(join_one, NULL, &detached) != NULL);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

static volatile sig_atomic_t forks;

enum { FORKS = 50 };

static void in_2_ms(int again)
{
    const struct itimerval once = {{0, 0}, {0, again ? 2000 : 0}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static void forks_and_waits(int signal)
{
    int status = 0;
    pid_t child = fork();
    (void)signal;
    if (child == 0)
        _exit(0);
    waitpid(child, &status, 0);
    forks++;
    in_2_ms(forks < FORKS);
}

/* A signal handler that forks may interrupt the library in the middle of a pool's business. */
static void fork_in_signal_handler(void)
{
    aco_options_t options = {.stack_size = 32 << 10};
    signal(SIGALRM, forks_and_waits);
    in_2_ms(1);
    while (forks < FORKS) {
        aco_t *co = aco_new(serve, NULL, &options);
        aco_resume(co);
        aco_destroy(co);
    }
}

static __attribute__((noinline)) void touch(size_t bytes)
{
    volatile char *p = __builtin_alloca(bytes);
    for (size_t i = 0; i < bytes; i += 512)
        p[i] = 1;
}

static void *goes_deep(void *arg)
{
    touch(100000);
    aco_yield();
    return arg;
}

static void *goes_deep_elsewhere(void *arg)
{
    return goes_deep(arg);
}

static aco_stack_usage_t found;

static int find(const aco_stack_usage_t *usage, void *entry)
{
    return memcmp(&usage->entry, entry, sizeof usage->entry) == 0 ? (found = *usage, 1) : 0;
}

static int is_measured(aco_function_t entry)
{
    memset(&found, 0, sizeof found);
    return aco_stack_usage(find, &entry);
}

/* A trim does not change what was touched; a coroutine restarted when measuring is over is not measured. */
static void what_was_measured_stays(void)
{
    aco_t *co;
    aco_stack_measure(1);
    co = aco_new(goes_deep, NULL, NULL);
    aco_resume(co);
    CHECK_EQ(aco_stack_trim(co), 0);
    aco_resume(co);
    aco_destroy(co);
    CHECK(is_measured(goes_deep) && found.deepest >= 100000);
    co = aco_new(serve, NULL, NULL);
    aco_stack_measure(0);
    CHECK_EQ(aco_restart(co, goes_deep_elsewhere, NULL), 0);
    aco_resume(co);
    aco_resume(co);
    aco_destroy(co);
    CHECK(!is_measured(goes_deep_elsewhere));
    CHECK(is_measured(serve) && found.made == 1 && found.switches == 0 && found.deepest < 50000);
}

static aco_t *next_task;

static void *trims_next(void *arg)
{
    CHECK_EQ(aco_state(next_task), ACO_STATE_READY);
    CHECK_EQ(aco_stack_trim(next_task), 0);
    return arg;
}

/* A task that is next to run is not resuming what runs before it. */
static void next_to_run(void)
{
    aco_t *co = aco_new(trims_next, NULL, NULL);
    next_task = aco_spawn(serve, NULL, NULL);
    aco_resume(co);
    aco_destroy(co);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(next_task, NULL), 0);
}

int main(void)
{
    stacks_of_ended_tasks();
    fork_in_signal_handler();
    what_was_measured_stays();
    next_to_run();
    return check_result("found_stacks");
}
