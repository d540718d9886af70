/* What websocket.c has for the server. */
#ifndef ACO_HTTP_WEBSOCKET_INTERNAL_H
#define ACO_HTTP_WEBSOCKET_INTERNAL_H

#include "http/request.h"

/* The handler has returned. */
ACO__SWITCHES ACO__HIDDEN void aco__http_end_websocket(aco__http_exchange_t *x, const char *location);

#endif
