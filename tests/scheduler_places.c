/* Promise: a wait works wherever a task calls it: in the task itself, in a coroutine that the task resumed, in one
 * which that one resumed, in a generator. Each kind of wait is called in each of these places, and ends in each way: it
 * is woken, its task is cancelled, its own deadline or that of a scope passes. Meanwhile other tasks run, and
 * coroutines on the same share stack. scheduler_inner.c has what else holds for such coroutines. */
#define _GNU_SOURCE
#include "tasks.h"
#include "fails.h"

#include <aco/group.h>
#include <aco/sync.h>
#ifndef ACO_CONFIG_NO_INLINE
#include <aco/in_stack_generator.h>
#endif

#include <fenv.h>
#include <math.h>
#include <string.h>

enum { ELEMENT = 40, SOON = 300000 /* ns */ };

/* ---- Kinds of waits. Each returns the call's result; locals are what others read and write ---- */

typedef enum way { WOKEN, CANCELLED, TIMED_OUT, DEADLINE, WAYS } way_t;

static struct {
    aco_group_t group, inner_group;
    aco_mutex_t mutex;
    aco_cond_t cond;
    aco_semaphore_t semaphore;
    aco_wait_group_t wait_group;
    aco_channel_t *channel, *other;
    aco_rwlock_t lock;
    aco_once_t once;
    aco_barrier_t barrier;
    aco_event_t event;
    aco_t *waiter, *joined;
    int way, place, waits, ended, turns, result, error;
    int64_t deadline;
} s;

static void fill(char element[ELEMENT], int with)
{
    memset(element, with, ELEMENT);
}

static int is_filled(const char element[ELEMENT], int with)
{
    char wanted[ELEMENT];
    fill(wanted, with);
    return memcmp(element, wanted, ELEMENT) == 0;
}

static int parking(void)
{
    return aco_park_until("a place", s.deadline);
}

static void unpark(void)
{
    CHECK_EQ(aco_unpark(s.waiter), 0);
}

static int sleeping(void)
{
    return aco_sleep(s.way == WOKEN ? 1 : ACO_SECOND * 1000);
}

static void nothing(void)
{
}

static void *parks_then_says(void *unused)
{
    CHECK_EQ(aco_park(NULL), 0);
    return unused;
}

static int joining(void)
{
    void *result = NULL;
    int failed = aco_join_until(s.joined, &result, s.deadline);
    CHECK(result == (failed ? NULL : (void *)&s));
    return failed;
}

static void let_end(void)
{
    CHECK_EQ(aco_unpark(s.joined), 0);
}

static int locking(void)
{
    int failed = aco_mutex_lock_until(&s.mutex, s.deadline);
    if (!failed) {
        CHECK(s.mutex.owner == s.waiter);
        errno = 0;
        CHECK_EQ(aco_mutex_try_lock(&s.mutex), -1);
        CHECK_EQ(errno, EBUSY);
        CHECK_EQ(aco_mutex_unlock(&s.mutex), 0);
    }
    return failed;
}

static void unlock(void)
{
    CHECK_EQ(aco_mutex_unlock(&s.mutex), 0);
}

static int on_condition(void)
{
    int failed;
    if (aco_mutex_lock(&s.mutex) != 0)
        return -1;
    failed = aco_cond_wait_until(&s.cond, &s.mutex, s.deadline);
    CHECK(s.mutex.owner == s.waiter);
    s.error = errno;
    CHECK_EQ(aco_mutex_unlock(&s.mutex), 0);
    errno = s.error;
    return failed;
}

/* It keeps the mutex for a while: the waiter waits for that too. */
static void broadcast(void)
{
    CHECK_EQ(aco_mutex_lock(&s.mutex), 0);
    aco_cond_broadcast(&s.cond);
    for (int i = 0; i < 3; i++)
        aco_task_yield();
    CHECK_EQ(aco_mutex_unlock(&s.mutex), 0);
}

static int acquiring(void)
{
    return aco_semaphore_acquire_until(&s.semaphore, s.deadline);
}

static void release(void)
{
    aco_semaphore_release(&s.semaphore);
}

static int on_wait_group(void)
{
    return aco_wait_group_wait_until(&s.wait_group, s.deadline);
}

static void done(void)
{
    CHECK_EQ(aco_wait_group_done(&s.wait_group), 0);
}

static int sending(void)
{
    char element[ELEMENT];
    fill(element, 7);
    return aco_channel_send_until(s.channel, element, s.deadline);
}

static void receive(void)
{
    char element[ELEMENT];
    CHECK_EQ(aco_channel_try_receive(s.channel, element), 0);
    CHECK(is_filled(element, 7));
}

static int receiving(void)
{
    char element[ELEMENT];
    int failed;
    fill(element, 1);
    failed = aco_channel_receive_until(s.channel, element, s.deadline);
    CHECK(is_filled(element, failed ? 1 : 8));
    return failed;
}

static void send(void)
{
    char element[ELEMENT];
    fill(element, 8);
    CHECK_EQ(aco_channel_try_send(s.channel, element), 0);
}

static int selecting(int sends)
{
    char in[ELEMENT], out[ELEMENT];
    aco_select_case_t cases[3] = {{0}};
    int chosen;
    fill(in, 1);
    fill(out, 7);
    cases[0].channel = s.channel;
    cases[0].element = sends ? out : in;
    cases[0].operation = sends ? ACO_SELECT_SEND : ACO_SELECT_RECEIVE;
    cases[2].channel = s.other;
    cases[2].element = sends ? in : out;
    cases[2].operation = sends ? ACO_SELECT_RECEIVE : ACO_SELECT_SEND;
    chosen = aco_select_until(cases, 3, s.deadline);
    if (chosen >= 0) {
        CHECK_EQ(chosen, 0);
        CHECK_EQ(cases[0].error, 0);
    }
    CHECK(is_filled(in, chosen < 0 || sends ? 1 : 8) && is_filled(out, 7));
    return chosen;
}

static int selecting_to_receive(void)
{
    return selecting(0);
}

static int selecting_to_send(void)
{
    return selecting(1);
}

static int reading(void)
{
    int failed = aco_rwlock_rdlock_until(&s.lock, s.deadline);
    if (!failed)
        CHECK_EQ(aco_rwlock_unlock(&s.lock), 0);
    return failed;
}

static int writing(void)
{
    int failed = aco_rwlock_wrlock_until(&s.lock, s.deadline);
    if (!failed) {
        CHECK(s.lock.writer == s.waiter);
        CHECK_EQ(aco_rwlock_unlock(&s.lock), 0);
    }
    return failed;
}

static void unlock_write(void)
{
    CHECK_EQ(aco_rwlock_unlock(&s.lock), 0);
}

static int never(void *unused)
{
    (void)unused;
    CHECK(!"called once");
    return 0;
}

static int parks_once(void *unused)
{
    (void)unused;
    return aco_park(NULL);
}

static void *calls_once(void *unused)
{
    CHECK_EQ(aco_once(&s.once, parks_once, NULL), 0);
    return unused;
}

static int once(void)
{
    return aco_once(&s.once, never, NULL);
}

static int at_barrier(void)
{
    return aco_barrier_wait_until(&s.barrier, s.deadline);
}

static void arrive(void)
{
    CHECK_EQ(aco_barrier_wait(&s.barrier), 1);
}

static int on_event(void)
{
    return aco_event_wait_until(&s.event, s.deadline);
}

static void set(void)
{
    aco_event_set(&s.event);
}

static int for_place(void)
{
    return aco_group_spawn(&s.inner_group, parks_then_says, NULL, NULL) ? 0 : -1;
}

static void more_places(void)
{
    s.inner_group.limit = 0;
    CHECK(aco_group_spawn(&s.inner_group, parks_then_says, NULL, NULL) != NULL);
}

static int for_members(void) /* nothing interrupts it; a cancelled member fails */
{
    static aco_group_t members;
    int failed;
    CHECK_EQ(aco_group_begin(&members, ACO_KEEP_GOING), 0);
    CHECK(aco_group_spawn(&members, parks_then_says, NULL, NULL) != NULL);
    s.joined = NULL;
    failed = aco_group_end(&members);
    CHECK_EQ(failed, 0);
    return failed;
}

static int wake_member(aco_t *co, void *unused)
{
    (void)unused;
    if (co != s.waiter)
        aco_unpark(co);
    return 0;
}

static void wake_members(void)
{
    aco_each(wake_member, NULL);
}

static int yielding(void)
{
    int before = s.turns;
    for (int i = 0; i < 5; i++)
        CHECK_EQ(aco_task_yield(), 0);
    CHECK(s.turns > before);
    return 0;
}

enum { HAS_UNTIL = 1, ONLY_WOKEN = 2 };
static const struct kind {
    const char *name;
    int (*wait)(void);
    void (*wake)(void);
    int flags;
} kinds[] = {
    {"park", parking, unpark, HAS_UNTIL}, {"sleep", sleeping, nothing, 0}, {"join", joining, let_end, HAS_UNTIL},
    {"mutex", locking, unlock, HAS_UNTIL}, {"condition", on_condition, broadcast, HAS_UNTIL},
    {"semaphore", acquiring, release, HAS_UNTIL}, {"wait group", on_wait_group, done, HAS_UNTIL},
    {"send", sending, receive, HAS_UNTIL}, {"receive", receiving, send, HAS_UNTIL},
    {"select, receive", selecting_to_receive, send, HAS_UNTIL}, {"select, send", selecting_to_send, receive, HAS_UNTIL},
    {"read", reading, unlock_write, HAS_UNTIL}, {"write", writing, unlock_write, HAS_UNTIL},
    {"once", once, let_end, 0}, {"barrier", at_barrier, arrive, HAS_UNTIL}, {"event", on_event, set, HAS_UNTIL},
    {"place", for_place, more_places, 0}, {"members", for_members, wake_members, ONLY_WOKEN},
    {"yield", yielding, nothing, ONLY_WOKEN}};
static const struct kind *kind_of_wait;

/* ---- Places ---- */

typedef enum place {
    IN_TASK, ON_SHARED, ON_SHARED_IN_STACK, BEHIND_SHARED_TASK, IN_COROUTINE, IN_THIRD, IN_OWN_FP, IN_OWN_EXCEPTIONS,
    BEHIND_SHARED, IN_GENERATOR, IN_STACK_GENERATOR,
    IN_GENERATOR_OF_COROUTINE, PLACES
} place_t;

static aco_share_stack_t *stack;

/* Else an in-stack generator has a stack of its own. */
#if defined(ACO__ON_ONE_STACK) && ACO__ON_ONE_STACK
#define IN_STACK_ON_SHARED COPYING
#else
#define IN_STACK_ON_SHARED 0
#endif

/* The wait, in a scope and between locals that must not change. */
static void wait_here(void)
{
    volatile unsigned char before[64];
    static aco_scope_t kept_scope;
    aco_scope_t local_scope, *scope = kind_of_wait->wait == for_members ? &kept_scope : &local_scope;
    for (size_t i = 0; i < sizeof before; i++)
        before[i] = (unsigned char)(i * 7);
    CHECK(aco_current_task() == s.waiter);
    CHECK_EQ(aco_scope_begin(scope, s.way == DEADLINE ? aco_after(SOON) : ACO_FOREVER), 0);
    CHECK_EQ(aco_deadline() == ACO_FOREVER, s.way != DEADLINE);
    s.waits = 1;
    s.result = kind_of_wait->wait();
    s.error = errno;
    s.waits = 0;
    CHECK_EQ(aco_check_cancelled(), s.way == CANCELLED || s.way == DEADLINE ? -1 : 0);
    CHECK_EQ(scope->error, s.way == DEADLINE ? ETIMEDOUT : 0);
    CHECK(aco_scope_ended_by(scope) == (s.way == DEADLINE ? scope : s.way == CANCELLED ? &s.group.scope : NULL));
    CHECK_EQ(aco_scope_end(scope), 0);
    CHECK(aco_current_task() == s.waiter);
    for (size_t i = 0; i < sizeof before; i++)
        CHECK_EQ(before[i], (unsigned char)(i * 7));
}

static void *waits_in_coroutine(void *depth)
{
    aco_options_t o = {0};
    volatile double third = 1.0;
    aco_t *co;
    if (depth) {
        if (s.place == BEHIND_SHARED && (intptr_t)depth == 2)
            o.stack = stack;
        o.flags = s.place == IN_OWN_FP ? ACO_OWN_FP : s.place == IN_OWN_EXCEPTIONS ? ACO_OWN_EXCEPTIONS : 0;
        co = aco_new(waits_in_coroutine, (void *)((intptr_t)depth - 1), &o);
        CHECK(co != NULL);
        CHECK(aco_send(co, NULL) == (void *)1); /* not when it waits */
        CHECK_EQ(s.waits, 0);
        CHECK(aco_send(co, NULL) == (void *)2);
        aco_destroy(co);
        CHECK(aco_get_co() == s.waiter || aco_state(s.waiter) == ACO_STATE_RESUMING);
        if (aco_get_co() == s.waiter)
            return NULL;
    } else {
        if (s.place == IN_OWN_FP)
            fesetround(FE_UPWARD);
        wait_here();
        if (s.place == IN_OWN_FP)
            CHECK(third / 3 * 3 > 1 || third / 3 > nextafter(1.0 / 3, 0));
    }
    aco_yield_value((void *)1);
    return (void *)2;
}

#ifndef ACO_CONFIG_NO_INLINE
ACO_GENERATOR(waits_in_generator, y, arg)
{
    wait_here();
    aco_generate(y, arg);
}

ACO_IN_STACK_GENERATOR(waits_in_stack, y, arg)
{
    wait_here();
    aco_generate_in_stack(y, arg);
}
#endif

static void *consumes(void *arg)
{
#ifndef ACO_CONFIG_NO_INLINE
    aco_generator_t g;
    CHECK_EQ(aco_generator_open(&g, waits_in_generator, &s, NULL), 0);
    CHECK_EQ(aco_generator_next(&g), 1);
    CHECK(g.value == &s);
    CHECK_EQ(aco_generator_next(&g), 0);
    aco_generator_close(&g);
#else
    wait_here();
#endif
    return arg;
}

static void consume_in_stack(void)
{
#ifndef ACO_CONFIG_NO_INLINE
    aco_in_stack_t g;
    aco_in_stack_open(&g, waits_in_stack, &s);
    CHECK_EQ(aco_in_stack_next(&g), 1);
    CHECK(g.value == &s);
    aco_in_stack_close(&g);
#else
    wait_here();
#endif
}

static void *waiter(void *unused)
{
    aco_t *co;
    s.waiter = aco_get_co();
    switch (s.place) {
    case IN_TASK:
    case ON_SHARED: wait_here(); break;
    case IN_GENERATOR: consumes(NULL); break;
    case ON_SHARED_IN_STACK:
    case IN_STACK_GENERATOR: consume_in_stack(); break;
    case IN_GENERATOR_OF_COROUTINE:
        co = aco_new(consumes, NULL, NULL);
        aco_send(co, NULL);
        aco_destroy(co);
        break;
    default:
        waits_in_coroutine((void *)(intptr_t)(s.place == IN_THIRD || s.place == BEHIND_SHARED ? 3 : 1));
    }
    s.ended = 1;
    return unused;
}

/* ---- One wait ---- */

/* Meanwhile. Another task's rounding must be the usual one. */
static void *others(void *unused)
{
    aco_options_t o = {0};
    volatile double one = 1.0, third;
    o.stack = stack;
    while (!s.ended) {
        aco_t *co = aco_new(uses_stack, NULL, &o);
        aco_send(co, NULL);
        aco_destroy(co);
        third = one / 3; /* as a double: x87 registers hold more */
        CHECK(third <= 1.0 / 3);
        s.turns++;
        aco_task_yield();
    }
    return unused;
}

static void begin_wait(void)
{
    aco_channel_t *channel = s.channel, *other = s.other;
    way_t way = s.way;
    place_t place = s.place;
    memset(&s, 0, sizeof s);
    s.channel = channel;
    s.other = other;
    s.way = way;
    s.place = place;
    s.barrier.count = 2;
    s.deadline = way == TIMED_OUT ? aco_after(SOON) : ACO_FOREVER;
}

static void *conducts(void *unused)
{
    void (*wake)(void) = kind_of_wait->wake;
    aco_options_t o = {0};
    aco_scope_t shield;
    CHECK_EQ(aco_group_begin(&s.inner_group, ACO_KEEP_GOING), 0);
    CHECK_EQ(aco_group_begin(&s.group, ACO_KEEP_GOING), 0);
    if (wake == unlock)
        CHECK_EQ(aco_mutex_lock(&s.mutex), 0);
    if (wake == unlock_write)
        CHECK_EQ(aco_rwlock_wrlock(&s.lock), 0);
    if (wake == done)
        CHECK_EQ(aco_wait_group_add(&s.wait_group, 1), 0);
    if (wake == let_end) {
        s.joined = aco_spawn(kind_of_wait->wait == once ? calls_once : parks_then_says, &s, NULL);
        aco_task_yield();
    }
    if (wake == more_places) {
        s.inner_group.limit = 1;
        CHECK(aco_group_spawn(&s.inner_group, parks_then_says, NULL, NULL) != NULL);
    }
    if (s.place >= ON_SHARED && s.place <= BEHIND_SHARED_TASK)
        o.stack = stack;
    o.flags = kind;
    CHECK(aco_group_spawn(&s.group, waiter, NULL, &o) != NULL);
    for (int i = 0; i < 3; i++)
        aco_task_yield();
    CHECK(s.ended || s.waits || kind_of_wait->wait == sleeping);
    if (s.way == WOKEN)
        wake();
    if (s.way == CANCELLED)
        aco_scope_cancel(&s.group.scope);
    CHECK_EQ(aco_shield_begin(&shield, ACO_FOREVER), 0);
    while (!s.ended)
        aco_task_yield();
    CHECK_EQ(s.turns > 0, 1);
    if (s.way == WOKEN ? s.result != 0 : s.result != -1)
        fprintf(stderr, "%s, place %d, way %d: %d\n", kind_of_wait->name, s.place, s.way, s.result);
    CHECK_EQ(s.result, s.way == WOKEN ? 0 : -1);
    if (s.way != WOKEN) {
        CHECK_EQ(s.error, s.way == CANCELLED ? ECANCELED : ETIMEDOUT);
        if (wake == let_end)
            wake();
        if (wake == done)
            CHECK_EQ(aco_wait_group_done(&s.wait_group), 0);
        if (wake == unlock)
            unlock();
        if (wake == unlock_write)
            unlock_write();
    }
    if (wake == let_end && (s.way != WOKEN || kind_of_wait->wait == once))
        CHECK_EQ(aco_join(s.joined, NULL), 0);
    if (wake == more_places)
        wake_members();
    CHECK(!s.mutex.owner && !s.mutex.aco__waiters.first && !s.cond.aco__waiters.first && !s.lock.writer &&
          !s.lock.readers && !s.semaphore.value && !s.semaphore.aco__waiters.first && !s.event.aco__waiters.first &&
          !s.wait_group.aco__waiters.first && !s.barrier.arrived && !s.once.aco__waiters.first);
    CHECK_EQ(aco_scope_end(&shield), 0);
    CHECK_EQ(aco_group_end(&s.group), 0);
    CHECK_EQ(aco_group_end(&s.inner_group), 0);
    return unused;
}

static void one_wait(void)
{
    begin_wait();
    spawn_detached(others, NULL);
    spawn_detached(conducts, NULL);
    spawn_detached(others, NULL);
    run();
    CHECK_EQ(s.ended, 1);
}

static void all_waits(void)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int place = 0; place < PLACES; place++)
            for (int way = 0; way < WAYS; way++) {
                if ((way != WOKEN && kinds[k].flags & ONLY_WOKEN) ||
                    (way == TIMED_OUT && !(kinds[k].flags & HAS_UNTIL)))
                    continue;
                if ((place == IN_OWN_FP && !OWN_FP_POSSIBLE) || (place == ON_SHARED_IN_STACK && !IN_STACK_ON_SHARED))
                    continue;
                kind_of_wait = &kinds[k];
                s.place = place;
                s.way = way;
                one_wait();
            }
}

int main(void)
{
    static void (*const tests[])(void) = {all_waits, NULL};
    stack = aco_share_stack_new(0);
    s.channel = aco_channel_new(0, ELEMENT);
    s.other = aco_channel_new(0, ELEMENT);
    with_all_kinds(tests);
    CHECK_EQ(aco_channel_destroy(s.channel), 0);
    CHECK_EQ(aco_channel_destroy(s.other), 0);
    aco_share_stack_destroy(stack);
    return check_result("scheduler_places");
}
