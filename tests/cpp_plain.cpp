/* The core of <aco.hpp>'s promises without Google Test, for builds that cannot link it: -m32, libc++, and
 * -fno-exceptions, where a failed call aborts. */
#include "aco.hpp"

#include "child.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

#if defined(WITHOUT_EXCEPTIONS) && defined(__cpp_exceptions)
#error "exceptions should be off"
#endif

namespace {

struct logged {
    std::string &log;
    char name;
    ~logged() { log += name; }
};

/* Promise: values of all kinds travel both ways, and out at the end. */
void values()
{
    aco::coroutine<int, int, std::string> numbers([](auto &self, int first) {
        int sum = first;
        while (sum < 100)
            sum += self.yield(sum);
        return std::to_string(sum);
    });
    CHECK(numbers.resume(1));
    CHECK_EQ(numbers.value(), 1);
    CHECK(numbers.resume(50));
    CHECK_EQ(numbers.value(), 51);
    CHECK(!numbers.resume(60));
    CHECK(numbers.done());
    CHECK(numbers.result() == "111");

    aco::coroutine<std::unique_ptr<int>, std::unique_ptr<int>, std::unique_ptr<int>> move_only(
        [](auto &self, std::unique_ptr<int> first) {
            auto second = self.yield(std::move(first));
            return second;
        });
    CHECK(move_only.resume(std::make_unique<int>(5)));
    std::unique_ptr<int> taken = std::move(move_only.value());
    CHECK_EQ(*taken, 5);
    CHECK(!move_only.resume(std::make_unique<int>(6)));
    CHECK_EQ(*move_only.result(), 6);

    aco::coroutine<int &, const std::string &> references([](auto &self) {
        int mine = 1;
        while (mine < 8)
            CHECK(self.yield(mine) == std::string(100, 'x'));
    });
    int rounds = 0;
    for (; references.resume(std::string(100, 'x')); ++rounds)
        references.value() *= 2;
    CHECK_EQ(rounds, 3);

    std::string log;
    aco::coroutine<> nothing([&log](auto &self) {
        log += 'a';
        self.yield();
        log += 'b';
    });
    CHECK(nothing.resume());
    CHECK(!nothing.resume());
    CHECK(log == "ab");
}

/* Promise: movable; what was moved from is empty; owned by other coroutines; many at once. */
void life()
{
    using type = aco::coroutine<int>;
    auto make = [](int from) {
        return type([from, p = std::make_unique<int>(from)](auto &self) {
            for (int i = from;; ++i)
                self.yield(i - from + *p);
        });
    };
    type a = make(1);
    CHECK(a.resume());
    type b(std::move(a));
    CHECK(a.done() && !a && !a.native_handle());
    CHECK_EQ(b.value(), 1);
    a = std::move(b);
    CHECK(a.resume());
    CHECK_EQ(a.value(), 2);
    a.cancel();
    CHECK(a.done());
    a.reset();
    CHECK(!a.native_handle());

    std::vector<type> many;
    for (int i = 0; i < 100; ++i)
        many.push_back(make(10 * i));
    for (int round = 0; round < 5; ++round)
        for (int i = 0; i < 100; ++i) {
            CHECK(many[static_cast<size_t>(i)].resume());
            CHECK_EQ(many[static_cast<size_t>(i)].value(), 10 * i + round);
        }
    type outer([&](auto &self) {
        type inner = make(7);
        while (inner.resume())
            self.yield(inner.value() * 2);
    });
    CHECK(outer.resume());
    CHECK(outer.resume());
    CHECK_EQ(outer.value(), 16);
}

/* Promise: the calls that were deferred are made when a coroutine is cancelled. */
void deferred()
{
    std::string log;
    {
        aco::coroutine<> c([&log](auto &self) {
            aco_defer([](void *p) { *static_cast<std::string *>(p) += 'a'; }, &log);
            aco_defer([](void *p) { *static_cast<std::string *>(p) += 'b'; }, &log);
            self.yield();
        });
        c.resume();
        CHECK(log.empty());
    }
    CHECK(log == "ba");
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

/* Promise: generators, also of generators, in order; zipped; begun ones; left early. */
void generators()
{
    int next = 200, n = 0;
    for (int i : levels(200)) {
        CHECK_EQ(i, next);
        next = ++n < 201 ? next - 1 : next == 0 ? -1 : next - 1;
    }
    CHECK_EQ(n, 401);
    auto a = levels(3), b = levels(2);
    auto i = a.begin(), j = b.begin();
    n = 0;
    for (; i != a.end() && j != b.end(); ++i, ++j)
        n += *i * *j;
    CHECK_EQ(n, 6 + 2 + 0 + 0 + 2);
    int sum = 0;
    for (int k : aco::generator<int>([&](auto &yield) {
             auto begun = levels(3);
             ++begun.begin();
             yield.yield_from(begun);
             yield.yield_from(std::array<int, 3>{{100, 200, 300}});
         }))
        sum += k;
    CHECK_EQ(sum, 1 + 0 - 1 - 2 - 3 + 600);
    for (int k : levels(100))
        if (k == 50)
            break;
    std::string words;
    for (const std::string &s : aco::generator<const std::string &>([](auto &yield) {
             yield("a");
             yield(std::string(50, 'b'));
         }))
        words += s;
    CHECK(words == "a" + std::string(50, 'b'));
}

/* The child must abort after the one line "acorn: CALL: ...REASON". */
void check_abort(void (*act)(void), const std::string &call, const std::string &reason)
{
#ifdef _WIN32
    ABORTS(act, call, nullptr, reason);
#else
    child_end_t end = child_run(act);
    std::string text = end.text, start = "acorn: " + call + ": ", last = reason + "\n";
    if (WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT && is_one_line(end.text) &&
        text.compare(0, start.size(), start) == 0 && text.size() > last.size() &&
        text.compare(text.size() - last.size(), last.size(), last) == 0)
        return;
    child_complain(__FILE__, __LINE__, call.c_str(), reason.c_str(), &end);
#endif
}

#if defined(__cpp_exceptions)

template<class F>
int thrown_by(F &&f)
{
    try {
        f();
    } catch (int n) {
        return n;
    } catch (const aco::error &e) {
        return -e.code().value();
    }
    return 0;
}

template<class Self>
__attribute__((noinline)) void descend(Self &self, std::string &log, int depth)
{
    logged l{log, static_cast<char>('0' + depth)};
    if (depth < 9)
        return descend(self, log, depth + 1);
    try {
        logged m{log, 'x'};
        self.yield();
    } catch (...) {
        log += 'c';
        throw;
    }
    throw 42;
}

/* Promise: out of a coroutine through ten frames, into one, and destructors when it is cancelled, which may be while
 * its owner handles an exception. */
void exceptions()
{
    auto make = [](std::string &log) { return aco::coroutine<>([&log](auto &self) { descend(self, log, 0); }); };
    std::string log;
    {
        auto c = make(log);
        CHECK(c.resume());
        CHECK_EQ(thrown_by([&] { c.resume(); }), 42);
        CHECK(log == "x9876543210");
        CHECK(c.done());
        CHECK_EQ(thrown_by([&] { c.resume(); }), -ESRCH);
        CHECK_EQ(thrown_by([&] { c.raise(1); }), -ESRCH);
        c = make(log = "");
        CHECK(c.resume());
        CHECK_EQ(thrown_by([&] { c.raise(5); }), 5);
        CHECK(log == "xc9876543210");
        c = make(log = "");
        CHECK(c.resume());
        c.cancel();
        CHECK(log == "xc9876543210");
        CHECK_EQ(std::uncaught_exceptions(), 0);
        log = "";
        try {
            throw 7;
        } catch (int n) {
            c = make(log);
            c.resume();
            c.reset();
            CHECK_EQ(n, 7);
            CHECK_EQ(thrown_by([] { throw; }), 7);
        }
        CHECK(log == "xc9876543210");
    }
    {
        std::vector<aco::coroutine<int>> all;
        for (int i = 1; i < 20; ++i)
            all.emplace_back(
                [i](auto &self) {
                    try {
                        throw i;
                    } catch (int n) {
                        self.yield(n);
                        CHECK_EQ(thrown_by([] { throw; }), i);
                    }
                    throw 100 + i;
                },
                aco::options().with(ACO_OWN_EXCEPTIONS));
        for (auto &c : all)
            CHECK(c.resume());
        all.erase(all.begin() + 10, all.end());
        CHECK(!std::current_exception());
        for (size_t i = 0; i < all.size(); ++i)
            CHECK_EQ(thrown_by([&] { all[i].resume(); }), 101 + static_cast<int>(i));
    }
    int seen = 0;
    CHECK_EQ(thrown_by([&] {
                 for (int i : aco::generator<int>([](auto &yield) {
                          int caught = thrown_by([&] {
                              yield.yield_from(aco::generator<int>([](auto &inner) {
                                  inner(1);
                                  throw 3;
                              }));
                          });
                          yield(caught);
                          throw 4;
                      }))
                     seen = 10 * seen + i;
             }),
             4);
    CHECK_EQ(seen, 13);
    CHECK_EQ(thrown_by([] { aco::coroutine<> c([](auto &) {}, aco::options().with(1u << 30)); }), -EINVAL);
    CHECK_EQ(std::uncaught_exceptions(), 0);
}

void swallows()
{
    aco::coroutine<> c([](auto &self) {
        try {
            self.yield();
        } catch (...) {
        }
    });
    c.resume();
    c.cancel();
}

void escapes()
{
    aco_t *co = aco_new([](void *) -> void * { throw 1; }, nullptr, nullptr);
    try {
        aco_send(co, nullptr);
    } catch (int) {
        _exit(0); /* it came through */
    }
}

void deaths()
{
    check_abort(swallows, "aco_cancel", ": a catch (...) block did not throw its cancellation again");
    DIES_OF(escapes, SIGABRT);
}

#else

void exceptions() {}

/* Promise: a failed call aborts with the line that says why. */
void resumes_done()
{
    aco::coroutine<> c([](auto &) {});
    c.resume();
    c.resume();
}

void wrong_options()
{
    aco::coroutine<> c([](auto &) {}, aco::options().with(1u << 30));
}

void generates_too_much()
{
    auto g = levels(0);
    auto i = g.begin();
    ++i;
    ++i;
}

void cancels_itself()
{
    aco::coroutine<> c;
    c = aco::coroutine<>([&c](auto &) { c.cancel(); });
    c.resume();
}

void deaths()
{
    check_abort(resumes_done, "aco_send", "has ended");
    check_abort(wrong_options, "aco_new", "unknown flags 0x40000000");
    check_abort(generates_too_much, "aco::generator", "has ended");
    check_abort(cancels_itself, "aco_cancel", "is running");
}

#endif

/* Promise: a call on another stack returns what the function returns, and throws what it throws; what yields in it is
 * its caller, at whose end the function's objects are destroyed. */
void calls_on_other_stacks()
{
    std::string log;
    aco::coroutine<> caller([&log](auto &self) {
        CHECK_EQ(*aco::call_on_stack([] { return std::make_unique<int>(5); }), 5);
#ifdef __cpp_exceptions
        try {
            aco::call_on_stack([] { throw 6; });
            CHECK(!"it throws");
        } catch (int thrown) {
            CHECK_EQ(thrown, 6);
        }
#endif
        logged mine{log, 'm'};
        aco::call_on_stack(
            [&log, &self] {
                logged inner{log, 'i'};
                self.yield();
                log += 'y';
                self.yield();
                log += 'z';
            },
            aco::options().with_stack_size(1 << 20));
    });
    CHECK(caller.resume());
    CHECK(caller.resume());
    CHECK(log == "y");
    caller.reset();
#ifdef __cpp_exceptions
    CHECK(log == "yim");
#endif
}

} // namespace

int main()
{
    values();
    calls_on_other_stacks();
    life();
    deferred();
    generators();
    exceptions();
    deaths();
    return check_result("cpp_plain");
}
