/* Between acorn and acorn_sim: whose turn it is among the tasks that can run. Not for programs. */
#ifndef ACO_DETAIL_CHOOSER_H
#define ACO_DETAIL_CHOOSER_H

#include "../scheduler.h"

ACO__BEGIN_C

enum { ACO__CHOOSER_POOL = 16 }; /* words of a pool's place */

/* What chooses for aco_run(), which calls it in the root context. While a thread has a chooser, every switch between
 * its tasks goes through aco_run(), and the chooser keeps those that can run: so no turn walks over all of them. */
typedef struct aco__chooser_s {
    const aco_t *poll_task; /* its turn looks for timers and messages. aco__chooser_begin() sets it */
    /* The task can run from now on, or has had its turn and still can; likewise the poll task, which may be named
     * again before its turn. They come in the order in which they would run without a chooser. */
    void (*runnable)(struct aco__chooser_s *chooser, aco_t *task);
    /* Before each turn, and when no task can run. Stores the one that has its turn, or NULL: none can run. 0; 1: it has
     * made tasks runnable or abandoned some, and is to be asked again; or -1 and errno: aco_run() fails. */
    int (*choose)(struct aco__chooser_s *chooser, aco_t **chosen);
    /* The task whose turn it was has ended: another one may get its address. */
    void (*ended)(struct aco__chooser_s *chooser, const aco_t *task);
    /* No task can run, and time is about to pass. It may make tasks runnable. 0; 1: the time must not pass yet, or no
     * task is left; or -1 and errno: aco_run() fails. */
    int (*idle)(struct aco__chooser_s *chooser);
    /* Calls visit(task, arg) for each task that it keeps, in an order that does not depend on addresses. 0; or -1 and
     * errno: aco_run() will fail. */
    int (*each)(struct aco__chooser_s *chooser, int (*visit)(aco_t *task, void *arg), void *arg);
    /* A call of the libraries above acorn has failed; aco_error_message() tells it. NULL: nobody wants to know. */
    void (*failed)(struct aco__chooser_s *chooser);
    /* Stores how many nanoseconds a name server takes, and returns 0, or the errno with which a lookup fails then. The
     * task waits so long, and then makes the system call itself. */
    int (*look_up)(struct aco__chooser_s *chooser, int64_t *ns);
    /* How many nanoseconds a call for a file takes that a task makes now. The task waits so long, and then makes the
     * system call itself. NULL: it goes to the pool. */
    int64_t (*disk_time)(struct aco__chooser_s *chooser);
    /* Whether the calling thread may post to the chooser's one. Any thread. NULL: no other one may. */
    int (*admits)(struct aco__chooser_s *chooser);
    /* A task has made a call that is not simulated; the name lasts. NULL: nobody wants to know. */
    void (*refuse)(struct aco__chooser_s *chooser, const char *call);
    int has_others; /* threads that may. Without them, tasks that wait for news wait for ever */
    int tries; /* aco__chooser_try() runs. 2: a system call in it would have waited */
    void (*leave_job)(void *job); /* what aco__chooser_in_job() was told */
    void *job;
    int may_hang;
    uint64_t *pool; /* the place of the pool of aco_offload() for the thread, with 0s at first. NULL: that of all */
    uint64_t *signals; /* that are blocked for good in the thread's machine, whose listeners hear each other */
    size_t aco__kept; /* tasks that it keeps */
    aco_t *aco__abandoned; /* linked as the ring is; NULL: none */
    struct aco__relay *aco__relays; /* of its tasks (relay.h); NULL: none */
    unsigned aco__open; /* how often aco_scheduler_open() was called */
    struct aco__scheduler *aco__outer; /* what the thread had before, and gets back; likewise the next */
    uint32_t aco__slow_switch_tasks, aco__scoped_tasks, aco__looked_at, aco__spawned;
} aco__chooser_t;

/* Before the first one of a simulation. A trace (ACO_TRACE) ends: its times would be of two kinds. */
ACO_API void aco__chooser_prepare(void);
/* Puts the calling thread's scheduler aside and gives it a new one with this chooser. 0, or -1 and errno: EPERM (a
 * coroutine calls it), EBUSY (the thread has tasks, or its aco_run() runs), ENOMEM. */
ACO_API int aco__chooser_begin(aco__chooser_t *chooser, const char *call);
/* Ends that scheduler as the thread's end would: its tasks never run again. */
ACO_API void aco__chooser_end(aco__chooser_t *chooser);
/* In choose() or idle(), in no turn: the task never runs again, and none of its cleanups does. It leaves what it waits
 * for and its group, as a member that has failed with ECANCELED; who joins it gets NULL. Locks that it holds stay
 * locked. Its memory lasts until aco__chooser_end(); for ever if it waits for an object between threads, whose memory
 * may be gone. A chooser that keeps the task must forget it. */
ACO_API void aco__chooser_abandon(aco__chooser_t *chooser, aco_t *task);
/* After aco__chooser_abandon(), before aco__chooser_end(): the memory of the abandoned tasks lasts until that of
 * `heir` ends, which is another thread's. */
ACO_API void aco__chooser_bequeath(aco__chooser_t *chooser, aco__chooser_t *heir);
/* The calling thread, which is in no coroutine, leaves its frames between these two for good: no lock is held, no
 * section is open, and for a leak checker what they point to was lost on purpose. */
ACO_API void aco__chooser_leaves_frames(const void *top, const void *end);
/* Whether the caller is a task, or an inner coroutine, that could wait. */
ACO_API int aco__chooser_may_leave_turn(void);
/* In such a one, in the middle of the task's turn: it never goes on. choose() is next, which must leave the frames of
 * aco_run(), as above, before anything runs. */
ACO_API __attribute__((noreturn)) void aco__chooser_leave_turn(void);
/* Whether the calling thread's scheduler has a chooser. */
ACO_API int aco__chooser_is_there(void);
/* chooser->pool of the calling thread's scheduler; NULL also if it has no chooser. */
ACO_API uint64_t *aco__chooser_pool(void);
/* chooser->look_up() of the calling thread's scheduler; -1: it has no chooser. */
ACO_API int aco__chooser_look_up(int64_t *ns);
/* chooser->disk_time() of the calling thread's scheduler; -1: it has no chooser. */
ACO_API int64_t aco__chooser_disk_time(void);
/* Returns fn(arg), which makes system calls for a task. *would_wait 1: one that waits would have stopped all tasks of
 * the thread; it has failed and done nothing, so a thread that may wait must call the function again. */
ACO_API void *aco__chooser_try(void *(*fn)(void *arg), void *arg, int *would_wait);
/* The calling thread, in no task, runs a job; NULL: none any more. If it leaves its frames meanwhile, leave(job) is
 * called behind that. `may_hang`: at the end of a simulation it leaves a system call that would wait for ever. */
ACO_API void aco__chooser_in_job(void (*leave)(void *job), void *job, int may_hang);
/* chooser->refuse() of the calling thread's scheduler, for a call that is not in the system's table. Returns -1 with
 * errno ENOSYS. */
ACO_API int aco__chooser_refuse(const char *call);
/* The last call since aco__chooser_begin() that the calling thread's scheduler has refused because it has a chooser, as
 * a sentence; NULL: none. */
ACO_API const char *aco__chooser_refused(void);

/* What a task waits for. */
typedef struct aco__chooser_wait_s {
    const char *what;           /* "for a mutex", …; it lasts */
    const char *text;           /* the wait's own words, or the name of the task to join; NULL: none */
    int fd;                     /* the descriptor; -1: none */
    int64_t until;              /* its deadline, on the clock of aco_now(); INT64_MAX: none of its own */
} aco__chooser_wait_t;

/* 1 if a task of the calling thread waits; 0: it can run. */
ACO_API int aco__chooser_wait(const aco_t *task, aco__chooser_wait_t *wait);

ACO__END_C

#endif
