/* Producer and consumer: two coroutines with a short queue between them.
 *
 * Each works for as long as it can and then hands over to the other one by aco_yield_to(), without a detour through
 * main(). main() is the resumer of the one that runs, so the first that ends returns there. */
#include "aco.h"

#include <stdio.h>

#include "aco_assert_override.h"

enum { CAPACITY = 4, ITEMS = 10 };

typedef struct queue {
    int items[CAPACITY];
    size_t first, count;
    int closed; /* nothing will be put any more */
    aco_t *producer, *consumer;
} queue_t;

static void put(queue_t *q, int item)
{
    q->items[(q->first + q->count++) % CAPACITY] = item;
}

static int take(queue_t *q)
{
    int item = q->items[q->first];
    q->first = (q->first + 1) % CAPACITY;
    q->count--;
    return item;
}

static void *produce(void *arg)
{
    queue_t *q = arg;
    for (int i = 1; i <= ITEMS; i++) {
        while (q->count == CAPACITY) {
            printf("producer: full before %d\n", i);
            assert(aco_yield_to(q->consumer) == 0);
        }
        put(q, i * i);
    }
    q->closed = 1;
    printf("producer: done\n");
    return NULL;
}

static void *consume(void *arg)
{
    static long sum;
    queue_t *q = arg;
    for (;;) {
        while (q->count == 0 && !q->closed) {
            printf("consumer: empty at %ld\n", sum);
            assert(aco_yield_to(q->producer) == 0);
        }
        if (q->count == 0)
            break;
        sum += take(q);
    }
    printf("consumer: done\n");
    return &sum;
}

int main(void)
{
    queue_t q = {.closed = 0};
    q.producer = aco_new(produce, &q, NULL);
    q.consumer = aco_new(consume, &q, NULL);
    assert(q.producer && q.consumer);

    aco_send(q.producer, NULL); /* comes back when the producer has put its last item and returned */
    assert(aco_state(q.producer) == ACO_STATE_DONE && aco_state(q.consumer) == ACO_STATE_SUSPENDED);
    aco_send(q.consumer, NULL); /* what is left in the queue */
    assert(aco_state(q.consumer) == ACO_STATE_DONE);

    long sum = *(long *)aco_result(q.consumer);
    printf("sum of %d squares: %ld\n", ITEMS, sum);
    assert(sum == ITEMS * (ITEMS + 1) * (2 * ITEMS + 1) / 6);

    aco_destroy(q.consumer);
    aco_destroy(q.producer);
    return 0;
}
