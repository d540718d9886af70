/* Runs what generate.py made: each consumer of generators must return what its plain twin does, in the root context, in
 * a coroutine on a private stack, and in three at a time on one share stack, between whose yields frames are copied. */
#include "run.h"
#include "check.h"
#include "fails.h"

enum { SEEDS = 4, TOGETHER = 3 };

static int pauses;          /* the functions may yield now */
static uint64_t pause_clock; /* says when they do */

int may_pause(void)
{
    void *lo, *hi;
    const char *here = __builtin_frame_address(0);
    if (!pauses || ++pause_clock % 3)
        return 0;
    if (pauses == 1)
        return 1;
    return aco_stack_bounds(aco_get_co(), &lo, &hi) == 0 && here >= (char *)lo && here < (char *)hi;
}

NOINLINE void pause_now(void)
{
    if (may_pause())
        aco_yield();
}

void refused(void)
{
    fprintf(stderr, "generator.random: %s\n", aco_error_message());
    abort();
}

NOINLINE uint64_t mix_many(int count, ...)
{
    uint64_t sum = 0;
    va_list arguments;
    va_start(arguments, count);
    for (int i = 0; i < count; i++)
        sum = sum * 31 + (i % 2 ? (uint64_t)va_arg(arguments, double) : va_arg(arguments, uint64_t));
    va_end(arguments);
    return sum;
}

typedef struct task {
    consumer_t *consumer;
    uint64_t seed, result;
} task_t;

static void *run_task(void *arg)
{
    task_t *task = arg;
    task->result = task->consumer(task->seed);
    return arg;
}

static void in_coroutines(unsigned n, uint64_t wanted, uint64_t seed, int count, aco_share_stack_t *stack)
{
    aco_options_t options = {.stack = stack};
    aco_t *co[TOGETHER];
    task_t tasks[TOGETHER];
    int running = count;
    pauses = stack ? 2 : 1;
    for (int i = 0; i < count; i++) {
        tasks[i] = (task_t){run_functions[n].live, seed, 0};
        co[i] = aco_new(run_task, &tasks[i], &options);
    }
    while (running)
        for (int i = 0; i < count; i++)
            if (!co[i]->is_end) {
                aco_resume(co[i]);
                running -= co[i]->is_end;
            }
    for (int i = 0; i < count; i++) {
        if (tasks[i].result != wanted) {
            fprintf(stderr, "function %u, seed %llu, %s:\n", n, (unsigned long long)seed,
                    stack ? "on a share stack" : "on a private stack");
            CHECK_EQ(tasks[i].result, wanted);
        }
        aco_destroy(co[i]);
    }
    pauses = 0;
}

int main(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    for (unsigned n = 0; n < run_count; n++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            uint64_t wanted = run_functions[n].plain(seed), got = run_functions[n].live(seed);
            if (wanted != got) {
                fprintf(stderr, "function %u, seed %llu:\n", n, (unsigned long long)seed);
                CHECK_EQ(got, wanted);
            }
            in_coroutines(n, wanted, seed, 2, NULL);
            if (SHARE_STACKS)
                in_coroutines(n, wanted, seed, TOGETHER, stack);
        }
    CHECK(pause_clock > 0);
    aco_share_stack_destroy(stack);
    return check_result("generator.random");
}
