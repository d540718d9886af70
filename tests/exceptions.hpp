// What the tests of exceptions share.
#ifndef EXCEPTIONS_HPP
#define EXCEPTIONS_HPP

#include "aco.hpp"
#include "death.h"
#include "sanitizers.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

const aco::options own = aco::options().with(ACO_OWN_EXCEPTIONS), shared = aco::options().with(ACO_SHARED_EXCEPTIONS);

struct logged {
    std::string &log;
    char name;
    ~logged() { log += name; }
};

struct problem : std::runtime_error {
    problem(int n, std::string why) : std::runtime_error(std::move(why)), number(n) {}
    int number;
};

// What f() throws, as "NUMBER:WHY"; "" if it throws nothing.
template <class F> std::string thrown_by(F &&f)
{
    try {
        f();
    } catch (const problem &p) {
        return std::to_string(p.number) + ":" + p.what();
    } catch (const aco::error &e) {
        return "error " + std::to_string(e.code().value());
    } catch (int n) {
        return "int " + std::to_string(n);
    }
    return "";
}

inline std::string handled_now()
{
    std::exception_ptr e = std::current_exception();
    return e ? thrown_by([&] { std::rethrow_exception(e); }) : "none";
}

// Afterwards nothing is left of any exception in this thread.
class Exceptions : public testing::Test {
protected:
    void TearDown() override
    {
        EXPECT_EQ(std::uncaught_exceptions(), 0);
        EXPECT_FALSE(std::current_exception());
    }
};

using Out = Exceptions;
using In = Exceptions;
using Cancel = Exceptions;
using CatchBlocks = Exceptions;
using Generators = Exceptions;
using Threads = Exceptions;
using Plain = Exceptions;

// Promise: an exception that nobody fetches goes with the coroutine; one thrown object is not copied.
struct tracked {
    static inline int alive, copies;
    tracked() { ++alive; }
    tracked(const tracked &) { ++alive, ++copies; }
    tracked &operator=(const tracked &) = delete;
    ~tracked() { --alive; }
};

inline void with_terminate(void (*act)())
{
    std::set_terminate([] {
        std::fprintf(stderr, "terminated\n");
        std::abort();
    });
    act();
}

#endif
