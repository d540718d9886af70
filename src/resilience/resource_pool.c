/* A pool of resources. A user holds a place, one of `limit`, from its turn until the resource comes back. With a place,
 * it takes an idle resource, or makes one if none is idle. So there are at most as many resources as places. */
#include "base/invariants.h"

#include "aco/detail/for_libraries.h"
#include "aco/resource_pool.h"
#include "aco/scope.h"
#include "aco/sync.h"

#include <errno.h>
#include <string.h>

typedef struct idle {
    void *resource;
    int64_t since; /* 0 if the pool has no idle time */
} idle_t;

struct aco_resource_pool_s {
    aco_resource_pool_options_t how;
    aco_semaphore_t places;
    size_t open;        /* resources, those that are being made included */
    size_t callers;     /* in the call that gets one; of them, those that wait for a place */
    size_t waiting;
    size_t capacity;    /* of `idle`, which all open resources fit into: putting back cannot fail */
    size_t idle_count;
    idle_t *idle;       /* the one that was put back last is at the end */
    aco_event_t unused; /* of a closed pool: nobody waits, and all resources have come back */
    int is_closed;
};

aco_resource_pool_t *aco_resource_pool_new(const aco_resource_pool_options_t *options)
{
    aco_resource_pool_t *pool;
    size_t size = sizeof *pool;
    if (!options->create || options->idle_time < 0) {
        (void)aco__service_fail(EINVAL, "aco_resource_pool_new", "no `create`, or a negative time");
        return NULL;
    }
    pool = aco__service_allocate(&size, "aco_resource_pool_new");
    if (!pool)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->how = *options;
    pool->places.value = options->limit ? options->limit : SIZE_MAX / 2;
    return pool;
}

static void destroy(const aco_resource_pool_t *pool, void *resource)
{
    ACO__NO_SWITCH_BEGIN();
    if (pool->how.destroy)
        pool->how.destroy(resource, pool->how.arg);
    ACO__NO_SWITCH_END();
}

/* Destroys the first `n` idle resources. */
static void destroy_idle(aco_resource_pool_t *pool, size_t n)
{
    for (size_t i = 0; i < n; i++)
        destroy(pool, pool->idle[i].resource);
    ACO__ASSERT(n <= pool->idle_count && n <= pool->open);
    pool->open -= n;
    pool->idle_count -= n;
    if (n && pool->idle_count)
        memmove(pool->idle, pool->idle + n, pool->idle_count * sizeof *pool->idle);
}

void aco_resource_pool_trim(aco_resource_pool_t *pool)
{
    size_t n = 0;
    int64_t now;
    if (!pool->how.idle_time || !pool->idle_count)
        return;
    now = aco_now();
    while (n < pool->idle_count && now - pool->idle[n].since >= pool->how.idle_time)
        n++;
    destroy_idle(pool, n);
}

/* Somebody has left the pool, or a resource has. */
static void look_whether_unused(aco_resource_pool_t *pool)
{
    if (pool->is_closed && !pool->callers && !pool->open)
        aco_event_set(&pool->unused);
}

/* ---- Getting one ---- */

/* A user who has a place, and perhaps a resource: one that is idle no more and is checked. */
typedef struct user {
    aco_resource_pool_t *pool;
    void *resource;
    int has_room; /* for a resource: it is counted */
} user_t;

/* The user gets none. Also a deferred call. */
static void leave(void *arg)
{
    const user_t *user = arg;
    aco_resource_pool_t *pool = user->pool;
    int error = errno;
    if (user->resource)
        destroy(pool, user->resource);
    pool->open -= (size_t)user->has_room;
    pool->callers--;
    aco_semaphore_release(&pool->places);
    look_whether_unused(pool);
    errno = error;
}

/* Makes room for one more resource. None is idle, so a larger array begins empty. */
static int make_room(aco_resource_pool_t *pool)
{
    ACO__ASSERT(!pool->idle_count);
    if (pool->open == pool->capacity) {
        size_t capacity = 2 * pool->capacity + 4, size = capacity * sizeof *pool->idle;
        idle_t *grown = aco__service_allocate(&size, "aco_resource_pool_get");
        if (!grown)
            return -1;
        if (pool->idle)
            aco__service_free(pool->idle, pool->capacity * sizeof *grown);
        pool->idle = grown;
        pool->capacity = capacity;
    }
    pool->open++;
    return 0;
}

/* Takes an idle resource that passes its check. Returns 0, also if there is none; -1: the user's scope has ended. */
ACO__SWITCHES static int take_idle(user_t *user)
{
    aco_resource_pool_t *pool = user->pool;
    while (pool->idle_count) {
        user->resource = pool->idle[--pool->idle_count].resource;
        user->has_room = 1;
        if (!pool->how.check || pool->how.check(user->resource, pool->how.arg) == 0)
            return 0;
        destroy(pool, user->resource);
        user->resource = NULL;
        user->has_room = 0;
        pool->open--;
        if (aco_check_cancelled() != 0)
            return -1; /* the check may have failed because of that, and so would all others */
    }
    return 0;
}

ACO__SWITCHES static void take_or_create(user_t *user)
{
    aco_resource_pool_t *pool = user->pool;
    if (take_idle(user) != 0 || user->resource)
        return;
    if (pool->is_closed) /* since the check began */
        errno = EPIPE;
    else if (make_room(pool) == 0) {
        user->has_room = 1;
        user->resource = pool->how.create(pool->how.arg);
    }
}

/* The functions may wait, in a scope with the deadline, and may end the task. */
ACO__SWITCHES static void get(user_t *user, int64_t deadline, const char *location)
{
    aco_scope_t scope;
    int is_limited = deadline != ACO_FOREVER;
    if (aco_defer(leave, user) != 0)
        return;
    if (!is_limited)
        take_or_create(user);
    else if (aco_scope_begin_at(&scope, deadline, location) == 0) {
        take_or_create(user);
        (void)aco_scope_end(&scope);
    }
    (void)aco_defer_pop(0);
}

/* Takes a place, in turn. */
ACO__SWITCHES static int enter(aco_resource_pool_t *pool, int64_t deadline, const char *location)
{
    int result;
    pool->callers++;
    pool->waiting++;
    result = pool->is_closed ? -1 : aco_semaphore_acquire_until_at(&pool->places, deadline, location);
    pool->waiting--;
    if (result == 0)
        return 0;
    if (pool->is_closed)
        errno = EPIPE;
    pool->callers--;
    look_whether_unused(pool);
    return -1;
}

void *aco_resource_pool_get_until_at(aco_resource_pool_t *pool, int64_t deadline, const char *location)
{
    user_t user = {pool, NULL, 0};
    ACO__MAY_SWITCH("aco_resource_pool_get", location);
    if (enter(pool, deadline, location) != 0)
        return NULL;
    aco_resource_pool_trim(pool);
    if (pool->is_closed)
        errno = EPIPE;
    else if (pool->idle_count && !pool->how.check)
        user.resource = pool->idle[--pool->idle_count].resource;
    else
        get(&user, deadline, location);
    if (!user.resource) {
        leave(&user);
        return NULL;
    }
    pool->callers--;
    return user.resource;
}

/* ---- Giving it back ---- */

void aco_resource_pool_put(aco_resource_pool_t *pool, void *resource)
{
    const idle_t idle = {resource, pool->how.idle_time ? aco_now() : 0};
    if (pool->is_closed) {
        aco_resource_pool_discard(pool, resource);
        return;
    }
    ACO__ASSERT(pool->idle_count < pool->open && pool->open <= pool->capacity);
    pool->idle[pool->idle_count++] = idle;
    aco_semaphore_release(&pool->places);
    aco_resource_pool_trim(pool);
}

void aco_resource_pool_discard(aco_resource_pool_t *pool, void *resource)
{
    ACO__ASSERT(pool->idle_count < pool->open);
    destroy(pool, resource);
    pool->open--;
    aco_semaphore_release(&pool->places);
    look_whether_unused(pool);
}

void aco_resource_pool_stats(const aco_resource_pool_t *pool, aco_resource_pool_stats_t *stats)
{
    stats->idle = pool->idle_count;
    stats->in_use = pool->open - pool->idle_count;
    stats->waiting = pool->waiting;
}

/* ---- The end ---- */

int aco_resource_pool_close_until_at(aco_resource_pool_t *pool, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_resource_pool_close", location);
    if (!pool->is_closed) {
        pool->is_closed = 1;
        destroy_idle(pool, pool->idle_count);
        for (size_t i = 0; i < pool->callers; i++) /* who waits gets a place, sees that, and leaves */
            aco_semaphore_release(&pool->places);
        look_whether_unused(pool);
    }
    return pool->unused.is_set ? 0 : aco_event_wait_until_at(&pool->unused, deadline, location);
}

void aco_resource_pool_destroy(aco_resource_pool_t *pool)
{
    if (!pool)
        return;
    ACO__ASSERT(!pool->callers && pool->open == pool->idle_count);
    destroy_idle(pool, pool->idle_count);
    if (pool->idle)
        aco__service_free(pool->idle, pool->capacity * sizeof *pool->idle);
    aco__service_free(pool, sizeof *pool);
}
