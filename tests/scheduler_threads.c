/* Promises about calls from other threads (include/aco/scheduler.h, include/aco/scope.h: "Any thread"). */
#define _GNU_SOURCE
#include "asleep.h"
#include "tasks.h"
#include "child.h"
#include "fails.h"
#include "single_steps.h"

#include <aco/backtrace.h>
#include <aco/detail/worker.h>
#include <aco/scope.h>
#include <aco/sync.h>

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

static int raised, unparked, taken, over;
static sleeper_t taker; /* no tasks: it is always busy */

/* Wakes it when it sleeps, and at any moment while it falls asleep. */
static void *raises(void *task)
{
    enum { LONGEST_PAUSE = 4096 };
    unsigned random = (unsigned)this_thread();
    for (int i = 0; i < MANY; i++) {
        __atomic_fetch_add(&raised, 1, __ATOMIC_SEQ_CST);
        CHECK_EQ(aco_unpark(task), 0);
        __atomic_fetch_add(&unparked, 1, __ATOMIC_SEQ_CST);
        if (i % 64 == 0 && taker.tasks)
            until_asleep(&taker);
        random = random * 1664525 + 1013904223;
        for (volatile unsigned left = (random >> 16) % LONGEST_PAUSE; left > 0; left--)
            continue;
    }
    return NULL;
}

static void *takes(void *unused)
{
    while (taken < THREADS * MANY) {
        CHECK_EQ(aco_park("the other threads"), 0);
        taken = load(&raised);
    }
    while (load(&unparked) < THREADS * MANY) /* the last one finds the task only before it ends */
        aco_task_yield();
    over = 1;
    return unused;
}

static void unparks_on(aco_share_stack_t *stack)
{
    aco_options_t options = {0};
    options.stack = stack;
    options.flags = kind;
    for (int busy = 0; busy < 2; busy++) {
        aco_t *task;
        raised = unparked = taken = over = 0;
        task = aco_spawn(takes, NULL, &options);
        CHECK(task != NULL);
        taker = busy ? (sleeper_t){NULL, 0} : this_sleeper();
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

/* Promise: no unpark is lost, whether the scheduler sleeps, other tasks run, or the task is about to park. */
static void unparks(void)
{
    unparks_on(NULL);
    if (COPYING) {
        aco_share_stack_t *stack = aco_share_stack_new(0);
        unparks_on(stack);
        aco_share_stack_destroy(stack);
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

#if SINGLE_STEPS
static void *unparks_by_steps(void *task)
{
    begin_steps();
    aco_unpark(task);
    end_steps();
    return NULL;
}

/* The same, wherever the unpark is when the task ends. */
static void unparks_by_and_by(void)
{
    int at = 0;
    do {
        aco_t *task = spawn(returns, NULL);
        plan_rest(++at);
        start(unparks_by_steps, task, 1);
        await_rest();
        run();
        end_rest();
        join_threads(1);
        CHECK_EQ(aco_join(task, NULL), 0);
        spawn_detached(parks_in_vain, NULL);
        run();
    } while (has_rested());
}
#endif

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

/* Promise: aco_run() may follow on aco_run_ready(), which leaves the thread asleep for those who post. */
static void run_after_ready(void)
{
    int64_t when;
    CHECK_EQ(aco_run_ready(&when), 0);
    (void)spawn_detached(returns, NULL);
    run();
}

static void wakes_hook(void *fd)
{
    CHECK_EQ(write(*(int *)fd, "w", 1), 1);
}

/* ---- The end of a wake function ---- */

static int is_in_hook, is_in_wake, is_replaced, has_left_wake;

static int waits_for_waker(void *unused, int64_t timeout_ns)
{
    (void)unused;
    if (timeout_ns == 0)
        return 1;
    __atomic_store_n(&is_in_hook, 1, __ATOMIC_RELEASE);
    while (!load(&is_in_wake))
        sched_yield();
    return 1;
}

static void leaves_late(void *unused)
{
    (void)unused;
    __atomic_store_n(&is_in_wake, 1, __ATOMIC_RELEASE);
    while (!load(&is_replaced))
        sched_yield();
    for (int i = 0; i < 100; i++) /* time for aco_on_wake() to return too early */
        sched_yield();
    __atomic_store_n(&has_left_wake, 1, __ATOMIC_RELEASE);
}

static void *unparks_from_hook(void *task)
{
    while (!load(&is_in_hook))
        sched_yield();
    CHECK_EQ(aco_unpark(task), 0);
    return NULL;
}

static void *parks_in_hook(void *unused)
{
    CHECK_EQ(aco_park("another thread"), 0);
    return unused;
}

/* Promise: when aco_on_wake() returns, nobody is in the function that was set before, whose context may be gone. */
static void wake_is_over(void)
{
    aco_t *task;
    CHECK_EQ(aco_scheduler_close(), 0);
    CHECK_EQ(aco_on_idle(waits_for_waker, NULL), 0);
    CHECK_EQ(aco_on_wake(leaves_late, NULL), 0);
    CHECK(aco_scheduler_open() == scheduler);
    task = spawn(parks_in_hook, NULL);
    start(unparks_from_hook, task, 1);
    run();
    CHECK_EQ(aco_scheduler_close(), 0);
    __atomic_store_n(&is_replaced, 1, __ATOMIC_RELEASE);
    CHECK_EQ(aco_on_wake(NULL, NULL), 0);
    CHECK_EQ(load(&has_left_wake), 1);
    join_threads(1);
    CHECK_EQ(aco_join(task, NULL), 0);
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
    CHECK(aco_scheduler_open() == scheduler);
}

/* ---- A wake function that takes the place of another one ---- */

static aco__answer_t answer;

static void *awaits_answer(void *unused)
{
    CHECK_EQ(aco__answer_prepare(&answer, "awaits_answer"), 0);
    CHECK_EQ(aco__answer_wait(&answer, "awaits_answer", "news", ACO_FOREVER, NULL, NULL), 0);
    return unused;
}

static void *tells_answer(void *unused)
{
    aco__answer_tell(&answer);
    return unused;
}

static void notes(void *is_called)
{
    ++*(int *)is_called;
}

/* Promise: the foreign loop that waits after aco_run_ready() is told of news by the function that is set by then. */
static void wake_is_replaced(void)
{
    int calls[2] = {0, 0};
    int64_t deadline = 0;
    aco_t *task;
    CHECK_EQ(aco_scheduler_close(), 0);
    CHECK_EQ(aco_on_wake(notes, &calls[0]), 0);
    task = spawn(awaits_answer, NULL);
    while (deadline != ACO_FOREVER)
        CHECK_EQ(aco_run_ready(&deadline), 1);
    CHECK_EQ(aco_on_wake(notes, &calls[1]), 0);
    start(tells_answer, NULL, 1);
    join_threads(1);
    CHECK_EQ(calls[0], 0);
    CHECK_EQ(calls[1], 1);
    run();
    CHECK_EQ(aco_join(task, NULL), 0);
    CHECK_EQ(aco_on_wake(NULL, NULL), 0);
    CHECK(aco_scheduler_open() == scheduler);
}

/* ---- An idle hook that gives turns ---- */

static aco_event_t begins;
static int has_begun;

static void leaves_soon(void *unused)
{
    (void)unused;
}

static int gives_turn(void *unused, int64_t timeout_ns)
{
    (void)unused;
    if (timeout_ns != 0 && !has_begun) {
        has_begun = 1;
        aco_event_set(&begins);
        CHECK_EQ(aco__idle_turn(), 0);
    }
    return 1;
}

static void *unparks_now(void *task)
{
    CHECK_EQ(aco_unpark(task), 0);
    return NULL;
}

static void *opens_in_hook(void *unused)
{
    CHECK_EQ(aco_event_wait(&begins), 0);
    CHECK(aco_scheduler_open() == scheduler);
    start(unparks_now, aco_current_task(), 1);
    CHECK_EQ(aco_park("another thread"), 0);
    return unused;
}

/* Promise: a hook that has begun to wait when no other thread could post does not go on when one can. */
static void hook_is_opened(void)
{
    aco_t *task;
    CHECK_EQ(aco_scheduler_close(), 0);
    CHECK_EQ(aco_on_idle(gives_turn, NULL), 0);
    aco__idle_gives_turns(leaves_soon);
    task = spawn(opens_in_hook, NULL);
    run();
    join_threads(1);
    CHECK_EQ(aco_join(task, NULL), 0);
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
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

/* ---- What is posted to a task that ends meanwhile ---- */

static aco_scope_t *ending;
static intptr_t late;

static void *posts_around(void *task)
{
    CHECK_EQ(aco_post(scheduler, arrives, (void *)(late++ * THREADS)), 0);
    CHECK_EQ(aco_unpark(task), 0);
    CHECK_EQ(aco_post(scheduler, arrives, (void *)(late++ * THREADS)), 0);
    CHECK_EQ(aco_scope_cancel(ending), 0);
    CHECK_EQ(aco_post(scheduler, arrives, (void *)(late++ * THREADS)), 0);
    return NULL;
}

static void *ends_with_news(void *unused)
{
    aco_scope_t scope;
    pthread_t thread;
    ending = &scope;
    CHECK_EQ(aco_scope_begin(&scope, ACO_FOREVER), 0);
    CHECK_EQ(pthread_create(&thread, NULL, posts_around, aco_get_co()), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    if (late % 2)
        aco_exit();
    CHECK_EQ(aco_scope_end(&scope), 0);
    return unused;
}

/* Promise: what was posted to an ended task or scope is taken out of the inbox; the rest arrives in its order. */
static void end_with_news(void)
{
    aco_t *tasks[3];
    memset(next, 0, sizeof next);
    late = 0;
    for (int i = 0; i < 3; i++)
        tasks[i] = spawn(ends_with_news, NULL);
    run();
    CHECK_EQ(next[0], 9);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
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

static sleeper_t without_hook;

static void *unparks_sleeper(void *task)
{
    until_asleep(&without_hook);
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
    without_hook = this_sleeper();
    CHECK_EQ(pthread_create(&other, NULL, unparks_sleeper, task), 0);
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

/* ---- Objects that two threads share ---- */

static aco_mutex_t mutex;
static aco_cond_t cond;
static aco_semaphore_t semaphore;
static aco_wait_group_t group;
static aco_rwlock_t rwlock;
static aco_once_t once;
static aco_barrier_t barrier = ACO_BARRIER_INIT(3);
static aco_event_t event;
static aco_channel_t *channel, *buffered;

static int parks_for_ever(void *unused)
{
    (void)unused;
    return aco_park("for ever");
}

/* One thread waits ... */
static void waits_channel(void) { aco_channel_receive(channel, NULL); }
static void waits_mutex(void) { aco_mutex_lock(&mutex); }
static void waits_cond(void) { aco_mutex_t own = ACO_MUTEX_INIT; aco_mutex_lock(&own); aco_cond_wait(&cond, &own); }
static void waits_semaphore(void) { aco_semaphore_acquire(&semaphore); }
static void waits_group(void) { if (!group.count) aco_wait_group_add(&group, 1); aco_wait_group_wait(&group); }
static void waits_rwlock(void) { aco_rwlock_wrlock(&rwlock); }
static void waits_once(void) { aco_once(&once, parks_for_ever, NULL); }
static void waits_barrier(void) { aco_barrier_wait(&barrier); }
static void waits_event(void) { aco_event_wait(&event); }
static void sends(void) { CHECK_EQ(aco_channel_send(buffered, &(int64_t){1}), 0); }
/* ... the other one wakes it, or waits too, or takes what it sent. */
static void wakes_channel(void) { aco_channel_send(channel, &(int64_t){1}); }
static void signals_cond(void) { aco_cond_signal(&cond); }
static void broadcasts_cond(void) { aco_cond_broadcast(&cond); }
static void releases(void) { aco_semaphore_release(&semaphore); }
static void done(void) { aco_wait_group_done(&group); }
static void sets(void) { aco_event_set(&event); }
static void receives(void) { aco_channel_receive(buffered, NULL); }
static void closes_it(void) { aco_channel_close(buffered); }
static void selects(void)
{
    aco_select_case_t c = {buffered, NULL, ACO_SELECT_RECEIVE, 0, {0}};
    aco_try_select(&c, 1);
}
/* Without waiting. */
static void locks(void) { if (aco_mutex_lock(&mutex) == 0) aco_mutex_unlock(&mutex); }
static void tries(void) { if (aco_mutex_try_lock(&mutex) == 0) aco_mutex_unlock(&mutex); }
static void reads(void) { if (aco_rwlock_rdlock(&rwlock) == 0) aco_rwlock_unlock(&rwlock); }
static void tries_acquire(void) { aco_semaphore_try_acquire(&semaphore); }
static void adds(void) { aco_wait_group_add(&group, 1); }
static void resets(void) { aco_event_reset(&event); }

static const struct shared_use {
    void (*first)(void), (*second)(void);
    const char *call;
} waiting[] = {
    {waits_channel, wakes_channel, "aco_channel_send"}, {waits_channel, waits_channel, "aco_channel_receive"},
    {sends, receives, "aco_channel_receive"}, {sends, sends, "aco_channel_send"},
    {sends, closes_it, "aco_channel_close"}, {sends, selects, "aco_channel_receive"},
    {waits_mutex, waits_mutex, "aco_mutex_lock"}, {waits_cond, signals_cond, "aco_cond_signal"},
    {waits_cond, broadcasts_cond, "aco_cond_broadcast"}, {waits_cond, waits_cond, "aco_cond_wait"},
    {waits_semaphore, releases, "aco_semaphore_release"}, {waits_semaphore, waits_semaphore, "aco_semaphore_acquire"},
    {waits_group, done, "aco_wait_group_done"}, {waits_group, waits_group, "aco_wait_group_wait"},
    {waits_rwlock, waits_rwlock, "aco_rwlock_wrlock"}, {waits_rwlock, reads, "aco_rwlock_rdlock"},
    {waits_once, waits_once, "aco_once"}, {waits_barrier, waits_barrier, "aco_barrier_wait"},
    {waits_event, sets, "aco_event_set"}, {waits_event, waits_event, "aco_event_wait"},
}, passing[] = { /* noticed in debug builds */
    {locks, locks, "aco_mutex_lock"}, {locks, tries, "aco_mutex_try_lock"}, {reads, reads, "aco_rwlock_rdlock"},
    {releases, tries_acquire, "aco_semaphore_try_acquire"}, {releases, waits_semaphore, "aco_semaphore_acquire"},
    {signals_cond, signals_cond, "aco_cond_signal"}, {adds, adds, "aco_wait_group_add"},
    {sets, resets, "aco_event_reset"}, {sets, waits_event, "aco_event_wait"},
};
static const struct shared_use *use;

static void *uses(void *second)
{
    (second ? use->second : use->first)();
    return NULL;
}

static void *uses_too(void *unused)
{
    (void)unused;
    spawn_detached(uses, &event);
    run();
    return NULL;
}

static void *starts_thread(void *unused)
{
    pthread_t other;
    CHECK_EQ(pthread_create(&other, NULL, uses_too, NULL), 0);
    CHECK_EQ(pthread_join(other, NULL), 0);
    exit(check_failures != 0); /* the process, while the first task waits */
    return unused;
}

static void share(void)
{
    setenv("ACO_REPORT_FORGOTTEN", "0", 1);
    channel = aco_channel_new(0, 8);
    buffered = aco_channel_new(4, 8);
    spawn_detached(uses, NULL);
    spawn_detached(uses, NULL); /* waits behind the first, for what that one has */
    spawn_detached(starts_thread, NULL);
    aco_run();
}

#ifndef CHILD_SKIPS
static void *waits_for_lock(void *unused)
{
    spawn_detached(uses, &mutex);
    aco_run(); /* a deadlock, of this thread's tasks alone */
    return unused;
}

static void *keeps_lock(void *unused)
{
    pthread_t other;
    CHECK_EQ(aco_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_create(&other, NULL, waits_for_lock, NULL), 0);
    while (!__atomic_load_n(&mutex.aco__waiters.first, __ATOMIC_ACQUIRE))
        sched_yield();
    aco_mutex_unlock(&mutex);
    return unused;
}

static void unlock_for_other(void)
{
    spawn_detached(keeps_lock, NULL);
    aco_run();
}

/* The lock was free when its owner took it: the wait of another thread's task is noticed by the unlock, or before. */
static void shared_lock(void)
{
    child_end_t end;
    use = &waiting[6];
    end = child_run(unlock_for_other);
    CHECK(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT);
    CHECK(strstr(end.text, "acorn: aco_mutex_") && strstr(end.text, " belongs to another thread"));
}
#endif

static void *user(void *unused)
{
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        passing[i].first();
    CHECK_EQ(aco_channel_send(buffered, &(int64_t){1}), 0);
    CHECK_EQ(aco_channel_try_receive(buffered, NULL), 0);
    return unused;
}

/* Promise: what a thread used that has ended, another may use. */
static void *uses_all(void *unused)
{
    if (!buffered)
        buffered = aco_channel_new(4, 8);
    spawn_detached(user, NULL);
    run();
    return unused;
}

/* Promise: a program in which two threads share an object ends with a message that names the call. */
static void shared_objects(void)
{
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++) {
        use = &waiting[i];
        ABORTS(share, use->call, NULL, "belongs to another thread");
    }
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
        use = &passing[i];
#if ACO_DEBUG && !defined(ACO_CONFIG_NO_INLINE)
        ABORTS(share, use->call, NULL, "belongs to another thread");
#endif
    }
#ifndef CHILD_SKIPS
    shared_lock();
#endif
    CHECK_EQ(pthread_create(&threads[0], NULL, uses_all, NULL), 0);
    join_threads(1);
    uses_all(NULL);
}

/* ---- A thread ends with live tasks on a share stack ---- */

static aco_t *left_on_stack;

static void *parks_long(void *unused)
{
    aco_park_until("never", aco_after(1000 * ACO_SECOND));
    return unused;
}

static int stops(void *unused, int64_t timeout_ns)
{
    (void)unused, (void)timeout_ns;
    errno = EIO;
    return -1;
}

static void *leaves_tasks(void *stack)
{
    aco_options_t o = {0};
    o.stack = stack;
    for (int i = 0; i < 3; i++)
        left_on_stack = aco_spawn(parks_long, NULL, &o);
    CHECK_EQ(aco_on_idle(stops, NULL), 0);
    CHECK_EQ(aco_run(), -1);
    return NULL;
}

/* Promise: no other thread gets the stack, and no call of another thread looks into these tasks. */
static void left_on_share_stack(void)
{
    aco_options_t o = {0};
    void *at[4];
    o.stack = aco_share_stack_new(0);
    start(leaves_tasks, o.stack, 1);
    join_threads(1);
    CHECK(aco_spawn(parks_long, NULL, &o) == NULL && errno == EPERM);
    FAILS(aco_unpark(left_on_stack), -1, EPERM, "aco_unpark", left_on_stack, "thread");
    FAILS(aco_backtrace(left_on_stack, at, 4), -1, EPERM, "aco_backtrace", left_on_stack, "another thread");
} /* their stack stays */

static void *yields_in_scope(void *unused)
{
    aco_scope_t scope;
    CHECK_EQ(aco_scope_begin(&scope, ACO_FOREVER), 0);
    aco_task_yield();
    CHECK_EQ(aco_scope_end(&scope), 0);
    return unused;
}

static void *uses_share_stack(void *stack)
{
    aco_options_t o = {0};
    aco_t *tasks[2] = {spawn(yields_in_scope, NULL), NULL};
    o.stack = stack;
    tasks[1] = aco_spawn(returns, NULL, &o);
    run();
    for (int i = 0; i < 2; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
    return NULL;
}

/* Promise: without tasks a stack may be another thread's, also when its last task ended beside one with a scope. */
static void share_stack_moves_on(void)
{
    void *stack = aco_share_stack_new(0);
    for (int i = 0; i < 2; i++) {
        start(uses_share_stack, stack, 1);
        join_threads(1);
    }
    uses_share_stack(stack);
    aco_share_stack_destroy(stack);
}

int main(void)
{
    static void (*const tests[])(void) = {unparks, unparks_late, posts_arrive, scopes, end_with_news, NULL};
    scheduler = aco_scheduler_open();
    CHECK(scheduler != NULL);
    with_all_kinds(tests);
#if SINGLE_STEPS
    unparks_by_and_by();
#endif
    run_after_ready();
    with_hook();
    wake_is_over();
    wake_is_replaced();
    hook_is_opened();
    closed();
    start(ends_with_posts, NULL, 1);
    join_threads(1);
    forgotten();
    if (COPYING) {
        left_on_share_stack();
        share_stack_moves_on();
    }
    shared_objects();
    return check_result("scheduler_threads");
}
