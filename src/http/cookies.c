/* Cookies: what requests have, and what replies set (RFC 6265). */
#include "base/reserved.h"
#include "http/request.h"
#include "http/text.h"

#include "aco/http_cookies.h"

#include <stdio.h>
#include <string.h>

enum { MOST_NAME_AND_VALUE = 4096, MOST_ATTRIBUTE = 1024 }; /* bytes; what browsers take */

/* ---- What is allowed ---- */

/* The octets of RFC 6265, 4.1.1, with quotes around them or without. */
static int is_cookie_value(const char *value, size_t n)
{
    if (n >= 2 && value[0] == '"' && value[n - 1] == '"') {
        value++;
        n -= 2;
    }
    for (size_t i = 0; i < n; i++)
        if (value[i] <= ' ' || value[i] >= 0x7f || strchr("\",;\\", value[i]))
            return 0;
    return 1;
}

static int is_path(const char *path)
{
    if (*path != '/' || strlen(path) > MOST_ATTRIBUTE)
        return 0;
    for (; *path; path++)
        if (*path < ' ' || *path >= 0x7f || *path == ';')
            return 0;
    return 1;
}

/* Letters, digits and hyphens in labels of at least a byte. */
static int is_domain(const char *domain)
{
    size_t n = strlen(domain);
    if (!n || n > 253 || domain[0] == '.' || domain[n - 1] == '.' || strstr(domain, ".."))
        return 0;
    for (; *domain; domain++)
        if (!(*domain >= '0' && *domain <= '9') && !((*domain | 32) >= 'a' && (*domain | 32) <= 'z') &&
            *domain != '-' && *domain != '.')
            return 0;
    return 1;
}

static int has_prefix(const char *name, const char *prefix, size_t n)
{
    return strlen(name) >= n && aco__http_is(name, n, prefix);
}

/* What is wrong with a cookie; NULL: nothing. */
static const char *fault_of_cookie(const aco_http_cookie_t *cookie)
{
    const char *name = cookie->name ? cookie->name : "";
    size_t name_n = strlen(name), value_n = cookie->value ? strlen(cookie->value) : 0;
    int is_host = has_prefix(name, "__host-", 7);
    if (ACO__RESERVED_IS_SET(cookie))
        return "a reserved field is not 0";
    if (!cookie->value || !aco__http_is_token(name, name_n) ||
        !is_cookie_value(cookie->value, value_n))
        return "the name or value is not allowed";
    if (name_n + value_n > MOST_NAME_AND_VALUE)
        return "name and value are too long";
    if ((cookie->path && !is_path(cookie->path)) || (cookie->domain && !is_domain(cookie->domain)))
        return "the path or domain is not allowed";
    if (cookie->same_site < 0 || cookie->same_site > ACO_HTTP_SAME_SITE_NONE)
        return "same_site";
    if (!cookie->secure &&
        (is_host || has_prefix(name, "__secure-", 9) || cookie->same_site == ACO_HTTP_SAME_SITE_NONE))
        return "browsers take this only with `secure`";
    if (is_host && (cookie->domain || !cookie->path || strcmp(cookie->path, "/") != 0))
        return "the name asks for the path \"/\" and no domain";
    return NULL;
}

/* ---- Requests ---- */

/* The value of the cookie in this header. NULL: it is not there. */
static const char *find_in(const char *header, const char *name, size_t name_n, size_t *n)
{
    for (const char *at = header, *end; *at; at = *end ? end + 1 : end) {
        const char *value, *last;
        at += strspn(at, " \t");
        end = at + strcspn(at, ";");
        value = memchr(at, '=', (size_t)(end - at));
        if (!value || (size_t)(value - at) != name_n || memcmp(at, name, name_n) != 0)
            continue;
        for (last = end, value++; last > value && (last[-1] == ' ' || last[-1] == '\t');)
            last--;
        *n = (size_t)(last - value);
        if (is_cookie_value(value, *n))
            return value;
    }
    return NULL;
}

const char *aco_http_request_cookie(aco_http_request_t *request, const char *name)
{
    size_t name_n = strlen(name), n = 0;
    const char *value = NULL;
    char *copy;
    for (size_t i = 0; aco__http_is_token(name, name_n) && !value && i < request->header_count; i++)
        if (aco__http_same(request->headers[i].name, "cookie"))
            value = find_in(request->headers[i].value, name, name_n, &n);
    if (!value) {
        errno = 0;
        return NULL;
    }
    copy = aco_http_request_allocate(request, n + 1);
    if (copy)
        *aco__http_put(copy, value, n) = 0;
    return copy;
}

/* ---- Replies ---- */

int aco_http_reply_cookie(aco_http_request_t *request, const aco_http_cookie_t *cookie)
{
    static const char *const same_site[] = {"", "; SameSite=Lax", "; SameSite=Strict", "; SameSite=None"};
    const char *fault = fault_of_cookie(cookie);
    char *text, age[32] = "";
    size_t room;
    if (fault)
        return aco__service_fail(EINVAL, "aco_http_reply_cookie", fault);
    if (cookie->max_age)
        snprintf(age, sizeof age, "; Max-Age=%lld", cookie->max_age < 0 ? 0LL : (long long)cookie->max_age);
    room = strlen(cookie->name) + strlen(cookie->value) + (cookie->path ? strlen(cookie->path) : 0) +
           (cookie->domain ? strlen(cookie->domain) : 0) + sizeof age +
           sizeof "=; Path=; Domain=; SameSite=Strict; Secure; HttpOnly";
    text = aco_http_request_allocate(request, room);
    if (!text)
        return -1;
    snprintf(text, room, "%s=%s%s%s%s%s%s%s%s%s", cookie->name, cookie->value, cookie->path ? "; Path=" : "",
             cookie->path ? cookie->path : "", cookie->domain ? "; Domain=" : "", cookie->domain ? cookie->domain : "",
             age, same_site[cookie->same_site], cookie->secure ? "; Secure" : "",
             cookie->http_only ? "; HttpOnly" : "");
    return aco_http_reply_header(request, "Set-Cookie", text);
}
