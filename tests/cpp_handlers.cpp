/* Coroutines and generators that end while exceptions are being handled: cancelled inside catch blocks, through
 * handlers that throw on and through generators, or by an exception. Without Google Test, for builds that cannot link
 * it. An argument names the one test to run. */
#include "aco.hpp"
#include "aco/in_stack_generator.h"

#include "check.h"

#include <cstring>
#include <string>

namespace {

std::string log;

#define LOGGED(wanted)                                                                                                 \
    do {                                                                                                               \
        if (log != (wanted)) {                                                                                         \
            std::fprintf(stderr, "%s:%d: \"%s\", wanted \"%s\"\n", __FILE__, __LINE__, log.c_str(), wanted);           \
            CHECK(!"the log");                                                                                         \
        }                                                                                                              \
        log.clear();                                                                                                   \
    } while (0)

struct logged {
    char name;
    ~logged() { log += name; }
};

struct problem {
    static inline int alive;
    int number;
    explicit problem(int n) : number(n) { ++alive; }
    problem(const problem &p) : number(p.number) { ++alive; }
    problem &operator=(const problem &) = delete;
    ~problem() { --alive; }
};

/* The number of the exception that is being handled, found by `throw;`, or '-'. */
char handled()
{
    if (!std::current_exception())
        return '-';
    try {
        throw;
    } catch (const problem &p) {
        return static_cast<char>('0' + p.number);
    }
}

struct asks {
    ~asks() { log += handled(); }
};

struct throws_and_catches {
    ~throws_and_catches()
    {
        try {
            logged l{'l'};
            throw problem(7);
        } catch (const problem &) {
            log += handled();
        }
    }
};

/* Afterwards nothing is left of any exception. */
void check_nothing_left()
{
    CHECK(!std::current_exception());
    CHECK_EQ(std::uncaught_exceptions(), 0);
    CHECK_EQ(problem::alive, 0);
}

void *yields(void *)
{
    aco_yield();
    return nullptr;
}

/* Cancels a coroutine with its own exceptions where fn() yields: by a thread that handles none, and by one that does.
 * `wanted` is logged. */
void cancelled(void *(*fn)(void *), const char *wanted)
{
    aco_options_t keeps = {};
    keeps.flags = ACO_OWN_EXCEPTIONS;
    for (int outside = 0; outside < 2; ++outside) {
        aco_t *co = aco_new(fn, nullptr, &keeps);
        aco_resume(co);
        log.clear();
        if (outside)
            try {
                throw problem(9);
            } catch (const problem &) {
                CHECK_EQ(aco_cancel(co), 0);
                CHECK_EQ(handled(), '9');
            }
        else
            CHECK_EQ(aco_cancel(co), 0);
        LOGGED(wanted);
        CHECK(aco_state(co) == ACO_STATE_DONE);
        check_nothing_left();
        CHECK_EQ(aco_restart(co, yields, nullptr), 0);
        aco_resume(co);
        CHECK_EQ(aco_cancel(co), 0);
        aco_destroy(co);
        check_nothing_left();
    }
}

/* ---- Inside a catch block ---- */

/* An inner handler throws the cancellation on. */
void *catches_inside(void *)
{
    logged a{'a'};
    try {
        throw problem(1);
    } catch (const problem &p) {
        logged b{'b'};
        try {
            logged c{'c'};
            aco_yield();
        } catch (...) {
            log += 'x';
            try {
                throw problem(2);
            } catch (const problem &) {
                log += handled();
            }
            throw;
        }
        log += static_cast<char>('0' + p.number);
    }
    return nullptr;
}

/* Two handlers inside two catch blocks. */
void *catches_twice(void *)
{
    try {
        throw problem(1);
    } catch (const problem &) {
        try {
            throw problem(2);
        } catch (const problem &) {
            try {
                try {
                    aco_yield();
                } catch (...) {
                    log += 'x';
                    throw;
                }
            } catch (...) {
                logged d{'d'};
                log += 'y';
                throw;
            }
        }
    }
    return nullptr;
}

__attribute__((noinline)) void throws_on(void *(*fn)(void *))
{
    throws_and_catches d;
    try {
        fn(nullptr);
    } catch (...) {
        log += 'z';
        throw;
    }
}

/* Handlers in several frames. */
void *catches_in_frames(void *)
{
    logged a{'a'};
    try {
        throw problem(3);
    } catch (const problem &) {
        throws_on(catches_inside);
    }
    return nullptr;
}

/* No handler: destructors see the exception that is being handled. */
void *only_destructors(void *)
{
    asks a;
    try {
        throw problem(4);
    } catch (const problem &) {
        asks b;
        throws_and_catches d;
        aco_yield();
    }
    return nullptr;
}

void in_catch_blocks()
{
    cancelled(catches_inside, "cx2ba");
    cancelled(catches_twice, "xyd");
    cancelled(catches_in_frames, "cx2bazl7a");
#if defined(__arm__) || defined(_WIN32) /* there the exception is hidden in any case */
    cancelled(only_destructors, "l7--");
#else
    cancelled(only_destructors, "l74-");
#endif
}

/* ---- Through generators ---- */

ACO_GENERATOR(waits, y, arg)
{
    logged g{'g'};
    (void)arg;
    aco_yield();
    aco_generate(y, nullptr);
}

ACO_GENERATOR(waits_in_catch, y, arg)
{
    logged h{'h'};
    (void)arg;
    try {
        throw problem(5);
    } catch (const problem &) {
        logged i{'i'};
        throws_on(yields);
        aco_generate(y, nullptr);
    }
}

ACO_IN_STACK_GENERATOR(waits_in_stack, y, arg)
{
    logged s{'s'};
    (void)arg;
    aco_yield();
    aco_generate_in_stack(y, nullptr);
}

__attribute__((noinline)) void consume(aco_generator_function_t *fn)
{
    __attribute__((cleanup(aco_generator_close))) aco_generator_t g = {};
    CHECK_EQ(aco_generator_open(&g, fn, nullptr, nullptr), 0);
    aco_generator_next(&g);
}


__attribute__((noinline)) void consume_in_stack()
{
    __attribute__((cleanup(aco_in_stack_close))) aco_in_stack_t g = {};
    aco_in_stack_open(&g, waits_in_stack, nullptr);
    aco_in_stack_next(&g);
}

__attribute__((noinline)) void consume_cpp()
{
    aco::generator<int> g([](auto &yield) {
        logged p{'p'};
        for (int n : aco::generator<int>([](auto &inner) {
                 logged q{'q'};
                 aco_yield();
                 inner(1);
             }))
            yield(n);
    });
    for (int n : g)
        (void)n;
}

template<int kind> void *generates(void *)
{
    logged a{'a'};
    try {
        if (kind == 0)
            consume(waits);
        else if (kind == 1)
            consume(waits_in_catch);
        else if (kind == 2)
            consume_in_stack();
        else
            consume_cpp();
    } catch (...) {
        log += 'k';
        throw;
    }
    return nullptr;
}

template<int kind> void *generates_in_catch(void *)
{
    try {
        throw problem(6);
    } catch (const problem &) {
        logged b{'b'};
        throws_on(generates<kind>);
    }
    return nullptr;
}

void through_generators()
{
    cancelled(generates<0>, "gka");
    cancelled(generates<1>, "zl7ihka");
    cancelled(generates<2>, "ska");
    cancelled(generates<3>, "qpka");
    cancelled(generates_in_catch<0>, "gkazl7b");
    cancelled(generates_in_catch<1>, "zl7ihkazl7b");
    cancelled(generates_in_catch<2>, "skazl7b");
    cancelled(generates_in_catch<3>, "qpkazl7b");
}

/* ---- In-stack generators that end by an exception: with stacks of their own in row clang-tsan, on Windows ---- */

ACO_IN_STACK_GENERATOR(throws_in_stack, y, arg)
{
    aco_generate_in_stack(y, arg);
    throw problem(8);
}

ACO_IN_STACK_GENERATOR(counts, y, arg)
{
    for (intptr_t i = 1; i <= (intptr_t)arg; i++)
        aco_generate_in_stack(y, (void *)i);
}

__attribute__((noinline)) void consume_throwing()
{
    __attribute__((cleanup(aco_in_stack_close))) aco_in_stack_t g;
    aco_in_stack_open(&g, throws_in_stack, nullptr);
    CHECK_EQ(aco_in_stack_next(&g), 1);
    aco_in_stack_next(&g);
}

/* Two coroutines that are made now must not have the same stack. */
void check_stacks()
{
    aco_t *a = aco_new(yields, nullptr, nullptr), *b = aco_new(yields, nullptr, nullptr);
    CHECK(a != b && a->share_stack != b->share_stack);
    aco_destroy(a);
    aco_destroy(b);
}

void *in_stack_waits(void *)
{
    consume_in_stack();
    return nullptr;
}

/* The close that the documents ask for finds the generator closed. */
void in_stack_ends()
{
    try {
        consume_throwing();
    } catch (const problem &p) {
        CHECK_EQ(p.number, 8);
    }
    check_stacks();
    aco_t *co = aco_new(in_stack_waits, nullptr, nullptr);
    aco_resume(co);
    CHECK_EQ(aco_cancel(co), 0);
    LOGGED("s");
    aco_destroy(co);
    check_stacks();
    aco_in_stack_t g;
    aco_in_stack_open(&g, counts, (void *)2);
    CHECK_EQ(aco_in_stack_next(&g), 1);
    CHECK_EQ(aco_in_stack_next(&g), 1);
    CHECK_EQ((intptr_t)g.value, 2);
    CHECK_EQ(aco_in_stack_next(&g), 0);
    CHECK_EQ(aco_in_stack_next(&g), 0);
    CHECK_EQ(aco_in_stack_close(&g), 0);
    check_stacks();
}

/* ---- Destructors that throw and catch, while a generator is closed or a coroutine cancelled ---- */

ACO_GENERATOR(with_destructors, y, arg)
{
    throws_and_catches a;
    std::string text(100, 'x');
    logged b{'b'};
    aco_generate(y, arg);
    log += text;
}

void *with_destructors_too(void *arg)
{
    throws_and_catches a;
    std::string text(100, 'x');
    throws_and_catches b;
    aco_yield();
    log += text;
    return arg;
}

void busy_destructors()
{
    for (int i = 0; i < 3; ++i) {
        aco_generator_t g;
        CHECK_EQ(aco_generator_open(&g, with_destructors, nullptr, nullptr), 0);
        CHECK_EQ(aco_generator_next(&g), 1);
        aco_generator_close(&g);
        LOGGED("bl7");
        aco_t *co = aco_new(with_destructors_too, nullptr, nullptr);
        aco_resume(co);
        CHECK_EQ(aco_cancel(co), 0);
        LOGGED("l7l7");
        aco_destroy(co);
    }
}

} // namespace

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)();
    } cases[] = {{"in_catch_blocks", in_catch_blocks},
                 {"through_generators", through_generators},
                 {"in_stack_ends", in_stack_ends},
                 {"busy_destructors", busy_destructors}};
    for (const auto &c : cases)
        if (argc < 2 || std::strcmp(argv[1], c.name) == 0) {
            c.run();
            check_nothing_left();
        }
    return check_result("cpp_handlers");
}
