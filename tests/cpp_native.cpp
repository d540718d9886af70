// Promises of <aco.hpp>, but for exceptions (cpp_exceptions.cpp): coroutines of every kind of types, their life, generators.
// Compiled as C++17 to C++23.
#include "aco.hpp"
#include "aco/pool.h"
#include "sanitizers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

// Clang before 16 cannot compile libstdc++'s views.
#if defined(__cpp_lib_ranges) && (!defined(__clang__) || __clang_major__ >= 16)
#define RANGES 1
#else
#define RANGES 0
#endif

namespace {

constexpr bool private_only = UNDER_ASAN; // which cannot follow stacks that are copied

// ---- Every combination of types ----

// How to make the i'th T, and to read which one it is. What moves is moved out by the reader.
template <class T> struct sample;
template <> struct sample<void> {
    template <class V> static int read(V &&) { return -2; } // nothing is sent first
};
template <> struct sample<int> {
    static int make(int i) { return i; }
    static int read(const int &v) { return v; }
};
template <> struct sample<std::string> {
    static std::string make(int i) { return std::string(40, 'x') + std::to_string(i); }
    static int read(const std::string &v) { return std::stoi(v.substr(40)); }
};
template <> struct sample<int &> {
    static int &make(int i)
    {
        static std::array<int, 100> all;
        return all[static_cast<size_t>(i)] = i;
    }
    static int read(int &v)
    {
        EXPECT_EQ(&v, &make(v)) << "the object itself";
        return v;
    }
};
template <> struct sample<const std::string &> {
    static const std::string &make(int i)
    {
        static std::array<std::string, 100> all;
        return all[static_cast<size_t>(i)] = sample<std::string>::make(i);
    }
    static int read(const std::string &v)
    {
        int i = sample<std::string>::read(v);
        EXPECT_EQ(&v, &make(i)) << "the object itself";
        return i;
    }
};
template <> struct sample<std::unique_ptr<int>> {
    static std::unique_ptr<int> make(int i) { return std::make_unique<int>(i); }
    static int read(std::unique_ptr<int> &v)
    {
        auto taken = std::move(v);
        return *taken;
    }
};
template <> struct sample<std::unique_ptr<int> &&> {
    static std::unique_ptr<int> &&make(int i)
    {
        static std::array<std::unique_ptr<int>, 100> all;
        return std::move(all[static_cast<size_t>(i)] = std::make_unique<int>(i));
    }
    static int read(std::unique_ptr<int> &v) { return sample<std::unique_ptr<int>>::read(v); }
};

template <class Yield, class Send, class Self> int turn(Self &self, int i)
{
    if constexpr (std::is_void_v<Send>) {
        if constexpr (std::is_void_v<Yield>)
            self.yield();
        else
            self.yield(sample<Yield>::make(i));
        return -1;
    } else if constexpr (std::is_void_v<Yield>) {
        Send sent = self.yield();
        return sample<Send>::read(sent);
    } else {
        Send sent = self.yield(sample<Yield>::make(i));
        return sample<Send>::read(sent);
    }
}

template <class Send, class C> bool resume(C &c, int i)
{
    if constexpr (std::is_void_v<Send>)
        return c.resume();
    else
        return c.resume(sample<Send>::make(i));
}

template <class Yield, class Send, class Return> void exchange()
{
    std::vector<int> received;
    aco::coroutine<Yield, Send, Return> c([&received](auto &self, auto &&...first) -> Return {
        (received.push_back(sample<Send>::read(first)), ...);
        for (int i = 10; i < 13; ++i)
            received.push_back(turn<Yield, Send>(self, i));
        if constexpr (!std::is_void_v<Return>)
            return sample<Return>::make(77);
    });
    for (int i = 0; i < 3; ++i) {
        ASSERT_FALSE(c.done());
        ASSERT_TRUE(resume<Send>(c, 20 + i));
        if constexpr (!std::is_void_v<Yield>) {
            EXPECT_EQ(sample<Yield>::read(c.value()), 10 + i);
        }
    }
    EXPECT_TRUE(static_cast<bool>(c));
    EXPECT_FALSE(resume<Send>(c, 23));
    EXPECT_TRUE(c.done());
    EXPECT_FALSE(static_cast<bool>(c));
    if constexpr (!std::is_void_v<Return>) {
        EXPECT_EQ(sample<Return>::read(c.result()), 77);
    }
    EXPECT_EQ(received, std::is_void_v<Send> ? (std::vector<int>{-1, -1, -1}) : (std::vector<int>{20, 21, 22, 23}));
}

template <class Yield, class Send> void exchange_returns()
{
    exchange<Yield, Send, void>();
    exchange<Yield, Send, std::string>();
    exchange<Yield, Send, std::unique_ptr<int>>();
}

template <class Yield> void exchange_sends()
{
    exchange_returns<Yield, void>();
    exchange_returns<Yield, int>();
    exchange_returns<Yield, const std::string &>();
    exchange_returns<Yield, std::unique_ptr<int>>();
}

TEST(Coroutine, YieldsNothing) { exchange_sends<void>(); }
TEST(Coroutine, YieldsValues) { exchange_sends<int>(); }
TEST(Coroutine, YieldsReferences) { exchange_sends<int &>(); }
TEST(Coroutine, YieldsMoveOnly) { exchange_sends<std::unique_ptr<int>>(); }
TEST(Coroutine, YieldsOtherTypes)
{
    exchange<std::string, std::string, int>();
    exchange<const std::string &, int &, std::string>();
    exchange<std::unique_ptr<int> &&, std::unique_ptr<int> &&, std::unique_ptr<int>>();
}

// Promise: what is returned by value needs neither a default constructor nor a copy.
TEST(Coroutine, ReturnsWhatCannotBeDefaultConstructed)
{
    struct only {
        explicit only(int i) : value(i) {}
        only(only &&) = default;
        only &operator=(only &&) = delete;
        int value;
    };
    aco::coroutine<void, void, only> c([](auto &) { return only(5); });
    EXPECT_FALSE(c.resume());
    EXPECT_EQ(c.result().value, 5);
}

// Promise: a temporary that is yielded by reference lives until the coroutine is resumed.
TEST(Coroutine, YieldsTemporaries)
{
    aco::coroutine<const std::string &> c([](auto &self) {
        for (int i = 0; i < 5; ++i)
            self.yield(std::string(50, 'a') + std::to_string(i));
    });
    for (int i = 0; c.resume(); ++i)
        EXPECT_EQ(c.value(), std::string(50, 'a') + std::to_string(i));
}

// Promise: a value that is yielded can be changed by who receives it, by reference and by value.
TEST(Coroutine, ReceiversMayChange)
{
    aco::coroutine<int &> c([](auto &self) {
        int mine = 1;
        for (int i = 0; i < 4; ++i) {
            self.yield(mine);
            EXPECT_EQ(mine, 2 << i);
        }
    });
    while (c.resume())
        c.value() *= 2;
}

// Promise: a function that does not take what is sent first ignores it.
TEST(Coroutine, FirstSendIgnored)
{
    std::vector<int> seen;
    aco::coroutine<void, int> c([&](auto &self) {
        seen.push_back(self.yield());
        seen.push_back(self.yield());
    });
    EXPECT_TRUE(c.resume(1));
    EXPECT_TRUE(c.resume(2));
    EXPECT_FALSE(c.resume(3));
    EXPECT_EQ(seen, (std::vector<int>{2, 3}));
}

// Promise: the side that the function gets can be handed to any depth of calls.
void count_down(aco::coroutine<int>::self &self, int n)
{
    if (n == 0)
        return;
    self.yield(n);
    count_down(self, n - 1);
    self.yield(-n);
}

TEST(Coroutine, YieldsFromAnyDepth)
{
    aco::coroutine<int> c([](aco::coroutine<int>::self &self) { count_down(self, 100); });
    for (int i = 100; i > 0; --i) {
        ASSERT_TRUE(c.resume());
        EXPECT_EQ(c.value(), i);
    }
    for (int i = 1; i <= 100; ++i) {
        ASSERT_TRUE(c.resume());
        EXPECT_EQ(c.value(), -i);
    }
    EXPECT_FALSE(c.resume());
}

// ---- Functions ----

int plain_function_calls;
void plain_function(aco::coroutine<int>::self &self)
{
    ++plain_function_calls;
    self.yield(4);
}

// Promise: any function object: a function, captures, move-only and large ones, mutable, std::function.
TEST(Coroutine, FunctionObjects)
{
    aco::coroutine<int> of_function(plain_function);
    EXPECT_TRUE(of_function.resume());
    EXPECT_EQ(of_function.value(), 4);
    EXPECT_EQ(plain_function_calls, 1);

    auto moved = std::make_unique<std::string>("captured");
    aco::coroutine<std::string> of_moved([p = std::move(moved)](auto &self) { self.yield(*p); });
    EXPECT_TRUE(of_moved.resume());
    EXPECT_EQ(of_moved.value(), "captured");

    std::array<int, 20000> large;
    std::iota(large.begin(), large.end(), 0);
    aco::coroutine<int> of_large([large](auto &self) mutable {
        large[0] = 5;
        self.yield(std::accumulate(large.begin(), large.end(), 0));
    });
    EXPECT_TRUE(of_large.resume());
    EXPECT_EQ(of_large.value(), 199990000 + 5);

    std::function<void(aco::coroutine<int>::self &)> function = [n = 1](auto &self) mutable { self.yield(n++); };
    aco::coroutine<int> of_copy(function);
    EXPECT_TRUE(of_copy.resume());
    EXPECT_EQ(of_copy.value(), 1);
    EXPECT_TRUE(static_cast<bool>(function)) << "copied, not moved";
}

// Promise: the function object lives as long as the coroutine, and is destroyed once, after what is on the stack.
TEST(Coroutine, OwnsItsFunction)
{
    auto shared = std::make_shared<std::string>("");
    {
        struct last_words {
            std::string &log;
            const char *word;
            ~last_words() { log += word; }
        };
        std::string log;
        {
            auto function = std::make_unique<last_words>(last_words{log, "function"});
            log.clear();
            aco::coroutine<> c([shared, f = std::move(function)](auto &self) {
                last_words local{f->log, "local,"};
                self.yield();
            });
            EXPECT_EQ(shared.use_count(), 2);
            c.resume();
            EXPECT_EQ(shared.use_count(), 2);
        }
        EXPECT_EQ(log, "local,function");
    }
    EXPECT_EQ(shared.use_count(), 1);
    {
        aco::coroutine<> never_resumed([shared](auto &) {});
        EXPECT_EQ(shared.use_count(), 2);
    }
    EXPECT_EQ(shared.use_count(), 1);
}

// ---- Life ----

struct logged {
    std::string &log;
    char name;
    ~logged()
    {
        char here;
        void *lo, *hi;
        if (aco_get_co() && aco_stack_bounds(aco_get_co(), &lo, &hi) == 0 && &here >= static_cast<char *>(lo) && &here < static_cast<char *>(hi))
            log += name; // on the coroutine's stack
        else
            log += '?';
    }
};

struct noted { // in a generator, whose stack is not the running coroutine's
    std::string &log;
    char name;
    ~noted() { log += name; }
};

template <class Self> void descend(Self &self, std::string &log, char name)
{
    logged l{log, name};
    if (name == 'e')
        self.yield();
    else
        descend(self, log, static_cast<char>(name + 1));
}

auto descender(std::string &log)
{
    return aco::coroutine<>([&log](auto &self) { descend(self, log, 'a'); });
}

// Promise: destructor, reset(), cancel() and assignment run the destructors of live objects, innermost first, on the
// coroutine's stack, once.
TEST(Coroutine, EndsEarly)
{
    std::string log;
    {
        auto c = descender(log);
        c.resume();
        EXPECT_EQ(log, "");
    }
    EXPECT_EQ(log, "edcba");
    log.clear();
    auto c = descender(log);
    c.resume();
    c.cancel();
    EXPECT_EQ(log, "edcba");
    EXPECT_TRUE(c.done());
    c.cancel();
    EXPECT_EQ(log, "edcba") << "cancelling what is done does nothing";
    c.reset();
    EXPECT_EQ(log, "edcba");
    EXPECT_TRUE(c.done());
    EXPECT_EQ(c.native_handle(), nullptr);
    c.reset();

    log.clear();
    c = descender(log);
    c.resume();
    c.reset();
    EXPECT_EQ(log, "edcba");

    log.clear();
    c = descender(log);
    c.resume();
    std::string log2;
    c = descender(log2);
    EXPECT_EQ(log, "edcba");
    EXPECT_TRUE(c.resume());
    EXPECT_FALSE(c.resume());
    EXPECT_EQ(log2, "edcba") << "by returning";
    c = aco::coroutine<>();
    EXPECT_EQ(log2, "edcba");

    log.clear();
    c = descender(log);
    c.cancel();
    EXPECT_TRUE(c.done()) << "never resumed";
    EXPECT_EQ(log, "");
}

// Promise: movable, also while suspended; what was moved from is empty and can be assigned to.
TEST(Coroutine, Moves)
{
    using type = aco::coroutine<int, void, std::string>;
    static_assert(!std::is_copy_constructible_v<type> && !std::is_copy_assignable_v<type>, "move-only");
    static_assert(std::is_nothrow_move_constructible_v<type> && std::is_nothrow_move_assignable_v<type>, "movable");
    static_assert(std::is_nothrow_default_constructible_v<type> && std::is_nothrow_destructible_v<type>, "may be empty");
    auto make = [](int from) {
        return type([from](auto &self) {
            self.yield(from);
            self.yield(from + 1);
            return std::to_string(from);
        });
    };
    type a = make(1);
    ASSERT_TRUE(a.resume());
    aco_t *handle = a.native_handle();
    type b(std::move(a));
    EXPECT_TRUE(a.done()); // NOLINT: what is left behind is what this tests
    EXPECT_EQ(a.native_handle(), nullptr);
    EXPECT_EQ(b.native_handle(), handle);
    EXPECT_EQ(b.value(), 1) << "the value comes along";
    ASSERT_TRUE(b.resume());
    EXPECT_EQ(b.value(), 2);
    a = std::move(b);
    EXPECT_FALSE(a.resume());
    EXPECT_EQ(a.result(), "1");
    b = make(10);
    ASSERT_TRUE(b.resume());
    EXPECT_EQ(b.value(), 10);
    std::swap(a, b);
    EXPECT_EQ(b.result(), "1");
    EXPECT_EQ(a.value(), 10);
    type &same = a;
    a = std::move(same);
    EXPECT_TRUE(a.resume()) << "moved to itself";
    EXPECT_EQ(a.value(), 11);

    std::vector<type> many;
    for (int i = 0; i < 100; ++i) {
        many.push_back(make(i));
        many.back().resume();
    }
    std::reverse(many.begin(), many.end());
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(many[static_cast<size_t>(i)].value(), 99 - i);
    many.erase(many.begin() + 10, many.end());
    EXPECT_TRUE(many.back().resume());
    EXPECT_EQ(many.back().value(), 91);
}

// Promise: nesting: coroutines that own, resume and end others; ended from within another coroutine, on their own stacks.
TEST(Coroutine, OwnedByCoroutines)
{
    std::string log;
    aco::coroutine<int> outer([&log](auto &self) {
        auto first = descender(log);
        auto second = std::make_unique<aco::coroutine<>>(descender(log));
        first.resume();
        second->resume();
        self.yield(1);
        EXPECT_EQ(log, "");
        second.reset();
        EXPECT_EQ(log, "edcba");
        logged l{log, 'x'};
        self.yield(2);
    });
    EXPECT_TRUE(outer.resume());
    EXPECT_TRUE(outer.resume());
    outer.reset();
    EXPECT_EQ(log, "edcbaxedcba");
    log.clear();

    auto victim = descender(log);
    victim.resume();
    aco::coroutine<> killer([&](auto &) { victim.reset(); });
    EXPECT_FALSE(killer.resume());
    EXPECT_EQ(log, "edcba");
}

TEST(Coroutine, NestsDeeply)
{
    std::string log;
    std::function<aco::coroutine<int>(int)> nest = [&](int depth) {
        return aco::coroutine<int>([&, depth](auto &self) {
            logged l{log, 'x'};
            if (depth == 0) {
                self.yield(0);
                return;
            }
            auto inner = nest(depth - 1);
            while (inner.resume())
                self.yield(inner.value() + 1);
        });
    };
    auto c = nest(50);
    ASSERT_TRUE(c.resume());
    EXPECT_EQ(c.value(), 50);
    c.reset();
    EXPECT_EQ(log, std::string(51, 'x'));
}

// Promise: cancelled at every suspension point of a recursive function: all that lives ends once, in order.
struct counted {
    static int alive;
    int *memory = new int[10];
    counted() { ++alive; }
    counted(const counted &) = delete;
    counted &operator=(const counted &) = delete;
    ~counted()
    {
        --alive;
        delete[] memory;
    }
};
int counted::alive;
int deferred_alive;

template <class Self> void branch(Self &self, int depth)
{
    counted a;
    self.yield();
    void *memory = std::malloc(100);
    ++deferred_alive;
    EXPECT_EQ(aco_defer(
                  [](void *p) {
                      --deferred_alive;
                      std::free(p);
                  },
                  memory),
              0);
    if (depth > 0) {
        branch(self, depth - 1);
        counted b;
        self.yield();
        branch(self, depth - 1);
    }
    self.yield();
    EXPECT_EQ(aco_defer_pop(1), 0);
}

TEST(Coroutine, CancelledAnywhere)
{
    auto make = [] { return aco::coroutine<>([](auto &self) { branch(self, 4); }); };
    int points = 0;
    for (auto c = make(); c.resume();)
        ++points;
    EXPECT_EQ(points, 31 * 2 + 15);
    EXPECT_EQ(counted::alive, 0);
    for (int n = 0; n <= points; ++n) {
        auto c = make();
        for (int i = 0; i < n; ++i)
            ASSERT_TRUE(c.resume());
        c.reset();
        ASSERT_EQ(counted::alive, 0) << n;
        ASSERT_EQ(deferred_alive, 0) << n;
    }
}

// Promise: deferred calls and destructors interleave by frame, first the frame's deferred calls, the last first.
struct word {
    std::string *log;
    const char *text;
};
void say(void *p)
{
    word *w = static_cast<word *>(p);
    *w->log += w->text;
}

__attribute__((noinline)) void frame_c(aco::coroutine<>::self &self, std::string &log)
{
    word w{&log, "c1 "}, w2{&log, "c2 "};
    logged l{log, 'C'};
    aco_defer(say, &w);
    logged m{log, 'D'};
    aco_defer(say, &w2);
    self.yield();
    aco_defer_pop(1);
    aco_defer_pop(1);
}
__attribute__((noinline)) void frame_b(aco::coroutine<>::self &self, std::string &log)
{
    logged l{log, 'B'};
    frame_c(self, log);
    log += ' ';
}
__attribute__((noinline)) void frame_a(aco::coroutine<>::self &self, std::string &log)
{
    word w{&log, "a1 "};
    logged l{log, 'A'};
    aco_defer(say, &w);
    frame_b(self, log);
    aco_defer_pop(1);
}

TEST(Coroutine, DeferredCallsAndDestructors)
{
    for (int early = 0; early < 2; ++early) {
        std::string log;
        aco::coroutine<> c([&log](auto &self) { frame_a(self, log); });
        EXPECT_TRUE(c.resume());
        if (early)
            c.cancel();
        else
            EXPECT_FALSE(c.resume());
        EXPECT_EQ(log, early ? "c2 c1 DCBa1 A" : "c2 c1 DC Ba1 A");
    }
}

// ---- Options and errors ----

TEST(Options, AreHandedOn)
{
    aco::options how;
    how.named("worker").with_stack_size(100000).with(ACO_NO_GUARD).with(ACO_OWN_FP);
    EXPECT_EQ(how.flags, static_cast<unsigned>(ACO_NO_GUARD | ACO_OWN_FP));
    aco::coroutine<int> c([](auto &self) { self.yield(1); }, how);
    EXPECT_STREQ(aco_name(c.native_handle()), "worker");
    void *lo, *hi;
    ASSERT_EQ(aco_stack_bounds(c.native_handle(), &lo, &hi), 0);
    EXPECT_GE(static_cast<char *>(hi) - static_cast<char *>(lo), 100000);
    EXPECT_LT(static_cast<char *>(hi) - static_cast<char *>(lo), 200000);
    EXPECT_TRUE(c.resume());
    aco::generator<int> g([](auto &yield) { yield(1); }, aco::options().named("maker"));
    EXPECT_EQ(*g.begin(), 1);
}

TEST(Options, ShareStack)
{
    if (private_only)
        GTEST_SKIP();
    aco_share_stack_t *stack = aco_share_stack_new(0);
    {
        std::string log;
        std::vector<aco::coroutine<int>> all;
        for (int i = 0; i < 10; ++i)
            all.emplace_back(
                [i, &log](auto &self) {
                    logged l{log, static_cast<char>('0' + i)};
                    std::vector<int> mine(10, i);
                    for (int round = 0; round < 3; ++round)
                        self.yield(std::accumulate(mine.begin(), mine.end(), round));
                },
                aco::options().on(stack).with_save_size(2000));
        for (int round = 0; round < 3; ++round)
            for (int i = 0; i < 10; ++i) {
                ASSERT_TRUE(all[static_cast<size_t>(i)].resume());
                EXPECT_EQ(all[static_cast<size_t>(i)].value(), 10 * i + round);
            }
        all.erase(all.begin(), all.begin() + 5);
        EXPECT_EQ(log, "01234");
        for (auto &c : all)
            EXPECT_FALSE(c.resume());
        EXPECT_EQ(log, "0123456789");
        EXPECT_THROW(aco::generator<int>([](auto &) {}, aco::options().on(stack)), aco::error);
    }
    aco_share_stack_destroy(stack);
}

template <class F> aco::error error_of(F f)
{
    try {
        f();
    } catch (const aco::error &e) {
        return e;
    }
    ADD_FAILURE() << "nothing was thrown";
    errno = 0;
    return aco::error();
}

// Promise: a refused call throws aco::error, with errno's value and the line that says why; nothing is changed.
TEST(Error, SaysWhatWasRefused)
{
    static_assert(std::is_base_of_v<std::system_error, aco::error>, "");
    aco::coroutine<int> c([](auto &self) { self.yield(1); });
    EXPECT_TRUE(c.resume());
    EXPECT_FALSE(c.resume());
    aco::error e = error_of([&] { c.resume(); });
    EXPECT_EQ(e.code().value(), ESRCH);
    EXPECT_EQ(e.code(), std::errc::no_such_process);
    EXPECT_NE(std::string(e.what()).find("aco_send: coroutine "), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("has ended"), std::string::npos) << e.what();

    auto shared = std::make_shared<int>(1);
    e = error_of([&] { aco::coroutine<> wrong([shared](auto &) {}, aco::options().with(1u << 30)); });
    EXPECT_EQ(e.code().value(), EINVAL);
    EXPECT_NE(std::string(e.what()).find("unknown flags"), std::string::npos) << e.what();
    e = error_of([&] { aco::generator<int> wrong([shared](auto &) {}, aco::options().with(ACO_OWN_FP).with(ACO_SHARED_FP)); });
    EXPECT_EQ(e.code().value(), EINVAL);
    EXPECT_EQ(shared.use_count(), 1) << "the function was destroyed";

    aco::coroutine<> outer([&](auto &self) {
        aco::coroutine<> inner([&](auto &) {
            aco::error busy = error_of([&] { outer.resume(); });
            EXPECT_EQ(busy.code().value(), EBUSY);
            busy = error_of([&] { outer.cancel(); });
            EXPECT_EQ(busy.code().value(), EBUSY);
        });
        EXPECT_FALSE(inner.resume());
        aco::error busy = error_of([&] { outer.resume(); });
        EXPECT_EQ(busy.code().value(), EBUSY);
        self.yield();
    });
    EXPECT_TRUE(outer.resume());
}

// Promise: after a refused first resume(), the next one is the first: its value is what the function gets.
TEST(Error, RefusedFirstResume)
{
    if (private_only)
        GTEST_SKIP();
    aco_share_stack_t *stack = aco_share_stack_new(0);
    {
        aco::coroutine<> owner([](auto &self) { self.yield(); }, aco::options().on(stack));
        owner.resume(); // the stack is this thread's now
        aco::coroutine<int, int> c([](auto &self, int first) { self.yield(first); }, aco::options().on(stack));
        std::thread([&] { EXPECT_EQ(error_of([&] { c.resume(5); }).code().value(), EPERM); }).join();
        ASSERT_TRUE(c.resume(77));
        EXPECT_EQ(c.value(), 77);
    }
    aco_share_stack_destroy(stack);
}

// ---- Generators ----

aco::generator<int> count(int from, int to)
{
    return aco::generator<int>([=](auto &yield) {
        for (int i = from; i < to; ++i)
            yield(i);
    });
}

template <class Range> std::vector<int> all_of(Range &&range)
{
    std::vector<int> all;
    for (auto &&element : range)
        all.push_back(element);
    return all;
}

TEST(Generator, RangeFor)
{
    EXPECT_EQ(all_of(count(3, 7)), (std::vector<int>{3, 4, 5, 6}));
    EXPECT_EQ(all_of(count(3, 3)), std::vector<int>());
    EXPECT_EQ(all_of(aco::generator<int>()), std::vector<int>()) << "an empty one has no elements";
    aco::generator<std::pair<int, std::string>> pairs([](auto &yield) {
        yield({1, "one"});
        yield({2, "two"});
    });
    auto i = pairs.begin();
    EXPECT_EQ(i->second, "one");
    EXPECT_FALSE(i == pairs.end());
    EXPECT_TRUE(i != pairs.end());
    EXPECT_TRUE(pairs.end() != i);
    i++;
    EXPECT_EQ((*i).first, 2);
    ++i;
    EXPECT_TRUE(i == pairs.end());
    EXPECT_TRUE(pairs.end() == i);
    EXPECT_EQ(error_of([&] { ++i; }).code().value(), ESRCH) << "behind its end";
}

TEST(Generator, Iterator)
{
    using iterator = aco::generator<const std::string &>::iterator;
    static_assert(std::is_same_v<std::iterator_traits<iterator>::iterator_category, std::input_iterator_tag>, "");
    static_assert(std::is_same_v<std::iterator_traits<iterator>::value_type, std::string>, "");
    static_assert(std::is_same_v<std::iterator_traits<iterator>::reference, const std::string &>, "");
    static_assert(std::is_same_v<std::iterator_traits<aco::generator<int>::iterator>::reference, int &>, "");
    static_assert(std::is_default_constructible_v<iterator> && std::is_copy_constructible_v<iterator>, "");
}

// Promise: nothing is computed that is not asked for.
TEST(Generator, IsLazy)
{
    int made = 0;
    aco::generator<int> g([&](auto &yield) {
        for (;; ++made)
            yield(made);
    });
    EXPECT_EQ(made, 0);
    for (int i : g)
        if (i == 4)
            break;
    EXPECT_EQ(made, 4);
}

TEST(Generator, References)
{
    std::vector<int> numbers{1, 2, 3};
    aco::generator<int &> g([&](auto &yield) {
        for (int &i : numbers)
            yield(i);
    });
    for (int &i : g)
        i *= 10;
    EXPECT_EQ(numbers, (std::vector<int>{10, 20, 30}));
    std::string all;
    for (const std::string &s : aco::generator<const std::string &>([](auto &yield) {
             yield("literal ");
             std::string named = "named ";
             yield(named);
             yield(named + "temporary");
         }))
        all += s;
    EXPECT_EQ(all, "literal named named temporary");
}

TEST(Generator, MoveOnlyElements)
{
    std::vector<std::unique_ptr<int>> taken;
    for (auto &p : aco::generator<std::unique_ptr<int>>([](auto &yield) {
             for (int i = 0; i < 5; ++i)
                 yield(std::make_unique<int>(i));
             std::vector<std::unique_ptr<int>> more(1);
             more[0] = std::make_unique<int>(5);
             yield(std::move(more[0]));
             yield.yield_from(aco::generator<std::unique_ptr<int>>([](auto &inner) { inner(std::make_unique<int>(6)); }));
             aco::generator<std::unique_ptr<int>> begun([](auto &inner) {
                 inner(std::make_unique<int>(0));
                 inner(std::make_unique<int>(7));
             });
             begun.begin();
             yield.yield_from(begun);
         }))
        taken.push_back(std::move(p));
    ASSERT_EQ(taken.size(), 8u);
    for (int i = 0; i < 8; ++i)
        EXPECT_EQ(*taken[static_cast<size_t>(i)], i);
}

TEST(Generator, Moves)
{
    using type = aco::generator<int>;
    static_assert(!std::is_copy_constructible_v<type> && !std::is_copy_assignable_v<type>, "");
    static_assert(std::is_nothrow_move_constructible_v<type> && std::is_nothrow_move_assignable_v<type>, "");
    type a = count(0, 10);
    auto i = a.begin();
    ++i;
    type b(std::move(a));
    EXPECT_EQ(all_of(a), std::vector<int>()) << "moved from: empty"; // NOLINT
    i = b.begin();
    EXPECT_EQ(*i, 1) << "it stands where it stood";
    ++i;
    EXPECT_EQ(*i, 2);
    a = count(5, 6);
    EXPECT_EQ(all_of(a), std::vector<int>{5});
    b = std::move(a);
    b.reset();
    EXPECT_EQ(all_of(b), std::vector<int>());
}

// Promise: leaving the loop early runs the destructors of live objects as the generator ends; so do yield_from()'s levels.
TEST(Generator, EarlyExit)
{
    std::string log;
    std::function<aco::generator<int>(int)> nest = [&](int depth) {
        return aco::generator<int>([&, depth](auto &yield) {
            noted l{log, static_cast<char>('0' + depth)};
            yield(depth);
            if (depth < 9)
                yield.yield_from(nest(depth + 1));
        });
    };
    for (int stop = 0; stop < 10; ++stop) {
        log.clear();
        {
            auto g = nest(0);
            for (int i : g)
                if (i == stop)
                    break;
            EXPECT_EQ(log, "");
        }
        std::string wanted = std::string("0123456789").substr(0, static_cast<size_t>(stop) + 1);
        std::string forward = log;
        std::sort(log.begin(), log.end());
        EXPECT_EQ(log, wanted) << "each once";
        EXPECT_EQ(forward.size() == 1 || forward.front() != forward.back(), true);
    }
}

aco::generator<int> levels(int depth)
{
    return aco::generator<int>([depth](auto &yield) {
        yield(depth);
        if (depth > 0) {
            yield.yield_from(levels(depth - 1));
            yield(-depth);
        }
    });
}

// Promise: any number of levels, in order.
TEST(Generator, ThousandLevels)
{
    std::vector<int> wanted;
    for (int i = 1000; i >= 0; --i)
        wanted.push_back(i);
    for (int i = 1; i <= 1000; ++i)
        wanted.push_back(-i);
    EXPECT_EQ(all_of(levels(1000)), wanted);
    auto g = levels(1000);
    auto i = g.begin();
    for (int n = 0; n < 700; ++n)
        ++i;
    EXPECT_EQ(*i, 300);
}

// Promise: a range, and what is left of a generator; one that is finished, or empty, has nothing.
TEST(Generator, YieldsFromWhatIsLeft)
{
    aco::generator<int> g([](auto &yield) {
        yield.yield_from(std::vector<int>{1, 2});
        const std::array<int, 2> more{{3, 4}};
        yield.yield_from(more);
        auto inner = count(5, 9);
        yield.yield_from(inner);
        yield.yield_from(inner);
        auto begun = count(7, 12);
        auto i = begun.begin();
        ++i;
        yield.yield_from(begun);
        yield.yield_from(begun);
        yield.yield_from(aco::generator<int>());
        yield.yield_from(count(0, 0));
        yield.yield_from(aco::generator<short>([](auto &other) { other(12); }));
        auto deep = levels(2); // begun, and in the middle of its own yield_from()
        auto j = deep.begin();
        ++j;
        ++j;
        yield.yield_from(std::move(deep));
        yield(13);
    });
    EXPECT_EQ(all_of(g), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, -1, -2, 13}));
}

// Promise: a generator cannot defer calls: it may end before the coroutine that would make them.
TEST(Generator, DefersNothing)
{
    aco::coroutine<> c([](auto &) {
        aco::generator<int> g([](auto &yield) {
            errno = 0;
            EXPECT_EQ(aco_defer([](void *) {}, nullptr), -1);
            EXPECT_EQ(errno, EPERM);
            yield(1);
        });
        EXPECT_EQ(*g.begin(), 1);
    });
    EXPECT_FALSE(c.resume());
}

// Promise: the running coroutine is the consumer's, and on a private stack it may yield in the generator.
TEST(Generator, YieldsForItsConsumer)
{
    aco::coroutine<int> c([](auto &self) {
        for (int i : aco::generator<int>([&](auto &yield) {
                 for (int n = 0; n < 3; ++n) {
                     EXPECT_EQ(aco_get_co(), self.native_handle());
                     self.yield(10 + n);
                     yield(n);
                 }
             }))
            self.yield(i);
    });
    std::vector<int> seen;
    while (c.resume())
        seen.push_back(c.value());
    EXPECT_EQ(seen, (std::vector<int>{10, 0, 11, 1, 12, 2}));
}

// Promise: a coroutine that ends while it is suspended in a generator, or in one that another hands on, is unwound whole.
TEST(Generator, UnwoundWithItsConsumer)
{
    for (int depth = 0; depth < 3; ++depth) {
        std::string log;
        std::function<aco::generator<int>(aco::coroutine<>::self &, int)> nest = [&](auto &self, int left) {
            return aco::generator<int>([&, left](auto &yield) {
                noted l{log, static_cast<char>('0' + left)};
                if (left)
                    yield.yield_from(nest(self, left - 1));
                self.yield();
                yield(left);
            });
        };
        {
            aco::coroutine<> c([&](auto &self) {
                noted l{log, 'c'};
                for (int i : nest(self, depth))
                    (void)i;
            });
            EXPECT_TRUE(c.resume());
        }
        EXPECT_EQ(log, std::string("012").substr(0, static_cast<size_t>(depth) + 1) + "c");
    }
}

// Promise: one whose innermost was unwound with the coroutine that waited in it has no more elements.
TEST(Generator, OutlivesTheCoroutineThatWaitedInIt)
{
    aco::generator<int> outer([](auto &yield) {
        yield.yield_from(aco::generator<int>([](auto &inner) {
            inner(1);
            aco_yield();
            inner(2);
        }));
    });
    auto i = outer.begin();
    aco::coroutine<> c([&](auto &) { ++i; });
    c.resume();
    c.cancel();
    EXPECT_EQ(error_of([&] { ++i; }).code().value(), ESRCH);
}

// Promise: a consumer on a share stack is copied away and back between elements.
TEST(Generator, ConsumedOnAShareStack)
{
    if (private_only)
        GTEST_SKIP();
    aco_share_stack_t *stack = aco_share_stack_new(0);
    {
        std::vector<aco::coroutine<>> all;
        int total = 0;
        for (int n = 0; n < 3; ++n)
            all.emplace_back(
                [&](auto &self) {
                    int sum = 0;
                    for (int i : levels(10)) {
                        sum += i;
                        self.yield();
                    }
                    total += sum;
                },
                aco::options().on(stack));
        for (bool some = true; some;) {
            some = false;
            for (auto &c : all)
                some = (!c.done() && c.resume()) || some;
        }
        int sum = 0;
        for (int i : levels(10))
            sum += i;
        EXPECT_EQ(total, 3 * sum);
    }
    aco_share_stack_destroy(stack);
}

// Promise: one whose elements another was handing on, and that outlives it, is still a generator: with what is left, or done.
TEST(Generator, OutlivesWhoAskedForIt)
{
    for (int depth = 0; depth < 3; ++depth) {
        auto inner = levels(depth + 2);
        {
            aco::generator<int> outer([&](auto &yield) { yield.yield_from(inner); });
            auto i = outer.begin();
            for (int n = 0; n < depth; ++n)
                ++i;
        }
        auto left = all_of(inner);
        if (!left.empty()) {
            EXPECT_EQ(left.size(), static_cast<size_t>(depth + 4));
            EXPECT_EQ(left.back(), -(depth + 2));
        }
    }
}

struct tree {
    std::unique_ptr<tree> left, right;
    int value;
};

std::unique_ptr<tree> balanced(int from, int to)
{
    if (from >= to)
        return nullptr;
    int middle = from + (to - from) / 2;
    return std::unique_ptr<tree>(new tree{balanced(from, middle), balanced(middle + 1, to), middle});
}

void walk(const tree *t, aco::yielder<int> &yield)
{
    if (!t)
        return;
    walk(t->left.get(), yield);
    yield(t->value);
    walk(t->right.get(), yield);
}

aco::generator<int> walk_by_generators(const tree *t)
{
    return aco::generator<int>([t](auto &yield) {
        if (!t)
            return;
        yield.yield_from(walk_by_generators(t->left.get()));
        yield(t->value);
        yield.yield_from(walk_by_generators(t->right.get()));
    });
}

TEST(Generator, TreeWalk)
{
    auto t = balanced(0, 1000);
    int next = 0;
    for (int i : aco::generator<int>([&](auto &yield) { walk(t.get(), yield); }))
        ASSERT_EQ(i, next++);
    EXPECT_EQ(next, 1000);
    next = 0;
    for (int i : walk_by_generators(t.get()))
        ASSERT_EQ(i, next++);
    EXPECT_EQ(next, 1000);
}

TEST(Generator, Zip)
{
    auto a = count(0, 5), b = count(100, 200);
    std::vector<int> sums;
    auto i = a.begin();
    auto j = b.begin();
    for (; i != a.end() && j != b.end(); ++i, ++j)
        sums.push_back(*i + *j);
    EXPECT_EQ(sums, (std::vector<int>{100, 102, 104, 106, 108}));
}

// Promise: a generator's function and its consumer may consume others: a chain of filters, and coroutines in between.
TEST(Generator, InsideConsumers)
{
    std::function<aco::generator<int>(aco::generator<int>)> sieve = [&](aco::generator<int> from) {
        return aco::generator<int>([&sieve, source = std::move(from)](auto &yield) mutable {
            auto i = source.begin();
            int prime = *i;
            yield(prime);
            yield.yield_from(sieve(aco::generator<int>([&source, i, prime](auto &rest) mutable {
                while (++i != source.end())
                    if (*i % prime != 0)
                        rest(*i);
            })));
        });
    };
    std::vector<int> primes;
    for (int p : sieve(count(2, 1000000))) {
        primes.push_back(p);
        if (primes.size() == 20)
            break;
    }
    EXPECT_EQ(primes, (std::vector<int>{2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71}));

    aco::coroutine<int> consumer([](auto &self) {
        for (int i : count(0, 3))
            for (int j : count(0, 3))
                self.yield(10 * i + j);
    });
    std::vector<int> seen;
    while (consumer.resume())
        seen.push_back(consumer.value());
    EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 10, 11, 12, 20, 21, 22}));

    aco::generator<int> of_coroutine([](auto &yield) {
        aco::coroutine<int> c([](auto &self) {
            self.yield(1);
            self.yield(2);
        });
        while (c.resume())
            yield(c.value());
    });
    EXPECT_EQ(all_of(of_coroutine), (std::vector<int>{1, 2}));
}

#if RANGES
TEST(Generator, IsARange)
{
    using type = aco::generator<int>;
    static_assert(std::input_iterator<type::iterator>);
    static_assert(!std::forward_iterator<type::iterator>);
    static_assert(std::sentinel_for<type::sentinel, type::iterator>);
    static_assert(std::ranges::input_range<type> && !std::ranges::forward_range<type>);
    static_assert(std::ranges::view<type>);
    static_assert(std::ranges::viewable_range<type>);
    static_assert(std::ranges::input_range<aco::generator<const std::string &>>);
    static_assert(std::ranges::input_range<aco::generator<std::unique_ptr<int>>>);
    static_assert(std::ranges::input_range<aco::generator<int &&>>);
    static_assert(std::ranges::input_range<aco::generator<const int>>);

    std::vector<int> squares;
    for (int i : count(0, 1000000) | std::views::filter([](int n) { return n % 2 == 1; }) |
                     std::views::transform([](int n) { return n * n; }) | std::views::take(4))
        squares.push_back(i);
    EXPECT_EQ(squares, (std::vector<int>{1, 9, 25, 49}));
    auto g = count(1, 10);
    auto found = std::ranges::find(g, 5);
    ASSERT_NE(found, g.end());
    EXPECT_EQ(*found, 5);
    int sum = 0;
    std::ranges::for_each(count(0, 10), [&](int i) { sum += i; });
    EXPECT_EQ(sum, 45);
    std::vector<int> copied;
    std::ranges::copy(count(0, 3), std::back_inserter(copied));
    EXPECT_EQ(copied, (std::vector<int>{0, 1, 2}));
}
#endif

// ---- Measuring ----

// Promise: coroutines are measured by their function object's type.
TEST(Measuring, IsByTheFunctionObject)
{
    std::vector<size_t> made; // of those with a stack of 20000 bytes, rounded up
    auto visit = [](const aco_stack_usage_t *usage, void *to) {
        if (usage->stack_size == 32768)
            static_cast<std::vector<size_t> *>(to)->push_back(usage->made);
        return 0;
    };
    aco_stack_measure(1);
    {
        aco::options options;
        options.stack_size = 20000;
        auto once = [](auto &self) { self.yield(1); };
        aco::coroutine<int> one(once, options), two(once, options), other([](auto &self) { self.yield(2); }, options);
        EXPECT_TRUE(one.resume() && two.resume() && other.resume());
    }
    aco_stack_measure(0);
    EXPECT_EQ(aco_stack_usage(visit, &made), 0);
    EXPECT_EQ(made, (std::vector<size_t>{2, 1}));
}

// ---- Threads ----

// Promise: coroutines and generators on private stacks go on in any thread.
TEST(Threads, CarryOn)
{
    aco::coroutine<int, int> sum([](auto &self, int first) {
        for (int total = first;;)
            total += self.yield(total);
    });
    auto g = levels(50);
    aco::generator<int>::iterator i;
    int expected = 0;
    for (int n = 0; n < 20; ++n) {
        std::thread([&] {
            sum.resume(n);
            if (n == 0)
                i = g.begin();
            else
                ++i;
        }).join();
        expected += n;
        EXPECT_EQ(sum.value(), expected);
        EXPECT_EQ(*i, 50 - n);
    }
    std::thread([&] { sum.reset(); }).join();
    EXPECT_TRUE(sum.done());
}

} // namespace
