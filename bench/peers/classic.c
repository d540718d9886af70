/* The switch matrix: a classic switch without bookkeeping or checks. Coroutine records are small and adjacent. */
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

#include "value_in_record.h"

#include "../matrix.h"
#include "entry.h"

static sw_t *sw_start(matrix_kind_t kind, matrix_body_t body, size_t stack_sz)
{
    sw_t *co = bench_alloc(sizeof *co);
    (void)kind;
    co->sp = classic_start(bench_stack_new(stack_sz), entry);
    return entered(co, body);
}

int main(int argc, char **argv)
{
    return matrix_main(argc, argv);
}
