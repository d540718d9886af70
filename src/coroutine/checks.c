/* The checks of debug builds at each resume, yield and destruction. */
#include "coroutine/query.h"

/* Fails if code that never swaps control words switches a coroutine that has its own. */
static int check_mixing(int fatal, const char *call, const aco_t *co, int unit_own_fp)
{
    if (unit_own_fp || !aco__owns_fp(co))
        return 0;
    return aco__fail(fatal, EINVAL, call, co,
                     "has its own floating-point environment, but this code is compiled with "
                     "ACO_CONFIG_SHARE_FPU_MXCSR_ENV");
}

static int needs_slow_path(const aco_t *co)
{
    return (co->aco__state & ACO__FAST_MASK) != 0 || aco__running();
}

static int checked(aco_t *co, int unit_own_fp, int fatal, const char *call)
{
    return aco__check(fatal, call, co) == 0 && check_mixing(fatal, call, co, unit_own_fp) == 0;
}

int aco__resume_check(aco_t *co, int unit_own_fp)
{
    return checked(co, unit_own_fp, 1, "aco_resume") && (!needs_slow_path(co) || aco__resume_slow(co));
}

#ifndef ACO_CONFIG_LIBACO_ONLY
int aco__send_check(aco_t *co, void **value, int unit_own_fp)
{
    if (!checked(co, unit_own_fp, 0, "aco_send")) {
        *value = ACO_ERROR;
        return 0;
    }
    if (*value && aco__is_new(co))
        aco__warn("aco_send", co, "is started with a value, %p, that no call receives", *value);
    return !needs_slow_path(co) || aco__send_slow(co, value);
}

void aco__yields_in_catch(const aco_t *co)
{
    const char *name = aco_name(co);
    aco__die("aco::yield", co, "%s%s%syields inside a catch block, with ACO_SHARED_EXCEPTIONS", *name ? "\"" : "", name,
             *name ? "\" " : "");
}
#endif

void aco__yield_check(aco_t *co, int unit_own_fp)
{
    if (!co || co != aco__running())
        aco__die("aco_yield1", co, "is not running");
    check_mixing(1, "aco_yield", co, unit_own_fp);
    aco__stack_check_overflow("aco_yield", co->share_stack);
    /* On a private stack the caller is in a generator, which is allowed. ASan stores locals elsewhere, so this takes
     * the frame's address. */
    if (!aco__stack_is_private(co->share_stack) && !aco__is_on_its_stack(co, __builtin_frame_address(0)))
        aco__die("aco_yield", co,
                 "yields outside its share stack of %zu bytes: it is in a generator, or has overflowed",
                 aco__stack_made_with(co->share_stack));
}

void aco__destroy_checked(aco_t *co)
{
    static int warned; /* atomic */
    if (!ACO__LIBACO_ONLY && co && (aco__status(co) == ACO__SUSPENDED || aco__status(co) == ACO__SAVED) &&
        !aco__is_new(co) && co != aco__running() && !__atomic_exchange_n(&warned, 1, __ATOMIC_RELAXED))
        aco__warn("aco_destroy", co,
                  "is suspended: what its frames hold is not released, which aco_cancel() would do (said once)");
    aco__destroy(co);
}
