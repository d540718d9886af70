/* An empty round trip: the cost of the loop itself. */
typedef char flat_t;

static char *flat_start(void)
{
    static char nothing;
    return &nothing;
}

static inline void flat_round_trip(char *nothing)
{
    __asm__ volatile("" : "+r"(nothing));
}

#include "flat.h"
