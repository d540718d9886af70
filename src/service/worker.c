/* What threads that share work (aco/detail/worker.h) need of the scheduler. */
#include "scheduler/answer.h"
#include "scheduler/inbox.h"
#include "scheduler/poll_task.h"
#include "scheduler/wait.h"

#include "aco/detail/worker.h"

/* ---- Workers ---- */

int aco__worker_install(aco__worker_t *worker, const char *call)
{
    const aco__thread_t *self = aco__self();
    aco__tasks_t *s = aco__tasks(self);
    if (self->running)
        return aco__fail(0, EPERM, call, self->running, "is a coroutine: only the root context may call this");
    if (s && (s->worker || s->base.is_running || s->is_lost))
        return aco__fail(0, EBUSY, call, NULL, "the thread runs tasks already");
    s = (aco__tasks_t *)aco_scheduler_open();
    if (!s)
        return -1;
    worker->scheduler = s;
    s->worker = worker;
    s->all = NULL;
    return 0;
}

void aco__worker_close(void)
{
    (void)aco_scheduler_close();
}

void aco__worker_remove(aco__worker_t *worker, int has_failed)
{
    worker->scheduler->worker = NULL;
    worker->scheduler->is_lost = has_failed && aco__self()->tasks;
}

aco__worker_t *aco__worker(void)
{
    const aco__thread_t *self = aco__self();
    return self->scheduler ? aco__tasks(self)->worker : NULL;
}

size_t aco__worker_tasks(void)
{
    return aco__self()->tasks;
}

/* ---- Members ---- */

void aco__task_at_end(aco__at_end_t *at_end)
{
    const aco_t *task = aco__self()->task;
    ACO__ASSERT(*aco__task_flags(task) & TASK_SCOPED && !at_end != !aco__task_record(task)->at_end);
    aco__task_record(task)->at_end = at_end;
}

void aco__member_begin(aco__member_t *member, int64_t deadline)
{
    (void)aco__scope_begin("aco_submit", &member->scope, deadline, 0, NULL); /* fails in no task on a private stack */
    ACO__ASSERT(member->scope.aco__task == aco__self()->task && !aco__task_record(aco__self()->task)->at_end);
    aco__task_record(aco__self()->task)->at_end = &member->at_end;
}

void aco__member_end(aco__member_t *member)
{
    aco__thread_t *self = aco__self();
    ACO__ASSERT(aco__task_record(self->task)->at_end == &member->at_end);
    aco__task_record(self->task)->at_end = NULL;
    aco__scope_leave(self, &member->scope);
}

int aco__member_is_like_new(const aco__member_t *member)
{
    const aco__thread_t *self = aco__self();
    const aco_t *task = self->task;
    const aco__task_record_t *record = aco__task_record(task);
    return record->scope == &member->scope && !member->scope.aco__outer && !record->groups &&
           !(task->aco__state & (ACO__HAS_COLD | ACO__INSTRUMENTED)) && !*aco__task_joiner(task) &&
           *aco__task_flags(task) == (TASK_DETACHED | TASK_SCOPED) && !aco__is_posted(aco__task_post(task));
}

int aco__member_is_alone(void)
{
    const aco__thread_t *self = aco__self();
    const aco__tasks_t *s = aco__tasks(self);
    const aco_t *task = self->task, *next = aco__task_next(task);
    if (next == &s->poll_task)
        next = aco__task_next(next);
    return next == task && !s->chooser && !aco__awaits_events(s) && aco__inbox_is_empty(s);
}

int aco__mt_scope_begin(aco_scope_t *scope, int64_t deadline, int is_told, const char *call, const char *location)
{
    unsigned flags = ACO__SCOPE_MT | (is_told ? ACO__SCOPE_TOLD : 0);
    if (aco__scope_begin(call, scope, deadline, flags, location) != 0)
        return -1;
    aco__task_record(scope->aco__task)->groups++;
    return 0;
}

int aco__mt_scope_check(const aco_scope_t *scope, const char *call)
{
    return aco__scope_check_end(aco__self(), call, scope);
}

void aco__mt_scope_end(aco_scope_t *scope)
{
    ACO__ASSERT(aco__task_record(scope->aco__task)->groups && scope->aco__flags & ACO__SCOPE_MT);
    aco__task_record(scope->aco__task)->groups--;
    aco__scope_leave(aco__self(), scope);
}

void aco__scope_end_early(aco_scope_t *scope, int error)
{
    aco__scope_finish(aco__self(), scope, error);
}

/* ---- Answers ---- */

static void told(aco__thread_t *self, aco__post_t *post)
{
    aco__answer_t *answer = (aco__answer_t *)(void *)((char *)post - offsetof(aco__answer_t, post));
    ACO__ASSERT(!answer->is_told && answer->scheduler == aco__tasks(self));
    answer->is_told = 1;
    while (answer->queue.first)
        aco__wake(self, answer->queue.first->wait, 0);
}

static inline void fill(const aco__thread_t *self, aco__answer_t *answer)
{
    answer->post.next = NULL;
    answer->post.run = told;
    answer->scheduler = aco__tasks(self);
    answer->is_told = answer->is_claimed = 0;
    answer->wait.woken = NULL;
    answer->queue.first = answer->queue.last = NULL;
    answer->wait.waiter.element = NULL;
    answer->queue.thread = NULL;
}

int aco__answer_prepare(aco__answer_t *answer, const char *call)
{
    aco__thread_t *self = aco__self();
    if (aco_unlikely(!aco__is_in_task(self)) && aco__check_inner(self, call) != 0)
        return -1;
    if (aco_unlikely(!self->scratch) && !aco__scratch()) /* for the poll task */
        return aco__fail_memory(0, call, sizeof(aco__scratch_t));
    fill(self, answer);
    return 0;
}

int aco__answer_prepare_plainly(aco__answer_t *answer)
{
    const aco__thread_t *self = aco__self();
    const aco__tasks_t *s = aco__tasks(self);
    if (aco_unlikely(!aco__is_in_task(self) || !aco__is_on_private(self->task) || aco__innermost(self->task) ||
                     !self->scratch || s->worker || s->chooser))
        return 0;
    fill(self, answer);
    return 1;
}

ACO__SWITCHES
int aco__answer_wait(aco__answer_t *answer, const char *call, const char *what, int64_t deadline, const char *location,
                     aco__waiter_t *more)
{
    aco__thread_t *self = aco__self();
    aco__wait_t *wait = &answer->wait;
    if (answer->is_told)
        return 0;
    if ((deadline != ACO_FOREVER && aco__timers_reserve(self, 2, call) != 0) ||
        aco__wait_prepare(self, wait, ACO__WAIT_MT, what, location) != 0)
        return -1;
    if (deadline != ACO_FOREVER)
        aco__wait_limit(wait, deadline);
    aco__wait_in(&answer->queue, wait);
    aco__wait_in_more(wait, more);
    aco__wait_for_answer(self, wait, NULL, NULL);
    return wait->error ? aco__wait_failed(wait) : 0;
}

ACO__SWITCHES void aco__answer_await(aco__answer_t *answer, const char *what, const char *location)
{
    aco__thread_t *self = aco__self();
    if (answer->is_told)
        return;
    aco__wait_fill(self, &answer->wait, ACO__WAIT_MT, what, location);
    aco__wait_slowly_inside(self);
    answer->wait.value = answer; /* nothing interrupts it */
    aco__wait_in(&answer->queue, &answer->wait);
    aco__wait_for_answer(self, &answer->wait, NULL, NULL);
}

void aco__answer_tell(aco__answer_t *answer)
{
    aco__thread_t *self = aco__self();
    if (self->scheduler == &answer->scheduler->base)
        told(self, &answer->post);
    else
        aco__inbox_post(answer->scheduler, &answer->post);
}

void aco__answer_post(struct aco__tasks *scheduler, aco__post_t *post)
{
    aco__inbox_post(scheduler, post);
}

void aco__answer_forget(struct aco__tasks *scheduler, aco__post_t *post)
{
    aco__inbox_forget(scheduler, post);
}
