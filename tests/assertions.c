/* aco_assert_override.h's seven macros and the aco_ family under them. Compiled with NDEBUG: they hold all the same. */
#define _GNU_SOURCE
#include "child.h"

#include <assert.h>
#include <stdint.h>

#include "aco_assert_override.h"

#ifndef NDEBUG
#error "to be compiled with NDEBUG"
#endif

static int zero, evaluated;
static void *null;

static int once(int value)
{
    evaluated++;
    return value;
}

/* Promise: the macros are expressions of type void that evaluate their argument once and do nothing when it is true. */
static void true_ones_do_nothing(void)
{
    int here;
    evaluated = 0;
    assert(once(1));
    assert(once(-7) == -7);
    assertptr(once(1) ? &here : NULL);
    assertalloc_bool(once(1));
    assertalloc_ptr(once(1) ? &here : NULL);
    aco_assert(once(2));
    aco_assertptr(once(1) ? &here : NULL);
    aco_assertalloc_bool(once(1));
    aco_assertalloc_ptr(once(1) ? &here : NULL);
    once(1) ? assert(1) : assertptr(&here);
    CHECK_EQ(evaluated, 10);
}

/* Promise: likely and unlikely are their argument's truth, 0 or 1. */
static void likely_is_truth(void)
{
    CHECK_EQ(likely(5), 1);
    CHECK_EQ(likely(0), 0);
    CHECK_EQ(unlikely(5), 1);
    CHECK_EQ(unlikely(0), 0);
    CHECK_EQ(aco_likely(5), 1);
    CHECK_EQ(aco_unlikely(&zero != NULL), 1);
    CHECK_EQ(likely(once(0)) + unlikely(once(0)), 0);
}

static int line_of_failure; /* shared memory is not needed: the macro below sets it before the fork */

/* Promise: a failing one writes one line naming file, line, function and, for assertions, the expression; then
 * abort(). */
static void check_line(const char *name, void (*act)(void), const char *says)
{
    char place[256];
    child_end_t end = child_run(act);
    snprintf(place, sizeof place, "%s:%d: %s", __FILE__, line_of_failure, name);
    if (WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT && is_one_line(end.text) &&
        strstr(end.text, place) && strstr(end.text, says))
        return;
    child_complain(__FILE__, __LINE__, name, place, &end);
}

#define FAILING(name, statement)                                                                                       \
    enum { line_of_##name = __LINE__ };                                                                                \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        statement;                                                                                                     \
    }

FAILING(fail_assert, assert(zero == 17))
FAILING(fail_assertptr, assertptr(null))
FAILING(fail_assertalloc_bool, assertalloc_bool(zero))
FAILING(fail_assertalloc_ptr, assertalloc_ptr(null))
FAILING(fail_aco_assert, aco_assert(zero > 1))
FAILING(fail_aco_assertptr, aco_assertptr(null))
FAILING(fail_aco_assertalloc_bool, aco_assertalloc_bool(zero))
FAILING(fail_aco_assertalloc_ptr, aco_assertalloc_ptr(null))

#define CHECK_LINE(name, says)                                                                                         \
    do {                                                                                                               \
        line_of_failure = line_of_##name;                                                                              \
        check_line(#name, name, says);                                                                                 \
    } while (0)

static char long_text[2000];

static void fail_at_length(void)
{
    aco__assert_failed(long_text, __FILE__, __LINE__, __func__);
}

/* The length of the line for an expression of `n` characters. */
static size_t line_length(size_t n)
{
    child_end_t end;
    memset(long_text, 'x', n);
    long_text[n] = 0;
    end = child_run(fail_at_length);
    CHECK(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT);
    CHECK(is_one_line(end.text) && strstr(end.text, "fail_at_length: assertion failed: xxx"));
    return strlen(end.text);
}

/* Promise: what is too long for the line is cut off. */
static void long_line(void)
{
    size_t most = line_length(sizeof long_text - 1), fits = most - (line_length(100) - 100);
    CHECK(most > 500);
    for (size_t n = fits - 3; n < fits + 6; n++)
        CHECK_EQ(line_length(n), n < fits ? most - (fits - n) : most);
}

int main(void)
{
    true_ones_do_nothing();
    likely_is_truth();
    CHECK_LINE(fail_assert, "zero == 17");
    CHECK_LINE(fail_assertptr, "null != NULL");
    CHECK_LINE(fail_assertalloc_bool, "memory");
    CHECK_LINE(fail_assertalloc_ptr, "memory");
    CHECK_LINE(fail_aco_assert, "zero > 1");
    CHECK_LINE(fail_aco_assertptr, "null != NULL");
    CHECK_LINE(fail_aco_assertalloc_bool, "memory");
    CHECK_LINE(fail_aco_assertalloc_ptr, "memory");
    long_line();
    return check_result("assertions");
}
