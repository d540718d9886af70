/* The poll task: a member of the ring that gives aco_run() a turn in each round, for timers and the idle hook. */
#include "os/clock.h"
#include "scheduler/inbox.h"
#include "scheduler/poll_task.h"
#include "scheduler/wait.h"

/* Whether aco_run() would find nothing to do in this round: there are only timers, and none is due soon. */
static int is_quiet(aco__thread_t *self, aco__tasks_t *s)
{
    int64_t now;
    if (!s->timers_count || s->until || s->idle || s->worker || s->is_watched || aco__inbox_is_used(s) ||
        (s->poller && s->poller->waiters) || self->slow_switch_tasks || aco__task_next(&s->poll_task) == &s->poll_task)
        return 0;
    now = aco__os_now_coarse();
    if (s->timers[0].deadline - now <= ACO__COARSE_NS)
        return 0;
    s->looked_at = now;
    self->looked_at = (uint32_t)(now / ACO_MILLISECOND);
    return 1;
}

/* Runs on the scratch stack: the task before it in the ring switches to it. */
ACO__NO_SANITIZE ACO__ARRIVAL_ABI static void poll_task_turn(ACO__ARRIVAL_PARAMETERS)
{
    aco__thread_t *self = aco__self();
    ACO__ASSERT(self->task == &aco__tasks(self)->poll_task);
    if (!is_quiet(self, aco__tasks(self)))
        aco__switch_exit(aco__tls_ref(), 0, NULL);
    self->last_task = self->task;
    self->task = aco__task_next(self->task);
    self->running = self->task;
    aco__switch_enter(aco__tls_ref(), self->task, (uintptr_t)self->task, NULL);
}

int aco__poll_task_start(aco__thread_t *self)
{
    aco__tasks_t *s = aco__tasks(self);
    const aco__scratch_t *scratch;
    if (s->poll_task_is_queued)
        return 0;
    scratch = aco__scratch();
    if (!scratch)
        return -1;
    aco__begin_in(&s->poll_task.aco__self, scratch->runner.aco__self.sp, poll_task_turn);
    aco__ring_append(self, &s->poll_task);
    s->poll_task_is_queued = 1;
    return 0;
}

void aco__poll_task_stop(aco__thread_t *self)
{
    ACO__ASSERT(self->task == &aco__tasks(self)->poll_task && aco__tasks(self)->poll_task_is_queued);
    aco__ring_remove(self);
    aco__tasks(self)->poll_task_is_queued = 0;
}
