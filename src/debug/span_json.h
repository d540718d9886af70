/* span_json.c: spans for a collector. */
#ifndef ACO_SPAN_JSON_H
#define ACO_SPAN_JSON_H

#include "debug/page.h"
#include "debug/span.h"

/* Writes up to `most` spans of the list as a request of OTLP/HTTP. Returns how many. */
ACO__HIDDEN size_t aco__spans_write(aco__page_t *page, const aco_span_t *spans, size_t most, const char *service);

#endif
