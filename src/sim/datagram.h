/* datagram.c: sockets of UDP. */
#ifndef ACO_SIM_DATAGRAM_H
#define ACO_SIM_DATAGRAM_H

#include "sim/endpoint.h"

/* A new socket without a descriptor; NULL and errno. */
ACO__HIDDEN aco__sim_socket_t *aco__sim_datagram_new(aco_sim_t *sim, int family, int flags);
/* It gets a peer; `to` NULL: none any more. 0, or -1 and errno. */
ACO__HIDDEN int aco__sim_datagram_connect(aco_sim_t *sim, aco__sim_socket_t *socket, const aco__sim_address_t *to);

/* What unix sockets have in common with these. */
ACO__HIDDEN unsigned aco__sim_datagram_events(aco__sim_file_t *file);
ACO__HIDDEN ssize_t aco__sim_datagram_receive(aco_sim_t *sim, aco__sim_file_t *file, struct msghdr *message, int flags);
ACO__HIDDEN void aco__sim_datagram_free(aco__sim_file_t *file);
/* One with the first `n` bytes of the message, without addresses; NULL and errno. */
ACO__HIDDEN aco__sim_datagram_t *aco__sim_datagram_make(const struct msghdr *message, size_t n);
ACO__HIDDEN void aco__sim_datagram_enqueue(aco__sim_socket_t *to, aco__sim_datagram_t *datagram);

#endif
