/* A task's life: it begins, ends, and is freed. spawn.c makes it. */
#include "coroutine/cleanup.h"
#include "coroutine/create.h"
#include "coroutine/depot.h"
#include "coroutine/exit.h"
#include "scheduler/reports/report.h"
#include "scheduler/sync/member.h"
#include "scheduler/wait.h"

void aco__task_reap(struct aco__scheduler *s)
{
    aco_t *zombie = s->zombie;
    if (!zombie)
        return;
    ACO__ASSERT(aco__status(zombie) == ACO__DESTROYED && aco__self()->running != zombie);
    s->zombie = NULL;
    aco__coroutine_free(zombie);
}

/* Deferred calls and destructors must not switch to other tasks. The higher count sends aco_task_yield() to its slow
 * path, which fails. */
ACO__COLD static void clean_up(aco_t *task)
{
    int error = errno; /* a group's member may return it */
    aco__remember_name(aco__self(), task);
    aco__self()->slow_switch_tasks++;
    aco__clean_up(task);
    aco__cold_leave(task);
    aco__self()->slow_switch_tasks--;
    errno = error;
}

/* The resume address of a task that has ended. Every way to use its block again, also aco_new() on it in the cache,
 * writes another one. */
static const char ended_task;

static inline void mark_ended(aco_t *task)
{
    task->aco__self.pc = (void *)(uintptr_t)&ended_task;
}

static inline int is_cacheable(const aco_t *task)
{
    return (task->aco__state & ~ACO__SHARES_FP) == (ACO__FROM_NEW | ACO__PRIVATE | ACO__ENDED);
}

/* Gives up the ended task. The caller still runs on its stack. In the cache the stack is safe until another task runs;
 * otherwise the task becomes the zombie, and the next zombie or a reap frees it. Returns whether that must happen
 * before another task runs: who joined the task, or ended its group, may free the stack's memory then. */
static __attribute__((noinline)) int give_up_slowly(aco__thread_t *self, aco_t *task)
{
    if (is_cacheable(task) && aco__depot_put(self, task))
        return 0;
    aco__task_reap(self->scheduler);
    aco__set_status(task, ACO__DESTROYED);
    self->scheduler->zombie = task;
    return aco__stack_is_callers(task->share_stack);
}

static inline int give_up(aco__thread_t *self, aco_t *task)
{
    return aco_likely(is_cacheable(task) && aco__cache_put(self, task)) ? 0 : give_up_slowly(self, task);
}

#ifdef ACO__INVARIANTS
/* A share stack may have been destroyed since the zombie left it. */
static int keeps_callers_memory(const aco_t *zombie)
{
    return zombie && aco__has(zombie, ACO__PRIVATE) && aco__stack_is_callers(zombie->share_stack);
}
#endif

/* Inline, so that a task ends with a jump and not with a call that never returns (docs/switch.md). */
__attribute__((noreturn, always_inline)) static inline void end_task(aco_t *task, void *result)
{
    aco__thread_t *self;
    aco_t *joiner;
    unsigned slow_switches;
    if (aco_unlikely(task->aco__state & ACO__HAS_COLD))
        clean_up(task);
    if (aco_unlikely(!task->share_stack->guard_page_enabled))
        aco__stack_check_overflow("aco_exit", task->share_stack);
    self = aco__self();
    slow_switches = self->slow_switch_tasks;
    if (aco_unlikely(aco__needs_slow_switch(task)))
        self->slow_switch_tasks--;
    ACO__ASSERT(self->tasks && self->task == task && aco__is_task(task));
    self->tasks--;
    if (aco_unlikely(self->scoped_tasks != 0))
        aco__scoped_task_ends(self, task, result);
    aco__ring_remove(self);
    task->is_end = 1;
    aco__set_result(task, result);
    mark_ended(task);
    aco__set_status(task, ACO__ENDED);
    joiner = *aco__task_joiner(task);
    if (joiner) {
        ACO__ASSERT(aco__task_wait(joiner) && aco__task_wait(joiner)->kind == ACO__WAIT_JOIN &&
                    aco__task_wait(joiner)->object == task); /* its `value` is the result */
        aco__task_wait(joiner)->value = result;
        aco__wake(self, aco__task_wait(joiner), 0);
    }
    if (!(task->aco__state & ACO__SHARES_FP))
        aco__load_resumer_environment();
    if (joiner || (*aco__task_flags(task) & TASK_DETACHED))
        slow_switches |= (unsigned)give_up(self, task); /* aco_run() reaps before it resumes another task */
    if (aco_unlikely(slow_switches || !self->task))
        aco__switch_exit(aco__tls_ref(), 0, NULL);
    ACO__ASSERT(!keeps_callers_memory(self->scheduler->zombie)); /* the next task may free it */
    self->running = self->task;
    aco__switch_enter(aco__tls_ref(), self->task, (uintptr_t)self->task, NULL);
}

void aco__task_end_running(aco_t *task, void *result)
{
    end_task(task, result);
}

ACO__FOREIGN_ENTRY ACO__ARRIVAL_ABI void aco__task_begin(ACO__ARRIVAL_PARAMETERS)
{
    aco_t *task = (aco_t *)tagged;
    aco__end_frame_pointers();
    aco__begins_here(task->share_stack, aco__self());
    end_task(task, aco__entry_of_task(task)(task->arg));
}

int aco__task_check(const aco__thread_t *self, const char *call, const aco_t *task)
{
    if (aco_likely(task && aco__is_task(task) && task->share_stack->aco__thread == self))
        return 0;
    if (!task)
        return aco__fail(0, EINVAL, call, NULL, "the task is NULL");
    if (aco__is_task(task))
        return aco__fail(0, EPERM, call, task, "belongs to another thread");
    if (aco__status(task) == ACO__DESTROYED)
        return aco__fail(0, ESRCH, call, task, "was destroyed");
    return aco__fail(0, EINVAL, call, task, "is not a task");
}

int aco__task_has_ended(const aco_t *task)
{
    return task && aco__status(task) == ACO__ENDED && task->aco__self.pc == &ended_task;
}
