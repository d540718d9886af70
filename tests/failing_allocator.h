/* An allocator (aco_set_allocator()) whose requests fail when fails() says so: the including file has that before. */
#ifndef FAILING_ALLOCATOR_H
#define FAILING_ALLOCATOR_H

#include "map_aligned.h"

#include <stdlib.h>
#include <sys/mman.h>

static void *map(size_t sz, size_t align, void *ctx)
{
    (void)ctx;
    return fails() ? NULL : map_aligned(sz, align);
}

static void unmap(void *p, size_t sz, void *ctx)
{
    (void)ctx;
    munmap(p, sz);
}

static void *allocate(size_t sz, void *ctx)
{
    (void)ctx;
    return fails() ? NULL : malloc(sz);
}

static void release(void *p, size_t sz, void *ctx)
{
    (void)ctx, (void)sz;
    free(p);
}

#endif
