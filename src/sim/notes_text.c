/* The last notes of a run as lines for people: the time, the task, what it does. */
#include "sim/notes_text.h"

#include "system/system.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STDERR = 2, EVENT_LINE = ACO__SIM_SENTENCE + 96 };

static const char *bytes_of(int64_t n)
{
    return n == 1 ? "byte" : "bytes";
}

static void say_wait(const aco__sim_note_t *note, char *text, size_t size)
{
    int n = snprintf(text, size, "waits %s%s%s", note->what, *note->text ? ": " : "", note->text);
    if (note->number)
        n += snprintf(text + n, size - (size_t)n, " socket %" PRIu64, note->number);
    if (note->value != INT64_MAX)
        snprintf(text + n, size - (size_t)n, ", until %" PRId64 ".%09d", note->value / ACO_SECOND,
                 (int)(note->value % ACO_SECOND));
}

#define SAY(kind, ...) \
    case ACO__NOTED_##kind: \
        snprintf(text, size, __VA_ARGS__); \
        break

/* What a task does. */
static void say_call(const aco__sim_note_t *note, char *text, size_t size)
{
    uint64_t socket = note->number;
    switch (note->kind) {
        SAY(TURN, "has a turn");
        SAY(DEADLINE, "goes on: its deadline has come");
        SAY(YIELDS, note->number > 1 ? "yields %" PRIu64 " times" : "yields", note->number);
        SAY(ENDS, "ends");
        SAY(LISTENS, "listens at %s by socket %" PRIu64, note->text, socket);
        SAY(CONNECTS, "connects socket %" PRIu64 " to %s", socket, note->text);
        SAY(ACCEPTS, "accepts socket %" PRIu64 " from %s", socket, note->text);
        SAY(SENDS, "sends %" PRId64 " %s to %s by socket %" PRIu64, note->value, bytes_of(note->value), note->text,
            socket);
        SAY(RECEIVES, "receives %" PRId64 " %s from %s by socket %" PRIu64, note->value, bytes_of(note->value),
            note->text, socket);
        SAY(CLOSES, "closes socket %" PRIu64, socket);
        SAY(SHUTS, "shuts socket %" PRIu64 " down", socket);
        SAY(CALL, "calls %s(): %s", note->text, strerror((int)note->value));
        SAY(FAULT, "fault: %s", note->text);
        SAY(OPERATION, "history: %s", note->text);
        SAY(FAILS, "the run fails: %s", note->text);
    default:
        break;
    }
}

void aco__sim_sentence(const aco__sim_note_t *note, char text[ACO__SIM_SENTENCE])
{
    const size_t size = ACO__SIM_SENTENCE;
    uint64_t socket = note->number;
    if (note->kind == ACO__NOTED_RECEIVES && !note->value) {
        snprintf(text, size, "reads the end from %s by socket %" PRIu64, note->text, socket);
        return;
    }
    switch (note->kind) {
    case ACO__NOTED_WAITS:
        say_wait(note, text, size);
        break;
        SAY(CONNECTED, "socket %" PRIu64 " is connected", socket);
        SAY(BYTES, "%" PRId64 " %s arrive%s at socket %" PRIu64, note->value, bytes_of(note->value),
            note->value == 1 ? "s" : "", socket);
        SAY(END, "the end of the stream arrives at socket %" PRIu64, socket);
        SAY(RESET, "a reset arrives at socket %" PRIu64, socket);
        SAY(REFUSED, "the connection of socket %" PRIu64 " fails: %s", socket, strerror((int)note->value));
        SAY(DROPPED, "a datagram of socket %" PRIu64 " is lost: %s", socket, note->text);
        SAY(LEAVES, "something leaves for socket %" PRIu64, socket);
        SAY(ARRIVES, "something arrives at socket %" PRIu64, socket);
    default:
        say_call(note, text, size);
    }
}

static void print_note(const aco__sim_note_t *note)
{
    char line[EVENT_LINE], sentence[ACO__SIM_SENTENCE], task[ACO_NAME_SIZE + 32] = "";
    int n;
    if (note->task)
        snprintf(task, sizeof task, "task %" PRIu64 "%s%s%s: ", note->task, *note->name ? " (" : "", note->name,
                 *note->name ? ")" : "");
    aco__sim_sentence(note, sentence);
    n = snprintf(line, sizeof line, "%7" PRId64 ".%09d  %s%s\n", note->at / ACO_SECOND, (int)(note->at % ACO_SECOND),
                 task, sentence);
    ACO__ASSERT(n > 0 && (size_t)n < sizeof line);
    for (int i = 0; i < n - 1; i++)
        if ((unsigned char)line[i] < ' ') /* of a name or a text */
            line[i] = '?';
    (void)!aco__system.write(STDERR, line, (size_t)n);
}

void aco__sim_notes_print(const aco__sim_notes_t *notes)
{
    uint64_t first = notes->count > notes->room ? notes->count - notes->room : 0;
    char line[128];
    int n;
    if (!notes->count)
        return;
    n = snprintf(line, sizeof line, "its last events, %" PRIu64 " of %" PRIu64 ", with seconds since its begin:\n",
                 notes->count - first, notes->count);
    (void)!aco__system.write(STDERR, line, (size_t)n);
    for (uint64_t i = first; i < notes->count; i++)
        print_note(&notes->ring[i % notes->room]);
}
