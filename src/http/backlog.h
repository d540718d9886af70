/* A listener's end: backlog.c. */
#ifndef ACO_HTTP_BACKLOG_H
#define ACO_HTTP_BACKLOG_H

#include "os/platform.h"

/* Has the listener take no new connections. Those that it has begun to take can still be accepted: until after the
 * time that is returned, nanoseconds. */
ACO__HIDDEN int64_t aco__http_close_door(int listener);

/* A descriptor in reserve for the listener's end, if it needs one; -1: none. Who gives it closes it. */
ACO__HIDDEN int aco__http_reserve(int listener);
ACO__HIDDEN void aco__http_give_reserve(int *reserve);

/* After that time: whether connections wait that could not be accepted yet. One may be accepted by this, to *taken. If
 * no descriptor is free, it gives the reserve. */
ACO__HIDDEN int aco__http_has_more(int listener, int *taken, int *reserve);

#endif
