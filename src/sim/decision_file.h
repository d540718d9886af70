/* decision_file.c: a run that was shortened, as a file for people and for --replay. */
#ifndef ACO_DECISION_FILE_H
#define ACO_DECISION_FILE_H

#include "sim/decisions.h"

#include "aco/sim.h"

enum { ACO__SIM_PROGRAM = 512 };

/* What a file holds. */
typedef struct aco__sim_recorded {
    char program[ACO__SIM_PROGRAM]; /* its name and its own arguments */
    char reason[ACO_SIM_REASON_SIZE];
    uint64_t seed, max_turns;
    int64_t turn_ns;
    aco__sim_decisions_t decisions;
} aco__sim_recorded_t;

/* Writes the file; "-": to stdout. 0, or -1 and errno. */
ACO__HIDDEN int aco__sim_recorded_write(const aco__sim_recorded_t *recorded, const char *path);
/* Reads it. 0; or -1 and errno, with a message for aco_error_message(): EINVAL (it is no such file, or one of another
 * program than `program`), or why it cannot be read. In both cases aco__sim_recorded_free() is to be called. */
ACO__HIDDEN int aco__sim_recorded_read(aco__sim_recorded_t *recorded, const char *path, const char *program,
                                       const char *call);
ACO__HIDDEN void aco__sim_recorded_free(aco__sim_recorded_t *recorded);

#endif
