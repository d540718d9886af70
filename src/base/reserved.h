/* The reserved fields of options: 0, until a version gives them a meaning. */
#ifndef ACO_RESERVED_H
#define ACO_RESERVED_H

#include <stddef.h>

static inline int aco__reserved_is_set(void *const *reserved, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (reserved[i])
            return 1;
    return 0;
}

/* Whether one of them is not 0. */
#define ACO__RESERVED_IS_SET(options) \
    aco__reserved_is_set((options)->aco__reserved, \
                         sizeof (options)->aco__reserved / sizeof (options)->aco__reserved[0])

#endif
