/* Calls before the table of libc's functions is filled in: early.c. */
#ifndef ACO_LIBC_EARLY_H
#define ACO_LIBC_EARLY_H

#include "libc/libc.h"

/* The table is filled in: early calls look nothing up from now on. Waits for those that do. Then the caller may have
 * the loader allocate under its lock: a thread in a look-up could wait for it with the allocator's lock held. */
ACO__HIDDEN void aco__libc_end_look_ups(void);

#endif
