/* A queue of bytes in a ring that grows. */
#include "sim/byte_queue.h"

#include "base/invariants.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 1024 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t aco__sim_parts_size(const struct msghdr *parts)
{
    size_t n = 0;
    for (size_t i = 0; i < parts->msg_iovlen; i++)
        if (__builtin_add_overflow(n, parts->msg_iov[i].iov_len, &n))
            return SIZE_MAX;
    return n;
}

/* Where byte number `at` of the queue is, or goes; *n becomes at most what follows in one piece. */
static char *place(const aco__sim_bytes_t *bytes, size_t at, size_t *n)
{
    size_t offset = (bytes->first + at) & (bytes->room - 1);
    *n = least(*n, bytes->room - offset);
    return bytes->p + offset;
}

static int grow(aco__sim_bytes_t *bytes, size_t needed)
{
    size_t room = bytes->room ? bytes->room : FIRST_BYTES;
    char *p;
    while (room < needed)
        room *= 2;
    if (room == bytes->room)
        return 0;
    p = malloc(room);
    if (!p)
        return -1;
    for (size_t at = 0, n; at < bytes->n; at += n) {
        n = bytes->n - at;
        const char *from = place(bytes, at, &n);
        memcpy(p + at, from, n);
    }
    free(bytes->p);
    bytes->p = p;
    bytes->room = room;
    bytes->first = 0;
    return 0;
}

int aco__sim_bytes_reserve(aco__sim_bytes_t *bytes, size_t n)
{
    return n ? grow(bytes, bytes->n + n) : 0;
}

/* Copies `n` bytes, from number `at` of the queue on, to the parts or from there. */
static void copy_parts(const aco__sim_bytes_t *bytes, size_t at, const struct msghdr *parts, size_t n, int is_to_parts)
{
    for (size_t i = 0; n > 0; i++) {
        char *part = parts->msg_iov[i].iov_base;
        for (size_t left = least(parts->msg_iov[i].iov_len, n), some; left > 0; left -= some) {
            some = left;
            char *own = place(bytes, at, &some);
            memcpy(is_to_parts ? part : own, is_to_parts ? own : part, some);
            part += some;
            at += some;
            n -= some;
        }
    }
}

int aco__sim_bytes_append(aco__sim_bytes_t *bytes, const struct msghdr *parts, size_t n)
{
    if (aco__sim_bytes_reserve(bytes, n) != 0)
        return -1;
    copy_parts(bytes, bytes->n, parts, n, 0);
    bytes->n += n;
    ACO__ASSERT(bytes->n <= bytes->room);
    return 0;
}

void aco__sim_bytes_copy(const aco__sim_bytes_t *bytes, const struct msghdr *parts, size_t n)
{
    ACO__ASSERT(n <= bytes->n);
    copy_parts(bytes, 0, parts, n, 1);
}

void aco__sim_bytes_remove(aco__sim_bytes_t *bytes, size_t n)
{
    ACO__ASSERT(n <= bytes->n);
    if (!n)
        return;
    bytes->first = (bytes->first + n) & (bytes->room - 1);
    bytes->n -= n;
}

void aco__sim_bytes_free(aco__sim_bytes_t *bytes)
{
    free(bytes->p);
    memset(bytes, 0, sizeof *bytes);
}
