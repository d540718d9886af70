/* io_counts.c: what all threads have counted. */
#ifndef ACO_IO_COUNTS_H
#define ACO_IO_COUNTS_H

#include "io/descriptor.h"

/* A thread's record begins, and ends. */
ACO__HIDDEN void aco__io_counts_join(aco__io_t *io);
ACO__HIDDEN void aco__io_counts_leave(aco__io_t *io);

#endif
