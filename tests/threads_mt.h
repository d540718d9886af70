/* Objects and tasks for the tests of aco/mt.h. */
#ifndef THREADS_SHARED_H
#define THREADS_SHARED_H

#include "threads_tests.h"

#include <aco/mt.h>

enum { THREADS_HERE = 4 };

static int rounds = IS_SIMULATED ? 20 : UNDER_TSAN ? 200 : 2000;

static aco_mt_mutex_t mutex;
static aco_mt_rwlock_t rwlock;
static aco_mt_cond_t tokens_added;
static int inside; /* those that have the mutex */

static inline void pause_sometimes(int i)
{
    if (i % 5 == 0 && aco_current_task())
        aco_task_yield();
}

/* Counts the rounds of its thread's queue. */
static int is_round_over, round_now;

static inline void *count_rounds(void *arg)
{
    while (!is_round_over) {
        round_now++;
        sched_yield();
        aco_task_yield();
    }
    return arg;
}

#endif
