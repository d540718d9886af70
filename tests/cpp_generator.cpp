// Promises of <aco.hpp> about generators, except exceptions, and about threads. Compiled as C++17 to C++23.
#include "errors.hpp"

#include <aco/in_stack_generator.hpp>
#include <aco/pool.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace {

// Clang before 16 cannot compile libstdc++'s views.
#if defined(__cpp_lib_ranges) && (!defined(__clang__) || __clang_major__ >= 16)
#define RANGES 1
#else
#define RANGES 0
#endif

// ---- Life ----

struct noted { // in a generator: its stack is not the running coroutine's
    std::string &log;
    char name;
    ~noted() { log += name; }
};

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
             yield.yield_from(
                 aco::generator<std::unique_ptr<int>>([](auto &inner) { inner(std::make_unique<int>(6)); }));
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

// Promise: leaving the loop early runs the destructors of live objects as the generator ends; so do yield_from()'s
// levels.
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

// Promise: a coroutine that ends while it is suspended in a generator, or in one that another hands on, is unwound
// whole.
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

// Promise: a generator has no more elements when its innermost one was unwound with the coroutine that waited in it.
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

// Promise: a generator that outlives the one that handed on its elements is still a generator, with what is left, or
// done.
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

// Promise: as std::generator, an lvalue is passed on by std::move or by std::ranges::ref_view, which leaves it usable.
TEST(Generator, PassesOnAnLvalue)
{
    auto g = count(1, 10);
    std::vector<int> seen;
    for (int i : std::ranges::ref_view(g) | std::views::take(2))
        seen.push_back(i);
    EXPECT_EQ(seen, (std::vector<int>{1, 2}));
    for (int i : std::move(g) | std::views::take(3))
        seen.push_back(i);
    EXPECT_EQ(seen, (std::vector<int>{1, 2, 3, 4, 5})) << "the first view has moved on after its last element";
}
#endif

// Promise: a second begin() stands at the current element. What comes after the last one is the end.
TEST(Generator, BeginsOnce)
{
    auto g = count(1, 4);
    std::vector<int> seen;
    for (int i : g) {
        seen.push_back(i);
        if (i == 2)
            break;
    }
    for (int i : g)
        seen.push_back(i);
    EXPECT_EQ(seen, (std::vector<int>{1, 2, 2, 3}));
    EXPECT_EQ(g.begin(), g.end());
    g = count(1, 4);
    auto i = g.begin();
    EXPECT_EQ(*i, *g.begin());
    for (++i; i != g.end(); ++i)
        seen.push_back(*i);
    EXPECT_EQ(seen, (std::vector<int>{1, 2, 2, 3, 2, 3}));
}

std::size_t stacks_in_use()
{
    aco_pool_stats_t stats;
    EXPECT_EQ(aco_pool_stats(nullptr, &stats), 0);
    return stats.in_use;
}

// Promise: a generator gives its stack back, wherever it was, alone or among many; the thread keeps some.
TEST(Generator, GivesItsStackBack)
{
    std::vector<aco::generator<int>> many;
    auto before = stacks_in_use();
    for (int n = 0; n < 1000; ++n) {
        auto g = count(0, 3);
        auto i = g.begin();
        for (int step = n % 5; step > 1 && i != g.end(); --step)
            ++i;
        if (n % 2)
            many.push_back(std::move(g));
    }
    many.clear();
    EXPECT_LT(stacks_in_use(), before + 200);
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

// ---- On the consumer's stack ----

void hanoi(aco::in_stack_yielder<int> &yield, int disc)
{
    if (disc == 0)
        return;
    hanoi(yield, disc - 1);
    yield(disc);
    hanoi(yield, disc - 1);
}

struct wide {
    double a, b, c;
};

TEST(InStackGenerator, Values)
{
    aco::in_stack_generator discs([](aco::in_stack_yielder<int> &yield) { hanoi(yield, 3); });
    std::vector<int> moved; // by this function: all_of() is another one
    for (int disc : discs)
        moved.push_back(disc);
    EXPECT_EQ(moved, (std::vector<int>{1, 2, 1, 3, 1, 2, 1}));
    double sum = 0;
    aco::in_stack_generator halves([](aco::in_stack_yielder<double> &yield) { yield(0.5), yield(1.5); });
    for (double half : halves)
        sum += half;
    aco::in_stack_generator all([](aco::in_stack_yielder<wide> &yield) { yield({1, 2, 3}), yield({4, 5, 6}); });
    for (wide &w : all)
        sum += std::exchange(w.a, 0) + w.b + w.c;
    EXPECT_EQ(sum, 23);
    for (int i = 0; i < 1000; i++) { // each takes its room back
        aco::in_stack_generator one([i](aco::in_stack_yielder<int> &yield) { yield(i); });
        for (int n : one)
            ASSERT_EQ(n, i);
    }
}

// Promise: frames with variables of large alignment stay what they are.
TEST(InStackGenerator, Alignment)
{
    alignas(64) volatile int own[4] = {7, 0, 0, 0};
    aco::in_stack_generator g([](aco::in_stack_yielder<int> &yield) {
        alignas(128) volatile int mine[4] = {1, 2, 3, 4};
        for (int i = 0; i < 4; i++)
            yield(mine[i]);
    });
    for (int n : g)
        own[1] = own[1] + n;
    EXPECT_EQ(own[0] + own[1], 17);
}

TEST(InStackGenerator, Nested)
{
    int sum = 0;
    aco::in_stack_generator outer([](aco::in_stack_yielder<int> &yield) {
        for (char c : {'a', 'b'}) {
            aco::in_stack_generator inner([c](aco::in_stack_yielder<char> &make) { make(c), make('c'); });
            for (char made : inner)
                yield(made - 'a');
        }
    });
    for (int n : outer) {
        aco::in_stack_generator twice([n](aco::in_stack_yielder<int> &yield) { yield(n), yield(n); });
        for (int m : twice)
            sum += m;
    }
    EXPECT_EQ(sum, 10);
}

// Promise: the function object and what is in its frames are destroyed once, wherever it is suspended.
TEST(InStackGenerator, EndsEarly)
{
    std::string log;
    {
        auto shared = std::make_shared<noted>(noted{log, 's'});
        log.clear();
        auto f = [&log, shared](aco::in_stack_yielder<const std::string &> &yield) {
            noted n{log, 'n'};
            for (;;)
                yield(log);
        };
        aco::in_stack_generator unused(f);
        aco::in_stack_generator g(std::move(f));
        shared.reset();
        for (const std::string &so_far : g)
            if (so_far.size() < 2)
                log += '.';
            else
                break;
    }
    EXPECT_EQ(log, "..ns");
}

TEST(InStackGenerator, Exceptions)
{
    std::string log;
    for (bool by_consumer : {false, true})
        try {
            aco::in_stack_generator g([&](aco::in_stack_yielder<int> &yield) {
                noted n{log, 'n'};
                yield(1);
                throw std::runtime_error("made");
            });
            for (int n : g)
                if (by_consumer)
                    throw std::runtime_error("used" + std::to_string(n));
        } catch (const std::runtime_error &e) {
            log += e.what();
        }
    EXPECT_EQ(log, "nmadenused1");
}

/* gcc 12.2 takes what `asm goto` stores for undefined behind a `try` (-O1 and more): the second value went nowhere. */
static int sum_behind_try(const std::string &text, int last)
{
    int sum = 0;
    aco::in_stack_generator g([&](aco::in_stack_yielder<int> &yield) {
        int n = 0;
        try {
            n = std::stoi(text);
        } catch (const std::exception &) {
            n = 7;
        }
        yield(n);
        yield(n + 1);
    });
    for (int n : g) {
        if (n == last)
            break;
        sum += n;
    }
    return sum;
}

TEST(InStackGenerator, BehindTry)
{
    EXPECT_EQ(sum_behind_try("12", 0), 25);
    EXPECT_EQ(sum_behind_try("12", 13), 12);
    EXPECT_EQ(sum_behind_try("x", 0), 15);
}

} // namespace
