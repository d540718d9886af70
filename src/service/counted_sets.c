/* Which libraries count something: a list that only grows. */
#include "base/invariants.h"

#include "aco/detail/counted.h"

static aco__counted_set_t *first_set; /* atomic */

void aco__counted_add(aco__counted_set_t *set)
{
    set->next = __atomic_load_n(&first_set, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&first_set, &set->next, set, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

const aco__counted_set_t *aco__counted_sets(void)
{
    return __atomic_load_n(&first_set, __ATOMIC_ACQUIRE);
}
