// Coroutines by the million: C++20's. Each frame comes from operator new and holds the live bytes. memory_scale.h has
// the measurements.
#include "../bench.h"

#include <coroutine>
#include <exception>

using co_t = void; // what std::coroutine_handle::address() gives
#define IMPL "C++20 coroutine"

struct task {
    struct promise_type {
        task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
};
using co_entry_t = task (*)(uint64_t tag);

static void co_prepare() {}

BENCH_INLINE co_t *co_new(size_t, co_entry_t entry, size_t tag)
{
    return entry(tag).handle.address();
}

BENCH_INLINE void co_resume(co_t *co)
{
    std::coroutine_handle<>::from_address(co).resume();
}

BENCH_INLINE size_t co_copied(const co_t *)
{
    return 0;
}

BENCH_INLINE void co_destroy(co_t *co)
{
    std::coroutine_handle<>::from_address(co).destroy();
}

// Like COPYING_HOLDER; the coroutine's number is its parameter.
#define SCALE_HOLDER(bytes)                                                                                            \
    static task hold_##bytes(uint64_t tag)                                                                             \
    {                                                                                                                  \
        uint64_t live[(bytes) / 8];                                                                                    \
        for (size_t i = 0; i < (bytes) / 8; i++)                                                                       \
            live[i] = tag + i;                                                                                         \
        COPYING_USE(live);                                                                                             \
        for (;;) {                                                                                                     \
            co_await std::suspend_always{};                                                                            \
            COPYING_USE(live);                                                                                         \
            if (live[0] != tag || live[(bytes) / 8 - 1] != tag + (bytes) / 8 - 1)                                      \
                copying_wrong++;                                                                                       \
            if (copying_check_all)                                                                                     \
                copying_check_words(live, (bytes) / 8, tag);                                                           \
        }                                                                                                              \
    }
#define SCALE_ENTRY_POINT(bytes) hold_##bytes

#include "../memory_scale.h"
