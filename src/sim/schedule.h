/* schedule.c: which task has the next turn. */
#ifndef ACO_SCHEDULE_H
#define ACO_SCHEDULE_H

#include "os/platform.h"

#include "aco/sim.h"

/* A task that has had a chance to run, and has not ended. */
typedef struct aco__sim_task {
    const aco_t *task; /* NULL: an empty entry */
    uint64_t number;   /* of tasks in a run: in the order in which they could run first */
    uint64_t priority; /* ACO_SIM_PCT: the highest runs */
} aco__sim_task_t;

enum { ACO__SIM_MOST_CHANGES = 64 };

typedef struct aco__sim_schedule {
    aco_sim_schedule_t kind; /* not ACO_SIM_MIXED */
    uint64_t draws;          /* the state of its random numbers */
    aco__sim_task_t *tasks;  /* a hash table by address */
    size_t room, used;       /* room: 0, or a power of two; at most half of it is used */
    uint64_t numbers;        /* that were given */
    const aco_t *last;       /* what had the last turn; NULL: it has ended, or there was none */
    uint64_t turns;
    uint64_t changes[ACO__SIM_MOST_CHANGES]; /* the turns after which a priority changes */
    int changes_count;
    uint64_t lowest;         /* the next priority below all others */
} aco__sim_schedule_t;

/* A run begins; all tasks of the one before have ended. `kind` may be ACO_SIM_MIXED. */
ACO__HIDDEN void aco__schedule_begin(aco__sim_schedule_t *schedule, aco_sim_schedule_t kind, int changes,
                                     uint64_t seed);
/* Chooses among the ring of `first`. Stores its number, 0 for `poll`, and how many can run besides `poll`. NULL without
 * memory. */
ACO__HIDDEN aco_t *aco__schedule_choose(aco__sim_schedule_t *schedule, aco_t *first, const aco_t *poll,
                                        uint64_t *number, uint64_t *count);
ACO__HIDDEN void aco__schedule_ended(aco__sim_schedule_t *schedule, const aco_t *task);
ACO__HIDDEN void aco__schedule_free(aco__sim_schedule_t *schedule);

#endif
