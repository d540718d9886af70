/* depot.c: coroutines for which a thread's cache has no room. */
#ifndef ACO_COROUTINE_DEPOT_H
#define ACO_COROUTINE_DEPOT_H

#include "base/context.h"

/* aco__cache_put() has returned 0 for this destroyed coroutine, on its thread. If only room was lacking, makes room: 1,
 * it is cached. Else 0. */
ACO__HIDDEN int aco__depot_put(aco__thread_t *self, aco_t *co);
/* The cache is empty: fills it. 0: there is nothing in the depot either. */
ACO__HIDDEN int aco__depot_refill(aco__thread_t *self);
/* Frees what the thread has not needed since the last trim. `all`: else no more than a cache holds. */
ACO__HIDDEN void aco__depot_trim(aco__thread_t *self, int all);

#endif
