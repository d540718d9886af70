/* Sets of threads (include/aco/threads.h): beginning, joining, stopping, ending, failing; deaths of threads, fork(),
 * exit(). threads_groups.c has the work submitted to them, threads_failure.c what fails for want of memory or threads.
 * With the argument "exit" the program only exits while other threads run; with another one, the crowds are larger. */
#define _GNU_SOURCE
#include <aco/mt.h>
#include "threads_work.h"

#include "aco/detail/for_libraries.h"
#include "proc.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

/* ---- Sets ---- */

static int ran[THREADS + 1], total;

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
        CHECK_EQ(aco_threads_run(n, note_thread, &n, NULL), 0);
        for (int k = 0; k <= THREADS; k++)
            CHECK_EQ(ran[k], k < n);
    }
    CHECK_EQ(aco_threads_run(0, note_thread, &usable, NULL), 0);
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
    CHECK_EQ(aco_threads_run(4, set_local, NULL, NULL), 0);
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
    FAILS_WITH(aco_threads_run(4, fail_or_wait, &one, NULL), EDOM);
    CHECK_EQ(cancelled_waits, 3);
    FAILS_WITH(aco_threads_run(4, fail_or_wait, &zero, NULL), EDOM);
    CHECK_EQ(cancelled_waits, 6);
    options.flags = ACO_THREADS_KEEP_GOING;
    FAILS_WITH(aco_threads_run(4, fail_or_end, &one, &options), EDOM);
    CHECK_EQ(cancelled_waits, 6);
    CHECK_EQ(aco_threads_run(4, cancel_set, NULL, NULL), 0);
    FAILS_WITH(aco_threads_run(-1, cancel_set, NULL, NULL), EINVAL);
    FAILS_WITH(aco_threads_run(1, NULL, NULL, NULL), EINVAL);
    options.flags = 1024;
    FAILS_WITH(aco_threads_run(1, cancel_set, NULL, &options), EINVAL);
    FAILS_WITH(aco_threads_run(1, cancel_set, NULL, &(aco_threads_options_t){.aco__reserved = {0, 0, &one}}), EINVAL);
    FAILS_WITH(aco_threads_cancel(NULL), EINVAL);
}

/* Cleanup cannot wait, so it could not end the group either. */
static void begin_in_cleanup(void *unused)
{
    aco_mt_group_t group;
    (void)unused;
    FAILS_WITH(aco_mt_group_begin(&group, ACO_KEEP_GOING), EPERM);
}

/* Which error a group tells that takes no members any more, whatever else is wrong. */
static void submit_too_late(aco_mt_group_t *group, const aco_submit_options_t *unknown)
{
    begin(group, ACO_KEEP_GOING);
    CHECK_EQ(aco_scope_cancel(&group->scope), 0);
    FAILS_WITH(aco_submit(group, count_one, NULL, unknown), ECANCELED);
    CHECK_EQ(aco_mt_group_end(group), 0);
    FAILS_WITH(aco_submit(group, count_one, NULL, unknown), ESRCH);
    FAILS_WITH(aco_submit(group, NULL, NULL, unknown), EINVAL);
}

static void *nested(void *arg)
{
    const aco_submit_options_t unknown = {.where = (aco_submit_where_t)7};
    aco_mt_group_t group;
    FAILS_WITH(aco_threads_run(2, nested, arg, NULL), EPERM);
    FAILS_WITH(aco_threads_join(aco_threads_current(), nested, arg), EPERM);
    FAILS_WITH(aco_mt_group_begin(NULL, ACO_KEEP_GOING), EINVAL);
    FAILS_WITH(aco_mt_group_begin(&group, (aco_group_policy_t)7), EINVAL);
    FAILS_WITH(aco_mt_group_end(NULL), EINVAL);
    begin(&group, ACO_KEEP_GOING);
    FAILS_WITH(aco_scope_end(&group.scope), EBUSY);
    FAILS_WITH(aco_submit(&group, NULL, NULL, NULL), EINVAL);
    FAILS_WITH(aco_submit(NULL, nested, NULL, NULL), EINVAL);
    FAILS_WITH(aco_submit(&group, nested, NULL, &unknown), EINVAL);
    FAILS_WITH(aco_submit(&group, nested, NULL, &(aco_submit_options_t){.aco__reserved = {0, &group}}), EINVAL);
    FAILS_WITH(aco_submit(&group, nested, NULL, TO(99)), ESRCH);
    FAILS_WITH(aco_submit(&group, nested, NULL, TO(-1)), ESRCH);
    FAILS_WITH(aco_submit(&group, nested, NULL, TO(2)), ESRCH); /* the thread that could not join */
    CHECK_EQ(aco_mt_group_end(&group), 0);
    FAILS_WITH(aco_mt_group_end(&group), EPERM);
    submit_too_late(&group, &unknown);
    CHECK_EQ(aco_defer(begin_in_cleanup, NULL), 0);
    return NULL;
}

static void *outside(void *arg)
{
    aco_mt_group_t group;
    (void)arg;
    FAILS_WITH(aco_mt_group_begin(&group, ACO_KEEP_GOING), EPERM);
    FAILS_WITH(aco_threads_run(2, nested, arg, NULL), EPERM);
    return NULL;
}

static void test_misuse(void)
{
    aco_t *task = aco_spawn(outside, NULL, NULL);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    run_on(2, nested, NULL);
}

/* ---- Threads of the program ---- */

typedef struct plain {
    aco_mt_group_t *group;
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
    aco_mt_group_t group;
    plain_t plain = {&group, NULL, 0, 0, 0, 0};
    pthread_t threads[3];
    (void)arg;
    begin(&group, ACO_CANCEL_ON_FAILURE);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, submit_from_outside, &plain), 0);
    UNTIL(load(&plain.is_over) == 3);
    CHECK_EQ(aco_mt_group_end(&group), 0);
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
    aco_mt_group_t group;
    pthread_t thread;
    plain->threads = aco_threads_current();
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&thread, NULL, join_and_leave, plain), 0);
        CHECK_EQ(pthread_detach(thread), 0);
    }
    begin(&group, ACO_KEEP_GOING); /* while they join: what is sent arrives, or is refused */
    for (int sent = 0; sent < 2; sent++)
        while (aco_submit(&group, give, NULL, TO(2 + sent)) != 0)
            CHECK_EQ(errno, ESRCH);
    CHECK(aco_mt_group_end(&group) == 0 || errno == ECANCELED); /* it has just left */
    sum_whole(&tree);
    UNTIL(load(&plain->left) == 2);
    begin(&group, ACO_KEEP_GOING); /* both have joined again */
    UNTIL(aco_submit(&group, give, NULL, TO(2)) == 0);
    UNTIL(aco_submit(&group, give, NULL, TO(3)) == 0);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    sum_whole(&tree);
    return NULL;
}

static void test_plain_threads(void)
{
    aco_threads_options_t options = {0};
    plain_t plain = {NULL, NULL, 0, 0, 0, 0};
    run_on(4, with_plain_threads, NULL);
    options.flags = ACO_THREADS_FIRST_ONLY | ACO_THREADS_KEEP_GOING; /* those that join fail */
    FAILS_WITH(aco_threads_run(2, with_joined_threads, &plain, &options), ERANGE);
    CHECK_EQ(plain.joined_ran, 2);
}

/* ---- Too many of them ---- */

enum { MOST_JOINED = 64 };

static int refused;

/* Until the set ends. */
static void *stay(void *threads)
{
    errno = 0;
    if (aco_threads_join(threads, NULL, NULL) != 0) {
        CHECK_EQ(errno, EAGAIN);
        add(&refused, 1);
    }
    return NULL;
}

static void *with_one_too_many(void *joining)
{
    for (int i = 0; i <= MOST_JOINED; i++)
        CHECK_EQ(pthread_create((pthread_t *)joining + i, NULL, stay, aco_threads_current()), 0);
    UNTIL(load(&refused)); /* all others are there */
    return NULL;
}

static void test_too_many_join(void)
{
    pthread_t joining[MOST_JOINED + 1];
    run_on(1, with_one_too_many, joining);
    for (int i = 0; i <= MOST_JOINED; i++)
        CHECK_EQ(pthread_join(joining[i], NULL), 0);
    CHECK_EQ(refused, 1);
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
    aco_mt_group_t group;
    begin(&group, ACO_KEEP_GOING);
    submit_to(1, &group, open_idle, NULL);
    CHECK_EQ(aco_mt_group_end(&group), 0);
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

static int turns_begun, turns; /* of busy functions on a thread, and how many of them may end */

/* Its thread looks at nothing that is sent meanwhile. */
static void *be_busy(void *arg)
{
    int64_t end = aco_after(30 * ACO_SECOND);
    int turn = load(&turns_begun) + 1;
    add(&turns_begun, 1);
    while (load(&turns) < turn && aco_now() < end)
        ;
    return arg;
}

/* When pthread_exit() has unwound a member's frames, they are gone: a destructor writes there. */
static pthread_key_t frames_key;
static __thread size_t frames_sz;

static void overwrite_frames(void *frames)
{
    memset(frames, 0x5a, frames_sz);
}

static void *end_thread(void *arg)
{
    char here;
    void *low, *high;
    CHECK_EQ(aco_stack_bounds(aco_get_co(), &low, &high), 0);
    frames_sz = (size_t)((char *)high - &here) - 64; /* what every coroutine finds at the top stays */
    pthread_setspecific(frames_key, &here);
    pthread_exit(be_busy(arg));
}

static void *own_group_and_die(void *arg)
{
    aco_mt_group_t *group = arg; /* it stays when its thread is gone */
    begin(group, ACO_KEEP_GOING);
    submit_to(0, group, wait_long, (void *)(intptr_t)ECANCELED);
    submit_to(2, group, wait_long, (void *)(intptr_t)ECANCELED);
    submit_to(3, group, wait_long, (void *)(intptr_t)ECANCELED);
    UNTIL(load(&total) == 1);
    pthread_exit(NULL);
}

enum { HEIRS = 4 };

static int dead_waits, heirs_over, heirs;
static aco_mt_event_t for_the_dead;

static void *wait_and_never_return(void *arg)
{
    add(&dead_waits, 1);
    aco_mt_event_wait(&for_the_dead);
    CHECK(!"its thread has ended");
    return arg;
}

static void *end_thread_of_waiters(void *arg)
{
    UNTIL(load(&dead_waits) == HEIRS);
    pthread_exit(arg);
}

static void *await_end(void *arg)
{
    add(&heirs, 1);
    UNTIL(load(&heirs_over));
    return arg;
}

static void *join_as_heir(void *threads)
{
    CHECK_EQ(aco_threads_join(threads, await_end, NULL), 0);
    return NULL;
}

/* Tasks of a dead thread stay as they are when they are given what they wait for, and new threads have its memory. */
static void *wake_the_dead(void *arg)
{
    aco_mt_group_t group;
    pthread_t threads[HEIRS];
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < HEIRS; i++)
        submit_to(1, &group, wait_and_never_return, NULL);
    submit_to(1, &group, end_thread_of_waiters, NULL);
    FAILS_WITH(aco_mt_group_end(&group), ECANCELED);
    aco_sleep(10 * ACO_MILLISECOND); /* a thread of the kernel: nothing tells when its memory is free */
    for (int i = 0; i < HEIRS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, join_as_heir, aco_threads_current()), 0);
    UNTIL(load(&heirs) == HEIRS);
    aco_mt_event_set(&for_the_dead);
    aco_sleep(10 * ACO_MILLISECOND); /* likewise: time for what must not happen */
    add(&heirs_over, 1);
    for (int i = 0; i < HEIRS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    return arg;
}

/* ---- Members that inherit a value ---- */

static aco_local_key_t value_key;
static int value_waits;

static void *copy_value(void *value)
{
    return value;
}

static void drop_value(void *value)
{
    (void)value;
}

static void *sleep_with_value(void *arg)
{
    CHECK(aco_get_local(value_key) == arg);
    add(&value_waits, 1);
    (void)aco_sleep_until(ACO_FOREVER);
    CHECK(!"its thread has ended");
    return arg;
}

static void *end_thread_with_value(void *arg)
{
    CHECK(aco_get_local(value_key) == arg);
    UNTIL(load(&value_waits) == 1);
    pthread_exit(arg);
}

static void *exit_with_value(void *arg)
{
    CHECK(aco_get_local(value_key) == arg);
    aco_exit();
    return arg;
}

/* Their results are the same as without it. */
static void *leave_results(void *arg)
{
    static const aco__inheritance_t by = {copy_value, drop_value};
    static const aco_function_t fns[] = {exit_with_value, sleep_with_value, end_thread_with_value};
    void *results[3] = {&value_waits, NULL, NULL};
    aco_mt_group_t group;
    CHECK_EQ(aco_local_key_create(&value_key, NULL), 0);
    aco__inherit(value_key, &by);
    CHECK_EQ(aco_set_local(value_key, &value_waits), 0);
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 3; i++) {
        aco_submit_options_t options = {.where = ACO_SUBMIT_TO, .thread = 1, .result = &results[i]};
        CHECK_EQ(aco_submit(&group, fns[i], &value_waits, &options), 0);
    }
    FAILS_WITH(aco_mt_group_end(&group), ECANCELED);
    CHECK(results[0] == NULL && results[1] == ACO_ERROR && results[2] == ACO_ERROR);
    return arg;
}

static void *around_dead_threads(void *arg)
{
    static aco_mt_group_t lost;
    aco_mt_group_t group;
    (void)arg;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 10; i++)
        submit_to(1, &group, wait_long, NULL);
    submit_to(1, &group, be_busy, NULL);
    UNTIL(load(&turns_begun) == 1);
    submit_to(1, &group, end_thread, NULL); /* these are more than it starts in a round */
    for (int i = 0; i < 20; i++)
        submit_to(1, &group, give, NULL);
    add(&turns, 1);
    UNTIL(load(&turns_begun) == 2);
    submit_to(1, &group, give, NULL); /* and it does not look for these any more */
    submit_to(1, &group, give, NULL);
    add(&turns, 1);
    FAILS_WITH(aco_mt_group_end(&group), ECANCELED);
    CHECK_EQ(group.failed, 33);
    begin(&group, ACO_KEEP_GOING);
    FAILS_WITH(aco_submit(&group, give, NULL, TO(1)), ESRCH);
    for (int i = 0; i < crowd; i++)
        submit(&group, give, NULL);
    CHECK_EQ(aco_mt_group_end(&group), 0);

    cancelled_waits = total = 0; /* a thread with a group */
    begin(&group, ACO_KEEP_GOING);
    submit_to(2, &group, own_group_and_die, &lost);
    aco_sleep(2 * ACO_MILLISECOND);
    add(&total, 1);
    FAILS_WITH(aco_mt_group_end(&group), ECANCELED);
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
    aco_mt_group_t group;
    (void)arg;
    begin(&group, ACO_KEEP_GOING);
    submit_to(1, &group, break_scheduler, NULL);
    FAILS_WITH(aco_mt_group_end(&group), ECANCELED);
    return NULL;
}

static void *break_own_scheduler(void *arg)
{
    aco_mt_group_t group;
    begin(&group, ACO_KEEP_GOING);
    submit_to(0, &group, wait_long, NULL);
    submit_to(1, &group, give, NULL);
    CHECK_EQ(aco_on_idle(idle_fails, NULL), 0);
    (void)aco_mt_group_end(&group);
    CHECK(!"it never returns");
    return arg;
}

/* What is left on the thread refers to a set that is no more. */
static void *lose_tasks(void *arg)
{
    FAILS_WITH(run_first(2, break_own_scheduler, NULL), ENOTTY);
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
    FAILS_WITH(aco_run(), EBUSY);
    FAILS_WITH(run_first(2, give, NULL), EBUSY);
    return arg;
}

static void test_broken_schedulers(void)
{
    pthread_t thread;
    FAILS_WITH(run_first(2, around_a_broken_scheduler, NULL), ENOTTY);
    CHECK_EQ(pthread_create(&thread, NULL, lose_tasks, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
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
    aco_mt_group_t *group = arg;
    pid_t child = fork();
    if (child == 0) {
        int done = 0;
        FAILS_WITH(aco_submit(group, count_one, &done, NULL), ECANCELED);
        FAILS_WITH(aco_submit(group, count_one, &done, TO(0)), ESRCH);
        FAILS_WITH(aco_threads_join(fork_parent, give, NULL), ESRCH);
        end_child();
    }
    check_child(child);
    return NULL;
}

static void *fork_inside(void *arg)
{
    aco_mt_group_t group;
    pthread_t thread;
    pid_t child;
    int done = 0;
    (void)arg;
    fork_parent = aco_threads_current();
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 4; i++)
        submit_to(i, &group, wait_long, (void *)(intptr_t)ECANCELED);
    aco_sleep(ACO_MILLISECOND);
    submit_to(0, &group, count_one, &done); /* it has not begun */
    child = fork();
    if (child == 0) { /* the members on other threads are not here */
        CHECK_EQ(group.error, ECANCELED);
        submit(&group, count_one, &done);
        submit_to(0, &group, count_one, &done);
        FAILS_WITH(aco_submit(&group, count_one, &done, TO(1)), ESRCH);
        aco_scope_cancel(&group.scope);
        FAILS_WITH(aco_mt_group_end(&group), ECANCELED);
        CHECK_EQ(done, 3);
        CHECK_EQ(group.failed, 4);
        end_child();
    }
    check_child(child);
    CHECK_EQ(pthread_create(&thread, NULL, fork_outside, &group), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    FAILS_WITH(aco_mt_group_end(&group), ECANCELED);
    CHECK_EQ(done, 1);
    CHECK_EQ(group.failed, 4);
    return NULL;
}

/* In the child, aco_threads_run() returns, signals are as before, and a new set can be made. */
static void *fork_and_return(void *arg)
{
    int *child = arg;
    aco_sleep(ACO_MILLISECOND / 10);
    *child = fork();
    return NULL;
}

static void test_fork(void)
{
    aco_threads_options_t options = {0};
    tree_t tree = {256, 4};
    sigset_t blocked;
    int child = -1, status, threads = 4;
#ifdef NO_THREADS_AFTER_FORK
    threads = 1;
#endif
    run_on(4, fork_inside, NULL);
    options.flags = ACO_THREADS_FIRST_ONLY | ACO_THREADS_INTERRUPTIBLE;
    CHECK_EQ(aco_threads_run(4, fork_and_return, &child, &options), 0);
    if (child == 0) {
        pthread_sigmask(SIG_SETMASK, NULL, &blocked);
        CHECK(!sigismember(&blocked, SIGTERM));
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
    aco_mt_group_t group;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 100; i++)
        submit(&group, i % 2 ? wait_long : note_and_spin, arg);
    submit_to(2, &group, exit_from_here, NULL);
    aco_mt_group_end(&group);
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
    FAILS_WITH(aco_threads_run(1, wait_for_stop, NULL, &options), EINVAL);
    CHECK_EQ(aco_threads_run(4, wait_for_stop, NULL, NULL), 0);
    sends_signals = 1;
    options.flags = ACO_THREADS_INTERRUPTIBLE;
    options.drain_ns = 60 * ACO_SECOND;
    ready_to_stop = 0;
    CHECK_EQ(aco_threads_run(4, wait_for_stop, NULL, &options), 0);
    ready_to_stop = 0;
    FAILS_WITH(aco_threads_run(4, wait_for_stop, &again, &options), EINTR);
    ready_to_stop = 0;
    options.drain_ns = ACO_MILLISECOND; /* the deadline; the signal 0 does nothing */
    FAILS_WITH(aco_threads_run(4, wait_for_stop, &none, &options), EINTR);
}

static void test_signals(void)
{
    aco_threads_options_t options = {0};
    sigset_t before, after;
    int n = 2;
    options.flags = ACO_THREADS_INTERRUPTIBLE | ACO_THREADS_PIN;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    memset(ran, 0, sizeof ran);
    CHECK_EQ(aco_threads_run(n, note_thread, &n, &options), 0);
    FAILS_WITH(aco_threads_run(4, interrupt, NULL, &options), EINTR);
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
    aco_threads_run(2, end_first, NULL, options);
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
    int threads_before = thread_count();
    options.flags = ACO_THREADS_INTERRUPTIBLE;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    CHECK_EQ(pthread_create(&first, NULL, run_and_end, &options), 0);
    CHECK_EQ(pthread_join(first, NULL), 0);
    for (int64_t end = aco_after(30 * ACO_SECOND); thread_count() > threads_before && aco_now() < end;)
        sched_yield(); /* the kernel takes a moment after pthread_join() */
    CHECK(thread_count() <= threads_before);
    kill(getpid(), SIGTERM);
    CHECK_EQ(sigtimedwait(&signals, NULL, &now), SIGTERM);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "exit") == 0)
        return exit_at_once();
    CHECK_EQ(pthread_key_create(&frames_key, overwrite_frames), 0); /* its destructor comes before the library's */
    crowd *= argc > 1 ? 100 : 1;
    test_each_thread_runs();
    test_thread_locals();
    test_failures();
    test_misuse();
    test_plain_threads();
    test_too_many_join();
    test_last_post();
    test_signals();
    test_stop();
    if (!SANITIZED) { /* they do not follow threads that end on another stack */
        run_on(4, around_dead_threads, NULL);
        run_on(2, wake_the_dead, NULL);
        run_on(2, leave_results, NULL);
        test_signals_of_dead_threads();
    }
    if (!UNDER_TSAN) { /* nor that one a child that makes threads */
        test_fork();
        test_exit();
    }
    test_broken_schedulers();
    return check_result("threads_run");
}
