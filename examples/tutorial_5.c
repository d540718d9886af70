/* Tutorial 5: a user-defined last word, in place of tutorial 4's default message.
 *
 * The function given to aco_thread_init() runs on the offending coroutine's stack when its entry function has returned,
 * and aco_get_co() and aco_get_arg() name that coroutine. When it returns, the process aborts all the same. */
#include "aco.h"

#include <stdio.h>

#include "aco_assert_override.h"

static aco_t *expected_offender;

static void last_word(void)
{
    assert(aco_get_co() == expected_offender);
    fprintf(stderr, "last word: the coroutine of \"%s\" has returned without aco_exit()\n",
            (const char *)aco_get_arg());
}

static void honest(void)
{
    aco_exit();
}

static void offender(void)
{
    printf("the coroutine returns\n");
    fflush(stdout); /* abort() does not */
}

int main(void)
{
    aco_thread_init(last_word);
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *stack = aco_share_stack_new(0);

    aco_t *co = aco_create(main_co, stack, 0, honest, "honest work");
    aco_resume(co); /* no last word: it exits */
    assert(co->is_end);
    printf("honest work is done\n");

    expected_offender = aco_create(main_co, stack, 0, offender, "careless work");
    aco_resume(expected_offender); /* aborts */
    printf("never printed\n");
    return 0;
}
