/* Exceptions leave generators and coroutines while there is no memory: each allocation of the program, by operator new
 * and by the C++ run time itself, fails in turn, and then all of them. What was thrown arrives, or std::bad_alloc or
 * aco::error. */
#include "aco.hpp"
#include "aco/in_stack_generator.h"

#include "check.h"

#include <cerrno>
#include <new>

static long allocations, fail_from = -1, fail_count; /* from the allocation fail_from on, fail_count of them fail */

extern "C" void *__libc_malloc(size_t);
extern "C" void *malloc(size_t sz)
{
    long n = allocations++;
    if (fail_from >= 0 && n >= fail_from && n - fail_from < fail_count) {
        errno = ENOMEM;
        return nullptr;
    }
    return __libc_malloc(sz);
}

void *operator new(std::size_t sz)
{
    void *p = malloc(sz);
    if (!p)
        throw std::bad_alloc();
    return p;
}
void operator delete(void *p) noexcept
{
    free(p);
}
void operator delete(void *p, std::size_t) noexcept
{
    free(p);
}

namespace {

struct problem {
    static inline int alive;
    problem() { ++alive; }
    problem(const problem &) { ++alive; }
    problem &operator=(const problem &) = delete;
    ~problem() { --alive; }
};

ACO_GENERATOR(own_stack, y, arg)
{
    aco_generate(y, arg);
    throw problem();
}

ACO_IN_STACK_GENERATOR(in_stack, y, arg)
{
    aco_generate_in_stack(y, arg);
    throw problem();
}

void consume_own()
{
    __attribute__((cleanup(aco_generator_close))) aco_generator_t g = {};
    if (aco_generator_open(&g, own_stack, nullptr, nullptr) != 0)
        throw std::bad_alloc();
    while (aco_generator_next(&g)) {
    }
}

void consume_in_stack()
{
    __attribute__((cleanup(aco_in_stack_close))) aco_in_stack_t g = {};
    aco_in_stack_open(&g, in_stack, nullptr);
    while (aco_in_stack_next(&g) > 0) {
    }
}

void throw_in_catch(aco::yielder<int> &yield)
{
    yield(1);
    try {
        throw problem();
    } catch (const problem &) {
        yield(2);
        throw;
    }
}

void consume_cpp()
{
    for (int n : aco::generator<int>(throw_in_catch))
        (void)n;
}

void consume_inner()
{
    aco::generator<int> g(
        [](aco::yielder<int> &yield) { yield.yield_from(aco::generator<int>(throw_in_catch)); });
    for (int n : g)
        (void)n;
}

void resume()
{
    aco::coroutine<> c([](auto &self) {
        try {
            throw problem();
        } catch (const problem &) {
            self.yield();
            throw;
        }
    });
    while (c.resume()) {
    }
}

void raise()
{
    aco::coroutine<> c([](auto &self) { self.yield(); });
    c.resume();
    c.raise(problem());
}

void cancel()
{
    aco::coroutine<> c([](auto &self) {
        try {
            throw problem();
        } catch (const problem &) {
            try {
                self.yield();
            } catch (...) {
                throw;
            }
        }
    });
    c.resume();
    c.cancel();
    throw problem();
}

/* Whether an allocation was made to fail. */
bool attempt(void (*act)(), long from, long count)
{
    const char *thrown = "nothing";
    allocations = 0;
    fail_from = from;
    fail_count = count;
    try {
        act();
    } catch (const problem &) {
        thrown = nullptr;
    } catch (const std::bad_alloc &) {
        thrown = from >= 0 ? nullptr : "std::bad_alloc";
    } catch (const aco::error &) {
        thrown = from >= 0 ? nullptr : "aco::error";
    }
    fail_from = -1;
    if (thrown)
        std::fprintf(stderr, "allocation %ld: %s was thrown\n", from, thrown);
    CHECK(!thrown);
    CHECK_EQ(problem::alive, 0);
    CHECK(!std::current_exception() && std::uncaught_exceptions() == 0);
    return allocations > from;
}

aco_t *transferring[2];

void *goes_back(void *)
{
    for (;;)
        aco_yield_to(transferring[0]);
}

__attribute__((noinline)) void fails_to_transfer()
{
    char more_than_the_save_area[20000];
    __asm__ volatile("" : : "r"(more_than_the_save_area) : "memory");
    try {
        throw problem();
    } catch (const problem &) {
        allocations = 0;
        fail_from = 0;
        fail_count = 1000000;
        int result = aco_yield_to(transferring[1]);
        fail_from = -1;
        CHECK(result == -1 && errno == ENOMEM);
        CHECK(std::current_exception());
    }
}

void *transfers(void *arg)
{
    CHECK_EQ(aco_yield_to(transferring[1]), 0);
    fails_to_transfer();
    return arg;
}

/* A transfer that fails changes nothing: its caller still handles the exception that it handled. */
void failed_transfer()
{
    aco_options_t options = {};
    options.flags = ACO_OWN_EXCEPTIONS;
    options.stack = aco_share_stack_new(0);
    transferring[0] = aco_new(transfers, nullptr, &options);
    transferring[1] = aco_new(goes_back, nullptr, &options);
    aco_resume(transferring[0]);
    CHECK_EQ(aco_state(transferring[0]), ACO_STATE_DONE);
    CHECK_EQ(problem::alive, 0);
    aco_destroy(transferring[0]);
    aco_destroy(transferring[1]);
    aco_share_stack_destroy(options.stack);
}

} // namespace

int main()
{
    failed_transfer();
    for (void (*act)() : {consume_own, consume_in_stack, consume_cpp, consume_inner, resume, raise, cancel}) {
        attempt(act, -1, 0);
        for (long n = 0; attempt(act, n, 1); ++n) {
        }
        for (long n = 0; attempt(act, n, 1000000); ++n) {
        }
    }
    return check_result("cpp_no_memory");
}
