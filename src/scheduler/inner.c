/* Inner coroutines: a task resumed them, or another inner coroutine of the task did. If the innermost one waits, its
 * resumers go on waiting for it and the task with them.
 *
 * The scheduler knows the task only. So the innermost coroutine leaves in the task's name: it puts back the root
 * context as resumer, lets the task be the running coroutine, and switches as the task does. Meanwhile the two control
 * blocks have exchanged their contexts: the task's says where the innermost coroutine goes on, and the innermost
 * coroutine's where the task does. */
#include "coroutine/query.h"
#include "scheduler/wait.h"

#include "tools/shadow_stack.h"

/* What the coroutines between the task and its innermost coroutine have, that one included. */
typedef struct chain {
    int is_instrumented; /* the task counts too */
    int owns_exceptions, owns_fp;
    uint32_t fp_control; /* of the task, if one of the others owns its environment */
    uint16_t fp_control2;
} chain_t;

/* The resumer of a coroutine that waits for another one; NULL if its frames are saved. */
static aco_t *resumer_of(const aco_t *waiting)
{
    const aco__context_t *context = waiting->share_stack->aco__resumer_context;
    return context == &aco__no_context ? NULL : (aco_t *)(uintptr_t)context;
}

/* Whether the frames of a coroutine between the task and the running one are not where they were: another one on its
 * share stack has run. */
static int lacks_frames(const aco__thread_t *self, const aco_t *task)
{
    const aco_t *co = self->resuming;
    for (; co != task || aco__status(task) == ACO__RESUMING_SAVED; co = resumer_of(co))
        if (!co || co == task)
            return 1;
    return 0;
}

int aco__may_leave_inner(const aco__thread_t *self)
{
    const aco_t *task = aco__task_around(self);
    return task && !(self->scratch && self->scratch->cleanups) && aco__stack_is_kept(self->running) &&
           !lacks_frames(self, task);
}

int aco__check_inner(aco__thread_t *self, const char *call)
{
    aco_t *task = aco__task_around(self), *co = self->running;
    if (!task || (self->scratch && self->scratch->cleanups))
        return aco__fail_waiting(call);
    if (!aco__stack_is_kept(co))
        return aco__fail(0, EPERM, call, co, "is on a share stack and cannot wait");
    if (lacks_frames(self, task))
        return aco__fail(0, EPERM, call, co,
                         "cannot wait: it has taken the share stack of a coroutine that waits for it");
    return aco__scope_record(self, task) ? 0 : aco__fail_memory(0, call, sizeof(aco__task_record_t)); /* so that
        aco__wait_prepare() looks closer */
}

/* The contexts of all resumers are in their blocks. */
static chain_t look_at(const aco__thread_t *self, const aco_t *task)
{
    chain_t chain = {aco__has(task, ACO__INSTRUMENTED), 0, 0, 0, 0};
    const aco_t *co = self->running, *resumer = self->resuming;
    for (; co != task; co = resumer, resumer = resumer_of(co)) {
        chain.is_instrumented |= aco__has(co, ACO__INSTRUMENTED);
        chain.owns_exceptions |= aco__has_own_exceptions(co);
        if (aco__owns_fp(co)) {
            chain.owns_fp = 1;
            chain.fp_control = resumer->aco__fp_control;
            chain.fp_control2 = resumer->aco__fp_control2;
        }
        if (resumer == task)
            break;
    }
    return chain;
}

/* The tools' part of a switch from `from` to `to`, of which one is the task and the other its innermost coroutine. The
 * thread's record of exceptions becomes *in. */
ACO__NO_SANITIZE static inline __attribute__((always_inline))
void transfer(aco_t *from, aco_t *to, const aco__exceptions_t *in)
{
    aco__exceptions_t unused;
    aco__instrument_transfer(from, to);
    aco__exceptions_swap(&unused, in);
    aco__shadow_transfer(from, to);
}

/* Switches to the next task, or to aco_run(). */
ACO__SWITCHES
ACO__NO_SANITIZE static inline __attribute__((always_inline)) void leave_inner(aco__thread_t *self, aco_t *task)
{
    aco_t *to = self->task;
    void *value = NULL;
    uintptr_t tagged;
    self->running = task;
    task->share_stack->aco__resumer_context = &aco__no_context;
    if (!to || self->slow_switch_tasks)
        tagged = aco__switch_yield(aco__tls_ref(), task, &value, 1);
    else
        tagged = aco__switch_transfer(aco__tls_ref(), task, to, &value, 0);
    ACO__CHECK_INTERRUPT(tagged);
    task->share_stack->aco__resumer_context = &self->root;
}

/* Does that. Meanwhile others may have used the share stack of `member` or of a resumer of it: afterwards their frames
 * are where they were. */
ACO__SWITCHES
ACO__NO_SANITIZE static __attribute__((noinline)) void leave_chain(aco__thread_t *self, aco_t *task, aco_t *member)
{
    const aco__context_t *context = member->share_stack->aco__resumer_context;
    if (member == task) {
        leave_inner(self, task);
        return;
    }
    leave_chain(self, task, resumer_of(member));
    if (aco__status(member) == ACO__RESUMING_SAVED) {
        aco__stack_restore(member, 1, "aco_run");
        member->share_stack->aco__resumer_context = context;
    }
}

/* The inner coroutine that runs leaves, and its task with it, which is no longer self->task. Returns when the task has
 * its turn again. By its name debuggers know that it is the library's. */
ACO__SWITCHES
ACO__COLD ACO__NO_SANITIZE ACO__SHADOW_NOINLINE static void aco__inner_leave(aco__thread_t *self, aco_t *task)
{
    aco_t *co = self->running, *resumer = self->resuming;
    const aco__exceptions_t *here = aco__exceptions_here();
    aco__exceptions_t mine = {0}, theirs;
    uint32_t fp_control = 0;
    uint16_t fp_control2 = 0;
    chain_t chain;
    aco__save_resumer(self);
    chain = look_at(self, task);
    if (chain.owns_fp) {
        aco__fp_read(&fp_control, &fp_control2);
        aco__fp_load(&chain.fp_control, &chain.fp_control2);
    }
    if (here)
        mine = *here;
    aco__restore_resumer(self, NULL);
    aco__set_status(co, ACO__RESUMING); /* nobody can resume it */
    if (!aco__stack_is_kept(task) && aco__stack_save(task->share_stack) != 0)
        aco__die_of_memory("aco_run", task->save_stack.sz);
    co->aco__self = aco__stack_is_kept(task) ? task->aco__self : aco__annex(task)->context;
    if (chain.is_instrumented)
        transfer(co, task, chain.owns_exceptions ? &aco__tasks(self)->exceptions : &mine);
    task->share_stack->aco__trim_mask |= ACO__TRIM_NEVER;
    leave_chain(self, task, resumer);
    task->share_stack->aco__trim_mask &= (unsigned char)~ACO__TRIM_NEVER;
    if (chain.is_instrumented) {
        if (here)
            theirs = *here;
        else
            theirs = mine;
        transfer(task, co, chain.owns_exceptions ? &mine : &theirs);
    }
    aco__save_resumer(self);
    task->aco__self = co->aco__self;
    if (!aco__stack_is_kept(task))
        aco__stack_restore(task, 1, "aco_run");
    aco__restore_resumer(self, resumer);
    aco__set_status(co, ACO__SUSPENDED);
    self->running = co;
    if (chain.owns_fp)
        aco__fp_load(&fp_control, &fp_control2);
}

ACO__SWITCHES static __attribute__((noinline)) void leave_task(aco_t *task)
{
    aco__thread_t *self = aco__self();
    void *value = NULL;
    uintptr_t tagged;
    if (aco_unlikely(self->running != task)) {
        self->slow_switch_tasks--; /* aco__wait_slowly_inside() */
        aco__inner_leave(self, task);
    } else {
        tagged = aco__switch_yield(aco__tls_ref(), task, &value, 1);
        ACO__CHECK_INTERRUPT(tagged);
    }
}

/* With room for the exceptions that the task handles: few tasks wait inside a handler. */
ACO__SWITCHES static __attribute__((noinline)) void leave_handler(aco_t *task)
{
    aco__exceptions_t own, unused;
    aco__exceptions_swap(&own, NULL);
    leave_task(task);
    aco__exceptions_swap(&unused, &own);
}

ACO__SWITCHES void aco__task_leave(aco_t *task)
{
    if (aco_unlikely(aco__handles_exceptions(aco__tls_ref())))
        leave_handler(task);
    else
        leave_task(task);
}
