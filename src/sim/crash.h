/* crash.c: nodes crash and start again. */
#ifndef ACO_CRASH_H
#define ACO_CRASH_H

#include "os/platform.h"

#include "aco/sim.h"

/* Between turns: lets nodes crash and start that are to. If the scenario's tasks have ended, all nodes end as in a
 * crash. Returns whether something has changed. */
ACO__HIDDEN int aco__sim_nodes_settle(aco_sim_t *sim);
/* After a crash, at the run's end: destroys tasks that have ended, which nobody joins any more, among `live` coroutines
 * of the thread. */
ACO__HIDDEN void aco__sim_nodes_bury(size_t live);

#endif
