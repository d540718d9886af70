/* passed.c: descriptors that go along with bytes by a unix socket (SCM_RIGHTS). */
#ifndef ACO_PASSED_H
#define ACO_PASSED_H

#include "sim/opened.h"

/* The files of one message. On its way a file is open as by a descriptor. */
typedef struct aco__sim_passed {
    struct aco__sim_passed *next;
    size_t at, n;               /* its first byte in the sender's queue, and how many it has there */
    size_t count;
    aco__sim_file_t *files[];
} aco__sim_passed_t;

/* Stores what the control messages of `message` pass in *passed; NULL: nothing. 0, or -1 and errno. */
ACO__HIDDEN int aco__sim_passed_take(aco_sim_t *sim, const struct msghdr *message, aco__sim_passed_t **passed);
/* Nobody gets them, or those of a list. NULL: nothing happens. */
ACO__HIDDEN void aco__sim_passed_drop(aco_sim_t *sim, aco__sim_passed_t *passed);
/* Appends them to a sender's list, with the place and size of their message. */
ACO__HIDDEN void aco__sim_passed_append(aco__sim_passed_t **list, aco__sim_passed_t *passed, size_t at, size_t n);
/* How many of the first `n` bytes of the queue one read gets: it ends with a message that has descriptors. */
ACO__HIDDEN size_t aco__sim_passed_limit(const aco__sim_passed_t *list, size_t n);
/* The first `n` bytes are read, maybe none. The descriptors of the first one are received: the control buffer of
 * `message` then begins behind what was written there. `flags`: MSG_PEEK and MSG_CMSG_CLOEXEC count. */
ACO__HIDDEN void aco__sim_passed_receive(aco_sim_t *sim, aco__sim_passed_t **list, size_t n, struct msghdr *message,
                                         int flags);
ACO__HIDDEN void aco__sim_passed_close(aco_sim_t *sim, aco__sim_passed_t **list);
ACO__HIDDEN void aco__sim_passed_free(aco__sim_passed_t **list); /* at a run's end: the files go by themselves */

#endif
