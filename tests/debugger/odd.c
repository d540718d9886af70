/* What is rarer than program.c has it: other threads, a control block on the stack, a name of two words, a stack that
 * overflows, tasks that wait. It stops in stop_here(). */
#include "aco/scheduler.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

void stop_here(const aco_t *copy);

__attribute__((noinline)) void stop_here(const aco_t *copy)
{
    __asm__ volatile("" : : "r"(copy));
}

static __attribute__((noinline)) void yields(void)
{
    aco_yield();
    __asm__ volatile("");
}

static void *suspended(void *arg)
{
    yields();
    return arg;
}

static __attribute__((noinline)) void has_copy(aco_t copy, int depth)
{
    if (depth > 0)
        has_copy(copy, depth - 1);
    else
        stop_here(&copy);
    __asm__ volatile("");
}

static __attribute__((noinline)) int overflows(int depth)
{
    volatile char large[512];
    large[0] = (char)depth;
    return depth < 1000 ? overflows(depth + 1) + large[0] : 0;
}

static void *too_deep(void *unused)
{
    overflows(0);
    return unused;
}

static void *waits(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static aco_mutex_t mutex;

static __attribute__((noinline)) void locks(void)
{
    aco_mutex_lock(&mutex);
    aco_park("never");
}

static void *waiting(void *unused)
{
    locks();
    return unused;
}

int main(void)
{
    const aco_options_t named = {.name = "two words"}, small = {.name = "small", .stack_size = 16384};
    pthread_t thread;
    aco_t *co = aco_new(suspended, NULL, &named);
    aco_send(co, NULL);
    if (pthread_create(&thread, NULL, waits, NULL) != 0)
        abort();
    for (int i = 0; i < 2; i++)
        aco_spawn(waiting, NULL, NULL);
    if (aco_run() == 0) /* a deadlock */
        abort();
    has_copy(*co, 3);
    aco_send(aco_new(too_deep, NULL, &small), NULL);
    return 0;
}
