/* Promises of pools of private stacks (include/aco/pool.h), one function each: options, sizes, reuse, reclaim, threads,
 * tasks and generators. Guards are in pool_guards.c, random schedules in pool_model.c. */
#define _GNU_SOURCE
#include "system/system.h"
#include "pools.h"
#include "aco/generator.h"
#include "aco/scheduler.h"

/* ---- Tools ---- */

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

/* Whether mincore() tells the truth, and stacks are where coroutines' variables are: not so in some emulators and under
 * tools. */
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

/* ---- Options and failures ---- */

static void refuses_options(aco_pool_options_t o, const char *reason)
{
    FAILS(aco_pool_new(&o), NULL, EINVAL, "aco_pool_new", NULL, reason);
}

/* Promise: options out of bounds are EINVAL; the bounds themselves are good; NULL stands for the defaults. */
static void options(void)
{
    static const aco_pool_options_t good[] = {{.idle_ms = INT32_MAX},
                                              {.region_size = 1},
                                              {.flags = ACO_POOL_MPROTECT | ACO_POOL_MUST_GUARD | ACO_POOL_LAZY},
                                              {.flags = ACO_POOL_CANARIES | ACO_POOL_LAZY},
                                              {.region_size = SIZE_MAX / 4},
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
    FAILS(aco_pool_destroy(NULL), -1, EINVAL, "aco_pool_destroy", NULL, "NULL");
    FAILS(aco_pool_stats(NULL, NULL), -1, EINVAL, "aco_pool_stats", NULL, "result pointer is NULL");
    CHECK_EQ(aco_pool_stats(NULL, &s), 0);
}

/* Promise: a pool with a stack in use is not destroyed, whatever the coroutine does; idle stacks do not matter, and
 * their memory goes back to the system with the pool. */
static void busy(void)
{
    aco_pool_t *pool = pool_with(0, 0, NEVER);
    aco_t *co = new_in(pool, SMALL, yields_once, pool);
    const char *stack = co->share_stack->ptr;
    FAILS(aco_pool_destroy(pool), -1, EBUSY, "aco_pool_destroy", NULL, "1 of its stacks");
    CHECK(aco_send(co, NULL) == pool);
    FAILS(aco_pool_destroy(pool), -1, EBUSY, "aco_pool_destroy", NULL, "in use");
    CHECK(aco_send(co, &co) == &co && co->is_end);
    FAILS(aco_pool_destroy(pool), -1, EBUSY, "aco_pool_destroy", NULL, "in use");
    COUNTS(pool, 1, 0, 0);
    aco_destroy(co);
    COUNTS(pool, 0, 1, 0);
    CHECK(!residency_is_known() || resident(stack, stack + 1) >= 0);
    CHECK_EQ(aco_pool_destroy(pool), 0);
    CHECK(!residency_is_known() || resident(stack, stack + 1) == -1);
}

/* Promise: more than most_stacks are EAGAIN with a message that says so, until one is given back; others' are not
 * counted. */
static void most_stacks(void)
{
    aco_pool_options_t o = {.most_stacks = 3};
    aco_pool_t *pool = aco_pool_new(&o);
    aco_options_t how = {.pool = pool, .stack_size = SMALL}, beyond = {.pool = pool, .stack_size = 9 << 20};
    aco_t *co[3], *others[2];
    for (int i = 0; i < 3; i++)
        co[i] = new_in(pool, (size_t)SMALL << i, yields, co);
    for (int i = 0; i < 3; i++) {
        FAILS(aco_new(yields, NULL, &how), NULL, EAGAIN, "aco_new", NULL, "most_stacks");
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
    FAILS(aco_new(yields, NULL, &how), NULL, EINVAL, "aco_new", NULL, "pool");
    aco_share_stack_destroy(how.stack);
    CHECK_EQ(aco_pool_destroy(pool), 0);
}
#endif

/* Promise: stacks are as large as was asked for, and powers of two up to 8 MiB; larger ones, and those without a guard,
 * are not the pool's; regions are as large as was asked for, or hold one stack. */
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
        CHECK_EQ(co[i]->share_stack->sz - co[i]->share_stack->aco__colour, wanted);
        CHECK_EQ(co[i]->share_stack->guard_page_enabled, 1);
        CHECK((size_t)(high(co[i]) - low(co[i])) >= wanted && (size_t)(high(co[i]) - low(co[i])) < wanted + page);
    }
    CHECK_EQ(stats(pool).regions, kinds);
    CHECK(stats(pool).reserved > (size_t)(8 << 20) + (kinds - 1) * (1 << 19) &&
          stats(pool).reserved < (size_t)(8 << 20) + kinds * (1 << 20));
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
    CHECK(stats(growing).reserved - before > (8 << 20) - (80 << 10) &&
          stats(growing).reserved - before < (8 << 20) + (64 << 10));
    for (int i = 0; i < 100; i++)
        aco_destroy(more[i]);
    aco_destroy(co[0]);
    CHECK_EQ(aco_pool_destroy(growing), 0);
}

/* Promise: a region has at most 1 GiB. */
static void largest_region(void)
{
    enum { MANY = 380, HIGH = 1 << 30 }; /* the 250th is the first in a second region of 1 GiB, the 377th in a third */
    static aco_t *all[MANY];
    aco_pool_t *pool = pool_with(0, 0, NEVER);
    size_t before = 0, most = 0;
    for (int i = 0; i < MANY; i++) {
        size_t reserved;
        all[i] = new_in(pool, 8 << 20, yields, NULL);
        reserved = stats(pool).reserved;
        most = reserved - before > most ? reserved - before : most;
        before = reserved;
    }
    CHECK(most > HIGH / 2 && most <= (size_t)HIGH + page);
    for (int i = 0; i < MANY; i++)
        aco_destroy(all[i]);
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

/* ---- Where stacks lie ---- */

static int by_address(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return x < y ? -1 : x > y;
}

/* Promise: the tops of neighbouring stacks fall into different cache sets; a coroutine one call deep takes one page;
 * where the kernel can keep guards in its tables, a region is one mapping, else a guard makes two out of one. */
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

/* Promise: by pressure: more than idle_stacks of a size lose their pages, at once and coldest first, other sizes do not
 * count; by request: all of them do, and regions without a stack in use are given up. */
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

static int64_t test_ms = 1000;

static int read_test_clock(clockid_t which, struct timespec *now)
{
    (void)which;
    *now = (struct timespec){(time_t)(test_ms / 1000), (long)(test_ms % 1000 * 1000000)};
    return 0;
}

/* Promise: by time: a stack idle for idle_ms loses its pages when one of its size is next given back, at most eight at
 * a time; not before that, and not by another size's. */
static void by_time(void)
{
    enum { IDLE_MS = 20 };
    aco_pool_t *pool = pool_with(0, 0, IDLE_MS);
    aco_t *other = new_in(pool, SMALL * 2, yields, NULL);
    used_t used[USED];
    int known = residency_is_known();
    __typeof__(aco__system.clock_gettime) real = aco__system.clock_gettime;
    aco__system.clock_gettime = read_test_clock;
    use_many(pool, used);
    for (int i = 0; i < USED - 2; i++)
        aco_destroy(used[i].co);
    CHECK_EQ(stats(pool).reclaimed, 0);
    test_ms += IDLE_MS - 1;
    aco_destroy(used[USED - 2].co);
    CHECK_EQ(stats(pool).reclaimed, 0);
    test_ms++;
    aco_destroy(other);
    CHECK_EQ(stats(pool).reclaimed, 0);
    COUNTS(pool, 1, USED - 1 + 1, 0);
    PAGES(0, USED, 1);
    aco_destroy(used[USED - 1].co);
    CHECK_EQ(stats(pool).reclaimed, 8);
    PAGES(0, 8, 0);
    PAGES(8, USED, 1);
    used[USED - 1].co = new_in(pool, USED_SIZE, yields, NULL); /* its stack of before */
    test_ms += IDLE_MS;
    aco_destroy(used[USED - 1].co);
    CHECK_EQ(stats(pool).reclaimed, USED - 1);
    COUNTS(pool, 0, 1 + 1, USED - 1);
    PAGES(0, USED - 1, 0);
    PAGES(USED - 1, USED, 1);
    CHECK_EQ(aco_pool_destroy(pool), 0);
    aco__system.clock_gettime = real;
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
    CHECK_EQ(aco_set_slot(NULL, arg), 0); /* allocates the cold data, which holds the name */
    *wrong += *aco_name(aco_co()) != 0;
    return aco_yield_value(arg);
}

/* Promise: the old contents of a reclaimed stack do not matter, lazily reclaimed or not; the records are right. */
static void reused(unsigned flags)
{
    enum { MANY = 20, SIZE = 256 << 10 };
    aco_pool_t *pool = pool_with(flags, 2, NEVER);
    aco_t *co[MANY];
    int wrong = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            co[i] = new_in(pool, SIZE, round % 2 ? has_nothing_yet : fills_its_stack, &wrong);
            CHECK_EQ(co[i]->share_stack->sz - co[i]->share_stack->aco__colour, SIZE);
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

/* ---- Processes and threads ---- */

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
        FAILS(aco_spawn(task, NULL, &how), NULL, EAGAIN, "aco_spawn", NULL, "most_stacks");
        FAILS(aco_pool_destroy(pool), -1, EBUSY, "aco_pool_destroy", NULL, "in use");
        CHECK_EQ(aco_run(), 0);
        CHECK_EQ(stats(pool).in_use, 0);
        CHECK_EQ(stats(pool).idle + stats(pool).empty, 5);
    }
    CHECK_EQ(aco_pool_destroy(pool), 0);
}

enum { CROWD = 600, CROWD_KEPT = 3 }; /* more than a scheduler reclaims at once */

static aco_pool_t *crowd_pool;
static char *crowd_low[CROWD], *crowd_high[CROWD];

static void *crowd_member(void *number)
{
    crowd_low[(size_t)number] = low(aco_co());
    crowd_high[(size_t)number] = high(aco_co());
    aco_task_yield();
    return NULL;
}

/* Has many tasks run and end, while the calling one never waits. */
static void crowd(void)
{
    const aco_options_t how = {.pool = crowd_pool, .stack_size = SMALL, .flags = ACO_DETACHED};
    for (size_t i = 0; i < CROWD; i++)
        CHECK(aco_spawn(crowd_member, (void *)i, &how) != NULL);
    for (int i = 0; i < 4; i++)
        aco_task_yield();
    COUNTS(crowd_pool, 0, CROWD, 0);
}

static void check_relieved(size_t times, unsigned flags)
{
    int known = residency_is_known() && !(flags & ACO_POOL_LAZY), pages = 0;
    COUNTS(crowd_pool, 0, CROWD_KEPT, CROWD - CROWD_KEPT);
    CHECK_EQ(stats(crowd_pool).reclaimed, times * (CROWD - CROWD_KEPT));
    for (size_t i = 0; i < CROWD; i++)
        pages += known && resident(crowd_low[i], crowd_high[i]) > 0;
    CHECK_EQ(pages, known ? CROWD_KEPT : 0);
}

static aco_t *crowding;

static int wake_crowding(void *unused, int64_t timeout)
{
    (void)unused;
    if (timeout != 0) /* there is nothing else to do */
        aco_unpark(crowding);
    return 1;
}

static void *crowds(void *flags)
{
    crowd();
    CHECK_EQ(stats(crowd_pool).reclaimed, 0);
    aco_park("an idle scheduler");
    check_relieved(1, *(unsigned *)flags);
    crowd();
    return flags;
}

static void overflow_after_crowd(void)
{
    aco_t *co = new_in(crowd_pool, SMALL, yields, NULL);
    ((volatile char *)low(co))[-1] = 1;
}

/* Promise: while aco_run() runs, the pages of idle stacks beyond idle_stacks return when no task can run, and when it
 * returns; with guards in place. */
static void crowded(unsigned flags)
{
    crowd_pool = pool_with(flags, CROWD_KEPT, NEVER);
    crowding = aco_spawn(crowds, &flags, NULL);
    CHECK(crowding != NULL);
    CHECK_EQ(aco_on_idle(wake_crowding, NULL), 0);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
    CHECK_EQ(aco_join(crowding, NULL), 0);
    check_relieved(2, flags);
    DIES_OF(overflow_after_crowd, SIGSEGV);
    CHECK_EQ(aco_pool_destroy(crowd_pool), 0);
}

static void *crowds_once(void *unused)
{
    crowd();
    aco_park("the end");
    return unused;
}

/* Promise: the same for aco_run_ready(), which wants to be called again at once until that is done. */
static void crowded_in_a_loop(void)
{
    int64_t next;
    int calls = 0;
    crowd_pool = pool_with(0, CROWD_KEPT, NEVER);
    crowding = aco_spawn(crowds_once, NULL, NULL);
    CHECK(crowding != NULL);
    do {
        CHECK_EQ(aco_run_ready(&next), 1);
        calls++;
    } while (next <= aco_now());
    CHECK(calls >= 3);
    check_relieved(1, 0);
    aco_unpark(crowding);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(crowding, NULL), 0);
    CHECK_EQ(aco_pool_destroy(crowd_pool), 0);
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
        FAILS(aco_pool_destroy(pool), -1, EBUSY, "aco_pool_destroy", NULL, "in use");
        aco_generator_close(&h);
        aco_generator_close(&g);
        COUNTS(pool, 0, 2, 0);
        CHECK_EQ(aco_pool_destroy(pool), 0);
    }
}
#endif

int main(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    threads_end(); /* first: nobody else has used the default pool */
    options();
    busy();
    most_stacks();
#if SHARE_STACKS
    not_with_a_share_stack();
#endif
    if (!SANITIZED)
        sizes();
    if (!SANITIZED && sizeof(void *) > 4)
        largest_region();
    colours(0);
    colours(ACO_POOL_MPROTECT);
    lifo();
    pressure_and_request();
    by_time();
    reused(0);
    reused(ACO_POOL_LAZY);
    reused(ACO_POOL_CANARIES | ACO_POOL_LAZY);
    many_threads();
    tasks();
    crowded(0);
    crowded(ACO_POOL_MPROTECT);
    crowded(ACO_POOL_LAZY);
    crowded_in_a_loop();
#ifndef ACO_CONFIG_NO_INLINE
    generators();
#endif
    return check_result("pool");
}
