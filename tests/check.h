/* Checks for the C tests. They hold under NDEBUG, work inside coroutines and on any thread: a failing one is printed
 * and counted, and check_result() makes the program fail. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#ifdef __GNUC__
__attribute__((unused))
#endif
static int check_failures;

/* Whether the test runs in simulations (tests/sim.cmake). It then leaves out what only the kernel does, or what is not
 * simulated. What takes time, or needs events in an order that only virtual time gives, runs in a simulation alone. */
#ifdef IN_SIMULATION
enum { IS_SIMULATED = 1 };
#else
enum { IS_SIMULATED = 0 };
#endif

/* These pass few arguments to each function: one that passes some on the stack can have no in-stack generator with gcc
 * on most architectures. */
#ifdef __GNUC__
__attribute__((unused, noinline))
#endif
static void check_failed_at(const char *file, int line, const char *function)
{
    fprintf(stderr, "%s:%d: %s: ", file, line, function);
    __atomic_fetch_add(&check_failures, 1, __ATOMIC_RELAXED);
}

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            check_failed_at(__FILE__, __LINE__, __func__);                                                             \
            fprintf(stderr, "failed: %s\n", #what);                                                                    \
        }                                                                                                              \
    } while (0)

/* The same for two integers, printing both. */
#define CHECK_EQ(a, b)                                                                                                 \
    do {                                                                                                               \
        long long check_a = (long long)(a), check_b = (long long)(b);                                                  \
        if (check_a != check_b) {                                                                                      \
            check_failed_at(__FILE__, __LINE__, __func__);                                                             \
            fprintf(stderr, "%s is %lld, ", #a, check_a);                                                              \
            fprintf(stderr, "%s is %lld\n", #b, check_b);                                                              \
        }                                                                                                              \
    } while (0)

/* The call fails with -1 and this errno; for programs that include errno.h. */
#define FAILS_WITH(what, error)                                                                                        \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        CHECK_EQ(what, -1);                                                                                            \
        CHECK_EQ(errno, error);                                                                                        \
    } while (0)

/* What main() returns: the verdict, also printed. */
static inline int check_result(const char *name)
{
    int failures = __atomic_load_n(&check_failures, __ATOMIC_RELAXED);
    if (failures)
        fprintf(stderr, "%s: %d failed\n", name, failures);
    else
        printf("%s: passed\n", name);
    return failures != 0;
}

#endif
