/* Promise: without memory a simulation fails with ENOMEM, or the run says that it has none. The linker puts the calls
 * here before libc's (--wrap). */
#include "check.h"

#include <aco/sim.h>

#include <errno.h>
#include <string.h>

void *__real_calloc(size_t n, size_t sz);
void *__real_realloc(void *p, size_t sz);
void *__wrap_calloc(size_t n, size_t sz);
void *__wrap_realloc(void *p, size_t sz);

static int allocations, failing; /* the number of the one that fails; 0: none */

static int fails(void)
{
    errno = ENOMEM;
    return ++allocations == failing;
}

void *__wrap_calloc(size_t n, size_t sz)
{
    return fails() ? NULL : __real_calloc(n, sz);
}

void *__wrap_realloc(void *p, size_t sz)
{
    return fails() ? NULL : __real_realloc(p, sz);
}

static void *yield_often(void *unused)
{
    for (int i = 0; i < 20; i++)
        aco_task_yield();
    return unused;
}

static void crowd(aco_sim_t *sim, void *arg)
{
    aco_options_t opts = {0};
    (void)sim, (void)arg;
    opts.flags = ACO_DETACHED;
    for (int i = 0; i < 100; i++) /* more than the first table of tasks holds, and more events than are kept at first */
        if (!aco_spawn(yield_often, NULL, &opts))
            aco_sim_fail(sim, "a task has no memory");
}

/* Returns whether it was good. */
static int run(void)
{
    aco_sim_options_t o = {0};
    aco_sim_stats_t stats;
    int done;
    o.check = 1;
    allocations = 0;
    done = aco_sim_run(crowd, NULL, 2, &stats, &o);
    if (done == 0)
        return 1;
    CHECK(errno == ENOMEM || (errno == ECANCELED && strstr(stats.reason, "no memory")));
    return 0;
}

int main(void)
{
    int all, failed = 0;
    CHECK(run());
    all = allocations;
    for (failing = 1; failing <= all; failing++)
        failed += !run();
    CHECK(all > 4 && failed >= 3 && failed < all); /* what is only kept to be compared need not be */
    failing = 0;
    CHECK(run());
    return check_result("sim_failure");
}
