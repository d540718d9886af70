/* Private stacks: the pools that they come from, how deep they went, and what sizes they need.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_pool_options_t options = {0};
 *   options.most_stacks = 10000;
 *   aco_pool_t *pool = aco_pool_new(&options);
 *   aco_options_t how = {0};
 *   how.pool = pool;
 *   how.stack_size = 64 << 10;
 *   aco_t *co = aco_new(serve, connection, &how);
 *
 * A pool reserves address space in large regions and divides them into stacks. Stack sizes are powers of two from 4 KiB
 * (or the page size) to 8 MiB; a requested size is rounded up. Memory is committed page by page as a stack touches it.
 * Coroutines, tasks and generators that name no pool use the process's default pool, which needs no preparation and is
 * never destroyed. Some stacks are outside every pool and are mapped one by one: larger ones, those with ACO_NO_GUARD,
 * and all stacks of a program with its own allocator (aco_set_allocator()). Limits, statistics and aco_pool_destroy()
 * ignore them.
 *
 * Guards. Below each stack is a page that cannot be accessed. Linux 6.13 and later marks it in the page tables, at no
 * further cost. An older kernel needs two mappings for each guard. So once guards take seven eighths of the mappings
 * that the kernel allows the process (vm.max_map_count), pools make no more of them. Later stacks have a canary
 * instead: 64 known bytes in a page of their own. They are compared when the coroutine ends, when it is destroyed and,
 * in debug builds, at every yield. A changed byte aborts the process. A pool with ACO_POOL_MUST_GUARD makes no
 * canaries: it uses all mappings, and then fails.
 *
 * Reuse. The stack that became idle last is used first: its pages are warm. For the default size of the default pool,
 * each thread also caches up to 1024 destroyed coroutines with their stacks, and uses these first. Those beyond 64 go
 * back to the pool when the thread has not needed them for some time. It looks every 100 ms at most: while coroutines
 * are created and destroyed, and before aco_run() sleeps. As long as there are such, aco_run() sleeps for 100 ms at
 * most, unless there is an idle hook. All of them go back, and the pool is trimmed, before a call that creates a
 * coroutine fails for lack of memory. Memory stays with the NUMA node of the thread that touched it first.
 *
 * Reclaim. The pages of idle stacks return to the system, the coldest stack first:
 *   - by pressure: when more than `idle_stacks` stacks of a size are idle with their pages. This happens at once,
 *     except for stacks that are released while aco_run() runs on the thread: for them it is put off until no task can
 *     run or aco_run() returns. So the end of many tasks waits for no system call, and the next tasks get stacks that
 *     still have their pages;
 *   - by time: when a stack is released, the pages of up to eight others of its size that have been idle for `idle_ms`;
 *   - by request: aco_pool_trim().
 * A coroutine that went deep once and is suspended higher up no longer needs the pages below. They return by request:
 * aco_stack_trim(). For tasks they also return by time. Before aco_run() waits because no task is runnable, it trims up
 * to 64 tasks, or up to 1024 if it will wait for more than 100 ms, but at most once in 100 ms. It trims no task twice
 * in one wait, and one that runs all the time more and more rarely, down to every 16th time. As long as it has passed
 * over such a task, it waits for 100 ms at most, unless there is an idle hook.
 * The addresses stay reserved; aco_pool_trim() also unmaps regions without a stack in use. docs/memory.md has the
 * cost. */
#ifndef ACO_POOL_H
#define ACO_POOL_H

#include "../aco.h"

ACO__BEGIN_C

/* Zero in a field stands for the default; NULL for the whole structure stands for all defaults. */
typedef struct aco_pool_options_s {
    size_t region_size;  /* bytes of address space to reserve at a time, rounded down to whole stacks, but at least one;
                            up to SIZE_MAX / 4. Less if the system does not have so much.
                            0: for each size 4 MiB first, then twice as much each time, up to 1 GiB (16 MiB with 32-bit
                            addresses) */
    size_t most_stacks;  /* how many may be in use at a time: the next one fails with EAGAIN. 0: no limit */
    size_t idle_stacks;  /* how many idle stacks of each size keep their pages. 0: 4096 */
    unsigned idle_ms;    /* how long idle stacks keep them, in milliseconds, up to INT32_MAX; some 10 ms more or
                            less. 0: 1000 */
    unsigned flags;      /* ACO_POOL_MPROTECT, … or'ed */
    void *aco__reserved[4]; /* reserved fields are 0 */
} aco_pool_options_t;

enum {
    ACO_POOL_MPROTECT = 1,   /* make guards by mappings, even where the kernel can mark page tables */
    ACO_POOL_CANARIES = 2,   /* canaries instead of guards; excludes ACO_POOL_MPROTECT and ACO_POOL_MUST_GUARD */
    ACO_POOL_MUST_GUARD = 4, /* fail instead of making a stack without a guard; EAGAIN: vm.max_map_count is reached */
    ACO_POOL_LAZY = 8        /* reclaim pages when the system needs memory (MADV_FREE), not at once (MADV_DONTNEED).
                                Cheaper if a stack is soon used again; until then the pages count as used memory */
};

/* Makes a pool. The caller owns it. `options` is copied. Any thread. Returns the pool; on error NULL with errno EINVAL
 * (unknown flags, or flags that exclude each other; region_size or idle_ms out of bounds; a reserved field that is not
 * 0), ENOMEM. */
ACO_API aco_pool_t *aco_pool_new(const aco_pool_options_t *options);

/* Destroys the pool and releases its memory. Any thread, but no other may use the pool meanwhile. Returns 0; on error
 * -1, with the pool as it was and errno EINVAL (NULL), EBUSY (a stack is in use: destroy every coroutine of the pool
 * first). */
ACO_API int aco_pool_destroy(aco_pool_t *pool);

/* Releases the pages of all idle stacks, and regions without a stack in use. For the default pool (NULL) it also
 * releases what the calling thread caches. Any thread. Returns how many stacks lost their pages. */
ACO_API size_t aco_pool_trim(aco_pool_t *pool);

typedef struct aco_pool_stats_s {
    size_t reserved;  /* bytes of address space */
    size_t regions;   /* mappings that hold them */
    size_t in_use;    /* stacks in use; in the default pool also those that threads cache */
    size_t idle;      /* idle stacks with their pages */
    size_t empty;     /* idle stacks without pages */
    size_t canaries;  /* stacks without a guard page, in use or not */
    size_t reclaimed; /* how often the pool gave an idle stack's pages back */
} aco_pool_stats_t;

/* Stores the statistics of `pool`; NULL is the default pool. Any thread. Returns 0; on error -1 with errno EINVAL
 * (`stats` is NULL). */
ACO_API int aco_pool_stats(aco_pool_t *pool, aco_pool_stats_t *stats);

/* ---- How deep a stack went --------------------------------------------------------------------------------------- */

/* Returns how many bytes of its private stack `co` has touched since the stack was last reclaimed; a previous user of
 * the stack counts too. It counts from the top down to the deepest page in memory, so up to a page too much. It does
 * not count pages that the system swapped out. What shares a page with the canary counts once the page above does.
 * Under ACO_POOL_LAZY it counts reclaimed pages until the system takes them. Any thread, while nobody destroys `co`.
 * On error -1 with errno EINVAL (NULL, a main coroutine object, on `stack_memory`, on a share stack: there
 * save_stack.max_cpsz says what was copied), ESRCH (destroyed). */
ACO_API ptrdiff_t aco_stack_high_water(const aco_t *co);

/* Releases the whole pages of a private stack that lie below the frames of `co`. `co` must be suspended, new or done.
 * Only the thread that may resume `co`. Returns 0; on error -1 with errno EINVAL (NULL, a main coroutine object, on a
 * share stack or `stack_memory`), ESRCH (destroyed), EBUSY (running, resuming another one, or suspended in a
 * generator's body), EPERM (a task of another thread). */
ACO_API int aco_stack_trim(aco_t *co);

/* ---- Measuring by entry function --------------------------------------------------------------------------------- */

/* Switches measuring on (`on` is not 0) or off for coroutines and tasks that the calling thread makes from now on. It
 * is for finding sizes, not for production: each measured coroutine starts on a stack without pages, so that its depth
 * is its own, and each resume of it takes the slow path. If a coroutine that is not measured switches by aco_yield_to()
 * to a measured one, the next switch away from the measured one is not counted. Returns 0. */
ACO_API int aco_stack_measure(int on);

typedef enum aco_stack_advice_e {
    ACO_STACK_AS_IT_IS,
    ACO_STACK_BETTER_SHARED,  /* share stacks would save at least 1 MiB, and copy at most 1000 bytes per switch */
    ACO_STACK_BETTER_PRIVATE  /* share stacks copy more than 1000 bytes per switch, or save less than 1 MiB */
} aco_stack_advice_t;

/* What was measured of all coroutines with one entry function, on private stacks or on share stacks. */
typedef struct aco_stack_usage_s {
    void (*entry)(void);   /* the entry function, cast */
    const char *name;      /* the name of the last one that ended with a name, or "" */
    int is_private;
    size_t made, most_alive;
    size_t stack_size;     /* the largest of their stacks */
    size_t deepest;        /* private: most bytes that one touched, in pages. Counts those that have ended or were
                              destroyed */
    size_t mean_depth;     /* the same on average */
    size_t switches;       /* how often they were suspended, except in a generator's body */
    size_t most_live;      /* most bytes from stack pointer to top when suspended: what a save area must hold */
    size_t mean_live;      /* the same on average: what a switch on a share stack copies */
    size_t bytes;          /* average memory of one: block, and pages or save area. An estimate until one has ended */
    size_t other_bytes;    /* the same, if it ran on the other kind of stack */
    aco_stack_advice_t advice;
} aco_stack_usage_t;

/* Calls visit(usage, arg) for each entry function measured so far, in the order in which they were first measured, on
 * the caller's stack and without a lock. `usage` is valid during the call. Any thread. If `visit` returns something
 * other than 0, stops and returns that; else returns 0. On error -1 with errno EINVAL (`visit` is NULL). */
ACO_API int aco_stack_usage(int (*visit)(const aco_stack_usage_t *usage, void *arg), void *arg);

/* Prints what aco_stack_usage() tells as a table. Any thread. Returns 0; on error -1 with errno EINVAL (NULL), or the
 * errno of fprintf(). */
ACO_API int aco_stack_report(FILE *to);

ACO__END_C

#endif
