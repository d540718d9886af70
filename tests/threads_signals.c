/* How sets of threads end: what signals do (ACO_THREADS_INTERRUPTIBLE), alone and beside others who listen for them,
 * and that no task keeps a set that is cancelled or has failed. */
#define _GNU_SOURCE
#include "threads_tests.h"

#include <aco/process.h>
#include "child.h"

#include <signal.h>

static aco_threads_options_t interruptible(int64_t drain_ns)
{
    aco_threads_options_t options = {0};
    options.flags = ACO_THREADS_INTERRUPTIBLE;
    options.drain_ns = drain_ns;
    return options;
}

static void detach(aco_function_t fn, void *arg)
{
    aco_options_t detached = {0};
    detached.flags = ACO_DETACHED;
    CHECK(aco_spawn(fn, arg, &detached) != NULL);
}

/* ---- Tasks that nobody waits for ---- */

static int begun, cancelled;

/* The waits of a task without a scope, in one, and in a shield, which ends; and of one that it spawns too late. */
static void *late(void *unused)
{
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    add(&cancelled, 1);
    return unused;
}

static void *waits_for_ever(void *is_in_scope)
{
    aco_scope_t scope, inner, shield;
    if (is_in_scope)
        aco_scope_begin(&scope, ACO_FOREVER);
    aco_shield_begin(&shield, ACO_FOREVER);
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    aco_scope_end(&shield);
    add(&begun, 1);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    FAILS_WITH(aco_check_cancelled(), ECANCELED);
    aco_shield_begin(&shield, ACO_FOREVER);
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    aco_scope_end(&shield);
    aco_scope_begin(&inner, ACO_FOREVER);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    aco_scope_end(&inner);
    if (is_in_scope) {
        CHECK_EQ(aco_scope_end(&scope), 0);
        FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
        detach(late, NULL);
    }
    add(&cancelled, 1);
    return NULL;
}

static void *leads_group(void *unused)
{
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    CHECK(aco_group_spawn(&group, waits_for_ever, NULL, NULL) != NULL);
    CHECK(aco_group_spawn(&group, waits_for_ever, &group, NULL) != NULL);
    aco_group_end(&group);
    return unused;
}

enum { BEGUN = 4, CANCELLED = BEGUN + 2 }; /* of these, and with those that are spawned late */

static void detach_all(void)
{
    detach(waits_for_ever, NULL);
    detach(waits_for_ever, &cancelled);
    detach(leads_group, NULL);
}

static void *kills_beside_detached(void *arg)
{
    detach_all();
    UNTIL(load(&begun) == 2 * BEGUN);
    if (arg && aco_threads_index() == 0)
        aco_threads_cancel(aco_threads_current());
    else if (aco_threads_index() == 0)
        CHECK_EQ(kill(getpid(), SIGTERM), 0);
    return NULL;
}

static void *fails_beside_detached(void *unused)
{
    detach_all();
    UNTIL(load(&begun) == BEGUN);
    errno = EADDRINUSE;
    return aco_threads_index() == 0 ? ACO_ERROR : unused;
}

/* A signal, the call, and a failure end them all. */
static void test_detached(void)
{
    aco_threads_options_t options = interruptible(0);
    for (int i = 0; i < 2; i++) {
        options.drain_ns = i * ACO_MILLISECOND;
        begun = cancelled = 0;
        FAILS_WITH(aco_threads_run(2, kills_beside_detached, NULL, &options), EINTR);
        CHECK_EQ(cancelled, 2 * CANCELLED);
    }
    begun = cancelled = 0;
    CHECK_EQ(aco_threads_run(2, kills_beside_detached, &cancelled, NULL), 0);
    CHECK_EQ(cancelled, 2 * CANCELLED);
}

/* A task of before, or a detached one, hides no failure. */
static void fails_at_start(void)
{
    begun = cancelled = 0;
    FAILS_WITH(aco_threads_run(1, fails_beside_detached, NULL, NULL), EADDRINUSE);
    CHECK_EQ(cancelled, CANCELLED);
}

#ifndef IN_SIMULATION /* where the node would end */
/* ---- Tasks that do not look ---- */

/* The set's other threads go on; this one never ends. */
static void *spins(void *unused)
{
    for (;;)
        (void)aco_sleep(ACO_MILLISECOND);
    return unused;
}

/* Sends one signal more whenever one has worked, but at most `most`. What is left of the time after the second one is
 * for tests/sim_signals.c. */
static void *sends(void *most)
{
    aco_stop_t stop;
    int left = *(int *)most;
    if (aco_threads_index() == 0)
        return spins(NULL);
    aco_stop_begin(&stop, ACO_FOREVER);
    CHECK_EQ(kill(getpid(), SIGTERM), 0);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    aco_stop_end(&stop);
    if (--left)
        CHECK_EQ(kill(getpid(), SIGTERM), 0);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    if (left && --left)
        CHECK_EQ(kill(getpid(), SIGTERM), 0);
    return NULL;
}

static void run_sender(int64_t drain_ns, int most)
{
    aco_threads_options_t options = interruptible(drain_ns);
    signal(SIGTERM, SIG_DFL);
    (void)aco_threads_run(2, sends, &most, &options);
}

static void second_without_drain(void)
{
    run_sender(0, 2);
}

static void third_in_drain(void)
{
    run_sender(60 * ACO_SECOND, 3);
}
#endif

/* ---- Tasks that exit ---- */

static void *exits(void *arg)
{
    add(&cancelled, 1);
    if (arg)
        aco_exit();
    return ACO_ERROR;
}

static void *submits_and_exits(void *unused)
{
    aco_mt_group_t group;
    void *results[3] = {&group, &group, &group};
    const aco_submit_options_t to_second = {.where = ACO_SUBMIT_TO, .thread = 1, .result = &results[1]};
    const aco_submit_options_t evenly = {.where = ACO_SUBMIT_EVENLY, .result = &results[2]};
    begin(&group, ACO_CANCEL_ON_FAILURE);
    CHECK_EQ(aco_submit(&group, exits, &group, &(aco_submit_options_t){.result = &results[0]}), 0);
    CHECK_EQ(aco_submit(&group, exits, &group, &to_second), 0);
    CHECK_EQ(aco_submit(&group, exits, &group, &evenly), 0);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK(!results[0] && !results[1] && !results[2]);
    detach(exits, &cancelled);
    aco_exit();
    return unused;
}

/* aco_exit() ends the function of a set, members and other tasks: they succeed, and nothing waits for them any more. */
static void test_exits(void)
{
    cancelled = 0;
    run_on(2, submits_and_exits, NULL);
    CHECK_EQ(aco_threads_run(2, exits, &cancelled, NULL), 0);
    CHECK_EQ(cancelled, 3 + 1 + 2);
}

/* ---- Several who listen ---- */

static int ready;

static void *waits_in_set(void *kills)
{
    add(&ready, 1);
    UNTIL(load(&ready) == 2);
    if (kills)
        CHECK_EQ(kill(getpid(), SIGTERM), 0);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    return NULL;
}

static void *runs_set(void *kills)
{
    aco_threads_options_t options = interruptible(0);
    FAILS_WITH(aco_threads_run(1, waits_in_set, kills, &options), EINTR);
    return NULL;
}

static int is_blocked(void)
{
    sigset_t blocked;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
    return sigismember(&blocked, SIGTERM);
}

static void *is_unblocked(void *unused)
{
    UNTIL(!is_blocked());
    return unused;
}

/* One signal ends two sets. */
static void test_two_sets(void)
{
    pthread_t other;
    ready = 0;
    CHECK_EQ(pthread_create(&other, NULL, runs_set, NULL), 0);
    runs_set(&ready);
    CHECK_EQ(pthread_join(other, NULL), 0);
    run_on(1, is_unblocked, NULL); /* when it runs tasks: the other thread may have ended last */
}

/* It ends a set, and the scopes and descriptors of its tasks get it too. The interrupt's end leaves it blocked. */
static void *listens(void *unused)
{
    static const int term = SIGTERM;
    aco_interrupt_t first, interrupt;
    aco_scope_t shield;
    CHECK_EQ(aco_interrupt_begin(&first, &term, 1), 0);
    CHECK_EQ(aco_interrupt_end(&first), 0);
    CHECK_EQ(aco_interrupt_begin(&interrupt, &term, 1), 0);
    add(&ready, 1);
    UNTIL(load(&ready) >= 2);
    if (aco_threads_index() == 0)
        CHECK_EQ(kill(getpid(), SIGTERM), 0);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    aco_shield_begin(&shield, ACO_FOREVER);
    UNTIL(interrupt.signal == SIGTERM);
    aco_scope_end(&shield);
    CHECK_EQ(aco_interrupt_end(&interrupt), 0);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED); /* by the set */
    add(&ready, 1);
    return unused;
}

static void test_set_and_interrupts(void)
{
    aco_threads_options_t options = interruptible(0);
    ready = 0;
    FAILS_WITH(aco_threads_run(2, listens, NULL, &options), EINTR);
    CHECK_EQ(ready, 4);
    CHECK(!is_blocked());
}

static void run_all(void)
{
    test_detached();
#ifdef IN_SIMULATION
    fails_at_start();
#else
    PRINTS(fails_at_start, "the function has failed on thread 0: ");
    DIES_OF(second_without_drain, SIGTERM);
    DIES_OF(third_in_drain, SIGTERM);
#endif
    test_exits();
    test_two_sets();
    test_set_and_interrupts();
}

int main(void)
{
    signal(SIGTERM, SIG_DFL);
    run_all_tests(run_all);
    return check_result("threads_signals");
}
