// Promises of <aco.hpp> about exceptions: out of a coroutine, into one, in generators, across threads, and plain
// coroutines. Compiled as C++17 to C++23, with ACO_DEBUG 0 and 1.
#include "exceptions.hpp"

#include <functional>
#include <thread>
#include <vector>

namespace {

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

// Promise: what is thrown and not caught leaves through the resume() that was running, through any number of frames;
// the coroutine is done.
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
        aco::coroutine<> inner(
            [&](auto &) { EXPECT_EQ(thrown_by([&] { outer.raise(3); }), "error " + std::to_string(EBUSY)); });
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

// Promise: exceptions in coroutines that migrate between threads: each thread has its own, a suspended coroutine takes
// the ones that it handles with it.
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
