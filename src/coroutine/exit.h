/* exit.c: how a coroutine ends. */
#ifndef ACO_COROUTINE_EXIT_H
#define ACO_COROUTINE_EXIT_H

#include "tools/tools.h"

/* Cleans up the running coroutine and marks it as ended. The caller then leaves it. */
ACO__HIDDEN void aco__ends(aco_t *co, void *result);
/* Ends the running coroutine. */
ACO__HIDDEN __attribute__((noreturn)) void aco__end(aco_t *co, void *result);
/* Loads the resumer's control words. */
ACO__HIDDEN void aco__load_resumer_environment(void);
/* Assembly calls this after an entry function of aco_create() has returned, which is an error. */
ACO__HIDDEN __attribute__((noreturn, used)) void aco__entry_returned(void);

#endif
