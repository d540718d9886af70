// C++20 coroutines as generators: the sum of a sequence, and a generator that calls itself. Producers are noinline: clang
// would otherwise fold the loop of both sides into one.
#include "../elements.h"

#include <coroutine>
#include <exception>
#include <utility>

class generator {
public:
    struct promise_type {
        uintptr_t value;
        generator get_return_object() { return generator(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(uintptr_t yielded) noexcept
        {
            value = yielded;
            return {};
        }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    explicit generator(std::coroutine_handle<promise_type> made) : handle(made) {}
    generator(generator &&other) noexcept : handle(std::exchange(other.handle, {})) {}
    ~generator()
    {
        if (handle)
            handle.destroy();
    }
    bool next()
    {
        handle.resume();
        return !handle.done();
    }
    uintptr_t value() const { return handle.promise().value; }

private:
    std::coroutine_handle<promise_type> handle;
};

BENCH_INLINE uintptr_t sum_of(generator g)
{
    uintptr_t sum = 0;
    while (g.next())
        sum += g.value();
    return sum;
}

// ---- The sum of a sequence, by two loops that mean the same ----

// The attribute places the function that makes the frame; the resumed half stands where the compiler puts it.
#define SEQUENCES(pad)                                                                                                 \
    NATIVE_HOT(pad) generator sequence_for_body_##pad(uintptr_t n)                                                     \
    {                                                                                                                  \
        for (; n != 0; --n)                                                                                            \
            co_yield n;                                                                                                \
    }                                                                                                                  \
    NATIVE_HOT(pad) generator sequence_while_body_##pad(uintptr_t n)                                                   \
    {                                                                                                                  \
        while (n)                                                                                                      \
            co_yield n--;                                                                                              \
    }
SEQUENCES(0) SEQUENCES(16) SEQUENCES(32) SEQUENCES(48)

BENCH_INLINE uintptr_t sum_of_sequence(const elements_t *e, generator (*body)(uintptr_t))
{
    return sum_of(body(e->number));
}
ELEMENTS_RUN(sequence_for, sum_of_sequence)
ELEMENTS_RUN(sequence_while, sum_of_sequence)

// ---- Hanoi: each call is a generator, whose elements its caller yields again ----

#define HANOI(pad)                                                                                                     \
    NATIVE_HOT(pad) generator hanoi_body_##pad(int disc, int from, int to, int spare)                                  \
    {                                                                                                                  \
        if (disc == 0)                                                                                                 \
            co_return;                                                                                                 \
        for (generator g = hanoi_body_##pad(disc - 1, from, spare, to); g.next();)                                     \
            co_yield g.value();                                                                                        \
        co_yield hanoi_move(disc, from, to);                                                                           \
        for (generator g = hanoi_body_##pad(disc - 1, spare, to, from); g.next();)                                     \
            co_yield g.value();                                                                                        \
    }
HANOI(0) HANOI(16) HANOI(32) HANOI(48)

BENCH_INLINE uintptr_t sum_of_hanoi(const elements_t *e, generator (*body)(int, int, int, int))
{
    return sum_of(body(e->discs, 'a', 'b', 'c'));
}
ELEMENTS_RUN(hanoi, sum_of_hanoi)

int main(int argc, char **argv)
{
    static const native_case_t cases[] = {
        {"sequence_for", sequence_make, NATIVE_ALL(sequence_for)},
        {"sequence_while", sequence_make, NATIVE_ALL(sequence_while)},
        {"hanoi", hanoi_make, NATIVE_ALL(hanoi)},
        {NULL, NULL, {NULL, NULL, NULL, NULL}},
    };
    return native_main(argc, argv, cases);
}
