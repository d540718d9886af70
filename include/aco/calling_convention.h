/* Attributes for functions that switch.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * ACO_SWITCHING marks a function that need not keep any register for its callers ("preserve_none"). A function that
 * switches changes all registers anyway. With the mark it saves none of them, and a caller saves only those that it
 * needs.
 *
 *   static ACO_SWITCHING __attribute__((noinline)) void pass_on(void) { …; aco_task_yield(); }
 *
 * ACO_SWITCHING is empty where the compiler does not know the attribute, and under ACO_CONFIG_NO_SWITCHING. Compiler
 * versions differ in the registers in which such a function gets its arguments. So use it for functions within one
 * program, not for a function that a library exports or that assembly calls. A pointer to such a function has its own
 * type.
 *
 * ACO_ENTRY marks an entry function for aco_create(). Nobody needs the register values that such a function finds when
 * it begins. With the mark it does not save them, and each coroutine on a share stack needs 32 to 48 bytes less
 * (x86-64). ACO_ENTRY_POINT() converts the function to aco_cofuncp_t.
 *
 *   static ACO_ENTRY void serve(void) { …; aco_exit(); }
 *   aco_create(main_co, stack, 0, ACO_ENTRY_POINT(serve), connection);
 *
 * ACO_ENTRY is only for functions without parameters, and not for aco_new(): the convention passes arguments in other
 * registers. */
#ifndef ACO_CALLING_CONVENTION_H
#define ACO_CALLING_CONVENTION_H

#include "detail/config.h"

#if defined(ACO_CONFIG_NO_SWITCHING) || defined(__ILP32__) || !ACO__HAS_ATTRIBUTE(preserve_none)
#define ACO_SWITCHING
#elif defined(__clang__) && !defined(__apple_build_version__) && __clang_major__ >= 19 && \
    (defined(__x86_64__) || defined(__aarch64__)) /* older compilers warn, and ignore the attribute */
#define ACO_SWITCHING __attribute__((preserve_none))
#elif !defined(__clang__) && __GNUC__ >= 16 && defined(__x86_64__)
#define ACO_SWITCHING __attribute__((preserve_none))
#else
#define ACO_SWITCHING
#endif

#if defined(ACO_CONFIG_NO_SWITCHING) || defined(__ILP32__) || !defined(__x86_64__)
#define ACO_ENTRY
#elif !defined(__clang__) && __GNUC__ >= 14
#define ACO_ENTRY __attribute__((no_callee_saved_registers))
#else
#define ACO_ENTRY ACO_SWITCHING
#endif
#ifdef __cplusplus /* two casts: with an empty ACO_ENTRY, compilers would call a single one useless */
#define ACO_ENTRY_POINT(function) (reinterpret_cast<aco_cofuncp_t>(reinterpret_cast<void (*)(int)>(function)))
#else
#define ACO_ENTRY_POINT(function) ((aco_cofuncp_t)(function))
#endif

#endif
