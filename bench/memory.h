/* Many coroutines on one share stack: the time of a resume that copies, and the memory of each coroutine. The
 * coroutines and the loop are the same for every contender. A program defines these names and includes this file, which
 * has main():
 *   co_t, IMPL                    a coroutine; the contender's name
 *   co_prepare()                  called once, makes the one share stack
 *   co_new(save_sz, entry, tag)   a new coroutine on it, with `save_sz` bytes for its save area (0: the contender's
 *                                 default)
 *   co_resume(co), co_destroy(co)
 *   co_copied(co)                 the most bytes copied at one switch
 *   copying_tag(), copying_yield()   see copying.h
 *
 *   PROGRAM [--json] [--quick] [N]
 *
 * Every measurement is a process of its own. It makes the coroutines, resumes each once, reads the memory, and then
 * resumes them round robin. In order "made" the turns follow the order of creation, which hardware prefetchers predict.
 * In order "shuffled" they do not, as when coroutines have come and gone for a while. */
#ifndef MEMORY_H
#define MEMORY_H
#include "copying.h"

COPYING_HOLDER(48)
COPYING_HOLDER(96)

#ifdef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
#define MEMORY_FP "shared"
#else
#define MEMORY_FP "own"
#endif

typedef struct sample {
    double ns, bytes; /* per resume; resident per coroutine */
    size_t copied;
} sample_t;

typedef struct setting {
    const char *name;
    void (*entry)(void);
    size_t live;      /* bytes that the entry function holds */
    int fit;          /* save areas have the measured size */
    int shuffled;     /* order of turns */
} setting_t;

static const setting_t settings[] = {
    {"copy_100_bytes_1M", hold_48, 48, 1, 0},
    {"copy_100_bytes_1M", hold_96, 96, 1, 0},
    {"copy_100_bytes_1M", hold_96, 96, 1, 1},
    {"rss_96_live_bytes_1M", hold_96, 96, 1, 0},
    {"rss_96_live_bytes_1M", hold_96, 96, 0, 0},
};

typedef struct request {
    size_t n, save_sz;
    void (*entry)(void);
    int shuffled;
    unsigned rounds;
} request_t;

static void measure(const void *arg, void *result)
{
    const request_t *wanted = arg;
    size_t n = wanted->n;
    uint64_t seed = 1;
    sample_t s = {0, 0, 0};
    co_t **co = bench_alloc(n * sizeof *co);
    memset(co, 1, n * sizeof *co); /* makes it resident before the baseline is read; zeroes would become a calloc() */
    co_prepare();
    size_t baseline = bench_rss();
    for (size_t i = 0; i < n; i++)
        co[i] = co_new(wanted->save_sz, wanted->entry, i);
    if (wanted->shuffled)
        bench_shuffle((void **)co, n, &seed);
    for (size_t i = 0; i < n; i++)
        co_resume(co[i]);
    s.bytes = ((double)bench_rss() - (double)baseline) / (double)n;
    for (size_t i = 0; i < n; i++) /* the first restore is not measured */
        co_resume(co[i]);
    double start = bench_thread_now();
    for (unsigned r = 0; r < wanted->rounds; r++)
        for (size_t i = 0; i < n; i++)
            co_resume(co[i]);
    s.ns = (bench_thread_now() - start) / (double)wanted->rounds / (double)n;
    copying_check_all = 1;
    for (size_t i = 0; i < n; i++)
        co_resume(co[i]);
    copying_must_be_right(n);
    for (size_t i = 0; i < n; i++)
        if (s.copied < co_copied(co[i]))
            s.copied = co_copied(co[i]);
    for (size_t i = 0; i < n; i++)
        co_destroy(co[i]);
    free(co);
    memcpy(result, &s, sizeof s);
}

static sample_t measure_in_child(size_t n, size_t save_sz, const setting_t *set, int shuffled, unsigned rounds)
{
    request_t wanted = {n, save_sz, set->entry, shuffled, rounds};
    sample_t s;
    bench_in_child(measure, &wanted, &s, sizeof s);
    return s;
}

static void report(int json, const setting_t *set, size_t n, size_t copied, bench_stat_t ns, bench_stat_t bytes)
{
    const char *save = set->fit ? "fit" : "default", *order = set->shuffled ? "shuffled" : "made";
    char params[200];
    if (json) {
        snprintf(params, sizeof params,
                 "{\"n\": %zu, \"live\": %zu, \"copied\": %zu, \"save\": \"%s\", \"order\": \"%s\", \"fp\": \"%s\"}", n,
                 set->live, copied, save, order, MEMORY_FP);
        bench_json(set->name, IMPL, params, ns, bytes.median);
    } else {
        printf("%-21s %-13s %6zu %6zu  %-7s %-8s %-6s %8.1f %7.1f %7.1f %8.1f\n", set->name, IMPL, set->live, copied,
               save, order, MEMORY_FP, ns.median, ns.min, ns.max, bytes.median);
    }
}

/* One line of output: the medians of `samples` processes. */
static void run_case(int json, const setting_t *set, size_t n, unsigned samples)
{
    enum { MOST = 16, ROUNDS = 6 };
    double ns[MOST], bytes[MOST];
    size_t copied = measure_in_child(2, 0, set, 0, 1).copied;
    for (unsigned i = 0; i < samples; i++) {
        sample_t s = measure_in_child(n, set->fit ? copied : 0, set, set->shuffled, ROUNDS);
        ns[i] = s.ns;
        bytes[i] = s.bytes;
        copied = s.copied;
    }
    report(json, set, n, copied, bench_summary(ns, samples), bench_summary(bytes, samples));
}

int main(int argc, char **argv)
{
    int json = 0;
    unsigned samples = 7;
    size_t n = 1000000;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--quick") == 0)
            samples = 3;
        else if ((n = strtoul(argv[i], NULL, 10)) == 0) {
            fprintf(stderr, "usage: %s [--json] [--quick] [N]\n", argv[0]);
            return 2;
        }
    }
    if (bench_memory_available() < n * 600) {
        fprintf(stderr, "%s: %zu coroutines need up to %zu MiB, more than is free\n", argv[0], n, n * 600 >> 20);
        return 1;
    }
    if (!json)
        printf("%-21s %-13s %6s %6s  %-7s %-8s %-6s %8s %7s %7s %8s\n", "case", "impl", "live B", "copied", "save",
               "order", "fp env", "ns/resume", "min", "max", "RSS B/co");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        run_case(json, &settings[i], n, samples);
    return 0;
}

#endif
