/* aco_mt_select() (include/aco/mt.h): over shared channels and those of one thread, in tasks of several threads
 * and in plain threads, on both sides of a channel; deadlines and scopes that end it while it is served. With an
 * argument, all of it lasts longer. */
#define _GNU_SOURCE
#include "threads_tests.h"

#include "cancelled_at_random.h"

#include <aco/mt.h>

enum { THREADS_HERE = 3, CHANNELS = 4, TASKS = 4 };

static int rounds = IS_SIMULATED ? 20 : UNDER_TSAN ? 300 : 3000;

static aco_mt_channel_t *channels[CHANNELS];
static long sum_sent, sum_received;
static int sent, received, failed;

static void add_long(long *sum, long n)
{
    __atomic_fetch_add(sum, n, __ATOMIC_RELAXED);
}

static aco_mt_select_case_t receives(aco_mt_channel_t *from, long *to)
{
    aco_mt_select_case_t c = {0};
    c.channel = from;
    c.element = to;
    c.operation = ACO_SELECT_RECEIVE;
    return c;
}

static aco_mt_select_case_t sends(aco_mt_channel_t *to, long *from)
{
    aco_mt_select_case_t c = receives(to, from);
    c.operation = ACO_SELECT_SEND;
    return c;
}

static aco_mt_select_case_t local(aco_channel_t *channel, long *element, aco_select_operation_t operation)
{
    aco_mt_select_case_t c = receives(NULL, element);
    c.local = channel;
    c.operation = operation;
    return c;
}

/* What a case has done. */
static void count_case(const aco_mt_select_case_t *c)
{
    CHECK_EQ(c->error, 0);
    if (c->operation == ACO_SELECT_SEND) {
        add(&sent, 1);
        add_long(&sum_sent, *(long *)c->element);
    } else {
        add(&received, 1);
        add_long(&sum_received, *(long *)c->element);
    }
}

static void make_channels(size_t capacity)
{
    sum_sent = sum_received = 0;
    sent = received = failed = 0;
    for (int i = 0; i < CHANNELS; i++)
        channels[i] = aco_mt_channel_new(capacity, sizeof(long));
}

/* Nothing was lost and nothing came twice. */
static void check_channels(void)
{
    long element;
    for (int i = 0; i < CHANNELS; i++) {
        while (aco_mt_channel_try_receive(channels[i], &element) == 0) {
            received++;
            sum_received += element;
        }
        CHECK_EQ(errno, EAGAIN);
        FAILS_WITH(aco_mt_channel_try_send(channels[i], NULL), EINVAL);
        aco_mt_channel_destroy(channels[i]);
    }
    CHECK(sent > 0);
    CHECK_EQ(sent, received);
    CHECK_EQ(sum_sent, sum_received);
}

/* ---- One task ---- */

static void *alone(void *arg)
{
    long in = 0, out = 7;
    int chosen[2] = {0, 0}, i;
    aco_channel_t *own = aco_channel_new(1, sizeof(long));
    aco_mt_channel_t *a = aco_mt_channel_new(1, sizeof(long)), *b = aco_mt_channel_new(1, sizeof(long));
    aco_mt_select_case_t cases[] = {receives(a, &in), receives(b, &in), local(own, &in, ACO_SELECT_RECEIVE),
                                        receives(NULL, &in)};
    FAILS_WITH(aco_mt_try_select(cases, 4), EAGAIN);
    FAILS_WITH(aco_mt_select_until(cases, 4, aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    FAILS_WITH(aco_mt_select_until(cases, 4, aco_now()), ETIMEDOUT);
    FAILS_WITH(aco_mt_select_until(cases, 0, aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    FAILS_WITH(aco_mt_try_select(NULL, 1), EINVAL);
    FAILS_WITH(aco_mt_try_select(cases, -1), EINVAL);
    cases[3].channel = a;
    cases[3].local = own;
    FAILS_WITH(aco_mt_try_select(cases, 4), EINVAL);
    cases[3] = sends(a, NULL);
    FAILS_WITH(aco_mt_try_select(cases, 4), EINVAL);
    CHECK_EQ(aco_channel_send(own, &out), 0);
    CHECK_EQ(aco_mt_try_select(cases, 3), 2);
    CHECK_EQ(in, 7);
    for (i = 0; i < 200; i++) { /* both are ready: each has its turns */
        int at;
        CHECK(aco_mt_channel_try_send(a, &out) == 0 || errno == EAGAIN);
        CHECK(aco_mt_channel_try_send(b, &out) == 0 || errno == EAGAIN);
        at = aco_mt_select(cases, 3);
        CHECK(at == 0 || at == 1);
        chosen[at == 1]++;
    }
    CHECK(chosen[0] > 50 && chosen[1] > 50);
    CHECK_EQ(aco_mt_channel_close(b), 0);
    (void)aco_mt_channel_try_receive(a, NULL);
    (void)aco_mt_channel_try_receive(b, NULL);
    CHECK_EQ(aco_mt_select(cases, 3), 1);
    CHECK_EQ(cases[1].error, EPIPE);
    CHECK_EQ(aco_channel_close(own), 0);
    cases[1].channel = NULL;
    CHECK_EQ(aco_mt_select(cases, 3), 2);
    CHECK_EQ(cases[2].error, EPIPE);
    CHECK_EQ(aco_channel_destroy(own), 0);
    aco_mt_channel_destroy(a);
    aco_mt_channel_destroy(b);
    return arg;
}

/* ---- A channel of the task's own thread, and what waits there ---- */

static aco_channel_t *own_channel;
static int own_result;

static void *select_both(void *arg)
{
    long element = 0;
    aco_mt_select_case_t cases[] = {local(own_channel, &element, ACO_SELECT_RECEIVE),
                                        receives(channels[0], &element), sends(channels[1], &element)};
    own_result = aco_mt_select(cases, 3);
    CHECK_EQ(own_result >= 0 ? cases[own_result].error : 0, arg ? EPIPE : 0);
    return (void *)element;
}

/* Runs select_both() until it waits, then `act`: which case was chosen. */
static int while_both_wait(void (*act)(void), int closes)
{
    aco_t *task = aco_spawn(select_both, closes ? &own_result : NULL, NULL);
    own_result = -2;
    let_others_wait();
    CHECK_EQ(own_result, -2);
    act();
    CHECK_EQ(aco_join(task, NULL), 0);
    return own_result;
}

static void send_local(void)
{
    long element = 1;
    CHECK_EQ(aco_channel_send(own_channel, &element), 0);
    FAILS_WITH(aco_channel_try_send(own_channel, &element), EAGAIN); /* its task has been served, and has not run */
    FAILS_WITH(aco_mt_channel_try_send(channels[0], &element), EAGAIN);
    FAILS_WITH(aco_mt_channel_try_receive(channels[1], &element), EAGAIN);
}

static void send_shared(void)
{
    long element = 1;
    CHECK_EQ(aco_mt_channel_send(channels[0], &element), 0);
    FAILS_WITH(aco_channel_try_send(own_channel, &element), EAGAIN);
    FAILS_WITH(aco_mt_channel_try_receive(channels[1], &element), EAGAIN);
}

static void receive_shared(void)
{
    long element;
    CHECK_EQ(aco_mt_channel_receive(channels[1], &element), 0);
    FAILS_WITH(aco_channel_try_send(own_channel, &element), EAGAIN);
    FAILS_WITH(aco_mt_channel_try_send(channels[0], &element), EAGAIN);
}

static void close_local(void)
{
    CHECK_EQ(aco_channel_close(own_channel), 0);
}

static void close_shared(void)
{
    CHECK_EQ(aco_mt_channel_close(channels[0]), 0);
}

static void *both_kinds(void *arg)
{
    aco_options_t options = {0};
    make_channels(0);
    own_channel = aco_channel_new(0, sizeof(long));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(while_both_wait(send_local, 0), 0);
        CHECK_EQ(while_both_wait(send_shared, 0), 1);
        CHECK_EQ(while_both_wait(receive_shared, 0), 2);
    }
    CHECK_EQ(while_both_wait(close_shared, 1), 1);
    aco_mt_channel_destroy(channels[0]);
    channels[0] = NULL; /* never ready */
    CHECK_EQ(while_both_wait(close_local, 1), 0);
    CHECK_EQ(aco_channel_destroy(own_channel), 0);
#if !UNDER_ASAN
    options.stack = aco_share_stack_new(0); /* the cases must not be there */
    CHECK_EQ(aco_join(aco_spawn(select_both, NULL, &options), NULL), 0);
    CHECK_EQ(own_result, -1);
    aco_share_stack_destroy(options.stack);
#endif
    (void)options;
    for (int i = 1; i < CHANNELS; i++)
        aco_mt_channel_destroy(channels[i]);
    return arg;
}

/* ---- Many to many: senders and receivers both select ---- */

/* Without deadlines: all is sent and received, or the test hangs. */
static void *send_all(void *arg)
{
    aco_mt_select_case_t cases[CHANNELS];
    for (long i = 0; i < rounds; i++) {
        int at;
        for (int c = 0; c < CHANNELS; c++)
            cases[c] = sends(channels[(c + i) % CHANNELS], &i);
        at = aco_mt_select(cases, CHANNELS);
        CHECK(at >= 0);
        count_case(&cases[at < 0 ? 0 : at]);
    }
    return arg;
}

static void *receive_all(void *arg)
{
    aco_mt_select_case_t cases[CHANNELS];
    long element;
    for (long i = 0; i < rounds; i++) {
        int at;
        for (int c = 0; c < CHANNELS; c++)
            cases[c] = receives(channels[(c * 3 + i) % CHANNELS], &element);
        at = aco_mt_select(cases, CHANNELS);
        CHECK(at >= 0);
        count_case(&cases[at < 0 ? 0 : at]);
    }
    return arg;
}

static void *exchange(void *arg)
{
    aco_mt_group_t group;
    pthread_t plain[2];
    begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&plain[i], NULL, i ? send_all : receive_all, NULL), 0);
    for (int i = 0; i < TASKS; i++) {
        submit_to(i % THREADS_HERE, &group, send_all, NULL);
        submit_to((i + 1) % THREADS_HERE, &group, receive_all, NULL);
    }
    CHECK_EQ(aco_mt_group_end(&group), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(plain[i], NULL), 0);
    return arg;
}

static void test_exchange(size_t capacity)
{
    make_channels(capacity);
    run_on(THREADS_HERE, exchange, NULL);
    check_channels();
    CHECK_EQ(sent, (TASKS + 1) * rounds);
}

/* ---- All at once: both directions in one select, the same channel twice, plain calls, deadlines, scopes ---- */

static __thread aco_channel_t *mine; /* of tasks on one thread */

__attribute__((noinline)) static aco_channel_t *own(void)
{
    return mine;
}

static void select_one(int i)
{
    long in = 0, out = i;
    aco_channel_t *channel = aco_current_task() ? own() : NULL;
    aco_mt_select_case_t cases[] = {
        receives(channels[i % CHANNELS], &in), sends(channels[(i / 2 + 1) % CHANNELS], &out),
        receives(channels[i % CHANNELS], &in), sends(channels[(i + 1) % CHANNELS], &out),
        local(channel, i & 1 ? &in : &out, i & 1 ? ACO_SELECT_RECEIVE : ACO_SELECT_SEND)};
    int at = i % 4 == 0 ? aco_mt_try_select(cases, 5)
                        : aco_mt_select_until(cases, 5, i % 4 == 1 ? aco_after(i % 11 * 2000) : aco_after(200000));
    if (at >= 0)
        count_case(&cases[at]);
    else {
        CHECK(errno == ETIMEDOUT || errno == ECANCELED || errno == EAGAIN);
        add(&failed, 1);
    }
}

static void use_one(int i)
{
    long element = i;
    aco_mt_select_case_t c = i & 1 ? sends(channels[i / 2 % CHANNELS], &element)
                                       : receives(channels[i / 2 % CHANNELS], &element);
    int is_local = i % 5 == 0 && aco_current_task();
    int64_t deadline = aco_after(i % 13 * 3000);
    int result;
    if (i & 1)
        result = is_local ? aco_channel_send_until(own(), &element, deadline)
                          : aco_mt_channel_send_until(c.channel, &element, deadline);
    else
        result = is_local ? aco_channel_receive_until(own(), &element, deadline)
                          : aco_mt_channel_receive_until(c.channel, &element, deadline);
    if (result == 0)
        count_case(&c);
    else
        CHECK(errno == ETIMEDOUT || errno == ECANCELED);
}

static void select_or_use(int i)
{
    if (i % 3)
        select_one(i);
    else
        use_one(i / 3);
}

static void *use_plain(void *arg)
{
    for (int i = 0; i < rounds; i++)
        select_or_use(i + (int)(intptr_t)arg);
    return NULL;
}

static void *use_in_scopes(void *arg)
{
    int slot = (int)(intptr_t)arg;
    for (int i = 0; i < rounds; i++)
        in_cancelled_scope(slot, select_or_use, i * 7 + slot);
    return NULL;
}

/* On each thread of the set. */
static void *use_on_thread(void *arg)
{
    aco_group_t group;
    long element;
    mine = aco_channel_new(*(size_t *)arg, sizeof(long));
    CHECK_EQ(aco_group_begin(&group, ACO_KEEP_GOING), 0);
    for (intptr_t i = 0; i < TASKS; i++)
        CHECK(aco_group_spawn(&group, use_in_scopes, (void *)(aco_threads_index() * TASKS + i), NULL) != NULL);
    CHECK_EQ(aco_group_end(&group), 0);
    while (aco_channel_try_receive(own(), &element) == 0) {
        add(&received, 1);
        add_long(&sum_received, element);
    }
    CHECK_EQ(aco_channel_destroy(own()), 0);
    return NULL;
}

static void test_all_at_once(size_t capacity)
{
    pthread_t plain[2], canceller;
    make_channels(capacity);
    start_cancelling(&canceller);
    for (intptr_t i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&plain[i], NULL, use_plain, (void *)i), 0);
    CHECK_EQ(aco_threads_run(THREADS_HERE, use_on_thread, &capacity, NULL), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(plain[i], NULL), 0);
    stop_cancelling(canceller);
    check_channels();
    CHECK(IS_SIMULATED || failed > 0); /* not in each seed */
}

static void test_root_context(void)
{
    long element = 0;
    aco_channel_t *channel = aco_channel_new(1, sizeof(long));
    aco_mt_select_case_t cases[] = {local(channel, &element, ACO_SELECT_RECEIVE)};
    FAILS_WITH(aco_mt_select(cases, 1), EPERM);
    FAILS_WITH(aco_mt_try_select(cases, 1), EAGAIN);
    CHECK_EQ(aco_channel_try_send(channel, &element), 0);
    CHECK_EQ(aco_mt_try_select(cases, 1), 0);
    cases[0].local = NULL;
    FAILS_WITH(aco_mt_select_until(cases, 1, aco_after(ACO_MILLISECOND)), ETIMEDOUT);
    CHECK_EQ(aco_channel_destroy(channel), 0);
}

static void run_all(void)
{
    test_root_context();
    run_on(1, alone, NULL);
    run_on(1, both_kinds, NULL);
    for (size_t capacity = 0; capacity < 4; capacity += 1 + capacity) {
        test_exchange(capacity);
        test_all_at_once(capacity);
    }
}

int main(int argc, char **argv)
{
    (void)argv;
    rounds *= argc > 1 ? 100 : 1;
    run_all_tests(run_all);
    return check_result("threads_select");
}
