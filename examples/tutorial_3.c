/* Tutorial 3: several threads, each with its own main coroutine, stacks and coroutines.
 *
 * Threads share nothing inside the library, so none of its calls needs a lock. What the program's threads share is its
 * own business: `total` below is counted by all of them and is atomic. `count`, which only the coroutines of one thread
 * use, is not: they switch only where they yield, so nothing happens between reading and writing it. */
#include "aco.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "aco_assert_override.h"

enum { THREADS = 4, COROUTINES = 3, YIELDS = 20000 };

static atomic_uint total;

static void count_yields(void)
{
    unsigned *count = aco_get_arg();
    for (int i = 0; i < YIELDS; i++) {
        atomic_fetch_add_explicit(&total, 1, memory_order_relaxed);
        ++*count;
        aco_yield();
    }
    aco_exit();
}

static void *thread_main(void *number)
{
    unsigned count = 0;
    aco_t *co[COROUTINES];

    aco_thread_init(NULL);
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *own = aco_share_stack_new(0), *shared = aco_share_stack_new(0);
    for (int i = 0; i < COROUTINES; i++)
        co[i] = aco_create(main_co, i == 0 ? own : shared, 0, count_yields, &count);

    for (int round = 0; round <= YIELDS; round++)
        for (int i = 0; i < COROUTINES; i++)
            aco_resume(co[i]);

    for (int i = 0; i < COROUTINES; i++) {
        assert(co[i]->is_end);
        aco_destroy(co[i]);
    }
    aco_share_stack_destroy(own);
    aco_share_stack_destroy(shared);
    aco_destroy(main_co);
    printf("thread %d: %u yields\n", *(int *)number, count);
    assert(count == COROUTINES * YIELDS);
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    int number[THREADS];

    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        assert(pthread_create(&thread[i], NULL, thread_main, &number[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(thread[i], NULL) == 0);
    printf("all threads: %u yields\n", atomic_load(&total));
    assert(atomic_load(&total) == THREADS * COROUTINES * YIELDS);
    return 0;
}
