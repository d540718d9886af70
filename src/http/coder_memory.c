/* Memory of zlib and brotli, from the library's allocator, which wants to know the size again. */
#include "http/coder_memory.h"

#include "aco/detail/for_libraries.h"

#include <stdint.h>
#include <string.h>

enum { CODER_HEADER = 16 };

void *aco__http_coder_allocate(void *arg, size_t n)
{
    size_t sz = n + CODER_HEADER;
    char *p = n < SIZE_MAX / 2 ? aco__service_allocate(&sz, "a coding of HTTP") : NULL;
    (void)arg;
    if (!p)
        return NULL;
    memcpy(p, &sz, sizeof sz);
    return p + CODER_HEADER;
}

void *aco__http_coder_allocate_items(void *arg, unsigned n, unsigned sz)
{
    return aco__http_coder_allocate(arg, (size_t)n * sz);
}

void aco__http_coder_free(void *arg, void *p)
{
    size_t sz;
    (void)arg;
    if (!p)
        return;
    memcpy(&sz, (char *)p - CODER_HEADER, sizeof sz);
    aco__service_free((char *)p - CODER_HEADER, sz);
}
