/* A call on another stack: a coroutine that is resumed until it ends. */
#include "coroutine/create.h"

static void cancel_and_destroy(void *co)
{
    aco_cancel(co);
    aco_destroy(co);
}

void *aco_call_on_stack(aco_function_t fn, void *arg, const aco_options_t *options)
{
    static const char call[] = "aco_call_on_stack";
    aco_t *caller = aco__running(), *co;
    void *value = NULL;
    if (options && options->stack) { /* the caller's frames could be on it */
        aco__fail(0, EINVAL, call, NULL, "needs a private stack");
        return ACO_ERROR;
    }
    if (caller && !aco__is_on_its_stack(caller, __builtin_frame_address(0))) {
        aco__fail(0, EPERM, call, caller, "is called in a generator, which may end before the coroutine");
        return ACO_ERROR;
    }
    co = aco__new_called(call, fn, arg, options, 1);
    if (!co)
        return ACO_ERROR;
    if (caller && aco_defer(cancel_and_destroy, co) != 0) {
        int error = errno;
        aco_destroy(co);
        errno = error;
        return ACO_ERROR;
    }
    for (value = aco_send(co, value); !co->is_end; value = aco_send(co, value))
        value = aco_yield_value(value);
    value = aco__result(co);
    if (caller)
        aco_defer_pop(0);
    aco_destroy(co);
    return value;
}
