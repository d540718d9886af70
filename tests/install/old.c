/* A program in C89 and in C++98, with every public header that compiles as these: libaco's calls, tasks, a pool. */
#include "aco.h"
#ifndef LIBACO_ONLY
#define MINICORO_IMPL
#include "aco/backtrace.h"
#include "aco/compat/minicoro.h"
#include "aco/group.h"
#include "aco/pool.h"
#include "aco/sync.h"
#if !defined(ACO_CONFIG_NO_INLINE) && !defined(__cplusplus)
#include "aco/in_stack_generator.h"
#endif
#endif

static void count(void)
{
    int *n = (int *)aco_get_arg();
    for (*n = 1; *n <= 3; ++*n)
        aco_yield();
    aco_exit();
}

#ifndef LIBACO_ONLY
static void *task(void *arg)
{
    aco_task_yield();
    return arg;
}

static void twice(mco_coro *co)
{
    mco_yield(co);
}

static int of_minicoro(void)
{
    mco_desc desc = mco_desc_init(twice, 0);
    mco_coro *co;
    return mco_create(&co, &desc) == MCO_SUCCESS && mco_resume(co) == MCO_SUCCESS && mco_resume(co) == MCO_SUCCESS &&
        mco_status(co) == MCO_DEAD && mco_destroy(co) == MCO_SUCCESS;
}

static int others(void)
{
    aco_pool_options_t none;
    aco_pool_t *pool;
    aco_t *spawned = aco_spawn(task, &pool, NULL);
    void *result = NULL;
    memset(&none, 0, sizeof none);
    pool = aco_pool_new(&none);
    return aco_run() == 0 && aco_join(spawned, &result) == 0 && result == &pool && aco_pool_destroy(pool) == 0;
}
#endif

int main(void)
{
    aco_t *main_co, *co;
    aco_share_stack_t *stack;
    int n = 0, sum = 0;
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    stack = aco_share_stack_new(0);
    co = aco_create(main_co, stack, 0, count, &n);
    for (aco_resume(co); !co->is_end; aco_resume(co))
        sum += n;
    aco_destroy(co);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
#ifndef LIBACO_ONLY
    if (!others() || !of_minicoro())
        return 2;
#endif
    return sum != 6;
}
