/* Spans: each task has a chain of them, the innermost first, as a coroutine-local value. No two tasks share one: who
 * inherits gets a copy of what the innermost is known by, which is never sent. So nothing here is locked. */
#define _GNU_SOURCE
#include "debug/samples.h"
#include "debug/span.h"
#include "debug/span_queue.h"
#include "system/system.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t key_lock = PTHREAD_MUTEX_INITIALIZER;
static int has_key;          /* the key is there; it stays */
static aco_local_key_t span_key;
static uint64_t sampled_below; /* of the trace's last 63 bits. Atomic, like the next one */
static unsigned seeds; /* threads take new random numbers when it has changed: a child of fork() has its parent's */

/* ---- Numbers ---- */

typedef struct random_numbers {
    uint64_t at[32];
    unsigned left, seed;
} random_numbers_t;

/* No number is 0: that would be none. */
static uint64_t random_number(void)
{
    static __thread random_numbers_t own;
    unsigned seed = __atomic_load_n(&seeds, __ATOMIC_RELAXED);
    uint64_t number;
    if (!own.left || own.seed != seed) {
        struct timespec now = {0};
        if (aco__system.getrandom(own.at, sizeof own.at, 0) != (ssize_t)sizeof own.at) {
            aco__system.clock_gettime(CLOCK_REALTIME, &now);
            for (size_t i = 0; i < sizeof own.at / sizeof *own.at; i++)
                own.at[i] = (own.at[i] ^ (uint64_t)now.tv_nsec ^ (uintptr_t)&own) * UINT64_C(0x9E3779B97F4A7C15) + i;
        }
        own.left = sizeof own.at / sizeof *own.at;
        own.seed = seed;
    }
    number = own.at[--own.left];
    return number ? number : 1;
}

static void number_span(aco__trace_context_t *context)
{
    uint64_t number = random_number();
    memcpy(context->span, &number, sizeof number);
}

static void number_trace(aco__trace_context_t *context)
{
    uint64_t numbers[2] = {random_number(), random_number()};
    memcpy(context->trace, numbers, sizeof numbers);
    context->flags = numbers[1] >> 1 < __atomic_load_n(&sampled_below, __ATOMIC_RELAXED) ? ACO__IS_SAMPLED : 0;
}

void aco__span_unsampled(aco__trace_context_t *context)
{
    number_trace(context);
    number_span(context);
    context->flags = 0;
}

static int64_t time_of_day(void)
{
    struct timespec now = {0};
    aco__system.clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- The chain ---- */

void aco__span_finish(aco_span_t *span)
{
    if (span->is_outside || !(span->context.flags & ACO__IS_SAMPLED)) {
        aco__span_free(span);
        return;
    }
    span->ended = time_of_day();
    aco__span_export(span);
}

/* The destructor: the task ends. */
static void finish_chain(void *chain)
{
    for (aco_span_t *span = chain, *outer; span; span = outer) {
        outer = span->outer;
        aco__span_finish(span);
    }
}

static void *copy_outside(void *chain)
{
    const aco_span_t *span = chain;
    aco_span_t *copy = calloc(1, sizeof *copy);
    if (!copy)
        return NULL;
    copy->context = span->context;
    copy->is_outside = 1;
    copy->state = span->state ? strdup(span->state) : NULL;
    return copy;
}

static void drop_outside(void *copy)
{
    aco__span_free(copy);
}

aco_span_t *aco__span_own(void)
{
    return __atomic_load_n(&aco__spans_are_on, __ATOMIC_ACQUIRE) ? aco_get_local(span_key) : NULL;
}

aco_span_t *aco__span_begin_apart(const char *name, aco_span_kind_t kind, const aco__trace_context_t *parent,
                                  const char *state)
{
    aco_span_t *span = calloc(1, sizeof *span);
    if (!span)
        return NULL;
    if (parent) {
        span->context = *parent;
        memcpy(span->parent, parent->span, sizeof span->parent);
        span->has_parent = 1;
        span->state = state ? strdup(state) : NULL;
    } else {
        number_trace(&span->context);
    }
    number_span(&span->context);
    span->kind = (unsigned char)kind;
    aco__sample_text(span->name, sizeof span->name, name ? name : "");
    if (span->context.flags & ACO__IS_SAMPLED)
        span->began = time_of_day();
    return span;
}

aco_span_t *aco__span_begin(const char *name, aco_span_kind_t kind, const aco__trace_context_t *parent,
                            const char *state)
{
    aco_span_t *span = aco__span_begin_apart(name, kind, parent, state);
    if (!span)
        return NULL;
    span->outer = aco_get_local(span_key);
    if (aco_set_local(span_key, span) == 0)
        return span;
    aco__span_free(span);
    return NULL;
}

/* ---- The calls ---- */

aco_span_t *aco_span_begin(const char *name)
{
    const aco_span_t *own = aco__span_own();
    if (!__atomic_load_n(&aco__spans_are_on, __ATOMIC_ACQUIRE))
        return NULL;
    return aco__span_begin(name, ACO_SPAN_INTERNAL, own ? &own->context : NULL, own ? own->state : NULL);
}

aco_span_t *aco_span_continue(const char *name, aco_span_kind_t kind, const char *traceparent, const char *tracestate)
{
    aco__trace_context_t parent;
    const int has_parent = aco__traceparent_read(traceparent, &parent) == 0;
    if (!__atomic_load_n(&aco__spans_are_on, __ATOMIC_ACQUIRE))
        return NULL;
    if (kind < ACO_SPAN_INTERNAL || kind > ACO_SPAN_CONSUMER)
        kind = ACO_SPAN_INTERNAL;
    return aco__span_begin(name, kind, has_parent ? &parent : NULL,
                           has_parent && tracestate && aco__tracestate_is_good(tracestate) ? tracestate : NULL);
}

int aco__span_is_open(const aco_span_t *span)
{
    const aco_span_t *at = span ? aco_get_local(span_key) : NULL;
    while (at && at != span)
        at = at->outer;
    return at != NULL;
}

void aco_span_end(aco_span_t *span)
{
    int error = errno;
    aco_span_t *own = span ? aco_get_local(span_key) : NULL;
    if (!aco__span_is_open(span))
        return;
    (void)aco_set_local(span_key, span->outer); /* it has room: it has held the chain */
    span->outer = NULL;
    finish_chain(own);
    errno = error;
}

/* One more attribute with this room for a text; NULL: none. */
static aco__attribute_t *add_attribute(aco_span_t *span, const char *name, size_t room)
{
    aco__attribute_t *attribute;
    if (!span || !name || !(span->context.flags & ACO__IS_SAMPLED) || span->attributes_n == ACO__SPAN_ATTRIBUTES)
        return NULL;
    attribute = calloc(1, sizeof *attribute + room);
    if (!attribute)
        return NULL;
    aco__sample_text(attribute->name, sizeof attribute->name, name);
    attribute->next = span->attributes;
    span->attributes = attribute;
    span->attributes_n++;
    return attribute;
}

void aco_span_set_text(aco_span_t *span, const char *name, const char *text)
{
    enum { MOST_TEXT = 255 };
    size_t length = text ? strlen(text) : 0, n = length < MOST_TEXT ? length : MOST_TEXT;
    aco__attribute_t *attribute = text ? add_attribute(span, name, n + 1) : NULL;
    if (!attribute)
        return;
    attribute->is_text = 1;
    memcpy(attribute->text, text, n); /* the 0 behind it is there */
}

void aco_span_set_number(aco_span_t *span, const char *name, int64_t number)
{
    aco__attribute_t *attribute = add_attribute(span, name, 0);
    if (attribute)
        attribute->number = number;
}

void aco_span_fail(aco_span_t *span, const char *message)
{
    if (!span)
        return;
    span->has_failed = 1;
    aco__sample_text(span->message, sizeof span->message, message ? message : "");
}

int aco_span_traceparent(char text[ACO_TRACEPARENT_SIZE])
{
    const aco_span_t *own = aco__span_own();
    text[0] = 0;
    if (!own)
        return -1;
    aco__traceparent_write(text, &own->context);
    return 0;
}

const char *aco_span_tracestate(void)
{
    const aco_span_t *own = aco__span_own();
    return own && own->state ? own->state : "";
}

/* ---- On and off ---- */

int aco__spans_begin(int per_million)
{
    static const aco__inheritance_t inherited = {copy_outside, drop_outside};
    const int million = 1000000;
    const uint64_t all = UINT64_C(1) << 63;
    aco__system.pthread_mutex_lock(&key_lock);
    if (!has_key && aco_local_key_create(&span_key, finish_chain) == 0) {
        has_key = 1;
        aco__inherit(span_key, &inherited);
    }
    aco__system.pthread_mutex_unlock(&key_lock);
    if (!has_key)
        return -1;
    if (!per_million || per_million >= million)
        __atomic_store_n(&sampled_below, all, __ATOMIC_RELAXED);
    else
        __atomic_store_n(&sampled_below, per_million < 0 ? 0 : all / (uint64_t)million * (uint64_t)per_million,
                         __ATOMIC_RELAXED);
    __atomic_fetch_add(&seeds, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&aco__spans_are_on, 1, __ATOMIC_RELEASE);
    return 0;
}

void aco__spans_end(void)
{
    __atomic_store_n(&aco__spans_are_on, 0, __ATOMIC_RELEASE);
}

void aco__spans_leave_to_parent(void)
{
    const pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
    key_lock = free_lock;
    aco__spans_end();
}
