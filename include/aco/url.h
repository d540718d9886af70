/* URLs by RFC 3986: parts, resolving, escapes. In the library acorn_http.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_url_t url;
 *   char next[2048];
 *   if (aco_url_parse(&url, "https://example.org:8443/a/b?c#d") == 0)
 *       printf("%.*s\n", (int)url.host.n, url.host.at); // example.org
 *   if (aco_url_resolve(next, sizeof next, "https://example.org/a/b?c", "../d") > 0)
 *       puts(next);                                     // https://example.org/d
 *
 * Any thread may make these calls; none waits or allocates. Texts are ASCII: bytes beyond it, and spaces, need escapes.
 * Names of hosts beyond ASCII must be in Punycode. In a path, query or fragment any other visible character is taken
 * as it is, as browsers and servers take it, also a "%" without its digits. No pointer may be NULL. */
#ifndef ACO_URL_H
#define ACO_URL_H

#include "scheduler.h"

#include <sys/types.h>

ACO__BEGIN_C

/* `n` bytes of the text that was parsed. `at` is NULL if the part is missing: "http://a" has no query, "http://a?" an
 * empty one. */
typedef struct aco_url_part_s {
    const char *at;
    size_t n;
} aco_url_part_t;

/* The parts, without what stands between them, and with their escapes. */
typedef struct aco_url_s {
    aco_url_part_t scheme;   /* "http". Missing: the text is a relative reference, such as "../a" */
    aco_url_part_t user;     /* "name:password", what stands before the "@" */
    aco_url_part_t host;     /* an IPv6 address without its brackets. Missing: there is no "//" */
    aco_url_part_t port;     /* digits; may be empty */
    aco_url_part_t path;     /* may be empty, is never missing */
    aco_url_part_t query, fragment;
    int is_ip;               /* the host stands in brackets */
} aco_url_t;

/* Takes a URL, or a relative reference, apart. Returns 0; on error -1 with errno EINVAL: a scheme, user, host or port
 * that RFC 3986 does not allow (a zone behind an IPv6 address may begin with "%25" or "%"), a port above 65535, or a
 * character that needs an escape. */
ACO_API int aco_url_parse(aco_url_t *url, const char *text);

/* The three calls below write a text and a 0 to `to`, which has `size` bytes. They return the text's length; on error
 * -1 with errno EINVAL as above, or ENOBUFS (`size` is too small). */

/* Writes what `reference` means on a page whose URL is `base` (RFC 3986, 5.2). "." and ".." are taken out of the path,
 * also if the reference is a URL itself. EINVAL also: `base` has no scheme. */
ACO_API ssize_t aco_url_resolve(char *to, size_t size, const char *base, const char *reference);

/* Writes the URL in its normal form (RFC 3986, 6.2.2 and 6.2.3), so that equal URLs become equal texts: scheme and
 * host in lower case, no escapes of letters, digits and "-._~", others in upper case, no "." and ".." in the path, no
 * port that is empty or the default of http, https, ws or wss, and "/" for their empty path. */
ACO_API ssize_t aco_url_normalize(char *to, size_t size, const char *url);

/* Writes `n` bytes as a part of a URL: letters, digits, "-._~" and the characters of `keep` stay, others become
 * escapes. With "" for `keep` the result may stand anywhere in a URL, with "/" it is a path. Never EINVAL. */
ACO_API ssize_t aco_url_escape(char *to, size_t size, const char *text, size_t n, const char *keep);

/* Writes what `n` bytes of a URL mean: the bytes of its escapes. A "+" stays (only forms write it for a space). Returns
 * the length; on error -1 with errno EINVAL (a wrong escape, or one of a 0), ENOBUFS. */
ACO_API ssize_t aco_url_unescape(char *to, size_t size, const char *text, size_t n);

ACO__END_C

#endif
