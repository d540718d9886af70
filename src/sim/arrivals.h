/* arrivals.c: what is on its way in the simulated network, and when it arrives. */
#ifndef ACO_ARRIVALS_H
#define ACO_ARRIVALS_H

#include "sim/opened.h"

typedef struct aco__sim_arrival {
    int64_t at;                 /* nanoseconds since the run's begin */
    uint64_t number;            /* the order of those with one time */
    void (*fn)(aco_sim_t *sim, aco__sim_file_t *file, uint64_t value);
    aco__sim_file_t *file;      /* it is held */
    uint64_t value;
} aco__sim_arrival_t;

typedef struct aco__sim_arrivals {
    aco__sim_arrival_t *heap;   /* the first one is at the top */
    size_t n, room;
    uint64_t numbers;
    uint64_t draws;             /* the state of the network's random numbers */
} aco__sim_arrivals_t;

ACO__HIDDEN void aco__sim_arrivals_begin(aco_sim_t *sim, uint64_t seed);
ACO__HIDDEN void aco__sim_arrivals_end(aco_sim_t *sim);
/* Calls fn(sim, file, value) at that time. Then sim->now is that time, although the run may be later. */
ACO__HIDDEN void aco__sim_later(aco_sim_t *sim, int64_t at, void (*fn)(aco_sim_t *, aco__sim_file_t *, uint64_t),
                                aco__sim_file_t *file, uint64_t value);
/* Lets arrive what has arrived by now. */
ACO__HIDDEN void aco__sim_arrive(aco_sim_t *sim);
/* A number from 0 up to and without `limit`, which the seed decides. 0 is the simplest choice: aco__sim_decide(). */
ACO__HIDDEN uint64_t aco__sim_chance(aco_sim_t *sim, uint64_t limit);
/* 1 in one of `n` cases; else 0, the simplest choice. */
ACO__HIDDEN int aco__sim_one_in(aco_sim_t *sim, uint64_t n);

#endif
