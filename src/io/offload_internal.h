/* What offload.c has for other calls. */
#ifndef ACO_IO_OFFLOAD_INTERNAL_H
#define ACO_IO_OFFLOAD_INTERNAL_H

#include "base/invariants.h"

/* aco_offload() by the call of this name, for a function that calls the system for files. In a simulation the calling
 * task calls it, after a wait as long as the disk takes. If a system call in it has to wait for somebody, the pool
 * calls the function again. */
ACO__SWITCHES
ACO__HIDDEN int aco__io_offload_file(const char *call, void *(*fn)(void *arg), void *arg,
                                     void (*release)(void *arg, void *result), const char *location);

#endif
