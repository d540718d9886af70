/* The switch matrix: libc's swapcontext(). Each round trip makes two system calls for the signal mask. */
#include "../stack.h"

#include <ucontext.h>

typedef struct sw {
    ucontext_t context;
    uintptr_t value;
} sw_t;

static ucontext_t main_context;

BENCH_INLINE void sw_resume(sw_t *co)
{
    swapcontext(&main_context, &co->context);
}

BENCH_INLINE void sw_yield(sw_t *self)
{
    swapcontext(&self->context, &main_context);
}

#include "value_in_record.h"

#include "../matrix.h"
#include "entry.h"

static sw_t *sw_start(matrix_kind_t kind, matrix_body_t body, size_t stack_sz)
{
    char *top = bench_stack_new(stack_sz);
    sw_t *co = bench_alloc(sizeof *co);
    (void)kind;
    getcontext(&co->context);
    co->context.uc_stack.ss_sp = top - stack_sz;
    co->context.uc_stack.ss_size = stack_sz;
    co->context.uc_link = NULL;
    makecontext(&co->context, entry, 0);
    return entered(co, body);
}

int main(int argc, char **argv)
{
    return matrix_main(argc, argv);
}
