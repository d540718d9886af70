/* The depot of a thread: what does not fit into its cache of coroutines, in magazines of a full cache each (J. Bonwick
 * and J. Adams, "Magazines and Vmem", USENIX 2001). A cache that is full goes there as a whole, and one that is empty
 * is filled from there, both in a few stores. So programs that end and begin hundreds of coroutines in turn reuse all
 * of them. The thread frees magazines that it has not needed for a while: when it uses the depot, and before it sleeps;
 * so with a depot it does not sleep for long. It also frees them before a call fails for lack of memory.
 *
 * A magazine is a list, linked like the cache. The `arg` of its first coroutine is the next magazine. */
#include "base/invariants.h"
#include "coroutine/depot.h"
#include "os/clock.h"
#include "stack/stack.h"

enum {
    MOST_MAGAZINES = 15,
    TRIM_MS = 100 /* the least time between two trims while the thread uses the depot */
};

static void push_magazine(aco__thread_t *self, aco_t *magazine)
{
    magazine->arg = self->depot;
    self->depot = magazine;
    self->depot_count++;
}

static aco_t *pop_magazine(aco__thread_t *self)
{
    aco_t *magazine = self->depot;
    ACO__ASSERT(self->depot_count && aco__status(magazine) == ACO__DESTROYED);
    self->depot = magazine->arg;
    if (--self->depot_count < self->depot_low)
        self->depot_low = self->depot_count;
    return magazine;
}

/* Removes the magazine that was used last the longest ago. */
static aco_t *pop_coldest(aco__thread_t *self)
{
    aco_t *before = NULL, *coldest = self->depot;
    while (coldest->arg) {
        before = coldest;
        coldest = coldest->arg;
    }
    if (!before)
        return pop_magazine(self);
    before->arg = NULL;
    self->depot_count--;
    return coldest;
}

static void free_magazine(aco_t *co)
{
    while (co) {
        aco_t *next = aco__cached_next(co);
        aco_share_stack_t *stack = co->share_stack;
        ACO__ASSERT(aco__status(co) == ACO__DESTROYED && stack->owner == co);
        aco__block_free(co);
        aco__stack_free(stack);
        co = next;
    }
}

void aco__depot_trim(aco__thread_t *self, int all)
{
    unsigned unneeded = self->depot_low;
    ACO__ASSERT(unneeded <= self->depot_count);
    for (; unneeded; unneeded = all ? unneeded - 1 : 0)
        free_magazine(pop_coldest(self));
    self->depot_low = self->depot_count;
    self->depot_trimmed_at = aco__os_milliseconds();
}

static inline void trim_at_times(aco__thread_t *self)
{
    if (aco_unlikely(aco__os_milliseconds() - self->depot_trimmed_at >= TRIM_MS))
        aco__depot_trim(self, 0);
}

int aco__depot_put(aco__thread_t *self, aco_t *co)
{
    if (!self->cached || self->cached_room > 0 || !aco__is_cacheable(self, co) ||
        self->depot_count == MOST_MAGAZINES)
        return 0;
    push_magazine(self, self->cached);
    self->cached = NULL;
    self->cached_room = ACO__MOST_CACHED;
    trim_at_times(self);
    return aco__cache_put(self, co);
}

int aco__depot_refill(aco__thread_t *self)
{
    ACO__ASSERT(!self->cached);
    if (!self->depot)
        return 0;
    self->cached = pop_magazine(self);
    self->cached_room = 0;
    trim_at_times(self);
    return 1;
}
