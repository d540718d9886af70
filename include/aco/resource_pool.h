/* A pool of resources that are worth keeping, such as connections (library acorn_resilience). docs/services.md is the
 * guide. (aco/pool.h has pools of stacks.)
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_resource_pool_options_t options = {0};
 *   options.limit = 10;
 *   options.create = connect_to_server;
 *   options.destroy = disconnect;
 *   pool = aco_resource_pool_new(&options);
 *   ...
 *   struct connection *c = aco_resource_pool_get(pool);
 *   if (c && ask(c) == 0)
 *       aco_resource_pool_put(pool, c);
 *   else if (c)
 *       aco_resource_pool_discard(pool, c); // nobody knows what its next answer would be
 *
 * A user gets the idle resource that was put back last, or else a new one. While `limit` resources are in use, users
 * wait, first come, first served; what becomes free is theirs, and nobody overtakes them. A user who gives up, whose
 * scope ends, or who ends by aco_exit() in `create` or `check` leaves nothing behind: the next one is served instead.
 *
 * A pool belongs to the thread that uses it first. No pointer may be NULL unless its text says so. */
#ifndef ACO_RESOURCE_POOL_H
#define ACO_RESOURCE_POOL_H

#include "scheduler.h"

ACO__BEGIN_C

typedef struct aco_resource_pool_s aco_resource_pool_t;

/* Zero in a field means the default. The functions run in the task of a caller. They must not throw, must not use
 * the pool, and leave no deferred call (aco_defer()). `create` and `check` may wait, within the caller's deadline and
 * scopes. */
typedef struct aco_resource_pool_options_s {
    size_t limit;      /* the most resources, idle and in use. Default: no limit */
    int64_t idle_time; /* after so many nanoseconds without use, a resource is destroyed by the next call for the pool.
                          Default: never */
    void *(*create)(void *arg); /* returns a new resource; on error NULL with errno. Must be there */
    void (*destroy)(void *resource, void *arg); /* must not wait. NULL: nothing is to be done */
    int (*check)(void *resource, void *arg); /* is called before an idle resource is given to a user. Returns 0 if it
                                                can be used; else it is destroyed. NULL: all can */
    void *arg;
    void *aco__reserved[4]; /* reserved fields are 0 */
} aco_resource_pool_options_t;

typedef struct aco_resource_pool_stats_s {
    size_t in_use;  /* resources that users have, or that are being created or checked for them */
    size_t idle;
    size_t waiting; /* users */
} aco_resource_pool_stats_t;

/* Makes a pool without resources. Returns it; on error NULL with errno EINVAL (`create` is NULL, `idle_time` is less
 * than 0), ENOMEM. */
ACO_API aco_resource_pool_t *aco_resource_pool_new(const aco_resource_pool_options_t *options);

/* Returns a resource, which the caller must put back or discard; on error NULL with errno ETIMEDOUT, ECANCELED, EPIPE
 * (the pool is closed), EPERM (the caller cannot wait), ENOMEM, EINVAL (an inner coroutine on a share stack has a
 * deadline), or what `create` left there. A resource that need not be waited for is returned even after the
 * deadline. */
ACO_API void *aco_resource_pool_get_until_at(aco_resource_pool_t *pool, int64_t deadline, const char *location);
#define aco_resource_pool_get_until(pool, deadline) aco_resource_pool_get_until_at(pool, deadline, ACO_PLACE)
#define aco_resource_pool_get(pool) aco_resource_pool_get_until_at(pool, ACO_FOREVER, ACO_PLACE)

/* Gives a resource back, in any task of the thread, or in cleanup. Discarding destroys it: for one that is broken. */
ACO_API void aco_resource_pool_put(aco_resource_pool_t *pool, void *resource);
ACO_API void aco_resource_pool_discard(aco_resource_pool_t *pool, void *resource);

/* Destroys the resources that have been idle for too long: for a pool that may not be used for a while. */
ACO_API void aco_resource_pool_trim(aco_resource_pool_t *pool);

/* Fills in *stats. */
ACO_API void aco_resource_pool_stats(const aco_resource_pool_t *pool, aco_resource_pool_stats_t *stats);

/* Closes the pool: idle resources are destroyed, users who wait and later ones get EPIPE. Then waits until all
 * resources have come back, which are destroyed then. If the wait fails the pool is closed all the same; the call may
 * be repeated. Returns 0; on error -1 with errno ETIMEDOUT, ECANCELED, EPERM (the caller cannot wait), ENOMEM. */
ACO_API int aco_resource_pool_close_until_at(aco_resource_pool_t *pool, int64_t deadline, const char *location);
#define aco_resource_pool_close_until(pool, deadline) aco_resource_pool_close_until_at(pool, deadline, ACO_PLACE)
#define aco_resource_pool_close(pool) aco_resource_pool_close_until_at(pool, ACO_FOREVER, ACO_PLACE)

/* Frees a pool that nobody uses, and its idle resources. NULL: nothing happens. */
ACO_API void aco_resource_pool_destroy(aco_resource_pool_t *pool);

ACO__END_C

#endif
