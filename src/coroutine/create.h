/* create.c: new coroutines. */
#ifndef ACO_COROUTINE_CREATE_H
#define ACO_COROUTINE_CREATE_H

#include "tools/tools.h"

/* Sets the floating-point environment that `co` begins with, if it has its own. */
ACO__FORCE_INLINE void aco__begin_environment(const aco__thread_t *self, aco_t *co)
{
    co->aco__fp_control = self->new_fp_control;
    co->aco__fp_control2 = self->new_fp_control2;
}

/* aco_new(); error messages name `call`. */
ACO__HIDDEN aco_t *aco__new_called(const char *call, aco_function_t fn, void *arg, const aco_options_t *options,
                                   int own_fp);
/* A control block with its stack, for options that are checked; sets only the state byte. NULL and errno on failure;
 * *sz is then the size of the failed request. */
ACO__HIDDEN aco_t *aco__coroutine_new(const aco_options_t *o, size_t *sz);
ACO__HIDDEN void aco__coroutine_free(aco_t *co);

#endif
