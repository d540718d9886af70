/* Who runs when, for the people who look at a program: a file in the trace event format of Chrome and Perfetto, and USDT probes.
 * In a process that is traced all coroutines have ACO__INSTRUMENTED from the beginning (hooks/hooks.h), so that all of their switches come
 * by here, whatever their code was compiled with; in any other nothing is asked at a switch. */
#ifndef ACO_TRACE_H
#define ACO_TRACE_H

#include "hooks/hooks.h"

#if !defined(ACO_CONFIG_NO_TRACE) && !defined(_WIN32)

/* For a process that is traced. A coroutine is made or made anew; is about to run; has ended; has stopped running. Of those
 * that were not made so, generators, nothing is said. */
ACO__HIDDEN void aco__trace_new(aco_t *co);
ACO__HIDDEN void aco__trace_runs(const aco_t *co);
ACO__HIDDEN void aco__trace_ended(const aco_t *co);
ACO__HIDDEN void aco__trace_stops(const aco_t *co);

#else

static inline void aco__trace_new(aco_t *co)
{
    (void)co;
}
static inline void aco__trace_runs(const aco_t *co)
{
    (void)co;
}
static inline void aco__trace_ended(const aco_t *co)
{
    (void)co;
}
static inline void aco__trace_stops(const aco_t *co)
{
    (void)co;
}

#endif
#endif
