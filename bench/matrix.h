/* The switch matrix: the same loops and the same coroutine bodies for every contender. A program of the matrix defines
 * these names and then includes this file:
 *   sw_t                            a coroutine
 *   sw_resume(co), sw_yield(self)   the two sides of the round trip, always-inline
 *   sw_send(co, value)              resumes with a value, returns the coroutine's reply
 *   sw_receive(self)                in the coroutine: the value it was resumed with
 *   sw_reply(self, value)           in the coroutine: yields a value
 *   sw_start(kind, body, stack_sz)  a new suspended coroutine; the next sw_resume() enters body(self), which must not
 *                                   return
 *   sw_prepare(seed)                called once before the others
 * Its main() calls matrix_main().
 *
 *   PROGRAM flat N rr|random SAMPLES MILLISECONDS SEED     N coroutines in turn, or in random order
 *   PROGRAM nested DEPTH - SAMPLES MILLISECONDS SEED       for every yield, DEPTH calls down and DEPTH returns
 *   PROGRAM value 1 - SAMPLES MILLISECONDS SEED            a value each way
 *
 * For each sample it prints a line: the nanoseconds of processor time of one round trip. Each sample has another code
 * placement; up to MATRIX_MANY coroutines it also has new coroutines and another stack colour. */
#ifndef MATRIX_H
#define MATRIX_H

typedef enum { MATRIX_FLAT, MATRIX_NESTED, MATRIX_VALUE } matrix_kind_t;
typedef void (*matrix_body_t)(sw_t *self);

/* Stacks have 64 KiB; from MATRIX_MANY coroutines on they have 4 KiB and no guard page. */
enum { MATRIX_STACK = 64 << 10, MATRIX_SMALL_STACK = 4096, MATRIX_MANY = 10000, MATRIX_PLACEMENTS = 4 };

static uintptr_t matrix_depth;
static uint64_t matrix_seed;

static void sw_prepare(unsigned seed);

#ifndef MATRIX_FOREVER
#define MATRIX_FOREVER for (;;)
#define MATRIX_SWITCHES
#endif
#ifndef MATRIX_DESCEND
#define MATRIX_DESCEND(descend, self, depth, x) descend(self, depth, x)
#endif
#define MATRIX_PAD 0
#include "matrix_code.h"
#define MATRIX_PAD 16
#include "matrix_code.h"
#define MATRIX_PAD 32
#include "matrix_code.h"
#define MATRIX_PAD 48
#include "matrix_code.h"

#define MATRIX_ALL(name) {name##_0, name##_16, name##_32, name##_48}

#ifdef MATRIX_OWN_BODIES
static sw_t *matrix_new(matrix_kind_t kind, unsigned placement, size_t stack_sz);
#else
static sw_t *sw_start(matrix_kind_t kind, matrix_body_t body, size_t stack_sz);

static sw_t *matrix_new(matrix_kind_t kind, unsigned placement, size_t stack_sz)
{
    static const matrix_body_t bodies[][MATRIX_PLACEMENTS] = {MATRIX_ALL(flat_body), MATRIX_ALL(nested_body),
                                                              MATRIX_ALL(value_body)};
    return sw_start(kind, bodies[kind][placement], stack_sz);
}
#endif

typedef struct matrix {
    matrix_kind_t kind;
    size_t coroutines;
    int random;
    sw_t **order; /* one round: every coroutine equally often */
    size_t length;
} matrix_t;

/* Checks that the contender is a coroutine: a local variable sums the values that it receives. */
static void matrix_check(void)
{
#ifdef MATRIX_SWITCHES
    sw_t *co = matrix_new(MATRIX_VALUE, 0, MATRIX_STACK);
    if (sw_send(co, 3) != 3 || sw_send(co, 4) != 7) {
        fprintf(stderr, "the coroutine gave back other values than it should\n");
        exit(1);
    }
#endif
}

/* The length of a round is a multiple of the number of coroutines, and too long for a branch predictor to learn. */
static void matrix_make(matrix_t *m, unsigned placement)
{
    size_t n = m->coroutines, stack_sz = n >= MATRIX_MANY ? MATRIX_SMALL_STACK : MATRIX_STACK;
    m->length = n * ((m->random ? 8192 : 1024) / n + 1);
    m->order = (sw_t **)bench_alloc(m->length * sizeof *m->order);
    for (size_t i = 0; i < n; i++)
        m->order[i] = matrix_new(m->kind, placement, stack_sz);
    for (size_t i = n; i < m->length; i++)
        m->order[i] = m->order[i - n];
    for (size_t i = 0; m->random && i < m->length; i += n)
        bench_shuffle((void **)(m->order + i), n, &matrix_seed);
}

/* Nanoseconds of one round trip, measured over `n` rounds. */
static double matrix_time(const matrix_t *m, unsigned placement, size_t n)
{
    static void (*const one[])(sw_t *, size_t) = MATRIX_ALL(run_one);
    static void (*const many[])(sw_t **, size_t, size_t) = MATRIX_ALL(run_many);
    static void (*const value[])(sw_t *, size_t) = MATRIX_ALL(run_value);
    double start = bench_thread_now();
    if (m->coroutines > 1) {
        many[placement](m->order, m->length, n);
        n *= m->length;
    } else if (m->kind == MATRIX_VALUE) {
        value[placement](m->order[0], n);
    } else {
        one[placement](m->order[0], n);
    }
    return (bench_thread_now() - start) / (double)n;
}

/* The number of rounds that take about `ns` nanoseconds. */
static size_t matrix_rounds(const matrix_t *m, unsigned placement, double ns)
{
    size_t n = 1;
    for (;; n *= 2) {
        double round = matrix_time(m, placement, n) * (double)(m->coroutines > 1 ? m->length : 1);
        if (round * (double)n > ns / 8)
            return (size_t)(ns / round) + 1;
    }
}

static int matrix_usage(const char *program)
{
    fprintf(stderr, "usage: %s flat N rr|random SAMPLES MILLISECONDS SEED\n"
                    "       %s nested DEPTH - SAMPLES MILLISECONDS SEED\n"
                    "       %s value 1 - SAMPLES MILLISECONDS SEED\n", program, program, program);
    return 2;
}

static int matrix_main(int argc, char **argv)
{
    matrix_t m;
    size_t n, rounds = 0;
    unsigned seed;
    if (argc != 7)
        return matrix_usage(argv[0]);
    n = strtoul(argv[2], NULL, 10);
    seed = (unsigned)strtoul(argv[6], NULL, 10);
    m.kind = strcmp(argv[1], "nested") == 0 ? MATRIX_NESTED : strcmp(argv[1], "value") == 0 ? MATRIX_VALUE
                                                                                            : MATRIX_FLAT;
    m.coroutines = m.kind == MATRIX_FLAT ? n : 1;
    m.random = strcmp(argv[3], "random") == 0;
    if (n == 0 || (m.kind == MATRIX_FLAT && strcmp(argv[1], "flat") != 0))
        return matrix_usage(argv[0]);
    if (n >= MATRIX_MANY && bench_memory_available() < n * 16384) {
        fprintf(stderr, "%zu stacks need up to %zu MiB, more than is free\n", n, n * 16384 >> 20);
        return 1;
    }
    matrix_depth = n;
    matrix_seed = seed * 2u + 1u;
    sw_prepare(seed);
    matrix_check();
    for (unsigned s = 0; s < strtoul(argv[4], NULL, 10); s++) {
        unsigned placement = (seed + s) % MATRIX_PLACEMENTS;
        if (s == 0 || n < MATRIX_MANY)
            matrix_make(&m, placement);
        if (s == 0)
            rounds = matrix_rounds(&m, placement, strtod(argv[5], NULL) * 1e6);
        matrix_time(&m, placement, rounds / 50 + 1);
        printf("%.4f\n", matrix_time(&m, placement, rounds));
    }
    return 0;
}

#endif
