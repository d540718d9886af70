/* ACO_POLLER: uring_poller.c. */
#ifndef ACO_IO_URING_POLLER_H
#define ACO_IO_URING_POLLER_H

#include "io/descriptor.h"

/* Has the ring watch descriptors, if the environment wants that. 0, or -1 and errno. */
ACO__HIDDEN int aco__io_choose_poller(aco__io_t *io, const char *call);

#endif
