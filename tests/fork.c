/* fork() in a coroutine: both processes go on from there, each with all its coroutines. */
#define _GNU_SOURCE
#include "aco.h"
#include "child.h"

#include <stdint.h>

enum { COROUTINES = 8, STEPS = 12, FORK_AT = 5 };

static aco_t *main_co;
static pid_t pid = -1; /* 0 in the child */
static int steps[COROUTINES];

static __attribute__((noinline)) void step(int me, int forks, int at)
{
    volatile unsigned char bytes[200];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(me * 16 + at + (int)i);
    if (forks && at == FORK_AT) {
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            alarm(30);
    }
    aco_yield();
    for (size_t i = 0; i < sizeof bytes; i++)
        CHECK_EQ(bytes[i], (unsigned char)(me * 16 + at + (int)i));
    steps[me]++;
}

static void run(void)
{
    int me = (int)(intptr_t)aco_get_arg();
    for (int at = 0; at < STEPS; at++)
        step(me, me == 3, at);
    aco_exit();
}

/* Promise: a process forked by a coroutine holds the same coroutines, and both go on correctly; the running one is the
 * one that forked. */
static void fork_inside(int stacks)
{
    aco_share_stack_t *stack[COROUTINES];
    aco_t *co[COROUTINES];
    int ended = 0, status = 0;
    pid = -1;
    for (int i = 0; i < stacks; i++)
        stack[i] = aco_share_stack_new(0);
    for (int i = 0; i < COROUTINES; i++) {
        steps[i] = 0;
        co[i] = aco_create(main_co, stack[i % stacks], 0, run, (void *)(intptr_t)i);
    }
    while (ended < COROUTINES) {
        ended = 0;
        for (int i = 0; i < COROUTINES; i++) {
            if (!co[i]->is_end)
                aco_resume(co[i]);
            CHECK(aco_get_co() == main_co);
            ended += co[i]->is_end;
        }
    }
    for (int i = 0; i < COROUTINES; i++) {
        CHECK_EQ(steps[i], STEPS);
        aco_destroy(co[i]);
    }
    for (int i = 0; i < stacks; i++)
        aco_share_stack_destroy(stack[i]);
    CHECK(pid >= 0);
    if (pid == 0)
        _exit(__atomic_load_n(&check_failures, __ATOMIC_RELAXED) != 0);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    fork_inside(COROUTINES); /* a stack for each */
    fork_inside(1);          /* copying */
    fork_inside(3);
    aco_destroy(main_co);
    return check_result("fork");
}
