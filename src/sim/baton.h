/* baton.c: the threads of a run, of which one goes on at a time: it has the baton. */
#ifndef ACO_BATON_H
#define ACO_BATON_H

#include "sim/links.h"
#include "sim/node_threads.h"
#include "sim/schedule.h"

#include "aco/detail/chooser.h"

#include <pthread.h>
#include <setjmp.h>

enum { ACO__SIM_MOST_HELD = 8 };
enum { ACO__SIM_PATIENT = 1, ACO__SIM_FOR_MUTEX /* patient, too */ }; /* kinds of waits */

typedef struct aco__sim_thread {
    aco_sim_t *sim;
    aco__links_t all;
    uint64_t number;    /* of threads in a run. 1: that of aco_sim_run() */
    aco__chooser_t chooser; /* for its tasks */
    aco__sim_schedule_t schedule;
    uint32_t has_baton; /* a futex. Atomic */
    const char *call;   /* in which it waits; NULL: it can go on */
    const void *object; /* that it waits for; NULL: for the time */
    int64_t until;      /* nanoseconds since the run's begin; INT64_MAX: for ever */
    int is_patient;     /* a failure of the run does not end the wait */
    int result;         /* of the wait: 0, or an errno */
    int is_in_turn;     /* sim->is_in_turn, while it does not go on */
    aco_sim_node_t *here; /* sim->nodes.here, likewise; and what sim->notes has */
    const aco_t *turn;
    uint64_t turn_number;
    struct aco__sim_thread *asks; /* gave it the baton to list its tasks, and wants it back; or NULL */
    uint64_t priority;  /* ACO_SIM_PCT */
    const void *held[ACO__SIM_MOST_HELD]; /* its mutexes; NULL: none */
    aco__links_t held_in_calls; /* aco__sim_held_t: what calls that wait hold */
    /* Not of the first one: */
    void *(*fn)(void *arg);
    void *arg, *returned;
    pthread_t thread;
    int is_joinable, has_ended;
    aco_sim_node_t *home; /* whose thread it is */
    int is_at_rest;     /* it has not begun, is between turns, or waits: its node may crash */
    int is_to_leave;    /* its node has crashed: it leaves its frames, and ends */
    jmp_buf *base;      /* where it leaves them for; NULL: it has none */
    uint64_t signals, blocked; /* that were sent to it; that it blocks: bits */
} aco__sim_thread_t;

typedef struct aco__sim_threads {
    aco__sim_thread_t first;
    aco__links_t all;    /* in the order in which they began */
    aco__sim_thread_t *running; /* it has the baton */
    uint64_t others;     /* that have not ended, besides the first one */
    uint64_t numbers;
    uint64_t draws;      /* the state of their random numbers */
    uint64_t rarity;     /* at one of so many points another thread goes on */
    uint64_t stays;      /* points since another one went on */
    uint64_t points;     /* since a task had a turn, or time has passed */
    uint64_t lowest;     /* the next priority below all others */
    uint64_t deadlocks;
    int is_busy;         /* the baton is being given */
    int is_ending;       /* the first one has nothing left to do */
} aco__sim_threads_t;

/* The calling thread becomes the first one. `chooser` is set. */
ACO__HIDDEN void aco__sim_threads_begin(aco_sim_t *sim, uint64_t seed);
/* The first one has no task left: waits for the others to end. The run fails if one would wait for ever; that one never
 * goes on. */
ACO__HIDDEN void aco__sim_threads_end(aco_sim_t *sim);
/* Frees what belongs to threads that have ended. */
ACO__HIDDEN void aco__sim_threads_free(aco_sim_t *sim);

/* A new thread of the node, which can go on; `number` and what follows is set. NULL: no memory. */
ACO__HIDDEN aco__sim_thread_t *aco__sim_thread_new(aco_sim_t *sim, aco_sim_node_t *home);
/* It could not be started. */
ACO__HIDDEN void aco__sim_thread_drop(aco__sim_thread_t *thread);
/* On the new thread, at its begin: waits for the baton. At its end: gives it away. */
ACO__HIDDEN void aco__sim_thread_enter(aco__sim_thread_t *thread);
ACO__HIDDEN void aco__sim_thread_leave(aco__sim_thread_t *thread);
/* The next one; NULL: it is the last. */
ACO__HIDDEN aco__sim_thread_t *aco__sim_thread_after(const aco_sim_t *sim, const aco__sim_thread_t *thread);

ACO__HIDDEN int aco__sim_holds_mutex(const aco__sim_thread_t *thread);
/* Its node crashes, or is suspended: it does not go on. */
ACO__HIDDEN int aco__sim_is_halted(const aco__sim_thread_t *thread);
/* Unless it holds a mutex, the thread may now be left where it is: is_at_rest. */
ACO__HIDDEN void aco__sim_rest(aco__sim_thread_t *thread);
/* It waits for nothing, and its node neither crashes nor is suspended. */
static inline int aco__sim_can_go_on(const aco__sim_thread_t *thread)
{
    return !thread->call && !thread->has_ended && !aco__sim_is_halted(thread);
}

/* Another thread may go on first. errno stays. */
ACO__HIDDEN void aco__sim_point(aco_sim_t *sim);
/* Another thread goes on first, if one can. */
ACO__HIDDEN void aco__sim_give_way(aco_sim_t *sim);
/* The calling thread waits for `object` in this call. 0: it was woken. ETIMEDOUT: the time has come. EINTR, or EDEADLK:
 * the run has failed, and the first thread does not wait any more; if it is patient, only EDEADLK. A thread whose node
 * crashes meanwhile does not come back. */
ACO__HIDDEN int aco__sim_wait(aco_sim_t *sim, const char *call, const void *object, int64_t until, int is_patient);
/* Wakes at most so many threads that wait for the object: at random if it is 1. How many. */
ACO__HIDDEN int aco__sim_wake(aco_sim_t *sim, const void *object, int most);
/* Ends the first thread's wait with EINTR, so that it looks at what nodes are to do, if it waits as tasks may wait. */
ACO__HIDDEN void aco__sim_interrupt_first(aco_sim_t *sim);

#endif
