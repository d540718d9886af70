/* waiting.c: eventfd, and the calls that wait for descriptors: epoll, poll(). */
#ifndef ACO_WAITING_H
#define ACO_WAITING_H

#include "sim/opened.h"

/* For a call that is about to wait with all tasks: whether it must not, and fails with errno EAGAIN
 * (aco__chooser_try()). */
ACO__HIDDEN int aco__sim_must_not_wait(aco_sim_t *sim);
ACO__HIDDEN int aco__sim_is_epoll(const aco__sim_file_t *file);
/* Lets the time pass until something arrives, for a call for `file` that waits with all tasks. -1 and errno: the run
 * fails, for it would wait for ever; EBADF: another thread has closed the file, which is gone; or EAGAIN: it must not
 * wait. */
ACO__HIDDEN int aco__sim_block(aco_sim_t *sim, aco__sim_file_t *file, const char *call);

#endif
