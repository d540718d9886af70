/* cancel.c: cancellations. */
#ifndef ACO_COROUTINE_CANCEL_H
#define ACO_COROUTINE_CANCEL_H

#include "tools/tools.h"

#include "aco/in_stack_generator.h"

/* Called when the frames of a cancelled coroutine or generator have been unwound: does the rest. */
ACO__HIDDEN __attribute__((noreturn)) void aco__cancel_finish(void *exception);
/* The exception class of a cancellation: "ACORN". On Arm libstdc++ overwrites the class, so aco__is_cancellation()
 * checks the exception itself. */
#define ACO__CANCELLATION_CLASS UINT64_C(0x41434f524e000000)
ACO__HIDDEN int aco__is_cancellation(const void *exception);
/* The injected call with which a generator is resumed to unwind itself. `frames_end` is NULL for a generator on its own
 * stack, else the end of its frames on its consumer's stack. Aborts without memory. */
ACO__HIDDEN aco__injected_t *aco__generator_closing(const char *call, const void *frames_end, int kind);

#endif
