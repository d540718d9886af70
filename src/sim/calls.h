/* calls.c: what stands in the system's table during a run. */
#ifndef ACO_CALLS_H
#define ACO_CALLS_H

#include "sim/world.h"

/* Puts the stand-ins into the table, once. A thread without a run passes through them. */
ACO__HIDDEN void aco__sim_calls_install(void);
/* Lets the run fail because of the call that it was refused last, if that is still to do. */
ACO__HIDDEN void aco__sim_settle(aco_sim_t *sim);

#endif
