/* shared_port.c: whether a port of TCP is shared by all that have it. */
#ifndef ACO_SHARED_PORT_H
#define ACO_SHARED_PORT_H

#include "sim/endpoint.h"

/* Whether the socket may bind to its port, or listen there, whatever options the others have now. */
ACO__HIDDEN int aco__sim_port_is_shared(aco_sim_t *sim, const aco__sim_socket_t *socket);
/* It may bind, and will be one of those that have the port; or it is one, and begins to listen. */
ACO__HIDDEN void aco__sim_port_note(aco_sim_t *sim, aco__sim_socket_t *socket);
/* It gets the port without bind(): of a listener, or one that the system has chosen. */
ACO__HIDDEN void aco__sim_port_join(aco_sim_t *sim, aco__sim_socket_t *socket);

#endif
