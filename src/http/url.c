/* URLs by RFC 3986: taking them apart, resolving references, normal forms, escapes. */
#include "http/text.h"

#include "aco/detail/for_libraries.h"
#include "aco/url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Characters ---- */

static int is_letter(char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_unreserved(char c)
{
    return c && (is_letter(c) || is_digit(c) || strchr("-._~", c));
}

/* Unreserved characters, sub-delimiters, escapes, and these; NULL: any visible character. */
static int all_are(aco_url_part_t part, const char *these)
{
    for (size_t i = 0; i < part.n; i++) {
        char c = part.at[i];
        if (c <= ' ' || c >= 0x7f)
            return 0;
        if (these && c == '%' &&
            (part.n - i < 3 || aco__http_digit_of(part.at[i + 1]) < 0 || aco__http_digit_of(part.at[i + 2]) < 0))
            return 0;
        if (these && c != '%' && !is_unreserved(c) && !strchr("!$&'()*+,;=", c) && !strchr(these, c))
            return 0;
    }
    return 1;
}

/* ---- Taking apart ---- */

static aco_url_part_t part_of(const char *at, const char *end)
{
    const aco_url_part_t part = {at, (size_t)(end - at)};
    return part;
}

static int wrong_part(const char *call, const char *reason)
{
    return aco__service_fail(EINVAL, call, reason);
}

/* An address of IPv6, perhaps with a zone, or "v1.any" of a later version. */
static int is_ip_literal(aco_url_part_t host)
{
    const char *zone = memchr(host.at, '%', host.n);
    const size_t n = zone ? (size_t)(zone - host.at) : host.n;
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (host.n > 3 && (host.at[0] | 32) == 'v' && aco__http_digit_of(host.at[1]) >= 0) {
        const size_t digits = strspn(host.at + 1, "0123456789abcdefABCDEF");
        return host.at[1 + digits] == '.' && host.n > digits + 2 && !zone && all_are(host, ":");
    }
    if (n >= sizeof text || (zone && (host.n - n < 2 || !all_are(part_of(zone, host.at + host.n), NULL))))
        return 0;
    *aco__http_put(text, host.at, n) = 0;
    return inet_pton(AF_INET6, text, &address) == 1;
}

/* "user@host:port". 0, or -1 and errno. */
static int parse_authority(aco_url_t *url, const char *at, const char *end, const char *call)
{
    const char *user = memchr(at, '@', (size_t)(end - at)), *host = user ? user + 1 : at, *port;
    if (user)
        url->user = part_of(at, user);
    if (host < end && *host == '[') {
        port = memchr(host, ']', (size_t)(end - host));
        if (!port)
            return wrong_part(call, "the URL's host");
        url->host = part_of(host + 1, port++);
        url->is_ip = 1;
    } else {
        port = memchr(host, ':', (size_t)(end - host));
        port = port ? port : end;
        url->host = part_of(host, port);
    }
    if (!all_are(url->user, ":"))
        return wrong_part(call, "the URL's user");
    if ((port < end && *port != ':') || (url->is_ip ? !is_ip_literal(url->host) : !all_are(url->host, "")))
        return wrong_part(call, "the URL's host");
    if (port < end)
        url->port = part_of(port + 1, end);
    if (strspn(url->port.at ? url->port.at : "", "0123456789") < url->port.n || url->port.n > 5 ||
        (url->port.n && strtol(url->port.at, NULL, 10) > 65535))
        return wrong_part(call, "the URL's port");
    return 0;
}

/* 0, or -1 and errno. */
static int parse(aco_url_t *url, const char *text, const char *call)
{
    const char *at = text, *end = text + strcspn(text, ":/?#");
    memset(url, 0, sizeof *url);
    if (*end == ':') {
        for (at = text; at < end && (is_letter(*at) || (at > text && (is_digit(*at) || strchr("+-.", *at))));)
            at++;
        if (at < end || at == text)
            return wrong_part(call, "the URL's scheme");
        url->scheme = part_of(text, end);
        at = end + 1;
    }
    if (at[0] == '/' && at[1] == '/') {
        end = at + 2 + strcspn(at + 2, "/?#");
        if (parse_authority(url, at + 2, end, call) != 0)
            return -1;
        at = end;
    }
    url->path = part_of(at, at + strcspn(at, "?#"));
    at += url->path.n;
    if (*at == '?') {
        url->query = part_of(at + 1, at + 1 + strcspn(at + 1, "#"));
        at = url->query.at + url->query.n;
    }
    if (*at == '#')
        url->fragment = part_of(at + 1, at + strlen(at));
    return all_are(url->path, NULL) && all_are(url->query, NULL) && all_are(url->fragment, NULL)
               ? 0
               : wrong_part(call, "the URL has a character that needs an escape");
}

int aco_url_parse(aco_url_t *url, const char *text)
{
    return parse(url, text, "aco_url_parse");
}

/* ---- Writing ---- */

typedef struct url_out {
    char *to;
    size_t size, n; /* n may grow beyond size: then nothing is written */
} url_out_t;

static void put_url_char(url_out_t *out, char c)
{
    if (out->n < out->size)
        out->to[out->n] = c;
    out->n++;
}

static void put_url_part(url_out_t *out, const char *before, aco_url_part_t part, const char *after)
{
    if (!part.at)
        return;
    for (; *before; before++)
        put_url_char(out, *before);
    for (size_t i = 0; i < part.n; i++)
        put_url_char(out, part.at[i]);
    for (; *after; after++)
        put_url_char(out, *after);
}

static void put_escape(url_out_t *out, unsigned char c)
{
    put_url_char(out, '%');
    put_url_char(out, "0123456789ABCDEF"[c >> 4]);
    put_url_char(out, "0123456789ABCDEF"[c & 15]);
}

/* With as few escapes as can be, and in lower case if it is a scheme or a host. */
static void put_normal(url_out_t *out, const char *before, aco_url_part_t part, int is_lower)
{
    if (!part.at)
        return;
    for (; *before; before++)
        put_url_char(out, *before);
    for (size_t i = 0; i < part.n; i++) {
        char c = part.at[i];
        if (c == '%' && part.n - i > 2 && aco__http_digit_of(part.at[i + 1]) >= 0 &&
            aco__http_digit_of(part.at[i + 2]) >= 0) {
            c = (char)(aco__http_digit_of(part.at[i + 1]) * 16 + aco__http_digit_of(part.at[i + 2]));
            i += 2;
            if (!is_unreserved(c)) {
                put_escape(out, (unsigned char)c);
                continue;
            }
        }
        put_url_char(out, is_lower && c >= 'A' && c <= 'Z' ? (char)(c | 32) : c);
    }
}

static ssize_t end_text(url_out_t *out, const char *call)
{
    if (out->n >= out->size)
        return aco__service_fail(ENOBUFS, call, "the buffer is too small");
    out->to[out->n] = 0;
    return (ssize_t)out->n;
}

/* How long the segment "/." or "/.." is that begins here; 0: it is another one. */
static size_t dots_at(const char *at, const char *end)
{
    size_t n = 1;
    while (at + n < end && n < 3 && at[n] == '.')
        n++;
    return n > 1 && (at + n == end || at[n] == '/') ? n : 0;
}

/* Takes "." and ".." out of what was written from `begin` on (RFC 3986, 5.2.4). */
static void remove_dots(url_out_t *out, size_t begin)
{
    char *path = out->to + begin, *to = path, *at = path, *end = out->to + out->n;
    if (out->n > out->size)
        return;
    while (at < end && *at == '.') {
        size_t n = at + 1 < end && at[1] == '.' ? 2 : 1;
        if (at + n < end && at[n] != '/')
            break;
        at += at + n < end ? n + 1 : n;
    }
    while (at < end) {
        size_t n = *at == '/' ? dots_at(at, end) : 0;
        if (!n) {
            do
                *to++ = *at++;
            while (at < end && *at != '/');
            continue;
        }
        if (n == 3) {
            while (to > path && to[-1] != '/')
                to--;
            to -= to > path;
        }
        at += n;
        if (at == end)
            *--at = '/';
    }
    out->n = (size_t)(to - out->to);
}

/* The path, which begins at `begin`, is complete. Without a host it must not look like one (erratum 4547). */
static void end_path(url_out_t *out, size_t begin, int has_host)
{
    remove_dots(out, begin);
    if (has_host || out->n < begin + 2 || out->n > out->size || memcmp(out->to + begin, "//", 2) != 0)
        return;
    put_url_char(out, 0);
    put_url_char(out, 0);
    if (out->n > out->size)
        return;
    memmove(out->to + begin + 2, out->to + begin, out->n - begin - 2);
    memcpy(out->to + begin, "/.", 2);
}

static void put_url_authority(url_out_t *out, const aco_url_t *url)
{
    if (!url->host.at)
        return;
    put_url_part(out, "//", part_of(url->host.at, url->host.at), "");
    put_url_part(out, "", url->user, "@");
    put_url_part(out, url->is_ip ? "[" : "", url->host, url->is_ip ? "]" : "");
    put_url_part(out, ":", url->port, "");
}

/* The path of a relative reference: the base's up to its last "/", and the reference's. */
static void put_merged(url_out_t *out, const aco_url_t *base, aco_url_part_t path)
{
    aco_url_part_t directory = base->path;
    while (directory.n > 0 && directory.at[directory.n - 1] != '/')
        directory.n--;
    put_url_part(out, "", directory, base->host.at && !base->path.n ? "/" : "");
    put_url_part(out, "", path, "");
}

ssize_t aco_url_resolve(char *to, size_t size, const char *base, const char *reference)
{
    static const char call[] = "aco_url_resolve";
    url_out_t out = {to, size, 0};
    aco_url_t from, r;
    size_t begin;
    int is_path, has_host;
    if (parse(&from, base, call) != 0 || parse(&r, reference, call) != 0)
        return -1;
    if (!from.scheme.at)
        return wrong_part(call, "the base has no scheme");
    has_host = r.host.at != NULL || r.scheme.at != NULL;
    is_path = has_host || r.path.n > 0;
    put_url_part(&out, "", r.scheme.at ? r.scheme : from.scheme, ":");
    put_url_authority(&out, has_host ? &r : &from);
    begin = out.n;
    if (has_host || (r.path.n && r.path.at[0] == '/'))
        put_url_part(&out, "", r.path, "");
    else if (r.path.n)
        put_merged(&out, &from, r.path);
    else
        put_url_part(&out, "", from.path, "");
    if (is_path)
        end_path(&out, begin, (has_host ? &r : &from)->host.at != NULL);
    put_url_part(&out, "?", is_path || r.query.at ? r.query : from.query, "");
    put_url_part(&out, "#", r.fragment, "");
    return end_text(&out, call);
}

/* ---- Normal forms ---- */

static int is_scheme(const aco_url_t *url, const char *scheme)
{
    return strlen(scheme) == url->scheme.n && aco__http_is(url->scheme.at, url->scheme.n, scheme);
}

/* The default port of a scheme of the web; "": of another one. */
static const char *default_port(const aco_url_t *url)
{
    if (is_scheme(url, "http") || is_scheme(url, "ws"))
        return "80";
    return is_scheme(url, "https") || is_scheme(url, "wss") ? "443" : "";
}

ssize_t aco_url_normalize(char *to, size_t size, const char *text)
{
    static const char call[] = "aco_url_normalize";
    url_out_t out = {to, size, 0};
    aco_url_t url;
    const char *port;
    size_t begin;
    if (parse(&url, text, call) != 0)
        return -1;
    if (!url.scheme.at)
        return wrong_part(call, "the URL has no scheme");
    port = default_port(&url);
    put_normal(&out, "", url.scheme, 1);
    put_url_char(&out, ':');
    if (url.host.at) {
        put_url_part(&out, "//", part_of(url.host.at, url.host.at), "");
        put_normal(&out, "", url.user, 0);
        put_url_part(&out, url.user.at ? "@" : "", part_of(text, text), url.is_ip ? "[" : "");
        put_normal(&out, "", url.host, 1);
        if (url.is_ip)
            put_url_char(&out, ']');
        if (url.port.n && (url.port.n != strlen(port) || memcmp(url.port.at, port, url.port.n) != 0))
            put_url_part(&out, ":", url.port, "");
    }
    begin = out.n;
    put_normal(&out, "", url.path, 0);
    end_path(&out, begin, url.host.at != NULL);
    if (url.host.at && out.n == begin && *port)
        put_url_char(&out, '/');
    put_normal(&out, "?", url.query, 0);
    put_normal(&out, "#", url.fragment, 0);
    return end_text(&out, call);
}

/* ---- Escapes ---- */

ssize_t aco_url_escape(char *to, size_t size, const char *text, size_t n, const char *keep)
{
    url_out_t out = {to, size, 0};
    for (size_t i = 0; i < n; i++) {
        if (text[i] && (is_unreserved(text[i]) || strchr(keep, text[i])))
            put_url_char(&out, text[i]);
        else
            put_escape(&out, (unsigned char)text[i]);
    }
    return end_text(&out, "aco_url_escape");
}

ssize_t aco_url_unescape(char *to, size_t size, const char *text, size_t n)
{
    static const char call[] = "aco_url_unescape";
    url_out_t out = {to, size, 0};
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '%') {
            if (aco__http_decode(&c, text + i, n - i < 3 ? n - i : 3, 0) != 1)
                return wrong_part(call, "an escape");
            i += 2;
        }
        put_url_char(&out, c);
    }
    return end_text(&out, call);
}
