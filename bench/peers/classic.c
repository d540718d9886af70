/* The switch matrix: a classic switch, without bookkeeping or checks. Coroutine records are small and side by side. */
#include "../stack.h"
#include "classic_switch.h"

typedef struct sw {
    void *sp;
    uintptr_t value;
} sw_t;

static void *main_sp;

BENCH_INLINE void sw_resume(sw_t *co)
{
    classic_switch(&main_sp, co->sp);
}

BENCH_INLINE void sw_yield(sw_t *self)
{
    classic_switch(&self->sp, main_sp);
}

BENCH_INLINE uintptr_t sw_send(sw_t *co, uintptr_t value)
{
    co->value = value;
    sw_resume(co);
    return co->value;
}

BENCH_INLINE uintptr_t sw_receive(sw_t *self)
{
    return self->value;
}

BENCH_INLINE void sw_reply(sw_t *self, uintptr_t value)
{
    self->value = value;
    sw_yield(self);
}

#include "../matrix.h"

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

static sw_t *sw_start(matrix_kind_t kind, matrix_body_t body, size_t stack_sz)
{
    sw_t *co = bench_alloc(sizeof *co);
    (void)kind;
    co->sp = classic_start(bench_stack_new(stack_sz), entry);
    next_body = body;
    next_self = co;
    sw_resume(co);
    return co;
}

int main(int argc, char **argv)
{
    return matrix_main(argc, argv);
}
