/* The headers of W3C Trace Context: "00-TRACE-SPAN-FLAGS" in lower-case hexadecimal digits, and a list of the services'
 * own, which is passed on. */
#define _GNU_SOURCE /* strnlen */
#include "debug/traceparent.h"

#include <string.h>

enum { TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53, VERSION_00_LENGTH = 55, MOST_MEMBERS = 32 };

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 0; -1: these are not `n` bytes. */
static int hex_read(unsigned char *bytes, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = digit_of(text[2 * i]), low = high < 0 ? -1 : digit_of(text[2 * i + 1]);
        if (low < 0)
            return -1;
        bytes[i] = (unsigned char)(16 * high + low);
    }
    return 0;
}

static int is_zero(const unsigned char *bytes, size_t n)
{
    unsigned any = 0;
    for (size_t i = 0; i < n; i++)
        any |= bytes[i];
    return !any;
}

int aco__traceparent_read(const char *text, aco__trace_context_t *context)
{
    unsigned char version;
    size_t n = text ? strnlen(text, VERSION_00_LENGTH + 1) : 0;
    if (n < VERSION_00_LENGTH || hex_read(&version, text, 1) != 0 || version == 0xff)
        return -1;
    if (n > VERSION_00_LENGTH && (version == 0 || text[VERSION_00_LENGTH] != '-'))
        return -1; /* later versions may have more parts */
    if (text[TRACE_AT - 1] != '-' || text[SPAN_AT - 1] != '-' || text[FLAGS_AT - 1] != '-')
        return -1;
    if (hex_read(context->trace, text + TRACE_AT, ACO__TRACE_ID) != 0 ||
        hex_read(context->span, text + SPAN_AT, ACO__SPAN_ID) != 0 ||
        hex_read(&context->flags, text + FLAGS_AT, 1) != 0)
        return -1;
    context->flags &= ACO__IS_SAMPLED; /* of the others nothing is known */
    return is_zero(context->trace, ACO__TRACE_ID) || is_zero(context->span, ACO__SPAN_ID) ? -1 : 0;
}

void aco__hex_write(char *text, const unsigned char *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * n] = 0;
}

void aco__traceparent_write(char text[ACO_TRACEPARENT_SIZE], const aco__trace_context_t *context)
{
    memcpy(text, "00-", TRACE_AT);
    aco__hex_write(text + TRACE_AT, context->trace, ACO__TRACE_ID);
    text[SPAN_AT - 1] = '-';
    aco__hex_write(text + SPAN_AT, context->span, ACO__SPAN_ID);
    text[FLAGS_AT - 1] = '-';
    aco__hex_write(text + FLAGS_AT, &context->flags, 1);
}

int aco__tracestate_is_good(const char *text)
{
    size_t members = 1, n = strnlen(text, ACO__TRACESTATE + 1);
    if (!n || n > ACO__TRACESTATE)
        return 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i]; /* a char may be signed */
        members += c == ',';
        if ((c < ' ' && c != '\t') || c > '~')
            return 0;
    }
    return members <= MOST_MEMBERS && strchr(text, '=') != NULL;
}
