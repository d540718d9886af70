/* Says what tasks do: the report of aco_run() when no task can ever run, and aco_tasks_dump(). Both print a line for
 * each of the first MOST_TASKS tasks at a place, and one for the others there, so that a report of any number of tasks
 * has at most some hundred lines. A place is where tasks wait and for what kind of thing, or where they stopped. */
#include "scheduler/reports/report.h"
#include "scheduler/sync/channel.h"
#include "scheduler/sync/readers.h"
#include "scheduler/wait.h"

#include "os/clock.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { TEXT = ACO__REPORT_TEXT, LINE = 1024, MOST_PLACES = 32, MOST_TASKS = 8, MOST_READERS_NAMED = 3 };

typedef enum turn { RUNS, CAN_RUN, NOT_BEGUN, WAITS } turn_t;
static const char *const states[] = {"runs", "can run", "has not begun", "waits"};

typedef struct wait_place {
    turn_t state;
    unsigned kind;          /* of a wait */
    const char *location;   /* of a wait; NULL: unknown, or no wait; then the next counts */
    const void *address;    /* where the code of the task goes on */
    size_t count;
    const aco_t *tasks[MOST_TASKS];
} wait_place_t;

typedef struct task_report {
    const aco__thread_t *self;
    const char *call;
    int file;
    int failed;             /* the errno of a write, or 0 */
    int64_t now;
    const aco_t *known;     /* a task that is known to be alive */
    int (*is_chosen)(const aco_t *task, const void *chosen); /* NULL: all tasks */
    const void *chosen;
    size_t tasks, elsewhere, places_n; /* elsewhere: tasks at places for which there was no room */
    wait_place_t places[MOST_PLACES];
} report_t;

/* Prints a line: "acorn: CALL: ", `length` bytes of text as of snprintf(), and the line's end. */
static void print_line(report_t *report, const char *text, int length)
{
    char line[LINE + TEXT];
    int n = snprintf(line, TEXT, "acorn: %s: ", report->call);
    length = length < LINE - 1 ? length : LINE - 1;
    memcpy(line + n, text, (size_t)length);
    line[n + length] = '\n';
    if (aco__os_write(report->file, line, (size_t)(n + length) + 1) != 0 && !report->failed)
        report->failed = errno;
}

/* ---- Names ---- */

/* The names of tasks that have ended: of tasks whose address falls to the same entry, the last one's. So a task that
 * ends while others wait for what it has can still be named. */
struct aco__ended_task {
    const aco_t *task;
    char name[ACO_NAME_SIZE];
};
enum { ENDED_TASKS = 256 };

static size_t entry_of_ended(const aco_t *task)
{
    return ((uintptr_t)task >> 6) * (size_t)2654435761u / 65536 % ENDED_TASKS;
}

void aco__remember_name(aco__thread_t *self, const aco_t *task)
{
    aco__tasks_t *s = aco__tasks(self);
    const char *name = aco_name(task);
    struct aco__ended_task *entry;
    if (!name[0])
        return;
    aco__reader_ends(s, task, name);
    if (!s->ended_tasks) {
        s->ended_tasks_sz = ENDED_TASKS * sizeof *s->ended_tasks;
        s->ended_tasks = aco__memory_new(&s->ended_tasks_sz);
        if (!s->ended_tasks)
            return;
        memset(s->ended_tasks, 0, ENDED_TASKS * sizeof *s->ended_tasks);
    }
    entry = &s->ended_tasks[entry_of_ended(task)];
    entry->task = task;
    memcpy(entry->name, name, strlen(name) + 1);
}

static int is_ours(const aco_t *co, const aco__thread_t *self)
{
    return aco__is_task(co) && co->share_stack->aco__thread == self;
}

enum { IS_TASK = 1, WAS_TASK };

static int is_wanted(aco_t *co, void *wanted)
{
    return co != wanted ? 0 : aco__is_task(co) ? IS_TASK : WAS_TASK;
}

/* " (name)", or "" if the task has no name. */
static const char *name_of_live(const aco_t *task, char text[TEXT])
{
    if (!aco_name(task)[0])
        return "";
    snprintf(text, TEXT, " (%s)", aco_name(task));
    return text;
}

/* The same for a `task` that may have ended without releasing what it held, or belong to another thread; its memory may
 * be freed. */
static const char *name_of(report_t *report, const aco_t *task, char text[TEXT])
{
    const aco__tasks_t *s = aco__tasks(report->self);
    const struct aco__ended_task *entry = s->ended_tasks ? &s->ended_tasks[entry_of_ended(task)] : NULL;
    int is = task == report->known ? IS_TASK : aco__blocks_each(is_wanted, (void *)(uintptr_t)task);
    if (is == IS_TASK) {
        report->known = task;
        return name_of_live(task, text);
    }
    if (!entry || entry->task != task)
        return is == WAS_TASK ? " (which has ended)" : " (which has ended, or is another thread's)";
    snprintf(text, TEXT, " (which has ended; one there was named %s)", entry->name);
    return text;
}

/* ---- What a task waits for ---- */

/* "held by 3 reader(s): coroutine 0x1 (name) and 2 more"; or without those who are not known. */
static void describe_readers(report_t *report, const aco_rwlock_t *lock, char text[TEXT], int n)
{
    char name[TEXT];
    const aco__reader_t *reader;
    size_t known = 0, i = 0;
    n += snprintf(text + n, TEXT - (size_t)n, ", held by %zu reader(s)", lock->readers);
    while (known < MOST_READERS_NAMED && (reader = aco__reader_next(aco__tasks(report->self), lock, &i)) != NULL) {
        n += snprintf(text + n, TEXT - (size_t)n, "%s coroutine %p", known ? "," : ":", (const void *)reader->task);
        if (n < TEXT)
            n += reader->name[0] ? snprintf(text + n, TEXT - (size_t)n, " (%s, which has ended)", reader->name)
                                 : snprintf(text + n, TEXT - (size_t)n, "%s", name_of(report, reader->task, name));
        if (n >= TEXT)
            return;
        known++;
    }
    if (known && known < lock->readers)
        (void)snprintf(text + n, TEXT - (size_t)n, " and %zu more", lock->readers - known);
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
    case ACO__WAIT_SLEEP:
        snprintf(text, TEXT, "for time to pass");
        break;
    case ACO__WAIT_MUTEX:
    case ACO__WAIT_RELOCK:
        if (!mutex->owner)
            snprintf(text, TEXT, "for mutex %p, which is free now", wait->object);
        else
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
            describe_readers(report, lock, text, snprintf(text, TEXT, "for reader-writer lock %p", wait->object));
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
    case ACO__WAIT_ANSWER:
        if (!wait->object) {
            snprintf(text, TEXT, "for the system to answer");
            break;
        }
        aco__os_describe_code(wait->object, name, sizeof name);
        snprintf(text, TEXT, "for another thread to run %.200s", name);
        break;
    case ACO__WAIT_MT:
        snprintf(text, TEXT, "for %.200s", (const char *)wait->object);
        break;
    case ACO__WAIT_PLACE:
        snprintf(text, TEXT, "for one of the %zu places of group %p", group->limit, wait->object);
        break;
    case ACO__WAIT_MEMBERS:
        snprintf(text, TEXT, "for %zu member(s) of group %p", group->running, wait->object);
        break;
    default: /* ACO__WAIT_SELECT */
        aco__describe_select(wait, text, TEXT);
    }
}

/* ---- Places ---- */

/* Where a task goes on. That of a task on a share stack is in its annex while its frames are saved. */
static const aco__context_t *context_of(const aco_t *task)
{
    return aco__is_on_private(task) || aco__is_on_its_stack(task, task->aco__self.sp) ? &task->aco__self
                                                                                      : &aco__annex(task)->context;
}

static turn_t turn_of(const report_t *report, const aco_t *task)
{
    if (aco__task_wait(task))
        return WAITS;
    if (task == report->self->running || aco__task_is_resuming(report->self, task))
        return RUNS;
    return context_of(task)->sp == task->share_stack->aco__top ? NOT_BEGUN : CAN_RUN;
}

static int is_same(const wait_place_t *a, const wait_place_t *b)
{
    return a->state == b->state && a->kind == b->kind && a->location == b->location &&
           (a->location || a->state != CAN_RUN ? 1 : a->address == b->address);
}

static int note_task(aco_t *co, void *arg)
{
    report_t *report = arg;
    const aco__wait_t *wait;
    wait_place_t new_place = {RUNS, 0, NULL, NULL, 0, {NULL}}, *place = report->places;
    if (!is_ours(co, report->self) || (report->is_chosen && !report->is_chosen(co, report->chosen)))
        return 0;
    report->tasks++;
    wait = aco__task_wait(co);
    new_place.state = turn_of(report, co);
    new_place.kind = wait ? wait->kind : 0;
    new_place.location = wait ? wait->location : NULL;
    new_place.address = context_of(co)->pc;
    while (place < report->places + report->places_n && !is_same(place, &new_place))
        place++;
    if (place == report->places + MOST_PLACES) {
        report->elsewhere++;
        return 0;
    }
    if (place == report->places + report->places_n) {
        *place = new_place;
        report->places_n++;
    }
    if (place->count < MOST_TASKS)
        place->tasks[place->count] = co;
    place->count++;
    return 0;
}

/* "waits at FILE:LINE", and the like. */
static void describe_place(const wait_place_t *place, char text[TEXT])
{
    int n = snprintf(text, TEXT, "%s%s", states[place->state], place->state == WAITS ? " at " : "");
    if (place->location) {
        char location[TEXT];
        snprintf(text + n, TEXT - (size_t)n, "%s", aco__location(place->location, location, sizeof location));
    } else if (place->state == WAITS || place->state == CAN_RUN) {
        n += snprintf(text + n, TEXT - (size_t)n, "%s", place->state == WAITS ? "" : " at ");
        aco__os_describe_code(place->address, text + n, TEXT - (size_t)n);
    }
}

/* ---- Lines ---- */

__attribute__((format(ACO__PRINTF, 3, 4))) static int add_text(char line[LINE], int n, const char *format, ...)
{
    va_list args;
    if (n >= LINE - 1)
        return n;
    va_start(args, format);
    n += vsnprintf(line + n, LINE - (size_t)n, format, args);
    va_end(args);
    return n;
}

/* "WHAT 1.234 s" */
static int append_time(char line[LINE], int n, const char *what, int64_t ns)
{
    int64_t ms = (ns < 0 ? 0 : ns) / ACO_MILLISECOND;
    return add_text(line, n, "%s %" PRId64 ".%03d s", what, ms / 1000, (int)(ms % 1000));
}

static int append_wait(report_t *report, const aco__wait_t *wait, char line[LINE], int n)
{
    char text[TEXT];
    describe(report, wait, text);
    n = add_text(line, n, " %s", text);
    n = append_time(line, n, "; has waited up to",
                 (int64_t)((uint32_t)(report->now / ACO_MILLISECOND) - (uint32_t)wait->since) * ACO_MILLISECOND);
    if (wait->timer.index)
        n = append_time(line, n, ", ends in",
                     aco__tasks(report->self)->timers[wait->timer.index - 1].deadline - report->now);
    return n;
}

static int append_scopes(const report_t *report, const aco_t *task, char line[LINE], int n)
{
    const aco__task_record_t *record = aco__task_record(task);
    const aco_scope_t *scope;
    if (!(*aco__task_flags(task) & TASK_SCOPED))
        return n;
    scope = record->scope;
    if (record->group)
        n = add_text(line, n, "; member of group %p", (void *)record->group);
    if (scope && scope->aco__ended_by)
        n = add_text(line, n, "; its scope %p %s", (void *)scope->aco__ended_by,
                scope->aco__ended_by->error == ETIMEDOUT ? "has timed out" : "was cancelled");
    else if (scope && scope->aco__limit)
        n = append_time(line, n, "; its scope ends in", scope->aco__limit->aco__deadline - report->now);
    else if (scope)
        n = add_text(line, n, "; in scope %p", (const void *)scope);
    return n;
}

static void print_task(report_t *report, const wait_place_t *place, const aco_t *task)
{
    const aco__wait_t *wait = aco__task_wait(task);
    const char *name = aco_name(task);
    char line[LINE], text[TEXT];
    aco_function_t function = aco__entry_of_task(task);
    void *entry;
    int n;
    describe_place(place, text);
    n = add_text(line, 0, "coroutine %p: %s%s%s%s", (const void *)task, name[0] ? "(" : "", name,
                 name[0] ? ") " : "", text);
    if (wait)
        n = append_wait(report, wait, line, n);
    n = append_scopes(report, task, line, n);
    memcpy(&entry, &function, sizeof entry);
    aco__os_describe_code(entry, text, sizeof text);
    n = add_text(line, n, "; entry %s", text);
    print_line(report, line, n);
}

static void print_place(report_t *report, const wait_place_t *place)
{
    char line[LINE], text[TEXT];
    size_t more = place->count > MOST_TASKS ? place->count - MOST_TASKS : 0;
    int n;
    for (size_t i = 0; i < place->count - more; i++)
        print_task(report, place, place->tasks[i]);
    if (!more)
        return;
    describe_place(place, text);
    n = add_text(line, 0, "%zu more: each %s", more, text);
    print_line(report, line, n);
}

static void print_report(report_t *report)
{
    char line[LINE];
    ACO__NO_SWITCH_BEGIN(); /* a task that ran could end, and another one be noted */
    report->now = aco__os_now();
    aco__blocks_each(note_task, report);
    for (size_t i = 0; i < report->places_n; i++)
        print_place(report, &report->places[i]);
    if (report->elsewhere) {
        int n = add_text(line, 0, "%zu more, at other places", report->elsewhere);
        print_line(report, line, n);
    }
    ACO__NO_SWITCH_END();
}

int aco__fail_deadlock(const aco__thread_t *self)
{
    report_t report = {0};
    report.self = self;
    report.call = "aco_run";
    report.file = 2 /* stderr */;
    print_report(&report);
    return aco__fail(0, EDEADLK, "aco_run", NULL,
                     "deadlock: %zu task(s) wait, and nothing is left that could wake them", report.tasks);
}

void aco__report_stuck(const aco__thread_t *self, int (*is_stuck)(const aco_t *task, const void *arg), const void *arg,
                       size_t n)
{
    report_t report = {0};
    report.self = self;
    report.call = "watchdog";
    report.file = 2 /* stderr */;
    report.is_chosen = is_stuck;
    report.chosen = arg;
    print_report(&report);
    aco__warn("watchdog", NULL, "deadlock: %zu task(s) wait for each other, while others go on", n);
}

int aco_tasks_dump(int file)
{
    report_t report = {0};
    char line[LINE];
    int n;
    report.self = aco__self();
    report.call = "aco_tasks_dump";
    report.file = file;
    if (report.self->scheduler)
        print_report(&report);
    n = add_text(line, 0, "%zu task(s) of this thread", report.tasks);
    print_line(&report, line, n);
    if (report.failed)
        return aco__fail(0, report.failed, "aco_tasks_dump", NULL, "cannot write to descriptor %d: %s", file,
                         strerror(report.failed));
    return 0;
}

int aco__kind_of_wait(unsigned kind)
{
    switch (kind) {
    case ACO__WAIT_MUTEX:
    case ACO__WAIT_RELOCK:
    case ACO__WAIT_RDLOCK:
    case ACO__WAIT_WRLOCK:
    case ACO__WAIT_SEMAPHORE:
        return ACO__SEEN_LOCK;
    case ACO__WAIT_READABLE:
    case ACO__WAIT_WRITABLE:
        return ACO__SEEN_IO;
    case ACO__WAIT_SLEEP:
        return ACO__SEEN_TIME;
    default:
        return ACO__SEEN_TASKS;
    }
}

/* What the holder of the lock waits for that `wait`, which was described, is for. NULL: it does not wait, or is
 * unknown. */
static const aco__wait_t *wait_of_holder(const report_t *report, const aco__wait_t *wait)
{
    const aco_mutex_t *mutex = wait->object;
    const aco_rwlock_t *lock = wait->object;
    const int is_mutex = wait->kind == ACO__WAIT_MUTEX || wait->kind == ACO__WAIT_RELOCK;
    const int is_lock = wait->kind == ACO__WAIT_RDLOCK || wait->kind == ACO__WAIT_WRLOCK;
    const aco_t *holder = is_mutex ? mutex->owner : is_lock ? lock->writer : NULL;
    if (!holder || holder != report->known || !is_ours(holder, report->self)) /* name_of() has found that it lives */
        return NULL;
    return aco__task_wait(holder);
}

/* ", which waits at FILE:LINE for time to pass"; the place is `seen->holder_at`, in `place`, or NULL: nothing. */
static void describe_holder(report_t *report, const aco__wait_t *wait, char text[TEXT], char place[TEXT],
                            aco__task_seen_t *seen)
{
    const aco__wait_t *of_holder = wait_of_holder(report, wait);
    char reason[TEXT];
    size_t n = strlen(text);
    if (!of_holder || !of_holder->location)
        return;
    seen->holder_at = aco__location(of_holder->location, place, TEXT);
    describe(report, of_holder, reason);
    (void)snprintf(text + n, TEXT - n, ", which waits at %s %s", seen->holder_at, reason);
}

void aco__report_task(const aco__thread_t *self, const aco_t *task, int wants_text, char text[3 * ACO__REPORT_TEXT],
                      aco__task_seen_t *seen)
{
    const aco__wait_t *wait = aco__task_wait(task);
    aco_function_t function = aco__entry_of_task(task);
    aco__inspected_t *inspected = &aco__tasks(self)->inspected;
    const void *const *spawned_at = aco__spawned_at(task);
    report_t report = {0};
    report.self = self;
    report.known = inspected->owner; /* else each task that waits for a lock costs a walk over all tasks */
    text[0] = 0;
    if (wait && wants_text) {
        describe(&report, wait, text);
        inspected->owner = report.known; /* as the next call may look for another one */
        describe_holder(&report, wait, text, text + 2 * TEXT, seen);
    }
    seen->task = task;
    seen->name = aco_name(task);
    seen->state = states[turn_of(&report, task)];
    seen->waits_for = text;
    seen->location = wait && wait->location ? aco__location(wait->location, text + TEXT, TEXT) : NULL;
    seen->place = wait ? wait->location : NULL;
    memcpy(&seen->entry, &function, sizeof function);
    seen->spawned_at = spawned_at ? *spawned_at : NULL;
    seen->group = *aco__task_flags(task) & TASK_SCOPED ? aco__task_record(task)->group : NULL;
    seen->scope = *aco__task_flags(task) & TASK_SCOPED ? aco__task_record(task)->scope : NULL;
    seen->fd = wait && aco__kind_of_wait(wait->kind) == ACO__SEEN_IO ? (int)(uintptr_t)wait->object : -1;
    seen->waits_kind = wait ? aco__kind_of_wait(wait->kind) : 0;
    seen->lock = seen->waits_kind == ACO__SEEN_LOCK ? wait->object : NULL;
    seen->waited_ms = wait ? (int64_t)((uint32_t)(aco__os_now() / ACO_MILLISECOND) - (uint32_t)wait->since) : 0;
}
