/* Work submitted to a set of threads (include/aco/threads.h): groups, stealing, hogs, results, ends of scopes on other
 * threads, aco_parallel_for(), share stacks; the deque by itself. With an argument, the crowds are larger. */
#define _GNU_SOURCE
#include "threads/deque.h"
#include "capture.h"
#include "threads_work.h"

#include <sched.h>

static int total;

/* ---- Groups ---- */

static void test_recursive_submission(void)
{
    const int is_slow = UNDER_TSAN || IS_SIMULATED;
    tree_t tree = {is_slow ? 256 : 4096, is_slow ? 4 : 6}, small = {is_slow ? 64 : 256, is_slow ? 3 : 4};
    run_on(1, sum_whole, &tree);
    run_on(2, sum_whole, &tree);
    for (int i = 0; i < (IS_SIMULATED ? 2 : crowd / 100); i++)
        run_on(THREADS, sum_whole, &small);
    CHECK_EQ(aco_threads_run(THREADS, sum_whole, &small, NULL), 0); /* all of them at once */
}

static void *submit_much(void *arg)
{
    aco_mt_group_t group;
    int done = 0;
    (void)arg;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 100; i++)
        submit(&group, note_and_spin, &done);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK_EQ(done, 100);
    return NULL;
}

static void *hog(void *arg) /* never gives its thread back before all others have run */
{
    while (load(arg) < 20)
        let_others_go_on();
    return NULL;
}

static aco_threads_stats_t stats(void)
{
    aco_threads_stats_t now;
    CHECK_EQ(aco_threads_stats(aco_threads_current(), &now), 0);
    return now;
}

static void *submit_and_hog(void *arg)
{
    aco_mt_group_t group;
    int done = 0;
    (void)arg;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 20; i++)
        submit(&group, note_and_spin, &done);
    hog(&done); /* what waits behind this task is stolen */
    CHECK_EQ(stats().stolen, 20);
    CHECK_EQ(stats().queued, 0);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    return NULL;
}

static void *submit_alone(void *arg)
{
    aco_mt_group_t group;
    int done = 0;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 3; i++)
        submit(&group, count_one, &done);
    CHECK_EQ(stats().queued, 3);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK_EQ(stats().queued + stats().stolen + stats().sleeping, 0);
    FAILS_WITH(aco_threads_stats(NULL, &(aco_threads_stats_t){0}), EINVAL);
    FAILS_WITH(aco_threads_stats(aco_threads_current(), NULL), EINVAL);
    return arg;
}

static void *sleep_beside(void *arg)
{
    UNTIL(stats().sleeping == 3);
    return arg;
}

static void *rest(void *arg)
{
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    return arg;
}

/* A thread whose members wait starts several in one round. Those behind a hog are stolen all the same. */
static void *submit_hog(void *arg)
{
    aco_mt_group_t group;
    int done = 0;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 20; i++)
        submit(&group, rest, NULL);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 20; i++)
        submit(&group, count_one, &done);
    submit(&group, hog, &done);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    return arg;
}

/* The watchdog names it; meanwhile the other thread runs what this one has submitted. */
static void *hog_and_be_named(void *arg)
{
    int64_t end = aco_after(30 * ACO_SECOND);
    aco_mt_group_t group;
    int done = 0;
    CHECK_EQ(aco_set_name(aco_current_task(), "Hugo"), 0);
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 20; i++)
        submit(&group, count_one, &done);
    while (!(load(&done) == 20 && strstr(look_at_captured(), "\"Hugo\"")) && aco_now() < end)
        sched_yield();
    add(arg, load(&done));
    CHECK_EQ(aco_mt_group_end(&group), 0);
    return NULL;
}

static void *send_hog(void *arg)
{
    aco_mt_group_t group;
    begin(&group, ACO_KEEP_GOING);
    submit_to(1, &group, hog_and_be_named, arg);
    CHECK_EQ(aco_mt_group_end(&group), 0);
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
    aco_mt_group_t group;
    int done = 0;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < crowd; i++) {
        int64_t end = aco_after(10 * ACO_SECOND);
        for (volatile int pause = i % 100 * 5; pause; pause = pause - 1)
            ;
        submit(&group, count_one, &done);
        while (load(&done) == i && aco_now() < end)
            let_others_go_on();
        CHECK(load(&done) > i);
        if (load(&done) == i)
            break;
    }
    CHECK_EQ(aco_mt_group_end(&group), 0);
    return arg;
}

static void test_stealing(void)
{
    threads_seen = 0;
    run_on(4, submit_much, NULL);
    CHECK(threads_seen & (threads_seen - 1)); /* more than one thread */
    run_on(2, submit_and_hog, NULL);
    run_on(1, submit_alone, NULL);
    run_on(4, sleep_beside, NULL);
    run_on(2, submit_hog, NULL);
    run_on(2, submit_to_sleepers, NULL);
    if (!IS_SIMULATED)
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
    aco_mt_group_t last, brief;
    held_t held[15];
    total = 0;
    begin(&last, ACO_KEEP_GOING);
    begin(&brief, ACO_KEEP_GOING);
    FAILS_WITH(aco_submit(&brief, NULL, NULL, EVENLY), EINVAL);
    for (int i = 0; i < 15; i++) {
        held[i].is_late = i >= 12 || i % 4 != 2;
        if (i == 12) {
            UNTIL(load(&total) == 12);
            add(&releases[0], 1);
            CHECK_EQ(aco_mt_group_end(&brief), 0);
        }
        CHECK_EQ(aco_submit(held[i].is_late ? &last : &brief, hold, &held[i], EVENLY), 0);
    }
    UNTIL(load(&total) == 15);
    add(&releases[1], 1);
    CHECK_EQ(aco_mt_group_end(&last), 0);
    for (int i = 0; i < 15; i++)
        CHECK_EQ(held[i].ran_on, i < 12 ? i % 4 : 2);
    for (int i = 0; i < 4; i++) { /* one after the other: in turn, as all have as few */
        held[i].is_late = 0;
        begin(&brief, ACO_KEEP_GOING);
        CHECK_EQ(aco_submit(&brief, hold, &held[i], EVENLY), 0);
        CHECK_EQ(aco_mt_group_end(&brief), 0);
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
    aco_mt_group_t group;
    (void)arg;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < crowd; i++)
        for (int k = 0; k < 4; k++)
            submit_to(k, &group, in_order, (void *)(intptr_t)i);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    for (int k = 0; k < 4; k++) {
        CHECK_EQ(orders[k].next, crowd);
        CHECK_EQ(orders[k].wrong, 0);
    }
    return NULL;
}

/* ---- Results and failures ---- */

static void *exit_early(void *arg)
{
    aco_exit();
    return arg;
}

static void *results(void *arg)
{
    aco_mt_group_t group;
    void *given = NULL, *exited = arg;
    begin(&group, ACO_KEEP_GOING);
    CHECK_EQ(aco_submit(&group, give, &group, &(aco_submit_options_t){.result = &given}), 0);
    CHECK_EQ(aco_submit(&group, exit_early, &group, &(aco_submit_options_t){.result = &exited}), 0);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK(given == &group && !exited);

    begin(&group, ACO_KEEP_GOING);
    submit(&group, fail_with, (void *)(intptr_t)EDOM);
    submit(&group, give, NULL);
    submit_to(1, &group, fail_with, (void *)(intptr_t)EDOM);
    FAILS_WITH(aco_mt_group_end(&group), EDOM);
    CHECK_EQ(group.failed, 2);

    begin(&group, ACO_CANCEL_ON_FAILURE); /* a failure without a reason */
    submit(&group, fail_with, NULL);
    FAILS_WITH(aco_mt_group_end(&group), EINVAL);

    begin(&group, ACO_FIRST_SUCCESS);
    for (int i = 0; i < 4; i++)
        submit_to(i, &group, wait_long, (void *)(intptr_t)ECANCELED);
    submit_to(2, &group, give, &group);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK(group.result == &group);
    begin(&group, ACO_FIRST_SUCCESS);
    submit(&group, fail_with, (void *)(intptr_t)EDOM);
    FAILS_WITH(aco_mt_group_end(&group), EDOM);
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
    aco_mt_group_t group;
    int n = 0;
    begin(&group, ACO_KEEP_GOING);
    while (n < 4 && aco_submit(&group, wait_long, arg, TO(n)) == 0)
        n++;
    add(&total, n);
    CHECK_EQ(aco_mt_group_end(&group), n ? -1 : 0);
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
    aco_mt_group_t group;
    aco_scope_t scope;
    int waits = crowd / 4;
    (void)arg;
    cancelled_waits = 0; /* a member that fails, on another thread */
    begin(&group, ACO_CANCEL_ON_FAILURE);
    for (int i = 0; i < waits; i++)
        submit(&group, wait_long, (void *)(intptr_t)ECANCELED);
    submit_to(3, &group, fail_late, (void *)(intptr_t)EDOM);
    FAILS_WITH(aco_mt_group_end(&group), EDOM);
    CHECK_EQ(cancelled_waits, waits);
    CHECK_EQ(group.failed, waits + 1);

    cancelled_waits = total = 0; /* the deadline of a scope around it, through two groups */
    CHECK_EQ(aco_scope_begin(&scope, aco_after(5 * ACO_MILLISECOND)), 0);
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 4; i++)
        submit_to(i, &group, nested_groups, (void *)(intptr_t)ETIMEDOUT);
    submit_to(1, &group, shielded, (void *)(intptr_t)ETIMEDOUT);
    FAILS_WITH(aco_mt_group_end(&group), ETIMEDOUT);
    CHECK_EQ(cancelled_waits, total);
    CHECK_EQ(group.failed, 4);
    begin(&group, ACO_KEEP_GOING); /* in a scope that has ended */
    FAILS_WITH(aco_submit(&group, give, NULL, NULL), ETIMEDOUT);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK_EQ(aco_scope_end(&scope), 0);

    cancelled_waits = 0; /* members that start when it has ended: all are called */
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < waits; i++)
        submit(&group, wait_long, (void *)(intptr_t)ECANCELED);
    CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    FAILS_WITH(aco_submit(&group, give, NULL, NULL), ECANCELED);
    FAILS_WITH(aco_mt_group_end(&group), ECANCELED);
    CHECK_EQ(cancelled_waits, waits);
    return NULL;
}

/* Each thread cancels groups whose members are being stolen. */
static void *cancel_at_random(void *arg)
{
    unsigned seed = (unsigned)aco_threads_index() + 1;
    (void)arg;
    for (int i = 0; i < crowd / 10; i++) {
        aco_mt_group_t group;
        int n = 0;
        begin(&group, i % 2 ? ACO_CANCEL_ON_FAILURE : ACO_KEEP_GOING);
        for (; n < 10; n++)
            if (aco_submit(&group, n == 5 && i % 2 ? fail_with : wait_long, (void *)(intptr_t)ECANCELED, NULL) != 0)
                break;
        for (unsigned k = (seed = seed * 1103515245 + 12345) >> 16 & 3; k; k--)
            aco_task_yield();
        CHECK_EQ(aco_scope_cancel(&group.scope), 0);
        FAILS_WITH(aco_mt_group_end(&group), ECANCELED);
        CHECK_EQ(group.failed, n);
    }
    return NULL;
}

/* ---- Members one after the other in one task ---- */

enum { IN_A_ROW = 4, LONG_ROW = 200 };

static int in_a_row, longest_row, row_ends;

static void *in_row(void *arg)
{
    longest_row = ++in_a_row > longest_row ? in_a_row : longest_row;
    return arg;
}

static void *last_in_row(void *arg)
{
    row_ends = 1;
    return in_row(arg);
}

static void *have_turns(void *arg)
{
    while (!row_ends) {
        in_a_row = 0;
        CHECK_EQ(aco_task_yield(), 0);
    }
    return arg;
}

static void end_row(void *unused)
{
    (void)unused;
    in_a_row = 0;
}

static void *in_row_and_post(void *arg)
{
    (void)in_row(arg);
    CHECK_EQ(aco_post(arg, end_row, NULL), 0);
    return NULL;
}

/* However many members are ready and short, other tasks of the thread, and what is posted to it, have their turns. */
static void *short_members_share(void *arg)
{
    aco_t *other = aco_spawn(have_turns, NULL, NULL);
    aco_mt_group_t group;
    in_a_row = longest_row = row_ends = 0;
    begin(&group, ACO_KEEP_GOING);
    submit(&group, last_in_row, NULL); /* the last one that is submitted runs first */
    for (int i = 0; i < LONG_ROW; i++)
        submit(&group, in_row, NULL);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK_EQ(aco_join(other, NULL), 0);
    CHECK(longest_row > 0 && (longest_row <= IN_A_ROW || IS_SIMULATED)); /* there, tasks run in any order */

    in_a_row = longest_row = 0;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < LONG_ROW; i++)
        submit(&group, in_row_and_post, aco_scheduler_open());
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK(longest_row > 0 && (longest_row <= 2 * IN_A_ROW || IS_SIMULATED));
    return arg;
}

static void *name_task(void *arg)
{
    CHECK(!*aco_name(aco_current_task()));
    CHECK_EQ(aco_set_name(aco_current_task(), "member"), 0);
    return arg;
}

/* A member finds nothing that one before it has left in their task. */
static void *named_members(void *arg)
{
    aco_mt_group_t group;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < LONG_ROW; i++)
        submit(&group, name_task, NULL);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    return arg;
}

static void *have_scope(void *arg)
{
    aco_scope_t scope;
    CHECK(aco_check_cancelled() == 0 && aco_deadline() == ACO_FOREVER);
    CHECK_EQ(aco_scope_begin(&scope, ACO_FOREVER), 0);
    CHECK_EQ(aco_scope_end(&scope), 0);
    return arg;
}

static void *member_of_many(void *arg)
{
    static const aco_function_t kinds[] = {give, exit_early, name_task, have_scope, rest, give};
    int number = (int)(intptr_t)arg;
    add(&total, 1);
    return number % 7 == 6 ? fail_with((void *)(intptr_t)EDOM) : kinds[number % 7](arg);
}

/* Members of two groups, of all kinds of ends. Each group ends when its last member has, and has all results. */
static void *mixed_members(void *arg)
{
    aco_mt_group_t groups[2];
    void *given[LONG_ROW];
    total = 0;
    for (int i = 0; i < 2; i++)
        begin(&groups[i], ACO_KEEP_GOING);
    for (int i = 0; i < LONG_ROW; i++)
        CHECK_EQ(aco_submit(&groups[i / 3 % 2], member_of_many, (void *)(intptr_t)i,
                            &(aco_submit_options_t){.result = &given[i]}),
                 0);
    FAILS_WITH(aco_mt_group_end(&groups[1]), EDOM);
    FAILS_WITH(aco_mt_group_end(&groups[0]), EDOM);
    CHECK_EQ(load(&total), LONG_ROW);
    CHECK_EQ(groups[0].failed + groups[1].failed, LONG_ROW / 7);
    for (int i = 0; i < LONG_ROW; i++)
        CHECK(given[i] == (i % 7 == 6 ? ACO_ERROR : i % 7 == 1 ? NULL : (void *)(intptr_t)i) || i % 7 == 4);
    return arg;
}

/* A member of a group that has ended is told, also after others in their task; the other group's are not. */
static void *cancelled_in_a_row(void *arg)
{
    aco_mt_group_t cancelled, other;
    cancelled_waits = 0;
    begin(&other, ACO_KEEP_GOING);
    begin(&cancelled, ACO_KEEP_GOING);
    for (int i = 0; i < LONG_ROW; i++) {
        submit(&cancelled, wait_long, (void *)(intptr_t)ECANCELED);
        submit(&other, have_scope, NULL);
    }
    CHECK_EQ(aco_scope_cancel(&cancelled.scope), 0);
    FAILS_WITH(aco_mt_group_end(&cancelled), ECANCELED);
    CHECK_EQ(aco_mt_group_end(&other), 0);
    CHECK_EQ(cancelled_waits, LONG_ROW);
    return arg;
}

static void test_rows(void)
{
    run_on(1, short_members_share, NULL);
    run_on(1, named_members, NULL);
    for (int n = 1; n <= 4; n *= 4) {
        run_on(n, mixed_members, NULL);
        run_on(n, cancelled_in_a_row, NULL);
    }
}

static void test_groups(void)
{
    int done = 0;
    run_on(4, results, NULL);
    run_on(4, submit_to_each, NULL);
    run_on(4, submit_evenly, NULL);
    run_on(4, ends, NULL);
    CHECK_EQ(aco_threads_run(THREADS, cancel_at_random, &done, NULL), 0);
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

static int touch(size_t from, size_t to, void *arg)
{
    (void)from, (void)to, (void)arg;
    return 0;
}

/* Cleanup cannot wait for others that would take part. */
static void loops_in_cleanup(void *unused)
{
    (void)unused;
    if (aco_threads_count(aco_threads_current()) > 1)
        FAILS_WITH(aco_parallel_for(0, 100, 1, touch, NULL), EPERM);
    CHECK_EQ(aco_parallel_for(0, 1, 1, touch, NULL), 0);
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
        CHECK_EQ(aco_defer(loops_in_cleanup, NULL), 0);
    }
    return NULL;
}

/* ---- Share stacks ---- */

static void *on_share_stack(void *arg)
{
    aco_mt_group_t on_stack, *group = arg;
    int *done = malloc(sizeof *done);
    *done = 0;
#if !UNDER_ASAN
    FAILS_WITH(aco_mt_group_begin(&on_stack, ACO_KEEP_GOING), EINVAL);
#else
    (void)on_stack;
#endif
    begin(group, ACO_KEEP_GOING);
    for (int i = 0; i < 20; i++)
        submit(group, count_one, done);
    CHECK_EQ(aco_mt_group_end(group), 0);
    CHECK_EQ(*done, 20);
    free(done);
    return NULL;
}

static void *with_share_stacks(void *arg)
{
    static aco_mt_group_t groups[3];
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

static void run_all(void)
{
    if (!IS_SIMULATED) /* it makes no calls at which a simulation lets other threads go on */
        test_deque();
    test_recursive_submission();
    test_stealing();
    test_groups();
    test_rows();
    run_on(4, loops, NULL);
    loops(NULL);
    run_on(2, with_share_stacks, NULL);
}

int main(int argc, char **argv)
{
    (void)argv;
    crowd *= argc > 1 ? 100 : 1;
    run_all_tests(run_all);
    return check_result("threads_groups");
}
