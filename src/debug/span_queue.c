/* Spans that have ended: tasks push them onto a list without a lock, the exporter takes the whole list. */
#include "debug/span_queue.h"

#include <stdlib.h>

int aco__spans_are_on;

static aco_span_t *ended_spans; /* the last one first. Atomic, like these numbers */
static size_t queued, most_queued;
static uint64_t dropped;

void aco__span_free(aco_span_t *span)
{
    while (span->attributes) {
        aco__attribute_t *attribute = span->attributes;
        span->attributes = attribute->next;
        free(attribute);
    }
    free(span->state);
    free(span);
}

void aco__spans_count_dropped(size_t n)
{
    __atomic_fetch_add(&dropped, n, __ATOMIC_RELAXED);
}

void aco__span_export(aco_span_t *span)
{
    aco_span_t *first = __atomic_load_n(&ended_spans, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&aco__spans_are_on, __ATOMIC_ACQUIRE)) {
        aco__span_free(span);
        return;
    }
    if (__atomic_fetch_add(&queued, 1, __ATOMIC_RELAXED) >= __atomic_load_n(&most_queued, __ATOMIC_RELAXED)) {
        __atomic_fetch_sub(&queued, 1, __ATOMIC_RELAXED);
        aco__spans_count_dropped(1);
        aco__span_free(span);
        return;
    }
    do
        span->outer = first;
    while (!__atomic_compare_exchange_n(&ended_spans, &first, span, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

aco_span_t *aco__spans_take(aco_span_t *list)
{
    aco_span_t *last_first = __atomic_exchange_n(&ended_spans, NULL, __ATOMIC_ACQUIRE), *first = NULL, **end = &list;
    while (last_first) {
        aco_span_t *span = last_first;
        last_first = span->outer;
        span->outer = first;
        first = span;
    }
    while (*end)
        end = &(*end)->outer;
    *end = first;
    return list;
}

aco_span_t *aco__spans_free(aco_span_t *list, size_t n)
{
    for (; list && n; n--) {
        aco_span_t *span = list;
        list = span->outer;
        aco__span_free(span);
        __atomic_fetch_sub(&queued, 1, __ATOMIC_RELAXED);
    }
    return list;
}

void aco__spans_drop(aco_span_t *list)
{
    size_t n = 0;
    for (const aco_span_t *span = list; span; span = span->outer)
        n++;
    aco__spans_count_dropped(n);
    (void)aco__spans_free(list, n);
}

void aco__spans_queue_begin(size_t most)
{
    (void)aco__spans_free(aco__spans_take(NULL), SIZE_MAX); /* whose tasks did not see that spans were off */
    __atomic_store_n(&most_queued, most, __ATOMIC_RELAXED);
}

void aco__spans_queue_forget(void)
{
    (void)aco__spans_free(aco__spans_take(NULL), SIZE_MAX);
    __atomic_store_n(&queued, 0, __ATOMIC_RELAXED); /* also what the parent's thread had taken */
}

void aco__spans_queue_stats(aco_spans_stats_t *stats)
{
    stats->dropped = __atomic_load_n(&dropped, __ATOMIC_RELAXED);
    stats->queued = __atomic_load_n(&queued, __ATOMIC_RELAXED);
}
