/* The system's table as it was before: what a simulation itself does in the real world. calls.c stores it. */
#include "sim/real_system.h"

aco__system_t aco__sim_real;
