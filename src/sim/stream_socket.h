/* stream_socket.c: sockets of connections: TCP, and unix ones of streams or of records. */
#ifndef ACO_SIM_STREAM_SOCKET_H
#define ACO_SIM_STREAM_SOCKET_H

#include "sim/endpoint.h"

/* A new socket without a descriptor; NULL and errno. `type`: SOCK_STREAM, or SOCK_SEQPACKET of a unix socket. */
ACO__HIDDEN aco__sim_socket_t *aco__sim_stream_new(aco_sim_t *sim, int family, int type, int flags);
/* Each returns 0, or -1 and errno. */
ACO__HIDDEN int aco__sim_stream_listen(aco_sim_t *sim, aco__sim_socket_t *socket, int backlog);
ACO__HIDDEN int aco__sim_stream_connect(aco_sim_t *sim, aco__sim_socket_t *socket, const struct sockaddr *address,
                                        socklen_t length);
ACO__HIDDEN int aco__sim_stream_shutdown(aco_sim_t *sim, aco__sim_socket_t *socket, int how);
/* The connection that has waited longest; NULL and errno. */
ACO__HIDDEN aco__sim_socket_t *aco__sim_stream_accept(aco_sim_t *sim, aco__sim_socket_t *listener);
/* Connects two unix sockets with each other. */
ACO__HIDDEN void aco__sim_stream_pair(aco__sim_socket_t *a, aco__sim_socket_t *b);
/* How many bytes can be read. */
ACO__HIDDEN size_t aco__sim_stream_unread(const aco__sim_socket_t *socket);
/* Whether it has no connection any more: both ends have arrived, or it was reset. */
ACO__HIDDEN int aco__sim_stream_is_over(const aco__sim_socket_t *socket);

#endif
