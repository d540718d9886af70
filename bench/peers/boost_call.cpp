// A whole life of a Boost.Context fiber on a pooled stack: make, run, return, destroy (bench/native.h).
#include "../native.h"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <memory>
#include <utility>

using boost::context::fiber;

static void *call_make(unsigned, size_t number)
{
    native_must(number == 1, "one at a time");
    return new boost::context::pooled_fixedsize_stack(64 << 10);
}

BENCH_INLINE void call_run(void *made, size_t rounds)
{
    boost::context::pooled_fixedsize_stack &pool = *static_cast<boost::context::pooled_fixedsize_stack *>(made);
    uintptr_t sum = 0;
    for (size_t n = 0; n < rounds; n++) {
        fiber co(std::allocator_arg, pool, [&sum, n](fiber &&resumer) {
            sum += n;
            return std::move(resumer);
        });
        co = std::move(co).resume();
    }
    native_must(sum == rounds * (rounds - 1) / 2, "other results came back");
}
NATIVE_RUN(call_run)

int main(int argc, char **argv)
{
    static const native_case_t cases[] = {
        {"call", call_make, NATIVE_ALL(call_run)},
        {NULL, NULL, {NULL, NULL, NULL, NULL}},
    };
    return native_main(argc, argv, cases);
}
