/* The lines of access logs. A client's bytes are escaped, so that it cannot end a line or a text. */
#define _GNU_SOURCE
#include "http/access_line.h"
#include "http/text.h"
#include "system/system.h"

#include <stdio.h>
#include <string.h>

static void set_client(aco__access_t *access)
{
    char *text = access->client, *port;
    const aco_stream_t *stream = access->request->stream; /* NULL: it was taken over */
    if (!stream || aco_stream_peer_address(stream, text, sizeof access->client) != 0 || !*text) {
        memcpy(text, "-", 2);
        return;
    }
    port = strrchr(text, ':');
    if (*text == '[' && strchr(text, ']')) {
        *strchr(text, ']') = 0;
        memmove(text, text + 1, strlen(text));
    } else if (port) {
        *port = 0;
    }
}

void aco__access_of(aco__access_t *access, const aco_http_request_t *request)
{
    struct timespec now = {0, 0};
    access->request = request;
    access->duration = aco_now() - request->began;
    aco__system.clock_gettime(CLOCK_REALTIME, &now);
    aco__http_calendar(&access->time, now.tv_sec);
    access->milliseconds = (int)(now.tv_nsec / 1000000);
    set_client(access);
}

/* ---- Texts ---- */

static char *put_hex(char *at, unsigned char byte)
{
    at[0] = "0123456789abcdef"[byte >> 4];
    at[1] = "0123456789abcdef"[byte & 15];
    return at + 2;
}

static char *put_escaped(char *at, const char *text, int is_json)
{
    for (const char *end = text + strnlen(text, ACCESS_TEXT); text < end; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            *at++ = '\\';
        if (byte >= ' ' && byte < 0x7f)
            *at++ = (char)byte;
        else
            at = put_hex(is_json ? HTTP_PUT(at, "\\u00") : HTTP_PUT(at, "\\x"), byte);
    }
    return at;
}

/* A number with leading zeros. */
static char *put_digits(char *at, int number, int digits)
{
    for (int i = digits; i-- > 0; number /= 10)
        at[i] = (char)('0' + number % 10);
    return at + digits;
}

/* ---- common, combined ---- */

static char *put_quoted(char *at, const char *text)
{
    *at++ = '"';
    at = put_escaped(at, text && *text ? text : "-", 0);
    *at++ = '"';
    return at;
}

static char *put_apache(char *at, const aco__access_t *access, int is_combined)
{
    static const char month_names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const aco_http_request_t *request = access->request;
    const struct tm *t = &access->time;
    at = put_digits(HTTP_PUT(put_escaped(at, access->client, 0), " - - ["), t->tm_mday, 2);
    *at++ = '/';
    at = aco__http_put(at, month_names + (size_t)t->tm_mon * 3, 3);
    *at++ = '/';
    at = put_digits(at, t->tm_year + 1900, 4);
    *at++ = ':';
    at = put_digits(at, t->tm_hour, 2);
    *at++ = ':';
    at = put_digits(at, t->tm_min, 2);
    *at++ = ':';
    at = HTTP_PUT(put_digits(at, t->tm_sec, 2), " +0000] \"");
    if (*request->method) {
        at = put_escaped(at, request->method, 0);
        *at++ = ' ';
        at = put_escaped(at, request->target, 0);
        at = request->major > 1 ? put_digits(HTTP_PUT(at, " HTTP/"), request->major, 1)
                                : put_digits(HTTP_PUT(at, " HTTP/1."), request->minor, 1);
    } else {
        *at++ = '-'; /* the server did not understand it */
    }
    at = put_digits(HTTP_PUT(at, "\" "), request->status, 3);
    *at++ = ' ';
    at = aco__http_put_number(at, request->sent);
    if (is_combined) {
        *at++ = ' ';
        at = put_quoted(at, aco_http_request_header(request, "Referer"));
        *at++ = ' ';
        at = put_quoted(at, aco_http_request_header(request, "User-Agent"));
    }
    *at++ = '\n';
    return at;
}

/* ---- JSON ---- */

/* A text; NULL: null. */
static char *put_member(char *at, const char *name, const char *text)
{
    at = HTTP_PUT(aco__http_put(at, name, strlen(name)), ":");
    if (!text)
        return HTTP_PUT(at, "null");
    *at++ = '"';
    at = put_escaped(at, text, 1);
    *at++ = '"';
    return at;
}

static char *put_count(char *at, const char *name, uint64_t count)
{
    return aco__http_put_number(HTTP_PUT(aco__http_put(at, name, strlen(name)), ":"), count);
}

static char *put_json(char *at, const aco__access_t *access)
{
    const aco_http_request_t *request = access->request;
    const struct tm *t = &access->time;
    at = put_digits(HTTP_PUT(at, "{\"time\":\""), t->tm_year + 1900, 4);
    at = put_digits(HTTP_PUT(at, "-"), t->tm_mon + 1, 2);
    at = put_digits(HTTP_PUT(at, "-"), t->tm_mday, 2);
    at = put_digits(HTTP_PUT(at, "T"), t->tm_hour, 2);
    at = put_digits(HTTP_PUT(at, ":"), t->tm_min, 2);
    at = put_digits(HTTP_PUT(at, ":"), t->tm_sec, 2);
    at = HTTP_PUT(put_digits(HTTP_PUT(at, "."), access->milliseconds, 3), "Z\",");
    at = put_member(at, "\"client\"", access->client);
    at = put_member(at, ",\"method\"", request->method);
    at = put_member(at, ",\"target\"", request->target);
    at = put_member(at, ",\"host\"", request->host);
    at = put_member(at, ",\"route\"", request->route ? request->route->path : NULL);
    at = put_count(at, ",\"status\"", (uint64_t)request->status);
    at = put_count(at, ",\"sent\"", request->sent);
    at = put_count(at, ",\"duration_ns\"", (uint64_t)access->duration);
    at = put_member(at, ",\"referer\"", aco_http_request_header(request, "Referer"));
    at = put_member(at, ",\"user_agent\"", aco_http_request_header(request, "User-Agent"));
    return HTTP_PUT(at, "}\n");
}

char *aco__access_put(char *at, const aco__access_t *access, int format)
{
    return format == ACO_ACCESS_LOG_JSON ? put_json(at, access)
                                         : put_apache(at, access, format == ACO_ACCESS_LOG_COMBINED);
}
