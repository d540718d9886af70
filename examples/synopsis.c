/* Synopsis: a coroutine computes a sequence of numbers, its caller takes them one at a time. */
#include "aco.h"

#include <stdio.h>

#include "aco_assert_override.h" /* the last include: its assert() replaces the C library's and holds under NDEBUG */

/* A coroutine may yield from any depth of calls. */
static void deliver(int number)
{
    *(int *)aco_get_arg() = number;
    aco_yield();
}

/* Halve an even number, or multiply an odd one by 3 and add 1, until it is 1. */
static void collatz(void)
{
    int n = *(int *)aco_get_arg();
    deliver(n);
    while (n != 1) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        deliver(n);
    }
    aco_exit(); /* an entry function must not return */
}

int main(void)
{
    const int expected[] = {6, 3, 10, 5, 16, 8, 4, 2, 1};
    size_t count = 0;
    int number = 6;

    aco_thread_init(NULL);
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co = aco_create(main_co, stack, 0, collatz, &number);

    for (aco_resume(co); !co->is_end; aco_resume(co)) {
        assert(count < sizeof expected / sizeof *expected && number == expected[count]);
        count++;
        printf("number %zu is %d\n", count, number);
    }
    assert(count == sizeof expected / sizeof *expected);
    printf("the coroutine has ended\n");

    aco_destroy(co);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
    return 0;
}
