/* Pools of private stacks (include/aco/pool.h): options, reuse, reclaim, guards on every level, fork, threads, and random schedules
 * in which contents must survive. Arguments: seed and steps of these, or "mappings" for more guards than the process may have mappings. */
#define _GNU_SOURCE
#include "aco/pool.h"
#include "aco/generator.h"
#include "aco/scheduler.h"
#include "child.h"
#include "lacking.h"
#include "proc.h"
#include "refuses.h"
#include "sanitizers.h"

#include <sys/utsname.h>

/* A sanitizer's calls want more room than the smallest stacks have. Where pages are larger than 4 KiB, so are these. */
#ifdef __loongarch__
enum { PAGE_LOG = 14 };
#else
enum { PAGE_LOG = 12 };
#endif
enum { SMALLEST_LOG = SANITIZED ? 16 : PAGE_LOG, LARGEST_LOG = 23, SIZES = LARGEST_LOG - SMALLEST_LOG + 1, NEVER = INT32_MAX };
enum { SMALL = 1 << SMALLEST_LOG };
_Static_assert((int)SMALL >= 4096, "the smallest stack");

/* ---- Tools ---- */

static size_t page;

static aco_pool_t *pool_with(unsigned flags, size_t idle_stacks, unsigned idle_ms)
{
    aco_pool_options_t o = {0};
    aco_pool_t *pool;
    o.flags = flags;
    o.idle_stacks = idle_stacks;
    o.idle_ms = idle_ms;
    pool = aco_pool_new(&o);
    CHECK(pool != NULL);
    return pool;
}

static aco_pool_stats_t stats(aco_pool_t *pool)
{
    aco_pool_stats_t s;
    CHECK_EQ(aco_pool_stats(pool, &s), 0);
    CHECK((s.regions == 0) == (s.reserved == 0));
    CHECK(s.in_use + s.idle + s.empty == 0 || s.regions > 0);
    CHECK(s.canaries <= s.in_use + s.idle + s.empty);
    CHECK(s.reserved >= (s.in_use + s.idle + s.empty) * 4096);
    return s;
}

/* In use, idle, empty. */
static void check_counts(int line, aco_pool_t *pool, size_t in_use, size_t idle, size_t empty)
{
    aco_pool_stats_t s = stats(pool);
    if (s.in_use == in_use && s.idle == idle && s.empty == empty)
        return;
    fprintf(stderr, "%s:%d: %zu stacks in use, %zu idle, %zu empty; wanted %zu, %zu, %zu\n", __FILE__, line, s.in_use, s.idle, s.empty, in_use, idle, empty);
    CHECK(!"the counts");
}
#define COUNTS(pool, in_use, idle, empty) check_counts(__LINE__, pool, in_use, idle, empty)

static aco_t *new_in(aco_pool_t *pool, size_t sz, aco_function_t fn, void *arg)
{
    aco_options_t o = {0};
    aco_t *co;
    o.pool = pool;
    o.stack_size = sz;
    co = aco_new(fn, arg, &o);
    if (!co)
        fprintf(stderr, "pool: \"%s\"\n", aco_error_message());
    CHECK(co != NULL);
    return co;
}

static char *low(const aco_t *co)
{
    void *lo = NULL, *hi = NULL;
    CHECK_EQ(aco_stack_bounds(co, &lo, &hi), 0);
    return lo;
}

static char *high(const aco_t *co)
{
    void *lo = NULL, *hi = NULL;
    CHECK_EQ(aco_stack_bounds(co, &lo, &hi), 0);
    return hi;
}

static void *yields(void *arg)
{
    while (aco_yield_value(arg) != ACO_ERROR)
        continue;
    return NULL;
}

static void *yields_once(void *arg)
{
    return aco_yield_value(arg);
}

/* Touches all pages of so many bytes of stack; not on ASan's stacks, which lie elsewhere. */
static __attribute__((noinline)) int descend(const char *end)
{
    volatile char bytes[256];
    int below = 0;
    for (size_t i = 0; i < sizeof bytes; i += 64)
        bytes[i] = 1;
    if ((const char *)__builtin_frame_address(0) > end)
        below = descend(end);
    return below + bytes[0];
}

static void *goes_deep(void *bytes)
{
    descend((const char *)__builtin_frame_address(0) - (size_t)(uintptr_t)bytes);
    aco_yield();
    return bytes;
}

static char *page_down(const void *p)
{
    return (char *)((uintptr_t)p & ~(uintptr_t)(page - 1));
}

/* Pages in memory among those from `lo` up to `hi`; -1 if some are not mapped. */
static long resident(const void *lo, const void *hi)
{
    long count = 0;
    for (char *p = page_down(lo); p < (const char *)hi; p += page) {
        unsigned char in[16] = {0}; /* qemu answers for pages of its machine's size, which may be smaller */
        if (mincore(p, page, (void *)in) != 0)
            return -1;
        count += in[0] & 1;
    }
    return count;
}

/* Whether mincore() tells the truth, and stacks are where coroutines' variables are: not so in some emulators and under tools. */
static int residency_is_known(void)
{
    const char *preload = getenv("LD_PRELOAD");
    char *p = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int known;
    if (p == MAP_FAILED || SANITIZED || (preload && strstr(preload, "vgpreload")))
        return 0;
    madvise(p, 4 * page, MADV_NOHUGEPAGE);
    *(volatile char *)(p + page) = 1;
    known = resident(p, p + 4 * page) == 1;
    munmap(p, 4 * page);
    return known;
}

static size_t mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    size_t n = 0;
    int c;
    if (!file)
        return 0;
    while ((c = getc(file)) != EOF)
        n += c == '\n';
    fclose(file);
    return n;
}

/* An emulator may answer 0 and do nothing: so whether the kernel can write there afterwards. */
static int kernel_guards_in_tables(void)
{
    char *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int can = p != MAP_FAILED && madvise(p, page, 102) == 0 && uname((struct utsname *)p) != 0; /* MADV_GUARD_INSTALL */
    munmap(p, page);
    return can;
}

/* ---- Options and refusals ---- */

static void refuses_options(aco_pool_options_t o, const char *reason)
{
    REFUSES(aco_pool_new(&o), NULL, EINVAL, "aco_pool_new", NULL, reason);
}

/* Promise: options out of bounds are EINVAL; the bounds themselves are good; NULL stands for the defaults. */
static void options(void)
{
    static const aco_pool_options_t good[] = {{.idle_ms = INT32_MAX}, {.region_size = 1}, {.flags = ACO_POOL_MPROTECT | ACO_POOL_MUST_GUARD | ACO_POOL_LAZY},
                                              {.flags = ACO_POOL_CANARIES | ACO_POOL_LAZY}, {.region_size = SIZE_MAX / 4},
                                              {.most_stacks = SIZE_MAX, .idle_stacks = SIZE_MAX}};
    aco_pool_stats_t s;
    for (int i = 0; i < 4; i++) {
        aco_pool_options_t o = {0};
        o.aco__reserved[i] = &o;
        refuses_options(o, "reserved");
    }
    refuses_options((aco_pool_options_t){.flags = 16}, "flags");
    refuses_options((aco_pool_options_t){.flags = 1u << 31}, "flags");
    refuses_options((aco_pool_options_t){.flags = ACO_POOL_CANARIES | ACO_POOL_MUST_GUARD}, "ACO_POOL_CANARIES");
    refuses_options((aco_pool_options_t){.flags = ACO_POOL_CANARIES | ACO_POOL_MPROTECT}, "ACO_POOL_CANARIES");
    refuses_options((aco_pool_options_t){.region_size = SIZE_MAX}, "region_size");
    refuses_options((aco_pool_options_t){.region_size = SIZE_MAX / 4 + 1}, "region_size");
    refuses_options((aco_pool_options_t){.idle_ms = (unsigned)INT32_MAX + 1}, "idle_ms");
    for (size_t i = 0; i <= sizeof good / sizeof *good; i++) {
        aco_pool_t *pool = aco_pool_new(i < sizeof good / sizeof *good ? &good[i] : NULL);
        CHECK(pool != NULL);
        COUNTS(pool, 0, 0, 0);
        CHECK_EQ(stats(pool).reserved, 0);
        CHECK_EQ(aco_pool_trim(pool), 0);
        CHECK_EQ(aco_pool_destroy(pool), 0);
    }
    REFUSES(aco_pool_destroy(NULL), -1, EINVAL, "aco_pool_destroy", NULL, "NULL");
    REFUSES(aco_pool_stats(NULL, NULL), -1, EINVAL, "aco_pool_stats", NULL, "no place");
    CHECK_EQ(aco_pool_stats(NULL, &s), 0);
}

/* Promise: a pool with a stack in use is not destroyed, whatever the coroutine does; one that is only idle is no hindrance. */
static void busy(void)
{
    aco_pool_t *pool = pool_with(0, 0, NEVER);
    aco_t *co = new_in(pool, SMALL, yields_once, pool);
    REFUSES(aco_pool_destroy(pool), -1, EBUSY, "aco_pool_destroy", NULL, "1 of its stacks");
    CHECK(aco_send(co, NULL) == pool);
    REFUSES(aco_pool_destroy(pool), -1, EBUSY, "aco_pool_destroy", NULL, "in use");
    CHECK(aco_send(co, &co) == &co && co->is_end);
    REFUSES(aco_pool_destroy(pool), -1, EBUSY, "aco_pool_destroy", NULL, "in use");
    COUNTS(pool, 1, 0, 0);
    aco_destroy(co);
    COUNTS(pool, 0, 1, 0);
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

/* Promise: more than most_stacks are EAGAIN with a message that says so, until one is given back; others' are not counted. */
static void most_stacks(void)
{
    aco_pool_options_t o = {.most_stacks = 3};
    aco_pool_t *pool = aco_pool_new(&o);
    aco_options_t how = {.pool = pool, .stack_size = SMALL}, beyond = {.pool = pool, .stack_size = 9 << 20};
    aco_t *co[3], *others[2];
    for (int i = 0; i < 3; i++)
        co[i] = new_in(pool, (size_t)SMALL << i, yields, co);
    for (int i = 0; i < 3; i++) {
        REFUSES(aco_new(yields, NULL, &how), NULL, EAGAIN, "aco_new", NULL, "most_stacks");
        COUNTS(pool, 3, 0, 0);
    }
    others[0] = aco_new(yields, NULL, NULL);
    others[1] = aco_new(yields, NULL, &beyond); /* mapped by itself */
    CHECK(others[0] && others[1]);
    COUNTS(pool, 3, 0, 0);
    aco_destroy(co[2]);
    COUNTS(pool, 2, 1, 0);
    co[2] = new_in(pool, SMALL, yields, co);
    COUNTS(pool, 3, 1, 0);
    for (int i = 0; i < 3; i++)
        CHECK(aco_send(co[i], NULL) == co);
    for (int i = 0; i < 3; i++)
        aco_destroy(co[i]);
    aco_destroy(others[0]);
    aco_destroy(others[1]);
    COUNTS(pool, 0, 4, 0);
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

#if SHARE_STACKS
static void not_with_a_share_stack(void)
{
    aco_pool_t *pool = pool_with(0, 0, 0);
    aco_options_t how = {.pool = pool, .stack = aco_share_stack_new(0)};
    REFUSES(aco_new(yields, NULL, &how), NULL, EINVAL, "aco_new", NULL, "pool");
    aco_share_stack_destroy(how.stack);
    CHECK_EQ(aco_pool_destroy(pool), 0);
}
#endif

/* Promise: stacks are as large as was asked for, and powers of two up to 8 MiB; larger ones, and those without a guard, are not the
 * pool's; regions are as large as was asked for, or hold one stack. */
static void sizes(void)
{
    static const size_t asked[] = {1, 4096, 4097, 5000, 8192, 100000, 0, 256 << 10, (256 << 10) + 1, 8 << 20};
    static const size_t given[] = {4096, 4096, 8192, 8192, 8192, 128 << 10, 256 << 10, 256 << 10, 512 << 10, 8 << 20};
    aco_pool_options_t o = {.region_size = 1 << 20};
    aco_pool_t *pool = aco_pool_new(&o), *growing;
    aco_options_t own = {.pool = pool, .stack_size = (8 << 20) + 1}, unguarded = {.pool = pool, .flags = ACO_NO_GUARD};
    aco_t *co[10], *more[300];
    size_t before, kinds = 0, last = 0;
    for (size_t i = 0; i < 10; i++) {
        size_t wanted = given[i] < page ? page : given[i];
        kinds += wanted != last; /* they ascend */
        last = wanted;
        co[i] = new_in(pool, asked[i], yields, NULL);
        CHECK_EQ(co[i]->share_stack->sz, wanted);
        CHECK_EQ(co[i]->share_stack->guard_page_enabled, 1);
        CHECK((size_t)(high(co[i]) - low(co[i])) >= wanted && (size_t)(high(co[i]) - low(co[i])) < wanted + page);
    }
    CHECK_EQ(stats(pool).regions, kinds);
    CHECK(stats(pool).reserved > (size_t)(8 << 20) + (kinds - 1) * (1 << 19) && stats(pool).reserved < (size_t)(8 << 20) + kinds * (1 << 20));
    for (size_t i = 0; i < 10; i++)
        aco_destroy(co[i]);
    COUNTS(pool, 0, 10, 0);
    co[0] = aco_new(yields, co, &own);
    co[1] = aco_new(yields, co, &unguarded);
    CHECK(co[0] && co[1]);
    COUNTS(pool, 0, 10, 0);
    for (int i = 0; i < 2; i++) {
        CHECK(aco_send(co[i], NULL) == co);
        CHECK((size_t)(high(co[i]) - low(co[i])) >= (i ? 256u << 10 : (8u << 20) + 1));
        aco_destroy(co[i]);
    }
    CHECK_EQ(aco_pool_destroy(pool), 0);

    growing = pool_with(0, 0, NEVER); /* 4 MiB first, then 8: 56 stacks of 64 KiB and two pages are 4 MiB */
    co[0] = new_in(growing, 64 << 10, yields, NULL);
    before = stats(growing).reserved;
    CHECK(before > (4 << 20) - (80 << 10) && before < (4 << 20) + (64 << 10));
    for (int i = 0; i < 100; i++)
        more[i] = new_in(growing, 64 << 10, yields, NULL);
    CHECK_EQ(stats(growing).regions, 2);
    CHECK(stats(growing).reserved - before > (8 << 20) - (80 << 10) && stats(growing).reserved - before < (8 << 20) + (64 << 10));
    for (int i = 0; i < 100; i++)
        aco_destroy(more[i]);
    aco_destroy(co[0]);
    CHECK_EQ(aco_pool_destroy(growing), 0);
}

/* ---- Where stacks lie ---- */

static int by_address(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return x < y ? -1 : x > y;
}

/* Promise: the tops of neighbouring stacks fall into different cache sets; a coroutine one call deep takes one page; where the
 * kernel can keep guards in its tables, a region is one mapping, else a guard makes two out of one. */
static void colours(unsigned flags)
{
    enum { MANY = 60 };
    size_t before = mappings(), after;
    aco_pool_t *pool = pool_with(flags, 0, NEVER);
    aco_t *co[MANY];
    char *tops[MANY];
    char seen[64] = {0};
    int different = 0, known = residency_is_known();
    for (int i = 0; i < MANY; i++) {
        co[i] = new_in(pool, SMALL, yields, NULL);
        aco_send(co[i], NULL);
        tops[i] = high(co[i]);
        CHECK_EQ((uintptr_t)tops[i] % 64, 0);
        different += !seen[(uintptr_t)tops[i] % 4096 / 64]++;
        if (known && SMALL_FRAMES)
            CHECK_EQ(resident(low(co[i]), page_down(tops[i]) + page), 1);
    }
    CHECK(different >= 32);
    qsort(tops, MANY, sizeof *tops, by_address);
    for (int i = 1; i < MANY; i++)
        CHECK((uintptr_t)tops[i] % 4096 != (uintptr_t)tops[i - 1] % 4096);
    after = mappings();
    if (before && !SANITIZED && stats(pool).canaries == 0) {
        size_t guards = (flags & ACO_POOL_MPROTECT) || !kernel_guards_in_tables() ? 2 * MANY : 0;
        CHECK(after - before >= guards && after - before <= guards + stats(pool).regions + 2);
    }
    for (int i = 0; i < MANY; i++)
        aco_destroy(co[i]);
    CHECK_EQ(aco_pool_trim(pool), MANY);
    CHECK_EQ(stats(pool).reserved, 0);
    if (before && !SANITIZED)
        CHECK(mappings() <= before + 2);
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

/* ---- Reuse and reclaim ---- */

/* Promise: the stack that became idle last is used first, also across reclaim; also of those that a thread keeps. */
static void lifo(void)
{
    enum { MANY = 9 };
    aco_pool_t *pool = pool_with(0, 4, NEVER);
    aco_t *co[MANY];
    char *lo[MANY];
    for (int kind = 0; kind < 2; kind++) { /* own pool; kept by the thread */
        for (int i = 0; i < MANY; i++) {
            co[i] = kind ? aco_new(yields_once, NULL, NULL) : new_in(pool, SMALL, yields_once, NULL);
            lo[i] = low(co[i]);
            aco_send(co[i], NULL);
            if (i % 2)
                aco_send(co[i], NULL);
        }
        for (int i = 0; i < MANY; i++)
            aco_destroy(co[i]);
        if (!kind)
            COUNTS(pool, 0, 4, MANY - 4);
        for (int i = 0; i < (kind ? MANY : 4); i++) {
            co[i] = kind ? aco_new(yields_once, NULL, NULL) : new_in(pool, SMALL, yields_once, NULL);
            CHECK(low(co[i]) == lo[MANY - 1 - i]);
        }
        for (int i = kind ? MANY : 4; i < MANY; i++) /* without pages: in no order that is promised, but none is new */
            co[i] = new_in(pool, SMALL, yields_once, NULL);
        if (!kind)
            COUNTS(pool, MANY, 0, 0);
        for (int i = 0; i < MANY; i++)
            aco_destroy(co[i]);
    }
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

typedef struct used {
    aco_t *co;
    char *lo, *hi;
} used_t;

enum { USED = 12, USED_SIZE = 64 << 10 };

static void use_many(aco_pool_t *pool, used_t used[USED])
{
    for (int i = 0; i < USED; i++) {
        used[i].co = new_in(pool, USED_SIZE, goes_deep, (void *)(uintptr_t)(USED_SIZE / 2));
        aco_send(used[i].co, NULL);
        used[i].lo = low(used[i].co);
        used[i].hi = page_down(high(used[i].co)) + page;
    }
}

static void check_pages(int line, int known, const used_t *used, int from, int to, int there)
{
    for (int i = from; known && i < to; i++) {
        long pages = resident(used[i].lo, used[i].hi);
        if (there ? pages * (long)page < USED_SIZE / 2 : pages != 0) {
            fprintf(stderr, "%s:%d: stack %d has %ld pages\n", __FILE__, line, i, pages);
            CHECK(!"the pages");
        }
    }
}
#define PAGES(from, to, there) check_pages(__LINE__, known, used, from, to, there)

/* Promise: by pressure: more than idle_stacks of a size lose their pages, at once and coldest first, other sizes do not count; by request:
 * all of them do, and regions without a stack in use are given up. */
static void pressure_and_request(void)
{
    aco_pool_t *pool = pool_with(0, 3, NEVER);
    aco_t *other[3];
    used_t used[USED];
    int known = residency_is_known();
    size_t reserved, regions;
    for (int i = 0; i < 3; i++)
        other[i] = new_in(pool, SMALL * 2, yields, NULL);
    use_many(pool, used);
    for (int i = 0; i < 3; i++)
        aco_destroy(other[i]);
    PAGES(0, USED, 1);
    for (int i = 0; i < USED - 1; i++) {
        int idle = i < 3 ? i + 1 : 3;
        aco_destroy(used[i].co);
        COUNTS(pool, (size_t)(USED - 1 - i), (size_t)(3 + idle), (size_t)(i + 1 - idle));
        CHECK_EQ(stats(pool).reclaimed, i + 1 - idle);
        PAGES(0, i + 1 - idle, 0);
        PAGES(i + 1 - idle, USED, 1);
    }
    reserved = stats(pool).reserved;
    regions = stats(pool).regions;
    CHECK_EQ(aco_pool_trim(pool), 6);
    PAGES(USED - 1, USED, 1);
    CHECK_EQ(stats(pool).reclaimed, USED - 1 - 3 + 6);
    CHECK_EQ(stats(pool).in_use, 1);
    CHECK_EQ(stats(pool).idle, 0);
    CHECK_EQ(stats(pool).regions, regions - 1); /* that of the other size */
    CHECK(stats(pool).reserved < reserved);
    PAGES(0, USED - 1, 0);
    CHECK_EQ(aco_pool_trim(pool), 0);
    aco_send(used[USED - 1].co, NULL);
    CHECK(used[USED - 1].co->is_end);
    aco_destroy(used[USED - 1].co);
    CHECK_EQ(aco_pool_trim(pool), 1);
    COUNTS(pool, 0, 0, 0);
    CHECK_EQ(stats(pool).reserved, 0);
    if (known)
        CHECK_EQ(resident(used[0].lo, used[0].hi), -1); /* unmapped */
    used[0].co = new_in(pool, SMALL, yields, pool); /* and it goes on */
    CHECK(aco_send(used[0].co, NULL) == pool);
    aco_destroy(used[0].co);
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

/* Promise: by time: a stack idle for idle_ms loses its pages when one of its size is next given back, at most eight at a time; not
 * before that, and not by another size's. */
static void by_time(void)
{
    aco_pool_t *pool = pool_with(0, 0, 20);
    aco_t *other = new_in(pool, SMALL * 2, yields, NULL);
    used_t used[USED];
    int known = residency_is_known();
    size_t before, reclaimed;
    use_many(pool, used);
    for (int i = 0; i < USED - 2; i++)
        aco_destroy(used[i].co);
    before = stats(pool).reclaimed; /* 0, unless this took so long */
    usleep(60000);
    aco_destroy(other);
    CHECK_EQ(stats(pool).reclaimed, before);
    COUNTS(pool, 2, USED - 2 - before + 1, before);
    PAGES((int)before, USED, 1);
    aco_destroy(used[USED - 2].co);
    reclaimed = stats(pool).reclaimed - before;
    CHECK_EQ(reclaimed, USED - 2 - before < 8 ? USED - 2 - before : 8);
    PAGES(0, (int)(before + reclaimed), 0);
    usleep(60000);
    aco_destroy(used[USED - 1].co);
    CHECK_EQ(stats(pool).reclaimed, USED - 1);
    COUNTS(pool, 0, 1 + 1, USED - 1);
    PAGES(0, USED - 1, 0);
    PAGES(USED - 1, USED, 1);
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

static void *fills_its_stack(void *unused)
{
    char *to = page_down((char *)__builtin_frame_address(0)) - 2 * page, *from = low(aco_co());
    if (to > from)
        memset(from, 0xff, (size_t)(to - from));
    CHECK_EQ(aco_set_slot(NULL, from), 0);
    CHECK_EQ(aco_set_name(aco_co(), "the one before"), 0);
    return unused;
}

static void *has_nothing_yet(void *arg)
{
    volatile int *wrong = arg;
    *wrong += *aco_name(aco_co()) != 0 || aco_slot(NULL) != NULL;
    CHECK_EQ(aco_set_slot(NULL, arg), 0); /* makes the record that the name is in */
    *wrong += *aco_name(aco_co()) != 0;
    return aco_yield_value(arg);
}

/* Promise: what a reclaimed stack holds when it is used again is of no account, lazily or not; the records are right. */
static void reused(unsigned flags)
{
    enum { MANY = 20, SIZE = 256 << 10 };
    aco_pool_t *pool = pool_with(flags, 2, NEVER);
    aco_t *co[MANY];
    int wrong = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            co[i] = new_in(pool, SIZE, round % 2 ? has_nothing_yet : fills_its_stack, &wrong);
            CHECK_EQ(co[i]->share_stack->sz, SIZE);
            CHECK(co[i]->share_stack->owner == co[i]);
            CHECK_EQ(co[i]->share_stack->guard_page_enabled, !(flags & ACO_POOL_CANARIES));
            aco_send(co[i], NULL);
        }
        COUNTS(pool, MANY, 0, 0);
        CHECK_EQ(stats(pool).canaries, flags & ACO_POOL_CANARIES ? MANY : 0);
        for (int i = 0; i < MANY; i++)
            aco_destroy(co[i]);
        COUNTS(pool, 0, 2, MANY - 2);
        CHECK_EQ(stats(pool).reclaimed, (round + 1) * (MANY - 2));
    }
    CHECK_EQ(wrong, 0);
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

/* ---- Guards ---- */

static unsigned guard_flags;
static int guard_reuses;
static aco_t *victim, *bystander;
static aco_pool_t *guard_pool;

static __attribute__((noinline)) int recurse(volatile int *depth)
{
    volatile char bytes[100];
    int below = 0;
    bytes[0] = 1;
    if (++*depth < 100000000)
        below = recurse(depth);
    return below + bytes[0];
}

static void *overflows(void *unused)
{
    volatile int depth = 0;
    (void)unused;
    return (void *)(intptr_t)recurse(&depth);
}

/* Runs in a child. */
static void overflow_guarded(void)
{
    aco_pool_t *pool = pool_with(guard_flags, 0, NEVER);
    aco_t *stays = new_in(pool, USED_SIZE, yields, NULL), *co = new_in(pool, USED_SIZE, goes_deep, (void *)(uintptr_t)(USED_SIZE / 2));
    char *lo = low(co);
    aco_send(stays, NULL);
    if (guard_reuses) {
        aco_send(co, NULL);
        aco_destroy(co);
        CHECK_EQ(aco_pool_trim(pool), 1);
        co = new_in(pool, USED_SIZE, overflows, NULL);
        CHECK(low(co) == lo);
    } else {
        aco_destroy(co);
        co = new_in(pool, USED_SIZE, overflows, NULL);
    }
    CHECK_EQ(aco_explain_overflow(), 0);
    if (check_failures == 0)
        aco_send(co, NULL);
}

static void dies_explained(int line, void (*act)(void))
{
    static const char more[] = " has overflowed: increase stack_size in aco_options_t\n";
    child_end_t end = child_run(act);
    size_t length = strlen(end.text);
    if (!WIFSIGNALED(end.status) || WTERMSIG(end.status) != SIGSEGV || strncmp(end.text, "acorn: overflow: coroutine 0x", 29) != 0 ||
        length < sizeof more || strcmp(end.text + length - sizeof more + 1, more) != 0 || !is_one_line(end.text))
        child_complain(__FILE__, line, "overflow", "SIGSEGV, explained", &end);
}

static void write_below(void)
{
    ((volatile char *)low(victim))[-1] = 1;
}

static void write_guards_end(void)
{
    ((volatile char *)low(victim))[-(long)page] = 1;
}

/* Promise: with guards of either kind an overflow is a SIGSEGV with a name, on a new stack as on one that was used, reclaimed and
 * used again; also in a child process of the one that made the stack. */
static void guards(void)
{
    static const unsigned flags[] = {0, ACO_POOL_MPROTECT, ACO_POOL_LAZY, ACO_POOL_MPROTECT | ACO_POOL_LAZY, ACO_POOL_MUST_GUARD};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        guard_flags = flags[i];
        for (guard_reuses = 0; guard_reuses < 2; guard_reuses++)
            dies_explained(__LINE__, overflow_guarded);
        guard_pool = pool_with(flags[i], 0, 0);
        victim = new_in(guard_pool, SMALL, yields, NULL);
        DIES_OF(write_below, SIGSEGV);
        DIES_OF(write_guards_end, SIGSEGV);
        aco_destroy(victim);
        CHECK_EQ(aco_pool_destroy(guard_pool), 0);
    }
}

static void end_victim(void)
{
    write_below();
    aco_send(victim, NULL);
}

static void destroy_victim(void)
{
    ((volatile char *)low(victim))[-64] = 1; /* the lowest one that is compared */
    aco_destroy(victim);
}

static void destroy_bystander(void)
{
    write_below();
    aco_send(bystander, NULL);
    aco_destroy(bystander);
    _exit(check_failures != 0);
}

/* Overflows by frames, into the canary and a little further. */
static __attribute__((noinline)) int sink(const char *end)
{
    volatile char bytes[512];
    int below = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 1;
    if ((const char *)__builtin_frame_address(0) > end)
        below = sink(end);
    return below + bytes[0];
}

static void *sinks(void *unused)
{
    sink(low(aco_co()) - 200);
#if ACO_DEBUG
    aco_yield();
    _exit(0); /* the yield should have seen it */
#endif
    return unused;
}

static void sink_victim(void)
{
    CHECK_EQ(aco_restart(victim, sinks, NULL), 0);
    aco_send(victim, NULL);
}

/* Promise: with canaries an overflow aborts when the coroutine ends, when it is destroyed and, in a debug build, at the next yield; others
 * notice nothing. */
static void canaries(void)
{
    guard_pool = pool_with(ACO_POOL_CANARIES, 0, NEVER);
    bystander = new_in(guard_pool, SMALL * 4, yields_once, NULL);
    for (int is_reused = 0; is_reused < 2; is_reused++) {
        victim = new_in(guard_pool, SMALL * 4, yields_once, NULL);
        CHECK_EQ(stats(guard_pool).canaries, 2);
        ABORTS(destroy_victim, "aco_destroy", victim, "has overflowed"); /* new: no warning that it is suspended */
        if (!SANITIZED)
            ABORTS(sink_victim, ACO_DEBUG ? "aco_yield" : "aco_exit", victim, "no guard page");
        aco_send(victim, NULL);
        ABORTS(end_victim, "aco_exit", victim, "has overflowed");
        PASSES(destroy_bystander);
        aco_send(victim, NULL);
        CHECK(victim->is_end);
        ABORTS(destroy_victim, "aco_destroy", victim, "has overflowed");
        aco_destroy(victim);
        CHECK_EQ(aco_pool_trim(guard_pool), 1);
    }
    aco_destroy(bystander);
    CHECK_EQ(aco_pool_destroy(guard_pool), 0);
}

/* In a child: more stacks with guards that are mappings than the process can have mappings for. */
enum { RELEASE64 = !ACO_DEBUG && sizeof(void *) > 4 && !SANITIZED };
static size_t guards_wanted;

static void beyond_the_budget(void)
{
    aco_pool_t *pool = pool_with(ACO_POOL_MPROTECT, SIZE_MAX, NEVER), *other;
    aco_t **co = malloc(guards_wanted * sizeof *co);
    for (size_t i = 0; i < guards_wanted; i++)
        co[i] = new_in(pool, SMALL, yields, &co[i]);
    COUNTS(pool, guards_wanted, 0, 0);
    CHECK(stats(pool).canaries > 0 && stats(pool).canaries < guards_wanted);
    CHECK_EQ(co[0]->share_stack->guard_page_enabled, 1);
    CHECK_EQ(co[guards_wanted - 1]->share_stack->guard_page_enabled, 0);
    CHECK(mappings() < mapping_limit());
    other = pool_with(0, 0, 0); /* the kernel's tables have room, where they have any */
    victim = new_in(other, SMALL, yields, other);
    CHECK(aco_send(victim, NULL) == other);
    CHECK_EQ(victim->share_stack->guard_page_enabled, kernel_guards_in_tables());
    aco_destroy(victim);
    for (size_t i = 0; i < guards_wanted; i += i < guards_wanted - 100 ? 37 : 1)
        CHECK(aco_send(co[i], NULL) == &co[i]);
    for (size_t i = 0; i < guards_wanted; i++)
        aco_destroy(co[i]);
    CHECK_EQ(aco_pool_trim(pool), guards_wanted);
    COUNTS(pool, 0, 0, 0);
    CHECK_EQ(stats(pool).canaries, 0);
    victim = new_in(pool, SMALL, yields, other); /* the budget is there again */
    CHECK_EQ(victim->share_stack->guard_page_enabled, 1);
    aco_destroy(victim);
    CHECK_EQ(aco_pool_destroy(pool), 0);
    CHECK_EQ(aco_pool_destroy(other), 0);
    free(co);
}

static void beyond_the_limit(void)
{
    aco_pool_t *pool = pool_with(ACO_POOL_MPROTECT | ACO_POOL_MUST_GUARD, SIZE_MAX, NEVER);
    aco_options_t how = {.pool = pool, .stack_size = SMALL};
    aco_t **co = malloc(guards_wanted * sizeof *co), *plain = aco_new(yields, co, NULL);
    size_t made;
    for (made = 0; made < guards_wanted && (co[made] = aco_new(yields, &co[made], &how)) != NULL; made++)
        ;
    CHECK(made > guards_wanted / 2 && made < guards_wanted);
    for (int i = 0; i < 3; i++) {
        REFUSES(aco_new(yields, NULL, &how), NULL, EAGAIN, "aco_new", NULL, "vm.max_map_count");
        CHECK_EQ(stats(pool).in_use, made);
    }
    for (size_t i = 0; i < made; i += i < made - 100 ? 37 : 1) {
        CHECK_EQ(co[i]->share_stack->guard_page_enabled, 1);
        CHECK(aco_send(co[i], NULL) == &co[i]);
    }
    CHECK(aco_send(plain, NULL) == co);
    aco_destroy(co[made - 1]);
    co[made - 1] = new_in(pool, SMALL, yields, &co[made - 1]);
    CHECK_EQ(co[made - 1]->share_stack->guard_page_enabled, 1);
    for (size_t i = 0; i < made; i++)
        aco_destroy(co[i]);
    CHECK_EQ(aco_pool_trim(pool), made);
    COUNTS(pool, 0, 0, 0);
    co[0] = new_in(pool, SMALL, yields, co);
    CHECK(aco_send(co[0], NULL) == co);
    aco_destroy(co[0]);
    aco_destroy(plain);
    CHECK_EQ(aco_pool_destroy(pool), 0);
    free(co);
}

/* Promise: beyond what vm.max_map_count allows, a pool goes on with canaries; with ACO_POOL_MUST_GUARD it refuses, naming the setting,
 * and nothing is lost. */
static int many_guards(void)
{
    size_t limit = mapping_limit();
    if (!limit || limit > 120000 || UNDER_TSAN) {
        printf("skipped: the limit on mappings is too high to be reached here, or ThreadSanitizer needs many itself\n");
        return 77;
    }
    guards_wanted = RELEASE64 && limit < 100000 ? 100000 : limit / 2;
    PASSES(beyond_the_budget);
    guards_wanted = limit / 2 + 100;
    PASSES(beyond_the_limit);
    return check_result("pool mappings");
}

/* ---- Random schedules ---- */

enum { ACTORS = UNDER_TSAN ? 60 : 200, POOLS = 6, WORDS = 64 };

typedef struct ledger {
    aco_pool_t *pool;
    size_t keep;      /* its idle_stacks */
    int exact;        /* nothing goes by time, nor is kept by the thread */
    size_t in_use, idle[SIZES], reclaimed, all;
} ledger_t;

typedef struct actor {
    aco_t *co;
    char *lo, *hi;
    ledger_t *from;
    int class;        /* -1: mapped by itself */
    uint32_t random, levels, turns;
    unsigned broken;  /* checks inside would print on a small stack */
} actor_t;

static ledger_t ledgers[POOLS];
static actor_t actors[ACTORS];
static uint32_t random_state;

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static uint32_t below(uint32_t n)
{
    return next_random(&random_state) % n;
}

/* A frame whose contents must be the same after all that happens while it is suspended. No libc here: its lazy binding alone
 * needs more than half a small stack. */
static __attribute__((noinline)) void dive(actor_t *a, uint32_t seed, uint32_t levels)
{
    volatile uint32_t words[WORDS];
    uint32_t state = seed | 1;
    for (int i = 0; i < WORDS; i++)
        words[i] = next_random(&state);
    if (levels)
        dive(a, state, levels - 1);
    if (levels % 8 == 0 || next_random(&a->random) % 8 == 0)
        aco_yield();
    state = seed | 1;
    for (int i = 0; i < WORDS; i++)
        a->broken += words[i] != next_random(&state);
}

static void *acts(void *arg)
{
    actor_t *a = arg;
    for (uint32_t i = 0; i < a->turns; i++)
        dive(a, next_random(&a->random), next_random(&a->random) % a->levels);
    return a;
}

static void prepare(actor_t *a, size_t sz)
{
    uint32_t most = (uint32_t)(sz / 1024) - 1, common = most < 40 ? most : 40;
    a->random = next_random(&random_state) | 1;
    a->levels = below(40) ? common : most < 1000 ? most : 1000;
    a->turns = 1 + below(5);
}

static void check_apart(const actor_t *a)
{
    for (const actor_t *b = actors; b < actors + ACTORS; b++)
        CHECK(b == a || !b->co || a->hi <= b->lo || a->lo >= b->hi);
}

static void check_ledger(const ledger_t *l, size_t all_before, int may_grow)
{
    aco_pool_stats_t s = stats(l->pool);
    size_t idle = 0;
    for (int i = 0; i < SIZES; i++)
        idle += l->idle[i];
    if (!l->exact) {
        CHECK(s.in_use >= l->in_use);
        return;
    }
    CHECK_EQ(s.in_use, l->in_use);
    CHECK_EQ(s.idle, idle);
    CHECK_EQ(s.reclaimed, l->reclaimed);
    CHECK(s.in_use + s.idle + s.empty - all_before <= (size_t)may_grow);
}

static void make_actor(actor_t *a)
{
    int log = SMALLEST_LOG + (int)below(below(8) ? 8 : SIZES + 1);
    ledger_t *l = &ledgers[below(POOLS)];
    size_t sz = log > LARGEST_LOG ? (9 << 20) + below(1 << 20) : ((size_t)1 << log) - below(1 << (log - 2));
    aco_options_t how = {0};
    how.pool = l->pool;
    how.stack_size = !l->pool && below(2) ? 256 << 10 : sz;
    a->class = log > LARGEST_LOG ? -1 : log - SMALLEST_LOG;
    if (how.stack_size == 256 << 10)
        a->class = 18 - SMALLEST_LOG;
    prepare(a, how.stack_size);
    a->from = l;
    a->co = aco_new(acts, a, how.stack_size == 256 << 10 && !l->pool ? NULL : &how);
    CHECK(a->co != NULL);
    if (!a->co)
        exit(1);
    a->lo = low(a->co);
    a->hi = high(a->co);
    CHECK((size_t)(a->hi - a->lo) >= how.stack_size);
    check_apart(a);
    if (a->class < 0)
        return;
    l->in_use++;
    if (l->idle[a->class])
        l->idle[a->class]--;
    check_ledger(l, l->all, 1);
    l->all = stats(l->pool).in_use + stats(l->pool).idle + stats(l->pool).empty;
}

static void destroy_actor(actor_t *a)
{
    ledger_t *l = a->from;
    aco_destroy(a->co);
    a->co = NULL;
    if (a->class < 0)
        return;
    l->in_use--;
    if (++l->idle[a->class] > l->keep) {
        l->idle[a->class]--;
        l->reclaimed++;
    }
    check_ledger(l, l->all, 0);
}

static void resume_actor(actor_t *a)
{
    if (a->co->is_end) {
        CHECK(aco_result(a->co) == a);
        if (below(2)) {
            destroy_actor(a);
            return;
        }
        prepare(a, (size_t)(a->hi - a->lo) & ~(size_t)4095);
        CHECK_EQ(aco_restart(a->co, acts, a), 0);
    }
    CHECK(aco_send(a->co, NULL) == (a->co->is_end ? (void *)a : NULL));
    CHECK_EQ(a->broken, 0);
}

static void trim_pool(ledger_t *l)
{
    size_t idle = 0, trimmed = aco_pool_trim(l->pool);
    for (int i = 0; i < SIZES; i++) {
        idle += l->idle[i];
        l->idle[i] = 0;
    }
    l->reclaimed += idle;
    CHECK_EQ(stats(l->pool).idle, 0);
    if (l->exact)
        CHECK_EQ(trimmed, idle);
    CHECK(!l->exact || stats(l->pool).in_use + stats(l->pool).empty <= l->all);
    l->all = stats(l->pool).in_use + stats(l->pool).empty;
}

static void make_ledgers(void)
{
    static const aco_pool_options_t o[POOLS] = {{0},
                                                {.idle_stacks = 4, .idle_ms = NEVER, .region_size = 1 << 20},
                                                {.idle_stacks = 1, .idle_ms = NEVER, .flags = ACO_POOL_MPROTECT},
                                                {.idle_stacks = 2, .idle_ms = NEVER, .flags = ACO_POOL_CANARIES | ACO_POOL_LAZY},
                                                {.idle_stacks = 3, .idle_ms = NEVER, .flags = ACO_POOL_LAZY | ACO_POOL_MUST_GUARD, .region_size = 1},
                                                {.idle_ms = 1}};
    memset(ledgers, 0, sizeof ledgers);
    for (int i = 0; i < POOLS; i++) {
        ledgers[i].pool = i ? aco_pool_new(&o[i]) : NULL;
        ledgers[i].exact = i != 0 && i != POOLS - 1;
        ledgers[i].keep = o[i].idle_stacks ? o[i].idle_stacks : SIZE_MAX;
    }
}

/* Promise: whatever happens to other stacks, and to the unused pages of its own, a stack keeps its contents; two never overlap; the
 * numbers of aco_pool_stats() are those of a model. */
static void random_schedule(uint32_t seed, unsigned long steps)
{
    random_state = seed * 2654435761u | 1;
    make_ledgers();
    for (unsigned long i = 0; i < steps; i++) {
        actor_t *a = &actors[below(ACTORS)];
        uint32_t what = below(16);
        if (!a->co)
            make_actor(a);
        else if (what < 11)
            resume_actor(a);
        else if (what < 13)
            CHECK_EQ(aco_stack_trim(a->co), 0);
        else if (what < 15 || below(8))
            destroy_actor(a);
        else
            trim_pool(&ledgers[below(POOLS)]);
    }
    for (actor_t *a = actors; a < actors + ACTORS; a++) /* once more, then gone */
        if (a->co) {
            resume_actor(a);
            if (a->co)
                destroy_actor(a);
        }
    for (int i = 1; i < POOLS; i++) {
        CHECK_EQ(ledgers[i].in_use, 0);
        CHECK_EQ(stats(ledgers[i].pool).in_use, 0);
        CHECK_EQ(aco_pool_destroy(ledgers[i].pool), 0);
    }
}

/* ---- Processes and threads ---- */

static void go_on(void)
{
    for (int i = 0; i < ACTORS; i++) {
        actor_t *a = &actors[i];
        if (i % 3 == 0)
            resume_actor(a);
        if (a->co && i % 3 != 1)
            destroy_actor(a);
        if (!a->co && i % 2)
            make_actor(a);
        if (i % 50 == 0)
            trim_pool(&ledgers[i / 50 % POOLS]);
    }
    for (actor_t *a = actors; a < actors + ACTORS; a++)
        if (a->co) {
            resume_actor(a);
            if (a->co)
                destroy_actor(a);
        }
    for (int i = 1; i < POOLS; i++)
        CHECK_EQ(aco_pool_destroy(ledgers[i].pool), 0);
    CHECK(aco_pool_trim(NULL) > 0);
}

/* Promise: after fork() both processes go on with the coroutines and pools there are, apart from each other. */
static void forked(void)
{
    random_state = 77;
    make_ledgers();
    for (int i = 0; i < ACTORS; i++) {
        make_actor(&actors[i]);
        aco_send(actors[i].co, NULL);
    }
    PASSES(go_on);
    PASSES(go_on); /* which did nothing to these */
    go_on();
}

enum { THREADS = 4, PLACES = 16, ROUNDS = SANITIZED ? 300 : 5000 };
static aco_t *places[PLACES]; /* atomic */
static aco_pool_t *thread_pools[3];

static void *exchanges(void *arg)
{
    uint32_t random = (uint32_t)(uintptr_t)arg | 1;
    for (int i = 0; i < ROUNDS; i++) {
        aco_options_t how = {0};
        aco_t *co;
        how.pool = thread_pools[next_random(&random) % 3];
        how.stack_size = (size_t)(SANITIZED ? 64 << 10 : 16 << 10) << next_random(&random) % 3;
        co = aco_new(yields_once, &places, &how);
        CHECK(co != NULL);
        if (!co)
            break;
        if (next_random(&random) % 8)
            CHECK(aco_send(co, NULL) == &places);
        co = __atomic_exchange_n(&places[next_random(&random) % PLACES], co, __ATOMIC_ACQ_REL);
        if (co && next_random(&random) % 2)
            aco_send(co, NULL);
        if (co)
            aco_destroy(co);
        if (i % 64 == 0)
            aco_pool_trim(thread_pools[next_random(&random) % 3]);
        if (i % 16 == 0)
            CHECK(stats(thread_pools[next_random(&random) % 2]).in_use <= THREADS + PLACES);
    }
    return NULL;
}

/* Promise: any thread may make and destroy, also what others made, and ask and trim meanwhile. */
static void many_threads(void)
{
    pthread_t threads[THREADS];
    thread_pools[0] = pool_with(0, 2, 1);
    thread_pools[1] = pool_with(ACO_POOL_MPROTECT | ACO_POOL_LAZY, 1, NEVER);
    thread_pools[2] = NULL;
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, exchanges, (void *)(i * 2222 + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < PLACES; i++)
        if (places[i])
            aco_destroy(places[i]);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(stats(thread_pools[i]).in_use, 0);
        CHECK_EQ(aco_pool_destroy(thread_pools[i]), 0);
    }
}

static void *keeps_some(void *unused)
{
    aco_t *co[20];
    size_t before = stats(NULL).in_use;
    for (int i = 0; i < 20; i++) {
        co[i] = aco_new(yields_once, NULL, NULL);
        aco_send(co[i], NULL);
    }
    CHECK_EQ(stats(NULL).in_use, before + 20);
    for (int i = 0; i < 20; i++)
        aco_destroy(co[i]);
    if (!SANITIZED) /* which nobody keeps there */
        CHECK_EQ(stats(NULL).in_use, before + 20);
    return unused;
}

/* Promise: what a thread keeps is in use, until it ends or trims the default pool. */
static void threads_end(void)
{
    pthread_t thread;
    size_t before;
    aco_pool_trim(NULL);
    before = stats(NULL).in_use;
    CHECK_EQ(pthread_create(&thread, NULL, keeps_some, NULL), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(stats(NULL).in_use, before);
    CHECK_EQ(stats(NULL).idle, 20);
    CHECK_EQ(aco_pool_trim(NULL), 20);
    keeps_some(NULL);
    CHECK_EQ(aco_pool_trim(NULL), 20);
    CHECK_EQ(stats(NULL).in_use, before);
}

/* ---- Tasks and generators ---- */

static void *task(void *arg)
{
    aco_task_yield();
    return arg;
}

static void tasks(void)
{
    aco_pool_options_t o = {.most_stacks = 5};
    aco_pool_t *pool = aco_pool_new(&o);
    aco_options_t how = {.pool = pool, .stack_size = 64 << 10, .flags = ACO_DETACHED};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5; i++)
            CHECK(aco_spawn(task, NULL, &how) != NULL);
        CHECK_EQ(stats(pool).in_use, 5);
        REFUSES(aco_spawn(task, NULL, &how), NULL, EAGAIN, "aco_spawn", NULL, "most_stacks");
        REFUSES(aco_pool_destroy(pool), -1, EBUSY, "aco_pool_destroy", NULL, "in use");
        CHECK_EQ(aco_run(), 0);
        CHECK_EQ(stats(pool).in_use, 0);
        CHECK_EQ(stats(pool).idle + stats(pool).empty, 5);
    }
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

#ifndef ACO_CONFIG_NO_INLINE
ACO_GENERATOR(counts, y, arg)
{
    for (intptr_t i = 0; i < 3; i++)
        aco_generate(y, (char *)arg + i);
}

static void generators(void)
{
    static const unsigned flags[] = {0, ACO_POOL_CANARIES};
    for (int i = 0; i < 2; i++) {
        aco_pool_t *pool = pool_with(flags[i], 0, NEVER);
        aco_options_t how = {.pool = pool, .stack_size = 64 << 10};
        aco_generator_t g, h;
        intptr_t sum = 0;
        CHECK_EQ(aco_generator_open(&g, counts, &sum, &how), 0);
        CHECK_EQ(aco_generator_open(&h, counts, &sum, &how), 0);
        COUNTS(pool, 2, 0, 0);
        while (aco_generator_next(&g))
            sum += (char *)g.value - (char *)&sum;
        CHECK_EQ(sum, 3);
        COUNTS(pool, 1, 1, 0);
        CHECK_EQ(aco_generator_next(&h), 1);
        REFUSES(aco_pool_destroy(pool), -1, EBUSY, "aco_pool_destroy", NULL, "in use");
        aco_generator_close(&h);
        aco_generator_close(&g);
        COUNTS(pool, 0, 2, 0);
        CHECK_EQ(aco_pool_destroy(pool), 0);
    }
}
#endif

int main(int argc, char **argv)
{
    uint32_t seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    unsigned long steps = argc > 2 ? strtoul(argv[2], NULL, 10) : SANITIZED ? 6000 : 60000;
    page = (size_t)sysconf(_SC_PAGESIZE);
    if (argc > 1 && strcmp(argv[1], "mappings") == 0)
        return many_guards();
    if (argc <= 1) {
        threads_end(); /* first: nobody else has used the default pool */
        options();
        busy();
        most_stacks();
#if SHARE_STACKS
        not_with_a_share_stack();
#endif
        if (!SANITIZED)
            sizes();
        colours(0);
        colours(ACO_POOL_MPROTECT);
        lifo();
        pressure_and_request();
        by_time();
        reused(0);
        reused(ACO_POOL_LAZY);
        reused(ACO_POOL_CANARIES | ACO_POOL_LAZY);
        guards();
        canaries();
        forked();
        many_threads();
        tasks();
#ifndef ACO_CONFIG_NO_INLINE
        generators();
#endif
    }
    random_schedule(seed, steps);
    return check_result("pool");
}
