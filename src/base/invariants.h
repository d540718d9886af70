/* Invariants that the library checks itself, in debug builds of the library (ACORN_INVARIANTS) and under sanitizers. In
 * other builds they are nothing.
 *
 * A no-switch section is work on what other tasks share: no task may switch inside. A call that can switch says so by
 * ACO__MAY_SWITCH() at its beginning, also for the case that it does not need to this time; inside a section it aborts
 * and names both places. Sections nest. One begins and ends on one thread.
 *
 * ACO__SWITCHES stands before each internal function that may let other tasks run, or calls one that may: before the
 * definition of a static one, else before the declaration in an internal header. It stands before a field or parameter
 * too, a pointer through which such a function may be called. tools/may_switch.py checks it over the call graph. */
#ifndef ACO_INVARIANTS_H
#define ACO_INVARIANTS_H

#include "os/platform.h"

#ifndef ACO__SWITCHES /* what checks it gives it a meaning */
#define ACO__SWITCHES
#endif

#if (defined(ACO_CONFIG_INVARIANTS) || defined(ACO__SANITIZED)) && !defined(ACO_CONFIG_LIBACO_ONLY)
#define ACO__INVARIANTS
#endif

#ifdef ACO__INVARIANTS
#define ACO__LINE_TEXT(line) #line
#define ACO__PLACE_OF(file, line) file ":" ACO__LINE_TEXT(line)
#define ACO__PLACE ACO__PLACE_OF(__FILE__, __LINE__)
ACO_API ACO__COLD __attribute__((noreturn)) void aco__invariant_broken(const char *condition, const char *place);
ACO_API void aco__no_switch_begin(const char *place);
ACO_API void aco__no_switch_end(const char *place);
ACO_API void aco__may_switch(const char *call, const char *location, const char *place);

/* Aborts, with the condition and the place, if it does not hold. */
#define ACO__ASSERT(condition) ((condition) ? (void)0 : aco__invariant_broken(#condition, ACO__PLACE))
#define ACO__NO_SWITCH_BEGIN() aco__no_switch_begin(ACO__PLACE)
#define ACO__NO_SWITCH_END() aco__no_switch_end(ACO__PLACE)
/* `location`: the user's place; or NULL. */
#define ACO__MAY_SWITCH(call, location) aco__may_switch(call, location, ACO__PLACE)
#else
#define ACO__ASSERT(condition) ((void)0)
#define ACO__NO_SWITCH_BEGIN() ((void)0)
#define ACO__NO_SWITCH_END() ((void)0)
#define ACO__MAY_SWITCH(call, location) ((void)0)
#endif

#endif
