/* Acorn's resume and yield. */
#define ACO_CONFIG_SHARE_FPU_MXCSR_ENV
#include <aco.h>

typedef aco_t flat_t;

static void *entry(void *argument)
{
    for (;;)
        aco_yield();
    return argument;
}

static aco_t *flat_start(void)
{
    return aco_new(entry, NULL, NULL);
}

static inline void flat_round_trip(aco_t *co)
{
    aco_resume(co);
}

#include "flat.h"
