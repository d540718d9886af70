/* threads-costs: costs for simulate.py, measured between two threads. It prints lines "name nanoseconds". line: a write
 * to a cache line that another thread has written last; wake: what waking a thread costs the one that does it; latency:
 * until the woken thread runs. */
#include <aco/scheduler.h>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { TURNS = 200000, WAKES = 1000 };

static _Alignas(64) unsigned turn;
static _Alignas(64) int event;
static int64_t woken_at;

static void wait_for(unsigned number)
{
    for (unsigned looks = 1; __atomic_load_n(&turn, __ATOMIC_ACQUIRE) != number; looks++)
        if (looks % 100000 == 0)
            sched_yield(); /* the other one does not run */
}

/* Both write the line in turn. */
static void *take_turns(void *arg)
{
    unsigned first = arg != NULL;
    for (unsigned i = first; i < TURNS; i += 2) {
        wait_for(i);
        __atomic_store_n(&turn, i + 1, __ATOMIC_SEQ_CST);
    }
    return arg;
}

static void *sleep_often(void *arg)
{
    for (int i = 0; i < WAKES; i++) {
        struct pollfd wanted = {event, POLLIN, 0};
        uint64_t number;
        if (poll(&wanted, 1, -1) != 1 || read(event, &number, sizeof number) < 0)
            return NULL;
        woken_at = aco_now();
        __atomic_fetch_add(&turn, 1, __ATOMIC_SEQ_CST);
    }
    return arg;
}

int main(void)
{
    int64_t begin, wakes = 0, latency = 0;
    uint64_t one = 1;
    pthread_t other;
    pthread_create(&other, NULL, take_turns, &one);
    begin = aco_now();
    take_turns(NULL);
    pthread_join(other, NULL);
    printf("line %.1f\n", (double)(aco_now() - begin) / TURNS);

    turn = 0;
    event = eventfd(0, 0);
    pthread_create(&other, NULL, sleep_often, &one);
    for (unsigned i = 0; i < WAKES; i++) {
        usleep(200); /* it sleeps */
        begin = aco_now();
        if (write(event, &one, sizeof one) < 0)
            return 1;
        wakes += aco_now() - begin;
        wait_for(i + 1);
        latency += woken_at - begin;
    }
    pthread_join(other, NULL);
    printf("wake %.1f\nlatency %.1f\n", (double)wakes / WAKES, (double)latency / WAKES);
    return 0;
}
