// Promises of <aco.hpp> and aco_cancel() about exceptions: out of a coroutine, into one, inside catch blocks, while one is
// cancelled. Compiled as C++17 to C++23, with ACO_DEBUG 0 and 1.
#include "aco.hpp"
#include "death.h"
#include "sanitizers.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

const aco::options own = aco::options().with(ACO_OWN_EXCEPTIONS);

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

std::string handled_now()
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

// ---- Out of a coroutine ----

template <class Self> __attribute__((noinline)) void throw_at_depth(Self &self, int depth, std::string &log)
{
    logged l{log, static_cast<char>('0' + depth)};
    self.yield(depth);
    if (depth == 9)
        throw problem(depth, "deep");
    throw_at_depth(self, depth + 1, log);
    log += '!';
}

// Promise: what is thrown and not caught leaves through the resume() that was running, through any number of frames; the
// coroutine is done.
TEST_F(Out, ThroughTenFrames)
{
    std::string log;
    aco::coroutine<int> c([&log](auto &self) { throw_at_depth(self, 0, log); });
    for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(c.resume());
        EXPECT_EQ(c.value(), i);
    }
    EXPECT_EQ(thrown_by([&] { c.resume(); }), "9:deep");
    EXPECT_EQ(log, "9876543210");
    EXPECT_TRUE(c.done());
    EXPECT_EQ(thrown_by([&] { c.resume(); }), "error " + std::to_string(ESRCH)) << "thrown once";
    c.reset();
    EXPECT_EQ(log, "9876543210");
}

TEST_F(Out, FromTheFirstResume)
{
    aco::coroutine<int, int, int> c([](auto &, int n) -> int { throw n; });
    EXPECT_EQ(thrown_by([&] { c.resume(3); }), "int 3");
    EXPECT_TRUE(c.done());
}

// Promise: an exception that nobody fetches goes with the coroutine; one thrown object is not copied.
struct tracked {
    static int alive, copies;
    tracked() { ++alive; }
    tracked(const tracked &) { ++alive, ++copies; }
    tracked &operator=(const tracked &) = delete;
    ~tracked() { --alive; }
};
int tracked::alive, tracked::copies;

TEST_F(Out, TheObjectItself)
{
    {
        aco::coroutine<> c([](auto &) { throw tracked(); });
        bool caught = false;
        try {
            c.resume();
        } catch (const tracked &) {
            caught = true;
        }
        EXPECT_TRUE(caught);
        EXPECT_EQ(tracked::alive, 0) << "the coroutine does not keep it";
    }
    EXPECT_EQ(tracked::alive, 0);
    EXPECT_EQ(tracked::copies, 0);
}

TEST_F(Out, Rethrown)
{
    std::string log;
    aco::coroutine<> c([&log](auto &self) {
        logged l{log, 'a'};
        try {
            logged m{log, 'b'};
            self.yield();
            throw problem(1, "first");
        } catch (problem &p) {
            p.number = 2;
            log += 'c';
            throw;
        }
    });
    c.resume();
    EXPECT_EQ(thrown_by([&] { c.resume(); }), "2:first");
    EXPECT_EQ(log, "bca");
}

TEST_F(Out, Nested)
{
    aco::coroutine<> c([](auto &self) {
        try {
            self.yield();
            throw problem(1, "inner");
        } catch (...) {
            std::throw_with_nested(problem(2, "outer"));
        }
    });
    c.resume();
    std::string whats;
    try {
        c.resume();
    } catch (const problem &p) {
        whats = p.what();
        whats += " of " + thrown_by([&] { std::rethrow_if_nested(p); });
    }
    EXPECT_EQ(whats, "outer of 1:inner");
}

// Promise: through two coroutines, out of the inner's resume() in the outer, then out of the outer's.
TEST_F(Out, AcrossCoroutines)
{
    std::string log;
    aco::coroutine<> outer([&log](auto &self) {
        logged l{log, 'o'};
        aco::coroutine<> inner([&log](auto &me) {
            logged m{log, 'i'};
            me.yield();
            throw problem(5, "inside");
        });
        inner.resume();
        self.yield();
        inner.resume();
        log += '!';
    });
    EXPECT_TRUE(outer.resume());
    EXPECT_EQ(thrown_by([&] { outer.resume(); }), "5:inside");
    EXPECT_EQ(log, "io");

    aco::coroutine<int> catches([](auto &self) {
        for (int i = 0; i < 3; ++i) {
            aco::coroutine<> inner([i](auto &) { throw i; });
            std::string text = thrown_by([&] { inner.resume(); });
            EXPECT_EQ(text, "int " + std::to_string(i));
            self.yield(i);
        }
    });
    int n = 0;
    while (catches.resume())
        EXPECT_EQ(catches.value(), n++);
    EXPECT_EQ(n, 3);

    std::function<void(int)> chain = [&](int depth) {
        aco::coroutine<> next([&, depth](auto &) {
            if (depth == 0)
                throw problem(0, "end of chain");
            chain(depth - 1);
        });
        next.resume();
    };
    EXPECT_EQ(thrown_by([&] { chain(100); }), "0:end of chain");
}

// Promise: many suspended in try blocks, throwing and catching in turn, do not disturb each other.
TEST_F(Out, Interleaved)
{
    std::vector<aco::coroutine<std::string>> all;
    for (int i = 0; i < 20; ++i)
        all.emplace_back([i](auto &self) {
            for (int round = 0; round < 5; ++round) {
                std::string text;
                try {
                    self.yield("before");
                    throw problem(i * 10 + round, "mine");
                } catch (const problem &p) {
                    text = std::to_string(p.number);
                }
                self.yield(text);
            }
            throw problem(i, "last");
        });
    for (int round = 0; round < 5; ++round)
        for (int step = 0; step < 2; ++step)
            for (int i = 0; i < 20; ++i) {
                auto &c = all[static_cast<size_t>(i)];
                ASSERT_TRUE(c.resume());
                EXPECT_EQ(c.value(), step ? std::to_string(i * 10 + round) : "before");
            }
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(thrown_by([&] { all[static_cast<size_t>(i)].resume(); }), std::to_string(i) + ":last");
}

// Promise: constructing what the function captures may throw, and nothing is left.
TEST_F(Out, FromTheFunctionsMove)
{
    struct moves_badly {
        moves_badly() = default;
        moves_badly(const moves_badly &) { throw problem(7, "copy"); }
        void operator()(aco::coroutine<>::self &) {}
        tracked t;
    } f;
    EXPECT_EQ(thrown_by([&] { aco::coroutine<> c(f); }), "7:copy");
    EXPECT_EQ(tracked::alive, 1);
}

// ---- Into a coroutine ----

TEST_F(In, CaughtInside)
{
    aco::coroutine<int> c([](auto &self) {
        for (int i = 0;; ++i)
            try {
                self.yield(i);
            } catch (const problem &p) {
                i = p.number;
            }
    });
    EXPECT_TRUE(c.resume());
    EXPECT_TRUE(c.raise(problem(100, "")));
    EXPECT_EQ(c.value(), 101);
    EXPECT_TRUE(c.resume());
    EXPECT_EQ(c.value(), 102);
    EXPECT_TRUE(c.raise(std::make_exception_ptr(problem(200, ""))));
    EXPECT_EQ(c.value(), 201);
}

TEST_F(In, ReturnsAfterwards)
{
    aco::coroutine<void, int, int> c([](auto &self) {
        try {
            return self.yield();
        } catch (int n) {
            return n;
        }
    });
    EXPECT_TRUE(c.resume(1));
    EXPECT_FALSE(c.raise(42)) << "it caught it and returned";
    EXPECT_EQ(c.result(), 42);
}

TEST_F(In, PassesThrough)
{
    std::string log;
    aco::coroutine<int> c([&log](auto &self) { throw_at_depth(self, 0, log); });
    for (int i = 0; i < 5; ++i)
        c.resume();
    EXPECT_EQ(thrown_by([&] { c.raise(problem(77, "from outside")); }), "77:from outside");
    EXPECT_EQ(log, "43210");
    EXPECT_TRUE(c.done());
    {
        aco::coroutine<> d([](auto &self) { self.yield(); });
        d.resume();
        bool caught = false;
        try {
            d.raise(std::make_exception_ptr(tracked()));
        } catch (const tracked &) {
            caught = true;
        }
        EXPECT_TRUE(caught);
    }
    EXPECT_EQ(tracked::alive, 0);
}

TEST_F(In, NeverResumed)
{
    bool ran = false;
    aco::coroutine<> c([&](auto &) { ran = true; });
    EXPECT_EQ(thrown_by([&] { c.raise(3); }), "int 3");
    EXPECT_TRUE(c.done());
    EXPECT_FALSE(ran);
}

TEST_F(In, Refused)
{
    aco::coroutine<> c([](auto &) {});
    c.resume();
    EXPECT_EQ(thrown_by([&] { c.raise(3); }), "error " + std::to_string(ESRCH)) << "done";
    aco::coroutine<> outer([&](auto &) {
        EXPECT_EQ(thrown_by([&] { outer.raise(3); }), "error " + std::to_string(EBUSY)) << "running";
        aco::coroutine<> inner([&](auto &) { EXPECT_EQ(thrown_by([&] { outer.raise(3); }), "error " + std::to_string(EBUSY)); });
        inner.resume();
    });
    outer.resume();
}

TEST_F(In, FromACoroutine)
{
    aco::coroutine<std::string> victim([](auto &self) {
        std::string text = "nothing";
        for (;;)
            try {
                self.yield(text);
            } catch (const problem &p) {
                text = p.what();
            }
    });
    aco::coroutine<> killer([&](auto &self) {
        victim.resume();
        EXPECT_EQ(victim.value(), "nothing");
        victim.raise(problem(1, "raised"));
        EXPECT_EQ(victim.value(), "raised");
        self.yield();
        victim.raise(problem(1, "again"));
    });
    killer.resume();
    killer.resume();
    EXPECT_EQ(victim.value(), "again");
}

// Promise: with ACO_OWN_EXCEPTIONS also into a catch block; throw; there means the one that is handled there.
TEST_F(In, IntoACatchBlock)
{
    std::string log;
    aco::coroutine<> c(
        [&log](auto &self) {
            try {
                try {
                    throw problem(1, "handled");
                } catch (const problem &) {
                    try {
                        self.yield();
                    } catch (int n) {
                        log += std::to_string(n) + handled_now() + " ";
                    }
                    log += handled_now() + " ";
                    throw;
                }
            } catch (const problem &p) {
                log += p.what();
            }
            self.yield();
            try {
                throw problem(2, "second");
            } catch (const problem &) {
                self.yield();
            }
        },
        own);
    c.resume();
    EXPECT_TRUE(c.raise(5));
    EXPECT_EQ(log, "5int 5 1:handled handled");
    c.resume();
    EXPECT_EQ(thrown_by([&] { c.raise(6); }), "int 6");
}

// Promise: raised by who is in a catch block.
TEST_F(In, FromACatchBlock)
{
    aco::coroutine<int> c([](auto &self) {
        int n = 0;
        for (;;) {
            self.yield(n);
            try {
                self.yield(n);
            } catch (const problem &p) {
                n = p.number;
            }
        }
    });
    c.resume();
    c.resume();
    try {
        throw problem(9, "to be passed on");
    } catch (...) {
        EXPECT_TRUE(c.raise(std::current_exception()));
        EXPECT_EQ(c.value(), 9);
        EXPECT_EQ(handled_now(), "9:to be passed on");
    }
}

// ---- While a coroutine is cancelled ----

struct busy_destructor {
    std::string &log;
    ~busy_destructor()
    {
        try {
            logged l{log, 'l'};
            throw problem(1, "in a destructor");
        } catch (const problem &p) {
            log += 'p';
            try {
                throw;
            } catch (...) {
                log += 'r';
            }
        }
    }
};

TEST_F(Cancel, DestructorsThrowAndCatch)
{
    std::string log;
    aco::coroutine<> c([&log](auto &self) {
        busy_destructor d{log};
        logged l{log, '1'};
        busy_destructor e{log};
        self.yield();
    });
    c.resume();
    c.cancel();
    EXPECT_EQ(log, "lpr1lpr");
    c = aco::coroutine<>([&log](auto &self) {
        busy_destructor d{log};
        try {
            throw 1;
        } catch (int) {
            busy_destructor e{log};
        }
        self.yield();
    });
    c.resume();
    log.clear();
    c.reset();
    EXPECT_EQ(log, "lpr");
}

TEST_F(Cancel, DestructorsRunOthers)
{
    struct runner {
        std::string &log;
        aco::coroutine<char> &other;
        ~runner()
        {
            while (other.resume())
                log += other.value();
            aco::coroutine<> more([this](auto &self) {
                logged l{log, '.'};
                self.yield();
            });
            more.resume();
            more.cancel();
            aco::coroutine<> thrower([](auto &) { throw 5; });
            log += thrown_by([&] { thrower.resume(); });
            for (int i : aco::generator<int>([](auto &yield) {
                     yield(1);
                     yield(2);
                     yield(3);
                 })) {
                log += static_cast<char>('0' + i);
                if (i == 2)
                    break;
            }
        }
    };
    std::string log;
    aco::coroutine<char> other([&log](auto &self) {
        logged l{log, ';'};
        self.yield('a');
        self.yield('b');
        self.yield('c');
    });
    other.resume();
    aco::coroutine<> c([&](auto &self) {
        logged l{log, 'x'};
        runner r{log, other};
        logged m{log, 'y'};
        self.yield();
    });
    c.resume();
    c.cancel();
    EXPECT_EQ(log, "ybc;.int 512x");
}

__attribute__((noinline)) void catches_all(aco::coroutine<>::self &self, std::string &log)
{
    logged l{log, 'a'};
    try {
        logged m{log, 'b'};
        self.yield();
    } catch (...) {
        log += 'c';
        throw;
    }
}

// Promise: catch (...) { throw; } lets a cancellation by; handlers of types do not see it.
TEST_F(Cancel, CaughtAndThrownAgain)
{
    std::string log;
    aco::coroutine<> c([&log](auto &self) {
        logged l{log, 'd'};
        try {
            catches_all(self, log);
        } catch (const std::exception &) {
            log += '!';
        } catch (int) {
            log += '!';
        } catch (...) {
            logged m{log, 'e'};
            log += 'f';
            throw;
        }
    });
    c.resume();
    c.cancel();
    EXPECT_EQ(log, "bcafed");
    EXPECT_TRUE(c.done());
    for (int i = 0; i < 100; ++i) {
        c = aco::coroutine<>([&log](auto &self) { catches_all(self, log); });
        c.resume();
    }
    log.clear();
    aco::coroutine<> killer([&](auto &) { c.reset(); });
    killer.resume();
    EXPECT_EQ(log, "bca");
}

// Promise: deferred calls keep their place between the frames though the cancellation is caught and thrown again.
__attribute__((noinline)) void defers_and_catches(aco::coroutine<>::self &self, std::string &log)
{
    aco_defer([](void *p) { *static_cast<std::string *>(p) += 'D'; }, &log);
    catches_all(self, log);
    aco_defer_pop(0);
}

TEST_F(Cancel, DeferredCallsBesidesCatch)
{
    std::string log;
    aco::coroutine<> c([&log](auto &self) {
        logged l{log, 'z'};
        aco_defer([](void *p) { *static_cast<std::string *>(p) += 'E'; }, &log);
        logged m{log, 'y'};
        defers_and_catches(self, log);
    });
    c.resume();
    c.cancel();
    EXPECT_EQ(log.substr(0, 3), "bca");
    EXPECT_NE(log.find('D'), std::string::npos);
    EXPECT_LT(log.find('D'), log.find('E'));
    EXPECT_EQ(log.size(), 7u) << log;
}

// Promise: ends well whatever its owner is doing: handling an exception, or being unwound by one.
TEST_F(Cancel, InACatchBlock)
{
    std::string log;
    try {
        throw problem(1, "handled");
    } catch (const problem &) {
        aco::coroutine<> c([&log](auto &self) { catches_all(self, log); });
        c.resume();
        c.cancel();
        EXPECT_EQ(handled_now(), "1:handled");
    }
    EXPECT_EQ(log, "bca");
    log.clear();
    try {
        throw problem(1, "handled");
    } catch (const problem &) {
        aco::generator<int> g([&log](auto &yield) {
            logged l{log, 'g'};
            for (int i = 0;; ++i)
                yield(i);
        });
        for (int i : g)
            if (i == 3)
                break;
        aco::coroutine<> c([&log](auto &self) {
            busy_destructor d{log};
            self.yield();
        });
        c.resume();
    }
    EXPECT_EQ(log, "lprg");
}

TEST_F(Cancel, WhileItsOwnerIsUnwound)
{
    std::string log;
    std::string text = thrown_by([&log] {
        aco::coroutine<> c([&log](auto &self) {
            busy_destructor d{log};
            catches_all(self, log);
        });
        c.resume();
        throw problem(1, "owner");
    });
    EXPECT_EQ(text, "1:owner");
    EXPECT_EQ(log, "bcalpr");
    log.clear();
    text = thrown_by([&log] {
        try {
            throw problem(1, "first");
        } catch (const problem &) {
            aco::coroutine<> c([&log](auto &self) { catches_all(self, log); });
            c.resume();
            throw problem(2, "second");
        }
    });
    EXPECT_EQ(text, "2:second");
    EXPECT_EQ(log, "bca");
}

// Promise: suspended in catch blocks.
TEST_F(Cancel, SuspendedInACatchBlock)
{
    std::string log;
    {
        aco::coroutine<> c(
            [&log](auto &self) {
                logged l{log, 'a'};
                try {
                    throw tracked();
                } catch (const tracked &) {
                    logged m{log, 'b'};
                    try {
                        throw problem(1, "nested");
                    } catch (const problem &) {
                        logged n{log, 'c'};
                        self.yield();
                    }
                }
            },
            own);
        c.resume();
        EXPECT_EQ(tracked::alive, 1);
        EXPECT_EQ(handled_now(), "none");
        c.cancel();
        EXPECT_EQ(log, "cba");
    }
    EXPECT_EQ(tracked::alive, 0);
}

// Promise: the handler of a cancellation may throw, catch, and cancel others.
TEST_F(Cancel, HandlersDoMuch)
{
    std::string log;
    aco::coroutine<> c([&log](auto &self) {
        try {
            self.yield();
        } catch (...) {
            busy_destructor d{log};
            aco::coroutine<> other([&log](auto &me) { catches_all(me, log); });
            other.resume();
            other.cancel();
            throw;
        }
    });
    c.resume();
    c.cancel();
    EXPECT_EQ(log, "bcalpr");
}

// Promise: a cancellation is no exception: it is not counted as one, neither while it runs nor afterwards.
TEST_F(Cancel, IsNotCounted)
{
    for (const aco::options &how : {aco::options(), own}) {
        int inside = -1;
        struct asks {
            int &count;
            ~asks() { count = std::uncaught_exceptions(); }
        };
        std::string log;
        aco::coroutine<> c(
            [&](auto &self) {
                asks a{inside};
                catches_all(self, log);
            },
            how);
        c.resume();
        c.cancel();
        EXPECT_EQ(std::uncaught_exceptions(), 0);
        EXPECT_GE(inside, 0); // libstdc++ counts one that was thrown again
    }
}

void swallows()
{
    aco::coroutine<> c([](auto &self) {
        try {
            self.yield();
        } catch (...) {
        }
        std::fprintf(stderr, "went on\n");
    });
    c.resume();
    c.cancel();
}

struct yields_in_destructor {
    aco::coroutine<>::self &self;
    ~yields_in_destructor() { self.yield(); }
};

void yields_in_cleanup()
{
    aco::coroutine<> c([](auto &self) {
        yields_in_destructor d{self};
        self.yield();
    });
    c.resume();
    c.cancel();
}

void destroys_itself()
{
    aco::coroutine<> c;
    c = aco::coroutine<>([&](auto &) { c.reset(); });
    c.resume();
}

void with_terminate(void (*act)())
{
    std::set_terminate([] {
        std::fprintf(stderr, "terminated\n");
        std::abort();
    });
    act();
}

void cancelled_in_noexcept()
{
    aco::coroutine<> c([](auto &self) { [&self]() noexcept { self.yield(); }(); });
    c.resume();
    c.cancel();
}

using CancelDeathTest = Exceptions;

TEST_F(CancelDeathTest, Swallowed)
{
    EXPECT_DEATH(swallows(), LAST_LINE("^acorn: aco_cancel: coroutine 0x[0-9a-f]+: a catch \\(...\\) block did not throw its cancellation again"));
}
TEST_F(CancelDeathTest, Yields)
{
    EXPECT_DEATH(yields_in_cleanup(), "acorn: aco_yield: coroutine 0x[0-9a-f]+: yields in its cleanup");
}
TEST_F(CancelDeathTest, ByItself)
{
    EXPECT_DEATH(destroys_itself(), "^acorn: .*is running");
}
TEST_F(CancelDeathTest, InNoexcept)
{
    EXPECT_DEATH(with_terminate(cancelled_in_noexcept), "terminated\n");
}

// ---- Suspended inside catch blocks ----

// Promise: with ACO_OWN_EXCEPTIONS each coroutine, and the thread, handles its own exceptions, interleaved in any order.
TEST_F(CatchBlocks, Interleaved)
{
    enum { MANY = 16 };
    std::vector<aco::coroutine<std::string>> all;
    for (int i = 0; i < MANY; ++i)
        all.emplace_back(
            [i](auto &self) {
                for (int round = 0; round < 3; ++round)
                    try {
                        throw problem(i, "outer");
                    } catch (const problem &) {
                        self.yield(handled_now());
                        try {
                            throw problem(i + 1000, "inner");
                        } catch (const problem &p) {
                            self.yield(handled_now());
                            EXPECT_EQ(p.number, i + 1000);
                        }
                        self.yield(handled_now());
                        try {
                            throw;
                        } catch (const problem &p) {
                            EXPECT_EQ(p.number, i);
                        }
                    }
                self.yield(handled_now());
            },
            own);
    auto check = [&](int i, int step) {
        auto &c = all[static_cast<size_t>(i)];
        ASSERT_TRUE(c.resume());
        std::string wanted = step == 9 ? "none" : step % 3 == 1 ? std::to_string(i + 1000) + ":inner" : std::to_string(i) + ":outer";
        EXPECT_EQ(c.value(), wanted);
    };
    for (int step = 0; step < 10; ++step) {
        try {
            throw problem(step, "main");
        } catch (const problem &) {
            for (int i = 0; i < MANY; ++i) {
                check(step % 2 ? MANY - 1 - i : i, step);
                EXPECT_EQ(handled_now(), std::to_string(step) + ":main");
            }
        }
        EXPECT_EQ(handled_now(), "none");
    }
    all.erase(all.begin(), all.begin() + MANY / 2);
    for (auto &c : all)
        EXPECT_FALSE(c.resume());
}

// Promise: nested: a coroutine inside a catch block resumes others that are inside theirs.
TEST_F(CatchBlocks, Nested)
{
    std::function<aco::coroutine<int>(int)> nest = [&](int depth) {
        return aco::coroutine<int>(
            [&nest, depth](auto &self) {
                try {
                    throw problem(depth, "level");
                } catch (const problem &p) {
                    if (depth > 0) {
                        auto inner = nest(depth - 1);
                        while (inner.resume()) {
                            EXPECT_EQ(handled_now(), std::to_string(depth) + ":level");
                            self.yield(inner.value() + 1);
                        }
                    } else {
                        self.yield(0);
                        self.yield(10);
                    }
                    EXPECT_EQ(p.number, depth);
                    EXPECT_EQ(handled_now(), std::to_string(depth) + ":level");
                }
                EXPECT_EQ(handled_now(), "none");
            },
            own);
    };
    auto c = nest(10);
    EXPECT_TRUE(c.resume());
    EXPECT_EQ(c.value(), 10);
    EXPECT_TRUE(c.resume());
    EXPECT_EQ(c.value(), 20);
    EXPECT_FALSE(c.resume());
    auto d = nest(10);
    EXPECT_TRUE(d.resume());
    EXPECT_EQ(handled_now(), "none");
}

// Promise: one that keeps its own and one that does not, each resuming the other.
TEST_F(CatchBlocks, MixedNesting)
{
    aco::coroutine<> plain([](auto &self) {
        std::string seen;
        aco::coroutine<std::string> keeps(
            [](auto &me) {
                me.yield(handled_now());
                try {
                    throw problem(1, "kept");
                } catch (const problem &) {
                    aco::coroutine<> inner([](auto &innermost) {
                        EXPECT_EQ(thrown_by([] { throw 3; }), "int 3");
                        innermost.yield();
                        throw problem(2, "innermost");
                    });
                    inner.resume();
                    me.yield(handled_now());
                    EXPECT_EQ(thrown_by([&] { inner.resume(); }), "2:innermost");
                    me.yield(handled_now());
                }
            },
            own);
        try {
            throw problem(4, "outside");
        } catch (const problem &) {
            keeps.resume();
            EXPECT_EQ(keeps.value(), "none");
            keeps.resume();
            EXPECT_EQ(keeps.value(), "1:kept");
            EXPECT_EQ(handled_now(), "4:outside");
        }
        self.yield();
        keeps.resume();
        EXPECT_EQ(keeps.value(), "1:kept");
        EXPECT_FALSE(keeps.resume());
    });
    plain.resume();
    EXPECT_FALSE(plain.resume());
}

struct asker {
    std::vector<int> &counts;
    std::function<void()> pause;
    ~asker()
    {
        counts.push_back(std::uncaught_exceptions());
        pause();
        counts.push_back(std::uncaught_exceptions());
    }
};

// Promise: suspended while an exception is on its way, in a destructor: std::uncaught_exceptions() is each one's own.
TEST_F(CatchBlocks, UncaughtExceptions)
{
    std::vector<std::vector<int>> counts(4);
    std::vector<aco::coroutine<>> all;
    for (size_t i = 0; i < counts.size(); ++i)
        all.emplace_back(
            [&counts, i](auto &self) {
                EXPECT_EQ(std::uncaught_exceptions(), 0);
                try {
                    asker a{counts[i], [&self] { self.yield(); }};
                    if (i % 2)
                        throw problem(static_cast<int>(i), "on its way");
                } catch (const problem &p) {
                    EXPECT_EQ(p.number, static_cast<int>(i));
                    EXPECT_EQ(std::uncaught_exceptions(), 0);
                }
            },
            own);
    for (int step = 0; step < 2; ++step)
        for (auto &c : all) {
            EXPECT_EQ(c.resume(), step == 0);
            EXPECT_EQ(std::uncaught_exceptions(), 0);
        }
    for (size_t i = 0; i < counts.size(); ++i)
        EXPECT_EQ(counts[i], (std::vector<int>{static_cast<int>(i % 2), static_cast<int>(i % 2)}));

    // the resumer is the one with an exception on its way
    std::vector<int> mine;
    EXPECT_EQ(thrown_by([&mine] {
                  asker a{mine, [] {
                              aco::coroutine<> c([](auto &self) {
                                  EXPECT_EQ(std::uncaught_exceptions(), 0);
                                  self.yield();
                              }, own);
                              c.resume();
                          }};
                  throw 5;
              }),
              "int 5");
    EXPECT_EQ(mine, (std::vector<int>{1, 1}));
}

struct pair_of {
    aco_t *partner;
    std::string log;
    int name;
};

void *transferring(void *arg)
{
    pair_of *me = static_cast<pair_of *>(arg);
    try {
        throw problem(me->name, "transferred");
    } catch (const problem &) {
        aco_yield();
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(aco_yield_to(me->partner), 0) << aco_error_message();
            me->log += handled_now() + " ";
        }
    }
    me->log += handled_now();
    return nullptr;
}

// Promise: aco_yield_to() between two that keep their own; refused with EPERM between one that does and one that does not.
TEST_F(CatchBlocks, Transfer)
{
    aco_options_t keeps{};
    keeps.flags = ACO_OWN_EXCEPTIONS;
    pair_of a{nullptr, "", 1}, b{nullptr, "", 2};
    aco_t *first = aco_new(transferring, &a, &keeps), *second = aco_new(transferring, &b, &keeps);
    a.partner = second;
    b.partner = first;
    aco_send(first, nullptr);
    aco_send(second, nullptr);
    EXPECT_EQ(handled_now(), "none");
    try {
        throw problem(3, "main");
    } catch (const problem &) {
        aco_send(first, nullptr); // to and fro until the first is done
        EXPECT_EQ(handled_now(), "3:main");
    }
    EXPECT_EQ(aco_state(first), ACO_STATE_DONE);
    EXPECT_EQ(a.log, "1:transferred 1:transferred 1:transferred none");
    EXPECT_EQ(b.log, "2:transferred 2:transferred ");
    aco_send(second, nullptr);
    EXPECT_EQ(b.log, "2:transferred 2:transferred 2:transferred none");
    EXPECT_EQ(aco_state(second), ACO_STATE_DONE);
    aco_destroy(first);
    aco_destroy(second);
}

#if !SANITIZED // which watches every coroutine, as the flag does
TEST_F(CatchBlocks, TransferRefused)
{
    aco::coroutine<> keeps([](auto &self) { self.yield(); }, own), does_not([](auto &self) { self.yield(); });
    keeps.resume();
    does_not.resume();
    auto refused = [](aco_t *to) {
        errno = 0;
        EXPECT_EQ(aco_yield_to(to), -1);
        EXPECT_EQ(errno, EPERM);
        EXPECT_NE(std::string(aco_error_message()).find("ACO_OWN_EXCEPTIONS"), std::string::npos);
    };
    aco::coroutine<>([&](auto &) { refused(keeps.native_handle()); }).resume();
    aco::coroutine<>([&](auto &) { refused(does_not.native_handle()); }, own).resume();
}
#endif

#if ACO_DEBUG
void yields_in_catch()
{
    aco::coroutine<int> c([](auto &self) {
        try {
            throw 1;
        } catch (int) {
            self.yield(1);
        }
    });
    c.resume();
}

void generator_yields_in_catch()
{
    aco::generator<int> g([](auto &yield) {
        try {
            throw 1;
        } catch (int) {
            yield(1);
        }
    });
    g.begin();
}

void yields_in_catch_of_a_handled_one()
{
    try {
        throw 1;
    } catch (int) {
        yields_in_catch();
    }
}

// Promise: a debug build notices a yield in a catch block without the flag.
using CatchBlocksDeathTest = Exceptions;
TEST_F(CatchBlocksDeathTest, FlagForgotten)
{
    const char *message = LAST_LINE("^acorn: aco::yield: inside a catch block, without the flag ACO_OWN_EXCEPTIONS");
    EXPECT_DEATH(yields_in_catch(), message);
    EXPECT_DEATH(generator_yields_in_catch(), message);
    EXPECT_DEATH(yields_in_catch_of_a_handled_one(), message);
}
#endif

// Promise: no false alarm, and nothing disturbed, when it is the resumer that is inside a catch block.
TEST_F(CatchBlocks, TheResumers)
{
    auto make = [] {
        return aco::coroutine<int>([](auto &self) {
            for (int i = 0;; ++i) {
                self.yield(i);
                EXPECT_EQ(thrown_by([&] { throw i; }), "int " + std::to_string(i));
            }
        });
    };
    auto c = make();
    c.resume();
    aco::coroutine<int> outer([&](auto &self) {
        try {
            throw problem(8, "outer");
        } catch (const problem &) {
            c.resume();
            c.resume();
            EXPECT_EQ(handled_now(), "8:outer");
            for (int i : aco::generator<int>([](auto &yield) {
                     yield(1);
                     yield.yield_from(aco::generator<int>([](auto &inner) {
                         inner(2);
                         inner(3);
                     }));
                     yield(4);
                 })) {
                c.resume();
                EXPECT_GT(i, 0);
            }
            EXPECT_EQ(handled_now(), "8:outer");
        }
        self.yield(0);
    });
    try {
        throw problem(9, "main");
    } catch (const problem &) {
        c.resume();
        EXPECT_EQ(handled_now(), "9:main");
        outer.resume();
        c.resume();
        EXPECT_EQ(handled_now(), "9:main");
        EXPECT_TRUE(outer.native_handle());
    }
    c.resume();
    EXPECT_EQ(c.value(), 9);
    EXPECT_FALSE(outer.resume());
}

// ---- Generators ----

TEST_F(Generators, ThrowIntoTheConsumer)
{
    std::string log;
    std::vector<int> seen;
    aco::generator<int> g([&log](auto &yield) {
        logged l{log, 'g'};
        yield(1);
        yield(2);
        throw problem(1, "generator");
    });
    EXPECT_EQ(thrown_by([&] {
                  for (int i : g)
                      seen.push_back(i);
              }),
              "1:generator");
    EXPECT_EQ(seen, (std::vector<int>{1, 2}));
    EXPECT_EQ(log, "g");
    aco::generator<int> at_once([](auto &) { throw 1; });
    EXPECT_EQ(thrown_by([&] { at_once.begin(); }), "int 1");
}

// Promise: what an inner generator throws comes out of the outer's yield_from(), which goes on when it catches it.
TEST_F(Generators, InnerThrowsOuterCatches)
{
    std::string log;
    auto inner = [&log](int n) {
        return aco::generator<int>([&log, n](auto &yield) {
            logged l{log, static_cast<char>('0' + n)};
            yield(n);
            throw problem(n, "inner");
        });
    };
    std::vector<int> seen;
    for (int i : aco::generator<int>([&](auto &yield) {
             for (int n = 1; n < 4; ++n) {
                 log += thrown_by([&] { yield.yield_from(inner(n)); }) + " ";
                 yield(10 * n);
             }
         }))
        seen.push_back(i);
    EXPECT_EQ(seen, (std::vector<int>{1, 10, 2, 20, 3, 30}));
    EXPECT_EQ(log, "11:inner 22:inner 33:inner ");

    auto begun = inner(5);
    begun.begin();
    log.clear();
    seen.clear();
    for (int i : aco::generator<int>([&](auto &yield) {
             log += thrown_by([&] { yield.yield_from(begun); });
             yield(7);
         }))
        seen.push_back(i);
    EXPECT_EQ(seen, std::vector<int>{7});
    EXPECT_EQ(log, "55:inner");
}

aco::generator<int> throwing_levels(int depth, int catcher, std::string &log)
{
    return aco::generator<int>([=, &log](auto &yield) {
        logged l{log, '.'};
        yield(depth);
        if (depth == 0)
            throw problem(0, "bottom");
        if (depth == catcher) {
            std::string text = thrown_by([&] { yield.yield_from(throwing_levels(depth - 1, catcher, log)); });
            EXPECT_EQ(text, "0:bottom");
            yield(-depth);
        } else {
            yield.yield_from(throwing_levels(depth - 1, catcher, log));
            yield(-depth);
        }
    });
}

TEST_F(Generators, ThroughManyLevels)
{
    std::string log;
    std::vector<int> seen;
    EXPECT_EQ(thrown_by([&] {
                  for (int i : throwing_levels(200, -1, log))
                      seen.push_back(i);
              }),
              "0:bottom");
    EXPECT_EQ(seen.size(), 201u);
    EXPECT_EQ(log.size(), 201u);
    seen.clear();
    log.clear();
    for (int i : throwing_levels(200, 100, log))
        seen.push_back(i);
    EXPECT_EQ(seen.size(), 201u + 101u);
    EXPECT_EQ(seen[201], -100);
    EXPECT_EQ(seen.back(), -200);
    EXPECT_EQ(log.size(), 201u);
}

TEST_F(Generators, ConsumerThrows)
{
    std::string log;
    EXPECT_EQ(thrown_by([&] {
                  for (int i : throwing_levels(50, -1, log))
                      if (i == 20)
                          throw problem(i, "consumer");
              }),
              "20:consumer");
    EXPECT_EQ(log.size(), 31u);
}

TEST_F(Generators, YieldInCatchBlocks)
{
    aco::generator<int> g(
        [](auto &yield) {
            for (int i = 0; i < 3; ++i)
                try {
                    throw problem(i, "mine");
                } catch (const problem &p) {
                    yield(i);
                    EXPECT_EQ(handled_now(), std::to_string(p.number) + ":mine");
                    yield.yield_from(aco::generator<int>(
                        [i](auto &inner) {
                            EXPECT_EQ(handled_now(), "none");
                            try {
                                throw problem(i + 10, "inner");
                            } catch (const problem &) {
                                inner(i + 10);
                                EXPECT_EQ(handled_now(), std::to_string(i + 10) + ":inner");
                            }
                        },
                        own));
                    EXPECT_EQ(handled_now(), std::to_string(i) + ":mine");
                }
        },
        own);
    std::vector<int> seen;
    try {
        throw problem(99, "main");
    } catch (const problem &) {
        for (int i : g) {
            seen.push_back(i);
            EXPECT_EQ(handled_now(), "99:main");
        }
    }
    EXPECT_EQ(seen, (std::vector<int>{0, 10, 1, 11, 2, 12}));
}

// ---- Threads ----

// Promise: exceptions in coroutines that migrate between threads: each thread has its own, a suspended coroutine takes along
// those that it handles.
TEST_F(Threads, Migration)
{
    enum { THREADS = 4, EACH = 50, STEPS = 40 };
    std::vector<aco::coroutine<>> all;
    for (int i = 0; i < THREADS * EACH; ++i)
        all.emplace_back(
            [i](auto &self) {
                for (;;) {
                    EXPECT_EQ(std::uncaught_exceptions(), 0);
                    try {
                        self.yield();
                        throw problem(i, "wanderer");
                    } catch (const problem &p) {
                        if (i % 2) {
                            self.yield();
                            EXPECT_EQ(handled_now(), std::to_string(i) + ":wanderer");
                            EXPECT_EQ(thrown_by([] { throw; }), std::to_string(p.number) + ":wanderer");
                        }
                    }
                    EXPECT_EQ(handled_now(), "none");
                }
            },
            i % 2 ? own : aco::options());
    for (int step = 0; step < STEPS; ++step) {
        std::vector<std::thread> threads;
        for (int t = 0; t < THREADS; ++t)
            threads.emplace_back([&all, t, step] {
                try {
                    throw t;
                } catch (int) {
                    // odd ones may be resumed here: they keep their own
                    for (int k = 0; k < EACH; ++k) {
                        int i = (k * THREADS + (t + step) % THREADS);
                        if (i % 2)
                            all[static_cast<size_t>(i)].resume();
                    }
                    EXPECT_EQ(handled_now(), "int " + std::to_string(t));
                }
                for (int k = 0; k < EACH; ++k) {
                    int i = (k * THREADS + (t + step) % THREADS);
                    if (i % 2 == 0)
                        all[static_cast<size_t>(i)].resume();
                }
                EXPECT_EQ(handled_now(), "none");
                EXPECT_EQ(std::uncaught_exceptions(), 0);
            });
        for (auto &thread : threads)
            thread.join();
    }
    std::thread([&] { all.clear(); }).join(); // cancelled by yet another
}

// Promise: thrown on one thread, caught on another.
TEST_F(Threads, LeavesWhereItWasResumed)
{
    std::string text;
    aco::coroutine<> c([](auto &self) {
        self.yield();
        throw problem(3, "elsewhere");
    });
    c.resume();
    std::thread([&] { text = thrown_by([&] { c.resume(); }); }).join();
    EXPECT_EQ(text, "3:elsewhere");
}

// ---- Plain coroutines of aco_new() ----

void *escapes(void *)
{
    throw problem(1, "escaped");
}

void let_it_escape()
{
    aco_t *co = aco_new(escapes, nullptr, nullptr);
    try {
        aco_send(co, nullptr);
    } catch (...) {
        std::fprintf(stderr, "it came through\n");
    }
}

// Promise: an exception that escapes from a function of aco_new() ends in std::terminate(), not in the resumer.
using PlainDeathTest = Exceptions;
TEST_F(PlainDeathTest, Escapes)
{
    EXPECT_DEATH(with_terminate(let_it_escape), LAST_LINE("^terminated"));
}

void *holds(void *arg)
{
    std::string &log = *static_cast<std::string *>(arg);
    logged l{log, 'a'};
    try {
        logged m{log, 'b'};
        aco_yield();
    } catch (...) {
        log += 'c';
        throw;
    }
    return nullptr;
}

// Promise: aco_cancel() runs the destructors of live frames also without <aco.hpp>.
TEST_F(Plain, Cancelled)
{
    std::string log;
    aco_t *co = aco_new(holds, &log, nullptr);
    aco_send(co, nullptr);
    EXPECT_EQ(aco_cancel(co), 0);
    EXPECT_EQ(log, "bca");
    EXPECT_EQ(aco_state(co), ACO_STATE_DONE);
    EXPECT_EQ(aco_result(co), nullptr);
    aco_destroy(co);
}

// Promise: one that was cancelled and is made anew starts without exceptions.
TEST_F(Plain, Restarted)
{
    aco_options_t keeps{};
    keeps.flags = ACO_OWN_EXCEPTIONS;
    std::string log;
    aco_t *co = aco_new(holds, &log, &keeps);
    aco_send(co, nullptr);
    EXPECT_EQ(aco_cancel(co), 0);
    int count = -1;
    ASSERT_EQ(aco_restart(
                  co,
                  [](void *p) -> void * {
                      *static_cast<int *>(p) = std::uncaught_exceptions();
                      return nullptr;
                  },
                  &count),
              0);
    aco_send(co, nullptr);
    EXPECT_EQ(count, 0);
    aco_destroy(co);
}

} // namespace
