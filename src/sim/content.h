/* content.c: the bytes of a file on a simulated disk, and which of them a crash may take back. */
#ifndef ACO_CONTENT_H
#define ACO_CONTENT_H

#include "os/platform.h"

#include "aco/sim.h"

#include <stddef.h>
#include <sys/types.h>

/* The room on a disk. */
typedef struct aco__sim_room {
    uint64_t used, capacity; /* in pages; capacity 0: no limit */
} aco__sim_room_t;

/* What was there before a write or a change of the size that is not durable yet. */
typedef struct aco__sim_change {
    int64_t offset, size;       /* of the bytes; size: of the file */
    size_t n;
    char *bytes;                /* it had these */
} aco__sim_change_t;

typedef struct aco__sim_content {
    char **pages;               /* NULL: zeros. What lies behind the end is zeros, too */
    size_t pages_room, pages_used; /* pages_used: not NULL */
    int64_t size;
    aco__sim_change_t *changes; /* the oldest one is first */
    size_t n, room;
    size_t lost;                /* so many of the first ones are after a failed fsync(): nobody will write them */
} aco__sim_content_t;

enum { ACO__SIM_PAGE = 4096 };
#define ACO__SIM_LARGEST_FILE ((int64_t)1 << 30)

/* Returns how many bytes there were, 0 at the end. */
ACO__HIDDEN size_t aco__sim_content_read(const aco__sim_content_t *content, char *p, size_t n, int64_t offset);
/* Returns how many bytes it has written, at least 1, or -1 and errno: EFBIG, ENOSPC, ENOMEM. */
ACO__HIDDEN ssize_t aco__sim_content_write(aco__sim_content_t *content, aco__sim_room_t *room, const char *p, size_t n,
                                           int64_t offset);
/* 0, or -1 and errno: EFBIG, ENOMEM. */
ACO__HIDDEN int aco__sim_content_resize(aco__sim_content_t *content, aco__sim_room_t *room, int64_t size);
/* All of it is durable. But what a failed fsync() has lost stays lost, unless its sector was written again. */
ACO__HIDDEN void aco__sim_content_sync(aco__sim_content_t *content, size_t sector);
/* An fsync() fails. */
ACO__HIDDEN void aco__sim_content_lose(aco__sim_content_t *content);
/* The machine crashes: the seed decides which sectors survive of what is not durable. The rest is durable now. */
ACO__HIDDEN void aco__sim_content_crash(aco_sim_t *sim, aco__sim_content_t *content, aco__sim_room_t *room,
                                        size_t sector);
ACO__HIDDEN void aco__sim_content_free(aco__sim_content_t *content, aco__sim_room_t *room);

#endif
