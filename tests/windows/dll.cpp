/* Promise: a program and its DLL that share the library, itself a DLL, resume and suspend each other's coroutines,
 * throw through each other's frames in them, and cancel them. */
#include "part.h"
#include "aco.hpp"
#include "check.h"

#include <thread>

static int destroyed;

struct counted {
    ~counted() { destroyed++; }
};

static void *counts(void *arg)
{
    for (int i = 1; i <= *(int *)arg; i++) {
        CHECK(part_running() == aco_get_co());
        part_yield(&i);
    }
    return arg;
}

/* Counts to three, each value by another way of resuming. */
static void count_with(void *(*send)(aco_t *co, void *value), aco_function_t fn)
{
    int n = 3, next = 1;
    aco_t *co = aco_new(fn, &n, nullptr);
    for (int *i = (int *)send(co, nullptr); !co->is_end; i = (int *)send(co, nullptr))
        CHECK_EQ(*i, next++);
    CHECK_EQ(next, 4);
    CHECK(aco_result(co) == &n);
    aco_destroy(co);
}

static void *send_here(aco_t *co, void *value)
{
    return aco_send(co, value);
}

static void copied()
{
    for (int i = 0; i < 10; i++)
        part_yield(nullptr);
    aco_exit();
}

/* One is resumed here and one there. */
static void test_share_stack()
{
    aco_thread_init(nullptr);
    aco_t *main_co = aco_create(nullptr, nullptr, 0, nullptr, nullptr);
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *here = aco_create(main_co, stack, 0, copied, nullptr),
          *there = aco_create(main_co, stack, 0, copied, nullptr);
    while (!here->is_end) {
        aco_resume(here);
        part_resume(there);
    }
    CHECK(there->is_end);
    CHECK(here->save_stack.ct_restore > 0);
    aco_destroy(here);
    aco_destroy(there);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
}

/* Otherwise program and DLL each have a C++ run time of their own: neither exceptions nor cancellations cross. */
#ifdef SHARED_CXX
static void *throws_and_catches(void *)
{
    for (int i = 0; i < 3; i++) {
        int caught = -1;
        try {
            part_throw(i);
        } catch (int n) {
            caught = n;
        }
        CHECK_EQ(caught, i);
        part_yield(nullptr);
        CHECK(part_catch(part_throw, i));
        CHECK(part_catch([](int n) {
            counted gone;
            aco_yield();
            throw n;
        }, i));
    }
    return nullptr;
}

static void test_exceptions()
{
    aco_t *cos[4];
    destroyed = 0;
    for (aco_t *&co : cos)
        co = aco_new(throws_and_catches, nullptr, nullptr);
    while (!cos[0]->is_end)
        for (int i = 0; i < 4; i++)
            i % 2 ? part_send(cos[i], nullptr) : aco_send(cos[i], nullptr);
    CHECK_EQ(destroyed, 12);
    for (aco_t *co : cos) {
        CHECK(co->is_end);
        aco_destroy(co);
    }
}

/* From a function of the DLL, out of the coroutine, to its resumer. */
static void test_exception_leaves()
{
    for (int i = 0; i < 3; i++) {
        int caught = -1;
        aco::coroutine<int> co([i](auto &self) {
            counted gone;
            self.yield(i);
            part_throw(i);
        });
        CHECK(co.resume() && co.value() == i);
        try {
            co.resume();
        } catch (int n) {
            caught = n;
        }
        CHECK_EQ(caught, i);
        CHECK(co.done());
    }
    CHECK_EQ(destroyed, 15);
}
static void *nested(void *)
{
    counted gone;
    part_yield(nullptr);
    return nullptr;
}

static void *nested_in_try(void *arg)
{
    try {
        nested(arg);
    } catch (...) {
        throw;
    }
    return nullptr;
}

static void cancel_one(aco_function_t fn)
{
    aco_t *co = aco_new(fn, nullptr, nullptr);
    int there = part_gone(), here = destroyed;
    aco_send(co, nullptr);
    CHECK_EQ(aco_cancel(co), 0);
    CHECK_EQ(part_gone(), there + 1);
    CHECK_EQ(destroyed, here + 1);
    CHECK(co->is_end);
    aco_destroy(co);
}

static void test_cancel()
{
    cancel_one(nested);
    cancel_one(nested_in_try);
    try {
        throw 1;
    } catch (int n) { /* not seen by the coroutine's catch (...) */
        cancel_one(nested_in_try);
        CHECK_EQ(n, 1);
    }
}

static void *in_catch(void *arg)
{
    try {
        throw arg;
    } catch (void *) {
        part_yield(nullptr);
        try {
            throw;
        } catch (void *p) {
            CHECK(p == arg);
        }
    }
    return nullptr;
}

static void test_own_exceptions()
{
    aco_options_t own = {};
    own.flags = ACO_OWN_EXCEPTIONS;
    aco_t *a = aco_new(in_catch, &a, &own), *b = aco_new(in_catch, &b, &own);
    CHECK(a && b);
    if (!a || !b)
        return (void)fprintf(stderr, "%s\n", aco_error_message());
    aco_send(a, nullptr);
    aco_send(b, nullptr);
    aco_send(a, nullptr);
    aco_send(b, nullptr);
    CHECK(a->is_end && b->is_end);
    aco_destroy(a);
    aco_destroy(b);
}

#endif

static void test_all()
{
    count_with(send_here, part_counts);
    count_with(part_send, counts);
    count_with(part_send, part_counts);
    count_with(send_here, counts);
    test_share_stack();
#ifdef SHARED_CXX
    test_exceptions();
    test_exception_leaves();
    test_cancel();
#endif
    destroyed = 0;
}

int main(void)
{
    CHECK(part_error() == ACO_ERROR);
    CHECK(aco_send(nullptr, nullptr) == part_error());
    test_all();
    std::thread(test_all).join();
#ifdef SHARED_CXX
    test_own_exceptions();
#else
    puts("without exceptions, cancellation, ACO_OWN_EXCEPTIONS: each module has a C++ run time of its own");
#endif
    return check_result("dll");
}
