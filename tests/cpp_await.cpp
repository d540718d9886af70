// Promises of <aco/await.hpp>: awaitables of all kinds and senders, completed by the same task, other tasks and other
// threads; results, exceptions, and the end of a scope. C++20.
#include "cpp_task.h"

#include "aco/await.hpp"

#include <stdexcept>
#include <thread>
#include <tuple>

namespace {

namespace execution = aco::execution;

// ---- Awaitables ----

struct ready {
    int value;
    bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const { ADD_FAILURE(); }
    int await_resume() const { return value; }
};

// Calls start(handle) when it is awaited; returns what that returns.
template<class F>
struct suspends {
    F start;
    bool await_ready() const noexcept { return false; }
    auto await_suspend(std::coroutine_handle<> handle) { return start(handle); }
    int await_resume() const { return 7; }
};
template<class F>
suspends(F) -> suspends<F>;

// Promise: what is ready is returned, anywhere, without waiting.
TEST(Await, Ready)
{
    EXPECT_EQ(aco::await(ready{3}), 3);
    in_task([] { EXPECT_EQ(aco::await(ready{4}), 4); });
    static_assert(aco::awaitable<ready> && !aco::awaitable<int>);
}

// Promise: await_suspend() may return nothing, a bool or a handle, and may complete at once.
TEST(Await, KindsOfSuspending)
{
    in_task([] {
        EXPECT_EQ(aco::await(suspends{[](std::coroutine_handle<> handle) { handle.resume(); }}), 7);
        EXPECT_EQ(aco::await(suspends{[](std::coroutine_handle<> handle) { return handle.resume(), true; }}), 7);
        EXPECT_EQ(aco::await(suspends{[](std::coroutine_handle<>) { return false; }}), 7);
        EXPECT_EQ(aco::await(suspends{[](std::coroutine_handle<> handle) { return handle; }}), 7);
        EXPECT_EQ(aco::await(suspends{[](std::coroutine_handle<> handle) -> std::coroutine_handle<> {
                      handle.resume();
                      return std::noop_coroutine();
                  }}),
                  7);
        static_assert(std::is_void_v<decltype(aco::await(std::suspend_never()))>);
        aco::await(std::suspend_never());
    });
}

// Promise: another task may complete it; meanwhile others run.
TEST(Await, AnotherTask)
{
    in_task([] {
        std::coroutine_handle<> kept;
        int turns = 0;
        aco::task_group group;
        group.spawn([&] {
            for (turns = 0; turns < 3; turns++)
                aco::yield();
            kept.resume();
        });
        EXPECT_EQ(aco::await(suspends{[&](std::coroutine_handle<> handle) { kept = handle; }}), 7);
        EXPECT_EQ(turns, 3);
        group.wait();
    });
}

// Promise: another thread may complete it at any time, also before the task parks.
TEST(Await, AnotherThread)
{
    in_task([] {
        for (int i = 0; i < 200; i++) {
            std::thread other;
            int written = 0;
            const auto start = [&](std::coroutine_handle<> handle) {
                other = std::thread([&written, handle] {
                    written = 1;
                    handle.resume();
                });
                if (i % 2)
                    other.join();
            };
            EXPECT_EQ(aco::await(suspends<decltype(start)>{start}), 7);
            EXPECT_EQ(written, 1);
            if (other.joinable())
                other.join();
        }
    });
}
} // namespace
