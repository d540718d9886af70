/* notes_text.c: the last notes of a run as lines for people. */
#ifndef ACO_NOTES_TEXT_H
#define ACO_NOTES_TEXT_H

#include "sim/notes.h"

enum { ACO__SIM_SENTENCE = 224 };

/* What the note says, without its time and its task. Async-signal-safe as far as snprintf() is. */
ACO__HIDDEN void aco__sim_sentence(const aco__sim_note_t *note, char sentence[ACO__SIM_SENTENCE]);
/* Prints the notes that are kept to stderr; nothing if none are. */
ACO__HIDDEN ACO__COLD void aco__sim_notes_print(const aco__sim_notes_t *notes);

#endif
