/* What the tests of sets and groups of aco/threads.h run on the threads. */
#ifndef THREADS_WORK_H
#define THREADS_WORK_H

#include "threads_tests.h"

static int crowd = IS_SIMULATED ? 40 : UNDER_TSAN ? 100 : 2000;
static int cancelled_waits;

typedef struct tree {
    int leaves, depth;
} tree_t;

/* The sum of a tree's leaves: each member submits more. */
static inline void *sum_tree(void *arg)
{
    const tree_t *tree = arg;
    tree_t below[4];
    void *sums[4];
    aco_mt_group_t group;
    intptr_t sum = 0;
    if (!tree->depth)
        return (void *)1;
    begin(&group, ACO_CANCEL_ON_FAILURE);
    for (int i = 0; i < 4; i++) {
        below[i].depth = tree->depth - 1;
        CHECK_EQ(aco_submit(&group, sum_tree, &below[i], &(aco_submit_options_t){.result = &sums[i]}), 0);
    }
    if (tree->depth % 3 == 1)
        aco_task_yield();
    CHECK_EQ(aco_mt_group_end(&group), 0);
    for (int i = 0; i < 4; i++)
        sum += (intptr_t)sums[i];
    return (void *)sum;
}

static inline void *sum_whole(void *arg)
{
    CHECK_EQ((intptr_t)sum_tree(arg), ((const tree_t *)arg)->leaves);
    return NULL;
}

static int threads_seen;

static inline void *note_and_spin(void *arg)
{
    int64_t end = aco_after(ACO_MILLISECOND / 5);
    __atomic_fetch_or(&threads_seen, 1 << aco_threads_index(), __ATOMIC_RELAXED);
    while (aco_now() < end) /* the thread is busy: the others steal */
        let_others_go_on();
    add(arg, 1);
    return arg;
}

static inline void *count_one(void *arg)
{
    add(arg, 1);
    return NULL;
}

static inline void *give(void *arg)
{
    return arg;
}

static inline void *fail_with(void *arg)
{
    errno = (int)(intptr_t)arg;
    return ACO_ERROR;
}

static inline void *wait_long(void *arg)
{
    if (aco_sleep(60 * ACO_SECOND) == 0)
        return NULL;
    if (errno == (int)(intptr_t)arg)
        add(&cancelled_waits, 1);
    return ACO_ERROR;
}

#endif
