// Promises of <aco/limiter.hpp>, <aco/retry.hpp>, <aco/resource_pool.hpp> and <aco/singleflight.hpp>: what C++ adds to
// the C calls, which have tests of their own. In virtual time.
#include "aco/limiter.hpp"
#include "aco/resource_pool.hpp"
#include "aco/retry.hpp"
#include "aco/sim.hpp"
#include "aco/singleflight.hpp"

#include <gtest/gtest.h>
#include <stdexcept>

namespace
{

using namespace std::chrono_literals;

template <class F> void simulate(F &&f)
{
    const aco_sim_stats_t stats = aco::simulate(aco::sim_options().with_runs(20), std::forward<F>(f));
    EXPECT_EQ(stats.seed, 0u) << stats.reason;
}

TEST(Limiter, Waits)
{
    simulate([] {
        aco::limiter limiter(100ms, 2);
        const std::int64_t began = aco_now();
        EXPECT_TRUE(limiter.try_take(2));
        EXPECT_FALSE(limiter.try_take());
        EXPECT_FALSE(limiter.wait_for(99ms));
        EXPECT_TRUE(limiter.wait_for(100ms));
        limiter.wait();
        EXPECT_EQ(aco_now() - began, 200 * ACO_MILLISECOND);
        EXPECT_THROW(limiter.try_take(3), aco::error);
        aco::deadline soon(10ms);
        EXPECT_THROW(limiter.wait(), aco::cancelled);
    });
}

struct unavailable : std::runtime_error {
    unavailable() : std::runtime_error("unavailable")
    {
    }
};

TEST(Retry, Throws)
{
    simulate([] {
        int calls = 0;
        const auto any = [](const std::exception &) { return true; };
        EXPECT_EQ(aco::retry({}, [&] { return ++calls < 3 ? throw unavailable() : calls; }, any), 3);
        calls = 0;
        EXPECT_THROW(aco::retry({}, [&] { calls++, throw unavailable(); }, any), unavailable);
        EXPECT_EQ(calls, 4);
        EXPECT_THROW(aco::retry(
                         {}, [&] { calls++, throw unavailable(); }, [](const std::exception &) { return false; }),
                     unavailable);
        EXPECT_EQ(calls, 5);
        EXPECT_THROW(aco::retry({}, [&] { calls++, throw 1; }, any), int);
        aco::scope scope;
        scope.cancel();
        EXPECT_THROW(aco::retry({}, [&] { throw unavailable(); }, any), aco::cancelled);
        EXPECT_FALSE(std::current_exception());
    });
}

struct connection {
    explicit connection(int &count) : open(&count)
    {
        ++*open;
    }
    connection(connection &&other) noexcept : open(std::exchange(other.open, nullptr))
    {
    }
    ~connection()
    {
        open ? --*open : 0;
    }
    int *open;
    bool works = true;
};

TEST(ResourcePool, Leases)
{
    simulate([] {
        int open = 0;
        bool fails = false;
        aco::resource_pool<connection> pool(
            [&] {
                aco::sleep_for(1ms);
                return fails ? throw unavailable() : connection(open);
            },
            aco::resource_pool_options().with_limit(2).with_idle_time(1s), [](connection &c) { return c.works; });
        {
            auto a = pool.get(), b = pool.get();
            EXPECT_FALSE(pool.get_for(10ms));
            pool.discard(pool.get_for(10ms)); /* empty: the two in use count as before */
            aco::task<> waits = aco::spawn([&] { EXPECT_TRUE(pool.get()); });
            aco::sleep_for(1ms);
            b.reset();
            waits.join();
        }
        EXPECT_EQ(open, 2);
        EXPECT_THROW(
            {
                auto c = pool.get();
                throw unavailable();
            },
            unavailable);
        EXPECT_EQ(open, 1);
        pool.get()->works = false;
        fails = true;
        EXPECT_THROW(pool.get(), unavailable);
        EXPECT_EQ(open, 0);
        fails = false;
        pool.discard(pool.get());
        EXPECT_EQ(open, 0);
        pool.get();
        aco::sleep_for(1s);
        pool.trim();
        EXPECT_EQ(open, 0);
        pool.close();
        EXPECT_THROW(pool.get(), aco::error);
    });
}

TEST(Singleflight, Shares)
{
    simulate([] {
        int runs = 0;
        aco::singleflight<std::string> names([&](std::string_view key) {
            runs++;
            aco::sleep_for(10ms);
            return key == "none" ? throw unavailable() : std::string(key);
        });
        aco::task<std::shared_ptr<const std::string>> other = aco::spawn([&] { return names("a"); });
        auto mine = names("a");
        EXPECT_EQ(*mine, "a");
        EXPECT_EQ(other.join(), mine);
        EXPECT_EQ(runs, 1);
        aco::task<> fails = aco::spawn([&] { EXPECT_THROW(names("none"), unavailable); });
        EXPECT_THROW(names("none"), unavailable);
        fails.join();
        EXPECT_EQ(runs, 2);
        aco::task<> cancelled = aco::spawn([&] { EXPECT_THROW(names("b"), aco::cancelled); });
        aco::sleep_for(1ms);
        aco::task<> closes = aco::spawn([&] { names.close(); });
        cancelled.join();
        EXPECT_THROW(names("a"), aco::error);
        mine.reset();
        closes.join();
    });
}

} // namespace
