/* Cookies of HTTP servers (RFC 6265): those of a request, and Set-Cookie. In the library acorn_http.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   const char *session = aco_http_request_cookie(request, "__Host-session");
 *   if (!session) {
 *       const aco_http_cookie_t cookie = {.name = "__Host-session", .value = id, .path = "/", .secure = 1,
 *                                         .http_only = 1, .same_site = ACO_HTTP_SAME_SITE_LAX};
 *       aco_http_reply_cookie(request, &cookie);
 *   }
 *
 * The rules of aco/http.h count: threads, memory of the request, errors. */
#ifndef ACO_HTTP_COOKIES_H
#define ACO_HTTP_COOKIES_H

#include "http.h"

ACO__BEGIN_C

/* Finds the first cookie with this name, in all Cookie headers; upper and lower case differ. Other sites of the domain
 * may have set it: only a name that begins with "__Host-" is safe from them. Cookies whose name or value RFC 6265 does
 * not allow (spaces, commas, backslashes, bytes beyond ASCII, quotes that are not around the value) are passed over.
 * Returns the value in memory of the request, as it was sent, with quotes if it has them. NULL with errno 0: there is
 * no such cookie; on error NULL with errno ENOMEM. */
ACO_API const char *aco_http_request_cookie(aco_http_request_t *request, const char *name);

enum { ACO_HTTP_SAME_SITE_UNSET, ACO_HTTP_SAME_SITE_LAX, ACO_HTTP_SAME_SITE_STRICT, ACO_HTTP_SAME_SITE_NONE };

/* A cookie to set. Zeros: no such attribute. */
typedef struct aco_http_cookie_s {
    const char *name;   /* a token */
    const char *value;  /* ASCII without spaces, commas, semicolons, backslashes and quotes, but for quotes around it */
    const char *path;   /* begins with "/"; NULL: that of the request, up to its last "/" */
    const char *domain; /* the cookie goes to its subdomains, too. NULL: to this host alone */
    int64_t max_age;    /* seconds; 0: until the browser ends; less than 0: the browser deletes the cookie */
    int same_site;      /* ACO_HTTP_SAME_SITE_… */
    int secure;         /* only over TLS */
    int http_only;      /* not for scripts of the page */
    void *aco__reserved[2]; /* reserved fields are 0 */
} aco_http_cookie_t;

/* Adds the header Set-Cookie to the reply, before it begins. Returns 0; on error -1 with errno EINVAL (a field is not
 * allowed; name and value have over 4096 bytes; what browsers refuse: "__Secure-", "__Host-" or SameSite=None without
 * `secure`, "__Host-" with a domain or another path than "/"), or as aco_http_reply_header(). */
ACO_API int aco_http_reply_cookie(aco_http_request_t *request, const aco_http_cookie_t *cookie);

ACO__END_C

#endif
