/* The pool of acorn_io (aco/offload.h) below a set of threads that are bound to processors (ACO_THREADS_PIN): its
 * threads are not, and the set's stay so. */
#define _GNU_SOURCE
#include <aco/offload.h>
#include <aco/threads.h>
#include "check.h"

#include <sched.h>

static cpu_set_t allowed;

static void *is_free_in_pool(void *unused)
{
    cpu_set_t own;
    CHECK_EQ(sched_getaffinity(0, sizeof own, &own), 0);
    CHECK(CPU_EQUAL(&own, &allowed));
    return unused;
}

static void *starts_pool(void *unused)
{
    cpu_set_t before, after;
    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CHECK_EQ(CPU_COUNT(&before), 1);
    CHECK_EQ(aco_offload(is_free_in_pool, NULL, NULL, NULL), 0);
    CHECK_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    CHECK(CPU_EQUAL(&before, &after));
    return unused;
}

int main(void)
{
    aco_threads_options_t options = {0};
    cpu_set_t after;
    CHECK_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    options.flags = ACO_THREADS_PIN;
    CHECK_EQ(aco_threads_run(CPU_COUNT(&allowed) < 4 ? CPU_COUNT(&allowed) : 4, starts_pool, NULL, &options), 0);
    CHECK_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    CHECK(CPU_EQUAL(&after, &allowed));
    return check_result("threads_offload");
}
