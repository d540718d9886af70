/* Cancels a suspended coroutine or generator: resumes it to unwind its own stack frame by frame. Then it ends. */
#include "tools/trace.h"
#include "coroutine/cancel.h"
#include "coroutine/cleanup.h"
#include "coroutine/exit.h"
#include "coroutine/query.h"
#include "coroutine/unwinder.h"

#include <string.h>

/* The state of a cancellation. It is not on the stack that is unwound: each destructor runs below the frame that it
 * belongs to, and overwrites what was there. */
typedef struct aco__cancel {
    struct _Unwind_Exception exception;
    struct aco__cancel *enclosing; /* the cancellation with the destructor that caused this one */
    const char *call;
    const aco__unwinder_t *unwinder;
    aco_t *co, *resumer;      /* co is NULL for a generator */
    aco__injected_t injected;       /* the call injected into the generator */
    aco__context_t consumer;  /* the generator's */
    const char *frames_end;   /* end of the generator's frames on its consumer's stack; NULL: on its own stack */
    char *cfa, *inner_cfa;    /* of the frame being unwound, and of the one unwound before */
    uintptr_t last;           /* the function to stop at; 0: none */
    int own_exceptions;       /* the thread's record of exceptions belongs to what is being unwound */
    aco__exceptions_t aside;  /* exceptions put aside: else the thread's; if it does, those hidden from a handler */
} cancel_t;

static int is_guarded(const aco_t *co)
{
    aco_function_t entry = aco__guarded_entry;
    ACO__ASSERT(!aco__is_task(co)); /* whose `fp` is its place in the ring */
    return aco__has(co, ACO__FROM_NEW) && memcmp(&co->fp, &entry, sizeof entry) == 0;
}

__attribute__((noreturn)) static void leave_generator(const aco__context_t *consumer, int in_stack, void *value)
{
    if (in_stack)
        aco__switch_in_stack_last(consumer, value);
    aco__switch_swap_last(consumer, value);
}

/* ---- The end of unwinding ---- */

/* Runs on the unwound stack. aco__end() does the rest. */
__attribute__((noreturn)) static void finish(cancel_t *cancel)
{
    aco_t *co = cancel->co;
    aco__exceptions_t unused;
    ACO__ASSERT(cancel == aco__self()->cancel); /* the innermost */
    if (cancel->own_exceptions)
        aco__exceptions_end(&cancel->aside);
    else
        aco__exceptions_swap(&unused, &cancel->aside);
    aco__self()->cancel = cancel->enclosing;
    if (!co) {
        aco__context_t consumer = cancel->consumer;
        int in_stack = cancel->frames_end != NULL;
        aco__memory_free(cancel, sizeof *cancel);
        leave_generator(&consumer, in_stack, NULL);
    }
    aco__lift_trap(co, cancel->resumer);
    aco__memory_free(cancel, sizeof *cancel);
    aco__end(co, NULL);
}

void aco__cancel_finish(void *exception)
{
    finish(exception);
}

/* Whether the unwinder has reached the function to stop at. */
static int is_last(const cancel_t *cancel, struct _Unwind_Context *context)
{
#ifdef EHABI
    enum { THUMB = 1 }; /* either address may lack this bit */
#else
    enum { THUMB = 0 };
#endif
    return cancel->last && (aco__frame_function(context, &cancel->exception) | THUMB) == (cancel->last | THUMB);
}

/* ---- Handlers ----
 *
 * To the C++ run time a cancellation is a foreign exception. A catch (...) can only handle one while its thread handles
 * no other exception, else the run time calls std::terminate(). So before a frame with such a handler continues, the
 * exceptions that the coroutine is handling are hidden. When their catch blocks end, nothing happens; they are
 * destroyed when everything is unwound. */

/* Whether the unwinder's current frame will handle the cancellation; 1 if that cannot be found out. */
#if defined(EHABI) || defined(_WIN32)
static int will_handle(cancel_t *cancel, struct _Unwind_Context *context)
{
    (void)cancel, (void)context;
    return 1;
}
#else
ACO__OPTIONAL(_Unwind_Reason_Code, __gxx_personality_v0,
              (int version, int actions, exception_class_t class, struct _Unwind_Exception *exception,
               struct _Unwind_Context *context));

static int will_handle(cancel_t *cancel, struct _Unwind_Context *context)
{
    struct _Unwind_Exception *exception = &cancel->exception;
    _Unwind_Reason_Code answer;
    if (!__gxx_personality_v0)
        return 1;
    answer =
        __gxx_personality_v0(1, _UA_SEARCH_PHASE | _UA_FORCE_UNWIND, exception->exception_class, exception, context);
    if (answer == _URC_FATAL_PHASE1_ERROR) /* libc++abi allows one flag only */
        answer = __gxx_personality_v0(1, _UA_SEARCH_PHASE, exception->exception_class, exception, context);
    return answer != _URC_CONTINUE_UNWIND;
}
#endif

/* ---- Frame by frame ---- */

/* The unwinder calls this before it runs a frame's destructors. */
ACO__FOREIGN_ENTRY static _Unwind_Reason_Code at_frame(int version, _Unwind_Action actions, exception_class_t class,
                                                       struct _Unwind_Exception *exception,
                                                       struct _Unwind_Context *context, void *arg)
{
    cancel_t *cancel = arg;
    (void)version, (void)class, (void)exception;
#ifdef EHABI
    if ((void *)exception != arg)
        aco__die("aco_cancel", NULL, "needs libgcc's unwinder");
#endif
    if ((actions & _UA_END_OF_STACK) || is_last(cancel, context))
        finish(cancel);
    cancel->inner_cfa = cancel->cfa;
    cancel->cfa = aco__frame_sp(context);
    if (cancel->frames_end && cancel->cfa > cancel->frames_end)
        finish(cancel);
    if (cancel->co)
        aco__call_deferred(cancel->co, cancel->cfa);
    if (cancel->own_exceptions && aco__exceptions_handled() && will_handle(cancel, context))
        aco__exceptions_swap(&cancel->aside, NULL);
    return _URC_NO_REASON;
}

/* The unwinder calls this if a catch (...) has ended the unwinding because it did not throw again. That is an error. */
ACO__FOREIGN_ENTRY static void swallowed(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception)
{
    cancel_t *cancel = (cancel_t *)(void *)exception;
    (void)reason;
    aco__die(cancel->call, cancel->co, "a catch (...) block did not throw its cancellation again");
}

int aco__is_cancellation(const void *exception)
{
    return ((const struct _Unwind_Exception *)exception)->exception_cleanup == swallowed;
}

/* ---- Unwinding ---- */

/* Finds the frame that deferred each call. The innermost frame with a stack pointer above the recorded address is the
 * caller of that frame. */
typedef struct assignment {
    aco__deferred_t *next;
    char *inner_sp;
} assignment_t;

ACO__FOREIGN_ENTRY static _Unwind_Reason_Code assign(struct _Unwind_Context *context, void *arg)
{
    assignment_t *to = arg;
    char *sp = aco__traced_frame_sp(context);
    for (; to->next && to->next->frame < sp; to->next = to->next->next)
        to->next->owner_sp = to->inner_sp;
    to->inner_sp = sp;
    return to->next ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static cancel_t *cancel_new(const char *call, aco_t *co)
{
    static const uint64_t class = ACO__CANCELLATION_CLASS;
    size_t sz = sizeof(cancel_t);
    cancel_t *cancel = aco__memory_new(&sz);
    if (!cancel)
        return NULL;
    memset(cancel, 0, sizeof *cancel);
    cancel->call = call;
    cancel->co = co;
    cancel->unwinder = aco__unwinder(); /* here: looking for it takes the loader 9 kB of stack */
#ifdef ACO_CONFIG_UCONTEXT /* its callers are the C library's and may have no unwind information */
    cancel->last = (uintptr_t)aco__outermost;
#endif
    memcpy(&cancel->exception.exception_class, &class, sizeof class);
    cancel->exception.exception_cleanup = swallowed;
    return cancel;
}

/* Runs the destructors of the frames of the calling function's callers. */
__attribute__((noreturn)) static void unwind_callers(cancel_t *cancel)
{
    aco_t *co = cancel->co;
    aco__cold_t *cold = co ? aco__cold(co) : NULL;
    if (cancel->unwinder->ForcedUnwind) {
        if (cold && cold->deferred && aco__is_on_its_stack(co, __builtin_frame_address(0))) {
            assignment_t to = {cold->deferred, NULL};
            cancel->unwinder->Backtrace(assign, &to);
        }
        aco__sanitize_unwind();
        cancel->unwinder->ForcedUnwind(&cancel->exception, STOP_FUNCTION(at_frame), cancel);
    }
    finish(cancel);
}

/* Runs on the stack that is to be unwound. */
__attribute__((noreturn)) static void unwind(cancel_t *cancel)
{
    aco__thread_t *self = aco__self();
    cancel->enclosing = self->cancel;
    self->cancel = cancel;
    if (cancel->co)
        cancel->own_exceptions = aco__has_own_exceptions(cancel->co);
    if (!cancel->own_exceptions)
        aco__exceptions_aside(&cancel->aside);
    unwind_callers(cancel);
}

/* The call injected into a coroutine that is cancelled. */
static void unwind_coroutine(void *arg)
{
    cancel_t *cancel = arg;
    ACO__ASSERT(cancel->co == aco__running());
    cancel->resumer = aco__set_trap(aco__self()->scratch);
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
        co->is_end = 1; // NOLINT(clang-analyzer-core.NullDereference): the check has failed for NULL
        aco__set_result(co, NULL);
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

/* The call injected into a generator that is closed. */
static void unwind_generator(aco__injected_t *injected, const aco__context_t *consumer)
{
    cancel_t *cancel = (cancel_t *)(void *)((char *)injected - offsetof(cancel_t, injected));
    cancel->consumer = *consumer;
    unwind(cancel);
}

aco__injected_t *aco__generator_closing(const char *call, const void *frames_end, int kind)
{
    cancel_t *cancel = cancel_new(call, NULL);
    if (!cancel)
        aco__die_of_memory(call, sizeof *cancel);
    cancel->injected.call = unwind_generator;
    cancel->frames_end = frames_end;
    cancel->own_exceptions = (kind & ACO__APART) != 0;
    return &cancel->injected;
}

/* The call injected into a generator's consumer if the unwinding of a coroutine continues there. */
static void continue_unwinding(aco__injected_t *injected, const aco__context_t *unused)
{
    (void)injected, (void)unused;
    unwind_callers(aco__self()->cancel);
}

/* Called when the frame of a generator's function is unwound. If the innermost cancellation unwinds it, this does not
 * return: it ends the closed generator, or continues to unwind the coroutine in the generator's consumer. The innermost
 * cancellation unwinds it if this function's frame lies where the unwound frames were. */
ACO__NO_SANITIZE void aco__generator_unwound(const aco__context_t *peer, int kind)
{
    enum { BETWEEN = 256 }; /* bytes: arguments and padding of the two calls */
    static aco__injected_t cancelled = {continue_unwinding};
    cancel_t *cancel = aco__self()->cancel;
    char *here = ACO__FRAME;
    aco__exceptions_t unused;
    if (!cancel || here >= cancel->cfa || here + BETWEEN < cancel->inner_cfa)
        return;
    if (kind & ACO__BY_HANDLER) /* the record holds the cancellation */
        aco__exceptions_swap(&unused, NULL);
    if (!cancel->co)
        finish(cancel);
    if (cancel->own_exceptions && (kind & ACO__APART)) {
        aco__exceptions_end(&cancel->aside);
        memset(&cancel->aside, 0, sizeof cancel->aside);
    }
    leave_generator(peer, kind & ACO__IN_STACK, &cancelled);
}
