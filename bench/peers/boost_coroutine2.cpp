// The switch matrix: Boost.Coroutine2's pull_type, of void where no value is passed. It carries values out of the
// coroutine; values into it go through a structure.
#include "../bench.h"

#include <boost/coroutine2/coroutine.hpp>
#include <boost/coroutine2/fixedsize_stack.hpp>

using plain = boost::coroutines2::coroutine<void>;
using valued = boost::coroutines2::coroutine<uintptr_t>;

struct sw_t {
    plain::pull_type *source;
    plain::push_type *sink;
    valued::pull_type *value_source;
    valued::push_type *value_sink;
    uintptr_t value;
};

BENCH_INLINE void sw_resume(sw_t *co)
{
    (*co->source)();
}

BENCH_INLINE void sw_yield(sw_t *self)
{
    (*self->sink)();
}

BENCH_INLINE uintptr_t sw_send(sw_t *co, uintptr_t value)
{
    co->value = value;
    (*co->value_source)();
    return co->value_source->get();
}

BENCH_INLINE uintptr_t sw_receive(sw_t *self)
{
    return self->value;
}

BENCH_INLINE void sw_reply(sw_t *self, uintptr_t value)
{
    (*self->value_sink)(value);
}

#include "../matrix.h"

static void sw_prepare(unsigned seed)
{
    bench_escape(bench_alloc(seed % 60 * 64 + 1)); // the allocator places the stacks: shift its addresses
}

// The constructors run a coroutine to its first yield.
static sw_t *sw_start(matrix_kind_t kind, matrix_body_t body, size_t stack_sz)
{
    boost::coroutines2::fixedsize_stack stack(stack_sz);
    sw_t *co = new sw_t();
    if (kind == MATRIX_VALUE)
        co->value_source = new valued::pull_type(stack, [co, body](valued::push_type &sink) {
            co->value_sink = &sink;
            sink(0);
            body(co);
        });
    else
        co->source = new plain::pull_type(stack, [co, body](plain::push_type &sink) {
            co->sink = &sink;
            sink();
            body(co);
        });
    return co;
}

int main(int argc, char **argv)
{
    return matrix_main(argc, argv);
}
