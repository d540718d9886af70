/* Arrays that grow. */
#ifndef ACO_GROW_H
#define ACO_GROW_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The array `p`, which has room for *room members of `size` bytes, with room for `n` at least, which is not 0. It may
 * have moved, and what is new is zeros. NULL and ENOMEM: nothing has changed. */
static inline void *aco__sim_grown(void *p, size_t *room, size_t n, size_t size)
{
    size_t larger_room = *room ? *room : 16;
    char *larger;
    if (n <= *room)
        return p;
    while (larger_room < n)
        larger_room *= 2;
    larger = realloc(p, larger_room * size);
    if (!larger) {
        errno = ENOMEM;
        return NULL;
    }
    memset(larger + *room * size, 0, (larger_room - *room) * size);
    *room = larger_room;
    return larger;
}

#endif
