/* Service configs: an input is a text that acorn_grpc reads.
 *
 * The properties: it is a config, or the error names a place; what is no JSON by a checker of this file's own is
 * refused; and space between tokens changes nothing. */
#define _GNU_SOURCE
#define FUZZ_NAME "service_config"
#include "grpc/service_config.h"
#include "fuzz.h"

enum { MOST_TEXT = 1 << 14, LONGEST_TOKEN = 64 };

static int fuzz_actor(void)
{
    return 0;
}

/* ---- A checker of JSON: brackets by a stack, tokens by a table of what may follow what ---- */

static const char *string_end(const char *p)
{
    for (p++; *p != '"'; p++) {
        if ((unsigned char)*p < ' ')
            return NULL;
        if (*p == '\\' && !*++p)
            return NULL;
    }
    return p + 1;
}

/* The end of a number or a word; NULL: it is none. */
static const char *word_end(const char *p)
{
    static const char *const words[] = {"true", "false", "null"};
    const char *digits;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncmp(p, words[i], strlen(words[i])) == 0)
            return p + strlen(words[i]);
    p += *p == '-';
    digits = p;
    p += strspn(p, "0123456789");
    if (p == digits || (*digits == '0' && p > digits + 1))
        return NULL;
    if (*p == '.') {
        digits = ++p;
        p += strspn(p, "0123456789");
        if (p == digits)
            return NULL;
    }
    if (*p != 'e' && *p != 'E')
        return p;
    p++;
    p += *p == '+' || *p == '-';
    digits = p;
    p += strspn(p, "0123456789");
    return p == digits ? NULL : p;
}

/* Whether the text may be JSON: of escapes in strings it knows little. Copies it with space between its tokens. */
static int may_be_json(const char *p, char *spaced)
{
    enum { VALUE, VALUE_OR_END, KEY, KEY_OR_END, COLON, NEXT };
    char open[MOST_TEXT];
    int depth = 0, due = VALUE;
    while (*(p += strspn(p, " \t\r\n"))) {
        const char *begin = p, c = *p;
        const int is_value = due == VALUE || due == VALUE_OR_END;
        if ((c == '{' || c == '[') && is_value) {
            open[depth++] = c;
            due = c == '{' ? KEY_OR_END : VALUE_OR_END;
            p++;
        } else if ((c == '}' || c == ']') && depth && open[depth - 1] == (c == '}' ? '{' : '[') &&
                   (due == NEXT || due == (c == '}' ? KEY_OR_END : VALUE_OR_END))) {
            depth--;
            due = NEXT;
            p++;
        } else if (c == ',' && due == NEXT && depth) {
            due = open[depth - 1] == '{' ? KEY : VALUE;
            p++;
        } else if (c == ':' && due == COLON) {
            due = VALUE;
            p++;
        } else if (c == '"' && (is_value || due == KEY || due == KEY_OR_END)) {
            p = string_end(p);
            due = is_value ? NEXT : COLON;
        } else {
            p = is_value ? word_end(p) : NULL;
            due = NEXT;
        }
        if (!p)
            return 0;
        memcpy(spaced, begin, (size_t)(p - begin));
        spaced += p - begin;
        *spaced++ = '\n';
    }
    *spaced = 0;
    return due == NEXT && !depth;
}

/* ---- The target ---- */

/* 0: it is a config. */
static int error_of(const char *text)
{
    aco__grpc_config_t *config = aco__grpc_config_read(text, "fuzz");
    const int error = config ? 0 : errno;
    EXPECT(!error || (error == EINVAL && strstr(aco_error_message(), "service_config, line ")));
    aco__grpc_config_free(config);
    return error;
}

/* The next bytes of the text: a byte above 127 stands for a token. Returns how many. */
static size_t take_token(char *to)
{
    static const char *const tokens[] = {
        "\"methodConfig\":[{",
        "\"name\":[{",
        "\"service\":\"s\"",
        "\"method\":\"m\"",
        "\"timeout\":",
        "\"waitForReady\":",
        "\"maxRequestMessageBytes\":",
        "\"retryPolicy\":{",
        "\"maxAttempts\":",
        "\"initialBackoff\":",
        "\"maxBackoff\":",
        "\"backoffMultiplier\":",
        "\"retryableStatusCodes\":[",
        "\"UNAVAILABLE\"",
        "\"retryThrottling\":{",
        "\"maxTokens\":",
        "\"tokenRatio\":",
        "\"loadBalancingConfig\":[",
        "{\"round_robin\":{}}",
        "\"loadBalancingPolicy\":",
        "\"0.5s\"",
        "true",
        "}]}",
        "\"x\":",
    };
    const unsigned byte = next();
    if (byte < 128) {
        *to = (char)byte;
        return byte != 0;
    }
    strcpy(to, tokens[byte % (sizeof tokens / sizeof *tokens)]);
    return strlen(to);
}

static void fuzz_input(void)
{
    static char text[MOST_TEXT], spaced[2 * MOST_TEXT];
    size_t n = 0;
    int is_json, error;
    while (!is_over() && n < MOST_TEXT - LONGEST_TOKEN)
        n += take_token(text + n);
    text[n] = 0;
    if (tracing)
        fprintf(stderr, "%s\n", text);
    is_json = may_be_json(text, spaced);
    error = error_of(text);
    EXPECT(is_json || error == EINVAL);
    if (is_json)
        EXPECT(error_of(spaced) == error);
}
