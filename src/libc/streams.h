/* Descriptors that are no sockets, and those that do not block for a while: streams.c. */
#ifndef ACO_LIBC_STREAMS_H
#define ACO_LIBC_STREAMS_H

#include "libc/libc.h"

ACO__SWITCHES ACO__HIDDEN ssize_t aco__hook_read_other(int fd, const struct iovec *parts, size_t count);
ACO__SWITCHES ACO__HIDDEN ssize_t aco__hook_write_other(int fd, const struct iovec *parts, size_t count);

/* For what knows no MSG_DONTWAIT: connect(), accept(), sendfile(). The descriptor is non-blocking between the two.
 * Whoever shares it with the task, another thread or process, can see that. Returns its flags; -1 and errno. */
ACO__HIDDEN int aco__hook_unblock(int fd);
/* Keeps errno. */
ACO__HIDDEN void aco__hook_block_again(int fd, int flags);

#endif
