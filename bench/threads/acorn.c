/* threads-acorn THREADS CASE N: nanoseconds for each of N, in five rounds. The peers in this folder have the same:
 *   empty, work  N submissions, which do nothing, or work for 1 us; a thousand are joined at a time
 *   skynet       N leaves, ten children each; N is a power of ten
 *   tree         a sum by halves, down to one
 *   pingpong     N messages between two tasks, through channels with room for one
 *   across       the same with each task on a thread of its own, where the runtime would rather have both on one
 *   many         N messages from four tasks to four others, through a channel with room for 64
 *   yields       Acorn only: N turns of two tasks on the first thread; the others are idle */
#include <aco/mt.h>
#include <aco/threads.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1000, CHILDREN = 10, TURNS = 100000000, PAIRS = 4, ROOM = 64, ROUNDS = 5 };

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
        aco_mt_group_t group;
        aco_mt_group_begin(&group, ACO_KEEP_GOING);
        for (int i = 0; i < BATCH; i++)
            if (aco_submit(&group, fn, NULL, NULL) != 0)
                abort();
        aco_mt_group_end(&group);
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
    aco_mt_group_t group;
    if (range->count == 1)
        return (void *)range->from;
    aco_mt_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < CHILDREN; i++) {
        parts[i].count = range->count / CHILDREN;
        parts[i].from = range->from + (size_t)i * parts[i].count;
        if (aco_submit(&group, skynet, &parts[i], &(aco_submit_options_t){.result = &sums[i]}) != 0)
            abort();
    }
    aco_mt_group_end(&group);
    for (int i = 0; i < CHILDREN; i++)
        sum += (size_t)sums[i];
    return (void *)sum;
}

static void *tree(void *arg)
{
    range_t *range = arg, left, right;
    void *sums[2];
    aco_mt_group_t group;
    if (range->count == 1)
        return (void *)range->from;
    left.from = range->from;
    left.count = range->count / 2;
    right.from = range->from + left.count;
    right.count = range->count - left.count;
    aco_mt_group_begin(&group, ACO_KEEP_GOING);
    if (aco_submit(&group, tree, &left, &(aco_submit_options_t){.result = &sums[0]}) != 0)
        abort();
    sums[1] = tree(&right);
    aco_mt_group_end(&group);
    return (void *)((size_t)sums[0] + (size_t)sums[1]);
}

/* ---- Channels ---- */

static aco_mt_channel_t *there, *back;

static void *answer(void *arg)
{
    size_t value;
    while (aco_mt_channel_receive(there, &value) == 0)
        aco_mt_channel_send(back, &value);
    return arg;
}

static void ping_pong_with(int is_on_last)
{
    aco_submit_options_t options = {0};
    aco_mt_group_t group;
    size_t value = 0;
    there = aco_mt_channel_new(1, sizeof value);
    back = aco_mt_channel_new(1, sizeof value);
    aco_mt_group_begin(&group, ACO_KEEP_GOING);
    if (is_on_last)
        options = (aco_submit_options_t){.where = ACO_SUBMIT_TO,
                                         .thread = aco_threads_count(aco_threads_current()) - 1};
    aco_submit(&group, answer, NULL, &options);
    for (; value < n / 2; value++) {
        size_t got;
        aco_mt_channel_send(there, &value);
        if (aco_mt_channel_receive(back, &got) != 0 || got != value)
            abort();
    }
    aco_mt_channel_close(there);
    aco_mt_group_end(&group);
    aco_mt_channel_destroy(there);
    aco_mt_channel_destroy(back);
}

static void ping_pong(void)
{
    ping_pong_with(0);
}

static void ping_pong_across(void)
{
    ping_pong_with(1);
}

static void *send_part(void *arg)
{
    for (size_t value = 0; value < n / PAIRS; value++)
        aco_mt_channel_send(there, &value);
    return arg;
}

static void *receive_part(void *arg)
{
    size_t value;
    for (size_t i = 0; i < n / PAIRS; i++)
        aco_mt_channel_receive(there, &value);
    return arg;
}

static void many_to_many(void)
{
    aco_mt_group_t group;
    there = aco_mt_channel_new(ROOM, sizeof(size_t));
    aco_mt_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < PAIRS; i++) {
        aco_submit(&group, send_part, NULL, NULL);
        aco_submit(&group, receive_part, NULL, NULL);
    }
    aco_mt_group_end(&group);
    aco_mt_channel_destroy(there);
}

/* ---- A busy thread beside idle ones ---- */

static void *yield_often(void *arg)
{
    for (size_t i = 0; i < n / 2; i++)
        aco_task_yield();
    return arg;
}

static void yields(void)
{
    aco_t *task = aco_spawn(yield_often, NULL, NULL);
    yield_often(NULL);
    aco_join(task, NULL);
}

/* ---- Measuring ---- */

static void submit_empty(void)
{
    submit_all(empty);
}

static void submit_work(void)
{
    submit_all(work_1us);
}

static void sum_all(aco_function_t fn)
{
    range_t all = {0, n};
    if ((size_t)fn(&all) != n / 2 * (n - 1) + (n % 2 ? (n - 1) / 2 : 0))
        abort();
}

static void sum_skynet(void)
{
    sum_all(skynet);
}

static void sum_tree(void)
{
    sum_all(tree);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"empty", submit_empty}, {"work", submit_work}, {"skynet", sum_skynet}, {"tree", sum_tree},
             {"pingpong", ping_pong}, {"across", ping_pong_across}, {"many", many_to_many}, {"yields", yields}};

static void *measure(void *arg)
{
    size_t chosen = 0;
    int64_t begin = aco_now();
    (void)arg;
    while (chosen < sizeof cases / sizeof *cases && strcmp(name, cases[chosen].name) != 0)
        chosen++;
    if (chosen == sizeof cases / sizeof *cases)
        return fprintf(stderr, "no case %s\n", name), ACO_ERROR;
    work(strcmp(name, "work") == 0 ? TURNS : 0);
    turns_per_us = (unsigned)(TURNS * 1000.0 / (double)(aco_now() - begin));
    for (int round = 0; round < ROUNDS; round++) {
        begin = aco_now();
        cases[chosen].run();
        printf("%s %.1f\n", name, (double)(aco_now() - begin) / (double)n);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    aco_threads_options_t options = {0};
    if (argc != 4)
        return fprintf(stderr, "usage: %s THREADS CASE N\n", argv[0]), 2;
    name = argv[2];
    n = strtoul(argv[3], NULL, 10);
    options.flags = ACO_THREADS_FIRST_ONLY;
    return aco_threads_run(atoi(argv[1]), measure, NULL, &options) != 0;
}
