/* Promises about the watchdog (aco_watchdog() of include/aco/scheduler.h): a task that does not give way is named once,
 * a well-behaved program is left alone. The program runs itself, for the environment's variable and the default. */
#define _GNU_SOURCE
#include "tasks.h"
#include "capture.h"
#include "fails.h"
#include "proc.h"

#include <aco/backtrace.h>
#include <aco/group.h>
#include <aco/sync.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 20, PATIENCE_S = 30 };
static const int64_t limit = LIMIT_MS * ACO_MILLISECOND;

static int count(const char *what)
{
    int n = 0;
    for (const char *at = strstr(captured_text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

/* ---- Tasks that do not give way ---- */

static int64_t longest_gap; /* of the well-behaved tasks' turns */

static int waits_for(off_t bytes)
{
    int64_t end = aco_after(PATIENCE_S * ACO_SECOND);
    while (captured_bytes() <= bytes && aco_now() < end) {
    }
    return captured_bytes() > bytes;
}

static void spin(int64_t ns)
{
    int64_t end = aco_after(ns);
    while (aco_now() < end) {
    }
}

static void *spins(void *arg)
{
    spin(4 * limit);
    return arg;
}

static __attribute__((noinline)) void *hogs(void *arg)
{
    CHECK(waits_for(captured_bytes()));
    spin(4 * limit); /* it is not named again */
    return arg;
}

static void *hogs_twice(void *arg)
{
    hogs(arg);
    aco_task_yield();
    hogs(arg);
    return arg;
}

static void *hogs_inside(void *arg)
{
    aco_t *inner = aco_new(hogs, arg, NULL);
    CHECK(inner != NULL);
    aco_resume(inner);
    aco_destroy(inner);
    return arg;
}

#if defined(__GLIBC__) && (defined(__i386__) || defined(__s390__)) /* src/coroutine/backtrace.c says why */
enum { REPORTS_FRAMES = 0 };
#else
enum { REPORTS_FRAMES = 1 };
#endif

/* Whether a frame of the report is in hogs(), or just called by it. */
static int has_frame(void)
{
    if (!REPORTS_FRAMES)
        return !strstr(captured_text, ": #");
    for (const char *at = strstr(captured_text, ": #"); at; at = strstr(at + 1, ": #")) {
        uintptr_t pc = (uintptr_t)strtoull(strchr(at, 'x') + 1, NULL, 16), from = (uintptr_t)hogs;
        if (pc > from && pc < from + 1024)
            return 1;
    }
    fprintf(stderr, "no frame in hogs(), %p:\n%s", (void *)(uintptr_t)hogs, captured_text);
    return 0;
}

/* Hogs in the unwinder, where a report must not wait for a lock that it has. */
static void *hogs_unwinding(void *arg)
{
    int64_t end = aco_after(PATIENCE_S * ACO_SECOND);
    off_t bytes = captured_bytes();
    void *frame;
    while (captured_bytes() <= bytes && aco_now() < end)
        for (int i = 0; i < 1000; i++) /* nearly always in the unwinder when the signal comes */
            (void)aco_backtrace(aco_current_task(), &frame, 1);
    return arg;
}

static void *tries_backtrace(void *arg)
{
    void *frame;
    *(int *)arg = aco_backtrace(aco_current_task(), &frame, 1) > 0;
    return NULL;
}

static void test_hogs(void)
{
    int has_backtraces = 0;
    CHECK_EQ(aco_watchdog(limit), 0);
    spawn_detached(tries_backtrace, &has_backtraces);
    run();
    capture();
    spawn_as(hogs, NULL, ACO_DETACHED, "Hannah");
    run();
    release();
    CHECK_EQ(count("acorn: watchdog: coroutine "), 1);
    CHECK_EQ(count("without yielding or waiting; its name is \"Hannah\"; entry "), 1);
    CHECK(!has_backtraces || has_frame());

    capture();
    spawn_detached(hogs_twice, NULL);
    run();
    release();
    CHECK_EQ(count("acorn: watchdog: coroutine "), 2);

    capture();
    spawn_as(hogs_unwinding, NULL, ACO_DETACHED, "Uwe");
    run();
    release();
    CHECK_EQ(count("\"Uwe\""), 1);

    capture();
    spawn_as(hogs_inside, NULL, ACO_DETACHED, "Ines");
    run();
    release();
    CHECK_EQ(count("\"Ines\""), 1);
    CHECK(!has_backtraces || has_frame());
    CHECK_EQ(aco_watchdog(0), 0);
    for (int64_t end = aco_after(PATIENCE_S * ACO_SECOND); thread_count() > 1 && aco_now() < end;)
        sched_yield(); /* the kernel takes a moment after pthread_join() */
    CHECK(UNDER_TSAN || thread_count() == 1); /* it has threads of its own */
}

/* ---- Tasks that do ---- */

/* Yields for some limits. The machine may have stopped the thread so long that it was named with reason. */
static void *yields(void *arg)
{
    int64_t end = aco_after(8 * limit), before = aco_now(), now;
    do {
        aco_task_yield();
        now = aco_now();
        if (now - before > longest_gap)
            longest_gap = now - before;
        before = now;
    } while (now < end);
    return arg;
}

static void *sleeps(void *arg)
{
    CHECK_EQ(aco_sleep(6 * limit), 0);
    return arg;
}

/* Short-lived tasks, whose addresses are used again. */
static void *spawns(void *arg)
{
    int64_t end = aco_after(6 * limit);
    while (aco_now() < end) {
        aco_t *task = spawn(tries_backtrace, &(int){0});
        if (aco_join(task, NULL) != 0)
            return NULL;
    }
    return arg;
}

static void check_well_behaved(const aco_function_t others[], int n)
{
    CHECK_EQ(aco_watchdog(limit), 0);
    longest_gap = 0;
    capture();
    for (int i = 0; i < n; i++)
        spawn_detached(others[i], NULL);
    spawn_detached(yields, NULL);
    run();
    release();
    CHECK(count("watchdog") == 0 || longest_gap > limit / 2);
    CHECK_EQ(aco_watchdog(0), 0);
}

static void test_well_behaved(void)
{
    static const aco_function_t all[] = {yields, sleeps, spawns, sleeps};
    check_well_behaved(NULL, 0); /* a task alone with the watchdog */
    check_well_behaved(all, 4);
}

/* A thread that the system stops between two tasks. The signal that stops it here comes at any place; but
 * ThreadSanitizer calls handlers later, and with AddressSanitizer each turn begins in aco_run(). */
enum { STOPS = 3, COMES_BETWEEN = !UNDER_TSAN && !UNDER_ASAN };
static aco_t *volatile alone;
static char alone_text[64];
static volatile int stops;

static void stop_between_tasks(int signal)
{
    const aco_t *task = aco_current_task();
    (void)signal;
    if (stops < STOPS && alone && task && task != alone) {
        stops++;
        spin(4 * limit);
    }
}

static void *yields_alone(void *arg)
{
    int64_t end = aco_after((COMES_BETWEEN ? PATIENCE_S : 1) * ACO_SECOND);
    snprintf(alone_text, sizeof alone_text, "coroutine %p: ", (void *)aco_current_task());
    alone = aco_current_task();
    while (stops < STOPS && aco_now() < end)
        aco_task_yield();
    alone = NULL;
    return arg;
}

static void test_between_tasks(void)
{
    static const struct itimerval often = {{0, 1000}, {0, 1000}}, never;
    struct sigaction stop = {0}, before;
    stop.sa_handler = stop_between_tasks;
    stop.sa_flags = SA_RESTART | SA_ONSTACK;
    CHECK_EQ(aco_watchdog(limit), 0);
    CHECK_EQ(sigaction(SIGALRM, &stop, &before), 0);
    stops = 0;
    capture();
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    spawn_detached(yields_alone, NULL);
    run();
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    release();
    CHECK(!COMES_BETWEEN || stops == STOPS);
    CHECK_EQ(count("coroutine "), count(alone_text)); /* the machine may have stopped the thread in the task */
    CHECK_EQ(sigaction(SIGALRM, &before, NULL), 0);
    CHECK_EQ(aco_watchdog(0), 0);
}

/* ---- Bounds, failures ---- */

enum { REPORTS_EXPECTED = 5 };

/* Until several turns in a row are not reported. The first ones wait for their reports, however busy the machine is. */
static void *hogs_often(void *arg)
{
    for (int silent = 0, reported = 0; silent < 8;) {
        off_t bytes = captured_bytes();
        int64_t end = aco_after(reported < REPORTS_EXPECTED ? PATIENCE_S * ACO_SECOND : 20 * ACO_MILLISECOND);
        while (captured_bytes() == bytes && aco_now() < end) {
        }
        reported += captured_bytes() != bytes;
        silent = captured_bytes() == bytes ? silent + 1 : 0;
        aco_task_yield();
    }
    return arg;
}

static void test_bounds(void)
{
    FAILS(aco_watchdog(-1), -1, EINVAL, "aco_watchdog", NULL, "negative");
    CHECK_EQ(aco_watchdog(2 * ACO_MILLISECOND), 0);
    capture();
    spawn_detached(hogs_often, NULL);
    run();
    release();
    CHECK(count("acorn: watchdog: coroutine ") <= 16); /* fewer, if turns were over before the handler came */
    CHECK(count("acorn: watchdog: coroutine ") >= REPORTS_EXPECTED && count("; this is the last report\n") <= 1);
    for (int i = 0; i < 2; i++) { /* the longest limits are limits: nobody is named */
        CHECK_EQ(aco_watchdog(i == 0 ? INT64_MAX : (INT64_C(1) << 32) * ACO_MILLISECOND), 0);
        capture();
        spawn_detached(spins, NULL);
        run();
        release();
        CHECK_EQ(count("acorn: watchdog: coroutine "), 0);
    }
    CHECK_EQ(aco_watchdog(0), 0);
}

/* Without its signal the watchdog says less. */
static void test_no_signal(void)
{
    sigset_t urgent;
    struct sigaction ours = {0}, before;
    CHECK_EQ(aco_watchdog(limit), 0);
    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    pthread_sigmask(SIG_BLOCK, &urgent, NULL);
    capture();
    spawn_as(hogs, NULL, ACO_DETACHED, "Hannah");
    run();
    release();
    CHECK_EQ(count("without yielding or waiting, and its thread takes no signal"), 1);
    CHECK_EQ(count("acorn: watchdog: "), 1);
    pthread_sigmask(SIG_UNBLOCK, &urgent, NULL);
    ours.sa_handler = SIG_IGN;
    CHECK_EQ(sigaction(SIGURG, &ours, &before), 0);
    capture();
    spawn_detached(hogs, NULL);
    run();
    release();
    CHECK_EQ(count("without yielding or waiting\n"), 1);
    CHECK_EQ(sigaction(SIGURG, &before, NULL), 0);
    CHECK_EQ(aco_watchdog(0), 0);
}

static void *runs_a_scheduler(void *arg)
{
    spawn_detached(yields_alone, NULL);
    run();
    return arg;
}

static void *hogs_after_another_thread(void *arg)
{
    pthread_t thread;
    CHECK(signal(SIGURG, SIG_DFL) == SIG_IGN);
    CHECK_EQ(pthread_create(&thread, NULL, runs_a_scheduler, NULL), 0); /* it takes the signal from now on */
    pthread_join(thread, NULL);
    CHECK(waits_for(0)); /* perhaps it was named meanwhile */
    return arg;
}

/* A thread whose aco_run() began while the program had the signal gets none. */
static void test_signal_was_programs(void)
{
    CHECK(signal(SIGURG, SIG_IGN) != SIG_ERR);
    CHECK_EQ(aco_watchdog(limit), 0);
    capture();
    spawn_detached(hogs_after_another_thread, NULL);
    run();
    release();
    CHECK_EQ(count("without yielding or waiting\n"), 1);
    CHECK_EQ(aco_watchdog(0), 0);
}

static volatile sig_atomic_t taken;

static void takes(int signal)
{
    (void)signal;
    taken = 1;
}

static void *signals_process(void *arg)
{
    sigset_t pending, mask;
    CHECK(thread_count() > 1);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    CHECK_EQ(aco_sleep(limit), 0);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1));
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && !sigismember(&mask, SIGUSR2));
    return arg;
}

/* The program's signals are for the program's threads, whose masks stay. */
static void test_process_signals(void)
{
    struct sigaction ours = {0}, before;
    sigset_t user;
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    ours.sa_handler = takes;
    CHECK_EQ(sigaction(SIGUSR1, &ours, &before), 0);
    pthread_sigmask(SIG_BLOCK, &user, NULL);
    CHECK_EQ(aco_watchdog(limit), 0);
    spawn_detached(signals_process, NULL);
    run();
    CHECK_EQ(taken, 0);
    pthread_sigmask(SIG_UNBLOCK, &user, NULL);
    CHECK_EQ(taken, 1);
    CHECK_EQ(sigaction(SIGUSR1, &before, NULL), 0);
    CHECK_EQ(aco_watchdog(0), 0);
}

/* ---- Tasks that wait for each other while others go on ---- */

static aco_mutex_t left, right, held;
static aco_group_t family;
static aco_event_t all_over;

static void *locks_left_first(void *is_left)
{
    CHECK_EQ(aco_mutex_lock(is_left ? &left : &right), 0);
    aco_task_yield();
    CHECK_EQ(aco_mutex_lock_at(is_left ? &right : &left, "table:1"), -1);
    aco_mutex_unlock(is_left ? &left : &right);
    return NULL;
}

static void *needs_held(void *arg)
{
    if (aco_mutex_lock_at(&held, "table:2") == 0)
        aco_mutex_unlock(&held);
    return arg;
}

/* Ends a group with a member that needs what it has. */
static void *joins_held(void *arg)
{
    CHECK_EQ(aco_mutex_lock(&held), 0);
    CHECK_EQ(aco_group_begin(&family, ACO_KEEP_GOING), 0);
    CHECK(aco_group_spawn(&family, needs_held, NULL, NULL) != NULL);
    aco_group_end_at(&family, "table:3");
    aco_mutex_unlock(&held);
    return arg;
}

/* These are not stuck: a deadline ends the wait; the holder sleeps; anybody may set an event. */
static void *waits_with_limit(void *arg)
{
    if (aco_mutex_lock_until_at(&left, aco_after(PATIENCE_S * ACO_SECOND), "fine:1") == 0)
        aco_mutex_unlock(&left);
    return arg;
}

static void *sleeps_with_lock(void *lock)
{
    CHECK_EQ(aco_mutex_lock(lock), 0);
    CHECK_EQ(aco_sleep(12 * limit), 0);
    CHECK_EQ(aco_mutex_unlock(lock), 0);
    return lock;
}

static void *waits_for_sleeper(void *lock)
{
    CHECK_EQ(aco_mutex_lock_at(lock, "fine:2"), 0);
    CHECK_EQ(aco_mutex_unlock(lock), 0);
    return lock;
}

static void *waits_for_event(void *arg)
{
    CHECK_EQ(aco_event_wait_at(&all_over, "fine:3"), 0);
    return arg;
}

static void *dines(void *arg)
{
    aco_mutex_t other = ACO_MUTEX_INIT;
    aco_group_t group;
    off_t bytes = captured_bytes();
    int64_t end = aco_after(PATIENCE_S * ACO_SECOND);
    CHECK_EQ(aco_group_begin(&group, ACO_KEEP_GOING), 0);
    aco_group_spawn(&group, waits_for_event, NULL, NULL);
    aco_group_spawn(&group, sleeps_with_lock, &other, NULL);
    aco_group_spawn(&group, waits_for_sleeper, &other, NULL);
    CHECK_EQ(aco_group_begin((aco_group_t *)arg, ACO_KEEP_GOING), 0);
    aco_group_spawn(arg, locks_left_first, NULL, NULL);
    aco_group_spawn(arg, locks_left_first, &left, NULL);
    aco_group_spawn(arg, joins_held, NULL, NULL);
    aco_task_yield();
    aco_group_spawn(&group, waits_with_limit, NULL, NULL);
    do
        CHECK_EQ(aco_sleep(limit), 0); /* the loop goes on, and is idle most of the time */
    while (captured_bytes() == bytes && aco_now() < end);
    CHECK_EQ(aco_sleep(4 * limit), 0); /* it is said once */
    CHECK_EQ(aco_scope_cancel(&((aco_group_t *)arg)->scope), 0);
    aco_group_end(arg);
    aco_event_set(&all_over);
    aco_group_end(&group);
    return arg;
}

static void test_stuck(void)
{
    static aco_group_t table;
    CHECK_EQ(aco_watchdog(limit), 0);
    capture();
    spawn_detached(dines, &table);
    run();
    release();
    CHECK_EQ(count("acorn: watchdog: deadlock: 4 task(s) wait for each other, while others go on\n"), 1);
    CHECK_EQ(count("deadlock:"), 1);
    CHECK_EQ(count("waits at table:1 for mutex"), 2);
    CHECK_EQ(count("waits at table:2 for mutex"), 1);
    CHECK_EQ(count("waits at table:3 for 1 member(s)"), 1);
    CHECK_EQ(count("fine:"), 0);
    CHECK_EQ(aco_watchdog(0), 0);
}

/* ---- Threads, fork ---- */

static int64_t thread_gap;

static void *well_behaved_thread(void *arg)
{
    longest_gap = 0;
    while (!__atomic_load_n((int *)arg, __ATOMIC_ACQUIRE)) {
        spawn_detached(yields, NULL);
        run();
    }
    thread_gap = longest_gap;
    return NULL;
}

/* Another thread's task may be named, too. */
static void *hogs_until_it_is_named(void *name)
{
    int64_t end = aco_after(PATIENCE_S * ACO_SECOND);
    while (!strstr(look_at_captured(), name) && aco_now() < end) {
    }
    return name;
}

static void *hogging_thread(void *name)
{
    spawn_as(hogs_until_it_is_named, name, ACO_DETACHED, name);
    run();
    return NULL;
}

static void test_threads(void)
{
    pthread_t a, b, c;
    int is_over = 0;
    CHECK_EQ(aco_watchdog(limit), 0);
    capture();
    CHECK_EQ(pthread_create(&a, NULL, well_behaved_thread, &is_over), 0);
    CHECK_EQ(pthread_create(&b, NULL, hogging_thread, (void *)(uintptr_t)"Bob"), 0);
    CHECK_EQ(pthread_join(b, NULL), 0);
    CHECK_EQ(pthread_create(&c, NULL, hogging_thread, (void *)(uintptr_t)"Carol"), 0);
    CHECK_EQ(pthread_join(c, NULL), 0);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    CHECK_EQ(pthread_join(a, NULL), 0);
    release();
    CHECK_EQ(count("\"Bob\""), 1);
    CHECK_EQ(count("\"Carol\""), 1);
    CHECK(count("acorn: watchdog: coroutine ") == 2 || thread_gap > limit / 2);
    CHECK_EQ(aco_watchdog(0), 0);
}

static void test_fork(void)
{
    int status = -1;
    pid_t child;
    CHECK_EQ(aco_watchdog(limit), 0);
    spawn_detached(tries_backtrace, &status);
    run();
    capture();
    child = fork();
    CHECK(child >= 0);
    if (!child) {
        spawn_as(spins, NULL, ACO_DETACHED, "nobody");
        run();
        if (!UNDER_TSAN) { /* which allows a child no threads */
            CHECK_EQ(aco_watchdog(limit), 0);
            spawn_as(hogs, NULL, ACO_DETACHED, "child");
            run();
        }
        _exit(check_failures != 0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    spawn_as(hogs, NULL, ACO_DETACHED, "parent");
    run();
    release();
    CHECK_EQ(count("\"nobody\""), 0);
    CHECK_EQ(count("\"child\""), !UNDER_TSAN);
    CHECK_EQ(count("\"parent\""), 1);
    CHECK_EQ(aco_watchdog(0), 0);
}

/* ---- The default and the environment: in a process of its own ---- */

/* Without a thread of the watchdog nobody will name it. Else time passes, the kernel's: it sleeps with the thread. */
static void *hogs_until_named(void *ms)
{
    int64_t end = aco_after((intptr_t)ms * ACO_MILLISECOND);
    while ((UNDER_TSAN || thread_count() > 1) && captured_bytes() == 0 && aco_now() < end)
        usleep(1000);
    return NULL;
}

/* Returns 0 if the watchdog has spoken. */
static int be_hog(const char *ms)
{
    capture();
    spawn_detached(hogs_until_named, (void *)(intptr_t)atoi(ms));
    run();
    release();
    return count("acorn: watchdog: coroutine ") != 1;
}

static pid_t start_hog(const char *wanted, const char *ms)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    if (wanted)
        setenv("ACO_WATCHDOG", wanted, 1);
    else
        unsetenv("ACO_WATCHDOG");
    execl("/proc/self/exe", "scheduler_watchdog", "hog", ms, (char *)NULL);
    _exit(2);
}

static int result_of(pid_t child)
{
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

int main(int argc, char **argv)
{
    enum { IN_DEBUG = ACO_DEBUG };
    pid_t at_default, off, on, wrong, huge[3];
    if (argc == 3)
        return be_hog(argv[2]);
    at_default = start_hog(NULL, IN_DEBUG ? "30000" : "1500"); /* these run meanwhile */
    off = start_hog("0", "1500");
    on = start_hog("20", "30000");
    wrong = start_hog("often", "100");
    for (int i = 0; i < 3; i++) /* too large for nanoseconds; for 32 bits, of which 20 are left; for longs */
        huge[i] = start_hog(((const char *const[]){"9223372036855", "4294967316", "99999999999999999999"})[i], "500");
    test_hogs();
    test_well_behaved();
    test_between_tasks();
    test_bounds();
    test_no_signal();
    test_signal_was_programs();
    test_process_signals();
    test_stuck();
    test_threads();
    test_fork();
    CHECK_EQ(result_of(on), 0);
    CHECK_EQ(result_of(wrong), 1);
    CHECK_EQ(result_of(at_default), !IN_DEBUG);
    CHECK_EQ(result_of(off), 1);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(result_of(huge[i]), 1);
    return check_result("scheduler_watchdog");
}
