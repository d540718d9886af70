/* What conditions, reader-writer locks, wait groups and once between threads (include/aco/mt.h) promise: whom a
 * broadcast or a signal wakes and in which order, who waits behind whom. With an argument, it lasts longer. */
#define _GNU_SOURCE
#ifndef IN_SIMULATION
#include "asleep.h"
#endif
#include "threads_mt.h"

/* ---- Conditions: a broadcast is no convoy ---- */

static int waiting_now, first_round, last_round, cond_woken;

/* Without others in between, those of the broadcasting thread have the mutex in one round of its queue. */
static void *wait_for_broadcast(void *arg)
{
    CHECK_EQ(aco_mt_mutex_lock(&mutex), 0);
    add(&waiting_now, 1);
    CHECK_EQ(aco_mt_cond_wait(&tokens_added, &mutex), 0);
    CHECK_EQ(inside++, 0);
    cond_woken++;
    if (aco_threads_index() == 0) {
        first_round = first_round ? first_round : round_now;
        last_round = round_now;
    }
    CHECK_EQ(--inside, 0);
    CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
    return arg;
}

static void *conditions(void *arg)
{
    enum { WAITERS = 20 };
    aco_mt_group_t group;
    pthread_t plain;
    FAILS_WITH(aco_mt_cond_wait(&tokens_added, &mutex), EPERM);
    CHECK_EQ(aco_mt_mutex_lock(&mutex), 0);
    FAILS_WITH(aco_mt_cond_wait_until(&tokens_added, &mutex, aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    FAILS_WITH(aco_mt_mutex_try_lock(&mutex), EBUSY);
    CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);

    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < WAITERS; i++) {
        submit_to(i % 2, &group, wait_for_broadcast, NULL); /* the threads take turns in the queue */
        UNTIL(load(&waiting_now) == i + 1);
    }
    CHECK_EQ(pthread_create(&plain, NULL, wait_for_broadcast, NULL), 0);
    UNTIL(load(&waiting_now) == WAITERS + 1);
    is_round_over = 0;
    CHECK_EQ(aco_detach(aco_spawn(count_rounds, NULL, NULL)), 0);
    aco_task_yield();
    CHECK_EQ(aco_mt_mutex_lock(&mutex), 0);
    aco_mt_cond_broadcast(&tokens_added);
    aco_task_yield();
    CHECK_EQ(cond_woken, 0);
    CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    is_round_over = 1;
    CHECK_EQ(pthread_join(plain, NULL), 0);
    CHECK_EQ(cond_woken, WAITERS + 1);
    CHECK(IS_SIMULATED || (first_round > 0 && last_round - first_round <= 1)); /* a simulation has no rounds */
    return arg;
}

/* A signal wakes the one that has waited longest, whichever thread it is on. */
static int order[8], ordered;

static void *note_order(void *arg)
{
    CHECK_EQ(aco_mt_mutex_lock(&mutex), 0);
    add(&waiting_now, 1);
    CHECK_EQ(aco_mt_cond_wait(&tokens_added, &mutex), 0);
    order[ordered++] = (int)(intptr_t)arg;
    CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
    return NULL;
}

static void *signals(void *arg)
{
    aco_mt_group_t group;
    waiting_now = 0;
    begin(&group, ACO_KEEP_GOING);
    for (intptr_t i = 0; i < 8; i++) {
        submit_to((int)i % 3, &group, note_order, (void *)i);
        UNTIL(load(&waiting_now) == i + 1);
    }
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(aco_mt_mutex_lock(&mutex), 0);
        CHECK_EQ(ordered, i);
        aco_mt_cond_signal(&tokens_added);
        CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0); /* hands it to the one that was woken */
    }
    CHECK_EQ(aco_mt_group_end(&group), 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(order[i], i);
    return arg;
}

/* Without deadlines: a signal that is lost hangs the test. Each waits for its turn at a condition of its own. */
enum { PLAYERS = 4 };
static aco_mt_cond_t turn_of[PLAYERS];
static int turn;

static void *take_turns(void *arg)
{
    int me = (int)(intptr_t)arg, next = (me + 1) % PLAYERS;
    for (int i = 0; i < rounds; i++) {
        CHECK_EQ(aco_mt_mutex_lock(&mutex), 0);
        while (turn != me)
            CHECK_EQ(aco_mt_cond_wait(&turn_of[me], &mutex), 0);
        CHECK_EQ(inside++, 0);
        turn = next;
        if (i % 3)
            aco_mt_cond_signal(&turn_of[next]);
        CHECK_EQ(--inside, 0);
        CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
        if (i % 3 == 0) /* also with the mutex unlocked */
            aco_mt_cond_broadcast(&turn_of[next]);
    }
    return NULL;
}

static void *turns(void *arg)
{
    aco_mt_group_t group;
    pthread_t plain;
    begin(&group, ACO_KEEP_GOING);
    CHECK_EQ(pthread_create(&plain, NULL, take_turns, NULL), 0);
    for (intptr_t i = 1; i < PLAYERS; i++)
        submit_to((int)i % 3, &group, take_turns, (void *)i);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK_EQ(pthread_join(plain, NULL), 0);
    return arg;
}

/* A broadcast whose tasks wait with the mutex locked: the others wait on. */
static void *hold_mutex(void *arg)
{
    CHECK_EQ(aco_mt_mutex_lock(&mutex), 0);
    CHECK_EQ(aco_mt_cond_wait(&tokens_added, &mutex), 0);
    CHECK_EQ(inside++, 0);
    aco_task_yield();
    aco_task_yield();
    CHECK_EQ(--inside, 0);
    CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
    return arg;
}

static void *holders(void *arg)
{
    enum { HOLDERS = 8 };
    aco_t *tasks[HOLDERS];
    for (int i = 0; i < HOLDERS; i++)
        tasks[i] = aco_spawn(hold_mutex, NULL, NULL);
    let_others_wait();
    aco_mt_cond_broadcast(&tokens_added); /* the mutex is free */
    for (int i = 0; i < HOLDERS; i++)
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
    return arg;
}

/* ---- Reader-writer locks, wait groups, once ---- */

static int has_lock;

static void *read_until(void *arg)
{
    int result = aco_mt_rwlock_rdlock_until(&rwlock, aco_after(30 * ACO_SECOND));
    CHECK_EQ(result, 0);
    add(&has_lock, 1);
    CHECK_EQ(aco_mt_rwlock_unlock(&rwlock), 0);
    return arg;
}

static void *write_too_late(void *arg)
{
    FAILS_WITH(aco_mt_rwlock_wrlock_until(&rwlock, aco_after(20 * ACO_MILLISECOND)), ETIMEDOUT);
    return arg;
}

/* A reader waits behind a writer that waits, and has the lock when the writer gives up. */
static void *fairness(void *arg)
{
    aco_t *writer, *reader;
    CHECK_EQ(aco_mt_rwlock_rdlock(&rwlock), 0);
    CHECK_EQ(aco_mt_rwlock_try_rdlock(&rwlock), 0);
    writer = aco_spawn(write_too_late, NULL, NULL);
    let_others_wait();
    FAILS_WITH(aco_mt_rwlock_try_rdlock(&rwlock), EBUSY);
    reader = aco_spawn(read_until, NULL, NULL);
    let_others_wait();
    CHECK_EQ(has_lock, 0);
    CHECK_EQ(aco_join(writer, NULL), 0);
    CHECK_EQ(aco_join(reader, NULL), 0);
    CHECK_EQ(has_lock, 1);
    CHECK_EQ(aco_mt_rwlock_unlock(&rwlock), 0);
    CHECK_EQ(aco_mt_rwlock_unlock(&rwlock), 0);
    return arg;
}

static aco_mt_wait_group_t wait_group;
static int worked;

static void *work(void *arg)
{
    add(&worked, 1);
    CHECK_EQ(aco_mt_wait_group_done(&wait_group), 0);
    return arg;
}

static void *wait_for_work(void *arg)
{
    CHECK_EQ(aco_mt_wait_group_wait(&wait_group), 0);
    CHECK_EQ(load(&worked), 40);
    return arg;
}

static void *wait_groups(void *arg)
{
    aco_mt_group_t group;
    pthread_t plain;
    CHECK_EQ(aco_mt_wait_group_wait(&wait_group), 0);
    CHECK_EQ(aco_mt_wait_group_add(&wait_group, 40), 0);
    FAILS_WITH(aco_mt_wait_group_add(&wait_group, -41), ERANGE);
    FAILS_WITH(aco_mt_wait_group_wait_until(&wait_group, aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    CHECK_EQ(pthread_create(&plain, NULL, wait_for_work, NULL), 0);
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 5; i++)
        submit(&group, wait_for_work, NULL);
    for (int i = 0; i < 40; i++)
        submit(&group, work, NULL);
    (void)wait_for_work(NULL);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK_EQ(pthread_join(plain, NULL), 0);
    FAILS_WITH(aco_mt_wait_group_done(&wait_group), ERANGE);
    return arg;
}

static aco_mt_once_t once;
static int calls, in_call, failed_calls, ended;

static int fail_three_times(void *arg)
{
    CHECK_EQ(in_call++, 0);
    FAILS_WITH(aco_mt_once(&once, fail_three_times, arg), EDEADLK);
    pause_sometimes(0);
    CHECK_EQ(--in_call, 0);
    errno = ERANGE;
    return ++calls > 3 ? 0 : -1;
}

static void *call_once(void *arg)
{
    while (aco_mt_once(&once, fail_three_times, NULL) != 0) {
        CHECK_EQ(errno, ERANGE);
        add(&failed_calls, 1);
        if (arg) /* one that waits runs its own */
            break;
    }
    return NULL;
}

static int wait_inside(void *arg)
{
    (void)arg;
    UNTIL(load(&ended) == 1);
    return 0;
}

static void *call_too_late(void *arg)
{
    FAILS_WITH(aco_mt_once_until(arg, wait_inside, NULL, aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    add(&ended, 1);
    return NULL;
}

static void *calls_once(void *arg)
{
    aco_mt_group_t group;
    aco_mt_once_t slow = {0};
    aco_t *tasks[4];
    pthread_t plain[2];
    for (int i = 0; i < 4; i++)
        tasks[i] = aco_spawn(call_once, &slow, NULL);
    for (int i = 0; i < 4; i++) /* the others wait while the first runs its function */
        CHECK_EQ(aco_join(tasks[i], NULL), 0);
    CHECK_EQ(calls, 4);
    CHECK_EQ(failed_calls, 3);
    memset(&once, 0, sizeof once);
    calls = failed_calls = 0;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&plain[i], NULL, call_once, NULL), 0);
    for (int i = 0; i < 20; i++)
        submit_to(i % THREADS_HERE, &group, call_once, NULL);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(plain[i], NULL), 0);
    CHECK_EQ(calls, 4);
    CHECK_EQ(failed_calls, 3);
    CHECK(once.done);
    ended = 0;
    CHECK_EQ(aco_detach(aco_spawn(call_too_late, &slow, NULL)), 0);
    CHECK_EQ(aco_mt_once(&slow, wait_inside, NULL), 0);
    return arg;
}

#ifndef IN_SIMULATION
/* ---- pthread_cancel() ---- */

static pid_t waiting_thread; /* atomic; 0: not yet */

static void *lock_and_unlock(void *arg)
{
    __atomic_store_n(&waiting_thread, this_thread(), __ATOMIC_RELEASE);
    CHECK_EQ(aco_mt_mutex_lock(arg), 0);
    CHECK_EQ(aco_mt_mutex_unlock(arg), 0);
    return arg;
}

/* A thread that was cancelled while it waited would leave its place in the queue. */
static void cancel_waiting_thread(void)
{
    aco_mt_mutex_t held = {0};
    pthread_t thread;
    CHECK_EQ(aco_mt_mutex_lock(&held), 0);
    CHECK_EQ(pthread_create(&thread, NULL, lock_and_unlock, &held), 0);
    while (!load(&waiting_thread) || !is_in_a_wait(waiting_thread))
        sched_yield();
    CHECK_EQ(pthread_cancel(thread), 0);
    CHECK_EQ(aco_mt_mutex_unlock(&held), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(aco_mt_mutex_try_lock(&held), 0);
}
#endif

static void run_all(void)
{
    run_on(2, conditions, NULL);
    run_on(3, signals, NULL);
    run_on(3, turns, NULL);
    run_on(1, holders, NULL);
    run_on(1, fairness, NULL);
    run_on(THREADS_HERE, wait_groups, NULL);
    run_on(THREADS_HERE, calls_once, NULL);
#ifndef IN_SIMULATION
    cancel_waiting_thread();
#endif
}

int main(int argc, char **argv)
{
    (void)argv;
    rounds *= argc > 1 ? 100 : 1;
    run_all_tests(run_all);
    return check_result("threads_sync");
}
