/* The records of a set of threads: set.c.
 *
 * The layer of threads that share work is the library acorn_threads. It is beside the scheduler's layer and that of
 * descriptors, and calls only what acorn exports. Its files include the system's headers: they make threads. */
#ifndef ACO_THREADS_SET_H
#define ACO_THREADS_SET_H

#include "threads/cpus.h"
#include "threads/deque.h"

#include "aco/detail/signals.h"
#include "aco/detail/worker.h"
#include "aco/threads.h"

#include <pthread.h>

enum {
    THREADS_JOINED = 64,   /* at most so many threads of the program join a set */
    THREADS_MOST = 4096,
    THREADS_AT_ONCE = 4    /* submitted functions that a thread starts in one round of its queue, see submit.c */
};
#define THREADS_END_NS (2 * ACO_SECOND) /* after a second signal, tasks have so long to end */

typedef struct aco__node { /* an item of a list */
    struct aco__node *next;
    aco__item_t item;
    size_t sz;             /* of this record, as allocated */
} aco__node_t;

/* A task that runs items, one after the other, on its stack. */
typedef struct aco__run {
    aco__member_t base;
    aco__item_t item;        /* the member's */
    struct aco__set_worker *worker;
    size_t ended;            /* members of the group before this one that have ended here and still count as pending */
    int is_sent;
    struct aco__run *next, *previous; /* others of the same thread */
} aco__run_t;

/* A thread of a set. */
typedef struct aco__set_worker {
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
    int more_alone;          /* how often they may go on with THREADS_AT_ONCE more, while nothing else wants to run */
    aco__node_t *first;      /* for this thread alone, in order */
    unsigned rounds;
    size_t found;            /* items where it has stolen in this search */
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
    size_t stolen;           /* items that it has taken from others; it alone writes that */
    int is_gone;             /* nobody may post or send to it, any more or yet */
    unsigned posting;        /* threads that do */
    unsigned sent;           /* members sent to this thread that have not ended */
    aco__node_t *inbox;      /* for this thread alone, the last one first */
    aco__post_t wake_post, cancel_post;
    char more_padding[THREADS_LINE];
} aco__set_worker_t;

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
    unsigned turn;           /* whose it is to be sent something */
    unsigned sleeping;       /* each submission reads this */
    char padding[THREADS_LINE];
    unsigned searching;      /* each search writes this */
    char more_padding[THREADS_LINE];
    aco__set_worker_t *workers[];  /* n + THREADS_JOINED; NULL: not used yet */
};

#endif
