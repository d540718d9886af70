/* disk.c: a simulated disk, its faults and its crash. */
#ifndef ACO_DISK_H
#define ACO_DISK_H

#include "sim/tree.h"

#include "aco/sim.h"

enum { ACO__SIM_SMALL_SECTOR = 512, ACO__SIM_LARGE_SECTOR = 4096 };

typedef struct aco__sim_disk {
    aco__sim_tree_t tree;
    aco_sim_disk_t options;
    size_t sector, drawn_sector; /* drawn: what the seed has chosen */
    int has_fault;              /* of the nemesis */
    uint64_t crashes;           /* files that were open before the last one are dead */
} aco__sim_disk_t;

/* A new disk, which is empty. */
ACO__HIDDEN void aco__sim_disk_begin(aco_sim_t *sim, aco__sim_disk_t *disk);
/* It behaves so from now on. */
ACO__HIDDEN void aco__sim_disk_set(aco__sim_disk_t *disk, const aco_sim_disk_t *options);
/* No file of it is open. */
ACO__HIDDEN void aco__sim_disk_end(aco__sim_disk_t *disk);
/* The disk that calls of the running task reach. */
ACO__HIDDEN aco__sim_disk_t *aco__sim_disk_here(aco_sim_t *sim);
/* The machine of the disk loses its power. Files stay open, and are dead. */
ACO__HIDDEN void aco__sim_disk_crash(aco_sim_t *sim, aco__sim_disk_t *disk);
/* How many nanoseconds a call takes now. */
ACO__HIDDEN int64_t aco__sim_disk_time(aco_sim_t *sim, const aco__sim_disk_t *disk);
/* 1 with this chance, which the seed decides. */
ACO__HIDDEN int aco__sim_disk_maybe(aco_sim_t *sim, double chance);
/* How many of `n` bytes a read or write moves. */
ACO__HIDDEN size_t aco__sim_disk_part(aco_sim_t *sim, const aco__sim_disk_t *disk, size_t n);

#endif
