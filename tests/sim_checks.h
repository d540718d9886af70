/* For tests whose scenarios pass, or fail by a reason: each seed runs twice and does the same. */
#ifndef SIM_CHECKS_H
#define SIM_CHECKS_H

#include <aco/sim.h>
#include "capture.h"
#include "check.h"
#include "sim_runs.h"

#include <string.h>

static inline aco_t *detached(aco_function_t fn, void *arg)
{
    aco_options_t options = {0};
    options.flags = ACO_DETACHED;
    return aco_spawn(fn, arg, &options);
}

static inline int is_in(const char *text, const char *part)
{
    if (strstr(text, part))
        return 1;
    fprintf(stderr, "\"%s\", not \"%s\"\n", text, part);
    return 0;
}

static inline int run_twice(aco_sim_function_t scenario, void *arg, uint64_t runs, aco_sim_stats_t *stats)
{
    aco_sim_options_t o = {0};
    o.check = 1;
    memset(stats, 0, sizeof *stats); /* of wrong options it tells nothing */
    return aco_sim_run(scenario, arg, runs, stats, &o);
}

static inline void check_passes(const char *name, aco_sim_function_t scenario, void *arg, uint64_t runs)
{
    aco_sim_stats_t stats;
    if (run_twice(scenario, arg, runs, &stats) == 0)
        return;
    check_failed_at(__FILE__, __LINE__, name);
    fprintf(stderr, "seed %llu: %s\n", (unsigned long long)stats.seed, stats.reason);
}

/* As often as the night has it (sim_runs.h). */
static inline void passes(aco_sim_function_t scenario, void *arg, uint64_t runs)
{
    check_passes("passes", scenario, arg, sim_runs(runs));
}

static inline void check_fails_by(const char *name, aco_sim_function_t scenario, void *arg, uint64_t runs,
                                  const char *reason)
{
    aco_sim_stats_t stats;
    capture();
    (void)run_twice(scenario, arg, runs, &stats);
    release();
    if (!is_in(stats.reason, reason))
        check_failed_at(__FILE__, __LINE__, name);
}

#endif
