/* Tutorial 0: one main coroutine, one coroutine with a stack of its own, and an argument that both use. */
#include "aco.h"

#include <stdio.h>

#include "aco_assert_override.h"

typedef struct account {
    int deposit; /* the main coroutine writes it before each resume */
    int balance; /* the coroutine writes it before each yield */
} account_t;

enum { DEPOSITS = 5 };

static void teller(void)
{
    account_t *account = aco_get_arg(); /* what aco_create() was given */
    int balance = 0;                    /* a local variable keeps its value across aco_yield() */

    assert(aco_get_co()->arg == account && aco_get_co()->fp == teller);
    for (int i = 0; i < DEPOSITS; i++) {
        balance += account->deposit;
        account->balance = balance;
        printf("teller: deposit %d, balance %d\n", account->deposit, balance);
        aco_yield(); /* back to main(); the next aco_resume() continues here */
    }
    printf("teller: closing\n");
    aco_exit(); /* like aco_yield(), and for good */
}

int main(void)
{
    account_t account = {0, 0};

    /* Once in every thread that uses coroutines. NULL: the default message when a coroutine returns (tutorial 4). */
    aco_thread_init(NULL);

    /* The root context, where main() runs; other coroutines yield to it. It needs no share stack. */
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    assert(aco_is_main_co(main_co));

    /* A stack of the default size with a guard page. With one coroutine only it is that coroutine's private stack. */
    aco_share_stack_t *stack = aco_share_stack_new(0);

    /* Nothing of teller() runs yet. */
    aco_t *co = aco_create(main_co, stack, 0, teller, &account);

    for (int i = 1, sum = 0; i <= DEPOSITS; i++) {
        account.deposit = 10 * i;
        sum += account.deposit;
        aco_resume(co); /* runs teller() up to its next aco_yield() */
        assert(!co->is_end);
        assert(account.balance == sum);
        printf("main: balance %d\n", account.balance);
    }
    aco_resume(co);
    assert(co->is_end); /* from now on it may only be destroyed, or reset (reset.c) */

    /* Coroutines first, then the stacks they ran on, the main coroutine last. */
    aco_destroy(co);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
    printf("main: done\n");
    return 0;
}
