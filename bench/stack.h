/* Stacks for contenders without an allocator of their own. Placement and colours are those of Acorn's private stacks;
 * the numbers are those of aco__stack_lay_out() in src/stack/. */
#ifndef BENCH_STACK_H
#define BENCH_STACK_H
#include "bench.h"

enum { STACK_COLOURS = 43,
       STACK_FIRST_COLOUR = 16 };

static unsigned bench_stacks_made;

/* The top of a new stack of at least `sz` bytes; 64-byte aligned. */
BENCH_FUNCTION char *bench_stack_new(size_t sz)
{
    enum { LINE = 64, PAGE = 4096 };
    size_t below = (sz + PAGE - 1) / PAGE * PAGE;
    size_t colour = STACK_FIRST_COLOUR + bench_stacks_made++ % STACK_COLOURS * 37u % STACK_COLOURS;
    return (char *)bench_map(below + PAGE) + below + colour * LINE;
}

#endif
