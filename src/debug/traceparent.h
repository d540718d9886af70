/* traceparent.c: the headers of W3C Trace Context. */
#ifndef ACO_TRACEPARENT_H
#define ACO_TRACEPARENT_H

#include "os/platform.h"
#include "base/invariants.h"

#include "aco/spans.h"

enum { ACO__TRACE_ID = 16, ACO__SPAN_ID = 8, ACO__IS_SAMPLED = 1, ACO__TRACESTATE = 512 };

/* What a span is known by. */
typedef struct aco__trace_context {
    unsigned char trace[ACO__TRACE_ID], span[ACO__SPAN_ID], flags;
} aco__trace_context_t;

/* 0; -1: it is none, or of a version that may mean anything. */
ACO__HIDDEN int aco__traceparent_read(const char *text, aco__trace_context_t *context);
ACO__HIDDEN void aco__traceparent_write(char text[ACO_TRACEPARENT_SIZE], const aco__trace_context_t *context);
/* Whether a tracestate is passed on: a list of up to 32 members in up to ACO__TRACESTATE bytes. */
ACO__HIDDEN int aco__tracestate_is_good(const char *text);
/* Stores `n` bytes as hexadecimal digits and a 0. */
ACO__HIDDEN void aco__hex_write(char *text, const unsigned char *bytes, size_t n);

#endif
