/* Small random programs in a simulation, one for each kind of object, with what must hold whatever the order is.
 * tests/sim_faults.py puts mended faults back into the library, one by one, and counts the seeds until the simulation
 * finds each. As a test it shows that the library as it is passes.
 *
 * sim_faults SCENARIO[.order] [option of aco_sim_main()]...
 * With .order the program is the same in each run, and only the order of turns differs. */
#include "replace.h" /* first: names of the library beside its headers */

#include "random.h"

#include <aco/group.h>
#include <aco/sim.h>
#include <aco/sync.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static aco_sim_t *sim; /* the run */

#define MUST(condition) ((condition) ? (void)0 : (void)aco_sim_fail(sim, #condition))

/* Without the seed's random numbers: all runs draw the same ones, and only the order of turns differs. */
static int is_fixed;
static random_t fixed;

static int pick(int limit)
{
    return (int)(is_fixed ? below(&fixed, (unsigned)limit) : aco_sim_random(sim, (uint64_t)limit));
}

/* Sleeps, yields or does neither. */
static void pause_at_random(void)
{
    int chance = pick(4);
    if (chance == 0)
        MUST(aco_sleep(pick(5) * ACO_MILLISECOND) == 0);
    else if (chance == 1)
        MUST(aco_task_yield() == 0);
}

static aco_t *spawn_on(aco_share_stack_t *stack, aco_function_t fn, void *arg)
{
    aco_options_t opts = {0};
    aco_t *task;
    opts.stack = stack;
    task = aco_spawn(fn, arg, &opts);
    MUST(task != NULL);
    return task;
}

static void join_all(aco_t **tasks, int n)
{
    for (int i = 0; i < n; i++)
        MUST(aco_join(tasks[i], NULL) == 0);
}

/* ---- places: who waits for a place of a group is served in order ---- */

enum { SPAWNERS = 5 };
static aco_group_t group;
static aco_t *spawners[SPAWNERS];
static int tickets[SPAWNERS], next_ticket;

static void *sleep_as_member(void *unused)
{
    MUST(aco_sleep(pick(20) * ACO_MILLISECOND) == 0);
    return unused;
}

static int ticket_of(const aco_t *task)
{
    for (int i = 0; i < SPAWNERS; i++)
        if (spawners[i] == task)
            return tickets[i];
    return next_ticket;
}

static void *spawn_member(void *arg)
{
    int i = (int)(intptr_t)arg;
    MUST(aco_sleep(pick(10) * ACO_MILLISECOND) == 0);
    tickets[i] = next_ticket++;
    MUST(aco_group_spawn(&group, sleep_as_member, NULL, NULL) != NULL);
    if (group.aco__spawners.first)
        MUST(ticket_of(group.aco__spawners.first->wait->task) > tickets[i]); /* nobody was overtaken */
    return NULL;
}

static void places(void)
{
    MUST(aco_group_begin(&group, ACO_KEEP_GOING) == 0);
    group.limit = 1;
    next_ticket = 0;
    for (int i = 0; i < SPAWNERS; i++)
        spawners[i] = spawn_on(NULL, spawn_member, (void *)(intptr_t)i);
    MUST(aco_sleep(pick(10) * ACO_MILLISECOND) == 0);
    group.limit = 2;
    MUST(aco_sleep(20 * ACO_MILLISECOND) == 0); /* all have asked */
    join_all(spawners, SPAWNERS);
    MUST(aco_group_end(&group) == 0 && group.succeeded == SPAWNERS);
}

/* ---- scopes: cancelling one that has ended changes nothing ---- */

static aco_scope_t outer, inner;
static int are_inside;

static void *sleep_in_scopes(void *unused)
{
    MUST(aco_scope_begin(&outer, aco_after((5 + pick(10)) * ACO_MILLISECOND)) == 0);
    MUST(aco_scope_begin(&inner, aco_after((5 + pick(10)) * ACO_MILLISECOND)) == 0);
    are_inside = 1;
    for (int i = 0; i < 3; i++)
        if (aco_sleep(pick(8) * ACO_MILLISECOND) != 0)
            break;
    are_inside = 0;
    MUST(aco_scope_end(&inner) == 0 && aco_scope_end(&outer) == 0);
    MUST(!aco_scope_ended_by(&inner) || aco_scope_ended_by(&inner) == (inner.error ? &inner : &outer));
    return unused;
}

static void *cancel_one(void *scope)
{
    MUST(aco_sleep(pick(15) * ACO_MILLISECOND) == 0);
    if (are_inside)
        MUST(aco_scope_cancel(scope) == 0);
    return NULL;
}

static void scopes(void)
{
    aco_t *tasks[] = {spawn_on(NULL, sleep_in_scopes, NULL), spawn_on(NULL, cancel_one, &outer),
                      spawn_on(NULL, cancel_one, &inner)};
    join_all(tasks, 3);
}

/* ---- select: on a share stack, which case was done ---- */

enum { SELECTORS = 2, SENT = 4 };
static aco_share_stack_t *stack;
static aco_channel_t *channels[SELECTORS][2];

static void *select_on_share_stack(void *number)
{
    aco_channel_t **own = channels[(intptr_t)number];
    for (int i = 0; i < SENT; i++) {
        int values[2] = {-1, -1}, chosen;
        aco_select_case_t cases[2] = {{0}, {0}};
        for (int j = 0; j < 2; j++) {
            cases[j].channel = own[j];
            cases[j].element = &values[j];
            cases[j].operation = ACO_SELECT_RECEIVE;
        }
        chosen = aco_select(cases, 2);
        MUST(chosen == 0 || chosen == 1);
        if (chosen == 0 || chosen == 1)
            MUST(values[chosen] == chosen && values[!chosen] == -1);
        pause_at_random();
    }
    return NULL;
}

static void *name_it(void *task)
{
    MUST(aco_sleep(pick(20) * ACO_MILLISECOND) == 0);
    MUST(aco_set_name(task, "selector") == 0);
    return NULL;
}

static void select_cases(void)
{
    aco_t *tasks[2 * SELECTORS];
    for (int i = 0; i < SELECTORS; i++) {
        for (int j = 0; j < 2; j++)
            MUST((channels[i][j] = aco_channel_new(SENT, sizeof(int))) != NULL);
        tasks[i] = spawn_on(stack, select_on_share_stack, (void *)(intptr_t)i);
        tasks[SELECTORS + i] = spawn_on(NULL, name_it, tasks[i]);
    }
    for (int i = 0; i < SELECTORS * SENT; i++) {
        int j = pick(2);
        pause_at_random();
        MUST(aco_channel_send(channels[i % SELECTORS][j], &j) == 0);
    }
    join_all(tasks + SELECTORS, SELECTORS);
    join_all(tasks, SELECTORS);
    for (int i = 0; i < SELECTORS; i++)
        for (int j = 0; j < 2; j++)
            MUST(aco_channel_destroy(channels[i][j]) == 0);
}

/* ---- inner: a coroutine inside a task whose share stack another task uses ---- */

static aco_mutex_t mutex;

static void *lock_inside(void *task)
{
    for (int i = 0; i < 3; i++) {
        MUST(aco_mutex_lock(&mutex) == 0);
        pause_at_random();
        MUST(aco_current_task() == task);
        MUST(aco_mutex_unlock(&mutex) == 0);
    }
    return NULL;
}

static void *run_inner(void *unused)
{
    aco_t *co = aco_new(lock_inside, aco_current_task(), NULL);
    pause_at_random();
    MUST(co && aco_send(co, NULL) == NULL);
    MUST(aco_state(co) == ACO_STATE_DONE);
    aco_destroy(co);
    return unused;
}

static void inner_coroutines(void)
{
    aco_t *tasks[3];
    for (int i = 0; i < 3; i++)
        tasks[i] = spawn_on(stack, run_inner, NULL);
    join_all(tasks, 3);
}

/* ---- back_off: who waits for a lock gets it, although another task tries again and again to lock two ---- */

static aco_mutex_t other_mutex;
static int has_locked;

static void *lock_one(void *unused)
{
    MUST(aco_mutex_lock(&mutex) == 0);
    has_locked = 1;
    MUST(aco_mutex_unlock(&mutex) == 0);
    return unused;
}

static void *try_two(void *unused)
{
    for (int i = 0; !has_locked; i++) {
        MUST(i < 1000 && aco_mutex_lock(&mutex) == 0);
        MUST(aco_task_yield() == 0);
        MUST(aco__mutex_trylock_or_back_off(&other_mutex) == -1); /* what C++'s std::lock() calls */
        MUST(aco_mutex_unlock(&mutex) == 0);
    }
    return unused;
}

static void back_off(void)
{
    aco_t *tasks[2];
    has_locked = 0;
    MUST(aco_mutex_lock(&other_mutex) == 0);
    tasks[0] = spawn_on(NULL, try_two, NULL);
    tasks[1] = spawn_on(NULL, lock_one, NULL);
    join_all(tasks, 2);
    MUST(aco_mutex_unlock(&other_mutex) == 0);
}

/* ---- turns: of two cases that are always ready, each select takes the other one ---- */

static void *select_in_turn(void *unused)
{
    aco_channel_t *both[2] = {aco_channel_new(8, 0), aco_channel_new(8, 0)};
    int last = -1;
    for (int i = 0; i < 8; i++)
        MUST(aco_channel_try_send(both[0], NULL) == 0 && aco_channel_try_send(both[1], NULL) == 0);
    for (int i = 0; i < 8; i++) {
        aco_select_case_t cases[2] = {{0}, {0}};
        int chosen;
        for (int j = 0; j < 2; j++) {
            cases[j].channel = both[j];
            cases[j].operation = ACO_SELECT_RECEIVE;
        }
        chosen = aco_select(cases, 2);
        MUST(chosen >= 0 && chosen != last);
        last = chosen;
        pause_at_random();
    }
    MUST(aco_channel_destroy(both[0]) == 0 && aco_channel_destroy(both[1]) == 0);
    return unused;
}

static void turns(void)
{
    aco_t *tasks[] = {spawn_on(NULL, select_in_turn, NULL), spawn_on(NULL, select_in_turn, NULL)};
    join_all(tasks, 2);
}

/* ---- barrier: it opens for as many tasks as it says, although some give up ---- */

static aco_barrier_t barrier;
static int lasts, firsts;

static void *meet(void *unused)
{
    for (int i = 0; i < 4; i++) {
        int met = aco_barrier_wait_until(&barrier, aco_after(pick(10) * ACO_MILLISECOND));
        MUST(met >= 0 || errno == ETIMEDOUT);
        lasts += met == 1;
        firsts += met == 0;
        pause_at_random();
    }
    return unused;
}

static void meetings(void)
{
    const aco_barrier_t closed = ACO_BARRIER_INIT(3);
    aco_t *tasks[4];
    barrier = closed;
    lasts = firsts = 0;
    for (int i = 0; i < 4; i++)
        tasks[i] = spawn_on(NULL, meet, NULL);
    join_all(tasks, 4);
    MUST(firsts == 2 * lasts);
}

/* ---- join: who gave up may join again ---- */

static void *sleep_and_return(void *arg)
{
    MUST(aco_sleep(pick(10) * ACO_MILLISECOND) == 0);
    return arg;
}

static void joins(void)
{
    for (int i = 0; i < 3; i++) {
        aco_t *task = spawn_on(NULL, sleep_and_return, &mutex);
        void *result = NULL;
        pause_at_random();
        while (aco_join_until(task, &result, aco_after(pick(4) * ACO_MILLISECOND)) != 0) {
            MUST(errno == ETIMEDOUT);
            if (errno != ETIMEDOUT)
                return;
        }
        MUST(result == &mutex);
    }
}

typedef struct scenario {
    const char *name;
    void (*run)(void);
} scenario_t;

static const scenario_t scenarios[] = {
    {"places", places}, {"scopes", scopes}, {"select", select_cases}, {"inner", inner_coroutines},
    {"back_off", back_off}, {"turns", turns}, {"barrier", meetings}, {"join", joins}};

static void run_scenario(aco_sim_t *run, void *scenario)
{
    const aco_mutex_t unlocked = ACO_MUTEX_INIT;
    sim = run;
    fixed.state = 1;
    mutex = other_mutex = unlocked;
    ((const scenario_t *)scenario)->run();
}

static const scenario_t *scenario_of(const char *name)
{
    size_t length = strcspn(name, ".");
    is_fixed = strcmp(name + length, ".order") == 0;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strlen(scenarios[i].name) == length && strncmp(name, scenarios[i].name, length) == 0 &&
            (is_fixed || !name[length]))
            return &scenarios[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const scenario_t *scenario = argc > 1 ? scenario_of(argv[argc - 1]) : NULL;
    int status;
    if (!scenario) {
        fprintf(stderr, "usage: %s [OPTION]... -- SCENARIO[.order]\n", argv[0]);
        return 2;
    }
    stack = aco_share_stack_new(0);
    status = stack ? aco_sim_main(argc, argv, run_scenario, NULL, (void *)(uintptr_t)scenario) : 2;
    if (stack && status == 0)
        aco_share_stack_destroy(stack);
    return status;
}
