/* The ring: the tasks that can run, as a circular list through their `fp`. self->task is the running task,
 * self->last_task the one with the last turn. A task that becomes runnable is inserted between the two. In a waiting
 * task `fp` is the address of its aco__wait_t with the lowest bit set. */
#ifndef ACO_RING_H
#define ACO_RING_H

#include "scheduler/task.h"

/* Makes `task` the last in the ring. */
static inline void aco__ring_append(aco__thread_t *self, aco_t *task)
{
    ACO__ASSERT(!self->task == !self->last_task);
    ACO__ASSERT(!self->task || aco__task_next(self->last_task) == self->task); /* the ring is closed */
    if (aco_likely(self->task != NULL)) {
        aco__set_task_next(task, self->task);
        aco__set_task_next(self->last_task, task);
    } else {
        aco__set_task_next(task, task);
        self->task = task;
        if (aco_unlikely(aco__tasks(self)->turns_until != 0))
            aco__tasks(self)->idle_leave(aco__tasks(self)->idle_ctx); /* the hook gives turns: a task can run */
    }
    self->last_task = task;
}

/* The next task has its turn. */
static inline void aco__ring_turn(aco__thread_t *self)
{
    ACO__ASSERT(!aco__task_wait(self->task) && aco__task_next(self->last_task) == self->task);
    self->last_task = self->task;
    self->task = aco__task_next(self->task);
}

/* Removes the task that has its turn. */
static inline void aco__ring_remove(aco__thread_t *self)
{
    aco_t *next = aco__task_next(self->task);
    ACO__ASSERT(!aco__task_wait(self->task)); /* its `fp` is a link */
    ACO__ASSERT(aco__task_next(self->last_task) == self->task);
    if (aco_likely(next != self->task)) {
        aco__set_task_next(self->last_task, next);
        self->task = next;
    } else {
        self->task = self->last_task = NULL;
    }
}

#endif
