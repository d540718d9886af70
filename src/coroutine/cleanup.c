/* What runs when a coroutine ends: its deferred calls and the destructors of its values. */
#include "coroutine/cleanup.h"
#include "coroutine/locals.h"

/* ---- Deferred calls ---- */

int aco__defer(void (*fn)(void *), void *arg, void *frame)
{
    aco_t *co = aco__running();
    aco__cold_t *cold;
    aco__deferred_t *deferred;
    size_t sz = sizeof *deferred;
    if (!co || !fn)
        return aco__fail(0, co ? EINVAL : EPERM, "aco_defer", NULL,
                         co ? "the function is NULL" : "no coroutine is running");
    if (!aco__is_on_its_stack(co, frame))
        return aco__fail(0, EPERM, "aco_defer", co, "is called in a generator, which may end before the coroutine");
    cold = aco__cold_make(co);
    deferred = cold ? aco__memory_new(&sz) : NULL;
    if (!deferred)
        return aco__fail_memory(0, "aco_defer", sz);
    deferred->fn = fn;
    deferred->arg = arg;
    deferred->frame = frame;
    deferred->owner_sp = aco__is_cancelled() ? NULL : (char *)UINTPTR_MAX; /* NULL: due at once, in a cleanup */
    deferred->next = cold->deferred;
    cold->deferred = deferred;
    return 0;
}

/* Removes the last deferred call and returns it. */
static aco__deferred_t pop_last(aco__cold_t *cold)
{
    aco__deferred_t *last = cold->deferred, taken = *last;
    cold->deferred = last->next;
    aco__memory_free(last, sizeof *last);
    return taken;
}

int aco_defer_pop(int call)
{
    aco_t *co = aco__running();
    aco__cold_t *cold = co ? aco__cold(co) : NULL;
    aco__deferred_t last;
    if (!cold || !cold->deferred)
        return aco__fail(0, co ? ENOENT : EPERM, "aco_defer_pop", co,
                         co ? "nothing is deferred" : "no coroutine is running");
    last = pop_last(cold);
    if (call)
        last.fn(last.arg);
    return 0;
}

void aco__call_deferred(aco_t *co, const char *sp)
{
    aco__cold_t *cold;
    ACO__ASSERT(co == aco__running());
    while ((cold = aco__cold(co)) != NULL && cold->deferred && cold->deferred->owner_sp <= sp) {
        aco__deferred_t last = pop_last(cold);
        last.fn(last.arg);
    }
}

/* ---- Cleaning up ---- */

aco_t *aco__set_trap(aco__scratch_t *scratch)
{
    aco__thread_t *self = aco__self();
    aco_t *resumer = self->resuming;
    ACO__ASSERT(scratch == self->scratch && resumer != &scratch->trap);
    scratch->cleanups++;
    aco__save_resumer(self);
    aco__restore_resumer(self, &scratch->trap);
    self->unwind_parent = &aco__no_context;
    aco__set_state_byte(self->running, self->running->aco__state | ACO__INSTRUMENTED); /* aco_yield_to() then fails */
    return resumer;
}

int aco__is_cancelled(void)
{
    aco__thread_t *self = aco__self();
    return self->scratch && self->resuming == &self->scratch->trap;
}

static void call_rest(aco_t *co)
{
    aco__cold_t *cold;
    aco__call_deferred(co, (char *)UINTPTR_MAX);
    cold = aco__cold(co);
    if (cold)
        aco__values_destroy(cold);
    aco__call_deferred(co, (char *)UINTPTR_MAX); /* deferred by destructors */
}

void aco__lift_trap(aco_t *co, aco_t *resumer)
{
    aco__thread_t *self = aco__self();
    ACO__ASSERT(self->scratch->cleanups && self->resuming == &self->scratch->trap);
    ACO__ASSERT(co == self->running);
    self->scratch->cleanups--;
    self->unwind_parent = &self->resumer;
    aco__restore_resumer(self, resumer);
    aco__instrument_no_more(co);
}

void aco__clean_up(aco_t *co)
{
    aco__cold_t *cold = aco__cold(co);
    aco__scratch_t *scratch;
    aco_t *resumer;
    if (!cold || (!cold->deferred && !cold->values))
        return;
    scratch = aco__scratch();
    if (!scratch) { /* no memory for a trap: yields in the cleanup are not detected */
        call_rest(co);
        return;
    }
    resumer = aco__set_trap(scratch);
    call_rest(co);
    aco__lift_trap(co, resumer);
}
