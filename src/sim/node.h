/* node.c: the nodes of a run: their names, addresses and tasks. */
#ifndef ACO_NODE_H
#define ACO_NODE_H

#include "base/invariants.h"
#include "sim/disk.h"
#include "sim/history.h"

#include "aco/detail/chooser.h"
#include "aco/sim.h"

#include <netinet/in.h>

enum { ACO__SIM_MOST_ADDRESSES = 8 };

struct aco_sim_node_s {
    aco_sim_t *sim;
    aco_sim_node_t *next;       /* in the order in which they were made */
    char name[ACO_SIM_NODE_NAME_SIZE];
    uint64_t number;            /* 0: the scenario's node */
    aco_function_t function;
    void *arg;
    struct in6_addr addresses[ACO__SIM_MOST_ADDRESSES]; /* IPv4 ones as ::ffff:… */
    int addresses_count;
    aco__sim_disk_t disk;       /* lasts when the node crashes */
    struct aco__sim_wire *wires; /* that were used, to other nodes and to itself */
    size_t tasks;               /* that the first thread's schedule knows */
    int has_threads;            /* aco_sim_node_main(): its function is called on a thread of the node's own */
    int is_stopping;            /* it crashes as soon as all its threads are at rest */
    uint64_t pool[ACO__CHOOSER_POOL]; /* of its threads for aco_offload() */
    uint64_t signals;           /* that wait for one of its threads: bits */
    uint64_t blocked_for_good;  /* aco__chooser_t.signals */
    int is_up;                  /* it was started, and has not crashed since */
    int is_dark;                /* it has crashed with its whole machine: nothing comes from it, or to it */
    int is_suspended;           /* its tasks have no turns */
    int64_t clock_offset, clock_since; /* its wall clock differs by so much, since then */
    int clock_drift;            /* and by so many millionths of the time since then */
    aco_sim_crash_t how_to_crash;
    int is_to_crash, is_to_start; /* when the running task's turn ends */
};

typedef struct aco__sim_nodes {
    aco_sim_node_t scenario;    /* has each address that no other one has, and is the first in the list */
    aco_sim_node_t own;         /* of tasks of the run's own: not in the list */
    aco_sim_node_t *last;
    uint64_t draws;             /* the state of the nemesis's random numbers */
    aco_sim_node_t *here;       /* whose task has its turn; out of turns the scenario's */
    int have_changes;           /* nodes are to crash or to start */
    int have_crashed;           /* a node has: coroutines of its tasks may be left */
} aco__sim_nodes_t;

#define ACO__SIM_EACH_NODE(sim, node) for (aco_sim_node_t *node = (sim)->nodes.scenario.next; node; node = node->next)

ACO__HIDDEN void aco__sim_nodes_begin(aco_sim_t *sim, uint64_t seed);
ACO__HIDDEN void aco__sim_nodes_end(aco_sim_t *sim);
/* Calls `fn` as a detached task of the node. If only the schedule lacks memory, the run fails. 0, or -1 and errno. */
ACO__HIDDEN int aco__sim_spawn(aco_sim_t *sim, aco_sim_node_t *node, const char *name, ACO__SWITCHES aco_function_t fn,
                               void *arg);
/* Between turns: lets nodes crash and start that are to. If the scenario's tasks have ended, all nodes end as in a
 * crash. Returns whether something has changed. */
ACO__HIDDEN int aco__sim_nodes_settle(aco_sim_t *sim);
/* After a crash, at the run's end: destroys tasks that have ended, which nobody joins any more, among `live` coroutines
 * of the thread. */
ACO__HIDDEN void aco__sim_nodes_bury(size_t live);
/* Calls the node's function as a task of the node. */
ACO__HIDDEN void aco__sim_node_start(aco_sim_node_t *node);
/* What the wall clock of the node's tasks is ahead. */
ACO__HIDDEN int64_t aco__sim_node_skew(const aco_sim_node_t *node);
/* What the wall clock of the running node shows: nanoseconds since ACO__SIM_DATE. */
ACO__HIDDEN int64_t aco__sim_node_time(const aco_sim_t *sim);
/* This happens to the node. */
ACO__HIDDEN void aco__sim_node_note(const aco_sim_node_t *node, aco__sim_fault_t fault);
/* Prints what the nodes are, for a run that has come to a halt. */
ACO__HIDDEN void aco__sim_nodes_print(const aco_sim_t *sim);
/* 0 if the node is one of the calling thread's run; else -1 and errno. */
ACO__HIDDEN int aco__sim_node_check(const aco_sim_node_t *node, const char *call);

/* Reads an address, an IPv4 one as ::ffff:…. 0, or -1: it is none. */
ACO__HIDDEN int aco__sim_ip_read(const char *text, struct in6_addr *ip);
/* Which node `from` reaches at this address. */
ACO__HIDDEN aco_sim_node_t *aco__sim_node_at(aco_sim_node_t *from, const struct in6_addr *ip);
/* The address by which the node sends to other nodes of this family. 0, or -1: it has none. */
ACO__HIDDEN int aco__sim_node_source(const aco_sim_node_t *node, int is_ipv4, struct in6_addr *ip);

#endif
