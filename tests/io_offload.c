/* The pool (include/aco/offload.h): results, ends of scopes before, during and after the function, the bound, idle
 * threads, several schedulers, ends of threads, fork(). io_failure.c has threads that cannot be started. */
#define _GNU_SOURCE
#include "base/base.h"
#include "system/system.h"
#include <aco/offload.h>
#include "io_tests.h"
#include "sanitizers.h"
#include "until.h"

#include <pthread.h>
#include <sys/wait.h>

static unsigned load(const unsigned *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void add(unsigned *p)
{
    __atomic_fetch_add(p, 1, __ATOMIC_ACQ_REL);
}

static aco_offload_stats_t stats(void)
{
    aco_offload_stats_t now;
    CHECK_EQ(aco_offload_stats(&now), 0);
    return now;
}

/* A function that begins, waits until it is let go, and ends. */
typedef struct gate {
    unsigned begun, open, ended, released;
    void *result;             /* that `release` got */
    pthread_t ran, released_on;
} gate_t;

static void sleep_shortly(void)
{
    const struct timespec time = {0, 50000};
    nanosleep(&time, NULL);
}

static void *pass(void *arg)
{
    gate_t *gate = arg;
    gate->ran = pthread_self();
    add(&gate->begun);
    while (!load(&gate->open))
        sleep_shortly();
    add(&gate->ended);
    return &gate->ended;
}

static void release_gate(void *arg, void *result)
{
    gate_t *gate = arg;
    gate->result = result;
    gate->released_on = pthread_self();
    errno = ERANGE; /* of no interest */
    add(&gate->released);
}

/* ---- Results ---- */

static void *own_thread(void *arg)
{
    *(pthread_t *)arg = pthread_self();
    errno = EXDEV;
    return arg;
}

static void *leaves_errno(void *arg)
{
    return arg;
}

static void *opens_later(void *arg)
{
    gate_t *gate = arg;
    UNTIL(load(&gate->begun));
    add(&gate->open); /* this task runs while the function blocks */
    return NULL;
}

static void *results(void *unused)
{
    pthread_t ran = pthread_self();
    void *result = NULL;
    gate_t gate = {0}, other = {0};
    aco_group_t group;
    CHECK_EQ(aco_offload(own_thread, &ran, &result, NULL), 0);
    CHECK_EQ(errno, EXDEV);
    CHECK(result == &ran);
    CHECK(!pthread_equal(ran, pthread_self()));
    CHECK_EQ(aco_offload(leaves_errno, NULL, NULL, release_gate), 0);
    CHECK_EQ(errno, 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, opens_later, &gate);
    CHECK_EQ(aco_offload(pass, &gate, &result, release_gate), 0);
    CHECK(result == &gate.ended);
    CHECK_EQ(gate.released, 0); /* a call that succeeds leaves it to the caller */
    aco_group_end(&group);
    FAILS_WITH(aco_offload(NULL, &other, NULL, release_gate), EINVAL);
    CHECK(strstr(aco_error_message(), "aco_offload: the function is NULL") != NULL);
    CHECK(other.released == 1 && !other.result && pthread_equal(other.released_on, pthread_self()));
    return unused;
}

static void outside_of_tasks(void)
{
    gate_t gate = {0};
    FAILS_WITH(aco_offload(pass, &gate, NULL, release_gate), EPERM);
    FAILS_WITH(aco_offload(pass, &gate, NULL, NULL), EPERM);
    CHECK(gate.begun == 0 && gate.released == 1 && !gate.result);
    FAILS_WITH(aco_offload_limits(0, 0), EINVAL);
    FAILS_WITH(aco_offload_limits(1, -1), EINVAL);
    FAILS_WITH(aco_offload_stats(NULL), EINVAL);
}

static void *adds_one(void *number)
{
    return (void *)((uintptr_t)number + 1);
}

static void *offloads_often(void *unused)
{
    for (size_t i = 0; i < 100; i++) {
        void *result;
        CHECK_EQ(aco_offload(adds_one, (void *)i, &result, NULL), 0);
        CHECK_EQ((size_t)result, i + 1);
        if (i % 3 == 0)
            aco_task_yield();
    }
    return unused;
}

/* Several tasks on one share stack, and an inner coroutine. */
static void *other_callers(void *unused)
{
    aco_options_t shared = {0};
    aco_t *inner = aco_new(offloads_often, NULL, NULL);
    aco_group_t group;
    shared.stack = aco_share_stack_new(0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 3; i++)
        CHECK(aco_group_spawn(&group, offloads_often, NULL, &shared) != NULL);
    aco_resume(inner);
    CHECK(inner->is_end);
    aco_destroy(inner);
    CHECK_EQ(aco_group_end(&group), 0);
    aco_share_stack_destroy(shared.stack);
    return unused;
}

/* ---- Scopes ---- */

static void *ends_scope(void *scope)
{
    CHECK_EQ(aco_scope_cancel(scope), 0);
    return NULL;
}

static void *abandoned(void *unused)
{
    gate_t gate = {0};
    aco_scope_t scope;
    aco_group_t group;
    aco_scope_begin(&scope, aco_after(2 * ACO_MILLISECOND));
    FAILS_WITH(aco_offload(pass, &gate, NULL, release_gate), ETIMEDOUT);
    aco_scope_end(&scope);
    UNTIL(load(&gate.begun) || load(&gate.released)); /* on a slow machine the time is over before it begins */
    add(&gate.open);
    UNTIL(load(&gate.released));
    if (gate.begun)
        CHECK(gate.result == &gate.ended && pthread_equal(gate.ran, gate.released_on));
    CHECK_EQ(gate.released, 1);

    memset(&gate, 0, sizeof gate);
    aco_group_begin(&group, ACO_KEEP_GOING);
    aco_scope_begin(&scope, ACO_FOREVER);
    member(&group, ends_scope, &scope);
    FAILS_WITH(aco_offload(pass, &gate, NULL, release_gate), ECANCELED);
    FAILS_WITH(aco_offload(pass, &gate, NULL, release_gate), ECANCELED); /* this one does not begin */
    aco_scope_end(&scope);
    aco_group_end(&group);
    add(&gate.open);
    UNTIL(load(&gate.released) == 2);
    CHECK(gate.begun < 2);
    return unused;
}

static void *ends_scope_and_opens(void *arg)
{
    void **all = arg;
    gate_t *gate = all[0];
    UNTIL(load(&gate->begun));
    CHECK_EQ(aco_scope_cancel(all[1]), 0);
    aco_task_yield(); /* it waits again, */
    CHECK_EQ(aco_scope_cancel(all[2]), 0);
    aco_task_yield(); /* and on */
    aco_task_yield();
    add(&gate->open);
    return NULL;
}

/* Without `release` the call waits for a function that has begun, and succeeds. */
static void *waits_to_the_end(void *unused)
{
    gate_t gate = {0};
    aco_scope_t scope, around;
    aco_group_t group;
    void *all[3], *result = NULL;
    all[0] = &gate;
    all[1] = &scope;
    all[2] = &around;
    aco_group_begin(&group, ACO_KEEP_GOING);
    aco_scope_begin(&around, ACO_FOREVER);
    aco_scope_begin(&scope, ACO_FOREVER);
    member(&group, ends_scope_and_opens, all);
    CHECK_EQ(aco_offload(pass, &gate, &result, NULL), 0);
    CHECK(result == &gate.ended && gate.ended == 1);
    FAILS_WITH(aco_check_cancelled(), ECANCELED);
    aco_scope_end(&scope);
    aco_scope_end(&around);
    aco_group_end(&group);
    return unused;
}

/* The scope ends, and before its task runs, the function has returned: the result is not lost. */
static void *ends_scope_too_late(void *arg)
{
    void **both = arg;
    gate_t *gate = both[0];
    UNTIL(load(&gate->begun));
    CHECK_EQ(aco_scope_cancel(both[1]), 0);
    add(&gate->open);
    while (stats().idle != stats().threads)
        sleep_shortly();
    return NULL;
}

static void *keeps_a_result(void *unused)
{
    gate_t gate = {0};
    aco_scope_t scope;
    aco_group_t group;
    void *both[2], *result = NULL;
    both[0] = &gate;
    both[1] = &scope;
    aco_group_begin(&group, ACO_KEEP_GOING);
    aco_scope_begin(&scope, ACO_FOREVER);
    member(&group, ends_scope_too_late, both);
    CHECK_EQ(aco_offload(pass, &gate, &result, release_gate), 0);
    CHECK(result == &gate.ended && !gate.released);
    aco_scope_end(&scope);
    aco_group_end(&group);
    return unused;
}

/* ---- The bound ---- */

static void *passes(void *gate)
{
    CHECK_EQ(aco_offload(pass, gate, NULL, NULL), 0);
    return NULL;
}

/* What waits for a thread is not called when its scope ends, with or without `release`. */
static void *queued(void *unused)
{
    gate_t first = {0}, second = {0}, last = {0};
    aco_scope_t scope;
    aco_group_t group;
    CHECK_EQ(aco_offload_limits(1, ACO_SECOND), 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    UNTIL(stats().threads <= 1);
    member(&group, passes, &first);
    UNTIL(load(&first.begun));
    aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
    FAILS_WITH(aco_offload(pass, &second, NULL, release_gate), ETIMEDOUT);
    CHECK(second.released == 1 && !second.result);
    aco_scope_end(&scope);
    aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
    FAILS_WITH(aco_offload(pass, &second, NULL, NULL), ETIMEDOUT);
    aco_scope_end(&scope);
    CHECK_EQ(stats().queued, 0);
    member(&group, passes, &last);
    aco_task_yield();
    CHECK_EQ(stats().queued, 1);
    CHECK_EQ(stats().threads, 1);
    CHECK_EQ(aco_offload_limits(2, ACO_SECOND), 0); /* the one in the queue gets a thread now */
    UNTIL(load(&last.begun));
    CHECK_EQ(stats().threads, 2);
    add(&last.open);
    add(&first.open);
    aco_group_end(&group);
    CHECK(first.ended && last.ended && !second.begun);
    return unused;
}

static unsigned inside, most_inside;

/* Ends when three have been inside at once. */
static void *needs_three(void *unused)
{
    unsigned now = __atomic_add_fetch(&inside, 1, __ATOMIC_ACQ_REL), most = load(&most_inside);
    while (now > most && !__atomic_compare_exchange_n(&most_inside, &most, now, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        continue;
    while (load(&most_inside) < 3)
        sleep_shortly();
    sleep_shortly(); /* more would come in */
    __atomic_sub_fetch(&inside, 1, __ATOMIC_ACQ_REL);
    return unused;
}

static void *is_one_of_three(void *unused)
{
    CHECK_EQ(aco_offload(needs_three, NULL, NULL, NULL), 0);
    return unused;
}

static void *bound(void *unused)
{
    aco_group_t group;
    CHECK_EQ(aco_offload_limits(3, 100 * ACO_SECOND), 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 20; i++)
        member(&group, is_one_of_three, NULL);
    aco_group_end(&group);
    CHECK_EQ(most_inside, 3);
    CHECK_EQ(stats().threads, 3);
    CHECK_EQ(aco_offload_limits(1, 100 * ACO_SECOND), 0); /* those above end */
    UNTIL(stats().threads == 1);
    CHECK_EQ(aco_offload(adds_one, NULL, NULL, NULL), 0);
    return unused;
}

static void *idle_ends(void *unused)
{
    CHECK_EQ(aco_offload_limits(8, ACO_MILLISECOND), 0); /* also for those that are idle already */
    for (int i = 0; i < 3; i++) {
        void *result;
        CHECK_EQ(aco_offload(adds_one, &result, &result, NULL), 0);
        CHECK_EQ((uintptr_t)result, (uintptr_t)&result + 1);
        UNTIL(stats().threads == 0);
    }
    CHECK_EQ(aco_offload_limits(8, 10 * ACO_SECOND), 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(aco_offload(adds_one, NULL, NULL, NULL), 0);
    CHECK_EQ(stats().threads, 1); /* enough for one after the other */
    return unused;
}

/* ---- Reports ---- */

static void *waits_readable(void *fd)
{
    CHECK_EQ(aco_io_wait_readable(*(int *)fd), 0);
    return fd;
}

static void *reports(void *unused)
{
    gate_t gate = {0};
    char text[4096], descriptor[40];
    int ends[2], others[2];
    ssize_t n;
    aco_group_t group;
    make_pipe(ends);
    make_pipe(others);
    snprintf(descriptor, sizeof descriptor, " for readable fd %d", others[0]);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, passes, &gate);
    member(&group, waits_readable, &others[0]);
    aco_task_yield();
    CHECK_EQ(aco_tasks_dump(ends[1]), 0);
    n = read(ends[0], text, sizeof text - 1);
    CHECK(n > 0);
    text[n > 0 ? n : 0] = 0;
    CHECK(strstr(text, "tests/io_offload.c:") != NULL);
    CHECK(strstr(text, " for another thread to run ") != NULL);
    CHECK(strstr(text, descriptor) != NULL);
    add(&gate.open);
    CHECK_EQ(write(others[1], "x", 1), 1);
    aco_group_end(&group);
    close_both(ends);
    close_both(others);
    return unused;
}

/* ---- Threads ---- */

static void *one_scheduler(void *unused)
{
    for (int i = 0; i < 4; i++)
        CHECK(aco_spawn(offloads_often, NULL, &(aco_options_t){.flags = ACO_DETACHED}) != NULL);
    CHECK_EQ(aco_run(), 0);
    return unused;
}

static void several_schedulers(void)
{
    pthread_t threads[3];
    int before = count_descriptors();
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, one_scheduler, NULL), 0);
    one_scheduler(NULL);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK(count_descriptors() <= before + 2); /* this thread may have needed a poller */
}

/* A thread whose aco_run() has failed ends while its tasks wait: for a function that runs, one that has returned, and
 * two in the queue. */
typedef struct left {
    gate_t runs, done, queued, kept;
    gate_t *gate;
} left_t;

static int fails_when_told(void *arg, int64_t timeout_ns)
{
    left_t *left = arg;
    (void)timeout_ns;
    while (!load(&left->runs.begun) || !load(&left->done.begun) || stats().queued != 2)
        sleep_shortly();
    add(&left->done.open);
    while (!load(&left->kept.begun)) /* the thread of `done` has posted before it takes this */
        sleep_shortly();
    errno = EBADE;
    return -1;
}

static void *offloads_gate(void *gate)
{
    aco_offload(pass, gate, NULL, gate == NULL ? NULL : release_gate);
    CHECK(!"returns");
    return NULL;
}

static void *is_left(void *arg)
{
    left_t *left = arg;
    gate_t *const gates[] = {&left->runs, &left->done, &left->kept, &left->queued};
    for (int i = 0; i < 4; i++)
        CHECK(aco_spawn(offloads_gate, gates[i], &(aco_options_t){.flags = ACO_DETACHED}) != NULL);
    CHECK_EQ(aco_on_idle(fails_when_told, left), 0);
    errno = 0;
    CHECK_EQ(aco_run(), -1);
    CHECK_EQ(errno, EBADE);
    return NULL;
}

static void threads_end(void)
{
    static left_t left;
    pthread_t thread;
    CHECK_EQ(aco_offload_limits(2, ACO_SECOND), 0);
    while (stats().threads > 2)
        sleep_shortly();
    CHECK_EQ(pthread_create(&thread, NULL, is_left, &left), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(left.done.released == 1 && left.done.result == &left.done.ended); /* had come, and nobody took it */
    CHECK(left.queued.released == 1 && !left.queued.result && !left.queued.begun);
    CHECK(!left.runs.released && !left.kept.released);
    add(&left.runs.open);
    add(&left.kept.open);
    while (!load(&left.runs.released) || !load(&left.kept.released))
        sleep_shortly();
    CHECK(left.runs.result == &left.runs.ended && left.kept.result == &left.kept.ended);
    CHECK_EQ(aco_offload_limits(64, 10 * ACO_SECOND), 0);
}

static void *thread_of_child(void *unused)
{
    run_task(offloads_often, NULL);
    return unused;
}

/* The child of a process whose threads all run and whose queue is not empty. */
static void *forks(void *unused)
{
    gate_t first = {0}, second = {0};
    pthread_t thread;
    aco_group_t group;
    pid_t pid;
    int status;
    CHECK_EQ(aco_offload_limits(1, ACO_SECOND), 0);
    UNTIL(stats().threads <= 1);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, passes, &first);
    UNTIL(load(&first.begun));
    member(&group, passes, &second);
    aco_task_yield();
    CHECK_EQ(stats().queued, 1);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(30);
        CHECK(stats().threads == 0 && stats().queued == 0);
        CHECK_EQ(pthread_create(&thread, NULL, thread_of_child, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        _exit(__atomic_load_n(&check_failures, __ATOMIC_RELAXED) != 0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    add(&first.open);
    add(&second.open);
    aco_group_end(&group);
    CHECK(second.ended);
    CHECK_EQ(aco_offload_limits(64, 10 * ACO_SECOND), 0);
    return unused;
}

static pthread_mutex_t *locked[8];
static unsigned locks;

static int notes_lock(pthread_mutex_t *mutex)
{
    if (locks < sizeof locked / sizeof *locked)
        locked[locks++] = mutex;
    return pthread_mutex_lock(mutex);
}

/* Promise: fork() takes the process lock last, as who has another one may wait for it. */
static void forks_in_order(void)
{
    const pthread_mutex_t *process_lock;
    pid_t pid;
    aco__system.pthread_mutex_lock = notes_lock;
    aco__lock();
    aco__unlock();
    process_lock = locked[0];
    locks = 0;
    pid = fork();
    if (pid == 0)
        _exit(0);
    CHECK(waitpid(pid, NULL, 0) == pid);
    CHECK_EQ(locks, 3); /* the pool's and that of the counts */
    CHECK(locked[0] != process_lock && locked[1] != process_lock && locked[0] != locked[1]);
    CHECK(locked[2] == process_lock);
    aco__system.pthread_mutex_lock = pthread_mutex_lock;
}

static void *offloads_for_ever(void *unused)
{
    static gate_t never;
    aco_offload(pass, &never, NULL, NULL);
    return unused;
}

static void *ends_process(void *unused)
{
    exit(__atomic_load_n(&check_failures, __ATOMIC_RELAXED) != 0);
    return unused;
}

/* exit() in a task while a function runs that never ends. */
static void exits(void)
{
    const aco_options_t detached = {.flags = ACO_DETACHED};
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        alarm(30);
        aco_spawn(offloads_for_ever, NULL, &detached);
        aco_spawn(ends_process, NULL, &detached);
        aco_run();
        _exit(2);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Without memory the function does not run, and the argument is released. */
static void *lacks_job(void *unused)
{
#ifdef COUNTS_MEMORY
    gate_t gate = {0};
    lacks_memory = "aco_offload";
    FAILS_WITH(aco_offload(pass, &gate, NULL, release_gate), ENOMEM);
    lacks_memory = NULL;
    CHECK(!gate.begun && gate.released == 1 && !gate.result);
#endif
    return unused;
}

int main(void)
{
    const aco_function_t tests[] = {results, other_callers, abandoned, waits_to_the_end, keeps_a_result, queued, bound,
                                    idle_ends, reports, lacks_job};
    if (!UNDER_TSAN) { /* it does not allow threads after fork() */
        forks_in_order();
        exits();
    }
    outside_of_tasks();
    run_task(warms_up, NULL);
    run_tests(tests, sizeof tests / sizeof *tests, count_descriptors());
    several_schedulers();
    threads_end();
    if (!UNDER_TSAN)
        run_task(forks, NULL);
    return check_result("io_offload");
}
