/* page.c: a text or a message that grows; and what the pages share. */
#ifndef ACO_PAGE_H
#define ACO_PAGE_H

#include "os/platform.h"
#include "base/invariants.h"

#include "aco/debug.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Zeros: empty. A page that does not get its memory, or becomes too long, is broken and stays so. */
typedef struct aco__page {
    char *at;
    size_t n, room;
    int is_broken;
} aco__page_t;

ACO__HIDDEN void aco__page_add(aco__page_t *page, const void *p, size_t n);
__attribute__((format(printf, 2, 3))) ACO__HIDDEN void aco__page_print(aco__page_t *page, const char *format, ...);
ACO__HIDDEN void aco__page_free(aco__page_t *page);
/* Replies with the page, or with 500 if it is broken, and frees it. */
ACO__SWITCHES ACO__HIDDEN void aco__page_reply(aco_http_request_t *request, const char *type, aco__page_t *page);

/* The number in the query, or `missing`; `most` at most. */
ACO__HIDDEN int aco__page_number(aco_http_request_t *request, const char *name, int missing, int most);

/* One profile at a time: 1; or 0, and the request has its reply, 429. `seconds`: how long it will take; 0: it looks
 * once and is soon over, so others wait for its end instead, for two seconds. */
ACO__SWITCHES ACO__HIDDEN int aco__profile_begin(aco_http_request_t *request, int seconds);
ACO__HIDDEN void aco__profile_end(void);

#endif
