/* Tutorial 4: a coroutine that breaks the rule to end by aco_exit().
 *
 * There is nothing that its entry function could return to. The library prints one line on stderr that names the
 * coroutine, and aborts the process. */
#include "aco.h"

#include <stdio.h>

static void offender(void)
{
    printf("the coroutine runs\n");
    aco_yield();
    printf("the coroutine returns\n");
    fflush(stdout); /* abort() does not */
}

int main(void)
{
    aco_thread_init(NULL);
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co = aco_create(main_co, stack, 0, offender, NULL);

    aco_resume(co);
    printf("main resumes coroutine %p again\n", (void *)co);
    aco_resume(co); /* aborts */
    printf("never printed\n");
    return 0;
}
