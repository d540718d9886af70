/* Scopes of tasks on several threads that another thread cancels at any moment. */
#ifndef CANCELLED_AT_RANDOM_H
#define CANCELLED_AT_RANDOM_H

#include "check.h"
#include "random.h"

#include <aco/scope.h>

#include <pthread.h>
#include <sched.h>

enum { CANCELLED_SLOTS = 32 };
static struct cancelled_slot {
    pthread_mutex_t lock;
    aco_scope_t *scope; /* NULL: none. It is left only when it is not here */
} cancelled_slots[CANCELLED_SLOTS];
static int cancelled_stop;

static inline void set_cancelled(struct cancelled_slot *slot, aco_scope_t *scope)
{
    pthread_mutex_lock(&slot->lock);
    slot->scope = scope;
    pthread_mutex_unlock(&slot->lock);
}

/* Calls fn(i) in a scope. Each task has a slot of its own. */
static inline void in_cancelled_scope(int slot, void (*fn)(int i), int i)
{
    aco_scope_t scope;
    CHECK(aco_scope_begin(&scope, ACO_FOREVER) == 0);
    set_cancelled(&cancelled_slots[slot], &scope);
    fn(i);
    set_cancelled(&cancelled_slots[slot], NULL);
    CHECK(aco_scope_end(&scope) == 0);
}

static inline void *cancel_slots(void *arg)
{
    random_t random = {1};
    while (!__atomic_load_n(&cancelled_stop, __ATOMIC_RELAXED)) {
        struct cancelled_slot *slot = &cancelled_slots[draw(&random) % CANCELLED_SLOTS];
        pthread_mutex_lock(&slot->lock);
        if (slot->scope)
            CHECK(aco_scope_cancel(slot->scope) == 0);
        pthread_mutex_unlock(&slot->lock);
        if (draw(&random) % 4 == 0)
            sched_yield();
    }
    return arg;
}

static inline void start_cancelling(pthread_t *thread)
{
    for (int i = 0; i < CANCELLED_SLOTS; i++)
        pthread_mutex_init(&cancelled_slots[i].lock, NULL);
    __atomic_store_n(&cancelled_stop, 0, __ATOMIC_RELAXED);
    CHECK(pthread_create(thread, NULL, cancel_slots, NULL) == 0);
}

static inline void stop_cancelling(pthread_t thread)
{
    __atomic_store_n(&cancelled_stop, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(thread, NULL) == 0);
}

#endif
