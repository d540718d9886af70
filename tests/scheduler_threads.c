/* Promises about calls from other threads (include/aco/scheduler.h, include/aco/scope.h: "Any thread"). */
#define _GNU_SOURCE
#include "tasks.h"
#include "fails.h"

#include <aco/scope.h>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { THREADS = 3, MANY = 3000 };

static aco_scheduler_t *scheduler;
static pthread_t threads[THREADS];

static void start(void *(*fn)(void *), void *arg, int n)
{
    for (int i = 0; i < n; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, fn, arg ? arg : (void *)(intptr_t)i), 0);
}

static void join_threads(int n)
{
    for (int i = 0; i < n; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

static int load(const int *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void *turns_for_ever(void *over)
{
    while (!load(over))
        aco_task_yield();
    return NULL;
}

/* ---- Unpark ---- */

static int raised, taken, over;

static void *raises(void *task)
{
    for (int i = 0; i < MANY; i++) {
        __atomic_fetch_add(&raised, 1, __ATOMIC_SEQ_CST);
        CHECK_EQ(aco_unpark(task), 0);
        if (i % 64 == 0)
            usleep(100); /* long enough for the scheduler to fall asleep */
    }
    return NULL;
}

static void *takes(void *unused)
{
    while (taken < THREADS * MANY) {
        CHECK_EQ(aco_park("the other threads"), 0);
        taken = load(&raised);
    }
    over = 1;
    return unused;
}

/* Promise: no unpark is lost, whether the scheduler sleeps, other tasks run, or the task is about to park. */
static void unparks(void)
{
    for (int busy = 0; busy < 2; busy++) {
        aco_t *task;
        raised = taken = over = 0;
        task = spawn(takes, NULL);
        if (busy)
            spawn_detached(turns_for_ever, &over);
        start(raises, task, THREADS);
        run();
        join_threads(THREADS);
        CHECK_EQ(taken, THREADS * MANY);
        CHECK_EQ(aco_unpark(task), -1); /* its own thread, as ever */
        CHECK_EQ(errno, ESRCH);
        CHECK_EQ(aco_join(task, NULL), 0);
    }
}

static void *returns(void *unused)
{
    return unused;
}

static void *unparks_once(void *task)
{
    CHECK_EQ(aco_unpark(task), 0);
    return NULL;
}

static void *parks_in_vain(void *unused)
{
    CHECK_EQ(aco_park_until("nothing", aco_after(1000)), -1);
    return unused;
}

/* Promise: an unpark that has not arrived when its task ends has no effect, on the next task in its place least. */
static void unparks_late(void)
{
    for (int i = 0; i < 100; i++) {
        aco_t *task = spawn(returns, NULL);
        start(unparks_once, task, 1);
        join_threads(1);
        run();
        CHECK_EQ(aco_join(task, NULL), 0);
        spawn_detached(parks_in_vain, NULL);
        run();
    }
}

/* ---- Post ---- */

static int next[THREADS], posted, spawned;

static void *counts(void *unused)
{
    spawned++;
    return unused;
}

static void arrives(void *arg)
{
    intptr_t which = (intptr_t)arg % THREADS, number = (intptr_t)arg / THREADS;
    CHECK(aco_get_co() == NULL); /* in the root context */
    CHECK_EQ(next[which], number);
    next[which]++;
    FAILS(aco_park(NULL), -1, EPERM, "aco_park", NULL, "root context");
    if (number % 100 == 0)
        spawn_detached(counts, NULL);
    if (++posted == THREADS * MANY)
        over = 1;
}

static void *posts(void *arg)
{
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(aco_post(scheduler, arrives, (void *)(i * THREADS + (intptr_t)arg)), 0);
    return NULL;
}

static void *waits_until_over(void *unused)
{
    while (!over)
        CHECK_EQ(aco_sleep(100000), 0);
    return unused;
}

/* Promise: posted calls are made in the order of each thread; the last ones also if no task is left. */
static void posts_arrive(void)
{
    for (int way = 0; way < 3; way++) {
        memset(next, 0, sizeof next);
        posted = spawned = over = 0;
        start(posts, NULL, THREADS);
        if (way == 0)
            join_threads(THREADS);
        else
            spawn_detached(way == 1 ? waits_until_over : turns_for_ever, &over);
        run();
        if (way)
            join_threads(THREADS);
        CHECK_EQ(posted, THREADS * MANY);
        CHECK_EQ(spawned, THREADS * MANY / 100);
    }
}

/* ---- Scopes ---- */

static aco_scope_t *offered;
static int cancelled, patient;

static void *cancels(void *unused)
{
    for (int i = 0; i < 200; i++) {
        aco_scope_t *scope;
        while ((scope = __atomic_exchange_n(&offered, NULL, __ATOMIC_SEQ_CST)) == NULL)
            sched_yield();
        CHECK_EQ(aco_scope_cancel(scope), 0);
        __atomic_store_n(&cancelled, i + 1, __ATOMIC_SEQ_CST);
    }
    return unused;
}

static void *is_cancelled(void *unused)
{
    for (int i = 0; i < 200; i++) {
        aco_scope_t scope;
        CHECK_EQ(aco_scope_begin(&scope, ACO_FOREVER), 0);
        __atomic_store_n(&offered, &scope, __ATOMIC_SEQ_CST);
        if (i % 2 == patient) {
            CHECK_EQ(aco_park("to be cancelled"), -1);
            CHECK_EQ(errno, ECANCELED);
        }
        while (load(&cancelled) != i + 1) /* the scope must not be left before the call returns */
            sched_yield();
        CHECK_EQ(aco_scope_end(&scope), 0); /* with the news not read yet, perhaps */
    }
    return unused;
}

static void scopes(void)
{
    for (patient = 0; patient < 2; patient++) {
        cancelled = 0;
        start(cancels, &cancelled, 1);
        spawn_detached(is_cancelled, NULL);
        run();
        join_threads(1);
    }
}

/* ---- With an idle hook ---- */

static int ends[2];

static int hook(void *ctx, int64_t timeout_ns)
{
    struct pollfd one = {ends[0], POLLIN, 0};
    char bytes[64];
    (void)ctx;
    poll(&one, 1, timeout_ns < 0 ? -1 : (int)(timeout_ns / 1000000));
    if (one.revents)
        CHECK(read(ends[0], bytes, sizeof bytes) > 0);
    return 1;
}

static void wakes_hook(void *fd)
{
    CHECK_EQ(write(*(int *)fd, "w", 1), 1);
}

static void with_hook(void)
{
    CHECK_EQ(aco_scheduler_close(), 0);
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(aco_on_idle(hook, NULL), 0);
    CHECK_EQ(aco_on_wake(wakes_hook, &ends[1]), 0);
    CHECK(aco_scheduler_open() == scheduler);
    FAILS(aco_on_wake(NULL, NULL), -1, EBUSY, "aco_on_wake", NULL, "is open");
    unparks();
    posts_arrive();
    scopes();
    CHECK_EQ(aco_scheduler_close(), 0);
    CHECK_EQ(aco_on_wake(NULL, NULL), 0);
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
    CHECK(aco_scheduler_open() == scheduler);
    close(ends[0]);
    close(ends[1]);
}

/* ---- Failures ---- */

static void *is_refused(void *task)
{
    aco_scope_t *scope = offered;
    FAILS(aco_unpark(task), -1, EPERM, "aco_unpark", task, "another thread");
    FAILS(aco_scope_cancel(scope), -1, EPERM, "aco_scope_cancel", task, "another thread");
    CHECK_EQ(aco_post(scheduler, arrives, NULL), -1);
    CHECK_EQ(errno, EPIPE);
    FAILS(aco_post(NULL, arrives, NULL), -1, EINVAL, "aco_post", NULL, "NULL");
    FAILS(aco_post(scheduler, NULL, NULL), -1, EINVAL, "aco_post", NULL, "NULL");
    return NULL;
}

static void *parks_in_scope(void *unused)
{
    aco_scope_t scope;
    aco_scope_begin(&scope, ACO_FOREVER);
    offered = &scope;
    CHECK_EQ(aco_park(NULL), 0);
    aco_scope_end(&scope);
    return unused;
}

/* Promise: a scheduler that is not open reports deadlocks, and other threads' calls fail. */
static void closed(void)
{
    char text[4096];
    aco_t *task = spawn(parks_in_scope, NULL);
    CHECK_EQ(aco_scheduler_close(), 0);
    FAILS(aco_scheduler_close(), -1, EINVAL, "aco_scheduler_close", NULL, "not open");
    check_deadlock(text, sizeof text);
    start(is_refused, task, 1);
    join_threads(1);
    CHECK_EQ(aco_unpark(task), 0);
    run();
    CHECK_EQ(aco_join(task, NULL), 0);
    offered = NULL;
}

/* Posts that nobody has run are freed with the thread. */
static void *ends_with_posts(void *unused)
{
    aco_scheduler_t *own = aco_scheduler_open();
    CHECK(own != NULL);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(aco_post(own, arrives, NULL), 0);
    return unused;
}

/* ---- What is easily forgotten; each in a thread of its own, with a scheduler of its own ---- */

static void *cancels_it(void *scope)
{
    CHECK_EQ(aco_scope_cancel(scope), 0);
    return NULL;
}

static void *exits_in_cancelled_scope(void *unused)
{
    aco_scope_t scope;
    pthread_t canceller;
    (void)unused;
    CHECK_EQ(aco_scope_begin(&scope, ACO_FOREVER), 0);
    CHECK_EQ(pthread_create(&canceller, NULL, cancels_it, &scope), 0);
    CHECK_EQ(pthread_join(canceller, NULL), 0);
    aco_exit();
}

/* A task may end by aco_exit() while the wish to cancel its scope is under way. */
static void *exits(void *unused)
{
    aco_options_t options = {0};
    CHECK(aco_scheduler_open() != NULL);
    options.flags = ACO_DETACHED;
    options.stack_size = 4u << 20; /* not cached: the memory goes back */
    CHECK(aco_spawn(exits_in_cancelled_scope, NULL, &options) != NULL);
    run();
    return unused;
}

static aco_scheduler_t *closing;
static aco_t *parked;
static int calls;

static void count_call(void *unused)
{
    (void)unused;
    calls++;
}

static void *gives_news(void *unused)
{
    CHECK_EQ(aco_post(closing, count_call, NULL), 0);
    CHECK_EQ(aco_unpark(parked), 0);
    return unused;
}

static void *parks_once(void *unused)
{
    CHECK_EQ(aco_park("news"), 0);
    return unused;
}

/* What was posted before the scheduler closed arrives. */
static void *closes(void *unused)
{
    pthread_t other;
    closing = aco_scheduler_open();
    parked = aco_spawn(parks_once, NULL, NULL);
    CHECK_EQ(pthread_create(&other, NULL, gives_news, NULL), 0);
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_EQ(aco_scheduler_close(), 0);
    run();
    CHECK_EQ(calls, 1);
    CHECK_EQ(aco_join(parked, NULL), 0);
    return unused;
}

static int nothing_to_wait_for(void *ctx, int64_t timeout_ns)
{
    (void)ctx, (void)timeout_ns;
    return 0;
}

static void wake_nobody(void *unused)
{
    (void)unused;
}

static void *unparks_soon(void *task)
{
    usleep(20000); /* most likely asleep by then */
    CHECK_EQ(aco_unpark(task), 0);
    return NULL;
}

/* A wake function does not replace the wake of a thread that waits without its hook. */
static void *sleeps_without_hook(void *with_hook)
{
    pthread_t other;
    aco_t *task;
    CHECK_EQ(aco_on_wake(wake_nobody, NULL), 0);
    if (with_hook)
        CHECK_EQ(aco_on_idle(nothing_to_wait_for, NULL), 0);
    CHECK(aco_scheduler_open() != NULL);
    task = aco_spawn(parks_once, NULL, NULL);
    CHECK_EQ(pthread_create(&other, NULL, unparks_soon, task), 0);
    run();
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    return NULL;
}

static int turns_over;

static void posts_itself(void *unused)
{
    CHECK(++calls < 1000);
    if (!turns_over && calls < 1000)
        CHECK_EQ(aco_post(closing, posts_itself, unused), 0);
}

static void *takes_turns(void *unused)
{
    CHECK_EQ(aco_post(closing, posts_itself, NULL), 0);
    for (int i = 0; i < 10; i++)
        aco_task_yield();
    turns_over = 1;
    return unused;
}

/* Calls that post themselves again leave the tasks their turns. */
static void *reposts(void *unused)
{
    calls = 0;
    closing = aco_scheduler_open();
    spawn_detached(takes_turns, NULL);
    run();
    CHECK(turns_over && calls > 1);
    return unused;
}

static aco_scope_t forsaken;

static void *is_forsaken(void *unused)
{
    CHECK_EQ(aco_scope_begin(&forsaken, ACO_FOREVER), 0);
    aco_park("nobody");
    return unused;
}

static void *ends_before_its_task(void *unused)
{
    spawn_detached(is_forsaken, NULL);
    CHECK_EQ(aco_run(), -1);
    return unused;
}

static void forgotten(void)
{
    static void *(*const each[])(void *) = {exits, closes, sleeps_without_hook, reposts, ends_before_its_task};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        CHECK_EQ(pthread_create(&threads[0], NULL, each[i], NULL), 0);
        join_threads(1);
    }
    start(sleeps_without_hook, &threads[0], 1); /* with a hook */
    join_threads(1);
    FAILS(aco_scope_cancel(&forsaken), -1, EPERM, "aco_scope_cancel", forsaken.aco__task, "another thread");
}

int main(void)
{
    static void (*const tests[])(void) = {unparks, unparks_late, posts_arrive, scopes, NULL};
    scheduler = aco_scheduler_open();
    CHECK(scheduler != NULL);
    with_all_kinds(tests);
    with_hook();
    closed();
    start(ends_with_posts, NULL, 1);
    join_threads(1);
    forgotten();
    return check_result("scheduler_threads");
}
