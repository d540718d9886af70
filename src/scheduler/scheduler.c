/* The scheduler of a thread. It spawns tasks and ends them; also joining, detaching, parking, sleeping, statistics, and
 * calls by other threads. run.c runs the tasks in turn; sync.c and channel.c have the other ways to wait. */
#include "scheduler/wait.h"

#include "os/clock.h"
#include "os/os.h"

#include <string.h>

typedef aco__tasks_t scheduler_t;

static void scheduler_ends(aco__thread_t *self);
static void reap(struct aco__scheduler *s);
__attribute__((noreturn)) static void end_running_task(aco_t *task, void *result);

/* The thread's scheduler, created if needed. NULL after a failure. */
static scheduler_t *scheduler_of(aco__thread_t *self, const char *call)
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
    s->base.reap = reap;
    s->base.thread_ends = scheduler_ends;
    s->base.end_task = end_running_task;
    s->looked_at = aco__os_now();
    self->looked_at = (uint32_t)(s->looked_at / ACO_MILLISECOND);
    s->trimmed_at = s->looked_at - ACO__TRIM_NS;
    self->scheduler = &s->base;
    aco__exceptions_here(); /* from now on the thread's record has its address */
    return s;
}

scheduler_t *aco__polling_scheduler_of(aco__thread_t *self, const char *call)
{
    scheduler_t *s = scheduler_of(self, call);
    if (s && !aco__scratch()) {
        aco__fail_memory(0, call, sizeof(aco__scratch_t));
        return NULL;
    }
    return s;
}

/* A call of aco_post(). */
typedef struct posted_call {
    aco__post_t post;
    void (*fn)(void *arg);
    void *arg;
} posted_call_t;

static void run_posted(aco__thread_t *self, aco__post_t *post)
{
    posted_call_t call = *(posted_call_t *)(void *)post;
    (void)self;
    aco__memory_free(post, sizeof call);
    call.fn(call.arg);
}

static int forget(aco_t *co, void *self)
{
    if (aco__is_task(co) && co->share_stack->aco__thread == self)
        co->share_stack->aco__thread = aco__has(co, ACO__PRIVATE) ? NULL : aco__nobody; /* no thread gets the stack */
    return 0;
}

static void reap(struct aco__scheduler *s)
{
    aco_t *zombie = s->zombie;
    if (!zombie)
        return;
    ACO__ASSERT(aco__status(zombie) == ACO__DESTROYED && aco__self()->running != zombie);
    s->zombie = NULL;
    aco__coroutine_free(zombie);
}

/* Tasks that have not ended are never freed, like suspended coroutines. */
static void scheduler_ends(aco__thread_t *self)
{
    scheduler_t *s = aco__tasks(self);
    aco__post_t *post;
    if (s->worker)
        s->worker->thread_ends(s->worker);
    aco__listens_no_more(s);
    aco__inbox_close(s);
    aco__blocks_each(forget, self);
    reap(&s->base);
    aco__dump_signal_stop(s);
    aco__unwatch(s);
    if (s->ended_tasks)
        aco__memory_free(s->ended_tasks, s->ended_tasks_sz);
    if (s->poller)
        s->poller->close(s->poller);
    if (s->timers)
        aco__memory_free(s->timers, s->timers_sz);
    while ((post = aco__inbox_take(s)) != NULL) /* nobody will run it */
        if (post->run == run_posted)
            aco__memory_free(post, sizeof(posted_call_t));
    self->scheduler = NULL;
    self->task = self->last_task = NULL;
    if (!self->tasks) /* else other threads may still wake what a task waits for: they post to it in vain */
        aco__memory_free(s, sizeof *s);
    self->tasks = self->slow_switch_tasks = self->scoped_tasks = 0;
}

/* ---- Ending ---- */

/* Deferred calls and destructors must not switch to other tasks. The higher count sends aco_task_yield() to its slow
 * path, which fails. */
ACO__COLD static void clean_up(aco_t *task)
{
    int error = errno; /* a group's member may return it */
    aco__remember_name(aco__self(), task);
    aco__self()->slow_switch_tasks++;
    aco__clean_up(task);
    aco__self()->slow_switch_tasks--;
    errno = error;
}

static inline int needs_slow_switch(const aco_t *task)
{
    return (task->aco__state & (ACO__INSTRUMENTED | ACO__SHARES_FP)) != ACO__SHARES_FP;
}

/* The resume address of a task that has ended. Every way to use its block again, also aco_new() on it in the cache,
 * writes another one. */
static const char ended_task;

static inline void mark_ended(aco_t *task)
{
    task->aco__self.pc = (void *)(uintptr_t)&ended_task;
}

/* Gives up the ended task. The caller still runs on its stack. In the cache the stack is safe until another task runs;
 * otherwise the task becomes the zombie, and the next zombie or a reap frees it. Returns whether that must happen
 * before another task runs: who joined the task, or ended its group, may free the stack's memory then. */
static inline int give_up(aco__thread_t *self, aco_t *task)
{
    const unsigned cacheable = ACO__FROM_NEW | ACO__PRIVATE | ACO__ENDED;
    if (aco_likely((task->aco__state & ~ACO__SHARES_FP) == cacheable) && aco__cache_put(self, task))
        return 0;
    reap(self->scheduler);
    aco__set_status(task, ACO__DESTROYED);
    self->scheduler->zombie = task;
    return aco__stack_is_callers(task->share_stack);
}

/* Inline, so that a task ends with a jump and not with a call that never returns (docs/switch.md). */
__attribute__((noreturn, always_inline)) static inline void end_task(aco_t *task, void *result)
{
    aco__thread_t *self;
    aco_t *joiner;
    unsigned slow_switches;
    if (aco_unlikely(task->aco__state & ACO__HAS_COLD))
        clean_up(task);
    if (aco_unlikely(!task->share_stack->guard_page_enabled))
        aco__stack_check_overflow("aco_exit", task->share_stack);
    self = aco__self();
    slow_switches = self->slow_switch_tasks;
    if (aco_unlikely(needs_slow_switch(task)))
        self->slow_switch_tasks--;
    ACO__ASSERT(self->tasks && self->task == task && aco__is_task(task));
    self->tasks--;
    if (aco_unlikely(self->scoped_tasks != 0))
        aco__scoped_task_ends(self, task, result);
    aco__ring_remove(self);
    task->is_end = 1;
    aco__set_result(task, result);
    mark_ended(task);
    aco__set_status(task, ACO__ENDED);
    joiner = *aco__task_joiner(task);
    if (joiner) {
        ACO__ASSERT(aco__task_wait(joiner) && aco__task_wait(joiner)->kind == ACO__WAIT_JOIN &&
                    aco__task_wait(joiner)->object == task); /* its `value` is the result */
        aco__task_wait(joiner)->value = result;
        aco__wake(self, aco__task_wait(joiner), 0);
    }
    if (!(task->aco__state & ACO__SHARES_FP))
        aco__load_resumer_environment();
    if (joiner || (*aco__task_flags(task) & TASK_DETACHED))
        slow_switches |= (unsigned)give_up(self, task); /* aco_run() reaps before it resumes another task */
    if (aco_unlikely(slow_switches || !self->task))
        aco__switch_exit(aco__tls_ref(), 0, NULL);
    self->running = self->task;
    aco__switch_enter(aco__tls_ref(), self->task, (uintptr_t)self->task, NULL);
}

static void end_running_task(aco_t *task, void *result)
{
    end_task(task, result);
}

/* ---- Spawning ---- */

ACO__FOREIGN_ENTRY ACO__ARRIVAL_ABI static void begin(ACO__ARRIVAL_PARAMETERS)
{
    aco_t *task = (aco_t *)tagged;
    aco__end_frame_pointers();
    aco__begins_here(task->share_stack, aco__self());
    end_task(task, aco__entry_of_task(task)(task->arg));
}

static const char no_end[] = "a detached task has no stack_memory: its end is not known";

/* A new task that does not come from the cache. NULL after a failure. */
static __attribute__((noinline)) aco_t *task_new(aco__thread_t *self, aco_function_t fn, void *arg,
                                                 const aco_options_t *opts)
{
    aco_options_t o = {0};
    aco_t *task;
    if (opts)
        o = *opts;
    if (o.stack_memory && (o.flags & ACO_DETACHED)) {
        aco__fail(0, EINVAL, "aco_spawn", NULL, no_end);
        return NULL;
    }
    if (!scheduler_of(self, "aco_spawn"))
        return NULL;
    o.flags &= ~(unsigned)ACO_DETACHED;
    task = aco__new_called("aco_spawn", fn, arg, &o, 1);
    if (task && o.stack && aco__on_share_stack_prepare(task, begin, fn) != 0) {
        int error = errno;
        aco__coroutine_free(task);
        errno = error;
        return NULL;
    }
    if (task && needs_slow_switch(task))
        self->slow_switch_tasks++;
    return task;
}

aco_t *aco_spawn(aco_function_t fn, void *arg, const aco_options_t *opts)
{
    aco__thread_t *self = aco__self();
    int from_cache = self->cached && !opts && fn && self->scheduler;
    aco_t *task = aco_likely(from_cache) ? aco__cache_reuse(self, fn, arg) : task_new(self, fn, arg, opts);
    if (aco_unlikely(!task))
        return NULL;
    aco__made(task, __builtin_return_address(0));
    *aco__task_joiner(task) = NULL;
    *aco__task_flags(task) = opts && (opts->flags & ACO_DETACHED) ? TASK_DETACHED : 0;
    if (aco__is_on_private(task)) {
        aco__begin_in(&task->aco__self, task->aco__self.sp, begin);
        aco__set_task_function(task, fn);
        aco__set_status(task, ACO__MAIN);
    } else {
        aco__set_status(task, ACO__RESUMING_SAVED);
        self->scoped_tasks++; /* its end is not the common one */
    }
    task->share_stack->aco__thread = self;
    self->tasks++;
    self->spawned++;
    aco__ring_append(self, task);
    return task;
}

/* ---- The tasks' turns ---- */

ACO__SWITCHES int aco__task_yield(void)
{
    aco__thread_t *self = aco__self();
    aco_t *task = self->task;
    ACO__MAY_SWITCH("aco_task_yield()", NULL);
    if (aco__check_waiting(self, "aco_task_yield") != 0)
        return -1;
    aco__ring_turn(self);
    if (self->task == task)
        return 0;
    self->slow_switch_tasks += self->running != task; /* as aco__wait_slowly_inside() */
    aco__task_leave(task);
    return 0;
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
    scheduler_t *s = scheduler_of(self, "aco_run_measure");
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

int aco_watchdog(int64_t limit_ns)
{
    static const char call[] = "aco_watchdog";
    aco__thread_t *self = aco__self();
    scheduler_t *s = limit_ns > 0 ? aco__polling_scheduler_of(self, call) : aco__tasks(self);
    if (limit_ns < 0)
        return aco__fail(0, EINVAL, call, NULL, "the limit is negative");
    if (limit_ns > 0 && !s)
        return -1;
    return aco__watch_limit(self, s, limit_ns, call);
}

int aco_tasks_dump_on(int signal, int fd)
{
    static const char call[] = "aco_tasks_dump_on";
    scheduler_t *s = signal ? aco__polling_scheduler_of(aco__self(), call) : scheduler_of(aco__self(), call);
    if (!s)
        return -1;
    if (!signal) {
        aco__dump_signal_stop(s);
        return 0;
    }
    return aco__dump_signal_start(s, signal, fd, call);
}

/* ---- Joining, detaching, parking ---- */

aco_t *aco_current_task(void)
{
    return aco__current(aco__self());
}

/* 0 if `task` is a live task of this thread; else -1. */
static int check_task(const aco__thread_t *self, const char *call, const aco_t *task)
{
    if (aco_likely(task && aco__is_task(task) && task->share_stack->aco__thread == self))
        return 0;
    if (!task)
        return aco__fail(0, EINVAL, call, NULL, "the task is NULL");
    if (aco__is_task(task))
        return aco__fail(0, EPERM, call, task, "belongs to another thread");
    if (aco__status(task) == ACO__DESTROYED)
        return aco__fail(0, ESRCH, call, task, "was destroyed");
    return aco__fail(0, EINVAL, call, task, "is not a task");
}

/* Whether `task` is a task that has ended and was neither destroyed nor restarted. */
static int has_ended(const aco_t *task)
{
    return task && aco__status(task) == ACO__ENDED && task->aco__self.pc == &ended_task;
}

static void destroy(aco_t *task)
{
    aco__thread_t *self = aco__self();
    if (aco_unlikely(self->scoped_tasks != 0) && aco__is_posted(aco__task_post(task)))
        aco__inbox_forget(aco__tasks(self), aco__task_post(task));
    aco_destroy_inline(task);
}

ACO__COLD static int fail_joinable(const char *call, const aco_t *task)
{
    if (*aco__task_flags(task) & TASK_DETACHED)
        return aco__fail(0, EINVAL, call, task, "is detached");
    return aco__fail(0, EBUSY, call, task, "is being joined by coroutine %p", (void *)*aco__task_joiner(task));
}

/* 0 if `task` is neither detached nor being joined; else -1. */
static inline int check_joinable(const char *call, const aco_t *task)
{
    return aco_likely(!*aco__task_joiner(task) && !(*aco__task_flags(task) & TASK_DETACHED))
               ? 0
               : fail_joinable(call, task);
}

static const char join_call[] = "aco_join";

/* What is not the common case. */
ACO__SWITCHES
static __attribute__((noinline)) int join_slowly(aco__thread_t *self, aco_t *task, void **result, aco__wait_t *wait,
                                                 const char *location)
{
    if (has_ended(task)) {
        if (result)
            *result = aco__result(task);
        destroy(task);
        return 0;
    }
    if (check_task(self, join_call, task) != 0 || check_joinable(join_call, task) != 0 ||
        aco__check_waiting(self, join_call) != 0)
        return -1;
    if (task == self->task)
        return aco__fail(0, EDEADLK, join_call, task, "joins itself");
    if (aco__wait_prepare(self, wait, ACO__WAIT_JOIN, task, location) != 0)
        return -1;
    ACO__ASSERT(!*aco__task_joiner(task));
    *aco__task_joiner(task) = wait->task;
    return aco__wait_start(self, wait);
}

/* The common case is a live task on a private stack. It calls nothing, so it need not save registers. */
ACO__SWITCHES int aco__join(aco_t *task, void **result, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    if (aco_unlikely(!task || !aco__is_task(task) || task->share_stack->aco__thread != self ||
                     !aco__is_on_private(task) || *aco__task_joiner(task) ||
                     (*aco__task_flags(task) & TASK_DETACHED) || !aco__is_in_task(self) || task == self->task ||
                     self->scoped_tasks))
        return join_slowly(self, task, result, wait, location);
    aco__wait_fill(self, wait, ACO__WAIT_JOIN, task, location);
    *aco__task_joiner(task) = wait->task;
    return aco__wait_start(self, wait);
}

int aco_detach(aco_t *task)
{
    static const char call[] = "aco_detach";
    if (has_ended(task)) {
        destroy(task);
        return 0;
    }
    if (check_task(aco__self(), call, task) != 0 || check_joinable(call, task) != 0)
        return -1;
    if (aco__stack_is_callers(task->share_stack))
        return aco__fail(0, EINVAL, call, task, no_end);
    *aco__task_flags(task) |= TASK_DETACHED;
    return 0;
}

ACO__SWITCHES int aco__park(const char *what, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    if (aco__check_waiting(self, "aco_park") != 0)
        return -1;
    if (*aco__task_flags(self->task) & TASK_PERMIT) {
        *aco__task_flags(self->task) &= ~(size_t)TASK_PERMIT;
        return 0;
    }
    if (aco__wait_prepare(self, wait, ACO__WAIT_PARK, what, location) != 0)
        return -1;
    return aco__wait_start(self, wait);
}

static void unpark(aco__thread_t *self, aco_t *task)
{
    aco__wait_t *wait = aco__task_wait(task);
    if (wait && wait->kind == ACO__WAIT_PARK)
        aco__wake(self, wait, 0);
    else
        *aco__task_flags(task) |= TASK_PERMIT;
}

static void unpark_posted(aco__thread_t *self, aco__post_t *post)
{
    aco_t *task = aco__task_record_stack((char *)post - offsetof(aco__task_record_t, post))->owner;
    if (aco__is_task(task)) /* it has not ended */
        unpark(self, task);
}

static void unpark_on_share_stack(aco__thread_t *self, aco__post_t *post)
{
    aco_t *task = ((aco__annex_t *)(void *)((char *)post - offsetof(aco__annex_t, post)))->task;
    if (aco__is_task(task))
        unpark(self, task);
}

/* Another thread unparks `task`, if that task's scheduler is open: whether it is. */
static int unpark_from_afar(const aco__thread_t *self, aco_t *task)
{
    aco__thread_t *other = task && aco__is_task(task) ? task->share_stack->aco__thread : NULL;
    aco__post_t *post;
    if (!other || other == self || !aco__is_open(other))
        return 0;
    post = aco__task_post(task);
    __atomic_store_n(&post->run, aco__has(task, ACO__PRIVATE) ? unpark_posted : unpark_on_share_stack,
                     __ATOMIC_RELAXED);
    aco__inbox_post(aco__tasks(other), post);
    return 1;
}

int aco_unpark(aco_t *task)
{
    aco__thread_t *self = aco__self();
    if (unpark_from_afar(self, task))
        return 0;
    if (has_ended(task))
        return aco__fail(0, ESRCH, "aco_unpark", task, "has ended");
    if (check_task(self, "aco_unpark", task) != 0)
        return -1;
    unpark(self, task);
    return 0;
}

/* ---- Other threads ---- */

aco_scheduler_t *aco_scheduler_open(void)
{
    aco__thread_t *self = aco__self();
    scheduler_t *s = aco__polling_scheduler_of(self, "aco_scheduler_open");
    if (!s)
        return NULL;
    __atomic_store_n(&s->open, s->open + 1, __ATOMIC_RELEASE);
    if (!s->opened)
        self->scoped_tasks++; /* the ends of tasks look for posts from now on */
    s->opened = 1;
    return (aco_scheduler_t *)s;
}

int aco_scheduler_close(void)
{
    aco__thread_t *self = aco__self();
    scheduler_t *s = aco__tasks(self);
    if (!s || !s->open)
        return aco__fail(0, EINVAL, "aco_scheduler_close", NULL, "the thread's scheduler is not open");
    __atomic_store_n(&s->open, s->open - 1, __ATOMIC_RELEASE);
    return 0;
}

int aco_post(aco_scheduler_t *scheduler, void (*fn)(void *arg), void *arg)
{
    scheduler_t *s = (scheduler_t *)scheduler;
    posted_call_t *call;
    size_t sz = sizeof *call;
    if (!s || !fn)
        return aco__fail(0, EINVAL, "aco_post", NULL, s ? "the function is NULL" : "the scheduler is NULL");
    if (!__atomic_load_n(&s->open, __ATOMIC_ACQUIRE)) {
        errno = EPIPE;
        return -1;
    }
    call = aco__memory_new(&sz);
    if (!call)
        return aco__fail_memory(0, "aco_post", sizeof *call);
    call->post.next = NULL;
    call->post.run = run_posted;
    call->fn = fn;
    call->arg = arg;
    aco__inbox_post(s, &call->post);
    return 0;
}

int aco_on_wake(void (*wake)(void *ctx), void *ctx)
{
    scheduler_t *s = scheduler_of(aco__self(), "aco_on_wake");
    if (!s)
        return -1;
    if (s->open)
        return aco__fail(0, EBUSY, "aco_on_wake", NULL, "the thread's scheduler is open");
    s->wake = wake;
    s->wake_ctx = ctx;
    return 0;
}

/* ---- Time and the idle hook ---- */

int64_t aco_now(void)
{
    return aco__os_now();
}

int64_t aco_after(int64_t ns)
{
    int64_t now = aco__os_now();
    return ns <= 0 ? now : ns < ACO_FOREVER - now ? now + ns : ACO_FOREVER;
}

ACO__SWITCHES int aco__sleep(int64_t deadline, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    deadline -= deadline == ACO_FOREVER; /* a task that sleeps for ever is no deadlock */
    if (aco__check_waiting(self, "aco_sleep") != 0)
        return -1;
    if (aco__wait_reserve("aco_sleep") != 0 ||
        aco__wait_prepare(self, wait, ACO__WAIT_SLEEP, NULL, location) != 0)
        return -1;
    aco__wait_limit(wait, deadline);
    return aco__wait_start(self, wait);
}

int aco_on_idle(int (*idle)(void *ctx, int64_t timeout_ns), void *ctx)
{
    aco__thread_t *self = aco__self();
    scheduler_t *s = scheduler_of(self, "aco_on_idle");
    if (!s)
        return -1;
    if (idle && aco__poll_task_start(self) != 0)
        return aco__fail_memory(0, "aco_on_idle", sizeof(aco__scratch_t));
    s->idle = idle;
    s->idle_ctx = ctx;
    return 0;
}

int aco__poller_install(aco__poller_t *poller, const char *call)
{
    scheduler_t *s = aco__polling_scheduler_of(aco__self(), call);
    if (!s)
        return -1;
    poller->scheduler = s;
    poller->waiters = 0;
    __atomic_store_n(&s->poller, poller, __ATOMIC_RELEASE);
    return 0;
}
