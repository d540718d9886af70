// Promises of <aco.hpp> and aco_cancel() about coroutines that are cancelled: destructors, handlers, exceptions on
// their way. Compiled as C++17 to C++23, with ACO_DEBUG 0 and 1.
#include "exceptions.hpp"

namespace {

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

void cancelled_in_noexcept()
{
    aco::coroutine<> c([](auto &self) { [&self]() noexcept { self.yield(); }(); });
    c.resume();
    c.cancel();
}

using CancelDeathTest = Exceptions;

TEST_F(CancelDeathTest, Swallowed)
{
    EXPECT_DEATH(
        swallows(),
        LAST_LINE(
            "^acorn: aco_cancel: coroutine 0x[0-9a-f]+: a catch \\(...\\) block did not throw its cancellation again"));
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

} // namespace
