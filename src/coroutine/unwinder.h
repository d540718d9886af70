/* The unwinder of the program's compiler behind one set of names: that of the Itanium C++ ABI, of the Arm EHABI, or of
 * Windows. */
#ifndef ACO_UNWINDER_H
#define ACO_UNWINDER_H

#include "base/base.h"

#ifdef _WIN32
#include "os/windows_unwind.h"
#endif
#include <unwind.h>

#if defined(__arm__) && !defined(__ARM_DWARF_EH__) && !defined(__USING_SJLJ_EXCEPTIONS__)
#define EHABI
#define UNWINDER(function) function(Backtrace) function(VRS_Get) function(VRS_Set) function(ForcedUnwind)
#else
#define UNWINDER_BUT_IP(function)                                                                                      \
    function(Backtrace) function(GetCFA) function(GetRegionStart) function(SetGR) function(SetIP) function(ForcedUnwind)
#ifdef _WIN32
#define UNWINDER UNWINDER_BUT_IP
#else
#define UNWINDER(function) UNWINDER_BUT_IP(function) function(GetIP)
#endif
#endif

/* Weak references: code with something to unwind has linked its compiler's unwinder. gcc on Windows links its own into
 * every program, and GNU ld has no weak references there. */
#if !defined(_WIN32) || defined(__clang__)
#pragma weak _Unwind_ForcedUnwind
#pragma weak _Unwind_Backtrace
#ifdef EHABI
#pragma weak _Unwind_VRS_Get
#pragma weak _Unwind_VRS_Set
#else
#pragma weak _Unwind_GetCFA
#pragma weak _Unwind_GetIP
#pragma weak _Unwind_GetRegionStart
#pragma weak _Unwind_SetGR
#pragma weak _Unwind_SetIP
#endif
#endif

typedef struct aco__unwinder {
#define MEMBER(name) __typeof__(&_Unwind_##name) name;
    UNWINDER(MEMBER)
} aco__unwinder_t;

#if defined(_WIN32) && defined(__clang__)
#pragma weak _GCC_specific_handler
extern EXCEPTION_DISPOSITION _GCC_specific_handler(EXCEPTION_RECORD *record, void *frame, CONTEXT *context,
                                                   DISPATCHER_CONTEXT *dispatcher, _Unwind_Personality_Fn personality);
#endif

/* The unwinder's functions. If ForcedUnwind is NULL there is no unwinder, and a cancellation only makes the deferred
 * calls. */
ACO__HIDDEN const aco__unwinder_t *aco__unwinder(void);
#ifndef _WIN32
/* The same, and loads one if the process has none. */
ACO__HIDDEN const aco__unwinder_t *aco__unwinder_loaded(void);
#endif
/* The stack pointer of the unwinder's current frame; the second is for functions that Backtrace calls. */
ACO__HIDDEN char *aco__frame_sp(struct _Unwind_Context *context);
ACO__HIDDEN char *aco__traced_frame_sp(struct _Unwind_Context *context);
/* The address of the function of the unwinder's current frame. */
ACO__HIDDEN uintptr_t aco__frame_function(struct _Unwind_Context *context, const struct _Unwind_Exception *exception);

/* The type of a stop function's exception class, and the cast with which the function is passed. */
#ifdef EHABI /* some headers declare the class as a value, but libgcc's and LLVM's unwinders pass its address */
typedef const char *exception_class_t;
#define STOP_FUNCTION(fn) ((_Unwind_Stop_Fn)(void (*)(void))(fn))
#else
typedef _Unwind_Exception_Class exception_class_t;
#define STOP_FUNCTION(fn) (fn)
#endif

#endif
