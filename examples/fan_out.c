/* Fan-out and fan-in: several workers take jobs from one channel and send results to another.
 *
 *   source -- jobs --> worker 1 to WORKERS -- results --> collector
 *
 * A job is a number to be factored. A worker lets the others have a turn every so many divisions, so that a short job
 * overtakes a long one that was taken earlier. A sender closes its channel when it is done; where several send, a task
 * that waits for them all closes it. A receiver ends when its channel is closed and empty. */
#include "aco.h"
#include "aco/scheduler.h"

#include <errno.h>
#include <stdio.h>

#include "aco_assert_override.h"

enum { WORKERS = 3, QUEUED = 2, DIVISIONS_PER_TURN = 64 };

typedef struct result {
    int worker;
    uint32_t number;
    uint32_t factors[32];
    int count;
} result_t;

typedef struct work {
    aco_channel_t *jobs, *results; /* of uint32_t, of result_t */
    aco_wait_group_t working;
} work_t;

static void *source(void *arg)
{
    static const uint32_t numbers[] = {4294967291, 97, 360360, 4294049777, 30031, 1 << 30, 16777213, 1};
    work_t *w = arg;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert(aco_channel_send(w->jobs, &numbers[i]) == 0);
    assert(aco_channel_close(w->jobs) == 0);
    printf("source: done\n");
    return NULL;
}

static void factor(result_t *r)
{
    uint32_t rest = r->number, divisions = 0;
    for (uint32_t d = 2; d <= rest / d; d++) {
        for (; rest % d == 0; rest /= d)
            r->factors[r->count++] = d;
        if (++divisions % DIVISIONS_PER_TURN == 0)
            aco_task_yield();
    }
    if (rest > 1)
        r->factors[r->count++] = rest;
}

static void *worker(void *arg)
{
    static int workers;
    work_t *w = arg;
    int number = ++workers, done = 0;
    for (uint32_t job; aco_channel_receive(w->jobs, &job) == 0; done++) {
        result_t r = {.worker = number, .number = job};
        factor(&r);
        assert(aco_channel_send(w->results, &r) == 0);
    }
    assert(errno == EPIPE); /* closed, and nothing left */
    printf("worker %d: %d jobs\n", number, done);
    assert(aco_wait_group_done(&w->working) == 0);
    return NULL;
}

static void *close_results(void *arg)
{
    work_t *w = arg;
    assert(aco_wait_group_wait(&w->working) == 0);
    assert(aco_channel_close(w->results) == 0);
    return NULL;
}

static void *collector(void *arg)
{
    work_t *w = arg;
    result_t r;
    intptr_t collected = 0;
    for (; aco_channel_receive(w->results, &r) == 0; collected++) {
        uint32_t product = 1;
        printf("worker %d: %u =", r.worker, (unsigned)r.number);
        for (int i = 0; i < r.count; product *= r.factors[i++])
            printf(" %u", (unsigned)r.factors[i]);
        printf("\n");
        assert(product == r.number);
    }
    assert(errno == EPIPE);
    return (void *)collected;
}

static aco_t *spawn(aco_function_t fn, work_t *w, unsigned flags)
{
    const aco_options_t options = {.flags = flags};
    aco_t *task = aco_spawn(fn, w, &options);
    assertptr(task);
    return task;
}

int main(void)
{
    work_t w = {aco_channel_new(QUEUED, sizeof(uint32_t)), aco_channel_new(0, sizeof(result_t)), ACO_WAIT_GROUP_INIT};
    void *collected;
    assert(w.jobs && w.results);

    spawn(source, &w, ACO_DETACHED);
    for (int i = 0; i < WORKERS; i++)
        spawn(worker, &w, ACO_DETACHED);
    assert(aco_wait_group_add(&w.working, WORKERS) == 0);
    spawn(close_results, &w, ACO_DETACHED);
    aco_t *collecting = spawn(collector, &w, 0);

    if (aco_run() != 0) {
        fprintf(stderr, "%s\n", aco_error_message());
        return 1;
    }
    assert(aco_join(collecting, &collected) == 0); /* it has ended: main() may join it */
    printf("%d numbers factored\n", (int)(intptr_t)collected);
    assert(aco_channel_destroy(w.jobs) == 0 && aco_channel_destroy(w.results) == 0);
    return 0;
}
