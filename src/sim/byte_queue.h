/* byte_queue.c: bytes, first in, first out. */
#ifndef ACO_BYTE_QUEUE_H
#define ACO_BYTE_QUEUE_H

#include "os/platform.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* A message of these parts. */
static inline struct msghdr aco__sim_message(const struct iovec *parts, size_t n)
{
    struct msghdr message = {0};
    message.msg_iov = (struct iovec *)(uintptr_t)parts;
    message.msg_iovlen = n;
    return message;
}

static inline struct iovec aco__sim_part(const void *p, size_t n)
{
    return (struct iovec){(void *)(uintptr_t)p, n};
}

typedef struct aco__sim_bytes {
    char *p;
    size_t first, n, room; /* room: 0, or a power of two */
} aco__sim_bytes_t;

/* Appends the first `n` bytes of the parts; they have so many. 0, or -1: there is no memory. */
ACO__HIDDEN int aco__sim_bytes_append(aco__sim_bytes_t *bytes, const struct msghdr *parts, size_t n);
/* Makes room for `n` more bytes. 0, or -1: there is no memory. */
ACO__HIDDEN int aco__sim_bytes_reserve(aco__sim_bytes_t *bytes, size_t n);
/* Copies the first `n` bytes, of which there are so many, to the parts, which have room. */
ACO__HIDDEN void aco__sim_bytes_copy(const aco__sim_bytes_t *bytes, const struct msghdr *parts, size_t n);
ACO__HIDDEN void aco__sim_bytes_remove(aco__sim_bytes_t *bytes, size_t n); /* the first ones */
ACO__HIDDEN void aco__sim_bytes_free(aco__sim_bytes_t *bytes);
/* How many bytes the parts have together; at most SIZE_MAX. */
ACO__HIDDEN size_t aco__sim_parts_size(const struct msghdr *parts);

#endif
