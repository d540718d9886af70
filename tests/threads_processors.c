/* What sets of threads (include/aco/threads.h) know of the machine: quota and affinity, near threads, pinning. */
#define _GNU_SOURCE
#include "threads/cpus.h"
#include "threads/search.h"
#include "threads/set.h"
#include "threads_tests.h"

#include <sched.h>
#include <sys/stat.h>

/* ---- The quota ---- */

static void write_file(const char *root, const char *folder, const char *name, const char *text)
{
    char path[512], *slash;
    FILE *file;
    snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    for (slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "w");
    CHECK(file != NULL);
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

static void test_quota(void)
{
    char root[] = "/tmp/acorn-quota-XXXXXX", command[64];
    int processors;
    CHECK(mkdtemp(root) != NULL);
    CHECK_EQ(aco__threads_quota(root), 0);
    write_file(root, "/proc/self", "cgroup", "0::/a/b\n");
    CHECK_EQ(aco__threads_quota(root), 0);
    write_file(root, "/sys/fs/cgroup/a/b", "cpu.max", "max 100000\n");
    CHECK_EQ(aco__threads_quota(root), 0);
    processors = aco__threads_usable(root);
    write_file(root, "/sys/fs/cgroup/a", "cpu.max", "250000 100000\n"); /* the parent's counts, rounded up */
    CHECK_EQ(aco__threads_quota(root), 3);
    CHECK_EQ(aco__threads_usable(root), processors < 3 ? processors : 3);
    write_file(root, "/sys/fs/cgroup", "cpu.max", "100000 100000\n");
    CHECK_EQ(aco__threads_quota(root), 1);
    CHECK_EQ(aco__threads_usable(root), 1);
    write_file(root, "/proc/self", "cgroup", "5:cpuset:/x\n4:cpuacct,cpu:/y/z\n1:name=systemd:/\n");
    CHECK_EQ(aco__threads_quota(root), 0);
    write_file(root, "/sys/fs/cgroup/cpu/y", "cpu.cfs_quota_us", "-1\n");
    write_file(root, "/sys/fs/cgroup/cpu/y", "cpu.cfs_period_us", "100000\n");
    CHECK_EQ(aco__threads_quota(root), 0);
    write_file(root, "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "400000\n"); /* in a container: the path is the host's */
    write_file(root, "/sys/fs/cgroup/cpu", "cpu.cfs_period_us", "100000\n");
    CHECK_EQ(aco__threads_quota(root), 4);
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK_EQ(system(command), 0);
}

/* ---- A machine with two nodes of four processors, pairs of which share a cache ---- */

enum { CPUS = 8, THIEF = 5 };

static struct {
    const char *root;
    int ready, submitted, stolen, from[CPUS];
} machine;

static void make_machine(const char *root)
{
    for (int i = 0; i < CPUS; i++) {
        char folder[128], list[32];
        snprintf(folder, sizeof folder, "/sys/devices/system/cpu/cpu%d", i);
        write_file(root, folder, "nodes", "not a node\n");
        snprintf(list, sizeof list, "node%d/x", i / 4);
        write_file(root, folder, list, "");
        snprintf(list, sizeof list, "%d-%d\n", i / 2 * 2, i / 2 * 2 + 1);
        write_file(root, folder, "cache/index0/level", "1\n");
        write_file(root, folder, "cache/index0/shared_cpu_list", "0-7\n");
        write_file(root, folder, "cache/index2/level", "3\n");
        write_file(root, folder, "cache/index2/shared_cpu_list", list);
        write_file(root, folder, "cache/index3/level", "2\n");
    }
}

static void *note_owner(void *arg)
{
    CHECK_EQ(aco_threads_index(), THIEF);
    machine.from[machine.stolen] = (int)(intptr_t)arg;
    add(&machine.stolen, 1);
    return NULL;
}

/* The thief has nothing to do; the others have an item each, and keep their threads until it is stolen. */
static void *be_robbed(void *arg)
{
    aco__set_worker_t *self = (aco__set_worker_t *)(void *)aco__worker();
    aco_mt_group_t group;
    self->place = aco__threads_place(machine.root, self->index);
    CHECK_EQ(self->place.node, self->index / 4);
    CHECK_EQ(self->place.cache, self->index / 2 * 2);
    add(&machine.ready, 1);
    while (load(&machine.ready) < CPUS)
        sched_yield();
    aco__threads_find_near(self);
    if (self->index == THIEF) {
        while (load(&machine.submitted) < CPUS - 1)
            sched_yield();
        return arg;
    }
    begin(&group, ACO_KEEP_GOING);
    submit(&group, note_owner, (void *)(intptr_t)self->index);
    add(&machine.submitted, 1);
    while (load(&machine.stolen) < CPUS - 1)
        sched_yield();
    CHECK_EQ(aco_mt_group_end(&group), 0);
    return arg;
}

static void test_near_first(void)
{
    static const int wanted[CPUS - 1] = {4, 6, 7, 0, 1, 2, 3};
    char root[] = "/tmp/acorn-machine-XXXXXX", command[64];
    CHECK(mkdtemp(root) != NULL);
    CHECK_EQ(aco__threads_place(root, 0).node, -1);
    CHECK_EQ(aco__threads_place(root, 0).cache, -1);
    make_machine(root);
    machine.root = root;
    CHECK_EQ(aco_threads_run(CPUS, be_robbed, NULL, NULL), 0);
    CHECK_EQ(machine.stolen, CPUS - 1);
    for (int i = 0; i < CPUS - 1; i++)
        CHECK_EQ(machine.from[i], wanted[i]);
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK_EQ(system(command), 0);
}

/* A set that is made up: all threads sleep but the thief. */
static aco_threads_t *asleep(aco__set_worker_t workers[CPUS])
{
    aco_threads_t *threads = calloc(1, sizeof *threads + CPUS * sizeof *threads->workers);
    threads->n = threads->slots = CPUS;
    threads->sleeping = CPUS - 1;
    for (int i = 0; i < CPUS; i++) {
        threads->workers[i] = &workers[i];
        workers[i].threads = threads;
        workers[i].is_gone = 1;
        workers[i].is_sleeping = i != THIEF;
    }
    return threads;
}

/* Of all that sleep, a near one is woken. */
static void test_wakes_near(void)
{
    static uint16_t order[CPUS - 1] = {4, 6, 7, 0, 1, 2, 3};
    static aco__set_worker_t workers[CPUS];
    aco_threads_t *threads = asleep(workers);
    workers[THIEF].order = order;
    for (int i = 0; i < CPUS - 1; i++) {
        aco__threads_wake_one(threads, &workers[THIEF]);
        CHECK(!workers[order[i]].is_sleeping);
        CHECK_EQ(threads->sleeping, CPUS - 2 - i);
        threads->searching = 0; /* that was the woken one */
    }
    workers[1].is_sleeping = workers[2].is_sleeping = 1;
    threads->sleeping = 2;
    aco__threads_wake_one(threads, NULL);
    CHECK(!workers[1].is_sleeping && workers[2].is_sleeping);
    free(threads);
}

/* How many threads the thief wakes that has found so many items, when `others` search. */
static unsigned woken_by(aco_threads_t *threads, aco__set_worker_t *thief, size_t found, unsigned others)
{
    unsigned sleeping = threads->sleeping;
    thief->is_searching = 1;
    thief->found = found;
    threads->searching = others + 1;
    aco__threads_end_search(thief);
    CHECK_EQ(threads->searching - others, sleeping - threads->sleeping);
    return sleeping - threads->sleeping;
}

/* A thread that has found many items wakes one more, if not too many search. */
static void test_wakes_more(void)
{
    static aco__set_worker_t workers[CPUS];
    aco_threads_t *threads = asleep(workers);
    CHECK_EQ(woken_by(threads, &workers[THIEF], 15, 0), 0);
    CHECK_EQ(woken_by(threads, &workers[THIEF], 100, 1), 0); /* only the thief is awake */
    CHECK_EQ(woken_by(threads, &workers[THIEF], 16, 0), 1);
    CHECK_EQ(woken_by(threads, &workers[THIEF], 16, 1), 0);
    CHECK_EQ(woken_by(threads, &workers[THIEF], 32, 1), 1);
    CHECK_EQ(woken_by(threads, &workers[THIEF], 100, 2), 0);
    free(threads);
}

/* ---- The affinity, and pinning ---- */

#ifdef __linux__
static void test_affinity(void)
{
    cpu_set_t before, some;
    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CHECK_EQ(aco__threads_usable("/none"), CPU_COUNT(&before));
    some = before;
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&some) > 1; i++)
        CPU_CLR(i, &some);
    CHECK_EQ(sched_setaffinity(0, sizeof some, &some), 0);
    CHECK_EQ(aco_threads_usable(), 1);
    CHECK_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

static int pinned[CPU_SETSIZE];

static void *note_processor(void *arg)
{
    cpu_set_t allowed;
    CHECK_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    CHECK_EQ(CPU_COUNT(&allowed), 1);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed))
            add(&pinned[i], 1);
    return arg;
}

static void test_pinning(void)
{
    aco_threads_options_t options = {0};
    cpu_set_t before, after;
    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    options.flags = ACO_THREADS_PIN;
    CHECK_EQ(aco_threads_run(CPU_COUNT(&before), note_processor, NULL, &options), 0);
    for (int i = 0; i < CPU_SETSIZE; i++)
        CHECK_EQ(pinned[i], CPU_ISSET(i, &before) != 0);
    CHECK_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    CHECK(CPU_EQUAL(&before, &after));
}
#else
static void test_affinity(void)
{
}

static void test_pinning(void)
{
}
#endif

int main(void)
{
    test_quota();
    test_near_first();
    test_wakes_near();
    test_wakes_more();
    test_affinity();
    test_pinning();
    return check_result("threads_processors");
}
