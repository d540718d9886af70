/* The headers of traces: an input's bytes up to the first line end are a traceparent, those behind it a tracestate.
 *
 * The property: a span continues the trace if and only if the traceparent is one, by a reading of this file's own; what
 * it hands on is a traceparent of the same trace; a tracestate is handed on whole, or not at all. */
#define _GNU_SOURCE
#define FUZZ_NAME "traces"
#include "aco/spans.h"
#include "fuzz.h"

enum { MOST_TEXT = 4096, VERSION = 0, TRACE = 3, SPAN = 36, FLAGS = 53, LENGTH = 55 };

static int fuzz_actor(void)
{
    return 0;
}

static int is_hex(const char *text, size_t n)
{
    return strspn(text, "0123456789abcdef") >= n;
}

/* Whether this is a traceparent, of version 00 or of a later one. */
static int is_traceparent(const char *text)
{
    if (strlen(text) < LENGTH || !is_hex(text + VERSION, 2) || !is_hex(text + TRACE, 32) || !is_hex(text + SPAN, 16) ||
        !is_hex(text + FLAGS, 2) || text[TRACE - 1] != '-' || text[SPAN - 1] != '-' || text[FLAGS - 1] != '-')
        return 0;
    if (strncmp(text, "ff", 2) == 0 || strspn(text + TRACE, "0") >= 32 || strspn(text + SPAN, "0") >= 16)
        return 0;
    return !text[LENGTH] || (text[LENGTH] == '-' && strncmp(text, "00", 2) != 0);
}

static int is_tracestate(const char *text)
{
    size_t commas = 0, n = strlen(text);
    for (size_t i = 0; i < n; i++) {
        commas += text[i] == ',';
        if (text[i] != '\t' && ((unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~'))
            return 0;
    }
    return n <= 512 && commas < 32 && strchr(text, '=');
}

/* The caller's span is one of the trace that `parent` names, but not that span. */
static void expect_in_trace(const char *parent, const char *own)
{
    EXPECT(is_traceparent(own) && strlen(own) == LENGTH && strncmp(own, "00-", 3) == 0);
    EXPECT(strncmp(own + TRACE, parent + TRACE, 32) == 0 && strncmp(own + SPAN, parent + SPAN, 16) != 0);
    EXPECT((own[LENGTH - 1] == '1') == (strchr("13579bdf", parent[LENGTH - 1]) != NULL));
}

static void start_once(void)
{
    static int is_on;
    aco_spans_options_t options = {.endpoint = "http://127.0.0.1:1/", .per_million = -1, .max_queued = 1};
    options.interval = 3600 * ACO_SECOND;
    if (!is_on)
        EXPECT(aco_spans_start(&options) == 0);
    is_on = 1;
}

static size_t take_line(char *line)
{
    size_t n = 0;
    unsigned byte;
    while (!is_over() && n < MOST_TEXT - 1 && (byte = next()) != '\n' && byte)
        line[n++] = (char)byte;
    line[n] = 0;
    return n;
}

static void fuzz_input(void)
{
    char parent[MOST_TEXT], state[MOST_TEXT], own[ACO_TRACEPARENT_SIZE], inner[ACO_TRACEPARENT_SIZE];
    aco_span_t *span, *child;
    int continues;
    if (is_over())
        return;
    start_once();
    (void)take_line(parent);
    (void)take_line(state);
    continues = is_traceparent(parent);
    if (tracing)
        fprintf(stderr, "%s, %s (%s)\n", parent, state, continues ? "continues" : "is new");
    span = aco_span_continue("fuzzed", ACO_SPAN_SERVER, parent, state);
    EXPECT(span && aco_span_traceparent(own) == 0);
    if (continues)
        expect_in_trace(parent, own);
    else
        EXPECT(is_traceparent(own) && strcmp(own + FLAGS, "00") == 0 &&
               (strlen(parent) < SPAN || strncmp(own + TRACE, parent + TRACE, 32) != 0));
    EXPECT(strcmp(aco_span_tracestate(), continues && is_tracestate(state) ? state : "") == 0);
    child = aco_span_begin("inside");
    EXPECT(child && aco_span_traceparent(inner) == 0);
    expect_in_trace(own, inner);
    aco_span_end(span); /* and the one inside */
    EXPECT(aco_span_traceparent(own) == -1 && !own[0]);
}
