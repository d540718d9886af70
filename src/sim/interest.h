/* interest.c: which files an epoll watches, and which of them may be ready. */
#ifndef ACO_INTEREST_H
#define ACO_INTEREST_H

#include "sim/opened.h"

typedef struct aco__sim_epoll {
    aco__sim_file_t file;
    aco__links_t watches, ready; /* lists of aco__sim_watch_t */
} aco__sim_epoll_t;

/* Something has happened to the file: these EPOLL…, or ~0u: whatever is watched. */
ACO__HIDDEN void aco__sim_notify(aco__sim_file_t *file, unsigned events);
/* Watches the file from now on; an event comes at once for what is the case. */
ACO__HIDDEN void aco__sim_watch(aco__sim_watch_t *watch, const struct epoll_event *event);
ACO__HIDDEN void aco__sim_watch_free(aco__sim_watch_t *watch);
/* The file ends, or the epoll does. */
ACO__HIDDEN void aco__sim_unwatch_file(aco__sim_file_t *file);
ACO__HIDDEN void aco__sim_unwatch_all(aco__sim_epoll_t *epoll);
/* Stores what is ready, and takes edges out. */
ACO__HIDDEN int aco__sim_collect(aco__sim_epoll_t *epoll, struct epoll_event *events, int room);
/* Whether a file is ready. */
ACO__HIDDEN int aco__sim_has_ready(const aco__sim_epoll_t *epoll);

#endif
