/* Private stacks: the pools that they come from, how deep they went, and what that says about their sizes.
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
 * A pool reserves address space in large regions and carves them into stacks of one size each: powers of two from 4 KiB (or the
 * page size) to 8 MiB; what is asked is rounded up. Memory is committed by the page, as a stack touches it. Coroutines, tasks
 * and generators that name no pool use the process's default one; it needs no preparation and is never destroyed. Larger
 * stacks, those with ACO_NO_GUARD and those of a program with an allocator of its own (aco_set_allocator()) are mapped one by
 * one, outside every pool: no limit applies to them, no statistic counts them, and aco_pool_destroy() does not wait for them.
 *
 * Guards. Below each stack is a page that nobody may access. Linux 6.13 and later marks it in the page tables, at no
 * further cost; an older kernel needs two mappings for each stack, so the pool stops when the guards have taken seven eighths
 * of what vm.max_map_count allows. Stacks made after that have a canary instead, in a page of its own: 64 bytes that are
 * compared when the coroutine ends, when it is destroyed and, in debug builds, at every yield; an overflow found there aborts.
 * ACO_POOL_MUST_GUARD refuses such a stack instead.
 *
 * Reuse. The stack that became idle last is used first: its pages are warm. Before the default pool come, for the
 * default size, up to 64 coroutines that each thread keeps with their stacks. Memory stays with the NUMA node of the thread
 * that touched it first.
 *
 * Reclaim. An idle stack's pages go back to the system, those of the coldest stack first,
 *   - by pressure: at once, when more than `idle_stacks` of its size are idle with their pages;
 *   - by time: when it has been idle for `idle_ms`, as somebody next gives a stack of that size back, at most eight at a time;
 *   - by request: aco_pool_trim().
 * Of a stack in use the pages that its coroutine no longer needs, since it went deep once and is suspended higher up, go back by
 * request, aco_stack_trim(), and for tasks by time: before aco_run() waits, having nobody to run, it looks at 64 of them, or at
 * 1024 if it is going to wait for more than 100 ms, but not twice in 100 ms.
 * The addresses stay reserved, but aco_pool_trim() gives up regions without a stack in use. What it costs: docs/memory.md. */
#ifndef ACO_POOL_H
#define ACO_POOL_H

#include "../aco.h"

ACO__BEGIN_C

/* Zero in a field, and NULL for the whole, stands for the default. */
typedef struct aco_pool_options_s {
    size_t region_size;  /* bytes of address space to reserve at a time; rounded so that it holds whole stacks, at least one. 0:
                            4 MiB first, then twice as much each time, up to 1 GiB (16 MiB where addresses have 32 bits) */
    size_t most_stacks;  /* that may be in use at a time: more are refused with EAGAIN. 0: no limit */
    size_t idle_stacks;  /* of each size, that keep their pages; 0: 4096 */
    unsigned idle_ms;    /* how long they keep them, in milliseconds, up to INT32_MAX; 0: 1000 */
    unsigned flags;      /* ACO_POOL_MPROTECT, … or'ed */
    void *aco__reserved[4]; /* reserved fields are 0 */
} aco_pool_options_t;

enum {
    ACO_POOL_MPROTECT = 1,   /* guards that are mappings, even where the kernel can do better */
    ACO_POOL_CANARIES = 2,   /* canaries instead of guards; excludes ACO_POOL_MPROTECT and ACO_POOL_MUST_GUARD */
    ACO_POOL_MUST_GUARD = 4, /* a stack that cannot have a guard is refused: EAGAIN where vm.max_map_count is the reason */
    ACO_POOL_LAZY = 8        /* reclaimed pages are taken when the system needs memory (MADV_FREE), not at once (MADV_DONTNEED):
                                cheaper when they are soon used again, but they count as used until then */
};

/* A new pool. The caller owns it. NULL and errno: EINVAL (an option out of bounds), ENOMEM. Any thread. */
ACO_API aco_pool_t *aco_pool_new(const aco_pool_options_t *options);

/* Gives everything back. 0, or -1 and errno: EINVAL (NULL), EBUSY (a stack is in use: every coroutine of the pool must have been
 * destroyed first). No other thread may use the pool. */
ACO_API int aco_pool_destroy(aco_pool_t *pool);

/* Gives the pages of all idle stacks back, and regions without a stack in use; of the default pool (NULL) also what the calling
 * thread keeps. Returns how many stacks lost their pages. Any thread. */
ACO_API size_t aco_pool_trim(aco_pool_t *pool);

typedef struct aco_pool_stats_s {
    size_t reserved;  /* bytes of address space */
    size_t regions;   /* the mappings that they are in */
    size_t in_use;    /* stacks; of the default pool, those that threads keep included */
    size_t idle;      /* idle stacks with their pages */
    size_t empty;     /* idle stacks without */
    size_t canaries;  /* stacks without a guard page, in use or not */
    size_t reclaimed; /* how often a stack's pages were given back */
} aco_pool_stats_t;

/* 0, or -1 and errno EINVAL (`stats` is NULL). NULL: the default pool. Any thread. */
ACO_API int aco_pool_stats(aco_pool_t *pool, aco_pool_stats_t *stats);

/* ---- How deep a stack went --------------------------------------------------------------------------------------------- */

/* How many bytes of its private stack `co`, or who had the stack before, has touched since the stack was last reclaimed:
 * from the top down to the deepest page that is in memory, so up to a page too much. A page that the system swapped out does not
 * count, and one reclaimed under ACO_POOL_LAZY does until the system takes it; nor does the one that a canary is in. -1 and
 * errno: EINVAL (NULL, a main coroutine, on a share stack: its save_stack.max_cpsz says what was copied), ESRCH (destroyed).
 * Any thread. */
ACO_API ptrdiff_t aco_stack_high_water(const aco_t *co);

/* Gives back the whole pages of its private stack that lie below the frames of `co`, which is suspended, new or done. 0, or -1
 * and errno: EINVAL (NULL, a main coroutine, on a share stack), ESRCH (destroyed), EBUSY (running, resuming another, or
 * suspended in a generator's body), EPERM (a task of another thread). The thread that may resume `co`. */
ACO_API int aco_stack_trim(aco_t *co);

/* ---- Measuring by entry function --------------------------------------------------------------------------------------- */

/* Switches measuring on (1) or off (0) for coroutines and tasks that the calling thread makes from now on. They are slower:
 * each starts on a stack without pages, so that its depth is its own, and each switch is counted off the fast path. It is for
 * finding sizes, not for production. When one that is not measured switches by aco_yield_to() to a measured one, leaving the
 * latter is not counted. Always 0. */
ACO_API int aco_stack_measure(int on);

typedef enum aco_stack_advice_e {
    ACO_STACK_AS_IT_IS,
    ACO_STACK_BETTER_SHARED,  /* a share stack would save at least 1 MiB, and a switch would copy at most 1000 bytes on average */
    ACO_STACK_BETTER_PRIVATE  /* a switch copies more than 1000 bytes on average, or a share stack saves less than 1 MiB */
} aco_stack_advice_t;

/* What was measured of one entry function's coroutines, on private stacks or on share stacks. */
typedef struct aco_stack_usage_s {
    void (*entry)(void);   /* the entry function, cast */
    const char *name;      /* of the last of them that has one, or "" */
    int is_private;
    size_t made, most_alive;
    size_t stack_size;     /* the largest of theirs */
    size_t deepest;        /* private: the most that one touched, in bytes, by the page; of those that ended or were destroyed */
    size_t mean_depth;     /* likewise, on average */
    size_t switches;       /* how often they were left, but not in a generator's body */
    size_t most_live;      /* bytes from the stack pointer to the top when they were left, at most: what a share stack keeps */
    size_t mean_live;      /* and on average: what a share stack copies */
    size_t bytes;          /* memory of one of them, on average: block, and pages or save area; estimated until one has ended */
    size_t other_bytes;    /* what it would be on the other kind of stack */
    aco_stack_advice_t advice;
} aco_stack_usage_t;

/* Calls visit(usage, arg) for each entry function measured so far, in the order in which they came; stops when it returns other
 * than 0, and returns that; else 0. `usage` is good during the call. -1 and errno EINVAL: `visit` is NULL. Any thread. */
ACO_API int aco_stack_usage(int (*visit)(const aco_stack_usage_t *usage, void *arg), void *arg);

/* Prints it as a table. 0, or -1 and errno: EINVAL (NULL), or as fprintf(). */
ACO_API int aco_stack_report(FILE *to);

ACO__END_C

#endif
