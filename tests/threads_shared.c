/* Locks and channels between threads (include/aco/shared.h): tasks of several schedulers, in sets and without, and
 * plain threads, on the same objects; deadlines and scopes that end waits while these are being served. With an
 * argument, all of it lasts longer. */
#define _GNU_SOURCE
#include "threads_tests.h"

#include <aco/shared.h>

enum { THREADS_HERE = 4, TASKS = 4 };

static int rounds = UNDER_TSAN ? 200 : 2000;

static aco_shared_mutex_t mutex;
static aco_shared_semaphore_t units = ACO_SHARED_SEMAPHORE_INIT(2);
static aco_shared_event_t event;
static aco_shared_channel_t *channel, *answers;
static int inside, in_units, counter, obtained, timed_out, sent, received;
static long sum_sent, sum_received;

/* A deadline that passes in about half of the waits. */
static int64_t soon(int i)
{
    return i % 3 ? ACO_FOREVER : aco_after(i % 7 * 1000);
}

static void pause_sometimes(int i)
{
    if (i % 5 == 0 && aco_current_task())
        aco_task_yield();
}

static void use_mutex(int i)
{
    if (aco_shared_mutex_lock_until(&mutex, soon(i)) != 0) {
        CHECK_EQ(errno, ETIMEDOUT);
        add(&timed_out, 1);
        return;
    }
    CHECK_EQ(inside++, 0); /* not atomic: the mutex protects it */
    counter++;
    pause_sometimes(i);
    CHECK_EQ(--inside, 0);
    add(&obtained, 1);
    CHECK_EQ(aco_shared_mutex_unlock(&mutex), 0);
}

static void use_units(int i)
{
    if (aco_shared_semaphore_acquire_until(&units, soon(i)) != 0) {
        CHECK_EQ(errno, ETIMEDOUT);
        return;
    }
    add(&in_units, 1);
    CHECK(load(&in_units) <= 2);
    pause_sometimes(i);
    add(&in_units, -1);
    aco_shared_semaphore_release(&units);
}

static void use_channel(int i)
{
    long element = i;
    if (i & 1) {
        if (aco_shared_channel_send_until(channel, &element, aco_after(20000)) == 0) {
            add(&sent, 1);
            __atomic_fetch_add(&sum_sent, element, __ATOMIC_RELAXED);
        } else
            CHECK_EQ(errno, ETIMEDOUT);
    } else {
        if (aco_shared_channel_receive_until(channel, &element, aco_after(20000)) == 0) {
            add(&received, 1);
            __atomic_fetch_add(&sum_received, element, __ATOMIC_RELAXED);
        } else
            CHECK_EQ(errno, ETIMEDOUT);
    }
}

static void *use_all(void *arg)
{
    for (int i = 0; i < rounds; i++) {
        use_mutex(i + (int)(intptr_t)arg);
        use_units(i);
        use_channel(i + (int)(intptr_t)arg);
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

static void test_all_at_once(size_t capacity)
{
    pthread_t plain, scheduler;
    long element;
    counter = obtained = timed_out = sent = received = 0;
    sum_sent = sum_received = 0;
    channel = aco_shared_channel_new(capacity, sizeof(long));
    CHECK_EQ(pthread_create(&plain, NULL, use_all, (void *)1), 0);
    CHECK_EQ(pthread_create(&scheduler, NULL, use_in_scheduler, NULL), 0);
    CHECK_EQ(aco_threads_run(THREADS_HERE, use_in_set, NULL), 0);
    CHECK_EQ(pthread_join(plain, NULL), 0);
    CHECK_EQ(pthread_join(scheduler, NULL), 0);
    CHECK_EQ(counter, obtained);
    CHECK_EQ(obtained + timed_out, rounds * (THREADS_HERE * TASKS + TASKS + 1));
    while (aco_shared_channel_try_receive(channel, &element) == 0) {
        received++;
        sum_received += element;
    }
    CHECK_EQ(errno, EAGAIN);
    CHECK(sent > 0);
    CHECK_EQ(sent, received);
    CHECK_EQ(sum_sent, sum_received);
    CHECK_EQ(aco_shared_mutex_trylock(&mutex), 0);
    FAILS_WITH(aco_shared_mutex_trylock(&mutex), EBUSY);
    CHECK_EQ(aco_shared_mutex_unlock(&mutex), 0);
    FAILS_WITH(aco_shared_mutex_unlock(&mutex), EPERM);
    CHECK_EQ(aco_shared_semaphore_try_acquire(&units), 0);
    CHECK_EQ(aco_shared_semaphore_try_acquire(&units), 0);
    FAILS_WITH(aco_shared_semaphore_try_acquire(&units), EAGAIN);
    aco_shared_semaphore_release(&units);
    aco_shared_semaphore_release(&units);
    aco_shared_channel_destroy(channel);
}

/* ---- Ping-pong, order, closing ---- */

static void *pong(void *arg)
{
    long element, last = -1;
    while (aco_shared_channel_receive(channel, &element) == 0) {
        CHECK_EQ(element, last + 1);
        last = element;
        CHECK_EQ(aco_shared_channel_send(answers, &element), 0);
    }
    CHECK_EQ(errno, EPIPE);
    FAILS_WITH(aco_shared_channel_send(channel, &element), EPIPE);
    CHECK_EQ(aco_shared_channel_close(answers), 0);
    return arg;
}

static void play(long n)
{
    long answer;
    for (long i = 0; i < n; i++) {
        CHECK_EQ(aco_shared_channel_send(channel, &i), 0);
        CHECK_EQ(aco_shared_channel_receive(answers, &answer), 0);
        CHECK_EQ(answer, i);
    }
    CHECK_EQ(aco_shared_channel_close(channel), 0);
    FAILS_WITH(aco_shared_channel_close(channel), EPIPE);
    FAILS_WITH(aco_shared_channel_receive(answers, &answer), EPIPE); /* waits for the close */
}

static void *ping(void *arg)
{
    aco_shared_group_t group;
    pthread_t plain;
    for (int kind = 0; kind < 3; kind++) {
        channel = aco_shared_channel_new(kind == 1 ? 0 : kind ? ACO_UNBOUNDED : 3, sizeof(long));
        answers = aco_shared_channel_new(0, sizeof(long));
        begin(&group, ACO_KEEP_GOING);
        if (kind == 2)
            CHECK_EQ(pthread_create(&plain, NULL, pong, NULL), 0);
        else
            submit_to(1, &group, pong, NULL);
        play(rounds);
        CHECK_EQ(aco_shared_group_end(&group), 0);
        if (kind == 2)
            CHECK_EQ(pthread_join(plain, NULL), 0);
        aco_shared_channel_destroy(channel);
        aco_shared_channel_destroy(answers);
    }
    return arg;
}

static void *unbounded(void *arg)
{
    long element;
    channel = aco_shared_channel_new(ACO_UNBOUNDED, sizeof(long));
    for (long i = 0; i < 1000; i++) {
        CHECK_EQ(aco_shared_channel_send(channel, &i), 0);
        if (i % 3 == 0) {
            CHECK_EQ(aco_shared_channel_receive(channel, &element), 0);
            CHECK_EQ(element, i / 3);
        }
    }
    CHECK_EQ(aco_shared_channel_close(channel), 0);
    for (long i = 334; i < 1000; i++) {
        CHECK_EQ(aco_shared_channel_receive(channel, &element), 0);
        CHECK_EQ(element, i);
    }
    FAILS_WITH(aco_shared_channel_receive(channel, &element), EPIPE);
    FAILS_WITH(aco_shared_channel_send(channel, NULL), EINVAL);
    FAILS_WITH(aco_shared_channel_receive(NULL, &element), EINVAL);
    aco_shared_channel_destroy(channel);
    CHECK(!aco_shared_channel_new(SIZE_MAX / 2, 4) && errno == EINVAL);
    return arg;
}

/* ---- Events, ends of scopes ---- */

static int woken, ended;

static void *wait_for_event(void *arg)
{
    CHECK_EQ(aco_shared_event_wait(&event), 0);
    add(&woken, 1);
    return arg;
}

static void *wait_until_cancelled(void *arg)
{
    long element;
    int i = (int)(intptr_t)arg;
    CHECK_EQ(i % 3 == 0   ? aco_shared_mutex_lock(&mutex)
             : i % 3 == 1 ? aco_shared_channel_receive(channel, &element)
                          : aco_shared_event_wait(&event),
             -1);
    CHECK_EQ(errno, ECANCELED);
    add(&ended, 1);
    return NULL;
}

static void *events(void *arg)
{
    aco_shared_group_t group;
    pthread_t plain;
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 20; i++)
        submit_to(i % THREADS_HERE, &group, wait_for_event, NULL);
    CHECK_EQ(pthread_create(&plain, NULL, wait_for_event, NULL), 0);
    FAILS_WITH(aco_shared_event_wait_until(&event, aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    CHECK_EQ(load(&woken), 0);
    aco_shared_event_set(&event);
    CHECK_EQ(aco_shared_group_end(&group), 0);
    CHECK_EQ(pthread_join(plain, NULL), 0);
    CHECK_EQ(woken, 21);
    CHECK_EQ(aco_shared_event_wait(&event), 0);
    aco_shared_event_reset(&event);

    channel = aco_shared_channel_new(1, sizeof(long));
    CHECK_EQ(aco_shared_mutex_lock(&mutex), 0);
    begin(&group, ACO_KEEP_GOING);
    for (intptr_t i = 0; i < 24; i++)
        submit_to((int)i % THREADS_HERE, &group, wait_until_cancelled, (void *)i);
    aco_sleep(ACO_MILLISECOND);
    CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    CHECK_EQ(aco_shared_group_end(&group), 0);
    CHECK_EQ(ended, 24);
    CHECK_EQ(aco_shared_mutex_unlock(&mutex), 0); /* nobody is left in its queue */
    CHECK_EQ(aco_shared_mutex_trylock(&mutex), 0);
    CHECK_EQ(aco_shared_mutex_unlock(&mutex), 0);
    aco_shared_channel_destroy(channel);
    return arg;
}

/* ---- Share stacks; the root context ---- */

static void *on_share_stack(void *arg)
{
    long on_stack = 1;
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(aco_shared_mutex_lock(&mutex), 0);
        CHECK_EQ(inside++, 0);
        aco_task_yield();
        CHECK_EQ(--inside, 0);
        CHECK_EQ(aco_shared_mutex_unlock(&mutex), 0);
    }
#if !UNDER_ASAN
    FAILS_WITH(aco_shared_channel_send(channel, &on_stack), EINVAL);
#endif
    return (void *)(on_stack ? arg : NULL);
}

static void test_share_stacks(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_options_t options = {0};
    channel = aco_shared_channel_new(1, sizeof(long));
    options.stack = stack;
    options.flags = ACO_DETACHED;
    for (int i = 0; i < 5; i++)
        CHECK(aco_spawn(on_share_stack, NULL, &options) != NULL);
    CHECK_EQ(aco_run(), 0);
    aco_share_stack_destroy(stack);
    aco_shared_channel_destroy(channel);
}

static void test_root_context(void)
{
    int64_t begun = aco_now();
    CHECK_EQ(aco_shared_mutex_lock(&mutex), 0);
    FAILS_WITH(aco_shared_mutex_lock_until(&mutex, aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    CHECK(aco_now() - begun >= ACO_MILLISECOND);
    CHECK_EQ(aco_shared_mutex_unlock(&mutex), 0);
}

int main(int argc, char **argv)
{
    (void)argv;
    rounds *= argc > 1 ? 20 : 1;
    test_root_context();
    test_share_stacks();
    run_on(2, unbounded, NULL);
    run_on(2, ping, NULL);
    run_on(THREADS_HERE, events, NULL);
    rounds /= 4;
    test_all_at_once(4);
    test_all_at_once(0);
    return check_result("threads_shared");
}
