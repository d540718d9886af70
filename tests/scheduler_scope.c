/* Promises about scopes and deadlines (include/aco/scope.h), one function each: which waits end, when, with what error;
 * what is kept; nesting, shields, the calls' failures. */
#include "tasks.h"
#include "fails.h"

#include <aco/detail/worker.h>
#include <aco/scope.h>

/* ---- Every wait ---- */

enum { PARK, JOIN, SLEEP, LOCK, CONDITION, ACQUIRE, GROUP, SEND, SEND_FULL, RECEIVE, SELECT, WAITS };

static struct objects {
    aco_mutex_t held, own;  /* held: by somebody else */
    aco_cond_t cond;
    aco_semaphore_t semaphore;
    aco_wait_group_t group;
    aco_channel_t *channel, *full;
    aco_t *task;            /* one that does not end */
} o;

static const int value = 42;

/* Does one of the waits, which nobody ends. With a `deadline`, by the form that has one. */
static int wait_for(int which, int64_t deadline)
{
    aco_select_case_t cases[2] = {{o.channel, NULL, ACO_SELECT_RECEIVE, 0, {0}}, {0}};
    int timed = deadline != ACO_FOREVER, result, got = 0;
    cases[1].channel = o.full;
    cases[1].element = (void *)(intptr_t)&value;
    switch (which) {
    case PARK: return timed ? aco_park_until("a test", deadline) : aco_park("a test");
    case JOIN: return timed ? aco_join_until(o.task, NULL, deadline) : aco_join(o.task, NULL);
    case SLEEP: return timed ? aco_sleep_until(deadline) : aco_sleep(1000 * ACO_SECOND);
    case LOCK: return timed ? aco_mutex_lock_until(&o.held, deadline) : aco_mutex_lock(&o.held);
    case ACQUIRE:
        return timed ? aco_semaphore_acquire_until(&o.semaphore, deadline) : aco_semaphore_acquire(&o.semaphore);
    case GROUP: return timed ? aco_wait_group_wait_until(&o.group, deadline) : aco_wait_group_wait(&o.group);
    case SEND: return timed ? aco_channel_send_until(o.channel, &value, deadline) : aco_channel_send(o.channel, &value);
    case SEND_FULL: return timed ? aco_channel_send_until(o.full, &value, deadline) : aco_channel_send(o.full, &value);
    case RECEIVE:
        return timed ? aco_channel_receive_until(o.channel, &got, deadline) : aco_channel_receive(o.channel, &got);
    case SELECT: return timed ? aco_select_until(cases, 2, deadline) : aco_select(cases, 2);
    default:
        CHECK_EQ(aco_mutex_lock(&o.own), 0);
        result = timed ? aco_cond_wait_until(&o.cond, &o.own, deadline) : aco_cond_wait(&o.cond, &o.own);
        CHECK(o.own.owner == aco_get_co()); /* in any case */
        which = errno;
        CHECK_EQ(aco_mutex_unlock(&o.own), 0);
        errno = which;
        return result;
    }
}

static void fails_with(int line, int which, int64_t deadline, int error)
{
    int result;
    errno = 0;
    result = wait_for(which, deadline);
    if (result != -1 || errno != error) {
        fprintf(stderr, "%s:%d: wait %d returned %d, errno %d, wanted %d\n", __FILE__, line, which, result, errno,
                error);
        CHECK(!"the wait");
    }
}

static int stop;

static void *holds_and_parks(void *unused)
{
    CHECK_EQ(aco_mutex_lock(&o.held), 0);
    while (!stop)
        aco_park(NULL);
    CHECK_EQ(aco_mutex_unlock(&o.held), 0);
    return unused;
}

/* Nobody waits for anything of `o` any more: what was there before is there now. */
static void nothing_waits(void)
{
    int got = 0;
    CHECK(!o.held.aco__waiters.first && !o.own.aco__waiters.first && !o.own.owner && !o.cond.aco__waiters.first);
    CHECK(!o.semaphore.aco__waiters.first && !o.group.aco__waiters.first);
    CHECK_EQ(aco_channel_try_send(o.channel, &value), -1); /* no receiver */
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(aco_channel_try_receive(o.channel, &got), -1); /* no sender */
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(aco_channel_try_receive(o.full, &got), 0); /* and nobody's element takes its place */
    CHECK_EQ(got, 7);
    CHECK_EQ(aco_channel_try_receive(o.full, &got), -1);
    got = 7;
    CHECK_EQ(aco_channel_try_send(o.full, &got), 0);
}

static void with_objects(aco_function_t test)
{
    int seven = 7;
    memset(&o, 0, sizeof o);
    stop = 0;
    o.group.count = 1;
    o.channel = aco_channel_new(0, sizeof(int));
    o.full = aco_channel_new(1, sizeof(int));
    CHECK_EQ(aco_channel_try_send(o.full, &seven), 0);
    o.task = spawn(holds_and_parks, NULL);
    for (intptr_t which = 0; which < WAITS; which++) {
        aco_t *task = spawn_as(test, (void *)which, 0, "test");
        char text[4096];
        check_deadlock(text, sizeof text); /* until only the holder is left */
        CHECK_EQ(aco_state(task), ACO_STATE_DONE);
        CHECK_EQ(aco_join(task, NULL), 0);
        nothing_waits();
    }
    stop = 1;
    CHECK_EQ(aco_unpark(o.task), 0);
    run();
    CHECK_EQ(aco_join(o.task, NULL), 0);
    CHECK_EQ(aco_channel_destroy(o.channel), 0);
    CHECK_EQ(aco_channel_destroy(o.full), 0);
}

typedef struct canceller {
    aco_scope_t *scope;
    int after; /* turns */
} canceller_t;

static void *cancels(void *arg)
{
    canceller_t canceller = *(canceller_t *)arg;
    while (canceller.after--)
        aco_task_yield();
    CHECK_EQ(aco_scope_cancel(canceller.scope), 0);
    return NULL;
}

/* Cancels the scope while the caller waits. */
static void cancel_later(aco_scope_t *scope)
{
    canceller_t canceller = {scope, 2};
    spawn_detached(cancels, &canceller);
    aco_task_yield(); /* it copies what it needs */
}

/* Promise: a wait fails when another task cancels its scope; so does each later wait, until the scope is left. */
static void *cancelled_by_another(void *which)
{
    aco_scope_t scope;
    CHECK_EQ(aco_scope_begin(&scope, ACO_FOREVER), 0);
    CHECK_EQ(aco_check_cancelled(), 0);
    cancel_later(&scope);
    fails_with(__LINE__, (int)(intptr_t)which, ACO_FOREVER, ECANCELED);
    for (int other = 0; other < WAITS; other++)
        fails_with(__LINE__, other, ACO_FOREVER, ECANCELED);
    CHECK_EQ(aco_task_yield(), 0);
    CHECK_EQ(aco_sleep(0), 0);
    CHECK_EQ(aco_check_cancelled(), -1);
    CHECK_EQ(errno, ECANCELED);
    errno = EDOM;
    CHECK_EQ(aco_scope_end(&scope), 0);
    CHECK_EQ(errno, EDOM);
    CHECK_EQ(scope.error, ECANCELED);
    CHECK(aco_scope_ended_by(&scope) == &scope);
    CHECK_EQ(aco_check_cancelled(), 0);
    CHECK_EQ(aco_sleep(1), 0);
    return NULL;
}

/* Promise: a task cancels its own scope. */
static void *cancelled_by_itself(void *which)
{
    aco_scope_t scope;
    aco_scope_begin(&scope, ACO_FOREVER);
    CHECK_EQ(aco_scope_cancel(&scope), 0);
    CHECK_EQ(aco_scope_cancel(&scope), 0);
    fails_with(__LINE__, (int)(intptr_t)which, ACO_FOREVER, ECANCELED);
    fails_with(__LINE__, (int)(intptr_t)which, aco_after(1000000), ECANCELED);
    CHECK_EQ(aco_scope_end(&scope), 0);
    return NULL;
}

/* Promise: a wait fails at the scope's deadline, not before; so does each later wait. */
static void *scope_with_deadline(void *which)
{
    aco_scope_t scope;
    int64_t deadline = aco_after(500000);
    aco_scope_begin(&scope, deadline);
    CHECK_EQ(aco_deadline(), deadline);
    fails_with(__LINE__, (int)(intptr_t)which, ACO_FOREVER, ETIMEDOUT);
    CHECK(aco_now() >= deadline);
    for (int other = 0; other < WAITS; other++)
        fails_with(__LINE__, other, ACO_FOREVER, ETIMEDOUT);
    CHECK_EQ(aco_check_cancelled(), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    aco_scope_end(&scope);
    CHECK_EQ(scope.error, ETIMEDOUT);
    CHECK_EQ(aco_deadline(), ACO_FOREVER);
    return NULL;
}

/* Promise: the earliest deadline around counts, whichever scope has it; which one it was can be asked. */
static void *nested_deadlines(void *which)
{
    aco_scope_t outer, middle, inner;
    for (int early = 0; early < 3; early++) {
        int64_t times[3], start = aco_now();
        for (int i = 0; i < 3; i++)
            times[i] = i == early ? start + 300000 : start + ACO_SECOND * (i + 1000);
        aco_scope_begin(&outer, times[0]);
        aco_scope_begin(&middle, times[1]);
        aco_scope_begin(&inner, times[2]);
        CHECK_EQ(aco_deadline(), start + 300000);
        fails_with(__LINE__, (int)(intptr_t)which, ACO_FOREVER, ETIMEDOUT);
        CHECK(aco_now() >= start + 300000);
        CHECK(aco_scope_ended_by(&inner) == (early == 0 ? &outer : early == 1 ? &middle : &inner));
        CHECK_EQ(aco_scope_end(&inner), 0);
        CHECK_EQ(inner.error, early == 2 ? ETIMEDOUT : 0);
        CHECK_EQ(aco_check_cancelled(), early == 2 ? 0 : -1);
        CHECK_EQ(aco_scope_end(&middle), 0);
        CHECK_EQ(middle.error, early == 1 ? ETIMEDOUT : 0);
        CHECK_EQ(aco_check_cancelled(), early ? 0 : -1);
        CHECK_EQ(aco_scope_end(&outer), 0);
        CHECK_EQ(aco_check_cancelled(), 0);
    }
    return NULL;
}

/* Promise: cancelling an outer scope ends the waits inside; scopes that begin inside have ended too. */
static void *nested_cancel(void *which)
{
    aco_scope_t outer, inner, late;
    aco_scope_begin(&outer, ACO_FOREVER);
    aco_scope_begin(&inner, aco_after(1000 * ACO_SECOND));
    cancel_later(&outer);
    fails_with(__LINE__, (int)(intptr_t)which, ACO_FOREVER, ECANCELED);
    CHECK(aco_scope_ended_by(&inner) == &outer);
    CHECK_EQ(inner.error, 0);
    aco_scope_begin(&late, ACO_FOREVER);
    CHECK(aco_scope_ended_by(&late) == &outer);
    fails_with(__LINE__, (int)(intptr_t)which, ACO_FOREVER, ECANCELED);
    aco_scope_end(&late);
    aco_scope_end(&inner);
    fails_with(__LINE__, (int)(intptr_t)which, ACO_FOREVER, ECANCELED);
    aco_scope_end(&outer);
    return NULL;
}

/* Promise: in a shield neither the cancelling nor the deadline of what is around counts, only its own; after it, they
 * do again. */
static void *shielded(void *which)
{
    aco_scope_t outer, shield, inner;
    int64_t start = aco_now();
    aco_scope_begin(&outer, start + 100000);
    aco_shield_begin(&shield, ACO_FOREVER);
    CHECK_EQ(aco_deadline(), ACO_FOREVER);
    aco_scope_begin(&inner, start + 1000000);
    cancel_later(&outer);
    fails_with(__LINE__, (int)(intptr_t)which, ACO_FOREVER, ETIMEDOUT);
    CHECK(aco_now() >= start + 1000000);
    CHECK(aco_scope_ended_by(&inner) == &inner);
    aco_scope_end(&inner);
    CHECK_EQ(aco_check_cancelled(), 0);
    CHECK_EQ(aco_sleep(1000), 0);
    CHECK_EQ(aco_scope_cancel(&shield), 0);
    fails_with(__LINE__, (int)(intptr_t)which, ACO_FOREVER, ECANCELED);
    aco_scope_end(&shield);
    CHECK(aco_scope_ended_by(&outer) == &outer);
    fails_with(__LINE__, (int)(intptr_t)which, ACO_FOREVER, outer.error);
    aco_scope_end(&outer);
    return NULL;
}

/* Promise: a wait with a deadline of its own ends by then, not before; one in the past is past. A sleep succeeds. */
static void *own_deadline(void *which)
{
    int64_t deadline = aco_after(300000);
    if ((intptr_t)which == SLEEP) {
        CHECK_EQ(aco_sleep_until(deadline), 0);
        CHECK(aco_now() >= deadline);
        CHECK_EQ(aco_sleep_until(deadline), 0);
        return NULL;
    }
    fails_with(__LINE__, (int)(intptr_t)which, deadline, ETIMEDOUT);
    CHECK(aco_now() >= deadline);
    fails_with(__LINE__, (int)(intptr_t)which, deadline, ETIMEDOUT);
    fails_with(__LINE__, (int)(intptr_t)which, INT64_MIN, ETIMEDOUT);
    return NULL;
}

/* Promise: of a wait's own deadline and its scope's the earlier one counts. */
static void *two_deadlines(void *which)
{
    aco_scope_t scope;
    int64_t start = aco_now();
    aco_scope_begin(&scope, start + 1000 * ACO_SECOND);
    if ((intptr_t)which != SLEEP)
        fails_with(__LINE__, (int)(intptr_t)which, start + 300000, ETIMEDOUT);
    CHECK_EQ(aco_check_cancelled(), 0);
    aco_scope_end(&scope);
    aco_scope_begin(&scope, aco_after(300000));
    fails_with(__LINE__, (int)(intptr_t)which, start + 1000 * ACO_SECOND, ETIMEDOUT);
    CHECK_EQ(aco_check_cancelled(), -1);
    aco_scope_end(&scope);
    return NULL;
}

/* Promise: a scope that was left has no effect: neither its deadline nor a later cancelling. */
static void *left_in_time(void *which)
{
    aco_scope_t scope;
    (void)which;
    aco_scope_begin(&scope, aco_after(1000 * ACO_SECOND));
    CHECK_EQ(aco_sleep(1000), 0); /* sets its timer */
    aco_scope_end(&scope);
    CHECK_EQ(scope.error, 0);
    CHECK(aco_scope_ended_by(&scope) == NULL);
    FAILS(aco_scope_cancel(&scope), -1, ESRCH, "aco_scope_cancel", NULL, "has left the scope");
    aco_scope_begin(&scope, aco_after(200000));
    fails_with(__LINE__, PARK, ACO_FOREVER, ETIMEDOUT);
    aco_scope_end(&scope);
    aco_scope_begin(&scope, aco_after(1000 * ACO_SECOND));
    CHECK_EQ(aco_sleep(1000), 0);
    return NULL; /* ends inside */
}

static void every_wait(void)
{
    with_objects(cancelled_by_another);
    with_objects(cancelled_by_itself);
    with_objects(scope_with_deadline);
    with_objects(nested_deadlines);
    with_objects(nested_cancel);
    with_objects(shielded);
    with_objects(own_deadline);
    with_objects(two_deadlines);
    with_objects(left_in_time);
}

static void *parks_after_scope(void *unused)
{
    aco_scope_t scope;
    for (int i = 0; i < 3; i++) {
        aco_scope_begin(&scope, aco_after(1000 * ACO_SECOND));
        CHECK_EQ(aco_sleep(1000), 0);
        aco_scope_end(&scope);
    }
    CHECK_EQ(aco_park("in no scope"), 0);
    return unused;
}

/* Promise: a timer that a scope has left behind is no reason to wait for it. */
static void left_timers(void)
{
    char text[4096];
    aco_t *tasks[3];
    for (int i = 0; i < 3; i++)
        tasks[i] = spawn(parks_after_scope, NULL);
    check_deadlock(text, sizeof text);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(aco_unpark(tasks[i]), 0);
    run();
    for (int i = 0; i < 3; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
}

/* ---- What is kept ---- */

typedef struct pair {
    aco_scope_t scope;
    int done;
} pair_t;

/* Ends each wait of `waits_and_keeps` and then, before that task runs, cancels its scope. */
static void *serves_and_cancels(void *arg)
{
    pair_t *pair = arg;
    int number = 99, got = 0;
    aco_unpark(o.task);
    CHECK_EQ(aco_scope_cancel(&pair[0].scope), 0);
    aco_task_yield();
    CHECK_EQ(aco_mutex_unlock(&o.held), 0);
    CHECK_EQ(aco_scope_cancel(&pair[1].scope), 0);
    aco_task_yield();
    aco_semaphore_release(&o.semaphore);
    CHECK_EQ(aco_scope_cancel(&pair[2].scope), 0);
    aco_task_yield();
    CHECK_EQ(aco_channel_send(o.channel, &number), 0);
    CHECK_EQ(aco_scope_cancel(&pair[3].scope), 0);
    aco_task_yield();
    CHECK_EQ(aco_channel_receive(o.channel, &got), 0);
    CHECK_EQ(got, value);
    CHECK_EQ(aco_scope_cancel(&pair[4].scope), 0);
    aco_task_yield();
    CHECK_EQ(aco_wait_group_done(&o.group), 0);
    CHECK_EQ(aco_scope_cancel(&pair[5].scope), 0);
    aco_task_yield();
    aco_cond_signal(&o.cond);
    CHECK_EQ(aco_scope_cancel(&pair[6].scope), 0);
    aco_task_yield();
    CHECK_EQ(aco_channel_close(o.full), 0);
    CHECK_EQ(aco_scope_cancel(&pair[7].scope), 0);
    return NULL;
}

static void *returns_seven(void *unused)
{
    (void)unused;
    return (void *)7;
}

static void *holds(void *task)
{
    pair_t *pair = task;
    CHECK_EQ(aco_mutex_lock(&o.held), 0);
    return serves_and_cancels(pair);
}

static void *waits_and_keeps(void *arg)
{
    pair_t *pair = arg;
    aco_select_case_t one = {0};
    int got = 0;
    void *result = NULL;
    aco_t *joined;
    for (int i = 0; i < 9; i++) {
        aco_scope_begin(&pair[i].scope, ACO_FOREVER);
        switch (i) {
        case 0: CHECK_EQ(aco_park("a test"), 0); break;
        case 1:
            CHECK_EQ(aco_mutex_lock(&o.held), 0);
            CHECK(o.held.owner == aco_get_co());
            break;
        case 2: CHECK_EQ(aco_semaphore_acquire(&o.semaphore), 0); break;
        case 3:
            CHECK_EQ(aco_channel_receive(o.channel, &got), 0);
            CHECK_EQ(got, 99);
            break;
        case 4: CHECK_EQ(aco_channel_send(o.channel, &value), 0); break;
        case 5: CHECK_EQ(aco_wait_group_wait(&o.group), 0); break;
        case 6:
            CHECK_EQ(aco_cond_wait(&o.cond, &o.held), 0);
            CHECK(o.held.owner == aco_get_co());
            break;
        case 7:
            one.channel = o.full;
            one.operation = ACO_SELECT_RECEIVE;
            CHECK_EQ(aco_select(&one, 1), 0);
            CHECK_EQ(one.error, EPIPE);
            break;
        default:
            joined = spawn(returns_seven, NULL);
            aco_task_yield();
            CHECK_EQ(aco_scope_cancel(&pair[i].scope), 0);
            CHECK_EQ(aco_join(joined, &result), 0); /* has ended: no wait */
            CHECK(result == (void *)7);
            CHECK_EQ(aco_mutex_try_lock(&o.own), 0);
            CHECK_EQ(aco_mutex_unlock(&o.own), 0);
            CHECK_EQ(aco_mutex_lock(&o.own), 0); /* nor these */
            o.semaphore.value = 1;
            CHECK_EQ(aco_semaphore_acquire(&o.semaphore), 0);
        }
        CHECK_EQ(aco_check_cancelled(), -1);
        aco_scope_end(&pair[i].scope);
        pair[i].done = 1;
    }
    return NULL;
}

/* Promise: what a task was given before its scope ended it has, though it runs later. */
static void results_are_kept(void)
{
    static pair_t pairs[9];
    memset(&o, 0, sizeof o);
    memset(pairs, 0, sizeof pairs);
    o.group.count = 1;
    o.channel = aco_channel_new(0, sizeof(int));
    o.full = aco_channel_new(1, 0);
    o.task = spawn(waits_and_keeps, pairs);
    spawn_detached(holds, pairs);
    run();
    CHECK_EQ(aco_join(o.task, NULL), 0);
    for (int i = 0; i < 9; i++)
        CHECK(pairs[i].done);
    CHECK_EQ(aco_channel_destroy(o.channel), 0);
    CHECK_EQ(aco_channel_destroy(o.full), 0);
}

/* ---- Conditions and joins ---- */

static void *keeps_mutex(void *arg)
{
    pair_t *pair = arg;
    CHECK_EQ(aco_mutex_lock(&o.own), 0);
    CHECK_EQ(aco_scope_cancel(&pair->scope), 0);
    for (int i = 0; i < 5; i++)
        aco_task_yield();
    CHECK_EQ(aco_scope_cancel(&pair->scope), 0);
    CHECK(!pair->done);
    CHECK_EQ(aco_mutex_unlock(&o.own), 0);
    return NULL;
}

static void *waits_for_condition(void *arg)
{
    pair_t *pair = arg;
    aco_scope_begin(&pair->scope, aco_after(1000 * ACO_SECOND));
    CHECK_EQ(aco_mutex_lock(&o.own), 0);
    CHECK_EQ(aco_cond_wait(&o.cond, &o.own), -1);
    CHECK_EQ(errno, ECANCELED);
    CHECK(o.own.owner == aco_get_co());
    pair->done = 1;
    CHECK_EQ(aco_mutex_unlock(&o.own), 0);
    aco_scope_end(&pair->scope);
    return NULL;
}

static void *joins_twice(void *task)
{
    void *result = NULL;
    aco_scope_t scope;
    aco_scope_begin(&scope, aco_after(100000));
    CHECK_EQ(aco_join(task, &result), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    aco_scope_end(&scope);
    CHECK_EQ(aco_unpark(task), 0);
    CHECK_EQ(aco_join(task, &result), 0);
    CHECK(result == (void *)7);
    return NULL;
}

static void *parks_for_seven(void *unused)
{
    CHECK_EQ(aco_park("the other"), 0);
    return returns_seven(unused);
}

/* Promise: a condition's wait locks its mutex again before it fails; a task whose join failed can be joined. */
static void failed_waits_leave_order(void)
{
    static pair_t pair;
    memset(&o, 0, sizeof o);
    memset(&pair, 0, sizeof pair);
    spawn_detached(waits_for_condition, &pair);
    spawn_detached(keeps_mutex, &pair);
    run();
    CHECK(pair.done);
    spawn_detached(joins_twice, spawn(parks_for_seven, NULL));
    run();
}

/* ---- Many scopes, one timer ---- */

enum { SLEEPERS = 300 };
static int slept, outlived;

static void *sleeps_in_scopes(void *arg)
{
    unsigned x = (unsigned)(uintptr_t)arg;
    for (int i = 0; i < 20; i++) {
        aco_scope_t outer, inner;
        int64_t limit, nap, start = aco_now();
        x = x * 1664525u + 1013904223u;
        aco_scope_begin(&outer, start + (x >> 8) % 400000);
        x = x * 1664525u + 1013904223u;
        aco_scope_begin(&inner, start + (x >> 8) % 400000);
        limit = aco_deadline();
        x = x * 1664525u + 1013904223u;
        nap = (x >> 8) % 400000 + 1;
        if (aco_sleep(nap) == 0) {
            CHECK(aco_now() >= start + nap);
            slept++;
        } else {
            CHECK_EQ(errno, ETIMEDOUT);
            CHECK(aco_now() >= limit);
            outlived++;
        }
        CHECK_EQ(aco_scope_end(&inner), 0);
        CHECK_EQ(aco_scope_end(&outer), 0);
    }
    return NULL;
}

/* Cancelling a scope that has ended with the one around it changes nothing. */
static void *cancels_both(void *unused)
{
    aco_scope_t outer, inner;
    CHECK_EQ(aco_scope_begin(&outer, ACO_FOREVER), 0);
    CHECK_EQ(aco_scope_begin(&inner, ACO_FOREVER), 0);
    CHECK_EQ(aco_scope_cancel(&outer), 0);
    CHECK_EQ(aco_scope_cancel(&inner), 0);
    CHECK_EQ(inner.error, 0);
    CHECK(aco_scope_ended_by(&inner) == &outer);
    CHECK_EQ(aco_scope_end(&inner), 0);
    CHECK_EQ(aco_scope_end(&outer), 0);
    return unused;
}

static void ended_by_outer(void)
{
    spawn_detached(cancels_both, NULL);
    run();
}

/* Promise: many tasks, each with scopes that come and go: no wait ends before its time. */
static void many_scopes(void)
{
    slept = outlived = 0;
    for (uintptr_t i = 0; i < SLEEPERS; i++)
        spawn_detached(sleeps_in_scopes, (void *)(i + 1));
    run();
    CHECK_EQ(slept + outlived, 20 * SLEEPERS);
    CHECK(slept && outlived);
}

/* ---- All tasks ---- */

static void *waits_to_be_ended(void *unused)
{
    CHECK(aco_park(NULL) == -1 && errno == ECANCELED);
    return unused;
}

/* A second call looks at the tasks only if some have been spawned since: a cancelled set calls it in each round. */
static void *ends_all(void *unused)
{
    static aco_scope_t all;
    for (int i = 0; i < 2; i++) {
        spawn_detached(waits_to_be_ended, NULL);
        aco_task_yield();
        aco__scope_end_all(&all, ECANCELED);
        CHECK_EQ(all.error, ECANCELED);
        all.error = 0;
        aco__scope_end_all(&all, ECANCELED);
        CHECK_EQ(all.error, 0);
        all.error = ECANCELED;
    }
    return unused;
}

static void all_tasks(void)
{
    spawn_detached(ends_all, NULL);
    run();
}

/* ---- Failures ---- */

static void defers_a_scope(void *unused)
{
    aco_scope_t scope;
    (void)unused;
    CHECK_EQ(aco_scope_begin(&scope, ACO_FOREVER), 0);
    CHECK_EQ(aco_scope_end(&scope), 0);
}

static void *misuses(void *arg)
{
    aco_scope_t outer, inner;
    aco_t *me = aco_get_co();
    memset(&inner, 0, sizeof inner);
    FAILS(aco_scope_begin(NULL, 0), -1, EINVAL, "aco_scope_begin", NULL, "NULL");
    FAILS(aco_shield_begin(NULL, 0), -1, EINVAL, "aco_shield_begin", NULL, "NULL");
    FAILS(aco_scope_end(NULL), -1, EINVAL, "aco_scope_end", NULL, "NULL");
    FAILS(aco_scope_cancel(NULL), -1, EINVAL, "aco_scope_cancel", NULL, "NULL");
    FAILS(aco_scope_end(&inner), -1, EPERM, "aco_scope_end", me, "is not inside the scope");
    CHECK_EQ(aco_scope_begin(&outer, ACO_FOREVER), 0);
    CHECK_EQ(aco_scope_begin(&inner, ACO_FOREVER), 0);
    FAILS(aco_scope_end(&outer), -1, EPERM, "aco_scope_end", me, "begun at " __FILE__);
    CHECK_EQ(aco_scope_end(&inner), 0);
    FAILS(aco_scope_end(&inner), -1, EPERM, "aco_scope_end", me, "is not inside the scope");
    CHECK_EQ(aco_scope_end(&outer), 0);
    CHECK_EQ(aco_defer(defers_a_scope, NULL), 0);
    return arg;
}

static void *begins_in_coroutine(void *unused)
{
    aco_scope_t scope;
    FAILS(aco_scope_begin(&scope, ACO_FOREVER), -1, EPERM, "aco_scope_begin", aco_get_co(), "is not a task");
    FAILS(aco_check_cancelled(), -1, EPERM, "aco_check_cancelled", aco_get_co(), "is not a task");
    CHECK_EQ(aco_deadline(), ACO_FOREVER);
    return unused;
}

static void failures(void)
{
    aco_scope_t scope;
    aco_t *co = aco_new(begins_in_coroutine, NULL, NULL);
    memset(&scope, 0, sizeof scope);
    FAILS(aco_scope_begin(&scope, ACO_FOREVER), -1, EPERM, "aco_scope_begin", NULL, "no task is running");
    FAILS(aco_scope_end(&scope), -1, EPERM, "aco_scope_end", NULL, "no task is running");
    FAILS(aco_check_cancelled(), -1, EPERM, "aco_check_cancelled", NULL, "no task is running");
    CHECK_EQ(aco_deadline(), ACO_FOREVER);
    aco_send(co, NULL);
    aco_destroy(co);
    spawn_detached(misuses, NULL);
    run();
    CHECK(aco_after(-1) <= aco_now());
    CHECK(aco_after(INT64_MAX) == ACO_FOREVER);
}

int main(void)
{
    static void (*const tests[])(void) = {every_wait, left_timers, results_are_kept, failed_waits_leave_order,
                                          ended_by_outer, many_scopes, all_tasks, failures, NULL};
    with_all_kinds(tests);
    return check_result("scheduler_scope");
}
