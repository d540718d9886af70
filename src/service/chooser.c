/* A scheduler whose tasks' turns somebody else chooses (aco/detail/chooser.h), for as long as that lasts. */
#include "coroutine/create.h"
#include "coroutine/forgotten.h"
#include "scheduler/reports/inspection.h"
#include "scheduler/sync/member.h"
#include "scheduler/wait.h"
#include "tools/trace.h"

#include "aco/detail/chooser.h"
#include "aco/detail/relay.h"

void aco__chooser_prepare(void)
{
    aco__trace_end("a simulation has times of its own");
}

int aco__chooser_begin(aco__chooser_t *chooser, const char *call)
{
    aco__thread_t *self = aco__thread_ready();
    aco__tasks_t *s = aco__tasks(self);
    if (self->running)
        return aco__fail(0, EPERM, call, self->running, "is a coroutine: only the root context may call this");
    if (self->tasks || (s && (s->base.is_running || s->worker)))
        return aco__fail(0, EBUSY, call, NULL, "the thread has tasks");
    aco__reap(self);
    ACO__ASSERT(!self->task && !self->last_task);
    chooser->aco__outer = self->scheduler;
    self->scheduler = NULL;
    s = aco__polling_scheduler_of(self, call);
    if (!s) {
        self->scheduler = chooser->aco__outer;
        return -1;
    }
    chooser->aco__slow_switch_tasks = self->slow_switch_tasks;
    chooser->aco__scoped_tasks = self->scoped_tasks;
    chooser->aco__looked_at = self->looked_at;
    chooser->aco__spawned = self->spawned;
    self->slow_switch_tasks = 1; /* each task returns to aco_run() */
    self->scoped_tasks = self->spawned = 0;
    chooser->poll_task = &s->poll_task;
    chooser->aco__kept = chooser->aco__open = 0;
    chooser->aco__abandoned = NULL;
    chooser->aco__relays = NULL;
    s->chooser = chooser;
    aco__inspect_leave(s);
    aco__forgotten_expect(1);
    return 0;
}

/* ---- Tasks that never run again ---- */

ACO__OPTIONAL(void, __lsan_register_root_region, (const void *p, size_t size)); /* a leak checker has it */

static void leave_queues(aco__thread_t *self, aco__wait_t *wait)
{
    for (aco__waiter_t *waiter = wait->first; waiter; waiter = waiter->other)
        if (waiter->queue)
            aco__dequeue(waiter);
    if (wait->timer.index)
        aco__timer_cancel(aco__tasks(self), &wait->timer);
}

/* The wait ends for all but its task: no queue and no timer leads to it any more. */
static void leave_wait(aco__thread_t *self, aco__wait_t *wait)
{
    aco__tasks_t *s = aco__tasks(self);
    void *object = (void *)(uintptr_t)wait->object;
    ACO__ASSERT(wait->kind != ACO__WAIT_MT); /* another thread's object has it */
    leave_queues(self, wait);
    if (wait->kind == ACO__WAIT_JOIN)
        *aco__task_joiner(object) = NULL;
    else if (wait->kind == ACO__WAIT_BARRIER)
        ((aco_barrier_t *)object)->arrived -= 1;
    else if (wait->kind == ACO__WAIT_MEMBERS)
        ((aco_group_t *)object)->aco__ender = NULL;
    else if (wait->kind == ACO__WAIT_WRLOCK)
        aco__rwlock_pass(self, object);
    else if (wait->kind == ACO__WAIT_READABLE || wait->kind == ACO__WAIT_WRITABLE)
        s->poller->waiters--;
}

/* The task can run: the chooser keeps it, or another abandoned one has just woken it. */
static void leave_ring(aco__thread_t *self, aco__chooser_t *chooser, aco_t *task)
{
    aco_t *before = self->last_task;
    if (!aco__is_on_private(task) && *aco__task_flags(task) & TASK_EARLY)
        aco__dequeue(&aco__annex(task)->wait->waiter);
    while (before && aco__task_next(before) != task)
        before = aco__task_next(before) == self->last_task ? NULL : aco__task_next(before);
    if (!before) {
        ACO__ASSERT(chooser->aco__kept);
        chooser->aco__kept--;
    } else if (before == task) {
        self->task = self->last_task = NULL;
    } else {
        aco__set_task_next(before, aco__task_next(task));
        self->task = self->task == task ? aco__task_next(task) : self->task;
        self->last_task = self->last_task == task ? before : self->last_task;
    }
}

/* Groups of its own are given up with their memory. */
static void abandon_scopes(aco__thread_t *self, aco_t *task)
{
    aco__task_record_t *record = aco__task_record(task);
    if (*aco__task_flags(task) & TASK_SCOPED) {
        record->groups = 0;
        record->at_end = NULL;
    }
    aco__task_leaves_scopes(self, task, ACO_ERROR, ECANCELED);
    if (aco__is_on_private(task))
        return;
    self->scoped_tasks--;
    if (record)
        aco__memory_free(record, sizeof *record);
    aco__annex(task)->record = NULL;
    *aco__task_flags(task) = 0;
}

/* Frames that are gone, for a leak checker: what only they point to was lost on purpose. */
typedef struct remains {
    struct remains *next;
    uintptr_t frames[];
} remains_t;

/* 0, or -1 without memory. */
ACO__NO_SANITIZE static int keep_frames(const uintptr_t *frames, const uintptr_t *end)
{
    static remains_t *all;
    size_t n = (size_t)(end - frames);
    remains_t *kept = malloc(sizeof *kept + n * sizeof *frames);
    if (!kept)
        return -1;
    for (size_t i = 0; i < n; i++)
        ((volatile uintptr_t *)kept->frames)[i] = frames[i];
    aco__lock();
    kept->next = all;
    all = kept;
    aco__unlock();
    return 0;
}

/* 0; or -1: they cannot be kept. */
static int keep_frames_of_task(const aco_t *task)
{
    const uintptr_t *frames = (const uintptr_t *)task->aco__self.sp;
    if (!aco__has(task, ACO__PRIVATE) || !aco__is_on_its_stack(task, frames)) /* an inner coroutine has waited */
        return -1;
    return keep_frames(frames, task->share_stack->aco__top);
}

void aco__chooser_leaves_frames(const void *top, const void *end)
{
    ACO__ASSERT(!aco__running());
    ACO__SECTIONS_FORGET();
    if (__lsan_register_root_region)
        (void)keep_frames(top, end);
}

int aco__chooser_may_leave_turn(void)
{
    const aco__thread_t *self = aco__self();
    return aco__is_in_task(self) || aco__may_leave_inner(self);
}

void aco__chooser_leave_turn(void)
{
    aco__thread_t *self = aco__self();
    aco_t *task = self->task;
    ACO__ASSERT(aco__chooser_may_leave_turn() && aco__tasks(self)->chooser);
    ACO__SECTIONS_FORGET();
    aco__ring_turn(self);
    self->slow_switch_tasks += self->running != task; /* as aco__wait_slowly_inside() */
    aco__task_leave(task);
    abort();
}

/* What is told later, and a time limit, wake nobody. The task's memory stays: others may still tell its answer. */
static void leave_answer(aco__thread_t *self, const aco_t *task, aco__wait_t *wait)
{
    leave_queues(self, wait);
    ACO__ASSERT(aco__tasks(self)->askers);
    aco__tasks(self)->askers--;
    if (__lsan_register_root_region)
        (void)keep_frames_of_task(task);
}

void aco__chooser_abandon(aco__chooser_t *chooser, aco_t *task)
{
    aco__thread_t *self = aco__self();
    aco__tasks_t *s = aco__tasks(self);
    aco__wait_t *wait = aco__task_wait(task);
    const aco_t *joiner = *aco__task_joiner(task);
    ACO__ASSERT(s->chooser == chooser && !self->running && !aco__in_turn(s) && aco__is_task(task));
    aco__relays_abandon(chooser, task);
    if (wait && wait->kind == ACO__WAIT_MT)
        leave_answer(self, task, wait);
    else {
        if (wait)
            leave_wait(self, wait);
        else
            leave_ring(self, chooser, task);
        aco__set_task_next(task, chooser->aco__abandoned);
        chooser->aco__abandoned = task;
    }
    s->backs_off = s->backs_off == task ? NULL : s->backs_off;
    if (aco__needs_slow_switch(task))
        self->slow_switch_tasks--;
    self->tasks--;
    if (self->scoped_tasks)
        abandon_scopes(self, task);
    if (joiner)
        aco__wake(self, aco__task_wait(joiner), 0);
    aco__set_status(task, ACO__DESTROYED);
}

static void free_abandoned(aco__chooser_t *chooser)
{
    while (chooser->aco__abandoned) {
        aco_t *task = chooser->aco__abandoned;
        chooser->aco__abandoned = aco__task_next(task);
        if (__lsan_register_root_region && keep_frames_of_task(task) != 0)
            continue;
        if (aco__has(task, ACO__PRIVATE))
            aco__coroutine_free(task);
        else
            aco__stack_forget(task);
    }
}

/* Tasks on share stacks stay: these are the thread's. */
void aco__chooser_bequeath(aco__chooser_t *chooser, aco__chooser_t *heir)
{
    aco_t *next = chooser->aco__abandoned;
    chooser->aco__abandoned = NULL;
    while (next) {
        aco_t *task = next;
        aco__chooser_t *owner = aco__has(task, ACO__PRIVATE) ? heir : chooser;
        next = aco__task_next(task);
        aco__set_task_next(task, owner->aco__abandoned);
        owner->aco__abandoned = task;
    }
}

void aco__chooser_end(aco__chooser_t *chooser)
{
    aco__thread_t *self = aco__self();
    ACO__ASSERT(!self->running && aco__tasks(self)->chooser == chooser);
    free_abandoned(chooser);
    self->scheduler->thread_ends(self);
    self->scheduler = chooser->aco__outer;
    self->slow_switch_tasks = chooser->aco__slow_switch_tasks;
    self->scoped_tasks = chooser->aco__scoped_tasks;
    self->looked_at = chooser->aco__looked_at;
    self->spawned = chooser->aco__spawned;
    aco__forgotten_expect(0);
}

int aco__chooser_is_there(void)
{
    const aco__thread_t *self = aco__self();
    return self->scheduler && aco__tasks(self)->chooser;
}

/* NULL: the calling thread has none. */
static aco__chooser_t *chooser_here(void)
{
    return aco__chooser_is_there() ? aco__tasks(aco__self())->chooser : NULL;
}

uint64_t *aco__chooser_pool(void)
{
    const aco__chooser_t *chooser = chooser_here();
    return chooser ? chooser->pool : NULL;
}

int aco__chooser_look_up(int64_t *ns)
{
    aco__chooser_t *chooser = chooser_here();
    return chooser ? chooser->look_up(chooser, ns) : -1;
}

int64_t aco__chooser_disk_time(void)
{
    aco__chooser_t *chooser = chooser_here();
    return chooser && chooser->disk_time ? chooser->disk_time(chooser) : -1;
}

void *aco__chooser_try(void *(*fn)(void *arg), void *arg, int *would_wait)
{
    aco__chooser_t *chooser = chooser_here();
    void *result;
    ACO__ASSERT(chooser && !chooser->tries);
    chooser->tries = 1;
    result = fn(arg);
    *would_wait = chooser->tries > 1;
    chooser->tries = 0;
    return result;
}

void aco__chooser_in_job(void (*leave)(void *job), void *job, int may_hang)
{
    aco__chooser_t *chooser = chooser_here();
    if (aco_likely(!chooser))
        return;
    chooser->leave_job = leave;
    chooser->job = job;
    chooser->may_hang = may_hang;
}

int aco__chooser_refuse(const char *call)
{
    aco__chooser_t *chooser = chooser_here();
    if (chooser && chooser->refuse)
        chooser->refuse(chooser, call);
    errno = ENOSYS;
    return -1;
}

const char *aco__chooser_refused(void)
{
    const aco__tasks_t *s = aco__tasks(aco__self());
    ACO__ASSERT(s->chooser != NULL);
    return __atomic_load_n(&s->refused, __ATOMIC_RELAXED);
}

/* By ACO__WAIT_…. A descriptor comes after "for readable", a text after ": ". */
static const char *const words[] = {"to be unparked", "to join a task", "for time to pass", "for a mutex",
                                    "for a condition", "for a semaphore", "for a wait group", "to send to a channel",
                                    "to receive from a channel", "for one of several channels",
                                    "for a place in a group", "for a group's members", "for a condition's mutex",
                                    "to read under a lock", "to write under a lock", "for a function that runs once",
                                    "at a barrier", "for an event", "for readable", "for writable",
                                    "for an answer", "for another thread"};
ACO__STATIC_ASSERT(sizeof words / sizeof *words == ACO__WAIT_MT + 1, "each kind of wait has its words");

int aco__chooser_wait(const aco_t *task, aco__chooser_wait_t *result)
{
    const aco__wait_t *wait = aco__task_wait(task);
    if (!wait)
        return 0;
    ACO__ASSERT(wait->kind <= ACO__WAIT_MT && wait->task == task);
    result->what = words[wait->kind];
    result->text = wait->kind == ACO__WAIT_PARK || wait->kind == ACO__WAIT_MT ? wait->object
                   : wait->kind == ACO__WAIT_JOIN                             ? aco_name(wait->object)
                                                                              : NULL;
    result->fd = wait->kind == ACO__WAIT_READABLE || wait->kind == ACO__WAIT_WRITABLE ? (int)(uintptr_t)wait->object
                                                                                      : -1;
    result->until = wait->timer.index ? aco__tasks(aco__self())->timers[wait->timer.index - 1].deadline : INT64_MAX;
    return 1;
}
