/* span_export.c: who sends spans. */
#ifndef ACO_SPAN_EXPORT_H
#define ACO_SPAN_EXPORT_H

#include "debug/page.h"
#include "debug/span.h"

/* Takes a span that has ended, which is sent or dropped. Any thread; it neither waits nor locks. */
ACO__HIDDEN void aco__span_export(aco_span_t *span);
/* Writes up to `most` spans of the list as a request of OTLP/HTTP: span_json.c. Returns how many. */
ACO__HIDDEN size_t aco__spans_write(aco__page_t *page, const aco_span_t *spans, size_t most, const char *service);

#endif
