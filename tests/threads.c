/* Threads: each with coroutines of its own; objects that other threads make, destroy and leave behind.
 *
 * threads [rounds] */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"
#include "sanitizers.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

static int rounds = 200;

typedef void *(*thread_fn_t)(void *);

static pthread_t start(thread_fn_t fn, void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, fn, arg) != 0) {
        perror("pthread_create");
        exit(2);
    }
    return thread;
}

static void *run_on_thread(thread_fn_t fn, void *arg)
{
    void *result;
    pthread_join(start(fn, arg), &result);
    return result;
}

/* ---- What the coroutines do: count, and keep bytes on the stack ---- */

typedef struct counter {
    int count, wrong, last;
    aco_t *self; /* set by the coroutine */
} counter_t;

static __attribute__((noinline)) void counted_step(counter_t *counter)
{
    volatile uintptr_t words[20];
    for (unsigned i = 0; i < 20; i++)
        words[i] = (uintptr_t)counter + i;
    counter->count++;
    aco_yield();
    for (unsigned i = 0; i < 20; i++)
        counter->wrong += words[i] != (uintptr_t)counter + i;
}

static void count(void)
{
    counter_t *counter = aco_get_arg();
    counter->self = aco_get_co();
    while (counter->count < counter->last) {
        counted_step(counter);
        counter->wrong += aco_get_co() != counter->self || aco_get_arg() != counter;
    }
    aco_exit();
}

/* ---- Many threads ---- */

enum { THREADS = 16, OWN = 12 };

static void *own_coroutines(void *arg)
{
    counter_t counters[OWN];
    aco_t *co[OWN], *main_co;
    aco_share_stack_t *own[OWN / 2], *shared = aco_share_stack_new2(0, 0);
    CHECK(aco_get_co() == NULL);
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    memset(counters, 0, sizeof counters);
    for (int i = 0; i < OWN; i++) {
        if (i < OWN / 2)
            own[i] = aco_share_stack_new(0);
        counters[i].last = 10 * rounds;
        co[i] = aco_create(main_co, i < OWN / 2 ? own[i] : shared, 0, count, &counters[i]);
    }
    for (int round = 0; round <= 10 * rounds; round++)
        for (int i = 0; i < OWN; i++) {
            CHECK(!co[i]->is_end);
            aco_resume(co[i]);
            CHECK(aco_get_co() == main_co);
        }
    for (int i = 0; i < OWN; i++) {
        CHECK(co[i]->is_end && counters[i].self == co[i]);
        CHECK_EQ(counters[i].count, 10 * rounds);
        CHECK_EQ(counters[i].wrong, 0);
        aco_destroy(co[i]);
        if (i < OWN / 2)
            aco_share_stack_destroy(own[i]);
    }
    aco_share_stack_destroy(shared);
    aco_destroy(main_co);
    CHECK(aco_get_co() == NULL);
    return arg;
}

/* Promise: threads share nothing: each runs its own coroutines and sees its own current one. */
static void many_threads(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(own_coroutines, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- Two threads in step: one runs coroutines, the other makes or destroys them while that one waits ---- */

typedef struct order {
    aco_t *main_co;
    aco_share_stack_t *stack;
    counter_t *counter;
    aco_t *co[4];
    int many;
} order_t;

static void *create_for_other(void *arg)
{
    order_t *order = arg;
    for (int i = 0; i < order->many; i++)
        order->co[i] = aco_create(order->main_co, order->stack, 0, count, &order->counter[i]);
    return NULL;
}

static void *destroy_for_other(void *arg)
{
    order_t *order = arg;
    for (int i = 0; i < order->many; i++)
        aco_destroy(order->co[i]);
    return NULL;
}

/* Promise: any thread may make coroutines for another one's main coroutine, and stacks, and may end then. */
static void made_by_another(void)
{
    counter_t counters[4];
    order_t order;
    memset(&order, 0, sizeof order);
    memset(counters, 0, sizeof counters);
    order.main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    order.stack = aco_share_stack_new(0);
    order.counter = counters;
    order.many = 4;
    run_on_thread(create_for_other, &order);
    CHECK(aco_get_co() == order.main_co);
    for (int i = 0; i < 4; i++)
        counters[i].last = 10;
    for (int round = 0; round <= 10; round++)
        for (int i = 0; i < 4; i++)
            aco_resume(order.co[i]);
    for (int i = 0; i < 4; i++) {
        CHECK(order.co[i]->is_end);
        CHECK_EQ(counters[i].wrong, 0);
        CHECK_EQ(counters[i].count, 10);
        CHECK_EQ(order.co[i]->save_stack.ct_save, UNDER_ASAN ? 0 : 10);
        aco_destroy(order.co[i]);
    }
    aco_share_stack_destroy(order.stack);
    aco_destroy(order.main_co);
}

/* Promises: a coroutine in any state but running may be destroyed by another thread; the mark of a destroyed one on its
 * stack has no effect on coroutines made later, at the same address or not. */
static void destroyed_by_another(void)
{
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *stack = aco_share_stack_new(0);
    int same_address = 0;
    for (int round = 0; round < rounds; round++) {
        counter_t counters[4], later[8];
        order_t order = {main_co, stack, counters, {NULL}, 4};
        aco_t *old[4], *co[8];
        memset(counters, 0, sizeof counters);
        memset(later, 0, sizeof later);
        for (int i = 0; i < 4; i++) { /* ready, ended, saved, suspended */
            counters[i].last = i == 1 ? 0 : 100;
            old[i] = order.co[i] = aco_create(main_co, stack, (size_t)(round % 7 * 40), count, &counters[i]);
            if (i > 0)
                aco_resume(order.co[i]);
        }
        CHECK(order.co[1]->is_end &&
              (UNDER_ASAN || (order.co[2]->save_stack.valid_sz > 0 && stack->owner == order.co[3])));
        run_on_thread(destroy_for_other, &order);
        for (int i = 0; i < 8; i++) {
            later[i].last = 3;
            co[i] = aco_create(main_co, stack, (size_t)(round % 7 * 40), count, &later[i]);
            CHECK_EQ(later[i].count, 0);
            aco_resume(co[i]);
            CHECK_EQ(later[i].count, 1);
            CHECK(co[i]->share_stack->owner == co[i]);
            for (int j = 0; j < 4; j++)
                same_address += co[i] == old[j];
        }
        for (int i = 0; i < 8; i++) {
            /* Each is saved by the next one, the last by the first one's second turn. */
            CHECK_EQ(co[i]->save_stack.ct_save, !UNDER_ASAN);
            while (!co[i]->is_end)
                aco_resume(co[i]);
            CHECK_EQ(later[i].count, 3);
            CHECK_EQ(later[i].wrong, 0);
            aco_destroy(co[i]);
        }
        for (int i = 0; i < 4; i++)
            CHECK_EQ(counters[i].count, i < 2 ? 0 : 1);
    }
    CHECK(same_address > 0); /* blocks were reused */
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
}

/* The owner's block, reused at its address, is not taken for the owner: on the same thread. */
static void reuse_at_the_owners_address(void)
{
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *stack = aco_share_stack_new(0);
    int same_address = 0;
    for (int round = 0; round < rounds; round++) {
        counter_t a = {0, 0, 100, NULL}, b = {0, 0, 2, NULL};
        aco_t *co = aco_create(main_co, stack, 0, count, &a), *was = co;
        aco_resume(co);
        CHECK(co->share_stack->owner == co);
        aco_destroy(co);
        CHECK(stack->owner == NULL);
        co = aco_create(main_co, stack, 0, count, &b);
        same_address += co == was;
        while (!co->is_end)
            aco_resume(co);
        CHECK_EQ(a.count, 1);
        CHECK_EQ(b.count, 2);
        CHECK_EQ(co->save_stack.ct_restore, 0);
        aco_destroy(co);
    }
    CHECK(same_address > 0);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
}

/* Promise: a stack whose suspended owner another thread has destroyed can be destroyed, also by that other thread. */
static void *destroy_all(void *arg)
{
    order_t *order = arg;
    destroy_for_other(order);
    aco_share_stack_destroy(order->stack);
    return NULL;
}

static void stack_after_its_owner(void)
{
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    for (int round = 0; round < rounds; round++) {
        counter_t counters[2] = {{0, 0, 9, NULL}, {0, 0, 9, NULL}};
        order_t order = {main_co, aco_share_stack_new2(8192, 0), counters, {NULL}, 2};
        create_for_other(&order);
        aco_resume(order.co[0]);
        aco_resume(order.co[1]);
        if (round % 2) {
            run_on_thread(destroy_all, &order);
        } else {
            run_on_thread(destroy_for_other, &order);
            aco_share_stack_destroy(order.stack);
        }
    }
    aco_destroy(main_co);
}

/* ---- Destroying while the stack's thread goes on using the stack ---- */

enum { QUEUE = 64 };

typedef struct queue {
    aco_t *slots[QUEUE]; /* atomic */
    int done;            /* atomic */
} queue_t;

static int queue_put(queue_t *queue, unsigned at, aco_t *co)
{
    aco_t *none = NULL;
    return __atomic_compare_exchange_n(&queue->slots[at % QUEUE], &none, co, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static void *destroy_from_queue(void *arg)
{
    queue_t *queue = arg;
    uintptr_t destroyed = 0;
    int last;
    do {
        last = __atomic_load_n(&queue->done, __ATOMIC_ACQUIRE);
        for (unsigned i = 0; i < QUEUE; i++) {
            aco_t *co = __atomic_exchange_n(&queue->slots[i], NULL, __ATOMIC_ACQUIRE);
            if (co) {
                aco_destroy(co);
                destroyed++;
            }
        }
    } while (!last);
    return (void *)destroyed;
}

typedef struct racer {
    queue_t *queue;
    uintptr_t put;
} racer_t;

/* Makes coroutines in every state, the stack's owner included, and hands each to the destroying thread. */
static void *make_and_hand_over(void *arg)
{
    racer_t *racer = arg;
    aco_t *main_co;
    aco_share_stack_t *stack = aco_share_stack_new(0);
    static const int steps[] = {0, 1, 2, 3}; /* ready; suspended or saved; the same; ended */
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    for (int round = 0; round < 100 * rounds; round++) {
        counter_t counter = {0, 0, 2, NULL};
        aco_t *co = aco_create(main_co, stack, (size_t)(round % 5 * 64), count, &counter);
        for (int i = 0; i < steps[round % 4]; i++)
            aco_resume(co);
        CHECK_EQ(co->is_end, round % 4 == 3);
        CHECK_EQ(counter.wrong, 0);
        if (queue_put(racer->queue, (unsigned)round * 7, co))
            racer->put++;
        else
            aco_destroy(co);
    }
    aco_destroy(main_co);
    return stack; /* for destruction once the destroyer is done with its coroutines */
}

/* Promise: aco_destroy() by another thread may race with its stack's and its heap's own thread going on with other
 * coroutines. Threads end and new ones take over their memory meanwhile. */
static void destruction_races(void)
{
    enum { MAKERS = 3, GENERATIONS = 4 };
    for (int generation = 0; generation < GENERATIONS; generation++) {
        queue_t queue;
        pthread_t makers[MAKERS], destroyer;
        racer_t racers[MAKERS];
        void *stacks[MAKERS], *destroyed;
        uintptr_t put = 0;
        memset(&queue, 0, sizeof queue);
        destroyer = start(destroy_from_queue, &queue);
        for (int i = 0; i < MAKERS; i++) {
            racers[i] = (racer_t){&queue, 0};
            makers[i] = start(make_and_hand_over, &racers[i]);
        }
        for (int i = 0; i < MAKERS; i++) {
            pthread_join(makers[i], &stacks[i]);
            put += racers[i].put;
        }
        __atomic_store_n(&queue.done, 1, __ATOMIC_RELEASE);
        pthread_join(destroyer, &destroyed);
        CHECK_EQ((uintptr_t)destroyed, put);
        CHECK(put > 0);
        for (int i = 0; i < MAKERS; i++)
            aco_share_stack_destroy(stacks[i]);
    }
}

/* ---- Threads that end and leave objects behind ---- */

enum { LEFT = 300 };

typedef struct left {
    aco_t *main_co;
    aco_share_stack_t *stack;
    aco_t *co[LEFT];
    counter_t counters[LEFT];
} left_t;

static void *make_and_end(void *arg)
{
    left_t *left = arg;
    for (int i = 0; i < LEFT; i++)
        left->co[i] = aco_create(left->main_co, left->stack, (size_t)i, count, &left->counters[i]);
    return NULL;
}

static void *make_run_and_destroy(void *arg)
{
    left_t *left = arg;
    aco_thread_init(NULL);
    left->main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    left->stack = aco_share_stack_new(0);
    make_and_end(left);
    for (int round = 0; round <= 3; round++)
        for (int i = 0; i < LEFT; i++)
            aco_resume(left->co[i]);
    for (int i = 0; i < LEFT; i++) {
        CHECK(left->co[i]->is_end);
        CHECK_EQ(left->counters[i].count, 3);
        CHECK_EQ(left->counters[i].wrong, 0);
        aco_destroy(left->co[i]);
    }
    aco_share_stack_destroy(left->stack);
    aco_destroy(left->main_co);
    return NULL;
}

static void set_last(left_t *left)
{
    memset(left, 0, sizeof *left);
    for (int i = 0; i < LEFT; i++)
        left->counters[i].last = 3;
}

/* Promise: coroutines outlive the thread that made them; another thread that takes over its memory does not disturb
 * them. */
static void left_behind(void)
{
    static left_t left, of_successor;
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    for (int round = 0; round < 1 + rounds / 10; round++) {
        set_last(&left);
        set_last(&of_successor);
        left.main_co = main_co;
        left.stack = aco_share_stack_new(0);
        run_on_thread(make_and_end, &left);
        for (int i = 0; i < LEFT; i += 2) { /* while its memory has no thread */
            aco_resume(left.co[i]);
            if (i % 4 == 0) {
                aco_destroy(left.co[i]);
                left.co[i] = NULL;
            }
        }
        run_on_thread(make_run_and_destroy, &of_successor);
        for (int step = 0; step < 5; step++)
            for (int i = 0; i < LEFT; i++)
                if (left.co[i] && !left.co[i]->is_end)
                    aco_resume(left.co[i]);
        for (int i = 0; i < LEFT; i++) {
            CHECK_EQ(left.counters[i].wrong, 0);
            CHECK_EQ(left.counters[i].count, left.co[i] ? 3 : 1);
            if (left.co[i])
                aco_destroy(left.co[i]);
        }
        aco_share_stack_destroy(left.stack);
    }
    aco_destroy(main_co);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = atoi(argv[1]);
    aco_thread_init(NULL);
    many_threads();
    made_by_another();
    destroyed_by_another();
    reuse_at_the_owners_address();
    stack_after_its_owner();
    destruction_races();
    left_behind();
    return check_result("threads");
}
