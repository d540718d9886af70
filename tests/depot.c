/* Promises of a thread's cache of destroyed coroutines (include/aco/pool.h): it keeps about a thousand, uses them
 * again, and frees those that it no longer needs (src/coroutine/depot.c). */
#define _GNU_SOURCE
#include "coroutine/depot.h"
#include "check.h"
#include "sanitizers.h"

#include <aco.h>
#include <aco/generator.h>
#include <aco/pool.h>
#include <aco/scheduler.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { BURST = 3000, MOST_KEPT = 16 * ACO__MOST_CACHED };

static aco_t *coroutines[BURST];
static size_t before;

/* Stacks in use or kept, beyond those from before. */
static size_t kept(void)
{
    aco_pool_stats_t stats;
    CHECK_EQ(aco_pool_stats(NULL, &stats), 0);
    return stats.in_use - before;
}

static void *give(void *arg)
{
    return arg;
}

static void begin(int n)
{
    for (int i = 0; i < n; i++) {
        coroutines[i] = aco_new(give, &coroutines[i], NULL);
        CHECK(coroutines[i] != NULL);
    }
}

/* Each of them works, whatever it was before. */
static void end(int n)
{
    for (int i = 0; i < n; i++) {
        CHECK_EQ(aco_state(coroutines[i]), ACO_STATE_READY);
        CHECK(aco_send(coroutines[i], NULL) == &coroutines[i] && aco_state(coroutines[i]) == ACO_STATE_DONE);
        aco_destroy(coroutines[i]);
    }
}

/* With so many in use. */
static void check_kept(size_t in_use)
{
    CHECK(kept() - in_use > ACO__MOST_CACHED && kept() - in_use <= MOST_KEPT);
}

static void coroutines_are_kept(void)
{
    for (int round = 0; round < 3; round++) {
        begin(BURST);
        CHECK_EQ(kept(), BURST);
        end(BURST);
        check_kept(0);
    }
    begin(MOST_KEPT / 2); /* no new stack for these */
    CHECK(kept() <= MOST_KEPT);
    end(MOST_KEPT / 2);
}

static void *tasks(void *arg)
{
    for (int i = 0; i < BURST; i++)
        CHECK((coroutines[i] = aco_spawn(give, &coroutines[i], NULL)) != NULL);
    for (int i = 0; i < BURST; i++) {
        void *result = NULL;
        CHECK(aco_join(coroutines[i], &result) == 0 && result == &coroutines[i]);
    }
    check_kept(1);
    for (int i = 0; i < BURST; i++) { /* these give up their stacks themselves */
        const aco_options_t detached = {.flags = ACO_DETACHED};
        CHECK(aco_spawn(give, NULL, &detached) != NULL);
    }
    CHECK_EQ(aco_task_yield(), 0);
    check_kept(1);
    return arg;
}

#ifndef ACO_CONFIG_NO_INLINE
ACO_GENERATOR(one, y, arg)
{
    aco_generate(y, arg);
}

/* Generators take coroutines' stacks and give them back. */
static void generators_are_kept(void)
{
    static aco_generator_t generators[BURST];
    for (int i = 0; i < BURST; i++)
        CHECK_EQ(aco_generator_open(&generators[i], one, &generators[i], NULL), 0);
    for (int i = 0; i < BURST; i++) {
        CHECK(aco_generator_next(&generators[i]) && generators[i].value == &generators[i]);
        CHECK(!aco_generator_next(&generators[i]));
        aco_generator_close(&generators[i]);
    }
    check_kept(0);
}
#endif

/* What was not needed since the last trim is freed, what was needed stays. */
static void unneeded_are_freed(void)
{
    begin(MOST_KEPT);
    end(MOST_KEPT);
    aco__depot_trim(aco__self(), 1);
    check_kept(0);
    begin(MOST_KEPT / 2);
    end(MOST_KEPT / 2);
    aco__depot_trim(aco__self(), 1);
    CHECK(kept() >= MOST_KEPT / 2 && kept() < MOST_KEPT);
    aco__depot_trim(aco__self(), 1);
    CHECK(kept() <= ACO__MOST_CACHED);
    begin(MOST_KEPT);
    end(MOST_KEPT);
    aco__depot_trim(aco__self(), 1);
    aco__depot_trim(aco__self(), 0); /* a little at a time */
    check_kept(0);
}

static void all_are_freed(void)
{
    begin(BURST);
    end(BURST);
    check_kept(0);
    CHECK(aco_pool_trim(NULL) > ACO__MOST_CACHED);
    CHECK_EQ(kept(), 0);
}

static void *in_thread(void *arg)
{
    begin(BURST);
    end(BURST);
    check_kept(0);
    return arg;
}

/* While stacks are measured, none is kept. */
static void measured_are_not_kept(void)
{
    begin(BURST);
    end(BURST);
    CHECK_EQ(aco_stack_measure(1), 0);
    CHECK_EQ(kept(), 0);
    begin(BURST);
    end(BURST);
    CHECK_EQ(kept(), 0);
    CHECK_EQ(aco_stack_measure(0), 0);
    begin(BURST);
    end(BURST);
    check_kept(0);
}

/* A burst, then a wait in which nothing happens. */
static void *burst_and_wait(void *arg)
{
    begin(BURST);
    end(BURST);
    __atomic_store_n((aco_scheduler_t **)arg, aco_scheduler_open(), __ATOMIC_RELEASE);
    CHECK_EQ(aco_park("the wake"), 0);
    CHECK_EQ(aco_scheduler_close(), 0);
    return arg;
}

static aco_t *waiting;

static void *run_burst(void *arg)
{
    CHECK((waiting = aco_spawn(burst_and_wait, arg, NULL)) != NULL && aco_detach(waiting) == 0);
    CHECK_EQ(aco_run(), 0);
    return arg;
}

static void wake(void *arg)
{
    CHECK_EQ(aco_unpark(arg), 0);
}

/* A thread that sleeps right after it has needed them frees them all the same. */
static void asleep_are_freed(void)
{
    enum { PATIENCE = 20000 };
    const struct timespec a_while = {0, 1000000};
    aco_scheduler_t *scheduler = NULL, *open;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, run_burst, &scheduler), 0);
    while (!(open = __atomic_load_n(&scheduler, __ATOMIC_ACQUIRE)))
        sched_yield();
    for (int i = 0; i < PATIENCE && kept() > ACO__MOST_CACHED + 1; i++)
        nanosleep(&a_while, NULL);
    CHECK(kept() <= ACO__MOST_CACHED + 1);
    CHECK_EQ(aco_post(open, wake, waiting), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(kept(), 0);
}

static void *destroy_elsewhere(void *co)
{
    aco_thread_init(NULL); /* it may keep coroutines */
    CHECK(aco__self()->heap == NULL);
    aco_destroy(co);
    CHECK(aco__self()->cached == NULL);
    CHECK_EQ(kept(), 0);
    return NULL;
}

/* A thread that has made no coroutine keeps none that another has made, of whatever kind. It has no heap, so a stack
 * that names no heap is of no use to it either. */
static void others_are_not_kept(void)
{
    static char memory[65536];
    static const aco_options_t small = {.stack_size = 65536}, unguarded = {.flags = ACO_NO_GUARD},
                               in_memory = {.stack_memory = memory, .stack_size = sizeof memory};
    const aco_options_t *kinds[] = {NULL, &small, &unguarded, &in_memory};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        aco_t *co = aco_new(give, kinds, kinds[i]);
        pthread_t thread;
        CHECK(co && aco_send(co, NULL) == kinds);
        CHECK_EQ(pthread_create(&thread, NULL, destroy_elsewhere, co), 0);
        pthread_join(thread, NULL);
    }
}

int main(void)
{
    pthread_t thread;
    setenv("ACO_EXPLAIN_OVERFLOW", "0", 1); /* else a thread gets its heap at once, with a signal stack */
    (void)aco_pool_trim(NULL);
    before = kept();
    others_are_not_kept();
    coroutines_are_kept();
#ifndef ACO_CONFIG_NO_INLINE
    generators_are_kept();
#endif
    unneeded_are_freed();
    all_are_freed();
    CHECK(aco_detach(aco_spawn(tasks, NULL, NULL)) == 0 && aco_run() == 0);
    measured_are_not_kept();
    (void)aco_pool_trim(NULL);
    CHECK_EQ(pthread_create(&thread, NULL, in_thread, NULL), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(kept(), 0);
    asleep_are_freed();
    return check_result("depot");
}
