/* Connections that fail: failure.c. */
#ifndef ACO_HTTP_FAILURE_H
#define ACO_HTTP_FAILURE_H

#include "http/server.h"

/* A connection has failed: counts and tells it. The caller sets what is known: the kind if it is a handshake, the
 * errno, the descriptor and the request. */
ACO__SWITCHES ACO__HIDDEN void aco__http_report(aco_http_server_t *server, aco_http_failure_t *failure);

#endif
