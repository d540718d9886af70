/* Memory of zlib, brotli and nghttp2, from the library's allocator, which wants to know the size again. */
#include "http/coder_memory.h"

void *aco__http_coder_allocate(void *arg, size_t n)
{
    (void)arg;
    return aco__coder_allocate(n, "HTTP: zlib, brotli or nghttp2");
}

void *aco__http_coder_allocate_items(void *arg, unsigned n, unsigned sz)
{
    return aco__http_coder_allocate(arg, (size_t)n * sz);
}

void aco__http_coder_free(void *arg, void *p)
{
    (void)arg;
    aco__coder_free(p);
}

/* ---- For nghttp2, which has the arguments the other way round ---- */

#ifdef ACO_CONFIG_HTTP2

static void *coder_malloc(size_t n, void *arg)
{
    return aco__http_coder_allocate(arg, n);
}

static void coder_free(void *p, void *arg)
{
    aco__http_coder_free(arg, p);
}

static void *coder_calloc(size_t count, size_t n, void *arg)
{
    void *p = n && count > SIZE_MAX / n ? NULL : aco__http_coder_allocate(arg, count * n);
    return p ? memset(p, 0, count * n) : NULL;
}

static void *coder_realloc(void *p, size_t n, void *arg)
{
    size_t sz;
    void *larger;
    if (!p)
        return aco__http_coder_allocate(arg, n);
    memcpy(&sz, (char *)p - CODER_HEADER, sizeof sz);
    if (n <= sz - CODER_HEADER)
        return p;
    larger = aco__http_coder_allocate(arg, n);
    if (!larger)
        return NULL;
    memcpy(larger, p, sz - CODER_HEADER);
    aco__http_coder_free(arg, p);
    return larger;
}

nghttp2_mem aco__http2_memory = {NULL, coder_malloc, coder_free, coder_calloc, coder_realloc};

#endif
