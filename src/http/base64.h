/* Base64, and what HTTP makes of it: base64.c. */
#ifndef ACO_HTTP_BASE64_H
#define ACO_HTTP_BASE64_H

#include "os/platform.h"

/* Writes (n + 2) / 3 * 4 characters. Returns their end. */
ACO__HIDDEN char *aco__http_put_base64(char *at, const void *p, size_t n);
/* The bytes that the next call needs for so many. */
#define HTTP_BASIC(n) (sizeof "Basic " + ((n) + 2) / 3 * 4)
/* "Basic …" for "name:password", and a 0. */
ACO__HIDDEN void aco__http_put_basic(char *at, const char *credentials, size_t n);

#endif
