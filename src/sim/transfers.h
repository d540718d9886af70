/* transfers.c: calls that move bytes or messages. */
#ifndef ACO_TRANSFERS_H
#define ACO_TRANSFERS_H

#include "sim/opened.h"

ACO__HIDDEN ssize_t aco__sim_read(aco_sim_t *sim, int fd, void *p, size_t n);
ACO__HIDDEN ssize_t aco__sim_write(aco_sim_t *sim, int fd, const void *p, size_t n);
ACO__HIDDEN ssize_t aco__sim_readv(aco_sim_t *sim, int fd, const struct iovec *parts, int n);
ACO__HIDDEN ssize_t aco__sim_writev(aco_sim_t *sim, int fd, const struct iovec *parts, int n);
ACO__HIDDEN ssize_t aco__sim_recv(aco_sim_t *sim, int fd, void *p, size_t n, int flags);
ACO__HIDDEN ssize_t aco__sim_recvfrom(aco_sim_t *sim, int fd, void *p, size_t n, int flags, struct sockaddr *from,
                                      socklen_t *length);
ACO__HIDDEN ssize_t aco__sim_recvmsg(aco_sim_t *sim, int fd, struct msghdr *message, int flags);
ACO__HIDDEN ssize_t aco__sim_send(aco_sim_t *sim, int fd, const void *p, size_t n, int flags);
ACO__HIDDEN ssize_t aco__sim_sendto(aco_sim_t *sim, int fd, const void *p, size_t n, int flags,
                                    const struct sockaddr *to, socklen_t length);
ACO__HIDDEN ssize_t aco__sim_sendmsg(aco_sim_t *sim, int fd, const struct msghdr *message, int flags);
ACO__HIDDEN ssize_t aco__sim_splice(aco_sim_t *sim, int from, int64_t *from_offset, int to, int64_t *to_offset,
                                    size_t n, unsigned flags);

#endif
