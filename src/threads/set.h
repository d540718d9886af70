/* The layer of threads that share work, in the library acorn_threads. It is beside the scheduler's layer and that of
 * descriptors, and calls only what acorn exports. Its files include the system's headers: they make threads. */
#ifndef ACO_THREADS_INTERNAL_H
#define ACO_THREADS_INTERNAL_H

#include "base/invariants.h"
#include "system/system.h"

#include "aco/detail/signals.h"
#include "aco/threads.h"

#include <pthread.h>
#include <string.h>

enum {
    THREADS_LINE = 64,     /* what one thread writes often and others read stands in a cache line of its own */
    THREADS_JOINED = 64,   /* at most so many threads of the program join a set */
    THREADS_MOST = 4096,
    THREADS_AT_ONCE = 4,   /* submitted functions that a thread starts in one round of its queue, see submit.c */
    THREADS_STOLEN = 32    /* at most so many are stolen at a time */
};
#define THREADS_END_NS (2 * ACO_SECOND) /* after a second signal, tasks have so long to end */

/* ---- deque.c: submitted work that no thread has started ---- */
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
/* The owner's thread: the item pushed last. 0: there is none. */
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

/* ---- The records ---- */
typedef struct aco__node { /* an item of a list */
    struct aco__node *next;
    aco__item_t item;
    size_t sz;             /* of this record, as allocated */
} aco__node_t;

/* A task that runs an item, on its stack. */
typedef struct aco__run {
    aco__member_t base;
    aco__item_t item;
    struct aco__crew *worker;
    int is_sent;
    struct aco__run *next, *previous; /* others of the same thread */
} aco__run_t;

/* Where a thread runs. -1: not known, or the machine does not say. */
typedef struct aco__place {
    int node;  /* of memory */
    int cache; /* the largest: the first processor that has it */
} aco__place_t;

/* A thread of a set. */
typedef struct aco__crew {
    aco__worker_t base;
    aco_threads_t *threads;
    int index;
    char is_counted;         /* among threads->busy */
    char is_searching;       /* among threads->searching */
    char is_registered;      /* it has said that it sleeps, and has not looked since */
    char leaves;             /* when it has no task left */
    char is_used;            /* of a slot for threads that join: under the lock */
    aco__run_t *runs;        /* its members that have not ended */
    aco_mt_group_t *groups; /* that its tasks began and have not ended */
    aco_stop_t *stops;       /* likewise */
    aco__item_t starting[THREADS_AT_ONCE]; /* for tasks that were spawned and have not run */
    unsigned started, begun; /* items put there and taken out */
    unsigned starts;         /* rounds in which the thread looked for items to start */
    char is_quick;           /* the item that ended last had not waited */
    int more;                /* items that tasks which have run one may go on with in this round */
    aco__node_t *first;      /* for this thread alone, in order */
    unsigned rounds;
    aco_scope_t all;         /* around all tasks, once the set is cancelled */
    ACO__SWITCHES aco_function_t fn;       /* of its first task */
    void *arg;
    int error;               /* with which fn, or aco_run(), failed */
    pthread_t thread;
    aco__place_t place;
    uint16_t *order;         /* the other threads that the set has made, near ones first; NULL: as they are numbered */
    size_t order_sz;
    char padding[THREADS_LINE];
    aco__deque_t deque;
    int is_sleeping;         /* whoever sets it to 0 wakes the thread. Atomic, like all below */
    int is_gone;             /* nobody may post or send to it, any more or yet */
    unsigned posting;        /* threads that do */
    unsigned sent;           /* members sent to this thread that have not ended */
    aco__node_t *inbox;      /* for this thread alone, the last one first */
    aco__post_t wake_post, cancel_post;
    char more_padding[THREADS_LINE];
} aco__crew_t;

typedef struct aco__processors {
    unsigned long bits[128];
} aco__processors_t;

struct aco_threads_s {
    int n;                   /* that the set has made, and the calling one */
    unsigned flags;
    int64_t drain_ns;
    unsigned forks;          /* that lay behind the process when it began */
    size_t sz;
    ACO__SWITCHES aco_function_t fn;
    void *arg;
    int go;                  /* 1: all threads have been made; -1: one could not. Under the lock, like the next two */
    int waiting;             /* threads that wait for `go` */
    int held;                /* how often it is held, see aco__threads_hold() */
    pthread_cond_t changed;
    int processors; /* that its threads are bound to, one to each; 0: ACO_THREADS_PIN is not set */
    aco__processors_t allowed; /* these */
    struct aco__watcher *watcher; /* for SIGINT and SIGTERM; NULL: none, or it has ended */
    aco__node_t *first, *last; /* what threads that are not of the set have submitted */
    size_t injected;         /* how many. Atomic, like all below */
    int slots;               /* of `workers` that have been used */
    int error;               /* the first failure */
    int is_stopped, is_cancelled, is_done;
    unsigned busy;           /* threads that have tasks */
    unsigned sleeping, searching;
    unsigned turn;           /* whose it is to be sent something */
    aco__crew_t *workers[];  /* n + THREADS_JOINED; NULL: not used yet */
};

/* ---- search.c: who starts which item, and who sleeps ---- */
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
ACO__HIDDEN aco__crew_t *aco__threads_self(void);
/* Any thread: calls fn for each thread of the set. */
ACO__HIDDEN void aco__threads_each(aco_threads_t *threads, void (*fn)(aco__crew_t *worker));
/* The worker with this number; NULL: there is none. */
ACO__HIDDEN aco__crew_t *aco__threads_worker(aco_threads_t *threads, int number);
/* Any thread: whether the worker may be posted and sent to, until aco__threads_leave(), which must follow. */
ACO__HIDDEN int aco__threads_enter(aco__crew_t *worker);
ACO__HIDDEN void aco__threads_leave(aco__crew_t *worker);
/* The worker's thread: from now on others may post and send to it; nobody may. */
ACO__HIDDEN void aco__threads_open(aco__crew_t *worker);
ACO__HIDDEN void aco__threads_close(aco__crew_t *worker);
/* Any thread: posts to a worker, and so wakes it. */
ACO__HIDDEN void aco__threads_post(aco__crew_t *worker, aco__post_t *post);
ACO__HIDDEN void aco__threads_wake(aco__crew_t *worker);
/* There is new work for any thread; `near`, the worker that has it, or NULL. */
ACO__HIDDEN void aco__threads_wake_one(aco_threads_t *threads, const aco__crew_t *near);
/* The worker's thread, when all threads that the set has made know their places: finds out which are near. */
ACO__HIDDEN void aco__threads_find_near(aco__crew_t *worker);
/* The worker's thread: the next item that was sent to it, or NULL. It stays `first` in the list. */
static inline int aco__threads_has_sent(const aco__crew_t *worker)
{
    return worker->first || __atomic_load_n(&worker->inbox, __ATOMIC_SEQ_CST);
}
ACO__HIDDEN aco__node_t *aco__threads_sent(aco__crew_t *worker);
/* The worker's thread: the next item that any thread may start. 0: none; of its own alone; else, of others too. */
ACO__HIDDEN int aco__threads_take(aco__crew_t *worker, aco__item_t *item);
ACO__HIDDEN int aco__threads_find(aco__crew_t *worker, aco__item_t *item);
/* There is nothing to do: 1, the thread may sleep; 0, there is something after all. */
ACO__HIDDEN int aco__threads_may_sleep(aco__crew_t *worker);
ACO__HIDDEN void aco__threads_slept(aco__crew_t *worker);
/* The worker has found something, or has other things to do. */
ACO__HIDDEN void aco__threads_end_search(aco__crew_t *worker);
/* The worker that the set has made to which the fewest members were sent; NULL: all are gone. */
ACO__HIDDEN aco__crew_t *aco__threads_least_sent(aco_threads_t *threads);
/* Adds work: of a thread that is not of the set; of any thread for one. 0, or -1 and errno. The set may be
 * gone then. */
ACO__HIDDEN int aco__threads_inject(aco_threads_t *threads, const aco__item_t *item);
ACO__HIDDEN int aco__threads_send(aco__crew_t *worker, const aco__item_t *item);
/* The worker's thread: what it was sent, in order; NULL: no more. */
ACO__HIDDEN aco__node_t *aco__threads_receive(aco__crew_t *worker);

/* ---- submit.c: groups and their members ---- */
/* The item has not been run, and never will be. */
ACO__HIDDEN void aco__threads_drop(const aco__item_t *item, int error);
/* The worker's thread: starts items of its own and, if it searches, else of others. Whether it has started any. */
ACO__HIDDEN int aco__threads_start(aco__crew_t *worker, int searches, int is_idle);
/* The worker's thread: passes the ends of groups on to members. */
ACO__HIDDEN void aco__threads_pass_ends(const aco__crew_t *worker);
ACO__HIDDEN void aco__threads_group_ended(aco__worker_t *worker, aco_scope_t *scope);
/* The worker's tasks never run again. */
ACO__HIDDEN void aco__threads_abandon(aco__crew_t *worker);
/* In the child of fork(), on the thread that called it. */
ACO__HIDDEN void aco__threads_forget_others(aco__crew_t *worker);

/* ---- stop.c ---- */
/* The worker's thread: ends the scopes that end when the set is stopped, if it is. */
ACO__HIDDEN void aco__threads_end_stops(const aco__crew_t *worker);
/* Returns run(threads, worker), during which a thread listens for SIGINT and SIGTERM; or an errno. */
ACO__HIDDEN int aco__threads_run_watched(aco_threads_t *threads, aco__crew_t *worker,
                                         int (*run)(aco_threads_t *threads, aco__crew_t *worker));
/* The first worker's thread: ends that thread, if there is one. */
ACO__HIDDEN void aco__threads_end_watch(aco_threads_t *threads);

/* ---- cpus.c ---- */
/* How many processors the cgroup files below `root` ("": the system's) allow; 0: no limit. */
ACO__HIDDEN int aco__threads_quota(const char *root);
/* The processors that the calling thread may use: how many. */
ACO__HIDDEN int aco__threads_processors(aco__processors_t *allowed);
/* aco_threads_usable(), with the cgroup files below `root`. */
ACO__HIDDEN int aco__threads_usable(const char *root);
/* Binds the calling thread to the nth of them, from 0 on, if there is one: its number, else -1; and to all. */
ACO__HIDDEN int aco__threads_pin(const aco__processors_t *allowed, int n);
ACO__HIDDEN void aco__threads_unpin(const aco__processors_t *allowed);

/* Where a processor is, from the files below `root`. */
ACO__HIDDEN aco__place_t aco__threads_place(const char *root, int processor);

#endif
