/* Random schedules on several pools of private stacks, against a model of their counts; and both processes after a
 * fork(). Arguments: seed, steps. */
#define _GNU_SOURCE
#include "pools.h"

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

static uint32_t below(uint32_t n)
{
    return next_random(&random_state) % n;
}

/* A frame whose contents must be the same after all that happens while it is suspended. No libc here: its lazy binding
 * alone needs more than half a small stack. */
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
    how.stack_size = !l->pool && below(2) ? (size_t)ACO__PRIVATE_SIZE : sz;
    a->class = log > LARGEST_LOG ? -1 : log - SMALLEST_LOG;
    if (how.stack_size == ACO__PRIVATE_SIZE)
        a->class = __builtin_ctz(ACO__PRIVATE_SIZE) - SMALLEST_LOG;
    prepare(a, how.stack_size);
    a->from = l;
    a->co = aco_new(acts, a, how.stack_size == ACO__PRIVATE_SIZE && !l->pool ? NULL : &how);
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
    static const aco_pool_options_t o[POOLS] = {
        {0},
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

/* Promise: whatever happens to other stacks, and to the unused pages of its own, a stack keeps its contents; two never
 * overlap; the numbers of aco_pool_stats() are those of a model. */
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

int main(int argc, char **argv)
{
    uint32_t seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    unsigned long steps = argc > 2 ? strtoul(argv[2], NULL, 10) : SANITIZED ? 6000 : 60000;
    page = (size_t)sysconf(_SC_PAGESIZE);
    forked();
    random_schedule(seed, steps);
    return check_result("pool_model");
}
