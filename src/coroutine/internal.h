/* What the units of the coroutine layer give to each other and to the scheduler. Lowest first: a unit calls only those above it
 * in this list. */
#ifndef ACO_COROUTINE_INTERNAL_H
#define ACO_COROUTINE_INTERNAL_H

#include "hooks/hooks.h"

#include "aco/in_stack_generator.h"

#define ACO__A_TASK "is a task of the scheduler" /* why many a call fails */

/* The coroutine keeps a floating-point environment of its own. */
static inline int aco__owns_fp(const aco_t *co)
{
    return !(co->aco__state & ACO__SHARES_FP);
}

/* ---- query.c ---- */
/* `co`, not ended, was never resumed. */
ACO__HIDDEN int aco__is_new(const aco_t *co);
/* 0 if the calling thread may resume `co` now; else aco__fail(). */
ACO__HIDDEN int aco__check(int fatal, const char *call, const aco_t *co);

/* ---- locals.c ---- */
ACO__HIDDEN void aco__name(aco__cold_t *cold, const char *name);
/* Forgets slot and values of a coroutine that is made as new. */
ACO__HIDDEN void aco__cold_clear(aco_t *co);
/* Calls the keys' destructors. */
ACO__HIDDEN void aco__values_destroy(aco__cold_t *cold);

/* ---- cleanup.c ---- */
/* Makes the deferred calls and destroys the values of the running coroutine, which ends. */
ACO__HIDDEN void aco__clean_up(aco_t *co);
/* Makes the calls deferred by the frame with this stack pointer and by those further in. */
ACO__HIDDEN void aco__call_deferred(aco_t *co, const char *sp);
/* While a coroutine cleans up, its resumer is the trap: a yield is an error. Returns the true resumer, for the second call. */
ACO__HIDDEN aco_t *aco__set_trap(aco__scratch_t *scratch);
ACO__HIDDEN void aco__lift_trap(aco_t *co, aco_t *resumer);

/* ---- exit.c ---- */
/* Ends the running coroutine. */
ACO__HIDDEN __attribute__((noreturn)) void aco__end(aco_t *co, void *result);
/* Loads the resumer's control words. */
ACO__HIDDEN void aco__load_resumer_environment(void);
/* Assembly calls it where an entry function has returned that must not. */
ACO__HIDDEN __attribute__((noreturn, used)) void aco__entry_returned(void);

/* ---- resume.c: what runs on the scratch stack ---- */
ACO__HIDDEN aco__arrival_t aco__on_scratch, aco__restore_trampoline, aco__trapped;

/* ---- cancel.c ---- */

/* The frames of a cancelled coroutine or generator are unwound: goes on with what is left to do. */
ACO__HIDDEN __attribute__((noreturn)) void aco__cancel_finish(void *exception);
/* The class of a cancellation as an exception: "ACORN". On Arm libstdc++ makes the class its own, so the exception is asked. */
#define ACO__CANCELLATION_CLASS UINT64_C(0x41434f524e000000)
ACO__HIDDEN int aco__is_cancellation(const void *exception);
/* What a generator is resumed with that is to unwind itself: on a stack of its own, or (`frames_end` is not NULL) on its
 * consumer's up to there. Aborts without memory. */
ACO__HIDDEN aco__injected_t *aco__generator_closing(const char *call, const void *frames_end);

/* ---- entry.c and src/entry: the first and the last instructions of a stack ---- */
/* Where an entry function returns to, and where the first function of a stack returns to that has no resumer. */
ACO__HIDDEN extern const char aco__returned[];
#ifdef ACO__UNWINDS_TO_RESUMER /* else the same */
ACO__HIDDEN extern const char aco__returned_without_parent[];
#else
#define aco__returned_without_parent aco__returned
#endif
/* Where the unwinder goes on when a cancellation has come to the first frame as an exception; calls aco__cancel_landed(). */
ACO__HIDDEN void aco__cancel_landing(void);
ACO__HIDDEN __attribute__((used, noreturn)) void aco__cancel_landed(void *exception);
#ifdef ACO__SHADOW_STACKS
/* Puts aco__returned on the new shadow stack with this token, and another token below it. */
ACO__HIDDEN void aco__shadow_begin(uintptr_t token);
#endif
/* Writes a new stack's first return address. */
ACO__HIDDEN void aco__stack_set_return(aco_share_stack_t *stack);
/* Begins a coroutine of aco_create() where its entry function cannot be entered directly. */
#if defined(ACO_CONFIG_UCONTEXT)
ACO__HIDDEN void aco__begin_entry(ACO__ARRIVAL_PARAMETERS);
#elif defined(ACO__BEGINS_IN_ASSEMBLY)
ACO__HIDDEN void aco__begin_entry(void);
#endif

/* ---- create.c ---- */
/* aco_new() under another name. */
ACO__HIDDEN aco_t *aco__new_called(const char *call, aco_function_t fn, void *arg, const aco_options_t *opts, int own_fp);
/* A block with its stack, by options that are checked; its state byte says what it is. NULL and errno, *sz being what was asked
 * for in vain. */
ACO__HIDDEN aco_t *aco__coroutine_new(const aco_options_t *o, size_t *sz);
ACO__HIDDEN void aco__coroutine_free(aco_t *co);

#endif
