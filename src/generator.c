/* Generators: what is not inline. */
#include "track.h"

#include "aco/generator.h"

#include <errno.h>

const void *const aco__generator_return = aco__unlinked_returned;

aco_t *aco__generator_new(const aco_options_t *opts, const void *function, unsigned flags)
{
    static const char call[] = "aco_generator_open";
    aco_options_t o = {0};
    aco_t *block;
    size_t sz;
    if (opts) {
        o.stack_size = opts->stack_size;
        o.pool = opts->pool;
        o.flags = opts->flags & flags;
        o.name = opts->name;
    }
    if (!function || (opts && memcmp(opts, &o, sizeof o) != 0) || o.stack_size > SIZE_MAX / 4) {
        aco__refuse(0, EINVAL, call, NULL, "%s", !function ? "the function is NULL" : o.stack_size > SIZE_MAX / 4 ? "stack_size is out of bounds" : "an option is not for generators");
        return NULL;
    }
    if (aco__refuse_shadow_stack(0, call) != 0)
        return NULL;
    aco__thread_will_end();
    block = aco__native_new(&o, &sz);
    if (block) {
        aco__set_phase(block, ACO__GONE); /* a generator is nobody's coroutine */
        aco__observe_new(block, (o.flags & ACO_OWN_EXCEPTIONS) != 0); /* not refused: its extra record is on its stack */
        if (o.name)
            aco__name(aco__extra_make(block), o.name);
        return block;
    }
    aco__refuse_memory(0, call, sz);
    return NULL;
}

ACO__UNOBSERVED void aco__generator_step(aco__context_t *peer, aco_t *block, void **passed)
{
    aco__outside_t outside;
    int observed = aco__has(block, ACO__OBSERVED);
    if (observed)
        aco__observe_enter(block, &outside);
    aco__observe_arguments();
    aco__switch_exchange(peer, passed);
    if (!observed)
        return;
    if (!peer->pc)
        aco__set_phase(block, ACO__ENDED);
    aco__observe_leave(block, &outside);
}

void aco__generator_has_ended(void)
{
    aco__refuse(0, ESRCH, "aco::generator", NULL, "it has ended");
}

void aco__generator_free(aco_t *block)
{
    aco__stack_check_overflow("aco_generator_close", block->share_stack);
    aco__native_free(block);
}

int aco__in_stack_refused(const char *call)
{
    return aco__refuse(0, EBUSY, call, NULL, "what was put on the stack after the generator is still there");
}

void aco__in_stack_impossible(void)
{
    static const char call[] = "aco_in_stack_open";
    aco__refuse_shadow_stack(1, call);
    aco__die(call, NULL, "the calling function passes arguments at a fixed place (-maccumulate-outgoing-args): take aco_generator_open()");
}

void aco__in_stack_gone(void *sp, void *outer)
{
    aco__observe_frames_gone(sp, outer);
}
