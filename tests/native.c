/* Promises of the native API (include/aco.h), one function each: options, values, results, states, nesting, transfer, what
 * can be asked of a coroutine, and every refusal. Ending early is in cancel.c, coroutine-local storage in local.c. At the
 * end random schedules of all of it run against a model of who must get control next, with what value, under which rounding.
 *
 * native [seed [operations]]; ACORN_SEED replaces the seed, too. The seed is printed. */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"
#include "child.h"
#include "random.h"
#include "refuses.h"

#include <errno.h>
#include <fenv.h>
#include <inttypes.h>
#include <pthread.h>

#if defined(ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
#define OWN_FP_POSSIBLE 0
#else
#define OWN_FP_POSSIBLE 1
#endif

static random_t scheduler = {1}; /* the random schedules' */

/* ---- Making ---- */

static int count_one(aco_t *co, void *arg)
{
    (void)co;
    ++*(int *)arg;
    return 0;
}

static int living(void)
{
    int n = 0;
    CHECK_EQ(aco_each(count_one, &n), 0);
    return n;
}

static void *same(void *arg)
{
    return arg;
}

static void *yields_once(void *arg)
{
    void *got = aco_yield_value(arg);
    return got;
}

static void refuse_options(aco_options_t options, const char *reason)
{
    int before = living();
    REFUSES(aco_new(same, NULL, &options), NULL, EINVAL, "aco_new", NULL, reason);
    CHECK_EQ(living(), before);
}

/* Promise: an option out of bounds is refused by EINVAL and leaves nothing. */
static void options_are_checked(void)
{
    const unsigned unknown[] = {16, 32, 1u << 15, 1u << 31, 1u << 31 | ACO_OWN_FP};
    aco_t *co = aco_new(same, NULL, NULL);
    REFUSES(aco_new(NULL, NULL, NULL), NULL, EINVAL, "aco_new", NULL, "function is NULL");
    refuse_options((aco_options_t){.aco__reserved0 = 1}, "reserved");
    for (int i = 0; i < 3; i++) {
        aco_options_t options = {0};
        options.aco__reserved[i] = &options;
        refuse_options(options, "reserved");
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        refuse_options((aco_options_t){.flags = unknown[i]}, "flags");
    refuse_options((aco_options_t){.flags = ACO_OWN_FP | ACO_SHARED_FP}, "ACO_SHARED_FP");
    refuse_options((aco_options_t){.save_size = 1}, "save_size");
    refuse_options((aco_options_t){.stack_size = SIZE_MAX}, "stack_size");
    refuse_options((aco_options_t){.stack_size = SIZE_MAX / 4 + 1}, "stack_size");
    refuse_options((aco_options_t){.stack = co->share_stack}, "belongs to a coroutine");
#if SHARE_STACKS
    aco_share_stack_t *stack = aco_share_stack_new(0);
    refuse_options((aco_options_t){.stack = stack, .stack_size = 65536}, "stack_size");
    refuse_options((aco_options_t){.stack = stack, .flags = ACO_NO_GUARD}, "ACO_NO_GUARD");
    refuse_options((aco_options_t){.stack = stack, .save_size = SIZE_MAX}, "save_size");
    if (sizeof(void *) == 8) { /* more than any system has */
        aco_options_t huge = {.stack = stack, .save_size = SIZE_MAX / 4};
        REFUSES(aco_new(same, NULL, &huge), NULL, ENOMEM, "aco_new", NULL, "no memory");
    }
    CHECK_EQ(living(), 1);
    aco_share_stack_destroy(stack);
#endif
    if (sizeof(void *) == 8) {
        aco_options_t huge = {.stack_size = SIZE_MAX / 4};
        REFUSES(aco_new(same, NULL, &huge), NULL, ENOMEM, "aco_new", NULL, "no memory");
    }
    aco_destroy(co);
    CHECK_EQ(living(), 0);
}

static size_t size_made(size_t asked, unsigned flags)
{
    aco_options_t options = {.stack_size = asked, .flags = flags};
    aco_t *co = aco_new(same, &options, &options);
    size_t sz = co->share_stack->sz;
    void *lo, *hi;
    CHECK_EQ(co->share_stack->guard_page_enabled, !(flags & ACO_NO_GUARD));
    CHECK_EQ(aco_stack_bounds(co, &lo, &hi), 0);
    CHECK((size_t)((char *)hi - (char *)lo) >= sz);
    if (sz >= 8192) /* a sanitizer's instrumentation and a debug build want a little more than the least */
        CHECK(aco_send(co, NULL) == &options);
    aco_destroy(co);
    return sz;
}

/* Promises: 256 KiB by default; else what was asked, rounded up to a power of two from 4 KiB (or the page size) to 8 MiB,
 * beyond to whole pages. */
static size_t promised(size_t asked, size_t page)
{
    size_t sz = page;
    if (asked > 8 << 20)
        return (asked + page - 1) / page * page;
    while (sz < asked)
        sz *= 2;
    return sz;
}

static void stack_sizes(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t asked[] = {1, 100, 4095, 4096, 4097, 8192, 65535, 65537, 100000, 262143, 262144, 262145, 5000000, 8388608, 8388609};
    CHECK_EQ(size_made(0, 0), 256 << 10);
    CHECK(size_made(0, ACO_NO_GUARD) >= 256 << 10);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        CHECK_EQ(size_made(asked[i], 0), promised(asked[i], page));
        CHECK(size_made(asked[i], ACO_NO_GUARD) >= asked[i]);
        CHECK(size_made(asked[i], ACO_NO_GUARD) >= 4096);
        CHECK(size_made(asked[i], ACO_NO_GUARD) < asked[i] + page || asked[i] < page);
    }
}

/* The exported functions are those of a release build. */
#if ACO_DEBUG && !defined(ACO_CONFIG_NO_INLINE)
#define CHECKS_YIELDS 1
#else
#define CHECKS_YIELDS 0
#endif

static void *overflows(void *arg)
{
    volatile char *below = aco_get_co()->share_stack->ptr;
    below[-8] = 1;
    if (!arg)
        aco_yield();
    return arg;
}

static aco_t *subject; /* of the children */

static void resume_subject(void)
{
    aco_resume(subject);
}

static void resume_and_destroy_subject(void)
{
    aco_resume(subject);
    aco_destroy(subject);
}

/* Promise: without a guard page an overflow is noticed later: at the next yield in a debug build, at the end, when destroyed. */
static void overflow_without_guard(void)
{
    aco_options_t options = {.flags = ACO_NO_GUARD};
    subject = aco_new(overflows, &subject, &options);
    ABORTS(resume_subject, "aco_exit", subject, "has overflowed");
    subject->arg = NULL;
    ABORTS(resume_and_destroy_subject, CHECKS_YIELDS ? "aco_yield" : "aco_destroy", subject, "has overflowed");
    aco_destroy(subject);
}

#ifdef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
/* Promise: a unit whose switches do not exchange control words makes no coroutine that needs it. */
static void own_environment_is_refused(void)
{
    aco_options_t options = {.flags = ACO_OWN_FP};
    REFUSES(aco_new(same, NULL, &options), NULL, EINVAL, "aco_new", NULL, "ACO_CONFIG_SHARE_FPU_MXCSR_ENV");
}
#else
#define own_environment_is_refused() ((void)0)
#endif

/* Promises: a new coroutine is ready, with nothing set; its argument is what aco_new() got; `arg` is the user's to change. */
static void new_is_new(void)
{
    int mark;
    for (int i = 0; i < 3; i++) { /* later ones have the memory of those before */
        aco_t *co = aco_new(same, &mark, NULL);
        CHECK_EQ(aco_state(co), ACO_STATE_READY);
        CHECK(strcmp(aco_name(co), "") == 0 && aco_slot(co) == NULL && !co->is_end && co->arg == &mark);
        CHECK(!aco_is_main_co(co));
        CHECK_EQ(aco_set_name(co, "old") | aco_set_slot(co, &mark), 0);
        if (i == 1) {
            co->arg = NULL;
            CHECK(aco_send(co, NULL) == NULL);
        } else {
            CHECK(aco_send(co, NULL) == &mark);
        }
        CHECK(aco_result(co) == (i == 1 ? NULL : &mark) && co->is_end);
        aco_destroy(co);
    }
    CHECK_EQ(living(), 0);
}

/* Promises: names are copied, at most 31 bytes of them; "" without one. */
static void names(void)
{
    char text[64];
    aco_options_t options = {.name = text};
    aco_t *co, *plain = aco_new(same, NULL, NULL), *main_object;
    for (size_t length = 0; length < 40; length++) {
        size_t kept = length < ACO_NAME_SIZE - 1 ? length : ACO_NAME_SIZE - 1;
        memset(text, 'n', sizeof text);
        text[length] = 0;
        co = aco_new(same, NULL, &options);
        CHECK_EQ(aco_set_name(plain, text), 0);
        memset(text, 'x', sizeof text - 1);
        CHECK_EQ(strlen(aco_name(co)), kept);
        CHECK_EQ(strspn(aco_name(co), "n"), kept);
        CHECK(strcmp(aco_name(plain), aco_name(co)) == 0);
        aco_destroy(co);
    }
    CHECK_EQ(aco_set_name(plain, ""), 0);
    CHECK(strcmp(aco_name(plain), "") == 0);
    REFUSES(aco_set_name(NULL, "x"), -1, EINVAL, "aco_set_name", NULL, "NULL");
    REFUSES(aco_set_name(plain, NULL), -1, EINVAL, "aco_set_name", plain, "NULL");
    main_object = aco_create(NULL, NULL, 0, NULL, NULL);
    REFUSES(aco_set_name(main_object, "x"), -1, EINVAL, "aco_set_name", main_object, "main coroutine");
    CHECK(strcmp(aco_name(main_object), "") == 0);
    aco_destroy(main_object);
    aco_destroy(plain);
}

/* ---- Values and results ---- */

static void *doubles(void *arg)
{
    intptr_t n = (intptr_t)arg;
    while (n >= 0)
        n = (intptr_t)aco_yield_value((void *)(2 * n));
    return (void *)n;
}

/* Promise: each send returns what is yielded for it, each yield what is sent next, the last send the result. */
static void values_go_round(aco_t *co)
{
    CHECK_EQ((intptr_t)aco_send(co, NULL), 2 * 7);
    for (intptr_t i = 0; i < 20000; i++)
        if ((intptr_t)aco_send(co, (void *)i) != 2 * i)
            CHECK(!"a value got lost");
    CHECK_EQ((intptr_t)aco_send(co, (void *)-5), -5);
    CHECK_EQ((intptr_t)aco_result(co), -5);
    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
}

static void *mixes(void *arg)
{
    aco_yield();
    CHECK(aco_yield_value(NULL) == NULL);       /* resumed by aco_resume() */
    CHECK(aco_yield_value(arg) == (void *)5);
    aco_yield1(aco_get_co());                    /* resumed by aco_send(): the value is nobody's */
    CHECK(aco_yield_value((void *)9) == NULL);
    return arg;
}

/* Promise: where one side passes no value the other one sees NULL. */
static void without_values(void)
{
    int mark;
    aco_t *co = aco_new(mixes, &mark, NULL);
    CHECK(aco_send(co, NULL) == NULL);
    CHECK(aco_send(co, &mark) == NULL);
    aco_resume(co);
    CHECK(aco_send(co, (void *)5) == NULL);
    CHECK_EQ((intptr_t)aco_send(co, &mark), 9);
    aco_resume(co);
    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
    CHECK(aco_result(co) == &mark);
    aco_destroy(co);
}

static void *exits(void *arg)
{
    if (arg)
        aco_exit();
    aco_exit1(aco_get_co());
}

/* Promises: the result of aco_exit() is NULL; aco_result() of one that is not done is refused. */
static void results(void)
{
    aco_t *co;
    for (int i = 0; i < 2; i++) {
        co = aco_new(exits, i ? &co : NULL, NULL);
        REFUSES(aco_result(co), ACO_ERROR, EBUSY, "aco_result", co, "not done");
        CHECK(aco_send(co, NULL) == NULL);
        CHECK(aco_result(co) == NULL && co->is_end && aco_state(co) == ACO_STATE_DONE);
        aco_destroy(co);
    }
    co = aco_new(yields_once, NULL, NULL);
    aco_resume(co);
    REFUSES(aco_result(co), ACO_ERROR, EBUSY, "aco_result", co, "not done");
    aco_resume(co);
    CHECK(aco_result(co) == NULL);
    aco_destroy(co);
    REFUSES(aco_result(NULL), ACO_ERROR, EINVAL, "aco_result", NULL, "NULL");
}

static void send_first_value(void)
{
    int mark;
    CHECK(aco_send(subject, &mark) == &subject);
}

static void send_no_first_value(void)
{
    CHECK(aco_send(subject, NULL) == &subject);
}

/* Promise: the first value is ignored, and a debug build says so where it is not NULL. */
static void first_value_is_ignored(void)
{
    char text[128];
    subject = aco_new(same, &subject, NULL);
    snprintf(text, sizeof text, "acorn: aco_send: coroutine %p: is started with a value", (void *)subject);
    PRINTS(send_first_value, CHECKS_YIELDS ? text : NULL);
    PRINTS(send_no_first_value, NULL);
    aco_destroy(subject);
}

/* ---- States, restart, refusals ---- */

static aco_t *outer, *inner;

static void *look_from_inside(void *arg)
{
    CHECK_EQ(aco_state(inner), ACO_STATE_RUNNING);
    CHECK_EQ(aco_state(outer), ACO_STATE_RESUMING);
    CHECK(aco_get_co() == inner && aco_co() == inner && aco_get_arg() == arg);
    REFUSES(aco_send(inner, NULL), ACO_ERROR, EBUSY, "aco_send", inner, "running");
    REFUSES(aco_send(outer, NULL), ACO_ERROR, EBUSY, "aco_send", outer, "resuming");
    REFUSES(aco_yield_to(outer), -1, EBUSY, "aco_yield_to", outer, "resuming");
    REFUSES(aco_restart(inner, same, NULL), -1, EBUSY, "aco_restart", inner, "not done");
    REFUSES(aco_restart(outer, same, NULL), -1, EBUSY, "aco_restart", outer, "not done");
    REFUSES(aco_result(inner), ACO_ERROR, EBUSY, "aco_result", inner, "not done");
    REFUSES(aco_result(outer), ACO_ERROR, EBUSY, "aco_result", outer, "not done");
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

/* Promise: aco_state() tells all five states; what runs, or resumes, is refused where it must rest. */
static void states(const aco_options_t *options)
{
    aco_t *main_object = aco_create(NULL, NULL, 0, NULL, NULL);
    outer = aco_new(resume_inner, NULL, options);
    inner = aco_new(look_from_inside, NULL, options);
    CHECK_EQ(aco_state(main_object), ACO_STATE_RUNNING);
    CHECK_EQ(aco_state(outer), ACO_STATE_READY);
    aco_send(outer, NULL);
    CHECK_EQ(aco_state(outer), ACO_STATE_SUSPENDED);
    REFUSES(aco_restart(outer, same, NULL), -1, EBUSY, "aco_restart", outer, "not done");
    aco_send(outer, NULL);
    CHECK_EQ(aco_state(outer), ACO_STATE_DONE);
    CHECK_EQ(aco_state(inner), ACO_STATE_SUSPENDED);
    aco_send(inner, NULL);
    CHECK_EQ(aco_state(inner), ACO_STATE_DONE);
    REFUSES(aco_send(inner, NULL), ACO_ERROR, ESRCH, "aco_send", inner, "ended");
    REFUSES(aco_send(NULL, NULL), ACO_ERROR, EINVAL, "aco_send", NULL, "NULL");
    REFUSES(aco_send(main_object, NULL), ACO_ERROR, EINVAL, "aco_send", main_object, "main coroutine");
    aco_destroy(outer);
    REFUSES(aco_send(outer, NULL), ACO_ERROR, ESRCH, "aco_send", outer, "destroyed");
    REFUSES(aco_restart(outer, same, NULL), -1, ESRCH, "aco_restart", outer, "destroyed");
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
    aco_t *main_object = aco_create(NULL, NULL, 0, NULL, NULL), *co = aco_new(main_state_from_inside, main_object, NULL);
    aco_send(co, NULL);
    aco_destroy(co);
    aco_destroy(main_object);
}

static void never_runs(void)
{
    abort();
}

/* Promises: what is done, or was never resumed, starts anew on its stack, under its name; others are refused. */
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
        REFUSES(aco_result(co), ACO_ERROR, EBUSY, "aco_result", co, "not done");
    }
    CHECK_EQ(aco_restart(co, exits, co), 0);
    CHECK(aco_send(co, NULL) == NULL);
    CHECK_EQ(aco_restart(co, same, co), 0);
    CHECK(aco_send(co, NULL) == co && aco_result(co) == co);
    CHECK(co->share_stack == stack && strcmp(aco_name(co), "again") == 0);
    REFUSES(aco_restart(NULL, same, NULL), -1, EINVAL, "aco_restart", NULL, "NULL");
    REFUSES(aco_restart(co, NULL, NULL), -1, EINVAL, "aco_restart", co, "NULL");
    aco_destroy(co);
    main_object = aco_create(NULL, NULL, 0, NULL, NULL);
    REFUSES(aco_restart(main_object, same, NULL), -1, EINVAL, "aco_restart", main_object, "aco_new");
#if SHARE_STACKS
    stack = aco_share_stack_new(0);
    co = aco_create(main_object, stack, 0, never_runs, NULL);
    REFUSES(aco_restart(co, same, NULL), -1, EINVAL, "aco_restart", co, "aco_new");
    aco_destroy(co);
    aco_share_stack_destroy(stack);
#else
    (void)never_runs;
#endif
    aco_destroy(main_object);
}

/* Promise: what needs a running coroutine is refused without one. */
static void outside_of_coroutines(void)
{
    aco_t *co = aco_new(same, NULL, NULL);
    CHECK_EQ(aco_is_in_main_co(), 1);
    REFUSES(aco_yield_value(co), ACO_ERROR, EPERM, "aco_yield_value", NULL, "no coroutine is running");
    REFUSES(aco_yield_to(co), -1, EPERM, "aco_yield_to", co, "no coroutine is running");
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
    REFUSES(aco_stack_bounds(NULL, &lo, &hi), -1, EINVAL, "aco_stack_bounds", NULL, "NULL");
    REFUSES(aco_stack_bounds(co, NULL, &hi), -1, EINVAL, "aco_stack_bounds", co, "");
    REFUSES(aco_stack_bounds(co, &lo, NULL), -1, EINVAL, "aco_stack_bounds", co, "");
    REFUSES(aco_stack_bounds(main_object, &lo, &hi), -1, EINVAL, "aco_stack_bounds", main_object, "main coroutine");
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
    REFUSES(aco_yield_to(at->co), -1, EPERM, "aco_yield_to", at->co, "another thread");
    REFUSES(aco_send(at->co, NULL), ACO_ERROR, EPERM, "aco_send", at->co, "another thread");
    return arg;
}

static void *use_from_elsewhere(void *arg)
{
    const elsewhere_t *at = arg;
    aco_t *co = aco_new(transfer_elsewhere, arg, NULL);
    REFUSES(aco_send(at->co, NULL), ACO_ERROR, EPERM, "aco_send", at->co, "another thread");
    REFUSES(aco_send(at->libaco, NULL), ACO_ERROR, EPERM, "aco_send", at->libaco, "another thread");
    REFUSES(aco_cancel(at->co), -1, EPERM, "aco_cancel", at->co, "another thread");
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
    elsewhere_t at = {aco_new(yields_once, NULL, &options), aco_create(main_object, stack, 0, never_runs, NULL), aco_new(yields_once, NULL, NULL)};
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

/* ---- Visiting ---- */

enum { SCALE = 300 };

typedef struct seen {
    aco_t *co[SCALE];
    int times[SCALE], others, stop_after, visited;
} seen_t;

static int see(aco_t *co, void *arg)
{
    seen_t *seen = arg;
    int at = 0;
    while (at < SCALE && seen->co[at] != co)
        at++;
    if (at < SCALE)
        seen->times[at]++;
    else
        seen->others++;
    return ++seen->visited == seen->stop_after ? 42 : 0;
}

static void visit_all(seen_t *seen)
{
    memset(seen->times, 0, sizeof seen->times);
    seen->others = seen->visited = seen->stop_after = 0;
    CHECK_EQ(aco_each(see, seen), 0);
    CHECK_EQ(seen->others, 0);
    for (int i = 0; i < SCALE; i++)
        if (seen->times[i] != (seen->co[i] != NULL))
            CHECK(!"aco_each() did not see just the living");
}

/* Promises: aco_each() sees each living coroutine of both kinds once, and not main objects, destroyed or pooled ones. */
static void visits(void)
{
    static seen_t seen;
    aco_t *main_object = aco_create(NULL, NULL, 0, NULL, NULL);
#if SHARE_STACKS
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_options_t options = {.stack = stack};
#endif
    visit_all(&seen);
    for (int i = 0; i < 3000; i++) {
        int at = (int)(draw(&scheduler) % SCALE), kind = (int)(draw(&scheduler) % 4);
        if (seen.co[at]) {
            if (kind && aco_state(seen.co[at]) != ACO_STATE_DONE)
                aco_send(seen.co[at], NULL);
            if (kind < 2) {
                aco_cancel(seen.co[at]);
                aco_destroy(seen.co[at]);
                seen.co[at] = NULL;
            }
        } else {
#if SHARE_STACKS
            seen.co[at] = kind == 0   ? aco_create(main_object, stack, i % 9000, aco_exit, NULL)
                          : kind == 1 ? aco_new(yields_once, NULL, &options)
                                      : aco_new(yields_once, NULL, NULL);
#else
            seen.co[at] = aco_new(yields_once, NULL, NULL);
#endif
        }
        if (i % 10 == 0)
            visit_all(&seen);
    }
    visit_all(&seen);
    if (seen.visited > 3) { /* a visitor can stop */
        memset(seen.times, 0, sizeof seen.times);
        seen.visited = 0;
        seen.stop_after = 3;
        CHECK_EQ(aco_each(see, &seen), 42);
        CHECK_EQ(seen.visited, 3);
    } else {
        CHECK(!"too few to stop at the third");
    }
    for (int at = 0; at < SCALE; at++) {
        if (seen.co[at]) {
            aco_cancel(seen.co[at]);
            aco_destroy(seen.co[at]);
            seen.co[at] = NULL;
        }
        if (at % 50 == 0)
            visit_all(&seen);
    }
    visit_all(&seen);
    CHECK_EQ(seen.visited, 0);
    REFUSES(aco_each(NULL, NULL), -1, EINVAL, "aco_each", NULL, "NULL");
#if SHARE_STACKS
    aco_share_stack_destroy(stack);
#endif
    aco_destroy(main_object);
}

/* ---- libaco's calls and native ones ---- */

static void *yields_both_ways(void *arg)
{
    aco_yield();
    CHECK(aco_yield_value(arg) == arg);
    return arg;
}

#if SHARE_STACKS
static int turns;

static void libaco_entry(void)
{
    aco_t *native = aco_get_arg();
    CHECK(aco_yield_value(&turns) == &turns);
    aco_resume(native);                            /* both libaco's and native coroutines resume any other */
    CHECK(aco_send(native, NULL) == native->arg);
    CHECK(aco_send(native, native->arg) == native->arg);
    CHECK_EQ(aco_state(native), ACO_STATE_DONE);
    CHECK(aco_yield_to(inner) == 0);
    turns++;
    aco_exit();
}

static void *resume_libaco(void *arg)
{
    aco_t *libaco = arg;
    CHECK(aco_send(libaco, NULL) == &turns);
    CHECK(aco_send(libaco, &turns) == &turns); /* from `inner`, to which it transferred */
    aco_yield();
    aco_resume(libaco);
    CHECK_EQ(aco_state(libaco), ACO_STATE_DONE);
    CHECK(aco_result(libaco) == NULL);
    return arg;
}

static void *yields_turns(void *arg)
{
    aco_yield_value(&turns);
    return arg;
}

/* Promise: coroutines of both kinds resume, send to and transfer to each other. */
static void both_kinds(int native_is_private, int outer_is_private)
{
    aco_t *main_object = aco_create(NULL, NULL, 0, NULL, NULL), *native, *libaco;
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_options_t options = {.stack = stack};
    turns = 0;
    native = aco_new(yields_both_ways, &options, native_is_private ? NULL : &options);
    inner = aco_new(yields_turns, NULL, native_is_private ? &options : NULL);
    libaco = aco_create(main_object, stack, 0, libaco_entry, native);
    outer = aco_new(resume_libaco, libaco, outer_is_private ? NULL : &options);
    aco_resume(outer);
    CHECK_EQ(aco_state(inner), ACO_STATE_SUSPENDED);
    aco_resume(outer);
    CHECK_EQ(aco_state(outer), ACO_STATE_DONE);
    CHECK_EQ(turns, 1);
    aco_resume(inner);
    aco_destroy(inner);
    aco_destroy(outer);
    aco_destroy(libaco);
    aco_destroy(native);
    aco_share_stack_destroy(stack);
    aco_destroy(main_object);
}
#endif

/* ---- Nesting ---- */

enum { DEPTH = 100, PATTERNS = 27, FILL = 200 };

/* Where the coroutine of a depth runs: a pattern of up to three kinds, in base 3. Kind 0 is a stack of its own. */
static aco_share_stack_t *share[3];
static int pattern;

static aco_options_t options_of_depth(int depth)
{
    const int powers[] = {1, 3, 9};
    aco_options_t options = {.stack = share[pattern / powers[depth % 3] % 3]};
    return options;
}

static void fill(unsigned char *bytes, size_t n, uint64_t seed)
{
    random_t r = {seed};
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)draw(&r);
}

static int is_filled(const unsigned char *bytes, size_t n, uint64_t seed)
{
    random_t r = {seed};
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != (unsigned char)draw(&r))
            return 0;
    return 1;
}

/* Each depth adds its own number to what the next one yields and returns: 0 + 1 + ... + DEPTH - 1 must arrive. */
static void *nest(void *arg)
{
    int depth = (int)(intptr_t)arg;
    unsigned char bytes[FILL];
    aco_options_t options = options_of_depth(depth + 1);
    aco_t *below = depth + 1 < DEPTH ? aco_new(nest, (void *)(intptr_t)(depth + 1), &options) : NULL;
    fill(bytes, sizeof bytes, (uint64_t)depth);
    for (int i = 0; i < 3; i++) {
        intptr_t sum = below ? (intptr_t)aco_send(below, i ? (void *)(intptr_t)i : NULL) : 0;
        CHECK(is_filled(bytes, sizeof bytes, (uint64_t)depth));
        if (below)
            CHECK_EQ(aco_state(below), i < 2 ? ACO_STATE_SUSPENDED : ACO_STATE_DONE);
        if (i == 2) {
            if (below)
                aco_destroy(below);
            return (void *)(sum + depth);
        }
        CHECK_EQ((intptr_t)aco_yield_value((void *)(sum + depth)), i + 1);
        CHECK(is_filled(bytes, sizeof bytes, (uint64_t)depth));
    }
    return NULL;
}

/* Promise: any coroutine may resume any other, to any depth, on stacks in any mix; frames that wait are kept. */
static void nesting(void)
{
    for (int i = 1; i < 3 && SHARE_STACKS; i++)
        share[i] = aco_share_stack_new2(0, i == 1);
    for (pattern = 0; pattern < (SHARE_STACKS ? PATTERNS : 1); pattern++) {
        aco_options_t options = options_of_depth(0);
        aco_t *co = aco_new(nest, (void *)0, &options);
        for (intptr_t i = 0; i < 3; i++)
            CHECK_EQ((intptr_t)aco_send(co, (void *)i), DEPTH * (DEPTH - 1) / 2);
        CHECK_EQ(aco_state(co), ACO_STATE_DONE);
        aco_destroy(co);
        CHECK_EQ(living(), 0);
    }
    for (int i = 1; i < 3 && SHARE_STACKS; i++)
        aco_share_stack_destroy(share[i]);
}

/* ---- Transfer ---- */

enum { RING = 6, ROUNDS = 500 };

static aco_t *ring[RING];
static int ring_at, ring_steps;

static void *run_ring(void *arg)
{
    int me = (int)(intptr_t)arg;
    unsigned char bytes[FILL];
    fill(bytes, sizeof bytes, (uint64_t)me);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(ring_at, me);
        CHECK(aco_get_co() == ring[me]);
        ring_steps++;
        ring_at = (me + 1) % RING;
        if (i + 1 == ROUNDS && me + 1 == RING)
            aco_yield_value(ring); /* to who resumed the first one */
        else
            CHECK_EQ(aco_yield_to(ring[ring_at]), 0);
        CHECK(is_filled(bytes, sizeof bytes, (uint64_t)me));
    }
    return (void *)(intptr_t)(me + 1);
}

static void go_round(void)
{
    ring_at = ring_steps = 0;
    CHECK(aco_send(ring[0], NULL) == ring);
    CHECK_EQ(ring_steps, RING * ROUNDS);
    for (int i = 0; i < RING; i++) {
        CHECK_EQ(aco_state(ring[i]), ACO_STATE_SUSPENDED);
        CHECK_EQ((intptr_t)aco_send(ring[i], ring), i + 1);
    }
}

static void *go_round_inside(void *arg)
{
    go_round();
    return arg;
}

/* Promise: aco_yield_to() goes round rings on private and share stacks in any mix, and yields return to the resumer, which is
 * the thread's own flow of control or a coroutine (on one of the stacks, too). */
static void rings(void)
{
    for (int i = 1; i < 3 && SHARE_STACKS; i++)
        share[i] = aco_share_stack_new2(0, i == 1);
    for (pattern = 0; pattern < (SHARE_STACKS ? PATTERNS : 1); pattern++)
        for (int fp = 0; fp < (OWN_FP_POSSIBLE ? 4 : 1); fp++)
            for (int nested = 0; nested < 2; nested++) {
                for (int i = 0; i < RING; i++) {
                    aco_options_t options = options_of_depth(i);
                    int own = fp == 0 || (fp == 2 && i % 2) || (fp == 3 && i == 4);
                    options.flags = own && OWN_FP_POSSIBLE ? ACO_OWN_FP : ACO_SHARED_FP;
                    ring[i] = aco_new(run_ring, (void *)(intptr_t)i, &options);
                }
                if (nested) {
                    aco_options_t options = options_of_depth(0);
                    aco_t *co = aco_new(go_round_inside, NULL, &options);
                    aco_resume(co);
                    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
                    aco_destroy(co);
                } else {
                    go_round();
                }
                for (int i = 0; i < RING; i++)
                    aco_destroy(ring[i]);
            }
    for (int i = 1; i < 3 && SHARE_STACKS; i++)
        aco_share_stack_destroy(share[i]);
}

typedef struct refused_transfers {
    aco_t *done, *destroyed, *main_object;
} refused_transfers_t;

static void *try_transfers(void *arg)
{
    const refused_transfers_t *to = arg;
    REFUSES(aco_yield_to(NULL), -1, EINVAL, "aco_yield_to", NULL, "NULL");
    REFUSES(aco_yield_to(to->done), -1, ESRCH, "aco_yield_to", to->done, "ended");
    REFUSES(aco_yield_to(to->destroyed), -1, ESRCH, "aco_yield_to", to->destroyed, "destroyed");
    REFUSES(aco_yield_to(to->main_object), -1, EINVAL, "aco_yield_to", to->main_object, "main coroutine");
    aco_yield_to(aco_get_co()); /* goes on, whatever it returns */
    CHECK(aco_get_co() == subject);
    return arg;
}

/* Promise: what cannot be resumed cannot be transferred to, and the caller goes on. */
static void refused_transfers(const aco_options_t *options)
{
    refused_transfers_t to = {aco_new(same, NULL, options), aco_new(same, NULL, options), aco_create(NULL, NULL, 0, NULL, NULL)};
    aco_send(to.done, NULL);
    subject = aco_new(try_transfers, &to, options);
    aco_destroy(to.destroyed); /* last, so that its memory is not in use again */
    CHECK(aco_send(subject, NULL) == &to);
    aco_destroy(subject);
    aco_destroy(to.done);
    aco_destroy(to.main_object);
}

/* ACO_OWN_EXCEPTIONS is for C++; in C it must do no harm. */
static void own_exceptions(void)
{
    aco_options_t options = {.flags = ACO_OWN_EXCEPTIONS};
    aco_t *co = aco_new(doubles, (void *)7, &options);
    values_go_round(co);
    aco_destroy(co);
    for (int i = 0; i < RING; i++)
        ring[i] = aco_new(run_ring, (void *)(intptr_t)i, &options);
    go_round();
    for (int i = 0; i < RING; i++)
        aco_destroy(ring[i]);
}

/* ---- Random schedules ---- */

/* The model. Who has control is a chain: the thread's own flow of control, the coroutine that it resumed, the one that that
 * one resumed, and so on; a yield takes the last one off, a transfer replaces it. Whoever gets control looks whether the
 * model says so, whether the value is the one passed, whether the rounding is its own, and whether its frames are whole. */
enum { ACTORS = 30, FLOW = -1, DEEPEST_FRAME = 8 };
enum { TO_NEAREST, UP, DOWN, TO_ZERO };

typedef enum { ABSENT, READY, SUSPENDED, RUNNING, RESUMING, DONE } phase_t;
typedef enum { IN_YIELD_VALUE, IN_SEND, IN_OTHER } place_t;

/* On the coroutine's stack; the next ones are further out. */
typedef struct frame {
    struct frame *outward;
    unsigned size;
    uint64_t seed;
    unsigned char *bytes;
    struct actor *actor;
} frame_t;

typedef struct actor {
    aco_t *co;
    phase_t phase;
    place_t place;
    frame_t *frames;
    int own_fp, rounding, resumer;
    int deferred, to_be_called; /* deferred calls open; those that must still come while it ends */
    void *result;
} actor_t;

static actor_t actors[ACTORS + 1];
static aco_share_stack_t *model_stacks[3];
static int in_control = FLOW;      /* who must have it */
static void *passed;               /* what it must find */
static unsigned long operations_left, counts[12];
enum { DID_RESUME, DID_YIELD, DID_TRANSFER, DID_CANCEL, DID_END, DID_RESTART, DID_DESTROY, DID_REFUSED, DID_NEST, DID_CLEANUP };
static int flow_rounding;

static int fenv_of[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
static double third_of[4];

static __attribute__((noinline)) double a_third(void)
{
    volatile double one = -1.0, three = 3.0, third = one / three; /* stored: x87 registers hold more */
    return third;
}

/* Whose environment `who` works in: its own, or that of its resumer. */
static int *rounding_of(int who)
{
    while (who != FLOW && !actors[who].own_fp)
        who = actors[who].resumer;
    return who == FLOW ? &flow_rounding : &actors[who].rounding;
}

static void check_rounding(int who)
{
    int mode = *rounding_of(who);
    if (fegetround() != fenv_of[mode] || (mode < TO_ZERO && a_third() != third_of[mode]))
        CHECK(!"another's rounding");
}

/* What follows would mean nothing. */
static __attribute__((noreturn)) void lost(const char *what)
{
    fprintf(stderr, "native: %s\n", what);
    abort();
}

/* `who` has got control. */
static void arrive(int who, place_t place, void *value)
{
    if (in_control != who || aco_is_in_main_co() != (who == FLOW))
        lost("control went elsewhere");
    check_rounding(who);
    if (value != (place == IN_OTHER ? NULL : passed))
        CHECK(!"another value came");
    if (who == FLOW)
        return;
    if (aco_get_co() != actors[who].co || aco_state(actors[who].co) != ACO_STATE_RUNNING)
        CHECK(!"not the running coroutine");
    for (frame_t *f = actors[who].frames; f; f = f->outward)
        if (!is_filled(f->bytes, f->size, f->seed))
            lost("a frame was changed");
}

static void *some_value(void)
{
    return (void *)(uintptr_t)(draw(&scheduler) >> 8 | 1);
}

static int pick(phase_t a, phase_t b)
{
    int at = (int)below(&scheduler, ACTORS);
    for (int i = 0; i < ACTORS; i++, at = (at + 1) % ACTORS)
        if (actors[at].phase == a || actors[at].phase == b)
            return at;
    return FLOW;
}

static void set_phase(int who, phase_t phase)
{
    if (who != FLOW)
        actors[who].phase = phase;
}

static void *act_out(void *arg);

static void make(int who)
{
    actor_t *actor = &actors[who];
    unsigned stack = below(&scheduler, SHARE_STACKS ? 5 : 1), fp = below(&scheduler, 3);
    aco_options_t options = {.stack = stack > 1 ? model_stacks[stack - 2] : NULL};
    if (options.stack && below(&scheduler, 2))
        options.save_size = 1 + below(&scheduler, 5000);
    if (!options.stack && below(&scheduler, 4) == 0)
        options.stack_size = 100000;
    actor->own_fp = OWN_FP_POSSIBLE && fp;
    options.flags = OWN_FP_POSSIBLE ? fp == 2 ? ACO_OWN_FP : fp == 1 ? 0 : ACO_SHARED_FP : 0;
    actor->co = aco_new(act_out, actor, below(&scheduler, 3) || options.stack || options.stack_size || options.flags ? &options : NULL);
    actor->phase = READY;
    actor->rounding = TO_NEAREST;
}

/* Resumes or cancels `to` from `who`. */
static void *run_nested(int who, int to, void *value, int cancel)
{
    actor_t *actor = &actors[to];
    void *got = NULL;
    phase_t before = who == FLOW ? RUNNING : actors[who].phase;
    counts[DID_NEST] += who != FLOW;
    if (cancel && actor->phase == READY) {
        CHECK_EQ(aco_cancel(actor->co), 0);
        actor->phase = DONE;
        actor->result = NULL;
        return NULL;
    }
    set_phase(who, RESUMING);
    actor->resumer = who;
    actor->phase = RUNNING;
    in_control = to;
    passed = actor->place == IN_YIELD_VALUE ? value : NULL;
    if (cancel) {
        actor->to_be_called = actor->deferred;
        if (aco_cancel(actor->co) != 0)
            lost(aco_error_message());
        CHECK_EQ(actor->to_be_called, 0);
        CHECK_EQ(aco_state(actor->co), ACO_STATE_DONE);
        CHECK(aco_result(actor->co) == NULL);
        actor->phase = DONE;
        actor->deferred = 0;
        actor->frames = NULL;
        actor->result = NULL;
        in_control = who;
    } else if (value) {
        got = aco_send(actor->co, value);
        CHECK(got == passed);
    } else {
        aco_resume(actor->co);
    }
    set_phase(who, before);
    arrive(who, cancel || !value ? IN_OTHER : IN_SEND, got);
    return got;
}

/* What a deferred call does: counts, and sometimes resumes another. */
static void deferred_call(void *arg)
{
    actor_t *actor = arg;
    int who = (int)(actor - actors), other;
    if (in_control != who || aco_get_co() != actor->co)
        CHECK(!"a deferred call without control");
    check_rounding(who);
    if (--actor->deferred, --actor->to_be_called < 0)
        CHECK(!"a deferred call too many");
    counts[DID_CLEANUP]++;
    if (below(&scheduler, 4) == 0 && (other = pick(SUSPENDED, SUSPENDED)) != FLOW)
        run_nested(who, other, some_value(), (int)below(&scheduler, 3) == 0);
}

/* The frames further in have been unwound, and what a compiler has put into them to be run then has used the stack. */
static void deferred_in_frame(void *arg)
{
    frame_t *frame = arg;
    frame->actor->frames = frame;
    deferred_call(frame->actor);
}

static void give_back_control(int who, phase_t phase)
{
    actor_t *actor = &actors[who];
    actor->phase = phase;
    in_control = actor->resumer;
}

static void some_refusal(int who)
{
    int at = (int)below(&scheduler, ACTORS);
    aco_t *co = actors[at].co;
    counts[DID_REFUSED]++;
    errno = 0;
    switch (actors[at].phase) {
    case DONE:
        CHECK(aco_send(co, NULL) == ACO_ERROR);
        CHECK_EQ(errno, ESRCH);
        break;
    case RUNNING:
    case RESUMING:
        CHECK(aco_send(co, NULL) == ACO_ERROR);
        CHECK_EQ(errno, EBUSY);
        CHECK_EQ(aco_cancel(co), -1);
        CHECK_EQ(errno, EBUSY);
        CHECK(aco_result(co) == ACO_ERROR);
        if (at != who) {
            CHECK_EQ(aco_yield_to(co), -1);
            CHECK_EQ(errno, who == FLOW ? EPERM : EBUSY);
        }
        break;
    default:
        break;
    }
}

/* One operation of whoever has control; `depth` is the coroutine's. */
static void operate(int who)
{
    unsigned what = below(&scheduler, 100);
    actor_t *actor = who == FLOW ? NULL : &actors[who];
    void *value = below(&scheduler, 3) ? some_value() : NULL;
    int to;
    if (what < 10) {
        int *rounding = rounding_of(who);
        *rounding = (int)below(&scheduler, 4);
        fesetround(fenv_of[*rounding]);
        return;
    }
    if (what < 14) {
        some_refusal(who);
        return;
    }
    if (what < 18 && (to = pick(DONE, READY)) != FLOW) { /* begins anew */
        if (actors[to].phase == DONE)
            CHECK(aco_result(actors[to].co) == actors[to].result);
        counts[DID_RESTART]++;
        CHECK_EQ(aco_restart(actors[to].co, act_out, &actors[to]), 0);
        actors[to].phase = READY;
        actors[to].rounding = TO_NEAREST;
        return;
    }
    if (what < 21 && (to = pick(DONE, READY)) != FLOW) {
        counts[DID_DESTROY]++;
        aco_destroy(actors[to].co);
        actors[to].phase = ABSENT;
    }
    if (what < 24 && (to = pick(ABSENT, ABSENT)) != FLOW)
        make(to);
    if (what < 29 && (to = pick(SUSPENDED, SUSPENDED)) != FLOW) {
        counts[DID_CANCEL]++;
        run_nested(who, to, NULL, 1);
        return;
    }
    if ((what < 60 || who == FLOW) && (to = pick(SUSPENDED, READY)) != FLOW) {
        counts[DID_RESUME]++;
        if (actors[to].phase == READY) {
            actors[to].place = IN_OTHER;
            if (ACO_DEBUG)
                value = NULL; /* it would be said each time */
        }
        run_nested(who, to, value, 0);
        return;
    }
    if (who == FLOW)
        return;
    if (what < 82 && (to = pick(SUSPENDED, READY)) != FLOW) {
        int refused;
        counts[DID_TRANSFER]++;
        actors[to].resumer = actor->resumer;
        actors[to].phase = RUNNING;
        actor->phase = SUSPENDED;
        actor->place = IN_OTHER;
        in_control = to;
        passed = NULL;
        refused = aco_yield_to(actors[to].co);
        if (refused)
            lost(aco_error_message());
        arrive(who, IN_OTHER, NULL);
        return;
    }
    counts[DID_YIELD]++;
    give_back_control(who, SUSPENDED);
    passed = value;
    if (value) {
        actor->place = IN_YIELD_VALUE;
        arrive(who, IN_YIELD_VALUE, aco_yield_value(value));
    } else {
        actor->place = IN_OTHER;
        aco_yield();
        arrive(who, IN_OTHER, NULL);
    }
}

static __attribute__((noinline)) void go_deeper(int who, int depth)
{
    actor_t *actor = &actors[who];
    unsigned kind = below(&scheduler, 20), size = 1 + below(&scheduler, kind < 12 ? 64 : kind < 19 ? 700 : 5000);
    unsigned char *bytes = __builtin_alloca(size);
    frame_t frame = {actor->frames, size, draw(&scheduler), bytes, actor};
    int defers = below(&scheduler, 3) == 0;
    fill(bytes, size, frame.seed);
    actor->frames = &frame;
    if (defers) {
        CHECK_EQ(aco_defer(deferred_in_frame, &frame), 0);
        actor->deferred++;
    }
    for (unsigned steps = 1 + below(&scheduler, 8); steps && operations_left; steps--) {
        operations_left--;
        if (depth < DEEPEST_FRAME && below(&scheduler, 4) == 0)
            go_deeper(who, depth + 1);
        else
            operate(who);
    }
    if (!is_filled(bytes, size, frame.seed))
        lost("a frame was changed");
    if (defers) {
        actor->to_be_called = 1;
        CHECK_EQ(aco_defer_pop(1), 0);
        CHECK_EQ(actor->to_be_called, 0);
    }
    actor->frames = frame.outward;
}

static void defer_at_the_end(actor_t *actor, void *result)
{
    int defers = (int)below(&scheduler, 3);
    for (int i = 0; i < defers; i++)
        aco_defer(deferred_call, actor);
    actor->deferred = actor->to_be_called = defers;
    counts[DID_END]++;
    actor->result = result;
}

static void set_passed_at_the_end(void *arg)
{
    actor_t *actor = arg;
    CHECK_EQ(actor->to_be_called, 0);
    give_back_control((int)(actor - actors), DONE);
    passed = actor->result;
}

static void *act_out(void *arg)
{
    actor_t *actor = arg;
    int who = (int)(actor - actors);
    actor->frames = NULL;
    actor->deferred = 0;
    arrive(who, IN_OTHER, NULL);
    while (operations_left && below(&scheduler, 6))
        go_deeper(who, 0);
    CHECK_EQ(aco_defer(set_passed_at_the_end, actor), 0); /* the last to be called */
    defer_at_the_end(actor, below(&scheduler, 2) ? some_value() : NULL);
    if (!actor->result && below(&scheduler, 2))
        aco_exit();
    return actor->result;
}

static void random_schedule(uint64_t seed, unsigned long operations)
{
    for (int i = 0; i < 4; i++) {
        fesetround(fenv_of[i]);
        third_of[i] = a_third();
    }
    fesetround(FE_TONEAREST);
    CHECK(third_of[UP] != third_of[DOWN]);
    scheduler.state = seed;
    operations_left = operations;
    for (int i = 0; i < 3 && SHARE_STACKS; i++)
        model_stacks[i] = aco_share_stack_new2(512 << 10, i != 2);
    while (operations_left && check_failures < 20) {
        operations_left--;
        operate(FLOW);
    }
    for (int i = 0; i < ACTORS; i++) {
        if (actors[i].phase == SUSPENDED)
            run_nested(FLOW, i, NULL, 1);
        if (actors[i].phase != ABSENT)
            aco_destroy(actors[i].co);
        actors[i].phase = ABSENT;
    }
    for (int i = 0; i < 3 && SHARE_STACKS; i++)
        aco_share_stack_destroy(model_stacks[i]);
    for (int i = 0; i < DID_CLEANUP + 1; i++)
        CHECK(counts[i] > 0);
    CHECK_EQ(living(), 0);
    fesetround(FE_TONEAREST);
}

int main(int argc, char **argv)
{
    const char *from_environment = getenv("ACORN_SEED");
    uint64_t seed = from_environment ? strtoull(from_environment, NULL, 0) : argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    unsigned long operations = argc > 2 ? strtoul(argv[2], NULL, 0) : 200000;
    aco_options_t shared = {0};
    fprintf(stderr, "native: seed %" PRIu64 ", %lu operations\n", seed, operations);
    options_are_checked();
    stack_sizes();
    overflow_without_guard();
    own_environment_is_refused();
    new_is_new();
    names();
    without_values();
    results();
    first_value_is_ignored();
    for (int i = 0; i < 1 + SHARE_STACKS; i++) {
        aco_options_t options = {0};
        if (i)
            options.stack = shared.stack = aco_share_stack_new(0);
        states(&options);
        states_elsewhere(&options);
        restarts(&options);
        where(&options);
        refused_transfers(&options);
    }
    if (shared.stack)
        aco_share_stack_destroy(shared.stack);
    state_of_main();
    outside_of_coroutines();
#if SHARE_STACKS
    other_threads();
    for (int i = 0; i < 4; i++)
        both_kinds(i % 2, i / 2);
#else
    (void)yields_both_ways;
#endif
    visits();
    nesting();
    rings();
    own_exceptions();
    random_schedule(seed, operations);
    return check_result("native");
}
