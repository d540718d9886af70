/* waiting.c: eventfd, and the calls that wait for descriptors: epoll, poll(). */
#ifndef ACO_WAITING_H
#define ACO_WAITING_H

#include "sim/opened.h"

#include <poll.h>
#include <time.h>

ACO__HIDDEN int aco__sim_eventfd(aco_sim_t *sim, unsigned value, int flags);
ACO__HIDDEN int aco__sim_epoll_create1(aco_sim_t *sim, int flags);
ACO__HIDDEN int aco__sim_epoll_ctl(aco_sim_t *sim, int epoll, int operation, int fd, struct epoll_event *event);
ACO__HIDDEN int aco__sim_epoll_wait(aco_sim_t *sim, int epoll, struct epoll_event *events, int room, int milliseconds);
ACO__HIDDEN int aco__sim_epoll_pwait2(aco_sim_t *sim, int epoll, struct epoll_event *events, int room,
                                      const struct timespec *limit);
ACO__HIDDEN int aco__sim_poll(aco_sim_t *sim, struct pollfd *fds, nfds_t n, int milliseconds);
/* Lets the time pass until something arrives, for a call that waits with all tasks. -1 and errno: the run fails, for
 * it would wait for ever. */
ACO__HIDDEN int aco__sim_block(aco_sim_t *sim, const char *call);

#endif
