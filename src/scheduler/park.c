/* aco_park() and aco_unpark(), also by other threads. */
#include "scheduler/inbox.h"
#include "scheduler/wait.h"

ACO__SWITCHES int aco__park(const char *what, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    if (aco__check_waiting(self, "aco_park") != 0)
        return -1;
    if (*aco__task_flags(self->task) & TASK_PERMIT) {
        *aco__task_flags(self->task) &= ~(size_t)TASK_PERMIT;
        return 0;
    }
    if (aco__wait_prepare(self, wait, ACO__WAIT_PARK, what, location) != 0)
        return -1;
    return aco__wait_start(self, wait);
}

static void unpark(aco__thread_t *self, aco_t *task)
{
    aco__wait_t *wait = aco__task_wait(task);
    if (wait && wait->kind == ACO__WAIT_PARK)
        aco__wake(self, wait, 0);
    else
        *aco__task_flags(task) |= TASK_PERMIT;
}

static void unpark_posted(aco__thread_t *self, aco__post_t *post)
{
    aco_t *task = aco__task_record_stack((char *)post - offsetof(aco__task_record_t, post))->owner;
    if (aco__is_task(task)) /* it has not ended */
        unpark(self, task);
}

static void unpark_on_share_stack(aco__thread_t *self, aco__post_t *post)
{
    aco_t *task = ((aco__annex_t *)(void *)((char *)post - offsetof(aco__annex_t, post)))->task;
    if (aco__is_task(task))
        unpark(self, task);
}

/* Another thread unparks `task`, if that task's scheduler is open: whether it is. */
static int unpark_from_afar(const aco__thread_t *self, aco_t *task)
{
    aco__thread_t *other = task && aco__is_task(task) ? task->share_stack->aco__thread : NULL;
    aco__post_t *post;
    if (!other || other == self)
        return 0;
    if (!aco__is_open(other)) {
        aco__refuse_other(aco__tasks(other), "another thread called aco_unpark(), which cannot reach the tasks");
        return 0;
    }
    post = aco__task_post(task);
    __atomic_store_n(&post->run, aco__has(task, ACO__PRIVATE) ? unpark_posted : unpark_on_share_stack,
                     __ATOMIC_RELAXED);
    aco__inbox_post(aco__tasks(other), post);
    return 1;
}

int aco_unpark(aco_t *task)
{
    aco__thread_t *self = aco__self();
    if (unpark_from_afar(self, task))
        return 0;
    if (aco__task_has_ended(task))
        return aco__fail(0, ESRCH, "aco_unpark", task, "has ended");
    if (aco__task_check(self, "aco_unpark", task) != 0)
        return -1;
    unpark(self, task);
    return 0;
}
