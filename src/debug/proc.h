/* proc.c: what /proc tells of the process. */
#ifndef ACO_PROC_H
#define ACO_PROC_H

#include "os/platform.h"

#include <stddef.h>
#include <stdint.h>

/* Stores the text of a small file, cut, and returns it; "": there is none. */
ACO__HIDDEN const char *aco__proc_text(const char *path, char *text, size_t room);
/* How long ago the process began, in milliseconds; 0: unknown. */
ACO__HIDDEN int64_t aco__proc_age_ms(void);
/* When it began, in nanoseconds since 1970: the same each time. */
ACO__HIDDEN int64_t aco__proc_began(void);

#endif
