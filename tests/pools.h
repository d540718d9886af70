/* What the tests of pools share. */
#ifndef POOLS_H
#define POOLS_H

#include "aco/pool.h"
#include "child.h"
#include "lacking.h"
#include "fails.h"
#include "sanitizers.h"

#include <sys/utsname.h>

/* A sanitizer's calls want more room than the smallest stacks have. Where pages are larger than 4 KiB, so are these. */
#ifdef __loongarch__
enum { PAGE_LOG = 14 };
#else
enum { PAGE_LOG = 12 };
#endif
enum {
    SMALLEST_LOG = SANITIZED ? 16 : PAGE_LOG,
    LARGEST_LOG = 23,
    SIZES = LARGEST_LOG - SMALLEST_LOG + 1,
    NEVER = INT32_MAX
};
enum { SMALL = 1 << SMALLEST_LOG };
_Static_assert((int)SMALL >= 4096, "the smallest stack");

static size_t page;

static inline aco_pool_t *pool_with(unsigned flags, size_t idle_stacks, unsigned idle_ms)
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

static inline aco_pool_stats_t stats(aco_pool_t *pool)
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
static inline void check_counts(int line, aco_pool_t *pool, size_t in_use, size_t idle, size_t empty)
{
    aco_pool_stats_t s = stats(pool);
    if (s.in_use == in_use && s.idle == idle && s.empty == empty)
        return;
    fprintf(stderr, "%s:%d: %zu stacks in use, %zu idle, %zu empty; wanted %zu, %zu, %zu\n", __FILE__, line, s.in_use,
            s.idle, s.empty, in_use, idle, empty);
    CHECK(!"the counts");
}

#define COUNTS(pool, in_use, idle, empty) check_counts(__LINE__, pool, in_use, idle, empty)

static inline aco_t *new_in(aco_pool_t *pool, size_t sz, aco_function_t fn, void *arg)
{
    aco_options_t o = {0};
    aco_t *co;
    o.pool = pool;
    o.stack_size = sz;
    co = aco_new(fn, arg, &o);
    if (!co)
        fprintf(stderr, "pools.h: \"%s\"\n", aco_error_message());
    CHECK(co != NULL);
    return co;
}

static inline char *low(const aco_t *co)
{
    void *lo = NULL, *hi = NULL;
    CHECK_EQ(aco_stack_bounds(co, &lo, &hi), 0);
    return lo;
}

static inline char *high(const aco_t *co)
{
    void *lo = NULL, *hi = NULL;
    CHECK_EQ(aco_stack_bounds(co, &lo, &hi), 0);
    return hi;
}

static inline void *yields(void *arg)
{
    while (aco_yield_value(arg) != ACO_ERROR)
        continue;
    return NULL;
}

static inline void *yields_once(void *arg)
{
    return aco_yield_value(arg);
}

/* Touches all pages of so many bytes of stack; not on ASan's stacks, which lie elsewhere. */
static __attribute__((noinline, unused)) int descend(const char *end)
{
    volatile char bytes[256];
    int below = 0;
    for (size_t i = 0; i < sizeof bytes; i += 64)
        bytes[i] = 1;
    if ((const char *)__builtin_frame_address(0) > end)
        below = descend(end);
    return below + bytes[0];
}

static inline void *goes_deep(void *bytes)
{
    descend((const char *)__builtin_frame_address(0) - (size_t)(uintptr_t)bytes);
    aco_yield();
    return bytes;
}

static inline size_t mappings(void)
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
static inline int kernel_guards_in_tables(void)
{
    char *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int can = p != MAP_FAILED && madvise(p, page, 102) == 0 && uname((struct utsname *)p) != 0; /* MADV_GUARD_INSTALL */
    munmap(p, page);
    return can;
}

enum { USED = 12, USED_SIZE = 64 << 10 };

static inline uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

#endif
