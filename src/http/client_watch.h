/* Who watches whether clients go away: client_watch.c. */
#ifndef ACO_HTTP_CLIENT_WATCH_H
#define ACO_HTTP_CLIENT_WATCH_H

#include "base/invariants.h"

struct aco__http_exchange;

/* The connection is no client's any more: nobody looks at it from now on. Does not switch. */
ACO__HIDDEN void aco__http_stop_watching(struct aco__http_exchange *x);

/* The client of this request has left, in a version that tells. Does not switch. */
ACO__HIDDEN void aco__http_client_left(struct aco__http_exchange *x);

#endif
