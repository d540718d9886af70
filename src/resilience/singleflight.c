/* Runs that calls share: a hash table of those that can be joined. A run has a task. It is freed when the task and all
 * callers have released it. */
#include "base/invariants.h"

#include "aco/detail/for_libraries.h"
#include "aco/scope.h"
#include "aco/singleflight.h"
#include "aco/sync.h"

#include <errno.h>
#include <string.h>

typedef struct flight {
    aco_flight_t seen;     /* what callers see; seen.callers counts those who have not given up */
    aco_singleflight_t *owner;
    struct flight *next;   /* of the same bucket */
    struct flight *next_running, **running_from; /* in the list of all runs */
    uint64_t hash;
    size_t size;           /* of the key, which stands behind the structure */
    size_t users;          /* the task, and callers who have not released it */
    int is_listed;         /* in the table: others can join */
    int is_cancelled;
    int error;             /* how it has ended */
    aco_event_t ended;
    aco_scope_t *scope;    /* the task's, until it has ended; NULL: it has not begun */
} flight_t;

struct aco_singleflight_s {
    aco_singleflight_options_t how;
    flight_t **buckets, *running;
    size_t bucket_count, listed;
    size_t flights;     /* that are not freed */
    aco_event_t unused; /* of a closed object: no run and no result is left */
    int is_closed;
};

enum { FEWEST_BUCKETS = 8 };

/* ---- The table ---- */

static uint64_t hash_of(const void *key, size_t size) /* FNV-1a */
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)key)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void *key_of(const flight_t *flight)
{
    return (char *)(uintptr_t)flight + sizeof *flight;
}

static flight_t **bucket_of(const aco_singleflight_t *s, uint64_t hash)
{
    return &s->buckets[(hash ^ (hash >> 32)) & (s->bucket_count - 1)];
}

static flight_t *find(const aco_singleflight_t *s, const void *key, size_t size, uint64_t hash)
{
    flight_t *flight = *bucket_of(s, hash);
    while (flight && (flight->hash != hash || flight->size != size || (size && memcmp(key_of(flight), key, size) != 0)))
        flight = flight->next;
    return flight;
}

static void list(aco_singleflight_t *s, flight_t *flight)
{
    flight_t **bucket = bucket_of(s, flight->hash);
    flight->next = *bucket;
    *bucket = flight;
}

static void unlist(aco_singleflight_t *s, flight_t *flight)
{
    flight_t **place = bucket_of(s, flight->hash);
    if (!flight->is_listed)
        return;
    while (*place != flight)
        place = &(*place)->next;
    *place = flight->next;
    flight->is_listed = 0;
    s->listed--;
}

/* Makes the table larger. Without memory it stays as it is. */
static int grow(aco_singleflight_t *s, size_t count)
{
    size_t size = count * sizeof *s->buckets, before = s->bucket_count;
    flight_t **old = s->buckets, **buckets = aco__service_allocate(&size, "aco_singleflight_new");
    if (!buckets)
        return -1;
    memset(buckets, 0, count * sizeof *buckets);
    s->buckets = buckets;
    s->bucket_count = count;
    for (size_t i = 0; i < before; i++)
        for (flight_t *flight = old[i], *next; flight; flight = next) {
            next = flight->next;
            list(s, flight);
        }
    if (old)
        aco__service_free(old, before * sizeof *old);
    return 0;
}

/* ---- A run ---- */

/* Keeps errno. */
static void release(flight_t *flight)
{
    aco_singleflight_t *s = flight->owner;
    int error = errno;
    ACO__ASSERT(flight->users);
    if (--flight->users)
        return;
    if (!flight->error && s->how.release) {
        ACO__NO_SWITCH_BEGIN();
        s->how.release(flight->seen.result, s->how.arg);
        ACO__NO_SWITCH_END();
    }
    aco__service_free(flight, sizeof *flight + flight->size + 1);
    if (--s->flights == 0 && s->is_closed)
        aco_event_set(&s->unused);
    errno = error;
}

void aco_flight_release(const aco_flight_t *seen)
{
    release((flight_t *)(uintptr_t)seen);
}

/* A deferred call: the task may have ended in the run. */
static void finish(void *arg)
{
    flight_t *flight = arg;
    aco_singleflight_t *s = flight->owner;
    unlist(s, flight);
    *flight->running_from = flight->next_running;
    if (flight->next_running)
        flight->next_running->running_from = flight->running_from;
    aco_event_set(&flight->ended);
    release(flight);
}

ACO__SWITCHES static void run(flight_t *flight)
{
    const aco_singleflight_options_t *how = &flight->owner->how;
    aco_scope_t scope;
    void *result;
    if (flight->is_cancelled || aco_scope_begin(&scope, ACO_FOREVER) != 0)
        return;
    flight->scope = &scope;
    result = how->run(key_of(flight), flight->size, how->arg);
    flight->error = result != ACO_ERROR ? 0 : errno ? errno : EINVAL;
    flight->seen.result = result;
    (void)aco_scope_end(&scope);
}

ACO__SWITCHES static void *task(void *arg)
{
    flight_t *flight = arg;
    if (aco_defer(finish, flight) == 0)
        run(flight);
    else {
        flight->error = ENOMEM;
        finish(flight);
    }
    return NULL;
}

static void cancel(flight_t *flight)
{
    unlist(flight->owner, flight);
    flight->is_cancelled = 1;
    if (flight->scope)
        (void)aco_scope_cancel(flight->scope);
}

static flight_t *begin(aco_singleflight_t *s, const void *key, size_t size, uint64_t hash)
{
    aco_options_t detached = {0};
    size_t room = sizeof(flight_t) + size + 1;
    flight_t *flight = aco__service_allocate(&room, "aco_singleflight_call");
    if (!flight)
        return NULL;
    memset(flight, 0, sizeof *flight);
    flight->owner = s;
    flight->hash = hash;
    flight->size = size;
    flight->users = 1;
    flight->error = ECANCELED; /* unless it ends otherwise */
    if (size)
        memcpy(key_of(flight), key, size);
    ((char *)key_of(flight))[size] = 0;
    detached.flags = ACO_DETACHED;
    if (!aco_spawn(task, flight, &detached)) {
        aco__service_free(flight, sizeof *flight + size + 1);
        return NULL;
    }
    if (s->listed >= s->bucket_count) /* more: there was no memory */
        (void)grow(s, 2 * s->bucket_count);
    list(s, flight);
    flight->is_listed = 1;
    s->listed++;
    flight->next_running = s->running;
    flight->running_from = &s->running;
    if (s->running)
        s->running->running_from = &flight->next_running;
    s->running = flight;
    s->flights++;
    return flight;
}

/* ---- Calls ---- */

const aco_flight_t *aco_singleflight_call_until_at(aco_singleflight_t *s, const void *key, size_t size,
                                                   int64_t deadline, const char *location)
{
    uint64_t hash = hash_of(key, size);
    flight_t *flight = s->is_closed ? NULL : find(s, key, size, hash);
    int failed;
    ACO__MAY_SWITCH("aco_singleflight_call", location);
    if (s->is_closed)
        errno = EPIPE;
    if (!flight && (s->is_closed || aco_check_cancelled() != 0 || !(flight = begin(s, key, size, hash))))
        return NULL;
    flight->users++;
    flight->seen.callers++;
    failed = aco_event_wait_until_at(&flight->ended, deadline, location);
    if (!failed && !flight->error)
        return &flight->seen;
    if (!failed)
        errno = flight->error;
    else if (--flight->seen.callers == 0 && s->how.cancels_abandoned && !flight->ended.is_set)
        cancel(flight);
    release(flight);
    return NULL;
}

void aco_singleflight_forget(aco_singleflight_t *s, const void *key, size_t size)
{
    flight_t *flight = find(s, key, size, hash_of(key, size));
    if (flight)
        unlist(s, flight);
}

/* ---- The object ---- */

aco_singleflight_t *aco_singleflight_new(const aco_singleflight_options_t *options)
{
    aco_singleflight_t *s;
    size_t size = sizeof *s;
    if (!options->run) {
        (void)aco__service_fail(EINVAL, "aco_singleflight_new", "no `run`");
        return NULL;
    }
    s = aco__service_allocate(&size, "aco_singleflight_new");
    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    s->how = *options;
    if (grow(s, FEWEST_BUCKETS) == 0)
        return s;
    aco__service_free(s, sizeof *s);
    return NULL;
}

int aco_singleflight_close_until_at(aco_singleflight_t *s, int64_t deadline, const char *location)
{
    ACO__MAY_SWITCH("aco_singleflight_close", location);
    s->is_closed = 1;
    for (flight_t *flight = s->running; flight; flight = flight->next_running)
        cancel(flight);
    return s->flights ? aco_event_wait_until_at(&s->unused, deadline, location) : 0;
}

void aco_singleflight_destroy(aco_singleflight_t *s)
{
    if (!s)
        return;
    ACO__ASSERT(!s->flights);
    aco__service_free(s->buckets, s->bucket_count * sizeof *s->buckets);
    aco__service_free(s, sizeof *s);
}
