/* What steps.py steps through. */
#include "aco.h"

void resume_it(void), call_resume(void), yield_it(void), call_yield(void), done(void);

static aco_t *co;
void *lo, *hi; /* of its stack */

#define NOT_A_TAIL_CALL __asm__ volatile("")

__attribute__((noinline)) void done(void)
{
    NOT_A_TAIL_CALL;
}
__attribute__((noinline)) void resume_it(void)
{
    aco_resume(co);
    NOT_A_TAIL_CALL;
}
__attribute__((noinline)) void call_resume(void)
{
    resume_it();
    NOT_A_TAIL_CALL;
}
__attribute__((noinline)) void yield_it(void)
{
    aco_yield();
    NOT_A_TAIL_CALL;
}
__attribute__((noinline)) void call_yield(void)
{
    yield_it();
    NOT_A_TAIL_CALL;
}

static void *yields(void *arg)
{
    call_yield();
    call_yield();
    return arg;
}

int main(void)
{
    co = aco_new(yields, NULL, NULL);
    aco_stack_bounds(co, &lo, &hi);
    while (!co->is_end)
        call_resume();
    done();
    aco_destroy(co);
}
