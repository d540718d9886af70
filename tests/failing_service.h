/* Memory of the libraries beside acorn: it is counted, and an allocation can fail. For tests that the linker gives
 * --wrap of the two functions. */
#ifndef FAILING_SERVICE_H
#define FAILING_SERVICE_H

#include <errno.h>
#include <stddef.h>

static int allocations_left = -1; /* until one fails; less than 0: none does */
static long live; /* allocations */

void *__real_aco__service_allocate(size_t *sz, const char *call);
void __real_aco__service_free(void *p, size_t sz);
void *__wrap_aco__service_allocate(size_t *sz, const char *call);
void __wrap_aco__service_free(void *p, size_t sz);

void *__wrap_aco__service_allocate(size_t *sz, const char *call)
{
    if (allocations_left == 0) {
        allocations_left = -1;
        errno = ENOMEM;
        return NULL;
    }
    allocations_left -= allocations_left > 0;
    live++;
    return __real_aco__service_allocate(sz, call);
}

void __wrap_aco__service_free(void *p, size_t sz)
{
    live -= p != NULL;
    __real_aco__service_free(p, sz);
}

#endif
