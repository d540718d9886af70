/* Opening files that must be below a folder: file_beneath.c. */
#ifndef ACO_IO_FILE_BENEATH_H
#define ACO_IO_FILE_BENEATH_H

#include "io/file_internal.h"

/* What a thread of the pool does for FILE_OPEN_BENEATH: the call's `path` is the folder, and its `other` the path below
 * it, which stands right behind it. Afterwards `path` is both, with a "/" between. The descriptor, or -1 and errno. */
ACO__HIDDEN int aco__file_open_beneath(const file_call_t *c);

#endif
