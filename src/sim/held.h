/* held.c: what a call holds while it waits. */
#ifndef ACO_HELD_H
#define ACO_HELD_H

#include "sim/baton.h"

/* A call's own, in its frame: while it waits, the crash of its node may end its thread. */
typedef struct aco__sim_held {
    aco__links_t of_thread;
    struct aco__sim_file *file; /* that it uses; or NULL */
    void *memory;               /* of malloc(); or NULL */
    int fd;                     /* that nobody has got yet; -1: none, as is at first */
} aco__sim_held_t;

/* The calling thread holds the file, and has the memory, until aco__sim_let_go(), or until it leaves its frames. */
ACO__HIDDEN void aco__sim_hold(aco_sim_t *sim, aco__sim_held_t *held, struct aco__sim_file *file, void *memory);
/* It does not need the file any more, closes the descriptor, and frees the memory. errno stays. */
ACO__HIDDEN void aco__sim_let_go(aco_sim_t *sim, aco__sim_held_t *held);
/* The thread leaves its frames: its calls let go what they hold. */
ACO__HIDDEN void aco__sim_let_all_go(aco__sim_thread_t *thread);

#endif
