// Boost.Coroutine2 as generators: the sum of a sequence, and a recursive function that yields from every depth.
#include "../elements.h"

#include <boost/coroutine2/coroutine.hpp>
#include <boost/coroutine2/fixedsize_stack.hpp>

using coroutine = boost::coroutines2::coroutine<uintptr_t>;
using sink_t = coroutine::push_type;

enum { STACK = 64 << 10 };

#define SEQUENCE(pad)                                                                                                  \
    NATIVE_HOT(pad) void sequence_body_##pad(sink_t &sink, uintptr_t n)                                                \
    {                                                                                                                  \
        for (; n != 0; --n)                                                                                            \
            sink(n);                                                                                                   \
    }
SEQUENCE(0) SEQUENCE(16) SEQUENCE(32) SEQUENCE(48)

#define HANOI(pad)                                                                                                     \
    NATIVE_HOT(pad) void hanoi_body_##pad(sink_t &sink, int disc, int from, int to, int spare)                         \
    {                                                                                                                  \
        if (disc == 0)                                                                                                 \
            return;                                                                                                    \
        hanoi_body_##pad(sink, disc - 1, from, spare, to);                                                             \
        sink(hanoi_move(disc, from, to));                                                                              \
        hanoi_body_##pad(sink, disc - 1, spare, to, from);                                                             \
    }
HANOI(0) HANOI(16) HANOI(32) HANOI(48)

// The constructor of pull_type runs the coroutine to its first element.
template <class Body> BENCH_INLINE uintptr_t sum_of(Body body)
{
    uintptr_t sum = 0;
    for (coroutine::pull_type source(boost::coroutines2::fixedsize_stack(STACK), body); source; source())
        sum += source.get();
    return sum;
}

BENCH_INLINE uintptr_t sum_of_sequence(const elements_t *e, void (*body)(sink_t &, uintptr_t))
{
    return sum_of([=](sink_t &sink) { body(sink, e->number); });
}
ELEMENTS_RUN(sequence, sum_of_sequence)

BENCH_INLINE uintptr_t sum_of_hanoi(const elements_t *e, void (*body)(sink_t &, int, int, int, int))
{
    return sum_of([=](sink_t &sink) { body(sink, e->discs, 'a', 'b', 'c'); });
}
ELEMENTS_RUN(hanoi, sum_of_hanoi)

int main(int argc, char **argv)
{
    static const native_case_t cases[] = {
        {"sequence", sequence_make, NATIVE_ALL(sequence)},
        {"hanoi", hanoi_make, NATIVE_ALL(hanoi)},
        {NULL, NULL, {NULL, NULL, NULL, NULL}},
    };
    if (argc == 7) // the allocator places the stacks: shift its addresses
        bench_escape(bench_alloc(strtoul(argv[6], NULL, 10) % 60 * 64 + 1));
    return native_main(argc, argv, cases);
}
