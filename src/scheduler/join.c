/* Joining and detaching: who gets a task's result, and destroys it. */
#include "scheduler/inbox.h"
#include "scheduler/wait.h"

aco_t *aco_current_task(void)
{
    return aco__current(aco__self());
}

static void destroy(aco_t *task)
{
    aco__thread_t *self = aco__self();
    if (aco_unlikely(self->scoped_tasks != 0) && aco__is_posted(aco__task_post(task)))
        aco__inbox_forget(aco__tasks(self), aco__task_post(task));
    aco_destroy_inline(task);
}

ACO__COLD static int fail_joinable(const char *call, const aco_t *task)
{
    if (*aco__task_flags(task) & TASK_DETACHED)
        return aco__fail(0, EINVAL, call, task, "is detached");
    return aco__fail(0, EBUSY, call, task, "is being joined by coroutine %p", (void *)*aco__task_joiner(task));
}

/* 0 if `task` is neither detached nor being joined; else -1. */
static inline int check_joinable(const char *call, const aco_t *task)
{
    return aco_likely(!*aco__task_joiner(task) && !(*aco__task_flags(task) & TASK_DETACHED))
               ? 0
               : fail_joinable(call, task);
}

static const char join_call[] = "aco_join";

/* What is not the common case. */
ACO__SWITCHES
static __attribute__((noinline)) int join_slowly(aco__thread_t *self, aco_t *task, void **result, aco__wait_t *wait,
                                                 const char *location)
{
    if (aco__task_has_ended(task)) {
        if (result)
            *result = aco__result(task);
        destroy(task);
        return 0;
    }
    if (aco__task_check(self, join_call, task) != 0 || check_joinable(join_call, task) != 0 ||
        aco__check_waiting(self, join_call) != 0)
        return -1;
    if (task == self->task)
        return aco__fail(0, EDEADLK, join_call, task, "joins itself");
    if (aco__wait_prepare(self, wait, ACO__WAIT_JOIN, task, location) != 0)
        return -1;
    ACO__ASSERT(!*aco__task_joiner(task));
    *aco__task_joiner(task) = wait->task;
    return aco__wait_start(self, wait);
}

/* The common case is a live task on a private stack. It calls nothing, so it need not save registers. */
ACO__SWITCHES int aco__join(aco_t *task, void **result, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    if (aco_unlikely(!task || !aco__is_task(task) || task->share_stack->aco__thread != self ||
                     !aco__is_on_private(task) || *aco__task_joiner(task) ||
                     (*aco__task_flags(task) & TASK_DETACHED) || !aco__is_in_task(self) || task == self->task ||
                     self->scoped_tasks))
        return join_slowly(self, task, result, wait, location);
    aco__wait_fill(self, wait, ACO__WAIT_JOIN, task, location);
    *aco__task_joiner(task) = wait->task;
    return aco__wait_start(self, wait);
}

int aco_detach(aco_t *task)
{
    static const char call[] = "aco_detach";
    if (aco__task_has_ended(task)) {
        destroy(task);
        return 0;
    }
    if (aco__task_check(aco__self(), call, task) != 0 || check_joinable(call, task) != 0)
        return -1;
    if (aco__stack_is_callers(task->share_stack))
        return aco__fail(0, EINVAL, call, task, ACO__NO_END);
    *aco__task_flags(task) |= TASK_DETACHED;
    return 0;
}
