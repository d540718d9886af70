/* The calls of generators that are not inline. */
#include "coroutine/cancel.h"
#include "coroutine/create.h"
#include "coroutine/depot.h"
#include "coroutine/locals.h"

#include <string.h>

aco_t *aco__generator_new(const aco_options_t *options, const void *function, unsigned flags)
{
    static const char call[] = "aco_generator_open";
    aco_options_t o = {0};
    aco_t *block;
    size_t sz;
    if (options) {
        o.stack_size = options->stack_size;
        o.pool = options->pool;
        o.flags = options->flags & flags;
        o.name = options->name;
    }
    if (!function || (options && memcmp(options, &o, sizeof o) != 0) || o.stack_size > SIZE_MAX / 4) {
        aco__fail(0, EINVAL, call, NULL, "%s",
                  !function                     ? "the function is NULL"
                  : o.stack_size > SIZE_MAX / 4 ? "stack_size is out of bounds"
                                                : "an option is not for generators");
        return NULL;
    }
    if (aco__fail_shadow_stack(0, call) != 0)
        return NULL;
    aco__thread_will_end();
    block = aco__coroutine_new(&o, &sz);
    if (block) {
        aco__set_status(block, ACO__DESTROYED); /* so that no call takes the block for a coroutine */
        aco__instrument_new(block, 0); /* cannot fail: cold data is on the stack */
        if (o.name)
            aco__name(aco__cold_make(block), o.name);
        return block;
    }
    aco__fail_memory(0, call, sz);
    return NULL;
}

ACO__NO_SANITIZE void aco__generator_step(aco__context_t *peer, aco_t *block, void **value_ref)
{
    aco__resumer_state_t resumer_state;
    ACO__ASSERT(aco__status(block) == ACO__DESTROYED); /* no coroutine */
    int instrumented = aco__has(block, ACO__INSTRUMENTED);
    if (instrumented)
        aco__instrument_enter(block, &resumer_state);
    aco__sanitize_arguments();
    aco__switch_swap(peer, value_ref);
    if (!instrumented)
        return;
    if (!peer->pc)
        aco__set_status(block, ACO__ENDED);
    aco__instrument_leave(block, &resumer_state);
}

void aco__generator_has_ended(void)
{
    aco__fail(0, ESRCH, "aco::generator", NULL, "it has ended");
}

void aco__generator_free(aco_t *block)
{
    aco__stack_check_overflow("aco_generator_close", block->share_stack);
    if (block->aco__state == (ACO__FROM_NEW | ACO__PRIVATE | ACO__DESTROYED) && aco__depot_put(aco__self(), block))
        return;
    aco__coroutine_free(block);
}

/* ---- Closing ---- */

void aco__yields_in_cleanup(const char *call)
{
    aco__die(call, NULL, "the generator yields in its cleanup");
}

void aco__generator_unwind(const aco__context_t *peer, aco_t *block, int kind)
{
    static const char call[] = "aco_generator_close";
    aco__context_t at = *peer;
    void *value_ref, *begin;
    void (*first)(void) = aco__generator_begin;
    memcpy(&begin, &first, sizeof begin);
    if (at.pc == begin)
        return;
    value_ref = aco__generator_closing(call, NULL, kind);
    aco__generator_step(&at, block, &value_ref);
    if (at.pc)
        aco__yields_in_cleanup(call);
}

aco__injected_t *aco__in_stack_closing(const void *frames_end)
{
    return aco__generator_closing("aco_in_stack_close", frames_end, ACO__IN_STACK);
}

/* ---- On the consumer's stack ---- */

int aco__in_stack_failed(const char *call)
{
    return aco__fail(0, EBUSY, call, NULL, "something that was put on the stack after the generator is still there");
}

void aco__in_stack_impossible(void)
{
    static const char call[] = "aco_in_stack_open";
    aco__fail_shadow_stack(1, call);
    aco__die(call, NULL,
             "the calling function has a fixed area for arguments (-maccumulate-outgoing-args): "
             "use aco_generator_open()");
}

void aco__in_stack_gone(void *sp, void *frames_end)
{
    aco__sanitize_frames_freed(sp, frames_end);
}
