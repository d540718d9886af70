/* At exit, in a program with a debug unit: a line for each coroutine and task of the thread that exits which was never
 * destroyed or joined, with the place where it was made. No leak checker finds them: the library still knows them. */
#include "coroutine/forgotten.h"

#include <string.h>

/* The places: a hash table by control block, under the process lock. A block that is used again overwrites its entry,
 * except when a release unit takes it from the cache. */
typedef struct place {
    const aco_t *co;
    const void *address; /* NULL: it is not reported */
} place_t;

static place_t *places; /* NULL, or a power of two of entries; at most half of them are in use */
static size_t places_room, places_used;

enum { FIRST_PLACES = 64, MOST_LINES = 10, PLACE_TEXT = 256 };

static place_t *entry_of_block(const aco_t *co)
{
    size_t at = ((uintptr_t)co >> 6) * (size_t)2654435761u;
    while (places[at &= places_room - 1].co && places[at].co != co)
        at++;
    return &places[at];
}

/* 0 without memory. */
static int make_places(void)
{
    place_t *old = places;
    size_t old_room = places_room;
    ACO__ASSERT_LOCKED(&aco__process_lock);
    if (2 * (places_used + 1) <= places_room)
        return 1;
    places = calloc(places_room ? 2 * places_room : FIRST_PLACES, sizeof *places);
    if (!places) {
        places = old;
        return 0;
    }
    places_room = places_room ? 2 * places_room : FIRST_PLACES;
    for (size_t i = 0; i < old_room; i++)
        if (old[i].co)
            *entry_of_block(old[i].co) = old[i];
    free(old);
    return 1;
}

static __thread int is_expected;

void aco__forgotten_expect(int expected)
{
    is_expected = expected;
}

static __attribute__((noinline)) void note_place(const aco_t *co, const void *address)
{
    int saved = errno;
    aco__lock();
    if (make_places()) {
        place_t *entry = entry_of_block(co);
        places_used += !entry->co;
        entry->co = co;
        entry->address = is_expected ? NULL : address;
    }
    aco__unlock();
    errno = saved;
}

void aco__made_at(const aco_t *co, const void *address)
{
    const void **spawned_at = aco__spawned_at(co);
    if (spawned_at)
        *spawned_at = address;
    if (aco__debug_units)
        note_place(co, address);
}

typedef struct forgotten {
    size_t coroutines, tasks;
} forgotten_t;

static int report_forgotten(aco_t *co, void *arg)
{
    forgotten_t *forgotten = arg;
    unsigned status = aco__status(co);
    const place_t *place;
    const char *name, *what;
    char text[PLACE_TEXT] = "an unknown place";
    if (status == ACO__DESTROYED || co == aco__running() ||
        ((status == ACO__MAIN || status == ACO__RESUMING || status == ACO__RESUMING_SAVED) && !aco__is_task(co)))
        return 0;
    place = places ? entry_of_block(co) : NULL;
    if (place && place->co && !place->address)
        return 0;
    what = aco__is_task(co) ? "is a task that has not ended" : status == ACO__ENDED ? "has ended" : "has not ended";
    if (++*(aco__is_task(co) ? &forgotten->tasks : &forgotten->coroutines) > MOST_LINES)
        return 0;
    if (place && place->co)
        aco__os_describe_code(place->address, text, sizeof text);
    name = aco_name(co);
    aco__warn("exit", co, "%s%s%s%s and was not destroyed%s; made at %s", *name ? "\"" : "", name, *name ? "\" " : "",
              what, co->aco__state & ACO__PRIVATE ? " or joined" : "", text);
    return 0;
}

/* Only this thread's: others may still run. */
__attribute__((destructor)) static void report_at_exit(void)
{
    const char *wanted = aco__os_environment("ACO_REPORT_FORGOTTEN");
    forgotten_t forgotten = {0, 0};
    if (!(wanted && *wanted ? strcmp(wanted, "0") != 0 : aco__debug_units) || !aco__self()->heap)
        return;
    aco__blocks_each(report_forgotten, &forgotten);
    if (forgotten.coroutines > MOST_LINES || forgotten.tasks > MOST_LINES)
        aco__warn("exit", NULL, "%zu coroutines and %zu tasks in all were not destroyed or joined",
                  forgotten.coroutines, forgotten.tasks);
}
