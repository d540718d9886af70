// Promises of <aco/task.hpp>: tasks, scopes, groups, locks and channels in C++. Compiled as C++17 to C++23, with
// ACO_DEBUG 0 and 1.
#include "aco/task.hpp"
#include "death.h"
#include "sanitizers.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using unique = std::unique_ptr<int>;

// An object that cannot be copied and knows its own address: to move its bytes would break it.
struct pinned {
    static inline int alive;
    const pinned *here = this;
    int number;
    explicit pinned(int n = 0) : number(n) { ++alive; }
    pinned(pinned &&from) noexcept : number(from.number) { ++alive; }
    pinned &operator=(pinned &&from) noexcept
    {
        number = from.number;
        return *this;
    }
    ~pinned()
    {
        EXPECT_EQ(here, this);
        --alive;
    }
};

template <class F> void in_task(F f)
{
    aco::spawn([&f] { f(); });
    EXPECT_EQ(aco_run(), 0) << aco_error_message();
    aco_run_stats_t stats;
    aco_run_stats(&stats);
    EXPECT_EQ(stats.tasks, 0u);
    EXPECT_EQ(pinned::alive, 0);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    EXPECT_FALSE(std::current_exception());
}

// What f() throws: "cancelled ERRNO", "error ERRNO", a text, or "".
template <class F> std::string thrown_by(F &&f)
{
    try {
        f();
    } catch (const aco::error &e) {
        return "error " + std::to_string(e.code().value());
    } catch (const std::exception &e) { // does not catch aco::cancelled
        return e.what();
    } catch (const aco::cancelled &c) {
        return "cancelled " + std::to_string(c.error());
    }
    return "";
}

const std::string by_time = "cancelled " + std::to_string(ETIMEDOUT), by_hand = "cancelled " +
    std::to_string(ECANCELED);

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
    EXPECT_EQ(aco::detail::deadline_at(std::chrono::steady_clock::time_point::max()), ACO_FOREVER);
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

// ---- Locks ----

// Promise: the mutex with the standard's locks.
TEST(Locks, Mutex)
{
    in_task([] {
        aco::mutex mutex, other;
        int inside = 0, most = 0;
        aco::task_group group;
        for (int i = 0; i < 5; ++i)
            group.spawn([&] {
                std::lock_guard<aco::mutex> lock(mutex);
                most = std::max(most, ++inside);
                aco::yield();
                --inside;
            });
        aco::yield();
        EXPECT_FALSE(mutex.try_lock());
        EXPECT_FALSE(std::unique_lock<aco::mutex>(mutex, std::try_to_lock));
        EXPECT_FALSE(std::unique_lock<aco::mutex>(mutex, 0s));
        group.wait();
        EXPECT_EQ(most, 1);
        std::scoped_lock both(mutex, other);
        EXPECT_EQ(thrown_by([&] { mutex.lock(); }), "error " + std::to_string(EDEADLK));
    });
}

// Promise: a condition; a wait that is cancelled or too late has the mutex again.
TEST(Locks, Condition)
{
    in_task([] {
        aco::mutex mutex;
        aco::condition_variable condition;
        int ready = 0;
        aco::task_group group;
        for (int i = 0; i < 3; ++i)
            group.spawn([&] {
                std::unique_lock<aco::mutex> lock(mutex);
                condition.wait(lock, [&] { return ready > 0; });
                --ready;
            });
        aco::yield();
        {
            std::lock_guard<aco::mutex> lock(mutex);
            ready = 3;
        }
        condition.notify_one();
        condition.notify_all();
        group.wait();
        EXPECT_EQ(ready, 0);
        std::unique_lock<aco::mutex> lock(mutex);
        EXPECT_EQ(condition.wait_for(lock, 1ms), std::cv_status::timeout);
        EXPECT_FALSE(condition.wait_until(lock, std::chrono::steady_clock::now(), [] { return false; }));
        EXPECT_TRUE(condition.wait_for(lock, 1h, [] { return true; }));
        aco::deadline limit(1ms);
        EXPECT_EQ(thrown_by([&] { condition.wait(lock); }), by_time);
        EXPECT_EQ(mutex.native_handle()->owner, aco_co());
    });
}

// Promise: readers together, writers alone.
TEST(Locks, SharedMutex)
{
    in_task([] {
        aco::shared_mutex mutex;
        std::string log;
        aco::task_group group;
        for (int i = 0; i < 2; ++i)
            group.spawn([&] {
                std::shared_lock<aco::shared_mutex> lock(mutex);
                log += 'r';
                aco::yield();
                log += 's';
            });
        group.spawn([&] {
            std::unique_lock<aco::shared_mutex> lock(mutex);
            log += 'w';
            aco::yield();
            log += 'x';
        });
        aco::yield();
        EXPECT_FALSE(mutex.try_lock());
        EXPECT_FALSE(mutex.try_lock_shared()); // a writer waits
        group.wait();
        EXPECT_EQ(log, "rrsswx");
        aco::event done;
        auto writer = aco::spawn([&] {
            std::lock_guard<aco::shared_mutex> lock(mutex);
            done.wait();
        });
        aco::yield();
        EXPECT_FALSE(std::unique_lock<aco::shared_mutex>(mutex, 0s));
        EXPECT_FALSE(std::shared_lock<aco::shared_mutex>(mutex, 0s));
        done.set();
        writer.join();
        EXPECT_TRUE(mutex.try_lock_shared());
        EXPECT_TRUE(mutex.try_lock_shared());
        mutex.unlock_shared();
        mutex.unlock_shared();
    });
}

// Promise: semaphore, event, barrier, call_once.
TEST(Locks, Others)
{
    in_task([] {
        aco::semaphore units(2);
        units.acquire();
        EXPECT_TRUE(units.try_acquire());
        EXPECT_FALSE(units.try_acquire());
        EXPECT_FALSE(units.try_acquire_for(1us));
        units.release(2);
        EXPECT_EQ(units.value(), 2u);
        aco::event happened;
        aco::barrier three(3);
        aco::once_flag once;
        int last = 0, calls = 0, ready = 0, done = 0;
        aco::task_group group;
        for (int i = 0; i < 3; ++i)
            group.spawn([&, i] {
                last += three.arrive_and_wait();
                std::string thrown = thrown_by([&] {
                    aco::call_once(once, [&] {
                        aco::yield();
                        if (calls++ == 0)
                            throw std::runtime_error("again");
                    });
                });
                EXPECT_EQ(thrown, thrown.empty() ? "" : "again") << i;
                EXPECT_FALSE(happened.is_set());
                ++ready;
                happened.wait();
                ++done;
            });
        while (ready < 3)
            aco::yield();
        EXPECT_FALSE(happened.wait_for(1us));
        EXPECT_EQ(last, 1);
        EXPECT_EQ(calls, 2);
        happened.set();
        group.wait();
        EXPECT_EQ(done, 3);
        happened.reset();
        EXPECT_FALSE(happened.is_set());
    });
}

// ---- Channels ----

template <class T> class Channels : public testing::Test {};
template <class T> T make(int n)
{
    if constexpr (std::is_same_v<T, unique>)
        return std::make_unique<int>(n);
    else
        return T(n);
}
int number(int n) { return n; }
int number(const unique &p) { return p ? *p : -1; }
int number(const pinned &p) { return p.number; }
using elements = testing::Types<int, unique, pinned>;
TYPED_TEST_SUITE(Channels, elements, );

// Promise: elements of any movable type arrive in order, with and without room; a range ends at the close.
TYPED_TEST(Channels, InOrder)
{
    in_task([] {
        for (std::size_t capacity : {0u, 1u, 3u, 100u}) {
            aco::channel<TypeParam> channel(capacity);
            auto sender = aco::spawn([&channel] {
                for (int i = 0; i < 20; ++i)
                    EXPECT_TRUE(channel.send(make<TypeParam>(i)));
                EXPECT_TRUE(channel.close());
                EXPECT_FALSE(channel.close());
            });
            int next = 0;
            EXPECT_EQ(number(*channel.receive()), next++);
            TypeParam element = make<TypeParam>(99);
            EXPECT_TRUE(channel.receive(element));
            EXPECT_EQ(number(element), next++);
            for (TypeParam &each : channel)
                EXPECT_EQ(number(each), next++);
            EXPECT_EQ(next, 20);
            EXPECT_FALSE(channel.receive());
            EXPECT_FALSE(channel.receive(element));
            sender.join();
        }
    });
}

// Promise: an element that is not sent stays with the caller, whatever the reason; none is lost or destroyed twice.
TYPED_TEST(Channels, NotSent)
{
    in_task([] {
        aco::channel<TypeParam> channel;
        TypeParam mine = make<TypeParam>(7);
        EXPECT_EQ(channel.try_send(std::move(mine)), aco::status::would_wait);
        EXPECT_EQ(number(mine), 7);
        EXPECT_EQ(channel.send_for(std::move(mine), 1us), aco::status::timed_out);
        EXPECT_EQ(channel.send_until(std::move(mine), std::chrono::steady_clock::now()), aco::status::timed_out);
        EXPECT_EQ(number(mine), 7);
        {
            aco::deadline limit(1us);
            EXPECT_EQ(thrown_by([&] { channel.send(std::move(mine)); }), by_time);
        }
        EXPECT_EQ(number(mine), 7);
        EXPECT_EQ(aco::select_for(1us, aco::on_send(channel, std::move(mine), [](bool) { ADD_FAILURE(); })), -1);
        EXPECT_EQ(number(mine), 7);
        auto closer = aco::spawn([&channel] { channel.close(); });
        EXPECT_FALSE(channel.send(std::move(mine)));
        EXPECT_EQ(number(mine), 7);
        EXPECT_EQ(channel.try_send(std::move(mine)), aco::status::closed);
        EXPECT_EQ(number(mine), 7);
        closer.join();
    });
}

// Promise: receives without waiting and with a limit.
TYPED_TEST(Channels, TriesToReceive)
{
    in_task([] {
        aco::channel<TypeParam> channel(1);
        TypeParam element = make<TypeParam>(1);
        EXPECT_EQ(channel.try_receive(element), aco::status::would_wait);
        EXPECT_EQ(channel.receive_for(element, 1us), aco::status::timed_out);
        EXPECT_EQ(channel.try_send(make<TypeParam>(2)), aco::status::done);
        EXPECT_EQ(channel.receive_until(element, std::chrono::steady_clock::now()), aco::status::done);
        EXPECT_EQ(number(element), 2);
        channel.close();
        EXPECT_EQ(channel.try_receive(element), aco::status::closed);
    });
}

// Promise: a channel that is destroyed destroys the elements inside, once; closed or not, read in part or not.
TYPED_TEST(Channels, DestroyedWithElements)
{
    in_task([] {
        for (int read = 0; read < 3; ++read) {
            aco::channel<TypeParam> channel(3);
            for (int i = 0; i < 3; ++i)
                channel.send(make<TypeParam>(i));
            for (int i = 0; i < read; ++i)
                channel.receive();
            if (read == 2)
                channel.send(make<TypeParam>(3));
            if (read == 1)
                channel.close();
            aco::channel<TypeParam> moved(std::move(channel));
            EXPECT_EQ(thrown_by([&] { channel.close(); }), "error " + std::to_string(EINVAL));
        }
        aco::channel<TypeParam> channel(1);
        channel.send(make<TypeParam>(4));
        for (TypeParam &each : channel) { // left with an element
            EXPECT_EQ(number(each), 4);
            break;
        }
    });
}

// Promise: an element that a receiver was handed arrives, even if its scope ends or the channel goes before it runs.
TYPED_TEST(Channels, HandedOver)
{
    in_task([] {
        auto channel = std::make_unique<aco::channel<TypeParam>>();
        aco::scope *scope = nullptr;
        auto receiver = aco::spawn([&] {
            aco::scope mine;
            scope = &mine;
            return number(*channel->receive());
        });
        aco::yield();
        EXPECT_TRUE(channel->send(make<TypeParam>(5)));
        scope->cancel();
        channel.reset();
        EXPECT_EQ(receiver.join(), 5);
    });
}

// Promise: select does one case and calls its function; it serves a waiting one too.
TYPED_TEST(Channels, Select)
{
    in_task([] {
        aco::channel<TypeParam> in, out(1), never;
        TypeParam spare = make<TypeParam>(8);
        int seen = 0;
        auto received = [&seen](std::optional<TypeParam> element) { seen = element ? number(*element) : -2; };
        auto not_reached = [](auto &&) { ADD_FAILURE(); };
        EXPECT_EQ(aco::try_select(aco::on_receive(in, not_reached)), -1);
        EXPECT_EQ(aco::select(aco::on_receive(in, not_reached),
                              aco::on_send(out, std::move(spare), [&seen](bool sent) { seen = sent; })),
                  1);
        EXPECT_EQ(seen, 1);
        EXPECT_EQ(number(*out.receive()), 8);
        auto sender = aco::spawn([&in] { in.send(make<TypeParam>(9)); });
        spare = make<TypeParam>(10);
        EXPECT_EQ(aco::select_until(std::chrono::steady_clock::now() + 1h,
                                    aco::on_send(never, std::move(spare), not_reached), aco::on_receive(in, received)),
                  1);
        EXPECT_EQ(seen, 9);
        EXPECT_EQ(number(spare), 10);
        sender.join();
        in.close();
        EXPECT_EQ(aco::select(aco::on_receive(in, received), aco::on_receive(never, not_reached)), 0);
        EXPECT_EQ(seen, -2);
        EXPECT_EQ(aco::select(aco::on_send(in, std::move(spare), [&seen](bool sent) { seen = sent ? 1 : 0; })), 0);
        EXPECT_EQ(seen, 0);
        EXPECT_EQ(number(spare), 10);
        aco::deadline limit(1us);
        EXPECT_EQ(thrown_by([&] {
                      aco::select(aco::on_receive(never, not_reached),
                                  aco::on_send(never, std::move(spare), not_reached));
                  }),
                  by_time);
        EXPECT_EQ(number(spare), 10);
    });
}

template <class Case, class = void> struct selects : std::false_type {};
template <class Case>
struct selects<Case, std::void_t<decltype(aco::select(std::declval<Case>()))>> : std::true_type {};

// Promise: a case serves one call of select(): one with a name, which could be used again, does not compile.
TEST(Channel, CasesServeOnce)
{
    const auto f = [](auto &&) {};
    using receive = decltype(aco::on_receive(std::declval<aco::channel<int> &>(), f));
    using send = decltype(aco::on_send(std::declval<aco::channel<int> &>(), 1, f));
    EXPECT_TRUE(selects<receive>::value && selects<send>::value);
    EXPECT_FALSE(selects<receive &>::value || selects<send &>::value);
    EXPECT_FALSE(selects<const receive &>::value);
}

// Promise: what can be copied can be sent by a copy.
TEST(Channel, Copies)
{
    in_task([] {
        aco::channel<std::string> words(2);
        const std::string word(100, 'w');
        EXPECT_TRUE(words.send(word));
        EXPECT_EQ(aco::select(aco::on_send(words, word, [](bool sent) { EXPECT_TRUE(sent); })), 0);
        EXPECT_EQ(words.receive(), word);
        EXPECT_EQ(words.receive(), word);
        aco::channel<double> numbers(1);
        const double x = 1.5;
        EXPECT_TRUE(numbers.send(x));
        EXPECT_EQ(numbers.receive(), 1.5);
        EXPECT_EQ(aco::select(aco::on_send(numbers, x, [](bool) {})), 0);
        EXPECT_EQ(numbers.receive(), 1.5);
    });
}

// Promise: each thread has its own tasks.
TEST(Threads, Apart)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([i] {
            aco::channel<std::string> words;
            int length = 0;
            aco::spawn([&words, i] {
                for (int n = 0; n < 100; ++n)
                    words.send(std::string(static_cast<std::size_t>(i), 'x'));
                words.close();
            });
            aco::spawn([&words, &length] {
                for (std::string &word : words)
                    length += static_cast<int>(word.size());
                try {
                    throw std::runtime_error("each");
                } catch (const std::exception &) {
                    aco::sleep_for(1us);
                }
            });
            EXPECT_EQ(aco_run(), 0);
            EXPECT_EQ(length, 100 * i);
        });
    for (std::thread &thread : threads)
        thread.join();
}

// ---- Deaths ----

template <class F> void dies(F f)
{
    std::set_terminate([] {
        std::fputs("terminated\n", stderr);
        std::abort();
    });
    aco::spawn(f);
    aco_run();
}

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

// Promise: a mutex is unlocked by its owner, and a channel destroyed when nobody waits for it; a handler that swallows
// nothing but std::exception lets a cancelling through.
TEST(DeathTest, Misuse)
{
    EXPECT_DEATH(dies([] { aco::mutex().unlock(); }), LAST_LINE("acorn: aco_mutex_unlock: .*"));
    EXPECT_DEATH(dies([] {
                     aco::channel<int> channel;
                     aco::spawn([&channel] { channel.receive(); });
                     aco::yield();
                 }),
                 LAST_LINE("acorn: aco_channel_destroy: tasks wait for the channel .*"));
}

} // namespace
