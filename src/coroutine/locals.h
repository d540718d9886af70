/* locals.c: names and local values. */
#ifndef ACO_COROUTINE_LOCALS_H
#define ACO_COROUTINE_LOCALS_H

#include "tools/tools.h"

ACO__HIDDEN void aco__name(aco__cold_t *cold, const char *name);
/* Clears the slot and the values of a coroutine that is restarted. */
ACO__HIDDEN void aco__cold_clear(aco_t *co);
/* Calls the destructors of the keys. */
ACO__HIDDEN void aco__values_destroy(aco__cold_t *cold);

#endif
