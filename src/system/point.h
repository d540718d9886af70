/* Points: where the order of threads decides, as before an object between threads is locked, or between a look and the
 * wait that it leads to. A simulation lets another thread go on there (src/sim/baton.c). Without one, a point is the
 * look at a variable. system.c defines that. */
#ifndef ACO_POINT_H
#define ACO_POINT_H

#include "os/platform.h"

#ifdef __linux__
/* NULL: the process has not simulated. errno stays. */
typedef void (*aco__point_fn_t)(void);
ACO_API extern aco__point_fn_t aco__point;
#define ACO__POINT() (aco_unlikely(aco__point != NULL) ? aco__point() : (void)0)
/* Whether other threads may stand still while this one goes on: it must not wait in a loop that only looks. */
#define ACO__HAS_POINTS() aco_unlikely(aco__point != NULL)
#else
#define ACO__POINT() ((void)0)
#define ACO__HAS_POINTS() 0
#endif

#endif
