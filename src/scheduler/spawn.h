/* spawn.c: the common way to a new task, for aco_spawn() and for groups. */
#ifndef ACO_SPAWN_H
#define ACO_SPAWN_H

#include "scheduler/ring.h"

/* Whether aco__spawn_cached() can make a task with the default options. */
static inline int aco__can_spawn_cached(const aco__thread_t *self, aco_function_t fn)
{
    return aco_likely(self->cached && fn && self->scheduler);
}

/* A task that runs fn(arg), from the thread's cache. */
static inline aco_t *aco__spawn_cached(aco__thread_t *self, aco_function_t fn, void *arg, size_t flags)
{
    aco_t *task = aco__cache_pop(self);
    aco_share_stack_t *stack = task->share_stack;
    ACO__ASSERT(aco__status(task) == ACO__DESTROYED && stack->owner == task);
    task->aco__state = ACO__PLAIN | ACO__MAIN;
    task->is_end = 0;
    task->arg = arg;
    task->aco__self.bp = NULL; /* ends the chain of frame pointers */
    aco__begin_in(&task->aco__self, stack->aco__top, aco__task_begin);
    stack->aco__link.joiner = NULL;
    stack->aco__use.task_flags = flags;
    stack->aco__thread = self;
    aco__set_task_function(task, fn);
    self->tasks++;
    self->spawned++;
    aco__ring_append(self, task);
    return task;
}

#endif
