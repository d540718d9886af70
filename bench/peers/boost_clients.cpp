// The clients on Boost.Context's fibers.
#define TASKS_BOOST
#include "../clients/clients.c"
