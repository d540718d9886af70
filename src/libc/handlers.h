/* How signal handlers end waits: handlers.c. */
#ifndef ACO_LIBC_HANDLERS_H
#define ACO_LIBC_HANDLERS_H

#include "libc/libc.h"

/* From now on handlers of signals that run on the calling thread end its waits. */
ACO__HIDDEN void aco__hook_signals_begin(void);

#endif
