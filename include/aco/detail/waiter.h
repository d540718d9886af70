/* Part of <aco/scheduler.h>: what a waiting task keeps on its stack. */
#ifndef ACO_DETAIL_WAITER_H
#define ACO_DETAIL_WAITER_H

#include "../../aco.h"

/* A waiting task's place in a queue. */
typedef struct aco__waiter {
    struct aco__waiter *next, *previous;
    struct aco__queue *queue;  /* NULL: in none */
    struct aco__wait *wait;
    struct aco__waiter *other; /* the next place of the same wait */
    void *element;             /* for a channel: where to send from or to receive into */
} aco__waiter_t;

typedef struct aco__queue {
    aco__waiter_t *first, *last;
    aco__thread_t *thread; /* that uses the object; NULL: not known yet */
} aco__queue_t;

/* What a deadline is for: of a wait, or of a task's scopes. */
typedef struct aco__timed {
    size_t index;               /* of its timer in the heap, from 1 on; 0: it has none */
    void (*due)(aco__thread_t *self, struct aco__timed *timed); /* called without a timer. Set with the timer */
} aco__timed_t;

/* A message of another thread to a scheduler. */
typedef struct aco__post {
    struct aco__post *next;    /* NULL: not posted. Atomic */
    void (*run)(aco__thread_t *self, struct aco__post *post);
} aco__post_t;

/* What a task waits for. */
typedef struct aco__wait {
    aco_t *task;
    const void *object;
    const char *location;
    unsigned kind;              /* of object: ACO__WAIT_… in src/scheduler/wait.h */
    int error;                  /* the outcome; 0: success */
    void *value;                /* the result of a joined task; of a wait for a condition, the mutex */
    aco__waiter_t *first;       /* its places in queues; NULL: none */
    aco__waiter_t *woken;       /* the place that was served */
    aco__timed_t timer;         /* of a wait with a deadline of its own */
    aco__waiter_t waiter;       /* the place of a wait for one thing */
    uint64_t since;             /* the thread's `looked_at` when it began. Or'ed: ACO__TRIMMED */
} aco__wait_t;

#endif
