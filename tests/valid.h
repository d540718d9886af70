/* scheduler_is_valid() compares all that the calling thread's scheduler keeps (src/scheduler/valid.c). It aborts and
 * names what does not fit. Where the library lacks its invariants, in all variants but debug, it is nothing. */
#ifndef VALID_H
#define VALID_H

#include "sanitizers.h"

#include <aco.h>

#if defined(ACO_CONFIG_INVARIANTS) || UNDER_ASAN || UNDER_TSAN
ACO_API void aco__scheduler_valid(const aco__thread_t *self);
#define scheduler_is_valid() aco__scheduler_valid(aco__self())
#else
#define scheduler_is_valid() ((void)0)
#endif

#endif
