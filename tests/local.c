/* Promises of coroutine-local storage (include/aco.h): slots, keys and their destructors, ACO_LOCAL, on private and
 * share stacks, in coroutines of both kinds and in the root context. */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"
#include "child.h"
#include "fails.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static const aco_options_t *place; /* where the coroutines of a round run */

static void *returns_at_once(void *arg)
{
    return arg;
}

static void in_a_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, fn, arg), 0);
    pthread_join(thread, NULL);
}

/* ---- Slots ---- */

static void *looks_at_slot(void *arg)
{
    CHECK(aco_slot(NULL) == arg);
    CHECK(aco_slot(aco_get_co()) == arg);
    CHECK_EQ(aco_set_slot(NULL, &place), 0);
    aco_yield();
    CHECK(aco_slot(NULL) == arg); /* set from outside */
    return arg;
}

/* Promises: one pointer per coroutine, NULL at first; NULL means the running one, or the root context. */
static void slots(void)
{
    int mark;
    aco_t *co = aco_new(looks_at_slot, &mark, place), *other = aco_new(returns_at_once, NULL, place);
    aco_t *main_object = aco_create(NULL, NULL, 0, NULL, NULL);
    CHECK_EQ(aco_set_slot(NULL, main_object), 0);
    CHECK(aco_slot(co) == NULL && aco_slot(other) == NULL);
    CHECK_EQ(aco_set_slot(co, &mark), 0);
    CHECK(aco_slot(co) == &mark && aco_slot(other) == NULL && aco_slot(NULL) == main_object);
    CHECK(aco_slot(main_object) == main_object); /* stands for the root context */
    aco_resume(co);
    CHECK(aco_slot(co) == &place && aco_slot(NULL) == main_object);
    CHECK_EQ(aco_set_slot(co, &mark), 0);
    aco_resume(co);
    CHECK(aco_slot(co) == &mark);
    aco_destroy(co);
    FAILS(aco_set_slot(co, &mark), -1, ESRCH, "aco_set_slot", co, "was destroyed");
    co = aco_new(returns_at_once, NULL, place); /* perhaps in the same memory */
    CHECK(aco_slot(co) == NULL);
    aco_destroy(co);
    aco_destroy(other);
    CHECK_EQ(aco_set_slot(NULL, NULL), 0);
    aco_destroy(main_object);
}

/* ---- Keys ---- */

static aco_local_key_t key, other_key, plain_key;
static int destroyed, destroyed_other;
static void *destroyed_value, *destroyed_in;
static char events[64];

static void note(const char *event)
{
    strncat(events, event, sizeof events - strlen(events) - 1);
}

static void destroy_value(void *value)
{
    void *lo, *hi;
    destroyed++;
    destroyed_value = value;
    destroyed_in = aco_is_in_main_co() ? NULL : aco_get_co();
    note("v");
    CHECK(value != NULL);
    CHECK(aco_get_local(key) == NULL);
    if (destroyed_in) {
        CHECK_EQ(aco_stack_bounds(destroyed_in, &lo, &hi), 0);
        CHECK((char *)lo <= (char *)__builtin_frame_address(0) && (char *)__builtin_frame_address(0) < (char *)hi);
    }
}

static void destroy_other(void *value)
{
    (void)value;
    destroyed_other++;
}

static void deferred(void *arg)
{
    CHECK(aco_get_local(key) == arg); /* destructors come later */
    note("d");
}

typedef enum { RETURN, EXIT, CANCEL, DESTROY } end_t;

typedef struct user {
    end_t end;
    int value, other;
} user_t;

static void use_keys(user_t *user)
{
    CHECK(aco_get_local(key) == NULL && aco_get_local(other_key) == NULL && aco_get_local(plain_key) == NULL);
    CHECK_EQ(aco_set_local(key, &user->other), 0);
    CHECK_EQ(aco_set_local(key, &user->value), 0);
    CHECK_EQ(aco_set_local(other_key, user), 0);
    CHECK_EQ(aco_set_local(other_key, NULL), 0); /* no value any more */
    CHECK_EQ(aco_set_local(plain_key, user), 0);
    CHECK_EQ(aco_defer(deferred, &user->value), 0);
    if (user->end != RETURN)
        aco_yield();
    CHECK(aco_get_local(key) == &user->value && aco_get_local(other_key) == NULL && aco_get_local(plain_key) == user);
}

static void *uses_keys(void *arg)
{
    user_t *user = arg;
    use_keys(user);
    if (user->end == EXIT)
        aco_exit();
    return arg;
}

/* Promises: each coroutine has its own value; destructors get values that are not NULL, once, on its stack, after
 * deferred calls, however it ends; destroying it calls none. */
static void keys(end_t end)
{
    static user_t user, second_user;
    aco_t *co = aco_new(uses_keys, &user, place), *second = aco_new(uses_keys, &second_user, place);
    user.end = end;
    second_user.end = RETURN;
    destroyed = destroyed_other = 0;
    events[0] = 0;
    aco_resume(co);
    if (end != RETURN) {
        CHECK_EQ(destroyed, 0);
        aco_resume(second);
        CHECK_EQ(destroyed, 1);
        CHECK(destroyed_value == &second_user.value && destroyed_in == second);
        CHECK(aco_get_local(key) == NULL);
        destroyed = 0;
        events[0] = 0;
        if (end == EXIT)
            aco_resume(co);
        else if (end == CANCEL)
            CHECK_EQ(aco_cancel(co), 0);
    }
    if (end != DESTROY) {
        CHECK_EQ(destroyed, 1);
        CHECK(destroyed_value == &user.value && destroyed_in == co);
        CHECK(strcmp(events, "dv") == 0);
    }
    aco_destroy(co);
    aco_destroy(second);
    CHECK_EQ(destroyed, end != DESTROY);
    CHECK_EQ(destroyed_other, 0);
}

/* ---- Rounds ---- */

static aco_local_key_t stubborn;
static int stubborn_calls, stubborn_wants;

static void set_anew(void *value)
{
    aco_local_key_t added;
    stubborn_calls++;
    if (stubborn_calls < stubborn_wants) {
        CHECK_EQ(aco_set_local(stubborn, value), 0);
        CHECK_EQ(aco_local_key_create(&added, NULL), 0); /* the values have to move */
        CHECK_EQ(aco_set_local(added, value), 0);
        CHECK_EQ(aco_local_key_delete(added), 0);
    }
}

static void *is_stubborn(void *arg)
{
    CHECK_EQ(aco_set_local(stubborn, arg), 0);
    return arg;
}

/* Promise: destructors are called up to four times while they set values anew. */
static void rounds(void)
{
    const int wanted[] = {1, 2, 4, 100}, made[] = {1, 2, 4, 4};
    CHECK_EQ(aco_local_key_create(&stubborn, set_anew), 0);
    for (int i = 0; i < 4; i++) {
        aco_t *co = aco_new(is_stubborn, &stubborn, place);
        stubborn_calls = 0;
        stubborn_wants = wanted[i];
        aco_resume(co);
        CHECK_EQ(stubborn_calls, made[i]);
        aco_destroy(co);
        CHECK_EQ(stubborn_calls, made[i]);
        stubborn_calls = 0;
        in_a_thread(is_stubborn, &stubborn);
        CHECK_EQ(stubborn_calls, made[i]);
    }
    CHECK_EQ(aco_local_key_delete(stubborn), 0);
}

/* ---- Threads ---- */

static void *sets_in_own_flow(void *arg)
{
    aco_t *co = aco_new(uses_keys, arg, NULL);
    CHECK(aco_get_local(key) == NULL && aco_slot(NULL) == NULL);
    CHECK_EQ(aco_set_slot(NULL, arg), 0);
    CHECK_EQ(aco_set_local(key, arg), 0);
    ((user_t *)arg)->end = RETURN;
    aco_resume(co); /* has values of its own */
    CHECK_EQ(destroyed, 1);
    CHECK(destroyed_value == &((user_t *)arg)->value && aco_get_local(key) == arg && aco_slot(NULL) == arg);
    aco_destroy(co);
    return NULL;
}

/* Promise: the root context has values, destroyed when the thread ends. */
static void own_flow(void)
{
    static user_t user;
    destroyed = 0;
    CHECK_EQ(aco_set_local(key, &user), 0);
    in_a_thread(sets_in_own_flow, &user);
    CHECK_EQ(destroyed, 2);
    CHECK(destroyed_value == &user && destroyed_in == NULL);
    CHECK(aco_get_local(key) == &user); /* ours */
    CHECK_EQ(aco_set_local(key, NULL), 0);
}

/* ---- Generations ---- */

static void *sets_then_looks(void *arg)
{
    aco_local_key_t old = *(aco_local_key_t *)arg;
    CHECK_EQ(aco_set_local(old, arg), 0);
    aco_yield();
    CHECK(aco_get_local(old) == NULL);
    CHECK(aco_get_local(*(aco_local_key_t *)arg) == NULL); /* one that took its place has no value here */
    return arg;
}

/* Promises: a deleted key has no values, calls nothing, and does not come back with its successor in the same slot. */
static void generations(void)
{
    aco_local_key_t first, again, all[2 * ACO_LOCAL_KEYS];
    aco_t *co;
    int n = 0;
    CHECK_EQ(aco_local_key_create(&first, destroy_other), 0);
    again = first;
    destroyed_other = 0;
    co = aco_new(sets_then_looks, &again, place);
    aco_resume(co);
    CHECK_EQ(aco_local_key_delete(first), 0);
    FAILS(aco_local_key_delete(first), -1, EINVAL, "aco_local_key_delete", NULL, "not a key");
    FAILS(aco_set_local(first, &first), -1, EINVAL, "aco_set_local", NULL, "not a key");
    CHECK(aco_get_local(first) == NULL);
    do /* until its slot is used again */
        CHECK_EQ(aco_local_key_create(&all[n], destroy_other), 0);
    while (all[n++].index != first.index && n < ACO_LOCAL_KEYS);
    again = all[n - 1];
    CHECK(again.index == first.index && again.generation != first.generation);
    CHECK(aco_get_local(again) == NULL);
    CHECK_EQ(aco_set_local(again, &n), 0);
    CHECK(aco_get_local(first) == NULL && aco_get_local(again) == &n);
    FAILS(aco_local_key_delete(first), -1, EINVAL, "aco_local_key_delete", NULL, "not a key");
    aco_set_local(again, NULL);
    aco_resume(co);
    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
    CHECK_EQ(destroyed_other, 0);
    aco_destroy(co);
    while (n)
        CHECK_EQ(aco_local_key_delete(all[--n]), 0);
}

ACO_LOCAL(int, one_too_many);

static void use_one_too_many(void)
{
    one_too_many();
}

/* Promises: ACO_LOCAL_KEYS keys at a time, then EAGAIN, and a variable that needs one aborts; each has a value;
 * failures. */
static void exhaustion(void)
{
    static aco_local_key_t all[ACO_LOCAL_KEYS];
    aco_local_key_t zero = {0, 0}, wild = {ACO_LOCAL_KEYS + 5, 1}, unused = {7, 0xfffffff1};
    int n = 0;
    while (n < ACO_LOCAL_KEYS && aco_local_key_create(&all[n], NULL) == 0)
        n++;
    CHECK(n > ACO_LOCAL_KEYS - 16); /* this program has some */
    FAILS(aco_local_key_create(&zero, NULL), -1, EAGAIN, "aco_local_key_create", NULL, "1024");
    ABORTS(use_one_too_many, "ACO_LOCAL", NULL, "one_too_many: all 1024 keys are in use");
    for (int i = 0; i < n; i++)
        CHECK_EQ(aco_set_local(all[i], &all[i]), 0);
    for (int i = 0; i < n; i++)
        CHECK(aco_get_local(all[i]) == &all[i]);
    CHECK_EQ(aco_local_key_delete(all[n / 2]), 0);
    CHECK_EQ(aco_local_key_create(&all[n / 2], NULL), 0);
    CHECK(aco_get_local(all[n / 2]) == NULL);
    for (int i = 0; i < n; i++)
        CHECK_EQ(aco_local_key_delete(all[i]), 0);
    FAILS(aco_local_key_create(NULL, NULL), -1, EINVAL, "aco_local_key_create", NULL, "NULL");
    zero.generation = 0;
    FAILS(aco_set_local(zero, all), -1, EINVAL, "aco_set_local", NULL, "not a key");
    FAILS(aco_set_local(wild, all), -1, EINVAL, "aco_set_local", NULL, "not a key");
    FAILS(aco_local_key_delete(wild), -1, EINVAL, "aco_local_key_delete", NULL, "not a key");
    CHECK(aco_get_local(zero) == NULL && aco_get_local(wild) == NULL && aco_get_local(unused) == NULL);
}

/* ---- Variables ---- */

typedef struct big {
    char bytes[40000];
} big_t;

ACO_LOCAL(int, counter);
ACO_LOCAL(double, ratio);
ACO_LOCAL(big_t, big);

static void count(int from)
{
    CHECK(*counter() == 0 && *ratio() == 0 && big()->bytes[39999] == 0 && big()->bytes[0] == 0);
    *ratio() = from + 0.5;
    big()->bytes[39999] = 'x';
    for (int i = 0; i < 10; i++) {
        *counter() += from;
        aco_yield();
        CHECK_EQ(*counter(), (i + 1) * from);
    }
    CHECK(*ratio() == from + 0.5 && big()->bytes[39999] == 'x');
}

static void *counts(void *arg)
{
    count((int)(intptr_t)arg);
    return arg;
}

static void *counts_in_own_flow(void *arg)
{
    CHECK(*counter() == 0 && *ratio() == 0);
    *counter() = 3;
    *ratio() = 1;
    return arg;
}

/* Promises: each coroutine, and each thread's root context, has its variable, zero at first, also when it is
 * restarted. */
static void variables(void)
{
    enum { N = 20 };
    aco_t *co[N];
    *counter() = -1;
    for (int i = 0; i < N; i++)
        co[i] = aco_new(counts, (void *)(intptr_t)(i + 1), place);
    for (int run = 0; run < 3; run++) {
        for (int i = 0; run && i < N; i++) {
            aco_set_slot(co[i], &co[i]);
            CHECK_EQ(aco_restart(co[i], counts, (void *)(intptr_t)(i + 1)), 0);
            CHECK(aco_slot(co[i]) == NULL);
        }
        for (int round = 0; round < 11; round++)
            for (int i = 0; i < N; i++)
                aco_resume(co[i]);
        for (int i = 0; i < N; i++)
            CHECK_EQ(aco_state(co[i]), ACO_STATE_DONE);
    }
    for (int i = 0; i < N; i++)
        aco_destroy(co[i]);
    for (int i = 0; i < N; i++) { /* perhaps in the same memory: destroyed when suspended, cancelled */
        co[i] = aco_new(counts, (void *)(intptr_t)(i + 1), place);
        aco_resume(co[i]);
        if (i % 2)
            aco_cancel(co[i]);
        aco_destroy(co[i]);
    }
    in_a_thread(counts_in_own_flow, NULL);
    in_a_thread(counts_in_own_flow, NULL);
    CHECK_EQ(*counter(), -1);
}

#if SHARE_STACKS
/* ---- Save areas that grow ---- */

static void *expected;

/* Yields with ever more bytes live, so that the save area grows again and again. */
static __attribute__((noinline)) void grow(int left)
{
    volatile unsigned char bytes[300];
    memset((void *)(uintptr_t)bytes, left, sizeof bytes);
    CHECK(aco_slot(NULL) == expected && aco_get_local(key) == expected && *counter() == 77);
    aco_yield();
    CHECK(aco_slot(NULL) == expected && aco_get_local(key) == expected && *counter() == 77);
    if (left)
        grow(left - 1);
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i] != left)
            CHECK(!"a frame was changed");
}

static void *grows(void *arg)
{
    CHECK_EQ(aco_set_slot(NULL, arg), 0);
    CHECK_EQ(aco_set_local(key, arg), 0);
    *counter() = 77;
    CHECK_EQ(aco_defer(deferred, arg), 0);
    grow(100);
    return arg;
}

static void grows_in_libaco(void)
{
    grows(aco_get_arg());
    aco_exit();
}

static void evict_all(aco_t *co, aco_t *evictor)
{
    while (aco_state(co) != ACO_STATE_DONE) {
        aco_resume(co);
        aco_resume(evictor);
        if (aco_state(co) == ACO_STATE_SUSPENDED)
            CHECK(aco_slot(co) == expected && strcmp(aco_name(co), "grows") == 0);
    }
}

static void *keeps_yielding(void *arg)
{
    for (;;)
        aco_yield();
    return arg;
}

/* Promise: what a coroutine has stays while its save area grows, whether it was made before its first save or after. */
static void growing(void)
{
    static int mark;
    const size_t save_sizes[] = {0, 1, 64, 100, 1000, 2047, 2048, 2049, 16383, 16384, 16385, 20001, 30000};
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *main_object = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_options_t options = {.stack = stack};
    aco_t *evictor = aco_new(keeps_yielding, NULL, &options), *co;
    expected = &mark;
    for (size_t i = 0; i < sizeof save_sizes / sizeof *save_sizes; i++)
        for (int kind = 0; kind < 4; kind++) {
            destroyed = 0;
            options.save_size = save_sizes[i];
            co = kind % 2 ? aco_create(main_object, stack, save_sizes[i], grows_in_libaco, &mark)
                          : aco_new(grows, &mark, &options);
            CHECK(co->save_stack.sz >= save_sizes[i]);
            if (kind < 2)
                CHECK_EQ(aco_set_name(co, "grows"), 0); /* takes from the area */
            aco_resume(co);
            aco_resume(evictor);
            CHECK(co->save_stack.valid_sz > 0);
            if (kind >= 2)
                CHECK_EQ(aco_set_name(co, "grows"), 0);
            evict_all(co, evictor);
            CHECK_EQ(destroyed, 1);
            aco_destroy(co);
            co = aco_create(main_object, stack, save_sizes[i], grows_in_libaco, &mark); /* not run to its end */
            aco_resume(co);
            aco_resume(evictor);
            if (kind)
                CHECK_EQ(aco_cancel(co), 0);
            aco_destroy(co);
        }
    aco_cancel(evictor);
    aco_destroy(evictor);
    aco_share_stack_destroy(stack);
    aco_destroy(main_object);
}

static void *only_yields(void *arg)
{
    volatile char bytes[600];
    memset((void *)(uintptr_t)bytes, 'y', sizeof bytes);
    aco_yield();
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i] != 'y')
            CHECK(!"a frame was changed");
    return arg;
}

/* The first name is given while the frames are in an area that they fill. */
static void named_while_saved(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_options_t options = {.stack = stack};
    for (size_t save_size = 500; save_size < 1100; save_size += 8) {
        aco_t *co, *evictor = aco_new(keeps_yielding, NULL, &options);
        options.save_size = save_size;
        co = aco_new(only_yields, &options, &options);
        aco_resume(co);
        aco_resume(evictor);
        CHECK_EQ(aco_set_name(co, "saved"), 0);
        aco_resume(co);
        CHECK(aco_result(co) == &options && strcmp(aco_name(co), "saved") == 0);
        aco_destroy(co);
        aco_cancel(evictor);
        aco_destroy(evictor);
    }
    aco_share_stack_destroy(stack);
}
#endif

static void round_of_tests(const aco_options_t *options)
{
    place = options;
    slots();
    keys(RETURN);
    keys(EXIT);
    keys(CANCEL);
    keys(DESTROY);
    rounds();
    generations();
    variables();
}

int main(void)
{
    CHECK_EQ(aco_local_key_create(&key, destroy_value), 0);
    CHECK_EQ(aco_local_key_create(&other_key, destroy_other), 0);
    CHECK_EQ(aco_local_key_create(&plain_key, NULL), 0);
    round_of_tests(NULL);
    own_flow();
    exhaustion();
#if SHARE_STACKS
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_options_t options = {.stack = stack};
    round_of_tests(&options);
    aco_share_stack_destroy(stack);
    growing();
    named_while_saved();
#endif
    return check_result("local");
}
