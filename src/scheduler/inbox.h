/* inbox.c: messages from other threads. */
#ifndef ACO_INBOX_H
#define ACO_INBOX_H

#include "scheduler/record.h"

/* Posts to the scheduler: it will call post->run(). A post that is under way already is not posted again. Any thread;
 * async-signal-safe on a thread other than the scheduler's, if its wake function is. */
ACO__HIDDEN void aco__inbox_post(aco__tasks_t *s, aco__post_t *post);
/* The same; it ends a wait of the poller, or the next one, even if the thread has not said that it waits. */
ACO__HIDDEN void aco__inbox_ask(aco__tasks_t *s, aco__post_t *post);
/* Makes sure that the post is not under way. Only the scheduler's thread may call these. */
ACO__HIDDEN void aco__inbox_forget(aco__tasks_t *s, aco__post_t *post);
/* Forgets the posts for which unwanted(post, arg) is not 0. */
ACO__HIDDEN void aco__inbox_filter(aco__tasks_t *s, int (*unwanted)(const aco__post_t *post, const void *arg),
                                   const void *arg);
/* What is posted at this moment may be missed. */
static inline int aco__inbox_is_empty(const aco__tasks_t *s)
{
    return !__atomic_load_n(&s->inbox, __ATOMIC_RELAXED) && !s->posts;
}
/* Runs what was posted. Returns whether anything was. */
ACO__HIDDEN int aco__inbox_run(aco__thread_t *self, aco__tasks_t *s);
/* Whether news of other threads may make a task runnable. */
static inline int aco__expects_news(const aco__tasks_t *s)
{
    return (s->open | s->askers) != 0; /* one branch: asked several times in each round */
}
/* Whether others may post who wake the thread only if it says that it is asleep: all but aco__inbox_ask(). */
static inline int aco__inbox_has_posters(const aco__tasks_t *s)
{
    return (s->blocked | s->askers | s->open | (unsigned char)s->dumps) != 0;
}
/* Whether anything can be posted to the scheduler while it runs tasks. */
static inline __attribute__((always_inline)) int aco__inbox_is_used(const aco__tasks_t *s)
{
    return aco__inbox_has_posters(s) || __atomic_load_n(&s->answers, __ATOMIC_RELAXED);
}
/* The thread has nothing else to do until that time: spins, if that is likely to pay (scheduler/spin.h). Whether
 * something was posted. `now` is the time. */
ACO__HIDDEN int aco__inbox_spin(aco__tasks_t *s, int64_t now, int64_t until);
/* Says that the thread is about to wait for events, or has. The first returns 0 if something was posted before. */
ACO__HIDDEN int aco__inbox_sleeps(aco__tasks_t *s);
ACO__HIDDEN void aco__inbox_awake(aco__tasks_t *s);
/* Sets the wake function. When this returns, nobody is still in the one that there was. A thread that has said that it
 * waits does so still, or has been woken: aco_run_ready() and an idle hook may be left to wait. */
ACO__HIDDEN void aco__inbox_wake_by(aco__tasks_t *s, void (*wake)(void *ctx), void *ctx);
/* The thread ends: waits until nobody is about to post any more; and frees what nobody will run. */
ACO__HIDDEN void aco__inbox_close(aco__tasks_t *s);
ACO__HIDDEN void aco__inbox_drop(aco__tasks_t *s);
/* Posts a call of fn(arg): aco_post(). 0, or -1 and errno ENOMEM. */
ACO__HIDDEN int aco__inbox_call(aco__tasks_t *s, void (*fn)(void *arg), void *arg);
static inline int aco__is_posted(const aco__post_t *post)
{
    return __atomic_load_n(&post->next, __ATOMIC_RELAXED) != NULL;
}

#ifdef ACO__INVARIANTS
/* A poster that has seen it may write it later. */
static inline int aco__inbox_is_asleep(const aco__tasks_t *s)
{
    return __atomic_load_n(&s->is_asleep, __ATOMIC_RELAXED) != 0;
}
/* For valid.c: aborts if the posts' list does not fit. */
ACO__HIDDEN void aco__inbox_check(const aco__tasks_t *s);
#endif

#endif
