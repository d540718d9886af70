/* A run's notes as a trace. Each task has a track, on which its turns and its waits are slices; track 0 is the
 * network's and the faults'. What a task does is a slice of a nanosecond in its turn, and so is what arrives, in the
 * wait of the task that waits for it. An arrow leads from what is sent to its arrival.
 *
 * Time stands still during turns. So that their order can be seen, each event is shown at least a nanosecond after the
 * one before; `ns` has the true time. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "sim/notes_trace.h"
#include "sim/grow.h"
#include "sim/notes_text.h"
#include "sim/world.h"

#include "aco/detail/for_libraries.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* The end of the file: each write adds it, and the next one overwrites it. */
static const char trace_end_text[] = "\n]}\n";
enum { ENDING = sizeof trace_end_text - 1, ROOM = 64 << 10 };
enum { LONGEST_EVENT = 1024, SENTENCE_IN_JSON = 6 * ACO__SIM_SENTENCE + 1 };

/* What a task's track shows at its end. */
enum { UNKNOWN, NOTHING, A_SLICE };

/* Bytes or numbers, by number; what is not there is 0. */
typedef struct table {
    uint64_t *entries;
    size_t room;
} table_t;

struct aco__sim_trace {
    int file, error;        /* error: an errno, once writing has failed */
    int64_t at;             /* the file's offset of its ending */
    int64_t shown;          /* nanoseconds at which the last event is shown */
    table_t tasks;          /* UNKNOWN, … */
    table_t owners;         /* by the number of a socket: the task that uses it */
    size_t used;
    char text[ROOM];
};

/* ---- The file ---- */

static void append(aco__sim_trace_t *trace, const char *format, ...) __attribute__((format(ACO__PRINTF, 2, 3)));
static void append(aco__sim_trace_t *trace, const char *format, ...)
{
    va_list args;
    if (trace->used > ROOM - 2 * LONGEST_EVENT)
        aco__sim_trace_flush(trace);
    va_start(args, format);
    trace->used += (size_t)vsnprintf(trace->text + trace->used, LONGEST_EVENT, format, args);
    va_end(args);
    ACO__ASSERT(trace->used < ROOM - LONGEST_EVENT + 1);
}

void aco__sim_trace_flush(aco__sim_trace_t *trace)
{
    int saved = errno;
    memcpy(trace->text + trace->used, trace_end_text, ENDING);
    if (!trace->error && aco__sim_write_real(trace->file, trace->text, trace->used + ENDING, trace->at) != 0)
        trace->error = errno;
    trace->at += (int64_t)trace->used;
    trace->used = 0;
    errno = saved;
}

aco__sim_trace_t *aco__sim_trace_new(const char *path, uint64_t seed)
{
    aco__sim_trace_t *trace = calloc(1, sizeof *trace);
    if (!trace)
        return NULL;
    trace->file = aco__sim_real.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (trace->file < 0) {
        free(trace);
        return NULL;
    }
    trace->shown = -1;
    append(trace,
           "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"seed\":\"%" PRIu64 "\"},\"traceEvents\":[\n"
           "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"seed %" PRIu64 "\"}},\n"
           "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"network, faults\"}}",
           seed, seed);
    return trace;
}

/* ---- Tables ---- */

static uint64_t entry_of(const table_t *table, uint64_t number)
{
    return number < table->room ? table->entries[number] : 0;
}

/* Without memory it does nothing. */
static void set_entry(table_t *table, uint64_t number, uint64_t value)
{
    uint64_t *entries = aco__sim_grown(table->entries, &table->room, (size_t)number + 1, sizeof *entries);
    if (!entries)
        return;
    table->entries = entries;
    entries[number] = value;
}

/* ---- Events ---- */

static void show(aco__sim_trace_t *trace, const char *phase, uint64_t track, const char *name, const char *rest)
{
    append(trace, ",\n{\"ph\":\"%s\",\"pid\":1,\"tid\":%" PRIu64 ",\"ts\":%" PRId64 ".%03d%s%s%s%s}", phase, track,
           trace->shown / 1000, (int)(trace->shown % 1000), *name ? ",\"name\":\"" : "", name, *name ? "\"" : "", rest);
}

static void end_slice(aco__sim_trace_t *trace, uint64_t task)
{
    if (entry_of(&trace->tasks, task) == A_SLICE)
        show(trace, "E", task, "", "");
    set_entry(&trace->tasks, task, NOTHING);
}

static void begin_slice(aco__sim_trace_t *trace, uint64_t task, const char *name, int64_t at)
{
    char rest[64];
    end_slice(trace, task);
    snprintf(rest, sizeof rest, ",\"args\":{\"ns\":%" PRId64 "}", at);
    show(trace, "B", task, name, rest);
    set_entry(&trace->tasks, task, A_SLICE);
}

static void begin_turn(aco__sim_trace_t *trace, const aco__sim_note_t *note)
{
    char name[6 * ACO_NAME_SIZE + 1], rest[sizeof name + 64];
    if (entry_of(&trace->tasks, note->task) == UNKNOWN) {
        snprintf(rest, sizeof rest, ",\"args\":{\"name\":\"task %" PRIu64 "%s%s%s\"}", note->task,
                 *note->name ? " (" : "", aco__json_text(note->name, name, sizeof name), *note->name ? ")" : "");
        show(trace, "M", note->task, "thread_name", rest);
    }
    begin_slice(trace, note->task, "turn", note->at);
}

/* Where it is shown: what arrives belongs to the task that last used the socket. */
static uint64_t track_of(const aco__sim_trace_t *trace, const aco__sim_note_t *note)
{
    return note->task || note->kind == ACO__NOTED_LEAVES ? note->task : entry_of(&trace->owners, note->number);
}

static int uses_socket(aco__sim_noted_t kind)
{
    return kind == ACO__NOTED_WAITS || kind == ACO__NOTED_LISTENS || kind == ACO__NOTED_CONNECTS ||
           kind == ACO__NOTED_ACCEPTS || kind == ACO__NOTED_SENDS || kind == ACO__NOTED_RECEIVES;
}

/* An event of its own, with the end of an arrow if a message leaves or arrives. */
static void show_event(aco__sim_trace_t *trace, const aco__sim_note_t *note, const char *name)
{
    uint64_t track = track_of(trace, note);
    char rest[96];
    snprintf(rest, sizeof rest, ",\"dur\":0.001,\"args\":{\"ns\":%" PRId64 "}", note->at);
    show(trace, "X", track, name, rest);
    if (!note->message)
        return;
    snprintf(rest, sizeof rest, ",\"cat\":\"message\",\"id\":%" PRIu64 "%s", note->message,
             note->kind == ACO__NOTED_LEAVES ? "" : ",\"bp\":\"e\"");
    show(trace, note->kind == ACO__NOTED_LEAVES ? "s" : "f", track, "message", rest);
}

void aco__sim_trace_note(aco__sim_trace_t *trace, const aco__sim_note_t *note)
{
    char sentence[ACO__SIM_SENTENCE], name[SENTENCE_IN_JSON];
    trace->shown = note->at > trace->shown ? note->at : trace->shown + 1;
    aco__sim_sentence(note, sentence);
    aco__json_text(sentence, name, LONGEST_EVENT / 2);
    if (uses_socket(note->kind) && note->task && note->number)
        set_entry(&trace->owners, note->number, note->task);
    switch (note->kind) {
    case ACO__NOTED_TURN:
    case ACO__NOTED_DEADLINE:
        begin_turn(trace, note);
        if (note->kind == ACO__NOTED_DEADLINE)
            show(trace, "i", note->task, "deadline", ",\"s\":\"t\"");
        break;
    case ACO__NOTED_YIELDS:
        begin_slice(trace, note->task, "can run", note->at);
        break;
    case ACO__NOTED_WAITS:
        begin_slice(trace, note->task, name, note->at);
        break;
    case ACO__NOTED_ENDS:
        end_slice(trace, note->task);
        break;
    case ACO__NOTED_FAULT:
    case ACO__NOTED_FAILS:
        show(trace, "i", note->task, name, ",\"s\":\"g\"");
        break;
    default:
        show_event(trace, note, name);
    }
}

/* A turn or a wait that has not ended ends here. */
static void end_slices(aco__sim_trace_t *trace)
{
    trace->shown++;
    for (uint64_t task = 1; task < trace->tasks.room; task++)
        end_slice(trace, task);
}

int aco__sim_trace_end(aco__sim_trace_t *trace)
{
    int error;
    end_slices(trace);
    aco__sim_trace_flush(trace);
    error = trace->error;
    if (aco__sim_real.close(trace->file) != 0 && !error)
        error = errno;
    free(trace->tasks.entries);
    free(trace->owners.entries);
    free(trace);
    errno = error;
    return error ? -1 : 0;
}
