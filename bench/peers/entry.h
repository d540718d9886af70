/* Enters the bodies of the switch matrix, for contenders on stacks of stack.h with entry functions that have no
 * argument. Include this after matrix.h. */
#ifndef BENCH_ENTRY_H
#define BENCH_ENTRY_H

static matrix_body_t next_body;
static sw_t *next_self;

static void sw_prepare(unsigned seed)
{
    bench_stacks_made = seed;
}

static void entry(void)
{
    matrix_body_t body = next_body;
    sw_t *self = next_self;
    sw_yield(self);
    body(self);
    abort();
}

/* Runs entry() of the new coroutine to its first yield. */
static sw_t *entered(sw_t *co, matrix_body_t body)
{
    next_body = body;
    next_self = co;
    sw_resume(co);
    return co;
}

#endif
