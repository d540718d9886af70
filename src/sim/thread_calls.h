/* thread_calls.c: threads, mutexes, conditions, futexes. */
#ifndef ACO_THREAD_CALLS_H
#define ACO_THREAD_CALLS_H

#include "sim/world.h"

/* Starts a thread of the node. 0, or an errno. */
ACO__HIDDEN int aco__sim_thread_start(aco_sim_t *sim, aco_sim_node_t *home, pthread_t *thread,
                                      const pthread_attr_t *attributes, void *(*fn)(void *arg), void *arg);
/* One that has not been joined. NULL: it is not of the run. */
ACO__HIDDEN aco__sim_thread_t *aco__sim_thread_of(aco_sim_t *sim, pthread_t thread);
/* Also one that nobody can join, while it lasts. */
ACO__HIDDEN aco__sim_thread_t *aco__sim_live_thread_of(aco_sim_t *sim, pthread_t thread);
ACO__HIDDEN int aco__sim_pthread_create(aco_sim_t *sim, pthread_t *thread, const pthread_attr_t *attributes,
                                        void *(*fn)(void *arg), void *arg);
ACO__HIDDEN int aco__sim_pthread_join(aco_sim_t *sim, pthread_t thread, void **result);
ACO__HIDDEN int aco__sim_pthread_mutex_lock(aco_sim_t *sim, pthread_mutex_t *mutex);
ACO__HIDDEN int aco__sim_pthread_mutex_trylock(aco_sim_t *sim, pthread_mutex_t *mutex);
ACO__HIDDEN int aco__sim_pthread_mutex_unlock(aco_sim_t *sim, pthread_mutex_t *mutex);
/* `until`: nanoseconds since the run's begin. */
ACO__HIDDEN int aco__sim_cond_wait_until(aco_sim_t *sim, pthread_cond_t *condition, pthread_mutex_t *mutex,
                                         int64_t until);
ACO__HIDDEN int aco__sim_pthread_cond_signal(aco_sim_t *sim, pthread_cond_t *condition);
ACO__HIDDEN int aco__sim_pthread_cond_broadcast(aco_sim_t *sim, pthread_cond_t *condition);
ACO__HIDDEN int aco__sim_futex_wait_until(aco_sim_t *sim, uint32_t *word, uint32_t value, int64_t until);
ACO__HIDDEN int aco__sim_futex_wake(aco_sim_t *sim, uint32_t *word, int threads);
ACO__HIDDEN int aco__sim_sched_yield(aco_sim_t *sim);
/* Lets the time pass until then. 0; EINTR: a node has ended by its own signal meanwhile. */
ACO__HIDDEN int aco__sim_sleep_until(aco_sim_t *sim, int64_t then);

#endif
