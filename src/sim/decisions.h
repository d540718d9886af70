/* decisions.c: what a run decides at random, as lists: to record it, and to repeat it with other choices.
 *
 * A choice is a number, and 0 is the simplest one: the task that has waited longest, the shortest delay, the way that
 * is usual. Beyond the end of a list all are 0. Each source has a list of its own: so one choice less of one kind
 * leaves the others in their places. */
#ifndef ACO_DECISIONS_H
#define ACO_DECISIONS_H

#include "os/platform.h"

#include <stdint.h>

typedef enum aco__sim_source {
    ACO__SIM_ORDER,    /* which task has the next turn: how many of those that can run came before it */
    ACO__SIM_TURNS,    /* how long a turn takes, with `turn_ns` */
    ACO__SIM_NETWORK,  /* latencies, lengths, sizes, ports; and whether something rare happens there */
    ACO__SIM_SCENARIO, /* aco_sim_random() */
    ACO__SIM_RARE,     /* ACO_MAYBE() */
    ACO__SIM_FAULTS,   /* what is done to the system: losses, crashes, the nemesis */
    ACO__SIM_DISK,     /* how long the disks take, their faults, and what a crash leaves */
    ACO__SIM_THREADS,  /* which thread goes on: how many of those that can come before it, from the running one on */
    ACO__SIM_SOURCES
} aco__sim_source_t;

typedef struct aco__sim_choices {
    uint64_t *values;
    size_t n, room;     /* room: for recording */
    size_t used;        /* how many the run has asked for. More than `room`: the rest is not recorded */
} aco__sim_choices_t;

typedef struct aco__sim_decisions {
    int replays;        /* else it records */
    aco__sim_choices_t of[ACO__SIM_SOURCES];
} aco__sim_decisions_t;

/* The names of sources in files. */
ACO__HIDDEN_EXTERN const char *const aco__sim_source_names[ACO__SIM_SOURCES];

ACO__HIDDEN void aco__decisions_begin(aco__sim_decisions_t *decisions); /* a run begins */
/* The choice is `drawn`, which is recorded; or the list's, as far as it is below `limit`. limit 0: 2^64. */
ACO__HIDDEN uint64_t aco__decisions_next(aco__sim_decisions_t *decisions, aco__sim_source_t source, uint64_t drawn,
                                         uint64_t limit);

#endif
