/* The switch matrix: an empty call through a pointer, without a coroutine. The nested case shows what its calls and its
 * work cost without any switch. */
#include "../bench.h"

typedef struct sw {
    void (*body)(struct sw *self);
    uintptr_t value;
} sw_t;

BENCH_INLINE void sw_resume(sw_t *co)
{
    co->body(co);
}

BENCH_INLINE void sw_yield(sw_t *self)
{
    (void)self;
    bench_clobber();
}

BENCH_INLINE uintptr_t sw_send(sw_t *co, uintptr_t value)
{
    co->value = value;
    co->body(co);
    return co->value;
}

BENCH_INLINE uintptr_t sw_receive(sw_t *self)
{
    return self->value;
}

BENCH_INLINE void sw_reply(sw_t *self, uintptr_t value)
{
    self->value = value;
}

#define MATRIX_FOREVER /* a body returns instead of yielding */
#include "../matrix.h"

static void sw_prepare(unsigned seed)
{
    (void)seed;
}

static sw_t *sw_start(matrix_kind_t kind, matrix_body_t body, size_t stack_sz)
{
    sw_t *co = bench_alloc(sizeof *co);
    (void)kind, (void)stack_sz;
    co->body = body;
    co->value = 0;
    return co;
}

int main(int argc, char **argv)
{
    return matrix_main(argc, argv);
}
