/* node_threads.c: threads of a node, which end in its crash. */
#ifndef ACO_NODE_THREADS_H
#define ACO_NODE_THREADS_H

#include "os/platform.h"

#include "aco/sim.h"

struct aco__sim_thread;

/* On the thread: none of its tasks ever runs again, and no cleanup does. */
ACO__HIDDEN void aco__sim_abandon_tasks(struct aco__sim_thread *thread);

/* On the first thread, between turns: lets the node's threads go on until all are at rest. Then each leaves its frames
 * and ends. If the run fails meanwhile, they stand still. */
ACO__HIDDEN void aco__sim_node_end_threads(aco_sim_t *sim, aco_sim_node_t *node);
/* The same for all nodes of a run that is over, failed or not. */
ACO__HIDDEN void aco__sim_nodes_end_threads(aco_sim_t *sim);

/* A thread at rest of a node that ends its threads: it is to leave its frames, and end. */
ACO__HIDDEN void aco__sim_thread_is_to_leave(struct aco__sim_thread *thread);

#endif
