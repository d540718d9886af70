/* Locks and channels between threads (include/aco/mt.h): tasks of several schedulers, in sets and without, and
 * plain threads, on the same objects; deadlines and scopes that end waits while these are being served; when threads
 * spin before they sleep. threads_sync.c has what conditions, reader-writer locks, wait groups and once promise,
 * threads_select.c select. With an argument, all of it lasts longer. */
#define _GNU_SOURCE
#include "scheduler/spin.h"
#include "threads_mt.h"

#include "cancelled_at_random.h"

enum { TASKS = 4 };

static aco_mt_semaphore_t units = ACO_MT_SEMAPHORE_INIT(2);
static aco_mt_event_t event;
static aco_mt_mutex_t tokens_mutex;
static int tokens, made, used, in_tokens; /* under that mutex */
static int readers, writers;
static aco_mt_channel_t *channel, *answers;
static int in_units, counter, obtained, timed_out, sent, received;
static long sum_sent, sum_received;

/* A deadline that passes in about half of the waits. */
static int64_t soon(int i)
{
    return i % 3 ? ACO_FOREVER : aco_after(i % 7 * 1000);
}

static void use_mutex(int i)
{
    if (aco_mt_mutex_lock_until(&mutex, soon(i)) != 0) {
        CHECK_EQ(errno, ETIMEDOUT);
        add(&timed_out, 1);
        return;
    }
    CHECK_EQ(inside++, 0); /* not atomic: the mutex protects it */
    counter++;
    pause_sometimes(i);
    CHECK_EQ(--inside, 0);
    add(&obtained, 1);
    CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
}

static void use_units(int i)
{
    if (aco_mt_semaphore_acquire_until(&units, soon(i)) != 0) {
        CHECK_EQ(errno, ETIMEDOUT);
        return;
    }
    add(&in_units, 1);
    CHECK(load(&in_units) <= 2);
    pause_sometimes(i);
    add(&in_units, -1);
    aco_mt_semaphore_release(&units);
}

static void use_channel(int i)
{
    long element = i;
    if (i & 1) {
        if (aco_mt_channel_send_until(channel, &element, aco_after(20000)) == 0) {
            add(&sent, 1);
            __atomic_fetch_add(&sum_sent, element, __ATOMIC_RELAXED);
        } else
            CHECK_EQ(errno, ETIMEDOUT);
    } else {
        if (aco_mt_channel_receive_until(channel, &element, aco_after(20000)) == 0) {
            add(&received, 1);
            __atomic_fetch_add(&sum_received, element, __ATOMIC_RELAXED);
        } else
            CHECK_EQ(errno, ETIMEDOUT);
    }
}

static void use_rwlock(int i)
{
    int writes = i % 4 == 0, *kind = writes ? &writers : &readers;
    int result =
        writes ? aco_mt_rwlock_wrlock_until(&rwlock, soon(i)) : aco_mt_rwlock_rdlock_until(&rwlock, soon(i));
    if (result != 0) {
        CHECK_EQ(errno, ETIMEDOUT);
        return;
    }
    add(kind, 1);
    CHECK(load(&writers) == writes && (!writes || !load(&readers)));
    pause_sometimes(i);
    add(kind, -1);
    CHECK_EQ(aco_mt_rwlock_unlock(&rwlock), 0);
}

/* Whoever returns from a wait has the mutex again, and no signal is lost: a token that was added while others wait is
 * used by one of them, or is seen by one that has timed out. */
static void wait_for_token(int64_t deadline)
{
    while (!tokens) {
        int waited;
        CHECK_EQ(--in_tokens, 0);
        waited = aco_mt_cond_wait_until(&tokens_added, &tokens_mutex, deadline);
        CHECK_EQ(in_tokens++, 0);
        if (waited == 0)
            continue;
        CHECK_EQ(errno, ETIMEDOUT);
        break;
    }
    if (tokens)
        tokens--, used++;
}

static void use_cond(int i)
{
    CHECK_EQ(aco_mt_mutex_lock(&tokens_mutex), 0);
    CHECK_EQ(in_tokens++, 0);
    if (i & 1)
        wait_for_token(aco_after(i % 7 * 3000));
    else {
        tokens++, made++;
        if (i % 8)
            aco_mt_cond_signal(&tokens_added);
        else
            aco_mt_cond_broadcast(&tokens_added);
        pause_sometimes(i);
    }
    CHECK_EQ(--in_tokens, 0);
    CHECK_EQ(aco_mt_mutex_unlock(&tokens_mutex), 0);
}

static void *use_all(void *arg)
{
    int first = (int)(intptr_t)arg;
    for (int i = 0; i < rounds; i++) {
        use_mutex(i + first);
        use_units(i);
        use_channel(i + first);
        use_rwlock(i + 3 * first);
        use_cond(i + first);
    }
    return NULL;
}

static void spawn_all(void)
{
    for (intptr_t i = 0; i < TASKS; i++)
        CHECK_EQ(aco_detach(aco_spawn(use_all, (void *)i, NULL)), 0);
}

static void *use_in_set(void *arg)
{
    spawn_all();
    return arg;
}

static void *use_in_scheduler(void *arg) /* a thread that is in no set */
{
    spawn_all();
    CHECK_EQ(aco_run(), 0);
    return arg;
}

static void check_units(void) /* that both are free */
{
    CHECK_EQ(aco_mt_semaphore_try_acquire(&units), 0);
    CHECK_EQ(aco_mt_semaphore_try_acquire(&units), 0);
    FAILS_WITH(aco_mt_semaphore_try_acquire(&units), EAGAIN);
    aco_mt_semaphore_release(&units);
    aco_mt_semaphore_release(&units);
}

static void test_all_at_once(size_t capacity)
{
    pthread_t plain, scheduler;
    long element;
    counter = obtained = timed_out = sent = received = tokens = made = used = 0;
    sum_sent = sum_received = 0;
    channel = aco_mt_channel_new(capacity, sizeof(long));
    CHECK_EQ(pthread_create(&plain, NULL, use_all, (void *)1), 0);
    CHECK_EQ(pthread_create(&scheduler, NULL, use_in_scheduler, NULL), 0);
    CHECK_EQ(aco_threads_run(THREADS_HERE, use_in_set, NULL, NULL), 0);
    CHECK_EQ(pthread_join(plain, NULL), 0);
    CHECK_EQ(pthread_join(scheduler, NULL), 0);
    CHECK_EQ(made, used + tokens);
    CHECK(used > 0);
    CHECK_EQ(aco_mt_rwlock_try_wrlock(&rwlock), 0);
    FAILS_WITH(aco_mt_rwlock_try_rdlock(&rwlock), EBUSY);
    CHECK_EQ(aco_mt_rwlock_unlock(&rwlock), 0);
    FAILS_WITH(aco_mt_rwlock_unlock(&rwlock), EPERM);
    CHECK_EQ(counter, obtained);
    CHECK_EQ(obtained + timed_out, rounds * (THREADS_HERE * TASKS + TASKS + 1));
    while (aco_mt_channel_try_receive(channel, &element) == 0) {
        received++;
        sum_received += element;
    }
    CHECK_EQ(errno, EAGAIN);
    CHECK(sent > 0);
    CHECK_EQ(sent, received);
    CHECK_EQ(sum_sent, sum_received);
    CHECK_EQ(aco_mt_mutex_try_lock(&mutex), 0);
    FAILS_WITH(aco_mt_mutex_try_lock(&mutex), EBUSY);
    CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
    FAILS_WITH(aco_mt_mutex_unlock(&mutex), EPERM);
    check_units();
    aco_mt_channel_destroy(channel);
}

/* ---- Ping-pong, order, closing ---- */

static void *pong(void *arg)
{
    long element, last = -1;
    while (aco_mt_channel_receive(channel, &element) == 0) {
        CHECK_EQ(element, last + 1);
        last = element;
        CHECK_EQ(aco_mt_channel_send(answers, &element), 0);
    }
    CHECK_EQ(errno, EPIPE);
    FAILS_WITH(aco_mt_channel_send(channel, &element), EPIPE);
    CHECK_EQ(aco_mt_channel_close(answers), 0);
    return arg;
}

static void play(long n)
{
    long answer;
    for (long i = 0; i < n; i++) {
        CHECK_EQ(aco_mt_channel_send(channel, &i), 0);
        CHECK_EQ(aco_mt_channel_receive(answers, &answer), 0);
        CHECK_EQ(answer, i);
    }
    CHECK_EQ(aco_mt_channel_close(channel), 0);
    FAILS_WITH(aco_mt_channel_close(channel), EPIPE);
    FAILS_WITH(aco_mt_channel_receive(answers, &answer), EPIPE); /* waits for the close */
}

static void *ping(void *arg)
{
    aco_mt_group_t group;
    pthread_t plain;
    for (int kind = 0; kind < 3; kind++) {
        channel = aco_mt_channel_new(kind == 1 ? 0 : kind ? ACO_UNBOUNDED : 3, sizeof(long));
        answers = aco_mt_channel_new(0, sizeof(long));
        begin(&group, ACO_KEEP_GOING);
        if (kind == 2)
            CHECK_EQ(pthread_create(&plain, NULL, pong, NULL), 0);
        else
            submit_to(1, &group, pong, NULL);
        play(rounds);
        CHECK_EQ(aco_mt_group_end(&group), 0);
        if (kind == 2)
            CHECK_EQ(pthread_join(plain, NULL), 0);
        aco_mt_channel_destroy(channel);
        aco_mt_channel_destroy(answers);
    }
    return arg;
}

static void *unbounded(void *arg)
{
    long element;
    channel = aco_mt_channel_new(ACO_UNBOUNDED, sizeof(long));
    for (long i = 0; i < 1000; i++) {
        CHECK_EQ(aco_mt_channel_send(channel, &i), 0);
        if (i % 3 == 0) {
            CHECK_EQ(aco_mt_channel_receive(channel, &element), 0);
            CHECK_EQ(element, i / 3);
        }
    }
    CHECK_EQ(aco_mt_channel_close(channel), 0);
    for (long i = 334; i < 1000; i++) {
        CHECK_EQ(aco_mt_channel_receive(channel, &element), 0);
        CHECK_EQ(element, i);
    }
    FAILS_WITH(aco_mt_channel_receive(channel, &element), EPIPE);
    FAILS_WITH(aco_mt_channel_send(channel, NULL), EINVAL);
    FAILS_WITH(aco_mt_channel_receive(NULL, &element), EINVAL);
    aco_mt_channel_destroy(channel);
    CHECK(!aco_mt_channel_new(SIZE_MAX / 2, 4) && errno == EINVAL);
    return arg;
}

/* ---- Events, ends of scopes ---- */

static int woken, ended;

static void *wait_for_event(void *arg)
{
    CHECK_EQ(aco_mt_event_wait(&event), 0);
    add(&woken, 1);
    return arg;
}

static void *wait_until_cancelled(void *arg)
{
    long element;
    int i = (int)(intptr_t)arg;
    CHECK_EQ(i % 3 == 0   ? aco_mt_mutex_lock(&mutex)
             : i % 3 == 1 ? aco_mt_channel_receive(channel, &element)
                          : aco_mt_event_wait(&event),
             -1);
    CHECK_EQ(errno, ECANCELED);
    add(&ended, 1);
    return NULL;
}

static void *events(void *arg)
{
    aco_mt_group_t group;
    pthread_t plain;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 20; i++)
        submit_to(i % THREADS_HERE, &group, wait_for_event, NULL);
    CHECK_EQ(pthread_create(&plain, NULL, wait_for_event, NULL), 0);
    FAILS_WITH(aco_mt_event_wait_until(&event, aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    CHECK_EQ(load(&woken), 0);
    aco_mt_event_set(&event);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK_EQ(pthread_join(plain, NULL), 0);
    CHECK_EQ(woken, 21);
    CHECK_EQ(aco_mt_event_wait(&event), 0);
    aco_mt_event_reset(&event);

    channel = aco_mt_channel_new(1, sizeof(long));
    CHECK_EQ(aco_mt_mutex_lock(&mutex), 0);
    begin(&group, ACO_KEEP_GOING);
    for (intptr_t i = 0; i < 24; i++)
        submit_to((int)i % THREADS_HERE, &group, wait_until_cancelled, (void *)i);
    aco_sleep(ACO_MILLISECOND);
    CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    CHECK_EQ(ended, 24);
    CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0); /* nobody is left in its queue */
    CHECK_EQ(aco_mt_mutex_try_lock(&mutex), 0);
    CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
    aco_mt_channel_destroy(channel);
    return arg;
}

/* ---- Scopes that end at any moment, also while something is handed over ---- */

static int got, lost;

/* In a scope that another thread may cancel. What was obtained is given back. */
static void wait_in_scope(int i)
{
    long element = 1;
    int result = 0;
    switch (i % 6) {
    case 0:
        if ((result = aco_mt_mutex_lock(&mutex)) == 0) {
            CHECK_EQ(inside++, 0);
            pause_sometimes(i);
            CHECK_EQ(--inside, 0);
            CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
        }
        break;
    case 1:
        if ((result = aco_mt_semaphore_acquire(&units)) == 0) {
            pause_sometimes(i);
            aco_mt_semaphore_release(&units);
        }
        break;
    case 2:
        if ((result = aco_mt_channel_send(channel, &element)) == 0)
            add(&sent, 1);
        break;
    case 3:
        if ((result = aco_mt_channel_receive(channel, &element)) == 0)
            add(&received, 1);
        break;
    case 4:
        if ((result = i & 8 ? aco_mt_rwlock_wrlock(&rwlock) : aco_mt_rwlock_rdlock(&rwlock)) == 0) {
            pause_sometimes(i);
            CHECK_EQ(aco_mt_rwlock_unlock(&rwlock), 0);
        }
        break;
    default:
        if ((result = aco_mt_mutex_lock(&tokens_mutex)) != 0)
            break;
        CHECK_EQ(in_tokens++, 0);
        if (i & 8)
            aco_mt_cond_broadcast(&tokens_added);
        else {
            CHECK_EQ(--in_tokens, 0);
            result = aco_mt_cond_wait(&tokens_added, &tokens_mutex);
            CHECK_EQ(in_tokens++, 0);
        }
        CHECK_EQ(--in_tokens, 0);
        CHECK_EQ(aco_mt_mutex_unlock(&tokens_mutex), 0);
    }
    if (result != 0)
        CHECK_EQ(errno, ECANCELED);
    add(result == 0 ? &got : &lost, 1);
}

static void wait_for_ever(int i)
{
    (void)i;
    FAILS_WITH(aco_mt_event_wait(&event), ECANCELED);
}

static void *wait_cancelled(void *arg)
{
    int slot = (int)(intptr_t)arg;
    for (int i = 0; i < rounds / 2; i++)
        in_cancelled_scope(slot, wait_in_scope, i + slot);
    in_cancelled_scope(slot, wait_for_ever, 0);
    return NULL;
}

static void *cancel_at_random(void *arg)
{
    aco_mt_group_t group;
    pthread_t canceller;
    long element;
    sent = received = got = lost = 0;
    channel = aco_mt_channel_new(1, sizeof(long));
    start_cancelling(&canceller);
    begin(&group, ACO_KEEP_GOING);
    for (intptr_t i = 0; i < 4 * TASKS; i++)
        submit_to((int)i % THREADS_HERE, &group, wait_cancelled, (void *)i);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    stop_cancelling(canceller);
    while (aco_mt_channel_try_receive(channel, &element) == 0)
        received++;
    CHECK_EQ(sent, received);
    CHECK(got > 0);
    CHECK_EQ(got + lost, 4 * TASKS * (rounds / 2));
    CHECK_EQ(aco_mt_mutex_try_lock(&mutex), 0);
    CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
    CHECK_EQ(aco_mt_rwlock_try_wrlock(&rwlock), 0);
    CHECK_EQ(aco_mt_rwlock_unlock(&rwlock), 0);
    check_units();
    aco_mt_channel_destroy(channel);
    return arg;
}

/* ---- One wait, which another thread serves and cancels at the same time ---- */

enum { RACES = 9 };
static int race, served, raced; /* the number of the race that has begun, and that is over; of each kind so many */
static int race_kind, is_given, waited;
static aco_scope_t *race_scope;
static aco_mt_rwlock_t race_lock;
static aco_channel_t *race_local;

static void hold(unsigned spins)
{
    for (volatile unsigned i = 0; i < spins; i++)
        ;
}

static pthread_mutex_t race_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t race_begins = PTHREAD_COND_INITIALIZER;

static void await_race(int n)
{
    pthread_mutex_lock(&race_mutex);
    while (race < n)
        pthread_cond_wait(&race_begins, &race_mutex);
    pthread_mutex_unlock(&race_mutex);
}

/* What the waiter is given. */
static void serve_race(void)
{
    long element = race;
    switch (race_kind) {
    case 0:
        CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
        break;
    case 1:
        aco_mt_semaphore_release(&units);
        break;
    case 2:
    case 6:
    case 7:
        CHECK_EQ(aco_mt_channel_send(channel, &element), 0);
        break;
    case 3:
    case 8:
        CHECK_EQ(aco_mt_channel_receive(channel, &element), 0);
        CHECK_EQ(element, -race);
        break;
    case 4:
        CHECK_EQ(aco_mt_rwlock_unlock(&race_lock), 0);
        break;
    default:
        CHECK_EQ(aco_mt_mutex_lock(&mutex), 0);
        is_given = 1;
        aco_mt_cond_signal(&tokens_added);
        CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
    }
}

/* The one directly after the other, in either order: the waiter's thread hears of the first while the second begins.
 * Sometimes the cancelled wait is over before. */
static void *serve_and_cancel(void *arg)
{
    random_t random = {2};
    for (int i = 1; i <= RACES * raced; i++) {
        int cancels = (int)below(&random, 3);
        await_race(i);
        if (cancels)
            CHECK_EQ(aco_scope_cancel(race_scope), 0);
        while (cancels == 2 && load(&waited) != i)
            sched_yield();
        hold(below(&random, 500));
        serve_race();
        if (!cancels)
            CHECK_EQ(aco_scope_cancel(race_scope), 0);
        __atomic_store_n(&served, i, __ATOMIC_RELEASE);
    }
    return arg;
}

/* What must be so before the race: the waiter has to wait. */
static void prepare_race(void)
{
    long element = -race - 1;
    is_given = 0;
    if (race_kind == 0 || race_kind == 5)
        CHECK_EQ(aco_mt_mutex_lock(&mutex), 0);
    if (race_kind == 3 || race_kind == 8)
        CHECK_EQ(aco_mt_channel_try_send(channel, &element), 0);
    if (race_kind == 4)
        CHECK_EQ(aco_mt_rwlock_wrlock(&race_lock), 0);
}

/* 0, or -1 and errno. */
static int wait_in_race(long *element)
{
    aco_mt_select_case_t cases[3] = {{0}};
    switch (race_kind) {
    case 0:
        return aco_mt_mutex_lock(&mutex);
    case 1:
        return aco_mt_semaphore_acquire(&units);
    case 2:
        return aco_mt_channel_receive(channel, element);
    case 3:
        return aco_mt_channel_send(channel, element);
    case 4:
        return aco_mt_rwlock_rdlock(&race_lock);
    case 5:
        return aco_mt_cond_wait(&tokens_added, &mutex);
    default:
        cases[0].channel = channel;
        cases[1].channel = answers; /* nobody uses it */
        cases[2].local = race_kind == 7 ? race_local : NULL;
        for (int i = 0; i < 3; i++) {
            cases[i].element = element;
            cases[i].operation = i == 0 && race_kind == 8 ? ACO_SELECT_SEND : ACO_SELECT_RECEIVE;
        }
        return aco_mt_select(cases, 3) == 0 ? 0 : -1;
    }
}

/* After it: what was given is either here, if the wait succeeded, or where it was left. */
static void check_race(int result, long element)
{
    long left = 0;
    switch (race_kind) {
    case 0:
        CHECK_EQ(aco_mt_mutex_try_lock(&mutex), result ? 0 : -1);
        CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
        break;
    case 1:
        CHECK_EQ(aco_mt_semaphore_try_acquire(&units), result ? 0 : -1);
        break;
    case 2:
    case 6:
    case 7:
        CHECK_EQ(aco_mt_channel_try_receive(channel, &left), result ? 0 : -1);
        CHECK_EQ(result ? left : element, race);
        break;
    case 3:
    case 8:
        CHECK_EQ(aco_mt_channel_try_receive(channel, &left), result);
        break;
    case 4:
        CHECK_EQ(aco_mt_rwlock_try_wrlock(&race_lock), result ? 0 : -1);
        CHECK_EQ(aco_mt_rwlock_unlock(&race_lock), 0);
        break;
    default:
        CHECK_EQ(is_given || result, 1);
        break;
    }
}

static void run_race(void)
{
    aco_scope_t scope;
    long element = 0;
    int result, n = race + 1;
    prepare_race();
    CHECK_EQ(aco_scope_begin(&scope, ACO_FOREVER), 0);
    race_scope = &scope;
    pthread_mutex_lock(&race_mutex);
    race = n;
    pthread_cond_broadcast(&race_begins);
    pthread_mutex_unlock(&race_mutex);
    result = wait_in_race(&element);
    if (result != 0)
        CHECK_EQ(errno, ECANCELED);
    add(result ? &lost : &got, 1);
    __atomic_store_n(&waited, n, __ATOMIC_RELEASE);
    if (race_kind == 5) /* locked again, whatever ended the wait */
        CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
    while (load(&served) != n) {
        sched_yield();
        aco_task_yield();
    }
    CHECK_EQ(aco_scope_end(&scope), 0);
    check_race(result, element);
}

static void *races(void *arg)
{
    pthread_t server;
    got = lost = 0;
    raced = IS_SIMULATED ? 5 : rounds / 100;
    channel = aco_mt_channel_new(1, sizeof(long));
    answers = aco_mt_channel_new(1, sizeof(long));
    race_local = aco_channel_new(0, sizeof(long));
    CHECK_EQ(aco_mt_semaphore_try_acquire(&units), 0);
    CHECK_EQ(aco_mt_semaphore_try_acquire(&units), 0);
    CHECK_EQ(pthread_create(&server, NULL, serve_and_cancel, NULL), 0);
    CHECK_EQ(aco_detach(aco_spawn(count_rounds, NULL, NULL)), 0); /* the thread does not sleep: it hears at once */
    for (race_kind = 0; race_kind < RACES; race_kind++)
        for (int i = 0; i < raced; i++)
            run_race();
    is_round_over = 1;
    CHECK(IS_SIMULATED || (got > 0 && lost > 0)); /* not in each seed */
    CHECK_EQ(pthread_join(server, NULL), 0);
    aco_mt_semaphore_release(&units);
    aco_mt_semaphore_release(&units);
    aco_mt_channel_destroy(channel);
    aco_mt_channel_destroy(answers);
    CHECK_EQ(aco_channel_destroy(race_local), 0);
    return arg;
}

/* ---- Share stacks; the root context ---- */

static void *on_share_stack(void *arg)
{
    long on_stack = 1;
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(aco_mt_mutex_lock(&mutex), 0);
        CHECK_EQ(inside++, 0);
        aco_task_yield();
        CHECK_EQ(--inside, 0);
        aco_mt_cond_broadcast(&tokens_added);
        if (aco_mt_cond_wait_until(&tokens_added, &mutex, aco_after(i % 3 * 10000)) != 0)
            CHECK_EQ(errno, ETIMEDOUT);
        CHECK_EQ(inside, 0);
        CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
    }
#if !UNDER_ASAN
    FAILS_WITH(aco_mt_channel_send(channel, &on_stack), EINVAL);
#endif
    return (void *)(on_stack ? arg : NULL);
}

static void test_share_stacks(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_options_t options = {0};
    channel = aco_mt_channel_new(1, sizeof(long));
    options.stack = stack;
    options.flags = ACO_DETACHED;
    for (int i = 0; i < 5; i++)
        CHECK(aco_spawn(on_share_stack, NULL, &options) != NULL);
    CHECK_EQ(aco_run(), 0);
    aco_share_stack_destroy(stack);
    aco_mt_channel_destroy(channel);
}

static void test_root_context(void)
{
    int64_t begun = aco_now();
    CHECK_EQ(aco_mt_mutex_lock(&mutex), 0);
    FAILS_WITH(aco_mt_mutex_lock_until(&mutex, aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    CHECK(aco_now() - begun >= ACO_MILLISECOND);
    CHECK_EQ(aco_mt_mutex_unlock(&mutex), 0);
}

/* ---- Spinning before sleep ---- */

static int has_looked(const void *looks)
{
    return ++*(int *)(uintptr_t)looks > 1000000000; /* never */
}

static int is_over_at_once(const void *looks)
{
    return ++*(int *)(uintptr_t)looks > 0;
}

static int spins(aco__spin_t *spin, int (*is_over)(const void *looks), int64_t ns)
{
    int looks = 0;
    CHECK_EQ(aco__spin_until(spin, is_over, &looks, aco_now, aco_now(), aco_after(ns)),
             looks && is_over == is_over_at_once);
    return looks > 0;
}

static int chances_until_it_spins(aco__spin_t *spin)
{
    int chances = 0;
    for (; !spins(spin, has_looked, ACO_SECOND); chances++) {
        unsigned before = spin->chances;
        do
            aco__spin_woken(spin, aco_now(), aco_now()); /* none, if the thread is interrupted meanwhile */
        while (spin->chances == before);
    }
    return chances;
}

/* A thread spins after it was told soon. If that is in vain, it waits for more and more such chances. */
static void test_spins(void)
{
    aco__spin_t spin = {0, 0};
    int64_t begin = aco_now();
    CHECK_EQ(chances_until_it_spins(&spin), 1);
    CHECK(aco_now() - begin >= ACO__SPIN_NS);
    aco__spin_woken(&spin, aco_now() - ACO_SECOND, aco_now()); /* a long sleep is no chance */
    CHECK_EQ(chances_until_it_spins(&spin), 2);
    for (unsigned chances = 4; chances <= ACO__SPIN_MOST_LOST; chances *= 2)
        CHECK_EQ(chances_until_it_spins(&spin), chances);
    CHECK_EQ(chances_until_it_spins(&spin), ACO__SPIN_MOST_LOST + 1);
    CHECK_EQ(chances_until_it_spins(&spin), ACO__SPIN_MOST_LOST + 1);
    CHECK(!spins(&spin, is_over_at_once, ACO_SECOND));
    do {
        spin.chances = 2;
        spin.lost = 1;
        CHECK(spins(&spin, has_looked, 0)); /* a timer is due: no time to spin, and nothing in vain */
    } while (spin.lost != 1); /* it was interrupted */
    spin.lost = ACO__SPIN_MOST_LOST;
    for (int i = 0; i < 1000 && spin.lost; i++) { /* until it was not interrupted */
        spin.chances = ACO__SPIN_MOST_LOST + 1;
        CHECK(spins(&spin, is_over_at_once, ACO_SECOND));
    }
    CHECK_EQ(spin.lost, 0);
}

static void run_all(void)
{
    if (!IS_SIMULATED) /* it looks at how long something takes */
        test_spins();
    test_root_context();
    test_share_stacks();
    run_on(2, unbounded, NULL);
    run_on(2, ping, NULL);
    run_on(THREADS_HERE, events, NULL);
    run_on(1, races, NULL);
    rounds /= 4;
    run_on(THREADS_HERE, cancel_at_random, NULL);
    test_all_at_once(4);
    test_all_at_once(0);
}

int main(int argc, char **argv)
{
    (void)argv;
    rounds *= argc > 1 ? 100 : 1;
    run_all_tests(run_all);
    return check_result("threads_mt");
}
