/* The parts of waiting that are not inline: why a caller cannot wait, and how a task leaves. */
#include "scheduler/wait.h"

int aco__fail_waiting(const char *call)
{
    const aco__thread_t *self = aco__self();
    const aco_t *running = self->running;
    return aco__fail(0, EPERM, call, running,
                       !running                ? "the root context is not a task and cannot wait"
                       : running != self->task ? "is not a task and cannot wait"
                                               : "is in its cleanup and cannot wait");
}

int aco__wait_failed(const aco__wait_t *wait)
{
    errno = wait->error;
    return -1;
}

void aco__task_leave(aco_t *task)
{
    void *value = NULL;
    uintptr_t tagged = aco__switch_yield(aco__tls_ref(), task, &value, 1);
    ACO__CHECK_INTERRUPT(tagged);
}
