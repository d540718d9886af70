/* calls.c: what stands in the system's table during a run. */
#ifndef ACO_CALLS_H
#define ACO_CALLS_H

#include "sim/world.h"

/* Puts the stand-ins into the table, once. A thread without a run passes through them. */
ACO__HIDDEN void aco__sim_calls_install(void);

#endif
