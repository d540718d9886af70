/* What files.c has for other hooks. */
#ifndef ACO_LIBC_FILES_H
#define ACO_LIBC_FILES_H

#include "libc/libc.h"

/* readv() and writev() of a file or block device. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__hook_move_file(int fd, const struct iovec *parts, size_t count, int is_write);

#endif
