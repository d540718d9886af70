/* last_words.c: which seed runs while the process dies. */
#ifndef ACO_LAST_WORDS_H
#define ACO_LAST_WORDS_H

#include "os/platform.h"

#include "aco/sim.h"

/* From now on until aco__last_words_end(), a fatal signal and exit() print the seed that runs. `command` as for
 * aco__sim_run(). */
ACO__HIDDEN void aco__last_words_begin(void (*command)(uint64_t seed));
ACO__HIDDEN void aco__last_words_of(uint64_t seed); /* it runs from now on */
ACO__HIDDEN void aco__last_words_end(void);

#endif
