/* What callers pass: arguments.c. */
#ifndef ACO_LIBC_ARGUMENTS_H
#define ACO_LIBC_ARGUMENTS_H

#include "libc/libc.h"

/* Whether the memory is there, to be read: a system call for each page of it. */
ACO__HIDDEN int aco__hook_can_read(const void *p, size_t n);
/* The bytes of a text, with its end; 0: not all of it can be read. */
ACO__HIDDEN size_t aco__hook_text_size(const char *text);
/* Whether the vector is one that the system takes, and not empty. */
ACO__HIDDEN int aco__is_vector(const struct iovec *parts, int count);
/* Whether the time is one that the system takes: it can be read, is not negative, and its fraction is less than 1 s. */
ACO__HIDDEN int aco__hook_is_time(const struct timespec *time);
/* A time that is not negative, for aco_after(). */
ACO__HIDDEN int64_t aco__hook_ns(int64_t seconds, int64_t ns);

#endif
