/* What acorn offers to the libraries above it, besides waiting (detail/poller.h, detail/worker.h). Not for programs. */
#ifndef ACO_DETAIL_FOR_LIBRARIES_H
#define ACO_DETAIL_FOR_LIBRARIES_H

#include "../scheduler.h"

#include <string.h>

ACO__BEGIN_C

/* Gives other tasks their turn, if the caller may switch. Keeps errno. */
ACO_API void aco__service_yield(void);

/* Whether `p` is on a share stack on which the caller runs: another task's frames are there while it waits. */
ACO_API int aco__may_move(const void *p);

/* Memory of the library's allocator: at least *sz bytes; *sz becomes the actual size. NULL and errno.
 * aco__service_free() keeps errno. */
ACO_API void *aco__service_allocate(size_t *sz, const char *call);
ACO_API void aco__service_free(void *p, size_t sz);
/* As aco__service_allocate(), and the *sz bytes that were asked for are 0. */
ACO__FORCE_INLINE void *aco__service_new(size_t *sz, const char *call)
{
    const size_t n = *sz;
    void *p = aco__service_allocate(sz, call);
    return p ? memset(p, 0, n) : NULL;
}
/* Stores "call: reason" for aco_error_message(), sets errno and returns -1. */
ACO_API int aco__service_fail(int error, const char *call, const char *reason);
#ifdef __clang_analyzer__ /* which does not see what it returns */
#define aco__service_fail(error, call, reason) (aco__service_fail(error, call, reason), -1)
#endif
/* Prints "acorn: call: reason" as one line on stderr, by one call of the system's. The reason is cut after some 450
 * bytes. Never switches; keeps errno. */
ACO_API __attribute__((format(printf, 2, 3))) void aco__service_warn(const char *call, const char *reason, ...);

/* A coroutine-local value that members of groups and submitted work inherit: they begin with a copy of the value of the
 * task that spawns or submits them. There is one such key in the process, which is never deleted: of acorn_debug's
 * spans. A copy of NULL is none. */
typedef struct aco__inheritance {
    void *(*copy)(void *value); /* NULL: there is nothing to inherit, or no memory */
    void (*drop)(void *copy);   /* any thread */
} aco__inheritance_t;
ACO_API void aco__inherit(aco_local_key_t key, const aco__inheritance_t *by);
/* Whether there is such a key. Atomic. */
ACO_API extern int aco__inherits;
/* A copy of the caller's own value, to be given or dropped once. */
ACO_API void *aco__inherited_copy(void);
ACO_API void aco__inherited_drop(void *copy);
/* It becomes the value of a coroutine that does not run yet and has none; NULL: of the caller. Keeps errno. */
ACO_API void aco__inherited_give(aco_t *co, void *copy);

/* Stores `s` as the inside of a JSON string in `json`, which has `size` bytes, 7 at least: 6 for each byte of `s` and
 * one suffice; else the end is cut. What is no UTF-8 becomes U+FFFD. Returns `json`. */
ACO_API const char *aco__json_text(const char *s, char *json, size_t size);

ACO__END_C

#endif
