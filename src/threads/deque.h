/* Submitted work that no thread has started: deque.c. */
#ifndef ACO_THREADS_DEQUE_H
#define ACO_THREADS_DEQUE_H

#include "base/invariants.h"

#include "aco/threads.h"

enum {
    THREADS_LINE = 64,     /* what one thread writes often and others read stands in a cache line of its own */
    THREADS_STOLEN = 32    /* at most so many are stolen at a time */
};

typedef struct aco__item {
    ACO__SWITCHES aco_function_t fn;
    void *arg;
    aco_mt_group_t *group;
    void **result;
} aco__item_t;

typedef struct aco__deque {
    size_t bottom;              /* the owner pushes and pops here */
    struct aco__items *items;
    size_t seen_top;            /* `top` as the owner saw it last, no higher than it is */
    char padding[THREADS_LINE];
    size_t top;                 /* other threads steal here */
    char more_padding[THREADS_LINE];
} aco__deque_t;

/* Of all zeros: makes room for THREADS_STOLEN items. 0, or -1 and errno ENOMEM. */
ACO__HIDDEN int aco__deque_open(aco__deque_t *deque);
/* The owner's thread. 0, or -1 and errno ENOMEM. */
ACO__HIDDEN int aco__deque_push(aco__deque_t *deque, const aco__item_t *item);
/* The owner's thread: the item pushed last. 0: there is none, and *item is as it was. */
ACO__HIDDEN int aco__deque_pop(aco__deque_t *deque, aco__item_t *item);
/* Any thread: the item pushed first. 0: there is none; -1: another thread was faster. */
ACO__HIDDEN int aco__deque_steal(aco__deque_t *deque, aco__item_t *item);
/* The owner's thread, while there is no other: how many are of this group. */
ACO__HIDDEN size_t aco__deque_count_of(const aco__deque_t *deque, const aco_mt_group_t *group);
/* The owner's thread: whether a push needs no memory. */
ACO__HIDDEN int aco__deque_has_room(const aco__deque_t *deque);
/* Any thread: how many there are, or were a moment ago. */
ACO__HIDDEN size_t aco__deque_count(const aco__deque_t *deque);
/* No thread uses it any more. */
ACO__HIDDEN void aco__deque_free(aco__deque_t *deque);

#endif
