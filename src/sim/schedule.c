/* Which task has the next turn. A task is known by its number, since addresses differ from run to run.
 *
 * PCT is the scheduler of "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs" (Burckhardt and
 * others, 2010): random priorities, the highest one runs, and at a few random turns the running task becomes the
 * lowest. There the number of turns is known before. Here each of these turns is drawn so that all magnitudes are
 * equally likely. A task that yields becomes the lowest, too: it might wait for another one by yielding. A long run
 * goes on at random, so that no task starves. */
#include "sim/schedule.h"
#include "sim/draw.h"

#include <stdlib.h>

enum {
    FIRST_TASKS = 64,
    MAGNITUDES = 14,             /* changes of priorities come within 2^14 turns */
    FAIR_AFTER = 1 << MAGNITUDES, /* turns; then it is random: tasks of high priority could go on for ever */
    POLL_ONE_IN = 8              /* so often the poll task has a turn, or timers would starve */
};
static const uint64_t LOWEST_AT_FIRST = (uint64_t)1 << 62; /* random priorities are above */

void aco__schedule_begin(aco__sim_schedule_t *schedule, aco_sim_schedule_t kind, int changes, uint64_t seed)
{
    schedule->draws = aco__mix(seed);
    if (kind == ACO_SIM_MIXED)
        kind = aco__draw(&schedule->draws) & 1 ? ACO_SIM_RANDOM : ACO_SIM_PCT;
    schedule->kind = kind;
    schedule->numbers = schedule->turns = 0;
    schedule->last = NULL;
    schedule->lowest = LOWEST_AT_FIRST;
    schedule->changes_count = (int)aco__draw_below(&schedule->draws, (uint64_t)changes + 1);
    for (int i = 0; i < schedule->changes_count; i++) {
        uint64_t magnitude = (uint64_t)1 << aco__draw_below(&schedule->draws, MAGNITUDES);
        schedule->changes[i] = magnitude + aco__draw_below(&schedule->draws, magnitude);
    }
}

/* ---- Numbers of tasks ---- */

static size_t place_of(const aco__sim_schedule_t *schedule, const aco_t *task)
{
    return (size_t)aco__mix((uintptr_t)task) & (schedule->room - 1);
}

/* The task's entry, or the empty one where it would stand. */
static aco__sim_task_t *entry_of_task(const aco__sim_schedule_t *schedule, const aco_t *task)
{
    size_t at = place_of(schedule, task);
    while (schedule->tasks[at].task && schedule->tasks[at].task != task)
        at = (at + 1) & (schedule->room - 1);
    return &schedule->tasks[at];
}

/* -1 without memory. */
static int make_room(aco__sim_schedule_t *schedule)
{
    aco__sim_schedule_t larger = *schedule;
    if (2 * (schedule->used + 1) <= schedule->room)
        return 0;
    larger.room = schedule->room ? 2 * schedule->room : FIRST_TASKS;
    larger.tasks = calloc(larger.room, sizeof *larger.tasks);
    if (!larger.tasks)
        return -1;
    for (size_t i = 0; i < schedule->room; i++)
        if (schedule->tasks[i].task)
            *entry_of_task(&larger, schedule->tasks[i].task) = schedule->tasks[i];
    free(schedule->tasks);
    *schedule = larger;
    return 0;
}

/* The task's record; NULL without memory. Valid until the next call. */
static aco__sim_task_t *record_of(aco__sim_schedule_t *schedule, const aco_t *task)
{
    aco__sim_task_t *entry;
    if (make_room(schedule) != 0)
        return NULL;
    entry = entry_of_task(schedule, task);
    if (!entry->task) {
        entry->task = task;
        entry->number = ++schedule->numbers;
        entry->priority = LOWEST_AT_FIRST + 1 + aco__draw(&schedule->draws) / 4;
        schedule->used++;
    }
    return entry;
}

void aco__schedule_ended(aco__sim_schedule_t *schedule, const aco_t *task)
{
    aco__sim_task_t *gap = entry_of_task(schedule, task);
    size_t mask = schedule->room - 1, hole = (size_t)(gap - schedule->tasks);
    schedule->last = NULL;
    if (!gap->task)
        return;
    schedule->used--;
    for (size_t at = (hole + 1) & mask; schedule->tasks[at].task; at = (at + 1) & mask) {
        size_t wanted = place_of(schedule, schedule->tasks[at].task);
        if (((at - wanted) & mask) >= ((at - hole) & mask)) { /* its place is at the hole or before */
            schedule->tasks[hole] = schedule->tasks[at];
            hole = at;
        }
    }
    schedule->tasks[hole].task = NULL;
}

/* ---- Choosing ---- */

/* Of what can run, `poll` included, the one behind `n` others. */
static aco_t *nth(aco_t *first, uint64_t n)
{
    while (n--)
        first = aco__task_next(first);
    return first;
}

static int changes_now(const aco__sim_schedule_t *schedule)
{
    for (int i = 0; i < schedule->changes_count; i++)
        if (schedule->changes[i] == schedule->turns)
            return 1;
    return 0;
}

/* Before the next turn: who had the last one and can still run has yielded. NULL without memory. */
static aco_t *highest(aco__sim_schedule_t *schedule, aco_t *first, const aco_t *poll)
{
    aco_t *task = first, *best = NULL;
    uint64_t priority = 0;
    do {
        aco__sim_task_t *record = task == poll ? NULL : record_of(schedule, task);
        if (task != poll && !record)
            return NULL;
        if (record && task == schedule->last)
            record->priority = schedule->lowest--;
        if (record && record->priority > priority) {
            priority = record->priority;
            best = task;
        }
        task = aco__task_next(task);
    } while (task != first);
    return best;
}

static aco_t *choose_by_priority(aco__sim_schedule_t *schedule, aco_t *first, aco_t *poll)
{
    aco_t *chosen;
    if (poll && aco__draw_below(&schedule->draws, POLL_ONE_IN) == 0)
        return poll;
    chosen = highest(schedule, first, poll);
    if (chosen && changes_now(schedule)) {
        record_of(schedule, chosen)->priority = schedule->lowest--;
        schedule->last = NULL;
        chosen = highest(schedule, first, poll);
    }
    return chosen;
}

aco_t *aco__schedule_choose(aco__sim_schedule_t *schedule, aco_t *first, const aco_t *poll, uint64_t *number,
                            uint64_t *count)
{
    aco_t *task = first, *chosen, *queued = NULL;
    uint64_t n = 0;
    const aco__sim_task_t *record;
    do { /* new tasks get their numbers in the order of the ring */
        n++;
        if (task == poll)
            queued = task;
        else if (!record_of(schedule, task))
            return NULL;
        task = aco__task_next(task);
    } while (task != first);
    *count = n - (queued != NULL);
    if (*count == 0)
        chosen = queued;
    else if (schedule->kind == ACO_SIM_RANDOM || (schedule->kind == ACO_SIM_PCT && schedule->turns >= FAIR_AFTER))
        chosen = nth(first, n > 1 ? aco__draw_below(&schedule->draws, n) : 0);
    else
        chosen = schedule->kind == ACO_SIM_PCT ? choose_by_priority(schedule, first, queued) : first;
    if (!chosen)
        return NULL;
    if (chosen == queued) {
        *number = 0;
        return chosen;
    }
    schedule->turns++;
    schedule->last = chosen;
    record = record_of(schedule, chosen);
    *number = record ? record->number : 0;
    return chosen;
}

void aco__schedule_free(aco__sim_schedule_t *schedule)
{
    free(schedule->tasks);
    schedule->tasks = NULL;
    schedule->room = schedule->used = 0;
}
