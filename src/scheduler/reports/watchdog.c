/* The watchdog: a thread that looks at all schedulers several times in each limit, and has a task that runs too long
 * named.
 *
 * The ring of a watched scheduler always has the poll task, so aco_run() gets control in each round, which changes
 * `turns`. So if neither `turns` nor the thread's task is different from the last look, it is still the same turn of
 * the same task, unless it is the poll task, where the system may have stopped the thread. The thread counts looks, not
 * time: a process that was stopped for long, in a debugger, has had one.
 *
 * The watched thread pays nothing else. It is sent a signal, and the handler, which may read what belongs to the
 * thread, reports. If the handler does not come, the watchdog reports what it knows. */
#include "coroutine/backtrace_internal.h"
#include "scheduler/reports/watchdog.h"
#include "scheduler/wait.h"

#include "os/clock.h"

#include <inttypes.h>

int8_t aco__watchdog_is_on = -1;

#ifdef _WIN32
void aco__watch_change(aco__thread_t *self, aco__tasks_t *s)
{
    (void)self, (void)s;
    aco__watchdog_is_on = 0;
}

int64_t aco__watch_interval(void)
{
    return 0;
}

int aco__watch_limit(aco__thread_t *self, aco__tasks_t *s, int64_t limit_ns, const char *call)
{
    (void)self, (void)s, (void)limit_ns;
    return aco__fail(0, ENOSYS, call, NULL, "not on this platform");
}

void aco__unwatch(aco__tasks_t *s)
{
    (void)s;
}
#else

enum {
    LOOKS = 4,         /* in a limit */
    PATIENCE = 10,     /* limits: then no handler comes */
    MOST_REPORTS = 16,
    DEFAULT_MS = 1000
};

static const char watchdog[] = "watchdog";
static const int64_t LONGEST_MS = UINT32_MAX; /* a limit: turns are measured by a clock that wraps there */
static aco__tasks_t *watched; /* these are protected by the watchdog's lock */
static int64_t watch_limit;   /* 0: none */
static unsigned looks;        /* in a limit */
static int reports;           /* atomic */
static uint32_t interval_ms;  /* the limit in milliseconds; atomic */

int64_t aco__watch_interval(void)
{
    return __atomic_load_n(&interval_ms, __ATOMIC_RELAXED) * ACO_MILLISECOND;
}

/* Exact: a turn that is reported has lasted for the limit, and the report must not say less. */
static uint32_t exact_ms(void)
{
    return (uint32_t)(aco__os_now() / ACO_MILLISECOND);
}

/* Prints what any thread may know, and `text`. */
static void report_turn(const aco__watch_t *watch, const char *text)
{
    uint32_t ms = exact_ms() - __atomic_load_n(&watch->since, __ATOMIC_RELAXED);
    aco__warn(watchdog, __atomic_load_n(&watch->task, __ATOMIC_RELAXED),
              "has run for %" PRIu32 ".%03u s without yielding or waiting%s%s", ms / 1000, (unsigned)(ms % 1000), text,
              __atomic_load_n(&reports, __ATOMIC_RELAXED) == MOST_REPORTS ? "; this is the last report" : "");
}

/* In the handler, on the task's thread. The task may have given way meanwhile. */
static void report_here(const void *handler_returns)
{
    const aco__thread_t *self = aco__self();
    aco__tasks_t *s = aco__tasks(self);
    char text[512], entry[256];
    aco_function_t function;
    void *address;
    const char *name;
    if (!s || !__atomic_exchange_n(&s->watch.pending, 0, __ATOMIC_ACQUIRE))
        return;
    if (s->turns != __atomic_load_n(&s->watch.turns, __ATOMIC_RELAXED) ||
        self->task != __atomic_load_n(&s->watch.task, __ATOMIC_RELAXED))
        return;
    name = aco_name(self->task);
    function = aco__entry_of_task(self->task);
    memcpy(&address, &function, sizeof address);
    aco__os_describe_code(address, entry, sizeof entry);
    snprintf(text, sizeof text, "%s%s%s; entry %s", *name ? "; its name is \"" : "", name, *name ? "\"" : "", entry);
    report_turn(&s->watch, text);
    aco__backtrace_interrupted(watchdog, handler_returns);
}

/* Reads what its thread writes without atomics: a value that it had. */
ACO__NO_SANITIZE static const aco_t *watched_task(const aco__thread_t *thread)
{
    return *(aco_t *const volatile *)&thread->task;
}

static int is_pending(aco__watch_t *watch)
{
    return __atomic_exchange_n(&watch->pending, 0, __ATOMIC_ACQ_REL) != 0;
}

/* The turn has lasted for the limit. */
static void have_reported(aco__watch_t *watch)
{
    watch->is_told = 1;
    if (reports == MOST_REPORTS)
        return;
    __atomic_store_n(&reports, reports + 1, __ATOMIC_RELAXED);
    aco__backtrace_prepare();
    __atomic_store_n(&watch->pending, 1, __ATOMIC_RELEASE);
    if (aco__os_watch_signal(watch->thread) != 0 && is_pending(watch))
        report_turn(watch, "");
}

static void watch_scheduler(aco__tasks_t *s)
{
    aco__watch_t *watch = &s->watch;
    uint32_t turns = __atomic_load_n(&s->turns, __ATOMIC_RELAXED);
    const aco_t *task = watched_task(watch->of);
    if (!(turns & 1) || task == &s->poll_task || turns != watch->turns || task != watch->task) {
        (void)is_pending(watch); /* a handler that comes from now on finds nothing to do */
        __atomic_store_n(&watch->turns, turns, __ATOMIC_RELAXED);
        __atomic_store_n(&watch->task, task, __ATOMIC_RELAXED);
        __atomic_store_n(&watch->since, exact_ms(), __ATOMIC_RELAXED);
        watch->looks = 0;
        watch->is_told = 0;
        return;
    }
    watch->looks++;
    if (!watch->is_told && watch->looks >= looks)
        have_reported(watch);
    else if (watch->looks >= PATIENCE * looks && is_pending(watch))
        report_turn(watch, ", and its thread takes no signal");
}

static void watch_all(void)
{
    for (aco__tasks_t *s = watched; s; s = s->watch.next)
        watch_scheduler(s);
}

/* ---- Beginning and ending ---- */

static void turn_off(void)
{
    watch_limit = 0;
    __atomic_store_n(&aco__watchdog_is_on, 0, __ATOMIC_RELAXED);
}

static void forget_in_child(void)
{
    aco__tasks_t *s = aco__tasks(aco__self());
    watched = NULL;
    turn_off();
    if (s)
        s->is_watched = 0;
}

/* The environment's limit, or the default. */
static int64_t default_limit(void)
{
    const char *wanted = aco__os_environment("ACO_WATCHDOG");
    int64_t ms = aco__debug_units ? DEFAULT_MS : 0;
    if (wanted && *wanted) {
        char *end;
        ms = strtol(wanted, &end, 10);
        if (ms < 0 || *end) {
            aco__warn("ACO_WATCHDOG", NULL, "\"%s\" is no number of milliseconds", wanted);
            ms = 0;
        }
    }
    return (ms < LONGEST_MS ? ms : LONGEST_MS) * ACO_MILLISECOND;
}

/* The caller holds the lock. 0, or an error number. */
static int start_watching(void)
{
    int64_t interval = watch_limit / LOOKS > ACO_MILLISECOND ? watch_limit / LOOKS : ACO_MILLISECOND;
    __atomic_store_n(&interval_ms, (uint32_t)(watch_limit / ACO_MILLISECOND), __ATOMIC_RELAXED);
    looks = (unsigned)((watch_limit + interval - 1) / interval);
    return aco__os_watch_start(watch_all, interval, forget_in_child);
}

static void watch_more(aco__thread_t *self, aco__tasks_t *s)
{
    s->watch = (aco__watch_t){0};
    s->watch.of = self;
    s->watch.thread = aco__signal_stack() == 0 ? aco__os_watch_this_thread(report_here) : 0;
    s->watch.next = watched;
    s->watch.link = &watched;
    if (watched)
        watched->watch.link = &s->watch.next;
    watched = s;
    s->is_watched = 1;
}

/* The caller holds the lock. */
static void watch_less(aco__tasks_t *s)
{
    if (!s->is_watched)
        return;
    *s->watch.link = s->watch.next;
    if (s->watch.next)
        s->watch.next->watch.link = s->watch.link;
    __atomic_store_n(&s->watch.pending, 0, __ATOMIC_RELAXED);
    s->is_watched = 0;
}

static void lock(void)
{
    aco__os_watch_lock();
    ACO__NO_SWITCH_BEGIN();
}

static void unlock_or_stop(void)
{
    ACO__NO_SWITCH_END();
    if (watched && watch_limit)
        aco__os_watch_unlock();
    else
        aco__os_watch_stop();
}

/* Watches the thread. The caller holds the lock. 0, or an error number. */
static int begin_watching(aco__thread_t *self, aco__tasks_t *s)
{
    int error;
    if (!s->is_watched)
        watch_more(self, s);
    error = start_watching();
    if (error) {
        watch_less(s);
        turn_off();
    }
    return error;
}

int aco__watch_limit(aco__thread_t *self, aco__tasks_t *s, int64_t limit_ns, const char *call)
{
    int error = 0;
    lock();
    watch_limit = limit_ns < LONGEST_MS * ACO_MILLISECOND ? limit_ns : LONGEST_MS * ACO_MILLISECOND;
    __atomic_store_n(&reports, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&aco__watchdog_is_on, limit_ns != 0, __ATOMIC_RELAXED);
    if (limit_ns)
        error = begin_watching(self, s);
    else if (s)
        watch_less(s);
    unlock_or_stop();
    return error ? aco__fail(0, error, call, NULL, "cannot start the thread: %s", strerror(error)) : 0;
}

void aco__watch_change(aco__thread_t *self, aco__tasks_t *s)
{
    int saved = errno;
    lock();
    if (aco__watchdog_is_on < 0) {
        watch_limit = default_limit();
        __atomic_store_n(&aco__watchdog_is_on, watch_limit != 0, __ATOMIC_RELAXED);
    }
    if (!aco__watchdog_is_on)
        watch_less(s);
    else if (aco__scratch()) /* the poll task's memory */
        (void)begin_watching(self, s); /* nobody has asked for it here: a failure is no error */
    unlock_or_stop();
    errno = saved;
}

void aco__unwatch(aco__tasks_t *s)
{
    if (!s->is_watched)
        return;
    lock();
    watch_less(s);
    unlock_or_stop();
}

#endif
