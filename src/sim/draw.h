/* Random numbers that a seed decides. */
#ifndef ACO_DRAW_H
#define ACO_DRAW_H

#include <stdint.h>

/* Mixes the bits of a number, so that similar ones get different results (the finaliser of SplitMix64). */
static inline uint64_t aco__mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The next number of the sequence (SplitMix64). */
static inline uint64_t aco__draw(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return aco__mix(*state);
}

/* 1 with this chance, from 0 to 1. */
static inline int aco__draw_chance(uint64_t *state, double chance)
{
    const int bits = 53; /* what a double holds */
    return (double)(aco__draw(state) >> (64 - bits)) < chance * (double)((uint64_t)1 << bits);
}

/* A number below `limit`, which is not 0. The first numbers are more likely by a part in 2^64 / limit. */
static inline uint64_t aco__draw_below(uint64_t *state, uint64_t limit)
{
    return aco__draw(state) % limit;
}

/* What aco_sim_link() and aco_sim_disk() take. */
static inline int aco__sim_is_chance(double chance)
{
    return chance >= 0 && chance <= 1; /* not so for a NaN */
}

#endif
