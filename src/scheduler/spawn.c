/* aco_spawn(): a new task, from the thread's cache or not. */
#include "coroutine/create.h"
#include "coroutine/forgotten.h"
#include "scheduler/on_share_stack.h"
#include "scheduler/spawn.h"
#include "scheduler/wait.h"

/* A new coroutine for a task. NULL after a failure. */
static aco_t *task_new(aco__thread_t *self, aco_function_t fn, void *arg, const aco_options_t *options)
{
    aco_options_t o = {0};
    aco_t *task;
    if (options)
        o = *options;
    if (o.stack_memory && (o.flags & ACO_DETACHED)) {
        aco__fail(0, EINVAL, "aco_spawn", NULL, ACO__NO_END);
        return NULL;
    }
    if (!aco__scheduler_of(self, "aco_spawn"))
        return NULL;
    o.flags &= ~(unsigned)ACO_DETACHED;
    task = aco__new_called("aco_spawn", fn, arg, &o, 1);
    if (task && o.stack && aco__on_share_stack_prepare(task, aco__task_begin, fn) != 0) {
        int error = errno;
        aco__coroutine_free(task);
        errno = error;
        return NULL;
    }
    if (task && aco__needs_slow_switch(task))
        self->slow_switch_tasks++;
    return task;
}

/* What is not the common case. */
static __attribute__((noinline)) aco_t *spawn_with(aco__thread_t *self, aco_function_t fn, void *arg,
                                                   const aco_options_t *options)
{
    aco_t *task = task_new(self, fn, arg, options);
    if (aco_unlikely(!task))
        return NULL;
    *aco__task_joiner(task) = NULL;
    *aco__task_flags(task) = options && (options->flags & ACO_DETACHED) ? TASK_DETACHED : 0;
    if (aco__is_on_private(task)) {
        aco__begin_in(&task->aco__self, task->aco__self.sp, aco__task_begin);
        aco__set_task_function(task, fn);
        aco__set_status(task, ACO__MAIN);
    } else {
        aco__set_status(task, ACO__RESUMING_SAVED);
        self->scoped_tasks++; /* its end is not the common one */
    }
    task->share_stack->aco__thread = self;
    self->tasks++;
    self->spawned++;
    aco__ring_append(self, task);
    return task;
}

aco_t *aco_spawn(aco_function_t fn, void *arg, const aco_options_t *options)
{
    aco__thread_t *self = aco__self();
    aco_t *task = aco_likely(!options && aco__can_spawn_cached(self, fn)) ? aco__spawn_cached(self, fn, arg, 0)
                                                                          : spawn_with(self, fn, arg, options);
    aco__made(task, __builtin_return_address(0));
    return task;
}
