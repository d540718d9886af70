/* Promise: hardening options take nothing away. Each way from one stack to another once, by whatever options this is
 * compiled with; as C and as C++, with the inline switches and without. check.py builds it. */
#include "aco.h"
#include "aco/scheduler.h"
#ifndef ACO_CONFIG_NO_INLINE
#include "aco/in_stack_generator.h"
#endif
#include "check.h"

#include <setjmp.h>
#include <stdint.h>
#include <string.h>

static int steps; /* what must have happened, counted */

/* A frame with a canary, that takes more than a page, whose copy is of a length known to _FORTIFY_SOURCE. */
static __attribute__((noinline)) void fill(const char *text)
{
    char large[3 * 4096], small[16];
    strcpy(small, text);
    large[sizeof large - 1] = small[0];
    __asm__ volatile("" : : "r"(large), "r"(small) : "memory");
    aco_yield1(aco_get_co());
    CHECK_EQ(large[sizeof large - 1], text[0]);
    CHECK(strcmp(small, text) == 0);
}

#ifdef SHADOW_STACKS /* without a C library that knows of them */
static int set_and_jump(void)
{
    aco_yield();
    aco_yield();
    return 7;
}
#else
/* longjmp() over frames of the same coroutine, which was suspended in them: what _FORTIFY_SOURCE checks there, the
 * stack pointer, is in order. */
static __attribute__((noinline)) void jump(jmp_buf *back)
{
    aco_yield();
    longjmp(*back, 7);
}

static __attribute__((noinline)) void yield_and_jump(jmp_buf *back)
{
    aco_yield();
    jump(back);
    __asm__ volatile("");
}

static __attribute__((noinline)) int set_and_jump(void)
{
    jmp_buf back;
    int result = setjmp(back);
    if (result == 0)
        yield_and_jump(&back);
    return result;
}
#endif

static void *yields(void *arg)
{
    CHECK(aco_yield_value(arg) == &steps);
    fill("native");
    CHECK_EQ(set_and_jump(), 7);
    steps++;
    return arg;
}

static void libaco_entry(void)
{
    CHECK(aco_get_arg() == &steps);
    fill("libaco");
    CHECK_EQ(set_and_jump(), 7);
    steps++;
    aco_exit();
}

static void *resumes_another(void *arg)
{
    aco_t *co = aco_new(yields, arg, NULL);
    CHECK(aco_send(co, NULL) == arg);
    aco_send(co, &steps);
    while (!co->is_end)
        aco_yield(), aco_resume(co);
    aco_destroy(co);
    steps++;
    return arg;
}

static void *is_switched_to(void *arg)
{
    CHECK_EQ(aco_yield_to((aco_t *)arg), 0); /* never resumed: to where it begins */
    steps++;
    return NULL;
}

static void *switches_back(void *arg)
{
    CHECK_EQ(aco_yield_to(*(aco_t **)arg), 0); /* suspended: to where it left off */
    return NULL;
}

static void count(void *arg)
{
    *(int *)arg += 1;
}

static void count_cleanup(int *unused)
{
    (void)unused;
    steps++;
}

static int (*volatile defer)(void (*fn)(void *), void *arg) = aco_defer;

static void *is_cancelled(void *arg)
{
    __attribute__((cleanup(count_cleanup))) int last = 0;
    (void)last;
    CHECK_EQ(defer(count, arg), 0);
    CHECK_EQ(aco_defer(count, arg), 0);
#ifdef __cplusplus
    try {
        aco_yield();
    } catch (...) { /* and lands where the unwinder ends */
        steps++;
        throw;
    }
#else
    aco_yield();
#endif
    return NULL;
}

static void *task(void *arg)
{
    for (int i = 0; i < 3; i++)
        CHECK_EQ(aco_task_yield(), 0);
    CHECK_EQ(aco_sleep(1000), 0);
    steps++;
    return arg;
}

static void coroutines(void)
{
    aco_t *co = aco_new(resumes_another, &steps, NULL), *other, *first;
    steps = 0;
    while (!co->is_end)
        aco_resume(co);
    CHECK_EQ(steps, 2);
    aco_destroy(co);

    other = aco_new(switches_back, &first, NULL);
    first = aco_new(is_switched_to, other, NULL);
    steps = 0;
    aco_resume(first);
    CHECK_EQ(steps, 1);
    CHECK(first->is_end && !other->is_end);
    aco_destroy(first);
    CHECK_EQ(aco_cancel(other), 0);
    aco_destroy(other);

    co = aco_new(is_cancelled, &steps, NULL);
    aco_resume(co);
    steps = 0;
    CHECK_EQ(aco_cancel(co), 0);
#ifdef __cplusplus
    CHECK_EQ(steps, 4);
#else
    CHECK_EQ(steps, 3);
#endif
    aco_destroy(co);
}

static void copied_stacks(void)
{
    enum { COROUTINES = 3 };
    aco_t *main_co, *cos[COROUTINES];
    aco_share_stack_t *stack;
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    stack = aco_share_stack_new(0);
    for (int i = 0; i < COROUTINES; i++)
        cos[i] = aco_create(main_co, stack, 0, libaco_entry, &steps);
    steps = 0;
    for (int i = 0; steps < COROUTINES; i = (i + 1) % COROUTINES)
        if (!cos[i]->is_end)
            aco_resume(cos[i]);
    CHECK_EQ(steps, COROUTINES);
    for (int i = 0; i < COROUTINES; i++)
        aco_destroy(cos[i]);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
}

static void tasks(void)
{
    enum { TASKS = 4 };
    aco_t *all[TASKS];
    steps = 0;
    for (int i = 0; i < TASKS; i++)
        all[i] = aco_spawn(task, &steps, NULL);
    CHECK_EQ(aco_run(), 0);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(aco_join(all[i], NULL), 0);
    CHECK_EQ(steps, TASKS);
}

#if !defined(ACO_CONFIG_NO_INLINE) && !defined(SHADOW_STACKS) /* generators fail there */
#define GENERATORS
ACO_GENERATOR(numbers, y, arg)
{
    __attribute__((cleanup(count_cleanup))) int last = 0;
    (void)last;
    for (intptr_t i = 1; i <= (intptr_t)arg; i++)
        aco_generate(y, (void *)i);
}

ACO_IN_STACK_GENERATOR(in_stack_numbers, y, arg)
{
    for (intptr_t i = 1; i <= (intptr_t)arg; i++)
        aco_generate_in_stack(y, (void *)i);
}

static void generators(void)
{
    aco_generator_t g;
    intptr_t sum = 0;
    steps = 0;
    CHECK_EQ(aco_generator_open(&g, numbers, (void *)4, NULL), 0);
    while (aco_generator_next(&g))
        sum += (intptr_t)g.value;
    aco_generator_close(&g);
    CHECK_EQ(sum, 10);
    CHECK_EQ(aco_generator_open(&g, numbers, (void *)4, NULL), 0);
    CHECK_EQ(aco_generator_next(&g), 1);
    aco_generator_close(&g);
    CHECK_EQ(steps, 2);
}

static __attribute__((noinline)) intptr_t in_stack_sum(intptr_t last)
{
    aco_in_stack_t g;
    intptr_t sum = 0;
    aco_in_stack_open(&g, in_stack_numbers, (void *)last);
    while (aco_in_stack_next(&g) == 1)
        sum += (intptr_t)g.value;
    CHECK_EQ(aco_in_stack_close(&g), 0);
    return sum;
}
#endif

int main(void)
{
    coroutines();
    copied_stacks();
    tasks();
#ifdef GENERATORS
    generators();
    CHECK_EQ(in_stack_sum(4), 10);
#endif
    return check_result("switches");
}
