/* seeds.c: runs with one seed after the other. */
#ifndef ACO_SEEDS_H
#define ACO_SEEDS_H

#include "base/invariants.h"
#include "sim/last_words.h"

#include "aco/sim.h"

/* aco_sim_run(). `command`, if not NULL, repeats a seed. */
ACO__HIDDEN int aco__sim_run(ACO__SWITCHES aco_sim_function_t scenario, void *arg, uint64_t runs,
                             aco_sim_stats_t *stats, const aco_sim_options_t *options,
                             const aco__sim_command_t *command);

#endif
