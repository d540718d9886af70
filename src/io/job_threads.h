/* The pool: job_threads.c. */
#ifndef ACO_IO_JOB_THREADS_H
#define ACO_IO_JOB_THREADS_H

#include "os/platform.h"

#include "aco/detail/poller.h"

/* The states of a job. They change under the pool's lock. */
enum { IO_NEW, IO_QUEUED, IO_RUNS, IO_DONE };

/* A function for the pool, and the task that waits for it. The task frees the record; the pool does if the task has
 * abandoned it. */
typedef struct aco__io_job {
    void *(*fn)(void *arg);
    void *arg, *result;
    void (*release)(void *arg, void *result);
    struct aco__io *io;         /* of the task's thread */
    int state;
    int is_abandoned;           /* by its task. Changes under the pool's lock */
    int kind;                   /* ACO__WORK, … */
    int error;                  /* the errno that fn left */
    int is_told;                /* the thread has got the post */
    struct aco__io_job *next;   /* in the pool's queue */
    struct aco__io_job *before, *after; /* other jobs of the thread */
    aco__post_t post;           /* tells the thread that it is done */
    aco__queue_t queue;
    aco__wait_t wait;
    size_t sz;                  /* of this record, as allocated */
} aco__io_job_t;

/* Queues a new job. 0; or the errno with which the first thread could not be started. */
ACO__HIDDEN int aco__io_pool_add(aco__io_job_t *job);
/* Its task gives the job up: a queued job is new again, a job that runs becomes abandoned if it may. Returns the state
 * that it had; IO_RUNS also for a queued job that must run, which becomes abandoned too. */
ACO__HIDDEN int aco__io_pool_give_up(aco__io_job_t *job, int may_run_on);

/* The pool's lock also protects what threads share besides. */
ACO__HIDDEN void aco__io_pool_lock(void);
ACO__HIDDEN void aco__io_pool_unlock(void);

/* How many look-ups, or other jobs, have run. */
ACO__HIDDEN uint64_t aco__io_pool_done(int are_look_ups);

#endif
