/* The state of a coroutine, and whether it can be resumed. */
#include "coroutine/query.h"

#include <string.h>

/* A coroutine on a share stack has the status READY until it is first resumed. On a private stack its stack pointer is
 * at the top until then, and lower afterwards. */
int aco__is_new(const aco_t *co)
{
    return aco__status(co) == ACO__READY ||
        (aco__status(co) == ACO__SUSPENDED && aco__has(co, ACO__FROM_NEW) &&
         co->aco__self.sp == co->share_stack->aco__top && co != aco__running());
}

/* Whether the calling thread `self` may run `co`. */
static int is_mine(const aco_t *co, aco__thread_t *self)
{
    if (aco__has(co, ACO__PRIVATE))
        return 1;
    const aco__thread_t *owner = aco__stack_given(co->share_stack)->aco__thread;
    if (owner && owner != self)
        return 0;
    return (co->aco__state & ACO__FROM_NEW) || aco__main_thread(co->main_co) == self;
}

ACO__COLD int aco__check(int fatal, const char *call, const aco_t *co)
{
    if (!co)
        return aco__fail(fatal, EINVAL, call, NULL, "the coroutine is NULL");
    switch (aco__status(co)) {
    case ACO__ENDED:
        return aco__fail(fatal, ESRCH, call, co, "has ended");
    case ACO__DESTROYED:
        return aco__fail(fatal, ESRCH, call, co, "was destroyed");
    case ACO__MAIN:
        return aco__is_task(co) ? aco__fail(fatal, EPERM, call, co, "%s", ACO__A_TASK)
                                : aco__fail(fatal, EINVAL, call, co, "is a main coroutine");
    case ACO__RESUMING:
    case ACO__RESUMING_SAVED:
        if (aco__is_task(co))
            return aco__fail(fatal, EPERM, call, co, "%s", ACO__A_TASK);
        return aco__fail(fatal, EBUSY, call, co, "is resuming another coroutine, or waits in a task");
    }
    if (co == aco__running())
        return aco__fail(fatal, EBUSY, call, co, "is running");
    if (!is_mine(co, aco__self()))
        return aco__fail(fatal, EPERM, call, co, "belongs to another thread");
    return 0;
}

#ifndef ACO_CONFIG_LIBACO_ONLY
/* ---- The public calls ---- */

/* The stack pointer of a task that never ran is at the top of its stack; on a share stack nothing was saved. */
static aco_state_t task_state(const aco_t *co)
{
    const aco__thread_t *self = aco__self();
    if (co == self->running)
        return ACO_STATE_RUNNING;
    if (aco__task_is_resuming(self, co))
        return ACO_STATE_RESUMING;
    if (aco__has(co, ACO__PRIVATE))
        return co->aco__self.sp == co->share_stack->aco__top ? ACO_STATE_READY : ACO_STATE_SUSPENDED;
    return aco__status(co) == ACO__RESUMING_SAVED && !co->save_stack.ct_restore && !co->save_stack.ct_save
               ? ACO_STATE_READY
               : ACO_STATE_SUSPENDED;
}

aco_state_t aco_state(const aco_t *co)
{
    switch (aco__status(co)) {
    case ACO__ENDED:
    case ACO__DESTROYED:
        return ACO_STATE_DONE;
    case ACO__MAIN:
        return aco__is_task(co) ? task_state(co) : aco__running() ? ACO_STATE_RESUMING : ACO_STATE_RUNNING;
    case ACO__RESUMING:
    case ACO__RESUMING_SAVED:
        return aco__is_task(co) ? task_state(co) : ACO_STATE_RESUMING;
    }
    return co == aco__running() ? ACO_STATE_RUNNING : aco__is_new(co) ? ACO_STATE_READY : ACO_STATE_SUSPENDED;
}

void *aco_result(const aco_t *co)
{
    if (!co || aco__status(co) != ACO__ENDED) {
        int destroyed = co && aco__status(co) == ACO__DESTROYED;
        aco__fail(0, destroyed ? ESRCH : co ? EBUSY : EINVAL, "aco_result", co,
                  destroyed ? "was destroyed" : co ? "is not done" : "the coroutine is NULL");
        return ACO_ERROR;
    }
    return aco__result(co);
}

int aco_stack_bounds(const aco_t *co, void **lo, void **hi)
{
    if (!co || !lo || !hi || !co->share_stack)
        return aco__fail(0, EINVAL, "aco_stack_bounds", co,
                         !co ? "the coroutine is NULL" : lo && hi ? "is a main coroutine" : "a result pointer is NULL");
    *lo = co->share_stack->ptr;
    *hi = (char *)co->share_stack->aco__top + ACO__ENTRY_BELOW_TOP;
    return 0;
}

int aco__is_on_stack_of(const aco_t *co)
{
    const aco_t *resumer = aco__running();
    return resumer && resumer != co && aco__stack_given(resumer->share_stack) == aco__stack_given(co->share_stack) &&
           aco__fail(0, EINVAL, "aco::resume", co, "runs on the resumer's share stack: values cannot be passed") != 0;
}

void aco__cxx_failed(int error, const char *call, const aco_t *co, const char *reason)
{
    aco__fail(0, error, call, co, "%s", reason);
}

typedef struct visitor {
    int (*visit)(aco_t *co, void *arg);
    void *arg;
} visitor_t;

static int visit_live(aco_t *co, void *arg)
{
    const visitor_t *visitor = arg;
    return aco__status(co) == ACO__DESTROYED || (aco__status(co) == ACO__MAIN && !aco__is_task(co))
        ? 0
        : visitor->visit(co, visitor->arg);
}

int aco_each(int (*visit)(aco_t *co, void *arg), void *arg)
{
    visitor_t visitor = {visit, arg};
    if (!visit)
        return aco__fail(0, EINVAL, "aco_each", NULL, "the visitor is NULL");
    return aco__blocks_each(visit_live, &visitor);
}

/* ---- Without a running coroutine ---- */

ACO__NAMED_BY_ASSEMBLY void *aco__not_yielded(const char *call)
{
    aco__fail(0, EPERM, call, NULL, "no coroutine is running");
    return ACO_ERROR;
}
#endif

ACO__NAMED_BY_ASSEMBLY void aco__nothing_runs(const char *call)
{
    aco__die(call, NULL, aco__running() ? "the coroutine is NULL" : "no coroutine is running");
}
