/* query.c: what a coroutine is. */
#ifndef ACO_COROUTINE_QUERY_H
#define ACO_COROUTINE_QUERY_H

#include "tools/tools.h"

#define ACO__A_TASK "is a task of the scheduler" /* the reason of several failures */

/* Whether the coroutine has its own floating-point environment. */
static inline int aco__owns_fp(const aco_t *co)
{
    return !(co->aco__state & ACO__SHARES_FP);
}

/* Whether `co`, which has not ended, was never resumed. */
ACO__HIDDEN int aco__is_new(const aco_t *co);
/* 0 if the calling thread may resume `co` now; else aco__fail(). */
ACO__HIDDEN int aco__check(int fatal, const char *call, const aco_t *co);

#endif
