/* Vectors of memory. */
#ifndef ACO_LIBC_PARTS_H
#define ACO_LIBC_PARTS_H

#include "libc/libc.h"

/* What is left of a vector of memory. */
typedef struct aco__parts {
    const struct iovec *parts;
    size_t count;
    size_t done; /* bytes of the first part */
    struct iovec first; /* the rest of it */
} aco__parts_t;
static inline void aco__parts_skip(aco__parts_t *rest, size_t n)
{
    for (n += rest->done; rest->count && n >= rest->parts->iov_len; rest->parts++, rest->count--)
        n -= rest->parts->iov_len;
    ACO__ASSERT(rest->count || !n); /* no call moves more than it was given */
    rest->done = rest->count ? n : 0;
}
/* The parts to go on with: how many. */
static inline size_t aco__parts_next(aco__parts_t *rest, struct iovec **parts)
{
    *parts = (struct iovec *)(uintptr_t)rest->parts;
    if (!rest->done)
        return rest->count;
    rest->first.iov_base = (char *)rest->parts->iov_base + rest->done;
    rest->first.iov_len = rest->parts->iov_len - rest->done;
    *parts = &rest->first;
    return 1;
}
static inline size_t aco__parts_size(const struct iovec *parts, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += parts[i].iov_len;
    return n;
}

#endif
