/* Finds tasks that wait for each other for ever while others go on: for the watchdog, and for who asks.
 *
 * Of a wait for a mutex, a reader-writer lock, a once, a join or a group's members it is known which task must act
 * first. Suppose that all tasks with such waits, without a time limit, never wake; drop one if a task that it waits for
 * is none of them (of a group: if all are none), until nothing changes. Those that are left wait for each other. What
 * any task may signal, such as a channel, an event or a park, proves nothing; nor does a cancellation that may come. */
#include "scheduler/inbox.h"
#include "scheduler/reports/report.h"
#include "scheduler/reports/stuck.h"
#include "scheduler/reports/watchdog.h"
#include "scheduler/wait.h"

#include "os/clock.h"

#include <stdlib.h>

typedef struct stuck_tasks {
    const aco__thread_t *self;
    const aco_t **at; /* sorted by address. NULL: counts only */
    size_t n, room, sz; /* sz: bytes */
} stuck_t;

/* The task that must act before this wait ends; NULL: not known. */
static const aco_t *awaited(const aco__wait_t *wait)
{
    switch (wait->kind) {
    case ACO__WAIT_JOIN:
        return wait->object;
    case ACO__WAIT_MUTEX:
    case ACO__WAIT_RELOCK:
        return ((const aco_mutex_t *)wait->object)->owner;
    case ACO__WAIT_RDLOCK:
    case ACO__WAIT_WRLOCK:
        return ((const aco_rwlock_t *)wait->object)->writer;
    case ACO__WAIT_ONCE:
        return ((const aco_once_t *)wait->object)->running;
    default:
        return NULL;
    }
}

static int has_limit(const aco_t *task)
{
    const aco__task_record_t *record = *aco__task_flags(task) & TASK_SCOPED ? aco__task_record(task) : NULL;
    return aco__task_wait(task)->timer.index != 0 || (record && record->scope && record->scope->aco__limit);
}

static int note_candidate(aco_t *co, void *arg)
{
    stuck_t *stuck = arg;
    int is_own = aco__is_task(co) && co->share_stack->aco__thread == stuck->self;
    const aco__wait_t *wait = is_own ? aco__task_wait(co) : NULL;
    if (!wait || !(wait->kind == ACO__WAIT_MEMBERS || awaited(wait)) || has_limit(co))
        return 0;
    if (stuck->at)
        stuck->at[stuck->n] = co;
    stuck->n++;
    return stuck->at && stuck->n == stuck->room;
}

static int compare_tasks(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)*(const aco_t *const *)a, y = (uintptr_t)*(const aco_t *const *)b;
    return x < y ? -1 : x > y;
}

static int is_among(const aco_t *task, const void *tasks)
{
    const stuck_t *stuck = tasks;
    return stuck->n && bsearch(&task, stuck->at, stuck->n, sizeof task, compare_tasks) != NULL;
}

static int is_still_stuck(const stuck_t *stuck, const aco_t *task)
{
    const aco__wait_t *wait = aco__task_wait(task);
    const aco__task_record_t *member;
    if (wait->kind != ACO__WAIT_MEMBERS)
        return is_among(awaited(wait), stuck);
    member = ((const aco_group_t *)wait->object)->aco__first;
    while (member && !is_among(member->task, stuck))
        member = member->next;
    return member != NULL;
}

/* Keeps those that never wake. */
static void reduce(stuck_t *stuck)
{
    size_t n;
    qsort(stuck->at, stuck->n, sizeof *stuck->at, compare_tasks);
    do {
        stuck_t next = *stuck; /* in the same array, which still has what was not looked at */
        n = stuck->n;
        next.n = 0;
        for (size_t i = 0; i < n; i++)
            if (is_still_stuck(stuck, stuck->at[i]))
                stuck->at[n + next.n++] = stuck->at[i];
        memmove(stuck->at, stuck->at + n, next.n * sizeof *stuck->at);
        stuck->n = next.n;
    } while (stuck->n && stuck->n < n);
}

/* Fills in *stuck, which free_stuck() ends. -1: no memory. */
static int find_stuck(const aco__thread_t *self, stuck_t *stuck)
{
    *stuck = (stuck_t){self, NULL, 0, 0, 0};
    aco__blocks_each(note_candidate, stuck);
    if (!stuck->n)
        return 0;
    stuck->room = stuck->n;
    stuck->n = 0;
    stuck->sz = 2 * stuck->room * sizeof *stuck->at;
    stuck->at = aco__memory_new(&stuck->sz);
    if (!stuck->at)
        return -1;
    aco__blocks_each(note_candidate, stuck);
    reduce(stuck);
    return 0;
}

static void free_stuck(const stuck_t *stuck)
{
    if (stuck->at)
        aco__memory_free(stuck->at, stuck->sz);
}

int aco__stuck_each(const aco__thread_t *self, void (*see)(const aco_t *task, void *arg), void *arg)
{
    stuck_t stuck;
    int result = find_stuck(self, &stuck);
    for (size_t i = 0; i < stuck.n; i++)
        see(stuck.at[i], arg);
    free_stuck(&stuck);
    return result;
}

static void report_stuck(const aco__thread_t *self, aco__tasks_t *s)
{
    stuck_t stuck;
    uintptr_t mark = 0;
    if (find_stuck(self, &stuck) != 0 || !stuck.at)
        return;
    for (size_t i = 0; i < stuck.n; i++)
        mark = mark * 31 + (uintptr_t)stuck.at[i] + (uintptr_t)aco__task_wait(stuck.at[i]);
    if (stuck.n && mark != s->stuck_mark && s->stuck_reports < ACO__MOST_STUCK_REPORTS) {
        s->stuck_reports++;
        aco__report_stuck(self, is_among, &stuck, stuck.n);
    }
    s->stuck_mark = mark;
    free_stuck(&stuck);
}

int64_t aco__stuck_check(const aco__thread_t *self, aco__tasks_t *s, int64_t deadline)
{
    int64_t now, next;
    int live = deadline >= 0 || aco__expects_news(s) || s->idle || (s->poller && s->poller->waiters);
    if (!live || s->stuck_turns == s->turns) /* a deadlock of all, which aco_run() reports; nothing has changed */
        return deadline;
    now = aco__os_now();
    next = s->stuck_at + aco__watch_interval();
    if (now < next) /* a hook is to be asked for no other time than the program's */
        return s->idle || (deadline >= 0 && deadline < next) ? deadline : next;
    s->stuck_at = now;
    s->stuck_turns = s->turns;
    report_stuck(self, s);
    return deadline;
}
