/* Notes what a run does. Notes of a moment are short and cheap: a failure wants the last few of many. */
#include "sim/notes.h"
#include "sim/notes_trace.h"
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

static const int64_t CLOCK_AT_FIRST = 1000 * ACO_SECOND; /* of aco_now() */

int aco__sim_notes_new(aco__sim_notes_t *notes, int events)
{
    ACO__ASSERT(events >= 0 && events <= ACO__SIM_MOST_EVENTS && !notes->ring);
    notes->room = (size_t)events;
    if (events)
        notes->ring = calloc(notes->room, sizeof *notes->ring);
    return events && !notes->ring ? -1 : 0;
}

void aco__sim_notes_free(aco__sim_notes_t *notes)
{
    free(notes->ring);
    memset(notes, 0, sizeof *notes);
}

void aco__sim_notes_begin(aco_sim_t *sim)
{
    aco__sim_notes_t *notes = &sim->notes;
    notes->count = notes->turn_number = notes->arrived = 0;
    notes->is_arriving = 0;
    notes->turn = NULL;
    notes->is_wanted = notes->ring || notes->trace;
    memset(notes->deadlines, 0, sizeof notes->deadlines);
}

/* ---- The ring ---- */

static int is_for_traces(aco__sim_noted_t kind)
{
    return kind == ACO__NOTED_TURN || kind == ACO__NOTED_LEAVES || kind == ACO__NOTED_ARRIVES;
}

static int is_seen(const aco_sim_t *sim, aco__sim_noted_t kind)
{
    return sim->notes.is_wanted && (sim->notes.trace || !is_for_traces(kind));
}

/* A task that yields again and again, and does nothing else: one note. */
static int repeats_yield(aco__sim_notes_t *notes, const aco__sim_note_t *note)
{
    aco__sim_note_t *last = notes->count ? &notes->ring[(notes->count - 1) % notes->room] : NULL;
    if (!last || note->kind != ACO__NOTED_YIELDS || last->kind != note->kind || last->task != note->task)
        return 0;
    last->number++;
    last->at = note->at;
    return 1;
}

static void keep_note(aco__sim_notes_t *notes, const aco__sim_note_t *note)
{
    if (!is_for_traces(note->kind) && !repeats_yield(notes, note))
        notes->ring[notes->count++ % notes->room] = *note;
}

static void begin_note(aco__sim_note_t *note, aco__sim_noted_t kind, uint64_t number, int64_t value)
{
    note->kind = kind;
    note->number = number;
    note->value = value;
    note->what = NULL;
    note->message = 0;
}

static void add_note(aco_sim_t *sim, aco__sim_note_t *note, const char *text)
{
    aco__sim_notes_t *notes = &sim->notes;
    note->at = sim->now;
    note->task = notes->is_arriving ? 0 : notes->turn_number;
    note->name[0] = note->text[0] = 0;
    if (note->task)
        strncat(note->name, aco_name(notes->turn), sizeof note->name - 1);
    if (text)
        strncat(note->text, text, sizeof note->text - 1);
    if (notes->trace)
        aco__sim_trace_note(notes->trace, note);
    if (notes->ring)
        keep_note(notes, note);
}

/* ---- What happens ---- */

void aco__sim_note(aco_sim_t *sim, aco__sim_noted_t kind, uint64_t number, int64_t value, const char *text)
{
    aco__sim_note_t note;
    if (!is_seen(sim, kind))
        return;
    begin_note(&note, kind, number, value);
    note.message = sim->notes.arrived;
    sim->notes.arrived = 0;
    add_note(sim, &note, text);
    if (kind == ACO__NOTED_FAILS)
        sim->notes.is_wanted = 0; /* what it does then explains nothing */
}

void aco__sim_note_leaves(aco_sim_t *sim, uint64_t number, uint64_t message)
{
    aco__sim_note_t note;
    if (!is_seen(sim, ACO__NOTED_LEAVES))
        return;
    begin_note(&note, ACO__NOTED_LEAVES, number, 0);
    note.message = message;
    add_note(sim, &note, NULL);
}

void aco__sim_note_arrives(aco_sim_t *sim, uint64_t message)
{
    sim->notes.is_arriving = 1;
    sim->notes.arrived = message;
}

void aco__sim_note_arrived(aco_sim_t *sim, uint64_t number)
{
    if (sim->notes.arrived)
        aco__sim_note(sim, ACO__NOTED_ARRIVES, number, 0, NULL);
    sim->notes.is_arriving = 0;
    sim->notes.arrived = 0;
}

/* A sleep ends so as a rule. */
static void keep_deadline(aco__sim_notes_t *notes, const aco__chooser_wait_t *wait, int64_t until)
{
    aco__sim_deadline_t *deadline = &notes->deadlines[notes->turn_number % ACO__SIM_DEADLINES];
    deadline->task = strcmp(wait->what, "for time to pass") == 0 ? 0 : notes->turn_number;
    deadline->until = until;
}

static int is_over(const aco_sim_t *sim, uint64_t task)
{
    const aco__sim_deadline_t *deadline = &sim->notes.deadlines[task % ACO__SIM_DEADLINES];
    return deadline->task == task && deadline->until <= sim->now;
}

void aco__sim_note_turn(aco_sim_t *sim, const aco_t *task, uint64_t number)
{
    aco__sim_notes_t *notes = &sim->notes;
    if (!notes->is_wanted)
        return;
    notes->turn = task;
    notes->turn_number = number;
    aco__sim_note(sim, is_over(sim, number) ? ACO__NOTED_DEADLINE : ACO__NOTED_TURN, 0, 0, NULL);
    notes->deadlines[number % ACO__SIM_DEADLINES].task = 0;
}

/* The socket that a descriptor names; 0: none. */
static uint64_t number_of_file(const aco_sim_t *sim, int fd)
{
    const aco__sim_file_t *file = fd >= 0 && (size_t)fd < sim->opened.room ? sim->opened.descriptors[fd].file : NULL;
    return file ? file->number : 0;
}

static void note_wait(aco_sim_t *sim, const aco__chooser_wait_t *wait)
{
    aco__sim_note_t note;
    begin_note(&note, ACO__NOTED_WAITS, number_of_file(sim, wait->fd),
               wait->until == INT64_MAX ? INT64_MAX : wait->until - CLOCK_AT_FIRST);
    note.what = wait->what;
    keep_deadline(&sim->notes, wait, note.value);
    add_note(sim, &note, wait->text);
}

void aco__sim_note_stop(aco_sim_t *sim)
{
    aco__sim_notes_t *notes = &sim->notes;
    aco__chooser_wait_t wait;
    if (!notes->is_wanted || !notes->turn_number)
        return;
    if (aco__chooser_wait(notes->turn, &wait))
        note_wait(sim, &wait);
    else
        aco__sim_note(sim, ACO__NOTED_YIELDS, 1, 0, NULL);
    notes->turn_number = 0;
}

void aco__sim_note_end(aco_sim_t *sim)
{
    aco__sim_note(sim, ACO__NOTED_ENDS, 0, 0, NULL);
    sim->notes.turn = NULL;
    sim->notes.turn_number = 0;
}
