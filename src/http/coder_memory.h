/* Memory of zlib and brotli: coder_memory.c. */
#ifndef ACO_HTTP_CODER_MEMORY_H
#define ACO_HTTP_CODER_MEMORY_H

#include "os/platform.h"

/* These have the types that the two want; `arg` is not used. NULL: there is none. */
ACO__HIDDEN void *aco__http_coder_allocate(void *arg, size_t n);
ACO__HIDDEN void *aco__http_coder_allocate_items(void *arg, unsigned n, unsigned sz);
ACO__HIDDEN void aco__http_coder_free(void *arg, void *p);

#endif
