/* failing.c: what is done with a seed that has failed. */
#ifndef ACO_FAILING_H
#define ACO_FAILING_H

#include "sim/shrink.h"

/* Searches for a shorter run that fails as sim's last one did, writes it to the file that the options name, and shows
 * it. `search` has begun with this seed, or holds zeros. Prints why it cannot. */
ACO__HIDDEN void aco__sim_shorten(aco_sim_t *sim, aco__sim_runner_t run, aco__sim_search_t *search,
                                  const char *program);
/* Makes sim's last run again in a child process, for a trace in the file that the options name. */
ACO__HIDDEN void aco__sim_trace_again(aco_sim_t *sim, aco__sim_runner_t run);

#endif
