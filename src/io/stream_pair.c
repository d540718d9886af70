/* Streams of memory: two ends, and a ring of bytes for each direction. */
#include "base/invariants.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"
#include "aco/sync.h"

#include <string.h>

/* The bytes of one direction. */
typedef struct pair_way {
    char *bytes; /* a ring */
    size_t at, n; /* the first one that was not read; how many there are */
    aco_event_t may_read, may_write; /* there are bytes or room, or a call fails at once: kept by set_events() */
    unsigned char has_end; /* nothing more will be written */
    unsigned char is_cut; /* and that is a failure */
    unsigned char is_left; /* nobody will read */
} pair_way_t;

typedef struct end {
    aco_stream_t is; /* first */
    struct pair *pair;
    unsigned char i; /* it writes to ways[i], and reads from the other */
    unsigned char is_closed;
} end_t;

typedef struct pair {
    end_t ends[2];
    pair_way_t ways[2];
    size_t size; /* of each ring */
    size_t sz;
    unsigned users; /* ends that are open, and calls; the last one frees it */
} pair_t;

static end_t *end_of_pair(aco_stream_t *stream)
{
    return (end_t *)(void *)stream;
}

static void drop_pair(pair_t *pair)
{
    ACO__ASSERT(pair->users > 0);
    if (--pair->users == 0)
        aco__service_free(pair, pair->sz);
}

static void set_event(aco_event_t *event, int is_set)
{
    if (is_set && !event->is_set)
        aco_event_set(event);
    else if (!is_set)
        aco_event_reset(event);
}

static void set_events(pair_t *pair, int i)
{
    pair_way_t *way = &pair->ways[i];
    ACO__ASSERT(way->at < pair->size && way->n <= pair->size);
    set_event(&way->may_read, way->n > 0 || way->has_end || way->is_left);
    set_event(&way->may_write, way->n < pair->size || way->has_end || way->is_left);
}

static int fail_pair(int error)
{
    errno = error;
    return -1;
}

/* ---- Bytes ---- */

static size_t take_bytes(pair_t *pair, int i, char *p, size_t n)
{
    pair_way_t *way = &pair->ways[i];
    size_t taken = n < way->n ? n : way->n, first = pair->size - way->at;
    first = taken < first ? taken : first;
    memcpy(p, way->bytes + way->at, first);
    memcpy(p + first, way->bytes, taken - first);
    way->at = (way->at + taken) % pair->size;
    way->n -= taken;
    set_events(pair, i);
    return taken;
}

static size_t put_bytes(pair_t *pair, int i, const char *p, size_t n)
{
    pair_way_t *way = &pair->ways[i];
    size_t room = pair->size - way->n, taken = n < room ? n : room;
    size_t to = (way->at + way->n) % pair->size, first = pair->size - to;
    first = taken < first ? taken : first;
    memcpy(way->bytes + to, p, first);
    memcpy(way->bytes, p + first, taken - first);
    way->n += taken;
    set_events(pair, i);
    return taken;
}

/* Waits until the end can read. 0, or -1 and errno. */
ACO__SWITCHES static int await_bytes(const end_t *end, const char *location)
{
    pair_way_t *way = &end->pair->ways[!end->i];
    while (!end->is_closed && way->n == 0 && !way->has_end)
        if (aco_event_wait_at(&way->may_read, location) != 0)
            return -1;
    return end->is_closed ? fail_pair(ECANCELED) : 0;
}

ACO__SWITCHES static ssize_t pair_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    end_t *end = end_of_pair(stream);
    pair_t *pair = end->pair;
    const pair_way_t *way = &pair->ways[!end->i];
    ssize_t got = 0;
    pair->users++;
    aco__io_spend("aco_stream_read", location);
    if (n > 0 && await_bytes(end, location) != 0)
        got = -1;
    else if (n > 0 && way->is_cut)
        got = fail_pair(ECONNRESET);
    else if (n > 0)
        got = (ssize_t)take_bytes(pair, !end->i, p, n);
    drop_pair(pair);
    return got;
}

/* Waits until the end can write. 0, or -1 and errno. */
ACO__SWITCHES static int await_room(const end_t *end, const char *location)
{
    pair_way_t *way = &end->pair->ways[end->i];
    while (!end->is_closed && way->n == end->pair->size && !way->has_end && !way->is_left)
        if (aco_event_wait_at(&way->may_write, location) != 0)
            return -1;
    return end->is_closed ? fail_pair(ECANCELED) : way->has_end || way->is_left ? fail_pair(EPIPE) : 0;
}

ACO__SWITCHES static ssize_t pair_write(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    end_t *end = end_of_pair(stream);
    pair_t *pair = end->pair;
    ssize_t sent = 0;
    pair->users++;
    aco__io_spend("aco_stream_write", location);
    if (n > 0)
        sent = await_room(end, location) != 0 ? -1 : (ssize_t)put_bytes(pair, end->i, p, n);
    drop_pair(pair);
    return sent;
}

ACO__SWITCHES static int pair_wait_readable(aco_stream_t *stream, const char *location)
{
    end_t *end = end_of_pair(stream);
    pair_t *pair = end->pair;
    int result;
    pair->users++;
    aco__io_spend("aco_stream_wait_readable", location);
    result = await_bytes(end, location);
    drop_pair(pair);
    return result;
}

static int pair_has_input(aco_stream_t *stream)
{
    const end_t *end = end_of_pair(stream);
    const pair_way_t *way = &end->pair->ways[!end->i];
    return way->n > 0 || way->has_end;
}

/* ---- Ends ---- */

static int pair_shutdown(aco_stream_t *stream, const char *location)
{
    end_t *end = end_of_pair(stream);
    (void)location;
    end->pair->ways[end->i].has_end = 1;
    set_events(end->pair, end->i);
    return 0;
}

static void pair_close(aco_stream_t *stream)
{
    end_t *end = end_of_pair(stream);
    pair_t *pair = end->pair;
    ACO__ASSERT(!end->is_closed);
    end->is_closed = 1;
    pair->ways[end->i].has_end = 1;
    pair->ways[!end->i].is_left = 1;
    set_events(pair, 0);
    set_events(pair, 1);
    drop_pair(pair);
}

static void pair_abort(aco_stream_t *stream)
{
    const end_t *end = end_of_pair(stream);
    pair_way_t *way = &end->pair->ways[end->i];
    if (!way->has_end)
        way->is_cut = 1;
    pair_close(stream);
}

int aco_stream_pair(aco_stream_t *ends[2], size_t size)
{
    static const aco_stream_functions_t functions = {
        .read = pair_read,
        .write = pair_write,
        .close = pair_close,
        .abort = pair_abort,
        .shutdown = pair_shutdown,
        .wait_readable = pair_wait_readable,
        .has_input = pair_has_input,
    };
    static const char call[] = "aco_stream_pair";
    size_t sz = sizeof(pair_t) + 2 * size;
    pair_t *pair;
    if (size == 0 || size > PTRDIFF_MAX / 4)
        return aco__service_fail(EINVAL, call, "the size");
    pair = aco__service_allocate(&sz, call);
    if (!pair)
        return -1;
    memset(pair, 0, sizeof *pair);
    pair->size = size;
    pair->sz = sz;
    pair->users = 2;
    for (int i = 0; i < 2; i++) {
        pair->ends[i].is.functions = &functions;
        pair->ends[i].is.fd = -1;
        pair->ends[i].pair = pair;
        pair->ends[i].i = (unsigned char)i;
        pair->ways[i].bytes = (char *)(pair + 1) + (size_t)i * size;
        set_events(pair, i);
        ends[i] = &pair->ends[i].is;
    }
    return 0;
}
