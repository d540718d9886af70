/* entry.c and entry/: the first and last instructions on a stack. */
#ifndef ACO_COROUTINE_ENTRY_H
#define ACO_COROUTINE_ENTRY_H

#include "tools/tools.h"

/* The return address of entry functions, and that of first functions without a resumer. */
ACO__HIDDEN_EXTERN const char aco__returned[];
#ifdef ACO__UNWINDS_TO_RESUMER /* else they are the same */
ACO__HIDDEN_EXTERN const char aco__returned_without_parent[];
#else
#define aco__returned_without_parent aco__returned
#endif
/* The unwinder jumps here when a cancellation has reached the first frame as an exception. Calls
 * aco__cancel_landed(). */
ACO__HIDDEN_EXTERN void aco__cancel_landing(void);
ACO__HIDDEN __attribute__((used, noreturn)) void aco__cancel_landed(void *exception);
#ifdef ACO__SHADOW_STACKS
/* Puts aco__returned on the new shadow stack that has its token here, and a new token below it. */
ACO__HIDDEN_EXTERN void aco__shadow_begin(uintptr_t token);
#endif
/* Writes the first return address of a new stack. */
ACO__HIDDEN void aco__stack_set_return(aco_share_stack_t *stack);
/* Begins a coroutine made by aco_create(), on targets where a switch cannot enter its entry function directly. */
#if defined(ACO_CONFIG_UCONTEXT)
ACO__HIDDEN_EXTERN void aco__begin_entry(ACO__ARRIVAL_PARAMETERS);
#elif defined(ACO__BEGINS_IN_ASSEMBLY)
ACO__HIDDEN_EXTERN void aco__begin_entry(void);
#endif

#endif
