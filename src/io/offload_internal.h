/* What offload.c has for other calls. */
#ifndef ACO_IO_OFFLOAD_INTERNAL_H
#define ACO_IO_OFFLOAD_INTERNAL_H

#include "base/invariants.h"

/* aco_offload() for a call with this name. */
ACO__SWITCHES
ACO__HIDDEN int aco__io_offload(const char *call, void *(*fn)(void *arg), void *arg, void **result,
                                void (*release)(void *arg, void *result), const char *location);

#endif
