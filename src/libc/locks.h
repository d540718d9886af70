/* What locks.c has for the beginning. */
#ifndef ACO_LIBC_LOCKS_H
#define ACO_LIBC_LOCKS_H

#include "libc/libc.h"

/* The calling thread will have hooked tasks. */
ACO__HIDDEN void aco__hook_locks_begin(void);

#endif
