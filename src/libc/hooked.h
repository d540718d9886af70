/* Which tasks are hooked, and how they wait: hooked.c. */
#ifndef ACO_LIBC_HOOKED_H
#define ACO_LIBC_HOOKED_H

#include "libc/libc.h"

/* Which handlers of signals end a call that waits: all; those without SA_RESTART; none. */
enum { HOOK_NEVER_RESTARTS, HOOK_RESTARTS, HOOK_IGNORES_SIGNALS, HOOK_CLASSES };
/* A call, and how many such handlers had run on the thread when it began to wait. */
typedef struct aco__hook_call {
    int restarts;           /* HOOK_NEVER_RESTARTS, … */
    unsigned handlers;
} aco__hook_call_t;

/* A task that is or was hooked. */
typedef struct aco__hook_task {
    unsigned depth;         /* of its aco_hook_begin() */
    aco_t *task;
    aco__hook_call_t call;  /* that waits */
    struct aco__hook_task *next, **link; /* in the list of those that wait; link is NULL: it does not */
    size_t sz;
} aco__hook_task_t;

typedef struct aco__hook_thread {
    unsigned tasks;         /* of this thread that are hooked */
    unsigned calls;         /* for fairness */
    int is_begun;           /* what is done once for each thread, outside of simulations */
    int probe;              /* 1: a hook is to be reached; 2: it has been */
    pid_t process, thread;  /* in which tasks were hooked */
    aco_hook_stats_t stats;
    volatile unsigned handlers[HOOK_CLASSES]; /* of signals that have run, by the calls that they end */
    unsigned told;          /* of handlers: how many the waiting tasks have been told of */
    const char *volatile handler;         /* of a signal: the frame of the innermost that runs; NULL: none runs */
    const char *volatile bottom; /* of the alternate stack that this handler was called on; NULL: on none */
    const aco_t *volatile interrupted;    /* the coroutine that this handler runs in */
    aco__hook_task_t *volatile waiting;
    struct aco__poller_s *volatile poller;
    int (*poll)(struct aco__poller_s *poller, int64_t deadline); /* the poller's own, as the next */
    void (*close)(struct aco__poller_s *poller);
} aco__hook_thread_t;
ACO__HIDDEN_EXTERN __thread aco__hook_thread_t aco__hook_self __attribute__((tls_model("initial-exec")));

ACO__HIDDEN_EXTERN unsigned aco__hook_everyone; /* 1: all tasks are hooked. Atomic */
/* Whether the thread may have hooked tasks. */
static inline int aco__hook_may_be_on(void)
{
    return aco_unlikely((aco__hook_self.tasks | __atomic_load_n(&aco__hook_everyone, __ATOMIC_RELAXED)) != 0);
}

ACO__HIDDEN ACO__COLD int aco__hook_is_on(const void *caller);
/* Whether the calling task is hooked: in a hook's own function, as its caller counts. A hook asks this before all else:
 * where all tasks are hooked, this may be a task's first call, and until then its calls are not a simulation's. */
static inline __attribute__((always_inline)) int aco__hooked(void)
{
    return aco__hook_may_be_on() && aco__hook_is_on(__builtin_return_address(0));
}
/* Whether the caller is a task of a thread with hooked tasks, itself hooked or not. Where all are hooked, this may be
 * its first hooked call. */
ACO__HIDDEN ACO__COLD int aco__hook_is_beside(const void *caller);
static inline __attribute__((always_inline)) int aco__beside_hooked(void)
{
    return aco__hook_may_be_on() && aco__hook_is_beside(__builtin_return_address(0));
}
/* In the process: on_thread() is called on each thread before it has hooked tasks, in_run() before each of them in a
 * simulation: 0, or -1 and errno. So does this. */
ACO__HIDDEN int aco__hook_begin(void (*on_thread)(void), int (*in_run)(void), const char *call);
ACO__HIDDEN int aco__hook_task_begin(const char *call);
ACO__HIDDEN int aco__hook_task_end(const char *call);
/* The calling task, in a simulation, is about to be hooked. 0, or -1 and errno. */
ACO__HIDDEN int aco__hook_run_begin(void);
/* From now on all tasks are hooked. 0, or -1 and errno. */
ACO__HIDDEN int aco__hook_begin_everyone(const char *call);
/* Whether this is still the process in which tasks were hooked: no child of fork() or vfork(). */
ACO__HIDDEN int aco__hook_is_own_process(void);
/* A call that may wait begins: from time to time it lets other tasks run before it looks at anything, so that calls
 * which never have to wait leave others their turns. No call waits for a non-blocking descriptor. `fd` less than 0: the
 * call may wait whatever its descriptors are. Keeps errno. */
ACO__SWITCHES ACO__HIDDEN void aco__hook_spend(int fd, const char *location);

/* What a call does next. HOOK_BLOCKS: libc is to do it, and block. HOOK_IS_DONE: nothing. */
enum { HOOK_GIVES_UP, HOOK_TRIES_AGAIN, HOOK_BLOCKS, HOOK_IS_DONE };
typedef struct aco__hook_wait {
    int64_t deadline;
    int is_known;        /* the deadline, and what follows */
    aco__hook_call_t call;
    unsigned vain;       /* attempts that failed although the descriptor was ready */
    int64_t nap_ns;
} aco__hook_wait_t;
static inline aco__hook_call_t aco__hook_call(int restarts)
{
    aco__hook_call_t call = {restarts, aco__hook_self.handlers[restarts]};
    return call;
}
static inline int aco__hook_is_interrupted(const aco__hook_call_t *call)
{
    return aco__hook_self.handlers[call->restarts] != call->handlers;
}
/* poll() that waits only for the task: what that returns; HOOK_CANNOT_WAIT with errno unchanged: libc is to do it, and
 * block. */
enum { HOOK_CANNOT_WAIT = -2 };
ACO__SWITCHES
ACO__HIDDEN int aco__hook_poll(struct pollfd *fds, nfds_t n, int64_t deadline, const aco__hook_call_t *call,
                               const char *location);
/* The same after EAGAIN of a call that must not wait: HOOK_GIVES_UP with EAGAIN if the descriptor is non-blocking or
 * its time limit, the socket option `limit` (SO_RCVTIMEO or SO_SNDTIMEO), is over. */
ACO__SWITCHES
ACO__HIDDEN int aco__hook_again(aco__hook_wait_t *wait, int fd, short events, int limit, const char *location);
/* The first part of that: 0 with the time limit in `wait`, or -1 and errno. */
ACO__HIDDEN int aco__hook_begins_wait(aco__hook_wait_t *wait, int fd, int limit);
/* What poll() says now; keeps errno. And whether the stream was reset, not only ended. A call would take the error
 * away; a queue of errors (MSG_ERRQUEUE) does not count. */
ACO__HIDDEN short aco__hook_look(int fd, short events);
ACO__HIDDEN int aco__hook_is_reset(int fd);
/* The time that is left; 0 when it is over. */
ACO__HIDDEN struct timespec aco__hook_time_until(int64_t deadline);
/* Sleeps 1 ms, longer at each call, within wait->deadline. After that HOOK_GIVES_UP with EAGAIN. */
ACO__SWITCHES ACO__HIDDEN int aco__hook_nap(aco__hook_wait_t *wait, const char *location);
/* The task sleeps: 0; -1 and errno; HOOK_CANNOT_WAIT. */
ACO__SWITCHES ACO__HIDDEN int aco__hook_sleep(int64_t deadline, const aco__hook_call_t *call, const char *location);
/* Has a thread of the pool call fn(arg), as aco__io_offload_as(): if that fails, release(arg) is called. HOOK_IS_DONE:
 * it has returned. HOOK_BLOCKS: errno is unchanged. HOOK_GIVES_UP: with errno; ACO__MUST_RUN: the pool calls it. */
ACO__SWITCHES
ACO__HIDDEN int aco__hook_offload(int kind, void *(*fn)(void *arg), void *arg, void **result,
                                  void (*release)(void *arg, void *result), const char *location);

/* errno is unchanged by success. */
static inline ssize_t aco__hook_result(ssize_t result, int error)
{
    if (result >= 0)
        errno = error;
    return result;
}

#endif
