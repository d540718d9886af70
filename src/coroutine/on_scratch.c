/* What runs on the scratch stack: it restores the frames of a coroutine whose stack the caller uses. */
#include "coroutine/on_scratch.h"
#include "coroutine/query.h"

void aco__change_environment(aco__thread_t *self, aco_t *from, aco_t *to)
{
    int own_from = from && aco__owns_fp(from), own_to = aco__owns_fp(to);
    uint32_t control, wanted;
    uint16_t control2, wanted2;
    if (!own_from && !own_to)
        return;
    aco__fp_read(&control, &control2);
    *(own_from ? &from->aco__fp_control : &self->fp_control) = control;
    *(own_from ? &from->aco__fp_control2 : &self->fp_control2) = control2;
    wanted = own_to ? to->aco__fp_control : self->fp_control;
    wanted2 = own_to ? to->aco__fp_control2 : self->fp_control2;
    if (((control ^ wanted) & ~(uint32_t)ACO__FP_STATUS) != 0 || control2 != wanted2)
        aco__fp_load(&wanted, &wanted2);
}

/* Runs on the scratch stack: a resume or a transfer switched to it instead of to `target`. Restores the frames of
 * `target` if needed and continues it. */
ACO__NO_SANITIZE ACO__ARRIVAL_ABI void aco__on_scratch(ACO__ARRIVAL_PARAMETERS)
{
    aco__thread_t *self = aco__self();
    aco__scratch_t *scratch = self->scratch;
    aco_t *co = scratch->target, *from = ACO__LIBACO_ONLY ? NULL : scratch->from; /* no transfers */
    ACO__ASSERT((uintptr_t)scratch - (uintptr_t)__builtin_frame_address(0) <= ACO__SCRATCH_STACK);
    ACO__ASSERT(aco__status(co) <= ACO__SAVED); /* nobody else has resumed or ended it */
    if (aco__status(co) != ACO__SUSPENDED &&
        !aco__stack_restore(co, scratch->call == NULL, scratch->call ? scratch->call : "aco_resume") &&
        !ACO__LIBACO_ONLY) { /* there every failure is fatal */
        if (!from)
            aco__switch_exit(aco__tls_ref(), (uintptr_t)co, ACO_ERROR);
        self->running = from;
        aco__switch_enter(aco__tls_ref(), from, (uintptr_t)from, ACO_ERROR);
    }
    aco__change_environment(self, from, co);
    self->running = co;
    aco__switch_enter(aco__tls_ref(), co, (uintptr_t)co | scratch->interrupt_flag, value);
}

/* A coroutine yielded or ended while its resumer's frames were saved. This runs on the scratch stack, restores them and
 * continues the resumer. */
ACO__NO_SANITIZE ACO__ARRIVAL_ABI void aco__restore_trampoline(ACO__ARRIVAL_PARAMETERS)
{
    aco__thread_t *self = aco__self();
    aco_t *resumer = self->resuming;
    ACO__ASSERT(resumer && aco__status(resumer) == ACO__RESUMING_SAVED);
    aco__stack_restore(resumer, 1, "aco_yield");
    aco__load_resumer(self, resumer, &resumer->aco__self);
    self->unwind_parent = &self->resumer;
    aco__switch_exit(aco__tls_ref(), tagged, value);
}

#ifndef ACO_CONFIG_LIBACO_ONLY
/* A coroutine yielded in its cleanup. This runs on the scratch stack and aborts. */
ACO__FOREIGN_ENTRY ACO__ARRIVAL_ABI void aco__trapped(ACO__ARRIVAL_PARAMETERS)
{
    aco__die("aco_yield", (void *)(tagged & ~(uintptr_t)1),
             "yields in its cleanup, in a deferred call or a destructor that runs because it ends");
}
#endif
