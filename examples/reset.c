/* aco_reset(): one coroutine object does one task after another, with no allocation in between. aco_mem_new(): memory
 * that is always valid. */
#include "aco.h"

#include <stdio.h>

#include "aco_assert_override.h"

enum { TASKS = 1000 };

typedef struct task {
    int number;
    int result;
} task_t;

static void add_up(void)
{
    task_t *task = aco_get_arg();
    int sum = 0;
    for (int i = 1; i <= task->number; i++) {
        sum += i;
        aco_yield();
    }
    task->result = sum;
    aco_exit();
}

static void square(void)
{
    task_t *task = aco_get_arg();
    task->result = task->number * task->number;
    aco_exit();
}

static aco_cofuncp_t entry_of(int i)
{
    return i % 2 ? square : add_up;
}

int main(void)
{
    task_t *tasks = aco_mem_new(TASKS * sizeof *tasks); /* never NULL: it aborts when there is no memory */
    size_t resumes = 0;

    for (int i = 0; i < TASKS; i++)
        tasks[i] = (task_t){i % 20, -1};
    aco_thread_init(NULL);
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co = aco_create(main_co, stack, 0, entry_of(0), &tasks[0]);
    const void *area = co->save_stack.ptr;

    for (int i = 0; i < TASKS; i++) {
        if (i > 0) {
            aco_reset(co, entry_of(i), &tasks[i]); /* as new: it has ended, and starts over elsewhere */
            assert(!co->is_end && co->arg == &tasks[i] && co->fp == entry_of(i) && co->save_stack.ptr == area);
        }
        for (; !co->is_end; resumes++)
            aco_resume(co);
        assert(tasks[i].result == (i % 2 ? i % 20 * (i % 20) : i % 20 * (i % 20 + 1) / 2));
    }
    printf("%d tasks done by one coroutine in %zu resumes\n", TASKS, resumes);
    assert(resumes == TASKS / 20 * (10 + 10 + 0 + 2 + 4 + 6 + 8 + 10 + 12 + 14 + 16 + 18));

    aco_destroy(co);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
    free(tasks);
    return 0;
}
