/* notes_trace.c: a run's notes as a file in the trace event format, which Perfetto and Chrome show. */
#ifndef ACO_NOTES_TRACE_H
#define ACO_NOTES_TRACE_H

#include "sim/notes.h"

typedef struct aco__sim_trace aco__sim_trace_t;

/* Makes or empties the file. NULL and errno. */
ACO__HIDDEN aco__sim_trace_t *aco__sim_trace_new(const char *path, uint64_t seed);
ACO__HIDDEN void aco__sim_trace_note(aco__sim_trace_t *trace, const aco__sim_note_t *note);
/* Writes what there is: then the file is complete. Async-signal-safe, unless a note is written at the time. */
ACO__HIDDEN void aco__sim_trace_flush(aco__sim_trace_t *trace);
/* The run is over. 0; or -1 and errno: the file lacks something. */
ACO__HIDDEN int aco__sim_trace_end(aco__sim_trace_t *trace);

#endif
