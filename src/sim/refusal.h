/* refusal.c: calls to the system that are not simulated. */
#ifndef ACO_REFUSAL_H
#define ACO_REFUSAL_H

#include "sim/world.h"

/* The run fails, because of this call. Returns the error for its caller, ENOSYS. */
ACO__HIDDEN ACO__COLD int aco__sim_refuse(aco_sim_t *sim, const char *call);

#endif
