#ifndef MISUSE_H
#define MISUSE_H

#include "aco.h"

aco_t *create_sharing_fp(aco_t *main_co, aco_share_stack_t *stack, aco_cofuncp_t fp);
void resume_sharing_fp(aco_t *co);
void yield_sharing_fp(void);

#endif
