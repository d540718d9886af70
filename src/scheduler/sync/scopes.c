/* Scopes. A task's record has its innermost scope; each scope knows the one around it. When a scope ends, that is
 * written into all scopes inside, so a wait asks only the innermost one.
 *
 * Deadlines. A scope sets no timer when it begins: most are left before anything waits long. The first wait that a
 * deadline limits sets the timer of the task whose scope it is; leaving the scope does not remove it. So a task has at
 * most one timer for its scopes, due at or before the first of their deadlines that matters. When it is due, it looks
 * at the scopes that are open then, and moves to the next deadline. */
#include "os/clock.h"
#include "scheduler/inbox.h"
#include "scheduler/wait.h"

static aco_t *task_of(aco__task_record_t *record)
{
    return record->task;
}

/* ---- The end of a scope ---- */

/* `cause` has ended. Passes that on to the scopes of `task` inside `outer`, except those in a shield, and links those
 * that had not ended before into *list. */
static void end_inside(aco__thread_t *self, aco_scope_t *cause, const aco_t *task, const aco_scope_t *outer,
                       aco_scope_t **list)
{
    aco_scope_t *inner = aco__task_record(task)->scope, *first = inner;
    aco__wait_t *wait = aco__task_wait(task);
    for (aco_scope_t *scope = inner; scope != outer; scope = scope->aco__outer)
        if (scope->aco__flags & ACO__SCOPE_SHIELD)
            first = scope->aco__outer;
    for (aco_scope_t *scope = first; scope != outer; scope = scope->aco__outer)
        if (!scope->aco__ended_by) {
            scope->aco__ended_by = cause;
            scope->aco__pending = *list;
            *list = scope;
        }
    if (first == inner && wait)
        aco__interrupt(self, wait, cause->error);
}

/* `cause` has ended the scopes in the list. Their tasks know; the members of groups do not yet. */
static void pass_on(aco__thread_t *self, aco_scope_t *cause, aco_scope_t *list)
{
    while (list) {
        aco_scope_t *ended = list;
        list = ended->aco__pending;
        ACO__ASSERT(ended->aco__ended_by == cause);
        if (ended->aco__flags & ACO__SCOPE_GROUP)
            for (aco__task_record_t *member = ((aco_group_t *)ended)->aco__first; member; member = member->next)
                end_inside(self, cause, task_of(member), ended, &list);
        else if (ended->aco__flags & ACO__SCOPE_TOLD)
            aco__tasks(self)->worker->scope_ended(aco__tasks(self)->worker, ended);
    }
}

void aco__scope_finish(aco__thread_t *self, aco_scope_t *scope, int error)
{
    aco_scope_t *list = scope;
    if (scope->aco__ended_by) /* by itself or by one around it: all inside know already */
        return;
    ACO__NO_SWITCH_BEGIN(); /* the scopes in the list are on stacks of tasks that run next */
    scope->error = error;
    scope->aco__ended_by = scope;
    scope->aco__pending = NULL;
    end_inside(self, scope, scope->aco__task, scope, &list);
    pass_on(self, scope, list);
    ACO__NO_SWITCH_END();
}

/* ---- The end of all tasks' waits ---- */

typedef struct all_tasks {
    aco__thread_t *self;
    aco_scope_t *all, *list;
    int lacks_memory;
} all_tasks_t;

/* `all` becomes the outermost scope of the coroutine, if that is a task of the thread. */
static int end_in_all(aco_t *co, void *arg)
{
    all_tasks_t *tasks = arg;
    aco__task_record_t *record;
    aco_scope_t **outermost;
    if (!aco__is_task(co) || co->share_stack->aco__thread != tasks->self)
        return 0;
    record = aco__scope_record(tasks->self, co);
    if (!record) { /* on a share stack, without memory: at the next call */
        tasks->lacks_memory = 1;
        return 0;
    }
    outermost = &record->scope;
    while (*outermost && *outermost != tasks->all)
        outermost = &(*outermost)->aco__outer;
    *outermost = tasks->all;
    end_inside(tasks->self, tasks->all, co, tasks->all, &tasks->list);
    return 0;
}

void aco__scope_end_all(aco_scope_t *all, int error)
{
    all_tasks_t tasks = {aco__self(), all, NULL, 0};
    aco__tasks_t *s = aco__tasks(tasks.self);
    if (s->all == all && s->all_spawned == tasks.self->spawned) /* each round of a set that is cancelled calls it */
        return;
    memset(all, 0, sizeof *all);
    all->error = error;
    all->aco__flags = ACO__SCOPE_MT;
    all->aco__deadline = ACO_FOREVER;
    all->aco__ended_by = all;
    ACO__NO_SWITCH_BEGIN();
    if (aco_likely(!s->chooser))
        aco__blocks_each(end_in_all, &tasks);
    else if (s->chooser->each(s->chooser, end_in_all, &tasks) != 0)
        tasks.lacks_memory = 1;
    pass_on(tasks.self, all, tasks.list);
    s->all = tasks.lacks_memory ? NULL : all;
    s->all_spawned = tasks.self->spawned;
    ACO__NO_SWITCH_END();
}

/* ---- Deadlines ---- */

/* The first deadline of the task's own scopes that have not ended. */
static int64_t next_deadline(const aco_t *task)
{
    int64_t first = ACO_FOREVER;
    for (const aco_scope_t *scope = aco__innermost(task); scope && scope->aco__task == task; scope = scope->aco__outer)
        if (!scope->aco__ended_by && scope->aco__deadline < first)
            first = scope->aco__deadline;
    return first;
}

static void deadline_due(aco__thread_t *self, aco__timed_t *timed);

/* Sets the task's timer, for which there is room, unless it is due early enough. */
static void limit_by(aco__thread_t *self, aco__task_record_t *record, int64_t deadline)
{
    aco__tasks_t *s = aco__tasks(self);
    if (record->timer.index) {
        if (s->timers[record->timer.index - 1].deadline <= deadline)
            return;
        aco__timer_cancel(s, &record->timer);
    }
    aco__timer_set(self, &record->timer, deadline, deadline_due);
}

static aco__task_record_t *record_of(aco__timed_t *timed)
{
    return (aco__task_record_t *)(void *)((char *)timed - offsetof(aco__task_record_t, timer));
}

/* Ends the scopes of the task whose deadline is at most `now`. Of two such scopes the one with the earlier deadline
 * counts, and of equals the outer one: that is each scope's limit. */
static void end_those_due(aco__thread_t *self, const aco_t *task, int64_t now)
{
    for (aco_scope_t *scope = aco__innermost(task); scope && scope->aco__task == task; scope = scope->aco__outer) {
        aco_scope_t *limit = scope->aco__limit;
        if (limit && limit->aco__deadline <= now)
            aco__scope_finish(self, limit, ETIMEDOUT);
    }
}

static void deadline_due(aco__thread_t *self, aco__timed_t *timed)
{
    aco__task_record_t *record = record_of(timed);
    const aco_t *task = task_of(record);
    ACO__ASSERT(aco__is_task(task) && aco__task_record(task) == record); /* an ended task has no timer */
    int64_t next;
    end_those_due(self, task, aco__os_now());
    next = next_deadline(task);
    if (next != ACO_FOREVER)
        limit_by(self, record, next); /* into the place of the timer that was due */
}

void aco__scope_timers_refresh(aco__thread_t *self, int64_t until)
{
    aco__tasks_t *s = aco__tasks(self);
    for (; s->timers_count && s->timers[0].deadline < until && s->timers[0].timed->due == deadline_due;
         aco__timers_settle(s)) {
        aco__task_record_t *record = record_of(s->timers[0].timed);
        int64_t next = next_deadline(task_of(record));
        if (next <= s->timers[0].deadline)
            return;
        aco__timer_cancel(s, &record->timer);
        if (next != ACO_FOREVER)
            limit_by(self, record, next);
    }
}

static const char *name_of_call(unsigned kind)
{
    static const char *const names[] = {
        "aco_park", "aco_join", "aco_sleep", "aco_mutex_lock", "aco_cond_wait", "aco_semaphore_acquire",
        "aco_wait_group_wait", "aco_channel_send", "aco_channel_receive", "aco_select", "aco_group_spawn",
        "aco_group_end", "aco_cond_wait", "aco_rwlock_rdlock", "aco_rwlock_wrlock", "aco_once", "aco_barrier_wait",
        "aco_event_wait", "aco_io_wait_readable", "aco_io_wait_writable", "aco_offload", "a wait for another thread"};
    _Static_assert(sizeof names / sizeof *names == ACO__WAIT_MT + 1, "each kind has a name");
    return names[kind];
}

static inline int admit(aco__thread_t *self, const aco__wait_t *wait)
{
    const aco_scope_t *scope = aco__innermost(wait->task), *limit;
    aco__task_record_t *record;
    if (!aco__is_on_private(wait->task) && self->running == wait->task &&
        !aco__is_on_its_stack(wait->task, __builtin_frame_address(0)))
        return aco__fail(0, EPERM, name_of_call(wait->kind), wait->task,
                         "is on a share stack and cannot wait in a generator");
    if (!scope)
        return 0;
    if (scope->aco__ended_by) {
        errno = scope->aco__ended_by->error;
        return -1;
    }
    limit = scope->aco__limit;
    if (!limit)
        return 0;
    ACO__ASSERT(limit->aco__task && limit->aco__deadline != ACO_FOREVER); /* it has not been left */
    record = aco__task_record(limit->aco__task);
    if (!record->timer.index && aco__timers_reserve(self, 1, name_of_call(wait->kind)) != 0)
        return -1;
    limit_by(self, record, limit->aco__deadline);
    return 0;
}

ACO__COLD static int admit_inner(aco__thread_t *self, const aco__wait_t *wait)
{
    if (admit(self, wait) != 0)
        return -1;
    aco__wait_slowly_inside(self);
    return 0;
}

int aco__scope_admit(aco__thread_t *self, const aco__wait_t *wait)
{
    return aco_likely(self->running == self->task) ? admit(self, wait) : admit_inner(self, wait);
}

/* ---- The calls ---- */

static int fail_no_task(const aco__thread_t *self, const char *call)
{
    return aco__fail(0, EPERM, call, self->running, self->running ? "is not a task" : "no task is running");
}

/* On a share stack. */
ACO__COLD static aco__task_record_t *new_record(const aco_t *task)
{
    size_t sz = sizeof(aco__task_record_t);
    return aco__annex(task)->record = aco__memory_new(&sz);
}

aco__task_record_t *aco__scope_record(aco__thread_t *self, const aco_t *task)
{
    aco__task_record_t *record = aco__task_record(task);
    if (!(*aco__task_flags(task) & TASK_SCOPED)) {
        if (!record && !(record = new_record(task)))
            return NULL;
        *aco__task_flags(task) |= TASK_SCOPED;
        self->scoped_tasks++;
        aco__task_record_begin(record, task);
    }
    return record;
}

static inline void begin_in(aco_t *task, aco__task_record_t *record, aco_scope_t *scope, int64_t deadline,
                            unsigned flags, const char *location)
{
    aco_scope_t *outer = record->scope;
    ACO__ASSERT(record->task == task && outer != scope);
    record->scope = scope;
    scope->error = 0;
    scope->aco__flags = flags;
    scope->aco__task = task;
    scope->aco__outer = outer;
    scope->aco__deadline = deadline;
    scope->aco__location = location;
    scope->aco__post.next = NULL;
    if (flags & ACO__SCOPE_SHIELD)
        outer = NULL;
    scope->aco__ended_by = outer ? outer->aco__ended_by : NULL;
    scope->aco__limit = outer ? outer->aco__limit : NULL;
    if (deadline != ACO_FOREVER && (!scope->aco__limit || deadline < scope->aco__limit->aco__deadline))
        scope->aco__limit = scope;
}

/* The first scope of a task; or on a share stack, or in an inner coroutine; or nothing is right. */
static __attribute__((noinline)) int begin_slowly(aco__thread_t *self, const char *call, aco_scope_t *scope,
                                                  int64_t deadline, unsigned flags, const char *location)
{
    aco_t *task = aco__current(self);
    aco__task_record_t *record;
    if (!scope)
        return aco__fail(0, EINVAL, call, NULL, "the scope is NULL");
    if (!task)
        return fail_no_task(self, call);
    if (self->running != task && !aco__stack_is_kept(self->running) && aco__is_on_its_stack(self->running, scope))
        return aco__fail(0, EINVAL, call, self->running, "is on a share stack, and so is its scope");
    record = aco__scope_record(self, task);
    if (!record)
        return aco__fail_memory(0, "aco_scope_begin", sizeof *record);
    begin_in(task, record, scope, deadline, flags, location);
    return 0;
}

int aco__scope_begin(const char *call, aco_scope_t *scope, int64_t deadline, unsigned flags, const char *location)
{
    aco__thread_t *self = aco__self();
    aco_t *task = self->running;
    if (aco_unlikely(!scope || !task || task != self->task || !aco__is_on_private(task) ||
                     !(*aco__task_flags(task) & TASK_SCOPED)))
        return begin_slowly(self, call, scope, deadline, flags, location);
    begin_in(task, aco__task_record(task), scope, deadline, flags, location);
    return 0;
}

int aco_scope_begin_at(aco_scope_t *scope, int64_t deadline, const char *location)
{
    return aco__scope_begin("aco_scope_begin", scope, deadline, 0, location);
}

int aco_shield_begin_at(aco_scope_t *scope, int64_t deadline, const char *location)
{
    return aco__scope_begin("aco_shield_begin", scope, deadline, ACO__SCOPE_SHIELD, location);
}

ACO__COLD static int fail_end(const aco__thread_t *self, const char *call, const aco_scope_t *scope)
{
    const aco_t *task = aco__current(self);
    const aco_scope_t *inner;
    char text[256];
    if (!task)
        return fail_no_task(self, call);
    inner = aco__innermost(task);
    return aco__fail(0, EPERM, call, task,
                     "is not inside the scope %p; its innermost %s is %p, begun at %s", (const void *)scope,
                     inner && inner->aco__flags & ACO__SCOPE_GROUP ? "scope is a group's and" : "scope",
                     (const void *)inner,
                     inner && inner->aco__location ? aco__location(inner->aco__location, text, sizeof text)
                                                   : "an unknown location");
}

int aco__scope_check_end(const aco__thread_t *self, const char *call, const aco_scope_t *scope)
{
    const aco_t *task = aco__current(self);
    if (aco_likely(task && aco__innermost(task) == scope && scope->aco__task == task))
        return 0;
    return fail_end(self, call, scope);
}

void aco__scope_leave(aco__thread_t *self, aco_scope_t *scope)
{
    if (aco_unlikely(aco__is_posted(&scope->aco__post)))
        aco__inbox_forget(aco__tasks(self), &scope->aco__post);
    aco__task_record(scope->aco__task)->scope = scope->aco__outer;
    scope->aco__task = NULL;
}

/* What is not the common case. */
ACO__COLD static int end_slowly(aco__thread_t *self, aco_scope_t *scope)
{
    static const char call[] = "aco_scope_end";
    if (!scope)
        return aco__fail(0, EINVAL, call, NULL, "the scope is NULL");
    if (aco__scope_check_end(self, call, scope) != 0)
        return -1;
    if (scope->aco__flags & (ACO__SCOPE_GROUP | ACO__SCOPE_MT))
        return aco__fail(0, EBUSY, call, scope->aco__task, "leaves the scope of a group without aco_group_end()");
    aco__scope_leave(self, scope);
    return 0;
}

int aco_scope_end(aco_scope_t *scope)
{
    aco__thread_t *self = aco__self();
    const aco_t *task = self->running;
    if (aco_unlikely(!scope || !task || task != self->task || aco__innermost(task) != scope ||
                     scope->aco__flags & (ACO__SCOPE_GROUP | ACO__SCOPE_MT) || aco__is_posted(&scope->aco__post)))
        return end_slowly(self, scope);
    aco__task_record(task)->scope = scope->aco__outer; /* its own: only a group's may be inherited */
    scope->aco__task = NULL;
    return 0;
}

static void cancel_posted(aco__thread_t *self, aco__post_t *post)
{
    aco__scope_finish(self, (aco_scope_t *)(void *)((char *)post - offsetof(aco_scope_t, aco__post)), ECANCELED);
}

int aco_scope_cancel(aco_scope_t *scope)
{
    static const char call[] = "aco_scope_cancel";
    aco__thread_t *self = aco__self(), *other;
    if (!scope)
        return aco__fail(0, EINVAL, call, NULL, "the scope is NULL");
    if (!scope->aco__task)
        return aco__fail(0, ESRCH, call, NULL, "the task has left the scope %p", (void *)scope);
    other = scope->aco__task->share_stack->aco__thread;
    if (other != self) {
        if (!aco__is_open(other)) {
            aco__refuse_other(other ? aco__tasks(other) : NULL,
                              "another thread called aco_scope_cancel(), which cannot reach the tasks");
            return aco__fail(0, EPERM, call, scope->aco__task, "belongs to another thread");
        }
        __atomic_store_n(&scope->aco__post.run, cancel_posted, __ATOMIC_RELAXED);
        aco__inbox_post(aco__tasks(other), &scope->aco__post);
        return 0;
    }
    aco__scope_finish(self, scope, ECANCELED);
    return 0;
}

const aco_scope_t *aco_scope_ended_by(const aco_scope_t *scope)
{
    return scope->aco__ended_by;
}

int aco__in_scope(void)
{
    aco__thread_t *self = aco__self();
    const aco_t *task = aco__current(self);
    return task && (aco__innermost(task) || aco__tasks(self)->worker); /* a set that is cancelled ends all waits */
}

int aco_check_cancelled(void)
{
    aco__thread_t *self = aco__self();
    const aco_t *task = aco__current(self);
    const aco_scope_t *scope;
    if (!task)
        return fail_no_task(self, "aco_check_cancelled");
    scope = aco__innermost(task);
    if (!scope)
        return 0;
    if (!scope->aco__ended_by && scope->aco__limit) {
        int64_t now = aco__os_now();
        if (scope->aco__limit->aco__deadline <= now)
            aco__scope_finish(self, scope->aco__limit, ETIMEDOUT);
    }
    if (!scope->aco__ended_by)
        return 0;
    errno = scope->aco__ended_by->error;
    return -1;
}

int64_t aco_deadline(void)
{
    const aco__thread_t *self = aco__self();
    const aco_t *task = aco__current(self);
    const aco_scope_t *scope = task ? aco__innermost(task) : NULL;
    return scope && scope->aco__limit ? scope->aco__limit->aco__deadline : ACO_FOREVER;
}

/* Whether the post cancels a scope of `task`. */
static int cancels_scope_of(const aco__post_t *post, const void *task)
{
    const aco_scope_t *scope =
        (const aco_scope_t *)(const void *)((const char *)post - offsetof(aco_scope_t, aco__post));
    return __atomic_load_n(&post->run, __ATOMIC_RELAXED) == cancel_posted && scope->aco__task == task;
}

void aco__scopes_forget_posts(aco__tasks_t *s, const aco_t *task)
{
    aco__inbox_filter(s, cancels_scope_of, task);
}
