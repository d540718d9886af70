// The switch matrix: a C++20 coroutine as a generator. It is stackless: its frame is on the heap, a resume is a call,
// and it cannot yield from a function that it calls.
#include "../bench.h"

#include <coroutine>
#include <exception>

struct generator {
    struct promise_type {
        uintptr_t in, out;
        generator get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(uintptr_t value) noexcept
        {
            out = value;
            return {};
        }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
};

// co_await this_promise{}: the running coroutine's promise, without suspending.
struct this_promise {
    generator::promise_type *promise;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<generator::promise_type> handle) noexcept
    {
        promise = &handle.promise();
        return false;
    }
    generator::promise_type *await_resume() const noexcept { return promise; }
};

using sw_t = void; // what std::coroutine_handle::address() gives

BENCH_INLINE void sw_resume(sw_t *co)
{
    std::coroutine_handle<>::from_address(co).resume();
}

BENCH_INLINE uintptr_t sw_send(sw_t *co, uintptr_t value)
{
    auto handle = std::coroutine_handle<generator::promise_type>::from_address(co);
    handle.promise().in = value;
    handle.resume();
    return handle.promise().out;
}

#define MATRIX_OWN_BODIES
#include "../matrix.h"

// One coroutine function for each placement. The attribute places only the function that makes the frame. The compiler
// places the resumed part.
template <int placement> __attribute__((noinline)) static generator flat()
{
    for (;;)
        co_await std::suspend_always{};
}

template <int placement> __attribute__((noinline)) static generator value()
{
    generator::promise_type *self = co_await this_promise{};
    for (uintptr_t sum = 0;;) {
        sum += self->in;
        co_yield sum;
    }
}

static void sw_prepare(unsigned) {}

static sw_t *matrix_new(matrix_kind_t kind, unsigned placement, size_t)
{
    static generator (*const flats[])() = {flat<0>, flat<1>, flat<2>, flat<3>};
    static generator (*const values[])() = {value<0>, value<1>, value<2>, value<3>};
    return (kind == MATRIX_VALUE ? values : flats)[placement]().handle.address();
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "nested") == 0) {
        fprintf(stderr, "a stackless coroutine cannot yield from a function that it calls\n");
        return 1;
    }
    return matrix_main(argc, argv);
}
