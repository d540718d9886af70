/* Memory of zlib, brotli and nghttp2: coder_memory.c. */
#ifndef ACO_HTTP_CODER_MEMORY_H
#define ACO_HTTP_CODER_MEMORY_H

#include "os/platform.h"

#include <stddef.h>

/* These have the types that the three want; `arg` is not used. NULL: there is none. */
ACO__HIDDEN void *aco__http_coder_allocate(void *arg, size_t n);
ACO__HIDDEN void *aco__http_coder_allocate_items(void *arg, unsigned n, unsigned sz);
ACO__HIDDEN void aco__http_coder_free(void *arg, void *p);

#ifdef ACO_CONFIG_HTTP2
#include <nghttp2/nghttp2.h>
ACO__HIDDEN extern nghttp2_mem aco__http2_memory;
#endif

#endif
