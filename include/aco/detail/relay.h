/* Between acorn and <aco/async.hpp>: waits without a task of their own. One task has a relay, with any number of places
 * in the queues of channels, mutexes, semaphores and descriptors. Each place is served in its turn, as a waiting task
 * is; then the relay is told. Not for programs. */
#ifndef ACO_DETAIL_RELAY_H
#define ACO_DETAIL_RELAY_H

#include "poller.h"

ACO__BEGIN_C

/* A place in a queue. Who waits there keeps it where it is until the wait is over. */
typedef struct aco__relay_place {
    aco__waiter_t waiter; /* first. `other`: the relay's next place that waits */
    union {
        struct aco__relay_place *previous; /* while it waits */
        int error;                         /* when woken() is called: how the wait has ended; 0: with success */
    } as;
} aco__relay_place_t;

typedef struct aco__relay {
    aco__wait_t wait; /* of all its places; `first`: of those that wait. Its task is in no wait by this */
    /* The wait at `place` is over. Called on the relay's thread by whoever ends it, in the root context or any task; it
     * must not wait. */
    void (*woken)(struct aco__relay_place *place);
    aco__poller_t *poller; /* in whose queues places are, or were. NULL: none; in a child of fork() the parent's */
    size_t polled;         /* places that count among its waiters */
    struct aco__relay *next, **link; /* others of the thread's chooser (chooser.h); link: NULL: it has none */
} aco__relay_t;

ACO__FORCE_INLINE aco__relay_t *aco__relay_of(const aco__relay_place_t *place)
{
    return (aco__relay_t *)(void *)place->waiter.wait; /* its first field */
}

/* Prepares a relay of the calling task, which aco__relay_close() ends. No place of it waits then. */
ACO_API void aco__relay_begin(aco__relay_t *relay, void (*woken)(aco__relay_place_t *place));
ACO_API void aco__relay_close(aco__relay_t *relay);
/* A simulation: the task never runs again. Its relays leave what they wait for, and are closed. */
struct aco__chooser_s;
ACO_API void aco__relays_abandon(struct aco__chooser_s *chooser, const aco_t *task);

/* These do at once what they can. Called in a turn of the relay's task; they do not wait. Return 0: done; -1 and errno:
 * failed; ACO__RELAYED: woken() will be called, and the memory of the element is used until then. What belongs to tasks
 * (a mutex) belongs to the relay's task. */
enum { ACO__RELAYED = 1 };
ACO_API int aco__relay_send(aco__relay_t *relay, aco__relay_place_t *place, aco_channel_t *channel, const void *from);
ACO_API int aco__relay_receive(aco__relay_t *relay, aco__relay_place_t *place, aco_channel_t *channel, void *to);
ACO_API int aco__relay_lock(aco__relay_t *relay, aco__relay_place_t *place, aco_mutex_t *mutex);
ACO_API int aco__relay_acquire(aco__relay_t *relay, aco__relay_place_t *place, aco_semaphore_t *semaphore);
/* For other queues: the place is the last in `queue`, ACO__RELAYED; or -1 and errno. */
ACO_API int aco__relay_wait(aco__relay_t *relay, aco__relay_place_t *place, aco__queue_t *queue);

/* Whether the place is in a queue. */
ACO__FORCE_INLINE int aco__relay_waits(const aco__relay_place_t *place)
{
    return place->waiter.queue != NULL;
}
/* A place leaves its queue, without a call of woken(). */
ACO_API void aco__relay_leave(aco__relay_place_t *place);
/* Ends the wait at a place with `error`; 0: with success. */
ACO_API void aco__relay_end(aco__relay_place_t *place, int error);
/* The same for all places. A later call that would have to wait fails with `error` at once. */
ACO_API void aco__relay_end_all(aco__relay_t *relay, int error);

/* The place is in a poller's queue from now on: ACO__RELAYED; or -1 and errno. When the wait is over, or shall be,
 * aco__poller_relay_end(). */
ACO_API int aco__poller_relay(aco__poller_t *poller, aco__relay_t *relay, aco__relay_place_t *place,
                              aco__queue_t *queue, const char *call);
ACO_API void aco__poller_relay_end(aco__relay_place_t *place);

ACO__END_C

#endif
