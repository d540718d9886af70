/* How tasks and threads wait for what other threads give them: of shared.c and shared_channel.c.
 *
 * Each object has a lock for a few instructions and a queue of places. A waiter has one place, or places in several
 * queues. Whoever gives something to a waiter takes one of its places out of a queue and claims the waiter, both under
 * the lock, and wakes it after that. A place of a waiter that is claimed already leaves the queue and gets nothing. A
 * waiter whose wait has failed claims itself. If another one was faster, it has been given something: it waits on until
 * it is woken, which is sure to happen, and succeeds. A waiter takes its places out of the queues before it returns.
 * After it has released an object's lock a giver does not touch the object: whoever returns from a wait may free it. */
#ifndef ACO_THREADS_SHARED_H
#define ACO_THREADS_SHARED_H

#include "scheduler/spin.h"
#include "threads/set.h"

#include "aco/shared.h"

#include <sched.h>

/* One that waits: a task, or a thread in its root context. */
typedef struct aco__sharer {
    int is_task;
    int is_closed;               /* the channel was closed: nothing was given */
    aco__answer_t answer;        /* of a thread, only is_claimed */
    aco__shared_place_t place;   /* of a wait for one thing */
    aco__shared_place_t *given;  /* which place was served */
    struct aco__sharer *next_woken;
    aco_shared_mutex_t *mutex;   /* of a wait for a condition, like the next two */
    aco__shared_place_t relock;  /* in the mutex's queue. The waiter is claimed already */
    int early;                   /* under the mutex's lock: RAN_… */
    pthread_mutex_t lock;        /* of a thread, like the next two */
    pthread_cond_t changed;
    int is_woken;                /* atomic */
} aco__sharer_t;

/* Waiters that are given something. They are woken when no lock is held any more. */
typedef struct aco__woken {
    aco__sharer_t *first, *last;
} aco__woken_t;

static inline void aco__woken_add(aco__woken_t *woken, aco__sharer_t *sharer)
{
    sharer->next_woken = NULL;
    *(woken->last ? &woken->last->next_woken : &woken->first) = sharer;
    woken->last = sharer;
}

/* ---- The lock of an object ---- */

#ifdef ACO__INVARIANTS
/* What a lock holds while the calling thread has it. */
static inline uint32_t aco__shared_holder(void)
{
    return (uint32_t)((uintptr_t)aco__self() >> 4) | 1;
}
#endif

#define ACO__ASSERT_SHARED(shared)                                                                                     \
    ACO__ASSERT(__atomic_load_n(&(shared)->lock, __ATOMIC_RELAXED) == aco__shared_holder())

/* Whether it was free: it is locked now. */
static inline int aco__shared_lock_now(aco__shared_t *shared)
{
#ifdef ACO__INVARIANTS
    uint32_t none = 0; /* an exchange would overwrite the holder */
    return __atomic_compare_exchange_n(&shared->lock, &none, aco__shared_holder(), 0, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
#else
    return !__atomic_exchange_n(&shared->lock, 1, __ATOMIC_ACQUIRE);
#endif
}

/* Who waits looks seldom, every 2 us or so. Each look takes the cache line from the holder, who needs it back to
 * unlock, and while nobody looks, one thread can lock again and again. Looks that begin often and become rare made a
 * busy channel half as fast. */
static inline void aco__shared_lock(aco__shared_t *shared)
{
    enum { PAUSES = 64, LOOKS = 16 };
    int looks = 0;
    ACO__NO_SWITCH_BEGIN(); /* another task of the thread would spin for the lock for ever */
    while (!aco__shared_lock_now(shared))
        do {
            for (int i = 0; i < PAUSES; i++)
                aco__spin_pause();
            if (++looks > LOOKS)
                aco__system.sched_yield(); /* its holder does not run */
        } while (__atomic_load_n(&shared->lock, __ATOMIC_RELAXED));
}

/* The last that the caller does with the object: another thread may free it as soon as it gets the lock. */
static inline void aco__shared_unlock(aco__shared_t *shared)
{
    ACO__ASSERT_SHARED(shared);
    __atomic_store_n(&shared->lock, 0, __ATOMIC_RELEASE);
    ACO__NO_SWITCH_END();
}

/* ---- The queue; with the lock ---- */

static inline void aco__shared_append(aco__shared_t *shared, aco__shared_place_t *place, aco__sharer_t *sharer)
{
    ACO__ASSERT(!shared->first == !shared->last && (!shared->last || !shared->last->next));
    place->sharer = sharer;
    place->is_queued = 1;
    place->next = NULL;
    place->previous = shared->last;
    *(shared->last ? &shared->last->next : &shared->first) = place;
    shared->last = place;
}

static inline void aco__shared_remove(aco__shared_t *shared, aco__shared_place_t *place)
{
    if (!place->is_queued)
        return;
    ACO__ASSERT((place->previous ? place->previous->next : shared->first) == place);
    ACO__ASSERT((place->next ? place->next->previous : shared->last) == place);
    place->is_queued = 0;
    *(place->previous ? &place->previous->next : &shared->first) = place->next;
    *(place->next ? &place->next->previous : &shared->last) = place->previous;
}

/* Takes the first place, and claims its waiter. NULL: nobody waits. */
static inline aco__shared_place_t *aco__shared_claim(aco__shared_t *shared)
{
    aco__shared_place_t *place;
    while ((place = shared->first) != NULL) {
        aco__sharer_t *sharer = place->sharer;
        aco__shared_remove(shared, place);
        if (place == &sharer->relock || aco__answer_claim(&sharer->answer)) {
            ACO__ASSERT(!sharer->given || place == &sharer->relock); /* it is given one thing */
            sharer->given = place;
            return place;
        }
    }
    return NULL;
}

/* The same, and the waiter will be woken. */
static inline aco__shared_place_t *aco__shared_give(aco__shared_t *shared, aco__woken_t *woken)
{
    aco__shared_place_t *place = aco__shared_claim(shared);
    if (place)
        aco__woken_add(woken, place->sharer);
    return place;
}

static inline void aco__shared_give_all(aco__shared_t *shared, aco__woken_t *woken)
{
    while (aco__shared_give(shared, woken))
        ;
}

/* ---- Waiting; without a lock ---- */

typedef struct aco__waiting {
    const char *call, *what, *location;
    int64_t deadline;
} aco__waiting_t;

/* Wakes them, in this order. */
ACO__HIDDEN void aco__shared_wake(const aco__woken_t *woken);
/* Prepares a waiter for the caller: `on_stack`, or an allocated one if other tasks' frames may come there. NULL and
 * errno: the caller cannot wait, or no memory. aco__sharer_close() keeps errno. */
ACO__SWITCHES ACO__HIDDEN aco__sharer_t *aco__sharer_open(aco__sharer_t *on_stack, const char *call);
ACO__HIDDEN void aco__sharer_close(aco__sharer_t *sharer, const aco__sharer_t *on_stack);
/* Waits. 0: the waiter was given something. -1 and errno: it will not be. */
ACO__SWITCHES
ACO__HIDDEN int aco__sharer_wait(aco__sharer_t *sharer, const aco__waiting_t *waiting, aco__waiter_t *more);

/* What a call waits for. `take` is called with the lock: 1, the caller has got it now; 0, it has not; or the errno of a
 * failure as a negative number. */
typedef struct aco__request {
    aco__shared_t *shared; /* has the lock */
    aco__shared_t *queue;  /* to wait in */
    int (*take)(const struct aco__request *request, aco__woken_t *woken);
    void (*left)(const struct aco__request *request, aco__woken_t *woken); /* a waiter has given up; NULL: nothing */
    void *object, *element;
    aco__waiting_t waiting;
} aco__request_t;

/* Waits for it. 0, or -1 and errno. */
ACO__SWITCHES ACO__HIDDEN int aco__shared_request(const aco__request_t *request);
/* Does not wait: 0, or -1 and errno, `error` if it would have to wait. */
ACO__HIDDEN int aco__shared_try(const aco__request_t *request, int error);

#endif
