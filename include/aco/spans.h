/* Spans of traces across services: what a request cost where, in the format of OpenTelemetry. In the library
 * acorn_debug, beside acorn_http; for Linux. docs/traces.md shows how to use it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_spans_options_t options = {0};
 *   options.endpoint = "http://127.0.0.1:4318/v1/traces";
 *   options.service = "shop";
 *   aco_spans_start(&options);
 *   ...
 *   aco_span_t *span = aco_span_begin("price");   // a part of the request that the task handles
 *   aco_span_set_number(span, "items", n);
 *   aco_span_end(span);
 *
 * From aco_spans_start() on each request of an HTTP server is a span, and each call of an HTTP client inside of one. So
 * are calls of gRPC, under their methods' names. The server continues the trace that the request's headers
 * `traceparent` and `tracestate` name (W3C Trace Context); the client sends these headers, unless the call has its own.
 *
 * A span is a coroutine-local value. It ends in the task that began it, at the latest when that task ends. Members of
 * groups and submitted work (aco/group.h, aco/threads.h) begin inside the span of the task that spawns or submits them.
 * Other new tasks begin outside: aco_span_traceparent() and aco_span_continue() take them in.
 *
 * Before aco_spans_start() nothing is made: aco_span_begin() returns NULL, which all calls take. */
#ifndef ACO_SPANS_H
#define ACO_SPANS_H

#include "http.h"

ACO__BEGIN_C

/* ---- Spans ------------------------------------------------------------------------------------------------------- */

typedef struct aco_span_s aco_span_t;

typedef enum aco_span_kind_e {
    ACO_SPAN_INTERNAL = 1, /* part of what a program does; the others are ends of messages: */
    ACO_SPAN_SERVER,
    ACO_SPAN_CLIENT,
    ACO_SPAN_PRODUCER,
    ACO_SPAN_CONSUMER
} aco_span_kind_t;

/* Begins a span inside the caller's innermost one; without one, it is the first of a trace. It is now the innermost.
 * `name` is copied, at most 95 bytes. Returns the span, for this task's calls only; NULL: without memory, or before
 * aco_spans_start(). Does not wait. */
ACO_API aco_span_t *aco_span_begin(const char *name);
/* The same inside a span of another program or task: `traceparent` and `tracestate` are those headers' values. If
 * `traceparent` is NULL or no valid one, both are ignored and the span is the first of a trace. */
ACO_API aco_span_t *aco_span_continue(const char *name, aco_span_kind_t kind, const char *traceparent,
                                      const char *tracestate);
/* Ends a span, and those inside of it that have not ended, and hands them to the exporter. The one around it is the
 * caller's innermost again. Nothing happens if the caller is not inside of it, or if it is NULL. */
ACO_API void aco_span_end(aco_span_t *span);

/* Adds an attribute; the span has at most 32, a name 63 bytes, a text 255: the rest is cut or dropped. Texts are
 * copied. Nothing happens for NULL, or if the trace is not sampled. */
ACO_API void aco_span_set_text(aco_span_t *span, const char *name, const char *text);
ACO_API void aco_span_set_number(aco_span_t *span, const char *name, int64_t number);
/* Marks a span as failed; `message` is copied, at most 127 bytes. */
ACO_API void aco_span_fail(aco_span_t *span, const char *message);

enum { ACO_TRACEPARENT_SIZE = 56 };
/* Stores the header `traceparent` of the caller's innermost span: for other protocols, for tasks that are no members,
 * and for logs, as it has the trace's number in bytes 3 to 34. Returns 0; -1: the caller is in no span, and `text` is
 * "". */
ACO_API int aco_span_traceparent(char text[ACO_TRACEPARENT_SIZE]);
/* Returns the header `tracestate` that came with the trace, valid while the innermost span is; "": none. */
ACO_API const char *aco_span_tracestate(void);

/* ---- The exporter ------------------------------------------------------------------------------------------------ */

/* Zero in a field, or NULL, means the default. Texts are copied. */
typedef struct aco_spans_options_s {
    /* Where OTLP/HTTP takes traces, in JSON. NULL: what the environment says in OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or
     * in OTEL_EXPORTER_OTLP_ENDPOINT, to which "/v1/traces" is added; else "http://127.0.0.1:4318/v1/traces". */
    const char *endpoint;
    const char *service; /* its name. NULL: OTEL_SERVICE_NAME, else the program's name */
    /* How many traces that begin here are sampled, of a million: all. Less than 0: none. A trace that begins elsewhere
     * is sampled if its traceparent says so. */
    int per_million;
    int max_queued; /* spans that wait to be sent; what comes beyond is dropped and counted: 8192 */
    int64_t interval; /* ns between two batches: a second */
    int64_t call_time; /* ns for a call, its answer included: 10 s */
    const aco_http_client_options_t *client; /* how to reach it: TLS, a proxy. Used until aco_spans_stop() */
    const aco_http_header_t *headers; /* of its requests, up to 8: for keys; used until aco_spans_stop() */
    size_t header_count;
    void *aco__reserved[2]; /* reserved fields are 0 */
} aco_spans_options_t;

/* Begins to make spans, and a thread that sends them. Any thread; in a task it blocks the thread for a moment. Returns
 * 0; on error -1 with errno EINVAL (the endpoint, a number, a reserved field), EBUSY (it has begun already), ENOMEM,
 * EAGAIN (no thread, no free key). A child of fork() has no such thread, and may call it. */
ACO_API int aco_spans_start(const aco_spans_options_t *options);
/* Sends what is queued, for `drain_time` ns at most, and ends the thread. A request that is under way is cut and sent
 * again, so a collector may get its spans twice. No spans are made from now on; those that have not ended are not sent.
 * Blocks the calling thread meanwhile. Any thread. Nothing happens if there is none. */
ACO_API void aco_spans_stop(int64_t drain_time);

/* The numbers are of the process, since it began; /metrics has them, too. */
typedef struct aco_spans_stats_s {
    uint64_t exported; /* spans that the collector has taken */
    uint64_t dropped; /* the queue was full, there was no memory, or the collector has refused them */
    uint64_t failures; /* calls of the collector that have failed; their spans are sent again, unless it refuses them */
    size_t queued; /* spans that wait, or are being sent */
} aco_spans_stats_t;
/* Stores the numbers. Returns 0; on error -1 with errno EINVAL (NULL). Any thread. */
ACO_API int aco_spans_stats(aco_spans_stats_t *stats);

ACO__END_C

#endif
