/* Memory for the tests' allocators (aco_set_allocator()). */
#ifndef MAP_ALIGNED_H
#define MAP_ALIGNED_H

#include "lacking.h"

#include <stdint.h>

/* `sz` bytes at a multiple of `align`, both whole pages; NULL where there is no memory. munmap() takes them back. */
static inline void *map_aligned(size_t sz, size_t align)
{
    char *p = (char *)mmap(NULL, sz + align, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
         *aligned;
    if (p == MAP_FAILED)
        return NULL;
    aligned = (char *)(((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1));
    if (aligned != p)
        munmap(p, (size_t)(aligned - p));
    munmap(aligned + sz, (size_t)(p + align - aligned));
    return aligned;
}

#endif
