/* Promises about mutexes, conditions, semaphores, wait groups, channels and select (include/aco/scheduler.h), one
 * function each. */
#define _GNU_SOURCE
#include "tasks.h"
#include "fails.h"

/* ---- Mutex ---- */

static void *locks(void *arg)
{
    shared_t *s = arg;
    char name = (char)('a' + s->n++);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(aco_mutex_lock(&s->mutex), 0);
        CHECK(s->mutex.owner == aco_get_co());
        CHECK_EQ(s->inside++, 0);
        say(name);
        FAILS(aco_mutex_lock(&s->mutex), -1, EDEADLK, "aco_mutex_lock", aco_get_co(), "already locked");
        aco_task_yield();
        aco_task_yield();
        s->inside--;
        CHECK_EQ(aco_mutex_unlock(&s->mutex), 0);
    }
    FAILS(aco_mutex_unlock(&s->mutex), -1, EPERM, "aco_mutex_unlock", aco_get_co(), "has not locked");
    return NULL;
}

static void *tries(void *arg)
{
    shared_t *s = arg;
    errno = 0;
    CHECK_EQ(aco_mutex_try_lock(&s->mutex), -1);
    CHECK_EQ(errno, EBUSY);
    while (s->mutex.owner)
        aco_task_yield();
    CHECK_EQ(aco_mutex_try_lock(&s->mutex), 0);
    errno = 0;
    CHECK_EQ(aco_mutex_try_lock(&s->mutex), -1);
    CHECK_EQ(errno, EBUSY);
    CHECK_EQ(aco_mutex_unlock(&s->mutex), 0);
    return NULL;
}

static void mutexes(void)
{
    shared_t s = {0};
    for (int i = 0; i < 3; i++)
        spawn_detached(locks, &s);
    spawn_detached(tries, &s);
    run();
    CHECK_HISTORY("abcabc");
    CHECK(s.mutex.owner == NULL);
}

/* ---- Condition ---- */

static void *waits_on_condition(void *arg)
{
    shared_t *s = arg;
    char name = (char)('a' + s->n++);
    CHECK_EQ(aco_mutex_lock(&s->mutex), 0);
    CHECK_EQ(aco_cond_wait(&s->cond, &s->mutex), 0);
    CHECK(s->mutex.owner == aco_get_co());
    say(name);
    CHECK_EQ(aco_mutex_unlock(&s->mutex), 0);
    return NULL;
}

static void *waits_on_condition_in_vain(void *arg)
{
    shared_t *s = arg;
    CHECK_EQ(aco_mutex_lock(&s->mutex), 0);
    errno = 0;
    CHECK_EQ(aco_cond_wait_until(&s->cond, &s->mutex, aco_after(1000000)), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    CHECK(s->mutex.owner == aco_get_co());
    say('t');
    CHECK_EQ(aco_mutex_unlock(&s->mutex), 0);
    FAILS(aco_cond_wait(&s->cond, &s->mutex), -1, EPERM, "aco_cond_wait", aco_get_co(), "has not locked");
    return NULL;
}

static void *signals(void *arg)
{
    shared_t *s = arg;
    CHECK_EQ(aco_mutex_lock(&s->mutex), 0);
    say('s');
    aco_cond_signal(&s->cond);
    aco_task_yield(); /* woken, but the mutex is not free yet */
    aco_cond_signal(&s->cond);
    say('s');
    CHECK_EQ(aco_mutex_unlock(&s->mutex), 0);
    aco_cond_broadcast(&s->cond);
    say('b');
    return NULL;
}

static void *holds_for_long(void *arg)
{
    shared_t *s = arg;
    CHECK_EQ(aco_mutex_lock(&s->mutex), 0);
    CHECK_EQ(aco_sleep(5000000), 0);
    say('h');
    CHECK_EQ(aco_mutex_unlock(&s->mutex), 0);
    return NULL;
}

static void conditions(void)
{
    shared_t s = {0};
    for (int i = 0; i < 4; i++)
        spawn_detached(waits_on_condition, &s);
    spawn_detached(signals, &s);
    run();
    CHECK_HISTORY("ssbabcd");
    spawn_detached(waits_on_condition_in_vain, &s);
    run();
    CHECK_HISTORY("t");
    spawn_detached(waits_on_condition_in_vain, &s);
    spawn_detached(holds_for_long, &s); /* time is over meanwhile: it still gets the mutex before it returns */
    run();
    CHECK_HISTORY("ht");
    aco_cond_signal(&s.cond); /* nobody there */
}

/* ---- Semaphore, wait group ---- */

static void *acquires(void *arg)
{
    shared_t *s = arg;
    char name = (char)('a' + s->n++);
    CHECK_EQ(aco_semaphore_acquire(&s->semaphore), 0);
    say(name);
    CHECK(++s->inside <= 2);
    aco_task_yield();
    s->inside--;
    aco_semaphore_release(&s->semaphore);
    CHECK_EQ(aco_wait_group_done(&s->group), 0);
    return NULL;
}

static void *waits_for_group(void *arg)
{
    shared_t *s = arg;
    CHECK_EQ(aco_wait_group_wait(&s->group), 0);
    CHECK_EQ(s->group.count, 0);
    say('w');
    return NULL;
}

static void semaphores_and_groups(void)
{
    shared_t s = {0};
    s.semaphore.value = 2;
    spawn_detached(waits_for_group, &s); /* the count is zero */
    run();
    CHECK_HISTORY("w");
    CHECK_EQ(aco_wait_group_add(&s.group, 5), 0);
    spawn_detached(waits_for_group, &s);
    for (int i = 0; i < 5; i++)
        spawn_detached(acquires, &s);
    spawn_detached(waits_for_group, &s);
    run();
    CHECK_HISTORY("abcdeww");
    CHECK_EQ(s.semaphore.value, 2);
    CHECK_EQ(aco_semaphore_try_acquire(&s.semaphore), 0);
    CHECK_EQ(aco_semaphore_try_acquire(&s.semaphore), 0);
    errno = 0;
    CHECK_EQ(aco_semaphore_try_acquire(&s.semaphore), -1);
    CHECK_EQ(errno, EAGAIN);
    FAILS(aco_wait_group_done(&s.group), -1, ERANGE, "aco_wait_group_done", NULL, "whose count is 0");
    FAILS(aco_wait_group_add(&s.group, -1), -1, ERANGE, "aco_wait_group_add", NULL, "whose count is 0");
    CHECK_EQ(aco_wait_group_add(&s.group, 3), 0);
    FAILS(aco_wait_group_add(&s.group, -4), -1, ERANGE, "aco_wait_group_add", NULL, "whose count is 3");
    for (int i = 0; i < 2; i++)
        CHECK_EQ(aco_wait_group_add(&s.group, PTRDIFF_MAX - 1), 0);
    FAILS(aco_wait_group_add(&s.group, PTRDIFF_MAX), -1, ERANGE, "aco_wait_group_add", NULL, "whose count is");
}

/* ---- Channels ---- */

enum { LARGEST = 40 };

typedef struct traffic {
    aco_channel_t *channel;
    size_t size;
    int n, senders, received, receivers;
    int sum;
} traffic_t;

static void *sends(void *arg)
{
    traffic_t *t = arg;
    unsigned char element[LARGEST], name = (unsigned char)t->senders++;
    for (int i = 0; i < t->n; i++) {
        memset(element, i, sizeof element);
        element[0] = name;
        CHECK_EQ(aco_channel_send(t->channel, element), 0);
        memset(element, 0xee, sizeof element); /* a copy was sent */
    }
    if (--t->senders == 0)
        CHECK_EQ(aco_channel_close(t->channel), 0);
    return NULL;
}

static void *receives(void *arg)
{
    traffic_t *t = arg;
    unsigned char element[LARGEST + 1];
    int last[3] = {-1, -1, -1}; /* had of each sender */
    for (;;) {
        memset(element, 0x77, sizeof element);
        errno = 0;
        if (aco_channel_receive(t->channel, element) != 0)
            break;
        t->received++;
        CHECK_EQ(element[t->size], 0x77);
        if (t->size < 2)
            continue;
        for (size_t i = 2; i < t->size; i++)
            CHECK_EQ(element[i], element[1]);
        CHECK(element[0] < 3);
        CHECK(element[1] > last[element[0] % 3]);
        CHECK(t->receivers > 1 || element[1] == last[element[0] % 3] + 1);
        last[element[0] % 3] = element[1];
        t->sum += element[1];
    }
    CHECK_EQ(errno, EPIPE);
    return NULL;
}

static void traffic(size_t capacity, size_t size, int receivers)
{
    traffic_t t = {aco_channel_new(capacity, size), size, 100, 0, 0, receivers, 0};
    for (int i = 0; i < 3; i++)
        spawn_detached(sends, &t);
    for (int i = 0; i < receivers; i++)
        spawn_detached(receives, &t);
    run();
    CHECK_EQ(t.received, 300);
    CHECK_EQ(t.sum, size < 2 ? 0 : 3 * 99 * 100 / 2);
    CHECK_EQ(aco_channel_destroy(t.channel), 0);
}

static void *is_closed_on(void *arg)
{
    shared_t *s = arg;
    char name = (char)('a' + s->n++);
    int sending = s->n > 2;
    long long value = 1;
    errno = 0;
    CHECK_EQ(sending ? aco_channel_send(s->other, &value) : aco_channel_receive(s->channel, &value), -1);
    CHECK_EQ(errno, EPIPE);
    say(name);
    return NULL;
}

static void *closes(void *arg)
{
    shared_t *s = arg;
    FAILS(aco_channel_destroy(s->channel), -1, EBUSY, "aco_channel_destroy", NULL, "tasks wait");
    CHECK_EQ(aco_channel_close(s->channel), 0);
    CHECK_EQ(aco_channel_close(s->other), 0);
    say('c');
    return NULL;
}

static void channels(void)
{
    static const size_t sizes[] = {0, 1, 3, sizeof(void *), 24, LARGEST};
    shared_t s = {0};
    long long value = 7, got = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t capacity = 0; capacity < 8; capacity += capacity + 1)
            for (int receivers = 1; receivers < 3; receivers++)
                traffic(capacity, sizes[i], receivers);
    s.channel = aco_channel_new(0, sizeof value);
    s.other = aco_channel_new(0, sizeof value);
    for (int i = 0; i < 4; i++)
        spawn_detached(is_closed_on, &s);
    spawn_detached(closes, &s);
    run();
    CHECK_HISTORY("cabcd");
    FAILS(aco_channel_close(s.channel), -1, EPIPE, "aco_channel_close", NULL, "closed before");
    CHECK_EQ(aco_channel_destroy(s.channel), 0);
    CHECK_EQ(aco_channel_destroy(s.other), 0);
    s.channel = aco_channel_new(2, sizeof value);
    for (int i = 0; i < 3; i++) {
        errno = 0;
        CHECK_EQ(aco_channel_try_send(s.channel, &value), i < 2 ? 0 : -1);
        CHECK_EQ(errno, i < 2 ? 0 : EAGAIN);
    }
    CHECK_EQ(aco_channel_close(s.channel), 0);
    CHECK_EQ(aco_channel_try_send(s.channel, &value), -1);
    CHECK_EQ(errno, EPIPE);
    for (int i = 0; i < 3; i++) { /* what is in it comes out all the same */
        errno = 0;
        CHECK_EQ(aco_channel_try_receive(s.channel, &got), i < 2 ? 0 : -1);
        CHECK_EQ(errno, i < 2 ? 0 : EPIPE);
    }
    CHECK_EQ(got, 7);
    CHECK_EQ(aco_channel_destroy(s.channel), 0);
    FAILS(aco_channel_new(SIZE_MAX / 4, 8), NULL, EINVAL, "aco_channel_new", NULL, "too large");
    FAILS(aco_channel_close(NULL), -1, EINVAL, "aco_channel_close", NULL, "NULL");
    FAILS(aco_channel_destroy(NULL), -1, EINVAL, "aco_channel_destroy", NULL, "NULL");
}

/* ---- Select ---- */

static void *sends_some(void *arg)
{
    shared_t *s = arg;
    int value = s->n++;
    for (int i = 0; i < 50; i++)
        CHECK_EQ(aco_channel_send(value ? s->other : s->channel, &value), 0);
    return NULL;
}

static void *selects(void *arg)
{
    shared_t *s = arg;
    int a = -1, b = -1, seen[2] = {0};
    aco_select_case_t cases[3] = {{s->channel, &a, ACO_SELECT_RECEIVE, 0, {0}},
                                  {NULL, NULL, ACO_SELECT_SEND, 0, {0}},
                                  {s->other, &b, ACO_SELECT_RECEIVE, 0, {0}}};
    for (int i = 0; i < 100; i++) {
        int chosen = aco_select(cases, 3);
        CHECK(chosen == 0 || chosen == 2);
        CHECK_EQ(cases[chosen == 0 ? 0 : 2].error, 0);
        CHECK_EQ(chosen ? b : a, chosen / 2);
        seen[chosen == 2]++;
    }
    CHECK_EQ(seen[0], 50);
    CHECK_EQ(seen[1], 50);
    errno = 0;
    CHECK_EQ(aco_try_select(cases, 3), -1);
    CHECK_EQ(errno, EAGAIN);
    errno = 0;
    CHECK_EQ(aco_select_until(cases, 3, aco_after(2000000)), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    errno = 0;
    CHECK_EQ(aco_select_until(NULL, 0, aco_after(1)), -1); /* a sleep */
    CHECK_EQ(errno, ETIMEDOUT);
    FAILS(aco_try_select(NULL, 1), -1, EINVAL, "aco_try_select", NULL, "NULL");
    FAILS(aco_select(cases, -1), -1, EINVAL, "aco_select", NULL, "is negative");
    CHECK_EQ(aco_channel_destroy(s->channel), 0); /* nobody waits there any more */
    CHECK_EQ(aco_channel_close(s->other), 0);
    cases[0].channel = NULL;
    CHECK_EQ(aco_select(cases, 3), 2);
    CHECK_EQ(cases[2].error, EPIPE);
    CHECK_EQ(aco_channel_destroy(s->other), 0);
    return NULL;
}

static void null_elements(void)
{
    int value = 1;
    aco_channel_t *one = aco_channel_new(1, sizeof value);
    FAILS(aco_channel_try_send(one, NULL), -1, EINVAL, "aco_channel_try_send", NULL, "the element is NULL");
    FAILS(aco_channel_try_send(NULL, &value), -1, EINVAL, "aco_channel_try_send", NULL, "the channel is NULL");
    FAILS(aco_channel_try_receive(NULL, &value), -1, EINVAL, "aco_channel_try_receive", NULL, "the channel is NULL");
    FAILS(aco_channel_new(0, SIZE_MAX), NULL, EINVAL, "aco_channel_new", NULL, "too large");
    CHECK_EQ(aco_channel_destroy(one), 0);
}

/* Of two that are ready all the time neither starves. */
static void fair_selection(void)
{
    enum { EACH = 60 };
    int value = 0, seen[2] = {0}, in_a_row = 0, last = -1;
    aco_select_case_t cases[2] = {{NULL, &value, ACO_SELECT_RECEIVE, 0, {0}},
                                  {NULL, &value, ACO_SELECT_RECEIVE, 0, {0}}};
    for (int i = 0; i < 2; i++) {
        cases[i].channel = aco_channel_new(EACH, sizeof value);
        for (int j = 0; j < EACH; j++)
            CHECK_EQ(aco_channel_try_send(cases[i].channel, &value), 0);
    }
    while (seen[0] < EACH && seen[1] < EACH) {
        int chosen = aco_try_select(cases, 2);
        seen[chosen == 1]++;
        in_a_row = chosen == last ? in_a_row + 1 : 1;
        last = chosen;
        CHECK(in_a_row <= 2);
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(aco_channel_destroy(cases[i].channel), 0);
}

typedef struct fairness {
    aco_channel_t *channels[2];
    int seen[2];
} fairness_t;

static void *selects_in_turn(void *arg)
{
    fairness_t *f = arg;
    int value = 0;
    aco_select_case_t cases[2] = {{f->channels[0], &value, ACO_SELECT_RECEIVE, 0, {0}},
                                  {f->channels[1], &value, ACO_SELECT_RECEIVE, 0, {0}}};
    for (int i = 0; i < 10; i++) {
        f->seen[aco_select(cases, 2) == 1]++;
        aco_task_yield();
    }
    return NULL;
}

/* ... also in each of several tasks that take turns. */
static void fair_among_tasks(void)
{
    int value = 0;
    fairness_t f[2] = {{{NULL, NULL}, {0, 0}}, {{NULL, NULL}, {0, 0}}};
    for (int i = 0; i < 2; i++) {
        f[0].channels[i] = f[1].channels[i] = aco_channel_new(100, sizeof value);
        for (int j = 0; j < 100; j++)
            CHECK_EQ(aco_channel_try_send(f[0].channels[i], &value), 0);
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(aco_detach(aco_spawn(selects_in_turn, &f[i], NULL)), 0);
    CHECK_EQ(aco_run(), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(f[i].seen[0], 5);
        CHECK_EQ(f[i].seen[1], 5);
        CHECK_EQ(aco_channel_destroy(f[0].channels[i]), 0);
    }
}

/* Either gives its number to the other, or takes the other's. */
static void *meets(void *arg)
{
    shared_t *s = arg;
    int mine = ++s->n, got = 0, chosen;
    aco_select_case_t both[2] = {{s->channel, &mine, ACO_SELECT_SEND, 0, {0}},
                                 {s->channel, &got, ACO_SELECT_RECEIVE, 0, {0}}};
    chosen = aco_select(both, 2);
    CHECK(chosen == 0 || chosen == 1);
    say(chosen ? 'r' : 's');
    if (chosen == 1)
        CHECK_EQ(got, 3 - mine);
    return NULL;
}

static void *selects_closed(void *arg)
{
    shared_t *s = arg;
    int value = 0;
    aco_select_case_t cases[2] = {{s->other, &value, ACO_SELECT_RECEIVE, 0, {0}},
                                  {s->channel, &value, ACO_SELECT_SEND, 0, {0}}};
    CHECK_EQ(aco_select_until(cases, 2, aco_after(1000000000)), 1); /* closed while it waits; its timer is gone, too */
    CHECK_EQ(cases[1].error, EPIPE);
    say('x');
    return NULL;
}

static void *closes_one(void *closed)
{
    CHECK_EQ(aco_channel_close(closed), 0);
    return NULL;
}

static void selections(void)
{
    shared_t s = {0};
    s.channel = aco_channel_new(0, sizeof(int));
    s.other = aco_channel_new(3, sizeof(int));
    spawn_detached(selects, &s);
    spawn_detached(sends_some, &s);
    spawn_detached(sends_some, &s);
    run();
    s.n = 0;
    s.channel = aco_channel_new(0, sizeof(int));
    s.other = aco_channel_new(0, sizeof(int));
    spawn_detached(meets, &s);
    spawn_detached(meets, &s);
    run();
    fair_selection();
    fair_among_tasks();
    null_elements();
    CHECK(strcmp(history, "rs") == 0 || strcmp(history, "sr") == 0);
    memset(history, 0, sizeof history);
    spawn_detached(selects_closed, &s);
    spawn_detached(closes_one, s.channel);
    run();
    CHECK_HISTORY("x");
    CHECK_EQ(aco_channel_destroy(s.channel), 0);
    CHECK_EQ(aco_channel_destroy(s.other), 0);
}

int main(void)
{
    void (*const tests[])(void) = {mutexes, conditions, semaphores_and_groups, channels, selections, NULL};
    with_all_kinds(tests);
    return check_result("scheduler_sync");
}
