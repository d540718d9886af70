// Promises of <aco.hpp> about coroutines, except exceptions: every kind of types, functions, life, options, errors.
// Compiled as C++17 to C++23.
#include "errors.hpp"
#include "death.h"
#include "aco/backtrace.h"
#include "aco/pool.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <tuple>
#include <vector>

namespace {

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

// Each type that is yielded with each that is sent, and with each that is returned: every pair once is enough, and all
// combinations take a compiler half a minute more.
using text = std::string;
using owned = std::unique_ptr<int>;

TEST(Coroutine, YieldsNothing)
{
    exchange<void, void, void>();
    exchange<void, int, text>();
    exchange<void, const text &, owned>();
    exchange<void, owned, void>();
}

TEST(Coroutine, YieldsValues)
{
    exchange<int, void, text>();
    exchange<int, int, owned>();
    exchange<int, const text &, void>();
    exchange<int, owned, text>();
}

TEST(Coroutine, YieldsReferences)
{
    exchange<int &, void, owned>();
    exchange<int &, int, void>();
    exchange<int &, const text &, text>();
    exchange<int &, owned, owned>();
}

TEST(Coroutine, YieldsMoveOnly)
{
    exchange<owned, void, void>();
    exchange<owned, int, text>();
    exchange<owned, const text &, owned>();
    exchange<owned, owned, void>();
}

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
        if (aco_get_co() && aco_stack_bounds(aco_get_co(), &lo, &hi) == 0 && &here >= static_cast<char *>(lo) &&
            &here < static_cast<char *>(hi))
            log += name; // on the coroutine's stack
        else
            log += '?';
    }
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

// Promise: what is not there is refused: the value before the first yield, the result before the end, everything of an
// empty object.
TEST(Coroutine, RefusesWhatIsNotThere)
{
    using type = aco::coroutine<int, void, std::string>;
    type c([](auto &self) {
        self.yield(1);
        return std::string("end");
    });
    aco::error e = error_of([&] { c.value(); });
    EXPECT_EQ(e.code().value(), EINVAL);
    EXPECT_NE(std::string(e.what()).find("aco::coroutine::value: coroutine 0x"), std::string::npos) << e.what();
    EXPECT_EQ(error_of([&] { c.result(); }).code().value(), EBUSY);
    ASSERT_TRUE(c.resume());
    EXPECT_EQ(c.value(), 1);
    e = error_of([&] { c.result(); });
    EXPECT_NE(std::string(e.what()).find("has not ended"), std::string::npos) << e.what();
    type cancelled = type([](auto &self) {
        self.yield(2);
        return std::string();
    });
    ASSERT_TRUE(cancelled.resume());
    cancelled.cancel();
    EXPECT_EQ(error_of([&] { cancelled.result(); }).code().value(), EINVAL);
    EXPECT_FALSE(c.resume());
    EXPECT_EQ(c.result(), "end");

    type moved(std::move(c)), empty;
    EXPECT_EQ(moved.result(), "end");
    for (type *none : {&c, &empty}) { // NOLINT: what is left behind is what this tests
        e = error_of([&] { none->resume(); });
        EXPECT_EQ(e.code().value(), EINVAL);
        EXPECT_NE(std::string(e.what()).find("aco::coroutine::resume: the object is empty"), std::string::npos)
            << e.what();
        EXPECT_EQ(error_of([&] { none->value(); }).code().value(), EINVAL);
        EXPECT_EQ(error_of([&] { none->result(); }).code().value(), EINVAL);
        EXPECT_EQ(error_of([&] { none->raise(1); }).code().value(), EINVAL);
        EXPECT_EQ(error_of([&] { none->cancel(); }).code().value(), EINVAL);
        EXPECT_TRUE(none->done());
    }
    aco::coroutine<void, int> takes([](auto &self, int) { self.yield(); });
    aco::coroutine<void, int> taken(std::move(takes));
    EXPECT_EQ(error_of([&] { takes.resume(1); }).code().value(), EINVAL); // NOLINT
    moved.reset();
    EXPECT_EQ(error_of([&] { moved.value(); }).code().value(), EINVAL);
}

// Promise: movable, also while suspended; what was moved from is empty and can be assigned to.
TEST(Coroutine, Moves)
{
    using type = aco::coroutine<int, void, std::string>;
    static_assert(!std::is_copy_constructible_v<type> && !std::is_copy_assignable_v<type>, "move-only");
    static_assert(std::is_nothrow_move_constructible_v<type> && std::is_nothrow_move_assignable_v<type>, "movable");
    static_assert(std::is_nothrow_default_constructible_v<type> && std::is_nothrow_destructible_v<type>,
                  "may be empty");
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

// Promise: chains: coroutines that own, resume and end others, and are ended by another coroutine, on their own stacks.
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

void destroys_pool_in_use()
{
    aco_pool_options_t defaults = {};
    aco::coroutine<int> *left;
    {
        aco::pool pool(defaults);
        left = new aco::coroutine<int>([](auto &self) { self.yield(1); }, aco::options().from(pool.native_handle()));
    }
    delete left;
}

// Promise: a pool limits the coroutines that come from it, and is destroyed with its object.
TEST(Options, Pool)
{
    aco_pool_options_t one = {};
    one.most_stacks = 1;
    aco::pool pool(one);
    {
        const aco::options from_it = aco::options().from(pool.native_handle());
        aco::coroutine<int> c([](auto &self) { self.yield(1); }, from_it);
        EXPECT_EQ(pool.stats().in_use, 1u);
        EXPECT_THROW(aco::coroutine<int>([](auto &self) { self.yield(1); }, from_it), aco::error);
    }
    EXPECT_EQ(pool.stats().in_use, 0u);
    EXPECT_EQ(pool.trim(), 1u);
    EXPECT_EQ(pool.stats().reserved, 0u);
    one.flags = ~0u;
    EXPECT_THROW(aco::pool{one}, aco::error);
    EXPECT_DEATH(destroys_pool_in_use(), LAST_LINE("acorn: aco_pool_destroy: 1 of its stacks are in use"));
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

// Promise: a failed call throws aco::error, with errno's value and the line that says why; nothing is changed.
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
    e = error_of(
        [&] { aco::generator<int> wrong([shared](auto &) {}, aco::options().with(ACO_OWN_FP).with(ACO_SHARED_FP)); });
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

// Promise: after a failed first resume(), the next one counts as the first: the function gets its value.
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

// ---- Backtraces ----

// Far from other functions, so that an address tells whether it is in one of them.
template <class Self> __attribute__((noinline, cold, aligned(4096))) int yields_here(Self &self)
{
    std::string kept(30, 'k'); // with a destructor
    self.yield(1);
    return static_cast<int>(kept.size());
}

// Promise: aco_backtrace() sees the C++ frames of a suspended aco::coroutine, and of one in a catch block.
TEST(Backtrace, OfCppFrames)
{
    std::uintptr_t begin = 0;
    auto function = [&begin](auto &self) {
        begin = reinterpret_cast<std::uintptr_t>(&yields_here<std::remove_reference_t<decltype(self)>>);
        try {
            EXPECT_EQ(yields_here(self), 30);
            throw 1;
        } catch (int) {
            yields_here(self);
        }
    };
    aco::coroutine<int> c(function);
    for (int i = 0; i < 2; i++) {
        void *frames[32] = {};
        EXPECT_TRUE(c.resume());
        int n = aco_backtrace(c.native_handle(), frames, 32);
        if (n < 0 && errno == ENOTSUP)
            GTEST_SKIP() << aco_error_message();
        ASSERT_GE(n, 2); // its callers too
        ASSERT_LT(n, 32);
        bool found = std::any_of(frames, frames + n, [&](void *frame) {
            return reinterpret_cast<std::uintptr_t>(frame) - begin < 4096;
        });
        EXPECT_TRUE(found);
    }
    EXPECT_FALSE(c.resume());
}

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

} // namespace
