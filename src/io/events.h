/* The system's events: epoll.c. Another system has another file with these four; it also needs its
 * entries of src/system/, linux_bsd.h and a line of src/sources.txt. */
#ifndef ACO_IO_EVENTS_H
#define ACO_IO_EVENTS_H

#include "io/descriptor.h"

/* Fills in base.poll, base.wake, watch, forget, events and wake. `ready` is called for each event of a descriptor, and
 * base.poll counts itself in the statistics. 0, or -1 and errno. */
ACO__HIDDEN int aco__io_events_open(aco__io_t *io);
ACO__HIDDEN void aco__io_events_close(const aco__io_t *io);
/* Watches the directions `what`, edge-triggered; if one of them is ready now, that is an event too. `before`: those
 * watched so far. 0, or -1 and errno. */
ACO__HIDDEN int aco__io_events_watch(aco__io_t *io, int fd, uint32_t generation, unsigned what, unsigned before);
/* The end of watching d->armed, before the number is closed or given up. It cannot fail. */
ACO__HIDDEN void aco__io_events_forget(aco__io_t *io, aco__io_fd_t *d);

#endif
