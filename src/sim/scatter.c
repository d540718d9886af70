/* Other memory addresses for a seed's repetition. A run that allocates what the one before it did gets the same
 * addresses, so a program that reads them would seem to repeat.
 *
 * Allocators hand out first what was freed last. So blocks of many sizes are freed in random order, of malloc() and of
 * the library's heap, and coroutines with their stacks. Blocks between them are kept: free neighbours would become one
 * block, and an empty slab begins anew. */
#include "sim/world.h"
#include "sim/draw.h"

#include "base/invariants.h"

#include "aco/detail/for_libraries.h"
#include "aco/sim.h"

#include <errno.h>
#include <stdlib.h>

enum {
    BLOCKS = 128,
    STEP = 16, STEPS = 16, /* sizes of the library's heap: each has a slab */
    DOUBLINGS = 8,         /* of malloc()'s */
    COROUTINES = 4         /* ThreadSanitizer takes 1.5 ms for each */
};

typedef struct block {
    void *p;
    size_t sz; /* of the library's heap; 0: malloc()'s */
} block_t;

static block_t kept_blocks[BLOCKS], freed[BLOCKS];

static void allocate(block_t *block, uint64_t *draws, int number)
{
    block->sz = 0;
    if (number % 2) {
        block->sz = (size_t)STEP * (size_t)(1 + number / 2 % STEPS);
        block->p = aco__service_allocate(&block->sz, "aco_sim_run");
    } else {
        block->p = malloc(1 + (size_t)aco__draw_below(draws, (uint64_t)STEP << aco__draw_below(draws, DOUBLINGS)));
    }
}

static void release(const block_t *block)
{
    if (!block->p)
        return;
    if (block->sz)
        aco__service_free(block->p, block->sz);
    else
        free(block->p);
}

static void scatter_blocks(uint64_t *draws)
{
    for (int i = 0; i < BLOCKS; i++) {
        allocate(&freed[i], draws, i);
        allocate(&kept_blocks[i], draws, i);
    }
    for (size_t n = BLOCKS; n > 0; n--) {
        size_t at = (size_t)aco__draw_below(draws, n);
        release(&freed[at]);
        freed[at] = freed[n - 1];
    }
}

static void *never_run(void *arg)
{
    return arg;
}

/* None is kept: the scenario might count them. */
static void scatter_coroutines(uint64_t *draws)
{
    aco_t *made[COROUTINES];
    size_t n = 0;
    while (n < COROUTINES && (made[n] = aco_new(never_run, NULL, NULL)) != NULL)
        n++;
    for (; n > 0; n--) {
        size_t at = (size_t)aco__draw_below(draws, n);
        aco_destroy(made[at]);
        made[at] = made[n - 1];
    }
}

void aco__scatter_begin(uint64_t seed)
{
    uint64_t draws = aco__mix(seed);
    ACO__ASSERT(!kept_blocks[0].p && !aco_sim_current());
    scatter_blocks(&draws);
    scatter_coroutines(&draws);
}

void aco__scatter_end(void)
{
    int error = errno;
    for (int i = 0; i < BLOCKS; i++) {
        release(&kept_blocks[i]);
        kept_blocks[i].p = NULL;
    }
    errno = error;
}
