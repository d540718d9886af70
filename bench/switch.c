/* The switch matrix: Acorn's coroutines as aco_new() makes them, with the flags BENCH_FLAGS. ACO_CONFIG_NO_INLINE works
 * as in any program.
 *
 * Instructions, by callgrind, gcc 12.2: a resume and yield 46, with ACO_OWN_EXCEPTIONS 116; new, send, return, destroy
 * 104; restart, send, return 79; a chained resume 102; an element of aco::generator 54; aco::coroutine with a value
 * 68. */
#include "bench.h"

#include <aco.h>

typedef aco_t sw_t;

BENCH_INLINE void sw_resume(sw_t *co)
{
    aco_resume(co);
}

BENCH_INLINE void sw_yield(sw_t *self)
{
    (void)self;
    aco_yield();
}

BENCH_INLINE uintptr_t sw_send(sw_t *co, uintptr_t value)
{
    co->arg = (void *)value;
    aco_resume(co);
    return (uintptr_t)co->arg;
}

BENCH_INLINE uintptr_t sw_receive(sw_t *self)
{
    (void)self;
    return (uintptr_t)aco_get_arg();
}

BENCH_INLINE void sw_reply(sw_t *self, uintptr_t value)
{
    self->arg = (void *)value;
    aco_yield();
}

#include "matrix.h"

#ifndef BENCH_FLAGS
#define BENCH_FLAGS 0
#endif

static aco_t *made(aco_function_t fn, size_t stack_sz)
{
    aco_options_t options = {.stack_size = stack_sz, .flags = ACO_NO_GUARD | BENCH_FLAGS};
    aco_t *co = aco_new(fn, NULL, &options);
    if (!co) {
        fprintf(stderr, "%s\n", aco_error_message());
        exit(1);
    }
    return co;
}

static matrix_body_t next_body;

static void *entry(void *arg)
{
    matrix_body_t body = next_body;
    aco_t *self = aco_get_co();
    aco_yield();
    body(self);
    return arg;
}

static void sw_prepare(unsigned seed)
{
    for (unsigned i = 0; i < seed % 60; i++) /* moves to another stack colour */
        made(entry, MATRIX_STACK);
}

static sw_t *sw_start(matrix_kind_t kind, matrix_body_t body, size_t stack_sz)
{
    aco_t *co = made(entry, stack_sz);
    (void)kind;
    next_body = body;
    aco_resume(co);
    return co;
}

int main(int argc, char **argv)
{
    return matrix_main(argc, argv);
}
