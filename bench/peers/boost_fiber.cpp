// The switch matrix: Boost.Context's fiber. A fiber carries no values, so they are in a structure beside it.
#include "../bench.h"

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <memory>
#include <utility>

struct sw_t {
    boost::context::fiber inside; // the coroutine, while it is suspended
    boost::context::fiber back;   // its resumer, while it runs
    uintptr_t value;
};

BENCH_INLINE void sw_resume(sw_t *co)
{
    co->inside = std::move(co->inside).resume();
}

BENCH_INLINE void sw_yield(sw_t *self)
{
    self->back = std::move(self->back).resume();
}

#include "value_in_record.h"

#include "../matrix.h"

static void sw_prepare(unsigned seed)
{
    bench_escape(bench_alloc(seed % 60 * 64 + 1)); // the allocator places the stacks: shift its addresses
}

static sw_t *sw_start(matrix_kind_t, matrix_body_t body, size_t stack_sz)
{
    sw_t *co = new sw_t();
    co->inside = boost::context::fiber(std::allocator_arg, boost::context::fixedsize_stack(stack_sz),
                                       [co, body](boost::context::fiber &&resumer) {
                                           co->back = std::move(resumer);
                                           sw_yield(co);
                                           body(co);
                                           return std::move(co->back);
                                       });
    sw_resume(co);
    return co;
}

int main(int argc, char **argv)
{
    return matrix_main(argc, argv);
}
