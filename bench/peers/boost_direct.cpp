// Boost.Context itself as a generator: what remains of Boost.Coroutine2's cost without Boost.Coroutine2.
#include "../elements.h"

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <memory>
#include <utility>

using boost::context::fiber;

enum { STACK = 64 << 10 };

// A generator's side of the switch: where its values go, and who takes them.
struct taker {
    uintptr_t value = 0;
    fiber resumer;

    void operator()(uintptr_t given)
    {
        value = given;
        resumer = std::move(resumer).resume();
    }
};

#define SEQUENCE(pad)                                                                                                  \
    NATIVE_HOT(pad) void sequence_body_##pad(taker &take, uintptr_t n)                                                 \
    {                                                                                                                  \
        for (; n != 0; --n)                                                                                            \
            take(n);                                                                                                   \
    }
SEQUENCE(0) SEQUENCE(16) SEQUENCE(32) SEQUENCE(48)

BENCH_INLINE uintptr_t sum_of_sequence(const elements_t *e, void (*body)(taker &, uintptr_t))
{
    uintptr_t sum = 0;
    taker take;
    fiber source(std::allocator_arg, boost::context::fixedsize_stack(STACK), [&take, e, body](fiber &&resumer) {
        take.resumer = std::move(resumer);
        body(take, e->number);
        return std::move(take.resumer);
    });
    for (source = std::move(source).resume(); source; source = std::move(source).resume())
        sum += take.value;
    return sum;
}
ELEMENTS_RUN(sequence, sum_of_sequence)

int main(int argc, char **argv)
{
    static const native_case_t cases[] = {
        {"sequence", sequence_make, NATIVE_ALL(sequence)},
        {NULL, NULL, {NULL, NULL, NULL, NULL}},
    };
    if (argc == 7) // the allocator places the stacks: shift its addresses
        bench_escape(bench_alloc(strtoul(argv[6], NULL, 10) % 60 * 64 + 1));
    return native_main(argc, argv, cases);
}
