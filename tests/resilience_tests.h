/* For the tests of src/resilience: scenarios in a simulation, and memory that is counted and that fails. */
#ifndef RESILIENCE_TESTS_H
#define RESILIENCE_TESTS_H

#include "sim_checks.h"

#include <aco/detail/for_libraries.h>
#include <aco/scope.h>

#include <errno.h>
#include <string.h>

static aco_sim_t *sim; /* the run */

/* A run's promise. */
#define MUST(condition) ((condition) ? (void)0 : (void)aco_sim_fail(sim, #condition))
#define MUST_FAIL(call, error) (errno = 0, MUST((call) != 0 && errno == (error)))

static inline int below(int limit)
{
    return (int)aco_sim_random(sim, (uint64_t)limit);
}

static inline int64_t ms(int64_t n)
{
    return n * ACO_MILLISECOND;
}

static inline void go(aco_function_t fn, void *arg)
{
    MUST(detached(fn, arg) != NULL);
}

/* Runs a scenario with so many seeds, each twice. */
#define SIMULATE(scenario, runs) check_passes(#scenario, scenario, NULL, runs)

/* ---- Memory: the linker puts these before the library's (acorn_counts_memory()) ---- */

#ifdef COUNTS_MEMORY
static long memory;               /* bytes in use */
static int allocations, fail_at;  /* the number of the one that fails; 0: none */

void *__real_aco__service_allocate(size_t *sz, const char *call);
void __real_aco__service_free(void *p, size_t sz);
void *__wrap_aco__service_allocate(size_t *sz, const char *call);
void __wrap_aco__service_free(void *p, size_t sz);

void *__wrap_aco__service_allocate(size_t *sz, const char *call)
{
    size_t wanted = *sz;
    void *p;
    if (++allocations == fail_at) {
        errno = ENOMEM;
        return NULL;
    }
    p = __real_aco__service_allocate(sz, call);
    memory += p ? (long)wanted : 0;
    return p;
}

void __wrap_aco__service_free(void *p, size_t sz)
{
    memory -= p ? (long)sz : 0;
    __real_aco__service_free(p, sz);
}

/* Lets each allocation of a scenario fail, the first, the second, … The scenario says how it ends without memory. */
static inline void fail_each(aco_sim_function_t scenario)
{
    int all;
    memory = fail_at = allocations = 0;
    check_passes("without a failure", scenario, NULL, 1);
    all = allocations / 2; /* it runs twice */
    CHECK(all > 0);
    for (int i = 1; i <= all; i++) {
        aco_sim_options_t options = {0};
        aco_sim_stats_t stats;
        allocations = 0;
        fail_at = i;
        CHECK(aco_sim_run(scenario, NULL, 1, &stats, &options) == 0);
        CHECK_EQ(memory, 0);
    }
    fail_at = 0;
}
#else
#define fail_each(scenario) ((void)(scenario))
#endif

#endif
