/* What the benchmarks share: clock, repetitions, sinks, memory in use, output. C11 and C++17; include it first.
 *
 * A program prints one JSON object per line on stdout:
 *   {"case": "...", "impl": "...", "params": {...}, "ns": median, "min": ..., "max": ..., "bytes": ...}
 * or, for what cannot be measured here,
 *   {"case": "...", "impl": "...", "params": {...}, "missing": "why"} */
#ifndef BENCH_H
#define BENCH_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BENCH_INLINE static inline __attribute__((always_inline, unused))
#define BENCH_FUNCTION static inline __attribute__((unused))
/* A measured loop, or what it runs: a function of its own that begins on a cache line. */
#define BENCH_HOT __attribute__((noinline, aligned(64)))

/* ---- Time ---- */

/* Nanoseconds of the monotonic clock. */
BENCH_INLINE double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Nanoseconds of processor time of this thread: time of other threads and processes does not count. A system call. */
BENCH_INLINE double bench_thread_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- Keeping the optimiser from removing or predicting the work ---- */

/* The memory that `p` points to is used, and may have changed. */
BENCH_INLINE void bench_escape(void *p)
{
    __asm__ volatile("" : : "g"(p) : "memory");
}

/* All memory may have changed. */
BENCH_INLINE void bench_clobber(void)
{
    __asm__ volatile("" : : : "memory");
}

/* The value is used. */
BENCH_INLINE void bench_sink(uintptr_t value)
{
    __asm__ volatile("" : : "r"(value));
}

/* `value`; the compiler cannot predict it. */
BENCH_INLINE uintptr_t bench_hide(uintptr_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value;
}

/* ---- Repetitions ---- */

typedef struct bench_stat {
    double median, min, max;
} bench_stat_t;

BENCH_FUNCTION int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The summary of `n` > 0 samples; sorts them. */
BENCH_FUNCTION bench_stat_t bench_summary(double *samples, size_t n)
{
    bench_stat_t s;
    qsort(samples, n, sizeof *samples, bench_compare);
    s.median = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
    s.min = samples[0];
    s.max = samples[n - 1];
    return s;
}

/* ---- Random orders: xorshift64*; a seed gives the same order everywhere ---- */

BENCH_INLINE uint64_t bench_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

BENCH_FUNCTION void bench_shuffle(void **p, size_t n, uint64_t *state)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(bench_random(state) % i);
        void *swapped = p[i - 1];
        p[i - 1] = p[j];
        p[j] = swapped;
    }
}

/* ---- Memory ---- */

/* Resident bytes of this process, page tables not included. */
BENCH_FUNCTION size_t bench_rss(void)
{
    unsigned long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu %lu", &total, &resident) != 2) {
        perror("/proc/self/statm");
        exit(1);
    }
    fclose(f);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Bytes that the kernel can give without swapping; 0 if it does not say. */
BENCH_FUNCTION size_t bench_memory_available(void)
{
    char line[128];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    if (!f)
        return 0;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lu kB", &kib) == 1)
            break;
    fclose(f);
    return (size_t)kib * 1024;
}

/* malloc() and mmap(); without memory they end the process with a message. */
BENCH_FUNCTION void *bench_alloc(size_t sz)
{
    void *p = malloc(sz);
    if (!p) {
        fprintf(stderr, "bench: no memory for %zu bytes\n", sz);
        exit(1);
    }
    return p;
}

BENCH_FUNCTION void *bench_map(size_t sz)
{
    void *p = mmap(NULL, sz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "bench: no mapping of %zu bytes: %s\n", sz, strerror(errno));
        exit(1);
    }
    return p;
}

/* Calls measure(arg, result) in a child process, whose heap nobody has used yet. Copies the result's `sz` bytes back,
 * at most PIPE_BUF. A failure ends the program. */
BENCH_FUNCTION void bench_in_child(void (*measure)(const void *arg, void *result), const void *arg, void *result,
                                   size_t sz)
{
    int channel[2], status;
    fflush(stdout);
    pid_t child = pipe(channel) == 0 ? fork() : -1;
    if (child == 0) {
        measure(arg, result);
        _exit(write(channel[1], result, sz) == (ssize_t)sz ? 0 : 1);
    }
    if (child < 0) {
        perror("bench: pipe or fork");
        exit(1);
    }
    close(channel[1]);
    ssize_t got = read(channel[0], result, sz);
    close(channel[0]);
    if (waitpid(child, &status, 0) != child || status != 0 || got != (ssize_t)sz) {
        fprintf(stderr, "bench: a measurement in a child process failed, status %d\n", status);
        exit(1);
    }
}

/* ---- Output ---- */

/* `params` is a JSON object as text: "{}" or "{\"n\": 8}"; `bytes` < 0 means that bytes were not measured. */

BENCH_FUNCTION void bench_json(const char *name, const char *impl, const char *params, bench_stat_t ns, double bytes)
{
    printf("{\"case\": \"%s\", \"impl\": \"%s\", \"params\": %s, "
           "\"ns\": %.4g, \"min\": %.4g, \"max\": %.4g, \"bytes\": ",
           name, impl, params, ns.median, ns.min, ns.max);
    if (bytes < 0)
        printf("null}\n");
    else
        printf("%.6g}\n", bytes);
    fflush(stdout);
}

BENCH_FUNCTION void bench_json_missing(const char *name, const char *impl, const char *params, const char *reason)
{
    printf("{\"case\": \"%s\", \"impl\": \"%s\", \"params\": %s, \"missing\": \"%s\"}\n", name, impl, params, reason);
    fflush(stdout);
}

#endif
