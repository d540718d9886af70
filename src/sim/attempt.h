/* attempt.c: a run in a child process, which may die, leave tasks and print: nothing of it stays. */
#ifndef ACO_ATTEMPT_H
#define ACO_ATTEMPT_H

#include "sim/decisions.h"

#include "aco/sim.h"

/* Runs the seed in this process: 0, or -1 and errno if it could not begin. */
typedef int (*aco__sim_runner_t)(aco_sim_t *sim, uint64_t seed);

/* How a run ended. If the process has died, the numbers are 0. */
typedef struct aco__sim_outcome {
    int could_run, has_failed; /* could_run: 0: it could not begin, or its process has died: then `reason` says how */
    uint64_t turns, hash;
    int64_t now;
    char reason[ACO_SIM_REASON_SIZE];
} aco__sim_outcome_t;

enum { ACO__SIM_MOST_CHOICES = 1 << 18 }; /* of a source, in a run that is recorded */

/* Memory that such a child and this process share: what a child has recorded is there even if it has died. */
typedef struct aco__sim_shared {
    aco__sim_outcome_t outcome;
    aco__sim_decisions_t decisions;
    uint64_t choices[ACO__SIM_SOURCES][ACO__SIM_MOST_CHOICES];
} aco__sim_shared_t;

/* NULL and errno: ENOMEM; ENOTSUP: ThreadSanitizer does not follow a process with coroutines through fork(). */
ACO__HIDDEN aco__sim_shared_t *aco__sim_shared_new(void);
ACO__HIDDEN void aco__sim_shared_free(aco__sim_shared_t *shared);

/* Runs sim's seed by `run` with shared->decisions in a child process, and waits for it. The child says nothing; with
 * `is_shown` its failure, with the last events. 0: the outcome is stored; or -1 and errno: there is no child. */
ACO__HIDDEN int aco__sim_attempt(aco_sim_t *sim, aco__sim_runner_t run, aco__sim_shared_t *shared, int is_shown);

#endif
