/* Between acorn and acorn_io: how a source of events plugs into a thread's scheduler. Not for programs. */
#ifndef ACO_DETAIL_POLLER_H
#define ACO_DETAIL_POLLER_H

#include "for_libraries.h"

ACO__BEGIN_C

/* A source of events. aco_run() calls poll() while no task can run, and often enough while tasks run. Tasks that wait
 * for a poller are no deadlock. aco__poller_install() sets the first two fields. */
typedef struct aco__poller_s {
    size_t waiters; /* tasks that wait for its events */
    struct aco__tasks *scheduler;
    /* Waits for events until `deadline` on the clock of aco_now() (-1: without limit; 0: looks only), and wakes tasks.
     * It may return earlier. 0, or -1 and errno. */
    int (*poll)(struct aco__poller_s *poller, int64_t deadline);
    /* Ends a poll() that waits. Other threads call it; async-signal-safe. */
    void (*wake)(struct aco__poller_s *poller);
    void (*close)(struct aco__poller_s *poller); /* the thread ends */
} aco__poller_t;

/* The calling thread's poller; NULL: none. */
ACO_API aco__poller_t *aco__poller(void);
/* When the calling thread's aco_run() last looked for events, up to 50 us later than it did, on the clock of aco_now().
 * INT64_MAX: a moment ago, or never. */
ACO_API int64_t aco__polled_at(void);
/* Gives the calling thread its poller, once. 0, or -1 and errno. */
ACO_API int aco__poller_install(aco__poller_t *poller, const char *call);
/* In the child of fork(), which shares its descriptors with the parent: calls leave(poller) for the thread's poller,
 * and for the one that the thread had before a chooser came (chooser.h), and takes both away. The child's tasks that
 * wait for their events wait for ever. */
ACO_API void aco__poller_uninstall(void (*leave)(aco__poller_t *poller));

/* The calling task waits in `queue` from now on, at most until `deadline`. It also waits in the queues of `more`:
 * places that are linked by `other`, each with its `queue`; NULL: none. `fd` and `writes` tell reports what it waits
 * for. 0: the caller calls aco__poller_wait_end() next; -1 and errno. These are two calls so that no frame of this one
 * is copied while a task on a share stack waits. */
ACO_API int aco__poller_wait_begin(const char *call, aco__wait_t *wait, aco__queue_t *queue, aco__waiter_t *more,
                                   int fd, int writes, int64_t deadline, const char *location);
/* Lets other tasks run until the wait is over. `wait` and the places must be valid until then; they need not be on the
 * task's stack. 0, or -1 and errno. */
ACO_API int aco__poller_wait_end(aco__poller_t *poller, aco__wait_t *wait);
/* Ends the waits in the queue with `error`; 0: with success. */
ACO_API void aco__poller_wake(aco__queue_t *queue, int error);
/* Ends the wait of a task of the calling thread with `error`; nothing, if it does not wait. */
ACO_API void aco__poller_interrupt(const aco_t *task, int error);

/* The same as both calls for the answer of another thread, which calls aco__poller_post(). ask(arg) has it
 * called: when it is called, the wait has begun and nothing can fail. If `ask` is NULL, the answer is on its way, and
 * no scope ends the wait. `fn` tells reports what is waited for; NULL: an answer of the system's. Fails with ENOSYS in
 * a simulation. */
ACO_API int aco__poller_ask(const char *call, aco__wait_t *wait, aco__queue_t *queue, const void *fn,
                            void (*ask)(void *arg), void *arg, const char *location);
/* Has aco_run() call post->run() on the poller's thread, as long as tasks there wait for answers. Any thread. */
ACO_API void aco__poller_post(aco__poller_t *poller, aco__post_t *post);
/* For close(): the post is not under way any more, or was never. */
ACO_API void aco__poller_forget(aco__poller_t *poller, aco__post_t *post);

ACO__END_C

#endif
