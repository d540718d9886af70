/* The scheduler of a thread: its record, from the first use to the thread's end; what it is told to do, and its
 * statistics. run.c runs its tasks in turn. */
#include "scheduler/inbox.h"
#include "scheduler/listeners.h"
#include "scheduler/poll_task.h"
#include "scheduler/reports/dump_signal.h"
#include "scheduler/reports/inspection.h"
#include "scheduler/reports/watchdog.h"
#include "scheduler/sync/readers.h"
#include "scheduler/wait.h"

#include "os/clock.h"
#include "os/os.h"

#include <string.h>

typedef aco__tasks_t scheduler_t;

static void scheduler_ends(aco__thread_t *self);

scheduler_t *aco__scheduler_of(aco__thread_t *self, const char *call)
{
    scheduler_t *s = aco__tasks(self);
    size_t sz = sizeof *s;
    if (aco_likely(s != NULL))
        return s;
    s = aco__memory_new(&sz);
    if (!s) {
        aco__fail_memory(0, call, sizeof *s);
        return NULL;
    }
    memset(s, 0, sizeof *s);
    s->process = aco__os_process_number();
    s->base.reap = aco__task_reap;
    s->base.thread_ends = scheduler_ends;
    s->base.end_task = aco__task_end_running;
    s->looked_at = aco__os_now();
    self->looked_at = (uint32_t)(s->looked_at / ACO_MILLISECOND);
    s->trimmed_at = s->looked_at - ACO__TRIM_NS;
    self->scheduler = &s->base;
    aco__inspect_join(self, s);
    aco__exceptions_here(); /* from now on the thread's record has its address */
    return s;
}

scheduler_t *aco__polling_scheduler_of(aco__thread_t *self, const char *call)
{
    scheduler_t *s = aco__scheduler_of(self, call);
    if (s && !aco__scratch()) {
        aco__fail_memory(0, call, sizeof(aco__scratch_t));
        return NULL;
    }
    return s;
}

static int forget(aco_t *co, void *self)
{
    if (aco__is_task(co) && co->share_stack->aco__thread == self)
        co->share_stack->aco__thread = aco__has(co, ACO__PRIVATE) ? NULL : aco__nobody; /* no thread gets the stack */
    return 0;
}

/* Tasks that have not ended are never freed, like suspended coroutines. */
static void scheduler_ends(aco__thread_t *self)
{
    scheduler_t *s = aco__tasks(self);
    if (s->worker)
        s->worker->thread_ends(s->worker);
    aco__inspect_leave(s);
    aco__listens_no_more(s);
    aco__inbox_close(s);
    aco__blocks_each(forget, self);
    aco__task_reap(&s->base);
    aco__dump_signal_stop(s);
    aco__unwatch(s);
    if (s->ended_tasks)
        aco__memory_free(s->ended_tasks, s->ended_tasks_sz);
    aco__readers_free(s);
    if (s->poller)
        s->poller->close(s->poller);
    if (s->timers)
        aco__memory_free(s->timers, s->timers_sz);
    aco__inbox_drop(s);
    self->scheduler = NULL;
    self->task = self->last_task = NULL;
    if (!self->tasks) /* else other threads may still wake what a task waits for: they post to it in vain */
        aco__memory_free(s, sizeof *s);
    self->tasks = self->slow_switch_tasks = self->scoped_tasks = 0;
}

/* ---- Statistics ---- */

int aco_run_stats(aco_run_stats_t *stats)
{
    static const aco_run_stats_t none = {0};
    const aco__thread_t *self = aco__self();
    if (!stats)
        return aco__fail(0, EINVAL, "aco_run_stats", NULL, "the pointer to the statistics is NULL");
    *stats = self->scheduler ? aco__tasks(self)->stats : none;
    stats->tasks = self->tasks;
    return 0;
}

int aco_run_measure(int on)
{
    aco__thread_t *self = aco__self();
    scheduler_t *s = aco__scheduler_of(self, "aco_run_measure");
    if (!s)
        return -1;
    if (on) {
        s->stats.runs = s->stats.long_runs = 0;
        s->stats.longest_run_ns = 0;
        s->stats.longest_run_name[0] = 0;
    }
    if (on && !s->measures_runs)
        self->slow_switch_tasks++; /* each task then returns to run() */
    else if (!on && s->measures_runs)
        self->slow_switch_tasks--;
    s->measures_runs = on != 0;
    return 0;
}

/* ---- What it is told to do ---- */

int aco_watchdog(int64_t limit_ns)
{
    static const char call[] = "aco_watchdog";
    aco__thread_t *self = aco__self();
    scheduler_t *s = limit_ns > 0 ? aco__polling_scheduler_of(self, call) : aco__tasks(self);
    if (limit_ns < 0)
        return aco__fail(0, EINVAL, call, NULL, "the limit is negative");
    if (limit_ns > 0 && !s)
        return -1;
    if (limit_ns > 0 && s->chooser) {
        aco__refuse(s, "aco_watchdog() is not simulated");
        return aco__fail(0, ENOSYS, call, NULL, "is not simulated");
    }
    return aco__watch_limit(self, s, limit_ns, call);
}

int aco_tasks_dump_on(int signal, int fd)
{
    static const char call[] = "aco_tasks_dump_on";
    scheduler_t *s = signal ? aco__polling_scheduler_of(aco__self(), call) : aco__scheduler_of(aco__self(), call);
    if (!s)
        return -1;
    if (!signal) {
        aco__dump_signal_stop(s);
        return 0;
    }
    return aco__dump_signal_start(s, signal, fd, call);
}

int aco_on_wake(void (*wake)(void *ctx), void *ctx)
{
    scheduler_t *s = aco__scheduler_of(aco__self(), "aco_on_wake");
    if (!s)
        return -1;
    if (s->open || (s->chooser && s->chooser->aco__open))
        return aco__fail(0, EBUSY, "aco_on_wake", NULL, "the thread's scheduler is open");
    aco__inbox_wake_by(s, wake, ctx);
    return 0;
}

int aco_on_idle(int (*idle)(void *ctx, int64_t timeout_ns), void *ctx)
{
    aco__thread_t *self = aco__self();
    scheduler_t *s = aco__scheduler_of(self, "aco_on_idle");
    if (!s)
        return -1;
    if (idle && s->chooser) {
        aco__refuse(s, "aco_on_idle() is not simulated");
        return aco__fail(0, ENOSYS, "aco_on_idle", NULL, "is not simulated");
    }
    if ((idle || s->turns_until) && aco__poll_task_start(self) != 0) /* a task that has its turn from the hook leaves */
        return aco__fail_memory(0, "aco_on_idle", sizeof(aco__scratch_t));
    s->idle = idle;
    s->idle_ctx = ctx;
    s->idle_leave = NULL;
    s->turns_until = 0;
    return 0;
}

void aco__idle_gives_turns(void (*leave)(void *ctx))
{
    scheduler_t *s = aco__tasks(aco__self());
    ACO__ASSERT(s && s->idle);
    s->idle_leave = leave;
}

int aco__poller_install(aco__poller_t *poller, const char *call)
{
    scheduler_t *s = aco__polling_scheduler_of(aco__self(), call);
    if (!s)
        return -1;
    poller->scheduler = s;
    poller->waiters = 0;
    aco__store_then_load(&s->poller, poller); /* who asks sees it, or this thread what is asked: aco__inbox_ask() */
    return 0;
}

void aco__poller_uninstall(void (*leave)(aco__poller_t *poller))
{
    struct aco__scheduler *next = aco__self()->scheduler;
    while (next) {
        scheduler_t *s = (scheduler_t *)(void *)next;
        if (s->poller)
            leave(s->poller);
        __atomic_store_n(&s->poller, NULL, __ATOMIC_RELEASE);
        next = s->chooser ? s->chooser->aco__outer : NULL;
    }
}
