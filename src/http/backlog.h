/* A listener's end: backlog.c. */
#ifndef ACO_HTTP_BACKLOG_H
#define ACO_HTTP_BACKLOG_H

#include "os/platform.h"

/* Has the listener take no new connections. Those that it has begun to take can still be accepted: until after the
 * time that is returned, nanoseconds. */
ACO__HIDDEN int64_t aco__http_close_door(int listener);

/* After that time: whether connections wait that could not be accepted yet. One may be accepted by this, to *taken. */
ACO__HIDDEN int aco__http_has_more(int listener, int *taken);

#endif
