/* Stacks for the contenders that bring none, placed and coloured as Acorn's private ones are (src/stack.c). */
#ifndef BENCH_STACK_H
#define BENCH_STACK_H
#include "bench.h"

static unsigned bench_stacks_made;

/* The top of a new stack of at least `sz` bytes; 64-byte aligned. */
BENCH_FUNCTION char *bench_stack_new(size_t sz)
{
    enum { LINE = 64, COLOURS = 60, RECORD = 256, PAGE = 4096 };
    size_t map_sz = (LINE + sz + COLOURS * LINE + RECORD + PAGE - 1) / PAGE * PAGE;
    return (char *)bench_map(map_sz) + LINE + sz + bench_stacks_made++ * 37u % COLOURS * LINE;
}

#endif
