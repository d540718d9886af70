/* Promises about waiting tasks (include/aco/scheduler.h), one function each: parking, time, the idle hook, the deadlock
 * report. */
#define _GNU_SOURCE
#include "tasks.h"
#include "child.h"
#include "fails.h"

#include <aco/scope.h>

/* ---- Parking ---- */

static void *unparks(void *task)
{
    say('u');
    CHECK_EQ(aco_unpark(task), 0);
    CHECK_EQ(aco_state(task), ACO_STATE_SUSPENDED);
    say('u');
    return NULL;
}

static void *unparks_later(void *task)
{
    aco_task_yield();
    say('l');
    CHECK_EQ(aco_unpark(task), 0);
    return NULL;
}

static void *parks_thrice(void *unused)
{
    (void)unused;
    CHECK_EQ(aco_unpark(aco_get_co()), 0); /* running: however often, one permit */
    CHECK_EQ(aco_unpark(aco_get_co()), 0);
    CHECK_EQ(aco_park(NULL), 0);
    say('1');
    aco_task_yield(); /* unparked meanwhile */
    CHECK_EQ(aco_park(NULL), 0);
    say('2');
    CHECK_EQ(aco_park(NULL), 0);
    say('3');
    return NULL;
}

static void *waits_for_semaphore(void *semaphore)
{
    CHECK_EQ(aco_semaphore_acquire(semaphore), 0);
    say('s');
    CHECK_EQ(aco_park(NULL), 0); /* the permit came while it waited for something else */
    say('p');
    return NULL;
}

static void *releases(void *semaphore)
{
    aco_semaphore_release(semaphore);
    return NULL;
}

static void parking(void)
{
    aco_semaphore_t semaphore = ACO_SEMAPHORE_INIT(0);
    aco_t *task = spawn_as(parks, "p", ACO_DETACHED, NULL);
    spawn_detached(unparks, task);
    spawn_detached(three_turns, "x");
    run();
    CHECK_HISTORY("puuxpxx");
    task = spawn_as(parks_thrice, NULL, ACO_DETACHED, NULL);
    spawn_detached(unparks, task);
    spawn_detached(unparks_later, task);
    run();
    CHECK_HISTORY("1uu2l3");
    task = spawn_as(waits_for_semaphore, &semaphore, ACO_DETACHED, NULL);
    spawn_detached(unparks, task);
    spawn_detached(releases, &semaphore);
    run();
    CHECK_HISTORY("uusp");
}

/* ---- Time ---- */

typedef struct nap {
    int64_t ns;
    char name;
    int64_t since; /* 0: when it begins */
} nap_t;

static int64_t last_began;

static void *naps(void *arg)
{
    const nap_t *nap = arg;
    int64_t before = last_began = aco_now();
    CHECK_EQ(aco_sleep(nap->since ? nap->since + nap->ns - before : nap->ns), 0);
    CHECK(aco_now() - (nap->since ? nap->since : before) >= nap->ns);
    say(nap->name);
    return NULL;
}

static int napping;

static void *busy_while_napping(void *unused)
{
    long turns = 0;
    for (; napping; turns++)
        aco_task_yield();
    CHECK(turns > 0);
    return unused;
}

static void *naps_and_tells(void *unused)
{
    CHECK_EQ(aco_sleep(1000000), 0); /* while others run all the time */
    napping = 0;
    return unused;
}

static void *sleeps_no_time(void *unused)
{
    say('0');
    CHECK_EQ(aco_sleep(0), 0);
    CHECK_EQ(aco_sleep(-5), 0);
    say('0');
    return unused;
}

/* A deadline that has long passed: the others' turns do not hold the sleeper up. */
static void *sleeps_until_long_ago(void *arg)
{
    static const int64_t long_ago[] = {INT64_MIN, INT64_MIN + 1, -ACO_SECOND, -1, 0};
    aco_scope_t scope;
    for (size_t i = 0; i < sizeof long_ago / sizeof *long_ago; i++) {
        CHECK_EQ(aco_sleep_until(long_ago[i]), 0);
        CHECK_EQ(aco_scope_begin(&scope, long_ago[i]), 0);
        CHECK(aco_park("an end") == -1 && errno == ETIMEDOUT);
        CHECK_EQ(aco_scope_end(&scope), 0);
    }
    *(int *)arg = 1;
    return NULL;
}

static void *yields_until_set(void *arg)
{
    for (int turns = 0; turns < 100000 && !*(int *)arg; turns++)
        aco_task_yield();
    CHECK_EQ(*(int *)arg, 1);
    return NULL;
}

static void long_ago(void)
{
    int woke = 0;
    spawn_detached(sleeps_until_long_ago, &woke);
    spawn_detached(yields_until_set, &woke);
    run();
    woke = 0;
    spawn_detached(sleeps_until_long_ago, &woke); /* alone: no deadlock */
    run();
    CHECK_EQ(woke, 1);
}

static void *naps_at_random(void *seed)
{
    uint32_t x = (uint32_t)(uintptr_t)seed * 2654435761u + 1;
    for (int i = 0; i < 20; i++) {
        int64_t ns = (int64_t)((x = x * 1664525u + 1013904223u) >> 14), before = aco_now();
        CHECK_EQ(aco_sleep(ns), 0);
        CHECK(aco_now() - before >= ns);
    }
    return NULL;
}

static void time_passes(void)
{
    static nap_t order[] = {{0, 'c', 0}, {0, 'b', 0}, {0, 'a', 0}, {0, 'd', 0}};
    static const int64_t unit[] = {6, 3, 1, 12};
    /* On a busy machine one may begin when another is due already: then their order is another, and they nap longer. */
    for (int64_t ns = 5000000, before; ns < 3000000000; ns *= 4) {
        memset(history, 0, sizeof history);
        before = aco_now();
        for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
            order[i].ns = unit[i] * ns;
            order[i].since = before;
            spawn_detached(naps, &order[i]);
        }
        run();
        CHECK(aco_now() - before >= 12 * ns);
        if (last_began - before < ns)
            break;
    }
    CHECK_HISTORY("abcd");
    napping = 1;
    spawn_detached(busy_while_napping, NULL);
    spawn_detached(naps_and_tells, NULL);
    run();
    spawn_detached(sleeps_no_time, NULL);
    spawn_detached(three_turns, "x");
    run();
    CHECK_HISTORY("0xx0x");
    for (uintptr_t i = 0; i < 100; i++)
        spawn_detached(naps_at_random, (void *)i);
    run();
}

/* Waits that end by time or before, in any order. Who is due when is known, except for the moments between two
 * calls. */
enum { TIMED = 200 };
static struct timed {
    aco_channel_t *channel;
    int64_t earliest, latest; /* when it is due */
} timed[TIMED];
static int ended_by_time[TIMED], ended;
static uint32_t dice = 1;

static uint32_t roll(uint32_t sides)
{
    dice = dice * 1664525u + 1013904223u;
    return (dice >> 8) % sides;
}

static void *waits_some_time(void *arg)
{
    struct timed *me = arg;
    int64_t timeout = 1000000 + (int64_t)roll(100) * 200000;
    aco_select_case_t one = {me->channel, NULL, ACO_SELECT_RECEIVE, 0, {0}};
    me->earliest = aco_now() + timeout;
    if (me > timed)
        me[-1].latest += aco_now();
    me->latest = timeout; /* after the call, when the next one runs */
    if (aco_select_until(&one, 1, aco_after(timeout)) == 0)
        return NULL;
    CHECK_EQ(errno, ETIMEDOUT);
    CHECK(aco_now() >= me->earliest);
    ended_by_time[ended++] = (int)(me - timed);
    return NULL;
}

static void *ends_some_waits(void *unused)
{
    timed[TIMED - 1].latest += aco_now();
    for (int i = 0; i < TIMED; i++) {
        errno = 0;
        aco_channel_try_send(timed[roll(TIMED)].channel, NULL);
    }
    return unused;
}

static void timers(void)
{
    ended = 0;
    for (int i = 0; i < TIMED; i++) {
        timed[i].channel = aco_channel_new(0, 0);
        spawn_detached(waits_some_time, &timed[i]);
    }
    spawn_detached(ends_some_waits, NULL);
    run();
    CHECK(ended > TIMED / 5 && ended < TIMED);
    for (int i = 0; i < ended; i++)
        for (int j = i + 1; j < ended; j++)
            CHECK(timed[ended_by_time[i]].earliest <= timed[ended_by_time[j]].latest);
    for (int i = 0; i < TIMED; i++)
        CHECK_EQ(aco_channel_destroy(timed[i].channel), 0);
}

/* ---- The idle hook ---- */

typedef struct events {
    aco_t *waiting;
    int calls, polls, answer, left;
    int64_t timeout; /* of the last call that could wait */
} events_t;

enum { FAILS_WHEN_POLLED = -2 };

static int idle(void *ctx, int64_t timeout_ns)
{
    events_t *events = ctx;
    if (timeout_ns == 0) {
        events->polls++;
        errno = EIO;
        return events->answer == FAILS_WHEN_POLLED ? -1 : 1;
    }
    events->timeout = timeout_ns;
    events->calls++;
    FAILS(aco_run(), -1, EBUSY, "aco_run", NULL, "the idle hook");
    CHECK(aco_is_in_main_co());
    if (events->left && events->left--) {
        say('i');
        CHECK_EQ(aco_unpark(events->waiting), 0);
        return 1;
    }
    if (events->answer < 0)
        errno = EIO;
    return events->answer;
}

static void *waits_for_events(void *events)
{
    while (((events_t *)events)->left) {
        CHECK_EQ(aco_park("an event"), 0);
        say('e');
    }
    return NULL;
}

static void *yields_long(void *n)
{
    for (int i = 0; i < *(int *)n; i++)
        aco_task_yield();
    return NULL;
}

static int spawns_once(void *left, int64_t timeout_ns)
{
    (void)timeout_ns;
    if (!*(int *)left)
        return 0;
    --*(int *)left;
    spawn_detached(three_turns, "h");
    return 1;
}

static void events(void)
{
    events_t e = {NULL, 0, 0, 0, 3, 0};
    nap_t nap = {3000000, 'n', 0};
    int n = 1000, once = 1;
    aco_t *parked;
    char report[256];
    CHECK_EQ(aco_on_idle(idle, &e), 0);
    run(); /* no task: the hook is not asked */
    CHECK_EQ(e.calls + e.polls, 0);
    e.waiting = spawn_as(waits_for_events, &e, ACO_DETACHED, NULL);
    run();
    CHECK_HISTORY("ieieie");
    CHECK_EQ(e.calls, 3);
    CHECK_EQ(e.timeout, -1);
    spawn_detached(yields_long, &n); /* it is asked while tasks run, too */
    run();
    CHECK(e.polls > 5 && e.polls < 500);
    CHECK_EQ(e.calls, 3);
    /* Asked with the time that is left; nothing can come of it, so the scheduler sleeps itself. Longer, where a busy
     * machine lets the nap pass before. */
    for (e.timeout = 0; e.timeout == 0 && nap.ns < 10000000000; nap.ns *= 2) {
        spawn_detached(naps, &nap);
        run();
        CHECK_HISTORY("n");
        CHECK(e.timeout >= 0 && e.timeout <= nap.ns);
    }
    CHECK(e.calls > 3 && e.timeout > 0);
    e.answer = -1;
    parked = spawn_as(parks, "p", ACO_DETACHED, NULL);
    FAILS(aco_run(), -1, EIO, "aco_run", NULL, "the idle hook failed");
    CHECK_EQ(aco_unpark(parked), 0);
    run();
    CHECK_HISTORY("pp");
    e.answer = FAILS_WHEN_POLLED;
    spawn_detached(yields_long, &n);
    FAILS(aco_run(), -1, EIO, "aco_run", NULL, "the idle hook failed");
    e.answer = 0;
    run();
    CHECK_EQ(aco_on_idle(spawns_once, &once), 0);
    parked = spawn_as(parks, "p", ACO_DETACHED, NULL);
    check_deadlock(report, sizeof report);
    CHECK(strstr(report, "to be unparked: a test"));
    CHECK_HISTORY("phhh");
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
    CHECK_EQ(aco_unpark(parked), 0);
    run();
    CHECK_HISTORY("p");
}

typedef struct stopped {
    aco_t *waiting;
    int64_t deadline;
    int has_event, is_late; /* is_late: the machine is slow, nothing came before the deadline */
} stopped_t;

/* The hook's wait is interrupted by a stop of the process. Something comes for the task meanwhile, before its deadline;
 * the process continues after it. The hook finds what has come when it is asked again. */
static int idle_stopped(void *arg, int64_t timeout_ns)
{
    stopped_t *of = arg;
    if (of->has_event) {
        of->has_event = 0;
        CHECK_EQ(aco_unpark(of->waiting), 0);
    } else if (timeout_ns > 0) {
        of->has_event = 1;
        of->is_late = aco_now() >= of->deadline;
        while (aco_now() <= of->deadline)
            continue;
    }
    return 1;
}

static void *parks_until(void *arg)
{
    stopped_t *of = arg;
    of->waiting = aco_current_task();
    for (int64_t ns = 2 * ACO_MILLISECOND; of->is_late; ns *= 2) {
        aco_scope_t scope;
        int result;
        of->deadline = aco_after(ns);
        aco_scope_begin(&scope, of->deadline);
        result = aco_park("a test");
        aco_scope_end(&scope);
        CHECK(result == 0 || of->is_late);
    }
    return NULL;
}

/* Promise: what the idle hook finds is in time if it came before a deadline. */
static void event_before_deadline(void)
{
    stopped_t stopped = {NULL, 0, 0, 1};
    CHECK_EQ(aco_on_idle(idle_stopped, &stopped), 0);
    spawn_as(parks_until, &stopped, ACO_DETACHED, NULL);
    run();
    CHECK(!stopped.is_late);
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
}

/* ---- Deadlock ---- */

static aco_mutex_t fork_a, fork_b;
static aco_cond_t condition;
static aco_semaphore_t empty_semaphore;
static aco_wait_group_t group;
static aco_channel_t *channel, *other_channel;
static aco_t *first, *second;
static aco_mutex_t left_locked; /* by the first of two that lock it */
static void *left_by;
static int line_of_lock;

static void *takes_both(void *left)
{
    CHECK_EQ(aco_mutex_lock(left), 0);
    aco_task_yield();
    CHECK_EQ(aco_mutex_lock_at(left == &fork_a ? &fork_b : &fork_a, "here:1"), 0);
    return NULL;
}

static void *waits_for(void *what)
{
    aco_mutex_t mutex = ACO_MUTEX_INIT;
    int64_t element = 0;
    aco_select_case_t two[2] = {{other_channel, NULL, ACO_SELECT_RECEIVE, 0, {0}},
                                {other_channel, &element, ACO_SELECT_SEND, 0, {0}}};
    switch ((intptr_t)what) {
    case 0:
        return (void *)(intptr_t)aco_park_at("Godot", "here:2");
    case 1:
        return (void *)(intptr_t)aco_join_at(first, NULL, "here:3");
    case 2:
        aco_mutex_lock(&mutex);
        return (void *)(intptr_t)aco_cond_wait_at(&condition, &mutex, "here:4");
    case 3:
        return (void *)(intptr_t)aco_semaphore_acquire_at(&empty_semaphore, "here:5");
    case 4:
        aco_wait_group_add(&group, 2);
        return (void *)(intptr_t)aco_wait_group_wait_at(&group, "here:6");
    case 5:
        return (void *)(intptr_t)aco_channel_receive_at(channel, NULL, "here:7");
    case 6:
        return (void *)(intptr_t)aco_select_at(two, 2, "here:8");
    }
    line_of_lock = __LINE__ + 1;
    CHECK_EQ(aco_mutex_lock(&left_locked), 0);
    left_by = aco_get_co();
    return NULL;
}

enum { KINDS = 9 };
static aco_t *waiting_for[KINDS];

static void check_report(const char *report, const aco_t *task, const char *name, const char *what)
{
    char line[512];
    snprintf(line, sizeof line, "acorn: aco_run: coroutine %p: %swaits at %s", (const void *)task, name, what);
    if (!strstr(report, line)) {
        fprintf(stderr, "wanted the line \"%s\", the report is:\n%s", line, report);
        CHECK(!"the report");
    }
}

static void deadlock(void)
{
    static char report[4096], what[256];
    int lines = 0;
    channel = aco_channel_new(0, 8);
    other_channel = aco_channel_new(0, 8);
    first = spawn_as(takes_both, &fork_a, 0, "Kant");
    second = spawn(takes_both, &fork_b);
    for (intptr_t i = 0; i < KINDS; i++)
        waiting_for[i] = spawn_as(waits_for, (void *)i, ACO_DETACHED, i == 2 ? "Hume" : NULL);
    check_deadlock(report, sizeof report);
    CHECK(strstr(aco_error_message(), "aco_run: deadlock: 10 task(s) wait"));
    for (const char *at = report; *at; at++)
        lines += *at == '\n';
    CHECK_EQ(lines, 10);
    snprintf(what, sizeof what, "here:1 for mutex %p, held by coroutine %p;", (void *)&fork_b, (void *)second);
    check_report(report, first, "(Kant) ", what);
    snprintf(what, sizeof what, "here:1 for mutex %p, held by coroutine %p (Kant);", (void *)&fork_a, (void *)first);
    check_report(report, second, "", what);
    check_report(report, waiting_for[0], "", "here:2 to be unparked: Godot;");
    snprintf(what, sizeof what, "here:3 to join coroutine %p (Kant);", (void *)first);
    check_report(report, waiting_for[1], "", what);
    snprintf(what, sizeof what, "here:4 for condition %p;", (void *)&condition);
    check_report(report, waiting_for[2], "(Hume) ", what);
    snprintf(what, sizeof what, "here:5 for semaphore %p;", (void *)&empty_semaphore);
    check_report(report, waiting_for[3], "", what);
    snprintf(what, sizeof what, "here:6 for wait group %p, whose count is 2;", (void *)&group);
    check_report(report, waiting_for[4], "", what);
    snprintf(what, sizeof what, "here:7 to receive from channel %p;", (void *)channel);
    check_report(report, waiting_for[5], "", what);
    snprintf(what, sizeof what, "here:8 to receive from channel %p or to send to channel %p;", (void *)other_channel,
             (void *)other_channel);
    check_report(report, waiting_for[6], "", what);
    snprintf(what, sizeof what, "scheduler_wait.c:%d for mutex %p, held by coroutine %p (which has ended",
             line_of_lock, (void *)&left_locked, left_by);
    if (!strstr(report, what))
        fprintf(stderr, "wanted \"%s\" in\n%s", what, report);
    CHECK(strstr(report, what)); /* the location that the plain form gives */
}

/* ---- Statistics ---- */

static void *starves(void *unused)
{
    int64_t begun = aco_now();
    (void)unused;
    while (aco_now() - begun < 30000000)
        continue;
    return NULL;
}

static void *sleeps_shortly(void *unused)
{
    CHECK_EQ(aco_sleep(1000000), 0);
    return unused;
}

/* Deadlines that had passed before they were set are not late. */
static void *waits_in_the_past(void *unused)
{
    CHECK(aco_park_until("the past", INT64_MIN) == -1 && errno == ETIMEDOUT);
    CHECK(aco_park_until("the past", 1) == -1 && errno == ETIMEDOUT);
    return unused;
}

/* The only bounds of time that no load of the machine can break: what took at least so long. */
static void statistics(void)
{
    aco_run_stats_t before, stats;
    FAILS(aco_run_stats(NULL), -1, EINVAL, "aco_run_stats", NULL, "NULL");
    CHECK_EQ(aco_run_measure(0), 0); /* it does not measure */
    CHECK_EQ(aco_run_stats(&before), 0);
    spawn_detached(sleeps_shortly, NULL);
    spawn_as(starves, NULL, ACO_DETACHED, "hog");
    CHECK_EQ(aco_run_stats(&stats), 0);
    CHECK_EQ(stats.tasks, 2);
    run();
    CHECK_EQ(aco_run_stats(&stats), 0);
    CHECK_EQ(stats.tasks, 0);
    CHECK_EQ(stats.late_wakes - before.late_wakes, 1);
    spawn_detached(waits_in_the_past, NULL);
    run();
    CHECK_EQ(aco_run_stats(&stats), 0);
    CHECK_EQ(stats.late_wakes - before.late_wakes, 1);
    CHECK(stats.latest_wake_ns >= 20000000);
    CHECK_EQ(stats.runs, before.runs); /* not measured */
    (void)aco_watchdog(0);             /* it lets aco_run() count each turn of a task that is alone */
    CHECK_EQ(aco_run_measure(1), 0);
    CHECK_EQ(aco_run_measure(1), 0);
    spawn_detached(three_turns, "s");
    spawn_as(starves, NULL, ACO_DETACHED, "hog");
    run();
    CHECK_EQ(aco_run_measure(0), 0);
    CHECK_EQ(aco_run_stats(&stats), 0);
    CHECK_EQ(stats.runs, 3); /* the last task runs on: nobody else is there */
    CHECK(stats.long_runs >= 1);
    CHECK(stats.longest_run_ns >= 30000000);
    CHECK(strcmp(stats.longest_run_name, "hog") == 0 || stats.long_runs > 1);
    CHECK_HISTORY("sss");
    spawn_detached(three_turns, "s");
    run();
    CHECK_HISTORY("sss");
    CHECK_EQ(aco_run_stats(&stats), 0);
    CHECK_EQ(stats.runs, 3); /* the last task runs on: nobody else is there */
}

int main(void)
{
    void (*const tests[])(void) = {parking, time_passes,           long_ago,   timers,
                                   events,  event_before_deadline, statistics, NULL};
    with_all_kinds(tests);
    deadlock();
    return check_result("scheduler_wait");
}
