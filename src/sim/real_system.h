/* real_system.c: the system's table as it was before. */
#ifndef ACO_REAL_SYSTEM_H
#define ACO_REAL_SYSTEM_H

#include "system/system.h"

ACO__HIDDEN_EXTERN aco__system_t aco__sim_real;

#endif
