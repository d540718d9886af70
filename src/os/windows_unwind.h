/* Windows: a stack unwound frame by frame. end.c's, beside the unwinders of the run times. */
#ifndef ACO_WINDOWS_UNWIND_H
#define ACO_WINDOWS_UNWIND_H

#include "os/os.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <unwind.h>

/* As _Unwind_Backtrace() and _Unwind_ForcedUnwind(), whose `context` is for the next two only. The second is for handlers of
 * libgcc, whose own calls `stop` for one frame and forgets it; `exception` is what `stop` gets as its argument. */
ACO__HIDDEN _Unwind_Reason_Code aco__seh_backtrace(_Unwind_Trace_Fn visit, void *arg);
ACO__HIDDEN __attribute__((noreturn)) void aco__seh_forced_unwind(struct _Unwind_Exception *exception, _Unwind_Stop_Fn stop);
ACO__HIDDEN _Unwind_Word aco__seh_get_cfa(struct _Unwind_Context *context);
ACO__HIDDEN _Unwind_Ptr aco__seh_get_region_start(struct _Unwind_Context *context);

#endif
