/* Dates in Set-Cookie, by the algorithm of RFC 6265, 5.1.1: the first token that looks like a time is one, and so on,
 * in any order and with anything between them. */
#include "http/cookie_date.h"
#include "http/text.h"

#include <string.h>

typedef struct cookie_date {
    int hour, minute, second, day, month, year; /* -1: not found */
} cookie_date_t;

static int is_date_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A number of `least` to `most` digits, and no digit behind it. Moves *at behind it. -1: there is none. */
static int take_number(const char **at, const char *end, int least, int most)
{
    int number = 0, digits = 0;
    for (; *at < end && is_date_digit(**at); ++*at)
        if (digits++ < most)
            number = number * 10 + **at - '0';
    return digits >= least && digits <= most ? number : -1;
}

static int take_time(cookie_date_t *date, const char *at, const char *end)
{
    int hour = take_number(&at, end, 1, 2), minute = -1, second = -1;
    if (hour >= 0 && at < end && *at == ':') {
        at++;
        minute = take_number(&at, end, 1, 2);
    }
    if (minute >= 0 && at < end && *at == ':') {
        at++;
        second = take_number(&at, end, 1, 2);
    }
    if (second < 0)
        return 0;
    date->hour = hour;
    date->minute = minute;
    date->second = second;
    return 1;
}

static int take_month(cookie_date_t *date, const char *at, const char *end)
{
    static const char *const names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
    for (int i = 0; i < 12 && end - at >= 3; i++)
        if (aco__http_is(at, 3, names[i])) {
            date->month = i;
            return 1;
        }
    return 0;
}

static void take_date_token(cookie_date_t *date, const char *at, const char *end)
{
    const char *number = at;
    if (date->hour < 0 && take_time(date, at, end))
        return;
    if (date->day < 0 && (date->day = take_number(&number, end, 1, 2)) >= 0)
        return;
    if (date->month < 0 && take_month(date, at, end))
        return;
    number = at;
    if (date->year < 0 && (date->year = take_number(&number, end, 2, 4)) >= 0 && date->year < 100)
        date->year += date->year < 70 ? 2000 : 1900;
}

static int is_separator(char c)
{
    const unsigned char u = (unsigned char)c;
    return u == '\t' || (u >= ' ' && u <= '/') || (u >= ';' && u <= '@') || (u >= '[' && u <= '`') ||
           (u >= '{' && u <= '~');
}

/* INT64_MIN: there is no such day. */
static int64_t seconds_of(const cookie_date_t *date)
{
    const int64_t y = date->year - (date->month < 2), shifted = date->month < 2 ? date->month + 10 : date->month - 2;
    const int64_t day_of_era = y % 400 * 365 + y % 400 / 4 - y % 400 / 100 + (153 * shifted + 2) / 5 + date->day - 1;
    const int64_t days = y / 400 * 146097 + day_of_era - 719468;
    char text[HTTP_DATE];
    if (days < 0)
        return 0;
    aco__http_put_date(text, days * 86400);
    if ((text[5] - '0') * 10 + text[6] - '0' != date->day) /* the 31st of a month of 30 */
        return INT64_MIN;
    return days * 86400 + date->hour * 3600 + date->minute * 60 + date->second;
}

int64_t aco__http_cookie_date(const char *text, size_t n)
{
    cookie_date_t date = {-1, -1, -1, -1, -1, -1};
    const char *end = text + n;
    while (text < end) {
        const char *begin = text;
        while (text < end && !is_separator(*text))
            text++;
        if (text > begin)
            take_date_token(&date, begin, text);
        else
            text++;
    }
    if (date.hour < 0 || date.hour > 23 || date.minute > 59 || date.second > 59 || date.day < 1 || date.day > 31 ||
        date.month < 0 || date.year < 1601)
        return INT64_MIN;
    return seconds_of(&date);
}
