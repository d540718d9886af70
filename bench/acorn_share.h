/* Acorn's functions for memory.h and memory_scale.h: coroutines on one share stack. */
#ifndef ACORN_SHARE_H
#define ACORN_SHARE_H
#include "acorn.h"

static aco_t *main_co;
static aco_share_stack_t *share_stack;

static void co_prepare(void)
{
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    share_stack = aco_share_stack_new(64 << 10);
}

BENCH_INLINE co_t *co_new(size_t save_sz, void (*entry)(void), size_t tag)
{
    return aco_create(main_co, share_stack, save_sz, entry, (void *)tag);
}

BENCH_INLINE size_t co_copied(const co_t *co)
{
    return co->save_stack.max_cpsz;
}

BENCH_INLINE void copying_yield(void)
{
    aco_yield();
}

#endif
