/* Cold data: what only some coroutines need, for example a name, a slot, coroutine-local values, a sanitizer's fiber.
 * On a private stack the record stands at the top of the stack. Other coroutines have it in memory of its own, and a
 * pointer to it behind the save area. */
#include "stack/stack.h"

#include <string.h>

static aco__cold_t **pointer_behind_area(const aco_t *co)
{
    return (aco__cold_t **)(void *)((char *)co->save_stack.ptr + co->save_stack.sz);
}

aco__cold_t *aco__cold_of(const aco_t *co)
{
    if (!(co->aco__state & ACO__HAS_COLD))
        return NULL;
    ACO__ASSERT(aco__has(co, ACO__PRIVATE) ? co->share_stack->aco__private : *pointer_behind_area(co) != NULL);
    return aco__has(co, ACO__PRIVATE) ? aco__stack_cold(co->share_stack) : *pointer_behind_area(co);
}

#ifdef ACO__INVARIANTS
static const char *cold_name(const aco_t *co)
{
    const aco__cold_t *cold = aco__cold_of(co);
    return cold ? cold->name : "";
}

ACO__AT_LOAD static void register_cold_name(void)
{
    aco__upcalls.name = cold_name;
}
#endif

aco__cold_t *aco__cold(const aco_t *co)
{
    const aco__thread_t *self;
    if (co)
        return aco__cold_of(co);
    self = aco__self();
    return self->scratch && self->scratch->has_root_cold ? &self->scratch->root_cold : NULL;
}

aco__cold_t *aco__cold_make(aco_t *co)
{
    aco__cold_t *cold = aco__cold(co);
    size_t sz = sizeof *cold;
    if (cold)
        return cold;
    if (!co) {
        aco__scratch_t *scratch = aco__scratch();
        if (!scratch)
            return NULL;
        scratch->has_root_cold = 1;
        return &scratch->root_cold;
    }
    if (aco__has(co, ACO__PRIVATE)) {
        cold = aco__stack_cold(co->share_stack);
        ACO__ASSERT(!cold->deferred && !cold->values && !cold->slot && !cold->usage); /* the last coroutine's */
    } else {
        cold = aco__memory_new(&sz);
        if (!cold)
            return NULL;
        memset(cold, 0, sizeof *cold);
        if (aco__status(co) == ACO__MAIN || aco__area_reserve_pointer(co) != 0) {
            aco__memory_free(cold, sz);
            return NULL;
        }
        *pointer_behind_area(co) = cold;
    }
    aco__set_state_byte(co, co->aco__state | ACO__HAS_COLD);
    return cold;
}

void aco__values_free(aco__cold_t *cold)
{
    ACO__ASSERT(!cold->values == !cold->values_n);
    for (size_t i = 0; i < cold->values_n; i++)
        if (cold->values[i].size)
            aco__memory_free(cold->values[i].value, cold->values[i].size);
    if (cold->values)
        aco__memory_free(cold->values, cold->values_n * sizeof *cold->values);
    cold->values = NULL;
    cold->values_n = 0;
}

void aco__cold_leave(aco_t *co)
{
    static const aco__cold_t nothing;
    if (!aco__has(co, ACO__HAS_COLD) || !aco__has(co, ACO__PRIVATE) || aco__has(co, ACO__INSTRUMENTED))
        return;
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c): bytes between: 0, or it stays
    if (memcmp(aco__stack_cold(co->share_stack), &nothing, sizeof nothing) == 0)
        aco__set_state_byte(co, co->aco__state & ~(unsigned)ACO__HAS_COLD);
}

void aco__cold_free(aco_t *co)
{
    aco__cold_t *cold = aco__cold(co);
    if (!cold)
        return;
    aco__values_free(cold);
    while (cold->deferred) {
        aco__deferred_t *next = cold->deferred->next;
        aco__memory_free(cold->deferred, sizeof *next);
        cold->deferred = next;
    }
    memset(cold, 0, sizeof *cold);
    if (!aco__has(co, ACO__PRIVATE)) {
        ACO__ASSERT(*pointer_behind_area(co) == cold);
        aco__memory_free(cold, sizeof *cold);
        co->save_stack.sz += sizeof(void *);
    }
    aco__set_state_byte(co, co->aco__state & ~(unsigned)ACO__HAS_COLD);
}
