/* Locks of hooked tasks (aco/hook.h): to its tasks a thread's mutexes and read-write locks answer what libc answers
 * threads. */
#define _GNU_SOURCE
#include <aco/offload.h>
#include <aco/scope.h>
#include "hook_tests.h"
#include "proc.h"
#include "sanitizers.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void make_mutex(int type, int robust)
{
    pthread_mutexattr_t attributes;
    CHECK_EQ(pthread_mutexattr_init(&attributes), 0);
    CHECK_EQ(pthread_mutexattr_settype(&attributes, type), 0);
    CHECK_EQ(pthread_mutexattr_setrobust(&attributes, robust), 0);
    CHECK_EQ(pthread_mutex_init(&mutex, &attributes), 0);
    CHECK_EQ(pthread_mutexattr_destroy(&attributes), 0);
}

static int lock_for(int64_t ns)
{
    struct timespec until;
    CHECK_EQ(clock_gettime(CLOCK_REALTIME, &until), 0);
    ns += until.tv_nsec;
    until.tv_sec += (time_t)(ns / ACO_SECOND);
    until.tv_nsec = (long)(ns % ACO_SECOND);
    return pthread_mutex_timedlock(&mutex, &until);
}

/* ---- Which task holds it ---- */

static void *finds_it_free(void *unused)
{
    begin();
    CHECK_EQ(pthread_mutex_trylock(&mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    return unused;
}

static void *finds_it_locked(void *unused)
{
    begin();
    CHECK_EQ(pthread_mutex_trylock(&mutex), EBUSY);
    CHECK_EQ(lock_for(1000), ETIMEDOUT);
    return unused;
}

static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};

/* A hooked task locks, and unlocks when it is not hooked any more. */
static void *test_unlock_unhooked(void *unused)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        make_mutex(types[i], PTHREAD_MUTEX_STALLED);
        begin();
        CHECK_EQ(pthread_mutex_lock(&mutex), 0);
        CHECK_EQ(aco_hook_end(), 0);
        join(beside(finds_it_locked, NULL));
        CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
        join(beside(finds_it_free, NULL));
        CHECK_EQ(pthread_mutex_destroy(&mutex), 0);
    }
    return unused;
}

/* Locks of the recursive mutex while the task is hooked, and while it is not, add up. */
static void *test_recursive_depth(void *unused)
{
    make_mutex(PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED);
    begin();
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(aco_hook_end(), 0);
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    for (int i = 0; i < 3; i++) {
        join(beside(finds_it_locked, NULL));
        CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    }
    join(beside(finds_it_free, NULL));
    CHECK_EQ(pthread_mutex_destroy(&mutex), 0);
    return unused;
}

static void *test_relock(void *unused)
{
    make_mutex(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED);
    begin();
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_mutex_lock(&mutex), EDEADLK);
    CHECK_EQ(lock_for(ACO_SECOND), EDEADLK);
    CHECK_EQ(pthread_mutex_trylock(&mutex), EBUSY);
    join(beside(finds_it_locked, NULL));
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    join(beside(finds_it_free, NULL));
    CHECK_EQ(pthread_mutex_destroy(&mutex), 0);
    return unused;
}

/* ---- Many locks at once, in threads that end ---- */

enum { LOCKS = UNDER_TSAN ? 50 : 1000 /* TSan knows 64 */, FIRST_THREADS = 2, MORE_THREADS = 20 };

static void *finds_all_locked(void *arg)
{
    pthread_mutex_t *locks = arg;
    begin();
    for (int i = 0; i < LOCKS; i++)
        CHECK_EQ(pthread_mutex_trylock(&locks[i]), EBUSY);
    return NULL;
}

static void *holds_many(void *unused)
{
    static const pthread_mutex_t free_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    pthread_mutex_t *locks = malloc(LOCKS * sizeof *locks);
    begin();
    for (int i = 0; i < LOCKS; i++) {
        locks[i] = free_lock;
        CHECK_EQ(pthread_mutex_lock(&locks[i]), 0);
    }
    join(beside(finds_all_locked, locks));
    for (int i = 0; i < LOCKS; i++)
        CHECK_EQ(pthread_mutex_unlock(&locks[i]), 0);
    free(locks);
    return unused;
}

static void *runs_a_holder(void *unused)
{
    run_task(holds_many, NULL);
    return unused;
}

static void run_holders(int count)
{
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, runs_a_holder, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
}

/* What is noted of locks is freed with the thread. */
static void *test_many_locks(void *unused)
{
    size_t before;
    run_holders(FIRST_THREADS);
    before = proc_number("/proc/self/statm");
    run_holders(MORE_THREADS);
    if (!UNDER_ASAN && !UNDER_TSAN) /* they keep memory of threads */
        CHECK(proc_number("/proc/self/statm") < before + MORE_THREADS);
    return unused;
}

static void *write_locks(void *order)
{
    begin();
    CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
    CHECK_EQ(*(int *)order, 1);
    CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
    return NULL;
}

static void *test_relock_of_writer(void *unused)
{
    int order = 0;
    aco_t *other;
    begin();
    CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
    CHECK_EQ(pthread_rwlock_wrlock(&rwlock), EDEADLK);
    CHECK_EQ(pthread_rwlock_rdlock(&rwlock), EDEADLK);
    other = beside(write_locks, &order);
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    order = 1;
    CHECK_EQ(aco_hook_end(), 0);
    CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
    join(other);
    return unused;
}

/* ---- A robust mutex whose holder has died ---- */

static void *dies_with_it(void *unused)
{
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    return unused;
}

static void *test_owner_dead(void *unused)
{
    begin();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        pthread_t thread;
        make_mutex(types[i], PTHREAD_MUTEX_ROBUST);
        CHECK_EQ(pthread_create(&thread, NULL, dies_with_it, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(pthread_mutex_lock(&mutex), EOWNERDEAD);
        join(beside(finds_it_locked, NULL));
        CHECK_EQ(pthread_mutex_consistent(&mutex), 0);
        join(beside(finds_it_locked, NULL));
        CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
        join(beside(finds_it_free, NULL));
        CHECK_EQ(pthread_mutex_destroy(&mutex), 0);
    }
    return unused;
}

/* ---- Waits ---- */

static void *is_woken_later(void *is_over)
{
    CHECK_EQ(aco_sleep(28 * ACO_MILLISECOND), 0);
    CHECK(*(int *)is_over);
    return NULL;
}

static void *wants_it_in_time(void *is_over)
{
    begin();
    CHECK_EQ(lock_for(23500 * ACO_MICROSECOND), ETIMEDOUT);
    *(int *)is_over = 1;
    return NULL;
}

/* The wait ends at its deadline, not at the next look at the lock. The other task's time, which begins later, ends
 * later: however late the thread is, that task runs after the one that wants the lock. */
static void *test_deadline(void *unused)
{
    int is_over = 0;
    aco_t *wants, *later;
    make_mutex(PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED);
    begin();
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    wants = beside(wants_it_in_time, &is_over);
    later = beside(is_woken_later, &is_over);
    join(wants);
    join(later);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    CHECK_EQ(pthread_mutex_destroy(&mutex), 0);
    return unused;
}

static void *wants_it_inside(void *result)
{
    *(int *)result = lock_for(ACO_MILLISECOND);
    return NULL;
}

static void *cannot_wait(void *unused)
{
    aco_options_t options = {0};
    aco_t *inner;
    uint64_t before;
    int result = 0;
    options.stack = aco_share_stack_new(0);
    inner = aco_new(wants_it_inside, &result, &options);
    CHECK(inner != NULL);
    begin();
    before = count_blocked();
    (void)aco_resume(inner);
    CHECK_EQ(result, ETIMEDOUT);
    CHECK_EQ(count_blocked() - before, UNDER_ASAN ? 0 : 1);
    aco_destroy(inner);
    aco_share_stack_destroy(options.stack);
    return unused;
}

/* An inner coroutine on a share stack cannot wait: it blocks the thread, and that is counted. */
static void *test_cannot_wait(void *unused)
{
    make_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED);
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    join(beside(cannot_wait, NULL));
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    CHECK_EQ(pthread_mutex_destroy(&mutex), 0);
    return unused;
}

/* ---- A task that is not hooked ---- */

static pthread_rwlock_t shared_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t shared_mutexes[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                                            PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

static void *locks_unhooked(void *is_free)
{
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_mutex_trylock(&shared_mutexes[i]), EBUSY);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_mutex_lock(&shared_mutexes[i]), 0);
    CHECK_EQ(pthread_rwlock_rdlock(&shared_rwlock), 0);
    CHECK(*(int *)is_free);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_mutex_unlock(&shared_mutexes[i]), 0);
    CHECK_EQ(pthread_rwlock_unlock(&shared_rwlock), 0);
    return NULL;
}

/* It shares locks with a hooked task that waits while it has them: without a wait the thread would stop for ever. */
static void *test_unhooked_waits(void *unused)
{
    const struct timespec time = {0, 3000000};
    int is_free = 0;
    aco_t *other;
    begin();
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_mutex_lock(&shared_mutexes[i]), 0);
    CHECK_EQ(pthread_rwlock_wrlock(&shared_rwlock), 0);
    other = beside(locks_unhooked, &is_free);
    CHECK_EQ(nanosleep(&time, NULL), 0);
    is_free = 1;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_mutex_unlock(&shared_mutexes[i]), 0);
    CHECK_EQ(pthread_rwlock_unlock(&shared_rwlock), 0);
    join(other);
    return unused;
}

/* ---- Another thread's mutex ---- */

static pthread_mutex_t of_threads[2];
static pthread_barrier_t both_hold;

static void *wants_the_others(void *other)
{
    begin();
    CHECK_EQ(pthread_mutex_lock(other), 0);
    CHECK_EQ(pthread_mutex_unlock(other), 0);
    return NULL;
}

static void *holds_its_own(void *own)
{
    const struct timespec time = {0, 1000000};
    aco_t *other;
    begin();
    CHECK_EQ(pthread_mutex_lock(own), 0);
    (void)pthread_barrier_wait(&both_hold);
    other = beside(wants_the_others, own == &of_threads[0] ? &of_threads[1] : &of_threads[0]);
    CHECK_EQ(nanosleep(&time, NULL), 0);
    CHECK_EQ(pthread_mutex_unlock(own), 0);
    join(other);
    return NULL;
}

static void *runs_the_other(void *unused)
{
    run_task(holds_its_own, &of_threads[1]);
    return unused;
}

/* On each of two threads a task holds a mutex while it waits, and another wants the other thread's. No task wants two,
 * but if one blocked its thread, so that the holder there could not go on, none would ever get on. */
static void *test_across_threads(void *unused)
{
    CHECK_EQ(pthread_barrier_init(&both_hold, NULL, 2), 0);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        pthread_t thread;
        for (int k = 0; k < 2; k++) {
            make_mutex(types[i], PTHREAD_MUTEX_STALLED);
            of_threads[k] = mutex;
        }
        CHECK_EQ(pthread_create(&thread, NULL, runs_the_other, NULL), 0);
        join(beside(holds_its_own, &of_threads[0]));
        CHECK_EQ(pthread_join(thread, NULL), 0);
        for (int k = 0; k < 2; k++)
            CHECK_EQ(pthread_mutex_destroy(&of_threads[k]), 0);
    }
    CHECK_EQ(pthread_barrier_destroy(&both_hold), 0);
    return unused;
}

static pthread_mutex_t at_fork = PTHREAD_MUTEX_INITIALIZER;

static void lock_for_fork(void)
{
    CHECK_EQ(pthread_mutex_lock(&at_fork), 0);
}

static void unlock_after_fork(void)
{
    CHECK_EQ(pthread_mutex_unlock(&at_fork), 0);
}

static void *returns(void *unused)
{
    return unused;
}

static void *uses_pool_with_lock(void *unused)
{
    begin();
    CHECK_EQ(pthread_mutex_lock(&at_fork), 0);
    CHECK_EQ(usleep(1000), 0); /* the other task forks */
    CHECK_EQ(aco_offload(returns, NULL, NULL, NULL), 0);
    CHECK_EQ(pthread_mutex_unlock(&at_fork), 0);
    return unused;
}

/* A handler of fork() waits for a lock of another task, which needs the library's own before. */
static void *test_fork_waits(void *unused)
{
    aco_t *holder = beside(uses_pool_with_lock, NULL);
    int status;
    pid_t child;
    begin();
    aco_task_yield(); /* the holder locks */
    child = fork();
    if (child == 0)
        _exit(check_failures != 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    join(holder);
    return unused;
}

static const aco_function_t tests[] = {test_unlock_unhooked,  test_recursive_depth, test_relock,
                                       test_owner_dead,       test_relock_of_writer, test_deadline,
                                       test_cannot_wait,      test_many_locks,       test_unhooked_waits,
                                       test_across_threads,   test_fork_waits};

/* With an argument only that test runs. */
int main(int argc, char **argv)
{
    int first = argc > 1 ? atoi(argv[1]) : 0;
    alarm(60);
    CHECK_EQ(pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork), 0); /* before the first call */
    CHECK(aco_io_poll_fd() >= 0);
    run_tests(tests + first, argc > 1 ? 1 : sizeof tests / sizeof *tests, count_descriptors());
    return check_result("hook_locks");
}
