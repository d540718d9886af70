/* valid.c: compares all that a scheduler keeps, in builds with invariants. */
#ifndef ACO_VALID_H
#define ACO_VALID_H

#include "scheduler/record.h"

#ifdef ACO__INVARIANTS
/* Aborts if what the calling thread's scheduler keeps does not fit together. It may have none yet. */
ACO_API void aco__scheduler_valid(const aco__thread_t *self);
#endif

#endif
