/* The switch matrix: Acorn. ACO_CONFIG_SHARE_FPU_MXCSR_ENV and ACO_CONFIG_NO_INLINE work as in any program; both
 * together measure the exported functions with coroutines that share one floating-point environment. */
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

static aco_t *main_co;
static matrix_body_t next_body;

static void sw_prepare(unsigned seed)
{
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    for (unsigned i = 0; i < seed % 60; i++) /* moves to another stack colour */
        aco_share_stack_destroy(aco_share_stack_new2(4096, 0));
}

static void entry(void)
{
    matrix_body_t body = next_body;
    aco_t *self = aco_get_co();
    aco_yield();
    body(self);
    aco_exit();
}

static sw_t *sw_start(matrix_kind_t kind, matrix_body_t body, size_t stack_sz)
{
    aco_share_stack_t *stack = aco_share_stack_new2(stack_sz, 0);
    aco_t *co;
    (void)kind;
#if defined(ACO_CONFIG_NO_INLINE) && defined(ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
    co = aco__create(main_co, stack, 0, entry, NULL, 0); /* the exported aco_create() makes the other kind */
#else
    co = aco_create(main_co, stack, 0, entry, NULL);
#endif
    next_body = body;
    aco_resume(co);
    return co;
}

int main(int argc, char **argv)
{
    return matrix_main(argc, argv);
}
