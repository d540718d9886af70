/* How tasks and threads wait for what other threads give them: of mt_sync.c and mt_channel.c.
 *
 * Each object has a lock for a few instructions and a queue of places. A waiter has one place, or places in several
 * queues. Whoever gives something to a waiter takes one of its places out of a queue and claims the waiter, both under
 * the lock, and wakes it after that. A place of a waiter that is claimed already leaves the queue and gets nothing. A
 * waiter whose wait has failed claims itself. If another one was faster, it has been given something: it waits on until
 * it is woken, which is sure to happen, and succeeds. A waiter takes its places out of the queues before it returns.
 * After it has released an object's lock a giver does not touch the object: whoever returns from a wait may free it. */
#ifndef ACO_THREADS_MT_SYNC_H
#define ACO_THREADS_MT_SYNC_H

#include "base/invariants.h"
#include "scheduler/spin.h"
#include "system/point.h"
#include "system/system.h"

#include "aco/detail/worker.h"
#include "aco/mt.h"

#include <pthread.h>

/* One that waits: a task, or a thread in its root context. */
typedef struct aco__mt_waiter {
    int is_task;
    int is_closed;               /* the channel was closed: nothing was given */
    aco__answer_t answer;        /* of a thread, only is_claimed */
    aco__mt_place_t place;       /* of a wait for one thing */
    aco__mt_place_t *given;      /* which place was served */
    struct aco__mt_waiter *next_woken;
    aco_mt_mutex_t *mutex;       /* of a wait for a condition, like the next two */
    aco__mt_place_t relock;      /* in the mutex's queue. The waiter is claimed already */
    int early;                   /* under the mutex's lock: RAN_… */
    pthread_mutex_t lock;        /* of a thread, like the next two */
    pthread_cond_t changed;
    int is_woken;                /* atomic */
} aco__mt_waiter_t;

/* Waiters that are given something. They are woken when no lock is held any more. */
typedef struct aco__woken {
    aco__mt_waiter_t *first, *last;
} aco__woken_t;

static inline void aco__woken_add(aco__woken_t *woken, aco__mt_waiter_t *waiter)
{
    waiter->next_woken = NULL;
    *(woken->last ? &woken->last->next_woken : &woken->first) = waiter;
    woken->last = waiter;
}

/* ---- The lock of an object ---- */

#ifdef ACO__INVARIANTS
/* What a lock holds while the calling thread has it. */
static inline uint32_t aco__mt_holder(void)
{
    return (uint32_t)((uintptr_t)aco__self() >> 4) | 1;
}
#endif

#define ACO__ASSERT_MT(mt)                                                                                             \
    ACO__ASSERT(__atomic_load_n(&(mt)->lock, __ATOMIC_RELAXED) == aco__mt_holder())

/* Whether it was free: it is locked now. */
static inline int aco__mt_lock_now(aco__mt_t *mt)
{
#ifdef ACO__INVARIANTS
    uint32_t none = 0; /* an exchange would overwrite the holder */
    return __atomic_compare_exchange_n(&mt->lock, &none, aco__mt_holder(), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
#else
    return !__atomic_exchange_n(&mt->lock, 1, __ATOMIC_ACQUIRE);
#endif
}

/* Who waits looks seldom, every 2 us or so. Each look takes the cache line from the holder, who needs it back to
 * unlock, and while nobody looks, one thread can lock again and again. Looks that begin often and become rare made a
 * busy channel half as fast. */
static inline void aco__mt_lock(aco__mt_t *mt)
{
    enum { PAUSES = 64, LOOKS = 16 };
    int looks = 0;
    ACO__POINT();
    ACO__NO_SWITCH_BEGIN(); /* another task of the thread would spin for the lock for ever */
    while (!aco__mt_lock_now(mt))
        do {
            for (int i = 0; i < PAUSES; i++)
                aco__spin_pause();
            if (++looks > LOOKS)
                aco__system.sched_yield(); /* its holder does not run */
        } while (__atomic_load_n(&mt->lock, __ATOMIC_RELAXED));
}

/* The last that the caller does with the object: another thread may free it as soon as it gets the lock. */
static inline void aco__mt_unlock(aco__mt_t *mt)
{
    ACO__ASSERT_MT(mt);
    __atomic_store_n(&mt->lock, 0, __ATOMIC_RELEASE);
    ACO__NO_SWITCH_END();
}

/* ---- The queue; with the lock ---- */

static inline void aco__mt_append(aco__mt_t *mt, aco__mt_place_t *place, aco__mt_waiter_t *waiter)
{
    ACO__ASSERT(!mt->first == !mt->last && (!mt->last || !mt->last->next));
    place->waiter = waiter;
    place->is_queued = 1;
    place->next = NULL;
    place->previous = mt->last;
    *(mt->last ? &mt->last->next : &mt->first) = place;
    mt->last = place;
}

static inline void aco__mt_remove(aco__mt_t *mt, aco__mt_place_t *place)
{
    if (!place->is_queued)
        return;
    ACO__ASSERT((place->previous ? place->previous->next : mt->first) == place);
    ACO__ASSERT((place->next ? place->next->previous : mt->last) == place);
    place->is_queued = 0;
    *(place->previous ? &place->previous->next : &mt->first) = place->next;
    *(place->next ? &place->next->previous : &mt->last) = place->previous;
}

/* Takes the first place, and claims its waiter. NULL: nobody waits. */
static inline aco__mt_place_t *aco__mt_claim(aco__mt_t *mt)
{
    aco__mt_place_t *place;
    while ((place = mt->first) != NULL) {
        aco__mt_waiter_t *waiter = place->waiter;
        aco__mt_remove(mt, place);
        if (place == &waiter->relock || aco__answer_claim(&waiter->answer)) {
            ACO__ASSERT(!waiter->given || place == &waiter->relock); /* it is given one thing */
            waiter->given = place;
            return place;
        }
    }
    return NULL;
}

/* The same, and the waiter will be woken. */
static inline aco__mt_place_t *aco__mt_give(aco__mt_t *mt, aco__woken_t *woken)
{
    aco__mt_place_t *place = aco__mt_claim(mt);
    if (place)
        aco__woken_add(woken, place->waiter);
    return place;
}

static inline void aco__mt_give_all(aco__mt_t *mt, aco__woken_t *woken)
{
    while (aco__mt_give(mt, woken))
        ;
}

/* ---- Waiting; without a lock ---- */

typedef struct aco__waiting {
    const char *call, *what, *location;
    int64_t deadline;
} aco__waiting_t;

/* Wakes them, in this order. */
ACO__HIDDEN void aco__mt_wake(const aco__woken_t *woken);
/* Prepares a waiter for the caller: `on_stack`, or an allocated one if other tasks' frames may come there. NULL and
 * errno: the caller cannot wait, or no memory. aco__mt_waiter_close() keeps errno. */
ACO__SWITCHES ACO__HIDDEN aco__mt_waiter_t *aco__mt_waiter_open(aco__mt_waiter_t *on_stack, const char *call);
ACO__HIDDEN void aco__mt_waiter_close(aco__mt_waiter_t *waiter, const aco__mt_waiter_t *on_stack);
/* Waits. 0: the waiter was given something. -1 and errno: it will not be. */
ACO__SWITCHES
ACO__HIDDEN int aco__mt_waiter_wait(aco__mt_waiter_t *waiter, const aco__waiting_t *waiting, aco__waiter_t *more);

/* What a call waits for. `take` is called with the lock: 1, the caller has got it now; 0, it has not; or the errno of a
 * failure as a negative number. */
typedef struct aco__request {
    aco__mt_t *mt; /* has the lock */
    aco__mt_t *queue;      /* to wait in */
    int (*take)(const struct aco__request *request, aco__woken_t *woken);
    void (*left)(const struct aco__request *request, aco__woken_t *woken); /* a waiter has given up; NULL: nothing */
    void *object, *element;
    aco__waiting_t waiting;
} aco__request_t;

/* Waits for it. 0, or -1 and errno. */
ACO__SWITCHES ACO__HIDDEN int aco__mt_request(const aco__request_t *request);
/* Does not wait: 0, or -1 and errno, `error` if it would have to wait. */
ACO__HIDDEN int aco__mt_try(const aco__request_t *request, int error);

#endif
