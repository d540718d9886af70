// Promises of <aco/await.hpp>, <aco/sender.hpp> and <aco/async.hpp>: awaitables of all kinds and senders, completed by
// the same task, other tasks and other threads; results, exceptions, and the end of a scope. C++20.
#include "cpp_task.h"
#include "sanitizers.h"

#include "aco/async.hpp"

#include <array>
#include <stdexcept>
#include <thread>
#include <tuple>
#if UNDER_ASAN
#include <sanitizer/asan_interface.h>
#endif

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

struct by_member {
    ready operator co_await() && { return {1}; }
    ready operator co_await() & { return {2}; }
};
struct by_function {};
ready operator co_await(by_function) { return {3}; }

struct gives_reference : std::suspend_never {
    int &number;
    explicit gives_reference(int &n) : number(n) {}
    int &await_resume() const noexcept { return number; }
};
struct gives_unique : std::suspend_never {
    unique owner = std::make_unique<int>(5);
    unique &&await_resume() noexcept { return std::move(owner); }
};

// Promise: operator co_await is found in both forms, lvalues are awaited as such; results keep their category, except
// rvalue references.
TEST(Await, OperatorsAndResults)
{
    by_member m;
    int number = 0;
    EXPECT_EQ(aco::await(by_member()), 1);
    EXPECT_EQ(aco::await(m), 2);
    EXPECT_EQ(aco::await(by_function()), 3);
    aco::await(gives_reference(number)) = 4;
    EXPECT_EQ(number, 4);
    static_assert(std::is_same_v<decltype(aco::await(gives_unique())), unique>);
    EXPECT_EQ(*aco::await(gives_unique()), 5);
}

struct throws_later : std::suspend_never {
    void await_resume() const { throw std::runtime_error("resumed"); }
};
struct not_ready_and_throws : std::suspend_always {
    void await_suspend(std::coroutine_handle<>) const { throw std::runtime_error("suspended"); }
};

// Promise: exceptions of the awaitable come out. Outside of tasks what is not ready is refused before it is started.
TEST(Await, Exceptions)
{
    in_task([] {
        EXPECT_EQ(thrown_by([] { aco::await(throws_later()); }), "resumed");
        EXPECT_EQ(thrown_by([] { aco::await(not_ready_and_throws()); }), "suspended");
        try {
            throw 1;
        } catch (int) { // a wait in a handler
            EXPECT_EQ(aco::await(suspends{[](std::coroutine_handle<> handle) { handle.resume(); }}), 7);
        }
    });
    EXPECT_EQ(thrown_by([] { aco::await(not_ready_and_throws()); }), "error " + std::to_string(EPERM));
    aco_share_stack_t *stack = aco_share_stack_new(0);
    const auto on_share_stack = [] {
        const std::string refused = "error " + std::to_string(EINVAL);
        EXPECT_EQ(thrown_by([] { aco::await(not_ready_and_throws()); }), UNDER_ASAN ? "suspended" : refused);
    };
    aco::spawn_with(on_share_stack, &aco::options().on(stack)).detach();
    aco::run();
    aco_share_stack_destroy(stack);
}

// ---- Stopping ----

// An awaitable that completes when it is asked to stop, with a value or as stopped.
struct stoppable {
    bool has_value = false;
    struct resume {
        stoppable *itself;
        void operator()() const noexcept { itself->next.resume(); }
    };
    std::optional<aco::await_stop_token::callback_type<resume>> callback;
    std::coroutine_handle<> next;
    bool await_ready() const noexcept { return false; }
    template<class Promise>
    void await_suspend(std::coroutine_handle<Promise> handle)
    {
        next = has_value ? std::coroutine_handle<>(handle) : handle.promise().unhandled_stopped();
        callback.emplace(handle.promise().get_stop_token(), resume{this});
    }
    int await_resume() const noexcept { return 9; }
};

// Promise: the end of a scope requests stop. A value that comes all the same is returned; else the await throws.
TEST(Await, EndOfScope)
{
    in_task([] {
        aco::deadline over(1ms);
        EXPECT_EQ(thrown_by([] { aco::await(stoppable()); }), by_time);
        EXPECT_EQ(thrown_by([] { aco::await(stoppable()); }), by_time); // in an ended scope, too
        EXPECT_EQ(aco::await(stoppable{true, {}, {}}), 9);
    });
    in_task([] {
        aco::scope scope;
        auto other = aco::spawn([&] { scope.cancel(); });
        EXPECT_EQ(thrown_by([] { aco::await(stoppable()); }), by_hand);
        aco::shield shield;
        other.join();
        EXPECT_EQ(aco::await(suspends{[](std::coroutine_handle<> handle) { handle.resume(); }}), 7);
    });
}

// Promise: what takes no token is waited for, whatever ends.
TEST(Await, NotStoppable)
{
    in_task([] {
        std::thread other;
        const auto start = [&](std::coroutine_handle<> handle) { other = std::thread([handle] { handle.resume(); }); };
        aco::scope scope;
        scope.cancel();
        EXPECT_EQ(aco::await(suspends<decltype(start)>{start}), 7);
        EXPECT_EQ(thrown_by([] { aco::check_cancelled(); }), by_hand);
        other.join();
    });
}

#ifdef __cpp_lib_jthread
// Promise: a std::stop_token stops it too, from any thread.
TEST(Await, StopToken)
{
    in_task([] {
        std::stop_source source;
        std::jthread other([&] { source.request_stop(); });
        EXPECT_EQ(thrown_by([&] { aco::await(stoppable(), source.get_token()); }), by_hand);
        EXPECT_EQ(thrown_by([&] { aco::await(stoppable(), source.get_token()); }), by_hand); // requested before
        EXPECT_EQ(aco::await(ready{2}, source.get_token()), 2);
    });
}
#endif

// ---- Senders ----

template<class F, class Receiver>
struct operation_of {
    F start_;
    Receiver receiver_;
    void start() & noexcept { start_(std::move(receiver_)); }
};
// When it is started, start(receiver) is called.
template<class F, class... Signatures>
struct test_sender {
    using sender_concept = execution::sender_t;
    using completion_signatures = execution::completion_signatures<Signatures...>;
    F start_;
    template<class Receiver>
    operation_of<F, Receiver> connect(Receiver receiver) &&
    {
        return {std::move(start_), std::move(receiver)};
    }
};
template<class... Signatures, class F>
test_sender<F, Signatures...> sender_of(F start)
{
    return {std::move(start)};
}

// Promise: a sender's values, errors and stop come out as results and exceptions.
TEST(Await, Senders)
{
    in_task([] {
        EXPECT_EQ(aco::await(sender_of<execution::set_value_t(int)>(
                      [](auto receiver) { std::move(receiver).set_value(3); })),
                  3);
        const auto [number, text] = aco::await(sender_of<execution::set_value_t(int, const char *)>(
            [](auto receiver) { std::move(receiver).set_value(4, "four"); }));
        EXPECT_EQ(number, 4);
        EXPECT_STREQ(text, "four");
        aco::await(sender_of<execution::set_error_t(int), execution::set_value_t()>(
            [](auto receiver) { std::move(receiver).set_value(); }));
        EXPECT_THROW(aco::await(sender_of<execution::set_error_t(int)>(
                         [](auto receiver) { std::move(receiver).set_error(4); })),
                     int);
        EXPECT_THROW(aco::await(sender_of<execution::set_error_t(std::error_code)>([](auto receiver) {
                         std::move(receiver).set_error(std::make_error_code(std::errc::broken_pipe));
                     })),
                     std::system_error);
        EXPECT_EQ(thrown_by([] {
                      aco::await(sender_of<execution::set_error_t(std::exception_ptr)>([](auto receiver) {
                          std::move(receiver).set_error(std::make_exception_ptr(std::runtime_error("failed")));
                      }));
                  }),
                  "failed");
        EXPECT_EQ(thrown_by([] {
                      aco::await(sender_of<execution::set_stopped_t()>(
                          [](auto receiver) { std::move(receiver).set_stopped(); }));
                  }),
                  by_hand);
    });
}

// Promise: a sender completes on another thread; the end of the scope reaches it by its receiver's environment.
TEST(Await, SendersElsewhere)
{
    in_task([] {
        std::thread other;
        aco::deadline over(1ms);
        const auto start = [&](auto receiver) {
            other = std::thread([receiver = std::move(receiver)]() mutable {
                const auto token = receiver.get_env().query(execution::get_stop_token_t());
                while (!token.stop_requested())
                    std::this_thread::yield();
                std::move(receiver).set_stopped();
            });
        };
        EXPECT_EQ(thrown_by([&] { aco::await(sender_of<execution::set_stopped_t()>(start)); }), by_time);
        other.join();
    });
}

// ---- Tasks as senders ----

// Promise: a task is a sender: its result, its exception, and the end of the awaiting scope, which ends its waits.
TEST(Sender, Task)
{
    in_task([] {
        EXPECT_EQ(*aco::await(aco::as_sender([] { return aco::yield(), std::make_unique<int>(2); })), 2);
        aco::await(aco::as_sender([] { aco::sleep_for(1ns); }));
        EXPECT_EQ(thrown_by([] { aco::await(aco::as_sender([]() -> int { throw std::runtime_error("task"); })); }),
                  "task");
        aco::deadline over(1ms);
        EXPECT_EQ(thrown_by([] { aco::await(aco::as_sender([] { aco::sleep_for(1h); })); }), by_time);
    });
}

// Promise: schedule() completes in a task of the scheduler's thread, started by any thread.
TEST(Sender, Scheduler)
{
    aco::scheduler_opening opening;
    const aco::scheduler here = opening.get();
    EXPECT_EQ(here, opening.get());
    in_task([&] {
        const std::thread::id thread = std::this_thread::get_id();
        const aco_t *task = aco_current_task();
        std::thread other;
        const auto start = [&](std::coroutine_handle<> handle) {
            other = std::thread([&, handle] {
                aco::spawn([&, handle] {
                    aco::await(here.schedule());
                    handle.resume();
                }).detach();
                aco::run();
            });
        };
        EXPECT_EQ(aco::await(suspends<decltype(start)>{start}), 7);
        other.join();
        aco::await(here.schedule());
        EXPECT_EQ(std::this_thread::get_id(), thread);
        EXPECT_EQ(aco_current_task(), task);
        EXPECT_EQ(here.schedule().get_env().query(execution::get_completion_scheduler_t<execution::set_value_t>()),
                  here);
    });
}

#ifdef __cpp_lib_jthread
// Promise: a stop token ends a scope, from any thread.
TEST(Sender, StopScope)
{
    std::jthread worker([](std::stop_token stop) {
        in_task([&] {
            EXPECT_EQ(thrown_by([&] {
                          aco::stop_scope scope(stop);
                          aco::sleep_for(1h);
                      }),
                      by_hand);
            aco::yield();
        });
    });
    worker.request_stop();
}
#endif

// ---- Stackless coroutines ----

aco::async<int> number_after(int n, std::chrono::milliseconds time)
{
    co_await aco::async_sleep_for(time);
    co_return n;
}

aco::async<> add(std::string &to, char letter, int times)
{
    for (int i = 0; i < times; i++) {
        to += letter;
        co_await aco::async_yield();
    }
}

// Promise: however many members can run, other tasks have a turn when the members have had 32.
TEST(Async, TurnsOfOthers)
{
    in_task([] {
        int turns = 0, before = 0;
        const auto member = [&]() -> aco::async<> {
            turns++;
            co_await aco::async_yield();
        };
        auto task = aco::spawn([&] { before = turns; });
        aco::async_group group;
        for (int i = 0; i < 10000; i++)
            group.spawn(member());
        group.wait();
        EXPECT_EQ(turns, 10000);
        EXPECT_EQ(before, 32);
        task.join();
    });
}

aco::async<int> depth(int calls)
{
    if (calls == 0)
        co_return 0;
    co_return 1 + co_await depth(calls - 1);
}

// Promise: calls between coroutines take no stack, however many or deep they are and however the compiler optimises;
// and they are no turns.
TEST(Async, CallsTakeNoStack)
{
    in_task([] {
        constexpr int calls = 20000;
        int turns = 0, sum = 0;
        auto task = aco::spawn([&] { turns++; });
        const auto member = [&]() -> aco::async<> {
            for (int i = 0; i < calls; i++)
                sum += co_await depth(1);
            sum += co_await depth(calls);
        };
        aco::async_group group;
        group.spawn(member());
        group.wait();
        EXPECT_EQ(sum, 2 * calls);
        EXPECT_EQ(turns, 0);
        task.join();
    });
}

// Promise: members whose waits are over before their task parks do not keep other tasks from running.
TEST(Async, TurnsOfOthersBetweenShortWaits)
{
    in_task([] {
        constexpr int waits = 20;
        int turns = 0;
        const auto others = [&] {
            for (turns = 0; turns < waits / 2; turns++)
                aco::yield();
        };
        const auto sleeps = [&](int &before) -> aco::async<> {
            for (int i = 0; i < waits; i++)
                co_await aco::async_sleep_for(0ms);
            before = turns;
        };
        const auto is_posted = [&](int &before) -> aco::async<> {
            for (int i = 0; i < waits; i++)
                co_await suspends{[](std::coroutine_handle<> handle) { std::thread([=] { handle.resume(); }).join(); }};
            before = turns;
        };
        for (const bool by_thread : {false, true}) {
            int before = 0;
            auto task = aco::spawn(others);
            aco::async_group group;
            group.spawn(by_thread ? is_posted(before) : sleeps(before));
            group.wait();
            EXPECT_EQ(before, waits / 2);
            task.join();
        }
    });
}

// Promise: members take turns, with each other and with tasks; they await each other, awaitables, senders and tasks.
TEST(Async, Members)
{
    in_task([] {
        std::string order;
        auto task = aco::spawn([&] {
            for (int i = 0; i < 2; i++) {
                order += 't';
                aco::yield();
            }
            return 4;
        });
        aco::async_group group;
        group.spawn(add(order, 'a', 3));
        group.spawn(add(order, 'b', 2));
        EXPECT_EQ(group.size(), 2u);
        group.spawn(add(order, 'c', 40)); // the first 32 turns end in the middle of these
        group.wait();
        EXPECT_EQ(order.substr(0, 7), "abcabca");
        EXPECT_EQ(std::count(order.begin(), order.end(), 't'), 1) << order;
        EXPECT_LT(order.find('t'), 40u) << order;
        int sum = 0;
        const auto all = [&](int start) -> aco::async<> {
            sum = start + co_await number_after(2, 1ms);
            sum += co_await ready{3};
            sum += co_await task;
            sum += co_await aco::as_sender([] { return aco::yield(), 5; });
            sum += co_await suspends{[](std::coroutine_handle<> handle) { handle.resume(); }};
        };
        group.spawn(all(1));
        group.wait();
        EXPECT_EQ(sum, 1 + 2 + 3 + 4 + 5 + 7);
        EXPECT_EQ(aco::await(number_after(8, 0ms)), 8);
    });
}

// Promise: the member that is due first goes on first; equal ones in their order.
TEST(Async, Sleeps)
{
    in_task([] {
        std::vector<int> order;
        const auto later = [&](int n, aco::monotonic_clock::time_point when) -> aco::async<> {
            co_await aco::async_sleep_until(when);
            order.push_back(n);
        };
        const auto now = aco::monotonic_clock::now();
        aco::async_group group;
        group.spawn(later(3, now + 2ms));
        group.spawn(later(1, now + 1ms));
        group.spawn(later(2, now + 1ms));
        group.wait();
        EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
    });
}

// Promise: completions come from any thread, also before the task parks, and members go on in their task.
TEST(Async, OtherThreads)
{
    in_task([] {
        const std::thread::id here = std::this_thread::get_id();
        std::vector<std::thread> threads;
        int done = 0;
        const auto start = [&](std::coroutine_handle<> handle) {
            threads.emplace_back([handle] { handle.resume(); });
        };
        const auto member = [&]() -> aco::async<> {
            co_await suspends<decltype(start)>{start};
            EXPECT_EQ(std::this_thread::get_id(), here);
            done++;
        };
        for (int i = 0; i < 50; i++) {
            aco::async_group group;
            group.spawn(member());
            group.spawn(member());
            group.wait();
        }
        EXPECT_EQ(done, 100);
        for (std::thread &t : threads)
            t.join();
    });
}

// Promise: a member that throws stops the others, and wait() throws what it threw. The end of a scope stops all.
TEST(Async, Failures)
{
    in_task([] {
        int stopped = 0;
        const auto waits = [&]() -> aco::async<> {
            pinned local; // is destroyed
            try {
                co_await aco::async_sleep_for(1h);
            } catch (const aco::cancelled &) {
                stopped++;
                throw;
            }
        };
        const auto waits_for_an_awaitable = [&]() -> aco::async<> {
            try {
                co_await stoppable();
            } catch (const aco::cancelled &) {
                stopped++;
            }
        };
        const auto throws = []() -> aco::async<> {
            co_await aco::async_yield();
            throw std::runtime_error("member");
        };
        {
            aco::async_group group;
            group.spawn(waits());
            group.spawn(waits_for_an_awaitable());
            group.spawn(throws());
            EXPECT_EQ(thrown_by([&] { group.wait(); }), "member");
            EXPECT_EQ(stopped, 2);
        }
        {
            aco::async_group left; // without wait()
            left.spawn(waits());
        }
        EXPECT_EQ(thrown_by([&] { aco::await(throws()); }), "member");
        aco::deadline over(1ms);
        aco::async_group group;
        group.spawn(waits());
        EXPECT_EQ(thrown_by([&] { group.wait(); }), by_time);
        EXPECT_EQ(thrown_by([&] { aco::await(number_after(1, 1h)); }), by_time);
    });
    EXPECT_EQ(thrown_by([] { aco::async_group group; }), "error " + std::to_string(EPERM));
}

aco::async<const void *> frame_address()
{
    const char local = 0;
    const void *volatile at = &local;
    co_await aco::async_yield(); // so `local` is in the frame
    co_return at;
}

// Promise: a frame that has ended is kept for the next one, and is nobody else's; ASan sees that it has ended.
TEST(Async, Frames)
{
    in_task([] {
        [[maybe_unused]] const void *frame = aco::await(frame_address());
#if UNDER_ASAN
        EXPECT_TRUE(__asan_address_is_poisoned(frame));
#elif !SANITIZED
        const auto at = reinterpret_cast<std::uintptr_t>(frame);
        std::vector<std::unique_ptr<char[]>> others;
        for (std::size_t size = 8; size < 600; size += 8) {
            others.push_back(std::make_unique<char[]>(size));
            const auto other = reinterpret_cast<std::uintptr_t>(others.back().get());
            EXPECT_FALSE(other <= at && at < other + size);
        }
        EXPECT_EQ(aco::await(frame_address()), frame);
#endif
    });
}

#ifdef ALIGNED_FRAMES
aco::async<std::uintptr_t> aligned_address()
{
    alignas(64) const char local = 0;
    const void *volatile at = &local;
    co_await aco::async_yield(); // so `local` is in the frame
    co_return reinterpret_cast<std::uintptr_t>(at);
}

// Promise: with -fcoro-aligned-allocation (clang) variables of a coroutine have the alignment that they ask for.
TEST(Async, AlignedFrames)
{
    in_task([] {
        for (int i = 0; i < 10; i++) {
            EXPECT_EQ(aco::await(aligned_address()) % 64, 0u);
            aco::await(frame_address());
        }
    });
}
#endif

aco::async<int> of_size(int n)
{
    std::array<char, 1000> local;
    local.fill(static_cast<char>(n));
    co_await aco::async_yield();
    co_return local[local.size() - 1];
}

// Promise: frames may end on another thread than they began on, more of them than are kept, and after either has ended.
TEST(Async, FramesOfOtherThreads)
{
    std::vector<aco::async<int>> from_here, from_there;
    const auto make = [](std::vector<aco::async<int>> &to) {
        for (int i = 0; i < 100; i++)
            to.push_back(i % 2 ? of_size(i) : number_after(i, 0ms));
    };
    const auto run = [](std::vector<aco::async<int>> &from) {
        in_task([&] {
            for (int i = 0; i < 90; i++)
                EXPECT_EQ(aco::await(std::move(from[static_cast<std::size_t>(i)])), i);
            from.clear(); // some have never run
        });
    };
    make(from_here);
    std::thread([&] {
        make(from_there);
        run(from_here);
    }).join();
    run(from_there);
}

} // namespace
