/* Where the library's memory comes from: the system, or the allocator that the user has set. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#ifdef ACO_CONFIG_LIBACO_ONLY
static const aco_allocator_t *allocator(void)
{
    return NULL;
}
#else
static aco_allocator_t user;
static int user_set, used; /* atomic; `user` does not change once used is set */

static const aco_allocator_t *allocator(void)
{
    if (aco_unlikely(!__atomic_load_n(&used, __ATOMIC_RELAXED)))
        __atomic_store_n(&used, 1, __ATOMIC_RELAXED);
    return aco_unlikely(__atomic_load_n(&user_set, __ATOMIC_ACQUIRE)) ? &user : NULL;
}

int aco_set_allocator(const aco_allocator_t *wanted)
{
    int too_late;
    if (!wanted || !wanted->map || !wanted->unmap || !wanted->allocate || !wanted->release)
        return aco__fail(0, EINVAL, "aco_set_allocator", NULL, wanted ? "a function is NULL" : "the allocator is NULL");
    aco__lock();
    too_late = __atomic_load_n(&used, __ATOMIC_RELAXED) || user_set;
    if (!too_late) {
        user = *wanted;
        __atomic_store_n(&user_set, 1, __ATOMIC_RELEASE);
    }
    aco__unlock();
    return too_late ? aco__fail(0, EBUSY, "aco_set_allocator", NULL, "the library has already allocated memory") : 0;
}
#endif

int aco__map_is_ours(void)
{
    return !allocator();
}

static void *memory_or_errno(void *p)
{
    if (!p)
        errno = ENOMEM;
    return p;
}

void *aco__map(size_t sz)
{
    const aco_allocator_t *a = allocator();
    return a ? memory_or_errno(a->map(sz, aco__os_page_size(), a->ctx)) : aco__os_map(sz);
}

void *aco__map_aligned(size_t sz)
{
    const aco_allocator_t *a = allocator();
    return a ? memory_or_errno(a->map(sz, sz, a->ctx)) : aco__os_map_aligned(sz);
}

void aco__unmap(void *p, size_t sz)
{
    const aco_allocator_t *a = allocator();
    if (a)
        a->unmap(p, sz, a->ctx);
    else
        aco__os_unmap(p, sz);
}

void aco__unmap_guarded(void *p, size_t sz, size_t guard_sz)
{
    if (guard_sz && !aco__map_is_ours()) /* the user's allocator gets its memory back accessible */
        aco__os_unguard(p, guard_sz);
    aco__unmap(p, sz);
}

void *aco__allocate(size_t sz)
{
    const aco_allocator_t *a = allocator();
    return a ? memory_or_errno(a->allocate(sz, a->ctx)) : malloc(sz);
}

void aco__release(void *p, size_t sz)
{
    const aco_allocator_t *a = allocator();
    if (a)
        a->release(p, sz, a->ctx);
    else
        free(p);
}

/* ---- Failed requests ---- */

int aco__fail_memory(int fatal, const char *call, size_t sz)
{
    int error = errno;
#ifndef ACO_CONFIG_LIBACO_ONLY
    char sentence[128] = "";
    int met = error == ENOMEM && aco__map_is_ours() ? aco__os_limit_met(sz, sentence, sizeof sentence) : 0;
    if (error == EDQUOT)
        return aco__fail(fatal, EAGAIN, call, NULL,
                         "no stack of %zu bytes: as many of the pool's are in use as its most_stacks allows", sz);
    if (error == EAGAIN)
        return aco__fail(fatal, EAGAIN, call, NULL,
                         "no memory for %zu bytes: the process has reached RLIMIT_MEMLOCK (ulimit -l)", sz);
    if (met)
        return aco__fail(fatal, met == 1 ? EAGAIN : ENOMEM, call, NULL, "no memory for %zu bytes: %s", sz, sentence);
#endif
    return aco__fail(fatal, error, call, NULL, "no memory for %zu bytes: %s", sz, strerror(error));
}

void aco__die_of_memory(const char *call, size_t sz)
{
    aco__fail_memory(1, call, sz);
    __builtin_unreachable();
}
