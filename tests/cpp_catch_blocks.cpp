// Promises of <aco.hpp> about coroutines that are suspended in catch blocks, or while an exception is on its way.
// Compiled as C++17 to C++23, with ACO_DEBUG 0 and 1.
#include "exceptions.hpp"

#include "aco/scheduler.h"

#include <functional>
#include <thread>
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

// Promise: aco_yield_to() works between two that keep their own, and from one that does to one that does not. The other
// way it fails with EPERM.
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
TEST_F(CatchBlocks, TransferToOneThatShares)
{
    std::string log;
    aco::coroutine<> keeps([](auto &self) { self.yield(); });
    aco::coroutine<> does_not(
        [&](auto &self) {
            self.yield();
            log += handled_now();
            errno = 0;
            EXPECT_EQ(aco_yield_to(keeps.native_handle()), -1);
            EXPECT_EQ(errno, EPERM);
            EXPECT_NE(std::string(aco_error_message()).find("ACO_OWN_EXCEPTIONS"), std::string::npos);
            self.yield();
        },
        shared);
    keeps.resume();
    does_not.resume();
    aco::coroutine<> from([&](auto &) {
        try {
            throw problem(1, "from");
        } catch (const problem &) {
            EXPECT_EQ(aco_yield_to(does_not.native_handle()), 0);
            log += " " + handled_now();
        }
    });
    try {
        throw problem(2, "main");
    } catch (const problem &) {
        from.resume();
        EXPECT_EQ(handled_now(), "2:main");
        from.resume();
        EXPECT_EQ(handled_now(), "2:main");
    }
    EXPECT_TRUE(from.done());
    EXPECT_EQ(log, "none 1:from");
}
#endif

// ---- By default ----

// Promise: without any option a coroutine may yield in nested catch blocks, also into others' and to other threads.
TEST_F(CatchBlocks, ByDefault)
{
    auto make = [](int n) {
        return aco::coroutine<int>([n](auto &self) {
            try {
                throw problem(n, "outer");
            } catch (const problem &) {
                try {
                    throw problem(n + 1, "inner");
                } catch (const problem &p) {
                    std::exception_ptr now = std::current_exception();
                    self.yield(1);
                    EXPECT_EQ(now, std::current_exception());
                    EXPECT_EQ(p.number, n + 1);
                }
                self.yield(2);
                throw;
            }
        });
    };
    auto a = make(10), b = make(20), c = make(30);
    try {
        throw problem(1, "main");
    } catch (const problem &) {
        a.resume();
        b.resume();
    }
    std::thread([&] {
        a.resume();
        c.resume();
        EXPECT_EQ(thrown_by([&] { a.resume(); }), "10:outer");
    }).join();
    try {
        throw problem(2, "main");
    } catch (const problem &) {
        b.resume();
        EXPECT_EQ(handled_now(), "2:main");
        EXPECT_EQ(thrown_by([&] { b.resume(); }), "20:outer");
        c.reset(); // inside two catch blocks
        EXPECT_EQ(handled_now(), "2:main");
    }
}

// Promise: the same for coroutines that others resume, through aco.hpp or by their handle, also on share stacks.
TEST_F(CatchBlocks, ByDefaultNested)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    auto body = [](auto &self) {
        for (int i = 0;; ++i)
            try {
                throw problem(i, "mine");
            } catch (const problem &) {
                self.yield();
                EXPECT_EQ(handled_now(), std::to_string(i) + ":mine");
            }
    };
    for (bool is_shared : {false, true}) {
        aco::options how;
        if (is_shared)
            how.on(stack);
        aco::coroutine<> a(body, how), b(body, how), outer([&](auto &self) {
            for (;;)
                try {
                    throw problem(7, "outer");
                } catch (const problem &) {
                    a.resume();
                    aco_resume(b.native_handle());
                    self.yield();
                    EXPECT_EQ(handled_now(), "7:outer");
                }
        });
        for (int i = 0; i < 5; ++i) {
            a.resume();
            outer.resume();
            aco_send(b.native_handle(), nullptr);
            EXPECT_EQ(handled_now(), "none");
        }
    }
    aco_share_stack_destroy(stack);
}

// Promise: generators too: each side has its own, also through yield_from(), when the consumer stops early, and when
// an exception leaves.
TEST_F(CatchBlocks, GeneratorsByDefault)
{
    auto make = [](int n) {
        return aco::generator<int>([n](auto &yield) {
            try {
                throw problem(n, "outer");
            } catch (const problem &) {
                yield(n);
                yield.yield_from(aco::generator<int>([n](auto &inner) {
                    EXPECT_EQ(handled_now(), "none");
                    try {
                        throw problem(n + 1, "inner");
                    } catch (const problem &) {
                        inner(n + 1);
                        EXPECT_EQ(handled_now(), std::to_string(n + 1) + ":inner");
                        inner(n + 2);
                    }
                }));
                EXPECT_EQ(handled_now(), std::to_string(n) + ":outer");
                throw;
            }
        });
    };
    std::vector<int> seen;
    for (int stop = 0; stop < 5; ++stop)
        try {
            throw problem(5, "consumer");
        } catch (const problem &) {
            auto g = make(10), h = make(20);
            auto j = h.begin();
            std::string text = thrown_by([&] {
                for (int i : g) {
                    EXPECT_EQ(handled_now(), "5:consumer");
                    if (j != h.end() && stop < 3)
                        ++j;
                    seen.push_back(i);
                    if (static_cast<int>(seen.size()) == stop)
                        break;
                }
            });
            EXPECT_EQ(text, stop == 0 || stop > 3 ? (stop == 0 ? "20:outer" : "10:outer") : "");
            EXPECT_EQ(handled_now(), "5:consumer");
            seen.clear();
        }
}

void *task(void *arg)
{
    aco::coroutine<> inner([](auto &self) {
        try {
            throw problem(3, "inner");
        } catch (const problem &) {
            self.yield();
            EXPECT_EQ(handled_now(), "3:inner");
        }
    });
    for (int i = 0; i < 3; ++i)
        try {
            throw problem(i, static_cast<const char *>(arg));
        } catch (const problem &) {
            if (i < 2)
                inner.resume();
            aco_task_yield();
            EXPECT_EQ(handled_now(), std::to_string(i) + ":" + static_cast<const char *>(arg));
            aco_sleep(1);
            EXPECT_EQ(handled_now(), std::to_string(i) + ":" + static_cast<const char *>(arg));
        }
    return nullptr;
}

// Promise: tasks with ACO_OWN_EXCEPTIONS wait inside catch blocks; they resume coroutines.
TEST_F(CatchBlocks, Tasks)
{
    aco_options_t keeps{};
    keeps.flags = ACO_OWN_EXCEPTIONS | ACO_DETACHED;
    for (const char *name : {"a", "b", "c"})
        ASSERT_NE(aco_spawn(task, const_cast<char *>(name), &keeps), nullptr);
    EXPECT_EQ(aco_run(), 0);
}

#if ACO_DEBUG
void yields_in_catch()
{
    aco::coroutine<int> c(
        [](auto &self) {
            try {
                throw 1;
            } catch (int) {
                self.yield(1);
            }
        },
        aco::options().with(ACO_SHARED_EXCEPTIONS).named("parser"));
    c.resume();
}

void yields_in_catch_of_a_handled_one()
{
    try {
        throw 1;
    } catch (int) {
        yields_in_catch();
    }
}

// Promise: a debug build notices a yield in a catch block where the thread's exceptions are shared, and says by whom.
using CatchBlocksDeathTest = Exceptions;
TEST_F(CatchBlocksDeathTest, Shared)
{
    const char *message = LAST_LINE("^acorn: aco::yield: coroutine 0x[0-9a-f]+: \"parser\" yields inside a catch "
                                    "block, with ACO_SHARED_EXCEPTIONS");
    EXPECT_DEATH(yields_in_catch(), message);
    EXPECT_DEATH(yields_in_catch_of_a_handled_one(), message);
}
#endif

// Promise: no false alarm when somebody has tried to resume the coroutine while it ran.
TEST_F(CatchBlocks, FailedResume)
{
    aco::coroutine<int> c;
    aco::coroutine<> tries([&](auto &) { EXPECT_THROW(c.resume(), aco::error); });
    c = aco::coroutine<int>(
        [&](auto &self) {
            EXPECT_FALSE(tries.resume());
            self.yield(1);
        },
        aco::options().with(ACO_SHARED_EXCEPTIONS));
    try {
        throw problem(1, "resumer");
    } catch (const problem &) {
        EXPECT_TRUE(c.resume());
    }
}

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
