/* What a run has done. The hash covers all events. A check keeps the events of a seed's first run, and compares those
 * of its second run with them: the first one that differs tells where the program does not repeat. */
#include "sim/history.h"
#include "sim/draw.h"
#include "sim/grow.h"

#include "base/invariants.h"
#include "sim/call_lists.h"
#include "system/system.h"

#include <inttypes.h>
#include <stdio.h>

enum { MOST_KEPT = 1 << 22, EVENT_TEXT = 100 };

/* Of an entry of the system's table. */
static const char *name_of(uint64_t call)
{
#define NAME_IF(name)                                                                                                  \
    if (call == offsetof(aco__system_t, name) / sizeof(void (*)(void)))                                                \
        return #name;
#define NAME_IF_USUAL(parameters, type, name, types) NAME_IF(name)
    ACO__SIM_EACH_USUAL(NAME_IF_USUAL)
    ACO__SIM_EACH_UNUSUAL(NAME_IF)
    return "a call";
}

const char *const aco__sim_fault_names[ACO__SIM_FAULT_KINDS] = {"crashed", "started again", "was suspended",
                                                              "was resumed", "got another clock", "got another disk",
                                                              "was sent a signal"};

#define EVENT(kind, ...) \
    case ACO__SIM_##kind: \
        snprintf(text, EVENT_TEXT, __VA_ARGS__); \
        break

static void describe_event(const aco__sim_event_t *event, char text[EVENT_TEXT])
{
    uint64_t what = event->what, value = event->value;
    switch (event->kind) {
        EVENT(TURN, "the turn of task %" PRIu64 ", when %" PRIu64 " could run", what, value);
        EVENT(POLL, "a look at timers, when %" PRIu64 " tasks could run", value);
        EVENT(TIME, "no task could run, and the time became %" PRIu64 " ns", value);
        EVENT(CLOCK, "clock %" PRIu64 " was read at %" PRIu64 " ns", what, value);
        EVENT(RANDOM, "aco_sim_random() returned %" PRIu64, value);
        EVENT(CALL, "a call that is not simulated");
        EVENT(DESCRIPTORS, "%s() returned %" PRId64, name_of(what), (int64_t)value);
        EVENT(SENT, "open file %" PRIu64 " was sent bytes with the hash %" PRIx64, what, value);
        EVENT(ARRIVAL, "something arrived at open file %" PRIu64 " at %" PRIu64 " ns", what, value);
        EVENT(FAULT, "node %" PRIu64 " %s", what, aco__sim_fault_names[value]);
        EVENT(THREAD, "thread %" PRIu64 " went on, when %" PRIu64 " could", what, value);
        EVENT(END, "the run %s", value ? "failed" : "ended");
    }
}

/* Eight bytes at a time: it must cost less than the copy of the bytes. */
uint64_t aco__history_hash(uint64_t before, const void *p, size_t n)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    const char *at = p;
    uint64_t hash = before + n, word;
    for (; n >= sizeof word; at += sizeof word, n -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * odd;
        hash ^= hash >> 32;
    }
    word = 0;
    if (n)
        memcpy(&word, at, n);
    return aco__mix(hash ^ word);
}

void aco__history_begin(aco__sim_history_t *history, int keeps, int compares)
{
    ACO__ASSERT(!keeps || !compares); /* what is kept is compared with */
    history->hash = 0;
    history->length = 0;
    history->keeps = keeps;
    history->compares = compares;
    history->differs = history->has_ended = 0;
    if (!compares)
        history->kept_length = 0;
}

static void keep(aco__sim_history_t *history, const aco__sim_event_t *event)
{
    size_t n = history->kept_length;
    aco__sim_event_t *kept = n == MOST_KEPT ? NULL : aco__sim_grown(history->kept, &history->room, n + 1, sizeof *kept);
    ACO__ASSERT(n == history->length);
    if (!kept) {
        history->keeps = 0; /* the hash tells whether the rest differs */
        return;
    }
    history->kept = kept;
    kept[history->kept_length++] = *event;
}

/* Compares event number `n` with the kept one. */
static void compare(aco__sim_history_t *history, size_t n, const aco__sim_event_t *event)
{
    const aco__sim_event_t *before = n < history->kept_length ? &history->kept[n] : NULL;
    char was[EVENT_TEXT], is[EVENT_TEXT];
    if (!before) /* it has not been kept; nothing is known after an end */
        return;
    if (before->kind == event->kind && before->what == event->what && before->value == event->value)
        return;
    history->differs = 1;
    describe_event(before, was);
    describe_event(event, is);
    snprintf(history->difference, sizeof history->difference, "event %zu was: %s; in the repetition: %s", n + 1, was,
             is);
}

void aco__history_note(aco__sim_history_t *history, aco__sim_kind_t kind, uint64_t what, uint64_t value)
{
    aco__sim_event_t event = {kind, what, value};
    if (history->has_ended)
        return;
    history->has_ended = kind == ACO__SIM_END;
    history->hash = aco__mix(history->hash + (uint64_t)kind + 1);
    history->hash = aco__mix(history->hash ^ what);
    history->hash = aco__mix(history->hash ^ value);
    if (history->keeps)
        keep(history, &event);
    if (history->compares && !history->differs)
        compare(history, history->length, &event);
    history->length++;
}

void aco__history_free(aco__sim_history_t *history)
{
    free(history->kept);
    history->kept = NULL;
    history->room = history->kept_length = 0;
}
