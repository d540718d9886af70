/* Who is not of a set of threads may still use it when its last task ends: a call that joins it, submits to it or
 * cancels it. It must not be freed under them, nor under its thread for signals. In simulations, where a thread that is
 * slow at the wrong place lets all others go on until they wait. */
#include "replace.h" /* first */

#include "threads_tests.h"

#include <signal.h>

static void *watched_set; /* whoever frees it notes whether signals are blocked */
static int is_still_watched = -1, is_over;
static __thread int is_refused; /* the thread gets no memory, and that only when the set has nothing else to do */
enum { QUICK, SLOW_AFTER_UNLOCKING, SLOW_AFTER_POSTING };
static __thread int pace; /* for once */

static int fails(void)
{
    while (is_refused && !load(&is_over))
        let_others_go_on();
    return is_refused;
}

#include "failing_allocator.h"

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
    usleep(20000); /* of virtual time */
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

static void *leaf(void *arg)
{
    return aco_sleep(1000) == 0 ? arg : ACO_ERROR;
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
    CHECK_EQ(pace, QUICK);
    return NULL;
}

static void *end_when_told(void *thread)
{
    aco_mt_group_t group;
    (void)note_set(NULL);
    begin(&group, ACO_KEEP_GOING);
    CHECK_EQ(pthread_create(thread, NULL, submit_slowly, &group), 0);
    UNTIL(load(&is_told));
    CHECK_EQ(aco_mt_group_end(&group), 0);
    return NULL;
}

static void *cancel_slowly(void *threads)
{
    pace = SLOW_AFTER_POSTING;
    CHECK_EQ(aco_threads_cancel(threads), 0);
    CHECK_EQ(pace, QUICK);
    return NULL;
}

static void *end_when_cancelled(void *thread)
{
    (void)note_set(NULL);
    CHECK_EQ(pthread_create(thread, NULL, cancel_slowly, aco_threads_current()), 0);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    return NULL;
}

static void run_all(void)
{
    REPLACE(pthread_mutex_unlock);
    test_watcher_ends_first();
    test_set_outlives_calls(1, leave_to_a_join);
    test_set_outlives_calls(2, end_when_told);
    test_set_outlives_calls(2, end_when_cancelled);
}

int main(void)
{
    const aco_allocator_t allocator = {map, unmap, allocate, release, NULL};
    CHECK_EQ(aco_set_allocator(&allocator), 0);
    run_all_tests(run_all);
    return check_result("sim_set_outlives");
}
