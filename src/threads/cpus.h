/* Processors: cpus.c. */
#ifndef ACO_THREADS_CPUS_H
#define ACO_THREADS_CPUS_H

#include "os/platform.h"

/* Where a thread runs. -1: not known, or the machine does not say. */
typedef struct aco__place {
    int node;  /* of memory */
    int cache; /* the largest: the first processor that has it */
} aco__place_t;

typedef struct aco__processors {
    unsigned long bits[128];
} aco__processors_t;

/* How many processors the cgroup files below `root` ("": the system's) allow; 0: no limit. */
ACO__HIDDEN int aco__threads_quota(const char *root);
/* The processors that the calling thread may use: how many. */
ACO__HIDDEN int aco__threads_processors(aco__processors_t *allowed);
/* aco_threads_usable(), with the cgroup files below `root`. */
ACO__HIDDEN int aco__threads_usable(const char *root);
/* Binds the calling thread to the nth of them, from 0 on, if there is one: its number, else -1; and to all. */
ACO__HIDDEN int aco__threads_pin(const aco__processors_t *allowed, int n);
ACO__HIDDEN void aco__threads_unpin(const aco__processors_t *allowed);

/* Where a processor is, from the files below `root`. */
ACO__HIDDEN aco__place_t aco__threads_place(const char *root, int processor);

#endif
