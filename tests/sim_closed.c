/* Promises: other threads cannot change a run, and nothing keeps it from ending or failing. */
#include "sim/history.h"

#include "sim_checks.h"

#include "aco/pool.h"
#include "aco/scope.h"
#include "aco/sim.h"
#ifdef WITH_THREADS
#include "aco/mt.h"
#endif

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* The reason for which a run of the scenario fails, or "". What it prints is captured. */
static const char *reason_of(aco_sim_function_t scenario, void *arg)
{
    static aco_sim_stats_t result;
    int done;
    capture();
    done = aco_sim_run(scenario, arg, 1, &result, NULL);
    release();
    CHECK(done == (result.seed ? -1 : 0));
    return result.reason;
}

#define FAILS_BY(scenario, arg, text)                                                                                  \
    do {                                                                                                               \
        if (!is_in(reason_of(scenario, arg), text))                                                                    \
            check_failed_at(__FILE__, __LINE__, "is another reason\n");                                                \
    } while (0)

static aco_t *detached_in(aco_function_t fn, void *arg, aco_pool_t *pool)
{
    aco_options_t opts = {0};
    opts.flags = ACO_DETACHED;
    opts.pool = pool;
    return aco_spawn(fn, arg, &opts);
}

/* ---- Messages ---- */

static aco_scheduler_t *scheduler;
static int calls;

static void post_again(void *unused)
{
    CHECK(aco_post(scheduler, post_again, unused) == 0);
}

static void post_for_ever(aco_sim_t *sim, void *ns)
{
    (void)sim;
    scheduler = aco_scheduler_open();
    post_again(NULL);
    CHECK(aco_sleep(*(int64_t *)ns) == 0); /* at once; or never, since the time stands still */
}

static void wake(void *task)
{
    calls++;
    CHECK(aco_unpark(task) == 0);
}

static void post_to_oneself(aco_sim_t *sim, void *unused)
{
    (void)sim, (void)unused;
    for (int i = 0; i < 3; i++) {
        scheduler = aco_scheduler_open();
        CHECK(scheduler && aco_scheduler_open() == scheduler);
        CHECK(aco_post(scheduler, wake, aco_current_task()) == 0);
        CHECK(aco_park("the message") == 0);
        CHECK(aco_scheduler_close() == 0 && aco_post(scheduler, wake, aco_current_task()) == 0);
        CHECK(aco_scheduler_close() == 0 && aco_scheduler_close() == -1 && errno == EINVAL);
        CHECK(aco_park("what was posted before") == 0);
        CHECK(aco_post(scheduler, wake, aco_current_task()) == -1 && errno == EPIPE);
    }
}

/* The invariants, when no task can run. */
static void post_to_waiting(aco_sim_t *sim, void *waits)
{
    aco_t *task = *(aco_t **)waits;
    (void)sim;
    *(aco_t **)waits = NULL;
    CHECK(!task || aco_post(scheduler, wake, task) == 0);
}

static void wait_for_message(aco_sim_t *sim, void *waits)
{
    (void)sim;
    scheduler = aco_scheduler_open();
    *(aco_t **)waits = aco_current_task();
    CHECK(aco_park("the message") == 0);
    CHECK(aco_on_wake(NULL, NULL) == -1 && errno == EBUSY);
    CHECK(aco_scheduler_close() == 0 && aco_on_wake(NULL, NULL) == 0);
}

static void invariants_may_post(void)
{
    aco_sim_options_t o = {0};
    aco_t *waits = NULL;
    o.invariants = post_to_waiting;
    CHECK(aco_sim_run(wait_for_message, &waits, 10, NULL, &o) == 0);
}

static void messages_come(void)
{
    CHECK(strcmp(reason_of(post_to_oneself, NULL), "") == 0);
    CHECK_EQ(calls, 6);
    FAILS_BY(post_for_ever, &(int64_t){0}, "messages come for ever, and no task has a turn");
    FAILS_BY(post_for_ever, &(int64_t){1}, "messages come for ever, and no task has a turn");
}

/* ---- Idle hooks ---- */

static int be_idle(void *unused, int64_t timeout)
{
    (void)unused, (void)timeout;
    return 1;
}

static void hook_idle(aco_sim_t *sim, void *unused)
{
    (void)sim, (void)unused;
    CHECK(aco_on_idle(NULL, NULL) == 0);
    CHECK(aco_on_idle(be_idle, NULL) == -1 && errno == ENOSYS);
    CHECK(is_in(aco_error_message(), "aco_on_idle: is not simulated"));
    CHECK(aco_sleep(1) == -1 || !"the run goes on");
}

static void watch(aco_sim_t *sim, void *unused)
{
    (void)sim, (void)unused;
    CHECK(aco_watchdog(0) == 0);
    CHECK(aco_watchdog(ACO_SECOND) == -1 && errno == ENOSYS);
    CHECK(aco_sleep(1) == -1 || !"the run goes on");
}

/* ---- Other threads ---- */

static aco_t *waiting;
static aco_scope_t *scope;

static void never(void *unused)
{
    (void)unused;
    CHECK(!"it was posted");
}

static void *post_from_afar(void *unused)
{
    CHECK(aco_post(scheduler, never, unused) == -1 && errno == EPIPE);
    CHECK(is_in(aco_error_message(), "aco_post: the scheduler is not open to this thread"));
    return unused;
}

static void *unpark_from_afar(void *unused)
{
    CHECK(aco_unpark(waiting) == -1 && errno == EPERM);
    return unused;
}

static void *cancel_from_afar(void *unused)
{
    CHECK(aco_scope_cancel(scope) == -1 && errno == EPERM);
    return unused;
}

static void let_another_thread(aco_sim_t *sim, void *call)
{
    aco_scope_t own;
    pthread_t thread;
    (void)sim;
    scheduler = aco_scheduler_open();
    waiting = aco_current_task();
    scope = &own;
    CHECK(aco_scope_begin(scope, 0) == 0);
    CHECK(pthread_create(&thread, NULL, *(void *(**)(void *))call, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(aco_scope_end(scope) == 0);
}

static void others_cannot_reach_it(void)
{
    void *(*post)(void *) = post_from_afar, *(*unpark)(void *) = unpark_from_afar;
    void *(*cancel)(void *) = cancel_from_afar;
    FAILS_BY(let_another_thread, &post, "another thread called aco_post(), which cannot reach the tasks");
    FAILS_BY(let_another_thread, &unpark, "another thread called aco_unpark(), which cannot reach the tasks");
    FAILS_BY(let_another_thread, &cancel, "another thread called aco_scope_cancel(), which cannot reach the tasks");
}

#ifdef WITH_THREADS
static aco_mt_mutex_t mutex;

static void lock_twice(aco_sim_t *sim, void *unused)
{
    (void)sim, (void)unused;
    aco_set_name(aco_current_task(), "locks twice");
    CHECK(aco_mt_mutex_lock(&mutex) == 0);
    aco_mt_mutex_lock(&mutex);
}

static void deadlocks_are_reported(void)
{
    FAILS_BY(lock_twice, NULL, "a deadlock: no task can ever run");
    CHECK(is_in(captured_text, "(locks twice) waits"));
}
#else
static void deadlocks_are_reported(void)
{
}
#endif

static void nothing_is_noted_after_the_end(void)
{
    aco__sim_history_t history = {0};
    uint64_t hash;
    aco__history_begin(&history, 0, 0);
    aco__history_note(&history, ACO__SIM_TIME, 0, 1);
    aco__history_note(&history, ACO__SIM_END, 0, 0);
    hash = history.hash;
    aco__history_note(&history, ACO__SIM_TIME, 0, 1);
    CHECK(history.hash == hash && history.length == 2);
    aco__history_begin(&history, 0, 0);
    aco__history_note(&history, ACO__SIM_TIME, 0, 1);
    CHECK_EQ(history.length, 1);
}

/* ---- Idle stacks ---- */

enum { CROWD = 600 };

static int checks;

static void count_checks(aco_sim_t *sim, void *pool)
{
    (void)sim, (void)pool;
    checks++;
}

static void *end_at_once(void *arg)
{
    return arg;
}

static void crowd(aco_sim_t *sim, void *pool)
{
    (void)sim;
    for (int i = 0; i < CROWD; i++)
        CHECK(detached_in(end_at_once, NULL, pool) != NULL);
    for (int i = 0; i < 3; i++)
        CHECK(aco_sleep(1) == 0);
}

/* How often a run with a crowd checks its invariants, if the pool keeps so many idle stacks. */
static int checks_of(size_t idle_stacks)
{
    aco_pool_options_t how = {0};
    aco_sim_options_t o = {0};
    aco_pool_t *pool;
    how.idle_stacks = idle_stacks;
    pool = aco_pool_new(&how);
    o.invariants = count_checks;
    checks = 0;
    CHECK(aco_sim_run(crowd, pool, 1, NULL, &o) == 0);
    CHECK(aco_pool_destroy(pool) == 0);
    return checks;
}

static void idle_stacks_are_not_seen(void)
{
    CHECK_EQ(checks_of(CROWD + 1), 4); /* before each time that passes, and at the end */
    CHECK_EQ(checks_of(1), 4);
}

/* ---- Many tasks ---- */

enum { MANY = 1000, ROUNDS = 20 };

static int next_one;

static void *have_turns(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ((intptr_t)number, next_one);
        next_one = (next_one + 1) % MANY;
        aco_task_yield();
    }
    return NULL;
}

static void spawn_many(aco_sim_t *sim, void *unused)
{
    (void)sim, (void)unused;
    for (intptr_t i = 0; i < MANY; i++)
        detached_in(have_turns, (void *)i, NULL);
}

static void many_keep_their_order(void)
{
    aco_sim_options_t o = {0};
    o.schedule = ACO_SIM_FIFO;
    CHECK(aco_sim_run(spawn_many, NULL, 1, NULL, &o) == 0);
    CHECK_EQ(next_one, 0);
}

int main(void)
{
    messages_come();
    invariants_may_post();
    FAILS_BY(hook_idle, NULL, "aco_on_idle() is not simulated");
    FAILS_BY(watch, NULL, "aco_watchdog() is not simulated");
    others_cannot_reach_it();
    deadlocks_are_reported();
    nothing_is_noted_after_the_end();
    idle_stacks_are_not_seen();
    many_keep_their_order();
    return check_result("sim_closed");
}
