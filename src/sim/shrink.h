/* shrink.c: the search for a shorter run that fails for the same reason. */
#ifndef ACO_SHRINK_H
#define ACO_SHRINK_H

#include "sim/attempt.h"

enum { ACO__SIM_ATTEMPTS = 1000 }; /* if nothing is said */

typedef struct aco__sim_search {
    aco_sim_t *sim;
    aco__sim_runner_t run;
    aco__sim_shared_t *shared;
    uint64_t attempts, most;
    aco__sim_outcome_t first;   /* how the recorded run ended */
    aco__sim_decisions_t best;  /* the shortest one so far */
    aco__sim_decisions_t tried;
    size_t recorded;            /* choices of the recorded run that are not the simplest */
} aco__sim_search_t;

/* Runs sim's seed in a child process and records its decisions: search->first is how it ended. 0; or -1 and errno
 * (ENOMEM, ENOTSUP). */
ACO__HIDDEN int aco__sim_search_begin(aco__sim_search_t *search, aco_sim_t *sim, aco__sim_runner_t run);
/* Makes search->best shorter, in at most `most` runs. 0; or -1: the run made too many decisions, or memory lacks: the
 * reason is printed. */
ACO__HIDDEN int aco__sim_search(aco__sim_search_t *search, uint64_t most);
ACO__HIDDEN void aco__sim_search_end(aco__sim_search_t *search);

/* How many choices are not the simplest. */
ACO__HIDDEN size_t aco__sim_count_choices(const aco__sim_decisions_t *decisions);
/* Whether two reasons differ in numbers at most: an amount that is lost, an address. */
ACO__HIDDEN int aco__sim_same_reason(const char *a, const char *b);

#endif
