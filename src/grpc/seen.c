/* Calls that somebody looks at: they are counted by their methods for the page of metrics, where acorn_debug serves
 * one, and have spans, where it makes them. docs/see-inside.md lists the names.
 *
 * What is counted only grows. A method has several parts, each on a cache line, and a thread adds to its own; threads
 * beyond share them, so additions are atomic. Methods are at most MOST_METHODS for each end; others are "_OTHER". */
#include "grpc/seen.h"

#include "aco/detail/counted.h"
#include "aco/detail/for_grpc.h"

#include <stdio.h>
#include <string.h>

enum {
    PARTS = 8,
    ENDS = 2,
    MOST_METHODS = 100,
    PLACES = 256,
    METHOD_SIZE = 128,
    STATUSES = ACO_GRPC_UNAUTHENTICATED + 1
};

typedef struct part {
    uint64_t begun, ended, messages[2], bytes[2];
    uint64_t unused[2]; /* to a cache line */
} part_t;

typedef struct times {
    uint64_t n[ACO__COUNTED_BOUNDS + 1], sum;
} times_t;

typedef struct aco__grpc_counts {
    char method[METHOD_SIZE]; /* as a label: "package.Service/Method" */
    part_t parts[PARTS];
    times_t *times[STATUSES]; /* each PARTS of them. Atomic; NULL: no call has ended so */
} counts_t;

static counts_t *methods[ENDS][PLACES]; /* by their names. Atomic, like the numbers of them */
static unsigned methods_n[ENDS];
static counts_t others[ENDS] = {{.method = "_OTHER"}, {.method = "_OTHER"}};

static void add(uint64_t *to, uint64_t n)
{
    __atomic_fetch_add(to, n, __ATOMIC_RELAXED);
}

/* ---- Methods ---- */

/* Memory that stays, all zeros. NULL: there is none. */
static void *allocate(size_t n)
{
    size_t sz = n;
    void *p = aco__service_allocate(&sz, "gRPC");
    if (p)
        memset(p, 0, sz);
    return p;
}

/* Puts what belongs there, and counts it, unless another thread was first. Returns what is there; NULL: no memory. */
static void *place_once(void *place, size_t n, const char *text, unsigned *placed)
{
    void **at = place, *there = __atomic_load_n(at, __ATOMIC_ACQUIRE), *made;
    if (there || (made = allocate(n)) == NULL)
        return there;
    if (text)
        memcpy(made, text, strlen(text));
    if (__atomic_compare_exchange_n(at, &there, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        if (placed)
            __atomic_fetch_add(placed, 1, __ATOMIC_RELAXED);
        return made;
    }
    aco__service_free(made, n);
    return there;
}

/* Whether it can be a label as it is. */
static int is_plain(const char *method)
{
    size_t n = 0;
    for (; method[n]; n++)
        if (n == METHOD_SIZE - 1 || method[n] <= ' ' || method[n] > '~' || method[n] == '"' || method[n] == '\\')
            return 0;
    return 1;
}

static size_t hash_of(const char *method)
{
    uint32_t hash = 2166136261u;
    for (; *method; method++)
        hash = (hash ^ (unsigned char)*method) * 16777619u;
    return hash;
}

static counts_t *counts_of(aco__grpc_end_t end, const char *method)
{
    const size_t first = method && is_plain(method) ? hash_of(method) : 0, last = first + PLACES;
    if (!method || !is_plain(method))
        return &others[end];
    for (size_t i = first; i < last; i++) {
        counts_t **at = &methods[end][i % PLACES], *there = __atomic_load_n(at, __ATOMIC_ACQUIRE);
        if (!there && __atomic_load_n(&methods_n[end], __ATOMIC_RELAXED) < MOST_METHODS)
            there = place_once(at, sizeof *there, method, &methods_n[end]);
        if (!there)
            break;
        if (strcmp(there->method, method) == 0)
            return there;
    }
    return &others[end];
}

/* ---- Calls ---- */

static int is_fault_of_server(int status)
{
    return status == ACO_GRPC_UNKNOWN || status == ACO_GRPC_DEADLINE_EXCEEDED || status == ACO_GRPC_UNIMPLEMENTED ||
           status == ACO_GRPC_INTERNAL || status == ACO_GRPC_UNAVAILABLE || status == ACO_GRPC_DATA_LOSS;
}

void aco__grpc_see_begin(aco_grpc_call_t *call, aco__grpc_end_t end, const char *method, const char *target)
{
    const int counts = __atomic_load_n(&aco__http_observer, __ATOMIC_RELAXED) != NULL, error = errno;
    const aco__http_tracer_t *tracer = __atomic_load_n(&aco__http_tracer, __ATOMIC_ACQUIRE);
    aco__grpc_seen_t *seen;
    if (aco_likely(!counts && !tracer))
        return;
    seen = aco__grpc_allocate(call, sizeof *seen);
    if (seen) {
        memset(seen, 0, sizeof *seen);
        method = method ? method + 1 : NULL; /* without the '/' */
        seen->end = end;
        seen->is_known = method != NULL;
        seen->began = aco_now();
        seen->counts = counts ? counts_of(end, method) : NULL;
        if (seen->counts)
            add(&seen->counts->parts[aco__counted_part(PARTS)].begun, 1);
        if (tracer && end == GRPC_CALLS)
            tracer->rpc_begins(&seen->traced, method, target);
        call->seen = seen;
    }
    errno = error;
}

void aco__grpc_count_message(aco_grpc_call_t *call, int direction, size_t n)
{
    counts_t *counts = call->seen->counts;
    if (counts) {
        part_t *part = &counts->parts[aco__counted_part(PARTS)];
        add(&part->messages[direction], 1);
        add(&part->bytes[direction], n);
    }
}

static void count_end(const aco__grpc_seen_t *seen, int status)
{
    counts_t *counts = seen->counts;
    const int64_t ns = aco_now() - seen->began;
    const unsigned part = aco__counted_part(PARTS);
    times_t *times = place_once(&counts->times[status], PARTS * sizeof *times, NULL, NULL);
    add(&counts->parts[part].ended, 1);
    if (!times)
        return;
    add(&times[part].n[aco__counted_place(aco__counted_bounds, ACO__COUNTED_BOUNDS, ns)], 1);
    add(&times[part].sum, (uint64_t)ns);
}

void aco__grpc_see_end(aco_grpc_call_t *call, int status)
{
    aco__grpc_seen_t *seen = call->seen;
    const aco__http_tracer_t *tracer = __atomic_load_n(&aco__http_tracer, __ATOMIC_ACQUIRE);
    const char *name = aco_grpc_status_name(status);
    const int error = errno;
    if (aco_likely(!seen))
        return;
    call->seen = NULL;
    if (seen->counts)
        count_end(seen, status);
    if (seen->traced.span)
        tracer->rpc_ends(&seen->traced, name, status != ACO_GRPC_OK);
    else if (tracer && seen->end == GRPC_SERVES && aco__http_request_span(call->request))
        tracer->rpc_is_served(aco__http_request_span(call->request), seen->is_known ? call->method + 1 : NULL, name,
                              is_fault_of_server(status));
    errno = error;
}

/* ---- The numbers ---- */

enum { SERVER_TIMES, CLIENT_TIMES, IN_FLIGHT, MESSAGES, BYTES };

static void put_labels(aco__counted_row_t *row, const char *first, const counts_t *counts, const char *more)
{
    (void)snprintf(row->labels, sizeof row->labels, "%s,rpc_method=\"%s\"%s", first, counts->method, more);
}

/* The i-th method of this end; NULL: there is none. The last place is of the others. */
static const counts_t *counts_at(int end, size_t i)
{
    return i < PLACES ? __atomic_load_n(&methods[end][i], __ATOMIC_ACQUIRE) : &others[end];
}

static int read_times(int end, size_t i, aco__counted_row_t *row)
{
    const counts_t *counts = counts_at(end, i / STATUSES);
    const times_t *times = counts ? __atomic_load_n(&counts->times[i % STATUSES], __ATOMIC_ACQUIRE) : NULL;
    char status[64];
    if (!times)
        return 0;
    memset(row, 0, sizeof *row);
    (void)snprintf(status, sizeof status, ",rpc_response_status_code=\"%s\"",
                   aco_grpc_status_name((int)(i % STATUSES)));
    put_labels(row, "rpc_system_name=\"grpc\"", counts, status);
    for (size_t part = 0; part < PARTS; part++) {
        row->value += __atomic_load_n(&times[part].sum, __ATOMIC_RELAXED);
        for (size_t k = 0; k <= ACO__COUNTED_BOUNDS; k++)
            row->times[k] += __atomic_load_n(&times[part].n[k], __ATOMIC_RELAXED);
    }
    return 1;
}

static uint64_t sum_of_part(const part_t *part, int which, int direction)
{
    return __atomic_load_n(which == MESSAGES ? &part->messages[direction] : &part->bytes[direction], __ATOMIC_RELAXED);
}

static int read_parts(int which, size_t i, int direction, aco__counted_row_t *row)
{
    static const char *const ends[] = {"end=\"server\"", "end=\"client\""};
    static const char *const directions[] = {",direction=\"sent\"", ",direction=\"received\""};
    const int end = i > PLACES;
    const counts_t *counts = counts_at(end, i % (PLACES + 1));
    uint64_t begun = 0, ended = 0;
    if (!counts)
        return 0;
    row->value = 0;
    for (size_t part = 0; part < PARTS; part++) /* first: what has ended has begun */
        ended += __atomic_load_n(&counts->parts[part].ended, __ATOMIC_ACQUIRE);
    for (size_t part = 0; part < PARTS; part++) {
        begun += __atomic_load_n(&counts->parts[part].begun, __ATOMIC_RELAXED);
        if (which != IN_FLIGHT)
            row->value += sum_of_part(&counts->parts[part], which, direction);
    }
    if (which == IN_FLIGHT)
        row->value = begun > ended ? begun - ended : 0;
    put_labels(row, ends[end], counts, which == IN_FLIGHT ? "" : directions[direction]);
    return begun != 0;
}

static int read_rows(int which, size_t i, aco__counted_row_t *row)
{
    const size_t places = PLACES + 1;
    if (which <= CLIENT_TIMES)
        return i < places * STATUSES ? read_times(which, i, row) : -1;
    if (which == IN_FLIGHT)
        return i < ENDS * places ? read_parts(which, i, 0, row) : -1;
    return i < 2 * ENDS * places ? read_parts(which, i / 2, (int)(i % 2), row) : -1;
}

ACO__AT_LOAD static void register_rows(void)
{
    static aco__counted_rows_t rows[] = {
        {"rpc_server_call_duration_seconds", "seconds", "Calls of gRPC that servers have handled.", ACO__COUNTED_TIMES,
         SERVER_TIMES, read_rows, NULL},
        {"rpc_client_call_duration_seconds", "seconds", "Calls of gRPC that clients have made.", ACO__COUNTED_TIMES,
         CLIENT_TIMES, read_rows, NULL},
        {"acorn_grpc_calls_in_flight", "", "Calls that have not ended.", ACO__COUNTED_GAUGE, IN_FLIGHT, read_rows,
         NULL},
        {"acorn_grpc_messages", "", "Messages of calls.", ACO__COUNTED_COUNTER, MESSAGES, read_rows, NULL},
        {"acorn_grpc_message_bytes", "bytes", "Bytes of messages as they are sent, without their prefixes.",
         ACO__COUNTED_COUNTER, BYTES, read_rows, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        aco__counted_rows_add(&rows[i]);
}
