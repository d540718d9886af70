/* libaco's benchmark table for Acorn: makes coroutines that hold a number of live bytes, resumes them round robin and
 * destroys them. The rows are those of libaco's README, and larger frames. The single coroutine of the first row has a
 * stack to itself; in the other rows all coroutines share one stack.
 *
 *   PROGRAM [--json] [--quick] [--fit] [--only N]
 *
 * --fit gives save areas the measured size instead of the default, 0. A yield copies more than the live bytes (saved
 * registers, alignment); `copied` is the number. --only measures the rows of N coroutines. Each repetition is a process
 * of its own, so that every page is touched for the first time. The first resume enters the coroutine, and the save
 * before it needs an area, so it is a row of its own: "first_resume".
 *
 * libaco's header fits, too: cc -O2 -Ibench -ILIBACO bench/libaco_table.c LIBACO/aco.c LIBACO/acosw.S, where
 * -DACO_CONFIG_SHARE_FPU_MXCSR_ENV gives all coroutines one floating-point environment. */
#include "copying.h"

#include <aco.h>

BENCH_INLINE uint64_t copying_tag(void)
{
    return (uintptr_t)aco_get_arg();
}

BENCH_INLINE void copying_yield(void)
{
    aco_yield();
}

static void hold_0(void)
{
    for (;;) {
        aco_yield();
        copying_checked += (size_t)copying_check_all;
    }
}

COPYING_HOLDER(8)
COPYING_HOLDER(24)
COPYING_HOLDER(40)
COPYING_HOLDER(56)
COPYING_HOLDER(120)
COPYING_HOLDER(136)
COPYING_HOLDER(152)
COPYING_HOLDER(232)
COPYING_HOLDER(488)
COPYING_HOLDER(1000)
COPYING_HOLDER(2024)
COPYING_HOLDER(4072)
COPYING_HOLDER(7992)
COPYING_HOLDER(16376)
COPYING_HOLDER(32760)
COPYING_HOLDER(57336)

enum { M = 1000000, MOST_REPETITIONS = 8 };

typedef struct row {
    size_t n, live, resumes;
    void (*entry)(void);
    int quick; /* also in the quick table */
} row_t;

static const row_t rows[] = {
    {1, 0, 10 * M, hold_0, 1},
    {2 * M, 8, 10 * M, hold_8, 0},
    {2 * M, 24, 10 * M, hold_24, 0},
    {2 * M, 40, 10 * M, hold_40, 0},
    {2 * M, 56, 10 * M, hold_56, 0},
    {2 * M, 120, 10 * M, hold_120, 1},
    {10 * M, 8, 20 * M, hold_8, 1},
    {10 * M, 24, 20 * M, hold_24, 0},
    {10 * M, 40, 20 * M, hold_40, 0},
    {10 * M, 56, 20 * M, hold_56, 0},
    {10 * M, 120, 20 * M, hold_120, 0},
    {2 * M, 136, 10 * M, hold_136, 0},
    {2 * M, 152, 10 * M, hold_152, 0},
    {2 * M, 232, 10 * M, hold_232, 0},
    {2 * M, 488, 10 * M, hold_488, 1},
    {1 * M, 1000, 5 * M, hold_1000, 0},
    {100000, 8, 5 * M, hold_8, 1},
    {100000, 24, 5 * M, hold_24, 0},
    {100000, 56, 5 * M, hold_56, 0},
    {100000, 120, 5 * M, hold_120, 0},
    {100000, 152, 5 * M, hold_152, 0},
    {100000, 232, 5 * M, hold_232, 0},
    {100000, 488, 5 * M, hold_488, 0},
    {100000, 1000, 5 * M, hold_1000, 1},
    {100000, 2024, 3 * M, hold_2024, 0},
    {100000, 4072, 2 * M, hold_4072, 0},
    {100000, 7992, 1 * M, hold_7992, 1},
    {20000, 16376, 400000, hold_16376, 0},
    {10000, 32760, 200000, hold_32760, 0},
    {10000, 57336, 100000, hold_57336, 0},
};

typedef struct sample {
    double create, first, resume, destroy; /* nanoseconds each */
    double bytes;                          /* resident per coroutine */
    size_t copied;
} sample_t;

typedef struct result {
    double create[MOST_REPETITIONS], first[MOST_REPETITIONS], resume[MOST_REPETITIONS], destroy[MOST_REPETITIONS];
    double bytes;
    size_t copied;
} result_t;

typedef struct request {
    const row_t *row;
    size_t save_sz;
} request_t;

enum { STACK = 128 << 10 };

static aco_t *main_co;

static double resume_rounds(aco_t **co, size_t n, size_t rounds)
{
    double start = bench_thread_now();
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < n; i++)
            aco_resume(co[i]);
    return (bench_thread_now() - start) / (double)rounds / (double)n;
}

static size_t most_copied(aco_t *const *co, size_t n)
{
    size_t most = 0;
    for (size_t i = 0; i < n; i++)
        if (most < co[i]->save_stack.max_cpsz)
            most = co[i]->save_stack.max_cpsz;
    return most;
}

static void begin(void)
{
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
}

static void measure(const void *arg, void *sample)
{
    const request_t *wanted = arg;
    const row_t *row = wanted->row;
    sample_t *s = sample;
    size_t n = row->n, rounds = row->resumes / n;
    aco_t **co = bench_alloc(n * sizeof *co);
    memset(co, 1, n * sizeof *co); /* makes it resident before the baseline is read */
    begin();
    aco_share_stack_t *stack = aco_share_stack_new(STACK);
    size_t baseline = bench_rss();
    double start = bench_thread_now();
    for (size_t i = 0; i < n; i++)
        co[i] = aco_create(main_co, stack, wanted->save_sz, row->entry, (void *)i);
    s->create = (bench_thread_now() - start) / (double)n;
    s->first = resume_rounds(co, n, 1);
    s->bytes = ((double)bench_rss() - (double)baseline) / (double)n;
    s->resume = resume_rounds(co, n, rounds);
    copying_check_all = 1;
    resume_rounds(co, n, 1);
    copying_must_be_right(n);
    s->copied = most_copied(co, n);
    start = bench_thread_now();
    for (size_t i = 0; i < n; i++)
        aco_destroy(co[i]);
    s->destroy = (bench_thread_now() - start) / (double)n;
}

/* The number of bytes that two such coroutines copy. */
static void measure_two(const void *row, void *copied)
{
    aco_t *co[2];
    begin();
    aco_share_stack_t *stack = aco_share_stack_new(STACK);
    for (size_t i = 0; i < 2; i++)
        co[i] = aco_create(main_co, stack, 0, ((const row_t *)row)->entry, (void *)i);
    resume_rounds(co, 2, 2);
    *(size_t *)copied = most_copied(co, 2);
}

static void report_json(const row_t *row, size_t save_sz, result_t *r, unsigned repetitions)
{
    char params[160];
#ifdef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
    const char *fp = "shared";
#else
    const char *fp = "own";
#endif
    snprintf(params, sizeof params, "{\"n\": %zu, \"live\": %zu, \"copied\": %zu, \"save\": %zu, \"fp\": \"%s\"}",
             row->n, row->live, r->copied, save_sz, fp);
    bench_json("libaco_table/create", "acorn", params, bench_summary(r->create, repetitions), -1);
    bench_json("libaco_table/first_resume", "acorn", params, bench_summary(r->first, repetitions), -1);
    bench_json("libaco_table/resume", "acorn", params, bench_summary(r->resume, repetitions),
               row->n > 1 ? r->bytes : -1);
    bench_json("libaco_table/destroy", "acorn", params, bench_summary(r->destroy, repetitions), -1);
}

static void report_text(const row_t *row, size_t save_sz, result_t *r, unsigned repetitions)
{
    bench_stat_t resume = bench_summary(r->resume, repetitions);
    printf("%10zu %7zu %7zu %7zu %9.1f %9.1f %9.2f %8.2f %8.2f %9.1f", row->n, row->live, r->copied, save_sz,
           bench_summary(r->create, repetitions).median, bench_summary(r->first, repetitions).median, resume.median,
           resume.min, resume.max, bench_summary(r->destroy, repetitions).median);
    if (row->n > 1)
        printf(" %9.0f", r->bytes);
    printf("\n");
    fflush(stdout);
}

/* At most two areas for each coroutine: the block with a small save area, and a grown save area. */
static size_t memory_needed(const row_t *row)
{
    return row->n * (2 * (row->live + 128) + 256);
}

static void run_row(const row_t *row, int fit, unsigned repetitions, int json)
{
    result_t result;
    char reason[128], params[64];
    if (memory_needed(row) > bench_memory_available()) {
        snprintf(reason, sizeof reason, "needs up to %zu MiB, more than is free", memory_needed(row) >> 20);
        snprintf(params, sizeof params, "{\"n\": %zu, \"live\": %zu}", row->n, row->live);
        if (json)
            bench_json_missing("libaco_table", "acorn", params, reason);
        else
            printf("%10zu %7zu  skipped: %s\n", row->n, row->live, reason);
        return;
    }
    request_t wanted = {row, 0};
    if (fit)
        bench_in_child(measure_two, row, &wanted.save_sz, sizeof wanted.save_sz);
    for (unsigned k = 0; k < repetitions; k++) {
        sample_t s;
        bench_in_child(measure, &wanted, &s, sizeof s);
        result.create[k] = s.create;
        result.first[k] = s.first;
        result.resume[k] = s.resume;
        result.destroy[k] = s.destroy;
        result.bytes = s.bytes;
        result.copied = s.copied;
    }
    (json ? report_json : report_text)(row, wanted.save_sz, &result, repetitions);
}

int main(int argc, char **argv)
{
    int json = 0, quick = 0, fit = 0;
    size_t only = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--quick") == 0)
            quick = 1;
        else if (strcmp(argv[i], "--fit") == 0)
            fit = 1;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = strtoul(argv[++i], NULL, 10);
        else {
            fprintf(stderr, "usage: %s [--json] [--quick] [--fit] [--only N]\n", argv[0]);
            return 2;
        }
    }
    if (!json)
        printf("sizeof(aco_t) = %zu; nanoseconds per operation, medians of %d; resume also with min and max\n\n"
               "%10s %7s %7s %7s %9s %9s %9s %8s %8s %9s %9s\n",
               sizeof(aco_t), quick ? 1 : 3, "coroutines", "live B", "copied", "save_sz", "create", "1st resume",
               "resume", "min", "max", "destroy", "RSS B/co");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if ((!quick || rows[i].quick) && (!only || rows[i].n == only))
            run_row(&rows[i], fit, quick ? 1 : 3, json);
    return 0;
}
