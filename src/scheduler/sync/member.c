/* The ends of tasks that have scopes, and of the members of groups. */
#include "scheduler/inbox.h"
#include "scheduler/on_share_stack.h"
#include "scheduler/sync/member.h"
#include "scheduler/wait.h"

aco_group_t *aco__own_group(void)
{
    return aco__task_record(aco__running())->group;
}

void aco__group_pass_places(aco__thread_t *self, aco_group_t *group)
{
    while (group->aco__spawners.first && (!group->limit || group->running < group->limit)) {
        ACO__ASSERT(group->aco__spawners.first->wait->kind == ACO__WAIT_PLACE);
        group->running++;
        aco__wake(self, group->aco__spawners.first->wait, 0);
    }
}

ACO__COLD static void wake_ender(aco__thread_t *self, aco_group_t *group)
{
    ACO__ASSERT(group->aco__ender->kind == ACO__WAIT_MEMBERS && group->aco__ender->object == group);
    aco__wake(self, group->aco__ender, 0);
    group->aco__ender = NULL;
}

static inline void free_place(aco__thread_t *self, aco_group_t *group)
{
    ACO__ASSERT(group->running); /* the place was counted */
    group->running--;
    if (aco_unlikely(group->aco__spawners.first != NULL))
        aco__group_pass_places(self, group);
    if (!group->running && group->aco__ender)
        wake_ender(self, group);
}

void aco__group_free_place(aco__thread_t *self, aco_group_t *group)
{
    free_place(self, group);
}

static inline void remove_member(aco_group_t *group, const aco__task_record_t *record)
{
    ACO__ASSERT((record->previous ? record->previous->next : group->aco__first) == record);
    ACO__ASSERT((record->next ? record->next->previous : group->aco__last) == record);
    *(record->previous ? &record->previous->next : &group->aco__first) = record->next;
    *(record->next ? &record->next->previous : &group->aco__last) = record->previous;
}

/* A member has failed with this errno. */
ACO__COLD static void count_failure(aco__thread_t *self, aco_group_t *group, int error)
{
    if (!group->error)
        group->error = error ? error : EINVAL;
    group->failed++;
    if (group->policy == ACO_CANCEL_ON_FAILURE)
        aco__scope_finish(self, &group->scope, ECANCELED);
}

static inline void count_success(aco_group_t *group, void *result)
{
    if (!group->succeeded++)
        group->result = result;
}

/* A member has returned `result`. */
static inline void leave_group(aco_group_t *group, const aco__task_record_t *record, void *result)
{
    remove_member(group, record);
    if (aco_unlikely(record->result != NULL))
        *record->result = result;
}

/* The same, with this errno if that is ACO_ERROR. Whoever waits for it wakes. */
static void member_ends(aco__thread_t *self, const aco__task_record_t *record, void *result, int error)
{
    aco_group_t *group = record->group;
    leave_group(group, record, result);
    if (aco_unlikely(result == ACO_ERROR)) {
        count_failure(self, group, error);
    } else {
        count_success(group, result);
        if (aco_unlikely(group->policy == ACO_FIRST_SUCCESS))
            aco__scope_finish(self, &group->scope, ECANCELED);
    }
    free_place(self, group);
}

ACO__COLD static void tell_end(aco__task_record_t *record)
{
    aco__at_end_t *at_end = record->at_end;
    record->at_end = NULL;
    at_end->ends(at_end);
}

/* A task that has had scopes ends. */
static void leave_scopes(aco__thread_t *self, aco_t *task, void *result, int error)
{
    aco__task_record_t *record = aco__task_record(task);
    if (aco_unlikely(record->groups))
        aco__die("aco_exit", task, "ends inside %u group(s) that it began: aco_group_end() must come first",
                 record->groups);
    if (aco_unlikely(record->timer.index)) /* of the scopes nothing can be said: their frames may be gone */
        aco__timer_cancel(aco__tasks(self), &record->timer);
    ACO__ASSERT(self->scoped_tasks);
    self->scoped_tasks--;
    if (aco_unlikely(record->at_end != NULL))
        tell_end(record);
    if (record->group)
        member_ends(self, record, result, error);
}

/* No post leads to the task or its scopes any more. */
ACO__COLD static void forget_posts(aco__tasks_t *s, const aco_t *task)
{
    if (aco__is_posted(aco__task_post(task)))
        aco__inbox_forget(s, aco__task_post(task));
    if (*aco__task_flags(task) & TASK_SCOPED)
        aco__scopes_forget_posts(s, task);
}

void aco__task_leaves_scopes(aco__thread_t *self, aco_t *task, void *result, int error)
{
    if (aco_unlikely(aco__tasks(self)->opened)) /* others post to tasks of open schedulers only */
        forget_posts(aco__tasks(self), task);
    if (*aco__task_flags(task) & TASK_SCOPED)
        leave_scopes(self, task, result, error);
}

static __attribute__((noinline)) void ends_slowly(aco__thread_t *self, aco_t *task, void *result)
{
    aco__task_leaves_scopes(self, task, result, result == ACO_ERROR ? errno : 0);
    if (!aco__is_on_private(task))
        aco__on_share_stack_ends(self, task);
}

/* The record of a member whose end only counts: it has left what it began, nobody is told, nothing wakes. NULL: the
 * task is not such a one. */
static inline aco__task_record_t *only_counts(const aco__tasks_t *s, const aco_t *task, const void *result)
{
    aco__task_record_t *record;
    const aco_group_t *group;
    if (!aco__is_on_private(task) || !(*aco__task_flags(task) & TASK_SCOPED) || s->opened || result == ACO_ERROR)
        return NULL;
    record = aco__stack_task_record(task->share_stack);
    group = record->group;
    return group && !record->groups && !record->timer.index && !record->at_end && group->policy != ACO_FIRST_SUCCESS &&
                   !group->aco__spawners.first && group->running > 1
               ? record
               : NULL;
}

/* The common case calls nothing, and so saves no registers. */
void aco__scoped_task_ends(aco__thread_t *self, aco_t *task, void *result)
{
    aco__task_record_t *record = only_counts(aco__tasks(self), task, result);
    if (aco_unlikely(!record)) {
        ends_slowly(self, task, result);
        return;
    }
    ACO__ASSERT(self->scoped_tasks && !aco__is_posted(&record->post));
    self->scoped_tasks--;
    leave_group(record->group, record, result);
    count_success(record->group, result);
    record->group->running--;
}
