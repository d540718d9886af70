/* crash.c: nodes crash and start again. */
#ifndef ACO_CRASH_H
#define ACO_CRASH_H

#include "os/platform.h"

#include "aco/sim.h"

/* Between turns: lets nodes crash and start that are to. If the scenario's tasks have ended, all nodes end as in a
 * crash. Returns whether something has changed. */
ACO__HIDDEN int aco__sim_nodes_settle(aco_sim_t *sim);

#endif
