/* What the tests of coroutines from aco_new() share. */
#ifndef COROUTINES_H
#define COROUTINES_H

#include "aco.h"
#include "check.h"
#include "random.h"
#include "fails.h"

#include <errno.h>
#include <stdint.h>

#if defined(ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
#define OWN_FP_POSSIBLE 0
#else
#define OWN_FP_POSSIBLE 1
#endif

static inline int count_one(aco_t *co, void *arg)
{
    (void)co;
    ++*(int *)arg;
    return 0;
}

static inline int living(void)
{
    int n = 0;
    CHECK_EQ(aco_each(count_one, &n), 0);
    return n;
}

static inline void *same(void *arg)
{
    return arg;
}

static inline void *yields_once(void *arg)
{
    void *got = aco_yield_value(arg);
    return got;
}

/* The exported functions are those of a release build. */
#if ACO_DEBUG && !defined(ACO_CONFIG_NO_INLINE)
#define CHECKS_YIELDS 1
#else
#define CHECKS_YIELDS 0
#endif

static inline void *doubles(void *arg)
{
    intptr_t n = (intptr_t)arg;
    while (n >= 0)
        n = (intptr_t)aco_yield_value((void *)(2 * n));
    return (void *)n;
}

/* Promise: each send returns what is yielded for it, each yield what is sent next, the last send the result. */
static inline void values_go_round(aco_t *co)
{
    CHECK_EQ((intptr_t)aco_send(co, NULL), 2 * 7);
    for (intptr_t i = 0; i < 20000; i++)
        if ((intptr_t)aco_send(co, (void *)i) != 2 * i)
            CHECK(!"a value got lost");
    CHECK_EQ((intptr_t)aco_send(co, (void *)-5), -5);
    CHECK_EQ((intptr_t)aco_result(co), -5);
    CHECK_EQ(aco_state(co), ACO_STATE_DONE);
}

static inline void fill(unsigned char *bytes, size_t n, uint64_t seed)
{
    random_t r = {seed};
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)draw(&r);
}

static inline int is_filled(const unsigned char *bytes, size_t n, uint64_t seed)
{
    random_t r = {seed};
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != (unsigned char)draw(&r))
            return 0;
    return 1;
}

#endif
