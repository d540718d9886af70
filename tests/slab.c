/* Memory for control blocks and save areas (src/base/slab.c), from inside: sizes, alignment, no overlap, memory that
 * goes back to the system, walks over control blocks, and any thread freeing what another one made.
 *
 * slab [rounds | threads | quick] */
#define _GNU_SOURCE
#include "base/slab.h"
#include "check.h"
#include "sanitizers.h"
#include "single_steps.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifndef _WIN32
#include "system/system.h"
#include <sys/mman.h>
#endif

enum { MIB = 1 << 20 };

static int rounds = 20;

/* ---- What the process uses, in bytes ---- */

typedef struct usage {
    size_t mapped, resident;
} usage_t;

#ifdef _WIN32
#include <psapi.h>
static usage_t usage(void)
{
    PROCESS_MEMORY_COUNTERS counters;
    usage_t used;
    CHECK(GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters));
    used.mapped = counters.PagefileUsage;
    used.resident = counters.WorkingSetSize;
    return used;
}
#else
static usage_t usage(void)
{
    usage_t used;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%zu %zu", &used.mapped, &used.resident) != 2) {
        perror("/proc/self/statm");
        exit(2);
    }
    fclose(file);
    used.mapped *= page;
    used.resident *= page;
    return used;
}
#endif

/* ---- Objects that know themselves ---- */

typedef struct object {
    size_t size;
    uint32_t seed;
} object_t;

static unsigned char pattern(const object_t *object, size_t i)
{
    return (unsigned char)((object->seed * 2654435761u + (uint32_t)i * 40503u) >> 13);
}

static object_t *object_new(size_t asked, uint32_t seed)
{
    size_t size = asked < sizeof(object_t) ? sizeof(object_t) : asked, wanted = size;
    object_t *object = aco__memory_new(&size);
    CHECK(object != NULL);
    CHECK(size >= wanted);
    object->size = size;
    object->seed = seed;
    for (size_t i = sizeof *object; i < size; i++)
        ((unsigned char *)object)[i] = pattern(object, i);
    return object;
}

static void object_free(object_t *object)
{
    size_t wrong = 0;
    for (size_t i = sizeof *object; i < object->size; i++)
        wrong += ((unsigned char *)object)[i] != pattern(object, i);
    CHECK_EQ(wrong, 0);
    aco__memory_free(object, object->size);
}

static uint32_t next(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

static size_t random_size(uint32_t *state)
{
    uint32_t kind = next(state) % 10;
    return 1 + next(state) % (kind < 6 ? 300 : kind < 9 ? 3000 : 20000);
}

/* ---- The promises ---- */

/* Promises: each request gets at least its size, not much more, aligned to 16, or as malloc() aligns it where it is
 * malloc()'s (Arm: 8). Sizes up to 1024 that are multiples of 64 are aligned to 64. */
static void sizes_and_alignment(void)
{
    for (size_t asked = 0; asked <= 20000; asked++) {
        enum { A_FEW = 5 };
        object_t *few[A_FEW];
        for (int i = 0; i < A_FEW; i++) {
            size_t size = asked;
            few[i] = aco__memory_new(&size);
            CHECK(few[i] != NULL);
            CHECK(size >= asked);
            CHECK(size <= asked + 15 + asked / 8 || asked == 0);
            CHECK_EQ((uintptr_t)few[i] % (asked > ACO__SLAB_LARGEST ? _Alignof(max_align_t) : 16), 0);
            CHECK(size % 64 != 0 || size > 1024 || (uintptr_t)few[i] % 64 == 0);
            for (int j = 0; j < i; j++)
                CHECK((char *)few[i] + size <= (char *)few[j] || (char *)few[j] + size <= (char *)few[i]);
            memset(few[i], 0xee, size);
        }
        for (int i = 0; i < A_FEW; i++)
            aco__memory_free(few[i], asked > ACO__SLAB_LARGEST ? asked : asked / 2); /* as far as the contract lets */
    }
}

/* Promise: objects do not overlap, in whatever order they come and go. */
static void random_order(uint32_t seed)
{
    enum { MANY = 4000 };
    static object_t *all[MANY];
    uint32_t state = seed;
    for (int i = 0; i < 40 * MANY; i++) {
        object_t **at = &all[next(&state) % MANY];
        if (*at) {
            object_free(*at);
            *at = NULL;
        } else {
            *at = object_new(random_size(&state), next(&state));
        }
    }
    for (int i = 0; i < MANY; i++) {
        if (all[i])
            object_free(all[i]);
        all[i] = NULL;
    }
}

/* Promise: memory of slabs that become empty goes back to the system, whichever order objects are freed in. */
static void memory_goes_back(int order)
{
    enum { MANY = 100000, SIZE = 272 };
    static object_t *all[MANY];
    usage_t before, full, after;
    object_free(object_new(SIZE, 1)); /* the class has its slab */
    before = usage();
    for (uint32_t i = 0; i < MANY; i++)
        all[i] = object_new(SIZE, i);
    full = usage();
    CHECK(full.resident > before.resident + (size_t)MANY * SIZE * 9 / 10);
    for (uint32_t i = 0; i < MANY; i++)
        object_free(all[order == 0 ? i : order == 1 ? MANY - 1 - i : (uint32_t)((uint64_t)i * 77773 % MANY)]);
    after = usage();
    CHECK(after.resident < before.resident + 4 * MIB); /* the array above, and the kernel counts roughly */
    CHECK(after.mapped < before.mapped + 5 * MIB);
}

#ifndef _WIN32
static time_t seconds;
static int given_back;

static int says_seconds(clockid_t clock, struct timespec *now)
{
    (void)clock;
    *now = (struct timespec){seconds, 0};
    return 0;
}

static int counts_madvise(void *p, size_t sz, int advice)
{
    given_back += sz > MIB;
    return madvise(p, sz, advice);
}

static void burst(void)
{
    enum { MANY = 500, SIZE = 3000 };
    static object_t *all[MANY];
    for (uint32_t i = 0; i < MANY; i++)
        all[i] = object_new(SIZE, i);
    for (uint32_t i = 0; i < MANY; i++)
        object_free(all[i]);
}

/* Promise: bursts of objects that follow each other within a second use the same pages; later, a burst gives its pages
 * back. */
static void bursts(void)
{
    int (*const real_clock)(clockid_t, struct timespec *) = aco__system.clock_gettime;
    int (*const real_madvise)(void *, size_t, int) = aco__system.madvise;
    aco__system.clock_gettime = says_seconds;
    aco__system.madvise = counts_madvise;
    seconds = 1000;
    burst();
    CHECK_EQ(given_back, 1);
    for (int i = 0; i < 20; i++)
        burst();
    CHECK_EQ(given_back, 1);
    seconds += 1;
    burst();
    CHECK_EQ(given_back, 2);
    aco__system.clock_gettime = real_clock;
    aco__system.madvise = real_madvise;
}
#endif

/* Promise: one object made and freed in turn costs no system call; here: its class keeps its slab, its address comes
 * again. */
static void one_in_turn(void)
{
    object_t *first = object_new(5000, 7);
    object_free(first);
    for (int i = 0; i < 100000; i++) {
        object_t *again = object_new(5000, 7);
        CHECK(again == first);
        aco__memory_free(again, again->size);
    }
}

/* Promise: memory is aligned to its size wherever the system puts mappings, and there is no more of it than was asked
 * for. */
static void aligned_mappings(void)
{
    enum { MANY = 200, SIZE = 64 << 10 };
    static char *aligned[MANY], *between[MANY];
    size_t odd = SIZE + aco__os_page_size();
    usage_t before = usage(), after;
    for (int i = 0; i < MANY; i++) {
        between[i] = aco__os_map(odd); /* else the next one would be aligned by itself */
        aligned[i] = aco__os_map_aligned(SIZE);
        CHECK(aligned[i] && (uintptr_t)aligned[i] % SIZE == 0);
    }
    after = usage();
    CHECK(after.mapped < before.mapped + MANY * (SIZE + odd) + 2 * MIB);
    for (int i = 0; i < MANY; i++) {
        memset(aligned[i], i, SIZE);
        memset(between[i], MANY + i, odd);
    }
    for (int i = 0; i < MANY; i++) {
        for (size_t at = 0; at < SIZE; at += 4096)
            CHECK_EQ((unsigned char)aligned[i][at], i);
        aco__os_unmap(aligned[i], SIZE);
        aco__os_unmap(between[i], odd);
    }
}

/* ---- The walk over control blocks ---- */

/* Counts the visit in the block; stops when *left, of so many, comes to 0. */
static int visit_block(aco_t *co, void *left)
{
    ++*(uint32_t *)(void *)co;
    return --*(size_t *)left == 0 ? 7 : 0;
}

/* In a thread of its own: it has no other blocks. */
static void *walk_over_blocks(void *unused)
{
    enum { BLOCKS = 60000, PART = 7000 };
    static uint32_t *blocks[BLOCKS];
    size_t left = SIZE_MAX, from = 0, parts = 0, wrong = 0;
    for (int i = 0; i < BLOCKS; i++) { /* in several slabs of two classes */
        size_t size = i % 3 ? 64 : 272;
        blocks[i] = aco__block_memory_new(&size);
        *blocks[i] = 0;
    }
    CHECK_EQ(aco__blocks_each(visit_block, &left), 0);
    CHECK_EQ(SIZE_MAX - left, BLOCKS);
    do {
        left = SIZE_MAX;
        CHECK_EQ(aco__blocks_some(visit_block, &left, &from, PART), 0);
        CHECK_EQ(SIZE_MAX - left, from ? PART : BLOCKS % PART);
        parts++;
    } while (from && parts <= BLOCKS / PART);
    CHECK_EQ(parts, BLOCKS / PART + 1);
    for (int i = 0; i < BLOCKS; i++)
        wrong += *blocks[i] != 2;
    CHECK_EQ(wrong, 0);
    left = 12345;
    CHECK_EQ(aco__blocks_each(visit_block, &left), 7);
    CHECK_EQ(left, 0);
    from = 2 * BLOCKS; /* there were more */
    CHECK_EQ(aco__blocks_some(visit_block, &left, &from, PART), 0);
    CHECK_EQ(from, 0);
    CHECK_EQ(left, 0);
    for (int i = 0; i < BLOCKS; i++)
        aco__memory_free(blocks[i], 64);
    return unused;
}

/* Promises: a walk visits each control block once, whole or in parts, and ends when a visit says so. */
static void walks(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, walk_over_blocks, NULL);
    pthread_join(thread, NULL);
}

/* ---- Slots ---- */

/* Promises: after some areas of the same size in a row, each block without room behind it has a slot of that size.
 * Slots do not overlap, other threads get none, and their memory goes back with that of the blocks. */
enum { BARE = 40000, SLOT = 152 };
static aco_t *bare[BARE];
static char *given[BARE];

static void *wants_slots_elsewhere(void *unused)
{
    for (int i = 0; i < 100; i++)
        CHECK(aco__slot_wanted(bare[BARE - 1 - i], SLOT) == NULL);
    return unused;
}

static void use_slots(void)
{
    size_t without = 0, wrong = 0;
    for (size_t i = 0; i < BARE; i++) {
        given[i] = aco__slot_wanted(bare[i], SLOT);
        CHECK(given[i] == aco__slot(bare[i]));
        without += !given[i];
        if (given[i])
            memset(given[i], (int)(i % 251), SLOT);
    }
    CHECK(without > 0 && without < 20 * (1 + BARE * sizeof(aco_t) / (2 * MIB)));
    for (size_t i = 0; i < BARE; i++) {
        CHECK(!given[i] || given[i] == aco__slot(bare[i]));
        for (size_t k = 0; given[i] && k < SLOT; k++)
            wrong += (unsigned char)given[i][k] != i % 251;
    }
    CHECK_EQ(wrong, 0);
    CHECK(aco__slot_wanted(bare[BARE - 1], SLOT + 8) == NULL);
    CHECK(aco__slot_wanted(bare[BARE - 1], 8) == aco__slot(bare[BARE - 1]));
}

static void slots(void)
{
    usage_t before = usage(), after;
    pthread_t thread;
    for (int i = 0; i < BARE; i++) {
        size_t size = sizeof(aco_t);
        bare[i] = aco__block_memory_new(&size);
        CHECK_EQ(size, sizeof(aco_t));
        CHECK(aco__slot(bare[i]) == NULL);
    }
    pthread_create(&thread, NULL, wants_slots_elsewhere, NULL);
    pthread_join(thread, NULL);
    for (int i = 0; i < 100; i++) /* sizes that differ */
        CHECK(aco__slot_wanted(bare[i], SLOT + (size_t)(i % 2 * 8)) == NULL);
    use_slots();
    for (int i = 0; i < BARE; i++)
        aco__memory_free(bare[i], sizeof(aco_t));
    after = usage();
    CHECK(after.resident < before.resident + 4 * MIB);
    CHECK(after.mapped < before.mapped + 5 * MIB);
}

/* ---- Threads ---- */

enum { PLACES = 512, THREADS = 6 };
static object_t *places[PLACES]; /* atomic; objects on their way from one thread to another */

typedef struct worker {
    uint32_t seed;
    int operations;
} worker_t;

static void *exchange(void *arg)
{
    worker_t *worker = arg;
    uint32_t state = worker->seed;
    object_t *own[64] = {NULL};
    for (int i = 0; i < worker->operations; i++) {
        object_t **mine = &own[next(&state) % 64];
        if (!*mine)
            *mine = object_new(random_size(&state), next(&state));
        if (next(&state) % 2)
            *mine = __atomic_exchange_n(&places[next(&state) % PLACES], *mine, __ATOMIC_ACQ_REL);
        if (*mine && next(&state) % 2) {
            object_free(*mine);
            *mine = NULL;
        }
    }
    for (int i = 0; i < 64; i++)
        if (own[i])
            object_free(own[i]);
    return NULL;
}

static void empty_places(void)
{
    for (int i = 0; i < PLACES; i++) {
        object_t *object = __atomic_exchange_n(&places[i], NULL, __ATOMIC_ACQ_REL);
        if (object)
            object_free(object);
    }
}

/* A generation of threads overlaps with the next: some end, and new ones take over their heaps, while others still free
 * into those. */
static void generations(int count, int operations, uint32_t seed)
{
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){seed + (uint32_t)i * 17 + 1, operations * (i + 1) / THREADS};
        pthread_create(&threads[i], NULL, exchange, &workers[i]);
    }
    for (int i = THREADS; i < count; i++) {
        int at = i % THREADS;
        pthread_join(threads[at], NULL);
        workers[at].seed += 1001;
        pthread_create(&threads[at], NULL, exchange, &workers[at]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    empty_places();
}

/* Promise: objects may be freed by any thread, also after their maker has ended. */
static void many_threads(void)
{
    generations(THREADS * 6, 3000, 1);
}

/* Promise: heaps of ended threads are taken over, not piled up. */
static void heaps_are_taken_over(void)
{
    usage_t early = usage(), late;
    for (int i = 0; i < rounds; i++)
        generations(THREADS * 3, 1500, (uint32_t)(i * 7919 + 3));
    late = usage();
    CHECK(late.resident < early.resident + 24 * MIB);
    printf("threads: %zu MiB resident early, %zu late; %zu and %zu mapped\n", early.resident / MIB, late.resident / MIB,
           early.mapped / MIB, late.mapped / MIB);
}

enum { LEFT = 50000 };
static object_t *left[LEFT];

static void *free_left(void *unused)
{
    for (uint32_t i = 0; i < LEFT; i++)
        object_free(left[i]);
    return unused;
}

static void *make_and_end(void *freed_before)
{
    pthread_t thread;
    for (uint32_t i = 0; i < LEFT; i++)
        left[i] = object_new(400, i);
    if (freed_before) {
        pthread_create(&thread, NULL, free_left, NULL);
        pthread_join(thread, NULL);
    }
    return NULL;
}

/* Promise: what a thread leaves behind goes back to the system when others free it, before it ends or after, and
 * without any thread taking it over. */
static void ended_threads_memory_goes_back(void)
{
    static int freed_before;
    usage_t before, full, after;
    pthread_t thread;
    for (int round = 0; round < 6; round++) {
        before = usage();
        pthread_create(&thread, NULL, make_and_end, round % 2 ? &freed_before : NULL);
        pthread_join(thread, NULL);
        if (round % 2 == 0) {
            full = usage();
            CHECK(full.resident > before.resident + (size_t)LEFT * 400 * 9 / 10);
            free_left(NULL);
        }
        after = usage();
        CHECK(after.resident < before.resident + 2 * MIB);
    }
}

#if SINGLE_STEPS
static struct aco__heap *given_up;

static void *gives_up_heap(void *unused)
{
    left[0] = object_new(400, 1);
    given_up = aco__self()->heap;
    begin_steps();
    aco__thread_exits.heap(aco__self()); /* as at the thread's end */
    end_steps();
    return unused;
}

/* Promise: what is freed while its thread gives up the heap, whenever that is, is taken back by one of the two. */
static void freed_while_thread_ends(void)
{
    int at = 0;
    do {
        pthread_t thread;
        plan_rest(++at);
        pthread_create(&thread, NULL, gives_up_heap, NULL);
        await_rest();
        object_free(left[0]);
        end_rest();
        pthread_join(thread, NULL);
        CHECK(given_up->remote == NULL);
    } while (has_rested());
}
#endif

enum { PASSED_ON = 20000 };

static void *free_all(void *objects)
{
    for (int i = 0; i < PASSED_ON; i++)
        object_free(((object_t **)objects)[i]);
    return NULL;
}

/* Promise: a thread that only makes objects takes back those that others freed before it asks the system. */
static void made_here_freed_there(void)
{
    static object_t *objects[PASSED_ON];
    usage_t early = {0, 0}, late;
    pthread_t thread;
    for (int round = 0; round < 12; round++) {
        for (uint32_t i = 0; i < PASSED_ON; i++)
            objects[i] = object_new(700, i);
        pthread_create(&thread, NULL, free_all, objects);
        pthread_join(thread, NULL);
        if (round == 1)
            early = usage();
    }
    late = usage();
    CHECK(late.resident < early.resident + 8 * MIB);
    CHECK(late.mapped < early.mapped + 8 * MIB);
}

/* A thread whose key destructor runs after the heap's uses memory once more: it gets a heap again, and leaves it. */
static pthread_key_t late_key;

static void use_late(void *times)
{
    object_free(object_new(100, 3));
    if ((uintptr_t)times < 3)
        pthread_setspecific(late_key, (void *)((uintptr_t)times + 1));
}

static void *end_with_late_use(void *unused)
{
    object_free(object_new(100, 2));
    pthread_setspecific(late_key, (void *)1);
    return unused;
}

static void use_during_thread_exit(void)
{
    pthread_t thread;
    pthread_key_create(&late_key, use_late);
    for (int i = 0; i < 200; i++) {
        pthread_create(&thread, NULL, end_with_late_use, NULL);
        pthread_join(thread, NULL);
    }
    pthread_key_delete(late_key);
}

int main(int argc, char **argv)
{
    int threads_only = argc > 1 && strcmp(argv[1], "threads") == 0;
    aco_thread_init(NULL); /* a static link finds core.o by it: the thread record alone is named by assembly only */
    if (argc > 1 && strcmp(argv[1], "quick") == 0) {
        one_in_turn();
#ifndef _WIN32
        bursts();
#endif
        aligned_mappings();
        walks();
        slots();
        return check_result("slab quick");
    }
    if (argc > 1 && !threads_only)
        rounds = atoi(argv[1]);
    if (!threads_only) {
        sizes_and_alignment();
        for (uint32_t seed = 1; seed <= 5; seed++)
            random_order(seed);
        for (int order = 0; order < 3; order++)
            memory_goes_back(order);
        made_here_freed_there();
    }
    if (!UNDER_TSAN) /* it has memory of its own for each byte */
        ended_threads_memory_goes_back();
#if SINGLE_STEPS
    freed_while_thread_ends();
#endif
    many_threads();
    if (threads_only)
        heaps_are_taken_over();
#if !UNDER_TSAN /* its own record of the thread is destroyed by then */
    use_during_thread_exit();
#else
    (void)use_during_thread_exit;
#endif
    return check_result("slab");
}
