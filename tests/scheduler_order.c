/* Promises about order (include/aco/scheduler.h): what wakes many tasks lets all of them run in one round of the queue,
 * in the order in which they began to wait; and no task starves another. */
#include "tasks.h"

#include <aco/group.h>

enum { WAITERS = 1000 };

/* ---- One round ---- */

/* FREE, HELD: a broadcast while nobody has the mutex, or while the caller has it; QUEUED: while it has it and others
 * queue for it already; SIGNALS: as HELD, by a signal for each. */
enum { FREE, HELD, QUEUED, SIGNALS, GROUP, RECEIVERS, SENDERS, CANCELLED, MEMBERS, WAYS };

static struct shared_s {
    aco_mutex_t mutex;
    aco_cond_t cond;
    aco_wait_group_t wait_group;
    aco_channel_t *channel;
    aco_group_t group;
    int way, waiting, woken, in_order, round, first_round, last_round, over;
} s;

static void *counts_rounds(void *unused)
{
    while (!s.over) {
        s.round++;
        aco_task_yield();
    }
    return unused;
}

static void *waits(void *number)
{
    int result = -1, wanted = -1;
    s.waiting++;
    switch (s.way) {
    case FREE:
    case HELD:
    case QUEUED:
    case SIGNALS:
        CHECK_EQ(aco_mutex_lock(&s.mutex), 0);
        result = aco_cond_wait(&s.cond, &s.mutex);
        CHECK(s.mutex.owner == aco_get_co());
        CHECK_EQ(aco_mutex_unlock(&s.mutex), 0);
        wanted = 0;
        break;
    case GROUP:
        result = aco_wait_group_wait(&s.wait_group);
        wanted = 0;
        break;
    case RECEIVERS: result = aco_channel_receive(s.channel, NULL); break;
    case SENDERS: result = aco_channel_send(s.channel, NULL); break;
    default: result = aco_park("to be cancelled"); break;
    }
    CHECK_EQ(result, wanted);
    s.in_order += s.woken++ == (int)(intptr_t)number;
    s.last_round = s.round;
    if (s.woken == 1)
        s.first_round = s.round;
    return NULL;
}

static void *only_locks(void *unused)
{
    CHECK_EQ(aco_mutex_lock(&s.mutex), 0);
    CHECK_EQ(aco_mutex_unlock(&s.mutex), 0);
    return unused;
}

static void wake_all(void)
{
    switch (s.way) {
    case FREE:
        aco_cond_broadcast(&s.cond);
        break;
    case QUEUED:
        CHECK_EQ(aco_mutex_lock(&s.mutex), 0);
        for (int i = 0; i < 3; i++)
            spawn_detached(only_locks, NULL);
        aco_task_yield();
        aco_cond_broadcast(&s.cond);
        CHECK_EQ(aco_mutex_unlock(&s.mutex), 0);
        break;
    case HELD:
    case SIGNALS:
        CHECK_EQ(aco_mutex_lock(&s.mutex), 0);
        for (int i = 0; i < (s.way == HELD ? 1 : WAITERS); i++)
            (s.way == HELD ? aco_cond_broadcast : aco_cond_signal)(&s.cond);
        CHECK_EQ(aco_mutex_unlock(&s.mutex), 0);
        break;
    case GROUP:
        CHECK_EQ(aco_wait_group_done(&s.wait_group), 0);
        break;
    case RECEIVERS:
    case SENDERS:
        CHECK_EQ(aco_channel_close(s.channel), 0);
        break;
    default:
        CHECK_EQ(aco_scope_cancel(&s.group.scope), 0);
    }
}

static void *wakes_all(void *unused)
{
    const aco_options_t options = {.flags = kind};
    aco_group_begin(&s.group, s.way == CANCELLED ? ACO_KEEP_GOING : ACO_CANCEL_ON_FAILURE);
    s.wait_group.count = 1;
    for (intptr_t i = 0; i < WAITERS; i++)
        CHECK(aco_group_spawn(&s.group, waits, (void *)i, &options) != NULL);
    while (s.waiting < WAITERS)
        aco_task_yield();
    wake_all();
    CHECK_EQ(aco_group_end(&s.group), 0);
    s.over = 1;
    return unused;
}

/* With others in the mutex's queue: three rounds until they had it. */
static void one_round(void)
{
    for (int way = 0; way < WAYS; way++) {
        memset(&s, 0, sizeof s);
        s.way = way;
        s.channel = aco_channel_new(0, 0);
        spawn_detached(wakes_all, NULL);
        spawn_detached(counts_rounds, NULL);
        run();
        CHECK_EQ(s.woken, WAITERS);
        CHECK_EQ(s.in_order, WAITERS);
        CHECK(s.last_round - s.first_round <= 1);
        CHECK_EQ(aco_channel_destroy(s.channel), 0);
    }
}

/* ---- One that keeps the mutex while it waits ---- */

enum { KEEPERS = 50 };

static void *waits_and_keeps(void *number)
{
    CHECK_EQ(aco_mutex_lock(&s.mutex), 0);
    s.waiting++;
    CHECK_EQ(aco_cond_wait(&s.cond, &s.mutex), 0);
    s.in_order += s.woken++ == (int)(intptr_t)number;
    for (int i = 0; i < 3; i++) {
        aco_task_yield();
        CHECK(s.mutex.owner == aco_get_co());
    }
    CHECK_EQ(aco_mutex_unlock(&s.mutex), 0);
    return NULL;
}

static void *broadcasts(void *unused)
{
    while (s.waiting < KEEPERS)
        aco_task_yield();
    aco_cond_broadcast(&s.cond);
    CHECK_EQ(aco_mutex_try_lock(&s.mutex), -1); /* it was handed over */
    CHECK_EQ(aco_mutex_lock(&s.mutex), 0);
    CHECK_EQ(s.woken, KEEPERS); /* behind all that wait for it */
    CHECK_EQ(aco_mutex_unlock(&s.mutex), 0);
    return unused;
}

static void keepers(void)
{
    memset(&s, 0, sizeof s);
    for (intptr_t i = 0; i < KEEPERS; i++)
        spawn_detached(waits_and_keeps, (void *)i);
    spawn_detached(broadcasts, NULL);
    run();
    CHECK_EQ(s.in_order, KEEPERS);
    CHECK(!s.mutex.owner && !s.mutex.aco__waiters.first);
}

/* ---- Nobody starves ---- */

static int greedy, served, others;
static aco_semaphore_t semaphore;

static void *greedy_for_mutex(void *unused)
{
    while (served < others) {
        CHECK_EQ(aco_mutex_lock(&s.mutex), 0);
        greedy++;
        aco_task_yield();
        aco_cond_broadcast(&s.cond);
        CHECK_EQ(aco_mutex_unlock(&s.mutex), 0);
    }
    return unused;
}

static void *wants_mutex(void *with_condition)
{
    CHECK_EQ(aco_mutex_lock(&s.mutex), 0);
    if (with_condition)
        CHECK_EQ(aco_cond_wait(&s.cond, &s.mutex), 0);
    aco_task_yield();
    served++;
    CHECK_EQ(aco_mutex_unlock(&s.mutex), 0);
    return NULL;
}

static void *greedy_for_semaphore(void *unused)
{
    while (served < others) {
        CHECK_EQ(aco_semaphore_acquire(&semaphore), 0);
        greedy++;
        aco_task_yield();
        aco_semaphore_release(&semaphore);
    }
    return unused;
}

static void *wants_semaphore(void *unused)
{
    CHECK_EQ(aco_semaphore_acquire(&semaphore), 0);
    served++;
    aco_semaphore_release(&semaphore);
    return unused;
}

static void *greedy_receiver(void *unused)
{
    while (aco_channel_receive(s.channel, NULL) == 0)
        greedy++;
    return unused;
}

static void *wants_element(void *unused)
{
    CHECK_EQ(aco_channel_receive(s.channel, NULL), 0);
    served++;
    return unused;
}

static void *sends_until_served(void *unused)
{
    while (served < others) {
        CHECK_EQ(aco_channel_send(s.channel, NULL), 0);
        aco_task_yield();
    }
    CHECK_EQ(aco_channel_close(s.channel), 0);
    return unused;
}

/* A greedy task gets its turn no more often than each of the others that wait. */
static void nobody_starves(void)
{
    others = 10;
    for (int way = 0; way < 4; way++) {
        static const aco_function_t wants[] = {wants_mutex, wants_mutex, wants_semaphore, wants_element};
        static const aco_function_t greeds[] = {greedy_for_mutex, greedy_for_mutex, greedy_for_semaphore,
                                                greedy_receiver};
        memset(&s, 0, sizeof s);
        semaphore = (aco_semaphore_t)ACO_SEMAPHORE_INIT(1);
        s.channel = aco_channel_new(0, 0);
        greedy = served = 0;
        spawn_detached(greeds[way], NULL);
        for (int i = 0; i < others; i++)
            spawn_detached(wants[way], way == 1 ? &s : NULL);
        if (way == 3)
            spawn_detached(sends_until_served, NULL);
        run();
        CHECK_EQ(served, others);
        CHECK(greedy <= 4);
        CHECK_EQ(aco_channel_destroy(s.channel), 0);
    }
}

/* ---- Timers ---- */

static int64_t deadline;

static void *sleeps(void *name)
{
    CHECK_EQ(aco_sleep_until(deadline), 0);
    say(*(char *)name);
    return NULL;
}

/* Promise: of those that sleep until the same time, the one that called first wakes first. */
static void equal_deadlines(void)
{
    static char names[] = "abcdefghijklmnopqrstuvwxyz";
    deadline = aco_after(2 * ACO_MILLISECOND);
    for (char *name = names; *name; name++)
        spawn_detached(sleeps, name);
    run();
    CHECK_HISTORY("abcdefghijklmnopqrstuvwxyz");
}

int main(void)
{
    static void (*const tests[])(void) = {one_round, keepers, nobody_starves, equal_deadlines, NULL};
    with_all_kinds(tests);
    return check_result("scheduler_order");
}
