/* span_queue.c: spans that have ended and wait to be sent. */
#ifndef ACO_SPAN_QUEUE_H
#define ACO_SPAN_QUEUE_H

#include "debug/span.h"

/* Whether spans are made. Atomic. */
ACO__HIDDEN extern int aco__spans_are_on;

ACO__HIDDEN void aco__span_free(aco_span_t *span);
/* Takes a span that has ended, which is sent or dropped. Any thread; it neither waits nor locks. */
ACO__HIDDEN void aco__span_export(aco_span_t *span);

/* For who sends them: an empty queue for so many spans, those that are being sent included. */
ACO__HIDDEN void aco__spans_queue_begin(size_t most);
/* In a child of fork(): its parent sends what was there. */
ACO__HIDDEN void aco__spans_queue_forget(void);
/* All that have ended, behind those of `list`, in the order of their ends. */
ACO__HIDDEN aco_span_t *aco__spans_take(aco_span_t *list);
/* Frees the first `n`; the others. */
ACO__HIDDEN aco_span_t *aco__spans_free(aco_span_t *list, size_t n);
/* Frees all and counts them as dropped. */
ACO__HIDDEN void aco__spans_drop(aco_span_t *list);
ACO__HIDDEN void aco__spans_count_dropped(size_t n);
/* Stores `dropped` and `queued`. */
ACO__HIDDEN void aco__spans_queue_stats(aco_spans_stats_t *stats);

#endif
