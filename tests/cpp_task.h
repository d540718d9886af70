// What the tests of <aco/task.hpp> share.
#ifndef CPP_TASK_H
#define CPP_TASK_H

#include "aco/task.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
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
    __attribute__((noinline)) ~pinned()
    {
        EXPECT_EQ(here, this);
        --alive;
    }
};

// A call without its type: what follows is compiled once.
class call {
public:
    template <class F> explicit call(F *f) : f_(f), run_([](void *g) { (*static_cast<F *>(g))(); }) {}
    void operator()() const { run_(f_); }

private:
    void *f_;
    void (*run_)(void *f);
};

__attribute__((noinline)) void run_in_task(call f)
{
    aco::spawn(f);
    EXPECT_EQ(aco_run(), 0) << aco_error_message();
    aco_run_stats_t stats;
    aco_run_stats(&stats);
    EXPECT_EQ(stats.tasks, 0u);
    EXPECT_EQ(pinned::alive, 0);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    EXPECT_FALSE(std::current_exception());
}
template <class F> void in_task(F f)
{
    run_in_task(call(&f));
}

__attribute__((noinline)) std::string text_thrown_by(call f)
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
// What f() throws: "cancelled ERRNO", "error ERRNO", a text, or "".
template <class F> std::string thrown_by(F &&f)
{
    return text_thrown_by(call(&f));
}

const std::string by_time = "cancelled " + std::to_string(ETIMEDOUT), by_hand = "cancelled " +
    std::to_string(ECANCELED);

[[maybe_unused]] __attribute__((noinline)) void run_and_die(call f)
{
    std::set_terminate([] {
        std::fputs("terminated\n", stderr);
        std::abort();
    });
    aco::spawn(f);
    aco_run();
}
template <class F> void dies(F f)
{
    run_and_die(call(&f));
}

} // namespace

#endif
