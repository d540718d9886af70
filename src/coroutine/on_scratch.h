/* on_scratch.c: functions that run on the scratch stack. */
#ifndef ACO_ON_SCRATCH_H
#define ACO_ON_SCRATCH_H

#include "tools/tools.h"

ACO__HIDDEN aco__arrival_t aco__on_scratch, aco__restore_trampoline, aco__trapped;

/* Sets what aco__on_scratch() does after the next switch to it. `call` is NULL if a failure is fatal. */
static inline void aco__prepare_scratch(aco__scratch_t *scratch, aco_t *target, aco_t *from, uintptr_t interrupt_flag,
                                        const char *call)
{
    ACO__ASSERT((uintptr_t)scratch - (uintptr_t)__builtin_frame_address(0) > ACO__SCRATCH_STACK); /* it has no frames */
    ACO__ASSERT(target->share_stack && target != from && !aco__is_task(target));
    scratch->target = target;
    scratch->from = from;
    scratch->interrupt_flag = interrupt_flag;
    scratch->call = call;
}

/* Stores the floating-point environment of `from` (NULL: of the resumer) and loads that of `to`. A coroutine without
 * its own environment uses the resumer's. */
ACO__HIDDEN void aco__change_environment(aco__thread_t *self, aco_t *from, aco_t *to);

#endif
