/* The first function on every stack, in assembly, and what unwinders and switches need of it. The assembly for an
 * architecture (src/coroutine/entry/ARCH.inc) is part of this object, because every program that creates a coroutine
 * links it. An archive member with nothing but assembly would not be found: link-time optimisation sees no symbol in
 * it. */
#include "coroutine/cancel.h"
#include "coroutine/entry.h"
#include "coroutine/exit.h"
#include "coroutine/on_scratch.h"
#include "coroutine/unwinder.h"
#ifndef __arm__ /* Arm has its own */
#include "coroutine/entry/assembly.h"
#endif
#include "coroutine/entry/forms.h"

#include <string.h>

#if defined(ACO_CONFIG_UCONTEXT)
/* os/ucontext.c has this in C. */
#elif defined(__x86_64__)
#include "coroutine/entry/x86_64.inc"
#elif defined(__i386__)
#include "coroutine/entry/i386.inc"
#elif defined(__aarch64__)
#include "coroutine/entry/aarch64.inc"
#elif defined(__riscv)
#include "coroutine/entry/riscv.inc"
#elif defined(__arm__)
#include "coroutine/entry/arm.inc"
#elif defined(__powerpc64__)
#include "coroutine/entry/ppc64le.inc"
#elif defined(__s390x__)
#include "coroutine/entry/s390x.inc"
#elif defined(__loongarch64)
#include "coroutine/entry/loongarch64.inc"
#endif

/* ---- Return addresses ---- */

const void *const aco__generator_return = aco__returned_without_parent;

void aco__stack_set_return(aco_share_stack_t *stack)
{
    ((const void **)stack->aco__top)[ACO__RETURN_WORD] = aco__returned;
}

/* A scratch stack holds no frames between switches, so each context starts at its top. */
static void scratch_new(aco__scratch_t *scratch, void *top)
{
    ((const void **)top)[ACO__RETURN_WORD] = aco__returned_without_parent;
    aco__begin_in(&scratch->runner.aco__self, top, aco__on_scratch);
    aco__begin_in(&scratch->restore_trampoline, top, aco__restore_trampoline);
    scratch->runner.aco__state = scratch->trap.aco__state = ACO__SHARES_FP;
#ifndef ACO_CONFIG_LIBACO_ONLY
    aco__begin_in(&scratch->trap.aco__self, top, aco__trapped);
    aco__fp_read(&scratch->trap.aco__fp_control, &scratch->trap.aco__fp_control2);
#endif
}

#ifdef ACO_CONFIG_LIBACO_ONLY
static const aco__upcalls_t aco__upcalls = {.scratch_new = scratch_new};
#else
ACO__AT_LOAD static void register_entry(void)
{
    aco__upcalls.scratch_new = scratch_new;
#ifdef ACO__SHADOW_STACKS
    aco__upcalls.shadow_begin = aco__shadow_begin;
#endif
}
#endif

#ifdef ACO_CONFIG_UCONTEXT
ACO__AT_LOAD static void register_outermost_calls(void)
{
    aco__os_outermost_calls(aco__entry_returned, aco__cancel_landed);
}
#endif

/* ---- The personality of the first function ----
 *
 * When a catch block rethrows a cancellation, libc++ throws it as an ordinary exception, for which the unwinder needs a
 * handler. This personality makes the first frame of the stack the handler. */

#ifdef EHABI
ACO__HIDDEN __attribute__((used)) _Unwind_Reason_Code aco__outermost_personality(_Unwind_State state,
                                                                                 struct _Unwind_Exception *exception,
                                                                                 struct _Unwind_Context *context);
_Unwind_Reason_Code aco__outermost_personality(_Unwind_State state, struct _Unwind_Exception *exception,
                                               struct _Unwind_Context *context)
{
#ifdef ACO_CONFIG_LIBACO_ONLY /* nothing is cancelled */
    (void)exception, (void)context;
    return state == (_US_VIRTUAL_UNWIND_FRAME | _US_FORCE_UNWIND) ? _URC_END_OF_STACK : _URC_FAILURE;
#else
    uint32_t landing = (uint32_t)aco__cancel_landing, tagged = (uint32_t)exception, nowhere = 0;
    if (state == (_US_VIRTUAL_UNWIND_FRAME | _US_FORCE_UNWIND)) /* a backtrace: there is no exception */
        return _URC_END_OF_STACK;
    if (!aco__is_cancellation(exception)) {
        if (!(state & _US_FORCE_UNWIND))
            return _URC_FAILURE;
        /* A pc of 0 is the end of the stack for pthread_exit(). */
        aco__unwinder()->VRS_Set(context, _UVRSC_CORE, 15, _UVRSD_UINT32, &nowhere);
        return _URC_CONTINUE_UNWIND;
    }
    if (state & _US_FORCE_UNWIND) /* libgcc calls this before at_frame() */
        aco__cancel_finish(exception);
    if ((state & _US_ACTION_MASK) == _US_VIRTUAL_UNWIND_FRAME) {
        exception->barrier_cache.sp = (uint32_t)aco__frame_sp(context);
        return _URC_HANDLER_FOUND;
    }
    aco__unwinder()->VRS_Set(context, _UVRSC_CORE, 0, _UVRSD_UINT32, &tagged);
    aco__unwinder()->VRS_Set(context, _UVRSC_CORE, 15, _UVRSD_UINT32, &landing);
    return _URC_INSTALL_CONTEXT;
#endif
}
#else
#ifdef ACO__UNWINDS_TO_RESUMER
/* If the running coroutine's stack is being unwound, this removes its unwind parent. So the unwinder finds the end of
 * the stack instead of the resumer's frames. */
static void end_backtraces(struct _Unwind_Context *context)
{
    aco_t *co = aco__running();
#ifdef ACO_CONFIG_LIBACO_ONLY /* without generators a coroutine has one stack */
    int is_its_stack = co != NULL;
    (void)context;
#else
    int is_its_stack = co && aco__is_on_its_stack(co, aco__frame_sp(context) - ACO__ENTRY_BELOW_TOP);
#endif
    if (is_its_stack)
        co->share_stack->aco__owner_thread = &aco__nobody;
}
#endif

/* Backtraces continue in the resumer's frames, exceptions do not: the search for a handler and a forced unwind end
 * here. */
ACO__HIDDEN __attribute__((used)) _Unwind_Reason_Code aco__outermost_personality(int version, _Unwind_Action actions,
                                                                                 _Unwind_Exception_Class class,
                                                                                 struct _Unwind_Exception *exception,
                                                                                 struct _Unwind_Context *context);
ACO__FOREIGN_ENTRY _Unwind_Reason_Code aco__outermost_personality(int version, _Unwind_Action actions,
                                                                  _Unwind_Exception_Class class,
                                                                  struct _Unwind_Exception *exception,
                                                                  struct _Unwind_Context *context)
{
#ifdef ACO__UNWINDS_TO_RESUMER
    if (actions & _UA_FORCE_UNWIND)
        end_backtraces(context);
    else if (class != ACO__CANCELLATION_CLASS && (actions & _UA_SEARCH_PHASE))
        return _URC_FATAL_PHASE1_ERROR;
#endif
#ifdef ACO_CONFIG_LIBACO_ONLY
    (void)version, (void)actions, (void)class, (void)exception, (void)context;
    return _URC_CONTINUE_UNWIND;
#else
    if (version != 1 || class != ACO__CANCELLATION_CLASS || (actions & _UA_FORCE_UNWIND))
        return _URC_CONTINUE_UNWIND;
    if (actions & _UA_SEARCH_PHASE)
        return _URC_HANDLER_FOUND;
    aco__unwinder()->SetGR(context, __builtin_eh_return_data_regno(0), (_Unwind_Word)(uintptr_t)exception);
    aco__unwinder()->SetIP(context, (_Unwind_Ptr)(uintptr_t)aco__cancel_landing);
    return _URC_INSTALL_CONTEXT;
#endif
}
#endif

#ifdef _WIN32
/* The system calls this for the first frame of a stack. Exceptions of other languages end the process as if the frame
 * were not there. */
ACO__HIDDEN __attribute__((used)) EXCEPTION_DISPOSITION aco__outermost_handler(EXCEPTION_RECORD *record, void *frame,
                                                                               CONTEXT *context,
                                                                               DISPATCHER_CONTEXT *dispatcher);
EXCEPTION_DISPOSITION aco__outermost_handler(EXCEPTION_RECORD *record, void *frame, CONTEXT *context,
                                             DISPATCHER_CONTEXT *dispatcher)
{
#ifdef __clang__
    if (!_GCC_specific_handler)
        return ExceptionContinueSearch;
#endif
    return _GCC_specific_handler(record, frame, context, dispatcher, aco__outermost_personality);
}
#endif

ACO__FOREIGN_ENTRY void aco__cancel_landed(void *exception)
{
#ifdef ACO_CONFIG_LIBACO_ONLY /* nothing is cancelled */
    (void)exception;
    abort();
#else
    aco__cancel_finish(exception);
#endif
}
