/* Which task has the next turn. A task is known by its number, since addresses differ from run to run.
 *
 * PCT is the scheduler of "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs" (Burckhardt and
 * others, 2010): random priorities, the highest one runs, and at a few random turns the running task becomes the
 * lowest. There the number of turns is known before. Here each of these turns is drawn so that all magnitudes are
 * equally likely. A task that yields becomes the lowest, too: it might wait for another one by yielding. A long run
 * goes on at random, so that no task starves. */
#include "sim/schedule.h"
#include "sim/draw.h"
#include "sim/grow.h"
#include "sim/node.h"

#include "base/invariants.h"

enum {
    FIRST_TASKS = 64, /* of the table */
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
    if (schedule->used) /* a failed run has left tasks, perhaps of a node whose address one of this run has */
        memset(schedule->tasks, 0, schedule->room * sizeof *schedule->tasks);
    schedule->used = 0;
    schedule->runnable_count = schedule->aside_count = 0;
    schedule->poll = NULL;
    schedule->last = NULL;
    schedule->lacks_memory = 0;
    schedule->next_order = UINT64_MAX;
    schedule->lowest = LOWEST_AT_FIRST;
    ACO__ASSERT(changes >= 0 && changes <= ACO__SIM_MOST_CHANGES);
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
    ACO__ASSERT(schedule->room > schedule->used); /* else the search may not end */
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
static aco__sim_task_t *record_of(aco__sim_schedule_t *schedule, aco_t *task, aco_sim_node_t *node)
{
    aco__sim_task_t *entry;
    if (make_room(schedule) != 0)
        return NULL;
    entry = entry_of_task(schedule, task);
    if (!entry->task) {
        entry->task = task;
        entry->number = ++schedule->numbers;
        entry->priority = LOWEST_AT_FIRST + 1 + aco__draw(&schedule->draws) / 4;
        entry->node = node;
        if (node)
            node->tasks++;
        schedule->used++;
    }
    return entry;
}

int aco__schedule_enroll(aco__sim_schedule_t *schedule, aco_t *task, aco_sim_node_t *node)
{
    return record_of(schedule, task, node) ? 0 : -1;
}

void aco__schedule_ended(aco__sim_schedule_t *schedule, const aco_t *task)
{
    const aco__sim_task_t *gap = entry_of_task(schedule, task);
    size_t mask = schedule->room - 1, hole = (size_t)(gap - schedule->tasks);
    schedule->last = NULL;
    ACO__ASSERT(gap->task == task && (!gap->node || gap->node->tasks)); /* it has had a turn */
    if (gap->node)
        gap->node->tasks--;
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

/* ---- Those that can run ---- */

static int is_random(const aco__sim_schedule_t *schedule)
{
    return schedule->kind == ACO_SIM_RANDOM || (schedule->kind == ACO_SIM_PCT && schedule->turns >= FAIR_AFTER);
}

static int replays(const aco__sim_schedule_t *schedule)
{
    return schedule->decisions && schedule->decisions->replays;
}

/* Moves `entry`, whose place is empty, up from there until it is in order. */
static void sift_up(aco__sim_schedule_t *schedule, size_t at, aco__sim_runnable_t entry)
{
    aco__sim_runnable_t *heap = schedule->runnable;
    for (; at && heap[(at - 1) / 2].key < entry.key; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = entry;
}

/* The same downwards. */
static void sift_down(aco__sim_schedule_t *schedule, size_t at, aco__sim_runnable_t entry)
{
    aco__sim_runnable_t *heap = schedule->runnable;
    for (size_t below; (below = 2 * at + 1) < schedule->runnable_count; at = below) {
        if (below + 1 < schedule->runnable_count && heap[below + 1].key > heap[below].key)
            below++;
        if (heap[below].key <= entry.key)
            break;
        heap[at] = heap[below];
    }
    heap[at] = entry;
}

static void put_runnable(aco__sim_schedule_t *schedule, const aco__sim_runnable_t *entry)
{
    aco__sim_runnable_t *list =
        aco__sim_grown(schedule->runnable, &schedule->runnable_room, schedule->runnable_count + 1, sizeof *list);
    if (!list) {
        schedule->lacks_memory = 1;
        return;
    }
    schedule->runnable = list;
    if (is_random(schedule) || replays(schedule))
        schedule->runnable[schedule->runnable_count++] = *entry;
    else
        sift_up(schedule, schedule->runnable_count++, *entry);
}

static void put_aside(aco__sim_schedule_t *schedule, const aco__sim_runnable_t *entry)
{
    aco__sim_runnable_t *list =
        aco__sim_grown(schedule->aside, &schedule->aside_room, schedule->aside_count + 1, sizeof *list);
    if (list) {
        schedule->aside = list;
        list[schedule->aside_count++] = *entry;
    } else {
        schedule->lacks_memory = 1;
    }
}

void aco__schedule_add(aco__sim_schedule_t *schedule, aco_t *task, aco_sim_node_t *node)
{
    aco__sim_task_t *record = record_of(schedule, task, node);
    aco__sim_runnable_t entry;
    if (!record) {
        schedule->lacks_memory = 1;
        return;
    }
    if (task == schedule->last) /* it has yielded */
        record->priority = schedule->lowest--;
    ACO__ASSERT(record->number && schedule->runnable_count < schedule->used); /* each task at most once */
    entry.task = task;
    entry.number = record->number;
    entry.order = schedule->next_order--;
    entry.key = schedule->kind == ACO_SIM_PCT ? record->priority : entry.order;
    entry.node = record->node;
    (entry.node && entry.node->is_suspended ? put_aside : put_runnable)(schedule, &entry);
}

void aco__schedule_add_poll(aco__sim_schedule_t *schedule, aco_t *poll)
{
    ACO__ASSERT(!schedule->poll || schedule->poll == poll);
    if (!schedule->poll)
        schedule->poll_order = schedule->next_order--;
    schedule->poll = poll;
}

/* ---- Choosing ---- */

static int changes_now(const aco__sim_schedule_t *schedule)
{
    for (int i = 0; i < schedule->changes_count; i++)
        if (schedule->changes[i] == schedule->turns)
            return 1;
    return 0;
}

/* Where the one with the next turn stands; runnable_count: the poll task is next. One at least can run. */
static size_t next_at_random(aco__sim_schedule_t *schedule)
{
    uint64_t n = schedule->runnable_count + (schedule->poll != NULL);
    return n > 1 ? (size_t)aco__draw_below(&schedule->draws, n) : 0;
}

static size_t next_by_priority(aco__sim_schedule_t *schedule)
{
    aco__sim_runnable_t first;
    if (schedule->poll && aco__draw_below(&schedule->draws, POLL_ONE_IN) == 0)
        return schedule->runnable_count;
    if (!changes_now(schedule))
        return 0;
    first = schedule->runnable[0];
    first.key = schedule->lowest--;
    entry_of_task(schedule, first.task)->priority = first.key;
    sift_down(schedule, 0, first);
    return 0;
}

static size_t next_in_order(const aco__sim_schedule_t *schedule)
{
    return schedule->poll && schedule->poll_order > schedule->runnable[0].key ? schedule->runnable_count : 0;
}

/* How many came before the one with this order. */
static size_t count_before(const aco__sim_schedule_t *schedule, uint64_t order)
{
    size_t n = schedule->poll && schedule->poll_order > order;
    for (size_t i = 0; i < schedule->runnable_count; i++)
        n += schedule->runnable[i].order > order;
    return n;
}

/* In a replay. The decision is how many of those that can run came before the next one. */
static size_t next_as_decided(aco__sim_schedule_t *schedule)
{
    size_t n = schedule->runnable_count, before, poll = n;
    if (!schedule->poll && n == 1)
        return 0;
    before = (size_t)aco__decisions_next(schedule->decisions, ACO__SIM_ORDER, 0, n + (schedule->poll != NULL));
    if (schedule->poll)
        poll = count_before(schedule, schedule->poll_order);
    return before == poll ? n : before - (before > poll);
}

static void record_choice(aco__sim_schedule_t *schedule, size_t at)
{
    size_t n = schedule->runnable_count;
    uint64_t order = at < n ? schedule->runnable[at].order : schedule->poll_order;
    if (n + (schedule->poll != NULL) > 1)
        (void)aco__decisions_next(schedule->decisions, ACO__SIM_ORDER, count_before(schedule, order), 0);
}

static size_t next(aco__sim_schedule_t *schedule)
{
    if (replays(schedule))
        return next_as_decided(schedule);
    if (is_random(schedule))
        return next_at_random(schedule);
    return schedule->kind == ACO_SIM_PCT ? next_by_priority(schedule) : next_in_order(schedule);
}

/* Removes the one that stands there. */
static aco__sim_runnable_t take(aco__sim_schedule_t *schedule, size_t at)
{
    aco__sim_runnable_t taken = schedule->runnable[at], end = schedule->runnable[--schedule->runnable_count];
    if (replays(schedule))
        memmove(&schedule->runnable[at], &schedule->runnable[at + 1],
                (schedule->runnable_count - at) * sizeof *schedule->runnable);
    else if (is_random(schedule))
        schedule->runnable[at] = end;
    else if (schedule->runnable_count)
        sift_down(schedule, at, end); /* the first is taken */
    return taken;
}

aco_t *aco__schedule_choose(aco__sim_schedule_t *schedule, uint64_t *number, aco_sim_node_t **node, uint64_t *count)
{
    aco_t *poll = schedule->poll;
    aco__sim_runnable_t taken;
    size_t at;
    *number = 0;
    *node = NULL;
    *count = schedule->runnable_count;
    schedule->last = NULL;
    at = *count ? next(schedule) : 0;
    if (*count && schedule->decisions && !replays(schedule))
        record_choice(schedule, at);
    if (at == schedule->runnable_count) {
        ACO__ASSERT(poll || !at); /* one at least could run */
        schedule->poll = NULL;
        return poll;
    }
    taken = take(schedule, at);
    ACO__ASSERT(entry_of_task(schedule, taken.task)->number == taken.number); /* no other one has its address */
    ACO__ASSERT(replays(schedule) || is_random(schedule) || !schedule->runnable_count ||
                schedule->runnable[0].key <= taken.key);
    schedule->turns++;
    schedule->last = taken.task;
    *number = taken.number;
    *node = taken.node;
    return taken.task;
}

/* ---- The tasks of a node ---- */

/* Takes those that can run out, and calls put() for each; NULL: they no longer can. */
static void take_runnable(aco__sim_schedule_t *schedule, const aco_sim_node_t *node,
                          void (*put)(aco__sim_schedule_t *, const aco__sim_runnable_t *))
{
    size_t n = schedule->runnable_count;
    schedule->runnable_count = 0;
    for (size_t i = 0; i < n; i++) { /* what is put moves only those before it */
        aco__sim_runnable_t entry = schedule->runnable[i];
        if (entry.node != node)
            put_runnable(schedule, &entry);
        else if (put)
            put(schedule, &entry);
    }
}

/* The same for those that stand aside. */
static void take_aside(aco__sim_schedule_t *schedule, const aco_sim_node_t *node,
                       void (*put)(aco__sim_schedule_t *, const aco__sim_runnable_t *))
{
    size_t n = schedule->aside_count;
    schedule->aside_count = 0;
    for (size_t i = 0; i < n; i++) {
        aco__sim_runnable_t entry = schedule->aside[i];
        if (entry.node != node)
            schedule->aside[schedule->aside_count++] = entry;
        else if (put)
            put(schedule, &entry);
    }
}

void aco__schedule_suspend(aco__sim_schedule_t *schedule, const aco_sim_node_t *node)
{
    take_runnable(schedule, node, put_aside);
}

/* It comes now, behind those that can run. */
static void put_resumed(aco__sim_schedule_t *schedule, const aco__sim_runnable_t *entry)
{
    aco__sim_runnable_t back = *entry;
    back.order = schedule->next_order--;
    back.key = schedule->kind == ACO_SIM_PCT ? back.key : back.order;
    put_runnable(schedule, &back);
}

void aco__schedule_resume(aco__sim_schedule_t *schedule, const aco_sim_node_t *node)
{
    take_aside(schedule, node, put_resumed);
}

static int by_number(const void *a, const void *b)
{
    uint64_t first = ((const aco__sim_task_t *)a)->number, second = ((const aco__sim_task_t *)b)->number;
    return first < second ? -1 : first > second;
}

size_t aco__schedule_take(aco__sim_schedule_t *schedule, aco_sim_node_t *node, aco__sim_task_t **tasks)
{
    size_t n = 0, all = node->tasks;
    aco__sim_task_t *taken = *tasks = malloc((all ? all : 1) * sizeof *taken);
    if (!taken)
        return SIZE_MAX;
    for (size_t i = 0; i < schedule->room; i++)
        if (schedule->tasks[i].task && schedule->tasks[i].node == node)
            taken[n++] = schedule->tasks[i];
    ACO__ASSERT(n == all);
    qsort(taken, n, sizeof *taken, by_number);
    take_runnable(schedule, node, NULL);
    take_aside(schedule, node, NULL);
    for (size_t i = 0; i < n; i++)
        aco__schedule_ended(schedule, taken[i].task);
    return n;
}

size_t aco__schedule_list(const aco__sim_schedule_t *schedule, aco__sim_task_t **tasks)
{
    size_t n = 0;
    aco__sim_task_t *list = *tasks = malloc((schedule->used + 1) * sizeof *list);
    if (!list)
        return SIZE_MAX;
    for (size_t i = 0; i < schedule->room; i++)
        if (schedule->tasks[i].task)
            list[n++] = schedule->tasks[i];
    qsort(list, n, sizeof *list, by_number);
    return n;
}

size_t aco__schedule_take_all(aco__sim_schedule_t *schedule, aco__sim_task_t **tasks)
{
    size_t n = aco__schedule_list(schedule, tasks);
    if (n == SIZE_MAX)
        return n;
    schedule->runnable_count = schedule->aside_count = 0;
    for (size_t i = 0; i < n; i++)
        aco__schedule_ended(schedule, (*tasks)[i].task);
    return n;
}

void aco__schedule_free(aco__sim_schedule_t *schedule)
{
    free(schedule->tasks);
    free(schedule->runnable);
    free(schedule->aside);
    schedule->tasks = NULL;
    schedule->runnable = schedule->aside = NULL;
    schedule->room = schedule->used = schedule->runnable_room = schedule->aside_room = 0;
}
