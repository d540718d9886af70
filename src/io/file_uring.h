/* Files by io_uring: file_uring.c. */
#ifndef ACO_IO_FILE_URING_H
#define ACO_IO_FILE_URING_H

#include "io/file_internal.h"

#ifdef ACO_CONFIG_URING
/* Performs the call; the thread has a ring. 0: it is done. 1: the kernel has cancelled it by itself; the caller has it
 * made otherwise. Or -1 and errno, if a scope ended or the caller cannot wait: then, if the call has a `release`, it is
 * not the caller's any more. */
ACO__SWITCHES ACO__HIDDEN int aco__file_by_ring(aco__io_t *io, file_call_t *c, const char *call, const char *location);
#endif

#endif
