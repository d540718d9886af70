/* Dates in Set-Cookie: cookie_date.c. */
#ifndef ACO_HTTP_COOKIE_DATE_H
#define ACO_HTTP_COOKIE_DATE_H

#include "os/platform.h"

/* The seconds since 1970 of the `n` bytes of a date, in any form that servers write (RFC 6265, 5.1.1), INT64_MIN if it
 * is none; before 1970 0. */
ACO__HIDDEN int64_t aco__http_cookie_date(const char *text, size_t n);

#endif
