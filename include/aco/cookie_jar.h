/* Cookies of HTTP clients (RFC 6265): a jar keeps what servers set, and gives it to later requests. In the library
 * acorn_http.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_cookie_jar_t *jar = aco_cookie_jar_new(NULL);
 *   const aco_http_client_options_t options = {.jar = jar};
 *   aco_http_client_t *client = aco_http_client_new(&options); // its calls use the jar, also between redirects
 *
 * Public suffixes. A server may set cookies for its domain, "example.org" by "www.example.org", but must not for
 * "org" or "co.uk": all sites below would get them. Only a list of public suffixes tells the two apart, and `is_suffix`
 * of the options asks one: by libpsl `return psl_is_public_suffix(psl_builtin(), domain);`. Without it a jar is
 * careful: a server sets cookies only for its own host and what is below it, cookies for a domain above are refused.
 *
 * Not kept are: cookies for another domain, for a public suffix or, unless the host itself has that name, for a domain
 * of one label; names and values with control characters or of more than 4096 bytes; Secure cookies by http://, and
 * cookies by http:// in place of Secure ones; "__Secure-" and "__Host-" without what these names promise.
 *
 * Clients and tasks of any threads may share a jar: each call locks it for a moment, and never waits for a peer. */
#ifndef ACO_COOKIE_JAR_H
#define ACO_COOKIE_JAR_H

#include "scheduler.h"

#include <sys/types.h>

ACO__BEGIN_C

typedef struct aco_cookie_jar_s aco_cookie_jar_t;

/* Zeros are the defaults. */
typedef struct aco_cookie_jar_options_s {
    size_t max_cookies;    /* 3000. What is expired, then what was used longest ago makes room */
    size_t max_per_domain; /* 180 */
    /* Returns whether all sites below this domain, in lower case and without a dot at its end, are strangers. Must not
     * wait, use the jar or throw; any thread that uses the jar calls it. NULL: see above. */
    int (*is_suffix)(const char *domain, void *suffix_arg);
    void *suffix_arg;
    void *aco__reserved[4]; /* reserved fields are 0 */
} aco_cookie_jar_options_t;

/* Makes an empty jar. NULL options: the defaults. Returns it; on error NULL with errno ENOMEM, EINVAL (a reserved
 * field). */
ACO_API aco_cookie_jar_t *aco_cookie_jar_new(const aco_cookie_jar_options_t *options);
/* Frees a jar that no client uses any more. NULL: nothing happens. */
ACO_API void aco_cookie_jar_destroy(aco_cookie_jar_t *jar);

/* Takes the value of a header Set-Cookie that came from this URL. Returns 1: it is kept, or has deleted a cookie; 0: it
 * is not kept, see above; on error -1 with errno EINVAL (the URL is none of http or https), ENOMEM. */
ACO_API int aco_cookie_jar_set(aco_cookie_jar_t *jar, const char *url, const char *set_cookie);

/* Writes the value of the header Cookie of a request for this URL, "a=b; c=d", and a 0: longer paths first, then older
 * cookies. Returns the length; 0: there are none; on error -1 with errno EINVAL as above, ENOBUFS (`size` is too
 * small). */
ACO_API ssize_t aco_cookie_jar_get(aco_cookie_jar_t *jar, const char *url, char *to, size_t size);

/* A cookie of a jar. Read-only. */
typedef struct aco_cookie_s {
    const char *name, *value;
    const char *domain;  /* in lower case, without a dot before it */
    const char *path;
    int64_t expires;     /* seconds since 1970; INT64_MAX: when the session ends, which the program decides */
    int host_only;       /* not for what is below the domain */
    int secure, http_only;
    int same_site;       /* ACO_HTTP_SAME_SITE_… of aco/http_cookies.h. Kept, and not enforced: a client has no pages
                            that ask for others */
} aco_cookie_t;

/* Calls the function for each cookie that is not expired: to save or show them. The function must not use the jar,
 * wait or throw. */
ACO_API void aco_cookie_jar_each(aco_cookie_jar_t *jar, void (*fn)(const aco_cookie_t *cookie, void *arg), void *arg);
/* Forgets all cookies; or only those that end with the session. */
ACO_API void aco_cookie_jar_clear(aco_cookie_jar_t *jar, int only_session);

ACO__END_C

#endif
