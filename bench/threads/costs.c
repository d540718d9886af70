/* threads-costs: costs for simulate.py, as lines "name nanoseconds", each printed as soon as it is known: medians of
 * many short rounds, as on a machine with other work some are far off. task and submit: a task's start and end, and a
 * submission, on one thread. line: a write to a cache line that another thread has written last, which needs both
 * threads to run: the best tenth of the rounds counts. wake: what waking a thread costs the one that does it; latency:
 * until the woken thread runs. */
#include <aco/threads.h>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { ROUNDS = 21, TASKS = 10000, LINE_ROUNDS = 1001, TURNS = 200, WAKES = 501, LOOKS = 2000 };

static _Alignas(64) unsigned turn;
static _Alignas(64) int event;
static int64_t woken_at;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The one that `best` hundredths of them do not exceed. */
static void print_round(const char *name, double *rounds, size_t n, size_t best)
{
    qsort(rounds, n, sizeof *rounds, compare);
    printf("%s %.1f\n", name, rounds[n * best / 100]);
    fflush(stdout);
}

/* ---- Tasks ---- */

static void *empty(void *arg)
{
    return arg;
}

static void *measure_tasks(void *arg)
{
    double submits[ROUNDS], tasks[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        aco_mt_group_t group;
        int64_t begin = aco_now(), submitted;
        aco_mt_group_begin(&group, ACO_KEEP_GOING);
        for (int i = 0; i < TASKS; i++)
            if (aco_submit(&group, empty, arg, NULL) != 0)
                return ACO_ERROR;
        submitted = aco_now();
        aco_mt_group_end(&group);
        submits[round] = (double)(submitted - begin) / TASKS;
        tasks[round] = (double)(aco_now() - submitted) / TASKS;
    }
    print_round("submit", submits, ROUNDS, 50);
    print_round("task", tasks, ROUNDS, 50);
    return NULL;
}

/* ---- Two threads ---- */

static void wait_for(unsigned number)
{
    for (unsigned looks = 1; __atomic_load_n(&turn, __ATOMIC_ACQUIRE) != number; looks++)
        if (looks % LOOKS == 0)
            sched_yield(); /* the other one does not run */
}

/* Both write the line in turn. */
static void *take_turns(void *arg)
{
    unsigned first = arg != NULL;
    for (unsigned i = first; i < LINE_ROUNDS * TURNS; i += 2) {
        wait_for(i);
        __atomic_store_n(&turn, i + 1, __ATOMIC_SEQ_CST);
    }
    return arg;
}

static int measure_line(void)
{
    double rounds[LINE_ROUNDS];
    pthread_t other;
    if (pthread_create(&other, NULL, take_turns, rounds) != 0)
        return -1;
    for (int round = 0; round < LINE_ROUNDS; round++) {
        int64_t begin = aco_now();
        for (unsigned i = 0; i < TURNS; i += 2) {
            wait_for((unsigned)round * TURNS + i);
            __atomic_store_n(&turn, (unsigned)round * TURNS + i + 1, __ATOMIC_SEQ_CST);
        }
        rounds[round] = (double)(aco_now() - begin) / TURNS;
    }
    pthread_join(other, NULL);
    print_round("line", rounds, LINE_ROUNDS, 10);
    return 0;
}

static void *sleep_often(void *arg)
{
    for (int i = 0; i < WAKES; i++) {
        struct pollfd wanted = {event, POLLIN, 0};
        uint64_t number;
        while (poll(&wanted, 1, -1) != 1 || read(event, &number, sizeof number) < 0)
            ; /* a signal */
        woken_at = aco_now();
        __atomic_fetch_add(&turn, 1, __ATOMIC_SEQ_CST);
    }
    return arg;
}

static int measure_wakes(void)
{
    double wakes[WAKES], latencies[WAKES];
    uint64_t one = 1;
    pthread_t other;
    turn = 0;
    event = eventfd(0, 0);
    if (event < 0 || pthread_create(&other, NULL, sleep_often, &one) != 0)
        return -1;
    for (unsigned i = 0; i < WAKES; i++) {
        int64_t begin;
        usleep(200); /* it sleeps */
        begin = aco_now();
        if (write(event, &one, sizeof one) < 0)
            return -1;
        wakes[i] = (double)(aco_now() - begin);
        wait_for(i + 1);
        latencies[i] = (double)(woken_at - begin);
    }
    pthread_join(other, NULL);
    print_round("wake", wakes, WAKES, 50);
    print_round("latency", latencies, WAKES, 50);
    return 0;
}

int main(void)
{
    if (aco_threads_run(1, measure_tasks, NULL, NULL) != 0 || measure_line() != 0 || measure_wakes() != 0)
        return perror("threads-costs"), 1;
    return 0;
}
