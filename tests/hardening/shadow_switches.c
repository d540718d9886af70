/* Promise: with a shadow stack each `ret` finds its own address there, wherever coroutines begin, end, are reset,
 * cancelled, destroyed, or go to other threads; nothing is left over. What switches.c leaves out; check.py builds it,
 * as C and as C++, and runs it by shadow_model.c.
 *
 * shadow_switches              all of it
 * shadow_switches refused      where the kernel has no second shadow stack
 * shadow_switches few          where it gives three
 * shadow_switches in-stack     aborts */
#include "aco.h"
#include "aco/in_stack_generator.h"
#include "aco/pool.h"
#include "aco/scheduler.h"
#include "map_aligned.h"
#include "fails.h"
#ifdef __cplusplus
#include "aco.hpp"
#include <stdexcept>
#endif

#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { DEEP = 300 }; /* calls: more than one incssp takes */

static int steps;

/* Calls itself, yields below, and perhaps exits there. */
static __attribute__((noinline)) int go_deep(int calls, int exits)
{
    if (calls)
        return go_deep(calls - 1, exits) + 1;
    aco_yield();
    if (exits)
        aco_exit();
    return 0;
}

static void *comes_back(void *arg)
{
    CHECK_EQ(go_deep(DEEP, 0), DEEP);
    steps++;
    return arg;
}

static void *exits_deep(void *arg)
{
    go_deep((int)(intptr_t)arg, 1);
    return NULL;
}

static void run_to_end(aco_t *co)
{
    while (!co->is_end)
        aco_send(co, NULL);
}

static void native(void)
{
    aco_t *co = aco_new(comes_back, NULL, NULL);
    steps = 0;
    run_to_end(co);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(aco_restart(co, i < 2 ? exits_deep : comes_back, (void *)(intptr_t)(i * DEEP)), 0);
        run_to_end(co);
    }
    CHECK_EQ(steps, 2);

    CHECK_EQ(aco_restart(co, comes_back, NULL), 0);
    CHECK_EQ(aco_cancel(co), 0); /* never started */
    CHECK_EQ(aco_restart(co, comes_back, NULL), 0);
    aco_send(co, NULL);
    CHECK_EQ(aco_cancel(co), 0); /* deep */
    CHECK_EQ(aco_restart(co, comes_back, NULL), 0);
    run_to_end(co);
    CHECK_EQ(steps, 3);
    CHECK_EQ(aco_restart(co, comes_back, NULL), 0);
    aco_send(co, NULL);
    aco_destroy(co); /* suspended */
}

/* ---- Share stacks ---- */

static aco_share_stack_t *stack;
static aco_t *other;

/* The second time it returns, where only aco__returned is left. */
static void exits_and_returns(void)
{
    if (steps++ == 0)
        go_deep(DEEP, 1);
}

static void last_word(void)
{
    aco_exit(); /* so that the test goes on */
}

static void *yields_on_share_stack(void *arg)
{
    go_deep(3, 0);
    go_deep(4, 0);
    steps++;
    return arg;
}

static void *passes_on(void *arg)
{
    aco_t *co = (aco_t *)arg;
    while (!co->is_end) {
        aco_send(co, NULL); /* which is on the stack of who resumed this one */
        aco_yield();
    }
    steps++;
    return NULL;
}

static void *resumes_two(void *arg)
{
    aco_options_t on_stack = {0, stack, 0, NULL, 0, 0, NULL, NULL, {NULL, NULL}};
    aco_t *inner = aco_new(yields_on_share_stack, NULL, &on_stack), *between = aco_new(passes_on, inner, NULL);
    run_to_end(between);
    aco_destroy(inner);
    inner = aco_new(yields_on_share_stack, NULL, &on_stack);
    run_to_end(inner); /* on this very stack */
    aco_destroy(inner);
    aco_destroy(between);
    steps++;
    return arg;
}

static void *transfers(void *arg)
{
    volatile char area[128] = {1}; /* saved */
    CHECK_EQ(aco_yield_to(other), 0);
    CHECK_EQ(area[0], 1);
    aco_yield();
    steps++;
    return arg;
}

static void share_stacks(void)
{
    aco_options_t on_stack;
    aco_t *main_co, *co;
    memset(&on_stack, 0, sizeof on_stack);
    aco_thread_init(last_word);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    on_stack.stack = stack = aco_share_stack_new(64 << 10);
    steps = 0;
    co = aco_new(resumes_two, NULL, &on_stack);
    run_to_end(co);
    CHECK_EQ(steps, 4);
    aco_destroy(co);

    steps = 0;
    co = aco_new(transfers, NULL, &on_stack);
    other = aco_new(yields_on_share_stack, NULL, &on_stack);
    aco_send(co, NULL);
    aco_send(co, NULL); /* back from the transfer: the other one yielded meanwhile */
    run_to_end(other);
    run_to_end(co);
    CHECK_EQ(steps, 2);
    CHECK_EQ(aco_restart(co, transfers, NULL), 0);
    CHECK_EQ(aco_restart(other, yields_on_share_stack, NULL), 0);
    aco_send(co, NULL);
    CHECK_EQ(aco_cancel(co), 0); /* in the transfer */
    aco_destroy(co);
    aco_destroy(other); /* suspended */

    steps = 0;
    co = aco_create(main_co, stack, 0, exits_and_returns, NULL);
    aco_resume(co);
    aco_resume(co);
    CHECK(co->is_end);
    aco_reset(co, exits_and_returns, NULL);
    aco_resume(co);
    CHECK_EQ(steps, 2);
    aco_destroy(co);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
}

/* ---- No memory to leave one for the other on the same stack ---- */

static int no_memory;

static void *allocate(size_t sz, void *ctx)
{
    (void)ctx;
    return no_memory ? NULL : malloc(sz);
}

static void release(void *p, size_t sz, void *ctx)
{
    (void)sz, (void)ctx;
    free(p);
}

static void *map(size_t sz, size_t align, void *ctx)
{
    (void)ctx;
    return no_memory ? NULL : map_aligned(sz, align);
}

static void unmap(void *p, size_t sz, void *ctx)
{
    (void)ctx;
    munmap(p, sz);
}

static void *is_refused(void *arg)
{
    char large[40 << 10];
    __asm__ volatile("" : : "r"(large) : "memory");
    no_memory = 1;
    CHECK_EQ(aco_yield_to((aco_t *)arg), -1);
    CHECK(aco_send((aco_t *)arg, NULL) == ACO_ERROR);
    no_memory = 0;
    CHECK(aco_send((aco_t *)arg, NULL) == NULL);
    steps++;
    return NULL;
}

static void no_memory_for_frames(void)
{
    aco_options_t on_stack;
    aco_t *co;
    memset(&on_stack, 0, sizeof on_stack);
    on_stack.stack = aco_share_stack_new(64 << 10);
    other = aco_new(yields_on_share_stack, NULL, &on_stack);
    co = aco_new(is_refused, other, &on_stack);
    steps = 0;
    run_to_end(co);
    run_to_end(other);
    CHECK_EQ(steps, 2);
    aco_destroy(co);
    aco_destroy(other);
    aco_share_stack_destroy(on_stack.stack);
}

/* ---- Threads ---- */

static void *resume_once(void *arg)
{
    aco_send((aco_t *)arg, NULL);
    return NULL;
}

static void in_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, fn, arg), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void *make(void *made)
{
    *(aco_t **)made = aco_new(comes_back, NULL, NULL);
    resume_once(*(aco_t **)made);
    return NULL;
}

static void threads(void)
{
    aco_t *co = NULL;
    steps = 0;
    in_thread(make, &co);
    CHECK(!co->is_end); /* its thread is gone, with the shadow stack that it was resumed from */
    aco_send(co, NULL);
    CHECK(co->is_end);
    CHECK_EQ(aco_restart(co, comes_back, NULL), 0);
    aco_send(co, NULL);
    in_thread(resume_once, co);
    CHECK(co->is_end);
    CHECK_EQ(steps, 2);
    aco_destroy(co);
}

/* ---- Tasks ---- */

static aco_channel_t *channel;

static void *sends(void *arg)
{
    for (int i = 0; i < 3; i++)
        CHECK_EQ(aco_channel_send(channel, &i), 0);
    go_deep(5, 0); /* through aco_run() */
    steps++;
    return arg;
}

static void *receives(void *arg)
{
    int got;
    aco_t *co = aco_new(comes_back, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(aco_channel_receive(channel, &got), 0);
        CHECK_EQ(got, i);
        if (!co->is_end)
            aco_send(co, NULL);
    }
    aco_destroy(co);
    CHECK_EQ(aco_join((aco_t *)arg, NULL), 0);
    CHECK_EQ(aco_sleep(1000), 0);
    steps++;
    aco_exit();
}

static void tasks(void)
{
    aco_options_t detached;
    memset(&detached, 0, sizeof detached);
    detached.flags = ACO_DETACHED;
    channel = aco_channel_new(1, sizeof(int));
    steps = 0;
    CHECK(aco_spawn(receives, aco_spawn(sends, NULL, NULL), &detached) != NULL);
    CHECK(aco_spawn(exits_deep, (void *)DEEP, &detached) != NULL);
    CHECK(aco_spawn(exits_deep, NULL, &detached) != NULL);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(steps, 3);
    CHECK_EQ(aco_run(), 0);
    aco_destroy(aco_new(comes_back, NULL, NULL)); /* the last task's stack goes back */
    CHECK_EQ(aco_channel_destroy(channel), 0);
}

/* ---- Other things that are done at each switch ---- */

static void observed(void)
{
    aco_options_t own;
    aco_t *co;
    memset(&own, 0, sizeof own);
    own.flags = ACO_OWN_EXCEPTIONS;
    own.name = "own";
    steps = 0;
    co = aco_new(comes_back, NULL, &own);
    run_to_end(co);
    aco_destroy(co);
    CHECK_EQ(aco_stack_measure(1), 0);
    co = aco_new(comes_back, NULL, NULL);
    aco_send(co, NULL);
    CHECK_EQ(aco_stack_measure(0), 0);
    aco_send(co, NULL);
    CHECK_EQ(steps, 2);
    aco_destroy(co);
}

#ifdef __cplusplus
struct counted {
    ~counted() { steps++; }
};

static __attribute__((noinline)) void throws_deep(int calls)
{
    counted here;
    if (calls == 0)
        throw std::runtime_error("deep");
    throws_deep(calls - 1);
}

static void exceptions()
{
    steps = 0;
    {
        aco::coroutine<int> co([](auto &self) {
            try {
                throws_deep(3);
            } catch (const std::runtime_error &) {
                self.yield(1);
            }
            try {
                go_deep(3, 0);
            } catch (const std::logic_error &) {
                self.yield(2);
            }
            throws_deep(2);
        });
        CHECK(co.resume() && co.value() == 1);
        co.resume();
        CHECK(co.raise(std::logic_error("from outside")) && co.value() == 2);
        try {
            co.resume();
            CHECK(!"reached");
        } catch (const std::runtime_error &) {
            steps++;
        }
    }
    CHECK_EQ(steps, 4 + 3 + 1);
}
#endif

/* ---- Failures ---- */

ACO_GENERATOR(empty, y, arg)
{
}

ACO_IN_STACK_GENERATOR(empty_in_stack, y, arg)
{
}

static void generators(void)
{
    aco_generator_t g;
    FAILS(aco_generator_open(&g, empty, NULL, NULL), -1, ENOTSUP, "aco_generator_open", NULL, "shadow stack");
}

static void refused(void)
{
    FAILS(aco_new(comes_back, NULL, NULL), NULL, ENOTSUP, "aco_new", NULL, "shadow stack");
    FAILS(aco_spawn(comes_back, NULL, NULL), NULL, ENOTSUP, "aco_spawn", NULL, "shadow stack");
}

static void few(void)
{
    enum { MOST = 3 };
    aco_t *cos[MOST];
    for (int i = 0; i < MOST; i++)
        cos[i] = aco_new(comes_back, NULL, NULL);
    FAILS(aco_new(comes_back, NULL, NULL), NULL, ENOMEM, "aco_new", NULL, "no memory");
    aco_destroy(cos[0]);
    cos[0] = aco_new(comes_back, NULL, NULL);
    for (int i = 0; i < MOST; i++) {
        run_to_end(cos[i]);
        aco_destroy(cos[i]);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const aco_allocator_t mine = {map, unmap, allocate, release, NULL};
    CHECK_EQ(aco_set_allocator(&mine), 0);
    if (strcmp(what, "refused") == 0) {
        refused();
    } else if (strcmp(what, "few") == 0) {
        few();
    } else if (strcmp(what, "in-stack") == 0) {
        aco_in_stack_t g;
        aco_in_stack_open(&g, empty_in_stack, NULL);
    } else {
        native();
        share_stacks();
        no_memory_for_frames();
        threads();
        tasks();
        observed();
        generators();
#ifdef __cplusplus
        exceptions();
#endif
    }
    return check_result("shadow_switches");
}
