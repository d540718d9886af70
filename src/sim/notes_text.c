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

static void say_transfer(const aco__sim_note_t *note, char *text, size_t size)
{
    if (note->kind == ACO__NOTED_SENDS)
        snprintf(text, size, "sends %" PRId64 " %s to %s by socket %" PRIu64, note->value, bytes_of(note->value),
                 note->text, note->number);
    else if (note->value)
        snprintf(text, size, "receives %" PRId64 " %s from %s by socket %" PRIu64, note->value, bytes_of(note->value),
                 note->text, note->number);
    else
        snprintf(text, size, "reads the end from %s by socket %" PRIu64, note->text, note->number);
}

/* What the network does. */
static void say_arrival(const aco__sim_note_t *note, char *text, size_t size)
{
    uint64_t number = note->number;
    switch (note->kind) {
    case ACO__NOTED_CONNECTED:
        snprintf(text, size, "socket %" PRIu64 " is connected", number);
        break;
    case ACO__NOTED_BYTES:
        snprintf(text, size, "%" PRId64 " %s arrive%s at socket %" PRIu64, note->value, bytes_of(note->value),
                 note->value == 1 ? "s" : "", number);
        break;
    case ACO__NOTED_END:
        snprintf(text, size, "the end of the stream arrives at socket %" PRIu64, number);
        break;
    case ACO__NOTED_RESET:
        snprintf(text, size, "a reset arrives at socket %" PRIu64, number);
        break;
    case ACO__NOTED_REFUSED:
        snprintf(text, size, "the connection of socket %" PRIu64 " fails: %s", number, strerror((int)note->value));
        break;
    case ACO__NOTED_DROPPED:
        snprintf(text, size, "a datagram of socket %" PRIu64 " is lost: %s", number, note->text);
        break;
    case ACO__NOTED_LEAVES:
        snprintf(text, size, "something leaves for socket %" PRIu64, number);
        break;
    default: /* ACO__NOTED_ARRIVES */
        snprintf(text, size, "something arrives at socket %" PRIu64, number);
    }
}

void aco__sim_sentence(const aco__sim_note_t *note, char text[ACO__SIM_SENTENCE])
{
    const size_t size = ACO__SIM_SENTENCE;
    switch (note->kind) {
    case ACO__NOTED_TURN:
        snprintf(text, size, "has a turn");
        break;
    case ACO__NOTED_DEADLINE:
        snprintf(text, size, "goes on: its deadline has come");
        break;
    case ACO__NOTED_YIELDS:
        snprintf(text, size, note->number > 1 ? "yields %" PRIu64 " times" : "yields", note->number);
        break;
    case ACO__NOTED_WAITS:
        say_wait(note, text, size);
        break;
    case ACO__NOTED_ENDS:
        snprintf(text, size, "ends");
        break;
    case ACO__NOTED_LISTENS:
        snprintf(text, size, "listens at %s by socket %" PRIu64, note->text, note->number);
        break;
    case ACO__NOTED_CONNECTS:
        snprintf(text, size, "connects socket %" PRIu64 " to %s", note->number, note->text);
        break;
    case ACO__NOTED_ACCEPTS:
        snprintf(text, size, "accepts socket %" PRIu64 " from %s", note->number, note->text);
        break;
    case ACO__NOTED_SENDS:
    case ACO__NOTED_RECEIVES:
        say_transfer(note, text, size);
        break;
    case ACO__NOTED_CLOSES:
        snprintf(text, size, "closes socket %" PRIu64, note->number);
        break;
    case ACO__NOTED_SHUTS:
        snprintf(text, size, "shuts socket %" PRIu64 " down", note->number);
        break;
    case ACO__NOTED_CALL:
        snprintf(text, size, "calls %s(): %s", note->text, strerror((int)note->value));
        break;
    case ACO__NOTED_FAULT:
        snprintf(text, size, "fault: %s", note->text);
        break;
    case ACO__NOTED_OPERATION:
        snprintf(text, size, "history: %s", note->text);
        break;
    case ACO__NOTED_FAILS:
        snprintf(text, size, "the run fails: %s", note->text);
        break;
    default:
        say_arrival(note, text, size);
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
