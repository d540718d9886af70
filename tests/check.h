/* Checks for the C tests. They hold under NDEBUG, work inside coroutines and on any thread: a failing one is printed and
 * counted, and check_result() makes the program fail. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#ifdef __GNUC__
__attribute__((unused))
#endif
static int check_failures;

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s: failed: %s\n", __FILE__, __LINE__, __func__, #what);                           \
            __atomic_fetch_add(&check_failures, 1, __ATOMIC_RELAXED);                                                  \
        }                                                                                                              \
    } while (0)

/* The same for two integers, printing both. */
#define CHECK_EQ(a, b)                                                                                                 \
    do {                                                                                                               \
        long long check_a = (long long)(a), check_b = (long long)(b);                                                  \
        if (check_a != check_b) {                                                                                      \
            fprintf(stderr, "%s:%d: %s: %s is %lld, %s is %lld\n", __FILE__, __LINE__, __func__, #a, check_a, #b, check_b); \
            __atomic_fetch_add(&check_failures, 1, __ATOMIC_RELAXED);                                                  \
        }                                                                                                              \
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
