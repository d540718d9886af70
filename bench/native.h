/* The main program of the native API's measurements. A program includes this file and gives native_main() the list of
 * its measurements; the commands of bench/ run them and compare them (harness/cases.py).
 *
 *   PROGRAM NAME NUMBER - SAMPLES MILLISECONDS SEED
 *
 * For each sample it prints a line: the nanoseconds of processor time of one operation, such as a round trip, a
 * transfer or a node. Each sample has new coroutines, another stack colour and another code placement. With 0 samples
 * the program does MILLISECONDS rounds and prints the number of operations; this form is for counting instructions. */
#ifndef NATIVE_H
#define NATIVE_H
#include "bench.h"

/* A measured function begins `pad` bytes behind the start of a cache line. Placement changes speed by up to a third, so
 * the samples go through all four placements. With NATIVE_FLAT the compiler puts all that it calls in place. */
#ifdef NATIVE_FLAT
#define NATIVE_HOT(pad) static __attribute__((noinline, flatten, aligned(64), patchable_function_entry(pad, pad)))
#else
#define NATIVE_HOT(pad) static __attribute__((noinline, aligned(64), patchable_function_entry(pad, pad)))
#endif
#define NATIVE_ALL(name) {name##_0, name##_16, name##_32, name##_48}
enum { NATIVE_PLACEMENTS = 4 };

/* The two sides of a switch get the same placement. Each macro makes four functions of an always-inline one with this
 * name; NATIVE_ALL lists them. */
#define NATIVE_BODY_AT(name, pad)                                                                                      \
    NATIVE_HOT(pad) void *name##_##pad(void *arg)                                                                      \
    {                                                                                                                  \
        return name(arg);                                                                                              \
    }
#define NATIVE_RUN_AT(name, pad)                                                                                       \
    NATIVE_HOT(pad) void name##_##pad(void *made, size_t rounds)                                                       \
    {                                                                                                                  \
        name(made, rounds);                                                                                            \
    }
#define NATIVE_BODY(name)                                                                                              \
    NATIVE_BODY_AT(name, 0) NATIVE_BODY_AT(name, 16) NATIVE_BODY_AT(name, 32) NATIVE_BODY_AT(name, 48)
#define NATIVE_RUN(name)                                                                                               \
    NATIVE_RUN_AT(name, 0) NATIVE_RUN_AT(name, 16) NATIVE_RUN_AT(name, 32) NATIVE_RUN_AT(name, 48)

typedef struct native_case {
    const char *name;
    void *(*make)(unsigned placement, size_t number);          /* makes the coroutines of a sample */
    void (*run[NATIVE_PLACEMENTS])(void *made, size_t rounds); /* does the operation rounds * number times */
} native_case_t;

/* Ends the program unless the measured work was done. */
BENCH_FUNCTION void native_must(int held, const char *what)
{
    if (held)
        return;
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

/* Nanoseconds of `rounds` rounds. */
BENCH_FUNCTION double native_time(const native_case_t *c, unsigned placement, void *made, size_t rounds)
{
    double start = bench_thread_now();
    c->run[placement](made, rounds);
    return bench_thread_now() - start;
}

/* The number of rounds that take about `ns` nanoseconds. */
BENCH_FUNCTION size_t native_rounds(const native_case_t *c, unsigned placement, void *made, double ns)
{
    for (size_t n = 1;; n *= 2) {
        double taken = native_time(c, placement, made, n);
        if (taken > ns / 8)
            return (size_t)(ns / taken * (double)n) + 1;
    }
}

BENCH_FUNCTION int native_measure(const native_case_t *c, size_t number, unsigned samples, double ns, unsigned seed)
{
    size_t rounds = 0;
    if (samples == 0) {
        rounds = (size_t)(ns / 1e6);
        c->run[0](c->make(0, number), rounds);
        printf("%zu\n", rounds * number);
    }
    for (unsigned s = 0; s < samples; s++) {
        unsigned placement = (seed + s) % NATIVE_PLACEMENTS;
        void *made = c->make(placement, number);
        if (s == 0)
            rounds = native_rounds(c, placement, made, ns);
        native_time(c, placement, made, rounds / 50 + 1);
        printf("%.4f\n", native_time(c, placement, made, rounds) / ((double)rounds * (double)number));
    }
    return 0;
}

/* main(); `cases` ends with a NULL name. */
BENCH_FUNCTION int native_main(int argc, char **argv, const native_case_t *cases)
{
    size_t number = argc == 7 ? strtoul(argv[2], NULL, 10) : 0;
    for (; number && cases->name; cases++)
        if (strcmp(argv[1], cases->name) == 0)
            return native_measure(cases, number, (unsigned)strtoul(argv[4], NULL, 10), strtod(argv[5], NULL) * 1e6,
                                  (unsigned)strtoul(argv[6], NULL, 10));
    fprintf(stderr, "usage: %s NAME NUMBER - SAMPLES MILLISECONDS SEED\n", argv[0]);
    for (; cases->name; cases++)
        fprintf(stderr, "  %s\n", cases->name);
    return 2;
}

#endif
