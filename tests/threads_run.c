/* Sets of threads and submitted work (include/aco/threads.h): beginning, joining, stopping, ending, failing; groups,
 * stealing, near threads, results, ends of scopes on other threads; hogs, deaths of threads, fork(), exit(); quotas;
 * the deque by itself. threads_failure.c has what fails for want of memory or threads. With the argument "exit" the
 * program only exits while other threads run; with another one, the crowds are larger. */
#define _GNU_SOURCE
#include "threads/threads.h"
#include "capture.h"
#include "threads_tests.h"

#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int crowd = UNDER_TSAN ? 100 : 2000;

/* ---- Sets ---- */

static int ran[THREADS + 1], cancelled_waits, total;

static void *note_thread(void *arg)
{
    CHECK(aco_threads_index() >= 0 && aco_threads_index() < *(int *)arg);
    CHECK_EQ(aco_threads_count(aco_threads_current()), *(int *)arg);
    CHECK_EQ(aco_sleep(1000), 0);
    add(&ran[aco_threads_index()], 1);
    return NULL;
}

static void test_each_thread_runs(void)
{
    static const int sizes[] = {1, 2, THREADS};
    int usable = aco_threads_usable();
    CHECK(usable >= 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int n = sizes[i];
        memset(ran, 0, sizeof ran);
        CHECK_EQ(aco_threads_run(n, note_thread, &n), 0);
        for (int k = 0; k <= THREADS; k++)
            CHECK_EQ(ran[k], k < n);
    }
    CHECK_EQ(aco_threads_run(0, note_thread, &usable), 0);
    CHECK(!aco_threads_current());
    CHECK_EQ(aco_threads_index(), -1);
}

/* Thread-local values of the threads that the set has made are destroyed when they end. */
static pthread_key_t local_key;
static int locals_destroyed;

static void destroy_local(void *value)
{
    CHECK(!aco_threads_current());
    CHECK_EQ(aco_threads_index(), -1);
    add(&locals_destroyed, *(int *)value);
    free(value);
}

static void *set_local(void *arg)
{
    int *value = malloc(sizeof *value);
    *value = aco_threads_index();
    CHECK_EQ(pthread_setspecific(local_key, value), 0);
    return arg;
}

static void test_thread_locals(void)
{
    CHECK_EQ(pthread_key_create(&local_key, destroy_local), 0);
    CHECK_EQ(aco_threads_run(4, set_local, NULL), 0);
    CHECK_EQ(locals_destroyed, 1 + 2 + 3); /* all but the calling thread's */
    free(pthread_getspecific(local_key));
    CHECK_EQ(pthread_key_delete(local_key), 0);
}

static void *fail_or_wait(void *arg)
{
    if (aco_threads_index() == *(int *)arg) {
        errno = EDOM;
        return ACO_ERROR;
    }
    if (aco_sleep(60 * ACO_SECOND) == -1 && errno == ECANCELED)
        add(&cancelled_waits, 1);
    return NULL;
}

static void *fail_or_end(void *arg)
{
    if (aco_threads_index() != *(int *)arg && aco_sleep(ACO_MILLISECOND) != 0)
        add(&cancelled_waits, 1);
    errno = aco_threads_index() == *(int *)arg ? EDOM : 0;
    return aco_threads_index() == *(int *)arg ? ACO_ERROR : NULL;
}

static void *cancel_set(void *arg)
{
    (void)arg;
    if (aco_threads_index() == 1)
        CHECK_EQ(aco_threads_cancel(aco_threads_current()), 0);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    return NULL;
}

static void test_failures(void)
{
    aco_threads_options_t options = {0};
    int one = 1, zero = 0;
    FAILS_WITH(aco_threads_run(4, fail_or_wait, &one), EDOM);
    CHECK_EQ(cancelled_waits, 3);
    FAILS_WITH(aco_threads_run(4, fail_or_wait, &zero), EDOM);
    CHECK_EQ(cancelled_waits, 6);
    options.flags = ACO_THREADS_KEEP_GOING;
    FAILS_WITH(aco_threads_run_with(4, fail_or_end, &one, &options), EDOM);
    CHECK_EQ(cancelled_waits, 6);
    CHECK_EQ(aco_threads_run(4, cancel_set, NULL), 0);
    FAILS_WITH(aco_threads_run(-1, cancel_set, NULL), EINVAL);
    FAILS_WITH(aco_threads_run(1, NULL, NULL), EINVAL);
    options.flags = 1024;
    FAILS_WITH(aco_threads_run_with(1, cancel_set, NULL, &options), EINVAL);
    FAILS_WITH(aco_threads_cancel(NULL), EINVAL);
}

static void *nested(void *arg)
{
    aco_shared_group_t group;
    FAILS_WITH(aco_threads_run(2, nested, arg), EPERM);
    FAILS_WITH(aco_threads_join(aco_threads_current(), nested, arg), EPERM);
    FAILS_WITH(aco_shared_group_begin(NULL, ACO_KEEP_GOING), EINVAL);
    FAILS_WITH(aco_shared_group_begin(&group, (aco_policy_t)7), EINVAL);
    FAILS_WITH(aco_shared_group_end(NULL), EINVAL);
    begin(&group, ACO_KEEP_GOING);
    FAILS_WITH(aco_scope_end(&group.scope), EBUSY);
    FAILS_WITH(aco_submit(&group, NULL, NULL), EINVAL);
    FAILS_WITH(aco_submit(NULL, nested, NULL), EINVAL);
    FAILS_WITH(aco_submit_to(99, &group, nested, NULL, NULL), ESRCH);
    FAILS_WITH(aco_submit_to(-1, &group, nested, NULL, NULL), ESRCH);
    FAILS_WITH(aco_submit_to(2, &group, nested, NULL, NULL), ESRCH); /* the thread that could not join */
    CHECK_EQ(aco_shared_group_end(&group), 0);
    FAILS_WITH(aco_shared_group_end(&group), EPERM);
    return NULL;
}

static void *outside(void *arg)
{
    aco_shared_group_t group;
    (void)arg;
    FAILS_WITH(aco_shared_group_begin(&group, ACO_KEEP_GOING), EPERM);
    FAILS_WITH(aco_threads_run(2, nested, arg), EPERM);
    return NULL;
}

static void test_misuse(void)
{
    aco_t *task = aco_spawn(outside, NULL, NULL);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    run_on(2, nested, NULL);
}

/* ---- Groups ---- */

typedef struct tree {
    int leaves, depth;
} tree_t;

/* The sum of a tree's leaves: each member submits more. */
static void *sum_tree(void *arg)
{
    const tree_t *tree = arg;
    tree_t below[4];
    void *sums[4];
    aco_shared_group_t group;
    intptr_t sum = 0;
    if (!tree->depth)
        return (void *)1;
    begin(&group, ACO_CANCEL_ON_FAILURE);
    for (int i = 0; i < 4; i++) {
        below[i].depth = tree->depth - 1;
        CHECK_EQ(aco_submit_result(&group, sum_tree, &below[i], &sums[i]), 0);
    }
    if (tree->depth % 3 == 1)
        aco_task_yield();
    CHECK_EQ(aco_shared_group_end(&group), 0);
    for (int i = 0; i < 4; i++)
        sum += (intptr_t)sums[i];
    return (void *)sum;
}

static void *sum_whole(void *arg)
{
    CHECK_EQ((intptr_t)sum_tree(arg), ((const tree_t *)arg)->leaves);
    return NULL;
}

static void test_recursive_submission(void)
{
    tree_t tree = {UNDER_TSAN ? 256 : 4096, UNDER_TSAN ? 4 : 6}, small = {UNDER_TSAN ? 64 : 256, UNDER_TSAN ? 3 : 4};
    run_on(1, sum_whole, &tree);
    run_on(2, sum_whole, &tree);
    for (int i = 0; i < crowd / 100; i++)
        run_on(THREADS, sum_whole, &small);
    CHECK_EQ(aco_threads_run(THREADS, sum_whole, &small), 0); /* all of them at once */
}

static int threads_seen;

static void *note_and_spin(void *arg)
{
    int64_t end = aco_after(ACO_MILLISECOND / 5);
    __atomic_fetch_or(&threads_seen, 1 << aco_threads_index(), __ATOMIC_RELAXED);
    while (aco_now() < end) /* the thread is busy: the others steal */
        ;
    add(arg, 1);
    return arg;
}

static void *submit_much(void *arg)
{
    aco_shared_group_t group;
    int done = 0;
    (void)arg;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 100; i++)
        submit(&group, note_and_spin, &done);
    CHECK_EQ(aco_shared_group_end(&group), 0);
    CHECK_EQ(done, 100);
    return NULL;
}

static void *hog(void *arg) /* never gives its thread back before all others have run */
{
    while (load(arg) < 20)
        ;
    return NULL;
}

static void *submit_and_hog(void *arg)
{
    aco_shared_group_t group;
    int done = 0;
    (void)arg;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 20; i++)
        submit(&group, note_and_spin, &done);
    hog(&done); /* what waits behind this task is stolen */
    CHECK_EQ(aco_shared_group_end(&group), 0);
    return NULL;
}

static void *count_one(void *arg)
{
    add(arg, 1);
    return NULL;
}

/* The watchdog names it; meanwhile the other thread runs what this one has submitted. */
static void *hog_and_be_named(void *arg)
{
    int64_t end = aco_after(30 * ACO_SECOND);
    aco_shared_group_t group;
    int done = 0;
    CHECK_EQ(aco_set_name(aco_current_task(), "Hugo"), 0);
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 20; i++)
        submit(&group, count_one, &done);
    while (!(load(&done) == 20 && strstr(look_at_captured(), "\"Hugo\"")) && aco_now() < end)
        sched_yield();
    add(arg, load(&done));
    CHECK_EQ(aco_shared_group_end(&group), 0);
    return NULL;
}

static void *send_hog(void *arg)
{
    aco_shared_group_t group;
    begin(&group, ACO_KEEP_GOING);
    submit_to(1, &group, hog_and_be_named, arg);
    CHECK_EQ(aco_shared_group_end(&group), 0);
    return NULL;
}

static void test_watchdog(void)
{
    int done = 0;
    CHECK_EQ(aco_watchdog(50 * ACO_MILLISECOND), 0);
    capture();
    run_on(2, send_hog, &done);
    CHECK(strstr(release(), "without yielding or waiting; its name is \"Hugo\"") != NULL);
    CHECK_EQ(done, 20);
    CHECK_EQ(aco_watchdog(0), 0);
}

/* Each item is submitted when the other thread is about to sleep, and this one never gives its own back. */
static void *submit_to_sleepers(void *arg)
{
    aco_shared_group_t group;
    int done = 0;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < crowd; i++) {
        int64_t end = aco_after(10 * ACO_SECOND);
        for (volatile int pause = i % 100 * 5; pause; pause = pause - 1)
            ;
        submit(&group, count_one, &done);
        while (load(&done) == i && aco_now() < end)
            ;
        CHECK(load(&done) > i);
        if (load(&done) == i)
            break;
    }
    CHECK_EQ(aco_shared_group_end(&group), 0);
    return arg;
}

static void test_stealing(void)
{
    threads_seen = 0;
    run_on(4, submit_much, NULL);
    CHECK(threads_seen & (threads_seen - 1)); /* more than one thread */
    run_on(2, submit_and_hog, NULL);
    run_on(2, submit_to_sleepers, NULL);
    test_watchdog();
}

/* ---- For the thread with the fewest ---- */

static int releases[2];

typedef struct held {
    int is_late, ran_on;
} held_t;

static void *hold(void *arg)
{
    held_t *held = arg;
    held->ran_on = aco_threads_index();
    add(&total, 1);
    UNTIL(load(&releases[held->is_late]));
    return NULL;
}

/* Of twelve members, three for each thread, those of thread 2 end. So it gets the next three. */
static void *submit_evenly(void *arg)
{
    aco_shared_group_t last, brief;
    held_t held[15];
    total = 0;
    begin(&last, ACO_KEEP_GOING);
    begin(&brief, ACO_KEEP_GOING);
    FAILS_WITH(aco_submit_evenly(&brief, NULL, NULL, NULL), EINVAL);
    for (int i = 0; i < 15; i++) {
        held[i].is_late = i >= 12 || i % 4 != 2;
        if (i == 12) {
            UNTIL(load(&total) == 12);
            add(&releases[0], 1);
            CHECK_EQ(aco_shared_group_end(&brief), 0);
        }
        CHECK_EQ(aco_submit_evenly(held[i].is_late ? &last : &brief, hold, &held[i], NULL), 0);
    }
    UNTIL(load(&total) == 15);
    add(&releases[1], 1);
    CHECK_EQ(aco_shared_group_end(&last), 0);
    for (int i = 0; i < 15; i++)
        CHECK_EQ(held[i].ran_on, i < 12 ? i % 4 : 2);
    for (int i = 0; i < 4; i++) { /* one after the other: in turn, as all have as few */
        held[i].is_late = 0;
        begin(&brief, ACO_KEEP_GOING);
        CHECK_EQ(aco_submit_evenly(&brief, hold, &held[i], NULL), 0);
        CHECK_EQ(aco_shared_group_end(&brief), 0);
        CHECK_EQ(held[i].ran_on, (held[0].ran_on + i) % 4);
    }
    return arg;
}

/* ---- For one thread ---- */

typedef struct order {
    int next, thread, wrong;
} order_t;

static order_t orders[THREADS];

static void *in_order(void *arg)
{
    order_t *order = &orders[aco_threads_index()];
    order->wrong += order->next++ != (int)(intptr_t)arg;
    return NULL;
}

static void *submit_to_each(void *arg)
{
    aco_shared_group_t group;
    (void)arg;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < crowd; i++)
        for (int k = 0; k < 4; k++)
            submit_to(k, &group, in_order, (void *)(intptr_t)i);
    CHECK_EQ(aco_shared_group_end(&group), 0);
    for (int k = 0; k < 4; k++) {
        CHECK_EQ(orders[k].next, crowd);
        CHECK_EQ(orders[k].wrong, 0);
    }
    return NULL;
}

/* ---- Results and failures ---- */

static void *give(void *arg)
{
    return arg;
}

static void *exit_early(void *arg)
{
    aco_exit();
    return arg;
}

static void *fail_with(void *arg)
{
    errno = (int)(intptr_t)arg;
    return ACO_ERROR;
}

static void *wait_long(void *arg)
{
    if (aco_sleep(60 * ACO_SECOND) == 0)
        return NULL;
    if (errno == (int)(intptr_t)arg)
        add(&cancelled_waits, 1);
    return ACO_ERROR;
}

static void *results(void *arg)
{
    aco_shared_group_t group;
    void *given = NULL, *exited = arg;
    begin(&group, ACO_KEEP_GOING);
    CHECK_EQ(aco_submit_result(&group, give, &group, &given), 0);
    CHECK_EQ(aco_submit_result(&group, exit_early, &group, &exited), 0);
    CHECK_EQ(aco_shared_group_end(&group), 0);
    CHECK(given == &group && !exited);

    begin(&group, ACO_KEEP_GOING);
    submit(&group, fail_with, (void *)(intptr_t)EDOM);
    submit(&group, give, NULL);
    submit_to(1, &group, fail_with, (void *)(intptr_t)EDOM);
    FAILS_WITH(aco_shared_group_end(&group), EDOM);
    CHECK_EQ(group.failed, 2);

    begin(&group, ACO_CANCEL_ON_FAILURE); /* a failure without a reason */
    submit(&group, fail_with, NULL);
    FAILS_WITH(aco_shared_group_end(&group), EINVAL);

    begin(&group, ACO_FIRST_SUCCESS);
    for (int i = 0; i < 4; i++)
        submit_to(i, &group, wait_long, (void *)(intptr_t)ECANCELED);
    submit_to(2, &group, give, &group);
    CHECK_EQ(aco_shared_group_end(&group), 0);
    CHECK(group.result == &group);
    begin(&group, ACO_FIRST_SUCCESS);
    submit(&group, fail_with, (void *)(intptr_t)EDOM);
    FAILS_WITH(aco_shared_group_end(&group), EDOM);
    return NULL;
}

/* ---- The ends of scopes ---- */

static void *fail_late(void *arg)
{
    aco_sleep(ACO_MILLISECOND);
    return fail_with(arg);
}

/* A member with a group of its own, whose members wait on other threads. */
static void *nested_groups(void *arg)
{
    aco_shared_group_t group;
    int n = 0;
    begin(&group, ACO_KEEP_GOING);
    while (n < 4 && aco_submit_to(n, &group, wait_long, arg, NULL) == 0)
        n++;
    add(&total, n);
    CHECK_EQ(aco_shared_group_end(&group), n ? -1 : 0);
    CHECK_EQ(group.failed, n);
    errno = (int)(intptr_t)arg;
    return ACO_ERROR;
}

/* Waits that a group's end must not reach. */
static void *shielded(void *arg)
{
    aco_scope_t scope;
    CHECK_EQ(aco_shield_begin(&scope, ACO_FOREVER), 0);
    CHECK_EQ(aco_sleep(3 * ACO_MILLISECOND), 0);
    CHECK_EQ(aco_scope_end(&scope), 0);
    return aco_sleep(60 * ACO_SECOND) == -1 && errno == (int)(intptr_t)arg ? NULL : ACO_ERROR;
}

static void *ends(void *arg)
{
    aco_shared_group_t group;
    aco_scope_t scope;
    int waits = crowd / 4;
    (void)arg;
    cancelled_waits = 0; /* a member that fails, on another thread */
    begin(&group, ACO_CANCEL_ON_FAILURE);
    for (int i = 0; i < waits; i++)
        submit(&group, wait_long, (void *)(intptr_t)ECANCELED);
    submit_to(3, &group, fail_late, (void *)(intptr_t)EDOM);
    FAILS_WITH(aco_shared_group_end(&group), EDOM);
    CHECK_EQ(cancelled_waits, waits);
    CHECK_EQ(group.failed, waits + 1);

    cancelled_waits = total = 0; /* the deadline of a scope around it, through two groups */
    CHECK_EQ(aco_scope_begin(&scope, aco_after(5 * ACO_MILLISECOND)), 0);
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 4; i++)
        submit_to(i, &group, nested_groups, (void *)(intptr_t)ETIMEDOUT);
    submit_to(1, &group, shielded, (void *)(intptr_t)ETIMEDOUT);
    FAILS_WITH(aco_shared_group_end(&group), ETIMEDOUT);
    CHECK_EQ(cancelled_waits, total);
    CHECK_EQ(group.failed, 4);
    begin(&group, ACO_KEEP_GOING); /* in a scope that has ended */
    FAILS_WITH(aco_submit(&group, give, NULL), ETIMEDOUT);
    CHECK_EQ(aco_shared_group_end(&group), 0);
    CHECK_EQ(aco_scope_end(&scope), 0);

    cancelled_waits = 0; /* members that start when it has ended: all are called */
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < waits; i++)
        submit(&group, wait_long, (void *)(intptr_t)ECANCELED);
    CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    FAILS_WITH(aco_submit(&group, give, NULL), ECANCELED);
    FAILS_WITH(aco_shared_group_end(&group), ECANCELED);
    CHECK_EQ(cancelled_waits, waits);
    return NULL;
}

/* Each thread cancels groups whose members are being stolen. */
static void *cancel_at_random(void *arg)
{
    unsigned seed = (unsigned)aco_threads_index() + 1;
    (void)arg;
    for (int i = 0; i < crowd / 10; i++) {
        aco_shared_group_t group;
        int n = 0;
        begin(&group, i % 2 ? ACO_CANCEL_ON_FAILURE : ACO_KEEP_GOING);
        for (; n < 10; n++)
            if (aco_submit(&group, n == 5 && i % 2 ? fail_with : wait_long, (void *)(intptr_t)ECANCELED) != 0)
                break;
        for (unsigned k = (seed = seed * 1103515245 + 12345) >> 16 & 3; k; k--)
            aco_task_yield();
        CHECK_EQ(aco_scope_cancel(&group.scope), 0);
        FAILS_WITH(aco_shared_group_end(&group), ECANCELED);
        CHECK_EQ(group.failed, n);
    }
    return NULL;
}

static void test_groups(void)
{
    int done = 0;
    run_on(4, results, NULL);
    run_on(4, submit_to_each, NULL);
    run_on(4, submit_evenly, NULL);
    run_on(4, ends, NULL);
    CHECK_EQ(aco_threads_run(THREADS, cancel_at_random, &done), 0);
}

/* ---- Threads of the program ---- */

typedef struct plain {
    aco_shared_group_t *group;
    aco_threads_t *threads;
    int done, is_over, joined_ran, left;
} plain_t;

static void *submit_from_outside(void *arg)
{
    plain_t *plain = arg;
    for (int i = 0; i < crowd; i++) {
        submit(plain->group, count_one, &plain->done);
        submit_to(i % 4, plain->group, count_one, &plain->done);
    }
    add(&plain->is_over, 1);
    return NULL;
}

static void *with_plain_threads(void *arg)
{
    aco_shared_group_t group;
    plain_t plain = {&group, NULL, 0, 0, 0, 0};
    pthread_t threads[3];
    (void)arg;
    begin(&group, ACO_CANCEL_ON_FAILURE);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, submit_from_outside, &plain), 0);
    UNTIL(load(&plain.is_over) == 3);
    CHECK_EQ(aco_shared_group_end(&group), 0);
    CHECK_EQ(plain.done, 6 * crowd);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    return NULL;
}

static void *joined(void *arg)
{
    plain_t *plain = arg;
    tree_t tree = {64, 3};
    CHECK(aco_threads_index() >= 2);
    add(&plain->joined_ran, 1);
    sum_whole(&tree);
    return fail_with((void *)(intptr_t)ERANGE);
}

static void *join_and_leave(void *arg)
{
    plain_t *plain = arg;
    FAILS_WITH(aco_threads_join(plain->threads, joined, plain), ERANGE);
    CHECK(!aco_threads_current());
    add(&plain->left, 1);
    CHECK_EQ(aco_threads_join(plain->threads, NULL, NULL), 0); /* until the set ends */
    return NULL;
}

static void *with_joined_threads(void *arg)
{
    plain_t *plain = arg;
    tree_t tree = {1024, 5};
    aco_shared_group_t group;
    pthread_t thread;
    plain->threads = aco_threads_current();
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&thread, NULL, join_and_leave, plain), 0);
        CHECK_EQ(pthread_detach(thread), 0);
    }
    begin(&group, ACO_KEEP_GOING); /* while they join: what is sent arrives, or is refused */
    for (int sent = 0; sent < 2; sent++)
        while (aco_submit_to(2 + sent, &group, give, NULL, NULL) != 0)
            CHECK_EQ(errno, ESRCH);
    CHECK(aco_shared_group_end(&group) == 0 || errno == ECANCELED); /* it has just left */
    sum_whole(&tree);
    UNTIL(load(&plain->left) == 2);
    begin(&group, ACO_KEEP_GOING); /* both have joined again */
    UNTIL(aco_submit_to(2, &group, give, NULL, NULL) == 0);
    UNTIL(aco_submit_to(3, &group, give, NULL, NULL) == 0);
    CHECK_EQ(aco_shared_group_end(&group), 0);
    sum_whole(&tree);
    return NULL;
}

static void test_plain_threads(void)
{
    aco_threads_options_t options = {0};
    plain_t plain = {NULL, NULL, 0, 0, 0, 0};
    run_on(4, with_plain_threads, NULL);
    options.flags = ACO_THREADS_FIRST_ONLY | ACO_THREADS_KEEP_GOING; /* those that join fail */
    FAILS_WITH(aco_threads_run_with(2, with_joined_threads, &plain, &options), ERANGE);
    CHECK_EQ(plain.joined_ran, 2);
}

/* ---- Posts to threads that have nothing to do ---- */

static aco_scheduler_t *idle_scheduler;
static int posted_ran;

static void *posted_task(void *arg)
{
    tree_t tree = {64, 3};
    aco_sleep(100000);
    sum_whole(&tree);
    add(&posted_ran, 1);
    return arg;
}

static void post_arrives(void *arg)
{
    aco_detach(aco_spawn(posted_task, arg, NULL));
}

static void *open_idle(void *arg)
{
    idle_scheduler = aco_scheduler_open();
    return arg;
}

/* The last task of the set posts, and ends. */
static void *post_last(void *arg)
{
    aco_shared_group_t group;
    begin(&group, ACO_KEEP_GOING);
    submit_to(1, &group, open_idle, NULL);
    CHECK_EQ(aco_shared_group_end(&group), 0);
    CHECK_EQ(aco_post(idle_scheduler, post_arrives, NULL), 0);
    return arg;
}

static void test_last_post(void)
{
    for (int i = 1; i <= crowd / 100; i++) {
        run_on(3, post_last, NULL);
        CHECK_EQ(load(&posted_ran), i);
    }
}

/* ---- What goes wrong ---- */

static void *end_thread(void *arg)
{
    if (arg)
        aco_sleep(ACO_MILLISECOND);
    pthread_exit(NULL);
}

static void *own_group_and_die(void *arg)
{
    aco_shared_group_t *group = arg; /* it stays when its thread is gone */
    begin(group, ACO_KEEP_GOING);
    submit_to(0, group, wait_long, (void *)(intptr_t)ECANCELED);
    submit_to(2, group, wait_long, (void *)(intptr_t)ECANCELED);
    submit_to(3, group, wait_long, (void *)(intptr_t)ECANCELED);
    UNTIL(load(&total) == 1);
    pthread_exit(NULL);
}

static void *around_dead_threads(void *arg)
{
    static aco_shared_group_t lost;
    aco_shared_group_t group;
    (void)arg;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 10; i++)
        submit_to(1, &group, wait_long, NULL);
    submit_to(1, &group, end_thread, &group);
    FAILS_WITH(aco_shared_group_end(&group), ECANCELED);
    CHECK_EQ(group.failed, 11);
    begin(&group, ACO_KEEP_GOING);
    FAILS_WITH(aco_submit_to(1, &group, give, NULL, NULL), ESRCH);
    for (int i = 0; i < crowd; i++)
        submit(&group, give, NULL);
    CHECK_EQ(aco_shared_group_end(&group), 0);

    cancelled_waits = total = 0; /* a thread with a group */
    begin(&group, ACO_KEEP_GOING);
    submit_to(2, &group, own_group_and_die, &lost);
    aco_sleep(2 * ACO_MILLISECOND);
    add(&total, 1);
    FAILS_WITH(aco_shared_group_end(&group), ECANCELED);
    UNTIL(load(&cancelled_waits) == 2); /* the members here and on thread 3; the other is gone */
    return NULL;
}

static int idle_fails(void *ctx, int64_t timeout)
{
    (void)ctx;
    (void)timeout;
    errno = ENOTTY;
    return -1;
}

static void *break_scheduler(void *arg)
{
    CHECK_EQ(aco_on_idle(idle_fails, NULL), 0);
    return wait_long(arg);
}

static void *around_a_broken_scheduler(void *arg)
{
    aco_shared_group_t group;
    (void)arg;
    begin(&group, ACO_KEEP_GOING);
    submit_to(1, &group, break_scheduler, NULL);
    FAILS_WITH(aco_shared_group_end(&group), ECANCELED);
    return NULL;
}

static aco_threads_t *fork_parent;

static void check_child(pid_t child)
{
    int status = -1;
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static void end_child(void)
{
    _exit(check_failures ? 6 : 5);
}

/* On a thread that is in no set: in the child, none of the set is here. */
static void *fork_outside(void *arg)
{
    aco_shared_group_t *group = arg;
    pid_t child = fork();
    if (child == 0) {
        int done = 0;
        FAILS_WITH(aco_submit(group, count_one, &done), ECANCELED);
        FAILS_WITH(aco_submit_to(0, group, count_one, &done, NULL), ESRCH);
        FAILS_WITH(aco_threads_join(fork_parent, give, NULL), ESRCH);
        end_child();
    }
    check_child(child);
    return NULL;
}

static void *fork_inside(void *arg)
{
    aco_shared_group_t group;
    pthread_t thread;
    pid_t child;
    int done = 0;
    (void)arg;
    fork_parent = aco_threads_current();
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 4; i++)
        submit_to(i, &group, wait_long, (void *)(intptr_t)ECANCELED);
    aco_sleep(ACO_MILLISECOND);
    child = fork();
    if (child == 0) { /* the members on other threads are not here */
        submit(&group, count_one, &done);
        submit_to(0, &group, count_one, &done);
        FAILS_WITH(aco_submit_to(1, &group, count_one, &done, NULL), ESRCH);
        aco_scope_cancel(&group.scope);
        FAILS_WITH(aco_shared_group_end(&group), ECANCELED);
        CHECK_EQ(done, 2);
        CHECK_EQ(group.failed, 4);
        end_child();
    }
    check_child(child);
    CHECK_EQ(pthread_create(&thread, NULL, fork_outside, &group), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    FAILS_WITH(aco_shared_group_end(&group), ECANCELED);
    CHECK_EQ(group.failed, 4);
    return NULL;
}

/* In the child, aco_threads_run() returns, and a new set can be made. */
static void *fork_and_return(void *arg)
{
    int *child = arg;
    aco_sleep(ACO_MILLISECOND / 10);
    *child = fork();
    return NULL;
}

static void test_fork(void)
{
    tree_t tree = {256, 4};
    int child = -1, status, threads = 4;
#ifdef NO_THREADS_AFTER_FORK
    threads = 1;
#endif
    run_on(4, fork_inside, NULL);
    run_on(4, fork_and_return, &child);
    if (child == 0) {
        run_on(threads, sum_whole, &tree);
        _exit(check_failures != 0);
    }
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int exit_status = 7;

static void *exit_from_here(void *arg)
{
    aco_sleep(ACO_MILLISECOND);
    exit(exit_status);
    return arg;
}

static void *exit_while_others_run(void *arg)
{
    aco_shared_group_t group;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 100; i++)
        submit(&group, i % 2 ? wait_long : note_and_spin, arg);
    submit_to(2, &group, exit_from_here, NULL);
    aco_shared_group_end(&group);
    return NULL;
}

/* The program itself ends well only so. */
static int exit_at_once(void)
{
    int done = 0;
    exit_status = 0;
    run_first(4, exit_while_others_run, &done);
    return 1;
}

static void test_exit(void)
{
    int status, done = 0;
    pid_t child = fork();
    if (child == 0) {
        run_first(4, exit_while_others_run, &done);
        _exit(1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void *interrupt(void *arg)
{
    (void)arg;
    if (aco_threads_index() == 1)
        kill(getpid(), SIGTERM);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    return NULL;
}

/* ---- Stopping ---- */

static int ready_to_stop, sends_signals;

/* All wait in a scope that a stop ends. What comes after it goes on, if `arg` is NULL. */
static void *wait_for_stop(void *arg)
{
    aco_scope_t shield;
    aco_stop_t stop;
    CHECK_EQ(aco_stop_begin(&stop, aco_after(ACO_MILLISECOND)), 0);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ETIMEDOUT);
    FAILS_WITH(aco_scope_end(&stop.scope), EBUSY);
    CHECK_EQ(aco_stop_end(&stop), 0);
    FAILS_WITH(aco_stop_end(&stop), EPERM);
    CHECK_EQ(aco_shield_begin(&shield, ACO_FOREVER), 0);
    add(&ready_to_stop, 1);
    if (aco_threads_index() == 1) {
        UNTIL(load(&ready_to_stop) == 4);
        CHECK_EQ(sends_signals ? kill(getpid(), SIGTERM) : aco_threads_stop(aco_threads_current()), 0);
    }
    CHECK_EQ(aco_stop_begin(&stop, ACO_FOREVER), 0);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    CHECK_EQ(aco_stop_end(&stop), 0);
    CHECK_EQ(aco_sleep(1000), 0);
    CHECK_EQ(aco_stop_begin(&stop, ACO_FOREVER), 0); /* too late */
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    CHECK_EQ(aco_stop_end(&stop), 0);
    CHECK_EQ(aco_scope_end(&shield), 0);
    if (arg && aco_threads_index() == 1)
        kill(getpid(), *(int *)arg);
    if (arg)
        FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    return NULL;
}

static void test_stop(void)
{
    aco_threads_options_t options = {0};
    int again = SIGINT, none = 0;
    aco_stop_t stop;
    FAILS_WITH(aco_threads_stop(NULL), EINVAL);
    FAILS_WITH(aco_stop_begin(NULL, ACO_FOREVER), EINVAL);
    FAILS_WITH(aco_stop_begin(&stop, ACO_FOREVER), EPERM);
    FAILS_WITH(aco_stop_end(NULL), EINVAL);
    options.drain_ns = -1;
    FAILS_WITH(aco_threads_run_with(1, wait_for_stop, NULL, &options), EINVAL);
    CHECK_EQ(aco_threads_run(4, wait_for_stop, NULL), 0);
    sends_signals = 1;
    options.flags = ACO_THREADS_INTERRUPTIBLE;
    options.drain_ns = 60 * ACO_SECOND;
    ready_to_stop = 0;
    CHECK_EQ(aco_threads_run_with(4, wait_for_stop, NULL, &options), 0);
    ready_to_stop = 0;
    FAILS_WITH(aco_threads_run_with(4, wait_for_stop, &again, &options), EINTR);
    ready_to_stop = 0;
    options.drain_ns = ACO_MILLISECOND; /* the deadline; the signal 0 does nothing */
    FAILS_WITH(aco_threads_run_with(4, wait_for_stop, &none, &options), EINTR);
}

static void test_signals(void)
{
    aco_threads_options_t options = {0};
    sigset_t before, after;
    int n = 2;
    options.flags = ACO_THREADS_INTERRUPTIBLE | ACO_THREADS_PIN;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    memset(ran, 0, sizeof ran);
    CHECK_EQ(aco_threads_run_with(n, note_thread, &n, &options), 0);
    FAILS_WITH(aco_threads_run_with(4, interrupt, NULL, &options), EINTR);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    CHECK_EQ(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
}

static void *end_first(void *arg)
{
    if (aco_threads_index() == 0)
        pthread_exit(NULL);
    return arg;
}

static void *run_and_end(void *options)
{
    aco_threads_run_with(2, end_first, NULL, options);
    CHECK(!"the thread has ended");
    return NULL;
}

/* A set's thread for signals ends with the first one. */
static void test_signals_of_dead_threads(void)
{
    static const struct timespec now = {0, 0};
    aco_threads_options_t options = {0};
    sigset_t signals, before;
    pthread_t first;
    options.flags = ACO_THREADS_INTERRUPTIBLE;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    CHECK_EQ(pthread_create(&first, NULL, run_and_end, &options), 0);
    CHECK_EQ(pthread_join(first, NULL), 0);
    kill(getpid(), SIGTERM);
    usleep(50000); /* time for whoever else waits for it */
    CHECK_EQ(sigtimedwait(&signals, NULL, &now), SIGTERM);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- aco_parallel_for() ---- */

typedef struct marks {
    unsigned of[10007];
    size_t most, fails_at;
    int waits;
} marks_t;

static int mark(size_t from, size_t to, void *arg)
{
    marks_t *marks = arg;
    CHECK(from < to && to - from <= marks->most);
    if (marks->waits)
        aco_sleep(1000);
    for (size_t i = from; i < to; i++)
        __atomic_fetch_add(&marks->of[i], 1, __ATOMIC_RELAXED);
    if (from <= marks->fails_at && marks->fails_at < to) {
        errno = EDOM;
        return -1;
    }
    return 0;
}

static void *loops(void *arg)
{
    static marks_t marks;
    const size_t n = sizeof marks.of / sizeof *marks.of;
    size_t marked = 0;
    (void)arg;
    memset(&marks, 0, sizeof marks);
    marks.most = marks.fails_at = n;
    CHECK_EQ(aco_parallel_for(0, n, 0, mark, &marks), 0);
    marks.most = 64;
    marks.waits = 1;
    CHECK_EQ(aco_parallel_for(0, n, 64, mark, &marks), 0);
    for (size_t i = 0; i < n; i++)
        marked += marks.of[i] == 2;
    CHECK_EQ(marked, n);
    CHECK_EQ(aco_parallel_for(5, 5, 1, mark, &marks), 0);
    CHECK_EQ(marks.of[5], 2);
    marks.fails_at = 100;
    FAILS_WITH(aco_parallel_for(0, n, 64, mark, &marks), EDOM);
    FAILS_WITH(aco_parallel_for(1, 0, 0, mark, &marks), EINVAL);
    FAILS_WITH(aco_parallel_for(0, 1, 0, NULL, &marks), EINVAL);
    marks.fails_at = n;
    if (aco_current_task()) {
        aco_scope_t scope;
        CHECK_EQ(aco_scope_begin(&scope, aco_after(0)), 0);
        FAILS_WITH(aco_parallel_for(0, n, 64, mark, &marks), ETIMEDOUT);
        CHECK_EQ(aco_scope_end(&scope), 0);
    }
    return NULL;
}

/* ---- Share stacks ---- */

static void *on_share_stack(void *arg)
{
    aco_shared_group_t on_stack, *group = arg;
    int *done = malloc(sizeof *done);
    *done = 0;
#if !UNDER_ASAN
    FAILS_WITH(aco_shared_group_begin(&on_stack, ACO_KEEP_GOING), EINVAL);
#else
    (void)on_stack;
#endif
    begin(group, ACO_KEEP_GOING);
    for (int i = 0; i < 20; i++)
        submit(group, count_one, done);
    CHECK_EQ(aco_shared_group_end(group), 0);
    CHECK_EQ(*done, 20);
    free(done);
    return NULL;
}

static void *with_share_stacks(void *arg)
{
    static aco_shared_group_t groups[3];
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_options_t options = {0};
    aco_t *tasks[3];
    (void)arg;
    options.stack = stack;
    for (int i = 0; i < 3; i++)
        CHECK((tasks[i] = aco_spawn(on_share_stack, &groups[i], &options)) != NULL);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
    aco_share_stack_destroy(stack);
    return NULL;
}

/* ---- The quota ---- */

static void write_file(const char *root, const char *folder, const char *name, const char *text)
{
    char path[512], *slash;
    FILE *file;
    snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    for (slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "w");
    CHECK(file != NULL);
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

static void test_quota(void)
{
    char root[] = "/tmp/acorn-quota-XXXXXX", command[64];
    CHECK(mkdtemp(root) != NULL);
    CHECK_EQ(aco__threads_quota(root), 0);
    write_file(root, "/proc/self", "cgroup", "0::/a/b\n");
    CHECK_EQ(aco__threads_quota(root), 0);
    write_file(root, "/sys/fs/cgroup/a/b", "cpu.max", "max 100000\n");
    CHECK_EQ(aco__threads_quota(root), 0);
    write_file(root, "/sys/fs/cgroup/a", "cpu.max", "250000 100000\n"); /* the parent's counts, rounded up */
    CHECK_EQ(aco__threads_quota(root), 3);
    write_file(root, "/sys/fs/cgroup", "cpu.max", "100000 100000\n");
    CHECK_EQ(aco__threads_quota(root), 1);
    write_file(root, "/proc/self", "cgroup", "5:cpuset:/x\n4:cpuacct,cpu:/y/z\n1:name=systemd:/\n");
    CHECK_EQ(aco__threads_quota(root), 0);
    write_file(root, "/sys/fs/cgroup/cpu/y", "cpu.cfs_quota_us", "-1\n");
    write_file(root, "/sys/fs/cgroup/cpu/y", "cpu.cfs_period_us", "100000\n");
    CHECK_EQ(aco__threads_quota(root), 0);
    write_file(root, "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "400000\n"); /* in a container: the path is the host's */
    write_file(root, "/sys/fs/cgroup/cpu", "cpu.cfs_period_us", "100000\n");
    CHECK_EQ(aco__threads_quota(root), 4);
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK_EQ(system(command), 0);
}

/* ---- A machine with two nodes of four processors, pairs of which share a cache ---- */

enum { CPUS = 8, THIEF = 5 };

static struct {
    const char *root;
    int ready, submitted, stolen, from[CPUS];
} machine;

static void make_machine(const char *root)
{
    for (int i = 0; i < CPUS; i++) {
        char folder[128], list[32];
        snprintf(folder, sizeof folder, "/sys/devices/system/cpu/cpu%d", i);
        write_file(root, folder, "nodes", "not a node\n");
        snprintf(list, sizeof list, "node%d/x", i / 4);
        write_file(root, folder, list, "");
        snprintf(list, sizeof list, "%d-%d\n", i / 2 * 2, i / 2 * 2 + 1);
        write_file(root, folder, "cache/index0/level", "1\n");
        write_file(root, folder, "cache/index0/shared_cpu_list", "0-7\n");
        write_file(root, folder, "cache/index2/level", "3\n");
        write_file(root, folder, "cache/index2/shared_cpu_list", list);
        write_file(root, folder, "cache/index3/level", "2\n");
    }
}

static void *note_owner(void *arg)
{
    CHECK_EQ(aco_threads_index(), THIEF);
    machine.from[machine.stolen] = (int)(intptr_t)arg;
    add(&machine.stolen, 1);
    return NULL;
}

/* The thief has nothing to do; the others have an item each, and keep their threads until it is stolen. */
static void *be_robbed(void *arg)
{
    aco__crew_t *self = (aco__crew_t *)(void *)aco__worker();
    aco_shared_group_t group;
    self->place = aco__threads_place(machine.root, self->index);
    CHECK_EQ(self->place.node, self->index / 4);
    CHECK_EQ(self->place.cache, self->index / 2 * 2);
    add(&machine.ready, 1);
    while (load(&machine.ready) < CPUS)
        sched_yield();
    aco__threads_find_near(self);
    if (self->index == THIEF) {
        while (load(&machine.submitted) < CPUS - 1)
            sched_yield();
        return arg;
    }
    begin(&group, ACO_KEEP_GOING);
    submit(&group, note_owner, (void *)(intptr_t)self->index);
    add(&machine.submitted, 1);
    while (load(&machine.stolen) < CPUS - 1)
        sched_yield();
    CHECK_EQ(aco_shared_group_end(&group), 0);
    return arg;
}

static void test_near_first(void)
{
    static const int wanted[CPUS - 1] = {4, 6, 7, 0, 1, 2, 3};
    char root[] = "/tmp/acorn-machine-XXXXXX", command[64];
    CHECK(mkdtemp(root) != NULL);
    CHECK_EQ(aco__threads_place(root, 0).node, -1);
    CHECK_EQ(aco__threads_place(root, 0).cache, -1);
    make_machine(root);
    machine.root = root;
    CHECK_EQ(aco_threads_run(CPUS, be_robbed, NULL), 0);
    CHECK_EQ(machine.stolen, CPUS - 1);
    for (int i = 0; i < CPUS - 1; i++)
        CHECK_EQ(machine.from[i], wanted[i]);
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK_EQ(system(command), 0);
}

/* Of all that sleep, a near one is woken. The set is made up. */
static void test_wakes_near(void)
{
    static uint16_t order[CPUS - 1] = {4, 6, 7, 0, 1, 2, 3};
    static aco__crew_t workers[CPUS];
    aco_threads_t *threads = calloc(1, sizeof *threads + CPUS * sizeof *threads->workers);
    threads->n = threads->slots = CPUS;
    threads->sleeping = CPUS - 1;
    for (int i = 0; i < CPUS; i++) {
        threads->workers[i] = &workers[i];
        workers[i].threads = threads;
        workers[i].is_gone = 1;
        workers[i].is_sleeping = i != THIEF;
    }
    workers[THIEF].order = order;
    for (int i = 0; i < CPUS - 1; i++) {
        aco__threads_wake_one(threads, &workers[THIEF]);
        CHECK(!workers[order[i]].is_sleeping);
        CHECK_EQ(threads->sleeping, CPUS - 2 - i);
        threads->searching = 0; /* that was the woken one */
    }
    workers[1].is_sleeping = workers[2].is_sleeping = 1;
    threads->sleeping = 2;
    aco__threads_wake_one(threads, NULL);
    CHECK(!workers[1].is_sleeping && workers[2].is_sleeping);
    free(threads);
}

/* ---- Pinning ---- */

#ifdef __linux__
static int pinned[CPU_SETSIZE];

static void *note_processor(void *arg)
{
    cpu_set_t allowed;
    CHECK_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    CHECK_EQ(CPU_COUNT(&allowed), 1);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed))
            add(&pinned[i], 1);
    return arg;
}

static void test_pinning(void)
{
    aco_threads_options_t options = {0};
    cpu_set_t before, after;
    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    options.flags = ACO_THREADS_PIN;
    CHECK_EQ(aco_threads_run_with(CPU_COUNT(&before), note_processor, NULL, &options), 0);
    for (int i = 0; i < CPU_SETSIZE; i++)
        CHECK_EQ(pinned[i], CPU_ISSET(i, &before) != 0);
    CHECK_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    CHECK(CPU_EQUAL(&before, &after));
}
#else
static void test_pinning(void)
{
}
#endif

/* ---- The deque ---- */

enum { ITEMS = 20000, THIEVES = 3 };

static aco__deque_t deque;
static unsigned taken[ITEMS];
static int owner_is_done;

static void take(const aco__item_t *item)
{
    size_t i = (size_t)item->arg;
    CHECK(i < ITEMS && item->group == (void *)(uintptr_t)i && item->result == (void *)(uintptr_t)~i);
    if (i < ITEMS)
        __atomic_fetch_add(&taken[i], 1, __ATOMIC_RELAXED);
}

static void *steal_items(void *arg)
{
    aco__item_t item;
    while (!load(&owner_is_done))
        if (aco__deque_steal(&deque, &item) > 0)
            take(&item);
    return arg;
}

static void test_deque(void)
{
    pthread_t thieves[THIEVES];
    aco__item_t item;
    size_t once = 0;
    CHECK_EQ(aco__deque_open(&deque), 0);
    CHECK_EQ(aco__deque_pop(&deque, &item), 0);
    CHECK_EQ(aco__deque_steal(&deque, &item), 0);
    for (int i = 0; i < THIEVES; i++)
        CHECK_EQ(pthread_create(&thieves[i], NULL, steal_items, NULL), 0);
    for (size_t i = 0; i < ITEMS; i++) {
        item.fn = give;
        item.arg = (void *)i;
        item.group = (void *)(uintptr_t)i;
        item.result = (void *)(uintptr_t)~i;
        CHECK_EQ(aco__deque_push(&deque, &item), 0);
        if (i % 7 < 3 || i > ITEMS / 2) /* the first half makes it grow */
            for (int k = i % 64 ? 1 : 80; k && aco__deque_pop(&deque, &item); k--)
                take(&item);
    }
    while (aco__deque_pop(&deque, &item))
        take(&item);
    __atomic_store_n(&owner_is_done, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < THIEVES; i++)
        CHECK_EQ(pthread_join(thieves[i], NULL), 0);
    CHECK_EQ(aco__deque_count(&deque), 0);
    for (size_t i = 0; i < ITEMS; i++)
        once += taken[i] == 1;
    CHECK_EQ(once, ITEMS);
    aco__deque_free(&deque);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "exit") == 0)
        return exit_at_once();
    crowd *= argc > 1 ? 100 : 1;
    test_deque();
    test_quota();
    test_near_first();
    test_wakes_near();
    test_each_thread_runs();
    test_thread_locals();
    test_pinning();
    test_failures();
    test_misuse();
    test_recursive_submission();
    test_stealing();
    test_groups();
    test_plain_threads();
    test_last_post();
    run_on(4, loops, NULL);
    loops(NULL);
    run_on(2, with_share_stacks, NULL);
    test_signals();
    test_stop();
    if (!SANITIZED) { /* they do not follow threads that end on another stack */
        run_on(4, around_dead_threads, NULL);
        test_signals_of_dead_threads();
    }
    if (!UNDER_TSAN) { /* nor that one a child that makes threads */
        test_fork();
        test_exit();
    }
    FAILS_WITH(run_first(2, around_a_broken_scheduler, NULL), ENOTTY);
    return check_result("threads_run");
}
