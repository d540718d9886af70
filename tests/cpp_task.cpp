// Promises of <aco/task.hpp>: tasks, exceptions, scopes and groups in C++; cpp_task_sync.cpp has the rest. Compiled as
// C++17 to C++23, with ACO_DEBUG 0 and 1.
#include "cpp_task.h"
#include "death.h"
#include "sanitizers.h"

#include <algorithm>
#include <array>
#include <shared_mutex>
#include <stdexcept>

#include <pthread.h>

namespace {

// ---- Tasks ----

// Promise: a task returns what its function does: nothing, small values, large ones, ones that can only be moved.
TEST(Tasks, Results)
{
    in_task([] {
        int ran = 0;
        auto nothing = aco::spawn([&ran] { ++ran; });
        static_assert(std::is_same_v<decltype(nothing), aco::task<>>);
        auto flag = aco::spawn([] { return true; });
        auto small = aco::spawn([] { return -7; });
        auto real = aco::spawn([] { return 0.5f; });
        auto word = aco::spawn([] { return SIZE_MAX; });
        auto pointer = aco::spawn([&ran] { return &ran; });
        auto text = aco::spawn([] { return std::string(1000, 'x'); });
        auto moved = aco::spawn([] { return std::make_unique<int>(5); });
        auto kept = aco::spawn([] { return pinned(6); });
        nothing.join();
        EXPECT_EQ(ran, 1);
        EXPECT_TRUE(flag.join());
        EXPECT_EQ(small.join(), -7);
        EXPECT_EQ(real.join(), 0.5f);
        EXPECT_EQ(word.join(), SIZE_MAX);
        EXPECT_EQ(pointer.join(), &ran);
        EXPECT_EQ(text.join(), std::string(1000, 'x'));
        EXPECT_EQ(*moved.join(), 5);
        EXPECT_EQ(kept.join().number, 6);
        EXPECT_FALSE(kept.joinable());
    });
}

// Promise: run() returns when no task is left, and throws what aco_run() fails with.
TEST(Tasks, Run)
{
    int turns = 0;
    for (int i = 0; i < 3; i++)
        aco::spawn([&turns] {
            aco::yield();
            turns++;
        });
    aco::run();
    EXPECT_EQ(turns, 3);
    in_task([] { EXPECT_EQ(thrown_by([] { aco::run(); }), "error " + std::to_string(EPERM)); });
}

// Promise: captures are moved in, live while the function runs, and are destroyed when it ends, before the join.
TEST(Tasks, Captures)
{
    in_task([] {
        auto large = std::make_shared<int>(1);
        std::array<int, 100> many{};
        many[99] = 9;
        auto task = aco::spawn([large, many, p = pinned(3)] {
            aco::yield();
            return many[99] + p.number;
        });
        EXPECT_EQ(large.use_count(), 2);
        aco::yield();
        EXPECT_EQ(large.use_count(), 2);
        aco::yield();
        EXPECT_TRUE(task.done());
        EXPECT_EQ(large.use_count(), 1);
        EXPECT_EQ(pinned::alive, 0);
        EXPECT_EQ(task.join(), 12);
        auto text = aco::spawn([large] { return std::string(*large == 1 ? "one" : ""); });
        aco::yield();
        EXPECT_EQ(large.use_count(), 1);
        EXPECT_EQ(text.join(), "one");
        EXPECT_EQ(aco::spawn([p = std::make_unique<int>(4)] { return *p; }).join(), 4);
        struct functor {
            int operator()() && { return 8; }
        };
        EXPECT_EQ(aco::spawn(functor()).join(), 8);
        EXPECT_EQ(aco::spawn(+[] { return 9; }).join(), 9);
    });
}

// Promise: join() throws what left the function, with and without a result; the task may have ended before or not.
TEST(Tasks, ExceptionsThroughJoin)
{
    in_task([] {
        for (int early = 0; early < 2; ++early) {
            auto none = aco::spawn([] { throw std::runtime_error("none"); });
            auto small = aco::spawn([]() -> int { throw std::runtime_error("small"); });
            auto large = aco::spawn([]() -> std::string { throw std::runtime_error("large"); });
            if (early)
                aco::yield();
            EXPECT_EQ(thrown_by([&] { none.join(); }), "none");
            EXPECT_EQ(thrown_by([&] { small.join(); }), "small");
            EXPECT_EQ(thrown_by([&] { large.join(); }), "large");
        }
    });
}

// Promise: handles move; assignment detaches what was there; an empty one fails.
TEST(Tasks, Handles)
{
    in_task([] {
        int ended = 0;
        std::vector<aco::task<std::string>> all;
        for (int i = 0; i < 10; ++i)
            all.push_back(aco::spawn([i, &ended] {
                aco::yield();
                ++ended;
                return std::to_string(i);
            }));
        all[3] = std::move(all[4]);
        EXPECT_FALSE(all[4].joinable());
        EXPECT_EQ(thrown_by([&] { all[4].join(); }), "error " + std::to_string(EINVAL));
        EXPECT_STREQ(aco_error_message(), "aco::task::join: the handle is empty");
        EXPECT_EQ(thrown_by([&] { all[4].join_for(0s); }), "error " + std::to_string(EINVAL));
        all.erase(all.begin() + 4);
        std::string text;
        for (auto &task : all)
            text += task.join();
        EXPECT_EQ(text, "012456789");
        EXPECT_EQ(ended, 10);
        aco::task<> empty;
        empty.detach();
        aco::task<int> dropped = aco::spawn([] { return 1; });
        aco::yield();
        dropped = aco::spawn([] { return 2; });
        EXPECT_EQ(dropped.join(), 2);
    });
}

// Promise: options are the C call's; ACO_DETACHED is refused.
TEST(Tasks, Options)
{
    in_task([] {
        auto task = aco::spawn([] { return std::string(aco_name(aco_co())); }, aco::options().named("worker"));
        EXPECT_EQ(task.join(), "worker");
        EXPECT_EQ(thrown_by([] { aco::spawn([] {}, aco::options().with(ACO_DETACHED)); }),
                  "error " + std::to_string(EINVAL));
        EXPECT_EQ(thrown_by([] { aco::spawn([p = pinned()] {}, aco::options().with(1u << 30)); }),
                  "error " + std::to_string(EINVAL));
        EXPECT_EQ(thrown_by([] { aco::spawn([p = pinned()] { return p.number + 0L; },
                                            aco::options().with(1u << 30)); }),
                  "error " + std::to_string(EINVAL));
    });
}

// Promise: a handle that is destroyed unjoined leaves its task to itself, and its result is destroyed.
TEST(Tasks, Detached)
{
    int ended = 0;
    in_task([&ended] {
        aco::spawn([&ended] {
            aco::yield();
            ++ended;
            return pinned(1);
        });
        aco::spawn([&ended] { ++ended; });
        aco::spawn([] { throw aco::cancelled(ECANCELED); });           // is no failure
        aco::spawn([]() -> pinned { throw aco::cancelled(ECANCELED); });
        auto cancelled = aco::spawn([] { throw aco::cancelled(ECANCELED); });
        auto finished = aco::spawn([] { return pinned(2); });
        aco::yield();
        EXPECT_EQ(pinned::alive, 1);
    });
    EXPECT_EQ(ended, 2);
}

// Promise: a task that has ended can be joined after aco_run(); a wait there fails.
TEST(Tasks, JoinedByTheRootContext)
{
    auto task = aco::spawn([] { return std::string("late"); });
    auto fails = aco::spawn([] { throw std::runtime_error("late too"); });
    EXPECT_EQ(thrown_by([&] { task.join(); }), "error " + std::to_string(EPERM));
    EXPECT_EQ(aco_run(), 0);
    EXPECT_EQ(task.join(), "late");
    EXPECT_EQ(thrown_by([&] { fails.join(); }), "late too");
}

// Promise: join with a limit.
TEST(Tasks, JoinWithLimit)
{
    in_task([] {
        aco::event go;
        auto none = aco::spawn([&go] { go.wait(); });
        auto text = aco::spawn([&go] { return go.wait(), std::string("went"); });
        EXPECT_FALSE(none.join_for(1ms));
        EXPECT_FALSE(none.join_until(std::chrono::system_clock::now()));
        EXPECT_EQ(text.join_for(0s), std::nullopt);
        EXPECT_TRUE(none.joinable());
        go.set();
        EXPECT_TRUE(none.join_until(std::chrono::steady_clock::now() + 1h));
        EXPECT_EQ(text.join_for(std::chrono::hours::max()), "went");
        EXPECT_EQ(thrown_by([] { aco::spawn([] { throw std::runtime_error("x"); }).join_for(1h); }), "x");
    });
}

// ---- Exceptions in many tasks at once ----

// Promise: tasks that wait inside catch blocks, by this header's calls or C's, each keep their own exceptions.
TEST(Tasks, WaitInsideCatchBlocks)
{
    in_task([] {
        aco::task_group group;
        aco::channel<int> channel;
        for (int i = 0; i < 8; ++i)
            group.spawn([i] {
                for (int round = 0; round < 4; ++round)
                    try {
                        throw std::runtime_error(std::to_string(i));
                    } catch (const std::exception &e) {
                        if ((i + round) % 4 == 0)
                            aco::yield();
                        else if ((i + round) % 4 == 1)
                            aco::sleep_for(std::chrono::milliseconds(8 - i));
                        else if ((i + round) % 4 == 2)
                            aco_sleep((8 - i) * ACO_MILLISECOND);
                        EXPECT_EQ(e.what(), std::to_string(i));
                        EXPECT_EQ(thrown_by([] { throw; }), std::to_string(i));
                    }
                EXPECT_FALSE(std::current_exception());
            });
        group.spawn([&channel] {
            try {
                throw std::runtime_error("sender");
            } catch (...) {
                channel.send(1);
                EXPECT_EQ(thrown_by([] { throw; }), "sender");
            }
        });
        aco::sleep_for(2ms);
        EXPECT_EQ(channel.receive(), 1);
        group.wait();
    });
}

// Promise: a destructor that an exception runs may wait; other tasks do not see that exception.
TEST(Tasks, WaitWhileUnwinding)
{
    in_task([] {
        struct waits {
            ~waits()
            {
                EXPECT_EQ(std::uncaught_exceptions(), 1);
                aco_sleep(ACO_MILLISECOND);
                EXPECT_EQ(std::uncaught_exceptions(), 1);
            }
        };
        auto other = aco::spawn([] {
            for (int i = 0; i < 3; ++i) {
                EXPECT_EQ(std::uncaught_exceptions(), 0);
                EXPECT_EQ(thrown_by([] { throw std::runtime_error("other"); }), "other");
                aco::yield();
            }
        });
        EXPECT_EQ(thrown_by([] {
                      waits w;
                      throw std::runtime_error("mine");
                  }),
                  "mine");
        other.join();
    });
}

// Promise: the handle of a task on memory of the caller's waits for the task, also while an exception or a cancelling
// passes by. Then nothing uses the memory any more.
TEST(Tasks, OnMemory)
{
    in_task([] {
        std::vector<char> memory(64 << 10);
        const auto on_it = aco::options().in(memory.data(), memory.size());
        const auto reuse = [&] { std::fill(memory.begin(), memory.end(), static_cast<char>(0xdd)); };
        int ran = 0;
        const auto turns = [&ran] {
            aco::yield();
            ++ran;
        };
        for (int i = 0; i < 3; ++i) {
            aco::spawn(turns, on_it).join();
            reuse();
            aco::yield();
        }
        EXPECT_EQ(ran, 3);
        { auto task = aco::spawn(turns, on_it); }
        reuse();
        EXPECT_EQ(ran, 4);
        aco::spawn([p = pinned(5), turns]() -> std::string { return turns(), std::string(1000, 'x'); }, on_it).detach();
        reuse();
        EXPECT_EQ(ran, 5);
        EXPECT_EQ(thrown_by([&] {
                      auto task = aco::spawn(turns, on_it);
                      throw std::runtime_error("passes");
                  }),
                  "passes");
        reuse();
        EXPECT_FALSE(aco::try_for(0s, [&] {
            auto task = aco::spawn(turns, on_it);
            aco::sleep_for(1h);
        }));
        reuse();
        auto task = aco::spawn(turns, on_it);
        task = aco::task<>();
        reuse();
        EXPECT_EQ(ran, 8);
        aco::task_group group;
        group.spawn(turns, on_it);
        group.wait();
        reuse();
        aco::yield();
    });
}

// A callable whose end changes errno and the message.
struct noisy {
    char large[32] = {};
    noisy() = default;
    noisy(noisy &&) noexcept {}
    ~noisy()
    {
        aco_join(nullptr, nullptr);
        errno = EBADF;
    }
};
struct noisy_task : noisy {
    void operator()() {}
};
struct noisy_with_result : noisy {
    std::string operator()() { return ""; }
};

// Promise: why a call failed is told, whatever the callable's destructor does.
TEST(Tasks, NoisyCallables)
{
    aco::options wrong;
    wrong.flags = 1u << 30;
    const auto expect_unknown_flags = [](call f) {
        try {
            f();
            ADD_FAILURE();
        } catch (const aco::error &e) {
            EXPECT_EQ(e.code().value(), EINVAL);
            EXPECT_NE(std::string(e.what()).find("unknown flags"), std::string::npos) << e.what();
        }
    };
    const auto expect = [&](auto f) { expect_unknown_flags(call(&f)); };
    expect([&] { aco::spawn(noisy_task(), wrong); });
    expect([&] { aco::spawn(noisy_with_result(), wrong); });
    in_task([&] {
        aco::task_group group;
        expect([&] { group.spawn(noisy_task(), wrong); });
        group.cancel();
        EXPECT_FALSE(group.spawn(noisy_task()));
        group.wait();
    });
}

// Promise: a member's errors in C are those in C++, whatever destructors leave in errno.
TEST(Groups, ErrorsInC)
{
    in_task([] {
        aco::task_group failing(ACO_KEEP_GOING), cancelling(ACO_KEEP_GOING);
        cancelling.spawn([n = noisy()] { throw aco::cancelled(ETIMEDOUT); });
        EXPECT_EQ(thrown_by([&] { cancelling.wait(); }), by_time);
        EXPECT_EQ(cancelling.native_handle()->error, ETIMEDOUT);
        failing.spawn([n = noisy()] { throw std::runtime_error("f"); });
        EXPECT_EQ(thrown_by([&] { failing.wait(); }), "f");
        EXPECT_EQ(failing.native_handle()->error, EINVAL);
    });
}

#if defined(__GLIBC__) && defined(__GLIBCXX__) // elsewhere pthread_cancel() need not unwind
struct leaves {
    bool *left;
    ~leaves() { *left = true; }
};

void end_this_thread()
{
    pthread_cancel(pthread_self());
    pthread_testcancel();
}

// Runs f() on a thread. It must end by pthread_cancel(), and destroy a local variable of f() on the way.
template <class F> void expect_cancelled(F f)
{
    struct arguments {
        F &f;
        bool left;
    } a = {f, false};
    pthread_t thread;
    void *result = nullptr;
    ASSERT_EQ(pthread_create(&thread, nullptr,
                             [](void *arg) -> void * {
                                 auto *mine = static_cast<arguments *>(arg);
                                 mine->f(&mine->left);
                                 return nullptr;
                             },
                             &a),
              0);
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_TRUE(a.left);
}

// Promise: pthread_cancel() of a thread unwinds the frames of the task that runs there, and ends the thread.
TEST(Tasks, ThreadCancelled)
{
    if (SANITIZED)
        GTEST_SKIP() << "its pthread_exit() does not know tasks"; // ASan then takes the thread's old frames for live
    expect_cancelled([](bool *left) {
        aco::spawn([left] {
            leaves l{left};
            end_this_thread();
        }).detach();
        aco_run();
    });
    expect_cancelled([](bool *left) {
        aco::options how;
        static_cast<void>(aco_spawn(
            [](void *arg) -> void * {
                aco::task_group group;
                group.spawn([arg] {
                    leaves l{static_cast<bool *>(arg)};
                    end_this_thread();
                });
                group.wait();
                return nullptr;
            },
            left, &how));
        aco_run();
    });
    expect_cancelled([](bool *left) {
        aco::coroutine<> co([left](auto &) {
            leaves l{left};
            end_this_thread();
        });
        auto *kept = new aco::coroutine<>(std::move(co)); // its destructor would find it running
        kept->resume();
    });
    expect_cancelled([](bool *left) {
        aco::call_on_stack([left] {
            leaves l{left};
            end_this_thread();
        });
    });
}
#endif

// ---- Scopes ----

// Promise: each wait in an ended scope throws aco::cancelled, which runs destructors and is no std::exception.
TEST(Scopes, EveryWaitThrows)
{
    in_task([] {
        aco::mutex mutex, own;
        aco::condition_variable condition;
        aco::shared_mutex shared;
        aco::semaphore none(0);
        aco::event never;
        aco::barrier two(2);
        aco::channel<int> channel;
        aco::channel<pinned> pins;
        auto forever = aco::spawn([] { aco_park("for ever"); });
        auto holder = aco::spawn([&] {
            std::lock_guard<aco::mutex> a(mutex);
            std::unique_lock<aco::shared_mutex> b(shared);
            never.wait();
        });
        aco::yield();
        std::vector<std::function<void()>> waits = {
            [&] { forever.join(); },
            [&] { forever.join_for(1h); },
            [&] { mutex.lock(); },
            [&] { std::lock_guard<aco::mutex> lock(mutex); },
            [&] { (void)mutex.try_lock_for(1h); },
            [&] {
                std::unique_lock<aco::mutex> lock(own);
                condition.wait(lock);
            },
            [&] { shared.lock(); },
            [&] { shared.lock_shared(); },
            [&] { none.acquire(); },
            [&] { (void)none.try_acquire_until(std::chrono::steady_clock::now() + 1h); },
            [&] { never.wait(); },
            [&] { two.arrive_and_wait(); },
            [&] { channel.send(1); },
            [&] { pins.send(pinned(1)); },
            [&] { channel.receive(); },
            [&] { for (int i : channel) EXPECT_EQ(i, 0); },
            [&] { aco::select(aco::on_receive(pins, [](std::optional<pinned>) { ADD_FAILURE(); })); },
            [&] { aco::sleep_for(1h); },
            [&] { aco::check_cancelled(); },
        };
        for (std::size_t i = 0; i < waits.size(); ++i) {
            auto wait = [&] {
                pinned guard;
                waits[i]();
            };
            aco::deadline limit(0s);
            EXPECT_EQ(thrown_by(wait), by_time) << i;
            EXPECT_EQ(thrown_by(wait), by_time) << i;
            EXPECT_EQ(pinned::alive, 0);
            EXPECT_TRUE(limit.ended());
        }
        aco_unpark(forever.native_handle());
        forever.join();
        never.set();
        holder.join();
    });
}

// Promise: scope::cancel(); the end of a scope reaches the inner ones, and no shield.
TEST(Scopes, CancelAndShield)
{
    in_task([] {
        aco::scope *outer = nullptr;
        auto task = aco::spawn([&outer] {
            aco::scope mine;
            outer = &mine;
            aco::deadline longer(1h);
            EXPECT_EQ(thrown_by([] { aco::sleep_for(1h); }), by_hand);
            EXPECT_FALSE(longer.ended());
            EXPECT_EQ(longer.error(), 0);
            EXPECT_TRUE(mine.ended());
            EXPECT_EQ(mine.error(), ECANCELED);
            {
                aco::shield cleanup(1h);
                aco::sleep_for(1us);
            }
            aco::shield brief(1us);
            EXPECT_EQ(thrown_by([] { aco::sleep_for(1h); }), by_time);
        });
        aco::yield();
        outer->cancel();
        task.join();
        EXPECT_EQ(aco_check_cancelled(), 0);
    });
    EXPECT_EQ(thrown_by([] { aco::scope outside; }), "error " + std::to_string(EPERM));
}

// Promise: so do coroutines of a task: what one handled while it waited is not there after the block.
TEST(Tasks, WaitInsideCatchBlocksOfCoroutines)
{
    int seen = 0;
    for (void (*wait)() : {+[] { aco::yield(); }, +[] { aco_sleep(0); }, +[] { aco_sleep(1000); }})
        aco::spawn([wait, &seen] {
            aco::coroutine<> c([wait, &seen](auto &self) {
                for (int i = 0; i < 2; ++i) {
                    try {
                        throw i;
                    } catch (int caught) {
                        wait();
                        seen += std::current_exception() && caught == i;
                    }
                    EXPECT_FALSE(std::current_exception());
                    self.yield();
                    EXPECT_FALSE(std::current_exception());
                    EXPECT_EQ(std::uncaught_exceptions(), 0);
                }
            });
            while (c.resume())
                aco::yield();
        });
    EXPECT_EQ(aco_run(), 0) << aco_error_message();
    EXPECT_EQ(seen, 6);
}

// Promise: try_for() catches the end of its own scope, and of no other.
TEST(Scopes, TryFor)
{
    in_task([] {
        EXPECT_TRUE(aco::try_for(1h, [] { aco::sleep_for(1us); }));
        EXPECT_FALSE(aco::try_for(1ms, [] { aco::sleep_for(1h); }));
        EXPECT_FALSE(aco::try_until(std::chrono::steady_clock::now(), [] { aco::sleep_for(1h); }));
        EXPECT_EQ(thrown_by([] { aco::try_for(1h, [] { throw std::runtime_error("f"); }); }), "f");
        EXPECT_EQ(thrown_by([] {
                      aco::deadline outer(1ms);
                      EXPECT_TRUE(aco::try_for(1h, [] { aco::sleep_for(1h); }));
                      ADD_FAILURE();
                  }),
                  by_time);
        EXPECT_EQ(thrown_by([] { aco::try_for(1h, [] { throw aco::cancelled(ECANCELED); }); }), by_hand);
    });
}

// Promise: durations that nanoseconds cannot hold are no limit; negative ones and fractions of one are short.
TEST(Scopes, Durations)
{
    EXPECT_EQ(aco::detail::deadline_in(std::chrono::hours::max()), ACO_FOREVER);
    EXPECT_EQ(aco::detail::deadline_in(std::chrono::duration<double>(1e300)), ACO_FOREVER);
    const std::int64_t past = aco::detail::deadline_in(std::chrono::hours::min());
    EXPECT_LE(past, aco_now());
    const std::int64_t soon = aco::detail::deadline_in(std::chrono::duration<std::int64_t, std::pico>(1));
    EXPECT_LE(soon, aco_now() + 1);
    const std::int64_t before = aco_now(), after = aco::detail::deadline_in(1h);
    EXPECT_GE(after - before, 3600 * ACO_SECOND);
}

// A clock that stands, at a time before its epoch.
struct stands {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<stands>;
    static time_point now() { return time_point(-5s); }
};

template <class Clock, class Duration> void expect_limits()
{
    using time = std::chrono::time_point<Clock, Duration>;
    EXPECT_EQ(aco::detail::deadline_at((time::max)()), ACO_FOREVER);
    EXPECT_EQ(aco::detail::deadline_in((Duration::max)()), ACO_FOREVER);
    const std::int64_t at_once = aco::detail::deadline_at((time::min)());
    const std::int64_t in_no_time = aco::detail::deadline_in((Duration::min)());
    EXPECT_LE(std::max(at_once, in_no_time), aco_now());
}

// Promise: the same of times, whatever their unit: max() is never, min() is over.
TEST(Scopes, Times)
{
    using thirds = std::ratio<1, 3>;
    expect_limits<std::chrono::steady_clock, std::chrono::nanoseconds>();
    expect_limits<std::chrono::steady_clock, std::chrono::seconds>();
    expect_limits<std::chrono::steady_clock, std::chrono::hours>();
    expect_limits<std::chrono::system_clock, std::chrono::hours>();
    expect_limits<std::chrono::system_clock, std::chrono::duration<double>>();
    expect_limits<std::chrono::system_clock, std::chrono::duration<int, std::ratio<86400>>>();
    expect_limits<std::chrono::steady_clock, std::chrono::duration<std::int64_t, thirds>>();
    expect_limits<stands, std::chrono::hours>();
    const std::int64_t before = aco_now(), at = aco::detail::deadline_at(std::chrono::time_point<stands>(1s));
    EXPECT_GE(at - before, 6 * ACO_SECOND);
    const std::int64_t now = aco::detail::deadline_at(std::chrono::time_point<stands>(-5s));
    EXPECT_LE(now, aco_now());
    const std::int64_t centuries = aco::detail::deadline_in(std::chrono::duration<std::int64_t, thirds>(18000000000));
    EXPECT_GE(centuries - before, 6000000000 * ACO_SECOND); // which are 18e18 of their common unit
}

// ---- Groups ----

// Promise: wait() joins all members; captures may refer to local variables.
TEST(Groups, JoinAll)
{
    in_task([] {
        std::vector<int> squares(100);
        aco::task_group group;
        group.set_limit(7);
        for (std::size_t i = 0; i < squares.size(); ++i)
            EXPECT_TRUE(group.spawn([&, i] {
                aco::yield();
                squares[i] = static_cast<int>(i * i);
                return i; // is dropped
            }));
        group.wait();
        for (std::size_t i = 0; i < squares.size(); ++i)
            EXPECT_EQ(squares[i], static_cast<int>(i * i));
        EXPECT_EQ(thrown_by([&] { group.spawn([] {}); }), "error " + std::to_string(ESRCH));
    });
}

// Promise: the first exception cancels the siblings and comes out of wait(); the block is left after all ended.
TEST(Groups, FirstException)
{
    in_task([] {
        int unwound = 0;
        EXPECT_EQ(thrown_by([&] {
                      aco::task_group group;
                      for (int i = 0; i < 5; ++i)
                          group.spawn([&unwound, p = pinned()] {
                              struct counts {
                                  int &n;
                                  ~counts() { ++n; }
                              } c{unwound};
                              aco::sleep_for(1h);
                          });
                      group.spawn([] {
                          aco::yield();
                          throw std::runtime_error("first");
                      });
                      group.spawn([] {
                          aco::yield();
                          throw std::runtime_error("second");
                      });
                      aco::yield();
                      aco::yield();
                      aco::yield();
                      EXPECT_FALSE(group.spawn([p = pinned()] { ADD_FAILURE(); }));
                      group.wait();
                  }),
                  "first");
        EXPECT_EQ(unwound, 5);
    });
}

// Promise: an exception that leaves the block cancels the members and waits for them.
TEST(Groups, LeftByAnException)
{
    in_task([] {
        int ended = 0;
        EXPECT_EQ(thrown_by([&] {
                      aco::task_group group;
                      for (int i = 0; i < 3; ++i)
                          group.spawn([&ended] {
                              if (thrown_by([] { aco::sleep_for(1h); }) == by_hand)
                                  ++ended;
                              aco::shield slow;
                              aco::sleep_for(1ms);
                              throw std::runtime_error("is dropped");
                          });
                      aco::yield();
                      throw std::runtime_error("block");
                  }),
                  "block");
        EXPECT_EQ(ended, 3);
    });
}

// Promise: policies.
TEST(Groups, Policies)
{
    in_task([] {
        int ended = 0;
        EXPECT_EQ(thrown_by([&] {
                      aco::task_group group(ACO_KEEP_GOING);
                      group.spawn([] { throw std::runtime_error("one"); });
                      group.spawn([&ended] {
                          aco::sleep_for(1us);
                          ++ended;
                      });
                      group.wait();
                  }),
                  "one");
        EXPECT_EQ(ended, 1);
        aco::task_group any(ACO_FIRST_SUCCESS);
        any.spawn([] { throw std::runtime_error("loses"); });
        any.spawn([&ended] { ++ended; });
        any.spawn([] { aco::sleep_for(1h); });
        any.wait();
        EXPECT_EQ(ended, 2);
        EXPECT_EQ(thrown_by([] {
                      aco::task_group none(ACO_FIRST_SUCCESS);
                      none.spawn([] { throw std::runtime_error("a"); });
                      none.spawn([] { throw std::runtime_error("b"); });
                      none.wait();
                  }),
                  "a");
    });
}

// Promise: a scope around the group ends its members, and wait() throws aco::cancelled then; cancel() is quiet.
// A result that was obtained is not cancelled away.
TEST(Groups, Cancelled)
{
    in_task([] {
        EXPECT_EQ(thrown_by([] {
                      aco::deadline limit(1ms);
                      aco::task_group group;
                      group.spawn([] { aco::sleep_for(1h); });
                      group.wait();
                  }),
                  by_time);
        EXPECT_EQ(thrown_by([] {
                      aco::deadline limit(0s);
                      EXPECT_EQ(aco_check_cancelled(), -1);
                      aco::task_group group;
                      EXPECT_FALSE(group.spawn([] {}));
                      group.wait();
                  }),
                  by_time);
        {
            aco::task_group group;
            group.spawn([] { aco::sleep_for(1h); });
            group.cancel();
            EXPECT_FALSE(group.spawn([] {}));
            group.wait();
        }
        {
            aco::deadline limit(0s);
            EXPECT_EQ(aco_now() - aco_deadline() >= 0, true);
            aco::task_group group;
            group.spawn([] { aco::yield(); });
            group.wait();
        }
        EXPECT_EQ(thrown_by([] { // a member's own deadline is a failure like others
                      aco::task_group group;
                      group.spawn([] {
                          aco::deadline own(0s);
                          aco::sleep_for(1h);
                      });
                      group.spawn([] { aco::sleep_for(1h); });
                      group.wait();
                  }),
                  by_time);
    });
}

// Promise: in_group(): if the block itself is cancelled by a member's failure, the member's exception comes out.
TEST(Groups, InGroup)
{
    in_task([] {
        int ran = 0;
        aco::in_group([&ran](aco::task_group &group) { group.spawn([&ran] { ++ran; }); });
        EXPECT_EQ(ran, 1);
        EXPECT_EQ(thrown_by([] {
                      aco::in_group([](aco::task_group &group) {
                          group.spawn([] { throw std::runtime_error("member"); });
                          aco::sleep_for(1h);
                      });
                  }),
                  "member");
        EXPECT_EQ(thrown_by([] {
                      aco::deadline limit(1ms);
                      aco::in_group([](aco::task_group &group) {
                          group.spawn([] { aco::sleep_for(1h); });
                          aco::sleep_for(1h);
                      });
                  }),
                  by_time);
    });
}

// Promise: a group that is not the innermost scope stays open, and says so.
TEST(Groups, WrongOrder)
{
    in_task([] {
        aco::task_group group;
        group.spawn([] {});
        {
            aco::scope inner;
            EXPECT_EQ(thrown_by([&] { group.wait(); }), "error " + std::to_string(EPERM));
        }
        group.wait();
    });
}

// ---- Deaths ----

// Promise: an exception that nobody joins terminates the process, with its type and text.
TEST(DeathTest, NobodyJoins)
{
    const char *text = LAST_LINE("acorn: coroutine 0x[0-9a-f]+: ended with an exception that nobody joins: "
                                 "std::runtime_error: lost\nterminated");
    EXPECT_DEATH(dies([] { throw std::runtime_error("lost"); }), text);
    EXPECT_DEATH(dies([]() -> std::string { throw std::runtime_error("lost"); }), text);
    EXPECT_DEATH(dies([] {
                     auto task = aco::spawn([] { throw std::runtime_error("lost"); });
                     aco::yield();
                 }),
                 text);
    EXPECT_DEATH(dies([] {
                     auto task = aco::spawn([]() -> std::string { throw std::runtime_error("lost"); });
                     aco::yield();
                 }),
                 text);
    EXPECT_DEATH(dies([] {
                     auto task = aco::spawn([] { throw 5; }, aco::options().named("five"));
                     task.detach();
                 }),
                 LAST_LINE("\\(five\\) ended with an exception that nobody joins: int\nterminated"));
}

// Promise: outside of tasks the handle of a live task on memory of the caller's cannot be left.
TEST(DeathTest, LeftOnMemory)
{
    static char memory[64 << 10];
    EXPECT_DEATH({ auto task = aco::spawn([] {}, aco::options().in(memory, sizeof memory)); },
                 LAST_LINE("acorn: aco_shield_begin: .*"));
}

// Promise: a group that is left without wait() aborts with a message.
TEST(DeathTest, GroupLeft)
{
    EXPECT_DEATH(dies([] {
                     aco::task_group group;
                     group.spawn([] {});
                 }),
                 LAST_LINE("acorn: aco::task_group: its block is left without wait\\(\\)"));
    in_task([] { aco::task_group empty; });
}

} // namespace
