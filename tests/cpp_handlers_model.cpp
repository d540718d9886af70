/* Random walks through coroutines and generators that throw, catch, are suspended inside catch blocks, throw on what
 * they have caught, are cancelled and end by exceptions, against a model of what each is handling. Arguments: the first
 * seed, and how many. */
#include "aco.hpp"
#include "aco/in_stack_generator.h"

#include "check.h"
#include "random.h"

#include <array>
#include <vector>

namespace {

enum { SLOTS = 6, DEPTH = 6, STEPS = 400 };

struct problem {
    static inline int alive;
    int number;
    explicit problem(int n) : number(n) { ++alive; }
    problem(const problem &p) : number(p.number) { ++alive; }
    problem &operator=(const problem &) = delete;
    ~problem() { --alive; }
};

/* A coroutine, one side of an aco::generator, or the thread: who has exceptions of its own. */
struct actor {
    bool is_coroutine = false, cancelled = false;
    std::vector<int> handling; /* the numbers of the exceptions, the innermost last */
};

random_t dice;
int steps, numbers, guards;
actor outside;
struct slot {
    aco::coroutine<> co;
    bool busy = false; /* somebody is making, resuming or ending it */
};
std::array<slot, SLOTS> slots;

/* Not by `throw;`, which libstdc++ counts wrong in a destructor while the same exception is being thrown on. */
int handled()
{
    std::exception_ptr now = std::current_exception();
    if (!now)
        return 0;
    try {
        std::rethrow_exception(now);
    } catch (const problem &p) {
        return p.number;
    }
}

void check(const actor &me)
{
    if (!me.cancelled)
        CHECK_EQ(handled(), me.handling.empty() ? 0 : me.handling.back());
}

void walk(actor &me, int depth);

/* On a stack: throws and catches where it ends. */
struct guard {
    actor &me;
    explicit guard(actor &a) : me(a) { ++guards; }
    guard(const guard &) = delete;
    ~guard()
    {
        --guards;
        if (below(&dice, 2) == 0)
            return;
        check(me);
        try {
            throw problem(++numbers);
        } catch (const problem &p) {
            CHECK_EQ(handled(), p.number);
        }
        check(me);
    }
};

/* In a catch block. */
struct handling {
    actor &me;
    handling(actor &a, int number) : me(a) { me.handling.push_back(number); }
    handling(const handling &) = delete;
    ~handling() { me.handling.pop_back(); }
};

void caught(actor &me, int number, int depth)
{
    handling h(me, number);
    guard g(me);
    check(me);
    walk(me, depth + 1);
    check(me);
    if (below(&dice, 3) == 0)
        throw;
}

/* In a frame with a handler of everything: when a cancellation comes, what is being handled is hidden from the frame's
 * other destructors too. */
struct hidden {
    actor &me;
    int before = std::uncaught_exceptions();
    bool done = false;
    explicit hidden(actor &a) : me(a) {}
    hidden(const hidden &) = delete;
    ~hidden()
    {
        if (!done && std::uncaught_exceptions() == before)
            me.cancelled = true;
    }
};

/* A handler of everything. A cancellation has to go on. */
void catch_all(actor &me, int depth)
{
    try {
        guard g(me);
        hidden h(me);
        walk(me, depth + 1);
        h.done = true;
    } catch (...) {
        if (!std::current_exception()) {
            me.cancelled = true;
            try {
                throw problem(++numbers);
            } catch (const problem &p) {
                CHECK_EQ(handled(), p.number);
            }
            throw;
        }
        try {
            throw;
        } catch (const problem &p) {
            handling h(me, p.number);
            check(me);
            if (below(&dice, 2))
                throw;
        }
    }
    check(me);
}

void throw_and_catch(actor &me, int depth)
{
    try {
        guard g(me);
        if (below(&dice, 2))
            walk(me, depth + 1);
        throw problem(++numbers);
    } catch (const problem &p) {
        caught(me, p.number, depth);
    }
    check(me);
}

/* ---- Coroutines ---- */

struct busy {
    slot &s;
    explicit busy(slot &which) : s(which) { s.busy = true; }
    busy(const busy &) = delete;
    ~busy() { s.busy = false; }
};

void make(slot &s)
{
    s.co = aco::coroutine<>([](auto &) {
        actor me;
        me.is_coroutine = true;
        for (int i = 0; i < 5; ++i)
            walk(me, 0);
    });
}

void coroutine(actor &me, int depth)
{
    slot &s = slots[below(&dice, SLOTS)];
    if (s.busy)
        return;
    busy b(s);
    if (s.co.done()) {
        make(s);
        return;
    }
    try {
        switch (below(&dice, 6)) {
        case 0: s.co.cancel(); break;
        case 1: s.co.reset(); break;
        default: s.co.resume();
        }
    } catch (const problem &p) {
        caught(me, p.number, depth);
    }
    check(me);
}

void yield(actor &me)
{
    if (!me.is_coroutine)
        return;
    aco_yield();
    check(me);
}

/* ---- Generators ---- */

aco::generator<int> elements(bool in_coroutine, int depth)
{
    return aco::generator<int>([=](aco::yielder<int> &yielder) {
        actor me;
        me.is_coroutine = in_coroutine;
        guard g(me);
        for (int i = 0; i < 3; ++i) {
            try {
                walk(me, depth + 2);
                if (below(&dice, 3) == 0)
                    yielder.yield_from(elements(in_coroutine, depth + 2));
                yielder(1);
                if (below(&dice, 3) == 0)
                    throw problem(++numbers);
            } catch (const problem &p) {
                handling h(me, p.number);
                yielder(2);
                check(me);
                if (below(&dice, 3) == 0)
                    yielder.yield_from(elements(in_coroutine, depth + 2));
                check(me);
                if (below(&dice, 3) == 0)
                    throw;
            }
            check(me);
        }
    });
}

void generate(actor &me, int depth)
{
    if (depth > DEPTH)
        return;
    try {
        unsigned stop = below(&dice, 8);
        for (int n : elements(me.is_coroutine, depth)) {
            CHECK(n == 1 || n == 2);
            check(me);
            if (stop-- == 0)
                break;
            if (below(&dice, 3) == 0)
                walk(me, depth + 1);
        }
    } catch (const problem &p) {
        caught(me, p.number, depth);
    }
    check(me);
}

/* Those of C share the exceptions of their consumer: they are not suspended inside catch blocks, except by
 * aco_yield(). */
struct context {
    actor &me;
    int depth;
};

/* In such a generator's function. When the consumer's coroutine is cancelled, the handler of ACO_GENERATOR hides what
 * the consumer is handling. */
struct passed {
    actor &me;
    bool is_suspended = false, has_thrown = false, done = false;
    explicit passed(actor &a) : me(a) {}
    passed(const passed &) = delete;
    ~passed()
    {
        if (!is_suspended && !has_thrown && !done)
            me.cancelled = true;
    }
};

ACO_GENERATOR(own_stack, y, arg)
{
    context *c = static_cast<context *>(arg);
    actor unchecked;
    passed p(c->me);
    unchecked.cancelled = true;
    for (int i = 0; i < 3; ++i) {
        guard g(unchecked);
        try {
            catch_all(c->me, c->depth);
        } catch (const problem &) {
            p.has_thrown = true;
            throw;
        }
        p.is_suspended = true;
        aco_generate(y, arg);
        p.is_suspended = false;
        if (below(&dice, 5) == 0) {
            p.has_thrown = true;
            throw problem(++numbers);
        }
    }
    p.done = true;
}

ACO_IN_STACK_GENERATOR(in_stack, y, arg)
{
    context *c = static_cast<context *>(arg);
    actor unchecked;
    passed p(c->me);
    unchecked.cancelled = true;
    for (int i = 0; i < 3; ++i) {
        guard g(unchecked);
        try {
            catch_all(c->me, c->depth);
        } catch (const problem &) {
            p.has_thrown = true;
            throw;
        }
        p.is_suspended = true;
        aco_generate_in_stack(y, arg);
        p.is_suspended = false;
        if (below(&dice, 5) == 0) {
            p.has_thrown = true;
            throw problem(++numbers);
        }
    }
    p.done = true;
}

__attribute__((noinline)) void consume_own(context *c)
{
    __attribute__((cleanup(aco_generator_close))) aco_generator_t g = {};
    unsigned stop = below(&dice, 5);
    CHECK_EQ(aco_generator_open(&g, own_stack, c, nullptr), 0);
    while (stop-- && aco_generator_next(&g))
        check(c->me);
}

__attribute__((noinline)) void consume_in_stack(context *c)
{
    __attribute__((cleanup(aco_in_stack_close))) aco_in_stack_t g = {};
    unsigned stop = below(&dice, 5);
    aco_in_stack_open(&g, in_stack, c);
    while (stop-- && aco_in_stack_next(&g))
        check(c->me);
}

void consume(actor &me, int depth)
{
    context c = {me, depth + 2};
    if (depth > DEPTH)
        return;
    try {
        if (below(&dice, 2))
            consume_own(&c);
        else
            consume_in_stack(&c);
    } catch (const problem &p) {
        caught(me, p.number, depth);
    }
    check(me);
}

/* ---- The walk ---- */

/* May throw a problem; leaves `me` with what it was handling. */
__attribute__((noinline)) void walk(actor &me, int depth)
{
    check(me);
    for (unsigned n = below(&dice, 5); n && depth < DEPTH && steps > 0; --n) {
        --steps;
        switch (below(&dice, 8)) {
        case 0: throw_and_catch(me, depth); break;
        case 1: catch_all(me, depth); break;
        case 2: case 3: coroutine(me, depth); break;
        case 4: case 5: yield(me); break;
        case 6: generate(me, depth); break;
        case 7: consume(me, depth); break;
        }
        check(me);
    }
}

void run(uint64_t seed)
{
    dice.state = seed;
    steps = STEPS;
    numbers = 0;
    while (steps-- > 0)
        try {
            walk(outside, 0);
        } catch (const problem &p) {
            CHECK(p.number <= numbers);
        }
    steps = 0;
    for (slot &s : slots)
        s.co.reset();
    CHECK_EQ(problem::alive, 0);
    CHECK_EQ(guards, 0);
    CHECK_EQ(std::uncaught_exceptions(), 0);
    CHECK(!std::current_exception() && outside.handling.empty());
    CHECK(aco_each([](aco_t *, void *) { return 1; }, nullptr) == 0);
}

} // namespace

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], nullptr, 0) : 1;
    uint64_t many = argc > 2 ? strtoull(argv[2], nullptr, 0) : 200;
    for (uint64_t seed = first; seed < first + many; ++seed) {
        int before = check_failures;
        run(seed);
        if (check_failures != before) {
            fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
            break;
        }
    }
    return check_result("cpp_handlers_model");
}
