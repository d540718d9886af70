/* Promises about the reader-writer lock, once, barrier and event (include/aco/sync.h), one function each; and that
 * scopes, deadlines and reports of deadlocks know their waits. */
#include "tasks.h"
#include "fails.h"

#include <aco/scope.h>
#include <aco/sync.h>

static aco_rwlock_t lock;
static aco_once_t once;
static aco_barrier_t barrier;
static aco_event_t event;
static int readers, writers, most_readers;

/* ---- Reader-writer lock ---- */

static void *reads(void *name)
{
    CHECK_EQ(aco_rwlock_rdlock(&lock), 0);
    CHECK(!lock.writer && lock.readers > 0);
    CHECK_EQ(writers, 0);
    most_readers = ++readers > most_readers ? readers : most_readers;
    say(*(char *)name);
    aco_task_yield();
    aco_task_yield();
    readers--;
    CHECK_EQ(aco_rwlock_unlock(&lock), 0);
    return NULL;
}

static void *writes(void *name)
{
    CHECK_EQ(aco_rwlock_wrlock(&lock), 0);
    CHECK(lock.writer == aco_get_co() && lock.readers == 0);
    CHECK_EQ(readers + writers++, 0);
    FAILS(aco_rwlock_wrlock(&lock), -1, EDEADLK, "aco_rwlock_wrlock", aco_get_co(), "for writing");
    FAILS(aco_rwlock_rdlock(&lock), -1, EDEADLK, "aco_rwlock_rdlock", aco_get_co(), "for writing");
    CHECK_EQ(aco_rwlock_try_rdlock(&lock), -1);
    CHECK_EQ(errno, EBUSY);
    say(*(char *)name);
    aco_task_yield();
    writers--;
    CHECK_EQ(aco_rwlock_unlock(&lock), 0);
    return NULL;
}

static void *tries(void *unused)
{
    static aco_rwlock_t nobodys;
    FAILS(aco_rwlock_unlock(&nobodys), -1, EPERM, "aco_rwlock_unlock", aco_get_co(), "has not locked");
    CHECK_EQ(aco_rwlock_try_wrlock(&lock), -1); /* readers have it */
    CHECK_EQ(errno, EBUSY);
    CHECK_EQ(aco_rwlock_try_rdlock(&lock), -1); /* a writer waits */
    CHECK_EQ(errno, EBUSY);
    while (lock.readers || lock.writer)
        aco_task_yield();
    CHECK_EQ(aco_rwlock_try_rdlock(&lock), 0);
    CHECK_EQ(aco_rwlock_try_rdlock(&lock), 0);
    CHECK_EQ(aco_rwlock_unlock(&lock), 0);
    CHECK_EQ(aco_rwlock_unlock(&lock), 0);
    CHECK_EQ(aco_rwlock_try_wrlock(&lock), 0);
    CHECK_EQ(aco_rwlock_unlock(&lock), 0);
    return unused;
}

static void *reads_for_ever(void *left)
{
    while (*(int *)left > 0) {
        CHECK_EQ(aco_rwlock_rdlock(&lock), 0);
        aco_task_yield();
        CHECK_EQ(aco_rwlock_unlock(&lock), 0);
    }
    return NULL;
}

static void *writes_some(void *left)
{
    while (--*(int *)left > 0) {
        CHECK_EQ(aco_rwlock_wrlock(&lock), 0);
        aco_task_yield();
        CHECK_EQ(aco_rwlock_unlock(&lock), 0);
    }
    return NULL;
}

static void rwlocks(void)
{
    int left = 20;
    most_readers = 0;
    for (const char *name = "aAbBc"; *name; name++)
        spawn_detached(*name < 'a' ? writes : reads, (void *)(intptr_t)name);
    spawn_detached(tries, NULL);
    run();
    CHECK_HISTORY("aAbBc"); /* a reader does not pass a writer */
    for (const char *name = "AabcBde"; *name; name++)
        spawn_detached(*name < 'a' ? writes : reads, (void *)(intptr_t)name);
    run();
    CHECK_HISTORY("AabcBde");
    CHECK_EQ(most_readers, 3);
    for (int i = 0; i < 3; i++)
        spawn_detached(reads_for_ever, &left);
    spawn_detached(writes_some, &left);
    run();
    CHECK(!lock.writer && !lock.readers && !lock.aco__waiters.first);
}

/* ---- Once ---- */

static int calls, failures_left;

static int runs_once(void *arg)
{
    calls++;
    aco_task_yield();
    FAILS(aco_once(&once, runs_once, arg), -1, EDEADLK, "aco_once", aco_get_co(), "its own function");
    if (failures_left-- > 0) {
        errno = EIO;
        return 1;
    }
    CHECK_EQ(aco_sleep(1000), 0);
    return 0;
}

static void *needs_once(void *unused)
{
    int result = aco_once(&once, runs_once, NULL);
    if (result != 0) {
        CHECK_EQ(result, -1);
        CHECK_EQ(errno, EIO);
        say('f');
        return unused;
    }
    CHECK(once.done);
    CHECK_EQ(aco_once(&once, runs_once, NULL), 0);
    say('d');
    return unused;
}

static void onces(void)
{
    memset(&once, 0, sizeof once);
    calls = 0;
    failures_left = 2;
    for (int i = 0; i < 5; i++)
        spawn_detached(needs_once, NULL);
    run();
    CHECK_HISTORY("ffddd");
    CHECK_EQ(calls, 3);
    CHECK_EQ(aco_once(&once, runs_once, NULL), 0); /* no wait: any caller */
}

/* ---- Barrier, event ---- */

static int last_ones;

static void *meets(void *rounds)
{
    for (int i = 0; i < (int)(intptr_t)rounds; i++) {
        int answer = aco_barrier_wait(&barrier);
        CHECK(answer == 0 || answer == 1);
        last_ones += answer;
        say((char)('0' + i));
    }
    return NULL;
}

static void *gives_up(void *unused)
{
    CHECK_EQ(aco_barrier_wait_until(&barrier, aco_after(1000)), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    return unused;
}

static void *waits_for_event(void *unused)
{
    CHECK_EQ(aco_event_wait(&event), 0);
    say('e');
    return unused;
}

static void *sets(void *unused)
{
    CHECK(!event.is_set);
    say('s');
    aco_event_set(&event);
    aco_event_reset(&event);
    say('r');
    return unused;
}

static void barriers_and_events(void)
{
    aco_event_reset(&event);
    barrier = (aco_barrier_t)ACO_BARRIER_INIT(3);
    last_ones = 0;
    spawn_detached(gives_up, NULL);
    run();
    CHECK_EQ(barrier.arrived, 0);
    for (int i = 0; i < 3; i++)
        spawn_detached(meets, (void *)3);
    run();
    CHECK_HISTORY("000111222");
    CHECK_EQ(last_ones, 3);
    for (int i = 0; i < 3; i++)
        spawn_detached(waits_for_event, NULL);
    spawn_detached(sets, NULL);
    run();
    CHECK_HISTORY("sreee"); /* woken, though it is reset */
    aco_event_set(&event);
    spawn_detached(waits_for_event, NULL);
    run();
    CHECK_HISTORY("e");
    aco_event_reset(&event);
}

/* ---- Scopes and reports ---- */

static int never(void *unused)
{
    (void)unused;
    CHECK(!"this runs");
    return 0;
}

static int parks_once(void *unused)
{
    (void)unused;
    return aco_park("inside once");
}

static void *has_all(void *unused)
{
    CHECK_EQ(aco_rwlock_wrlock(&lock), 0);
    CHECK_EQ(aco_once(&once, parks_once, NULL), 0);
    CHECK_EQ(aco_rwlock_unlock(&lock), 0);
    return unused;
}

static int wait_for(int which)
{
    switch (which) {
    case 0: return aco_rwlock_rdlock(&lock);
    case 1: return aco_rwlock_wrlock(&lock);
    case 2: return aco_once(&once, never, NULL);
    case 3: return aco_barrier_wait(&barrier);
    default: return aco_event_wait(&event);
    }
}

static void *waits_in_scope(void *which)
{
    aco_scope_t scope;
    aco_scope_begin(&scope, aco_after(100000));
    CHECK_EQ(wait_for((int)(intptr_t)which), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    CHECK_EQ(wait_for((int)(intptr_t)which), -1);
    aco_scope_end(&scope);
    aco_scope_begin(&scope, ACO_FOREVER);
    aco_scope_cancel(&scope);
    CHECK_EQ(wait_for((int)(intptr_t)which), -1);
    CHECK_EQ(errno, ECANCELED);
    aco_scope_end(&scope);
    return NULL;
}

static void *waits_plainly(void *which)
{
    CHECK(wait_for((int)(intptr_t)which) >= 0);
    if ((intptr_t)which < 2)
        CHECK_EQ(aco_rwlock_unlock(&lock), 0);
    return NULL;
}

/* Promise: a writer that gives up does not keep the readers behind it. */
static void *writes_in_vain(void *unused)
{
    CHECK_EQ(aco_rwlock_wrlock_until(&lock, aco_after(100000)), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    say('t');
    return unused;
}

static void *reads_long(void *unused)
{
    CHECK_EQ(aco_rwlock_rdlock(&lock), 0);
    CHECK_EQ(aco_event_wait(&event), 0);
    CHECK_EQ(aco_rwlock_unlock(&lock), 0);
    return unused;
}

static void *reads_and_sets(void *unused)
{
    CHECK_EQ(aco_rwlock_rdlock(&lock), 0);
    say('r');
    CHECK_EQ(aco_rwlock_unlock(&lock), 0);
    aco_event_set(&event);
    return unused;
}

static void scopes(void)
{
    static const char *const texts[] = {"for reader-writer lock ", "for reader-writer lock ",
                                        "for the function that coroutine ", "at barrier ", "for event "};
    char text[4096];
    aco_t *holder;
    memset(&once, 0, sizeof once);
    memset(&lock, 0, sizeof lock);
    memset(&event, 0, sizeof event);
    barrier = (aco_barrier_t)ACO_BARRIER_INIT(7);
    holder = spawn_as(has_all, NULL, ACO_DETACHED, "holder");
    for (intptr_t which = 0; which < 5; which++)
        spawn_detached(waits_in_scope, (void *)which);
    check_deadlock(text, sizeof text);
    CHECK(strstr(text, "inside once") != NULL);
    CHECK(!lock.aco__waiters.first && !once.aco__waiters.first && !event.aco__waiters.first && !barrier.arrived);
    for (intptr_t which = 0; which < 5; which++)
        spawn_detached(waits_plainly, (void *)which);
    check_deadlock(text, sizeof text);
    for (int which = 0; which < 5; which++)
        CHECK(strstr(text, texts[which]) != NULL);
    CHECK(strstr(text, "(holder)") != NULL && strstr(text, "with 1 of 7 task(s)") != NULL);
    CHECK_EQ(aco_unpark(holder), 0);
    aco_event_set(&event);
    for (int i = 0; i < 6; i++)
        spawn_detached(waits_plainly, (void *)3);
    run();
    memset(&lock, 0, sizeof lock);
    memset(&event, 0, sizeof event);
    spawn_detached(reads_long, NULL);
    spawn_detached(writes_in_vain, NULL);
    spawn_detached(reads_and_sets, NULL);
    run();
    CHECK_HISTORY("tr");
    CHECK(!lock.readers && !lock.aco__waiters.first);
}

static void *in_coroutine(void *unused)
{
    for (int which = 0; which < 2; which++)
        FAILS(wait_for(which), -1, EPERM, which ? "aco_rwlock_wrlock" : "aco_rwlock_rdlock", aco_get_co(),
              "is not a task");
    return unused;
}

static void failures(void)
{
    aco_t *co = aco_new(in_coroutine, NULL, NULL);
    aco_barrier_t none = ACO_BARRIER_INIT(0);
    memset(&once, 0, sizeof once);
    aco_send(co, NULL);
    aco_destroy(co);
    FAILS(aco_rwlock_unlock(&lock), -1, EPERM, "aco_rwlock_unlock", NULL, "root context");
    FAILS(aco_rwlock_try_wrlock(&lock), -1, EPERM, "aco_rwlock_try_wrlock", NULL, "root context");
    FAILS(aco_once(&once, never, NULL), -1, EPERM, "aco_once", NULL, "root context");
    FAILS(aco_barrier_wait(&none), -1, EINVAL, "aco_barrier_wait", NULL, "count is 0");
    FAILS(aco_barrier_wait(&barrier), -1, EPERM, "aco_barrier_wait", NULL, "root context");
    FAILS(aco_event_wait(&event), -1, EPERM, "aco_event_wait", NULL, "root context");
}

int main(void)
{
    static void (*const tests[])(void) = {rwlocks, onces, barriers_and_events, scopes, failures, NULL};
    with_all_kinds(tests);
    return check_result("scheduler_locks");
}
