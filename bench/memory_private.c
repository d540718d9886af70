/* Private stacks by the million: Acorn's, from a pool. memory_scale.h has the loops. A run is one measurement:
 *
 *   PROGRAM count N SIZE        N coroutines on stacks of SIZE bytes, each suspended one call deep
 *   PROGRAM bare N SIZE         no coroutines: maps, guards and touches the same pages, to show the kernel's share
 *   PROGRAM fallback N FLAG     N stacks on a kernel without guards in page tables: FLAG is mprotect or must_guard
 *   PROGRAM trim N PAGES FLAG   releases N idle stacks of PAGES touched pages and uses them again: FLAG now or lazy
 *   PROGRAM churn N             as in memory_scale.h */
#include "acorn.h"

#include <aco/pool.h>

#define IMPL "acorn, private"
#define SCALE_PREFIX "private"
/* aco_new()'s entry functions get an argument and return something. */
#define SCALE_HOLDER(bytes)                                                                                            \
    COPYING_HOLDER(bytes)                                                                                              \
    static void *enter_##bytes(void *arg)                                                                              \
    {                                                                                                                  \
        hold_##bytes();                                                                                                \
        return arg;                                                                                                    \
    }
#define SCALE_ENTRY_POINT(bytes) enter_##bytes
typedef aco_function_t co_entry_t;
#define SCALE_EACH(live) ((live) < 4000 ? 4096 + 400 : 8192 + 400)
#define SCALE_OWN_MAIN

enum { CHURN_SIZE = 64 << 10, PAGE = 4096, NO_LIMIT = 1 << 30 };

static aco_pool_options_t pool_options;
static aco_options_t how;
static size_t mappings_before, tables_before;
static size_t room_left; /* the bytes that memory_scale.h holds: they do not count here */

/* The number of lines of a file in /proc, or the number that follows `key` in it. */
static size_t proc_number(const char *path, const char *key)
{
    char line[512];
    size_t lines = 0, found = 0;
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        exit(1);
    }
    while (fgets(line, sizeof line, f)) {
        lines++;
        if (key && strncmp(line, key, strlen(key)) == 0)
            found = strtoul(line + strlen(key), NULL, 10);
    }
    fclose(f);
    return key ? found : lines;
}

static size_t mappings(void)
{
    return proc_number("/proc/self/maps", NULL) - (room_left != 0);
}

static size_t table_bytes(void)
{
    return proc_number("/proc/self/status", "VmPTE:") * 1024 - room_left / 512;
}

static void co_prepare(void)
{
    how.pool = aco_pool_new(&pool_options);
    if (!how.pool) {
        fprintf(stderr, "bench: %s\n", aco_error_message());
        exit(1);
    }
    mappings_before = mappings();
    tables_before = table_bytes();
}

BENCH_INLINE co_t *co_new(size_t save_sz, aco_function_t entry, size_t tag)
{
    (void)save_sz;
    co_t *co = aco_new(entry, (void *)tag, &how);
    if (co)
        return co;
    fprintf(stderr, "bench: %s\n", aco_error_message());
    exit(1);
}

BENCH_INLINE size_t co_copied(const co_t *co)
{
    (void)co;
    return 0;
}

/* Not inlined, so that the coroutine is suspended one call deep. */
static __attribute__((noinline)) void copying_yield(void)
{
    aco_yield();
}

#include "memory_scale.h"

/* ---- Stacks by number and size ---- */

static double tables_each, mappings_each;
static aco_pool_stats_t stats;

static void count_mappings(size_t n)
{
    aco_pool_stats(how.pool, &stats);
    tables_each = ((double)table_bytes() - (double)tables_before) / (double)n;
    mappings_each = ((double)mappings() - (double)mappings_before) / (double)stats.regions;
}

/* One more line: bytes of page tables for each stack, and mappings for each region. */
static void print_kernel(const char *name, const char *impl, const char *params, size_t regions)
{
    printf("{\"case\": \"%s\", \"impl\": \"%s\", \"params\": %s, "
           "\"bytes\": %.4g, \"mappings\": %.4g, \"regions\": %zu}\n",
           name, impl, params, tables_each, mappings_each, regions);
}

static void run_count(size_t n, size_t sz)
{
    char params[100];
    scale_kind_t kind = {enter_96, 0, 0};
    snprintf(params, sizeof params, "{\"n\": %zu, \"stack\": %zu}", n, sz);
    if (!scale_fits(n, SCALE_EACH(96), "private", params))
        return;
    how.stack_size = sz;
    scale_times_t t = scale_count(n, kind, SCALE_EACH(96), 1, count_mappings);
    scale_print(&t, params);
    print_kernel("private_kernel", IMPL, params, stats.regions);
}

/* ---- The kernel's share ---- */

enum { INSTALL_GUARD = 102 }; /* MADV_GUARD_INSTALL; older headers do not have it */

static void run_bare(size_t n, size_t sz)
{
    size_t stride = sz + 2 * PAGE;
    char params[100];
    snprintf(params, sizeof params, "{\"n\": %zu, \"stack\": %zu}", n, sz);
    if (!scale_fits(n, SCALE_EACH(96), "private", params))
        return;
    mappings_before = mappings();
    tables_before = table_bytes();
    size_t baseline = room_rss();
    double guards = 0, touches = 0;
    char *pages = bench_map(n * stride);
    madvise(pages, n * stride, MADV_NOHUGEPAGE);
    for (size_t done = 0, portion; done < n; done += portion) {
        portion = n - done < PORTION ? n - done : PORTION;
        room_for(portion * SCALE_EACH(96));
        double start = bench_thread_now();
        for (size_t i = done; i < done + portion; i++)
            if (madvise(pages + i * stride, PAGE, INSTALL_GUARD) != 0) {
                bench_json_missing("private", "bare pages", params, strerror(errno));
                return;
            }
        double guarded = bench_thread_now();
        for (size_t i = done; i < done + portion; i++)
            pages[(i + 1) * stride - 1] = 1;
        guards += guarded - start;
        touches += bench_thread_now() - guarded;
    }
    double bytes = ((double)room_rss() - (double)baseline) / (double)n;
    room_free(room_left);
    tables_each = ((double)table_bytes() - (double)tables_before) / (double)n;
    mappings_each = (double)mappings() - (double)mappings_before;
    double before = bench_thread_now();
    munmap(pages, n * stride);
    const double each[] = {guards / (double)n, touches / (double)n, (bench_thread_now() - before) / (double)n};
    static const char *const what[] = {"private_create", "private_first_resume", "private_destroy"};
    for (int i = 0; i < 3; i++) {
        bench_stat_t s = {each[i], each[i], each[i]};
        bench_json(what[i], "bare pages", params, s, bytes);
    }
    print_kernel("private_kernel", "bare pages", params, 1);
}

/* ---- Fallback ---- */

static void run_fallback(size_t n, const char *flag)
{
    int must = strcmp(flag, "must_guard") == 0;
    size_t made = 0;
    co_t *co = NULL;
    char params[100];
    pool_options.flags = ACO_POOL_MPROTECT | (must ? (unsigned)ACO_POOL_MUST_GUARD : 0);
    how.stack_size = 64 << 10;
    snprintf(params, sizeof params, "{\"n\": %zu, \"flags\": \"%s\"}", n, must ? "mprotect, must guard" : "mprotect");
    if (!scale_fits(n, SCALE_EACH(96), "private_fallback", params))
        return;
    room_free(room_left);
    co_t **all = scale_handles(n);
    co_prepare();
    double start = bench_thread_now();
    while (made < n && (co = aco_new(enter_96, (void *)made, &how)) != NULL)
        all[made++] = co;
    int error = co ? 0 : errno;
    double ns = (bench_thread_now() - start) / (double)made;
    resume_all(all, made);
    scale_must_be_right(all, made);
    aco_pool_stats(how.pool, &stats);
    const char *name = error == EAGAIN ? "EAGAIN" : error ? strerror(error) : "";
    printf("{\"case\": \"private_fallback\", \"impl\": \"%s\", \"params\": %s, "
           "\"ns\": %.4g, \"min\": %.4g, \"max\": %.4g, \"bytes\": null, "
           "\"made\": %zu, \"guarded\": %zu, \"errno\": \"%s\", \"message\": \"%s\"}\n",
           IMPL, params, ns, ns, ns, made, made - stats.canaries, name,
           error ? aco_error_message() : "");
    destroy_all(all, made);
    free(all);
}

/* ---- Reclaim ---- */

static size_t pages_to_touch;

static __attribute__((noinline)) void touch(size_t pages)
{
    char page[PAGE - 64]; /* the frame is about a page */
    bench_escape(page);
    page[0] = (char)pages;
    if (pages > 1)
        touch(pages - 1);
    bench_escape(page);
}

static void *touch_and_return(void *arg)
{
    if (pages_to_touch > 1)
        touch(pages_to_touch - 1);
    return arg;
}

/* Makes coroutines, runs them to their end and destroys them, after which all stacks are idle. Returns nanoseconds
 * each. */
static double use_all(co_t **co, size_t n)
{
    double start = bench_thread_now();
    for (size_t i = 0; i < n; i++)
        co[i] = co_new(0, touch_and_return, i);
    resume_all(co, n);
    destroy_all(co, n);
    return (bench_thread_now() - start) / (double)n;
}

/* One stack stays in use. Otherwise the pool would unmap its only region. */
static void run_trim(size_t n, size_t pages, const char *flag)
{
    int lazy = strcmp(flag, "lazy") == 0;
    char params[100];
    snprintf(params, sizeof params, "{\"n\": %zu, \"pages\": %zu, \"reclaim\": \"%s\"}", n, pages,
             lazy ? "lazy" : "at once");
    if (!scale_fits(n, (pages + 1) * PAGE, "private_trim", params))
        return;
    room_free(room_left);
    co_t **co = scale_handles(n);
    how.stack_size = 256 << 10;
    pool_options.region_size = (n + 64) * (how.stack_size + 4 * PAGE);
    pool_options.idle_stacks = NO_LIMIT;
    pool_options.idle_ms = NO_LIMIT;
    pool_options.flags = lazy ? ACO_POOL_LAZY : 0;
    pages_to_touch = pages;
    co_prepare();
    co_t *keeper = co_new(0, enter_96, 0);
    size_t baseline = bench_rss();
    use_all(co, n);
    double bytes = ((double)bench_rss() - (double)baseline) / (double)n, warm = use_all(co, n);
    double start = bench_thread_now();
    size_t trimmed = aco_pool_trim(how.pool);
    double trim = (bench_thread_now() - start) / (double)trimmed;
    double left = ((double)bench_rss() - (double)baseline) / (double)n, again = use_all(co, n);
    if (trimmed != n) {
        fprintf(stderr, "bench: %zu of %zu stacks were trimmed\n", trimmed, n);
        exit(1);
    }
    scale_line("use_warm", params, warm, bytes);
    scale_line("trim", params, trim, left);
    scale_line("use_again", params, again, bytes);
    co_destroy(keeper);
    free(co);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, sz = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    if (n >= 2 && argc == 4 && strcmp(what, "count") == 0)
        run_count(n, sz);
    else if (n >= 2 && argc == 4 && strcmp(what, "bare") == 0)
        run_bare(n, sz);
    else if (n >= 2 && argc == 4 && strcmp(what, "fallback") == 0)
        run_fallback(n, argv[3]);
    else if (n >= 2 && argc == 5 && strcmp(what, "trim") == 0)
        run_trim(n, sz, argv[4]);
    else if (n >= 2 && argc == 3 && strcmp(what, "churn") == 0) {
        how.stack_size = CHURN_SIZE;
        scale_run_churn(n);
    } else {
        fprintf(stderr, "usage: %s count N SIZE | bare N SIZE | fallback N mprotect|must_guard | "
                        "trim N PAGES now|lazy | churn N\n", argv[0]);
        return 2;
    }
    return 0;
}
