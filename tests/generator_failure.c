/* Generators when memory runs out (include/aco/generator.h), by injected failures: opening one fails and leaves nothing
 * behind; closing one aborts. One on its consumer's stack takes no memory, and one from the pool no new memory. */
#define _GNU_SOURCE
#include "aco.h"
#include "aco/in_stack_generator.h"
#include "check.h"
#include "child.h"
#include "map_aligned.h"
#include "fails.h"

#include <pthread.h>
#include <sys/mman.h>

/* ---- An allocator that can fail, and counts ---- */

enum { SLAB = 2 << 20 };

static unsigned long requests, fail_at; /* 0: never; the first request is 1 */
static int all_fail, injected;
static long living; /* stacks and other memory, except slabs and what a thread keeps */

static int fails(void)
{
    requests++;
    injected |= all_fail || requests == fail_at;
    return all_fail || requests == fail_at;
}

static void *map(size_t sz, size_t align, void *ctx)
{
    void *p;
    (void)ctx;
    if (fails() || !(p = map_aligned(sz, align)))
        return NULL;
    living += sz != SLAB;
    return p;
}

static void unmap(void *p, size_t sz, void *ctx)
{
    (void)ctx;
    living -= sz != SLAB;
    munmap(p, sz);
}

static void *allocate(size_t sz, void *ctx)
{
    (void)ctx;
    if (fails())
        return NULL;
    living++;
    return malloc(sz);
}

static void release(void *p, size_t sz, void *ctx)
{
    (void)ctx, (void)sz;
    living--;
    free(p);
}

static void set_allocator(void)
{
    aco_allocator_t allocator = {map, unmap, allocate, release, NULL};
    CHECK_EQ(aco_set_allocator(&allocator), 0);
}

/* ---- Work ---- */

ACO_GENERATOR(counts, y, arg)
{
    for (intptr_t i = 1; i <= (intptr_t)arg; i++)
        aco_generate(y, (void *)i);
}

ACO_IN_STACK_GENERATOR(counts_in_stack, y, arg)
{
    for (intptr_t i = 1; i <= (intptr_t)arg; i++)
        aco_generate_in_stack(y, (void *)i);
}

static void open_and_use(const aco_options_t *options)
{
    aco_generator_t g;
    int before = injected;
    intptr_t i = 0;
    errno = 0;
    if (aco_generator_open(&g, counts, (void *)3, options) != 0) {
        CHECK(!before && injected);
        CHECK_EQ(errno, ENOMEM);
        check_message(__FILE__, __LINE__, "aco_generator_open", NULL, "no memory for ");
        CHECK_EQ(aco_generator_next(&g), 0);
        aco_generator_close(&g);
        aco_generator_drop(&g);
        CHECK_EQ(aco_generator_open(&g, counts, (void *)3, options), 0);
    }
    while (aco_generator_next(&g))
        CHECK_EQ((intptr_t)g.value, ++i);
    CHECK_EQ(i, 3);
}

static void *work(void *arg)
{
    static const aco_options_t options[] = {{.stack_size = 100000}, {.flags = ACO_NO_GUARD}, {.name = "named"}};
    open_and_use(NULL);
    for (int i = 0; i < 3; i++)
        open_and_use(&options[i]);
    return arg;
}

enum { NOTHING_FAILED = 77 };

static void one_failure(void)
{
    pthread_t thread;
    set_allocator();
    CHECK_EQ(pthread_create(&thread, NULL, work, NULL), 0);
    pthread_join(thread, NULL);
    CHECK(living <= 1); /* the heap's record waits for the next thread */
    if (!injected && !check_failures)
        _exit(NOTHING_FAILED);
}

static void every_failure(void)
{
    for (fail_at = 1; fail_at < 100; fail_at++) {
        child_end_t end = child_run(one_failure);
        if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == NOTHING_FAILED)
            break;
        if (!WIFEXITED(end.status) || WEXITSTATUS(end.status) != 0)
            child_complain(__FILE__, __LINE__, "one_failure", "all well when a request fails", &end);
    }
    printf("generator_failure: %lu requests\n", fail_at - 1);
    CHECK(fail_at > 4 && fail_at < 100);
    fail_at = 0;
}

/* Promise: closing aborts when memory runs out. */
static void close_without_memory(void)
{
    aco_generator_t g;
    set_allocator();
    CHECK_EQ(aco_generator_open(&g, counts, (void *)3, NULL), 0);
    CHECK_EQ(aco_generator_next(&g), 1);
    all_fail = 1;
    aco_generator_close(&g);
}

static void close_in_stack_without_memory(void)
{
    aco_in_stack_t g;
    set_allocator();
    aco_in_stack_open(&g, counts_in_stack, (void *)3);
    CHECK_EQ(aco_in_stack_next(&g), 1);
    all_fail = 1;
    aco_in_stack_close(&g);
}

/* Promises: it takes no memory to end a generator that has not begun or has ended, or to drop one. One on its
 * consumer's stack needs memory only to be unwound. */
static void without_memory(void)
{
    aco_generator_t g[3];
#if ACO__ON_ONE_STACK /* under the thread sanitizer they have stacks of their own */
    aco_in_stack_t h;
#endif
    set_allocator();
    for (int i = 0; i < 3; i++)
        CHECK_EQ(aco_generator_open(&g[i], counts, (void *)1, NULL), 0);
    all_fail = 1;
    requests = 0;
#if ACO__ON_ONE_STACK
    for (int i = 0; i < 100; i++) {
        aco_in_stack_open(&h, counts_in_stack, (void *)3);
        CHECK_EQ(aco_in_stack_next(&h), 1);
        CHECK_EQ(aco_in_stack_drop(&h), 0);
        aco_in_stack_open(&h, counts_in_stack, (void *)1);
        CHECK(aco_in_stack_next(&h) == 1 && aco_in_stack_next(&h) == 0);
        CHECK_EQ(aco_in_stack_close(&h), 0);
        aco_in_stack_open(&h, counts_in_stack, (void *)1);
        CHECK_EQ(aco_in_stack_close(&h), 0);
    }
#endif
    aco_generator_close(&g[0]);
    CHECK(aco_generator_next(&g[1]) == 1 && aco_generator_next(&g[1]) == 0);
    aco_generator_close(&g[1]);
    CHECK_EQ(aco_generator_next(&g[2]), 1);
    aco_generator_drop(&g[2]);
#ifndef ACO__SANITIZED /* under a sanitizer none is kept */
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(aco_generator_open(&g[i % 3], counts, (void *)1, NULL), 0);
        CHECK_EQ(aco_generator_next(&g[i % 3]), 1);
        aco_generator_drop(&g[i % 3]);
    }
    CHECK_EQ(requests, 0);
#endif
}

int main(void)
{
    every_failure();
    ABORTS(close_without_memory, "aco_generator_close", NULL, "no memory for ");
#if ACO__ON_ONE_STACK
    ABORTS(close_in_stack_without_memory, "aco_in_stack_close", NULL, "no memory for ");
#else
    ABORTS(close_in_stack_without_memory, "aco_generator_close", NULL, "no memory for ");
#endif
    PASSES(without_memory);
    return check_result("generator_failure");
}
