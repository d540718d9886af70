/* cleanup.c: deferred calls. */
#ifndef ACO_COROUTINE_CLEANUP_H
#define ACO_COROUTINE_CLEANUP_H

#include "tools/tools.h"

/* Makes the deferred calls and destroys the values of `co`, the running coroutine, because it ends. */
ACO__HIDDEN void aco__clean_up(aco_t *co);
/* Makes the calls that the frame with this stack pointer, or a frame that it called, has deferred. */
ACO__HIDDEN void aco__call_deferred(aco_t *co, const char *sp);
/* While a coroutine cleans up, the trap replaces its resumer: a yield is an error. aco__set_trap() returns the true
 * resumer, for aco__lift_trap(). */
ACO__HIDDEN aco_t *aco__set_trap(aco__scratch_t *scratch);
ACO__HIDDEN void aco__lift_trap(aco_t *co, aco_t *resumer);

#endif
