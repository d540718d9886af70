/* backtrace.c: what other files need of it. */
#ifndef ACO_BACKTRACE_INTERNAL_H
#define ACO_BACKTRACE_INTERNAL_H

#include "tools/tools.h"

/* In a signal handler that interrupted a coroutine: prints its frames on stderr, at most 32, as "acorn: CALL: #0 …".
 * `handler_returns`: the return address of the handler's first function. Another thread has called the second function
 * before. */
ACO__HIDDEN void aco__backtrace_interrupted(const char *call, const void *handler_returns);
ACO__HIDDEN void aco__backtrace_prepare(void);

#endif
