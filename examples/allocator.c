/* Where the library's memory comes from: an allocator that counts. It compiles under -std=c99 too, because it asks for
 * MAP_ANONYMOUS before its first #include. */
#define _DEFAULT_SOURCE /* glibc, musl: MAP_ANONYMOUS */
#include <aco.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef struct counts {
    size_t mapped, allocated;
} counts_t;

/* Maps more than it needs and keeps the part that begins at a multiple of `align`. */
static void *map(size_t sz, size_t align, void *ctx)
{
    counts_t *counts = ctx;
    char *p = mmap(NULL, sz + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *aligned;
    if (p == MAP_FAILED)
        return NULL;
    aligned = p + (align - (uintptr_t)p % align) % align;
    if (aligned > p)
        munmap(p, (size_t)(aligned - p));
    if (aligned < p + align)
        munmap(aligned + sz, (size_t)(p + align - aligned));
    counts->mapped += sz;
    return aligned;
}

static void unmap(void *p, size_t sz, void *ctx)
{
    ((counts_t *)ctx)->mapped -= sz;
    munmap(p, sz);
}

static void *allocate(size_t sz, void *ctx)
{
    ((counts_t *)ctx)->allocated += sz;
    return malloc(sz);
}

static void release(void *p, size_t sz, void *ctx)
{
    ((counts_t *)ctx)->allocated -= sz;
    free(p);
}

static void *give_back(void *arg)
{
    return aco_yield_value(arg);
}

int main(void)
{
    static counts_t counts; /* for one thread: other programs need a lock in these functions */
    aco_allocator_t ours = {map, unmap, allocate, release, &counts};
    aco_t *co;
    if (aco_set_allocator(&ours) != 0) {
        fprintf(stderr, "%s\n", aco_error_message());
        return 1;
    }
    co = aco_new(give_back, &counts, NULL);
    if (!co || aco_send(co, NULL) != &counts) {
        fprintf(stderr, "%s\n", aco_error_message());
        return 1;
    }
    printf("a stack and a control block: %s\n", counts.mapped >= 256 * 1024 ? "mapped by us" : "not ours");
    aco_send(co, NULL);
    aco_destroy(co);
    return 0;
}
