/* history.c: what a run has done, as a hash; with a check, each event of a run against those of the run before. */
#ifndef ACO_HISTORY_H
#define ACO_HISTORY_H

#include "os/platform.h"

#include "aco/sim.h"

typedef enum aco__sim_kind {
    ACO__SIM_TURN,   /* `what`: the task's number; `value`: how many could run */
    ACO__SIM_POLL,   /* aco_run() had a turn to look for timers and messages; `value` as above */
    ACO__SIM_TIME,   /* no task could run; `value`: the time that it is now */
    ACO__SIM_CLOCK,  /* a task has read clock number `what`; `value`: the time */
    ACO__SIM_RANDOM, /* the scenario has drawn `value` */
    ACO__SIM_CALL,   /* a call that is not simulated; `what` stands for its name */
    ACO__SIM_DESCRIPTORS, /* call number `what` in the system's table has returned `value`: a result, the
                            number of an open file, or -errno */
    ACO__SIM_SENT,   /* bytes were written to file number `what`; `value`: their hash */
    ACO__SIM_ARRIVAL, /* something has arrived at file number `what`; `value`: the time */
    ACO__SIM_FAULT,  /* node number `what`; `value`: aco__sim_fault_t */
    ACO__SIM_THREAD, /* thread number `what` goes on; `value`: how many could */
    ACO__SIM_END     /* the run has ended; `value`: whether it has failed */
} aco__sim_kind_t;

/* What has happened to a node. */
typedef enum aco__sim_fault {
    ACO__SIM_CRASHED, ACO__SIM_STARTED, ACO__SIM_SUSPENDED, ACO__SIM_RESUMED, ACO__SIM_CLOCK_SET, ACO__SIM_DISK_SET,
    ACO__SIM_SIGNALLED, ACO__SIM_FAULT_KINDS
} aco__sim_fault_t;

/* In words, as what a node did. */
ACO__HIDDEN_EXTERN const char *const aco__sim_fault_names[ACO__SIM_FAULT_KINDS];

typedef struct aco__sim_event {
    aco__sim_kind_t kind;
    uint64_t what, value;
} aco__sim_event_t;

typedef struct aco__sim_history {
    uint64_t hash;
    size_t length;             /* how many events */
    aco__sim_event_t *kept;    /* those of the run to compare with, or of this one; NULL: none is kept */
    size_t kept_length, room;
    int keeps, compares;       /* this run's events; with those kept */
    int has_ended;             /* what comes then does not count: the scheduler is taken down */
    int differs;               /* an event has differed from the kept one, or there is none */
    char difference[ACO_SIM_REASON_SIZE];
} aco__sim_history_t;

/* A run begins. With `keeps` its events are kept, as far as memory lasts; with `compares` they are compared with those
 * that the run before has kept. */
ACO__HIDDEN void aco__history_begin(aco__sim_history_t *history, int keeps, int compares);
ACO__HIDDEN void aco__history_note(aco__sim_history_t *history, aco__sim_kind_t kind, uint64_t what, uint64_t value);
/* A hash of `n` bytes and of what has the hash `before`. */
ACO__HIDDEN uint64_t aco__history_hash(uint64_t before, const void *p, size_t n);
ACO__HIDDEN void aco__history_free(aco__sim_history_t *history);

#endif
