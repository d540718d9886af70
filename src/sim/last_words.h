/* last_words.c: which seed runs while the process dies. */
#ifndef ACO_LAST_WORDS_H
#define ACO_LAST_WORDS_H

#include "sim/notes.h"

#include "aco/sim.h"

/* Prints the command that repeats a seed, or a run in short: `replay`, or NULL; async-signal-safe. */
typedef struct aco__sim_command {
    void (*print)(const struct aco__sim_command *command, uint64_t seed, const char *replay);
    const char *program;        /* its name and its own arguments */
} aco__sim_command_t;

/* From now on until aco__last_words_end(), the end of the process prints the seed that runs, the run's last events, and
 * `command`, if that is not NULL. */
ACO__HIDDEN void aco__last_words_begin(const aco__sim_notes_t *notes, const aco__sim_command_t *command);
ACO__HIDDEN void aco__last_words_of(uint64_t seed); /* it runs from now on */
/* Prints the seed that runs, this reason and the rest, once for each seed. */
ACO__HIDDEN void aco__last_words_tell(const char *why);
/* From now on, the file repeats the run; NULL: the seed does. */
ACO__HIDDEN void aco__last_words_replay(const char *file);
/* This is a child process, which is to say its last words, too: of this seed. */
ACO__HIDDEN void aco__last_words_in_child(uint64_t seed);
ACO__HIDDEN void aco__last_words_end(void);
/* Whether the calling thread handles a signal that ends the process, or may. */
ACO__HIDDEN int aco__last_words_handles(void);

#endif
