/* Who starts which item, and who sleeps: search.c. */
#ifndef ACO_THREADS_SEARCH_H
#define ACO_THREADS_SEARCH_H

#include "threads/set.h"

/* The lock of all sets: for what happens rarely. */
ACO__HIDDEN void aco__threads_lock(void);
ACO__HIDDEN void aco__threads_unlock(void);
ACO__HIDDEN void aco__threads_wait(aco_threads_t *threads); /* for `changed` */
/* Any thread, while the set is there: it stays until aco__threads_release(), even if what the caller does ends it. */
ACO__HIDDEN void aco__threads_hold(aco_threads_t *threads);
ACO__HIDDEN void aco__threads_release(aco_threads_t *threads);
/* To be called before a set is made. How many forks lie behind the process; or -1 and errno. */
ACO__HIDDEN int aco__threads_handle_forks(void (*in_child)(void));
/* Whether the process is a child that does not have the set's threads. */
ACO__HIDDEN int aco__threads_forked(const aco_threads_t *threads);
/* The calling thread's; NULL: it is in no set. */
ACO__HIDDEN aco__set_worker_t *aco__threads_self(void);
/* Any thread: calls fn for each thread of the set. */
ACO__HIDDEN void aco__threads_each(aco_threads_t *threads, void (*fn)(aco__set_worker_t *worker));
/* The worker with this number; NULL: there is none. */
ACO__HIDDEN aco__set_worker_t *aco__threads_worker(aco_threads_t *threads, int number);
/* Any thread: whether the worker may be posted and sent to, until aco__threads_leave(), which must follow. */
ACO__HIDDEN int aco__threads_enter(aco__set_worker_t *worker);
ACO__HIDDEN void aco__threads_leave(aco__set_worker_t *worker);
/* The worker's thread: from now on others may post and send to it; nobody may. */
ACO__HIDDEN void aco__threads_open(aco__set_worker_t *worker);
ACO__HIDDEN void aco__threads_close(aco__set_worker_t *worker);
/* Any thread: posts to a worker, and so wakes it. */
ACO__HIDDEN void aco__threads_post(aco__set_worker_t *worker, aco__post_t *post);
ACO__HIDDEN void aco__threads_wake(aco__set_worker_t *worker);
/* The same: the worker looks which of its members' groups have ended, and whether the set is stopped. */
ACO__HIDDEN void aco__threads_post_ends(aco__set_worker_t *worker);
/* There is new work for any thread; `near`, the worker that has it, or NULL. */
ACO__HIDDEN void aco__threads_wake_one(aco_threads_t *threads, const aco__set_worker_t *near);
/* The worker's thread, when all threads that the set has made know their places: finds out which are near. */
ACO__HIDDEN void aco__threads_find_near(aco__set_worker_t *worker);
/* The worker's thread: the next item that was sent to it, or NULL. It stays `first` in the list. */
static inline int aco__threads_has_sent(const aco__set_worker_t *worker)
{
    return worker->first || __atomic_load_n(&worker->inbox, __ATOMIC_SEQ_CST);
}
ACO__HIDDEN aco__node_t *aco__threads_sent(aco__set_worker_t *worker);
/* The worker's thread: the next item that any thread may start. 0: none; of its own alone; else, of others too. */
ACO__HIDDEN int aco__threads_take(aco__set_worker_t *worker, aco__item_t *item);
ACO__HIDDEN int aco__threads_find(aco__set_worker_t *worker, aco__item_t *item);
/* There is nothing to do: 1, the thread may sleep; 0, there is something after all. */
ACO__HIDDEN int aco__threads_may_sleep(aco__set_worker_t *worker);
ACO__HIDDEN void aco__threads_slept(aco__set_worker_t *worker);
/* The worker has found something, or has other things to do. */
ACO__HIDDEN void aco__threads_end_search(aco__set_worker_t *worker);
/* The worker that the set has made to which the fewest members were sent; NULL: all are gone. */
ACO__HIDDEN aco__set_worker_t *aco__threads_least_sent(aco_threads_t *threads);
/* Adds work: of a thread that is not of the set; of any thread for one. 0, or -1 and errno. The set may be
 * gone then. */
ACO__HIDDEN int aco__threads_inject(aco_threads_t *threads, const aco__item_t *item);
ACO__HIDDEN int aco__threads_send(aco__set_worker_t *worker, const aco__item_t *item);
/* The worker's thread: what it was sent, in order; NULL: no more. */
ACO__HIDDEN aco__node_t *aco__threads_receive(aco__set_worker_t *worker);

#endif
