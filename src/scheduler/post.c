/* Calls by other threads: aco_post(), for schedulers that are open. One with a chooser is open to its own thread and to
 * those that the chooser admits: others would change what it chooses. */
#include "scheduler/inbox.h"
#include "scheduler/wait.h"

aco_scheduler_t *aco_scheduler_open(void)
{
    aco__thread_t *self = aco__self();
    aco__tasks_t *s = aco__polling_scheduler_of(self, "aco_scheduler_open");
    if (!s)
        return NULL;
    if (aco_unlikely(s->chooser != NULL))
        s->askers += s->chooser->aco__open++ == 0; /* it looks for news */
    else
        __atomic_store_n(&s->open, s->open + 1, __ATOMIC_RELEASE);
    if (!s->opened)
        self->scoped_tasks++; /* the ends of tasks look for posts from now on */
    s->opened = 1;
    return (aco_scheduler_t *)s;
}

int aco_scheduler_close(void)
{
    aco__thread_t *self = aco__self();
    aco__tasks_t *s = aco__tasks(self);
    if (s && s->chooser && s->chooser->aco__open) {
        s->askers -= --s->chooser->aco__open == 0;
        return 0;
    }
    if (!s || !s->open)
        return aco__fail(0, EINVAL, "aco_scheduler_close", NULL, "the thread's scheduler is not open");
    __atomic_store_n(&s->open, s->open - 1, __ATOMIC_RELEASE);
    return 0;
}

/* It is not open, or not to all threads. */
static ACO__COLD int post_to_closed(aco__tasks_t *s, void (*fn)(void *arg), void *arg)
{
    int is_own = aco__tasks(aco__self()) == s;
    if ((is_own || aco__is_admitted(s)) && s->chooser && s->chooser->aco__open)
        return aco__inbox_call(s, fn, arg);
    if (!is_own)
        aco__refuse_other(s, "another thread called aco_post(), which cannot reach the tasks");
    return aco__fail(0, EPIPE, "aco_post", NULL, "the scheduler is not open to this thread");
}

int aco_post(aco_scheduler_t *scheduler, void (*fn)(void *arg), void *arg)
{
    aco__tasks_t *s = (aco__tasks_t *)scheduler;
    if (!s || !fn)
        return aco__fail(0, EINVAL, "aco_post", NULL, s ? "the function is NULL" : "the scheduler is NULL");
    if (!__atomic_load_n(&s->open, __ATOMIC_ACQUIRE))
        return post_to_closed(s, fn, arg);
    return aco__inbox_call(s, fn, arg);
}
