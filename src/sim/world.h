/* world.c: the run of the calling thread. */
#ifndef ACO_WORLD_H
#define ACO_WORLD_H

#include "base/invariants.h"
#include "sim/arrivals.h"
#include "sim/disk.h"
#include "sim/history.h"
#include "sim/opened.h"
#include "sim/endpoint.h"
#include "sim/schedule.h"
#include "system/system.h"

#include "aco/detail/chooser.h"

#define ACO__SIM_DATE ((int64_t)1000000000 * ACO_SECOND) /* of a run's begin: in September 2001 */
enum { ACO__SIM_MOST_TOLD = 20 }; /* refused calls of a run that are printed */

struct aco_sim_s {
    aco__chooser_t chooser;
    ACO__SWITCHES aco_sim_function_t scenario;
    void *arg;
    aco_sim_options_t options;
    uint64_t seed;
    aco__sim_schedule_t schedule;
    aco__sim_history_t history;
    uint64_t draws;     /* the state of the scenario's random numbers */
    uint64_t delays;    /* the same for how long turns take */
    int64_t now;        /* nanoseconds since the run's begin */
    uint64_t turns;
    uint64_t rounds_without_turn; /* of aco_run(), since the last turn */
    int is_in_turn;     /* a task has its turn, and not aco_run() */
    aco__sim_opened_t opened;
    aco__sim_ports_t ports;
    aco__sim_arrivals_t arrivals;
    aco__sim_disk_t disk;
    uint64_t disk_draws; /* the state of the disk's random numbers */
    int reads_proc;     /* the descriptor of a file of /proc that the library reads now, plus 1; 0: none */
    const char *refused; /* a call of the system that the run will fail for: aco__sim_settle(). NULL: none */
    char refused_in[64]; /* who made it */
    unsigned refusals;
    int has_failed;
    char reason[ACO_SIM_REASON_SIZE];
};

ACO__HIDDEN_EXTERN aco__system_t aco__sim_real; /* the system's table as it was before */

/* The clock jumps to `then`, nanoseconds since the run's begin, unless that has passed. */
ACO__HIDDEN void aco__sim_jump(aco_sim_t *sim, int64_t then);
ACO__HIDDEN void aco__sim_enter(aco_sim_t *sim); /* the calling thread's run; NULL: none any more */
/* A number from 0 up to and without `limit`, or of 64 bits if that is 0, which the seed decides for the disks. */
ACO__HIDDEN uint64_t aco__sim_disk_draw(aco_sim_t *sim, uint64_t limit);
/* aco_sim_fail() with a format. */
ACO__HIDDEN ACO__COLD __attribute__((format(ACO__PRINTF, 2, 3)))
void aco__sim_fail(aco_sim_t *sim, const char *reason, ...);
/* Prints a message with the seed. */
ACO__HIDDEN ACO__COLD __attribute__((format(ACO__PRINTF, 2, 3)))
void aco__sim_say(const aco_sim_t *sim, const char *what, ...);
/* Lets the run fail because of the call that it was refused last, `refused`. */
ACO__HIDDEN ACO__COLD void aco__sim_settle(aco_sim_t *sim);

#endif
