/* A server's connections of HTTP/1: http1_server.c. */
#ifndef ACO_HTTP_HTTP1_SERVER_H
#define ACO_HTTP_HTTP1_SERVER_H

#include "http/server.h"

struct aco__http_move;

/* Gives a connection its task, in the server's group. `address`: that counts it, or NULL. `move`: how it came from
 * another thread's server; NULL: it is new. 0, or -1 and errno: the descriptor is still the caller's. */
ACO__SWITCHES
ACO__HIDDEN int aco__http_connect(aco_http_server_t *server, int fd, struct aco__http_address *address,
                                  const struct aco__http_move *move, const char *location);
/* Sends the output of earlier replies while handlers wait. */
ACO__SWITCHES ACO__HIDDEN void aco__http_send_unflushed(aco_http_server_t *server);
/* Frees memory that was kept for requests. */
ACO__HIDDEN void aco__http_free_spare(aco_http_server_t *server);

#endif
