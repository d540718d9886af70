/* nemesis.c: faults that a run draws. */
#ifndef ACO_NEMESIS_H
#define ACO_NEMESIS_H

#include "os/platform.h"

#include "aco/sim.h"

ACO__HIDDEN void aco__sim_nemesis_end(aco_sim_t *sim);

#endif
