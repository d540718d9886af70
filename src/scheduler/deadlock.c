/* The report of aco_run() if no task can ever run. */
#include "scheduler/wait.h"

#include <stdio.h>

enum { TEXT = 256 };

typedef struct report {
    const aco__thread_t *self;
    const aco_t *known;  /* a task that is known to be alive */
    size_t waiting;
} report_t;

static int is_ours(const aco_t *co, const aco__thread_t *self)
{
    return aco__is_task(co) && co->share_stack->aco__thread == self;
}

static int is_wanted(aco_t *co, void *wanted)
{
    return co == wanted && aco__is_task(co);
}

/* " (name)", or "" if the task has no name. */
static const char *name_of_live(const aco_t *task, char text[TEXT])
{
    if (!aco_name(task)[0])
        return "";
    snprintf(text, TEXT, " (%s)", aco_name(task));
    return text;
}

/* The same for a `task` that may have ended without releasing what it held; its memory may be freed. */
static const char *name_of(report_t *report, const aco_t *task, char text[TEXT])
{
    if (task != report->known && !aco__blocks_each(is_wanted, (void *)(uintptr_t)task))
        return " (which has ended)";
    report->known = task;
    return name_of_live(task, text);
}

static void describe(report_t *report, const aco__wait_t *wait, char text[TEXT])
{
    char name[TEXT];
    const aco_mutex_t *mutex = wait->object;
    const aco_wait_group_t *wait_group = wait->object;
    const aco_group_t *group = wait->object;
    const aco_rwlock_t *lock = wait->object;
    const aco_once_t *once = wait->object;
    const aco_barrier_t *barrier = wait->object;
    switch (wait->kind) {
    case ACO__WAIT_PARK:
        snprintf(text, TEXT, "to be unparked%s%s", wait->object ? ": " : "",
                 wait->object ? (const char *)wait->object : "");
        break;
    case ACO__WAIT_JOIN:
        snprintf(text, TEXT, "to join coroutine %p%s", wait->object, name_of_live(wait->object, name));
        break;
    case ACO__WAIT_MUTEX:
    case ACO__WAIT_RELOCK:
        snprintf(text, TEXT, "for mutex %p, held by coroutine %p%s", wait->object, (void *)mutex->owner,
                 name_of(report, mutex->owner, name));
        break;
    case ACO__WAIT_COND:
        snprintf(text, TEXT, "for condition %p", wait->object);
        break;
    case ACO__WAIT_SEMAPHORE:
        snprintf(text, TEXT, "for semaphore %p", wait->object);
        break;
    case ACO__WAIT_GROUP:
        snprintf(text, TEXT, "for wait group %p, whose count is %zu", wait->object,
                 wait_group->count);
        break;
    case ACO__WAIT_SEND:
        snprintf(text, TEXT, "to send to channel %p", wait->object);
        break;
    case ACO__WAIT_RECEIVE:
        snprintf(text, TEXT, "to receive from channel %p", wait->object);
        break;
    case ACO__WAIT_RDLOCK:
    case ACO__WAIT_WRLOCK:
        if (lock->writer)
            snprintf(text, TEXT, "for reader-writer lock %p, held by coroutine %p%s", wait->object,
                     (void *)lock->writer, name_of(report, lock->writer, name));
        else
            snprintf(text, TEXT, "for reader-writer lock %p, held by %zu reader(s)", wait->object, lock->readers);
        break;
    case ACO__WAIT_ONCE:
        snprintf(text, TEXT, "for the function that coroutine %p%s runs once", (void *)once->running,
                 name_of(report, once->running, name));
        break;
    case ACO__WAIT_BARRIER:
        snprintf(text, TEXT, "at barrier %p, with %zu of %zu task(s)", wait->object, barrier->arrived,
                 barrier->count);
        break;
    case ACO__WAIT_EVENT:
        snprintf(text, TEXT, "for event %p", wait->object);
        break;
    case ACO__WAIT_READABLE:
    case ACO__WAIT_WRITABLE:
        snprintf(text, TEXT, "for %s fd %d", wait->kind == ACO__WAIT_READABLE ? "readable" : "writable",
                 (int)(uintptr_t)wait->object);
        break;
    case ACO__WAIT_PLACE:
        snprintf(text, TEXT, "for one of the %zu places of group %p", group->limit, wait->object);
        break;
    case ACO__WAIT_MEMBERS:
        snprintf(text, TEXT, "for %zu member(s) of group %p", group->running, wait->object);
        break;
    default: /* ACO__WAIT_SELECT; a sleeping task is never part of a deadlock */
        aco__describe_select(wait, text, TEXT);
    }
}

static int report_one(aco_t *co, void *arg)
{
    report_t *report = arg;
    const aco__wait_t *wait = is_ours(co, report->self) ? aco__task_wait(co) : NULL;
    const char *name = wait ? aco_name(co) : "";
    char text[TEXT];
    if (!wait)
        return 0;
    report->waiting++;
    describe(report, wait, text);
    aco__warn("aco_run", co, "%s%s%swaits at %s %s", name[0] ? "(" : "", name, name[0] ? ") " : "",
              wait->location ? wait->location : "an unknown location", text);
    return 0;
}

int aco__fail_deadlock(const aco__thread_t *self)
{
    report_t report = {self, NULL, 0};
    aco__blocks_each(report_one, &report);
    return aco__fail(0, EDEADLK, "aco_run", NULL,
                     "deadlock: %zu task(s) wait, and nothing is left that could wake them", report.waiting);
}
