/* Queues of places: each place is of one wait, and each wait is in one queue or in several. */
#ifndef ACO_QUEUE_H
#define ACO_QUEUE_H

#include "scheduler/task.h"

static inline void aco__enqueue(aco__queue_t *queue, aco__waiter_t *waiter)
{
    ACO__ASSERT(!queue->first == !queue->last && (!queue->last || !queue->last->next));
    waiter->queue = queue;
    waiter->next = NULL;
    waiter->previous = queue->last;
    *(queue->last ? &queue->last->next : &queue->first) = waiter;
    queue->last = waiter;
}

static inline void aco__dequeue(aco__waiter_t *waiter)
{
    aco__queue_t *queue = waiter->queue;
    ACO__ASSERT(queue != NULL); /* a place leaves its queue once */
    ACO__ASSERT((waiter->previous ? waiter->previous->next : queue->first) == waiter);
    ACO__ASSERT((waiter->next ? waiter->next->previous : queue->last) == waiter);
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it is in a queue
    *(waiter->previous ? &waiter->previous->next : &queue->first) = waiter->next;
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
    *(waiter->next ? &waiter->next->previous : &queue->last) = waiter->previous;
    waiter->queue = NULL;
}

#endif
