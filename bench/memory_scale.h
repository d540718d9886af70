/* Coroutines by the million: the memory and the time of each, from creation to destruction. The loops are the same for
 * every contender. A program defines what memory.h requires:
 *   co_t, IMPL, co_prepare(), co_new(save_sz, entry, tag), co_resume(co), co_copied(co), co_destroy(co), copying_tag(),
 *   copying_yield()
 * It may define these, and then includes this file:
 *   SCALE_HOLDER(bytes)        defines an entry function with so many live bytes (default: copying.h's hold_<bytes>)
 *   SCALE_ENTRY_POINT(bytes)   what co_new() gets for it (default: hold_<bytes>), of type co_entry_t
 *   SCALE_PREFETCH             the program has co_prefetch(co) and co_prefetch_more(co)
 *   SCALE_LARGE_PAGES          the contender's memory has large pages (madvise)
 *   SCALE_EACH(live)           about how many bytes a coroutine needs; if the machine has too few for all, the program
 *                              reports the measurement as missing
 *   SCALE_OWN_MAIN             the program has its own main()
 * A run is one measurement, printed as JSON lines; bench/run_memory.py runs all of them.
 *
 *   PROGRAM count N LIVE [AREA]   makes N coroutines, resumes them once, then in turn and in random order, destroys
 *                              them. AREA: their save areas have the size that two coroutines needed (fit, the
 *                              default), or the contender's default and all are made before the first is resumed
 *                              (default), or each is resumed before the next is made (in_turn)
 *   PROGRAM churn N            makes N coroutines; 5 N times it destroys one, makes another and resumes it
 *
 * Time is the thread's processor time, page faults included. Memory is what is resident after each coroutine was
 * resumed once, less what was resident before the first was made. The arrays of handles are resident before that. */
#ifndef MEMORY_SCALE_H
#define MEMORY_SCALE_H
#include "copying.h"

#define SCALE_LIVE(X) X(8) X(40) X(96) X(104) X(232) X(488) X(1000) X(4000)

#ifndef SCALE_HOLDER
#define SCALE_HOLDER(bytes) COPYING_HOLDER(bytes)
#endif
#ifndef SCALE_ENTRY_POINT
#define SCALE_ENTRY_POINT(bytes) hold_##bytes
typedef void (*co_entry_t)(void);
#endif
#ifndef SCALE_EACH
#define SCALE_EACH(live) (200 + 4 * (live) / 3)
#endif
#ifndef SCALE_PREFIX
#define SCALE_PREFIX "scale"
#endif
#ifndef SCALE_PREFETCH
#define co_prefetch(co) ((void)0)
#define co_prefetch_more(co) ((void)0)
#endif

SCALE_LIVE(SCALE_HOLDER)

#define PORTION ((size_t)65536) /* coroutines that get their memory at a time */
enum {
    FAR = 8,         /* coroutines ahead at which the first step of a prefetch is made */
    NEAR = 4,        /* and the second step */
    LARGE = 200,     /* from this number of live bytes on, or with areas apart from the blocks, a share stack gains by
                        the second step */
    MOST = 1000000,  /* resumes of a small number of coroutines, in all */
    CHURN_STEPS = 5  /* for each coroutine */
};

static co_entry_t scale_entry(size_t live)
{
    static const struct {
        size_t live;
        co_entry_t entry;
    } all[] = {
#define SCALE_ROW(bytes) {bytes, SCALE_ENTRY_POINT(bytes)},
        SCALE_LIVE(SCALE_ROW)
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].live == live)
            return all[i].entry;
    fprintf(stderr, "bench: no entry function has %zu live bytes\n", live);
    exit(2);
}

/* ---- The loops, each a function of its own that begins on a cache line ---- */

static BENCH_HOT void create_all(co_t **co, size_t n, size_t save_sz, co_entry_t entry, size_t tag)
{
    for (size_t i = 0; i < n; i++)
        co[i] = co_new(save_sz, entry, tag + i);
}

static BENCH_HOT void create_in_turn(co_t **co, size_t n, size_t save_sz, co_entry_t entry, size_t tag)
{
    for (size_t i = 0; i < n; i++) {
        co[i] = co_new(save_sz, entry, tag + i);
        co_resume(co[i]);
    }
}

static BENCH_HOT void resume_all(co_t **co, size_t n)
{
    for (size_t i = 0; i < n; i++)
        co_resume(co[i]);
}

/* `co` has FAR more handles at its end; they are prefetched but not resumed. */
static BENCH_HOT __attribute__((unused)) void resume_all_prefetching(co_t **co, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        co_prefetch(co[i + FAR]);
        co_resume(co[i]);
    }
}

static BENCH_HOT __attribute__((unused)) void resume_all_prefetching_twice(co_t **co, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        co_prefetch(co[i + FAR]);
        co_prefetch_more(co[i + NEAR]);
        co_resume(co[i]);
    }
}

static BENCH_HOT void destroy_all(co_t **co, size_t n)
{
    for (size_t i = 0; i < n; i++)
        co_destroy(co[i]);
}

/* ---- Memory that the machine has ----
 *
 * The host of a virtual machine takes free pages back after some seconds (virtio's free page reporting). The next touch
 * of such a page then costs microseconds, which are not the contender's. So this code touches enough pages of the same
 * kind beforehand, holds them, and frees them when the contender is about to need them. */

static char *room;
static size_t room_left;  /* bytes held */
static size_t room_freed; /* bytes no longer held */
static size_t room_base;  /* other bytes that were resident when these were touched */

static void room_touch(size_t sz)
{
    const size_t large = (size_t)2 << 20;
    room_left = (sz + large - 1) / large * large;
    room = (char *)bench_map(room_left);
#ifdef SCALE_LARGE_PAGES
    madvise(room, room_left, MADV_HUGEPAGE);
#endif
    for (size_t at = 0; at < room_left; at += 4096)
        room[at] = 1;
    room_freed = 0;
    room_base = bench_rss() - room_left;
}

static void room_free(size_t sz)
{
    const size_t large = (size_t)2 << 20;
    sz = (sz + large - 1) / large * large;
    sz = sz < room_left ? sz : room_left;
    if (sz == 0)
        return;
    room_left -= sz;
    room_freed += sz;
    munmap(room + room_left, sz);
}

/* Resident bytes, less the bytes held here. */
static size_t room_rss(void)
{
    return bench_rss() - room_left;
}

/* Makes sure that `sz` bytes of touched memory are free now. */
static void room_for(size_t sz)
{
    size_t now = room_rss(), used = now > room_base ? now - room_base : 0;
    sz += used + ((size_t)16 << 20);
    if (sz > room_freed)
        room_free(sz - room_freed);
}

/* Touches memory for `n` coroutines of `each` bytes and their handles. Without so much memory it prints that the
 * measurement is missing, and returns 0. */
static int scale_fits(size_t n, size_t each, const char *name, const char *params)
{
    char why[100];
    size_t need = n * (each + 2 * sizeof(co_t *));
    if (need + need / 16 <= bench_memory_available()) {
        room_touch(need);
        return 1;
    }
    snprintf(why, sizeof why, "%zu coroutines need some %zu MiB, more than is free", n, need >> 20);
    bench_json_missing(name, IMPL, params, why);
    return 0;
}

/* ---- One measurement ---- */

typedef struct scale_kind {
    co_entry_t entry;
    size_t save_sz; /* the size that two coroutines needed */
    int in_turn;    /* each is resumed before the next is made */
} scale_kind_t;

static void copied_by_two(const void *kind, void *result)
{
    co_t *co[2];
    co_prepare();
    create_all(co, 2, 0, ((const scale_kind_t *)kind)->entry, 0);
    for (int i = 0; i < 3; i++)
        resume_all(co, 2);
    *(size_t *)result = co_copied(co[0]);
}

static scale_kind_t scale_fit(size_t live)
{
    scale_kind_t kind = {scale_entry(live), 0, 0};
    bench_in_child(copied_by_two, &kind, &kind.save_sz, sizeof kind.save_sz);
    return kind;
}

/* An array of handles, already resident. */
static co_t **scale_handles(size_t n)
{
    room_for(n * sizeof(co_t *));
    co_t **co = (co_t **)bench_alloc((n + FAR) * sizeof *co);
    memset((void *)co, 1, (n + FAR) * sizeof *co); /* zeroes would become a calloc() */
    return co;
}

typedef struct scale_times {
    double create, first, round_robin, random, prefetch, destroy; /* nanoseconds each; < 0: not measured */
    double bytes;
    size_t copied;
} scale_times_t;

/* Nanoseconds for each coroutine and round of `rounds` calls of loop(co, n). */
static double scale_time(void (*loop)(co_t **, size_t), co_t **co, size_t n, size_t rounds)
{
    double start = bench_thread_now();
    for (size_t r = 0; r < rounds; r++)
        loop(co, n);
    return (bench_thread_now() - start) / (double)rounds / (double)n;
}

static void scale_must_be_right(co_t **co, size_t n)
{
    copying_check_all = 1;
    resume_all(co, n);
    copying_check_all = 0;
    copying_must_be_right(n);
}

/* Nanoseconds to make a coroutine. Works in portions, because room_for() must free `each` bytes for every coroutine. */
static double scale_make(co_t **co, size_t n, scale_kind_t kind, size_t each)
{
    double ns = 0;
    for (size_t done = 0, portion; done < n; done += portion) {
        portion = n - done < PORTION ? n - done : PORTION;
        room_for(portion * each);
        double start = bench_thread_now();
        if (kind.in_turn)
            create_in_turn(co + done, portion, kind.save_sz, kind.entry, done);
        else
            create_all(co + done, portion, kind.save_sz, kind.entry, done);
        ns += bench_thread_now() - start;
    }
    return ns / (double)n;
}

static double scale_first(co_t **co, size_t n, size_t each)
{
    double ns = 0;
    for (size_t done = 0, portion; done < n; done += portion) {
        portion = n - done < PORTION ? n - done : PORTION;
        room_for(portion * each);
        ns += scale_time(resume_all, co + done, portion, 1) * (double)portion;
    }
    return ns / (double)n;
}

/* A coroutine takes at most `each` bytes. `twice` prefetches in two steps. `inspect`, or NULL, is called while all
 * coroutines are suspended. */
static scale_times_t scale_count(size_t n, scale_kind_t kind, size_t each, int twice, void (*inspect)(size_t n))
{
    uint64_t seed = 1;
    size_t rounds = n < MOST / 2 ? MOST / n : 1;
    scale_times_t t;
    co_t **co = scale_handles(n), **order = scale_handles(n);
    co_prepare();
    size_t baseline = room_rss();
    t.create = scale_make(co, n, kind, each);
    t.first = kind.in_turn ? -1 : scale_first(co, n, each);
    t.bytes = ((double)room_rss() - (double)baseline) / (double)n;
    room_free(room_left);
    if (inspect)
        inspect(n);
    resume_all(co, n); /* the first restore is not measured */
    t.round_robin = scale_time(resume_all, co, n, rounds > 1 ? rounds : 2);
    memcpy((void *)order, (void *)co, n * sizeof *co);
    bench_shuffle((void **)order, n, &seed);
    for (size_t i = 0; i < FAR; i++)
        order[n + i] = order[i % n];
    t.random = scale_time(resume_all, order, n, rounds);
#ifdef SCALE_PREFETCH
    t.prefetch = scale_time(twice ? resume_all_prefetching_twice : resume_all_prefetching, order, n, rounds);
#else
    (void)twice;
    t.prefetch = -1;
#endif
    scale_must_be_right(order, n);
    t.copied = co_copied(co[0]);
    t.destroy = scale_time(destroy_all, co, n, 1);
    free(co);
    free(order);
    return t;
}

/* ---- Output ---- */

static const char *scale_prefix = SCALE_PREFIX;

static void scale_line(const char *what, const char *params, double ns, double bytes)
{
    char name[64];
    bench_stat_t s = {ns, ns, ns};
    snprintf(name, sizeof name, "%s_%s", scale_prefix, what);
    bench_json(name, IMPL, params, s, bytes);
}

static void scale_print(const scale_times_t *t, const char *params)
{
    scale_line("create", params, t->create, t->bytes);
    if (t->first >= 0)
        scale_line("first_resume", params, t->first, t->bytes);
    scale_line("round_robin", params, t->round_robin, t->bytes);
    scale_line("random", params, t->random, t->bytes);
    if (t->prefetch >= 0)
        scale_line("random_prefetch", params, t->prefetch, t->bytes);
    scale_line("destroy", params, t->destroy, t->bytes);
}

/* ---- The measurements ---- */

static __attribute__((unused)) void scale_run_count(size_t n, size_t live, const char *area)
{
    char params[100], how[40] = "";
    if (strcmp(area, "fit") != 0)
        snprintf(how, sizeof how, ", \"area\": \"%s\"", area);
    snprintf(params, sizeof params, "{\"n\": %zu, \"live\": %zu%s}", n, live, how);
    scale_kind_t kind = scale_fit(live); /* before memory is held, because a fork would copy it */
    kind.in_turn = strcmp(area, "in_turn") == 0;
    if (*how) {
        kind.save_sz = 0;
        scale_prefix = "areas";
    }
    if (!scale_fits(n, SCALE_EACH(live), SCALE_PREFIX, params))
        return;
    scale_times_t t = scale_count(n, kind, SCALE_EACH(live), live >= LARGE || *how, NULL);
    snprintf(params, sizeof params, "{\"n\": %zu, \"live\": %zu, \"copied\": %zu%s}", n, live, t.copied, how);
    scale_print(&t, params);
}

static BENCH_HOT void churn_fill(co_t **co, size_t from, size_t to, const scale_kind_t kinds[3], uint64_t *seed)
{
    for (size_t i = from; i < to; i++) {
        const scale_kind_t *kind = &kinds[bench_random(seed) % 3];
        co[i] = co_new(kind->save_sz, kind->entry, i);
        co_resume(co[i]);
    }
}

static BENCH_HOT void churn_steps(co_t **co, size_t n, size_t steps, const scale_kind_t kinds[3], uint64_t *seed)
{
    for (size_t i = 0; i < steps; i++) {
        uint64_t random = bench_random(seed);
        size_t at = (size_t)(random >> 20) % n;
        const scale_kind_t *kind = &kinds[(random & 0xfffff) % 3];
        co_destroy(co[at]);
        co[at] = co_new(kind->save_sz, kind->entry, at);
        co_resume(co[at]);
    }
}

static void scale_run_churn(size_t n)
{
    enum { LARGEST = 488 };
    uint64_t seed = 1;
    char params[100];
    double ns = 0, start;
    snprintf(params, sizeof params, "{\"n\": %zu}", n);
    const scale_kind_t kinds[3] = {scale_fit(40), scale_fit(104), scale_fit(LARGEST)};
    if (!scale_fits(n, SCALE_EACH(LARGEST), "churn", params))
        return;
    co_t **co = scale_handles(n);
    co_prepare();
    size_t baseline = room_rss();
    for (size_t done = 0, portion; done < n; done += portion, ns += bench_thread_now() - start) {
        portion = n - done < PORTION ? n - done : PORTION;
        room_for(portion * SCALE_EACH(LARGEST));
        start = bench_thread_now();
        churn_fill(co, done, done + portion, kinds, &seed);
    }
    bench_stat_t fill = {ns / (double)n, ns / (double)n, ns / (double)n};
    double filled = ((double)room_rss() - (double)baseline) / (double)n;
    ns = 0;
    for (unsigned i = 0; i < CHURN_STEPS * 8; i++, ns += bench_thread_now() - start) {
        room_for(PORTION * SCALE_EACH(LARGEST));
        start = bench_thread_now();
        churn_steps(co, n, n / 8, kinds, &seed);
    }
    ns /= (double)(CHURN_STEPS * 8 * (n / 8));
    bench_stat_t step = {ns, ns, ns};
    double bytes = ((double)room_rss() - (double)baseline) / (double)n;
    scale_must_be_right(co, n);
    bench_json("churn_fill", IMPL, params, fill, filled);
    bench_json("churn", IMPL, params, step, bytes);
    destroy_all(co, n);
    free(co);
}

static __attribute__((unused)) int scale_main(int argc, char **argv)
{
    size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, live = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    const char *area = argc > 4 ? argv[4] : "fit";
    int known = !strcmp(area, "fit") || !strcmp(area, "default") || !strcmp(area, "in_turn");
    if (n >= 2 && (argc == 4 || argc == 5) && known && strcmp(argv[1], "count") == 0)
        scale_run_count(n, live, area);
    else if (n >= 2 && argc == 3 && strcmp(argv[1], "churn") == 0)
        scale_run_churn(n);
    else {
        fprintf(stderr, "usage: %s count N LIVE [fit | default | in_turn] | churn N\n", argv[0]);
        return 2;
    }
    return 0;
}

#ifndef SCALE_OWN_MAIN
int main(int argc, char **argv)
{
    return scale_main(argc, argv);
}
#endif

#endif
