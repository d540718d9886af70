#include "base/upcalls.h"

aco__upcalls_t aco__upcalls;
