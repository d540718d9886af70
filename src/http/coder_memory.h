/* Memory of zlib, brotli and nghttp2: coder_memory.c. */
#ifndef ACO_HTTP_CODER_MEMORY_H
#define ACO_HTTP_CODER_MEMORY_H

#include "os/platform.h"

#include "aco/detail/for_libraries.h"

#include <stdint.h>
#include <string.h>

enum { CODER_HEADER = 16 }; /* before the bytes: the size of the block */

static inline void *aco__coder_allocate(size_t n, const char *call)
{
    size_t sz = n + CODER_HEADER;
    char *p = n < SIZE_MAX / 2 ? aco__service_allocate(&sz, call) : NULL;
    if (!p)
        return NULL;
    memcpy(p, &sz, sizeof sz);
    return p + CODER_HEADER;
}

static inline void aco__coder_free(void *p)
{
    size_t sz;
    if (!p)
        return;
    memcpy(&sz, (char *)p - CODER_HEADER, sizeof sz);
    aco__service_free((char *)p - CODER_HEADER, sz);
}

/* These have the types that the three want; `arg` is not used. NULL: there is none. */
ACO__HIDDEN void *aco__http_coder_allocate(void *arg, size_t n);
ACO__HIDDEN void *aco__http_coder_allocate_items(void *arg, unsigned n, unsigned sz);
ACO__HIDDEN void aco__http_coder_free(void *arg, void *p);

#ifdef ACO_CONFIG_HTTP2
#include <nghttp2/nghttp2.h>
ACO__HIDDEN extern nghttp2_mem aco__http2_memory;
#endif

#endif
