/* forgotten.c: coroutines that nobody destroys. */
#ifndef ACO_COROUTINE_FORGOTTEN_H
#define ACO_COROUTINE_FORGOTTEN_H

#include "tools/tools.h"

/* `co` was made by code at this address. Does nothing unless aco__notes_spawns. */
ACO__HIDDEN ACO__COLD void aco__made_at(const aco_t *co, const void *address);
/* From now on until it is called with 0: what the calling thread makes may be left behind, and is not reported. Who
 * leaves it says so. */
ACO__HIDDEN void aco__forgotten_expect(int expected);
static inline void aco__made(const aco_t *co, const void *address)
{
#ifdef ACO_CONFIG_LIBACO_ONLY
    (void)co, (void)address;
#else
    if (aco_unlikely(__atomic_load_n(&aco__notes_spawns, __ATOMIC_RELAXED) && co))
        aco__made_at(co, address);
#endif
}

#endif
