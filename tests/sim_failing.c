/* What a failing run tells (src/sim): its last events, a shorter run that fails, its trace. With arguments it is the
 * program whose runs fail: aco_sim_main(), and behind "--" the name of the scenario. */
#include "capture.h"
#include "check.h"
#include "child.h"

#include <aco/sim.h>
#ifdef WITH_IO
#include <aco/io.h>
#endif

#include <errno.h>
#include <stdint.h>
#include <string.h>

static aco_t *spawn_named(aco_function_t fn, void *arg, const char *name)
{
    aco_options_t options = {0};
    options.name = name;
    return aco_spawn(fn, arg, &options);
}

/* ---- Scenarios ---- */

/* Money is lost if the second deposit comes between the first one's read and its write. */
static void *deposit(void *balance)
{
    int old = *(int *)balance;
    aco_sleep(ACO_SECOND);
    *(int *)balance = old + 1;
    return NULL;
}

static void lose_money(aco_sim_t *sim, void *arg)
{
    int balance = 0;
    aco_t *first = spawn_named(deposit, &balance, "first");
    (void)arg;
    for (uint64_t n = 50 + aco_sim_random(sim, 100); n > 0; n--) /* what has nothing to do with it */
        aco_sleep((int64_t)aco_sim_random(sim, 1000));
    if (aco_sim_random(sim, 20) == 7)
        aco_sleep(ACO_SECOND / 2);
    else
        aco_sleep(2 * ACO_SECOND);
    deposit(&balance);
    aco_join(first, NULL);
    if (balance != 2)
        aco_sim_fail(sim, "money is lost");
}

static void *park_until_late(void *arg)
{
    CHECK(aco_park_until("a message", aco_now() + 3 * ACO_SECOND) == -1 && errno == ETIMEDOUT);
    aco_yield();
    aco_yield();
    aco_sim_fail(arg, "on purpose");
    return NULL;
}

static void fail_late(aco_sim_t *sim, void *arg)
{
    (void)arg;
    aco_join(spawn_named(park_until_late, sim, "late"), NULL);
}

#ifdef WITH_IO
static void *answer_one(void *listener)
{
    int fd = aco_io_accept((int)(intptr_t)listener);
    char byte;
    while (aco_io_read(fd, &byte, 1) == 1)
        aco_io_write_all(fd, &byte, 1);
    aco_io_close(fd);
    return NULL;
}

static void read_short(aco_sim_t *sim, void *arg)
{
    int listener = aco_io_listen("tcp", "10.0.0.1", "7", NULL), fd;
    aco_t *server = spawn_named(answer_one, (void *)(intptr_t)listener, "server");
    char got[6] = "";
    (void)arg;
    fd = aco_io_dial("tcp", "10.0.0.1", "7", NULL);
    aco_io_write_all(fd, "hello", 5);
    if (aco_io_read(fd, got, 5) != 5)
        aco_sim_fail(sim, "the answer is short");
    aco_io_close(fd);
    aco_join(server, NULL);
    aco_io_close(listener);
}
#endif

static const struct {
    const char *name;
    aco_sim_function_t fn;
} scenarios[] = {
    {"money", lose_money},
    {"late", fail_late},
#ifdef WITH_IO
    {"net", read_short},
#endif
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static int simulate_for_main(int argc, char **argv)
{
    for (int i = 0; i < SCENARIOS; i++)
        if (strcmp(argv[argc - 1], scenarios[i].name) == 0)
            return aco_sim_main(argc, argv, scenarios[i].fn, NULL, NULL);
    fprintf(stderr, "the last argument must name a scenario\n");
    return 2;
}

/* ---- Last events ---- */

static const char *text_of(aco_sim_function_t scenario, const aco_sim_options_t *options, aco_sim_stats_t *stats)
{
    capture();
    CHECK_EQ(aco_sim_run(scenario, NULL, 1000, stats, options), -1);
    return release();
}

static int has_lines(const char *text, const char *const *lines)
{
    for (; *lines; text = strstr(text, *lines++))
        if (!strstr(text, *lines)) {
            fprintf(stderr, "\"%s\" is not in, or not behind the one before:\n%s", *lines, captured_text);
            return 0;
        }
    return 1;
}

static void last_events_are_told(void)
{
    static const char *const lines[] = {"acorn: simulation: seed 1: on purpose\n",
                                        "its last events, 5 of 5, with seconds since its begin:\n",
                                        "0.000000000  task 1: waits to join a task: late\n",
                                        "0.000000000  task 2 (late): waits to be unparked: a message, until 3.000000000",
                                        "3.000000000  task 2 (late): goes on: its deadline has come\n",
                                        "3.000000000  task 2 (late): yields 2 times\n",
                                        "3.000000000  task 2 (late): the run fails: on purpose\n", NULL};
    aco_sim_options_t options = {.events = 20};
    aco_sim_stats_t with, without;
    CHECK(has_lines(text_of(fail_late, &options, &with), lines));
    options.events = 0;
    CHECK(!strstr(text_of(fail_late, &options, &without), "last events"));
    CHECK_EQ(with.hash, without.hash);
    options.events = 2;
    CHECK(strstr(text_of(fail_late, &options, &with), "its last events, 2 of 5,") != NULL);
    CHECK(strstr(captured_text, "yields 2 times") && !strstr(captured_text, "deadline"));
    options.events = -1;
    FAILS_WITH(aco_sim_run(fail_late, NULL, 1, NULL, &options), EINVAL);
    options.events = 100001;
    FAILS_WITH(aco_sim_run(fail_late, NULL, 1, NULL, &options), EINVAL);
}

#ifdef WITH_IO
static void network_is_told(void)
{
    static const char *const lines[] = {"listens at 10.0.0.1:7 by socket ", "connects socket ", " to 10.0.0.1:7\n",
                                        "is connected\n", "sends 5 bytes to 10.0.0.1:7 by socket ",
                                        "task 2 (server): receives 1 byte from 10.0.0.1:", " arrives at socket ",
                                        "the run fails: the answer is short\n", NULL};
    aco_sim_options_t options = {.events = 1000};
    aco_sim_stats_t with, without;
    CHECK(has_lines(text_of(read_short, &options, &with), lines));
    options.events = 0;
    (void)text_of(read_short, &options, &without);
    CHECK_EQ(with.hash, without.hash);
}
#endif

#ifndef CHILD_SKIPS
static void die_in_run(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    aco_sleep(ACO_SECOND);
    abort();
}

static void run_that_dies(void)
{
    aco_sim_options_t options = {.events = 5};
    (void)aco_sim_run(die_in_run, NULL, 1, NULL, &options);
}

static void deaths_tell_events(void)
{
    child_end_t end = child_run(run_that_dies);
    CHECK(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT);
    CHECK(strstr(end.text, "its last events, 1 of 1") && strstr(end.text, "task 1: waits for time to pass, until 1.0"));
}
#endif

int main(int argc, char **argv)
{
    if (argc > 1)
        return simulate_for_main(argc, argv);
    last_events_are_told();
#ifdef WITH_IO
    network_is_told();
#endif
#ifndef CHILD_SKIPS
    deaths_tell_events();
#endif
    return check_result("sim_failing");
}
