/* world.c: the run of the calling thread. The thread with the baton (sim/baton.h) uses it. */
#ifndef ACO_WORLD_H
#define ACO_WORLD_H

#include "base/invariants.h"
#include "sim/arrivals.h"
#include "sim/baton.h"
#include "sim/decisions.h"
#include "sim/history.h"
#include "sim/node.h"
#include "sim/node_threads.h"
#include "sim/notes.h"
#include "sim/opened.h"
#include "sim/endpoint.h"
#include "sim/wire.h"
#include "sim/schedule.h"
#include "system/system.h"

#include "aco/detail/chooser.h"

ACO__HIDDEN_EXTERN aco__system_t aco__sim_real; /* the system's table as it was before */

#define ACO__SIM_DATE ((int64_t)1000000000 * ACO_SECOND) /* of a run's begin: in September 2001 */
enum { ACO__SIM_MOST_TOLD = 20 }; /* refused calls of a run that are printed */

struct aco_sim_s {
    ACO__SWITCHES aco_sim_function_t scenario;
    void *arg;
    aco_sim_options_t options;
    uint64_t seed;
    const char *trace;  /* a file for the trace of the next run; NULL: it has none */
    aco__sim_decisions_t *decisions; /* NULL: they are neither recorded nor repeated */
    aco__sim_threads_t threads;
    aco__sim_history_t history;
    aco__sim_notes_t notes;
    aco_sim_history_t *histories; /* of operations: operations.c */
    uint64_t draws;     /* the state of the scenario's random numbers */
    uint64_t delays;    /* the same for how long turns take */
    uint64_t randoms;   /* and for getrandom() */
    int64_t now;        /* nanoseconds since the run's begin */
    uint64_t turns;
    uint64_t rounds_without_turn; /* of aco_run(), since the last turn */
    int is_in_turn;     /* a task has its turn, and not aco_run() */
    aco__sim_nodes_t nodes;
    struct aco__sim_ending *endings; /* what aco__sim_at_end() has registered: the last one first */
    struct aco__sim_nemesis *nemesis; /* the last one; NULL: there was none */
    aco__sim_opened_t opened;
    aco__sim_ports_t ports;
    aco__sim_arrivals_t arrivals;
    aco__sim_rule_t *rules; /* of wires: the newest first */
    aco__links_t hosts; /* hosts.c's */
    aco_sim_disk_t disk_options; /* of nodes that are made */
    uint64_t disk_draws; /* the state of the disks' random numbers */
    int reads_proc;     /* the descriptor of a file of /proc that the library reads now, plus 1; 0: none */
    const char *refused; /* a call of the system that the run will fail for: aco__sim_settle(). NULL: none */
    char refused_in[64]; /* who made it */
    unsigned refusals;
    int has_failed;
    char reason[ACO_SIM_REASON_SIZE];
};

/* What becomes of a random number from 0 up to and without `limit`, which is 2^64 if that is 0. Each one that a run
 * draws goes through this, so that a shorter run can be found: 0 is then the simplest choice. */
static inline uint64_t aco__sim_decide(aco_sim_t *sim, aco__sim_source_t source, uint64_t drawn, uint64_t limit)
{
    return aco_likely(!sim->decisions) ? drawn : aco__decisions_next(sim->decisions, source, drawn, limit);
}

/* Nanoseconds since the run's begin, `ns` or a time from now on; INT64_MAX: never. */
static inline int64_t aco__sim_after(const aco_sim_t *sim, int64_t ns)
{
    return ns < INT64_MAX - sim->now ? sim->now + ns : INT64_MAX;
}

static inline int64_t aco__sim_nanoseconds(const struct timespec *time)
{
    int64_t seconds = time->tv_sec;
    return seconds > INT64_MAX / ACO_SECOND - 1 ? INT64_MAX : seconds * ACO_SECOND + time->tv_nsec;
}

/* The clock jumps to `then`, nanoseconds since the run's begin, unless that has passed. */
ACO__HIDDEN void aco__sim_jump(aco_sim_t *sim, int64_t then);
ACO__HIDDEN void aco__sim_enter(aco_sim_t *sim); /* the calling thread's run; NULL: none any more */
/* Calls what aco__sim_at_end() has registered. */
ACO__HIDDEN void aco__sim_endings_call(aco_sim_t *sim);
/* A number from 0 up to and without `limit`, or of 64 bits if that is 0, which the seed decides for the disks. */
ACO__HIDDEN uint64_t aco__sim_disk_draw(aco_sim_t *sim, uint64_t limit);
/* aco_sim_fail() with a format. */
ACO__HIDDEN ACO__COLD __attribute__((format(ACO__PRINTF, 2, 3)))
void aco__sim_fail(aco_sim_t *sim, const char *reason, ...);
/* Prints a line with the seed. */
ACO__HIDDEN ACO__COLD __attribute__((format(ACO__PRINTF, 2, 3)))
void aco__sim_say(const aco_sim_t *sim, const char *what, ...);
/* Lets the run fail because of the call that it was refused last, `refused`, if there is one. */
ACO__HIDDEN ACO__COLD void aco__sim_settle_refused(aco_sim_t *sim);
static inline void aco__sim_settle(aco_sim_t *sim)
{
    if (aco_unlikely(sim->refused != NULL))
        aco__sim_settle_refused(sim);
}

/* Puts the stand-ins into the system's table, once. A thread without a run passes through them. */
ACO__HIDDEN void aco__sim_calls_install(void);
/* The run fails, because of this call, which is not simulated. Returns the error for its caller, ENOSYS. */
ACO__HIDDEN ACO__COLD int aco__sim_refuse(aco_sim_t *sim, const char *call);
/* Until aco__scatter_end(), memory, coroutines and stacks come at other addresses, in another order: for a seed's
 * repetition. No run lasts. Without memory it does less. */
ACO__HIDDEN void aco__scatter_begin(uint64_t seed);
ACO__HIDDEN void aco__scatter_end(void);
/* The run is over: its histories are complete, their handles end, and so do the nemeses. */
ACO__HIDDEN void aco__sim_histories_end(aco_sim_t *sim);
ACO__HIDDEN void aco__sim_nemesis_end(aco_sim_t *sim);

/* aco__sim_note() for a socket. `address`: the other end's, or the socket's own. NULL: none. */
ACO__HIDDEN void aco__sim_note_socket(aco_sim_t *sim, aco__sim_noted_t kind, const aco__sim_socket_t *socket,
                                      int64_t value, const aco__sim_address_t *address);
/* Writes all of it to a file of the real system, at this offset; -1: at its position. 0, or -1 and errno. */
ACO__HIDDEN int aco__sim_write_real(int file, const char *text, size_t n, int64_t at);
/* The socket of a descriptor; NULL and errno: as aco__sim_file_of(), or ENOTSOCK. */
ACO__HIDDEN aco__sim_socket_t *aco__sim_socket_at(aco_sim_t *sim, int fd, const char *call);

/* 0 if it is the calling thread's run; else -1 and EINVAL. NULL is none. */
ACO__HIDDEN int aco__sim_check_run(const aco_sim_t *sim, const char *call);
/* The same, if the thread is also the run's first one, on which the nodes are. */
ACO__HIDDEN int aco__sim_check_first(const aco_sim_t *sim, const char *call);

#endif
