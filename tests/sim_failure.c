/* Promise: without memory a simulation fails with ENOMEM, or the run says that it has none. The linker puts the calls
 * here before libc's (--wrap). */
#include "system/system.h"

#include "check.h"

#include <aco/sim.h>

#include <errno.h>
#include <fcntl.h>
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

static int is_bad(int64_t result)
{
    CHECK(result >= 0 || errno == ENOMEM);
    return result < 0;
}

static void use_files(int fd)
{
    static const char bytes[5000];
    DIR *dir;
    if (is_bad(aco__system.write(fd, bytes, sizeof bytes)) || is_bad(aco__system.ftruncate(fd, 10)) ||
        is_bad(aco__system.rename("d/file", "d/other")) || is_bad(aco__system.link("d/other", "third")))
        return;
    dir = aco__system.opendir("d");
    if (!is_bad(dir ? 0 : -1))
        CHECK(aco__system.readdir(dir) != NULL && aco__system.closedir(dir) == 0);
}

/* Calls for files fail with ENOMEM. A crash may lose more. */
static void use_disk(aco_sim_t *sim, void *arg)
{
    int fd;
    (void)arg;
    if (is_bad(aco__system.mkdir("d", 0700)) || is_bad(fd = aco__system.open("d/file", O_RDWR | O_CREAT, 0600)))
        return;
    use_files(fd);
    CHECK_EQ(aco_sim_disk_crash(sim), 0);
    CHECK_EQ(aco__system.close(fd), 0);
}

static int run_disk(void)
{
    aco_sim_stats_t stats;
    allocations = 0;
    if (aco_sim_run(use_disk, NULL, 3, &stats, NULL) == 0)
        return 1;
    CHECK(errno == ENOMEM || (errno == ECANCELED && strstr(stats.reason, "no memory")));
    return 0;
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
    CHECK(run_disk());
    all = allocations;
    for (failing = 1; failing <= all; failing++)
        (void)run_disk();
    CHECK(all > 20);
    failing = 0;
    return check_result("sim_failure");
}
