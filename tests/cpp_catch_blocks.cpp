// Promises of <aco.hpp> about coroutines that are suspended in catch blocks, or while an exception is on its way.
// Compiled as C++17 to C++23, with ACO_DEBUG 0 and 1.
#include "exceptions.hpp"

#include <functional>
#include <vector>

namespace {

// Promise: with ACO_OWN_EXCEPTIONS each coroutine, and the thread, handles its own exceptions, interleaved in any
// order.
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
        std::string wanted = step == 9 ? "none"
            : step % 3 == 1            ? std::to_string(i + 1000) + ":inner"
                                       : std::to_string(i) + ":outer";
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

// Promise: chains: a coroutine inside a catch block resumes others that are inside theirs.
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

// Promise: aco_yield_to() works between two that keep their own, and fails with EPERM between one that does and one
// that does not.
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

} // namespace
