/* Promises about ending early (include/aco.h): aco_defer(), aco_defer_pop(), aco_cancel(), and what aco_destroy()
 * leaves out. Under the address sanitizer, which also looks for leaks, everything is on private stacks. */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"
#include "child.h"
#include "events.h"
#include "fails.h"

#include <errno.h>
#include <pthread.h>

static const aco_options_t *place; /* where the coroutines of a round run */

/* As a deferred call: logs *event, and checks that it runs on the stack of the coroutine that it belongs to. */
static void log_event(void *event)
{
    void *lo, *hi;
    CHECK(!aco_is_in_main_co());
    CHECK_EQ(aco_stack_bounds(aco_get_co(), &lo, &hi), 0);
    CHECK((char *)lo <= (char *)__builtin_frame_address(0) && (char *)__builtin_frame_address(0) < (char *)hi);
    CHECK_EQ(aco_state(aco_get_co()), ACO_STATE_RUNNING);
    note(*(const char *)event);
}

/* As a cleanup attribute. */
static void log_attribute(const char *const *event)
{
    note(**event);
}
#define CLEANED(letter) ACO_CLEANUP(log_attribute) __attribute__((unused)) const char *const cleaned_##letter = #letter

/* A macro: the frame that calls aco_defer() counts. */
#define defer_log(event) CHECK_EQ(aco_defer(log_event, (void *)(uintptr_t)(event)), 0)

/* ---- Deferring ---- */

static void *defers_three(void *arg)
{
    defer_log("a");
    defer_log("b");
    defer_log("c");
    if (arg == events)
        aco_exit();
    aco_yield();
    return arg;
}

/* Promise: deferred calls are made when the coroutine returns, exits or is cancelled, the last first. */
static void order(void)
{
    int mark;
    aco_t *co = aco_new(defers_three, &mark, place);
    aco_resume(co);
    LOGGED("");
    CHECK(aco_send(co, NULL) == &mark);
    LOGGED("cba");
    CHECK_EQ(aco_restart(co, defers_three, events), 0);
    aco_resume(co);
    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
    LOGGED("cba");
    CHECK_EQ(aco_restart(co, defers_three, &mark), 0);
    aco_resume(co);
    CHECK_EQ(aco_cancel(co), 0);
    LOGGED("cba");
    CHECK(aco_state(co) == ACO_STATE_DONE && aco_result(co) == NULL && co->is_end);
    CHECK_EQ(aco_cancel(co), 0); /* done: stays as it is */
    LOGGED("");
    aco_destroy(co);
}

static void *pops(void *arg)
{
    FAILS(aco_defer_pop(1), -1, ENOENT, "aco_defer_pop", aco_get_co(), "nothing is deferred");
    defer_log("a");
    defer_log("b");
    CHECK_EQ(aco_defer_pop(0), 0);
    LOGGED("");
    defer_log("c");
    CHECK_EQ(aco_defer_pop(1), 0);
    LOGGED("c");
    CHECK_EQ(aco_defer_pop(1), 0);
    LOGGED("a");
    FAILS(aco_defer_pop(0), -1, ENOENT, "aco_defer_pop", aco_get_co(), "nothing is deferred");
    FAILS(aco_defer(NULL, arg), -1, EINVAL, "aco_defer", NULL, "NULL");
    defer_log("d");
    return arg;
}

/* Promises: aco_defer_pop() takes the last one back, and makes it if asked to; failures. */
static void popping(void)
{
    aco_t *co = aco_new(pops, NULL, place);
    aco_resume(co);
    LOGGED("d");
    aco_destroy(co);
    FAILS(aco_defer(log_event, NULL), -1, EPERM, "aco_defer", NULL, "no coroutine is running");
    FAILS(aco_defer_pop(1), -1, EPERM, "aco_defer_pop", NULL, "no coroutine is running");
}

static void defer_another(void *event)
{
    log_event(event);
    defer_log("x");
}

static void *defers_while_ending(void *arg)
{
    defer_log("a");
    aco_defer(defer_another, (void *)(uintptr_t) "b");
    if (!arg)
        aco_yield();
    return arg;
}

/* What is deferred by a deferred call is made too. */
static void deferring_while_ending(void)
{
    aco_t *co = aco_new(defers_while_ending, &co, place);
    aco_resume(co);
    LOGGED("bxa");
    aco_restart(co, defers_while_ending, NULL);
    aco_resume(co);
    aco_cancel(co);
    LOGGED("bxa");
    aco_destroy(co);
}

/* ---- Frames ---- */

/* Not to be tail calls: their frames must be there. */
#define FRAME static __attribute__((noinline))
#define KEEP_FRAME __asm__ volatile("" : : : "memory")

FRAME void innermost(void)
{
    CLEANED(i);
    defer_log("1");
    {
        CLEANED(h);
        defer_log("2");
        aco_yield();
        KEEP_FRAME;
    }
    aco_defer_pop(0);
    aco_defer_pop(0);
    KEEP_FRAME;
}

FRAME void only_defers(void)
{
#ifdef __i386__ /* where the exported function cannot tell its caller's frame from one that it calls */
    defer_log("3");
#else
    /* Not the macro: the exported function, where calls are not inline. */
    CHECK_EQ((aco_defer)(log_event, (void *)(uintptr_t)"3"), 0);
#endif
    innermost();
    aco_defer_pop(0);
    KEEP_FRAME;
}

FRAME void only_cleans(void)
{
    CLEANED(g);
    only_defers();
    KEEP_FRAME;
}

FRAME void does_neither(void)
{
    only_cleans();
    KEEP_FRAME;
}

FRAME void does_both(int n)
{
    CLEANED(f);
    defer_log("4");
    defer_log("5");
    if (n)
        does_both(n - 1);
    else
        does_neither();
    aco_defer_pop(0);
    aco_defer_pop(0);
    KEEP_FRAME;
}

static void *has_frames(void *arg)
{
    CLEANED(e);
    defer_log("6");
    does_both(2);
    aco_defer_pop(1);
    KEEP_FRAME;
    return arg;
}

/* Promise: cleanup goes frame by frame from the innermost, in each first the deferred calls, then the attributes. Code
 * of clang and of gcc with -fexceptions has the tables for it. */
static void frames(void)
{
    aco_t *co = aco_new(has_frames, NULL, place);
    aco_resume(co);
    CHECK_EQ(aco_cancel(co), 0);
    LOGGED("21hi3g54f54f54f6e");
    aco_restart(co, has_frames, co);
    aco_resume(co);
    aco_resume(co);
    LOGGED("higfff6e");
    CHECK(aco_result(co) == co);
    aco_destroy(co);
}

/* ---- What can be cancelled ---- */

static aco_t *other, *subject;

static void *yields_to_other(void *arg)
{
    CLEANED(t);
    defer_log("7");
    CHECK_EQ(aco_yield_to(other), 0);
    KEEP_FRAME;
    return arg;
}

static void *waits(void *arg)
{
    CLEANED(w);
    defer_log("8");
    aco_yield();
    KEEP_FRAME;
    return arg;
}

static void *tries_to_cancel(void *arg)
{
    FAILS(aco_cancel(aco_get_co()), -1, EBUSY, "aco_cancel", aco_get_co(), "running");
    FAILS(aco_cancel(subject), -1, EBUSY, "aco_cancel", subject, "resuming");
    return arg;
}

static void *resumes_other(void *arg)
{
    aco_resume(other);
    return arg;
}

/* Promises: what is ready becomes done and runs nothing, whatever is suspended is unwound; the rest fails. */
static void every_state(void)
{
    aco_t *main_object = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_t *co = aco_new(has_frames, NULL, place);
    CHECK_EQ(aco_cancel(co), 0); /* ready */
    CHECK(aco_state(co) == ACO_STATE_DONE && co->is_end && aco_result(co) == NULL);
    CHECK(aco_send(co, NULL) == ACO_ERROR && errno == ESRCH);
    CHECK_EQ(aco_restart(co, waits, co), 0); /* and is as good as others that are done */
    aco_resume(co);
    aco_resume(co);
    CHECK(aco_result(co) == co);
    LOGGED("w8");
    CHECK_EQ(aco_cancel(co), 0); /* done: its result stays */
    CHECK(aco_result(co) == co);

    CHECK_EQ(aco_restart(co, yields_to_other, NULL), 0); /* suspended by aco_yield_to() */
    other = aco_new(waits, NULL, place);
    aco_resume(co);
    CHECK_EQ(aco_cancel(co), 0);
    LOGGED("7t");
    CHECK_EQ(aco_cancel(other), 0); /* what took its place */
    LOGGED("8w");
    aco_destroy(other);

    other = aco_new(tries_to_cancel, NULL, place); /* running, resuming */
    CHECK_EQ(aco_restart(co, resumes_other, &co), 0);
    subject = co;
    aco_resume(co);
    CHECK(aco_result(co) == &co);
    aco_destroy(other);
    aco_destroy(co);

    FAILS(aco_cancel(NULL), -1, EINVAL, "aco_cancel", NULL, "NULL");
    FAILS(aco_cancel(co), -1, ESRCH, "aco_cancel", co, "destroyed");
    FAILS(aco_cancel(main_object), -1, EINVAL, "aco_cancel", main_object, "main coroutine");
    LOGGED("");
    aco_destroy(main_object);
}

static void *cancels(void *arg)
{
    unsigned char bytes[500];
    memset(bytes, 0xa5, sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    CHECK_EQ(aco_cancel(arg), 0);
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i] != 0xa5)
            CHECK(!"the canceller's frame was changed");
    CHECK_EQ(aco_state(arg), ACO_STATE_DONE);
    CHECK_EQ(aco_state(aco_get_co()), ACO_STATE_RUNNING);
    aco_yield();
    return arg;
}

/* Promise: a coroutine may cancel another, also one on its own stack. */
static void cancel_from_inside(const aco_options_t *canceller)
{
    for (int started = 0; started < 2; started++) {
        aco_t *co = aco_new(has_frames, NULL, place), *by = aco_new(cancels, co, canceller);
        if (started)
            aco_resume(co);
        aco_resume(by);
        LOGGED(started ? "21hi3g54f54f54f6e" : "");
        CHECK_EQ(aco_state(by), ACO_STATE_SUSPENDED);
        CHECK(aco_send(by, NULL) == co);
        aco_destroy(by);
        aco_destroy(co);
    }
}

#if SHARE_STACKS
static void libaco_entry(void)
{
    does_both(1);
    aco_exit();
}

/* Promise: libaco's coroutines can be cancelled as well. */
static void cancel_libaco(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *main_object = aco_create(NULL, NULL, 0, NULL, NULL),
          *co = aco_create(main_object, stack, 0, libaco_entry, NULL);
    aco_t *evicts = aco_create(main_object, stack, 0, libaco_entry, NULL);
    aco_resume(co);
    aco_resume(evicts);
    CHECK_EQ(aco_cancel(co), 0);
    LOGGED("21hi3g54f54f");
    CHECK(co->is_end && stack->owner == NULL);
    aco_resume(evicts);
    CHECK(evicts->is_end);
    LOGGED("higff");
    aco_reset(co, libaco_entry, NULL);
    CHECK_EQ(aco_cancel(co), 0);
    CHECK(co->is_end);
    LOGGED("");
    aco_destroy(co);
    aco_destroy(evicts);
    aco_share_stack_destroy(stack);
    aco_destroy(main_object);
}
#endif

/* ---- What cleanup may do ---- */

static void *answers(void *arg)
{
    for (intptr_t n = 0;; n++)
        CHECK(aco_yield_value((void *)n) == arg);
    return NULL;
}

/* Only the inline aco_destroy() knows that its caller is a debug build. */
#if ACO_DEBUG && !defined(ACO_CONFIG_NO_INLINE)
#define DESTROY_WARNS 1
#else
#define DESTROY_WARNS 0
#endif

static void use_others(void *arg)
{
    aco_t **others = arg;
    aco_t *again;
    CHECK_EQ((intptr_t)aco_send(others[0], NULL), 0);
    CHECK_EQ((intptr_t)aco_send(others[0], others), 1);
    CHECK_EQ(aco_cancel(others[1]), 0); /* suspended in frames with cleanup of their own */
    CHECK_EQ(aco_cancel(others[0]), 0);
    CHECK_EQ(aco_restart(others[1], waits, NULL), 0);
    aco_resume(others[1]);
    CHECK_EQ(aco_cancel(others[1]), 0);
    again = aco_new(waits, NULL, place);
    aco_resume(again);
    aco_cancel(again);
    aco_destroy(again);
    FAILS(aco_yield_to(others[2]), -1, EPERM, "aco_yield_to", aco_get_co(), "cleanup");
    FAILS(aco_cancel(aco_get_co()), -1, EBUSY, "aco_cancel", aco_get_co(), "running");
    FAILS(aco_restart(aco_get_co(), waits, NULL), -1, EBUSY, "aco_restart", aco_get_co(), "not done");
    note('.');
}

static void *uses_others_in_cleanup(void *arg)
{
    defer_log("9");
    CHECK_EQ(aco_defer(use_others, arg), 0);
    defer_log("0");
    if (((aco_t **)arg)[3])
        aco_yield();
    return arg;
}

/* Promise: cleanup may resume other coroutines, also cancel, make and destroy them; aco_yield_to() fails. */
static void cleanup_uses_others(int cancelled)
{
    aco_t *others[4] = {NULL, NULL, NULL, NULL}, *co = aco_new(uses_others_in_cleanup, others, place);
    others[0] = aco_new(answers, others, place);
    others[1] = aco_new(has_frames, NULL, place);
    others[2] = aco_new(waits, NULL, place);
    others[3] = cancelled ? co : NULL;
    aco_resume(others[1]);
    aco_resume(co);
    if (cancelled)
        CHECK_EQ(aco_cancel(co), 0);
    LOGGED("021hi3g54f54f54f6e8w8w.9");
    CHECK(aco_result(co) == (cancelled ? NULL : others));
    CHECK_EQ(aco_state(others[2]), ACO_STATE_READY);
    aco_destroy(co);
    for (int i = 0; i < 3; i++)
        aco_destroy(others[i]);
}

static void yield_in_cleanup(void *arg)
{
    (void)arg;
    aco_yield();
}

static void yield_value_in_cleanup(void *arg)
{
    aco_yield_value(arg);
}

static void exit_in_cleanup(void *arg)
{
    (void)arg;
    aco_exit();
}

static void destroy_itself_in_cleanup(void *arg)
{
    (void)arg;
    aco_destroy(aco_get_co());
}

static void resume_then_yield(void *arg)
{
    aco_resume(other);
    aco_yield();
    (void)arg;
}

static void (*misuse)(void *);

static void do_misuse(void *arg)
{
    if (misuse)
        misuse(arg);
}

static void *misuses(void *arg)
{
    aco_defer(do_misuse, arg);
    if (!arg)
        aco_yield();
    return arg;
}

static void cancel_subject(void)
{
    aco_cancel(subject);
}

static void resume_subject(void)
{
    aco_resume(subject);
}

#if SHARE_STACKS
#define ABORTS_HERE(act, call, co, reason) ABORTS(act, call, co, reason)
#else
/* The address sanitizer has remarks of its own about the stack that the process aborts on. */
#define ABORTS_HERE(act, call, co, reason) aborts(__LINE__, act, call, co, reason)
static void aborts(int line, void (*act)(void), const char *call, const void *co, const char *reason)
{
    char start[128];
    child_end_t end = child_run(act);
    snprintf(start, sizeof start, "acorn: %s: coroutine %p: ", call, co);
    if (!WIFSIGNALED(end.status) || WTERMSIG(end.status) != SIGABRT || !strstr(end.text, start) ||
        !strstr(end.text, reason))
        child_complain(__FILE__, line, "child", reason, &end);
}
#endif

/* Promise: a yield in cleanup aborts with a line that says so, and so do an exit and self-destruction. */
static void misuse_in_cleanup(void)
{
    struct {
        void (*fn)(void *);
        const char *call, *reason;
    } all[] = {{yield_in_cleanup, "aco_yield", "yields in its cleanup"},
               {yield_value_in_cleanup, "aco_yield", "yields in its cleanup"},
               {resume_then_yield, "aco_yield", "yields in its cleanup"},
               {exit_in_cleanup, "aco_exit", "exits in its cleanup"},
               {destroy_itself_in_cleanup, "aco_destroy", "is running"}};
    other = aco_new(waits, NULL, place);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        misuse = all[i].fn;
        subject = aco_new(misuses, NULL, place);
        aco_resume(subject);
        ABORTS_HERE(cancel_subject, all[i].call, subject, all[i].reason);
        misuse = NULL; /* here it shall not */
        aco_cancel(subject);
        CHECK_EQ(aco_restart(subject, misuses, all), 0);
        misuse = all[i].fn;
        ABORTS_HERE(resume_subject, all[i].call, subject, all[i].reason);
        aco_destroy(subject);
    }
    aco_destroy(other);
}

/* ---- Every point ---- */

enum { HELD = 4096, LEVELS = 5 };

static unsigned freed[HELD];
static void *held[HELD];
static unsigned allocations, points;

static void free_held(void *arg)
{
    unsigned at = (unsigned)(uintptr_t)arg;
    if (freed[at]++ == 0)
        free(held[at]);
}

static void free_attribute(unsigned *at)
{
    free_held((void *)(uintptr_t)*at);
}

static unsigned hold(void)
{
    unsigned at = allocations++;
    held[at % HELD] = malloc(at % 100 + 1);
    return at % HELD;
}

static void suspension_point(void)
{
    points++;
    if (points % 3 == 0)
        aco_yield_to(other);
    else if (points % 3 == 1)
        aco_yield();
    else
        aco_yield_value(held);
}

static void *just_yields(void *arg)
{
    for (;;)
        aco_yield_value(arg);
    return NULL;
}

/* Each level holds memory by a deferred call, by an attribute, and by one that it frees itself in time. */
FRAME void recurse(int level)
{
    __attribute__((cleanup(free_attribute), unused)) unsigned first = hold();
    unsigned second = hold(), third;
    CHECK_EQ(aco_defer(free_held, (void *)(uintptr_t)second), 0);
    suspension_point();
    third = hold();
    CHECK_EQ(aco_defer(free_held, (void *)(uintptr_t)third), 0);
    if (level) {
        __attribute__((cleanup(free_attribute), unused)) unsigned fourth = hold();
        recurse(level - 1);
        suspension_point();
        recurse(level - 1);
    }
    CHECK_EQ(aco_defer_pop(1), 0);
    suspension_point();
    CHECK_EQ(aco_defer_pop(1), 0);
    KEEP_FRAME;
}

static void *recursive(void *arg)
{
    recurse(LEVELS - 1);
    suspension_point();
    return arg;
}

/* Runs to the n-th suspension point and cancels there. 1 when there are no more. */
static int cancel_at(unsigned n, int from_inside)
{
    aco_t *co = aco_new(recursive, NULL, place), *by = aco_new(cancels, co, place);
    int ended;
    other = aco_new(just_yields, NULL, place);
    memset(freed, 0, sizeof freed);
    memset(held, 0, sizeof held); /* what was not released is a leak from now on */
    allocations = points = 0;
    for (unsigned i = 0; i < n; i++)
        if (aco_state(co) != ACO_STATE_DONE)
            aco_resume(co);
    ended = aco_state(co) == ACO_STATE_DONE;
    CHECK(allocations < HELD);
    if (from_inside && !ended) {
        aco_resume(by);
        aco_resume(by);
    } else {
        CHECK_EQ(aco_cancel(co), 0);
    }
    for (unsigned i = 0; i < allocations; i++)
        if (freed[i] != 1)
            CHECK_EQ(freed[i], 1);
    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
    aco_cancel(other);
    aco_destroy(other);
    aco_cancel(by);
    aco_destroy(by);
    aco_destroy(co);
    return ended;
}

/* Promise: wherever a coroutine is suspended, its cancellation releases each thing once. */
static void every_point(void)
{
    unsigned n = 0;
    while (!cancel_at(n, n % 2))
        n++;
    CHECK(n > 1u << LEVELS);
}

/* ---- Destroying ---- */

static void destroy_suspended(void)
{
    for (int i = 0; i < 3; i++) {
        aco_t *co = i ? aco_new(has_frames, NULL, place) : subject;
        if (i)
            aco_resume(co);
        aco_destroy(co);
    }
    LOGGED("");
}

static void destroy_others(void)
{
    aco_t *co = aco_new(has_frames, NULL, place);
    aco_destroy(co);
    co = aco_new(waits, NULL, place);
    aco_resume(co);
    aco_resume(co);
    aco_destroy(co);
    co = aco_new(waits, NULL, place);
    aco_resume(co);
    aco_cancel(co);
    aco_destroy(co);
}

/* Promise: destroying a suspended coroutine runs nothing; a debug build warns of it, once. */
static void destroying(void)
{
    char text[128];
    child_prints(__FILE__, __LINE__, destroy_others, NULL);
    subject = aco_new(has_frames, NULL, place);
    aco_resume(subject);
    snprintf(text, sizeof text, "acorn: aco_destroy: coroutine %p: is suspended", (void *)subject);
    child_prints(__FILE__, __LINE__, destroy_suspended, DESTROY_WARNS ? text : NULL);
    aco_cancel(subject);
    aco_destroy(subject);
    clear_log();
}

static void round_of_tests(const aco_options_t *options)
{
    place = options;
    clear_log();
    order();
    popping();
    deferring_while_ending();
    frames();
    every_state();
    cancel_from_inside(options);
    cancel_from_inside(NULL);
    cleanup_uses_others(0);
    cleanup_uses_others(1);
    misuse_in_cleanup();
    every_point();
    destroying();
}

int main(void)
{
    round_of_tests(NULL);
#if SHARE_STACKS
    for (int guarded = 0; guarded < 2; guarded++) {
        aco_share_stack_t *stack = aco_share_stack_new2(0, (char)guarded);
        aco_options_t options = {.stack = stack};
        round_of_tests(&options);
        aco_share_stack_destroy(stack);
    }
    cancel_libaco();
#endif
    return check_result("cancel");
}
