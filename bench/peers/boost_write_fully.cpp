// write_fully() on Boost.Context's fibers.
#define TASKS_BOOST
#include "../write_fully.c"
