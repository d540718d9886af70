/* What a poller (aco/detail/poller.h) needs of the scheduler: waiting and waking. */
#include "scheduler/answer.h"
#include "scheduler/inbox.h"
#include "scheduler/poll_task.h"
#include "scheduler/wait.h"

#include "aco/detail/poller.h"
#include "aco/detail/relay.h"
#include "tools/trace.h"

aco__poller_t *aco__poller(void)
{
    const aco__thread_t *self = aco__self();
    return self->scheduler ? aco__tasks(self)->poller : NULL;
}

int64_t aco__polled_at(void)
{
    const aco__thread_t *self = aco__self();
    return self->scheduler ? aco__tasks(self)->polled_at : INT64_MAX;
}

ACO__SWITCHES
int aco__poller_wait_begin(const char *call, aco__wait_t *wait, aco__queue_t *queue, aco__waiter_t *more, int fd,
                           int writes, int64_t deadline, const char *location)
{
    aco__thread_t *self = aco__self();
    const void *object = (const void *)(uintptr_t)(unsigned)fd;
    if (aco__check_waiting(self, call) != 0)
        return -1;
    if ((deadline != ACO_FOREVER && aco__timers_reserve(self, 2, call) != 0) ||
        aco__wait_prepare(self, wait, writes ? ACO__WAIT_WRITABLE : ACO__WAIT_READABLE, object, location) != 0)
        return -1;
    aco__wait_in(queue, wait);
    aco__wait_in_more(wait, more);
    if (deadline != ACO_FOREVER)
        aco__wait_limit(wait, deadline);
    (void)aco__wait_start(self, wait);
    if (aco_unlikely(aco__has(wait->task, ACO__INSTRUMENTED)))
        aco__trace_waits(wait->task, fd, writes, location);
    return 0;
}

ACO__SWITCHES int aco__poller_wait_end(aco__poller_t *poller, aco__wait_t *wait)
{
    poller->waiters++;
    aco__task_leave(wait->task); /* by way of aco_run(), which gives the poller turns from now on */
    ACO__ASSERT(poller->waiters && !wait->waiter.queue); /* all places have left their queues */
    poller->waiters--;
    if (aco_unlikely(aco__has(wait->task, ACO__INSTRUMENTED)))
        aco__trace_waited(wait->task, (int)(uintptr_t)wait->object, wait->kind == ACO__WAIT_WRITABLE, wait->error);
    return aco_unlikely(wait->error != 0) ? aco__wait_failed(wait) : 0;
}

int aco__poller_relay(aco__poller_t *poller, aco__relay_t *relay, aco__relay_place_t *place, aco__queue_t *queue,
                      const char *call)
{
    if (aco__poll_task_start(aco__self()) != 0) /* the task may not leave by way of aco_run() */
        return aco__fail_memory(0, call, sizeof(aco__scratch_t));
    ACO__ASSERT(!relay->poller || relay->poller == poller);
    if (aco__relay_wait(relay, place, queue) != ACO__RELAYED)
        return -1;
    relay->poller = poller;
    poller->waiters++;
    relay->polled++;
    return ACO__RELAYED;
}

void aco__poller_relay_end(aco__relay_place_t *place)
{
    aco__relay_t *relay = aco__relay_of(place);
    aco__poller_t *poller = relay->poller;
    ACO__ASSERT(poller->waiters && relay->polled);
    relay->polled--;
    if (aco__relay_waits(place))
        aco__relay_leave(place);
    poller->waiters--;
}

ACO__SWITCHES
int aco__poller_ask(const char *call, aco__wait_t *wait, aco__queue_t *queue, const void *fn, void (*ask)(void *arg),
                    void *arg, const char *location)
{
    aco__thread_t *self = aco__self();
    if (aco__check_waiting(self, call) != 0)
        return -1;
    if (ask) {
        if (aco__wait_prepare(self, wait, ACO__WAIT_ANSWER, fn, location) != 0)
            return -1;
    } else {
        aco__wait_fill(self, wait, ACO__WAIT_ANSWER, fn, location);
        aco__wait_slowly_inside(self);
        wait->value = wait;
    }
    if (aco_unlikely(aco__has(wait->task, ACO__INSTRUMENTED)))
        aco__trace_waits(wait->task, -1, 0, location);
    aco__wait_in(queue, wait);
    aco__wait_for_answer(self, wait, ask, arg);
    if (aco_unlikely(aco__has(wait->task, ACO__INSTRUMENTED)))
        aco__trace_waited(wait->task, -1, 0, wait->error);
    return wait->error ? aco__wait_failed(wait) : 0;
}

void aco__poller_post(aco__poller_t *poller, aco__post_t *post)
{
    aco__inbox_post(poller->scheduler, post);
}

void aco__poller_forget(aco__poller_t *poller, aco__post_t *post)
{
    aco__inbox_forget(poller->scheduler, post);
}

void aco__poller_wake(aco__queue_t *queue, int error)
{
    aco__thread_t *self = aco__self();
    while (queue->first)
        aco__wake_at(self, queue->first, error);
}

void aco__poller_interrupt(const aco_t *task, int error)
{
    aco__wait_t *wait = aco__task_wait(task);
    if (wait)
        aco__interrupt(aco__self(), wait, error);
}
