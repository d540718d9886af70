/* Between acorn and acorn_threads: threads that share work, and waits that another thread ends. Not for programs. */
#ifndef ACO_DETAIL_WORKER_H
#define ACO_DETAIL_WORKER_H

#include "../scope.h"
#include "poller.h"

ACO__BEGIN_C

/* A thread of a set of threads: what its aco_run() calls, on that thread and in the root context. */
typedef struct aco__worker_s {
    struct aco__tasks *scheduler;
    void (*round)(struct aco__worker_s *worker); /* in each round of the queue. It may spawn tasks */
    int (*idle)(struct aco__worker_s *worker);   /* no task can run. 1: it has spawned one; 0: the thread may sleep */
    void (*awake)(struct aco__worker_s *worker); /* the thread has slept, after idle() returned 0 */
    int (*stays)(struct aco__worker_s *worker);  /* no task is left: whether aco_run() waits for more */
    void (*scope_ended)(struct aco__worker_s *worker, aco_scope_t *scope); /* of which it wants to be told */
    void (*thread_ends)(struct aco__worker_s *worker); /* without aco__worker_remove(): its tasks never run again */
    /* The thread is bound to a processor: lets it go (0) while it starts a thread that shall inherit no bond, and binds
     * it again (1). NULL: it is not bound. */
    void (*pin)(struct aco__worker_s *worker, int is_pinned);
} aco__worker_t;

/* Makes the calling thread a worker, and opens its scheduler. 0, or -1 and errno: EPERM (a coroutine calls it), EBUSY
 * (it is one, or its aco_run() runs), ENOMEM. */
ACO_API int aco__worker_install(aco__worker_t *worker, const char *call);
/* Undoes that, in two steps, on the worker's thread: first, other threads can post no more. If aco_run() has failed,
 * the tasks that are left never run again. */
ACO_API void aco__worker_close(void);
ACO_API void aco__worker_remove(aco__worker_t *worker, int has_failed);
/* The calling thread's; NULL: it is none. */
ACO_API aco__worker_t *aco__worker(void);
/* The tasks of the calling thread. */
ACO_API size_t aco__worker_tasks(void);

/* Who is told when a task ends, after its deferred calls and without its scopes: nothing may switch then. It costs no
 * memory, other than aco_defer(). */
typedef struct aco__at_end {
    void (*ends)(struct aco__at_end *at_end);
} aco__at_end_t;
/* The calling task, a member of a group, tells it; NULL: nobody any more. */
ACO_API void aco__task_at_end(aco__at_end_t *at_end);

/* What a task that runs submitted work has on its stack. */
typedef struct aco__member {
    aco__at_end_t at_end; /* the task calls aco_exit(), or dies. First */
    aco_scope_t scope; /* its outermost */
} aco__member_t;

/* The calling task, on a private stack and without a scope, becomes a member, and no longer is one. */
ACO_API void aco__member_begin(aco__member_t *member, int64_t deadline);
ACO_API void aco__member_end(aco__member_t *member);
/* Whether the calling task has nothing left of what the member did: no scope, name, local, cleanup, permit or post. */
ACO_API int aco__member_is_like_new(const aco__member_t *member);
/* Whether the calling task may go on: nothing else can run on its thread, waits there for a time or an event, or was
 * posted there. */
ACO_API int aco__member_is_alone(void);
/* A scope that only aco__mt_scope_end() ends. The worker may be told when it ends early. Else as aco_scope_begin()
 * and aco_scope_end(). */
ACO_API int aco__mt_scope_begin(aco_scope_t *scope, int64_t deadline, int is_told, const char *call,
                                const char *location);
ACO_API int aco__mt_scope_check(const aco_scope_t *scope, const char *call); /* 0: it is the innermost */
ACO_API void aco__mt_scope_end(aco_scope_t *scope);

/* aco_scope_cancel() with this error, for a scope of the calling thread. */
ACO_API void aco__scope_end_early(aco_scope_t *scope, int error);
/* The same for all tasks of the calling thread that there are: `all`, of any contents, becomes their outermost scope.
 * It must be there until they have ended. Shields and what nothing interrupts stay. Callable again with the same `all`,
 * for tasks spawned since; without any it does nothing. */
ACO_API void aco__scope_end_all(aco_scope_t *all, int error);

/* The idle hook that aco_on_idle() has set may give tasks turns itself, by aco__idle_turn(), while it waits because no
 * task can run. When a task becomes runnable meanwhile, leave(ctx) is called, with the ctx of the hook: the hook shall
 * give turns, or return soon. leave() must neither wait nor wake tasks. Valid until aco_on_idle() is called again. */
ACO_API void aco__idle_gives_turns(void (*leave)(void *ctx));
/* Called by what the hook calls. Gives each task that can run a turn, and those that they wake. Returns 1: the hook may
 * go on with its wait, for the time that it was given. 0: the hook shall return soon; no task may have had a turn. In a
 * coroutine it does nothing and returns 1: whoever gave that a turn goes on. */
ACO_API int aco__idle_turn(void);

/* A wait that another thread ends, by one call of aco__answer_tell(). Its record is not on a share stack. */
typedef struct aco__answer {
    aco__post_t post;
    struct aco__tasks *scheduler; /* of the task that waits */
    int is_told;
    int is_claimed;               /* somebody is going to tell it, or the task has given up. Atomic */
    aco__queue_t queue;
    aco__wait_t wait;
} aco__answer_t;

/* Prepares an answer for the calling task, without waiting. 0, or -1 and errno EPERM: the caller cannot wait. */
ACO_API int aco__answer_prepare(aco__answer_t *answer, const char *call);
/* The same, if the caller is a task on a private stack whose waits nothing ends early: no scope, no set of threads.
 * Else it does nothing. Whether it has prepared the answer. */
ACO_API int aco__answer_prepare_plainly(aco__answer_t *answer);
/* Whether the running task is in a scope, so that waits that begin now may end early. */
ACO_API int aco__in_scope(void);
/* Waits until it is told. `what`, a static text, is for reports. 0, or -1 and errno: then it may still be told. The
 * task also waits in the queues of `more`: places of channels, linked by `other`; NULL: none. If one of them is served,
 * that claims the answer and ends the wait: the place is in answer->wait.woken then. */
ACO_API int aco__answer_wait(aco__answer_t *answer, const char *call, const char *what, int64_t deadline,
                             const char *location, aco__waiter_t *more);
/* The queue of a channel of the calling thread, for such a place, which may wait until the channel is destroyed. */
ACO_API aco__queue_t *aco__channel_queue(aco_channel_t *channel, int sends);
/* If several may tell an answer: whether the caller is the first to claim it. Any thread. */
ACO__FORCE_INLINE int aco__answer_claim(aco__answer_t *answer)
{
    return !__atomic_exchange_n(&answer->is_claimed, 1, __ATOMIC_ACQ_REL);
}
/* The same for an answer that is sure to be told: nothing ends the wait early. */
ACO_API void aco__answer_await(aco__answer_t *answer, const char *what, const char *location);
/* Any thread. The answer may be gone when this returns. */
ACO_API void aco__answer_tell(aco__answer_t *answer);
/* Has aco_run() call post->run() on the scheduler's thread. Any thread; the scheduler's must not end before. */
ACO_API void aco__answer_post(struct aco__tasks *scheduler, aco__post_t *post);
/* The scheduler's thread, when nobody posts it any more: it is not under way. */
ACO_API void aco__answer_forget(struct aco__tasks *scheduler, aco__post_t *post);

ACO__END_C

#endif
