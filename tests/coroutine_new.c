/* Promises of aco_new() (include/aco.h), one function each: options, stack sizes, overflows without a guard page, the
 * new coroutine's state and name; and aco_each(), which visits what was made. */
#define _GNU_SOURCE
#include "coroutines.h"
#include "child.h"

#include "aco/pool.h"

static random_t scheduler = {1}; /* the random schedules' */

/* ---- Making ---- */

static void refuse_options(aco_options_t options, const char *reason)
{
    int before = living();
    FAILS(aco_new(same, NULL, &options), NULL, EINVAL, "aco_new", NULL, reason);
    CHECK_EQ(living(), before);
}

/* Promise: an option out of bounds fails with EINVAL and leaves nothing. */
static void options_are_checked(void)
{
    const unsigned unknown[] = {16, 64, 1u << 15, 1u << 31, 1u << 31 | ACO_OWN_FP};
    aco_t *co = aco_new(same, NULL, NULL);
    FAILS(aco_new(NULL, NULL, NULL), NULL, EINVAL, "aco_new", NULL, "function is NULL");
    refuse_options((aco_options_t){.aco__reserved0 = 1}, "reserved");
    for (int i = 0; i < 2; i++) {
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
        FAILS(aco_new(same, NULL, &huge), NULL, ENOMEM, "aco_new", NULL, "no memory");
    }
    CHECK_EQ(living(), 1);
    aco_share_stack_destroy(stack);
#endif
    if (sizeof(void *) == 8) {
        aco_options_t huge = {.stack_size = SIZE_MAX / 4};
        FAILS(aco_new(same, NULL, &huge), NULL, ENOMEM, "aco_new", NULL, "no memory");
    }
    aco_destroy(co);
    CHECK_EQ(living(), 0);
}

static size_t size_made(size_t asked, unsigned flags)
{
    aco_options_t options = {.stack_size = asked, .flags = flags};
    aco_t *co = aco_new(same, &options, &options);
    size_t sz = co->share_stack->sz - co->share_stack->aco__colour;
    void *lo, *hi;
    CHECK_EQ(co->share_stack->guard_page_enabled, !(flags & ACO_NO_GUARD));
    CHECK_EQ(aco_stack_bounds(co, &lo, &hi), 0);
    CHECK((size_t)((char *)hi - (char *)lo) >= sz);
    if (sz >= 8192) /* a sanitizer's instrumentation and a debug build want a little more than the least */
        CHECK(aco_send(co, NULL) == &options);
    aco_destroy(co);
    return sz;
}

/* Promises: the default size for 0; else what was asked, rounded up to a power of two from 4 KiB (or the page size) to
 * 8 MiB, beyond to whole pages. */
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
    const size_t asked[] = {1,      100,    4095,   4096,   4097,    8192,    65535,  65537,
                            100000, 262143, 262144, 262145, 5000000, 8388608, 8388609};
    CHECK_EQ(size_made(0, 0), ACO__PRIVATE_SIZE);
    CHECK(size_made(0, ACO_NO_GUARD) >= ACO__PRIVATE_SIZE);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        CHECK_EQ(size_made(asked[i], 0), promised(asked[i], page));
        CHECK(size_made(asked[i], ACO_NO_GUARD) >= asked[i]);
        CHECK(size_made(asked[i], ACO_NO_GUARD) >= 4096);
        CHECK(size_made(asked[i], ACO_NO_GUARD) < asked[i] + page || asked[i] < page);
    }
}

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

/* Promise: without a guard page an overflow is noticed later: at the next yield in a debug build, at the end, when
 * destroyed. */
static void overflow_without_guard(void)
{
    aco_options_t options = {.flags = ACO_NO_GUARD};
    subject = aco_new(overflows, &subject, &options);
    ABORTS(resume_subject, "aco_exit", subject, "has overflowed");
    subject->arg = NULL;
    ABORTS(resume_and_destroy_subject, CHECKS_YIELDS ? "aco_yield" : "aco_destroy", subject, "has overflowed");
    aco_destroy(subject);
}

/* ---- The caller's memory ---- */

enum { MEMORY = 12 << 10, AROUND = 64, LIVE = 4096 };
static unsigned char memory[AROUND + MEMORY + AROUND];

static int is_around(int i)
{
    return i < AROUND || i >= AROUND + MEMORY;
}

static void *uses_memory(void *arg)
{
    unsigned char bytes[LIVE];
    CHECK(bytes > memory + AROUND && bytes + LIVE < memory + AROUND + MEMORY);
    memset(bytes, 7, LIVE);
    CHECK(aco_yield_value(bytes) == memory);
    CHECK(bytes[0] == 7 && bytes[LIVE - 1] == 7);
    return arg;
}

/* Promises: a coroutine on the caller's memory, however aligned, uses nothing else; nothing there is in use after it
 * was destroyed; an overflow is noticed; it can be restarted, cancelled and named. */
static void callers_memory(void)
{
    aco_options_t options = {.stack_memory = memory + AROUND, .stack_size = MEMORY - 1};
    refuse_options(options, "less than 12288 bytes");
    options = (aco_options_t){.stack_memory = memory, .stack_size = MEMORY, .pool = (aco_pool_t *)(void *)memory};
    refuse_options(options, "excludes a pool");
    for (int skew = 0; skew < (UNDER_ASAN ? 0 : 130); skew += 13) {
        options = (aco_options_t){.stack_memory = memory + AROUND, .stack_size = MEMORY, .name = "mine"};
        if (skew) {
            options.stack_memory = memory + AROUND + skew;
            options.stack_size = MEMORY + AROUND - skew;
        }
        if (options.stack_size < MEMORY)
            break;
        memset(memory, 0xa5, sizeof memory);
        aco_t *co = aco_new(uses_memory, &options, &options);
        CHECK(co);
        for (int again = 0; again < 2; again++) {
            CHECK(aco_send(co, NULL));
            FAILS(aco_stack_trim(co), -1, EINVAL, "aco_stack_trim", co, "stack_memory");
            CHECK(aco_send(co, memory) == &options);
            CHECK_EQ(aco_restart(co, uses_memory, &options), 0);
        }
        CHECK(aco_send(co, NULL) && strcmp(aco_name(co), "mine") == 0);
        CHECK_EQ(aco_cancel(co), 0);
        aco_destroy(co);
        for (int i = 0; i < (int)sizeof memory; i++)
            if (is_around(i) && memory[i] != 0xa5 && !(skew && i >= AROUND + MEMORY))
                CHECK(!"bytes beside the memory were changed");
        memset(memory, 0, sizeof memory);
    }
    options = (aco_options_t){.stack_memory = memory + AROUND, .stack_size = MEMORY};
    subject = aco_new(overflows, &subject, &options);
    ABORTS(resume_subject, "aco_exit", subject, "has overflowed");
    aco_destroy(subject);
}

/* ---- aco_call_on_stack() ---- */

static int cancelled;

static void note_cancelled(void *arg)
{
    (void)arg;
    cancelled++;
}

static __attribute__((noinline)) uintptr_t deep(unsigned depth)
{
    volatile char frame[1024];
    frame[0] = (char)depth;
    return depth ? deep(depth - 1) + (frame[0] == (char)depth) : 0;
}

static void *goes_deep(void *arg)
{
    return (void *)deep((unsigned)(uintptr_t)arg);
}

static void *yields_inside(void *arg)
{
    CHECK_EQ(aco_defer(note_cancelled, NULL), 0);
    void *sent = aco_yield_value(arg);
    CHECK(sent == memory || (sent == ACO_ERROR && errno == EPERM));
    return sent == ACO_ERROR ? arg : sent;
}

static void *calls_on_stack(void *arg)
{
    const aco_options_t large = {.stack_size = 16 << 20};
    CHECK(aco_call_on_stack(goes_deep, (void *)(uintptr_t)10000, &large) == (void *)(uintptr_t)10000);
    CHECK(aco_call_on_stack(yields_inside, arg, NULL) == memory);
    return arg;
}

/* Promises: the function has the stack that it asks for; its yields are its caller's, at any depth; it is cancelled
 * with the caller; nothing is left over; outside a coroutine a yield in it fails. */
static void calls_on_other_stacks(void)
{
    int before = living();
    aco_t *co = aco_new(calls_on_stack, &before, NULL);
    cancelled = 0;
    CHECK(aco_send(co, NULL) == &before);
    CHECK(aco_send(co, memory) == &before && co->is_end);
    CHECK_EQ(cancelled, 1);
    CHECK_EQ(aco_restart(co, calls_on_stack, &before), 0);
    CHECK(aco_send(co, NULL) == &before);
    CHECK_EQ(living(), before + 2);
    CHECK_EQ(aco_cancel(co), 0);
    CHECK_EQ(cancelled, 2);
    aco_destroy(co);
    CHECK(aco_call_on_stack(yields_inside, &before, NULL) == &before);
    CHECK_EQ(cancelled, 3);
    CHECK_EQ(living(), before);
    FAILS(aco_call_on_stack(NULL, NULL, NULL), ACO_ERROR, EINVAL, "aco_call_on_stack", NULL, "function is NULL");
#if SHARE_STACKS
    const aco_options_t shared = {.stack = aco_share_stack_new(0)};
    FAILS(aco_call_on_stack(goes_deep, NULL, &shared), ACO_ERROR, EINVAL, "aco_call_on_stack", NULL, "private");
    aco_share_stack_destroy(shared.stack);
#endif
}

#ifdef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
/* Promise: a unit with switches that do not swap control words makes no coroutine that needs it. */
static void own_environment_is_refused(void)
{
    aco_options_t options = {.flags = ACO_OWN_FP};
    FAILS(aco_new(same, NULL, &options), NULL, EINVAL, "aco_new", NULL, "ACO_CONFIG_SHARE_FPU_MXCSR_ENV");
}
#else
#define own_environment_is_refused() ((void)0)
#endif

/* Promises: a new coroutine is ready, with nothing set; its argument is what aco_new() got; `arg` is the user's to
 * change. */
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
    FAILS(aco_set_name(NULL, "x"), -1, EINVAL, "aco_set_name", NULL, "NULL");
    FAILS(aco_set_name(plain, NULL), -1, EINVAL, "aco_set_name", plain, "NULL");
    main_object = aco_create(NULL, NULL, 0, NULL, NULL);
    FAILS(aco_set_name(main_object, "x"), -1, EINVAL, "aco_set_name", main_object, "main coroutine");
    CHECK(strcmp(aco_name(main_object), "") == 0);
    aco_destroy(main_object);
    aco_destroy(plain);
}

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

/* Promises: aco_each() sees each living coroutine of both kinds once, and not main objects, destroyed or pooled
 * ones. */
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
    FAILS(aco_each(NULL, NULL), -1, EINVAL, "aco_each", NULL, "NULL");
#if SHARE_STACKS
    aco_share_stack_destroy(stack);
#endif
    aco_destroy(main_object);
}

int main(void)
{
    options_are_checked();
    stack_sizes();
    overflow_without_guard();
    callers_memory();
    calls_on_other_stacks();
    own_environment_is_refused();
    new_is_new();
    names();
    visits();
    return check_result("coroutine_new");
}
