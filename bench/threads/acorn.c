/* threads-acorn THREADS CASE N: nanoseconds for each of N submissions. Cases: empty, work (1 us each), skynet (N
 * leaves, ten children each; N a power of ten), tree (a sum by halves down to one). threads/go/main.go has the same. */
#include <aco/threads.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1000, CHILDREN = 10, TURNS = 100000000 };

static size_t n;
static const char *name;
static unsigned turns_per_us;

static unsigned work(unsigned turns)
{
    unsigned x = turns;
    for (unsigned i = 0; i < turns; i++)
        __asm__ volatile("" : "+r"(x));
    return x;
}

static void *empty(void *arg)
{
    return arg;
}

static void *work_1us(void *arg)
{
    work(turns_per_us);
    return arg;
}

static void submit_all(aco_function_t fn)
{
    for (size_t done = 0; done < n; done += BATCH) {
        aco_shared_group_t group;
        aco_shared_group_begin(&group, ACO_KEEP_GOING);
        for (int i = 0; i < BATCH; i++)
            if (aco_submit(&group, fn, NULL) != 0)
                abort();
        aco_shared_group_end(&group);
    }
}

typedef struct range {
    size_t from, count;
} range_t;

static void *skynet(void *arg)
{
    range_t *range = arg, parts[CHILDREN];
    void *sums[CHILDREN];
    size_t sum = 0;
    aco_shared_group_t group;
    if (range->count == 1)
        return (void *)range->from;
    aco_shared_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < CHILDREN; i++) {
        parts[i].count = range->count / CHILDREN;
        parts[i].from = range->from + (size_t)i * parts[i].count;
        if (aco_submit_result(&group, skynet, &parts[i], &sums[i]) != 0)
            abort();
    }
    aco_shared_group_end(&group);
    for (int i = 0; i < CHILDREN; i++)
        sum += (size_t)sums[i];
    return (void *)sum;
}

static void *tree(void *arg)
{
    range_t *range = arg, left, right;
    void *sums[2];
    aco_shared_group_t group;
    if (range->count == 1)
        return (void *)range->from;
    left.from = range->from;
    left.count = range->count / 2;
    right.from = range->from + left.count;
    right.count = range->count - left.count;
    aco_shared_group_begin(&group, ACO_KEEP_GOING);
    if (aco_submit_result(&group, tree, &left, &sums[0]) != 0)
        abort();
    sums[1] = tree(&right);
    aco_shared_group_end(&group);
    return (void *)((size_t)sums[0] + (size_t)sums[1]);
}

static void *measure(void *arg)
{
    range_t all = {0, n};
    aco_function_t fn = strcmp(name, "skynet") == 0 ? skynet : tree;
    int64_t begin;
    (void)arg;
    begin = aco_now();
    work(strcmp(name, "work") == 0 ? TURNS : 0);
    turns_per_us = (unsigned)(TURNS * 1000.0 / (double)(aco_now() - begin));
    for (int round = 0; round < 5; round++) {
        begin = aco_now();
        if (strcmp(name, "empty") == 0)
            submit_all(empty);
        else if (strcmp(name, "work") == 0)
            submit_all(work_1us);
        else if ((size_t)fn(&all) != n / 2 * (n - 1) + (n % 2 ? (n - 1) / 2 : 0))
            abort();
        printf("%s %.1f\n", name, (double)(aco_now() - begin) / (double)n);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    aco_threads_options_t options = {0};
    if (argc != 4)
        return fprintf(stderr, "usage: %s THREADS empty|work|skynet|tree N\n", argv[0]), 2;
    name = argv[2];
    n = strtoul(argv[3], NULL, 10);
    options.flags = ACO_THREADS_FIRST_ONLY;
    return aco_threads_run_with(atoi(argv[1]), measure, NULL, &options) != 0;
}
