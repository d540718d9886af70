/* For the tests of aco/threads.h. */
#ifndef THREADS_TESTS_H
#define THREADS_TESTS_H

#include <aco/threads.h>
#include "check.h"
#include "sanitizers.h"
#include "until.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8 }; /* more than processors: threads are interrupted everywhere */

static inline int load(const int *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void add(int *p, int n)
{
    __atomic_fetch_add(p, n, __ATOMIC_ACQ_REL);
}

/* Runs fn(arg) on the first of n threads. */
static inline int run_first(int n, aco_function_t fn, void *arg)
{
    aco_threads_options_t options = {0};
    options.flags = ACO_THREADS_FIRST_ONLY;
    return aco_threads_run(n, fn, arg, &options);
}

/* Runs a test with a set of threads, and checks that it succeeds. */
static inline void run_on(int n, aco_function_t fn, void *arg)
{
    if (run_first(n, fn, arg) != 0) {
        fprintf(stderr, "aco_threads_run: %s: %s\n", strerror(errno), aco_error_message());
        CHECK(!"aco_threads_run");
    }
}

static inline void begin(aco_mt_group_t *group, aco_group_policy_t policy)
{
    CHECK_EQ(aco_mt_group_begin(group, policy), 0);
}

#define TO(number) (&(aco_submit_options_t){.where = ACO_SUBMIT_TO, .thread = (number)})
#define EVENLY (&(aco_submit_options_t){.where = ACO_SUBMIT_EVENLY})

static inline void submit(aco_mt_group_t *group, aco_function_t fn, void *arg)
{
    CHECK_EQ(aco_submit(group, fn, arg, NULL), 0);
}

static inline void submit_to(int thread, aco_mt_group_t *group, aco_function_t fn, void *arg)
{
    CHECK_EQ(aco_submit(group, fn, arg, TO(thread)), 0);
}

#endif
