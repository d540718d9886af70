/* Promises of generators (include/aco/generator.h): first what holds for both kinds (generator/both.h), then what is
 * said of one of them. Random programs are in generator/, failing allocations in generator_failure.c.
 *
 * generator [plain]; `plain`: no share stacks, no child processes, no giant stacks: what Valgrind can follow
 * (--max-stackframe=16384). */
#define _GNU_SOURCE
#include "aco.h"
#include "aco/in_stack_generator.h"
#include "check.h"
#include "child.h"
#include "events.h"
#include "fails.h"

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <stdarg.h>

/* Under the thread sanitizer both kinds have stacks of their own. */
#if !ACO__ON_ONE_STACK
#define ON_ONE_STACK 0
#else
#define ON_ONE_STACK 1
#endif

/* Not to be tail calls, nor inlined: their frames must be there. */
#define FRAME static __attribute__((noinline, unused))
#define KEEP_FRAME __asm__ volatile("" : : : "memory")

static int plain;

static void log_event(void *event)
{
    note(*(const char *)event);
}
#define defer_log(event) CHECK_EQ(aco_defer(log_event, (void *)(uintptr_t)(event)), 0)

static void log_attribute(const char *const *event)
{
    note(**event);
}
#define CLEANED(letter) __attribute__((cleanup(log_attribute), unused)) const char *const cleaned_##letter = #letter

/* ---- What frames are made of ---- */

/* More arguments than registers, of both kinds. */
FRAME intptr_t mix(intptr_t a, intptr_t b, intptr_t c, double d, intptr_t e, intptr_t f, intptr_t g, double h,
                   intptr_t i, intptr_t j)
{
    KEEP_FRAME;
    return a + 2 * b + 3 * c + 4 * (intptr_t)d + 5 * e + 6 * f + 7 * g + 8 * (intptr_t)h + 9 * i + 10 * j;
}

/* Prints a and b, and the two arguments: the same must come. */
FRAME void check_print(double a, double b, const char *format, ...)
{
    char wanted[80], got[80];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(got, sizeof got, format, arguments);
    va_end(arguments);
    snprintf(wanted, sizeof wanted, format, a, b);
    CHECK(strcmp(wanted, got) == 0);
}


/* ---- Both kinds ---- */

#define KIND(name) own_##name
#define GENERATOR(name, y, arg) ACO_GENERATOR(name, y, arg)
#define GENERATOR_T aco_generator_t
#define YIELDER_T aco_yielder_t
#define GENERATE aco_generate
#define OPEN(g, function, arg) CHECK_EQ(aco_generator_open(g, function, arg, NULL), 0)
#define NEXT aco_generator_next
#define CLOSE aco_generator_close
#define CLOSE_NAME "aco_generator_close"
#define DROP aco_generator_drop
/* Promise: fails in a generator with a stack of its own. */
#define TRY_TO_DEFER(co) FAILS(aco_defer(log_event, (void *)(uintptr_t) "D"), -1, EPERM, "aco_defer", co, "generator")
#define DEFERRED ""
#include "generator/both.h"

#undef KIND
#undef GENERATOR
#undef GENERATOR_T
#undef YIELDER_T
#undef GENERATE
#undef OPEN
#undef NEXT
#undef CLOSE
#undef CLOSE_NAME
#undef DROP
#undef TRY_TO_DEFER
#undef DEFERRED
#define KIND(name) in_stack_##name
#define GENERATOR(name, y, arg) ACO_IN_STACK_GENERATOR(name, y, arg)
#define GENERATOR_T aco_in_stack_t
#define YIELDER_T aco_in_stack_yielder_t
#define GENERATE aco_generate_in_stack
#define OPEN aco_in_stack_open
#define NEXT(g) next_in_stack(g)
#define CLOSE(g) CHECK_EQ(aco_in_stack_close(g), 0)
#define CLOSE_NAME (ON_ONE_STACK ? "aco_in_stack_close" : "aco_generator_close")
#define DROP(g) CHECK_EQ(aco_in_stack_drop(g), 0)
#if ON_ONE_STACK
#define TRY_TO_DEFER(co) defer_log("D")
#define DEFERRED "D"
#else
#define TRY_TO_DEFER(co) (void)(co)
#define DEFERRED ""
#endif

/* A failure is no value. */
static inline __attribute__((always_inline)) int next_in_stack(aco_in_stack_t *g)
{
    int more = aco_in_stack_next(g);
    CHECK(more >= 0);
    return more > 0;
}
#include "generator/both.h"

#define BOTH(call)                                                                                                     \
    do {                                                                                                               \
        own_##call;                                                                                                    \
        in_stack_##call;                                                                                               \
    } while (0)

/* ---- On a stack of its own: making one ---- */

static void refused_options(void)
{
    aco_generator_t g;
    aco_options_t options = {.save_size = 1};
    memset(&g, 0xa5, sizeof g);
#define REFUSED(reason)                                                                                                \
    do {                                                                                                               \
        FAILS(aco_generator_open(&g, own_counts, NULL, &options), -1, EINVAL, "aco_generator_open", NULL, reason);   \
        CHECK_EQ(aco_generator_next(&g), 0); /* there is none, and it may be closed */                                 \
        aco_generator_close(&g);                                                                                       \
        options = (aco_options_t){0};                                                                                  \
    } while (0)
    REFUSED("not for generators");
    options.stack = (aco_share_stack_t *)&options;
    REFUSED("not for generators");
    options.aco__reserved0 = 1;
    REFUSED("not for generators");
    options.aco__reserved[1] = &options;
    REFUSED("not for generators");
    for (unsigned flag = 1; flag; flag <<= 1) {
        options.flags = flag | ACO_NO_GUARD;
        if (flag != ACO_NO_GUARD)
            REFUSED("not for generators");
    }
    options.stack_size = SIZE_MAX;
    REFUSED("stack_size is out of bounds");
    FAILS(aco_generator_open(&g, NULL, NULL, NULL), -1, EINVAL, "aco_generator_open", NULL, "NULL");
    options.stack_size = SIZE_MAX / 4;
    if (!plain && SIZE_MAX > UINT32_MAX)
        FAILS(aco_generator_open(&g, own_counts, NULL, &options), -1, ENOMEM, "aco_generator_open", NULL,
              "no memory for ");
    else
        aco_generator_open(&g, NULL, NULL, NULL);
    CHECK_EQ(aco_generator_next(&g), 0);
    aco_generator_close(&g);
    aco_generator_drop(&g);
}

FRAME void use_stack(aco_yielder_t *y, size_t sz)
{
    volatile char bytes[1000];
    __asm__ volatile("" : : "r"(bytes) : "memory"); /* all of them are wanted */
    bytes[0] = bytes[999] = 1;
    if (sz > 1100)
        use_stack(y, sz - 1100);
    else
        aco_generate(y, NULL);
    CHECK(bytes[0] == 1 && bytes[999] == 1);
}

ACO_GENERATOR(uses_stack, y, arg)
{
    use_stack(y, (size_t)arg);
}

/* Promise: stack_size, name and ACO_NO_GUARD are heeded. */
static void stack_sizes(void)
{
    static const aco_options_t options[] = {{.stack_size = 4 << 20},
                                            {.stack_size = 4 << 20, .flags = ACO_NO_GUARD},
                                            {.stack_size = 1},
                                            {.flags = ACO_NO_GUARD},
                                            {.name = "named"}};
    static const size_t uses[] = {2 << 20, 2 << 20, 1, 100 << 10, 100 << 10};
    for (int i = 0; i < 10; i++) {
        aco_generator_t g;
        CHECK_EQ(aco_generator_open(&g, uses_stack, (void *)uses[i % 5], &options[i % 5]), 0);
        CHECK_EQ(aco_generator_next(&g), 1);
        if (i < 5)
            CHECK_EQ(aco_generator_next(&g), 0);
        else
            aco_generator_drop(&g);
    }
}

static void overflow(void)
{
    aco_generator_t g;
    CHECK_EQ(aco_generator_open(&g, uses_stack, (void *)(1 << 20), NULL), 0);
    CHECK_EQ(aco_generator_next(&g), 1);
}

/* Promise: closing gives the stack back, and the next one gets it. */
static void pool(void)
{
    const void *stacks[2] = {NULL, NULL};
    for (int i = 0; i < 1000; i++) {
        aco_generator_t g;
        CHECK_EQ(aco_generator_open(&g, own_has_frames, NULL, NULL), 0);
        CHECK_EQ(aco_generator_next(&g), 1);
        stacks[i % 2] = g.aco__block;
        if (i % 3 == 0)
            aco_generator_close(&g);
        else if (i % 3 == 1)
            aco_generator_drop(&g);
        else
            while (aco_generator_next(&g))
                ;
        if (i)
            CHECK(!stacks[0] || !SHARE_STACKS || stacks[0] == stacks[1]);
    }
    clear_log();
}

/* ---- On a stack of its own: several ---- */

ACO_GENERATOR(every, y, arg)
{
    intptr_t step = (intptr_t)arg;
    for (intptr_t i = 0;; i += step)
        aco_generate(y, (void *)i);
}

/* Two alive in one frame, one value from each in turn. */
static void zipped(void)
{
    aco_generator_t threes, fives;
    CHECK_EQ(aco_generator_open(&threes, every, (void *)3, NULL), 0);
    CHECK_EQ(aco_generator_open(&fives, every, (void *)5, NULL), 0);
    for (intptr_t i = 0; i < 100; i++) {
        CHECK(aco_generator_next(&threes) == 1 && (intptr_t)threes.value == 3 * i);
        CHECK(aco_generator_next(&fives) == 1 && (intptr_t)fives.value == 5 * i);
    }
    aco_generator_close(&threes); /* in any order */
    CHECK(aco_generator_next(&fives) == 1 && (intptr_t)fives.value == 500);
    aco_generator_close(&fives);
}

enum { MANY = 1000 };

static void many_alive(void)
{
    static aco_generator_t many[MANY];
    for (intptr_t i = 0; i < MANY; i++)
        CHECK_EQ(aco_generator_open(&many[i], every, (void *)(i + 1), NULL), 0);
    for (intptr_t round = 0; round < 5; round++)
        for (intptr_t i = 0; i < MANY; i++)
            CHECK(aco_generator_next(&many[i]) == 1 && (intptr_t)many[i].value == round * (i + 1));
    for (intptr_t i = 0; i < MANY; i++) {
        intptr_t at = i * 7 % MANY;
        CHECK(aco_generator_next(&many[at]) == 1 && (intptr_t)many[at].value == 5 * (at + 1));
        if (i % 2)
            aco_generator_close(&many[at]);
        else
            aco_generator_drop(&many[at]);
        CHECK_EQ(aco_generator_next(&many[at]), 0);
    }
}

/* They are nobody's coroutines. */
static int count_one(aco_t *co, void *count)
{
    (void)co;
    ++*(int *)count;
    return 0;
}

static void no_coroutines(void)
{
    aco_generator_t g;
    int count = 0;
    CHECK_EQ(aco_generator_open(&g, own_counts, (void *)2, NULL), 0);
    aco_each(count_one, &count);
    CHECK_EQ(aco_generator_next(&g), 1);
    aco_each(count_one, &count);
    CHECK_EQ(count, 0);
    CHECK(aco_is_in_main_co());
    aco_generator_close(&g);
}

/* ---- On a stack of its own: who consumes it ---- */

static void *consume_one(void *arg)
{
    aco_generator_t *g = arg;
    CHECK_EQ(aco_generator_next(g), 1);
    return g->value;
}

static void *consume_and_close(void *arg)
{
    aco_generator_t *g = arg;
    consume_one(g);
    aco_generator_close(g);
    LOGGED("baccced");
    return NULL;
}

static void *consume_rest(void *arg)
{
    aco_generator_t *g = arg;
    while (aco_generator_next(g))
        ;
    LOGGED("baccced");
    return NULL;
}

static void on_another_thread(void *(*act)(void *), aco_generator_t *g)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, act, g), 0);
    pthread_join(thread, NULL);
}

/* Promise: any thread may consume it, one at a time, and end it. */
static void threads(void)
{
    aco_generator_t g;
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(aco_generator_open(&g, own_counts, (void *)6, NULL), 0);
        for (intptr_t at = 1; at <= 6; at++) {
            if (at % 2)
                on_another_thread(consume_one, &g);
            else
                consume_one(&g);
            CHECK_EQ((intptr_t)g.value, at);
        }
        CHECK_EQ(aco_generator_next(&g), 0);
        CHECK_EQ(aco_generator_open(&g, own_has_frames, NULL, NULL), 0);
        consume_one(&g);
        on_another_thread(i % 2 ? consume_and_close : consume_rest, &g);
        CHECK_EQ(aco_generator_next(&g), 0);
        aco_generator_close(&g);
    }
}

static aco_generator_t shared_generator;

static void *consume_shared(void *arg)
{
    while (aco_generator_next(&shared_generator)) {
        ++*(int *)arg;
        aco_yield();
    }
    return arg;
}

/* Two coroutines, or their resumer, may consume one in turn. */
static void shared_by_coroutines(void)
{
    int counts[2] = {0, 0};
    aco_t *a = aco_new(consume_shared, &counts[0], NULL), *b = aco_new(consume_shared, &counts[1], NULL);
    CHECK_EQ(aco_generator_open(&shared_generator, own_counts, (void *)12, NULL), 0);
    for (int i = 0; i < 4; i++) {
        aco_resume(a);
        aco_resume(b);
        consume_one(&shared_generator);
    }
    CHECK(counts[0] == 4 && counts[1] == 4);
    aco_resume(a);
    aco_resume(b);
    CHECK(aco_result(a) == &counts[0] && aco_result(b) == &counts[1]);
    aco_destroy(a);
    aco_destroy(b);
}

static void close_generator(aco_generator_t *g)
{
    aco_generator_close(g);
}

ACO_GENERATOR(closes_inner, y, arg)
{
    CLEANED(q);
    __attribute__((cleanup(close_generator))) aco_generator_t inner;
    CHECK_EQ(aco_generator_open(&inner, own_has_frames, arg, NULL), 0);
    while (aco_generator_next(&inner))
        aco_generate(y, inner.value);
}

static void *yields_over_closing(void *arg)
{
    CLEANED(r);
    __attribute__((cleanup(close_generator))) aco_generator_t g;
    CHECK_EQ(aco_generator_open(&g, closes_inner, arg, NULL), 0);
    CHECK(aco_generator_next(&g) == 1 && aco_generator_next(&g) == 1);
    aco_yield();
    return arg;
}

/* A cleanup may close another generator: each of them, and then the coroutine, is unwound to its own end. */
static void closed_by_cleanups(void)
{
    aco_generator_t g;
    aco_t *co = aco_new(yields_over_closing, NULL, NULL);
    CHECK_EQ(aco_generator_open(&g, closes_inner, NULL, NULL), 0);
    CHECK(aco_generator_next(&g) == 1 && aco_generator_next(&g) == 1);
    aco_generator_close(&g);
    LOGGED("bacccedq");
    aco_resume(co);
    CHECK_EQ(aco_cancel(co), 0);
    LOGGED("bacccedqr");
    aco_destroy(co);
}

static void consume_in_cleanup(const int *n)
{
    aco_generator_t g;
    aco_in_stack_t h;
    intptr_t sum = 0;
    CHECK_EQ(aco_generator_open(&g, own_doubles_of, (void *)(intptr_t)*n, NULL), 0);
    while (aco_generator_next(&g)) {
        aco_in_stack_open(&h, in_stack_counts, g.value);
        while (next_in_stack(&h))
            sum++;
        aco_in_stack_close(&h);
        aco_in_stack_open(&h, in_stack_has_frames, NULL);
        CHECK(next_in_stack(&h) && next_in_stack(&h));
        CHECK_EQ(aco_in_stack_close(&h), 0);
    }
    CHECK_EQ(sum, *n * (*n + 1));
}

FRAME void in_frame_with_cleanup(void)
{
    __attribute__((cleanup(consume_in_cleanup))) int n = 3;
    CLEANED(s);
    aco_yield();
    (void)n;
    KEEP_FRAME;
}

static void *consumes_while_cancelled(void *arg)
{
    CLEANED(t);
    in_frame_with_cleanup();
    KEEP_FRAME;
    return arg;
}

/* Cleanup of a cancelled coroutine may consume generators of its own, to their end and not. */
static void consumed_in_cleanup(const aco_options_t *options)
{
    aco_t *co = aco_new(consumes_while_cancelled, NULL, options);
    aco_resume(co);
    CHECK_EQ(aco_cancel(co), 0);
    LOGGED("sbacccedbacccedbacccedgt");
    aco_destroy(co);
}

/* ---- On a stack of its own, consumed on a share stack ---- */

#if SHARE_STACKS
static aco_share_stack_t *stack;
static aco_t *subject;

static void *yields_in_own(void *arg)
{
    aco_generator_t g;
    CHECK_EQ(aco_generator_open(&g, own_yields, arg, NULL), 0);
    while (aco_generator_next(&g))
        ;
    return arg;
}

static void *does_nothing(void *arg)
{
    return arg;
}

static void yield_and_save(void)
{
    aco_options_t options = {.stack = stack};
    aco_t *other = aco_new(does_nothing, NULL, &options);
    aco_resume(subject); /* a debug build ends here */
    aco_resume(other);
}

ACO_GENERATOR(resumes_other, y, arg)
{
    aco_generate(y, NULL);
    aco_resume(arg);
    aco_generate(y, NULL);
}

static void *consumes_resuming(void *arg)
{
    aco_generator_t g;
    CHECK_EQ(aco_generator_open(&g, resumes_other, arg, NULL), 0);
    while (aco_generator_next(&g))
        ;
    return arg;
}

static void resume_subject(void)
{
    aco_resume(subject);
}

/* Promise: a coroutine on a share stack that yields in a generator makes the process abort as its frames are saved, in
 * a debug build at the yield. So does one that resumes there what shares its stack. */
static void yields_on_share_stack(void)
{
    aco_options_t options = {.stack = stack};
    aco_t *other;
    subject = aco_new(yields_in_own, NULL, &options);
    ABORTS(yield_and_save, ACO_DEBUG ? "aco_yield" : "aco_resume", subject, "in a generator");
    aco_destroy(subject);
    other = aco_new(does_nothing, NULL, &options);
    subject = aco_new(consumes_resuming, other, &options);
    if (ON_ONE_STACK) /* the thread sanitizer sees races of a forked child with its parent in whatever is copied */
        ABORTS(resume_subject, "aco_resume", subject, "in a generator");
    aco_destroy(subject);
    /* On another stack this is allowed. */
    subject = aco_new(consumes_resuming, other = aco_new(does_nothing, NULL, NULL), &options);
    PASSES(resume_subject);
    aco_destroy(subject);
    aco_destroy(other);
}
#endif

/* ---- On the consumer's stack ---- */

/* Promise: one that is not the innermost fails, and loses nothing. */
FRAME void not_innermost(void)
{
    aco_in_stack_t outer, inner;
    aco_in_stack_open(&outer, in_stack_counts, (void *)10);
    CHECK(next_in_stack(&outer) && (intptr_t)outer.value == 1);
    aco_in_stack_open(&inner, in_stack_has_frames, NULL);
    for (int i = 0; i < 3; i++) {
        FAILS(aco_in_stack_next(&outer), -1, EBUSY, "aco_in_stack_next", NULL, "still there");
        FAILS(aco_in_stack_close(&outer), -1, EBUSY, "aco_in_stack_close", NULL, "still there");
        FAILS(aco_in_stack_drop(&outer), -1, EBUSY, "aco_in_stack_drop", NULL, "still there");
        CHECK_EQ((intptr_t)outer.value, 1);
        if (i < 2)
            CHECK_EQ(aco_in_stack_next(&inner), 1);
    }
    CHECK_EQ(aco_in_stack_close(&inner), 0);
    LOGGED("baccced");
    for (intptr_t i = 2; i <= 5; i++)
        CHECK(next_in_stack(&outer) && (intptr_t)outer.value == i);
    /* The same again, with one that ends by itself, and one not begun. */
    aco_in_stack_open(&inner, in_stack_counts, (void *)1);
    CHECK(next_in_stack(&inner) == 1 && next_in_stack(&inner) == 0);
    CHECK(next_in_stack(&outer) && (intptr_t)outer.value == 6);
    aco_in_stack_open(&inner, in_stack_counts, (void *)1);
    FAILS(aco_in_stack_next(&outer), -1, EBUSY, "aco_in_stack_next", NULL, "still there");
    CHECK_EQ(aco_in_stack_drop(&inner), 0);
    for (intptr_t i = 7; i <= 10; i++)
        CHECK(next_in_stack(&outer) && (intptr_t)outer.value == i);
    CHECK_EQ(aco_in_stack_next(&outer), 0);
    CHECK_EQ(aco_in_stack_close(&outer), 0);
}

/* An array of variable length, put on the stack since, is not overwritten. */
FRAME void array_in_between(size_t n)
{
    aco_in_stack_t g;
    intptr_t i = 0;
    aco_in_stack_open(&g, in_stack_has_everything, (void *)20);
    while (i < 10 && next_in_stack(&g)) {
        volatile unsigned char array[++i + (intptr_t)n];
        for (size_t at = 0; at < (size_t)i + n; at++)
            array[at] = (unsigned char)(at * 3);
        FAILS(aco_in_stack_next(&g), -1, EBUSY, "aco_in_stack_next", NULL, "still there");
        FAILS(aco_in_stack_close(&g), -1, EBUSY, "aco_in_stack_close", NULL, "still there");
        for (size_t at = 0; at < (size_t)i + n; at++)
            CHECK_EQ(array[at], (unsigned char)(at * 3));
    }
    while (next_in_stack(&g))
        i++;
    CHECK_EQ(i, 20);
    CHECK_EQ(aco_in_stack_close(&g), 0);
}

/* alloca() stays until the function returns: so long the call fails. */
FRAME void alloca_in_between(size_t n)
{
    aco_in_stack_t g;
    volatile unsigned char *room;
    aco_in_stack_open(&g, in_stack_counts, (void *)20);
    CHECK(next_in_stack(&g));
    room = __builtin_alloca(n);
    for (size_t at = 0; at < n; at++)
        room[at] = (unsigned char)(at * 3);
    for (int i = 0; i < 3; i++)
        FAILS(aco_in_stack_next(&g), -1, EBUSY, "aco_in_stack_next", NULL, "still there");
    FAILS(aco_in_stack_drop(&g), -1, EBUSY, "aco_in_stack_drop", NULL, "still there");
    for (size_t at = 0; at < n; at++)
        CHECK_EQ(room[at], (unsigned char)(at * 3));
}

/* Promise: a function that returns while its generator lives gives its caller the stack back. (Power: by the word at
 * the stack pointer, which is below the generator.) */
FRAME intptr_t left_open(intptr_t values)
{
    aco_in_stack_t g;
    aco_in_stack_open(&g, in_stack_counts, (void *)20);
    for (intptr_t i = 1; i <= values; i++)
        CHECK(next_in_stack(&g) && (intptr_t)g.value == i);
    return values + 1;
}

static inline __attribute__((always_inline)) void open_for_caller(aco_in_stack_t *g)
{
    aco_in_stack_open(g, in_stack_counts, (void *)3);
}

/* A function that opens for its caller: whether or not the compiler takes the stack back, the call fails or works as
 * usual, and is never wrong. */
FRAME void opened_for_caller(void)
{
    aco_in_stack_t g;
    intptr_t i = 0;
    int more;
    open_for_caller(&g);
    while ((more = aco_in_stack_next(&g)) > 0)
        CHECK_EQ((intptr_t)g.value, ++i);
    if (more < 0) {
        CHECK_EQ(i, 0);
        CHECK_EQ(errno, EBUSY);
    } else {
        CHECK_EQ(i, 3);
    }
}

FRAME int next_elsewhere(aco_in_stack_t *g)
{
    int more = aco_in_stack_next(g);
    KEEP_FRAME;
    return more;
}

/* Another function's frame is on the stack since. */
FRAME void consumed_elsewhere(void)
{
    aco_in_stack_t g;
    aco_in_stack_open(&g, in_stack_counts, (void *)2);
    FAILS(next_elsewhere(&g), -1, EBUSY, "aco_in_stack_next", NULL, "still there");
    CHECK(next_in_stack(&g) == 1);
    FAILS(next_elsewhere(&g), -1, EBUSY, "aco_in_stack_next", NULL, "still there");
    CHECK(next_in_stack(&g) == 1 && (intptr_t)g.value == 2 && next_in_stack(&g) == 0);
}

/* The stack is as it was after each of them, however it ended. */
FRAME void gives_all_back(void)
{
    const char *lowest = NULL;
    for (int i = 0; i < 1000; i++) {
        aco_in_stack_t g;
        aco_in_stack_open(&g, in_stack_has_frames, NULL);
        CHECK(next_in_stack(&g) == 1);
        if (!lowest || (const char *)g.aco__peer.sp < lowest) {
            CHECK(i < 2);
            lowest = g.aco__peer.sp;
        }
        if (i % 3 == 0)
            aco_in_stack_close(&g);
        else if (i % 3 == 1)
            aco_in_stack_drop(&g);
        else
            while (next_in_stack(&g))
                ;
    }
    clear_log();
}

/* One of each kind consumes the other. */
ACO_GENERATOR(own_over_in_stack, y, arg)
{
    aco_in_stack_t g;
    CLEANED(u);
    aco_in_stack_open(&g, in_stack_yields, arg);
    while (next_in_stack(&g))
        aco_generate(y, g.value);
    aco_in_stack_close(&g);
}

ACO_IN_STACK_GENERATOR(in_stack_over_own, y, arg)
{
    aco_generator_t g;
    CLEANED(w);
    CHECK_EQ(aco_generator_open(&g, own_over_in_stack, arg, NULL), 0);
    while (aco_generator_next(&g))
        aco_generate_in_stack(y, g.value);
    aco_generator_close(&g);
}

FRAME void consume_mixed(void *arg)
{
    aco_in_stack_t g;
    CLEANED(x);
    defer_log("3");
    aco_in_stack_open(&g, in_stack_over_own, arg);
    while (next_in_stack(&g))
        note('v');
    aco_in_stack_close(&g);
    CHECK_EQ(aco_defer_pop(1), 0);
    KEEP_FRAME;
}

static void *consumes_mixed(void *arg)
{
    CLEANED(z);
    defer_log("4");
    consume_mixed(arg);
    KEEP_FRAME;
    return arg;
}

static void mixed(void)
{
    aco_t *co = aco_new(consumes_mixed, NULL, NULL);
    aco_resume(co);
    LOGGED("v");
    CHECK_EQ(aco_cancel(co), 0);
    LOGGED("iiijuw3x4z");
    CHECK_EQ(aco_restart(co, consumes_mixed, &co), 0);
    aco_resume(co);
    aco_resume(co);
    LOGGED("viiiv");
    aco_resume(co);
    LOGGED("juw3xz4");
    CHECK(aco_result(co) == &co);
    aco_destroy(co);
}

/* ---- */

static void in_coroutines(const aco_options_t *options)
{
    BOTH(whose_it_is(options));
    BOTH(many_coroutines(options));
    BOTH(cancel_beside(options));
    consumed_in_cleanup(options);
    if (!options->stack)
        own_yield_and_cancel(options);
    if (!options->stack || ON_ONE_STACK)
        in_stack_yield_and_cancel(options);
}

int main(int argc, char **argv)
{
    aco_options_t options = {0};
    plain = argc > 1 && strcmp(argv[1], "plain") == 0;
    BOTH(values());
    BOTH(not_begun());
    BOTH(early_end());
    BOTH(early_returns());
    BOTH(nested());
    BOTH(recursion());
    BOTH(trees());
    BOTH(towers());
    BOTH(frames(20, 1.0L));
    BOTH(aligned_calls());
    BOTH(inlined(20));
    if (!plain) /* Valgrind rounds to nearest */
        BOTH(environment());
    refused_options();
    stack_sizes();
    pool();
    zipped();
    many_alive();
    no_coroutines();
    threads();
    shared_by_coroutines();
    closed_by_cleanups();
    if (ON_ONE_STACK) {
        not_innermost();
        array_in_between(5);
        alloca_in_between(50);
        for (intptr_t i = 0; i < 4; i++)
            CHECK_EQ(left_open(i), i + 1);
        opened_for_caller();
        consumed_elsewhere();
        gives_all_back();
    }
    in_coroutines(&options);
    mixed();
    if (!plain) {
        BOTH(cleanup_that_generates());
        if (SHARE_STACKS)
            DIES_OF(overflow, SIGSEGV);
    }
#if SHARE_STACKS
    if (!plain) {
        options.stack = stack = aco_share_stack_new(0);
        in_coroutines(&options);
        yields_on_share_stack();
        aco_share_stack_destroy(stack);
    }
#endif
    return check_result("generator");
}
