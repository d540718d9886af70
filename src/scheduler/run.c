/* aco_run(): whose turn it is, and what happens while no task can run.
 *
 * Tasks switch to each other directly. aco_run() is the resumer of all of them and gets control back in three cases:
 * when no task can run, when it has a turn itself (the poll task), and when a task calls plain aco_yield(). A
 * slow-switch task is one that no inline switch may enter or leave, because it has its own floating-point environment
 * or is instrumented (tools/tools.h). While one exists, every switch between tasks goes through aco_run(). The same is
 * true while runs are measured (aco_run_measure()), a task is cleaned up, or an inner coroutine waits: all of these
 * raise the count `slow_switch_tasks`. */
#include "coroutine/depot.h"
#include "scheduler/inbox.h"
#include "scheduler/listeners.h"
#include "scheduler/poll_task.h"
#include "scheduler/reports/inspection.h"
#include "scheduler/reports/report.h"
#include "scheduler/reports/stuck.h"
#include "scheduler/reports/watchdog.h"
#include "scheduler/trim.h"
#include "scheduler/valid.h"
#include "scheduler/wait.h"

#include "tools/shadow_stack.h"
#include "os/clock.h"
#include "os/os.h"

#include <string.h>

enum {
    ROUNDS_PER_POLL = 61,
    POLL_NS = 50000, /* while tasks run, the poller gets a turn so often */
    READY_NS = 1000000, /* aco_run_ready() runs tasks for so long */
    REFRESH_NS = 1000000000, /* with waits for events: timers of scopes are refreshed if due within that time */
    TRIM_TASKS = 64, /* control blocks that one trim looks at */
    TRIM_BEFORE_LONG = 1024, /* the same before a wait longer than ACO__TRIM_NS */
    STACKS_AT_ONCE = 256 /* idle stacks whose pages go back before the thread looks for events again */
};
/* As the time of the last poll: it was just before this round. So the clock is not read for it. */
static const int64_t JUST_NOW = INT64_MAX;

/* Calls the idle hook. Returns its result, or -1 if it failed. */
static int call_idle_hook(aco__tasks_t *s, int64_t timeout_ns)
{
    int answer = s->idle(s->idle_ctx, timeout_ns);
    return answer < 0 ? aco__fail(0, errno, "aco_run", NULL, "the idle hook failed: %s", strerror(errno)) : answer;
}

/* The same, because no task can run. Until the deadline, -1: without end, the hook may give tasks turns. If it has
 * given any, this does not return 0. */
static int idle_with_turns(aco__tasks_t *s, int64_t deadline, int64_t timeout_ns)
{
    uint32_t turns = s->turns;
    int answer;
    if (s->idle_leave && timeout_ns != 0)
        s->turns_until = deadline < 0 ? ACO_FOREVER : deadline;
    answer = call_idle_hook(s, timeout_ns);
    s->turns_until = 0;
    return answer || s->turns == turns ? answer : 1;
}

/* Gives the poller a turn, if tasks or other threads may need it: 1, or -1 if it failed. Else 0. */
static int poll_events(aco__tasks_t *s, int open, int64_t deadline)
{
    if (!s->poller || !(s->poller->waiters || open))
        return 0;
    if (s->poller->poll(s->poller, deadline) == 0)
        return 1;
    return aco__fail(0, errno, "aco_run", NULL, "the poller failed: %s", strerror(errno));
}

/* Returns unused stack pages of some tasks to the system. Before a long sleep, of many tasks; so it first looks whether
 * the poller has woken tasks by now. 0, or -1 if the poller failed. */
static int trim_some(aco__thread_t *self, aco__tasks_t *s, int64_t now, int open, int64_t deadline)
{
    int64_t before = s->trimmed_at;
    int is_long;
    if (now - before < ACO__TRIM_NS)
        return 0;
    s->trimmed_at = s->polled_at = now;
    if (poll_events(s, open, 0) < 0)
        return -1;
    is_long = !self->task && (deadline < 0 || deadline - now > ACO__TRIM_NS);
    aco__depot_trim(self, is_long);
    aco__trim_some_tasks(self, s, before, is_long ? TRIM_BEFORE_LONG : TRIM_TASKS);
    return 0;
}

/* The first deadline that counts, -1: none. Timers of scopes are refreshed if due before `until`. */
static int64_t first_deadline(aco__thread_t *self, aco__tasks_t *s, int64_t until)
{
    aco__timers_settle(s);
    if (self->scoped_tasks)
        aco__scope_timers_refresh(self, until);
    return s->timers_count ? s->timers[0].deadline : -1;
}

/* Whether only other threads and timers can make a task runnable. */
static int waits_for_posts_only(const aco__tasks_t *s)
{
    return aco__expects_news(s) && !s->idle && !(s->poller && s->poller->waiters);
}

/* Waits are told by their times, if somebody may ask for them. */
static inline void note_time(aco__thread_t *self, const aco__tasks_t *s)
{
    if (aco_unlikely(s->dumps | __atomic_load_n(&s->answers, __ATOMIC_RELAXED)))
        self->looked_at = (uint32_t)(aco__os_now_coarse() / ACO_MILLISECOND); /* a report has the exact clock */
}

/* Before a wait: whether something was posted, and need not be waited for. Else, if it listens, the thread is said to
 * be asleep. */
static int has_posts_already(aco__tasks_t *s, int listens, int64_t now, int64_t until)
{
    if (!listens)
        return !aco__inbox_is_empty(s);
    return (waits_for_posts_only(s) && aco__inbox_spin(s, now, until < 0 ? ACO_FOREVER : until)) ||
           !aco__inbox_sleeps(s);
}

/* Until when the thread sleeps: `until`, or earlier, to free what its depot will not have needed by then, or to look
 * again at stacks. A hook or a chooser is asked for no other time than the program's. */
static int64_t or_next_trim(const aco__thread_t *self, const aco__tasks_t *s, int64_t now, int64_t until)
{
    int64_t trim = now + ACO__TRIM_NS;
    return !(self->depot || s->trim_again) || s->idle || s->chooser || (until >= 0 && until < trim) ? until : trim;
}

/* Looks for events, without a wait, if that was not done for POLL_NS. 0, or -1. */
static inline int poll_in_turn(aco__tasks_t *s, int open, int64_t now)
{
    if (s->polled_at == JUST_NOW)
        s->polled_at = now;
    if (now - s->polled_at < POLL_NS)
        return 0;
    s->polled_at = now;
    return poll_events(s, open, 0) < 0 ? -1 : 0;
}

/* Some deadlines have come by `now`, a look at the clock. Posts and events that came before them are in time, however
 * late the thread looks: so it looks for them after the clock, since the process may have been stopped in between, or
 * in the wait that came before. 0, or -1. */
static __attribute__((noinline)) int look_and_expire(aco__thread_t *self, aco__tasks_t *s, int open, int64_t now)
{
    aco__timers_settle(s);
    if (aco__timers_are_due(s, now)) {
        if (aco__inbox_is_used(s))
            aco__inbox_run(self, s);
        s->polled_at = now;
        if (poll_events(s, open, 0) < 0 || (s->idle && call_idle_hook(s, 0) < 0))
            return -1;
    }
    aco__timers_expire_at(self, s, now);
    return 0;
}

/* Ends the waits whose deadline has come by `now`; 0: there is no timer. 0, or -1 if the poller failed. */
static inline int expire_timers(aco__thread_t *self, aco__tasks_t *s, int open, int64_t now)
{
    if (aco__timers_are_due(s, now))
        return look_and_expire(self, s, open, now);
    if (now)
        aco__timers_expire_at(self, s, now);
    return 0;
}

/* The time, if there is a timer. */
static inline int64_t time_for_timers(const aco__tasks_t *s)
{
    return s->timers_count ? aco__os_now() : 0;
}

/* Waits until a task may run. 0, or -1 if none ever will or the hook failed. */
static int sleep_idle(aco__thread_t *self, aco__tasks_t *s)
{
    int64_t now, deadline, until, left = -1;
    int more = 0, open = aco__expects_news(s), is_alone = !open, awaits_events = s->poller && s->poller->waiters;
    int has_posters = aco__inbox_has_posters(s);
    int may_get_posts = has_posters | __atomic_load_n(&s->answers, __ATOMIC_RELAXED);
    /* Who only asks what tasks do wakes the poller in any case. */
    int listens = may_get_posts && (has_posters || !awaits_events || s->idle);
    if (s->opened && !open && aco__inbox_run(self, s)) /* posted before it was closed */
        return 0;
    now = aco__os_now();
    deadline = first_deadline(self, s, awaits_events ? now + REFRESH_NS : ACO_FOREVER);
    if (trim_some(self, s, now, open, deadline) != 0)
        return -1;
    if (self->task)
        return 0;
    until = aco_unlikely(s->is_watched) ? aco__stuck_check(self, s, deadline) : deadline;
    until = or_next_trim(self, s, now, until);
    if (aco_unlikely(may_get_posts) && has_posts_already(s, listens, now, until)) {
        aco__inbox_run(self, s);
        more = poll_in_turn(s, open, now); /* posts may come all the time */
        return more ? more : expire_timers(self, s, open, time_for_timers(s));
    }
    if (aco_unlikely(s->chooser != NULL)) {
        more = s->chooser->idle(s->chooser);
        is_alone |= !s->chooser->has_others;
    }
    if (s->idle && more >= 0) {
        if (deadline >= 0)
            left = deadline - aco__os_now();
        more = idle_with_turns(s, deadline, deadline >= 0 && left < 0 ? 0 : left);
    }
    if (more >= 0) {
        int polled = poll_events(s, open, more || self->task ? 0 : until);
        more = polled ? polled : more;
    }
    if (listens && !more && !__atomic_load_n(&s->is_asleep, __ATOMIC_RELAXED))
        more = 1; /* something was posted meanwhile */
    if (!more && !self->task) {
        if (deadline < 0 && is_alone)
            more = aco__fail_deadlock(self);
        else if (listens)
            aco__os_wait(&s->is_asleep, 1, until);
        else if (until < 0 || until > now)
            aco__os_sleep_until(until);
    }
    if (listens) {
        if (!__atomic_load_n(&s->is_asleep, __ATOMIC_RELAXED))
            aco__spin_woken(&s->spin, now, aco__os_now());
        aco__inbox_awake(s);
    }
    if (more < 0)
        return -1;
    if (listens)
        aco__inbox_run(self, s);
    now = time_for_timers(s);
    if (!now)
        note_time(self, s);
    if (s->poller) /* else the first turn of the poll task would look again at once */
        s->polled_at = now ? now : JUST_NOW;
    return expire_timers(self, s, open, now);
}

/* No task can run. Looks for events without waiting: 1, or 0 if there are none; -1 on failure. */
static int look_around(aco__thread_t *self, aco__tasks_t *s)
{
    int listens = aco__inbox_is_used(s), open = aco__expects_news(s);
    int64_t now = time_for_timers(s);
    if (poll_events(s, open, 0) < 0)
        return -1;
    if (listens)
        aco__inbox_run(self, s);
    if (now)
        aco__timers_expire_at(self, s, now);
    if (s->is_watched && !self->task)
        (void)aco__stuck_check(self, s, 0);
    return self->task != NULL;
}

/* No task can run, and pools are crowded: does something about that and looks for events, without waiting. 0, or -1 as
 * above. */
static int relieve_pools(aco__thread_t *self, aco__tasks_t *s)
{
    aco__pools_relieve(STACKS_AT_ONCE);
    if (s->idle && call_idle_hook(s, 0) < 0)
        return -1;
    return look_around(self, s) < 0 ? -1 : 0;
}

/* No task can run. 0, or -1 as above. */
static int wait_idle(aco__thread_t *self, aco__tasks_t *s)
{
    int slept;
    if (s->worker && s->worker->idle(s->worker))
        return 0;
    if (aco_unlikely(aco__pools_are_crowded()))
        slept = relieve_pools(self, s);
    else if (aco_unlikely(s->inspected.from != 0)) /* a post is there again: timers and events have their turn, too */
        slept = look_around(self, s) < 0 ? -1 : 0;
    else
        slept = sleep_idle(self, s);
    if (s->worker)
        s->worker->awake(s->worker);
    return slept;
}

/* Posts, events and timers, in the poll task's turn. 0, or -1. */
static int look_while_busy(aco__thread_t *self, aco__tasks_t *s)
{
    int64_t now = 0;
    int polls;
    if (aco__inbox_is_used(s))
        aco__inbox_run(self, s);
    polls = s->poller && (self->task || s->chooser); /* without a task that can run, wait_idle() comes next */
    if (polls || s->timers_count)
        now = aco__os_now();
    if (polls && !aco__timers_are_due(s, now) && poll_in_turn(s, 0, now) != 0)
        return -1;
    if (s->timers_count)
        return expire_timers(self, s, 0, now);
    note_time(self, s);
    return 0;
}

/* The poll task's turn. 0, or -1. */
static int poll_turn(aco__thread_t *self, aco__tasks_t *s)
{
    aco__poll_task_stop(self);
    if ((self->task || s->worker || s->chooser) && look_while_busy(self, s) != 0)
        return -1; /* else wait_idle() comes next, and looks for all of this */
    if (aco_unlikely(s->is_watched))
        (void)aco__stuck_check(self, s, 0);
    if (s->worker)
        s->worker->round(s->worker);
    return s->idle && ++s->rounds % ROUNDS_PER_POLL == 0 && call_idle_hook(s, 0) < 0 ? -1 : 0;
}

/* No task is left: whether the thread waits for more all the same. */
static int worker_stays(const aco__tasks_t *s)
{
    return s->worker && s->worker->stays(s->worker);
}

/* Gives the chooser all that can run. The ring is empty then. */
static void give_to_chooser(aco__thread_t *self, aco__tasks_t *s)
{
    aco__chooser_t *chooser = s->chooser;
    aco_t *task = self->task, *end = self->last_task;
    self->task = self->last_task = NULL;
    for (aco_t *next; task; task = task == end ? NULL : next) {
        next = aco__task_next(task);
        chooser->aco__kept += task != &s->poll_task;
        chooser->runnable(chooser, task);
    }
}

/* No task is left, and the thread does not wait for more. */
static int has_none(const aco__thread_t *self, const aco__tasks_t *s)
{
    return !self->tasks && !worker_stays(s);
}

/* The ring becomes what the chooser chooses, and the poll task behind, so that a task that yields leaves. 0; 1: no task
 * is left; -1 and errno. */
ACO__COLD static int let_choose(aco__thread_t *self, aco__tasks_t *s)
{
    aco__chooser_t *chooser = s->chooser;
    aco_t *chosen = NULL;
    int again;
#ifdef ACO__INVARIANTS
    aco__scheduler_valid(self);
#endif
    do {
        give_to_chooser(self, s);
        again = chooser->choose(chooser, &chosen);
        if (again < 0)
            return -1;
    } while (again);
    if (chosen && chosen != &s->poll_task) {
        chooser->aco__kept--;
        aco__ring_append(self, chosen);
    }
    if (s->poll_task_is_queued)
        aco__ring_append(self, &s->poll_task);
    else if (self->task) /* so that no task that yields goes on unseen */
        aco__poll_task_start(self);
    return has_none(self, s);
}

/* Whether aco_run() has something to look for while tasks run. */
static inline int needs_turns(const aco__tasks_t *s)
{
    return aco__awaits_events(s) || aco__inbox_is_used(s);
}

/* Makes sure that self->task can run: 1. Returns 0 if no tasks are left, -1 if none can ever run or the hook failed.
 * With s->until, also 0 when none can run now, and after that time. */
static int choose_task(aco__thread_t *self, aco__tasks_t *s)
{
    while (self->tasks || (s->opened && aco__inbox_run(self, s)) || worker_stays(s)) {
        int over = aco_unlikely(s->chooser != NULL) ? let_choose(self, s) : !self->task && has_none(self, s);
        if (over < 0)
            return -1;
        if (over) {
            continue; /* look again */
        } else if (!self->task && s->until) {
            int found = look_around(self, s);
            if (found <= 0)
                return found;
        } else if (!self->task) {
            if (wait_idle(self, s) != 0)
                return -1;
        } else if (self->task == &s->poll_task) {
            if (poll_turn(self, s) != 0)
                return -1;
            if (s->until && self->task && aco__os_now() >= s->until)
                return 0;
        } else {
            if (needs_turns(s))
                aco__poll_task_start(self); /* cannot fail: its memory was allocated with what it is for */
            return 1;
        }
    }
    if (self->task)
        aco__poll_task_stop(self);
    return 0;
}

/* A task that began to run at `began` has stopped. It may be gone: `name` is a copy. */
static void run_measured(aco__tasks_t *s, int64_t began, const char *name)
{
    int64_t ns = aco__os_now() - began;
    s->stats.runs++;
    s->stats.long_runs += ns > ACO__LATE_NS;
    if (ns > s->stats.longest_run_ns) {
        s->stats.longest_run_ns = ns;
        memcpy(s->stats.longest_run_name, name, ACO_NAME_SIZE);
    }
}

static void name_of_task(const aco_t *task, char name[ACO_NAME_SIZE])
{
    const char *its = aco_name(task);
    memcpy(name, its, strlen(its) + 1);
}

/* Resumes self->task. Tasks then run until one of them switches back to here. */
ACO__NO_SANITIZE ACO__SHADOW_NOINLINE static void run(aco__thread_t *self, aco__tasks_t *s)
{
    aco_t *task = self->task;
    int instrumented = (task->aco__state & ACO__INSTRUMENTED) != 0;
    aco__resumer_state_t resumer_state;
    void *value = NULL;
    uintptr_t tagged;
    char name[ACO_NAME_SIZE];
    int64_t began = 0;
    ACO__ASSERT(!self->running && aco__is_task(task) && task->share_stack->aco__thread == self);
    ACO__ASSERT(!aco__in_turn(s));
    ACO__ASSERT(s->turns_until || !aco__inbox_is_asleep(s)); /* else a poster would wake who does not sleep */
    ACO__ASSERT(s->poll_task_is_queued || (s->turns_until && self->slow_switch_tasks) ||
                !(s->timers_count || s->idle || aco__inbox_is_used(s)) ||
                __atomic_load_n(&s->answers, __ATOMIC_RELAXED)); /* another thread may just have set it */
    if (aco_unlikely(s->measures_runs | s->tells_turns)) {
        name_of_task(task, name);
        began = aco__os_now();
    }
    if (instrumented) {
        aco__instrument_enter(task, &resumer_state);
        aco__shadow_enter(task, &resumer_state);
    }
    aco__next_turn(s);
    tagged = aco__switch_resume(aco__tls_ref(), task, &value, 1);
    aco__next_turn(s);
    ACO__ASSERT(aco__self() == self && !aco__in_turn(s));
    if (instrumented) {
        aco__shadow_leave(task, &resumer_state);
        aco__instrument_leave(task, &resumer_state);
    }
    ACO__CHECK_INTERRUPT(tagged);
    if (aco_unlikely(began != 0 && s->measures_runs))
        run_measured(s, began, name);
    if (aco_unlikely(began != 0 && s->tells_turns))
        aco__inspect_turn(self, s, task, (aco_t *)tagged == task, began, name);
    if (!tagged && aco_unlikely(s->chooser != NULL))
        s->chooser->ended(s->chooser, task);
    if (s->base.zombie)
        s->base.reap(&s->base);
    if (tagged && (aco_t *)tagged == self->task) /* the task with the turn left by plain aco_yield() */
        aco__ring_turn(self);
}

/* Whether other threads may have news, and the idle hook would not be told: they could have none when it began to wait,
 * or have woken it. */
static int misses_news(const aco__tasks_t *s)
{
    return aco__inbox_has_posters(s) && !__atomic_load_n(&s->is_asleep, __ATOMIC_RELAXED);
}

/* Whether aco_run() has nothing to do after a turn that the idle hook has given. */
static int has_turns_only(const aco__tasks_t *s)
{
    return !(s->is_watched || s->dumps || __atomic_load_n(&s->answers, __ATOMIC_RELAXED) ||
             (s->poller && s->poller->waiters) || aco__pools_are_crowded() || misses_news(s));
}

/* Gives turns to the tasks that can run, and to those that they wake. Those that yield stay in the ring. */
static void give_turns(aco__thread_t *self, aco__tasks_t *s)
{
    if (aco_likely(self->task && self->task == self->last_task && self->task != &s->poll_task)) {
        self->slow_switch_tasks++; /* each switch comes back here: cheaper than the poll task */
        run(self, s);
        self->slow_switch_tasks--;
    }
    while (s->turns_until && self->task && self->task != &s->poll_task) { /* a task may have unset the hook */
        aco__poll_task_start(self); /* so that tasks that yield come back here; aco_on_idle() has made its memory */
        run(self, s);
    }
    if (self->task == &s->poll_task)
        aco__poll_task_stop(self);
}

int aco__idle_turn(void)
{
    aco__thread_t *self = aco__self();
    aco__tasks_t *s = aco__tasks(self);
    int64_t deadline;
    if (aco_unlikely(self->running != NULL))
        return 1;
    if (aco_unlikely(!s || !s->turns_until || s->worker || aco__handles_exceptions(aco__tls_ref())))
        return 0; /* a task that waits would take the caller's exceptions for its own */
    note_time(self, s); /* of the hook's wait, for waits that begin in these turns */
    give_turns(self, s);
    if (self->task || !self->tasks || !has_turns_only(s)) /* a task may have begun to wait for an event */
        return 0;
    deadline = (s->timers_count | self->scoped_tasks) != 0 ? first_deadline(self, s, ACO_FOREVER) : -1;
    return s->turns_until && (deadline < 0 || deadline >= s->turns_until);
}

/* aco_run(), or aco_run_ready() with a time limit. */
static int run_tasks(aco__thread_t *self, aco__tasks_t *s, int64_t until, const char *call)
{
    const aco__exceptions_t *exceptions = aco__exceptions_here();
    int more;
    if (self->running)
        return aco__fail(0, EPERM, call, self->running, "is a coroutine: only the root context runs the tasks");
    if (!s)
        return 0;
    if (s->base.is_running || s->is_lost)
        return aco__fail(0, EBUSY, call, NULL,
                         s->is_lost ? "failed before in a set of threads" : "is called by the idle hook");
    aco__inbox_awake(s); /* aco_run_ready() leaves the thread asleep */
    if (aco_likely(!s->chooser)) /* the watchdog's time is real */
        aco__watch_if_wanted(self, s);
    s->base.is_running = 1;
    s->until = until;
    if (exceptions)
        s->exceptions = *exceptions;
    aco__signals_settle(self, s);
    while ((more = choose_task(self, s)) > 0)
        run(self, s);
    aco__signals_settle(self, s);
    s->base.is_running = 0;
    s->until = 0;
    if (aco_unlikely(aco__pools_are_crowded()) && !(until && self->task))
        aco__pools_relieve(until && self->tasks ? STACKS_AT_ONCE : SIZE_MAX);
    return more;
}

int aco_run(void)
{
    aco__thread_t *self = aco__self();
    return run_tasks(self, aco__tasks(self), 0, "aco_run");
}

int aco_run_ready(int64_t *next)
{
    static const char call[] = "aco_run_ready";
    aco__thread_t *self = aco__self();
    aco__tasks_t *s = aco__tasks(self);
    int64_t deadline;
    if (!next)
        return aco__fail(0, EINVAL, call, NULL, "the pointer to the deadline is NULL");
    *next = ACO_FOREVER;
    if (s && !self->running && !s->base.is_running && !aco__polling_scheduler_of(self, call))
        return -1;
    if (run_tasks(self, s, aco__os_now() + READY_NS, call) != 0)
        return -1;
    if (!s)
        return 0;
    if (!self->tasks && poll_events(s, aco__expects_news(s), 0) < 0) /* a loop that waits for news sees no old ones */
        return -1;
    if (self->task || aco__pools_are_crowded() || (aco__inbox_is_used(s) && !aco__inbox_sleeps(s)))
        *next = aco__os_now();
    else if ((deadline = first_deadline(self, s, ACO_FOREVER)) >= 0)
        *next = deadline;
    return self->tasks != 0;
}
