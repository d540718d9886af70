/* Waits that another thread ends. */
#include "scheduler/answer.h"

void aco__wait_for_answer(aco__thread_t *self, aco__wait_t *wait, void (*ask)(void *arg), void *arg)
{
    aco__tasks_t *s = aco__tasks(self);
    (void)aco__wait_start(self, wait);
    s->askers++;
    if (ask)
        ask(arg);
    aco__task_leave(wait->task); /* by way of aco_run(), which looks for news from now on */
    ACO__ASSERT(s->askers && !wait->waiter.queue);
    s->askers--;
}
