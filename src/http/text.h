/* HTTP's texts: text.c. */
#ifndef ACO_HTTP_TEXT_H
#define ACO_HTTP_TEXT_H

#include "os/platform.h"

#include "aco/http.h"

#include <string.h>
#include <time.h>

static inline char *aco__http_put(char *at, const void *p, size_t n)
{
    if (n)
        memcpy(at, p, n); // NOLINT(clang-analyzer-core.NonNullParamChecker): a part that is missing has n = 0
    return at + n;
}

/* The digits of a number. */
ACO__HIDDEN char *aco__http_put_number(char *at, uint64_t number);

#define HTTP_PUT(at, text) aco__http_put(at, text, sizeof(text) - 1)

/* The status line: "HTTP/1.1 200 OK\r\n". Stores its length. */
ACO__HIDDEN const char *aco__http_status_line(int status, size_t *n);
/* Whether two texts are the same but for the case of letters; `lower` is in lower case. */
ACO__HIDDEN int aco__http_is(const char *text, size_t n, const char *lower);
ACO__HIDDEN int aco__http_same(const char *a, const char *b);
/* Whether `text` begins with these `n` bytes, none of which is 0. Upper and lower case are the same. */
ACO__HIDDEN int aco__http_begins(const char *text, const char *begin, size_t n);
/* How many of the headers have this name. *value: that of the first one, or NULL. */
ACO__HIDDEN size_t aco__http_find(const aco_http_header_t *headers, size_t count, const char *name, const char **value);
/* A list: what commas separate in all lines of a header (RFC 9110, 5.3). Or in `at` alone, which is "" otherwise. */
typedef struct aco__http_list {
    const char *at;
    const aco_http_header_t *headers; /* that come next */
    size_t count;
    const char *name;
} aco__http_list_t;
/* The next element, without spaces around it, and its length. A comma in quotes is a part of it; in them a backslash is
 * a character as any other, as in entity tags. NULL: there is no further one. */
ACO__HIDDEN const char *aco__http_next(aco__http_list_t *list, size_t *n);
/* Whether what follows in a list has this element. */
ACO__HIDDEN int aco__http_has(aco__http_list_t list, const char *element, size_t n);
/* Whether a header's name, or its value, is allowed. */
ACO__HIDDEN int aco__http_is_token(const char *text, size_t n);
ACO__HIDDEN int aco__http_is_value(const char *text, size_t n);
/* Whether a field tells how to read a message, or who gets it: as a trailer it comes too late (RFC 9110, 6.5.1). */
ACO__HIDDEN int aco__http_must_come_first(const char *name);
/* What a target has, and its length. Wrong is what may not be in one. */
enum { HTTP_TARGET_IS_WRONG = 8, HTTP_TARGET_HAS_QUERY = 16, HTTP_TARGET_HAS_ESCAPES = 32, HTTP_TARGET_HAS_DOTS = 64 };
ACO__HIDDEN unsigned aco__http_look_at_target(const char *target, size_t *n);
/* "host", "host:port", "[::1]:port", or nothing */
ACO__HIDDEN int aco__http_is_authority(const char *text, size_t n);
/* The value of a hexadecimal digit; -1: it is none. */
ACO__HIDDEN int aco__http_digit_of(char c);
/* Decodes escapes. The decoded length; -1: a wrong escape or a NUL. `to` may be `from`. */
ACO__HIDDEN ptrdiff_t aco__http_decode(char *to, const char *from, size_t n, int plus_is_space);
/* Whether a path, as it was sent, has "%2F". */
ACO__HIDDEN int aco__http_has_escaped_slash(const char *path, size_t n);
/* Whether a path has "." or ".." as a segment. */
ACO__HIDDEN int aco__http_has_dots(const char *path);
/* The date and the time of day in UTC, without tm_yday and tm_isdst, from 1970 on: gmtime_r() takes a lock that all
 * threads share, and reads a file the first time. */
ACO__HIDDEN void aco__http_calendar(struct tm *to, int64_t seconds);
enum { HTTP_DATE = 29 }; /* "Sun, 06 Nov 1994 08:49:37 GMT" */
ACO__HIDDEN void aco__http_put_date(char *at, int64_t seconds);
typedef struct aco__http_date {
    int64_t until; /* on the clock of aco_now(); 0: there is none yet */
    char text[HTTP_DATE];
} aco__http_date_t;
ACO__HIDDEN void aco__http_renew_date(aco__http_date_t *date, int64_t now);
/* The text of the date of now, made once a second. */
static inline const char *aco__http_date_now(aco__http_date_t *date)
{
    int64_t now = aco_now();
    if (aco_unlikely(now >= date->until))
        aco__http_renew_date(date, now);
    return date->text;
}
/* The seconds since 1970 of a date in any form that HTTP has; -1: it is none. `now`: for years of two digits. */
ACO__HIDDEN int64_t aco__http_date_of(const char *text, int64_t now);

#endif
