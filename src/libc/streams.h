/* Descriptors that are no sockets: streams.c. */
#ifndef ACO_LIBC_STREAMS_H
#define ACO_LIBC_STREAMS_H

#include "libc/libc.h"

ACO__SWITCHES ACO__HIDDEN ssize_t aco__hook_read_other(int fd, const struct iovec *parts, size_t count);
ACO__SWITCHES ACO__HIDDEN ssize_t aco__hook_write_other(int fd, const struct iovec *parts, size_t count);

#endif
