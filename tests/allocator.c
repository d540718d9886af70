/* Promises of aco_set_allocator() (include/aco.h): failures; every request goes to the user's functions as the contract
 * says; all memory comes back, at the latest when its thread ends. One process: the allocator is set once. */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"
#include "child.h"
#include "map_aligned.h"
#include "fails.h"
#include "sanitizers.h"

#include <errno.h>
#include <pthread.h>

/* ---- An allocator that counts, and remembers what it gave ---- */

enum { MOST = 4096 };

typedef struct given {
    void *p;
    size_t sz;
    char is_map;
} given_t;

static struct {
    pthread_mutex_t lock;
    given_t given[MOST];
    unsigned maps, unmaps, allocations, releases;
    size_t bytes;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void give(void *p, size_t sz, int is_map)
{
    size_t at = 0;
    while (at < MOST && memory.given[at].p)
        at++;
    if (at == MOST) {
        CHECK(!"too much is in use for this test");
        return;
    }
    memory.given[at] = (given_t){p, sz, (char)is_map};
    memory.bytes += sz;
}

/* Whole pieces only, with the size that was asked for. */
static void take_back(void *p, size_t sz, int is_map)
{
    for (size_t at = 0; at < MOST; at++)
        if (memory.given[at].p == p) {
            CHECK_EQ(memory.given[at].sz, sz);
            CHECK_EQ(memory.given[at].is_map, is_map);
            memory.given[at].p = NULL;
            memory.bytes -= sz;
            return;
        }
    CHECK(!"takes back what was not given");
}

static void *map(size_t sz, size_t align, void *ctx)
{
    void *p;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    CHECK(ctx == &memory);
    CHECK(align >= page && (align & (align - 1)) == 0 && sz % page == 0 && sz > 0);
    p = map_aligned(sz, align);
    if (!p)
        return NULL;
    pthread_mutex_lock(&memory.lock);
    memory.maps++;
    give(p, sz, 1);
    pthread_mutex_unlock(&memory.lock);
    return p;
}

static void unmap(void *p, size_t sz, void *ctx)
{
    CHECK(ctx == &memory);
    pthread_mutex_lock(&memory.lock);
    memory.unmaps++;
    take_back(p, sz, 1);
    pthread_mutex_unlock(&memory.lock);
    munmap(p, sz);
}

static void *allocate(size_t sz, void *ctx)
{
    void *p = malloc(sz);
    CHECK(ctx == &memory);
    memset(p, 0xee, sz); /* nothing is promised to be zero */
    pthread_mutex_lock(&memory.lock);
    memory.allocations++;
    give(p, sz, 0);
    pthread_mutex_unlock(&memory.lock);
    return p;
}

static void release(void *p, size_t sz, void *ctx)
{
    CHECK(ctx == &memory);
    pthread_mutex_lock(&memory.lock);
    memory.releases++;
    take_back(p, sz, 0);
    pthread_mutex_unlock(&memory.lock);
    free(p);
}

/* ---- Work that needs memory of every kind ---- */

typedef struct big {
    char bytes[50000];
} big_t;
ACO_LOCAL(big_t, big);

static void nothing(void *arg)
{
    (void)arg;
}

static void *needs_memory(void *arg)
{
    char bytes[40000];
    memset(bytes, 'b', sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    big()->bytes[7] = 'x';
    CHECK_EQ(aco_defer(nothing, NULL), 0);
    aco_yield();
    __asm__ volatile("" : : "r"(bytes) : "memory");
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i] != 'b')
            CHECK(!"a frame was changed");
    CHECK(big()->bytes[7] == 'x');
    return arg;
}

enum { MANY = 150 }; /* more than are kept for the next ones */

static void work(aco_options_t *options)
{
    aco_t *co[MANY];
    for (int i = 0; i < MANY; i++) {
        co[i] = aco_new(needs_memory, &co[i], options->stack || i % 3 == 0 ? options : NULL);
        CHECK(co[i] != NULL);
        aco_resume(co[i]);
    }
    for (int i = 0; i < MANY; i++) {
        if (i % 5 == 0)
            CHECK_EQ(aco_cancel(co[i]), 0);
        else if (i % 7)
            CHECK(aco_send(co[i], NULL) == &co[i]);
    }
    for (int i = 0; i < MANY; i++)
        aco_destroy(co[i]);
}

static void *works(void *arg)
{
    aco_options_t private_options = {.name = "private", .stack_size = 100000};
    work(&private_options);
    private_options.flags = ACO_NO_GUARD;
    work(&private_options);
#if SHARE_STACKS
    aco_options_t options = {.stack = aco_share_stack_new(0), .name = "shared", .save_size = 3000};
    work(&options);
    aco_share_stack_destroy(options.stack);
#endif
    CHECK(memory.bytes > 0);
    return arg;
}

static void use(const aco_options_t *options, size_t stack_size)
{
    aco_t *co = aco_new(needs_memory, &memory, options);
    CHECK(co->share_stack->sz >= stack_size);
    aco_resume(co);
    CHECK(aco_send(co, NULL) == &memory);
    aco_destroy(co);
}

/* Promise: stacks of the default size, and only these, are kept for the next coroutines, as without an allocator. */
static void *keeps_stacks(void *arg)
{
    aco_options_t other = {.stack_size = 100000};
    unsigned maps;
    use(NULL, ACO__PRIVATE_SIZE);
    maps = memory.maps;
    use(NULL, ACO__PRIVATE_SIZE);
    CHECK_EQ(memory.maps, maps);
    use(&other, 100000);
    CHECK_EQ(memory.maps, maps + 1);
    use(&other, 100000);
    CHECK_EQ(memory.maps, maps + 2);
    use(NULL, ACO__PRIVATE_SIZE);
    CHECK_EQ(memory.maps, maps + 2);
    return arg;
}

static void in_a_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, fn, arg), 0);
    pthread_join(thread, NULL);
}

static void *destroys(void *co)
{
    aco_destroy(co);
    return NULL;
}

static void *makes_for_others(void *arg)
{
    aco_t *co = aco_new(needs_memory, arg, NULL);
    aco_resume(co);
    in_a_thread(destroys, co);
    return arg;
}

/* What the process keeps when a thread has ended, for the next one: its heap's record and a slab for each size that it
 * used. */
enum { SLAB = 2 << 20 };

static size_t kept(void)
{
    size_t bytes = 0;
    int records = 0;
    for (size_t at = 0; at < MOST; at++) {
        const given_t *given = &memory.given[at];
        if (!given->p)
            continue;
        CHECK(given->is_map);
        records += given->sz != SLAB;
        bytes += given->sz;
    }
    CHECK(records <= 1);
    CHECK_EQ(memory.allocations, memory.releases);
    CHECK_EQ(bytes, memory.bytes);
    return bytes;
}

static aco_allocator_t good = {map, unmap, allocate, release, &memory};

/* Promise: an allocator without a function fails with EINVAL. That does not count as use of the library: the right one
 * can still be set. */
static void refused_then_set(void)
{
    for (int i = 0; i < 5; i++) {
        aco_allocator_t bad = good;
        if (i == 0)
            bad.map = NULL;
        else if (i == 1)
            bad.unmap = NULL;
        else if (i == 2)
            bad.allocate = NULL;
        else if (i == 3)
            bad.release = NULL;
        FAILS(aco_set_allocator(i < 4 ? &bad : NULL), -1, EINVAL, "aco_set_allocator", NULL, "NULL");
    }
    CHECK_EQ(aco_set_allocator(&good), 0);
}

static void too_late(void)
{
    aco_t *co = aco_new(needs_memory, NULL, NULL);
    CHECK(co != NULL);
    FAILS(aco_set_allocator(&good), -1, EBUSY, "aco_set_allocator", NULL, "already");
    aco_resume(co);
    CHECK_EQ(aco_cancel(co), 0);
    aco_destroy(co);
    CHECK_EQ(memory.maps + memory.allocations, 0);
}

static void too_late_after_a_stack(void)
{
    aco_share_stack_destroy(aco_share_stack_new(0));
    FAILS(aco_set_allocator(&good), -1, EBUSY, "aco_set_allocator", NULL, "already");
}

int main(void)
{
    size_t first;
    PASSES(refused_then_set);
    PASSES(too_late);
    PASSES(too_late_after_a_stack);
    CHECK_EQ(aco_set_allocator(&good), 0);
    CHECK_EQ(memory.maps + memory.allocations, 0);
    in_a_thread(works, NULL);
    CHECK(memory.maps > MANY && memory.allocations > MANY); /* a stack each, a large variable each */
    CHECK(memory.unmaps > MANY);
    first = kept();
    for (int i = 0; i < 3; i++) {
        in_a_thread(works, NULL);
        CHECK_EQ(kept(), first);
    }
    for (int i = 0; i < 3; i++) {
        in_a_thread(makes_for_others, NULL);
        CHECK_EQ(kept(), first);
    }
    if (!SANITIZED) /* then none are */
        in_a_thread(keeps_stacks, NULL);
    CHECK_EQ(kept(), first);
    FAILS(aco_set_allocator(&good), -1, EBUSY, "aco_set_allocator", NULL, "already");
    return check_result("allocator");
}
