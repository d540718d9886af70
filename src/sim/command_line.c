/* aco_sim_main(): options of the command line, what happened, and the command that repeats a failure. */
#define _GNU_SOURCE /* clock_gettime() under -std=c11 */
#include "sim/seeds.h"
#include "sim/decision_file.h"
#include "sim/schedule.h"

#include "system/system.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 1000, EVENTS = 20, FAILED = 1, MISUSED = 2 };

typedef struct command_line {
    aco__sim_command_t command; /* first */
    const char *program;
    char identity[ACO__SIM_PROGRAM]; /* the program's name and its own arguments, as far as there is room */
    char **own; /* arguments, behind "--"; NULL: there are none */
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
    "  --turn-ns N      each turn takes up to N nanoseconds (0)\n"
    "  --max-turns N    a run with more turns fails (10000000)\n"
    "  --events N       after a failure, print the run's last N events (20)\n"
    "  --trace FILE     write a trace of the run, or of the one that fails, for Perfetto\n"
    "  --shrink FILE    after a failure, search a shorter run that fails, and write it to FILE (-: stdout)\n"
    "  --attempts N     --shrink: make at most N runs (1000)\n"
    "  --replay FILE    make the run that --shrink has written\n"
    "  --check          run each seed twice, and compare\n"
    "  -- ARGUMENT...   the program's own arguments\n";

/* ---- The command that repeats a failure ---- */

static void put(const char *text, size_t n)
{
    (void)!aco__system.write(2, text, n);
}

/* As one word for a shell. */
static void put_word(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-./:=,@%");
    if (n && !text[n]) {
        put(text, n);
        return;
    }
    put("'", 1);
    for (; n = strcspn(text, "'"), text[n]; text += n + 1) {
        put(text, n);
        put("'\\''", 4);
    }
    put(text, n);
    put("'", 1);
}

/* Not if it is the usual number. */
static void put_number(const char *option, uint64_t number, uint64_t usual)
{
    char text[64];
    if (number != usual)
        put(text, (size_t)snprintf(text, sizeof text, " --%s %" PRIu64, option, number));
}

static void put_options(const aco_sim_options_t *o, uint64_t seed)
{
    ACO__ASSERT((int)o->schedule < SCHEDULES);
    put_number("seed", seed, 0);
    if (o->schedule) {
        put(" --schedule ", sizeof " --schedule " - 1);
        put_word(schedules[o->schedule]);
    }
    put_number("changes", (uint64_t)o->changes, 0);
    put_number("turn-ns", (uint64_t)o->turn_ns, 0);
    put_number("max-turns", o->max_turns, 0);
}

static void print_command(const aco__sim_command_t *command, uint64_t seed, const char *replay)
{
    const command_line_t *line = (const command_line_t *)(const void *)command;
    put("repeat it with: ", sizeof "repeat it with: " - 1);
    put_word(line->program);
    if (replay) {
        put(" --replay ", sizeof " --replay " - 1);
        put_word(replay);
    } else {
        put_options(&line->options, seed);
    }
    put_number("events", (uint64_t)line->options.events, EVENTS);
    if (line->options.check)
        put(" --check", sizeof " --check" - 1);
    if (line->own)
        put(" --", 3);
    for (char **word = line->own; word && *word; word++) {
        put(" ", 1);
        put_word(*word);
    }
    put("\n", 1);
}

/* ---- Reading the options ---- */

/* A number from `least` to `most`. Returns what is wrong, as the next ones; NULL: nothing. */
static const char *read_number(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
    char *end = NULL;
    errno = 0;
    if (!text || *text < '0' || *text > '9')
        return "a number must follow";
    *number = strtoull(text, &end, 10);
    return *end || errno || *number < least || *number > most ? "the number is out of range" : NULL;
}

static const char *read_int(const char *text, uint64_t least, uint64_t most, int *result)
{
    uint64_t number = 0;
    const char *wrong = read_number(text, least, most, &number);
    *result = (int)number;
    return wrong;
}

static const char *read_path(const char *text, const char **path)
{
    *path = text;
    return text && *text ? NULL : "a file must follow";
}

static const char *read_schedule(const char *text, aco_sim_schedule_t *schedule)
{
    for (int i = 0; text && i < SCHEDULES; i++)
        if (strcmp(text, schedules[i]) == 0) {
            *schedule = (aco_sim_schedule_t)i;
            return NULL;
        }
    return "mixed, random, pct or fifo must follow";
}

static const char *read_option(command_line_t *line, const char *option, const char *value)
{
    uint64_t number = 0;
    if (strcmp(option, "--runs") == 0) {
        line->has_runs = 1;
        return read_number(value, 1, UINT64_MAX, &line->runs);
    }
    if (strcmp(option, "--seed") == 0) {
        line->has_seed = 1;
        return read_number(value, 1, UINT64_MAX, &line->options.seed);
    }
    if (strcmp(option, "--schedule") == 0)
        return read_schedule(value, &line->options.schedule);
    if (strcmp(option, "--max-turns") == 0)
        return read_number(value, 1, UINT64_MAX, &line->options.max_turns);
    if (strcmp(option, "--changes") == 0)
        return read_int(value, 1, ACO__SIM_MOST_CHANGES, &line->options.changes);
    if (strcmp(option, "--turn-ns") == 0) {
        const char *wrong = read_number(value, 1, ACO_SECOND, &number);
        line->options.turn_ns = (int64_t)number;
        return wrong;
    }
    if (strcmp(option, "--shrink") == 0)
        return read_path(value, &line->options.shrink);
    if (strcmp(option, "--trace") == 0)
        return read_path(value, &line->options.trace);
    if (strcmp(option, "--replay") == 0)
        return read_path(value, &line->options.replay);
    if (strcmp(option, "--attempts") == 0)
        return read_int(value, 1, INT_MAX, &line->options.attempts);
    if (strcmp(option, "--events") == 0)
        return read_int(value, 0, ACO__SIM_MOST_EVENTS, &line->options.events);
    return "the option is unknown; --help lists all";
}

static void identify(command_line_t *line)
{
    const char *slash = strrchr(line->program, '/');
    size_t n = 0;
    n += (size_t)snprintf(line->identity, sizeof line->identity, "%s", slash ? slash + 1 : line->program);
    for (char **word = line->own; word && *word && n < sizeof line->identity; word++)
        n += (size_t)snprintf(line->identity + n, sizeof line->identity - n, " %s", *word);
    for (char *at = line->identity; *at; at++)
        if (iscntrl((unsigned char)*at)) /* a line of a file has none */
            *at = ' ';
    line->command.program = line->identity;
}

static int read_line(command_line_t *line, int argc, char **argv)
{
    for (int i = 1; i < argc && !line->own; i++) {
        const char *wrong = NULL;
        if (strcmp(argv[i], "--check") == 0)
            line->options.check = 1;
        else if (strcmp(argv[i], "--help") == 0)
            line->wants_help = 1;
        else if (strcmp(argv[i], "--") == 0)
            line->own = &argv[i + 1];
        else if ((wrong = read_option(line, argv[i], argv[i + 1])) == NULL)
            i++;
        if (wrong) {
            fprintf(stderr, "%s: %s: %s\n", line->program, argv[i], wrong);
            return -1;
        }
    }
    if ((line->has_seed && !line->has_runs) || line->options.replay)
        line->runs = 1;
    identify(line);
    return 0;
}

/* ---- What happened ---- */

static double seconds_now(void)
{
    struct timespec now = {0, 0};
    aco__system.clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_stats(const aco_sim_stats_t *stats, const aco_sim_options_t *options, double seconds)
{
    uint64_t first = options->seed ? options->seed : 1;
    if (options->replay)
        printf("the run of %s", options->replay);
    else
        printf("%" PRIu64 " runs, seeds %" PRIu64 " to %" PRIu64, stats->runs, first, first + stats->runs - 1);
    printf(": %" PRIu64 " turns, %.6g s of virtual time in %.2f s; hash %016" PRIx64 "\n", stats->turns,
           (double)stats->simulated_ns / 1e9, seconds, stats->hash);
}

int aco_sim_main(int argc, char **argv, aco_sim_function_t scenario, aco_sim_function_t invariants, void *arg)
{
    command_line_t line = {{print_command, NULL}, argc > 0 ? argv[0] : "the program", "", NULL, RUNS, 0, 0, 0, {0}};
    aco_sim_stats_t stats;
    double began;
    int status;
    line.options.events = EVENTS;
    if (read_line(&line, argc, argv) != 0)
        return MISUSED;
    if (line.wants_help) {
        printf("usage: %s [OPTION]... [-- ARGUMENT...]\n%s", line.program, help);
        return 0;
    }
    line.options.invariants = invariants;
    began = seconds_now();
    status = aco__sim_run(scenario, arg, line.runs, &stats, &line.options, &line.command) == 0 ? 0 : FAILED;
    if (status && !stats.seed) {
        status = errno == EINVAL ? MISUSED : FAILED;
        fprintf(stderr, "%s: %s\n", line.program, aco_error_message());
    }
    if (stats.runs)
        print_stats(&stats, &line.options, seconds_now() - began);
    return status;
}
