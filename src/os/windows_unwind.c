/* Unwinds a stack on Windows frame by frame, with the system's unwind tables and libgcc's protocol of handlers. */
#include "os/windows_unwind.h"

#include <string.h>

/* A frame. `at` holds the values of the registers in it. */
struct _Unwind_Context {
    CONTEXT at;
    RUNTIME_FUNCTION *function; /* NULL: a leaf, without tables */
    DWORD64 base;               /* of its module */
};

static void look_up(struct _Unwind_Context *frame)
{
    frame->function = RtlLookupFunctionEntry(frame->at.Rip, &frame->base, NULL);
}

/* Steps from a frame to its caller's frame. Stores the system's name of the frame in *establisher. Returns whether the
 * frame has a handler for unwinding. */
static int to_caller(struct _Unwind_Context *frame, DWORD64 *establisher)
{
    void *data;
    int has_handler = 0;
    if (frame->function) {
        has_handler = RtlVirtualUnwind(UNW_FLAG_UHANDLER, frame->base, frame->at.Rip, frame->function, &frame->at,
                                       &data, establisher, NULL) != NULL;
    } else {
        *establisher = frame->at.Rsp;
        memcpy(&frame->at.Rip, (const void *)(uintptr_t)frame->at.Rsp, sizeof frame->at.Rip);
        frame->at.Rsp += sizeof frame->at.Rip;
    }
    look_up(frame);
    return has_handler;
}

/* The frame of the function that uses the macro. */
#define BEGIN_HERE(frame)                                                                                              \
    do {                                                                                                               \
        RtlCaptureContext(&(frame)->at);                                                                               \
        look_up(frame);                                                                                                \
    } while (0)

_Unwind_Word aco__seh_get_cfa(struct _Unwind_Context *context)
{
    return context->at.Rsp;
}

_Unwind_Ptr aco__seh_get_region_start(struct _Unwind_Context *context)
{
    return context->function ? context->base + context->function->BeginAddress : 0;
}

_Unwind_Reason_Code aco__seh_backtrace(_Unwind_Trace_Fn visit, void *arg)
{
    struct _Unwind_Context frame;
    DWORD64 establisher;
    BEGIN_HERE(&frame);
    for (to_caller(&frame, &establisher); frame.at.Rip; to_caller(&frame, &establisher))
        if (visit(&frame, arg) != _URC_NO_REASON)
            break;
    return _URC_END_OF_STACK;
}

/* ---- Unwinding ----
 *
 * A frame without a handler only needs a call of the stop function. To run the handler of a frame, this code unwinds to
 * the frame's caller with the protocol of libgcc's second phase. A handler may jump to a landing pad. At the end of the
 * pad _Unwind_Resume() reads from private_ where to continue: at aco__seh_resumed, in the caller. That calls
 * aco__seh_unwind() again, and the caller's frame is the next one. */
/* Indices of private_. The first four are libgcc's; the first of them stays 0. */
enum { LIBGCC_STOP, TARGET_FRAME, TARGET_IP, RDX, STOP_FUNCTION, CALLER_IP };
enum { GCC_THROW = 0x20474343 };

_Static_assert(offsetof(struct _Unwind_Exception, private_[CALLER_IP]) == 56, "aco__seh_resumed uses this offset");
ACO__HIDDEN void aco__seh_resumed(void);
/* rax: the exception; rsp: as at the caller's call. Calls aco__seh_unwind() as if from there. */
__asm__(".text\n"
        "\t.globl aco__seh_resumed\n"
        "aco__seh_resumed:\n"
        "\tpushq 56(%rax)\n"
        "\tmovq %rax,%rcx\n"
        "\tjmp aco__seh_unwind\n");

ACO__HIDDEN __attribute__((used, noreturn)) void aco__seh_unwind(struct _Unwind_Exception *exception);

static void ask(struct _Unwind_Exception *exception, _Unwind_Action action, struct _Unwind_Context *frame)
{
    _Unwind_Stop_Fn stop;
    memcpy(&stop, &exception->private_[STOP_FUNCTION], sizeof stop);
    stop(1, _UA_FORCE_UNWIND | _UA_CLEANUP_PHASE | action, exception->exception_class, exception, frame, exception);
}

__attribute__((noreturn)) static void unwind_to(struct _Unwind_Exception *exception, struct _Unwind_Context *caller)
{
    struct _Unwind_Context beyond = *caller;
    CONTEXT room;
    EXCEPTION_RECORD record = {0};
    DWORD64 target;
    to_caller(&beyond, &target);
    exception->private_[TARGET_FRAME] = target;
    exception->private_[TARGET_IP] = (_Unwind_Word)(uintptr_t)aco__seh_resumed;
    exception->private_[RDX] = 0;
    exception->private_[CALLER_IP] = caller->at.Rip;
    record.ExceptionCode = GCC_THROW;
    record.ExceptionFlags = EXCEPTION_NONCONTINUABLE;
    record.NumberParameters = 4;
    record.ExceptionInformation[0] = (ULONG_PTR)exception;
    for (int i = TARGET_FRAME; i <= RDX; i++)
        record.ExceptionInformation[i] = exception->private_[i];
    RtlUnwindEx((void *)(uintptr_t)target, (void *)(uintptr_t)exception->private_[TARGET_IP], &record, exception, &room,
                NULL);
    aco__os_die("aco_cancel: RtlUnwindEx() failed");
}

void aco__seh_unwind(struct _Unwind_Exception *exception)
{
    struct _Unwind_Context frame;
    DWORD64 establisher;
    BEGIN_HERE(&frame);
    for (to_caller(&frame, &establisher); frame.at.Rip;) {
        ask(exception, 0, &frame);
        if (to_caller(&frame, &establisher) && frame.at.Rip)
            unwind_to(exception, &frame);
    }
    ask(exception, _UA_END_OF_STACK, &frame);
    aco__os_die("aco_cancel: unwinding went past the first frame of the stack");
}

void aco__seh_forced_unwind(struct _Unwind_Exception *exception, _Unwind_Stop_Fn stop)
{
    memset(exception->private_, 0, sizeof exception->private_);
    memcpy(&exception->private_[STOP_FUNCTION], &stop, sizeof stop);
    aco__seh_unwind(exception);
}
