/* Cookies of clients (RFC 6265, and of its successor, draft-ietf-httpbis-rfc6265bis, what protects Secure cookies). */
#define _GNU_SOURCE
#include "base/invariants.h"
#include "base/reserved.h"
#include "http/cookie_date.h"
#include "http/cookie_jar_internal.h"
#include "http/text.h"
#include "system/system.h"

#include "aco/detail/for_libraries.h"
#include "aco/http_cookies.h"
#include "aco/url.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { JAR_BUCKETS = 64, JAR_HOST = 256, JAR_MOST = 4096 };

typedef struct jar_cookie {
    aco_cookie_t is; /* first; its texts stand behind the record */
    struct jar_cookie *next;   /* in its bucket */
    struct jar_cookie *chosen; /* the next one of a request */
    uint64_t made, used;       /* counted */
    size_t sz;
} jar_cookie_t;

struct aco_cookie_jar_s {
    aco_cookie_jar_options_t options;
    pthread_mutex_t lock; /* of all below. What is done under it never switches */
    size_t count;
    uint64_t clock;
    jar_cookie_t *buckets[JAR_BUCKETS]; /* by domain */
};

static const char jar_set[] = "aco_cookie_jar_set";

static void lock_jar(aco_cookie_jar_t *jar)
{
    aco__system.pthread_mutex_lock(&jar->lock);
    ACO__NO_SWITCH_BEGIN();
}

static void unlock_jar(aco_cookie_jar_t *jar)
{
    ACO__NO_SWITCH_END();
    aco__system.pthread_mutex_unlock(&jar->lock);
}

/* ---- Where a request goes ---- */

typedef struct jar_place {
    int is_tls, is_ip;
    char host[JAR_HOST]; /* in lower case */
    const char *path;
    size_t path_n;
} jar_place_t;

static void put_lower(char *to, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 32) : text[i];
    to[n] = 0;
}

/* Whether this host, in lower case, is an IPv4 address, also in a form that only inet_aton() knows: "127.1", "0x7f.1",
 * each with a dot at its end. No domain's last label is a number. */
static int is_number(const char *host, size_t n)
{
    const char *label;
    n -= n > 0 && host[n - 1] == '.';
    for (label = host + n; label > host && label[-1] != '.'; label--)
        ;
    n -= (size_t)(label - host);
    if (n >= 2 && label[0] == '0' && label[1] == 'x')
        return strspn(label + 2, "0123456789abcdef") >= n - 2;
    return n > 0 && strspn(label, "0123456789") >= n;
}

/* 0, or -1 and errno. */
static int find_place(jar_place_t *place, const char *url, const char *call)
{
    aco_url_t parts;
    if (aco_url_parse(&parts, url) != 0)
        return -1;
    place->is_tls = parts.scheme.n == 5 && aco__http_is(parts.scheme.at, 5, "https");
    if ((!place->is_tls && (parts.scheme.n != 4 || !aco__http_is(parts.scheme.at, 4, "http"))) || !parts.host.n ||
        parts.host.n >= JAR_HOST)
        return aco__service_fail(EINVAL, call, "the URL");
    put_lower(place->host, parts.host.at, parts.host.n);
    place->is_ip = parts.is_ip || is_number(place->host, parts.host.n);
    place->path = parts.path.n ? parts.path.at : "/";
    place->path_n = parts.path.n ? parts.path.n : 1;
    return 0;
}

/* ---- Cookies of a jar ---- */

static int64_t wall_time(void)
{
    struct timespec now;
    aco__system.clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec;
}

static jar_cookie_t **jar_bucket_of(aco_cookie_jar_t *jar, const char *domain)
{
    uint32_t hash = 5381;
    for (; *domain; domain++)
        hash = hash * 33 ^ (unsigned char)*domain;
    return &jar->buckets[hash % JAR_BUCKETS];
}

static void remove_at(aco_cookie_jar_t *jar, jar_cookie_t **at)
{
    jar_cookie_t *cookie = *at;
    *at = cookie->next;
    jar->count--;
    aco__service_free(cookie, cookie->sz);
}

/* Cookies of one request are used at the same time. */
static int is_older(const jar_cookie_t *a, const jar_cookie_t *b)
{
    return a->used != b->used ? a->used < b->used : a->made < b->made;
}

/* Removes what is expired, or else what was used longest ago: of a domain, or of all (NULL). Returns how many cookies
 * the domain, or the jar, has left. */
static size_t evict(aco_cookie_jar_t *jar, const char *domain, int64_t now)
{
    jar_cookie_t **oldest = NULL;
    size_t left = 0, removed = 0;
    for (size_t i = 0; i < JAR_BUCKETS; i++) {
        jar_cookie_t **at = &jar->buckets[i];
        while (*at) {
            const int is_one = !domain || strcmp((*at)->is.domain, domain) == 0;
            if (is_one && (*at)->is.expires <= now) {
                removed++;
                oldest = NULL; /* it may have been in the record that goes */
                remove_at(jar, at);
                continue;
            }
            left += (size_t)is_one;
            if (is_one && !removed && (!oldest || is_older(*at, *oldest)))
                oldest = at;
            at = &(*at)->next;
        }
    }
    if (!removed && oldest) {
        remove_at(jar, oldest);
        left--;
    }
    return left;
}

/* ---- Set-Cookie ---- */

typedef struct jar_text {
    const char *at;
    size_t n;
} jar_text_t;

typedef struct set_cookie {
    jar_text_t name, value, domain, path;
    int64_t expires, max_age; /* INT64_MAX: not set */
    int secure, http_only, same_site;
} set_cookie_t;

static jar_text_t trimmed(const char *at, const char *end)
{
    jar_text_t text;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    text.at = at;
    text.n = (size_t)(end - at);
    return text;
}

static int text_is(jar_text_t text, const char *lower)
{
    return text.n == strlen(lower) && aco__http_is(text.at, text.n, lower);
}

/* Seconds; INT64_MAX: not a number. */
static int64_t seconds_in(jar_text_t text)
{
    const int is_negative = text.n > 0 && text.at[0] == '-';
    int64_t seconds = 0;
    if (text.n == (size_t)is_negative)
        return INT64_MAX;
    for (size_t i = (size_t)is_negative; i < text.n; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return INT64_MAX;
        if (seconds < INT64_MAX / 1000)
            seconds = seconds * 10 + text.at[i] - '0';
    }
    return is_negative ? -1 : seconds;
}

static void take_attribute(set_cookie_t *set, jar_text_t name, jar_text_t value)
{
    if (text_is(name, "expires")) {
        const int64_t date = aco__http_cookie_date(value.at, value.n);
        set->expires = date == INT64_MIN ? set->expires : date;
    } else if (text_is(name, "max-age")) {
        const int64_t seconds = seconds_in(value);
        set->max_age = seconds == INT64_MAX ? set->max_age : seconds;
    } else if (text_is(name, "domain")) {
        set->domain = trimmed(value.at + (value.n && value.at[0] == '.'), value.at + value.n);
    } else if (text_is(name, "path")) {
        set->path = value;
    } else if (text_is(name, "secure")) {
        set->secure = 1;
    } else if (text_is(name, "httponly")) {
        set->http_only = 1;
    } else if (text_is(name, "samesite")) {
        set->same_site = text_is(value, "lax")      ? ACO_HTTP_SAME_SITE_LAX
                         : text_is(value, "strict") ? ACO_HTTP_SAME_SITE_STRICT
                         : text_is(value, "none")   ? ACO_HTTP_SAME_SITE_NONE
                                                    : ACO_HTTP_SAME_SITE_UNSET;
    }
}

/* Whether it is a cookie. */
static int parse_set_cookie(set_cookie_t *set, const char *text)
{
    const char *end = text + strcspn(text, ";"), *equals = memchr(text, '=', (size_t)(end - text));
    memset(set, 0, sizeof *set);
    set->expires = set->max_age = INT64_MAX;
    for (const char *c = text; *c; c++)
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
            return 0;
    if (!equals)
        return 0;
    set->name = trimmed(text, equals);
    set->value = trimmed(equals + 1, end);
    while (*end) {
        const char *at = end + 1;
        end = at + strcspn(at, ";");
        equals = memchr(at, '=', (size_t)(end - at));
        take_attribute(set, trimmed(at, equals ? equals : end), trimmed(equals ? equals + 1 : end, end));
    }
    return set->name.n > 0 && set->name.n + set->value.n <= JAR_MOST;
}

/* ---- What is kept ---- */

static int is_below(const char *host, const char *domain)
{
    const size_t host_n = strlen(host), n = strlen(domain);
    return host_n > n && host[host_n - n - 1] == '.' && strcmp(host + host_n - n, domain) == 0;
}

/* Whether it is a public suffix, as far as the jar knows: also with a dot at its end. */
static int is_suffix(const aco_cookie_jar_t *jar, const char *domain)
{
    const size_t n = strlen(domain);
    char name[JAR_HOST];
    int result;
    memcpy(name, domain, n + 1);
    if (n && name[n - 1] == '.')
        name[n - 1] = 0;
    if (!jar->options.is_suffix)
        return !strchr(name, '.');
    ACO__NO_SWITCH_BEGIN();
    result = jar->options.is_suffix(name, jar->options.suffix_arg);
    ACO__NO_SWITCH_END();
    return result != 0;
}

/* Finds the domain, JAR_HOST bytes, and whether the cookie is only for that host. 0: the cookie is refused. */
static int find_domain(const aco_cookie_jar_t *jar, const jar_place_t *place, const set_cookie_t *set, char *domain,
                       int *host_only)
{
    *host_only = 1;
    if (!set->domain.n) {
        memcpy(domain, place->host, strlen(place->host) + 1);
        return 1;
    }
    if (set->domain.n >= JAR_HOST)
        return 0;
    put_lower(domain, set->domain.at, set->domain.n);
    if (strcmp(domain, place->host) == 0) {
        *host_only = place->is_ip || is_suffix(jar, domain);
        return 1;
    }
    *host_only = 0;
    return jar->options.is_suffix && !place->is_ip && is_below(place->host, domain) && !is_suffix(jar, domain);
}

/* The default path is that of the request, up to its last "/" (RFC 6265, 5.1.4). */
static jar_text_t path_for(const jar_place_t *place, const set_cookie_t *set)
{
    jar_text_t path = set->path;
    if (path.n && path.at[0] == '/')
        return path;
    path.at = place->path;
    path.n = place->path_n;
    while (path.n > 1 && path.at[path.n - 1] != '/')
        path.n--;
    path.n -= path.n > 1;
    if (path.at[0] != '/') {
        path.at = "/";
        path.n = 1;
    }
    return path;
}

static int path_fits(const char *cookie_path, const char *path, size_t n)
{
    const size_t cookie_n = strlen(cookie_path);
    return n >= cookie_n && memcmp(path, cookie_path, cookie_n) == 0 &&
           (n == cookie_n || cookie_path[cookie_n - 1] == '/' || path[cookie_n] == '/');
}

/* Whether a cookie by http:// would hide or replace one that is Secure. */
static int hides_secure(const aco_cookie_jar_t *jar, const set_cookie_t *set, const char *domain, jar_text_t path)
{
    for (size_t i = 0; i < JAR_BUCKETS; i++)
        for (const jar_cookie_t *c = jar->buckets[i]; c; c = c->next)
            if (c->is.secure && strlen(c->is.name) == set->name.n &&
                memcmp(c->is.name, set->name.at, set->name.n) == 0 && path_fits(c->is.path, path.at, path.n) &&
                (strcmp(c->is.domain, domain) == 0 || is_below(c->is.domain, domain) || is_below(domain, c->is.domain)))
                return 1;
    return 0;
}

/* Whether a name's prefix promises what the cookie has not. */
static int breaks_prefix(const set_cookie_t *set, int host_only)
{
    if (set->name.n >= 9 && aco__http_is(set->name.at, 9, "__secure-"))
        return !set->secure;
    if (set->name.n >= 7 && aco__http_is(set->name.at, 7, "__host-"))
        return !set->secure || !host_only || set->domain.n || set->path.n != 1 || set->path.at[0] != '/';
    return 0;
}

/* NULL: it is not there. */
static jar_cookie_t **find_cookie(aco_cookie_jar_t *jar, jar_text_t name, const char *domain, jar_text_t path)
{
    for (jar_cookie_t **at = jar_bucket_of(jar, domain); *at; at = &(*at)->next) {
        const aco_cookie_t *c = &(*at)->is;
        if (strcmp(c->domain, domain) == 0 && strlen(c->name) == name.n && memcmp(c->name, name.at, name.n) == 0 &&
            strlen(c->path) == path.n && memcmp(c->path, path.at, path.n) == 0)
            return at;
    }
    return NULL;
}

static const char *put_text_of(char **at, const char *text, size_t n)
{
    char *begin = *at;
    *at = aco__http_put(begin, text, n);
    *(*at)++ = 0;
    return begin;
}

/* NULL and errno. */
static jar_cookie_t *new_cookie(const set_cookie_t *set, const char *domain, jar_text_t path)
{
    const size_t domain_n = strlen(domain);
    size_t sz = sizeof(jar_cookie_t) + set->name.n + set->value.n + domain_n + path.n + 4;
    jar_cookie_t *cookie = aco__service_new(&sz, jar_set);
    char *at;
    if (!cookie)
        return NULL;
    cookie->sz = sz;
    at = (char *)(cookie + 1);
    cookie->is.name = put_text_of(&at, set->name.at, set->name.n);
    cookie->is.value = put_text_of(&at, set->value.at, set->value.n);
    cookie->is.domain = put_text_of(&at, domain, domain_n);
    cookie->is.path = put_text_of(&at, path.at, path.n);
    cookie->is.secure = set->secure;
    cookie->is.http_only = set->http_only;
    cookie->is.same_site = set->same_site;
    return cookie;
}

/* Replaces or adds a cookie. 1, or -1 and errno. */
static int keep_cookie(aco_cookie_jar_t *jar, const set_cookie_t *set, const char *domain, int host_only,
                       jar_text_t path, int64_t expires, int64_t now)
{
    jar_cookie_t **at = find_cookie(jar, set->name, domain, path), *cookie = NULL;
    const uint64_t made = at ? (*at)->made : ++jar->clock;
    size_t of_domain = 0;
    if (expires > now && !(cookie = new_cookie(set, domain, path)))
        return -1;
    if (at)
        remove_at(jar, at);
    if (!cookie)
        return 1;
    cookie->is.host_only = host_only;
    cookie->is.expires = expires;
    cookie->made = made;
    cookie->used = ++jar->clock;
    for (const jar_cookie_t *c = *jar_bucket_of(jar, domain); c; c = c->next)
        of_domain += strcmp(c->is.domain, domain) == 0;
    while (of_domain >= jar->options.max_per_domain)
        of_domain = evict(jar, domain, now);
    while (jar->count >= jar->options.max_cookies)
        (void)evict(jar, NULL, now);
    at = jar_bucket_of(jar, domain);
    cookie->next = *at;
    *at = cookie;
    jar->count++;
    return 1;
}

int aco_cookie_jar_set(aco_cookie_jar_t *jar, const char *url, const char *set_cookie)
{
    char domain[JAR_HOST];
    jar_place_t place;
    set_cookie_t set;
    jar_text_t path;
    const int64_t now = wall_time();
    int64_t expires;
    int host_only, result = 0;
    if (find_place(&place, url, jar_set) != 0)
        return -1;
    if (!parse_set_cookie(&set, set_cookie) || !find_domain(jar, &place, &set, domain, &host_only))
        return 0;
    path = path_for(&place, &set);
    if (path.n > JAR_MOST || breaks_prefix(&set, host_only) || (!place.is_tls && set.secure))
        return 0;
    expires = set.expires;
    if (set.max_age != INT64_MAX)
        expires = set.max_age <= 0 ? INT64_MIN : now + set.max_age;
    lock_jar(jar);
    if (place.is_tls || !hides_secure(jar, &set, domain, path))
        result = keep_cookie(jar, &set, domain, host_only, path, expires, now);
    unlock_jar(jar);
    return result;
}

/* ---- Cookie ---- */

/* Sorts it into the cookies of a request. */
static void choose(jar_cookie_t **first, jar_cookie_t *cookie)
{
    const size_t n = strlen(cookie->is.path);
    for (; *first; first = &(*first)->chosen) {
        const size_t first_n = strlen((*first)->is.path);
        if (first_n < n || (first_n == n && (*first)->made > cookie->made))
            break;
    }
    cookie->chosen = *first;
    *first = cookie;
}

static jar_cookie_t *choose_all(aco_cookie_jar_t *jar, const jar_place_t *place, int64_t now)
{
    const uint64_t used = ++jar->clock;
    jar_cookie_t *first = NULL;
    for (const char *domain = place->host, *dot; domain; domain = dot ? dot + 1 : NULL) {
        dot = place->is_ip ? NULL : strchr(domain, '.');
        for (jar_cookie_t *c = *jar_bucket_of(jar, domain); c; c = c->next)
            if (strcmp(c->is.domain, domain) == 0 && (domain == place->host || !c->is.host_only) &&
                (place->is_tls || !c->is.secure) && c->is.expires > now &&
                path_fits(c->is.path, place->path, place->path_n)) {
                c->used = used;
                choose(&first, c);
            }
    }
    return first;
}

/* "a=b; c=d". Returns the length, also if that is too much. */
static size_t put_chosen(const jar_cookie_t *cookie, char *to, size_t size, int is_cut)
{
    size_t n = 0;
    for (; cookie; cookie = cookie->chosen) {
        const size_t name_n = strlen(cookie->is.name), value_n = strlen(cookie->is.value), gap = n ? 2 : 0;
        char *at;
        if (n + gap + name_n + 1 + value_n >= size) {
            n += is_cut ? 0 : gap + name_n + 1 + value_n;
            size = is_cut ? size : 0;
            continue;
        }
        at = aco__http_put(to + n, "; ", gap);
        at = aco__http_put(at, cookie->is.name, name_n);
        *at++ = '=';
        at = aco__http_put(at, cookie->is.value, value_n);
        n = (size_t)(at - to);
    }
    if (n < size)
        to[n] = 0;
    return n;
}

/* The length of what is chosen, as put_chosen(). -1 and errno: the URL is none. */
static ssize_t put_all(aco_cookie_jar_t *jar, const char *url, char *to, size_t size, int is_cut, const char *call)
{
    const int64_t now = wall_time();
    jar_place_t place;
    size_t n;
    if (find_place(&place, url, call) != 0)
        return -1;
    lock_jar(jar);
    n = put_chosen(choose_all(jar, &place, now), to, size, is_cut);
    unlock_jar(jar);
    return (ssize_t)n;
}

ssize_t aco__cookie_jar_put(aco_cookie_jar_t *jar, const char *url, char *to, size_t size)
{
    return put_all(jar, url, to, size, 1, "aco_http_call");
}

ssize_t aco_cookie_jar_get(aco_cookie_jar_t *jar, const char *url, char *to, size_t size)
{
    static const char call[] = "aco_cookie_jar_get";
    ssize_t n = put_all(jar, url, to, size, 0, call);
    return n < (ssize_t)size ? n : aco__service_fail(ENOBUFS, call, "the buffer is too small");
}

/* ---- Jars ---- */

aco_cookie_jar_t *aco_cookie_jar_new(const aco_cookie_jar_options_t *options)
{
    static const char call[] = "aco_cookie_jar_new";
    size_t sz = sizeof(aco_cookie_jar_t);
    aco_cookie_jar_t *jar;
    if (options && ACO__RESERVED_IS_SET(options)) {
        aco__service_fail(EINVAL, call, "a reserved field is not 0");
        return NULL;
    }
    jar = aco__service_new(&sz, call);
    if (!jar)
        return NULL;
    pthread_mutex_init(&jar->lock, NULL);
    if (options)
        jar->options = *options;
    if (!jar->options.max_cookies)
        jar->options.max_cookies = 3000;
    if (!jar->options.max_per_domain)
        jar->options.max_per_domain = 180;
    return jar;
}

void aco_cookie_jar_destroy(aco_cookie_jar_t *jar)
{
    if (!jar)
        return;
    aco_cookie_jar_clear(jar, 0);
    pthread_mutex_destroy(&jar->lock);
    aco__service_free(jar, sizeof *jar);
}

void aco_cookie_jar_each(aco_cookie_jar_t *jar, void (*fn)(const aco_cookie_t *cookie, void *arg), void *arg)
{
    const int64_t now = wall_time();
    lock_jar(jar);
    for (size_t i = 0; i < JAR_BUCKETS; i++)
        for (const jar_cookie_t *c = jar->buckets[i]; c; c = c->next)
            if (c->is.expires > now)
                fn(&c->is, arg);
    unlock_jar(jar);
}

void aco_cookie_jar_clear(aco_cookie_jar_t *jar, int only_session)
{
    lock_jar(jar);
    for (size_t i = 0; i < JAR_BUCKETS; i++)
        for (jar_cookie_t **at = &jar->buckets[i]; *at;) {
            if (!only_session || (*at)->is.expires == INT64_MAX)
                remove_at(jar, at);
            else
                at = &(*at)->next;
        }
    ACO__ASSERT(only_session || !jar->count);
    unlock_jar(jar);
}
