/* Guard pages: where they are, and that overflowing into one is a SIGSEGV. */
#define _GNU_SOURCE
#include "aco.h"
#include "child.h"

#include <stdint.h>

static aco_t *main_co, *co;
static aco_share_stack_t *stack;

/* `volatile` and the use after the call keep this a recursion. */
static __attribute__((noinline)) int recurse(volatile int *depth)
{
    volatile char bytes[100];
    int below = 0;
    bytes[0] = 1;
    if (++*depth < 1000000)
        below = recurse(depth);
    return below + bytes[0];
}

static void recurse_for_ever(void)
{
    volatile int depth = 0;
    CHECK(recurse(&depth) > 0);
    aco_exit();
}

static void recurse_a_little(void)
{
    volatile int depth = 1000000 - 20;
    CHECK_EQ(recurse(&depth), 20);
    aco_exit();
}

static void resume(void)
{
    aco_resume(co);
}

static void touch_lowest_byte(void)
{
    *(volatile char *)stack->ptr = 1;
}

static void write_guard(void)
{
    ((volatile char *)stack->ptr)[-1] = 1;
}

static void write_guards_end(void)
{
    ((volatile char *)stack->ptr)[-sysconf(_SC_PAGESIZE)] = 1;
}

static void read_guard(void)
{
    CHECK(((volatile signed char *)stack->ptr)[-1] >= -128);
}

int main(void)
{
    static const size_t sizes[] = {1, 8192, 100000, 0}; /* 0: 2 MiB */
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        /* Promise: the page right below the stack is inaccessible, all of it; the stack's lowest byte is the
         * stack's. */
        stack = aco_share_stack_new2(sizes[i], 1);
        PASSES(touch_lowest_byte);
        DIES_OF(write_guard, SIGSEGV);
        DIES_OF(write_guards_end, SIGSEGV);
        DIES_OF(read_guard, SIGSEGV);
        /* Promise: overflow by a coroutine's frames ends in SIGSEGV; frames that fit do not. */
        co = aco_create(main_co, stack, 0, recurse_a_little, NULL);
        if (sizes[i] != 1)
            PASSES(resume);
        aco_reset(co, recurse_for_ever, NULL);
        DIES_OF(resume, SIGSEGV);
        aco_destroy(co);
        aco_share_stack_destroy(stack);
    }
    aco_destroy(main_co);
    return check_result("guard");
}
