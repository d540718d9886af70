/* URLs as clients use them: where to connect, what to ask for, where a redirect leads, where a call has been. */
#include "http/client_url.h"
#include "http/text.h"

#include "aco/detail/for_libraries.h"
#include "aco/url.h"

#include <errno.h>
#include <string.h>

static int wrong_url(const char *reason)
{
    return aco__service_fail(EINVAL, "aco_http_call", reason);
}

static int has_scheme(aco_url_part_t scheme, const char *is)
{
    return scheme.n == strlen(is) && aco__http_is(scheme.at, scheme.n, is);
}

/* An address of IPv6, perhaps with a zone: "%25eth0" (RFC 6874), or "%eth0" as it is written elsewhere. */
static int set_ip6(aco__http_client_url_t *url, aco_url_part_t host)
{
    const char *zone = memchr(host.at, '%', host.n);
    size_t n = zone ? (size_t)(zone - host.at) : host.n, zone_n = host.n - n;
    ptrdiff_t decoded;
    if ((host.at[0] | 32) == 'v') /* of a later version */
        return wrong_url("the URL's host");
    *aco__http_put(url->host, host.at, n) = 0;
    *aco__http_put(url->address, host.at, n) = 0;
    if (!zone)
        return 0;
    zone++;
    zone_n--;
    if (zone_n >= 2 && memcmp(zone, "25", 2) == 0)
        zone += 2, zone_n -= 2;
    url->address[n] = '%';
    decoded = aco__http_decode(url->address + n + 1, zone, zone_n, 0);
    if (decoded <= 0)
        return wrong_url("the URL's zone");
    url->address[n + 1 + (size_t)decoded] = 0;
    return 0;
}

static int set_host(aco__http_client_url_t *url, const aco_url_t *parts)
{
    aco_url_part_t host = parts->host;
    if (host.n == 0 || host.n >= sizeof url->host)
        return wrong_url("the URL's host");
    if (parts->is_ip)
        return set_ip6(url, host);
    *aco__http_put(url->host, host.at, host.n) = 0;
    memcpy(url->address, url->host, host.n + 1);
    return 0;
}

/* "https://host:port/path?query" */
static int set_text(aco__http_client_url_t *url, const aco_url_t *parts)
{
    const char *host = parts->host.at - parts->is_ip;
    const char *host_end =
        parts->port.n ? parts->port.at + parts->port.n : parts->host.at + parts->host.n + parts->is_ip;
    char *at = url->is_tls ? HTTP_PUT(url->text, "https://") : HTTP_PUT(url->text, "http://");
    if (parts->path.n + (parts->query.at ? parts->query.n + 1 : 0) + 1 >= CLIENT_TARGET)
        return wrong_url("the URL is too long");
    at = aco__http_put(at, host, (size_t)(host_end - host));
    url->target_at = (size_t)(at - url->text);
    if (!parts->path.n)
        *at++ = '/';
    at = aco__http_put(at, parts->path.at, parts->path.n);
    if (parts->query.at)
        *at++ = '?';
    *aco__http_put(at, parts->query.at, parts->query.n) = 0;
    return 0;
}

int aco__http_client_url_set(aco__http_client_url_t *url, const char *text, int may_be_tls, char *user)
{
    aco_url_t parts;
    if (aco_url_parse(&parts, text) != 0)
        return -1;
    url->is_tls = may_be_tls && has_scheme(parts.scheme, "https");
    if ((!url->is_tls && !has_scheme(parts.scheme, "http")) || !parts.host.at)
        return wrong_url(may_be_tls ? "the URL begins neither with http:// nor with https://"
                                    : "the URL does not begin with http://");
    if (parts.user.n >= CLIENT_USER || (parts.user.at && !user))
        return wrong_url("the URL's user");
    if (user)
        *aco__http_put(user, parts.user.at, parts.user.n) = 0;
    if (set_host(url, &parts) != 0)
        return -1;
    memcpy(url->port, url->is_tls ? "443" : "80", url->is_tls ? 4 : 3);
    if (parts.port.n)
        *aco__http_put(url->port, parts.port.at, parts.port.n) = 0;
    return set_text(url, &parts);
}

/* Where a redirect leads: two texts of CLIENT_URL bytes, the second for the escaped reference. */
static int go_to(aco__http_client_url_t *url, const char *to, int may_be_tls, char *texts)
{
    static const char visible[] = "%!\"#$&'()*+,/:;<=>?@[\\]^`{|}";
    if (aco_url_escape(texts + CLIENT_URL, CLIENT_URL, to, strlen(to), visible) < 0 ||
        aco_url_resolve(texts, CLIENT_URL, url->text, texts + CLIENT_URL) < 0)
        return errno == ENOBUFS ? wrong_url("the URL is too long") : -1;
    return aco__http_client_url_set(url, texts, may_be_tls, NULL);
}

int aco__http_client_url_redirect(aco__http_client_url_t *url, const char *to, int may_be_tls)
{
    size_t sz = (size_t)2 * CLIENT_URL;
    char *texts = aco__service_allocate(&sz, "aco_http_call");
    int result;
    if (!texts)
        return -1;
    result = go_to(url, to, may_be_tls, texts);
    aco__service_free(texts, sz);
    return result;
}

/* ---- Where a call has been ---- */

int aco__http_add_hop(aco__http_hop_t **last, const char *url, int status)
{
    size_t n = strlen(url) + 1, sz = sizeof(aco__http_hop_t) + n;
    aco__http_hop_t *hop = aco__service_allocate(&sz, "aco_http_call");
    if (!hop)
        return -1;
    hop->before = *last;
    hop->sz = sz;
    hop->status = status;
    memcpy(hop->url, url, n);
    *last = hop;
    return 0;
}

void aco__http_free_hops(aco__http_hop_t *last)
{
    while (last) {
        aco__http_hop_t *before = last->before;
        aco__service_free(last, last->sz);
        last = before;
    }
}
