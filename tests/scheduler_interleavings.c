/* Every interleaving of what can end a wait: a wake, a cancelling and a deadline, from the same thread and from another
 * one. Two tasks wait for the same thing, the first one in a scope; a third task does each sequence of events, with
 * and without a turn of the others after each. A model says who gets what. Time is the test's.
 *
 * Promises (include/aco/scheduler.h, scope.h, group.h): what happens first decides. What was handed over is not
 * dropped, and what a failed wait did not take is there for the next. News of other threads and deadlines come within
 * a round. Waits in an ended scope fail until the task leaves it. A group ends when all members have. Of many waits
 * with deadlines each ends when it is told to, or when it is due, and the thread sleeps until then.
 *
 * scheduler_interleavings [events in a sequence] */
#define _GNU_SOURCE
#include "tasks.h"
#include "own_clock.h"

#include <aco/group.h>
#include <aco/sync.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The clock ---- */

uint32_t aco__os_milliseconds(void) /* it begins anywhere */
{
    return 123456789;
}

static int told[2]; /* a pipe */

static void (*slept)(void); /* NULL, or called after each sleep */

void aco__os_sleep_until(int64_t then)
{
    clock_ns = then;
    if (slept)
        slept();
}

void aco__os_wait(uint32_t *word, uint32_t value, int64_t then) /* some task can always run */
{
    (void)word, (void)value, (void)then;
    abort();
}

void aco__os_wake(uint32_t *word)
{
    (void)word;
}

/* ---- Events ---- */

enum { WAKE, CANCEL, TIME, SCOPE_TIME, AFAR_WAKE, AFAR_CANCEL, EVENTS, MOST = 5 };
enum { LIMIT = 100, SCOPE_LIMIT = 200, WAITERS = 2 };
static int sequence[MOST], length = UNDER_TSAN ? 2 : 3;
static int turns[MOST]; /* whether the others get one after the event */

static aco_scheduler_t *scheduler;
static long cases;

/* ---- Kinds of waits ---- */

static aco_mutex_t mutex;
static aco_cond_t cond;
static aco_semaphore_t semaphore;
static aco_wait_group_t wait_group;
static aco_rwlock_t rwlock;
static aco_barrier_t barrier;
static aco_event_t event, never;
static aco_channel_t *channel;
static aco_t *waiters[WAITERS], *driver;
static const int64_t sent = 7;

static int park(int64_t deadline) { return aco_park_until("a test", deadline); }
static int nap(int64_t deadline) { return aco_sleep_until(deadline); }
static int lock(int64_t deadline) { return aco_mutex_lock_until(&mutex, deadline); }
static int acquire(int64_t deadline) { return aco_semaphore_acquire_until(&semaphore, deadline); }
static int wait_zero(int64_t deadline) { return aco_wait_group_wait_until(&wait_group, deadline); }
static int read_lock(int64_t deadline) { return aco_rwlock_rdlock_until(&rwlock, deadline); }
static int write_lock(int64_t deadline) { return aco_rwlock_wrlock_until(&rwlock, deadline); }
static int meet(int64_t deadline) { return aco_barrier_wait_until(&barrier, deadline); }
static int wait_set(int64_t deadline) { return aco_event_wait_until(&event, deadline); }
static int send(int64_t deadline) { return aco_channel_send_until(channel, &sent, deadline); }

static int wait_cond(int64_t deadline)
{
    int result, error;
    CHECK_EQ(aco_mutex_lock(&mutex), 0);
    result = aco_cond_wait_until(&cond, &mutex, deadline);
    error = errno;
    CHECK(mutex.owner == aco_get_co());
    CHECK_EQ(aco_mutex_unlock(&mutex), 0);
    errno = error;
    return result;
}

static int receive(int64_t deadline)
{
    int64_t value = 0;
    int result = aco_channel_receive_until(channel, &value, deadline);
    CHECK_EQ(value, result == 0 ? sent : 0);
    return result;
}

static int choose(int64_t deadline)
{
    int64_t value = 0;
    aco_select_case_t c = {channel, &value, ACO_SELECT_RECEIVE, 0, {0}};
    int result = aco_select_until(&c, 1, deadline);
    CHECK_EQ(value, result == 0 ? sent : 0);
    return result;
}

/* What wakes. Returns whether the event can have an effect on waiters. */
static int unpark(void) { return aco_unpark(waiters[0]) == 0; }
static int nothing(void) { return 0; }
static int signal_one(void) { aco_cond_signal(&cond); return 1; }
static int broadcast(void) { aco_cond_broadcast(&cond); return 1; }
static int release(void) { aco_semaphore_release(&semaphore); return 1; }
static int set(void) { aco_event_set(&event); return 1; }
static int done(void) { return wait_group.count && aco_wait_group_done(&wait_group) == 0; }
static int put(void) { return aco_channel_try_send(channel, &sent) == 0; }
static int take(void) { int64_t value = 0; return aco_channel_try_receive(channel, &value) == 0 && value == sent; }

/* The driver has these locked at first. A wake from afar runs in the root context, which cannot unlock. */
static int unlock(void) { return mutex.owner == driver && aco_get_co() && aco_mutex_unlock(&mutex) == 0; }
static int rw_unlock(void) { return rwlock.writer == driver && aco_get_co() && aco_rwlock_unlock(&rwlock) == 0; }
static int arrive(void) { return barrier.arrived == WAITERS && aco_get_co() && aco_barrier_wait(&barrier) == 1; }

static void unlock_own(void) { CHECK_EQ(aco_mutex_unlock(&mutex), 0); }
static void rw_unlock_own(void) { CHECK_EQ(aco_rwlock_unlock(&rwlock), 0); }

static const struct kind {
    const char *name;
    int (*wait)(int64_t deadline);
    int (*wake)(void);
    void (*after)(void);               /* what the waiter has to do in the end, if it had success */
    enum { FIRST, ALL, ONLY_0 } woken; /* ONLY_0: the event is about the first waiter */
} kinds[] = {
    {"park", park, unpark, NULL, ONLY_0}, {"sleep", nap, nothing, NULL, ALL},
    {"mutex", lock, unlock, unlock_own, FIRST}, {"signal", wait_cond, signal_one, NULL, FIRST},
    {"broadcast", wait_cond, broadcast, NULL, ALL}, {"semaphore", acquire, release, NULL, FIRST},
    {"wait group", wait_zero, done, NULL, ALL}, {"read", read_lock, rw_unlock, rw_unlock_own, ALL},
    {"write", write_lock, rw_unlock, rw_unlock_own, FIRST}, {"barrier", meet, arrive, NULL, ALL},
    {"event", wait_set, set, NULL, ALL}, {"send", send, take, NULL, FIRST}, {"receive", receive, put, NULL, FIRST},
    {"select", choose, put, NULL, FIRST},
};
static const struct kind *how;

/* ---- The model ---- */

enum { WAITING = -1 };
static int outcomes[WAITERS]; /* WAITING, 0, or the errno */
static int scope_error;       /* of the first waiter's scope */
static int in_flight[MOST], in_flight_n, arrived, had_effect[MOST]; /* news under way */
static size_t woken;          /* wakes that had an effect or left something */

static void ends_all(int error)
{
    for (int i = 0; i < WAITERS; i++)
        if (outcomes[i] == WAITING)
            outcomes[i] = error;
}

static void model_wake(int has_effect)
{
    woken += (size_t)has_effect;
    if (!has_effect)
        return;
    if (how->woken == ALL) {
        ends_all(0);
    } else if (how->woken == ONLY_0) {
        outcomes[0] = outcomes[0] == WAITING ? 0 : outcomes[0];
    } else {
        for (int i = 0; i < WAITERS; i++)
            if (outcomes[i] == WAITING) {
                outcomes[i] = 0;
                return;
            }
    }
}

static void model_scope_ends(int error)
{
    if (scope_error)
        return;
    scope_error = error;
    if (outcomes[0] == WAITING)
        outcomes[0] = error;
}

static void model_time(void)
{
    if (clock_ns >= LIMIT)
        ends_all(how->wait == nap ? 0 : ETIMEDOUT);
    if (clock_ns >= SCOPE_LIMIT)
        model_scope_ends(ETIMEDOUT);
}

/* ---- The real thing ---- */

static aco_scope_t scope;
static int over, ended, results[WAITERS];

static void *waits(void *which)
{
    intptr_t me = (intptr_t)which;
    int result;
    if (me == 0)
        CHECK_EQ(aco_scope_begin(&scope, SCOPE_LIMIT), 0);
    result = how->wait(LIMIT);
    results[me] = result < 0 ? errno : 0;
    while (!over) /* in its scope */
        CHECK_EQ(aco_task_yield(), 0);
    if (result >= 0 && how->after)
        how->after();
    if (me == 0) {
        result = aco_check_cancelled();
        CHECK_EQ(result ? errno : 0, scope_error);
        errno = 0;
        if (scope_error)
            CHECK(aco_event_wait(&never) == -1 && errno == scope_error);
        CHECK_EQ(scope.error, scope_error);
        CHECK_EQ(aco_scope_end(&scope), 0);
        CHECK_EQ(aco_check_cancelled(), 0);
    }
    ended++;
    return NULL;
}

static void wake_posted(void *unused)
{
    (void)unused;
    while (in_flight[arrived] == AFAR_CANCEL)
        arrived++;
    had_effect[arrived++] = how->wake();
}

static void *does_afar(void *which)
{
    if ((intptr_t)which == AFAR_CANCEL)
        CHECK_EQ(aco_scope_cancel(&scope), 0);
    else if (how->wake == unpark)
        CHECK_EQ(aco_unpark(waiters[0]), 0);
    else
        CHECK_EQ(aco_post(scheduler, wake_posted, NULL), 0);
    return NULL;
}

static void cancel_posted(void *unused)
{
    (void)unused;
    CHECK_EQ(aco_scope_cancel(&scope), 0);
}

/* The news of one case in 50 come from a real thread, which takes long; the others' by the same way. */
static void happens_afar(int what)
{
    pthread_t other;
    if (cases % 50 == 0) {
        CHECK_EQ(pthread_create(&other, NULL, does_afar, (void *)(intptr_t)what), 0);
        CHECK_EQ(pthread_join(other, NULL), 0);
    } else if (what == AFAR_CANCEL) {
        CHECK_EQ(aco_post(scheduler, cancel_posted, NULL), 0);
    } else {
        CHECK_EQ(aco_post(scheduler, wake_posted, NULL), 0);
    }
    in_flight[in_flight_n++] = what;
}

static void happens(int what)
{
    switch (what) {
    case WAKE:
        model_wake(how->wake());
        break;
    case CANCEL:
        CHECK_EQ(aco_scope_cancel(&scope), 0);
        model_scope_ends(ECANCELED);
        break;
    case TIME:
    case SCOPE_TIME:
        clock_ns = clock_ns < SCOPE_LIMIT && what == TIME ? LIMIT : SCOPE_LIMIT;
        break;
    default:
        happens_afar(what);
    }
}

/* All others have a turn, also aco_run() itself, which looks for news and then for deadlines. */
static void turn(void)
{
    CHECK_EQ(aco_task_yield(), 0);
    for (int i = 0; i < in_flight_n; i++)
        if (in_flight[i] == AFAR_CANCEL)
            model_scope_ends(ECANCELED);
        else
            model_wake(how->wake == unpark || had_effect[i]);
    in_flight_n = arrived = 0;
    model_time();
}

static void *drives(void *unused)
{
    CHECK_EQ(aco_task_yield(), 0); /* the waiters wait */
    for (int i = 0; i < length; i++) {
        happens(sequence[i]);
        scheduler_is_valid();
        if (turns[i])
            turn();
        scheduler_is_valid();
    }
    turn();
    CHECK_EQ(aco_task_yield(), 0);
    CHECK_EQ(aco_task_yield(), 0);
    for (int i = 0; i < WAITERS; i++)
        if (outcomes[i] != WAITING)
            CHECK_EQ(results[i], outcomes[i]);
        else
            CHECK_EQ(results[i], WAITING);
    if (how->after)
        how->wake(); /* what the driver still has */
    over = 1;
    for (int i = 0; i < 3 && ended < WAITERS; i++)
        CHECK_EQ(aco_task_yield(), 0);
    clock_ns = SCOPE_LIMIT - 1 > clock_ns ? SCOPE_LIMIT - 1 : clock_ns; /* those that nothing has woken */
    for (int i = 0; i < 5 && ended < WAITERS; i++)
        CHECK_EQ(aco_task_yield(), 0);
    CHECK_EQ(ended, WAITERS);
    return unused;
}

static void *begins(void *unused)
{
    driver = aco_get_co();
    if (how->wake == unlock)
        CHECK_EQ(aco_mutex_lock(&mutex), 0);
    if (how->wake == rw_unlock)
        CHECK_EQ(aco_rwlock_wrlock(&rwlock), 0);
    for (intptr_t i = 0; i < WAITERS; i++)
        waiters[i] = spawn_detached(waits, (void *)i);
    return drives(unused);
}

static void complain(void)
{
    static const char *const names[] = {"wake", "cancel", "time", "scope's time", "wake from afar", "cancel from afar"};
    fprintf(stderr, "%s:", how->name);
    for (int i = 0; i < length; i++)
        fprintf(stderr, " %s%s", names[sequence[i]], turns[i] ? "," : "");
    fprintf(stderr, "\n");
    exit(1);
}

static void one_case(void)
{
    memset(&mutex, 0, sizeof mutex);
    memset(&cond, 0, sizeof cond);
    memset(&semaphore, 0, sizeof semaphore);
    memset(&rwlock, 0, sizeof rwlock);
    memset(&event, 0, sizeof event);
    barrier = (aco_barrier_t)ACO_BARRIER_INIT(WAITERS + 1);
    wait_group = (aco_wait_group_t)ACO_WAIT_GROUP_INIT;
    aco_wait_group_add(&wait_group, 1);
    clock_ns = scope_error = over = ended = in_flight_n = arrived = 0;
    woken = 0;
    for (int i = 0; i < WAITERS; i++)
        outcomes[i] = results[i] = WAITING;
    spawn_detached(begins, NULL);
    run();
    CHECK(!mutex.owner && !rwlock.writer && !rwlock.readers && !barrier.arrived);
    if (how->wait == acquire) /* no unit is lost, none comes twice */
        CHECK_EQ(semaphore.value, woken - (size_t)((results[0] == 0) + (results[1] == 0)));
    if (check_failures)
        complain();
}

/* ---- Groups ---- */

static aco_group_t group;
static aco_group_policy_t policy;
static int verdicts[WAITERS], has_ended[WAITERS];
enum { FAIL_0, SUCCEED_0, FAIL_1, SUCCEED_1, CANCEL_GROUP, GROUP_TIME, GROUP_EVENTS };

static void *is_member(void *which)
{
    intptr_t me = (intptr_t)which;
    int error = 0;
    while (!verdicts[me] && !error)
        error = aco_park("a verdict") == 0 ? 0 : errno;
    has_ended[me]++;
    errno = error ? error : EIO;
    return error || verdicts[me] < 0 ? ACO_ERROR : &verdicts[me];
}

static void *has_group(void *unused)
{
    int result, error;
    CHECK_EQ(aco_scope_begin(&scope, SCOPE_LIMIT), 0);
    CHECK_EQ(aco_group_begin(&group, policy), 0);
    for (intptr_t i = 0; i < WAITERS; i++)
        waiters[i] = aco_group_spawn(&group, is_member, (void *)i, NULL);
    result = aco_group_end(&group);
    error = errno;
    CHECK(has_ended[0] == 1 && has_ended[1] == 1);
    CHECK_EQ(group.succeeded + group.failed, WAITERS);
    CHECK_EQ(group.running, 0);
    CHECK_EQ(result, policy == ACO_FIRST_SUCCESS ? -!group.succeeded : -!!group.failed);
    CHECK(result == 0 || (error == group.error && error));
    CHECK_EQ(aco_scope_end(&scope), 0);
    CHECK(scope.error == 0 || (scope.error == ETIMEDOUT && clock_ns >= SCOPE_LIMIT));
    over = 1;
    return unused;
}

/* Whether it had an effect: the member has not ended and knows of no verdict. */
static int tell(int which, int verdict)
{
    if (verdicts[which] || has_ended[which])
        return 0;
    verdicts[which] = verdict;
    CHECK_EQ(aco_unpark(waiters[which]), 0);
    return 1;
}

static void *drives_group(void *unused)
{
    int i, must_end = 0;
    CHECK_EQ(aco_task_yield(), 0);
    for (i = 0; i < length && !over; i++) {
        int what = sequence[i], succeeds = what % 2;
        if (what == CANCEL_GROUP) {
            CHECK_EQ(aco_scope_cancel(&group.scope), 0);
            must_end = 1;
        } else if (what == GROUP_TIME) {
            clock_ns = SCOPE_LIMIT;
            must_end = 1;
        } else if (tell(what / 2, succeeds ? 1 : -1)) {
            must_end |= policy == (succeeds ? ACO_FIRST_SUCCESS : ACO_CANCEL_ON_FAILURE);
        }
        scheduler_is_valid();
        if (turns[i])
            CHECK_EQ(aco_task_yield(), 0);
        scheduler_is_valid();
    }
    for (i = 0; i < 6; i++)
        CHECK_EQ(aco_task_yield(), 0);
    must_end |= verdicts[0] && verdicts[1];
    CHECK_EQ(over, must_end);
    if (!over)
        CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    return unused;
}

static void one_group(void)
{
    clock_ns = over = 0;
    memset(has_ended, 0, sizeof has_ended);
    memset(verdicts, 0, sizeof verdicts);
    spawn_detached(has_group, NULL);
    spawn_detached(drives_group, NULL);
    run();
    if (check_failures) {
        fprintf(stderr, "group, policy %d: %d %d %d\n", (int)policy, sequence[0], sequence[1], sequence[2]);
        exit(1);
    }
}

/* ---- All ---- */

static void each_sequence(int events, void (*act)(void))
{
    long all = 1;
    for (int i = 0; i < length; i++)
        all *= 2 * events;
    for (long n = 0; n < all; n++, cases++) {
        long rest = n;
        for (int i = 0; i < length; i++, rest /= 2 * events) {
            sequence[i] = (int)(rest % (2 * events)) / 2;
            turns[i] = (int)(rest % 2);
        }
        act();
    }
}

/* ---- Timers: each wait ends exactly when it is due, or when it is told to ---- */

enum { TIMED = 200, TIMED_ROUNDS = 30, MOST_ROLLED = 1000 };
static struct timed_task {
    aco_event_t told;
    int64_t due; /* 0: does not wait */
} timed_tasks[TIMED];
static int timed_left;
static int64_t tells_at;
static uint32_t dice = 1;

static uint32_t roll(uint32_t sides)
{
    dice = dice * 1664525u + 1013904223u;
    return (dice >> 8) % sides;
}

static void *waits_again_and_again(void *arg)
{
    struct timed_task *me = arg;
    for (int i = 0; i < TIMED_ROUNDS; i++) {
        int was_told;
        me->due = clock_ns + 1 + roll(MOST_ROLLED) * (1 + roll(2) * 1000); /* near or far */
        was_told = aco_event_wait_until(&me->told, me->due) == 0;
        CHECK(was_told || (errno == ETIMEDOUT && clock_ns == me->due));
        CHECK(clock_ns <= me->due);
        me->due = 0;
        aco_event_reset(&me->told);
    }
    timed_left--;
    return NULL;
}

/* More are told at once than the heap keeps vacant entries. */
static void *tells_many(void *unused)
{
    while (timed_left) {
        for (uint32_t i = roll(3) ? roll(10) : roll(TIMED); i > 0; i--) {
            struct timed_task *t = &timed_tasks[roll(TIMED)];
            if (t->due)
                aco_event_set(&t->told);
        }
        scheduler_is_valid();
        tells_at = clock_ns + 1 + roll(50);
        CHECK_EQ(aco_sleep(tells_at - clock_ns), 0);
    }
    return unused;
}

/* The thread sleeps no longer than until the next one is due, and no shorter. */
static void next_is_due(void)
{
    int64_t next = tells_at;
    for (int i = 0; i < TIMED; i++)
        if (timed_tasks[i].due && timed_tasks[i].due < next)
            next = timed_tasks[i].due;
    CHECK_EQ(clock_ns, next);
}

static void timers_are_exact(void)
{
    clock_ns = 0;
    timed_left = TIMED;
    for (int i = 0; i < TIMED; i++) {
        timed_tasks[i].told = (aco_event_t)ACO_EVENT_INIT;
        spawn_detached(waits_again_and_again, &timed_tasks[i]);
    }
    spawn_detached(tells_many, NULL);
    slept = next_is_due;
    run();
    slept = NULL;
    CHECK_EQ(timed_left, 0);
}

/* ---- Timers while tasks run: a deadline that has passed is noticed within one round, the next or a far one ---- */

enum { SLEEPERS = 5, BUSY_ROUNDS = 20000, BUSY_MS = 1000000 };
static int64_t sleeps_until[SLEEPERS]; /* 0: does not sleep */

static void *sleeps_again_and_again(void *until)
{
    int64_t *mine = until;
    while (timed_left) {
        *mine = clock_ns + 1 + roll(roll(2) ? 100 : 1) * (int64_t)BUSY_MS + roll(BUSY_MS);
        CHECK_EQ(aco_sleep_until(*mine), 0);
        CHECK(clock_ns >= *mine);
        *mine = 0;
        if (!roll(4))
            aco_task_yield();
    }
    return NULL;
}

static void *is_busy(void *unused)
{
    for (timed_left = BUSY_ROUNDS; timed_left; timed_left--) {
        int64_t before = clock_ns += roll(3) * roll(roll(10) ? BUSY_MS : 40 * BUSY_MS);
        aco_task_yield(); /* looks for deadlines */
        scheduler_is_valid();
        aco_task_yield(); /* and those who are woken run */
        for (int i = 0; i < SLEEPERS; i++)
            CHECK(!sleeps_until[i] || sleeps_until[i] > before);
    }
    return unused;
}

static void timers_while_busy(void)
{
    timed_left = BUSY_ROUNDS;
    for (int i = 0; i < SLEEPERS; i++)
        spawn_detached(sleeps_again_and_again, &sleeps_until[i]);
    spawn_detached(is_busy, NULL);
    run();
}

/* ---- Times that are told ---- */

static void *waits_untimed(void *unused)
{
    for (int i = 0; i < 3; i++)
        aco_task_yield(); /* the scheduler looks at the clock */
    aco_park("it is told");
    return unused;
}

static void *tells(void *waiter)
{
    for (int i = 0; i < 6; i++)
        aco_task_yield();
    CHECK_EQ(aco_tasks_dump(told[1]), 0);
    CHECK_EQ(aco_unpark(waiter), 0);
    return NULL;
}

/* A wait without a time limit is told by the clock of the others: its coarse form is at most 10 ms late. */
static void waits_are_told(void)
{
    static const char before[] = "has waited up to ";
    char text[4096], *end;
    const char *found;
    ssize_t n;
    clock_ns += 5 * ACO_SECOND - clock_ns % ACO_SECOND + 7 * ACO_MILLISECOND;
    CHECK_EQ(pipe(told), 0);
    CHECK_EQ(aco_tasks_dump_on(SIGUSR1, told[1]), 0);
    spawn_detached(tells, spawn_detached(waits_untimed, NULL));
    run();
    CHECK_EQ(aco_tasks_dump_on(0, told[1]), 0);
    n = read(told[0], text, sizeof text - 1);
    CHECK(n > 0);
    text[n > 0 ? n : 0] = 0;
    found = strstr(text, before);
    CHECK(found && strtod(found + sizeof before - 1, &end) <= 0.01 && strncmp(end, " s", 2) == 0);
    close(told[0]);
    close(told[1]);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        length = atoi(argv[1]);
    timers_are_exact();
    timers_while_busy();
    waits_are_told();
    scheduler = aco_scheduler_open();
    channel = aco_channel_new(0, sizeof sent);
    for (how = kinds; how < kinds + sizeof kinds / sizeof *kinds; how++)
        each_sequence(EVENTS, one_case);
    for (int p = ACO_CANCEL_ON_FAILURE; p <= ACO_FIRST_SUCCESS; p++) {
        policy = (aco_group_policy_t)p;
        each_sequence(GROUP_EVENTS, one_group);
    }
    CHECK_EQ(aco_channel_destroy(channel), 0);
    printf("%ld cases\n", cases);
    return check_result("scheduler_interleavings");
}
