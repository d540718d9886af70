/* Calls that wait for a descriptor: transfer.c. */
#ifndef ACO_IO_TRANSFER_H
#define ACO_IO_TRANSFER_H

#include "io/descriptor.h"

/* Makes the call once(d, args), and again after waits until it does not fail with EAGAIN. `wanted`: the bytes that a
 * call that reads asked for; 0: unknown. Returns what `once` does, or -1 and errno. */
ACO__SWITCHES
ACO__HIDDEN ssize_t aco__io_transfer(const char *call, int fd, int direction, size_t wanted,
                                     ssize_t (*once)(aco__io_fd_t *d, void *args), void *args, const char *location);

/* read(): of a TCP socket by recv(), which takes the kernel less time. */
ACO__HIDDEN ssize_t aco__io_read_once(const aco__io_fd_t *d, void *p, size_t n);

#endif
