// Promises of <aco/threads.hpp>: sets of threads, groups and loops across them, and what threads share. Compiled as
// C++17 to C++23, with ACO_DEBUG 0 and 1.
#include "cpp_task.h"
#include "death.h"
#include "sanitizers.h"

#include "aco/threads.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

#include <csignal>
#include <pthread.h>
#include <unistd.h>

namespace {

constexpr int threads_here = 3;

aco::mt::submit_options to(int thread)
{
    return aco::mt::submit_options().to(thread);
}

// Runs f() in a task of a set of threads.
template <class F> void in_set(F f)
{
    aco::threads::run(threads_here, f, ACO_THREADS_FIRST_ONLY);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
}

// ---- Sets, groups, loops ----

// Promise: run() calls the function on each thread, or on the first, and throws what it throws.
TEST(Threads, Run)
{
    std::atomic<int> calls{0}, indices{0};
    aco::threads::run(threads_here, [&] {
        ++calls;
        indices += 1 << 4 * aco::threads::index();
        aco::yield();
    });
    EXPECT_EQ(calls, threads_here);
    EXPECT_EQ(indices, 0x111);
    EXPECT_EQ(aco::threads::index(), -1);
    EXPECT_GE(aco::threads::usable(), 1);
    in_set([] { EXPECT_EQ(aco::threads::stats().queued, 0u); });
    EXPECT_EQ(thrown_by([] { static_cast<void>(aco::threads::stats()); }), "error " + std::to_string(EINVAL));
    calls = 0;
    in_set([&] { ++calls; });
    EXPECT_EQ(calls, 1);
    aco::threads::run(1, [&] { ++calls; }, 0, std::chrono::hours::max());
    EXPECT_EQ(calls, 2);
    std::atomic<int> cancelled{0};
    EXPECT_EQ(thrown_by([&] {
                  aco::threads::run(threads_here, [&] {
                      if (aco::threads::index() == 1)
                          throw std::runtime_error("one");
                      try {
                          aco::sleep_for(30s);
                      } catch (const aco::cancelled &) {
                          ++cancelled;
                          throw;
                      }
                  });
              }),
              "one");
    EXPECT_EQ(cancelled, threads_here - 1);
    EXPECT_EQ(thrown_by([] { aco::threads::run(-1, [] {}); }), "error " + std::to_string(EINVAL));
}

int sum_of_tree(int depth)
{
    if (depth == 0)
        return 1;
    int left = 0, right = 0;
    aco::mt::task_group group;
    EXPECT_TRUE(group.submit([&] { left = sum_of_tree(depth - 1); }));
    EXPECT_TRUE(group.submit([&, owned = std::make_unique<int>(depth)] { right = sum_of_tree(*owned - 1); }));
    group.wait();
    return left + right;
}

// Promise: members run on any thread, or on a given one; the first exception cancels the others and leaves wait().
TEST(Threads, Groups)
{
    in_set([] {
        EXPECT_EQ(sum_of_tree(7), 128);
        std::atomic<int> where{-1}, ended{0};
        aco::mt::task_group group;
        EXPECT_TRUE(group.submit([&] { where = aco::threads::index(); }, to(2)));
        std::thread([&] { EXPECT_TRUE(group.submit([&] { ++ended; })); }).join();
        EXPECT_TRUE(group.submit([&] { ++ended; }, aco::mt::submit_options().evenly()));
        EXPECT_EQ(thrown_by([&] { group.submit([] {}, to(99)); }), "error " + std::to_string(ESRCH));
        group.wait();
        EXPECT_EQ(where, 2);
        EXPECT_EQ(ended, 2);

        auto fails = [&ended](aco_group_policy_t policy, bool keeps_going) {
            aco::mt::task_group failing(policy);
            ended = 0;
            for (int i = 0; i < 6; ++i)
                failing.submit([&ended, i, keeps_going] {
                    if (i == 3)
                        throw std::runtime_error("three");
                    try {
                        aco::sleep_for(keeps_going ? 1ms : 30s);
                        ++ended;
                    } catch (const aco::cancelled &) {
                        ended += 100;
                        throw;
                    }
                }, to(i % threads_here));
            failing.wait();
        };
        EXPECT_EQ(thrown_by([&] { fails(ACO_CANCEL_ON_FAILURE, false); }), "three");
        EXPECT_EQ(ended % 100, 0);
        EXPECT_EQ(thrown_by([&] { fails(ACO_KEEP_GOING, true); }), "three");
        EXPECT_EQ(ended, 5);
        EXPECT_EQ(thrown_by([&] { // the exception of the block, after all members have ended
                      aco::mt::task_group left;
                      left.submit([&ended] {
                          try {
                              aco::sleep_for(30s);
                          } catch (const aco::cancelled &) {
                              ended = -1;
                              throw;
                          }
                      }, to(1));
                      throw std::runtime_error("block");
                  }),
                  "block");
        EXPECT_EQ(ended, -1);
        EXPECT_EQ(thrown_by([] { // a scope around the group
                      aco::deadline limit(1ms);
                      aco::mt::task_group limited;
                      limited.submit([] { aco::sleep_for(30s); }, to(1));
                      limited.wait();
                  }),
                  "cancelled " + std::to_string(ETIMEDOUT));
        aco::mt::task_group cancelled;
        cancelled.submit([] { aco::sleep_for(30s); }, to(1));
        cancelled.cancel();
        EXPECT_FALSE(cancelled.submit([] { FAIL(); }));
        cancelled.wait();
        aco::mt::task_group first(ACO_FIRST_SUCCESS);
        first.submit([] {});
        first.submit([] { throw std::runtime_error("ignored"); });
        first.wait();
    });
    EXPECT_EQ(thrown_by([] { aco::mt::task_group group; }), "error " + std::to_string(EPERM));
}

extern "C" void *end_thread(void *may_end)
{
    while (!static_cast<std::atomic<bool> *>(may_end)->load())
        std::this_thread::yield(); // nothing else starts on this thread
    pthread_exit(nullptr);
}

// Promise: a function that its thread has not started when it ends is destroyed, and the group fails.
TEST(Threads, UnrunMembers)
{
    if (UNDER_TSAN)
        GTEST_SKIP() << "its pthread_exit() does not know tasks";
    in_set([] {
        auto token = std::make_shared<int>();
        std::atomic<bool> may_end{false};
        aco::mt::task_group group(ACO_KEEP_GOING);
        const auto there = to(1);
        ASSERT_EQ(aco_submit(group.native_handle(), end_thread, &may_end, &there), 0);
        for (int i = 0; i < 10; ++i)
            EXPECT_TRUE(group.submit([token] { FAIL(); }, to(1)));
        EXPECT_EQ(token.use_count(), 11);
        may_end = true;
        EXPECT_EQ(thrown_by([&] { group.wait(); }), "error " + std::to_string(ECANCELED));
        EXPECT_EQ(token.use_count(), 1);
    });
}

#if defined(__GLIBC__) && defined(__GLIBCXX__) // elsewhere pthread_exit() need not unwind
// Promise: a member that ends its thread is unwound, and the group fails, as with a C function.
TEST(Threads, MemberEndsItsThread)
{
    if (UNDER_TSAN)
        GTEST_SKIP() << "its pthread_exit() does not know tasks";
    in_set([] {
        auto token = std::make_shared<int>();
        aco::mt::task_group group(ACO_KEEP_GOING);
        group.submit([token] { pthread_exit(nullptr); }, to(1));
        EXPECT_EQ(thrown_by([&] { group.wait(); }), "error " + std::to_string(ECANCELED));
        EXPECT_EQ(token.use_count(), 1);
    });
}
#endif

// Promise: stop() ends the stop_scopes of all threads, those that begin later too, and nothing else; with time to
// drain, a signal does the same first.
TEST(Threads, Stop)
{
    auto serve = [](std::atomic<int> &stopped, auto stop) {
        return [&stopped, stop] {
            EXPECT_TRUE(aco::threads::try_until_stopped([] { aco::yield(); }));
            if (aco::threads::index() == 0)
                stop();
            stopped += !aco::threads::try_until_stopped([] { aco::sleep_for(30s); });
            aco::sleep_for(1ms); // goes on
            stopped += thrown_by([] {
                           aco::threads::stop_scope late(30s);
                           EXPECT_TRUE(late.ended());
                           EXPECT_EQ(late.error(), ECANCELED);
                           aco::sleep_for(30s);
                       }) == "cancelled " + std::to_string(ECANCELED);
        };
    };
    std::atomic<int> stopped{0};
    aco::threads::run(threads_here, serve(stopped, [] { aco::threads::stop(); }));
    EXPECT_EQ(stopped, 2 * threads_here);
    stopped = 0;
    aco::threads::run(threads_here, serve(stopped, [] { kill(getpid(), SIGTERM); }), ACO_THREADS_INTERRUPTIBLE, 30s);
    EXPECT_EQ(stopped, 2 * threads_here);
    in_set([] {
        aco::threads::stop_scope scope;
        EXPECT_FALSE(scope.ended());
        EXPECT_EQ(thrown_by([] {
                      aco::threads::stop_scope limited(1ms);
                      aco::sleep_for(30s);
                  }),
                  "cancelled " + std::to_string(ETIMEDOUT));
        scope.cancel();
        EXPECT_EQ(scope.error(), ECANCELED);
    });
    EXPECT_EQ(thrown_by([] { in_set([] { aco::threads::cancel(), aco::sleep_for(30s); }); }),
              "cancelled " + std::to_string(ECANCELED));
    EXPECT_EQ(thrown_by([] { aco::threads::stop(); }), "error " + std::to_string(EINVAL));
    EXPECT_EQ(thrown_by([] { aco::threads::stop_scope scope; }), "error " + std::to_string(EPERM));
}

// Promise: a loop over indices or parts runs on all threads; an exception ends it.
TEST(Threads, ParallelFor)
{
    auto loops = [] {
        std::vector<int> squares(1000);
        aco::parallel_for(0, squares.size(), [&](std::size_t i) { squares[i] = static_cast<int>(i * i); });
        for (std::size_t i = 0; i < squares.size(); ++i)
            EXPECT_EQ(squares[i], static_cast<int>(i * i));
        std::atomic<std::size_t> covered{0}, parts{0};
        aco::parallel_for(
            10, 110, [&](std::size_t from, std::size_t to) { covered += to - from, ++parts; }, 7);
        EXPECT_EQ(covered, 100u);
        EXPECT_EQ(parts, 15u);
        EXPECT_EQ(thrown_by([] {
                      aco::parallel_for(0, 100, [](std::size_t i) {
                          if (i == 50)
                              throw std::runtime_error("fifty");
                      });
                  }),
                  "fifty");
    };
    in_set(loops);
    loops();
    EXPECT_EQ(thrown_by([] { aco::parallel_for(2, 1, [](std::size_t) {}); }), "error " + std::to_string(EINVAL));
}

// Promise: results of indices or parts are combined, each once; with no index the first value is the result.
TEST(Threads, ParallelReduce)
{
    auto reduces = [] {
        const std::size_t n = 1000;
        auto plus = [](std::size_t a, std::size_t b) { return a + b; };
        EXPECT_EQ(
            aco::parallel_reduce(0, n, std::size_t{7}, [](std::size_t i) { return i; }, plus), 7 + n * (n - 1) / 2);
        EXPECT_EQ(aco::parallel_reduce(
                      0, n, std::size_t{}, [](std::size_t from, std::size_t to) { return (to - from) * 3; }, plus, 7),
                  3 * n);
        EXPECT_EQ(aco::parallel_reduce(4, 4, std::size_t{7}, [](std::size_t i) { return i; }, plus), 7u);
        auto letters = aco::parallel_reduce(
            0, 26, std::string(), [](std::size_t i) { return std::string(1, static_cast<char>('a' + i)); },
            [](std::string a, const std::string &b) { return std::move(a) + b; }, 3);
        std::sort(letters.begin(), letters.end());
        EXPECT_EQ(letters, "abcdefghijklmnopqrstuvwxyz");
        EXPECT_EQ(thrown_by([&] {
                      aco::parallel_reduce(
                          0, n, 0, [](std::size_t) { return 1; },
                          [](int, int) -> int { throw std::runtime_error("combined"); });
                  }),
                  "combined");
    };
    in_set(reduces);
    reduces();
}

// ---- What threads share ----

// Promise: the standard's locks, conditions and the rest, for tasks of several threads and for plain threads.
TEST(Shared, Locks)
{
    aco::mt::mutex mutex;
    aco::mt::condition_variable ready;
    aco::mt::shared_mutex map_mutex;
    aco::mt::semaphore units(2);
    aco::mt::wait_group pending;
    aco::mt::event start;
    aco::mt::once_flag once;
    int counter = 0, items = 0, entries = 0, initialised = 0;
    std::atomic<int> in_units{0}, tries{0};
    constexpr int rounds = 50, workers = 4;
    auto work = [&] {
        start.wait();
        try {
            aco::mt::call_once(once, [&] {
                if (++tries < 3)
                    throw std::runtime_error("again");
                ++initialised;
            });
        } catch (const std::runtime_error &) {
            aco::mt::call_once(once, [&] { tries += 10, ++initialised; });
        }
        for (int i = 0; i < rounds; ++i) {
            {
                std::lock_guard<aco::mt::mutex> lock(mutex);
                ++counter, ++items;
                if (i % 2)
                    ready.notify_one();
                else
                    ready.notify_all();
            }
            {
                std::unique_lock<aco::mt::mutex> lock(mutex);
                ready.wait(lock, [&] { return items > 0; });
                --items;
            }
            units.acquire();
            EXPECT_LE(++in_units, 2);
            --in_units;
            units.release();
            if (i % 4 == 0) {
                std::lock_guard<aco::mt::shared_mutex> writes(map_mutex);
                ++entries;
            } else {
                std::shared_lock<aco::mt::shared_mutex> reads(map_mutex);
                EXPECT_GE(entries, 0);
            }
        }
        pending.done();
    };
    std::vector<std::thread> plain;
    pending.add(2 + workers);
    for (int i = 0; i < 2; ++i)
        plain.emplace_back(work);
    in_set([&] {
        aco::mt::task_group group;
        for (int i = 0; i < workers; ++i)
            group.submit(work, to(i % threads_here));
        EXPECT_FALSE(pending.wait_for(1ms));
        start.set();
        pending.wait();
        group.wait();
    });
    for (std::thread &thread : plain)
        thread.join();
    EXPECT_EQ(counter, rounds * (2 + workers));
    EXPECT_EQ(items, 0);
    EXPECT_EQ(initialised, 1);
    EXPECT_EQ(entries, (2 + workers) * ((rounds + 3) / 4));
    EXPECT_EQ(thrown_by([&] { pending.done(); }), "error " + std::to_string(ERANGE));
}

// Promise: limits of their own are results, for tasks and threads; the ends of scopes are thrown.
TEST(Shared, LimitsAndCancels)
{
    aco::mt::mutex mutex;
    aco::mt::shared_mutex map_mutex;
    aco::mt::condition_variable ready;
    aco::mt::semaphore none(0);
    aco::mt::event never;
    aco::mt::channel<int> channel;
    std::unique_lock<aco::mt::mutex> lock(mutex);
    std::unique_lock<aco::mt::shared_mutex> writes(map_mutex);
    auto limits = [&] {
        int element = 1;
        EXPECT_FALSE(mutex.try_lock());
        EXPECT_FALSE(mutex.try_lock_for(1ms));
        EXPECT_FALSE(mutex.try_lock_until(std::chrono::steady_clock::now() + 1ms));
        EXPECT_FALSE(map_mutex.try_lock_shared());
        EXPECT_FALSE(map_mutex.try_lock_shared_for(1ms));
        EXPECT_FALSE(map_mutex.try_lock_for(0s));
        EXPECT_FALSE(none.try_acquire());
        EXPECT_FALSE(none.try_acquire_for(1ms));
        EXPECT_FALSE(never.wait_for(1ms));
        EXPECT_EQ(channel.send_for(int(element), 1ms), aco::status::timed_out);
        EXPECT_EQ(channel.receive_for(element, 1ms), aco::status::timed_out);
        EXPECT_EQ(channel.try_receive(element), aco::status::would_wait);
        aco::mt::mutex own;
        std::unique_lock<aco::mt::mutex> own_lock(own);
        EXPECT_EQ(ready.wait_for(own_lock, 1ms), std::cv_status::timeout);
        EXPECT_FALSE(ready.wait_for(own_lock, 1ms, [] { return false; }));
        EXPECT_FALSE(own.try_lock());
        EXPECT_EQ(aco::select_for(1ms, aco::on_receive(channel, [](std::optional<int>) {})), -1);
        EXPECT_EQ(aco::try_select(aco::on_receive(channel, [](std::optional<int>) {})), -1);
    };
    limits();
    in_task(limits);
    in_set([&] {
        limits();
        aco::scope scope;
        scope.cancel();
        const std::string cancelled = "cancelled " + std::to_string(ECANCELED);
        EXPECT_EQ(thrown_by([&] { mutex.lock(); }), cancelled);
        EXPECT_EQ(thrown_by([&] { map_mutex.lock_shared(); }), cancelled);
        EXPECT_EQ(thrown_by([&] { none.acquire(); }), cancelled);
        EXPECT_EQ(thrown_by([&] { never.wait_for(30s); }), cancelled);
        EXPECT_EQ(thrown_by([&] { channel.receive(); }), cancelled);
        aco::mt::mutex own;
        std::unique_lock<aco::mt::mutex> own_lock(own);
        EXPECT_EQ(thrown_by([&] { ready.wait(own_lock); }), cancelled);
        EXPECT_FALSE(own.try_lock());
        EXPECT_EQ(thrown_by([&] { aco::select(aco::on_receive(channel, [](std::optional<int>) {})); }), cancelled);
    });
}

// Promise: channels carry objects between threads; select takes them together with channels of the task's thread.
TEST(Shared, Channels)
{
    in_set([] {
        constexpr int items = 300;
        aco::mt::channel<std::unique_ptr<int>> boxes(2);
        aco::mt::channel<std::string> words;
        std::atomic<long> sum{0};
        std::thread plain([&] {
            for (std::unique_ptr<int> &box : boxes)
                sum += *box;
        });
        aco::mt::task_group group;
        group.submit([&] {
            for (int i = 0; i < items; ++i) {
                boxes.send(std::make_unique<int>(i));
                words.send(std::to_string(i));
            }
            boxes.close();
            words.close();
            EXPECT_FALSE(words.send("more"));
        }, to(1));
        group.submit([&] {
            while (std::optional<std::unique_ptr<int>> box = boxes.receive())
                sum += **box;
        }, to(2));
        aco::channel<int> ticks;
        int ticked = 0, words_seen = 0;
        bool is_open = true;
        auto ticker = aco::spawn([&] {
            while (ticks.send(1))
                aco::yield();
        });
        while (is_open)
            aco::select(aco::on_receive(words,
                                        [&](std::optional<std::string> word) {
                                            is_open = word.has_value();
                                            if (is_open) {
                                                EXPECT_EQ(*word, std::to_string(words_seen++));
                                            }
                                        }),
                        aco::on_receive(ticks, [&](std::optional<int> tick) { ticked += *tick; }));
        EXPECT_EQ(words_seen, items);
        ticks.close();
        ticker.join();
        EXPECT_GE(ticked, 0);
        group.wait();
        plain.join();
        EXPECT_EQ(sum, items * (items - 1) / 2);
        aco::mt::channel<std::string> left(3);
        left.send(std::string(100, 'x')); // destroyed with the channel
        aco::select(aco::on_send(left, "y", [](bool sent) { EXPECT_TRUE(sent); }));
        aco::mt::channel<pinned> pins(2);
        pins.send(pinned(3));
        pins.send(pinned(4));
        EXPECT_EQ(pins.receive()->number, 3);
    });
    EXPECT_EQ(pinned::alive, 0);
}

// Promise: a group's block is not left without wait(), and a mutex that is not locked is not unlocked.
TEST(DeathTest, SharedMisuse)
{
    EXPECT_DEATH(dies([] { aco::mt::mutex().unlock(); }), LAST_LINE("acorn: aco_mt_mutex_unlock: .*"));
    EXPECT_DEATH(in_set([] {
                     aco::mt::task_group group;
                     group.submit([] {});
                 }),
                 LAST_LINE("acorn: aco::mt::task_group: its block is left without wait\\(\\)"));
}

} // namespace
