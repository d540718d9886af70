/* The table of upcalls; the layers above fill it. */
#include "base/upcalls.h"

aco__upcalls_t aco__upcalls;
