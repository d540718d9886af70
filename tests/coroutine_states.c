/* Promises about the states of coroutines from aco_new() (include/aco.h), one function each: aco_state(), results,
 * restarts, what fails in which state, and what other threads may do. */
#define _GNU_SOURCE
#include "coroutines.h"

#include <pthread.h>

/* ---- Values and results ---- */

static void *exits(void *arg)
{
    if (arg)
        aco_exit();
    aco_exit1(aco_get_co());
}

/* Promises: the result of aco_exit() is NULL; aco_result() of one that is not done fails. */
static void results(void)
{
    aco_t *co;
    for (int i = 0; i < 2; i++) {
        co = aco_new(exits, i ? &co : NULL, NULL);
        FAILS(aco_result(co), ACO_ERROR, EBUSY, "aco_result", co, "not done");
        CHECK(aco_send(co, NULL) == NULL);
        CHECK(aco_result(co) == NULL && co->is_end && aco_state(co) == ACO_STATE_DONE);
        aco_destroy(co);
    }
    co = aco_new(yields_once, NULL, NULL);
    aco_resume(co);
    FAILS(aco_result(co), ACO_ERROR, EBUSY, "aco_result", co, "not done");
    aco_resume(co);
    CHECK(aco_result(co) == NULL);
    aco_destroy(co);
    FAILS(aco_result(NULL), ACO_ERROR, EINVAL, "aco_result", NULL, "NULL");
}

/* ---- States, restart, failures ---- */

static aco_t *outer, *inner;

static void *look_from_inside(void *arg)
{
    CHECK_EQ(aco_state(inner), ACO_STATE_RUNNING);
    CHECK_EQ(aco_state(outer), ACO_STATE_RESUMING);
    CHECK(aco_get_co() == inner && aco_co() == inner && aco_get_arg() == arg);
    FAILS(aco_send(inner, NULL), ACO_ERROR, EBUSY, "aco_send", inner, "running");
    FAILS(aco_send(outer, NULL), ACO_ERROR, EBUSY, "aco_send", outer, "resuming");
    FAILS(aco_yield_to(outer), -1, EBUSY, "aco_yield_to", outer, "resuming");
    FAILS(aco_restart(inner, same, NULL), -1, EBUSY, "aco_restart", inner, "not done");
    FAILS(aco_restart(outer, same, NULL), -1, EBUSY, "aco_restart", outer, "not done");
    FAILS(aco_result(inner), ACO_ERROR, EBUSY, "aco_result", inner, "not done");
    FAILS(aco_result(outer), ACO_ERROR, EBUSY, "aco_result", outer, "not done");
    aco_yield();
    return arg;
}

static void *resume_inner(void *arg)
{
    CHECK_EQ(aco_state(inner), ACO_STATE_READY);
    CHECK(aco_send(inner, NULL) == NULL);
    CHECK_EQ(aco_state(inner), ACO_STATE_SUSPENDED);
    CHECK_EQ(aco_state(outer), ACO_STATE_RUNNING);
    aco_yield();
    return arg;
}

static void *look_from_elsewhere(void *co)
{
    return (void *)(uintptr_t)aco_state(co);
}

static void *is_looked_at(void *arg)
{
    for (int turn = 0; turn < 2; turn++) {
        pthread_t thread;
        void *state;
        CHECK_EQ(pthread_create(&thread, NULL, look_from_elsewhere, aco_get_co()), 0);
        pthread_join(thread, &state);
        CHECK_EQ((uintptr_t)state, turn ? ACO_STATE_SUSPENDED : ACO_STATE_READY);
        CHECK_EQ(aco_state(aco_get_co()), ACO_STATE_RUNNING);
        aco_yield();
    }
    return arg;
}

/* Promise: to another thread a running one looks as before: suspended, or ready before its first yield. */
static void states_elsewhere(const aco_options_t *options)
{
    aco_t *co = aco_new(is_looked_at, NULL, options);
    for (int turn = 0; turn < 3; turn++)
        aco_send(co, NULL);
    aco_destroy(co);
}

/* Promise: aco_state() tells all five states; a call that needs a coroutine at rest fails on one that runs or
 * resumes. */
static void states(const aco_options_t *options)
{
    aco_t *main_object = aco_create(NULL, NULL, 0, NULL, NULL);
    outer = aco_new(resume_inner, NULL, options);
    inner = aco_new(look_from_inside, NULL, options);
    CHECK_EQ(aco_state(main_object), ACO_STATE_RUNNING);
    CHECK_EQ(aco_state(outer), ACO_STATE_READY);
    aco_send(outer, NULL);
    CHECK_EQ(aco_state(outer), ACO_STATE_SUSPENDED);
    FAILS(aco_restart(outer, same, NULL), -1, EBUSY, "aco_restart", outer, "not done");
    aco_send(outer, NULL);
    CHECK_EQ(aco_state(outer), ACO_STATE_DONE);
    CHECK_EQ(aco_state(inner), ACO_STATE_SUSPENDED);
    aco_send(inner, NULL);
    CHECK_EQ(aco_state(inner), ACO_STATE_DONE);
    FAILS(aco_send(inner, NULL), ACO_ERROR, ESRCH, "aco_send", inner, "ended");
    FAILS(aco_send(NULL, NULL), ACO_ERROR, EINVAL, "aco_send", NULL, "NULL");
    FAILS(aco_send(main_object, NULL), ACO_ERROR, EINVAL, "aco_send", main_object, "main coroutine");
    aco_destroy(outer);
    FAILS(aco_send(outer, NULL), ACO_ERROR, ESRCH, "aco_send", outer, "destroyed");
    FAILS(aco_restart(outer, same, NULL), -1, ESRCH, "aco_restart", outer, "destroyed");
    aco_destroy(inner);
    aco_destroy(main_object);
}

static void *main_state_from_inside(void *arg)
{
    CHECK_EQ(aco_state(arg), ACO_STATE_RESUMING);
    return NULL;
}

/* Promise: a main coroutine is running or resuming. */
static void state_of_main(void)
{
    aco_t *main_object = aco_create(NULL, NULL, 0, NULL, NULL),
          *co = aco_new(main_state_from_inside, main_object, NULL);
    aco_send(co, NULL);
    aco_destroy(co);
    aco_destroy(main_object);
}

static void never_runs(void)
{
    abort();
}

/* Promises: what is done, or was never resumed, starts anew on its stack, under its name; others fail. */
static void restarts(const aco_options_t *options)
{
    aco_share_stack_t *stack;
    aco_t *co = aco_new(doubles, (void *)7, options), *main_object;
    CHECK_EQ(aco_set_name(co, "again"), 0);
    stack = co->share_stack;
    for (int i = 0; i < 3; i++) {
        values_go_round(co);
        CHECK_EQ(aco_restart(co, doubles, (void *)7), 0);
        CHECK(aco_state(co) == ACO_STATE_READY && !co->is_end);
        FAILS(aco_result(co), ACO_ERROR, EBUSY, "aco_result", co, "not done");
    }
    CHECK_EQ(aco_restart(co, exits, co), 0);
    CHECK(aco_send(co, NULL) == NULL);
    CHECK_EQ(aco_restart(co, same, co), 0);
    CHECK(aco_send(co, NULL) == co && aco_result(co) == co);
    CHECK(co->share_stack == stack && strcmp(aco_name(co), "again") == 0);
    FAILS(aco_restart(NULL, same, NULL), -1, EINVAL, "aco_restart", NULL, "NULL");
    FAILS(aco_restart(co, NULL, NULL), -1, EINVAL, "aco_restart", co, "NULL");
    aco_destroy(co);
    main_object = aco_create(NULL, NULL, 0, NULL, NULL);
    FAILS(aco_restart(main_object, same, NULL), -1, EINVAL, "aco_restart", main_object, "aco_new");
#if SHARE_STACKS
    stack = aco_share_stack_new(0);
    co = aco_create(main_object, stack, 0, never_runs, NULL);
    FAILS(aco_restart(co, same, NULL), -1, EINVAL, "aco_restart", co, "aco_new");
    aco_destroy(co);
    aco_share_stack_destroy(stack);
#else
    (void)never_runs;
#endif
    aco_destroy(main_object);
}

/* Promise: calls that need a running coroutine fail without one. */
static void outside_of_coroutines(void)
{
    aco_t *co = aco_new(same, NULL, NULL);
    CHECK_EQ(aco_is_in_main_co(), 1);
    FAILS(aco_yield_value(co), ACO_ERROR, EPERM, "aco_yield_value", NULL, "no coroutine is running");
    FAILS(aco_yield_to(co), -1, EPERM, "aco_yield_to", co, "no coroutine is running");
    CHECK_EQ(aco_state(co), ACO_STATE_READY);
    aco_destroy(co);
}

static void *knows_where_it_is(void *arg)
{
    char local;
    void *lo, *hi;
    CHECK_EQ(aco_is_in_main_co(), 0);
    CHECK_EQ(aco_stack_bounds(aco_get_co(), &lo, &hi), 0);
#if SHARE_STACKS /* a sanitizer keeps locals elsewhere */
    CHECK((char *)lo <= &local && &local < (char *)hi);
#endif
    CHECK((char *)lo <= (char *)__builtin_frame_address(0) && (char *)__builtin_frame_address(0) < (char *)hi);
    (void)local;
    return arg;
}

static void *thread_without_a_coroutine(void *arg)
{
    CHECK_EQ(aco_is_in_main_co(), 1);
    CHECK(aco_get_co() == NULL);
    CHECK(strcmp(aco_error_message(), "") == 0);
    CHECK_EQ(living(), 0);
    return arg;
}

/* Promises: aco_is_in_main_co(), aco_stack_bounds(), and that a thread needs no preparation and begins with nothing. */
static void where(const aco_options_t *options)
{
    void *lo = NULL, *hi = NULL;
    pthread_t thread;
    aco_t *co = aco_new(knows_where_it_is, NULL, options), *main_object = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_send(co, NULL);
    CHECK_EQ(aco_stack_bounds(co, &lo, &hi), 0);
    CHECK(lo == co->share_stack->ptr && (char *)hi > (char *)lo);
    CHECK((char *)lo > (char *)&co || (char *)hi <= (char *)&co);
    FAILS(aco_stack_bounds(NULL, &lo, &hi), -1, EINVAL, "aco_stack_bounds", NULL, "NULL");
    FAILS(aco_stack_bounds(co, NULL, &hi), -1, EINVAL, "aco_stack_bounds", co, "");
    FAILS(aco_stack_bounds(co, &lo, NULL), -1, EINVAL, "aco_stack_bounds", co, "");
    FAILS(aco_stack_bounds(main_object, &lo, &hi), -1, EINVAL, "aco_stack_bounds", main_object, "main coroutine");
    aco_destroy(main_object);
    aco_destroy(co);
    CHECK_EQ(pthread_create(&thread, NULL, thread_without_a_coroutine, NULL), 0);
    pthread_join(thread, NULL);
}

#if SHARE_STACKS
typedef struct elsewhere {
    aco_t *co, *libaco, *free_one;
} elsewhere_t;

static void *transfer_elsewhere(void *arg)
{
    const elsewhere_t *at = arg;
    FAILS(aco_yield_to(at->co), -1, EPERM, "aco_yield_to", at->co, "another thread");
    FAILS(aco_send(at->co, NULL), ACO_ERROR, EPERM, "aco_send", at->co, "another thread");
    return arg;
}

static void *use_from_elsewhere(void *arg)
{
    const elsewhere_t *at = arg;
    aco_t *co = aco_new(transfer_elsewhere, arg, NULL);
    FAILS(aco_send(at->co, NULL), ACO_ERROR, EPERM, "aco_send", at->co, "another thread");
    FAILS(aco_send(at->libaco, NULL), ACO_ERROR, EPERM, "aco_send", at->libaco, "another thread");
    FAILS(aco_cancel(at->co), -1, EPERM, "aco_cancel", at->co, "another thread");
    CHECK(aco_send(co, NULL) == arg);
    aco_destroy(co);
    CHECK(aco_send(at->free_one, arg) == at); /* on its own stack: any thread may */
    return NULL;
}

/* Promise: what is on a share stack belongs to the thread that runs coroutines there. */
static void other_threads(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_options_t options = {.stack = stack};
    aco_t *main_object = aco_create(NULL, NULL, 0, NULL, NULL), *evicts = aco_new(yields_once, NULL, &options);
    elsewhere_t at = {aco_new(yields_once, NULL, &options), aco_create(main_object, stack, 0, never_runs, NULL),
                      aco_new(yields_once, NULL, NULL)};
    pthread_t thread;
    aco_resume(at.co);
    aco_resume(at.free_one);
    aco_resume(evicts);
    CHECK_EQ(pthread_create(&thread, NULL, use_from_elsewhere, &at), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(aco_state(at.co), ACO_STATE_SUSPENDED);
    aco_resume(at.co);
    CHECK_EQ(aco_state(at.co), ACO_STATE_DONE);
    aco_destroy(at.co);
    aco_destroy(at.libaco);
    aco_destroy(at.free_one);
    aco_cancel(evicts);
    aco_destroy(evicts);
    aco_destroy(main_object);
    aco_share_stack_destroy(stack);
}
#endif

int main(void)
{
    results();
    for (int i = 0; i < 1 + SHARE_STACKS; i++) {
        aco_options_t options = {0};
        if (i)
            options.stack = aco_share_stack_new(0);
        states(&options);
        states_elsewhere(&options);
        restarts(&options);
        where(&options);
        if (i)
            aco_share_stack_destroy(options.stack);
    }
    state_of_main();
    outside_of_coroutines();
#if SHARE_STACKS
    other_threads();
#endif
    return check_result("coroutine_states");
}
