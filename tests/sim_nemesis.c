/* Promises: nodes of a simulation are suspended and resumed, have wall clocks of their own, and are at the mercy of a
 * nemesis, which heals what it breaks. */
#include "sim_ends.h"

#include "aco/group.h"
#include "aco/scope.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 50 };

/* ---- Suspending ---- */

static void *tick(void *ticks)
{
    for (;;) {
        aco_sleep(ACO_SECOND);
        ++*(int *)ticks;
    }
    return NULL;
}

static void *tick_twice(void *ticks)
{
    detached(tick, ticks);
    return tick(ticks);
}

static void *suspend_self(void *ticks)
{
    aco_sleep(ACO_SECOND / 2);
    CHECK(aco_sim_suspend(*(aco_sim_node_t **)ticks) == 0);
    aco_task_yield();
    *(aco_sim_node_t **)ticks = NULL;
    return NULL;
}

static void suspend(aco_sim_t *sim, void *arg)
{
    int ticks = 0;
    aco_sim_node_t *node = aco_sim_node(sim, "a", "10.0.0.1", tick_twice, &ticks), *other, *self;
    (void)arg;
    if (aco_sim_random(sim, 2)) /* before its first turn */
        aco_sleep(ACO_SECOND / 2);
    CHECK(aco_sim_suspend(node) == 0);
    CHECK(aco_sim_suspend(node) == 0);
    aco_sleep(10 * ACO_SECOND);
    CHECK_EQ(ticks, 0);
    CHECK(aco_sim_resume(node) == 0);
    CHECK(aco_sim_resume(node) == 0);
    aco_sleep(ACO_SECOND / 4);
    CHECK(ticks == 2 || ticks == 0); /* the timers were due long ago, or they begin now */
    aco_sleep(4 * ACO_SECOND);
    CHECK(ticks == 10 || ticks == 8);
    CHECK(aco_sim_suspend(node) == 0);
    aco_sleep(2 * ACO_SECOND);
    CHECK(aco_sim_crash(node, ACO_SIM_CRASH_ANY) == 0);
    aco_sleep(2 * ACO_SECOND);
    CHECK(aco_sim_suspend(node) < 0);
    CHECK_EQ(errno, ESRCH);
    CHECK(ticks == 10 || ticks == 8);
    CHECK(aco_sim_restart(node) == 0);
    aco_sleep(2 * ACO_SECOND + ACO_SECOND / 2);
    CHECK(ticks == 14 || ticks == 12);
    other = self = aco_sim_node(sim, "b", "10.0.0.2", suspend_self, &self);
    aco_sleep(ACO_SECOND);
    CHECK(self == other);
    CHECK(aco_sim_resume(other) == 0);
    aco_sleep(ACO_SECOND);
    CHECK(self == NULL);
}

static void halt_suspended(aco_sim_t *sim, void *arg)
{
    int ticks = 0;
    (void)arg;
    CHECK(aco_sim_suspend(aco_sim_node(sim, "stopped", "10.0.0.1", tick, &ticks)) == 0);
    (void)aco_park("a tick");
}

/* ---- Clocks ---- */

enum { AT_FIRST = 1000000000 };

static void *read_clock(void *arg)
{
    int64_t *read = arg;
    for (int i = 0; i < 3; i++) {
        aco_sleep(100 * ACO_SECOND);
        read[i] = aco_sim_wall_time(aco_sim_current()) - AT_FIRST * ACO_SECOND;
    }
    return NULL;
}

static void set_clocks(aco_sim_t *sim, void *arg)
{
    int64_t read[3] = {0};
    aco_sim_node_t *node = aco_sim_node(sim, "a", "10.0.0.1", read_clock, read);
    (void)arg;
    CHECK(aco_sim_clock(node, -ACO_SECOND, 0) == 0);
    aco_sleep(150 * ACO_SECOND);
    CHECK(aco_sim_clock(node, 3600 * ACO_SECOND, 1000) == 0);
    aco_sleep(100 * ACO_SECOND);
    CHECK(aco_sim_clock(node, 0, -1000) == 0);
    CHECK_EQ(aco_sim_wall_time(sim), (AT_FIRST + 250) * ACO_SECOND);
    aco_sleep(100 * ACO_SECOND);
    CHECK_EQ(read[0], 99 * ACO_SECOND);
    CHECK_EQ(read[1], 3800 * ACO_SECOND + 50 * ACO_MILLISECOND);
    CHECK_EQ(read[2], 300 * ACO_SECOND - 50 * ACO_MILLISECOND);
    CHECK(aco_sim_clock(node, INT64_MAX, 0) < 0);
    CHECK_EQ(errno, EINVAL);
    CHECK(aco_sim_clock(node, 0, 100001) < 0);
    CHECK_EQ(errno, EINVAL);
    CHECK(aco_sim_clock(NULL, 0, 0) < 0);
    CHECK_EQ(errno, EINVAL);
}

/* ---- At a time ---- */

typedef struct times {
    int64_t began, called[2];
    int n;
} times_t;

static void note_time(aco_sim_t *sim, void *arg)
{
    times_t *times = arg;
    CHECK(sim == aco_sim_current());
    times->called[times->n++] = aco_now() - times->began;
}

static void call_at(aco_sim_t *sim, void *arg)
{
    static times_t times;
    (void)arg;
    memset(&times, 0, sizeof times);
    times.began = aco_now();
    CHECK(aco_sim_at(sim, 10 * ACO_SECOND, note_time, &times) == 0);
    aco_sleep(5 * ACO_SECOND);
    CHECK(aco_sim_at(sim, ACO_SECOND, note_time, &times) == 0);
    aco_task_yield();
    aco_sleep(6 * ACO_SECOND);
    CHECK_EQ(times.n, 2);
    CHECK_EQ(times.called[0], 5 * ACO_SECOND);
    CHECK_EQ(times.called[1], 10 * ACO_SECOND);
    CHECK(aco_sim_at(sim, 20 * ACO_SECOND, note_time, &times) == 0); /* the run lasts so long */
    times.n = 0;
    CHECK(aco_sim_at(sim, -1, note_time, &times) < 0);
    CHECK_EQ(errno, EINVAL);
    CHECK(aco_sim_at(sim, 1, NULL, &times) < 0);
    CHECK_EQ(errno, EINVAL);
    CHECK(aco_sim_at(NULL, 1, note_time, &times) < 0);
    CHECK_EQ(errno, EINVAL);
}

/* ---- The nemesis ---- */

enum { NODES = 3 };

typedef struct follower {
    char name[16], address[24];
    aco_sim_node_t *node;
    int starts;
    int64_t last_wall;
} follower_t;

static int crashes, jumps, gaps, failures; /* in all runs together */

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char byte;
    while (aco_io_read(fd, &byte, 1) == 1 && aco_io_write_all(fd, &byte, 1) == 1)
        ;
    (void)aco_io_close(fd);
    return NULL;
}

static void *watch_clocks(void *arg)
{
    follower_t *follower = arg;
    for (int64_t now = aco_now(), last;; aco_sleep(100 * ACO_MILLISECOND)) {
        int64_t wall = aco_sim_wall_time(aco_sim_current()) - aco_now();
        last = now;
        now = aco_now();
        gaps += now - last > 150 * ACO_MILLISECOND;
        jumps += follower->last_wall && wall != follower->last_wall;
        follower->last_wall = wall;
    }
    return NULL;
}

static void *follow(void *arg)
{
    follower_t *follower = arg;
    int listener = aco_io_listen("tcp", follower->address, "7", NULL), fd;
    crashes += follower->starts++ > 0;
    CHECK(listener >= 0);
    detached(watch_clocks, follower);
    while ((fd = aco_io_accept(listener)) >= 0)
        detached(serve, (void *)(intptr_t)fd);
    return NULL;
}

/* Beats until this time, and then until one is answered. */
static void *lead(void *arg)
{
    const follower_t *follower = arg;
    int64_t until = aco_after(60 * ACO_SECOND);
    int is_answered = 0;
    while (!is_answered || aco_now() < until) {
        aco_scope_t scope;
        int fd;
        CHECK(aco_scope_begin(&scope, aco_after(ACO_SECOND)) == 0);
        fd = aco_io_dial("tcp", follower->address, "7", NULL);
        CHECK(aco_scope_end(&scope) == 0);
        is_answered = fd >= 0;
        while (fd >= 0 && (is_answered = beat(fd)) != 0 && aco_now() < until)
            aco_sleep(ACO_SECOND / 2);
        failures += !is_answered;
        if (fd >= 0)
            CHECK(aco_io_close(fd) == 0);
        aco_sleep(ACO_SECOND / 4);
    }
    CHECK(aco_now() < until + 3 * ACO_SECOND); /* all has healed */
    return NULL;
}

static void begin_followers(aco_sim_t *sim, follower_t *followers)
{
    for (int i = 0; i < NODES; i++) {
        follower_t *f = &followers[i];
        memset(f, 0, sizeof *f);
        snprintf(f->name, sizeof f->name, "f%d", i);
        snprintf(f->address, sizeof f->address, "10.0.0.%d", i + 1);
        f->node = aco_sim_node(sim, f->name, f->address, follow, f);
    }
}

static void lead_under_faults(aco_sim_t *sim, void *arg)
{
    static follower_t followers[NODES];
    aco_group_t group;
    begin_followers(sim, followers);
    CHECK(aco_sim_nemesis(sim, (unsigned)(uintptr_t)arg) == 0);
    CHECK(aco_group_begin(&group, ACO_KEEP_GOING) == 0);
    for (int i = 0; i < NODES; i++)
        CHECK(aco_group_spawn(&group, lead, &followers[i], NULL) != NULL);
    CHECK(aco_group_end(&group) == 0);
}

/* A call without kinds heals at once. */
static void stop_nemesis(aco_sim_t *sim, void *arg)
{
    static follower_t followers[NODES];
    (void)arg;
    begin_followers(sim, followers);
    CHECK(aco_sim_nemesis(sim, ACO_SIM_FAULT_ALL) == 0);
    aco_sleep((int64_t)aco_sim_random(sim, 10 * ACO_SECOND));
    CHECK(aco_sim_nemesis(sim, 0) == 0);
    CHECK(aco_sim_nemesis(sim, 0) == 0);
    aco_sleep(ACO_SECOND / 10);
    for (int i = 0; i < NODES; i++) {
        int fd = aco_io_dial("tcp", followers[i].address, "7", NULL);
        CHECK(aco_sim_node_is_up(followers[i].node));
        CHECK(fd >= 0 && beat(fd));
        CHECK(aco_io_close(fd) == 0);
    }
}

/* It ends with the scenario, and needs no nodes. */
static void leave_nemesis(aco_sim_t *sim, void *arg)
{
    (void)arg;
    CHECK(aco_sim_nemesis(sim, ACO_SIM_FAULT_ALL) == 0);
    aco_sleep(ACO_SECOND);
    CHECK(aco_sim_nemesis(sim, ACO_SIM_FAULT_ALL + 1) < 0);
    CHECK_EQ(errno, EINVAL);
    CHECK(aco_sim_nemesis(NULL, 1) < 0);
    CHECK_EQ(errno, EINVAL);
}

static void passes_with(unsigned faults, uint64_t runs)
{
    crashes = jumps = gaps = failures = 0;
    passes(lead_under_faults, (void *)(uintptr_t)faults, runs);
}

int main(void)
{
    aco_sim_stats_t stats;
    sim_alarm(120);
    passes(suspend, NULL, RUNS);
    passes(set_clocks, NULL, 2);
    passes(call_at, NULL, RUNS);
    passes(leave_nemesis, NULL, RUNS);
    passes(stop_nemesis, NULL, RUNS);
    capture();
    CHECK(aco_sim_run(halt_suspended, NULL, 1, &stats, NULL) != 0);
    CHECK(strstr(release(), "node \"stopped\" is suspended, with 1 tasks") != NULL);
    passes_with(ACO_SIM_FAULT_CRASH, 3);
    CHECK(crashes && failures && !jumps && !gaps);
    passes_with(ACO_SIM_FAULT_SUSPEND, 3);
    CHECK(!crashes && !jumps && gaps);
    passes_with(ACO_SIM_FAULT_PARTITION | ACO_SIM_FAULT_ONE_WAY | ACO_SIM_FAULT_SLOW | ACO_SIM_FAULT_LOSS, 6);
    CHECK(!crashes && failures && !jumps && !gaps);
    passes_with(ACO_SIM_FAULT_CLOCK, 3);
    CHECK(!crashes && !failures && jumps && !gaps);
    passes_with(ACO_SIM_FAULT_ALL, 3);
    return check_result("sim_nemesis");
}
