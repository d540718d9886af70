/* aco_sim_main(): options of the command line, what happened, and the command that repeats a failure. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* clock_gettime() under -std=c11 */
#endif
#include "sim/seeds.h"

#include "system/system.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 1000, FAILED = 1, MISUSED = 2 };

typedef struct command_line {
    uint64_t runs;
    int has_runs, has_seed, wants_help;
    aco_sim_options_t options;
} command_line_t;

static const char *const schedules[] = {"mixed", "random", "pct", "fifo"}; /* by aco_sim_schedule_t */
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

static const char help[] =
    "  --runs N         run N seeds (1000)\n"
    "  --seed N         begin with this seed (1); without --runs, run only this one\n"
    "  --schedule NAME  mixed, random, pct or fifo (mixed)\n"
    "  --changes N      pct: at most so many changes of priorities (3)\n"
    "  --turn N         each turn takes up to N nanoseconds (0)\n"
    "  --turns N        a run with more turns fails (10000000)\n"
    "  --check          run each seed twice, and compare\n";

/* The options that a failure's command repeats. */
static const char *program;
static const command_line_t *given;

static void tell_command(uint64_t seed)
{
    const aco_sim_options_t *o = &given->options;
    char text[512];
    int n = snprintf(text, sizeof text, "repeat it with: %.200s --seed %" PRIu64, program, seed), sz = (int)sizeof text;
    if (o->schedule)
        n += snprintf(text + n, (size_t)(sz - n), " --schedule %s", schedules[o->schedule]);
    if (o->changes)
        n += snprintf(text + n, (size_t)(sz - n), " --changes %d", o->changes);
    if (o->turn_ns)
        n += snprintf(text + n, (size_t)(sz - n), " --turn %" PRId64, o->turn_ns);
    if (o->max_turns)
        n += snprintf(text + n, (size_t)(sz - n), " --turns %" PRIu64, o->max_turns);
    if (o->check)
        n += snprintf(text + n, (size_t)(sz - n), " --check");
    n += snprintf(text + n, (size_t)(sz - n), "\n");
    (void)!aco__system.write(2, text, (size_t)n);
}

/* ---- Reading the options ---- */

static int complain(const char *what, const char *option)
{
    fprintf(stderr, "%s: %s: %s\n", program, option, what);
    return -1;
}

/* A number from 1 to `most`. */
static int read_number(const char *option, const char *text, uint64_t most, uint64_t *number)
{
    char *end = NULL;
    errno = 0;
    if (!text || *text < '0' || *text > '9')
        return complain("a number must follow", option);
    *number = strtoull(text, &end, 10);
    if (*end || errno || *number == 0 || *number > most)
        return complain("the number is out of range", option);
    return 0;
}

static int read_schedule(const char *option, const char *text, aco_sim_schedule_t *schedule)
{
    for (int i = 0; text && i < SCHEDULES; i++)
        if (strcmp(text, schedules[i]) == 0) {
            *schedule = (aco_sim_schedule_t)i;
            return 0;
        }
    return complain("mixed, random, pct or fifo must follow", option);
}

/* Reads an option with its value: 0, or -1. */
static int read_option(command_line_t *line, const char *option, const char *value)
{
    uint64_t number = 0;
    int failed = 0;
    if (strcmp(option, "--runs") == 0) {
        line->has_runs = 1;
        return read_number(option, value, INT64_MAX, &line->runs);
    }
    if (strcmp(option, "--seed") == 0) {
        line->has_seed = 1;
        return read_number(option, value, INT64_MAX, &line->options.seed);
    }
    if (strcmp(option, "--schedule") == 0)
        return read_schedule(option, value, &line->options.schedule);
    if (strcmp(option, "--turns") == 0)
        return read_number(option, value, INT64_MAX, &line->options.max_turns);
    if (strcmp(option, "--changes") == 0) {
        failed = read_number(option, value, 64, &number);
        line->options.changes = (int)number;
    } else if (strcmp(option, "--turn") == 0) {
        failed = read_number(option, value, ACO_SECOND, &number);
        line->options.turn_ns = (int64_t)number;
    } else {
        failed = complain("the option is unknown; --help lists all", option);
    }
    return failed;
}

static int read_line(command_line_t *line, int argc, char **argv)
{
    line->runs = RUNS;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--check") == 0)
            line->options.check = 1;
        else if (strcmp(argv[i], "--help") == 0)
            line->wants_help = 1;
        else if (read_option(line, argv[i], argv[i + 1]) != 0)
            return -1;
        else
            i++;
    }
    if (line->has_seed && !line->has_runs)
        line->runs = 1;
    return 0;
}

/* ---- What happened ---- */

static double seconds_now(void)
{
    struct timespec now = {0, 0};
    aco__system.clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_stats(const aco_sim_stats_t *stats, uint64_t first, double seconds)
{
    printf("%" PRIu64 " runs, seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " turns, %.6g s of virtual time in %.2f s; "
           "hash %016" PRIx64 "\n", stats->runs, first, first + stats->runs - 1, stats->turns,
           (double)stats->simulated_ns / 1e9, seconds, stats->hash);
}

int aco_sim_main(int argc, char **argv, aco_sim_function_t scenario, aco_sim_function_t invariants, void *arg)
{
    command_line_t line;
    aco_sim_stats_t stats;
    double began;
    int done;
    memset(&line, 0, sizeof line);
    program = argc > 0 ? argv[0] : "the program";
    if (read_line(&line, argc, argv) != 0)
        return MISUSED;
    if (line.wants_help) {
        printf("usage: %s [OPTION]...\n%s", program, help);
        return 0;
    }
    given = &line;
    line.options.invariants = invariants;
    began = seconds_now();
    done = aco__sim_run(scenario, arg, line.runs, &stats, &line.options, tell_command);
    if (done != 0 && !stats.seed)
        fprintf(stderr, "%s: %s\n", program, aco_error_message());
    if (stats.runs)
        print_stats(&stats, line.options.seed ? line.options.seed : 1, seconds_now() - began);
    given = NULL;
    return done == 0 ? 0 : FAILED;
}
