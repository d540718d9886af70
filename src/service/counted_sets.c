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

/* ---- Rows ---- */

const int64_t aco__counted_bounds[ACO__COUNTED_BOUNDS] = {
    100000,   250000,    500000,    1000000,   2500000,    5000000,    10000000,   25000000,
    50000000, 100000000, 250000000, 500000000, 1000000000, 2500000000, 5000000000, 10000000000};

static aco__counted_rows_t *first_rows; /* atomic */

void aco__counted_rows_add(aco__counted_rows_t *rows)
{
    rows->next = __atomic_load_n(&first_rows, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&first_rows, &rows->next, rows, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

const aco__counted_rows_t *aco__counted_all_rows(void)
{
    return __atomic_load_n(&first_rows, __ATOMIC_ACQUIRE);
}
