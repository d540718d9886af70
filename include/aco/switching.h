/* ACO_SWITCHING: marks a function after whose calls the compiler expects no register to be as it was ("preserve_none"). A
 * function that switches destroys them all anyhow; marked, it saves none that its caller does not need.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static ACO_SWITCHING __attribute__((noinline)) void pass_on(void) { …; aco_task_yield(); }
 *
 * Empty where the compiler does not know the attribute, and under ACO_CONFIG_NO_SWITCHING. The registers in which arguments
 * go differ from compiler version to version, so it is for functions within one program, never for one that a library
 * exports or assembly calls; pointers to such a function have a type of their own. */
#ifndef ACO_SWITCHING_H
#define ACO_SWITCHING_H

/* ACO_ENTRY: marks an entry function for aco_create(). Nobody needs the registers back that it finds: marked, it does not save
 * them on its stack, and each coroutine on a share stack takes 32 to 48 bytes less (x86-64). The compiler's type of such a
 * function is its own: ACO_ENTRY_POINT() makes the aco_cofuncp_t of it.
 *
 *   static ACO_ENTRY void serve(void) { …; aco_exit(); }
 *   aco_create(main_co, stack, 0, ACO_ENTRY_POINT(serve), connection);
 *
 * For functions without parameters alone, and not for aco_new(): the convention moves arguments. */
#if defined(ACO_CONFIG_NO_SWITCHING) || !defined(__has_attribute)
#define ACO_SWITCHING
#elif !__has_attribute(preserve_none)
#define ACO_SWITCHING
#elif defined(__clang__) && !defined(__apple_build_version__) && __clang_major__ >= 19 && \
    ((defined(__x86_64__) && !defined(__ILP32__)) || defined(__aarch64__))
#define ACO_SWITCHING __attribute__((preserve_none))
#elif !defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 16 && defined(__x86_64__) && !defined(__ILP32__)
#define ACO_SWITCHING __attribute__((preserve_none))
#else /* older clang warns, and ignores it */
#define ACO_SWITCHING
#endif

#if defined(ACO_CONFIG_NO_SWITCHING) || !defined(__has_attribute) || defined(__ILP32__) || !defined(__x86_64__)
#define ACO_ENTRY
#elif !defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 14
#define ACO_ENTRY __attribute__((no_callee_saved_registers))
#else
#define ACO_ENTRY ACO_SWITCHING
#endif
#define ACO_ENTRY_POINT(function) ((aco_cofuncp_t)(function))

#endif
