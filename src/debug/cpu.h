/* cpu.c: samples of running threads, by signals. */
#ifndef ACO_CPU_H
#define ACO_CPU_H

#include "debug/samples.h"

#include "aco/detail/inspect.h"

/* Prepares the signal. 0; or -1 and errno EBUSY: the program uses SIGPROF itself. */
ACO__HIDDEN int aco__cpu_prepare(void);
/* Says so. */
ACO__SWITCHES ACO__HIDDEN void aco__cpu_refuse(aco_http_request_t *request);
/* What the thread does at this moment. 0; -1: it takes no signal, or is gone. The caller has begun a profile. */
ACO__SWITCHES ACO__HIDDEN int aco__cpu_look(long thread, aco__sample_t *sample);
/* /debug/pprof/profile */
ACO__SWITCHES ACO__HIDDEN void aco__cpu_page(aco_http_request_t *request, void *unused);

#endif
