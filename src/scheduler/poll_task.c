/* The poll task: a member of the ring that gives aco_run() a turn in each round, for timers and the idle hook. */
#include "scheduler/wait.h"

/* Runs on the scratch stack: the task before it in the ring switches to it. */
ACO__NO_SANITIZE ACO__ARRIVAL_ABI static void poll_task_turn(ACO__ARRIVAL_PARAMETERS)
{
    aco__switch_exit(aco__tls_ref(), 0, NULL);
}

int aco__poll_task_start(aco__thread_t *self)
{
    aco__tasks_t *s = aco__tasks(self);
    aco__scratch_t *scratch = aco__scratch();
    if (!scratch)
        return -1;
    if (!s->poll_task_is_queued) {
        aco__begin_in(&s->poll_task.aco__self, scratch->runner.aco__self.sp, poll_task_turn);
        aco__ring_append(self, &s->poll_task);
        s->poll_task_is_queued = 1;
    }
    return 0;
}

void aco__poll_task_stop(aco__thread_t *self)
{
    aco__ring_remove(self);
    aco__tasks(self)->poll_task_is_queued = 0;
}
