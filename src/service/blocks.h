/* Memory that lives as long as its owner: blocks in a list, which are freed together. */
#ifndef ACO_BLOCKS_H
#define ACO_BLOCKS_H

#include "os/platform.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>

typedef struct aco__block {
    struct aco__block *next;
    size_t sz; /* of all of it */
} aco__block_t;

/* At least `n` bytes in a new block, which becomes the first one. NULL and errno. */
static inline void *aco__block_new(aco__block_t **blocks, size_t n, const char *call)
{
    size_t sz = n + sizeof(aco__block_t);
    aco__block_t *block = NULL;
    if (n < SIZE_MAX / 2)
        block = aco__service_allocate(&sz, call);
    else
        (void)aco__service_fail(ENOMEM, call, "more bytes than there can be");
    if (!block)
        return NULL;
    block->next = *blocks;
    block->sz = sz;
    *blocks = block;
    return block + 1;
}

static inline void aco__blocks_free(aco__block_t **blocks)
{
    while (*blocks) {
        aco__block_t *block = *blocks;
        *blocks = block->next;
        aco__service_free(block, block->sz);
    }
}

#endif
