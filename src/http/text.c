/* HTTP's texts: status lines, fields, tokens, escapes, dates. */
#define _GNU_SOURCE /* clock_gettime() */
#include "http/text.h"
#include "system/system.h"

#include "aco/scheduler.h"

#include <string.h>

char *aco__http_put_number(char *at, uint64_t number)
{
    char digits[20];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

const char *aco__http_status_line(int status, size_t *n)
{
#define LINE(code, reason) \
    case code: \
        *n = sizeof("HTTP/1.1 " #code " " reason "\r\n") - 1; \
        return "HTTP/1.1 " #code " " reason "\r\n"
    switch (status) {
        LINE(200, "OK");
        LINE(201, "Created");
        LINE(202, "Accepted");
        LINE(203, "Non-Authoritative Information");
        LINE(204, "No Content");
        LINE(205, "Reset Content");
        LINE(206, "Partial Content");
        LINE(300, "Multiple Choices");
        LINE(301, "Moved Permanently");
        LINE(302, "Found");
        LINE(303, "See Other");
        LINE(304, "Not Modified");
        LINE(307, "Temporary Redirect");
        LINE(308, "Permanent Redirect");
        LINE(400, "Bad Request");
        LINE(401, "Unauthorized");
        LINE(402, "Payment Required");
        LINE(403, "Forbidden");
        LINE(404, "Not Found");
        LINE(405, "Method Not Allowed");
        LINE(406, "Not Acceptable");
        LINE(408, "Request Timeout");
        LINE(409, "Conflict");
        LINE(410, "Gone");
        LINE(411, "Length Required");
        LINE(412, "Precondition Failed");
        LINE(413, "Content Too Large");
        LINE(414, "URI Too Long");
        LINE(415, "Unsupported Media Type");
        LINE(416, "Range Not Satisfiable");
        LINE(417, "Expectation Failed");
        LINE(421, "Misdirected Request");
        LINE(422, "Unprocessable Content");
        LINE(426, "Upgrade Required");
        LINE(429, "Too Many Requests");
        LINE(431, "Request Header Fields Too Large");
        LINE(500, "Internal Server Error");
        LINE(501, "Not Implemented");
        LINE(502, "Bad Gateway");
        LINE(503, "Service Unavailable");
        LINE(504, "Gateway Timeout");
        LINE(505, "HTTP Version Not Supported");
        LINE(507, "Insufficient Storage");
    default:
        return NULL;
    }
#undef LINE
}

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

int aco__http_is(const char *text, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (lower(text[i]) != (unsigned char)name[i] || !name[i])
            return 0;
    return name[n] == 0;
}

int aco__http_same(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b))
        a++, b++;
    return *a == *b;
}

int aco__http_begins(const char *text, const char *begin, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lower(text[i]) != lower(begin[i]))
            return 0;
    return 1;
}

/* A quick look: most names differ in their first letters. Also of others than letters it never denies that two are the
 * same. */
static int begin_alike(const char *a, const char *b)
{
    enum { CASE = 'a' ^ 'A' };
    return ((*a ^ *b) & ~CASE) == 0;
}

size_t aco__http_find(const aco_http_header_t *headers, size_t count, const char *name, const char **value)
{
    size_t found = 0;
    *value = NULL;
    for (size_t i = 0; i < count; i++)
        if (begin_alike(headers[i].name, name) && aco__http_same(headers[i].name, name) && found++ == 0)
            *value = headers[i].value;
    return found;
}

/* The next line of the field, in list->at. 0: there is none. */
static int next_line(aco__http_list_t *list)
{
    while (list->count > 0) {
        const aco_http_header_t *header = list->headers++;
        list->count--;
        if (aco__http_same(header->name, list->name)) {
            list->at = header->value;
            return 1;
        }
    }
    return 0;
}

const char *aco__http_next(aco__http_list_t *list, size_t *n)
{
    const char *begin, *end;
    int in_quotes = 0;
    do
        list->at += strspn(list->at, ", \t");
    while (!*list->at && next_line(list));
    if (!*list->at)
        return NULL;
    begin = end = list->at;
    for (; *list->at && (in_quotes || *list->at != ','); list->at++) {
        in_quotes ^= *list->at == '"';
        if (*list->at != ' ' && *list->at != '\t')
            end = list->at + 1;
    }
    *n = (size_t)(end - begin);
    return begin;
}

int aco__http_has(aco__http_list_t list, const char *element, size_t n)
{
    const char *at;
    for (size_t found; (at = aco__http_next(&list, &found)) != NULL;)
        if (found == n && memcmp(at, element, n) == 0)
            return 1;
    return 0;
}

/* What a character may be in. */
enum { IN_TOKEN = 1, IN_NAME = 2, IN_VALUE = 4 }; /* a name: of a host, but "%" */
#define GRAMMAR(c) \
    (((c) >= '0' && (c) <= '9') || ((c) >= 'a' && (c) <= 'z') || ((c) >= 'A' && (c) <= 'Z') \
         ? IN_TOKEN | IN_NAME | IN_VALUE \
     : (c) == '!' || (c) == '$' || (c) == '&' || (c) == '\'' || (c) == '*' || (c) == '+' || (c) == '-' || \
             (c) == '.' || (c) == '_' || (c) == '~' \
         ? IN_TOKEN | IN_NAME | IN_VALUE \
     : (c) == '%' || (c) == '#' || (c) == '^' || (c) == '`' || (c) == '|' ? IN_TOKEN | IN_VALUE \
     : (c) == '(' || (c) == ')' || (c) == ';' || (c) == '='               ? IN_NAME | IN_VALUE \
     : ((c) >= ' ' && (c) != 0x7f) || (c) == '\t'                         ? IN_VALUE \
                                                                          : 0)
/* What one of them in a target means: text.h. */
#define IN_TARGET(c) \
    ((c) <= ' ' || (c) >= 0x7f || (c) == '#' ? HTTP_TARGET_IS_WRONG \
     : (c) == '?'                            ? HTTP_TARGET_HAS_QUERY \
     : (c) == '%'                            ? HTTP_TARGET_HAS_ESCAPES \
     : (c) == '.'                            ? HTTP_TARGET_HAS_DOTS \
                                             : 0)
#define CLASS(c) (GRAMMAR(c) | IN_TARGET(c))
#define CLASS4(c) CLASS(c), CLASS((c) + 1), CLASS((c) + 2), CLASS((c) + 3)
#define CLASS16(c) CLASS4(c), CLASS4((c) + 4), CLASS4((c) + 8), CLASS4((c) + 12)
#define CLASS64(c) CLASS16(c), CLASS16((c) + 16), CLASS16((c) + 32), CLASS16((c) + 48)
static const unsigned char classes[256] = {CLASS64(0), CLASS64(64), CLASS64(128), CLASS64(192)};

static int all_in(const char *text, size_t n, unsigned char class_of)
{
    for (size_t i = 0; i < n; i++)
        if (!(classes[(unsigned char)text[i]] & class_of))
            return 0;
    return 1;
}

int aco__http_is_token(const char *text, size_t n)
{
    return n > 0 && all_in(text, n, IN_TOKEN);
}

int aco__http_is_value(const char *text, size_t n)
{
    return all_in(text, n, IN_VALUE);
}

int aco__http_must_come_first(const char *name)
{
    static const char *const names[] = {"content-length",
                                        "transfer-encoding",
                                        "content-encoding",
                                        "content-type",
                                        "content-range",
                                        "connection",
                                        "host",
                                        "te",
                                        "trailer",
                                        "upgrade",
                                        "keep-alive",
                                        "proxy-connection",
                                        "set-cookie",
                                        "cookie",
                                        "authorization",
                                        "proxy-authorization",
                                        "www-authenticate",
                                        "proxy-authenticate",
                                        "expect",
                                        "max-forwards"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (begin_alike(name, names[i]) && aco__http_same(name, names[i]))
            return 1;
    return 0;
}

unsigned aco__http_look_at_target(const char *target, size_t *n)
{
    const char *at = target;
    unsigned has = 0;
    for (; *at; at++)
        has |= classes[(unsigned char)*at];
    *n = (size_t)(at - target);
    return has & (HTTP_TARGET_IS_WRONG | HTTP_TARGET_HAS_QUERY | HTTP_TARGET_HAS_ESCAPES | HTTP_TARGET_HAS_DOTS);
}

int aco__http_digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : lower(c) >= 'a' && lower(c) <= 'f' ? lower(c) - 'a' + 10 : -1;
}

/* Behind "[::1]", or at `text` if it begins otherwise; NULL: it is no address in brackets. */
static const char *after_brackets(const char *text, const char *end)
{
    const char *at = text + 1;
    if (text == end || *text != '[')
        return text;
    while (at < end && (aco__http_digit_of(*at) >= 0 || *at == ':' || *at == '.'))
        at++;
    return at < end && *at == ']' && at - text > 2 ? at + 1 : NULL;
}

/* Behind a name or an address without brackets. */
static const char *after_name(const char *at, const char *end)
{
    for (;; at += 3) {
        while (at < end && classes[(unsigned char)*at] & IN_NAME)
            at++;
        if (at == end || *at != '%')
            return at;
        if (end - at < 3 || aco__http_digit_of(at[1]) < 0 || aco__http_digit_of(at[2]) < 0)
            return at;
    }
}

int aco__http_is_authority(const char *text, size_t n)
{
    const char *end = text + n, *at = after_brackets(text, end);
    if (at == text)
        at = after_name(text, end);
    if (!at || (at == text && n)) /* "http" has no empty host: RFC 9110, 4.2.1 */
        return 0;
    if (at < end && *at == ':')
        for (at++; at < end && *at >= '0' && *at <= '9';)
            at++;
    return at == end;
}

ptrdiff_t aco__http_decode(char *to, const char *from, size_t n, int plus_is_space)
{
    char *at = to;
    if (!plus_is_space && !memchr(from, '%', n)) {
        memmove(to, from, n);
        return (ptrdiff_t)n;
    }
    for (size_t i = 0; i < n; i++) {
        char c = from[i];
        if (c == '%') {
            int high = n - i > 2 ? aco__http_digit_of(from[i + 1]) : -1,
                low = high >= 0 ? aco__http_digit_of(from[i + 2]) : -1;
            if (low < 0 || high + low == 0)
                return -1;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        *at++ = c;
    }
    return at - to;
}

int aco__http_has_escaped_slash(const char *path, size_t n)
{
    for (size_t i = 0; i + 2 < n; i++)
        if (path[i] == '%' && path[i + 1] == '2' && (path[i + 2] == 'F' || path[i + 2] == 'f'))
            return 1;
    return 0;
}

int aco__http_has_dots(const char *path)
{
    for (const char *at = path; (at = strchr(at, '.')) != NULL; at++)
        if ((at == path || at[-1] == '/') && (!at[1] || at[1] == '/' || (at[1] == '.' && (!at[2] || at[2] == '/'))))
            return 1;
    return 0;
}

/* ---- Dates: the proleptic Gregorian calendar, days counted from 1 March of year 0 ---- */

static const char days_of_week[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

static char *two_digits(char *at, int number)
{
    at[0] = (char)('0' + number / 10 % 10);
    at[1] = (char)('0' + number % 10);
    return at + 2;
}

void aco__http_calendar(struct tm *to, int64_t seconds)
{
    int64_t days = seconds / 86400, second = seconds % 86400, since = days + 719468, era = since / 146097;
    int64_t day_of_era = since % 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int day_of_year = (int)(day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100));
    int shifted = (5 * day_of_year + 2) / 153, day = day_of_year - (153 * shifted + 2) / 5 + 1;
    int month = shifted < 10 ? shifted + 2 : shifted - 10; /* from 0 */
    to->tm_year = (int)(year_of_era + era * 400 + (month < 2)) - 1900;
    to->tm_mon = month;
    to->tm_mday = day;
    to->tm_wday = (int)((days + 4) % 7);
    to->tm_hour = (int)(second / 3600);
    to->tm_min = (int)(second / 60 % 60);
    to->tm_sec = (int)(second % 60);
}

void aco__http_put_date(char *at, int64_t seconds)
{
    struct tm t;
    int year;
    aco__http_calendar(&t, seconds);
    year = t.tm_year + 1900;
    at = aco__http_put(at, days_of_week + (size_t)t.tm_wday * 3, 3);
    at = two_digits(aco__http_put(at, ", ", 2), t.tm_mday);
    *at++ = ' ';
    at = aco__http_put(at, months + (size_t)t.tm_mon * 3, 3);
    *at++ = ' ';
    at = two_digits(two_digits(at, year / 100), year % 100);
    *at++ = ' ';
    at = two_digits(at, t.tm_hour);
    *at++ = ':';
    at = two_digits(at, t.tm_min);
    *at++ = ':';
    at = two_digits(at, t.tm_sec);
    aco__http_put(at, " GMT", 4);
}

static int number_of(const char *digits)
{
    return (digits[0] - '0') * 10 + digits[1] - '0';
}

/* "Sunday, 06-Nov-94 08:49:37 GMT"; `text` ends 24 bytes behind its comma. The year is at most 50 years from now. */
static int from_rfc850(char *to, const char *text, const char *comma, int64_t now)
{
    static const char names[7][10] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
    int this_year = (int)(1970 + now / 31556952), year = this_year / 100 * 100 + number_of(comma + 9), day = 0;
    size_t n = (size_t)(comma - text);
    while (day < 7 && (strlen(names[day]) != n || memcmp(names[day], text, n) != 0))
        day++;
    if (day == 7 || comma[1] != ' ' || comma[4] != '-' || comma[8] != '-' || strspn(comma + 9, "0123456789") != 2)
        return 0;
    year -= year > this_year + 50 ? 100 : 0;
    to = HTTP_PUT(aco__http_put(to, text, 3), ", ");
    to = HTTP_PUT(aco__http_put(to, comma + 2, 2), " ");
    to = HTTP_PUT(aco__http_put(to, comma + 5, 3), " ");
    aco__http_put(two_digits(two_digits(to, year / 100), year), comma + 11, 13);
    return 1;
}

/* "Sun Nov  6 08:49:37 1994" */
static int from_asctime(char *to, const char *text)
{
    if (text[3] != ' ' || text[7] != ' ' || text[10] != ' ' || text[19] != ' ')
        return 0;
    to = HTTP_PUT(aco__http_put(to, text, 3), ", ");
    *to = text[8] == ' ' ? '0' : text[8];
    to = HTTP_PUT(aco__http_put(to + 1, text + 9, 1), " ");
    to = HTTP_PUT(aco__http_put(to, text + 4, 3), " ");
    to = HTTP_PUT(aco__http_put(to, text + 20, 4), " ");
    HTTP_PUT(aco__http_put(to, text + 11, 8), " GMT");
    return 1;
}

/* Any of the three forms of RFC 9110 (5.6.7), as the first one. 0: it is none. */
static int to_first_form(char *to, const char *text, int64_t now)
{
    const char *comma = strchr(text, ',');
    size_t n = strlen(text);
    if (n == HTTP_DATE && comma == text + 3) {
        aco__http_put(to, text, n);
        return 1;
    }
    if (comma)
        return strlen(comma) == 24 && from_rfc850(to, text, comma, now);
    return n == 24 && from_asctime(to, text);
}

void aco__http_renew_date(aco__http_date_t *date, int64_t now)
{
    struct timespec wall;
    aco__system.clock_gettime(CLOCK_REALTIME, &wall);
    aco__http_put_date(date->text, wall.tv_sec);
    date->until = now + ACO_SECOND - wall.tv_nsec;
}

int64_t aco__http_date_of(const char *text, int64_t now)
{
    char date[HTTP_DATE], wanted[HTTP_DATE];
    int month = 0, year;
    int64_t y, era, day_of_era, shifted, seconds;
    if (!to_first_form(date, text, now))
        return -1;
    while (month < 12 && memcmp(months + (size_t)month * 3, date + 8, 3) != 0)
        month++;
    if (month == 12)
        return -1;
    year = number_of(date + 12) * 100 + number_of(date + 14);
    y = year - (month < 2);
    era = y / 400;
    shifted = month < 2 ? month + 10 : month - 2;
    day_of_era = (y % 400) * 365 + (y % 400) / 4 - (y % 400) / 100 + (153 * shifted + 2) / 5 + number_of(date + 5) - 1;
    seconds = (era * 146097 + day_of_era - 719468) * 86400 + number_of(date + 17) * 3600 + number_of(date + 20) * 60 +
              number_of(date + 23);
    if (year < 1970 || seconds < 0)
        return -1;
    aco__http_put_date(wanted, seconds); /* what is no date, such as 31 Feb, is written otherwise */
    return memcmp(wanted, date, HTTP_DATE) == 0 ? seconds : -1;
}
