/* Groups. The members' records are linked into the group; a member's outermost scope is the group's. member.c has what
 * happens when a member ends. */
#include "coroutine/forgotten.h"
#include "scheduler/spawn.h"
#include "scheduler/sync/member.h"
#include "scheduler/wait.h"

#include "aco/detail/for_libraries.h"

/* ---- Places ---- */

/* 0 if members can still be spawned; else -1. */
static int check_open(const aco__thread_t *self, const char *call, const aco_group_t *group)
{
    if (!group)
        return aco__fail(0, EINVAL, call, NULL, "the group is NULL");
    if (!group->scope.aco__task)
        return aco__fail(0, ESRCH, call, NULL, "the group %p has ended", (const void *)group);
    if (group->scope.aco__task->share_stack->aco__thread != self)
        return aco__fail(0, EPERM, call, group->scope.aco__task, "belongs to another thread");
    if (group->scope.aco__ended_by) {
        errno = group->scope.aco__ended_by->error;
        return -1;
    }
    return 0;
}

ACO__SWITCHES int aco__group_admit(aco_group_t *group, aco__wait_t *wait, const char *location)
{
    static const char call[] = "aco_group_spawn";
    aco__thread_t *self = aco__self();
    if (check_open(self, call, group) != 0)
        return -1;
    if (aco_unlikely(group->aco__spawners.first != NULL)) /* the limit may have been raised */
        aco__group_pass_places(self, group);
    if (aco_likely(!group->limit || group->running < group->limit)) {
        group->running++;
        return 0;
    }
    if (aco__check_waiting(self, call) != 0 || aco__wait_prepare(self, wait, ACO__WAIT_PLACE, group, location) != 0)
        return -1;
    aco__wait_in(&group->aco__spawners, wait);
    return aco__wait_start(self, wait);
}

/* ---- Members ---- */

/* The new task of this record is a member. */
static inline void add_member(aco_group_t *group, aco__task_record_t *record, void **result)
{
    ACO__ASSERT(!group->aco__first == !group->aco__last && (!group->aco__last || !group->aco__last->next));
    ACO__ASSERT(!record->scope && !record->group);
    record->scope = &group->scope;
    record->group = group;
    record->result = result;
    record->next = NULL;
    record->previous = group->aco__last;
    *(record->previous ? &record->previous->next : &group->aco__first) = record;
    group->aco__last = record;
}

static int check_result(const aco__thread_t *self, const void *result)
{
    return aco_likely(!result || !aco__may_move(result))
               ? 0
               : aco__fail(0, EINVAL, "aco_group_spawn", self->running, "is on a share stack, and so is the result");
}

aco_t *aco__group_spawn(aco_group_t *group, aco_function_t fn, void *arg, void **result, const aco_options_t *options)
{
    aco__thread_t *self = aco__self();
    aco__task_record_t *record, *spare = NULL;
    size_t sz = sizeof *spare;
    int has_room = check_open(self, "aco_group_spawn", group) == 0 && check_result(self, result) == 0;
    aco_t *task;
    if (has_room && options && options->stack && !(spare = aco__memory_new(&sz)))
        has_room = aco__fail_memory(0, "aco_group_spawn", sizeof *spare) == 0;
    task = has_room ? aco_spawn(fn, arg, options) : NULL;
    if (aco_unlikely(!task)) {
        int error = errno;
        if (spare)
            aco__memory_free(spare, sizeof *spare);
        aco__group_free_place(self, group);
        errno = error;
        return NULL;
    }
    if (aco_unlikely(__atomic_load_n(&aco__notes_spawns, __ATOMIC_RELAXED))) {
        aco__made(task, __builtin_return_address(0));
        aco__inherited_give(task, aco__inherited_copy());
    }
    if (spare)
        aco__annex(task)->record = spare;
    record = aco__scope_record(self, task);
    *aco__task_flags(task) |= TASK_DETACHED;
    add_member(group, record, result);
    return task;
}

/* Whether a member can be spawned now: aco__group_admit() would neither fail nor wait, nor wake a spawner. */
static inline int has_place(const aco__thread_t *self, const aco_group_t *group)
{
    return group && group->scope.aco__task && group->scope.aco__task->share_stack->aco__thread == self &&
           !group->scope.aco__ended_by && !group->aco__spawners.first &&
           (!group->limit || group->running < group->limit);
}

/* Whether aco__may_move() is 0 for every address. It calls nothing. */
static inline int nothing_moves(const aco__thread_t *self)
{
    return self->running && self->running == self->task && aco__is_on_private(self->running);
}

aco_t *aco__group_spawn_cached(aco_group_t *group, aco_function_t fn, void *arg, void **result)
{
    aco__thread_t *self = aco__self();
    aco__task_record_t *record;
    aco_t *task;
    if (aco_unlikely(!aco__can_spawn_cached(self, fn) || !has_place(self, group) || (result && !nothing_moves(self)) ||
                     __atomic_load_n(&aco__notes_spawns, __ATOMIC_RELAXED)))
        return NULL;
    task = aco__spawn_cached(self, fn, arg, TASK_DETACHED | TASK_SCOPED);
    record = aco__stack_task_record(task->share_stack);
    self->scoped_tasks++;
    aco__task_record_begin(record, task);
    group->running++;
    add_member(group, record, result);
    return task;
}

/* ---- The whole ---- */

/* A group, and the scopes around it, must stay where they are: members refer to them. */
static int check_stack(const char *call, const aco_group_t *group)
{
    const aco__thread_t *self = aco__self();
    const aco_t *task = aco__current(self);
    const aco_scope_t *scope;
    if (aco_likely(!task || aco__stack_is_kept(task)))
        return 0;
    if (aco__may_move(group))
        return aco__fail(0, EINVAL, call, task, "is on a share stack, and so is its group");
    scope = *aco__task_flags(task) & TASK_SCOPED ? aco__task_record(task)->scope : NULL;
    for (; scope && scope->aco__task == task; scope = scope->aco__outer)
        if (aco__is_on_its_stack(task, scope))
            return aco__fail(0, EINVAL, call, task, "is on a share stack, and so is a scope around its group");
    return 0;
}

int aco_group_begin_at(aco_group_t *group, aco_group_policy_t policy, const char *location)
{
    static const char call[] = "aco_group_begin";
    if (!group || (unsigned)policy > ACO_FIRST_SUCCESS)
        return aco__fail(0, EINVAL, call, NULL, group ? "the policy is unknown" : "the group is NULL");
    if (check_stack(call, group) != 0 ||
        aco__scope_begin(call, &group->scope, ACO_FOREVER, ACO__SCOPE_GROUP, location) != 0)
        return -1;
    aco__task_record(group->scope.aco__task)->groups++;
    group->limit = group->running = group->succeeded = group->failed = 0;
    group->error = 0;
    group->policy = policy;
    group->result = NULL;
    group->aco__first = group->aco__last = NULL;
    group->aco__spawners.first = group->aco__spawners.last = NULL;
    group->aco__spawners.thread = NULL;
    group->aco__ender = NULL;
    return 0;
}

ACO__SWITCHES int aco__group_end(aco_group_t *group, aco__wait_t *wait, const char *location)
{
    static const char call[] = "aco_group_end";
    aco__thread_t *self = aco__self();
    if (!group)
        return aco__fail(0, EINVAL, call, NULL, "the group is NULL");
    if (aco__scope_check_end(self, call, &group->scope) != 0)
        return -1;
    if (aco_unlikely(group->aco__spawners.first != NULL)) /* the limit may have been raised */
        aco__group_pass_places(self, group);
    if (!group->running)
        return 0;
    if (aco__check_waiting(self, call) != 0)
        return -1;
    aco__wait_fill(self, wait, ACO__WAIT_MEMBERS, group, location);
    aco__wait_slowly_inside(self);
    ACO__ASSERT(!group->aco__ender);
    group->aco__ender = wait;
    return aco__wait_start(self, wait);
}

int aco__group_result(aco_group_t *group)
{
    int succeeded = group->policy == ACO_FIRST_SUCCESS && group->succeeded;
    ACO__ASSERT(!group->running && !group->aco__first && !group->aco__spawners.first && !group->aco__ender);
    ACO__ASSERT(aco__task_record(group->scope.aco__task)->groups);
    aco__task_record(group->scope.aco__task)->groups--;
    aco__scope_leave(aco__self(), &group->scope);
    if (succeeded || !group->failed)
        return 0;
    errno = group->error;
    return -1;
}
