/* unix_datagram.c: unix sockets of datagrams. */
#ifndef ACO_UNIX_DATAGRAM_H
#define ACO_UNIX_DATAGRAM_H

#include "sim/endpoint.h"

/* A new socket without a descriptor; NULL and errno. */
ACO__HIDDEN aco__sim_socket_t *aco__sim_unix_datagram_new(aco_sim_t *sim, int flags);
/* It gets a peer; `to` NULL: none any more. 0, or -1 and errno. */
ACO__HIDDEN int aco__sim_unix_datagram_connect(aco__sim_socket_t *socket, const aco__sim_address_t *to);

#endif
