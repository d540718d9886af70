/* misuse.c's other unit: always compiled with ACO_CONFIG_SHARE_FPU_MXCSR_ENV, while misuse.c is not. */
#define ACO_CONFIG_SHARE_FPU_MXCSR_ENV
#include "misuse.h"

aco_t *create_sharing_fp(aco_t *main_co, aco_share_stack_t *stack, aco_cofuncp_t fp)
{
    return aco_create(main_co, stack, 0, fp, NULL);
}

void resume_sharing_fp(aco_t *co)
{
    aco_resume(co);
}

void yield_sharing_fp(void)
{
    aco_yield();
}
