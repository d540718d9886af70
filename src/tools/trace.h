/* Shows which coroutine runs when: a file in the trace event format of Chrome and Perfetto, and USDT probes. In a
 * traced process all coroutines have ACO__INSTRUMENTED from the beginning (tools/tools.h), so all their switches call
 * these functions, whatever options their code was compiled with. Other processes pay nothing at a switch. */
#ifndef ACO_TRACE_H
#define ACO_TRACE_H

#include "tools/tools.h"

#if !defined(ACO_CONFIG_NO_TRACE) && !defined(ACO_CONFIG_LIBACO_ONLY) && !defined(_WIN32)

/* These have an effect only in a traced process. A coroutine is created or restarted; is about to run; has ended; has
 * stopped running. They ignore what was never reported as created, for example generators. */
ACO__HIDDEN void aco__trace_new(aco_t *co);
ACO__HIDDEN void aco__trace_runs(const aco_t *co);
ACO__HIDDEN void aco__trace_ended(const aco_t *co);
ACO__HIDDEN void aco__trace_stops(const aco_t *co);
/* A task begins, and ends, to wait for I/O: a descriptor; -1: for another thread. */
ACO__HIDDEN void aco__trace_waits(const aco_t *co, int fd, int writes, const char *location);
ACO__HIDDEN void aco__trace_waited(const aco_t *co, int fd, int writes, int error);
/* The trace's file ends here, and stderr says why. */
ACO__HIDDEN void aco__trace_end(const char *why);

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
static inline void aco__trace_waits(const aco_t *co, int fd, int writes, const char *location)
{
    (void)co, (void)fd, (void)writes, (void)location;
}
static inline void aco__trace_waited(const aco_t *co, int fd, int writes, int error)
{
    (void)co, (void)fd, (void)writes, (void)error;
}
static inline void aco__trace_end(const char *why)
{
    (void)why;
}

#endif
#endif
