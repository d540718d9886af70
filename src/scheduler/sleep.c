/* The clock, sleeping, and giving others a turn. */
#include "scheduler/wait.h"

#include "os/clock.h"

int64_t aco_now(void)
{
    return aco__os_now();
}

int64_t aco_after(int64_t ns)
{
    int64_t now = aco__os_now();
    return ns <= 0 ? now : ns < ACO_FOREVER - now ? now + ns : ACO_FOREVER;
}

ACO__SWITCHES int aco__sleep(int64_t deadline, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    deadline -= deadline == ACO_FOREVER; /* a task that sleeps for ever is no deadlock */
    if (aco__check_waiting(self, "aco_sleep") != 0)
        return -1;
    if (aco__wait_reserve("aco_sleep") != 0 ||
        aco__wait_prepare(self, wait, ACO__WAIT_SLEEP, NULL, location) != 0)
        return -1;
    aco__wait_limit(wait, deadline);
    return aco__wait_start(self, wait);
}

ACO__SWITCHES int aco__task_yield(void)
{
    aco__thread_t *self = aco__self();
    aco_t *task = self->task;
    ACO__MAY_SWITCH("aco_task_yield()", NULL);
    if (aco__check_waiting(self, "aco_task_yield") != 0)
        return -1;
    aco__ring_turn(self);
    if (self->task == task && !aco__tasks(self)->turns_until) /* else the idle hook, which gave the turn, goes on */
        return 0;
    self->slow_switch_tasks += self->running != task; /* as aco__wait_slowly_inside() */
    aco__task_leave(task);
    return 0;
}
