/* Ending a coroutine before it has returned: deferred calls, and the stack unwound frame by frame. */
#include "os/os.h"
#include "hooks/trace.h"
#include "hooks/instrument.h"
#include "coroutine/unwinder.h"

#include "aco/in_stack_generator.h"

#include <errno.h>
#include <string.h>

/* ---- Deferred calls ---- */

int aco__defer(void (*fn)(void *), void *arg, void *frame)
{
    aco_t *co = aco__running();
    aco__cold_t *cold;
    aco__deferred_t *deferred;
    size_t sz = sizeof *deferred;
    if (!co || !fn)
        return aco__fail(0, co ? EINVAL : EPERM, "aco_defer", NULL, co ? "the function is NULL" : "no coroutine is running");
    if (!aco__is_on_its_stack(co, frame))
        return aco__fail(0, EPERM, "aco_defer", co, "is called in a generator, which may end before the coroutine");
    cold = aco__cold_make(co);
    deferred = cold ? aco__memory_new(&sz) : NULL;
    if (!deferred)
        return aco__fail_memory(0, "aco_defer", sz);
    deferred->fn = fn;
    deferred->arg = arg;
    deferred->frame = frame;
    deferred->owner_sp = aco__is_cancelled() ? NULL : (char *)UINTPTR_MAX; /* deferred in a cleanup: due at once */
    deferred->next = cold->deferred;
    cold->deferred = deferred;
    return 0;
}

/* Takes the last one off. */
static aco__deferred_t take_last(aco__cold_t *cold)
{
    aco__deferred_t *last = cold->deferred, taken = *last;
    cold->deferred = last->next;
    aco__memory_free(last, sizeof *last);
    return taken;
}

int aco_defer_pop(int call)
{
    aco_t *co = aco__running();
    aco__cold_t *cold = co ? aco__cold(co) : NULL;
    aco__deferred_t last;
    if (!cold || !cold->deferred)
        return aco__fail(0, co ? ENOENT : EPERM, "aco_defer_pop", co, co ? "nothing is deferred" : "no coroutine is running");
    last = take_last(cold);
    if (call)
        last.fn(last.arg);
    return 0;
}

/* Makes the calls deferred by the frame with this stack pointer and by those further in. */
static void call_deferred(aco_t *co, const char *sp)
{
    aco__cold_t *cold;
    while ((cold = aco__cold(co)) != NULL && cold->deferred && cold->deferred->owner_sp <= sp) {
        aco__deferred_t last = take_last(cold);
        last.fn(last.arg);
    }
}

/* ---- Cleaning up ---- */

/* While a coroutine cleans up, its resumer is the trap: a yield is an error. Returns the true resumer. */
static aco_t *set_trap(aco__scratch_t *scratch)
{
    aco__thread_t *self = aco__self();
    aco_t *resumer = self->resuming;
    aco__save_resumer(self);
    aco__restore_resumer(self, &scratch->trap);
    self->unwind_parent = &aco__no_context;
    aco__set_state_byte(self->running, self->running->aco__state | ACO__INSTRUMENTED); /* so that aco_yield_to() looks */
    return resumer;
}

int aco__is_cancelled(void)
{
    aco__thread_t *self = aco__self();
    return self->scratch && self->resuming == &self->scratch->trap;
}

static void call_rest(aco_t *co)
{
    aco__cold_t *cold;
    call_deferred(co, (char *)UINTPTR_MAX);
    cold = aco__cold(co);
    if (cold)
        aco__values_destroy(cold);
    call_deferred(co, (char *)UINTPTR_MAX); /* by destructors */
}

static void lift_trap(aco_t *co, aco_t *resumer)
{
    aco__thread_t *self = aco__self();
    self->unwind_parent = &self->resumer;
    aco__restore_resumer(self, resumer);
    aco__instrument_no_more(co);
}

void aco__clean_up(aco_t *co)
{
    aco__cold_t *cold = aco__cold(co);
    aco__scratch_t *scratch;
    aco_t *resumer;
    if (!cold || (!cold->deferred && !cold->values))
        return;
    scratch = aco__scratch();
    if (!scratch) { /* no memory for a trap: a yield in the cleanup is then not noticed */
        call_rest(co);
        return;
    }
    resumer = set_trap(scratch);
    call_rest(co);
    lift_trap(co, resumer);
}

/* ---- Cancelling ---- */

/* A coroutine's end, or a generator's. In memory of its own: the frames below the one that is unwound to are overwritten by
 * its destructors. */
typedef struct aco__cancel {
    struct _Unwind_Exception exception;
    struct aco__cancel *enclosing; /* the one whose destructors brought about this one */
    const char *call;
    aco_t *co, *resumer;      /* NULL: a generator */
    aco__injected_t injected;       /* what the generator is resumed with */
    aco__context_t consumer;  /* of the generator */
    const char *outer;        /* where the generator's frames end, on its consumer's stack; NULL: on one of its own */
    char *cfa, *inner_cfa;    /* of the frame whose destructors run, and of the one that was unwound before */
    uintptr_t last;           /* the function to stop at, 0: none */
    aco__exceptions_t aside;  /* being handled by the thread meanwhile, not by the coroutine */
} cancel_t;

void *aco__guarded_entry(void *arg)
{
    aco__guarded_t *guarded = arg;
    guarded->run(guarded);
    return NULL;
}

static int is_guarded(const aco_t *co)
{
    aco_function_t entry = aco__guarded_entry;
    return aco__has(co, ACO__FROM_NEW) && memcmp(&co->fp, &entry, sizeof entry) == 0;
}

__attribute__((noreturn)) static void leave_generator(const aco__context_t *consumer, int in_stack, void *value)
{
    if (in_stack)
        aco__switch_in_stack_last(consumer, value);
    aco__switch_swap_last(consumer, value);
}

/* On the stack that is unwound, as far as it goes; aco__end() does what is left to do. */
__attribute__((noreturn)) static void finish(cancel_t *cancel)
{
    aco_t *co = cancel->co;
    aco__exceptions_back(co, &cancel->aside);
    aco__self()->cancel = cancel->enclosing;
    if (!co) {
        aco__context_t consumer = cancel->consumer;
        int in_stack = cancel->outer != NULL;
        aco__memory_free(cancel, sizeof *cancel);
        leave_generator(&consumer, in_stack, NULL);
    }
    lift_trap(co, cancel->resumer);
    aco__memory_free(cancel, sizeof *cancel);
    aco__end(co, NULL);
}

/* The unwinder is at the function to stop at. */
static int is_last(const cancel_t *cancel, struct _Unwind_Context *context)
{
#ifdef EHABI
    enum { THUMB = 1 }; /* a bit that may be missing on either side */
#else
    enum { THUMB = 0 };
#endif
    return cancel->last && (region_start(context, &cancel->exception) | THUMB) == (cancel->last | THUMB);
}

/* The unwinder comes by before it runs a frame's destructors. */
ACO__FOREIGN_ENTRY static _Unwind_Reason_Code at_frame(int version, _Unwind_Action actions, exception_class_t class, struct _Unwind_Exception *exception,
                                    struct _Unwind_Context *context, void *arg)
{
    cancel_t *cancel = arg;
    (void)version, (void)class, (void)exception;
#ifdef EHABI
    if ((void *)exception != arg)
        aco__die("aco_cancel", NULL, "only libgcc's unwinder will do");
#endif
    if ((actions & _UA_END_OF_STACK) || is_last(cancel, context))
        finish(cancel);
    cancel->inner_cfa = cancel->cfa;
    cancel->cfa = stack_pointer(context);
    if (cancel->outer && cancel->cfa > cancel->outer)
        finish(cancel);
    if (cancel->co)
        call_deferred(cancel->co, cancel->cfa);
    return _URC_NO_REASON;
}

/* libc++ throws a cancellation that was caught and thrown again as an ordinary exception: it then looks for a handler, and
 * finds one in the outermost frame. */
static const uint64_t our_class = UINT64_C(0x41434f524e000000); /* "ACORN" */

#ifdef EHABI
static void swallowed(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception);

ACO__HIDDEN __attribute__((used)) _Unwind_Reason_Code aco__outermost_personality(_Unwind_State state, struct _Unwind_Exception *exception,
                                                                                 struct _Unwind_Context *context);
_Unwind_Reason_Code aco__outermost_personality(_Unwind_State state, struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    uint32_t landing = (uint32_t)aco__cancel_landing, tagged = (uint32_t)exception, nowhere = 0;
    if (state == (_US_VIRTUAL_UNWIND_FRAME | _US_FORCE_UNWIND)) /* a backtrace; there is no exception */
        return _URC_END_OF_STACK;
    if (exception->exception_cleanup != swallowed) { /* not ours; libstdc++ has made the class its own */
        if (!(state & _US_FORCE_UNWIND))
            return _URC_FAILURE;
        unwinder()->VRS_Set(context, _UVRSC_CORE, 15, _UVRSD_UINT32, &nowhere); /* pthread_exit() finds the stack's end there */
        return _URC_CONTINUE_UNWIND;
    }
    if (state & _US_FORCE_UNWIND) /* libgcc asks here before it calls at_frame() */
        finish((cancel_t *)(void *)exception);
    if ((state & _US_ACTION_MASK) == _US_VIRTUAL_UNWIND_FRAME) {
        exception->barrier_cache.sp = (uint32_t)stack_pointer(context);
        return _URC_HANDLER_FOUND;
    }
    unwinder()->VRS_Set(context, _UVRSC_CORE, 0, _UVRSD_UINT32, &tagged);
    unwinder()->VRS_Set(context, _UVRSC_CORE, 15, _UVRSD_UINT32, &landing);
    return _URC_INSTALL_CONTEXT;
}
#else
#ifdef ACO__UNWINDS_TO_RESUMER
/* The stack that is unwound, if it is the running coroutine's, has no resumer for the unwinder any more, which finds its end. */
static void unlink_running(const char *outermost_sp)
{
    aco_t *co = aco__running();
    if (co && aco__is_on_its_stack(co, outermost_sp - ACO__ENTRY_BELOW_TOP))
        co->share_stack->aco__owner_thread = &aco__nobody;
}
#endif

/* Backtraces go on in the resumer, exceptions do not: a search for a handler ends here, and so does a forced unwind. */
ACO__HIDDEN __attribute__((used)) _Unwind_Reason_Code aco__outermost_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                                                                 struct _Unwind_Exception *exception, struct _Unwind_Context *context);
ACO__FOREIGN_ENTRY _Unwind_Reason_Code aco__outermost_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                                            struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
#ifdef ACO__UNWINDS_TO_RESUMER
    if (actions & _UA_FORCE_UNWIND)
        unlink_running(stack_pointer(context));
    else if (class != our_class && (actions & _UA_SEARCH_PHASE))
        return _URC_FATAL_PHASE1_ERROR;
#endif
    if (version != 1 || class != our_class || (actions & _UA_FORCE_UNWIND))
        return _URC_CONTINUE_UNWIND;
    if (actions & _UA_SEARCH_PHASE)
        return _URC_HANDLER_FOUND;
    unwinder()->SetGR(context, __builtin_eh_return_data_regno(0), (_Unwind_Word)(uintptr_t)exception);
    unwinder()->SetIP(context, (_Unwind_Ptr)(uintptr_t)aco__cancel_landing);
    return _URC_INSTALL_CONTEXT;
}
#endif

#ifdef _WIN32
/* What the system calls for the outermost frame. Others' exceptions end their process as if no frame were there. */
ACO__HIDDEN __attribute__((used)) EXCEPTION_DISPOSITION aco__outermost_handler(EXCEPTION_RECORD *record, void *frame, CONTEXT *context,
                                                                               DISPATCHER_CONTEXT *dispatcher);
EXCEPTION_DISPOSITION aco__outermost_handler(EXCEPTION_RECORD *record, void *frame, CONTEXT *context, DISPATCHER_CONTEXT *dispatcher)
{
#ifdef __clang__
    if (!_GCC_specific_handler)
        return ExceptionContinueSearch;
#endif
    return _GCC_specific_handler(record, frame, context, dispatcher, aco__outermost_personality);
}
#endif

ACO__HIDDEN __attribute__((used, noreturn)) void aco__cancel_landed(struct _Unwind_Exception *exception);
ACO__FOREIGN_ENTRY void aco__cancel_landed(struct _Unwind_Exception *exception)
{
    finish((cancel_t *)(void *)exception);
}

/* A catch (...) that does not throw again ends the unwinding, which cannot be. */
ACO__FOREIGN_ENTRY static void swallowed(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception)
{
    cancel_t *cancel = (cancel_t *)(void *)exception;
    (void)reason;
    aco__die(cancel->call, cancel->co, "a catch (...) block did not throw its cancellation again");
}

/* Which deferred call belongs to which frame: the innermost whose stack pointer is above the frame's is that frame's caller. */
typedef struct assignment {
    aco__deferred_t *next;
    char *inner_sp;
} assignment_t;

ACO__FOREIGN_ENTRY static _Unwind_Reason_Code assign(struct _Unwind_Context *context, void *arg)
{
    assignment_t *to = arg;
    char *sp = traced_stack_pointer(context);
    for (; to->next && to->next->frame < sp; to->next = to->next->next)
        to->next->owner_sp = to->inner_sp;
    to->inner_sp = sp;
    return to->next ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static cancel_t *cancel_new(const char *call, aco_t *co)
{
    size_t sz = sizeof(cancel_t);
    cancel_t *cancel = aco__memory_new(&sz);
    if (!cancel)
        return NULL;
    memset(cancel, 0, sizeof *cancel);
    cancel->call = call;
    cancel->co = co;
#ifdef ACO_CONFIG_UCONTEXT /* what comes behind it is the C library's, and perhaps without unwind information */
    cancel->last = (uintptr_t)aco__outermost;
#endif
    memcpy(&cancel->exception.exception_class, &our_class, sizeof our_class);
    cancel->exception.exception_cleanup = swallowed;
    return cancel;
}

/* Runs the destructors of the calling function's callers. */
__attribute__((noreturn)) static void unwind_callers(cancel_t *cancel)
{
    aco_t *co = cancel->co;
    aco__cold_t *cold = co ? aco__cold(co) : NULL;
    if (unwinder()->ForcedUnwind) {
        if (cold && cold->deferred && aco__is_on_its_stack(co, __builtin_frame_address(0))) {
            assignment_t to = {cold->deferred, NULL};
            unwinder()->Backtrace(assign, &to);
        }
        aco__instrument_unwind();
        unwinder()->ForcedUnwind(&cancel->exception, STOP_FUNCTION(at_frame), cancel);
    }
    finish(cancel);
}

/* On the stack that is to be unwound. */
__attribute__((noreturn)) static void unwind(cancel_t *cancel)
{
    aco__thread_t *self = aco__self();
    cancel->enclosing = self->cancel;
    self->cancel = cancel;
    aco__exceptions_aside(cancel->co, &cancel->aside);
    unwind_callers(cancel);
}

/* What aco__interrupted() calls in a coroutine that is cancelled. */
static void unwind_coroutine(void *arg)
{
    cancel_t *cancel = arg;
    cancel->resumer = set_trap(aco__self()->scratch);
    if (is_guarded(cancel->co))
        memcpy(&cancel->last, cancel->co->arg, sizeof cancel->last);
    unwind(cancel);
}

int aco_cancel(aco_t *co)
{
    cancel_t *cancel;
    if (co && aco__status(co) == ACO__ENDED)
        return 0;
    if (aco__check(0, "aco_cancel", co) != 0)
        return -1;
    if (aco__is_new(co)) {
        co->is_end = 1; // NOLINT(clang-analyzer-core.NullDereference): the check has refused NULL
        co->aco__self.bp = NULL; /* its result */
        aco__set_status(co, ACO__ENDED);
        aco__trace_ended(co);
        return 0;
    }
    cancel = cancel_new("aco_cancel", co);
    if (!cancel)
        return aco__fail_memory(0, "aco_cancel", sizeof *cancel);
    if (aco__inject(co, unwind_coroutine, cancel, "aco_cancel") != ACO_ERROR)
        return 0;
    aco__memory_free(cancel, sizeof *cancel);
    return -1;
}

/* ---- Generators ---- */

/* What a generator is resumed with that is to be closed. */
static void unwind_generator(aco__injected_t *injected, const aco__context_t *consumer)
{
    cancel_t *cancel = (cancel_t *)(void *)((char *)injected - offsetof(cancel_t, injected));
    cancel->consumer = *consumer;
    unwind(cancel);
}

static aco__injected_t *closing(const char *call, const void *outer)
{
    cancel_t *cancel = cancel_new(call, NULL);
    if (!cancel)
        aco__die_of_memory(call, sizeof *cancel);
    cancel->injected.call = unwind_generator;
    cancel->outer = outer;
    return &cancel->injected;
}

void aco__yields_in_cleanup(const char *call)
{
    aco__die(call, NULL, "the generator yields in its cleanup");
}

void aco__generator_unwind(const aco__context_t *peer, aco_t *block)
{
    static const char call[] = "aco_generator_close";
    aco__context_t at = *peer;
    void *value_ref, *begin;
    void (*first)(void) = aco__generator_begin;
    memcpy(&begin, &first, sizeof begin);
    if (at.pc == begin)
        return;
    value_ref = closing(call, NULL);
    aco__generator_step(&at, block, &value_ref);
    if (at.pc)
        aco__yields_in_cleanup(call);
}

aco__injected_t *aco__in_stack_closing(const void *outer)
{
    return closing("aco_in_stack_close", outer);
}

/* What the consumer of a generator finds whose coroutine is cancelled: the unwinding goes on there. */
static void go_on(aco__injected_t *injected, const aco__context_t *unused)
{
    (void)injected, (void)unused;
    unwind_callers(aco__self()->cancel);
}

/* The innermost unwinding is that of the calling function's frame if this function's stands where the frames were that it
 * has unwound. */
ACO__NO_SANITIZE void aco__generator_unwound(const aco__context_t *peer, int in_stack)
{
    enum { BETWEEN = 256 }; /* bytes; arguments and padding of the two calls */
    static aco__injected_t cancelled = {go_on};
    cancel_t *cancel = aco__self()->cancel;
    char *here = ACO__FRAME;
    aco__exceptions_t unused;
    if (!cancel || here >= cancel->cfa || here + BETWEEN < cancel->inner_cfa)
        return;
    if (!cancel->co)
        finish(cancel);
    aco__exceptions_aside(cancel->co, &unused);
    leave_generator(peer, in_stack, &cancelled);
}
