/* What debug builds check at each resume, yield and destruction. */
#include "coroutine/internal.h"

/* A unit that never exchanges control words switches a coroutine with its own. */
static int check_mixing(int fatal, const char *call, const aco_t *co, int unit_own_fp)
{
    if (unit_own_fp || !aco__owns_fp(co))
        return 0;
    return aco__fail(fatal, EINVAL, call, co, "has a floating-point environment of its own, and this code is compiled with ACO_CONFIG_SHARE_FPU_MXCSR_ENV");
}

static int must_be_slow(const aco_t *co)
{
    return (co->aco__state & ACO__FAST_MASK) != 0 || aco__running();
}

static int checked(aco_t *co, int unit_own_fp, int fatal, const char *call)
{
    return aco__check(fatal, call, co) == 0 && check_mixing(fatal, call, co, unit_own_fp) == 0;
}

int aco__resume_check(aco_t *co, int unit_own_fp)
{
    return checked(co, unit_own_fp, 1, "aco_resume") && (!must_be_slow(co) || aco__resume_slow(co));
}

int aco__send_check(aco_t *co, void **value, int unit_own_fp)
{
    if (!checked(co, unit_own_fp, 0, "aco_send")) {
        *value = ACO_ERROR;
        return 0;
    }
    if (*value && aco__is_new(co))
        aco__warn("aco_send", co, "is started by a value, %p, which nobody receives", *value);
    return !must_be_slow(co) || aco__send_slow(co, value);
}

void aco__yield_check(aco_t *co, int unit_own_fp)
{
    if (!co || co != aco__running())
        aco__die("aco_yield1", co, "is not running");
    check_mixing(1, "aco_yield", co, unit_own_fp);
    aco__stack_check_overflow("aco_yield", co->share_stack);
    /* On a private stack it is in a generator. The address is not a local's: ASan keeps those elsewhere. */
    if (!co->share_stack->aco__private && !aco__is_on_its_stack(co, __builtin_frame_address(0)))
        aco__die("aco_yield", co, "is not on its share stack of %zu bytes: in a generator, or overflowed", co->share_stack->sz);
}

void aco__destroy_checked(aco_t *co)
{
    static int warned; /* atomic */
    if (co && (aco__status(co) == ACO__SUSPENDED || aco__status(co) == ACO__SAVED) && !aco__is_new(co) && co != aco__running() &&
        !__atomic_exchange_n(&warned, 1, __ATOMIC_RELAXED))
        aco__warn("aco_destroy", co, "is suspended: nothing that its frames hold is released; aco_cancel() would do it (said once)");
    aco__destroy(co);
}
