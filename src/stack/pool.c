/* Pools of private stacks.
 *
 * A region is one mapping for stacks of one size:
 *   | region_t, slot_t each | guard | stack ... | head page | guard | stack ... | head page | ... never used |
 *                                                                                            ^ slot number `fresh`
 *
 * A slot's number determines the address of its stack. A slot that is not in use is on one of the two lists of its
 * class: `idle` if its stack still has its pages, the last released first, or `empty` if not. The record in the head
 * page is only valid while the slot is in use. */
#include "base/reserved.h"
#include "os/clock.h"
#include "stack/stack.h"

#include "aco/pool.h"

#include <string.h>

enum {
    SMALLEST_LOG = 12, /* 4 KiB, */
    LARGEST_LOG = 23,  /* 8 MiB */
    SIZES = LARGEST_LOG - SMALLEST_LOG + 1,
    IDLE_STACKS = 4096,
    IDLE_MS = 1000,
    MOST_SLOTS = 1 << 29, /* in one region */
    BATCH = 8, /* stacks that are reclaimed at once, */
    IDLE_BATCH = 32, /* and by an idle scheduler */
    GUARDS_AHEAD = 32, /* guards that are set at once in a region; saves a fifth of the time for each stack */
    FIRST_REGION = 4 << 20,
    LARGEST_REGION = sizeof(void *) > 4 ? 1 << 30 : 16 << 20,
    KNOWN_FLAGS = ACO_POOL_MPROTECT | ACO_POOL_CANARIES | ACO_POOL_MUST_GUARD | ACO_POOL_LAZY
};

enum { NO_GUARD, GUARD_IN_TABLES, GUARD_MAPPING };

typedef struct slot {
    struct slot *next, *before; /* in a list */
    uint32_t number : 30, guard : 2; /* guard: NO_GUARD, … */
    uint32_t idle_since; /* milliseconds */
} slot_t;

typedef struct class {
    struct aco__region *regions; /* the newest first; only that one may have fresh slots */
    slot_t idle, empty;          /* heads of circular lists */
    size_t idle_count, empty_count;
    size_t size;                 /* of one stack */
    size_t next_region;          /* bytes */
} class_t;

struct aco_pool_s {
    aco_pool_options_t options;
    class_t classes[SIZES];
    size_t in_use, reserved, regions, canaries, reclaimed;
    aco_pool_t *next_crowded;
    int is_crowded;
};

typedef struct aco__region {
    aco_pool_t *pool;
    class_t *class;
    struct aco__region *next;
    char *stacks;    /* address of the first slot's guard */
    size_t map_sz;
    uint32_t slots, fresh;
    uint32_t used;   /* slots in use or about to be reclaimed */
    uint32_t guarded; /* slots below this one got their guards ahead of use */
    slot_t slot[];
} region_t;

/* The process lock protects the lists of all pools. Threads come here seldom, because they cache stacks of the default
 * size. Code that frees pages or sets a single guard does not hold the lock; the stack is then on no list. */
static aco_pool_t default_pool;
static size_t guard_mappings; /* guards of all pools that are mappings of their own */
aco_pool_t *aco__crowded_pools;

/* ---- Lists ---- */

static void list_init(slot_t *list)
{
    list->next = list->before = list;
}

static void push(slot_t *list, slot_t *slot)
{
    ACO__ASSERT(list->next->before == list && list->before->next == list);
    slot->next = list->next;
    slot->before = list;
    list->next->before = slot;
    list->next = slot;
}

static slot_t *unlink_slot(slot_t *slot)
{
    ACO__ASSERT(slot->before->next == slot && slot->next->before == slot);
    slot->before->next = slot->next;
    slot->next->before = slot->before;
    return slot;
}

/* ---- Addresses and sizes ---- */

static region_t *region_of(slot_t *slot)
{
    region_t *region = (region_t *)(void *)((char *)(slot - slot->number) - offsetof(region_t, slot));
    ACO__ASSERT(slot->number < region->slots);
    ACO__ASSERT(region->class >= region->pool->classes && region->class < region->pool->classes + SIZES);
    return region;
}

static size_t head_size(void)
{
    size_t page = aco__os_page_size();
    return page < ACO__HEAD ? (size_t)ACO__HEAD : page;
}

static size_t stride(const class_t *class)
{
    return aco__os_page_size() + class->size + head_size();
}

/* The guard page's address. */
static char *map_of(slot_t *slot)
{
    region_t *region = region_of(slot);
    return region->stacks + slot->number * stride(region->class);
}

static size_t header_size(size_t slots)
{
    return aco__round_up(offsetof(region_t, slot) + slots * sizeof(slot_t), aco__os_page_size());
}

/* ---- Pools ---- */

static void pool_init(aco_pool_t *pool, const aco_pool_options_t *options)
{
    pool->options = *options;
    if (!pool->options.idle_stacks)
        pool->options.idle_stacks = IDLE_STACKS;
    if (!pool->options.idle_ms)
        pool->options.idle_ms = IDLE_MS;
    for (int i = 0; i < SIZES; i++) {
        class_t *class = &pool->classes[i];
        list_init(&class->idle);
        list_init(&class->empty);
        class->size = (size_t)1 << (SMALLEST_LOG + i);
        class->next_region = options->region_size ? options->region_size : (size_t)FIRST_REGION;
    }
}

/* The pool; for NULL the default pool. */
static aco_pool_t *pool_of(aco_pool_t *pool)
{
    static const aco_pool_options_t defaults;
    ACO__ASSERT_LOCKED(&aco__process_lock);
    if (pool)
        return pool;
    if (!default_pool.classes[0].size)
        pool_init(&default_pool, &defaults);
    return &default_pool;
}

static int check_pool_options(const aco_pool_options_t *o)
{
    static const char call[] = "aco_pool_new";
    if (ACO__RESERVED_IS_SET(o))
        return aco__fail(0, EINVAL, call, NULL, "a reserved option is not 0");
    if (o->flags & ~(unsigned)KNOWN_FLAGS)
        return aco__fail(0, EINVAL, call, NULL, "unknown flags");
    if ((o->flags & ACO_POOL_CANARIES) && (o->flags & (ACO_POOL_MUST_GUARD | ACO_POOL_MPROTECT)))
        return aco__fail(0, EINVAL, call, NULL, "ACO_POOL_CANARIES excludes ACO_POOL_MUST_GUARD and ACO_POOL_MPROTECT");
    if (o->region_size > SIZE_MAX / 4)
        return aco__fail(0, EINVAL, call, NULL, "region_size is out of bounds");
    if (o->idle_ms > INT32_MAX)
        return aco__fail(0, EINVAL, call, NULL, "idle_ms is out of bounds");
    return 0;
}

aco_pool_t *aco_pool_new(const aco_pool_options_t *options)
{
    static const aco_pool_options_t defaults;
    const aco_pool_options_t *o = options ? options : &defaults;
    aco_pool_t *pool;
    if (check_pool_options(o) != 0)
        return NULL;
    pool = aco__allocate(sizeof *pool);
    if (!pool) {
        aco__fail_memory(0, "aco_pool_new", sizeof *pool);
        return NULL;
    }
    memset(pool, 0, sizeof *pool);
    pool_init(pool, o);
    return pool;
}

/* ---- Regions ---- */

/* Prepends a new region to the class's list, a smaller one if the system does not have so much memory. 0, or -1 and
 * errno. */
static int region_new(aco_pool_t *pool, class_t *class)
{
    size_t step = stride(class), slots = class->next_region / step, map_sz;
    region_t *region;
    slots = slots ? slots : 1;
    slots = slots > MOST_SLOTS ? MOST_SLOTS : slots;
    while (!(region = aco__map(map_sz = header_size(slots) + slots * step)))
        if ((errno != ENOMEM && errno != EAGAIN) || (slots /= 2) == 0)
            return -1;
    aco__os_large_pages(region, map_sz, 0); /* one access to a large page would use the memory of eight stacks */
    region->pool = pool;
    region->class = class;
    region->stacks = (char *)region + header_size(slots);
    region->map_sz = map_sz;
    region->slots = (uint32_t)slots;
    region->next = class->regions;
    class->regions = region;
    if (!pool->options.region_size && class->next_region < LARGEST_REGION)
        class->next_region *= 2;
    pool->reserved += map_sz;
    pool->regions++;
    return 0;
}

/* Frees a region. All its slots must be empty or fresh. `link` points to the pointer to it. */
static void region_free(region_t **link)
{
    region_t *region = *link;
    aco_pool_t *pool = region->pool;
    ACO__ASSERT_LOCKED(&aco__process_lock);
    ACO__ASSERT(!region->used && region->class->empty_count >= region->fresh);
    ACO__ASSERT(pool->regions && pool->reserved >= region->map_sz);
    *link = region->next;
    for (uint32_t i = 0; i < region->fresh; i++) {
        unlink_slot(&region->slot[i]);
        pool->canaries -= region->slot[i].guard == NO_GUARD;
        guard_mappings -= region->slot[i].guard == GUARD_MAPPING;
    }
    region->class->empty_count -= region->fresh;
    pool->reserved -= region->map_sz;
    pool->regions--;
    aco__unmap(region, region->map_sz);
}

/* ---- Guards ---- */

/* Whether the process may have one more guard that is a mapping. */
static int may_map_guard(const aco_pool_t *pool)
{
    static size_t most;
    ACO__ASSERT_LOCKED(&aco__process_lock);
    if (!most) /* each guard costs two mappings; the last eighth of the limit is for others */
        most = aco__os_mapping_limit() / 16 * 7;
    return (pool->options.flags & ACO_POOL_MUST_GUARD) || guard_mappings < most;
}

/* Guards a page and returns how. -1 and errno if the pool requires a guard and none can be set. */
static int guard(const aco_pool_t *pool, char *page, int may_map)
{
    size_t sz = aco__os_page_size();
    unsigned flags = pool->options.flags;
    if (flags & ACO_POOL_CANARIES)
        return NO_GUARD;
    if (!(flags & ACO_POOL_MPROTECT) && aco__os_guard_in_tables(page, sz) == 0)
        return GUARD_IN_TABLES;
    if (may_map && aco__os_guard_mapping(page, sz) == 0)
        return GUARD_MAPPING;
    return flags & ACO_POOL_MUST_GUARD ? -1 : NO_GUARD;
}

/* Guards some fresh slots with one system call: as many as the region has used so far, so that few guards are set in
 * vain. */
static void guard_ahead(const aco_pool_t *pool, region_t *region)
{
    uint32_t n = region->fresh < GUARDS_AHEAD ? region->fresh : GUARDS_AHEAD, left = region->slots - region->fresh;
    size_t step = stride(region->class);
    ACO__ASSERT_LOCKED(&aco__process_lock);
    if (region->fresh >= region->guarded && !(pool->options.flags & (ACO_POOL_CANARIES | ACO_POOL_MPROTECT)))
        region->guarded = region->fresh +
            aco__os_guard_many_in_tables(region->stacks + region->fresh * step, aco__os_page_size(), step,
                                         n < left ? n : left);
}

/* ---- Reclaim ---- */

static uint32_t age(const slot_t *slot, uint32_t now)
{
    return now - slot->idle_since;
}

/* Takes up to `most` of the coldest idle slots off the class's list: those that have been idle for `ms` at `now`, and
 * those beyond `keep`. Returns how many. */
static int choose_cold(class_t *class, uint32_t now, uint32_t ms, size_t keep, slot_t *chosen[], int most)
{
    int n = 0;
    ACO__ASSERT_LOCKED(&aco__process_lock);
    ACO__ASSERT(!class->idle_count == (class->idle.next == &class->idle));
    while (n < most && class->idle_count && (class->idle_count > keep || age(class->idle.before, now) >= ms)) {
        chosen[n] = unlink_slot(class->idle.before);
        ACO__ASSERT(region_of(chosen[n])->class == class);
        region_of(chosen[n])->used++;
        class->idle_count--;
        n++;
    }
    return n;
}

/* Whether `b` lies next to `a`, so that one system call can discard both. */
static int are_neighbours(const slot_t *a, const slot_t *b)
{
    return (b == a + 1 || b == a - 1) && a->guard != GUARD_MAPPING && b->guard != GUARD_MAPPING;
}

static void discard_pages(const aco_pool_t *pool, const class_t *class, slot_t *chosen[], int n)
{
    size_t page = aco__os_page_size();
    for (int i = 0, end; i < n; i = end) {
        slot_t *first = chosen[i], *last = chosen[i];
        size_t skip;
        for (end = i + 1; end < n && are_neighbours(chosen[end - 1], chosen[end]); end++) {
            first = chosen[end] < first ? chosen[end] : first;
            last = chosen[end] > last ? chosen[end] : last;
        }
        skip = first->guard == NO_GUARD ? 0 : page;
        aco__os_discard(map_of(first) + skip, (size_t)(last - first + 1) * stride(class) - skip,
                        (pool->options.flags & ACO_POOL_LAZY) != 0);
    }
}

static void now_empty(aco_pool_t *pool, class_t *class, slot_t *chosen[], int n)
{
    ACO__ASSERT_LOCKED(&aco__process_lock);
    for (int i = 0; i < n; i++) {
        ACO__ASSERT(region_of(chosen[i])->used);
        region_of(chosen[i])->used--;
        push(&class->empty, chosen[i]);
    }
    class->empty_count += (size_t)n;
    pool->reclaimed += (size_t)n;
}

/* Not with the lock: this takes long. */
static void reclaim(aco_pool_t *pool, class_t *class, slot_t *chosen[], int n)
{
    ACO__ASSERT(!aco__holds(&aco__process_lock));
    discard_pages(pool, class, chosen, n);
    aco__lock();
    now_empty(pool, class, chosen, n);
    aco__unlock();
}

static size_t trim_pool(aco_pool_t *pool)
{
    size_t trimmed = 0;
    slot_t *chosen[BATCH];
    aco__lock();
    pool = pool_of(pool);
    for (class_t *class = pool->classes; class < pool->classes + SIZES; class++) {
        size_t most = class->idle_count; /* other threads may release more meanwhile */
        for (int n; most && (n = choose_cold(class, 0, 0, 0, chosen, BATCH)) > 0;) { /* of any age */
            most -= most < (size_t)n ? most : (size_t)n;
            trimmed += (size_t)n;
            aco__unlock();
            reclaim(pool, class, chosen, n);
            aco__lock();
        }
        for (region_t **link = &class->regions; *link && !class->idle_count;)
            if ((*link)->used == 0)
                region_free(link);
            else
                link = &(*link)->next;
    }
    aco__unlock();
    return trimmed;
}

/* ---- Reclaim by idle schedulers ----
 *
 * The end of a task reclaims stacks that have been idle for long, but none because too many are idle: often another
 * task uses its stack soon. So what is released while aco_run() runs makes the pool crowded, and an idle scheduler
 * reclaims it. The list of crowded pools is under the process lock. It is held meanwhile: nobody destroys a pool. */

static void note_crowded(aco_pool_t *pool, const class_t *class)
{
    ACO__ASSERT_LOCKED(&aco__process_lock);
    if (pool->is_crowded || class->idle_count <= pool->options.idle_stacks)
        return;
    pool->is_crowded = 1;
    pool->next_crowded = aco__crowded_pools;
    __atomic_store_n(&aco__crowded_pools, pool, __ATOMIC_RELAXED);
}

static void forget_crowded(aco_pool_t *pool)
{
    aco_pool_t **link = &aco__crowded_pools;
    ACO__ASSERT_LOCKED(&aco__process_lock);
    if (!pool->is_crowded)
        return;
    while (*link != pool) {
        ACO__ASSERT((*link)->is_crowded && (*link)->next_crowded); /* `pool` comes later */
        link = &(*link)->next_crowded;
    }
    __atomic_store_n(link, pool->next_crowded, __ATOMIC_RELAXED);
    pool->is_crowded = 0;
}

/* Reclaims up to IDLE_BATCH stacks of the pool, or finds that it is crowded no more. */
static size_t relieve(aco_pool_t *pool)
{
    slot_t *chosen[IDLE_BATCH];
    int n = 0;
    for (class_t *class = pool->classes; class < pool->classes + SIZES && !n; class++) {
        n = choose_cold(class, 0, UINT32_MAX, pool->options.idle_stacks, chosen, IDLE_BATCH);
        discard_pages(pool, class, chosen, n);
        now_empty(pool, class, chosen, n);
    }
    if (!n)
        forget_crowded(pool);
    return (size_t)n;
}

void aco__pools_relieve(size_t most)
{
    size_t n = 0;
    while (n < most && aco__pools_are_crowded()) {
        aco__lock();
        if (aco__crowded_pools)
            n += relieve(aco__crowded_pools);
        aco__unlock();
    }
}

size_t aco_pool_trim(aco_pool_t *pool)
{
    aco__reap(aco__self());
    if (!pool)
        ACO__UPCALL(cache_free, (aco__self()));
    return trim_pool(pool);
}

#ifdef _WIN32
static void pools_end(void)
{
    trim_pool(NULL);
}

ACO__AT_LOAD static void register_pools_end(void)
{
    aco__upcalls.pools_end = pools_end;
}
#endif

/* ---- Acquiring and releasing ---- */

/* A slot for a stack; NULL and errno on failure. *is_new: the slot has no guard yet. */
static slot_t *acquire_slot(aco_pool_t *pool, class_t *class, int *is_new)
{
    region_t *region = class->regions;
    slot_t *slot;
    ACO__ASSERT_LOCKED(&aco__process_lock);
    ACO__ASSERT(!class->idle_count == (class->idle.next == &class->idle));
    ACO__ASSERT(!class->empty_count == (class->empty.next == &class->empty));
    *is_new = 0;
    if (pool->options.most_stacks && pool->in_use >= pool->options.most_stacks) {
        errno = EDQUOT;
        return NULL;
    }
    if (class->idle_count) {
        slot = unlink_slot(class->idle.next);
        class->idle_count--;
    } else if (class->empty_count) {
        slot = unlink_slot(class->empty.next);
        class->empty_count--;
    } else {
        if ((!region || region->fresh == region->slots) && region_new(pool, class) != 0)
            return NULL;
        region = class->regions;
        guard_ahead(pool, region);
        ACO__ASSERT(region->fresh < region->slots && region->guarded <= region->slots);
        slot = &region->slot[region->fresh];
        *is_new = region->fresh >= region->guarded;
        slot->guard = *is_new ? NO_GUARD : GUARD_IN_TABLES;
        slot->number = region->fresh++;
        pool->canaries += (size_t)*is_new;
    }
    region_of(slot)->used++;
    ACO__ASSERT(region_of(slot)->class == class && region_of(slot)->used <= region_of(slot)->fresh);
    pool->in_use++;
    return slot;
}

static void put_back_unguarded(aco_pool_t *pool, class_t *class, slot_t *slot)
{
    aco__lock();
    ACO__ASSERT(slot->guard == NO_GUARD && region_of(slot)->used && pool->in_use);
    region_of(slot)->used--;
    pool->in_use--;
    push(&class->empty, slot);
    class->empty_count++;
    aco__unlock();
}

static class_t *class_for(aco_pool_t *pool, size_t sz)
{
    size_t least = aco__os_page_size();
    unsigned log;
    sz = sz < least ? least : sz;
    log = sz <= (size_t)1 << SMALLEST_LOG ? SMALLEST_LOG
                                          : (unsigned)(sizeof(long) * 8) - (unsigned)__builtin_clzl(sz - 1);
    return &pool->classes[log - SMALLEST_LOG];
}

int aco__pool_has(size_t sz)
{
    return sz <= (size_t)1 << LARGEST_LOG && aco__map_is_ours();
}

aco_share_stack_t *aco__pool_acquire(aco_pool_t *given, size_t sz)
{
    aco_pool_t *pool;
    class_t *class;
    slot_t *slot;
    aco_share_stack_t *stack;
    int is_new, may_map;
    aco__lock();
    pool = pool_of(given);
    class = class_for(pool, sz);
    slot = acquire_slot(pool, class, &is_new);
    may_map = slot && slot->guard == NO_GUARD && may_map_guard(pool);
    aco__unlock();
    if (!slot)
        return NULL;
    if (is_new || (slot->guard == NO_GUARD && (pool->options.flags & ACO_POOL_MUST_GUARD))) {
        int how = guard(pool, map_of(slot), may_map);
        if (how < 0) {
            int error = errno;
            put_back_unguarded(pool, class, slot);
            errno = error;
            return NULL;
        }
        if (how != NO_GUARD) {
            slot->guard = (unsigned)how & 3;
            aco__lock();
            ACO__ASSERT(pool->canaries);
            pool->canaries--;
            guard_mappings += how == GUARD_MAPPING;
            aco__unlock();
        }
    }
    stack = aco__stack_lay_out(map_of(slot), aco__os_page_size(), class->size, slot->number, slot->guard != NO_GUARD);
    stack->aco__map_sz = stride(class);
    stack->aco__region = region_of(slot);
    stack->aco__cacheable = pool == &default_pool && class->size == ACO__PRIVATE_SIZE;
    return stack;
}

void aco__pool_release(aco_share_stack_t *stack)
{
    region_t *region = stack->aco__region;
    aco_pool_t *pool = region->pool;
    class_t *class = region->class;
    slot_t *slot = &region->slot[(size_t)((char *)stack->aco__map - region->stacks) / stride(class)], *chosen[BATCH];
    const struct aco__scheduler *scheduler = aco__self()->scheduler;
    int runs = scheduler && scheduler->is_running, n;
    uint32_t now;
    ACO__ASSERT(slot < region->slot + region->slots && slot->number == (uint32_t)(slot - region->slot));
    ACO__ASSERT(map_of(slot) == stack->aco__map && stack->aco__map_sz == stride(class));
    aco__lock();
    ACO__ASSERT(region->used && pool->in_use && slot->number < region->fresh);
    slot->idle_since = now = aco__os_milliseconds();
    region->used--;
    pool->in_use--;
    push(&class->idle, slot);
    class->idle_count++;
    n = choose_cold(class, now, pool->options.idle_ms, runs ? SIZE_MAX : pool->options.idle_stacks, chosen, BATCH);
    if (runs)
        note_crowded(pool, class);
    aco__unlock();
    if (n)
        reclaim(pool, class, chosen, n);
}

int aco_pool_destroy(aco_pool_t *pool)
{
    size_t in_use;
    if (!pool)
        return aco__fail(0, EINVAL, "aco_pool_destroy", NULL, "the pool is NULL");
    aco__reap(aco__self());
    aco__lock();
    in_use = pool->in_use;
    aco__unlock();
    if (in_use)
        return aco__fail(0, EBUSY, "aco_pool_destroy", NULL, "%zu of its stacks are in use", in_use);
    aco_pool_trim(pool);
    aco__lock();
    ACO__ASSERT(!pool->regions && !pool->reserved && !pool->canaries);
    forget_crowded(pool);
    aco__unlock();
    aco__release(pool, sizeof *pool);
    return 0;
}

int aco_pool_stats(aco_pool_t *pool, aco_pool_stats_t *stats)
{
    if (!stats)
        return aco__fail(0, EINVAL, "aco_pool_stats", NULL, "the result pointer is NULL");
    memset(stats, 0, sizeof *stats);
    aco__reap(aco__self());
    aco__lock();
    pool = pool_of(pool);
    stats->reserved = pool->reserved;
    stats->regions = pool->regions;
    stats->in_use = pool->in_use;
    stats->canaries = pool->canaries;
    stats->reclaimed = pool->reclaimed;
    for (const class_t *class = pool->classes; class < pool->classes + SIZES; class++) {
        stats->idle += class->idle_count;
        stats->empty += class->empty_count;
    }
    aco__unlock();
    return 0;
}
