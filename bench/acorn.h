/* Acorn's functions for memory.h and memory_scale.h that serve every kind of coroutine. */
#ifndef ACORN_H
#define ACORN_H
#include "bench.h"

#include <aco.h>

typedef aco_t co_t;
#define SCALE_PREFETCH

BENCH_INLINE void co_resume(co_t *co)
{
    aco_resume(co);
}

BENCH_INLINE void co_prefetch(const co_t *co)
{
    aco_prefetch(co);
}

BENCH_INLINE void co_prefetch_more(const co_t *co)
{
    aco_prefetch_stack(co);
}

BENCH_INLINE void co_destroy(co_t *co)
{
    aco_destroy(co);
}

BENCH_INLINE uint64_t copying_tag(void)
{
    return (uintptr_t)aco_get_arg();
}

#endif
