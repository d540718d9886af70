/* For tests of the simulated network: runs that must pass, and the two ends of a TCP connection. */
#ifndef SIM_ENDS_H
#define SIM_ENDS_H

#include "check.h"
#include "sim_runs.h"

#include "aco/io.h"
#include "aco/sim.h"

/* Each seed does what it did, and nothing is left. */
static inline void passes(aco_sim_function_t scenario, void *arg, uint64_t runs)
{
    aco_sim_options_t o = {0};
    aco_sim_stats_t stats;
    o.check = 1;
    if (aco_sim_run(scenario, arg, sim_runs(runs), &stats, &o) != 0) {
        check_failed_at(__FILE__, __LINE__, "passes");
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)stats.seed, stats.reason);
    }
}

typedef struct ends {
    int listener, client, server;
} ends_t;

static inline void *dial(void *arg)
{
    ends_t *ends = arg;
    ends->client = aco_io_dial("tcp", "127.0.0.1", "80", NULL);
    CHECK(ends->client >= 0);
    return NULL;
}

static inline ends_t connect_ends(void)
{
    ends_t ends;
    aco_t *dialler;
    ends.listener = aco_io_listen("tcp", "127.0.0.1", "80", NULL);
    dialler = aco_spawn(dial, &ends, NULL);
    ends.server = aco_io_accept(ends.listener);
    CHECK(ends.listener >= 0 && ends.server >= 0 && aco_join(dialler, NULL) == 0);
    return ends;
}

static inline void close_ends(const ends_t *ends)
{
    CHECK(aco_io_close(ends->listener) == 0);
    CHECK(ends->client < 0 || aco_io_close(ends->client) == 0);
    CHECK(ends->server < 0 || aco_io_close(ends->server) == 0);
}

#endif
