/* Chance in pauses: what many clients do at once after a failure, they shall not do at once again. */
#ifndef ACO_JITTER_H
#define ACO_JITTER_H

#include "base/invariants.h"
#include "system/system.h"

/* A random time of 0 to `most`, in a simulated run from its seed. A system without random numbers: the middle. */
static inline int64_t aco__jitter(int64_t most)
{
    uint64_t x;
    ACO__ASSERT(most >= 0);
    if (aco__system.getrandom(&x, sizeof x, 0) != (ssize_t)sizeof x)
        return most / 2;
    return (int64_t)((x >> 1) % ((uint64_t)most + 1));
}

/* The pause before a retry: a random one up to *pause, which is at most `limit` and doubles for the next retry. */
static inline int64_t aco__back_off(int64_t *pause, int64_t limit)
{
    const int64_t most = *pause < limit ? *pause : limit;
    *pause = most < INT64_MAX / 2 ? 2 * most : most;
    return aco__jitter(most);
}

#endif
