// C++ coroutines as generators: the sum of a sequence, and a generator that calls itself. Both as a C++20 generator and
// as C++23's std::generator, as small as the standard allows. Producers are noinline: otherwise clang would fold the
// loops of producer and consumer into one.
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

// std::generator. However deep generators nest by elements_of, an element goes straight from the innermost generator to
// the consumer of the outermost, and a resume goes straight to the innermost. Without references, allocators and
// exceptions.
class generator23 {
public:
    struct promise_type;
    using handle_t = std::coroutine_handle<promise_type>;
    struct elements_of {
        generator23 &&nested;
    };
    struct to_the_outer {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(handle_t self) noexcept
        {
            promise_type &p = self.promise();
            if (!p.outer)
                return std::noop_coroutine();
            p.outermost->innermost = p.outer;
            return p.outer;
        }
        void await_resume() noexcept {}
    };
    struct to_the_nested;
    struct promise_type {
        uintptr_t value;
        promise_type *outermost = this;
        handle_t innermost = handle_t::from_promise(*this); // valid in the outermost generator
        handle_t outer;
        generator23 get_return_object() { return generator23(handle_t::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        to_the_outer final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(uintptr_t yielded) noexcept
        {
            outermost->value = yielded;
            return {};
        }
        to_the_nested yield_value(elements_of e) noexcept;
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    explicit generator23(handle_t made) : handle(made) {}
    generator23(generator23 &&other) noexcept : handle(std::exchange(other.handle, {})) {}
    ~generator23()
    {
        if (handle)
            handle.destroy();
    }
    bool next()
    {
        handle.promise().innermost.resume();
        return !handle.done();
    }
    uintptr_t value() const { return handle.promise().value; }

private:
    handle_t handle;
};

struct generator23::to_the_nested {
    generator23 nested;
    bool await_ready() { return false; }
    std::coroutine_handle<> await_suspend(handle_t self)
    {
        promise_type &inner = nested.handle.promise();
        inner.outer = self;
        inner.outermost = self.promise().outermost;
        inner.outermost->innermost = nested.handle;
        return nested.handle;
    }
    void await_resume() {}
};

generator23::to_the_nested generator23::promise_type::yield_value(elements_of e) noexcept
{
    return {std::move(e.nested)};
}

template <class G> BENCH_INLINE uintptr_t sum_of(G g)
{
    uintptr_t sum = 0;
    while (g.next())
        sum += g.value();
    return sum;
}

// ---- The sum of a sequence, by two equivalent loops ----

// The attribute places only the function that makes the frame. The compiler places the resumed part.
#define SEQUENCES(prefix, generator, pad)                                                                              \
    NATIVE_HOT(pad) generator prefix##_for_body_##pad(uintptr_t n)                                                     \
    {                                                                                                                  \
        for (; n != 0; --n)                                                                                            \
            co_yield n;                                                                                                \
    }                                                                                                                  \
    NATIVE_HOT(pad) generator prefix##_while_body_##pad(uintptr_t n)                                                   \
    {                                                                                                                  \
        while (n)                                                                                                      \
            co_yield n--;                                                                                              \
    }
SEQUENCES(sequence, generator, 0) SEQUENCES(sequence, generator, 16)
SEQUENCES(sequence, generator, 32) SEQUENCES(sequence, generator, 48)
SEQUENCES(sequence23, generator23, 0) SEQUENCES(sequence23, generator23, 16)
SEQUENCES(sequence23, generator23, 32) SEQUENCES(sequence23, generator23, 48)

template <class G> BENCH_INLINE uintptr_t sum_of_sequence(const elements_t *e, G (*body)(uintptr_t))
{
    return sum_of(body(e->number));
}
ELEMENTS_RUN(sequence_for, sum_of_sequence)
ELEMENTS_RUN(sequence_while, sum_of_sequence)
ELEMENTS_RUN(sequence23_for, sum_of_sequence)
ELEMENTS_RUN(sequence23_while, sum_of_sequence)

// ---- Hanoi: each call is a generator; its caller yields its elements again ----

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

#define HANOI23(pad)                                                                                                   \
    NATIVE_HOT(pad) generator23 hanoi23_body_##pad(int disc, int from, int to, int spare)                              \
    {                                                                                                                  \
        if (disc == 0)                                                                                                 \
            co_return;                                                                                                 \
        co_yield generator23::elements_of{hanoi23_body_##pad(disc - 1, from, spare, to)};                              \
        co_yield hanoi_move(disc, from, to);                                                                           \
        co_yield generator23::elements_of{hanoi23_body_##pad(disc - 1, spare, to, from)};                              \
    }
HANOI23(0) HANOI23(16) HANOI23(32) HANOI23(48)

template <class G> BENCH_INLINE uintptr_t sum_of_hanoi(const elements_t *e, G (*body)(int, int, int, int))
{
    return sum_of(body(e->discs, 'a', 'b', 'c'));
}
ELEMENTS_RUN(hanoi, sum_of_hanoi)
ELEMENTS_RUN(hanoi23, sum_of_hanoi)

int main(int argc, char **argv)
{
    static const native_case_t cases[] = {
        {"sequence_for", sequence_make, NATIVE_ALL(sequence_for)},
        {"sequence_while", sequence_make, NATIVE_ALL(sequence_while)},
        {"hanoi", hanoi_make, NATIVE_ALL(hanoi)},
        {"sequence23_for", sequence_make, NATIVE_ALL(sequence23_for)},
        {"sequence23_while", sequence_make, NATIVE_ALL(sequence23_while)},
        {"hanoi23", hanoi_make, NATIVE_ALL(hanoi23)},
        {NULL, NULL, {NULL, NULL, NULL, NULL}},
    };
    return native_main(argc, argv, cases);
}
