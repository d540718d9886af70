/* operations.c: histories of operations (aco/sim.h). */
#ifndef ACO_OPERATIONS_H
#define ACO_OPERATIONS_H

#include "base/invariants.h"

#include "aco/sim.h"

/* The run is over: its histories are complete, and their handles end. */
ACO__HIDDEN void aco__sim_histories_end(aco_sim_t *sim);

#endif
