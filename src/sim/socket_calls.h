/* socket_calls.c: calls for sockets, but those that move bytes. */
#ifndef ACO_SOCKET_CALLS_H
#define ACO_SOCKET_CALLS_H

#include "sim/opened.h"

ACO__HIDDEN int aco__sim_socket(aco_sim_t *sim, int family, int type, int protocol);
ACO__HIDDEN int aco__sim_socketpair(aco_sim_t *sim, int family, int type, int protocol, int fds[2]);
ACO__HIDDEN int aco__sim_bind(aco_sim_t *sim, int fd, const struct sockaddr *address, socklen_t length);
ACO__HIDDEN int aco__sim_listen(aco_sim_t *sim, int fd, int backlog);
ACO__HIDDEN int aco__sim_connect(aco_sim_t *sim, int fd, const struct sockaddr *address, socklen_t length);
ACO__HIDDEN int aco__sim_accept4(aco_sim_t *sim, int fd, struct sockaddr *address, socklen_t *length, int flags);
ACO__HIDDEN int aco__sim_getsockopt(aco_sim_t *sim, int fd, int level, int option, void *value, socklen_t *length);
ACO__HIDDEN int aco__sim_setsockopt(aco_sim_t *sim, int fd, int level, int option, const void *value, socklen_t length);
ACO__HIDDEN int aco__sim_getsockname(aco_sim_t *sim, int fd, struct sockaddr *address, socklen_t *length);
ACO__HIDDEN int aco__sim_getpeername(aco_sim_t *sim, int fd, struct sockaddr *address, socklen_t *length);
/* Whether urgent data of TCP comes next, which never does. */
ACO__HIDDEN int aco__sim_ioctl(aco_sim_t *sim, int fd, unsigned long operation, void *last);
ACO__HIDDEN int aco__sim_shutdown(aco_sim_t *sim, int fd, int how);

#endif
