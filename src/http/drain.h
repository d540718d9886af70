/* Scopes that end when their server does: drain.c. */
#ifndef ACO_HTTP_DRAIN_H
#define ACO_HTTP_DRAIN_H

#include "http/request.h"
#include "http/server.h"

/* Ends those that are due: of a server that has been stopped the early ones, of one that is ending all. Does not
 * switch. */
ACO__HIDDEN void aco__http_tell_drains(aco_http_server_t *server);
/* Frees those that the ends of tasks have left behind. */
ACO__HIDDEN void aco__http_free_drains(aco_http_server_t *server);

#endif
