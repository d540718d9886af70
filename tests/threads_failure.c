/* What aco/threads.h does without memory or threads: each allocation of a program fails in turn, and from some on all
 * do; each thread cannot be made in turn. Nothing may hang; what fails says so. Nor may a set be freed under a thread
 * that is not of it. The library's own functions are wrapped by the linker's --wrap. */
#include "replace.h" /* first */

#include "threads_tests.h"

#include <aco/sync.h>

#include <signal.h>
#include <sys/wait.h>

static int calls, fail_at, fails_on; /* the nth allocation fails; with fails_on, all later ones too */
static int threads_made, fail_thread;
static void *watched_set;       /* whoever frees it notes whether signals are blocked */
static int is_still_watched = -1, is_over;
static __thread int is_refused; /* the thread gets no memory, and that only when the set has nothing else to do */
static __thread int is_refused_now; /* the same, at once */
static int refusals;
enum { QUICK, SLOW_AFTER_UNLOCKING, SLOW_AFTER_POSTING, SLOW_TO_TELL };
static __thread int pace; /* for once */

static int fails(void)
{
    int n = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED), at = __atomic_load_n(&fail_at, __ATOMIC_RELAXED);
    while (is_refused && !load(&is_over))
        usleep(1000);
    if (is_refused_now)
        add(&refusals, 1);
    return is_refused || is_refused_now || (at && (n == at || (n > at && fails_on)));
}

#include "failing_allocator.h"

REAL(pthread_create);
static int failing_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg)
{
    return ++threads_made == fail_thread ? EAGAIN : real_pthread_create(thread, attributes, fn, arg);
}

void __real_aco__service_free(void *p, size_t sz);
void __wrap_aco__service_free(void *p, size_t sz);
void __wrap_aco__service_free(void *p, size_t sz)
{
    sigset_t blocked;
    if (p && p == watched_set) {
        pthread_sigmask(SIG_SETMASK, NULL, &blocked);
        is_still_watched = sigismember(&blocked, SIGINT);
        memset(p, 0, sz); /* sanitizers see who still uses it */
    }
    __real_aco__service_free(p, sz);
}

static void dawdle(int when)
{
    if (pace != when)
        return;
    pace = QUICK;
    usleep(20000);
    CHECK_EQ(is_still_watched, -1);
}

REAL(pthread_mutex_unlock);
static int failing_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int error = real_pthread_mutex_unlock(mutex);
    dawdle(SLOW_AFTER_UNLOCKING);
    return error;
}

void __real_aco__threads_each(aco_threads_t *threads, void (*fn)(void *worker));
void __wrap_aco__threads_each(aco_threads_t *threads, void (*fn)(void *worker));
void __wrap_aco__threads_each(aco_threads_t *threads, void (*fn)(void *worker))
{
    __real_aco__threads_each(threads, fn);
    dawdle(SLOW_AFTER_POSTING);
}

static int roots, leaves;

static void *leaf(void *arg)
{
    add(&leaves, 1);
    return aco_sleep(1000) == 0 ? arg : ACO_ERROR;
}

/* Submits as much as it can, to all. What was taken is called, or has failed with ENOMEM. */
static void *inner(void *arg)
{
    aco_mt_group_t group;
    int n = 0, ended;
    if (aco_mt_group_begin(&group, ACO_KEEP_GOING) != 0)
        return ACO_ERROR;
    for (int i = 0; i < 100; i++)
        if (i % 10 ? aco_submit(&group, leaf, NULL, NULL) == 0 : aco_submit(&group, leaf, NULL, TO(i / 10 % 2)) == 0)
            n++;
        else
            CHECK_EQ(errno, ENOMEM);
    ended = aco_mt_group_end(&group);
    CHECK_EQ(ended, group.failed ? -1 : 0);
    if (ended != 0)
        CHECK_EQ(errno, ENOMEM);
    CHECK(group.failed <= (size_t)n);
    add(arg, n == 100 && ended == 0);
    return NULL;
}

static void *root(void *arg)
{
    aco_mt_group_t group;
    add(&roots, 1);
    if (aco_mt_group_begin(&group, ACO_KEEP_GOING) != 0)
        return ACO_ERROR;
    for (int i = 0; i < 3; i++)
        (void)aco_submit(&group, inner, arg, NULL);
    (void)aco_mt_group_end(&group);
    return NULL;
}

/* Whether anything failed. */
static int run_once(void)
{
    int whole = 0;
    roots = 0;
    errno = 0;
    if (aco_threads_run(2, root, &whole, NULL) != 0) {
        CHECK(errno == ENOMEM || errno == EAGAIN);
        return 1;
    }
    CHECK_EQ(roots, 2);
    return whole != 6;
}

static void *note_set(void *arg)
{
    watched_set = aco_threads_current();
    return arg;
}

static void test_watcher_ends_first(void)
{
    aco_threads_options_t options = {0};
    options.flags = ACO_THREADS_INTERRUPTIBLE;
    CHECK_EQ(aco_threads_run(1, note_set, NULL, &options), 0);
    CHECK_EQ(is_still_watched, 0);
    watched_set = NULL;
}

static int is_joining;

static void *join_without_memory(void *threads)
{
    is_refused = 1;
    add(&is_joining, 1);
    FAILS_WITH(aco_threads_join(threads, note_set, NULL), ENOMEM);
    is_refused = 0;
    return NULL;
}

static void *leave_to_a_join(void *arg)
{
    CHECK_EQ(pthread_create(arg, NULL, join_without_memory, aco_threads_current()), 0);
    (void)note_set(NULL);
    UNTIL(load(&is_joining));
    aco_sleep(5 * ACO_MILLISECOND);
    add(&is_over, 1);
    return NULL;
}

/* What another thread does last ends the set, which must not be freed under it. */
static void test_set_outlives_calls(int threads, aco_function_t first)
{
    pthread_t thread;
    is_still_watched = -1;
    run_on(threads, first, &thread);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(is_still_watched, 0);
    watched_set = NULL;
}

/* ---- A thread that is not of the set ends it, and is slow ---- */

static int is_told;

static void *tell(void *arg)
{
    add(&is_told, 1);
    return arg;
}

static void *submit_slowly(void *group)
{
    submit(group, leaf, NULL); /* now it has memory for the next */
    pace = SLOW_AFTER_UNLOCKING;
    submit(group, tell, NULL);
    return NULL;
}

static void *end_when_told(void *thread)
{
    aco_mt_group_t group;
    (void)note_set(NULL);
    begin(&group, ACO_KEEP_GOING);
    CHECK_EQ(pthread_create(thread, NULL, submit_slowly, &group), 0);
    while (!load(&is_told))
        aco_task_yield();
    CHECK_EQ(aco_mt_group_end(&group), 0);
    return NULL;
}

static void *cancel_slowly(void *threads)
{
    pace = SLOW_AFTER_POSTING;
    CHECK_EQ(aco_threads_cancel(threads), 0);
    return NULL;
}

static void *end_when_cancelled(void *thread)
{
    (void)note_set(NULL);
    CHECK_EQ(pthread_create(thread, NULL, cancel_slowly, aco_threads_current()), 0);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    return NULL;
}

/* ---- A thread forks while another one is about to tell that a member has ended ---- */

static int is_awaited, is_telling, has_forked;

void __real_aco__answer_tell(aco__answer_t *answer);
void __wrap_aco__answer_tell(aco__answer_t *answer);
void __wrap_aco__answer_tell(aco__answer_t *answer)
{
    if (pace == SLOW_TO_TELL) {
        pace = QUICK;
        add(&is_telling, 1);
        while (!load(&has_forked))
            usleep(1000);
    }
    __real_aco__answer_tell(answer);
}

static void *tell_slowly(void *arg)
{
    UNTIL(load(&is_awaited)); /* else there is nobody to tell */
    pace = SLOW_TO_TELL;
    return arg;
}

static pid_t forked = -1;

static void *fork_when_it_tells(void *arg)
{
    add(&is_awaited, 1); /* this task runs once the other one waits in aco_mt_group_end() */
    UNTIL(load(&is_telling));
    forked = fork();
    if (forked == 0)
        alarm(30);
    add(&has_forked, 1);
    return arg;
}

static void *end_while_forking(void *arg)
{
    aco_mt_group_t group;
    int status = -1;
    aco_t *task = aco_spawn(fork_when_it_tells, NULL, NULL);
    begin(&group, ACO_KEEP_GOING);
    submit_to(1, &group, tell_slowly, NULL);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    if (forked == 0)
        _exit(check_failures != 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    CHECK(forked > 0);
    CHECK_EQ(waitpid(forked, &status, 0), forked);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return arg;
}

/* ---- Work for one thread that gets no stacks ---- */

static int is_full, looks, ran_on = -1;

static void *await(void *event)
{
    CHECK_EQ(aco_event_wait(event), 0);
    return NULL;
}

static void *note_thread(void *arg)
{
    __atomic_store_n((int *)arg, aco_threads_index(), __ATOMIC_RELEASE);
    return NULL;
}

/* Until it has been tried in vain to start what was submitted, and the other thread has looked for work. */
static void *use_all_stacks(void *arg)
{
    aco_event_t event = ACO_EVENT_INIT;
    aco_t *task;
    is_refused_now = 1;
    while ((task = aco_spawn(await, &event, NULL)) != NULL) /* what is cached */
        CHECK_EQ(aco_detach(task), 0);
    CHECK_EQ(errno, ENOMEM);
    refusals = 0;
    add(&is_full, 1);
    while (load(&ran_on) < 0 && (load(&refusals) < 3 || load(&looks) < 20))
        aco_task_yield();
    is_refused_now = 0;
    aco_event_set(&event);
    return arg;
}

static void *send_without_stacks(void *arg)
{
    aco_mt_group_t group;
    begin(&group, ACO_KEEP_GOING);
    submit_to(1, &group, use_all_stacks, NULL);
    UNTIL(load(&is_full));
    submit_to(1, &group, note_thread, &ran_on);
    for (; load(&ran_on) < 0 && looks < 20; add(&looks, 1))
        aco_sleep(ACO_MILLISECOND / 10);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK_EQ(ran_on, 1);
    return arg;
}

int main(void)
{
    const aco_allocator_t allocator = {map, unmap, allocate, release, NULL};
    REPLACE(pthread_create);
    REPLACE(pthread_mutex_unlock);
    CHECK_EQ(aco_set_allocator(&allocator), 0);
    test_watcher_ends_first();
    test_set_outlives_calls(1, leave_to_a_join);
    test_set_outlives_calls(2, end_when_told);
    test_set_outlives_calls(2, end_when_cancelled);
    if (!UNDER_TSAN) /* does not follow a process with fibers through fork() */
        run_on(2, end_while_forking, NULL);
    run_on(2, send_without_stacks, NULL);
    for (fails_on = 0; fails_on < 2; fails_on++)
        for (int at = 1, step = 1; at < 2000; at += step, step += step < 16 && at > 60) {
            calls = 0;
            __atomic_store_n(&fail_at, at, __ATOMIC_RELAXED);
            run_once();
            __atomic_store_n(&fail_at, 0, __ATOMIC_RELAXED);
            if (calls < at)
                break;
        }
    for (fail_thread = 1; fail_thread <= 3; fail_thread++) {
        threads_made = roots = 0;
        FAILS_WITH(aco_threads_run(4, root, &roots, NULL), EAGAIN);
        CHECK_EQ(roots, 0);
    }
    fail_thread = 0;
    CHECK_EQ(run_once(), 0);
    CHECK(leaves > 0);
    return check_result("threads_failure");
}
