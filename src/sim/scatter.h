/* scatter.c: other memory addresses for a seed's repetition. */
#ifndef ACO_SCATTER_H
#define ACO_SCATTER_H

#include "os/platform.h"

#include <stdint.h>

/* From now on until aco__scatter_end(), memory, coroutines and stacks come at other addresses, in another order. No run
 * lasts. Without memory it does less. */
ACO__HIDDEN void aco__scatter_begin(uint64_t seed);
ACO__HIDDEN void aco__scatter_end(void);

#endif
