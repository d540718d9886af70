/* Windows: unwinds a stack frame by frame. coroutine/unwinder.c uses it beside the unwinders of the run times. */
#ifndef ACO_WINDOWS_UNWIND_H
#define ACO_WINDOWS_UNWIND_H

#include "os/os.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <unwind.h>

/* Like _Unwind_Backtrace() and _Unwind_ForcedUnwind(). Only the last two functions here accept their `context`.
 * aco__seh_forced_unwind() serves frames with libgcc's handlers, because libgcc's own function calls `stop` for one
 * frame only. `stop` gets `exception` as its last argument. */
ACO__HIDDEN _Unwind_Reason_Code aco__seh_backtrace(_Unwind_Trace_Fn visit, void *arg);
ACO__HIDDEN __attribute__((noreturn)) void aco__seh_forced_unwind(struct _Unwind_Exception *exception,
                                                                  _Unwind_Stop_Fn stop);
ACO__HIDDEN _Unwind_Word aco__seh_get_cfa(struct _Unwind_Context *context);
ACO__HIDDEN _Unwind_Ptr aco__seh_get_region_start(struct _Unwind_Context *context);

#endif
