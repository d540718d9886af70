/* What stands in headers and trailers: metadata, base64 (RFC 4648), percent-coded texts, time limits, codings. */
#include "grpc/call.h"

#include <stdio.h>
#include <string.h>

static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* ---- Time limits and codings ---- */

int64_t aco__grpc_timeout(const char *text)
{
    static const struct {
        char unit;
        int64_t ns;
    } units[] = {{'H', 3600 * ACO_SECOND},
                 {'M', 60 * ACO_SECOND},
                 {'S', ACO_SECOND},
                 {'m', ACO_MILLISECOND},
                 {'u', 1000},
                 {'n', 1}};
    int64_t value = 0;
    int n = 0;
    for (; text[n] >= '0' && text[n] <= '9' && n < 9; n++)
        value = 10 * value + text[n] - '0';
    if (n < 1 || n > 8 || !text[n] || text[n + 1])
        return -1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (units[i].unit == text[n])
            return value > INT64_MAX / 2 / units[i].ns ? INT64_MAX / 2 : value * units[i].ns;
    return -1;
}

void aco__grpc_put_timeout(char text[GRPC_TIMEOUT], int64_t ns)
{
    static const struct {
        char unit;
        int64_t ns;
    } units[] = {{'n', 1}, {'u', 1000}, {'m', ACO_MILLISECOND}, {'S', ACO_SECOND}, {'M', 60 * ACO_SECOND}};
    enum { MOST = 99999999 }; /* eight digits */
    int64_t value = MOST;
    size_t i = 0;
    ns = ns > 0 ? ns : 1;
    while (i < sizeof units / sizeof units[0] - 1 && ns / units[i].ns >= MOST)
        i++;
    if (ns / units[i].ns < MOST)
        value = ns / units[i].ns + (ns % units[i].ns != 0);
    (void)snprintf(text, GRPC_TIMEOUT, "%d%c", (int)value, units[i].unit);
}

int aco__grpc_lists_gzip(const char *list)
{
    while (list && *list) {
        size_t n = strcspn(list, ", ;");
        if (n == 4 && memcmp(list, "gzip", 4) == 0)
            return 1;
        list += n;
        list += strspn(list, ", ;");
    }
    return 0;
}

/* ---- Percent-coded texts ---- */

static const char lost_text[] = "the message is lost: no memory";

static const char *copy_text(aco_grpc_call_t *call, const char *text, size_t n)
{
    char *kept = aco__grpc_allocate(call, n + 1);
    if (!kept)
        return NULL;
    if (n)
        memcpy(kept, text, n);
    kept[n] = 0;
    return kept;
}

const char *aco__grpc_escape(aco_grpc_call_t *call, const char *text)
{
    static const char hex[] = "0123456789ABCDEF";
    char coded[GRPC_MESSAGE + 1], *to = coded;
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        const int is_plain = c >= ' ' && c < 127 && c != '%' && !((c == ' ') && (!text[1] || to == coded));
        if (to - coded + (is_plain ? 1 : 3) > GRPC_MESSAGE)
            break;
        if (is_plain) {
            *to++ = *text;
        } else {
            *to++ = '%';
            *to++ = hex[c >> 4];
            *to++ = hex[c & 15];
        }
    }
    *to = 0;
    return aco__grpc_keep_text(call, coded);
}

static int hex_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

const char *aco__grpc_unescape(aco_grpc_call_t *call, const char *text)
{
    char *kept = aco__grpc_allocate(call, strlen(text) + 1), *to = kept;
    if (!kept)
        return lost_text;
    while (*text) {
        const int is_escape = *text == '%' && hex_of(text[1]) >= 0 && hex_of(text[2]) >= 0;
        const int c = is_escape ? 16 * hex_of(text[1]) + hex_of(text[2]) : *text;
        *to++ = c ? (char)c : ' '; /* a text ends with its 0 */
        text += is_escape ? 3 : 1;
    }
    *to = 0;
    return kept;
}

const char *aco__grpc_keep_text(aco_grpc_call_t *call, const char *text)
{
    const char *kept = copy_text(call, text, strlen(text));
    return kept ? kept : lost_text;
}

/* ---- Base64, which is sent without padding ---- */

const char *aco__grpc_base64(aco_grpc_call_t *call, const void *p, size_t n)
{
    const unsigned char *from = p;
    char *kept = n < SIZE_MAX / 4 ? aco__grpc_allocate(call, n / 3 * 4 + 5) : NULL, *to = kept;
    if (!kept)
        return NULL;
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const unsigned bits =
            (unsigned)from[i] << 16 | (left > 1 ? (unsigned)from[i + 1] << 8 : 0) | (left > 2 ? from[i + 2] : 0);
        *to++ = digits64[bits >> 18];
        *to++ = digits64[bits >> 12 & 63];
        if (left > 1)
            *to++ = digits64[bits >> 6 & 63];
        if (left > 2)
            *to++ = digits64[bits & 63];
    }
    *to = 0;
    return kept;
}

/* The bytes of `n` characters, with a 0 behind them, in memory of the call. NULL: it is no base64; ENOMEM. */
static char *from_base64(aco_grpc_call_t *call, const char *text, size_t n, size_t *bytes)
{
    char *kept, *to;
    unsigned bits = 0;
    int have = 0;
    while (n && text[n - 1] == '=')
        n--;
    errno = 0;
    if (n % 4 == 1)
        return NULL;
    kept = to = aco__grpc_allocate(call, n / 4 * 3 + 4);
    for (size_t i = 0; kept && i < n; i++) {
        const char *digit = text[i] ? strchr(digits64, text[i]) : NULL;
        if (!digit)
            return NULL;
        bits = bits << 6 | (unsigned)(digit - digits64);
        have += 6;
        if (have >= 8) {
            have -= 8;
            *to++ = (char)(bits >> have & 255);
        }
    }
    if (!kept)
        return NULL;
    *to = 0;
    *bytes = (size_t)(to - kept);
    return kept;
}

/* ---- Metadata ---- */

int aco__grpc_is_path(const char *path)
{
    const char *slash = *path == '/' ? strchr(path + 1, '/') : NULL;
    return slash && slash > path + 1 && slash[1] && !strchr(slash + 1, '/');
}

static int is_binary(const char *name, size_t n)
{
    return n > 4 && memcmp(name + n - 4, "-bin", 4) == 0;
}

/* Whether a program may send metadata of this name: gRPC and HTTP have theirs. */
static int is_free_name(const char *name, size_t n)
{
    static const char *const taken[] = {"grpc-",  "content-",  "transfer-encoding", "connection", "te",
                                        "host",   "trailer",   "upgrade",           "keep-alive", "proxy-connection",
                                        "expect", "set-cookie"};
    if (!n || n > 255 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") != n)
        return 0;
    if (strcmp(name, "grpc-retry-pushback-ms") == 0)
        return 1;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (i < 2 ? strncmp(name, taken[i], strlen(taken[i])) == 0 : strcmp(name, taken[i]) == 0)
            return 0;
    return 1;
}

static int is_text(const char *value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (value[i] < ' ' || value[i] > '~')
            return 0;
    return !n || (value[0] != ' ' && value[n - 1] != ' ');
}

static int add_field(aco_grpc_call_t *call, aco__grpc_fields_t *fields, size_t most, const char *name,
                     const void *value, size_t n, const char *caller)
{
    const size_t name_n = strlen(name);
    const int binary = is_binary(name, name_n);
    aco__grpc_field_t *field;
    size_t costs;
    costs = n > most ? most + 1 : name_n + (binary ? n / 3 * 4 + 4 : n) + 4;
    if (costs > most - fields->n)
        return aco__service_fail(ENOMEM, caller, "too much metadata");
    if (!is_free_name(name, name_n) || (!binary && !is_text(value, n)))
        return aco__service_fail(EINVAL, caller, "gRPC does not allow this name or value");
    field = aco__grpc_allocate(call, sizeof *field);
    if (!field || !(field->name = copy_text(call, name, name_n)) ||
        !(field->value = binary ? aco__grpc_base64(call, value, n) : copy_text(call, value, n)))
        return -1;
    field->next = NULL;
    *fields->end = field;
    fields->end = &field->next;
    fields->n += costs;
    return 0;
}

/* Takes the value `*i` of a list of binary values, or counts those that are there. */
static const char *nth_of_list(const char *list, size_t *i, size_t *n)
{
    for (;; list += *n + 1) {
        list += strspn(list, " ");
        *n = strcspn(list, ",");
        if (!*i)
            break;
        --*i;
        if (!list[*n])
            return NULL;
    }
    while (*n && list[*n - 1] == ' ')
        --*n;
    return list;
}

static int is_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if ((*a >= 'A' && *a <= 'Z' ? *a + ('a' - 'A') : *a) != *b)
            return 0;
    return *a == *b;
}

const void *aco__grpc_find(aco_grpc_call_t *call, const aco_http_header_t *fields, size_t count, const char *name,
                           size_t i, size_t *n)
{
    const int binary = is_binary(name, strlen(name));
    size_t length = 0;
    const char *value = NULL;
    errno = 0;
    for (size_t at = 0; at < count && !value; at++) {
        if (!is_name(fields[at].name, name))
            continue;
        if (binary)
            value = nth_of_list(fields[at].value, &i, &length);
        else if (!i--)
            value = fields[at].value;
    }
    if (value && binary)
        value = from_base64(call, value, length, &length);
    else if (value)
        length = strlen(value);
    if (n)
        *n = value ? length : 0;
    return value;
}

static size_t place_of_name(const aco_http_header_t *fields, size_t count, const char *name)
{
    size_t at = 0;
    while (at < count && strcmp(fields[at].name, name) != 0)
        at++;
    return at;
}

const char *aco__grpc_next_name(const aco_http_header_t *fields, size_t count, const char *name)
{
    for (size_t at = name ? place_of_name(fields, count, name) + 1 : 0; at < count; at++)
        if (is_free_name(fields[at].name, strlen(fields[at].name)) && place_of_name(fields, at, fields[at].name) == at)
            return fields[at].name;
    return NULL;
}

/* ---- Of calls ---- */

const void *aco_grpc_metadata(aco_grpc_call_t *call, const char *name, size_t i, size_t *n)
{
    size_t count = 0;
    const aco_http_header_t *fields = call->side->metadata(call, &count);
    return aco__grpc_find(call, fields, count, name, i, n);
}

const char *aco_grpc_next_metadata(aco_grpc_call_t *call, const char *name)
{
    size_t count = 0;
    const aco_http_header_t *fields = call->side->metadata(call, &count);
    return aco__grpc_next_name(fields, count, name);
}

int aco_grpc_add_metadata(aco_grpc_call_t *call, const char *name, const void *value, size_t n)
{
    static const char caller[] = "aco_grpc_add_metadata";
    if (call->has_begun)
        return aco__service_fail(EBUSY, caller, "the first message was sent");
    return add_field(call, &call->metadata, GRPC_METADATA, name, value, n, caller);
}

int aco_grpc_add_trailer(aco_grpc_call_t *call, const char *name, const void *value, size_t n)
{
    return add_field(call, &call->trailers, GRPC_TRAILERS, name, value, n, "aco_grpc_add_trailer");
}
