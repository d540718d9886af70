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

/* An update is lost if two tasks read the same number. What order does it depends on the schedule alone. */
typedef struct counter {
    int value;
    uint64_t yields;
} counter_t;

static void *count_up(void *arg)
{
    counter_t *counter = arg;
    int old;
    for (uint64_t n = counter->yields; n > 0; n--)
        aco_yield();
    old = counter->value;
    if (old == 3)
        aco_yield();
    counter->value = old + 1;
    return NULL;
}

static void lose_update(aco_sim_t *sim, void *arg)
{
    enum { TASKS = 6 };
    counter_t counter = {0, aco_sim_random(sim, 5)};
    aco_t *tasks[TASKS];
    (void)arg;
    for (int i = 0; i < TASKS; i++)
        tasks[i] = aco_spawn(count_up, &counter, NULL);
    for (int i = 0; i < TASKS; i++)
        aco_join(tasks[i], NULL);
    if (counter.yields && counter.value != TASKS && ACO_MAYBE(0.5)) {
        char reason[64];
        snprintf(reason, sizeof reason, "%d updates are lost", TASKS - counter.value);
        aco_sim_fail(sim, reason);
    }
}

static void die_sometimes(aco_sim_t *sim, void *arg)
{
    uint64_t drawn[20];
    (void)arg;
    for (int i = 0; i < 20; i++)
        drawn[i] = aco_sim_random(sim, 10);
    aco_sleep(ACO_SECOND);
    if (drawn[3] > 4 && drawn[17] < 9)
        abort();
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
    aco_join(spawn_named(park_until_late, sim, arg ? arg : "late"), NULL);
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
    const char *arg;
} scenarios[] = {
    {"money", lose_money, NULL},
    {"late", fail_late, "\"la\\te\"\n\xff"},
    {"order", lose_update, NULL},
    {"death", die_sometimes, NULL},
#ifdef WITH_IO
    {"net", read_short, NULL},
#endif
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static int simulate_for_main(int argc, char **argv)
{
    for (int i = 0; i < SCENARIOS; i++)
        if (strcmp(argv[argc - 1], scenarios[i].name) == 0)
            return aco_sim_main(argc, argv, scenarios[i].fn, NULL, (void *)(uintptr_t)scenarios[i].arg);
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
                                        "0.000000000  task 2 (late): waits to be unparked: a message, until 3.0000",
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

/* ---- A shorter run ---- */

static char path[64];

#ifdef CHILD_SKIPS
static void no_child_is_told(void)
{
    aco_sim_options_t options = {.shrink = path};
    FAILS_WITH(aco_sim_run(lose_money, NULL, 1, NULL, &options), ENOTSUP);
    child_skip(no_child_is_told);
}
#else

static const char *text_of_file(void)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = 0;
    if (file)
        fclose(file);
    return text;
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* The run that was written fails again, with this hash in two processes' worth of memory. */
static void replays(aco_sim_function_t scenario, const char *reason, uint64_t hash, uint64_t most_turns)
{
    aco_sim_options_t options = {.replay = path};
    aco_sim_stats_t stats;
    capture();
    FAILS_WITH(aco_sim_run(scenario, NULL, 1000, &stats, &options), ECANCELED);
    release();
    CHECK_EQ(stats.runs, 1);
    CHECK(strcmp(stats.reason, reason) == 0 && stats.turns <= most_turns);
    CHECK(!hash || stats.hash == hash);
    options.check = 1; /* with other addresses */
    capture();
    FAILS_WITH(aco_sim_run(scenario, NULL, 1000, &stats, &options), ECANCELED);
    release();
    CHECK(strcmp(stats.reason, reason) == 0);
}

static void one_choice_is_left(void)
{
    aco_sim_options_t options = {.shrink = path, .events = 20};
    aco_sim_stats_t stats;
    const char *text = text_of(lose_money, &options, &stats);
    CHECK(strcmp(stats.reason, "money is lost") == 0 && stats.turns > 56);
    CHECK(strstr(text, "choices that are not the simplest: 1 of 1") != NULL);
    CHECK(strstr(text, "task 1: yields 49 times") != NULL); /* the shorter run is shown */
    CHECK(strstr(text_of_file(), "\nscenario: 0x51 7\n") && strstr(text_of_file(), "\norder:\n"));
    replays(lose_money, "money is lost", 0, 55);
}

static void *rest(void *arg)
{
    aco_sleep(1000 * ACO_SECOND);
    return arg;
}

static void *spawn_and_rest(void *arg)
{
    const aco_options_t detached = {.flags = ACO_DETACHED};
    for (int i = 0; i < 3; i++)
        CHECK(aco_spawn(rest, arg, &detached) != NULL);
    return rest(arg);
}

static void fail_beside_a_node(aco_sim_t *sim, void *arg)
{
    aco_sim_node_t *node = aco_sim_node(sim, "a", "10.0.0.1", spawn_and_rest, arg);
    aco_sleep(ACO_SECOND);
    aco_sim_restart(node);
    aco_sleep(ACO_SECOND);
    if (aco_sim_random(sim, 50) == 7)
        aco_sim_fail(sim, "it is 7");
}

/* The tasks that the failed run leaves are none of the repetition's node, which may have the same address. */
static void nodes_begin_anew(void)
{
    aco_sim_options_t options = {.shrink = path};
    aco_sim_stats_t stats;
    const char *text = text_of(fail_beside_a_node, &options, &stats);
    CHECK(strcmp(stats.reason, "it is 7") == 0);
    CHECK(strstr(text, "shortened in ") != NULL);
    replays(fail_beside_a_node, "it is 7", 0, stats.turns);
}

/* The recorded decisions are the run: the same hash, whatever the schedule. */
static void recorded_runs_are_equal(aco_sim_schedule_t schedule)
{
    for (uint64_t seed = 1; seed < 2000; seed += 400) {
        aco_sim_options_t options = {.schedule = schedule, .seed = seed, .turn_ns = 1000};
        aco_sim_stats_t found, again;
        (void)text_of(lose_update, &options, &found);
        options.seed = found.seed;
        capture();
        CHECK_EQ(aco_sim_run(lose_update, NULL, 1, &found, &options), -1);
        options.shrink = path;
        options.attempts = 1; /* it puts 0 for the number of yields, and nothing fails */
        CHECK_EQ(aco_sim_run(lose_update, NULL, 1, &again, &options), -1);
        release();
        CHECK_EQ(found.hash, again.hash);
        replays(lose_update, found.reason, found.hash, found.turns);
        options.attempts = 300;
        capture();
        CHECK_EQ(aco_sim_run(lose_update, NULL, 1, NULL, &options), -1);
        CHECK(strstr(release(), "shortened in") != NULL);
        CHECK(strstr(text_of_file(), "\nrare: 1\n") && strstr(text_of_file(), "\nturns:\n"));
    }
}

static void deaths_are_shortened(void)
{
    aco_sim_options_t options = {.shrink = path, .seed = 3};
    aco_sim_stats_t stats;
    capture();
    while (aco_sim_run(die_sometimes, NULL, 1, &stats, &options) == 0 && options.seed < 100)
        options.seed++;
    release();
    CHECK(strcmp(stats.reason, "the process dies by signal 6") == 0 && stats.seed == options.seed);
    CHECK(strstr(captured_text, "shortened in") != NULL);
    CHECK(strstr(text_of_file(), "\nscenario: 0x3 5\n") != NULL);
}

static void what_cannot_be_shortened(void)
{
    aco_sim_options_t options = {.shrink = "/nowhere/at/all"};
    aco_sim_stats_t stats;
    CHECK(strstr(text_of(lose_money, &options, &stats), "/nowhere/at/all cannot be written: ") != NULL);
    options.shrink = path;
    options.attempts = -1;
    FAILS_WITH(aco_sim_run(lose_money, NULL, 1, NULL, &options), EINVAL);
    options.attempts = 0;
    options.check = 1;
    FAILS_WITH(aco_sim_run(lose_money, NULL, 1, NULL, &options), EINVAL);
    options.check = 0;
    options.replay = path;
    FAILS_WITH(aco_sim_run(lose_money, NULL, 1, NULL, &options), EINVAL);
}

static void refuses(const char *text, const char *why)
{
    aco_sim_options_t options = {.replay = path};
    write_file(text);
    FAILS_WITH(aco_sim_run(lose_money, NULL, 1, NULL, &options), EINVAL);
    if (!strstr(aco_error_message(), why))
        fprintf(stderr, "\"%s\" lacks \"%s\"\n", aco_error_message(), why);
    CHECK(strstr(aco_error_message(), why) != NULL);
}

static void other_files_are_refused(void)
{
    aco_sim_options_t options = {.shrink = path, .attempts = 1};
    aco_sim_stats_t stats;
    char good[1 << 12], bad[1 << 12];
    const char *name;
    (void)text_of(lose_update, &options, &stats);
    snprintf(good, sizeof good, "%s", text_of_file());
    name = strstr(good, "program: ");
    CHECK(name != NULL);
    snprintf(bad, sizeof bad, "%.*sx%s", (int)(name - good) + 9, good, name + 9);
    refuses(bad, "is of another program: \"x");
    refuses("", "is damaged");
    for (size_t n = 0; n < strlen(good) - 4; n += 7) { /* cut anywhere */
        snprintf(bad, sizeof bad, "%.*s", (int)n, good);
        refuses(bad, "is damaged");
    }
    snprintf(bad, sizeof bad, "%.*s 12x%s", (int)(strstr(good, "\nrare:") - good), good, strstr(good, "\nrare:"));
    refuses(bad, "is damaged");
    write_file(good);
    options.shrink = NULL;
    options.replay = path;
    options.seed = stats.seed + 1;
    FAILS_WITH(aco_sim_run(lose_update, NULL, 1, NULL, &options), EINVAL);
    options.seed = stats.seed;
    options.replay = "/nowhere/at/all";
    FAILS_WITH(aco_sim_run(lose_update, NULL, 1, NULL, &options), ENOENT);
}

/* What was mended since. */
static void mended_runs_are_told(void)
{
    aco_sim_options_t options = {.replay = path};
    capture();
    CHECK_EQ(aco_sim_run(lose_money, NULL, 1, NULL, &options), 0); /* it is another scenario's file */
    CHECK(strstr(release(), "does not fail any more; it failed: ") != NULL);
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
    snprintf(path, sizeof path, "/tmp/acorn-sim-failing-%d", (int)getpid());
#ifdef CHILD_SKIPS
    no_child_is_told();
#else
    one_choice_is_left();
    nodes_begin_anew();
    recorded_runs_are_equal(ACO_SIM_RANDOM);
    recorded_runs_are_equal(ACO_SIM_PCT);
    recorded_runs_are_equal(ACO_SIM_FIFO);
    deaths_are_shortened();
    what_cannot_be_shortened();
    other_files_are_refused();
    mended_runs_are_told();
#endif
    unlink(path);
    return check_result("sim_failing");
}
