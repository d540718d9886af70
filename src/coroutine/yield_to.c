/* aco_yield_to(), aco_transfer() and aco_exit_to() off the fast path: the running coroutine leaves, another one takes
 * its place, and both have one resumer. */
#include "coroutine/exit.h"
#include "coroutine/on_scratch.h"
#include "coroutine/query.h"
#include "tools/shadow_stack.h"

/* Whether the running coroutine may transfer to `co`, with room on the scratch stack if both are on one stack. */
static int check_transfer(const char *call, aco_t *from, const aco_t *co)
{
    if (!from)
        return aco__fail(0, EPERM, call, co, "no coroutine is running");
    if (aco__is_cancelled())
        return aco__fail(0, EPERM, call, from, "is in its cleanup");
    if (co == from)
        return 0;
    if (aco__is_task(from))
        return aco__fail(0, EPERM, call, from, "%s", ACO__A_TASK);
    if (aco__check(0, call, co) != 0)
        return -1;
    if (aco__has_own_exceptions(co) && !aco__has_own_exceptions(from)) /* the resumer does not swap exceptions */
        return aco__fail(0, EPERM, call, co, "has ACO_OWN_EXCEPTIONS, and the running coroutine does not");
    if (from->share_stack == co->share_stack && !aco__scratch())
        return aco__fail_memory(0, call, ACO__SCRATCH_STACK);
    return 0;
}

/* Restores the frames of `co` unless that has to happen on the scratch stack. 1, or 0 after a failure. */
static int restore_for_transfer(const char *call, const aco_t *from, aco_t *co, int fatal)
{
    return from->share_stack == co->share_stack || aco__status(co) == ACO__SUSPENDED ||
           aco__stack_restore(co, fatal, call);
}

ACO__NO_SANITIZE static void *transfer_slow(const char *call, aco_t *co, void *value)
{
    aco__thread_t *self = aco__self();
    aco_t *from = self->running;
    uintptr_t tagged;
    if (check_transfer(call, from, co) != 0)
        return ACO_ERROR;
    if (co == from)
        return value;
    if (!restore_for_transfer(call, from, co, 0))
        return ACO_ERROR;
    if (from->aco__state & ACO__INSTRUMENTED) {
        aco__instrument_transfer(from, co);
        aco__shadow_transfer(from, co);
    }
    if (from->share_stack == co->share_stack) {
        aco__scratch_t *scratch = self->scratch;
        aco__prepare_scratch(scratch, co, from, 0, call);
        tagged = aco__switch_transfer(aco__tls_ref(), from, &scratch->runner, &value, 0);
        if (value == ACO_ERROR && aco__has(from, ACO__INSTRUMENTED)) { /* failed: `from` never stopped */
            aco__shadow_transfer(co, from);
            aco__instrument_transfer(co, from);
        }
    } else {
        aco__change_environment(self, from, co);
        tagged = aco__switch_transfer(aco__tls_ref(), from, co, &value, 0);
    }
    ACO__CHECK_INTERRUPT(tagged);
    return value;
}

int aco__yield_to_slow(aco_t *co)
{
    return transfer_slow("aco_yield_to", co, NULL) == ACO_ERROR ? -1 : 0;
}

void *aco__transfer_slow(aco_t *co, void *value)
{
    return transfer_slow("aco_transfer", co, value);
}

ACO__NO_SANITIZE int aco_exit_to(aco_t *co, void *value)
{
    static const char call[] = "aco_exit_to";
    aco__thread_t *self = aco__self();
    aco_t *from = self->running;
    if (check_transfer(call, from, co) != 0)
        return -1;
    if (co == from)
        return aco__fail(0, EINVAL, call, co, "is the running coroutine");
    if (!restore_for_transfer(call, from, co, 0)) /* the failure that leaves the caller as it was */
        return -1;
    aco__ends(from, NULL);
    aco__check(1, call, co); /* the cleanup may have run it, or another one in its place */
    restore_for_transfer(call, from, co, 1);
    if (from->aco__state & ACO__INSTRUMENTED) {
        aco__instrument_transfer(from, co);
        aco__shadow_empty_if_ended(from);
        aco__shadow_transfer(from, co);
    }
    if (from->share_stack == co->share_stack) {
        aco__scratch_t *scratch = self->scratch;
        aco__prepare_scratch(scratch, co, NULL, 0, NULL);
        aco__switch_enter(aco__tls_ref(), &scratch->runner, (uintptr_t)from, value);
    }
    aco__change_environment(self, NULL, co);
    self->running = co;
    aco__switch_enter(aco__tls_ref(), co, (uintptr_t)co, value);
}
