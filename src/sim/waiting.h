/* waiting.c: eventfd, and the calls that wait for descriptors: epoll, poll(). */
#ifndef ACO_WAITING_H
#define ACO_WAITING_H

#include "sim/opened.h"

/* Lets the time pass until something arrives, for a call for `file` that waits with all tasks. -1 and errno: the run
 * fails, for it would wait for ever; or EBADF: another thread has closed the file, which is gone. */
ACO__HIDDEN int aco__sim_block(aco_sim_t *sim, aco__sim_file_t *file, const char *call);

#endif
