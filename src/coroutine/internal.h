/* What the units of the coroutine layer offer to each other and to the scheduler, the lowest unit first: a unit only
 * calls units above it in this list. */
#ifndef ACO_COROUTINE_INTERNAL_H
#define ACO_COROUTINE_INTERNAL_H

#include "tools/tools.h"

#include "aco/in_stack_generator.h"

#define ACO__A_TASK "is a task of the scheduler" /* the reason of several failures */

/* Whether the coroutine has its own floating-point environment. */
static inline int aco__owns_fp(const aco_t *co)
{
    return !(co->aco__state & ACO__SHARES_FP);
}

/* Sets the floating-point environment that `co` begins with, if it has its own. */
ACO__FORCE_INLINE void aco__begin_environment(const aco__thread_t *self, aco_t *co)
{
    co->aco__fp_control = self->new_fp_control;
    co->aco__fp_control2 = self->new_fp_control2;
}

/* ---- query.c ---- */
/* Whether `co`, which has not ended, was never resumed. */
ACO__HIDDEN int aco__is_new(const aco_t *co);
/* 0 if the calling thread may resume `co` now; else aco__fail(). */
ACO__HIDDEN int aco__check(int fatal, const char *call, const aco_t *co);

/* ---- locals.c ---- */
ACO__HIDDEN void aco__name(aco__cold_t *cold, const char *name);
/* Clears the slot and the values of a coroutine that is restarted. */
ACO__HIDDEN void aco__cold_clear(aco_t *co);
/* Calls the destructors of the keys. */
ACO__HIDDEN void aco__values_destroy(aco__cold_t *cold);

/* ---- cleanup.c ---- */
/* Makes the deferred calls and destroys the values of `co`, the running coroutine, because it ends. */
ACO__HIDDEN void aco__clean_up(aco_t *co);
/* Makes the calls that the frame with this stack pointer, or a frame that it called, has deferred. */
ACO__HIDDEN void aco__call_deferred(aco_t *co, const char *sp);
/* While a coroutine cleans up, the trap replaces its resumer: a yield is an error. aco__set_trap() returns the true
 * resumer, for aco__lift_trap(). */
ACO__HIDDEN aco_t *aco__set_trap(aco__scratch_t *scratch);
ACO__HIDDEN void aco__lift_trap(aco_t *co, aco_t *resumer);

/* ---- exit.c ---- */
/* Cleans up the running coroutine and marks it as ended. The caller then leaves it. */
ACO__HIDDEN void aco__ends(aco_t *co, void *result);
/* Ends the running coroutine. */
ACO__HIDDEN __attribute__((noreturn)) void aco__end(aco_t *co, void *result);
/* Loads the resumer's control words. */
ACO__HIDDEN void aco__load_resumer_environment(void);
/* Assembly calls this after an entry function of aco_create() has returned, which is an error. */
ACO__HIDDEN __attribute__((noreturn, used)) void aco__entry_returned(void);

/* ---- backtrace.c ---- */
/* In a signal handler that interrupted a coroutine: prints its frames on stderr, at most 32, as "acorn: CALL: #0 …".
 * `handler_returns`: the return address of the handler's first function. Another thread has called the second function
 * before. */
ACO__HIDDEN void aco__backtrace_interrupted(const char *call, const void *handler_returns);
ACO__HIDDEN void aco__backtrace_prepare(void);

/* ---- resume.c: functions that run on the scratch stack ---- */
ACO__HIDDEN aco__arrival_t aco__on_scratch, aco__restore_trampoline, aco__trapped;

/* ---- cancel.c ---- */
/* Called when the frames of a cancelled coroutine or generator have been unwound: does the rest. */
ACO__HIDDEN __attribute__((noreturn)) void aco__cancel_finish(void *exception);
/* The exception class of a cancellation: "ACORN". On Arm libstdc++ overwrites the class, so aco__is_cancellation()
 * checks the exception itself. */
#define ACO__CANCELLATION_CLASS UINT64_C(0x41434f524e000000)
ACO__HIDDEN int aco__is_cancellation(const void *exception);
/* The injected call with which a generator is resumed to unwind itself. `frames_end` is NULL for a generator on its own
 * stack, else the end of its frames on its consumer's stack. Aborts without memory. */
ACO__HIDDEN aco__injected_t *aco__generator_closing(const char *call, const void *frames_end, int kind);

/* ---- entry.c and entry/: the first and last instructions on a stack ---- */
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

/* ---- forgotten.c ---- */
/* In a program with a debug unit: `co` was made by code at this address. */
ACO__HIDDEN ACO__COLD void aco__made_at(const aco_t *co, const void *address);
static inline void aco__made(const aco_t *co, const void *address)
{
#ifdef ACO_CONFIG_LIBACO_ONLY
    (void)co, (void)address;
#else
    if (aco_unlikely(aco__debug_units && co))
        aco__made_at(co, address);
#endif
}

/* ---- create.c ---- */
/* aco_new(); error messages name `call`. */
ACO__HIDDEN aco_t *aco__new_called(const char *call, aco_function_t fn, void *arg, const aco_options_t *options,
                                   int own_fp);
/* A control block with its stack, for options that are checked; sets only the state byte. NULL and errno on failure;
 * *sz is then the size of the failed request. */
ACO__HIDDEN aco_t *aco__coroutine_new(const aco_options_t *o, size_t *sz);
ACO__HIDDEN void aco__coroutine_free(aco_t *co);

#endif
