/* Runs the generated functions: those that yield in coroutines that take turns on one copying stack, those that resume
 * in the main coroutine. Each must give what its plain twin gives. */
#include "run.h"
#include "check.h"

#include <string.h>

enum { COROUTINES = 3, ROUNDS = 3 };

aco_t *run_helper;

static void run(const run_function_t *f, uint64_t seed)
{
    uint64_t arguments[RUN_ARGUMENTS], result, expected;
    for (int i = 0; i < RUN_ARGUMENTS; i++)
        arguments[i] = seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    result = f->switching(arguments);
    expected = f->plain(arguments);
    if (result != expected)
        fprintf(stderr, "switching_%d gives a wrong result\n", f->number);
    CHECK(result == expected);
}

static void body(void)
{
    int me = (int)(uintptr_t)aco_get_arg();
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < run_count; i++) {
            const run_function_t *f = &run_functions[(i + me * 7) % run_count];
            if (f->kind == RUN_YIELDS)
                run(f, (uint64_t)(round * 1000 + i * 3 + me));
        }
    aco_exit();
}

/* Overwrites what is below a frame, and yields. */
static void helper_body(void)
{
    volatile char junk[512];
    for (;;) {
        for (unsigned i = 0; i < sizeof junk; i++)
            junk[i] = (char)i;
        aco_yield();
    }
}

int main(void)
{
    aco_share_stack_t *stack;
    aco_t *main_co, *cos[COROUTINES];
    int left = COROUTINES;
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    stack = aco_share_stack_new(0);
    run_helper = aco_create(main_co, stack, 0, helper_body, NULL);
    for (int i = 0; i < COROUTINES; i++)
        cos[i] = aco_create(main_co, stack, 0, body, (void *)(uintptr_t)i);
    while (left > 0)
        for (int i = 0; i < COROUTINES; i++)
            if (!cos[i]->is_end) {
                aco_resume(cos[i]);
                aco_resume(run_helper);
                left -= cos[i]->is_end;
            }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < run_count; i++)
            if (run_functions[i].kind == RUN_RESUMES)
                run(&run_functions[i], (uint64_t)(round * 1000 + i));
    for (int i = 0; i < COROUTINES; i++) {
        CHECK(cos[i]->save_stack.ct_restore > 0);
        aco_destroy(cos[i]);
    }
    aco_destroy(run_helper);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
    return check_result("generated functions");
}
