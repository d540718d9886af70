/* Random numbers for the tests: splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA
 * 2014). */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

typedef struct random {
    uint64_t state;
} random_t;

static inline uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static inline uint64_t draw(random_t *r)
{
    return mix(r->state += UINT64_C(0x9e3779b97f4a7c15));
}

static inline unsigned below(random_t *r, unsigned limit)
{
    return (unsigned)(draw(r) % limit);
}

#endif
