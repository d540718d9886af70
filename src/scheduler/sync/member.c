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

static inline void count_success(aco__thread_t *self, aco_group_t *group, void *result)
{
    if (!group->succeeded++)
        group->result = result;
    if (aco_unlikely(group->policy == ACO_FIRST_SUCCESS))
        aco__scope_finish(self, &group->scope, ECANCELED);
}

/* A member has returned `result`, with this errno if that is ACO_ERROR. */
static inline void member_ends(aco__thread_t *self, aco_group_t *group, const aco__task_record_t *record, void *result,
                               int error)
{
    remove_member(group, record);
    if (aco_unlikely(record->result != NULL))
        *record->result = result;
    if (aco_unlikely(result == ACO_ERROR))
        count_failure(self, group, error);
    else
        count_success(self, group, result);
    free_place(self, group);
}

ACO__COLD static void tell_end(aco__task_record_t *record)
{
    aco__at_end_t *at_end = record->at_end;
    record->at_end = NULL;
    at_end->ends(at_end);
}

/* The same of a task that has had scopes. */
static inline void leave_scopes(aco__thread_t *self, aco_t *task, void *result, int error)
{
    aco__task_record_t *record = aco__task_record(task);
    if (aco_unlikely(record->groups))
        aco__die("aco_exit", task, "ends inside %u group(s) that it began: aco_group_end() must come first",
                 record->groups);
    aco__scopes_leave(self, record);
    if (aco_unlikely(record->at_end != NULL))
        tell_end(record);
    if (record->group)
        member_ends(self, record->group, record, result, error);
}

static inline void leave_all(aco__thread_t *self, aco_t *task, void *result, int error)
{
    if (aco_unlikely(aco__is_posted(aco__task_post(task))))
        aco__inbox_forget(aco__tasks(self), aco__task_post(task));
    if (*aco__task_flags(task) & TASK_SCOPED)
        leave_scopes(self, task, result, error);
}

void aco__task_leaves_scopes(aco__thread_t *self, aco_t *task, void *result, int error)
{
    leave_all(self, task, result, error);
}

void aco__scoped_task_ends(aco__thread_t *self, aco_t *task, void *result)
{
    leave_all(self, task, result, aco_unlikely(result == ACO_ERROR) ? errno : 0);
    if (!aco__is_on_private(task))
        aco__on_share_stack_ends(self, task);
}
