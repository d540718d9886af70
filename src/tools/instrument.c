/* Does the work at a switch of an instrumented coroutine, in the order in which it must be done. */
#include "tools/shadow_stack.h"
#include "tools/trace.h"

int aco__instrument_new(aco_t *co, int own_exceptions)
{
    aco__cold_t *cold;
    if (aco_unlikely(aco__sanitize_copies(co)))
        aco__set_state_byte(co, co->aco__state | ACO__INSTRUMENTED);
    if (!own_exceptions && !aco__upcalls.instruments_all)
        return 0;
    cold = aco__cold_make(co);
    if (!cold)
        return -1;
    cold->own_exceptions = own_exceptions != 0;
    if (own_exceptions)
        aco__exceptions_find();
    aco__sanitize_new(cold);
    aco__set_state_byte(co, co->aco__state | ACO__INSTRUMENTED);
    return 0;
}

void aco__frames_restarted(aco_t *co)
{
    const aco_share_stack_t *stack = co->share_stack;
    if (aco__has(co, ACO__PRIVATE) || aco__upcalls.share_stacks_are_private)
        aco__sanitize_frames_freed(stack->ptr, stack->aco__top);
}

static int has_other_work(const aco_t *co, const aco__cold_t *cold)
{
    return aco__upcalls.instruments_all || (cold && (cold->usage || aco__has_shadow(cold))) || aco__sanitize_copies(co);
}

void aco__instrument_no_more(aco_t *co)
{
    const aco__cold_t *cold = aco__cold(co);
    if (!(cold && cold->own_exceptions) && !has_other_work(co, cold))
        aco__set_state_byte(co, co->aco__state & ~(unsigned)ACO__INSTRUMENTED);
}

aco__exceptions_t *aco__exceptions_of(const aco_t *co)
{
    aco__cold_t *cold = aco__cold_of(co);
    return cold && cold->own_exceptions && !has_other_work(co, cold) ? &cold->exceptions : NULL;
}

static void destroyed(aco_t *co)
{
    aco__cold_t *cold = aco__cold(co);
    if (!cold)
        return;
    aco__shadow_free(cold);
    if (cold->usage)
        aco__usage_end(co, cold);
    aco__sanitize_destroyed(co, cold);
}

/* The stack bytes of a switch below its caller's frame, roughly. */
#ifdef ACO_CONFIG_UCONTEXT
#define SWITCH_FRAME aco__os_switch_frame
#else
enum { SWITCH_FRAME = 0 };
#endif

/* A coroutine that has ended begins on its own stack when it is restarted. */
static inline void begins_anew(aco__cold_t *cold)
{
    cold->left_fiber = NULL;
    cold->left_bottom = NULL;
}

ACO__NO_SANITIZE void aco__instrument_enter(aco_t *co, aco__resumer_state_t *resumer_state)
{
    aco__cold_t *cold = aco__cold_of(co);
    resumer_state->own_exceptions = cold && cold->own_exceptions;
    if (!cold)
        return;
    aco__trace_runs(co);
    if (cold->own_exceptions)
        aco__exceptions_swap(&resumer_state->exceptions, &cold->exceptions);
    aco__sanitize_enter(co, cold, resumer_state);
}

ACO__NO_SANITIZE void aco__instrument_leave(aco_t *co, aco__resumer_state_t *resumer_state)
{
    aco__cold_t *cold = aco__cold_of(co);
    int ended = aco__status(co) == ACO__ENDED;
    if (!cold) { /* entered by a transfer */
        if (resumer_state->own_exceptions)
            aco__exceptions_leave(0, &resumer_state->exceptions);
        return;
    }
    if (aco_unlikely(cold->usage && !ended))
        aco__usage_left(co, cold, co->aco__self.sp);
    aco__sanitize_leave(cold, ended, resumer_state);
    if (aco_unlikely(cold->usage && ended))
        aco__usage_end(co, cold);
    if (ended)
        begins_anew(cold);
    if (resumer_state->own_exceptions)
        aco__exceptions_leave((uintptr_t)co, &resumer_state->exceptions);
    if (ended || aco__status(co) == ACO__DESTROYED) /* DESTROYED: a task that needs no join */
        aco__trace_ended(co);
    aco__trace_stops(co);
}

ACO__NO_SANITIZE void aco__instrument_transfer(aco_t *from, aco_t *to)
{
    aco__cold_t *cold = aco__cold_of(from), *next = aco__cold_of(to);
    ACO__ASSERT(from != to);
    aco__exceptions_t unused;
    int ended = aco__status(from) == ACO__ENDED;
    if (ended)
        aco__trace_ended(from);
    aco__trace_stops(from);
    aco__trace_runs(to);
    if (aco_unlikely(cold && cold->usage && ended))
        aco__usage_end(from, cold);
    else if (aco_unlikely(cold && cold->usage))
        aco__usage_left(from, cold, (char *)__builtin_frame_address(0) - SWITCH_FRAME);
    if (cold && cold->own_exceptions)
        aco__exceptions_swap(&cold->exceptions, NULL);
    if (cold)
        aco__sanitize_transfer_from(to, next, cold);
    if (cold && ended)
        begins_anew(cold);
    if (!next)
        return;
    if (next->own_exceptions)
        aco__exceptions_swap(&unused, &next->exceptions);
    aco__sanitize_transfer_to(next);
}

ACO__AT_LOAD static void register_instruments(void)
{
    aco__upcalls.destroyed = destroyed;
}
