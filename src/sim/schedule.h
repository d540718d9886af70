/* schedule.c: which task has the next turn. */
#ifndef ACO_SCHEDULE_H
#define ACO_SCHEDULE_H

#include "sim/decisions.h"

#include "aco/sim.h"

/* A task that has had a chance to run, and has not ended. */
typedef struct aco__sim_task {
    aco_t *task;       /* NULL: an empty entry */
    uint64_t number;   /* of tasks in a run: in the order in which they could run first */
    uint64_t priority; /* ACO_SIM_PCT: the highest runs */
    aco_sim_node_t *node; /* NULL: on another thread than the first */
} aco__sim_task_t;

/* A task that can run. */
typedef struct aco__sim_runnable {
    aco_t *task;
    uint64_t number;
    uint64_t key; /* ACO_SIM_PCT: its priority. ACO_SIM_FIFO: `order` */
    uint64_t order; /* the sooner it came, the higher */
    aco_sim_node_t *node;
} aco__sim_runnable_t;

enum { ACO__SIM_MOST_CHANGES = 64 };

typedef struct aco__sim_schedule {
    aco_sim_schedule_t kind; /* not ACO_SIM_MIXED */
    aco__sim_decisions_t *decisions; /* to record or repeat; NULL: none. It is set before a run begins */
    uint64_t draws;          /* the state of its random numbers */
    aco__sim_task_t *tasks;  /* a hash table by address */
    size_t room, used;       /* room: 0, or a power of two; at most half of it is used */
    aco__sim_runnable_t *runnable; /* but the poll task. A heap by key: the highest is first. At random it is no heap;
                                      in a replay they stand as they came */
    size_t runnable_count, runnable_room;
    aco__sim_runnable_t *aside; /* that could run, but their nodes are suspended: in the order in which they came */
    size_t aside_count, aside_room;
    aco_t *poll;             /* the poll task, if it can run, or NULL */
    uint64_t poll_order;     /* as the others have */
    uint64_t next_order;
    uint64_t numbers;        /* that were given */
    const aco_t *last;       /* what had the last turn; NULL: it has ended, was lowered, or there was none */
    uint64_t turns;
    uint64_t changes[ACO__SIM_MOST_CHANGES]; /* the turns after which a priority changes */
    int changes_count;
    int lacks_memory;        /* for a task that can run */
    uint64_t lowest;         /* the next priority below all others */
} aco__sim_schedule_t;

/* A run begins. `kind` may be ACO_SIM_MIXED. */
ACO__HIDDEN void aco__schedule_begin(aco__sim_schedule_t *schedule, aco_sim_schedule_t kind, int changes,
                                     uint64_t seed);
/* The task can run, from now on or again. One that is new is of this node. */
ACO__HIDDEN void aco__schedule_add(aco__sim_schedule_t *schedule, aco_t *task, aco_sim_node_t *node);
/* The task, which is new, is of this node, whoever has spawned it. 0, or -1 without memory. */
ACO__HIDDEN int aco__schedule_enroll(aco__sim_schedule_t *schedule, aco_t *task, aco_sim_node_t *node);
/* Takes all tasks of the node out, in the order of their numbers; *tasks is to be freed. Returns how many they are;
 * SIZE_MAX without memory. */
ACO__HIDDEN size_t aco__schedule_take(aco__sim_schedule_t *schedule, aco_sim_node_t *node,
                                      aco__sim_task_t **tasks);
/* All tasks, whatever their nodes, in the order of their numbers; otherwise as above. */
ACO__HIDDEN size_t aco__schedule_list(const aco__sim_schedule_t *schedule, aco__sim_task_t **tasks);
/* The same, and takes them out. */
ACO__HIDDEN size_t aco__schedule_take_all(aco__sim_schedule_t *schedule, aco__sim_task_t **tasks);
/* Likewise the poll task, which may be added already. */
ACO__HIDDEN void aco__schedule_add_poll(aco__sim_schedule_t *schedule, aco_t *poll);
/* The node's tasks have no turns from now on; or they have again. node->is_suspended has changed. */
ACO__HIDDEN void aco__schedule_suspend(aco__sim_schedule_t *schedule, const aco_sim_node_t *node);
ACO__HIDDEN void aco__schedule_resume(aco__sim_schedule_t *schedule, const aco_sim_node_t *node);
/* Chooses what has the next turn and removes it; its number, 0 for the poll task, its node, NULL for the poll task, and
 * how many could run besides the poll task. Returns NULL if none can run. */
ACO__HIDDEN aco_t *aco__schedule_choose(aco__sim_schedule_t *schedule, uint64_t *number, aco_sim_node_t **node,
                                        uint64_t *count);
ACO__HIDDEN void aco__schedule_ended(aco__sim_schedule_t *schedule, const aco_t *task);
ACO__HIDDEN void aco__schedule_free(aco__sim_schedule_t *schedule);

#endif
