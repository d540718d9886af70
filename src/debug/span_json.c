/* Spans as OTLP/HTTP has them in JSON: numbers of 64 bits are texts, trace and span are hexadecimal. */
#define _GNU_SOURCE
#include "debug/samples.h"
#include "debug/span_json.h"

#include "aco/detail/for_libraries.h"

#include <inttypes.h>

static void write_text_value(aco__page_t *page, const char *name, const char *text)
{
    char json[900];
    aco__page_print(page, "{\"value\":{\"stringValue\":\"%s\"}", aco__json_text(text, json, sizeof json));
    aco__json_member(page, "key", name);
    aco__page_print(page, "}");
}

static void write_attribute(aco__page_t *page, const aco__attribute_t *attribute)
{
    if (attribute->is_text) {
        write_text_value(page, attribute->name, attribute->text);
        return;
    }
    aco__page_print(page, "{\"value\":{\"intValue\":\"%" PRId64 "\"}", attribute->number);
    aco__json_member(page, "key", attribute->name);
    aco__page_print(page, "}");
}

static void write_span(aco__page_t *page, const aco_span_t *span)
{
    enum { STATUS_ERROR = 2 };
    char trace[2 * ACO__TRACE_ID + 1], own[2 * ACO__SPAN_ID + 1], parent[2 * ACO__SPAN_ID + 1] = "";
    aco__hex_write(trace, span->context.trace, ACO__TRACE_ID);
    aco__hex_write(own, span->context.span, ACO__SPAN_ID);
    if (span->has_parent)
        aco__hex_write(parent, span->parent, ACO__SPAN_ID);
    aco__page_print(page,
                    "{\"traceId\":\"%s\",\"spanId\":\"%s\",\"parentSpanId\":\"%s\",\"kind\":%d,"
                    "\"startTimeUnixNano\":\"%" PRId64 "\",\"endTimeUnixNano\":\"%" PRId64 "\"",
                    trace, own, parent, span->kind, span->began, span->ended);
    aco__json_member(page, "name", span->name);
    if (span->state)
        aco__json_member(page, "traceState", span->state);
    aco__page_print(page, ",\"attributes\":[");
    for (const aco__attribute_t *attribute = span->attributes; attribute; attribute = attribute->next) {
        write_attribute(page, attribute);
        aco__page_print(page, attribute->next ? "," : "");
    }
    aco__page_print(page, "],\"status\":{\"code\":%d", span->has_failed ? STATUS_ERROR : 0);
    if (span->message[0])
        aco__json_member(page, "message", span->message);
    aco__page_print(page, "}}");
}

size_t aco__spans_write(aco__page_t *page, const aco_span_t *spans, size_t most, const char *service)
{
    size_t n = 0;
    aco__page_print(page, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    write_text_value(page, "service.name", service);
    aco__page_print(page, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"acorn\"},\"spans\":[");
    for (const aco_span_t *span = spans; span && n < most; span = span->outer, n++) {
        aco__page_print(page, n ? ",\n" : "\n");
        write_span(page, span);
    }
    aco__page_print(page, "]}]}]}\n");
    return n;
}
