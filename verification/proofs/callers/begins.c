/* The first context of a coroutine and of a generator. */
#include "coroutine/create.h"

#include "aco/in_stack_generator.h"

#include <stddef.h>

/* Of a block, of its stack, of a block and of a thread's record: what the theorem has to know. */
const size_t aco_proof_offsets[] = {
    offsetof(aco_t, share_stack),
    offsetof(aco_share_stack_t, aco__top),
    offsetof(aco_t, aco__fp_control),
    offsetof(aco__thread_t, new_fp_control),
    offsetof(aco_t, aco__fp_control2),
    offsetof(aco__thread_t, new_fp_control2),
};

void prepares(aco__thread_t *self, aco_t *co, aco_function_t fn, void *arg)
{
    aco__prepare(co, fn, arg);
    aco__begin_environment(self, co);
}

void generator_context(aco__context_t *context, aco_t *block, const void *function, const void *arg)
{
    *context = aco__generator_context(block, function, arg);
}
