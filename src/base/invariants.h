/* Invariants that the library checks itself, in debug builds of the library (ACORN_INVARIANTS) and under sanitizers. In
 * other builds they are nothing.
 *
 * A no-switch section is work on what other tasks share: no task may switch inside. A call that can switch says so by
 * ACO__MAY_SWITCH() at its beginning, also for the case that it does not need to this time; inside a section it aborts
 * and names both places. Sections nest. One begins and ends on one thread.
 *
 * A locked section is a no-switch section in which the thread holds a lock. It begins before the thread waits for the
 * lock: a thread that takes it twice aborts instead of waiting for itself. Any address names a lock.
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
ACO_API void aco__sections_forget(void); /* the thread has left its frames, with all sections and locks */
ACO_API void aco__locked_begin(const void *lock, const char *place);
ACO_API void aco__locked_end(const void *lock, const char *place);
/* Whether the calling thread is in a section with this lock: for ACO__ASSERT(). */
ACO_API int aco__holds(const void *lock);
ACO_API void aco__may_switch(const char *call, const char *location, const char *place);

/* If it does not hold, aborts with the condition, the place and the running coroutine. It must change nothing. */
#define ACO__ASSERT(condition) ((condition) ? (void)0 : aco__invariant_broken(#condition, ACO__PLACE))
#define ACO__NO_SWITCH_BEGIN() aco__no_switch_begin(ACO__PLACE)
#define ACO__NO_SWITCH_END() aco__no_switch_end(ACO__PLACE)
#define ACO__SECTIONS_FORGET() aco__sections_forget()
#define ACO__LOCKED_BEGIN(lock) aco__locked_begin(lock, ACO__PLACE)
#define ACO__LOCKED_END(lock) aco__locked_end(lock, ACO__PLACE)
#define ACO__ASSERT_LOCKED(lock) ACO__ASSERT(aco__holds(lock))
/* `location`: the user's place; or NULL. */
#define ACO__MAY_SWITCH(call, location) aco__may_switch(call, location, ACO__PLACE)
#else
#define ACO__ASSERT(condition) ((void)0)
#define ACO__NO_SWITCH_BEGIN() ((void)0)
#define ACO__NO_SWITCH_END() ((void)0)
#define ACO__SECTIONS_FORGET() ((void)0)
#define ACO__LOCKED_BEGIN(lock) ((void)0)
#define ACO__LOCKED_END(lock) ((void)0)
#define ACO__ASSERT_LOCKED(lock) ((void)0)
#define ACO__MAY_SWITCH(call, location) ((void)0)
#endif

#endif
