/* Clients: URLs, kept connections, redirects. */
#define _GNU_SOURCE
#include "base/reserved.h"
#include "http/incoming.h"
#include "http/link.h"
#include "http/outgoing.h"
#include "http/text.h"

#include <stdio.h>
#include <string.h>

enum { CLIENT_HOST = 256, CLIENT_PORT = 6, CLIENT_TARGET = 4096, CLIENT_INTERIM = 16 };

typedef struct url {
    int is_tls;
    char host[CLIENT_HOST];    /* without brackets, and without a zone, which means nothing to others */
    char address[CLIENT_HOST]; /* what is dialed: the host, with its zone */
    char port[CLIENT_PORT];
    char target[CLIENT_TARGET];
} url_t;

typedef struct peer { /* a connection, and the response that comes on it */
    aco_http_response_t is; /* first */
    aco_http_client_t *client;
    struct peer *next;      /* that is kept */
    aco__http_link_t link;
    aco__http_incoming_t incoming;
    aco__http_outgoing_t outgoing;
    llhttp_t parser;
    aco__http_head_t head;
    int is_tls;
    char host[CLIENT_HOST], port[CLIENT_PORT]; /* the server's; without TLS, the proxy's if there is one */
    size_t sz;              /* of this record, the headers and the output behind it */
} peer_t;

struct aco_http_client_s {
    aco_http_client_options_t options;
    peer_t *kept; /* the one that was used last first */
    int kept_count;
};

static const char call_name[] = "aco_http_call";

/* ---- URLs ---- */

static int wrong_url(const char *reason)
{
    return aco__service_fail(EINVAL, call_name, reason);
}

/* Writes a path and its query, up to the fragment, into the target from `at` on. 0, or -1 and errno. */
static int put_target(url_t *url, size_t at, const char *text, int may_escape)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *text && *text != '#'; text++) {
        unsigned char c = (unsigned char)*text;
        int is_escaped = c <= ' ' || c >= 0x7f;
        if (is_escaped && !may_escape)
            return wrong_url("the URL has a character that needs an escape");
        if (at + (is_escaped ? 3 : 1) >= sizeof url->target)
            return wrong_url("the URL is too long");
        if (is_escaped) {
            url->target[at++] = '%';
            url->target[at++] = digits[c >> 4];
            c = (unsigned char)digits[c & 15];
        }
        url->target[at++] = (char)c;
    }
    url->target[at] = 0;
    return 0;
}

/* An address of IPv6, perhaps with a zone: "%25eth0" (RFC 6874), or "%eth0" as it is written elsewhere. */
static int set_ip6(url_t *url, const char *text, size_t n)
{
    const char *zone = memchr(text, '%', n);
    size_t host_n = zone ? (size_t)(zone - text) : n, zone_n;
    ptrdiff_t decoded;
    if (n >= sizeof url->address || !memchr(text, ':', host_n) || !aco__http_is_host(text, host_n))
        return wrong_url("the URL's host");
    *aco__http_put(url->host, text, host_n) = 0;
    *aco__http_put(url->address, text, host_n) = 0;
    if (!zone)
        return 0;
    zone++;
    zone_n = n - host_n - 1;
    if (zone_n >= 2 && memcmp(zone, "25", 2) == 0)
        zone += 2, zone_n -= 2;
    url->address[host_n] = '%';
    decoded = aco__http_decode(url->address + host_n + 1, zone, zone_n, 0);
    if (decoded <= 0)
        return wrong_url("the URL's zone");
    url->address[host_n + 1 + (size_t)decoded] = 0;
    return 0;
}

static int set_name(url_t *url, const char *text, size_t n)
{
    if (n == 0 || n >= sizeof url->host || !aco__http_is_host(text, n))
        return wrong_url("the URL's host");
    *aco__http_put(url->host, text, n) = 0;
    memcpy(url->address, url->host, n + 1);
    return 0;
}

/* What stands behind "http://" or "https://". 0, or -1 and errno. */
static int parse_behind_scheme(url_t *url, int is_tls, const char *host, int may_escape)
{
    const char *end = host + strcspn(host, "/?#"), *port;
    size_t n;
    url->is_tls = is_tls;
    if (*host == '[') {
        const char *bracket = memchr(host, ']', (size_t)(end - host));
        if (!bracket)
            return wrong_url("the URL's host");
        port = bracket + 1;
        if (set_ip6(url, host + 1, (size_t)(bracket - host - 1)) != 0)
            return -1;
    } else {
        port = memchr(host, ':', (size_t)(end - host));
        port = port ? port : end;
        if (set_name(url, host, (size_t)(port - host)) != 0)
            return -1;
    }
    if (port < end && *port != ':')
        return wrong_url("the URL's host");
    port += port < end;
    n = (size_t)(end - port);
    if (n >= sizeof url->port || strspn(port, "0123456789") < n)
        return wrong_url("the URL's port");
    memcpy(url->port, is_tls ? "443" : "80", is_tls ? 4 : 3);
    if (n)
        *aco__http_put(url->port, port, n) = 0;
    url->target[0] = '/';
    return put_target(url, *end != '/', end, may_escape);
}

/* 0, or -1 and errno. */
static int parse_url(url_t *url, const char *text, int may_be_tls, int may_escape)
{
    int is_tls = may_be_tls && strlen(text) > 8 && aco__http_is(text, 8, "https://");
    if (!is_tls && (strlen(text) < 8 || !aco__http_is(text, 7, "http://")))
        return wrong_url(may_be_tls ? "the URL begins neither with http:// nor with https://"
                                    : "the URL does not begin with http://");
    return parse_behind_scheme(url, is_tls, text + 7 + is_tls, may_escape);
}

/* Whether a reference begins with a scheme: "https:". */
static int has_scheme(const char *reference)
{
    size_t n = strcspn(reference, ":/?#");
    return n > 0 && reference[n] == ':' && aco__http_is_token(reference, n);
}

/* Takes "." and ".." out of the path, as RFC 3986 (5.2.4) does. */
static void remove_dots(char *target)
{
    char *to = target, *from = target, *end = target + strcspn(target, "?");
    while (from < end) {
        size_t n = 1 + strcspn(from + 1, "/?");
        int is_one = n == 2 && from[1] == '.', is_two = n == 3 && from[1] == '.' && from[2] == '.';
        while (is_two && to > target) {
            to--;
            if (*to == '/')
                break;
        }
        if (!is_one && !is_two) {
            memmove(to, from, n);
            to += n;
        } else if (from + n == end) {
            *to++ = '/';
        }
        from += n;
    }
    memmove(to, end, strlen(end) + 1);
}

/* Where a redirect leads (RFC 3986, 5.2): the whole of it, or another path of the same host. Servers send spaces and
 * UTF-8 without escapes, and browsers follow: these get escapes. 0, or -1 and errno. */
static int redirect(url_t *url, const char *to, int may_be_tls)
{
    size_t at = *to == '/' ? 0 : strcspn(url->target, "?");
    int failed;
    if (!*to || *to == '#') /* the same document */
        return 0;
    while (at > 0 && *to != '?' && url->target[at - 1] != '/')
        at--;
    if (has_scheme(to))
        failed = parse_url(url, to, may_be_tls, 1);
    else if (strncmp(to, "//", 2) == 0)
        failed = parse_behind_scheme(url, url->is_tls, to + 2, 1);
    else
        failed = put_target(url, at, to, 1);
    if (failed)
        return -1;
    remove_dots(url->target);
    return 0;
}

/* ---- Connections ---- */

static void close_peer(peer_t *peer)
{
    aco__http_link_close(&peer->link, aco__http_is_cut(&peer->outgoing));
    aco__service_free(peer, peer->sz);
}

/* Whether nothing has come on a kept connection, not even its end. */
static int is_quiet(const peer_t *peer)
{
    return !aco_stream_has_input(peer->link.stream);
}

/* Where a connection for this URL leads. */
static const char *host_of(const aco_http_client_t *client, const url_t *url)
{
    return client->options.proxy_host && !url->is_tls ? client->options.proxy_host : url->address;
}

static const char *port_of(const aco_http_client_t *client, const url_t *url)
{
    return client->options.proxy_host && !url->is_tls ? client->options.proxy_port : url->port;
}

/* Takes a connection for this URL's host out of the list; NULL: there is none. */
static peer_t *take_kept(aco_http_client_t *client, const url_t *url)
{
    const char *host = host_of(client, url), *port = port_of(client, url);
    peer_t **place = &client->kept, *peer;
    ACO__NO_SWITCH_BEGIN();
    while ((peer = *place) != NULL &&
           (peer->is_tls != url->is_tls || !aco__http_same(peer->host, host) || strcmp(peer->port, port) != 0))
        place = &peer->next;
    if (peer) {
        ACO__ASSERT(client->kept_count > 0);
        *place = peer->next;
        client->kept_count--;
    }
    ACO__NO_SWITCH_END();
    return peer;
}

/* A connection that was kept for this URL's host; NULL: none. While one is closed, other tasks may use the list. */
static peer_t *kept_peer(aco_http_client_t *client, const url_t *url)
{
    peer_t *peer;
    while ((peer = take_kept(client, url)) != NULL && !is_quiet(peer))
        close_peer(peer);
    return peer;
}

/* Closes what has ended of the connections that are kept: their hosts may never be asked again. */
static void close_ended(aco_http_client_t *client)
{
    peer_t **place = &client->kept, *ended = NULL, *peer;
    ACO__NO_SWITCH_BEGIN();
    while ((peer = *place) != NULL) {
        if (is_quiet(peer)) {
            place = &peer->next;
            continue;
        }
        *place = peer->next;
        client->kept_count--;
        peer->next = ended;
        ended = peer;
    }
    ACO__ASSERT(!client->kept == !client->kept_count);
    ACO__NO_SWITCH_END();
    while ((peer = ended) != NULL) {
        ended = peer->next;
        close_peer(peer);
    }
}

/* Keeps a connection for further requests; if they are too many, the one that was not used for longest is closed. */
static void keep_peer(aco_http_client_t *client, peer_t *peer)
{
    peer_t **place = &client->kept, *last = NULL;
    ACO__ASSERT(!peer->link.out_n && !peer->outgoing.left && !peer->link.in.buffer); /* nothing is under way */
    ACO__NO_SWITCH_BEGIN();
    peer->next = client->kept;
    client->kept = peer;
    if (++client->kept_count > client->options.max_idle) {
        while ((*place)->next)
            place = &(*place)->next;
        last = *place;
        *place = NULL;
        client->kept_count--;
    }
    ACO__NO_SWITCH_END();
    if (last)
        close_peer(last);
}

/* A connection to the host, or to the proxy. NULL and errno. */
ACO__SWITCHES static peer_t *dial_peer(aco_http_client_t *client, const url_t *url, const char *location)
{
    const aco_http_client_options_t *options = &client->options;
    size_t headers = (size_t)options->max_headers * sizeof(aco_http_header_t);
    size_t sz = sizeof(peer_t) + headers + HTTP_OUT;
    const char *host = host_of(client, url), *port = port_of(client, url);
    int fd = aco_io_dial_at("tcp", options->proxy_host ? options->proxy_host : host,
                            options->proxy_host ? options->proxy_port : port, NULL, location);
    peer_t *peer = fd >= 0 ? aco__service_allocate(&sz, call_name) : NULL;
    if (!peer) {
        if (fd >= 0)
            (void)aco_io_close(fd);
        return NULL;
    }
    memset(peer, 0, sizeof *peer);
    peer->client = client;
    peer->sz = sz;
    aco__http_link_open(&peer->link, fd, (size_t)options->max_head + HTTP_BEHIND_HEAD);
    aco__http_incoming_open(&peer->incoming, &peer->link);
    aco__http_parse_by(&peer->incoming, &peer->parser, HTTP_RESPONSE);
    peer->outgoing.link = &peer->link;
    peer->head.headers = (aco_http_header_t *)(void *)(peer + 1);
    peer->head.most = (size_t)options->max_headers;
    peer->link.out = (char *)(peer + 1) + headers;
    peer->incoming.most_body = UINT64_MAX;
    peer->link.write_time = ACO_FOREVER;
    peer->is_tls = url->is_tls;
    memcpy(peer->host, host, strlen(host) + 1);
    memcpy(peer->port, port, strlen(port) + 1);
    return peer;
}

/* ---- Requests ---- */

typedef struct step { /* a request of a call, which redirects change */
    const aco_http_call_t *call;
    url_t *url;
    const char *method;
    unsigned char has_body, has_lost_body;
    unsigned char is_elsewhere; /* a redirect has led to another origin, perhaps back again */
} step_t;

static int is_private(const char *name)
{
    return aco__http_same(name, "authorization") || aco__http_same(name, "cookie") ||
           aco__http_same(name, "proxy-authorization");
}

/* Whether a header tells of the request's body (RFC 9110, 15.4). */
static int is_of_body(const char *name)
{
    return (strlen(name) > 8 && aco__http_is(name, 8, "content-")) || aco__http_same(name, "digest") ||
           aco__http_same(name, "repr-digest") || aco__http_same(name, "last-modified") ||
           aco__http_same(name, "trailer") || aco__http_same(name, "expect");
}

static int check_call(const aco_http_call_t *call)
{
    const char *method = call->method ? call->method : "GET";
    if (!call->url || !aco__http_is_token(method, strlen(method)) || strlen(method) > 32 ||
        strcmp(method, "CONNECT") == 0)
        return aco__service_fail(EINVAL, call_name, "the method or the URL");
    if (!call->read_body && call->length < 0)
        return aco__service_fail(EINVAL, call_name, "the body's length");
    if (ACO__RESERVED_IS_SET(call))
        return aco__service_fail(EINVAL, call_name, "a reserved field is not 0");
    for (size_t i = 0; i < call->header_count; i++) {
        const char *name = call->headers[i].name, *value = call->headers[i].value;
        if (!aco__http_is_token(name, strlen(name)) || !aco__http_is_value(value, strlen(value)) ||
            aco__http_same(name, "host") || aco__http_same(name, "content-length") ||
            aco__http_same(name, "transfer-encoding") || aco__http_same(name, "connection"))
            return aco__service_fail(EINVAL, call_name,
                                     "a header that HTTP does not allow, or the client sends itself");
    }
    return 0;
}

ACO__SWITCHES static int put_text(aco__http_link_t *link, const char *text, const char *location)
{
    size_t n = strlen(text);
    char *at = n <= HTTP_OUT ? aco__http_room(link, n, location) : NULL;
    if (n > HTTP_OUT)
        return aco__http_send(link, text, n, 0, location);
    if (!at)
        return -1;
    aco__http_filled(link, aco__http_put(at, text, n));
    return 0;
}

ACO__SWITCHES static int put_texts(aco__http_link_t *link, const char *const *texts, const char *location)
{
    for (; *texts; texts++)
        if (put_text(link, *texts, location) != 0)
            return -1;
    return 0;
}

/* "host:port"; the port only if it is needed. */
ACO__SWITCHES static int put_authority(aco__http_link_t *link, const url_t *url, int with_port, const char *location)
{
    int is_ip6 = strchr(url->host, ':') != NULL;
    int has_port = with_port || strcmp(url->port, url->is_tls ? "443" : "80") != 0;
    const char *const authority[] = {is_ip6 ? "[" : "",         url->host, is_ip6 ? "]" : "", has_port ? ":" : "",
                                     has_port ? url->port : "", NULL};
    return put_texts(link, authority, location);
}

/* 0, or -1 and errno. */
ACO__SWITCHES static int send_head(peer_t *peer, const step_t *step, const char *location)
{
    aco__http_link_t *link = &peer->link;
    const aco_http_call_t *call = step->call;
    const url_t *url = step->url;
    const char *method = step->method;
    const int64_t length = step->has_body ? call->length : 0;
    int by_proxy = peer->client->options.proxy_host != NULL && !url->is_tls;
    const char *const begin[] = {method, by_proxy ? " http://" : " ", NULL};
    const char *const middle[] = {url->target, " HTTP/1.1\r\nHost: ", NULL};
    char framing[64] = "";
    if (put_texts(link, begin, location) != 0 || (by_proxy && put_authority(link, url, 0, location) != 0) ||
        put_texts(link, middle, location) != 0 || put_authority(link, url, 0, location) != 0 ||
        put_text(link, "\r\n", location) != 0)
        return -1;
    for (size_t i = 0; i < call->header_count; i++) {
        const char *const header[] = {call->headers[i].name, ": ", call->headers[i].value, "\r\n", NULL};
        if ((step->is_elsewhere && is_private(header[0])) || (step->has_lost_body && is_of_body(header[0])))
            continue;
        if (put_texts(link, header, location) != 0)
            return -1;
    }
    aco__http_body_begin(&peer->outgoing, length, length < 0, 0);
    if (length < 0)
        strcpy(framing, "Transfer-Encoding: chunked\r\n");
    else if (step->has_body || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0)
        snprintf(framing, sizeof framing, "Content-Length: %lld\r\n", (long long)length);
    return put_text(link, framing, location) != 0 ? -1 : put_text(link, "\r\n", location);
}

ACO__SWITCHES static int send_body(peer_t *peer, const aco_http_call_t *call, const char *location)
{
    size_t sz = 4096;
    char *part;
    ssize_t n;
    if (!call->read_body)
        return aco__http_write_body(&peer->outgoing, call->body, (size_t)call->length, call_name, location);
    part = aco__service_allocate(&sz, call_name); /* too large for a small stack */
    if (!part)
        return -1;
    while ((n = call->read_body(call->read_arg, part, 4096)) > 0)
        if (aco__http_write_body(&peer->outgoing, part, (size_t)n, call_name, location) != 0) {
            n = -1;
            break;
        }
    aco__service_free(part, sz);
    return n < 0 ? -1 : 0;
}

/* Reads the head of the response; those of interim ones are dropped. 0; 1: nothing has come at all; -1 and errno. */
ACO__SWITCHES static int read_response(peer_t *peer, int is_head, const char *location)
{
    aco__http_incoming_t *in = &peer->incoming;
    size_t most = (size_t)peer->client->options.max_head;
    ssize_t n = aco__http_await(&peer->link, !in->has_all, location);
    int parsed, left = CLIENT_INTERIM;
    if (n <= 0 && (n == 0 || errno == ECONNRESET || errno == EPIPE))
        return 1;
    if (n < 0)
        return -1;
    do {
        in->gets_no_body = (unsigned char)is_head;
        aco__http_message_begin(in, &peer->head);
        while ((parsed = aco__http_parse_head(in)) == 0 && aco__http_head_size(in) <= most)
            if ((n = aco__http_more_head(in, location)) <= 0)
                return n < 0 ? -1
                             : aco__service_fail(ECONNRESET, call_name, "the connection ended before the response");
        if (parsed <= 0 || aco__http_head_size(in) > most || in->parser->status_code == 101 ||
            in->parser->http_major != 1)
            return aco__service_fail(EBADMSG, call_name, "this is no response of HTTP/1, or its head is too long");
        if (peer->head.lengths > 1 || (peer->head.lengths && peer->head.encodings))
            return aco__service_fail(EBADMSG, call_name, "the response has two ends");
        if (in->parser->content_length > INT64_MAX && in->parser->flags & F_CONTENT_LENGTH)
            return aco__service_fail(EBADMSG, call_name, "the response's length");
        if (peer->head.encodings && (!peer->head.is_chunked || peer->head.encodings > 1 || !in->parser->http_minor))
            return aco__service_fail(EBADMSG, call_name, "the response's Transfer-Encoding");
        if (in->parser->status_code < 200) {
            char byte;
            if (!in->has_all && aco__http_read_body(in, &byte, 1, call_name, location) != 0)
                return aco__service_fail(EBADMSG, call_name, "an interim response has a body");
            aco__http_message_end(in);
        }
    } while (in->parser->status_code < 200 && --left > 0);
    return left > 0 ? 0 : aco__service_fail(EBADMSG, call_name, "too many interim responses");
}

/* Asks the proxy for a tunnel to the URL's host. 0, or -1 and errno. */
ACO__SWITCHES static int open_tunnel(peer_t *peer, const url_t *url, const char *location)
{
    aco__http_link_t *link = &peer->link;
    int result;
    if (put_text(link, "CONNECT ", location) != 0 || put_authority(link, url, 1, location) != 0 ||
        put_text(link, " HTTP/1.1\r\nHost: ", location) != 0 || put_authority(link, url, 1, location) != 0 ||
        put_text(link, "\r\n\r\n", location) != 0 || aco__http_send(link, NULL, 0, 0, location) != 0)
        return -1;
    result = read_response(peer, 1, location);
    if (result > 0)
        return aco__service_fail(ECONNRESET, call_name, "the proxy has ended the connection");
    if (result < 0)
        return -1;
    if (peer->parser.status_code < 200 || peer->parser.status_code > 299) {
        char reason[48];
        snprintf(reason, sizeof reason, "the proxy makes no tunnel: status %d", (int)peer->parser.status_code);
        return aco__service_fail(ECONNREFUSED, call_name, reason);
    }
    aco__http_message_end(&peer->incoming);
    if (link->in.end > 0) /* before the handshake nobody may say anything */
        return aco__service_fail(EBADMSG, call_name, "the proxy has sent more than its response");
    aco_io_reader_close(&link->in);
    aco__http_parse_by(&peer->incoming, &peer->parser, HTTP_RESPONSE);
    return 0;
}

/* A new connection for this URL. NULL and errno. */
ACO__SWITCHES static peer_t *new_peer(aco_http_client_t *client, const url_t *url, const char *location)
{
    const aco_http_client_options_t *options = &client->options;
    peer_t *peer;
    aco__http_link_t *link;
    int error;
    close_ended(client);
    peer = dial_peer(client, url, location);
    if (!peer || !url->is_tls)
        return peer;
    link = &peer->link;
    if (!options->proxy_host || open_tunnel(peer, url, location) == 0) {
        aco__http_link_use(link, options->open(link->own.fd, url->host, options->open_arg));
        if (link->stream)
            return peer;
    }
    error = errno;
    close_peer(peer);
    errno = error;
    return NULL;
}

static void fill_in(peer_t *peer)
{
    const aco__http_incoming_t *in = &peer->incoming;
    peer->is.status = in->parser->status_code;
    peer->is.minor = in->parser->http_minor;
    peer->is.headers = peer->head.headers;
    peer->is.header_count = peer->head.count;
    peer->is.length = -1;
    if (in->has_all)
        peer->is.length = 0;
    else if (in->parser->flags & F_CONTENT_LENGTH)
        peer->is.length = (int64_t)in->parser->content_length;
}

static int is_idempotent(const char *method)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(method, methods[i]) == 0)
            return 1;
    return 0;
}

/* One request and its response. NULL and errno. */
ACO__SWITCHES static peer_t *exchange(aco_http_client_t *client, const step_t *step, const char *location)
{
    int may_repeat = is_idempotent(step->method) && !(step->has_body && step->call->read_body);
    int is_again = 0, result, error;
    for (;; is_again = 1) {
        peer_t *peer = is_again ? NULL : kept_peer(client, step->url);
        int was_kept = peer != NULL;
        if (!peer && !(peer = new_peer(client, step->url, location)))
            return NULL;
        result = send_head(peer, step, location);
        if (result == 0 && step->has_body)
            result = send_body(peer, step->call, location);
        if (result == 0)
            result = aco__http_end_body(&peer->outgoing, location);
        if (result == 0)
            result = aco__http_send(&peer->link, NULL, 0, 0, location);
        /* A server that refuses a body may have answered before it was sent. */
        if (result == 0 || (peer->link.is_broken && (errno == EPIPE || errno == ECONNRESET)))
            result = read_response(peer, strcmp(step->method, "HEAD") == 0, location);
        if (result == 0) {
            fill_in(peer);
            return peer;
        }
        error = result == 1 ? ECONNRESET : errno;
        close_peer(peer);
        errno = error;
        if (result != 1)
            return NULL;
        if (!was_kept || !may_repeat) {
            aco__service_fail(ECONNRESET, call_name, "the connection ended before the response");
            return NULL;
        }
    }
}

/* ---- The calls ---- */

aco_http_client_t *aco_http_client_new(const aco_http_client_options_t *options)
{
    static const char call[] = "aco_http_client_new";
    size_t sz = sizeof(aco_http_client_t);
    aco_http_client_t *client = aco__service_allocate(&sz, call);
    aco_http_client_options_t *o;
    if (!client)
        return NULL;
    memset(client, 0, sizeof *client);
    o = &client->options;
    if (options)
        *o = *options;
    o->max_idle = o->max_idle ? o->max_idle : 16;
    o->max_redirects = o->max_redirects ? o->max_redirects : 10;
    o->max_head = o->max_head ? o->max_head : 31 << 10;
    o->max_headers = o->max_headers ? o->max_headers : 200;
    if (o->max_head < 64 || o->max_head > 1 << 20 || o->max_headers < 1 || o->max_headers > 1000 ||
        ACO__RESERVED_IS_SET(o) ||
        (o->proxy_host &&
         (!o->proxy_port || strlen(o->proxy_host) >= CLIENT_HOST || strlen(o->proxy_port) >= CLIENT_PORT))) {
        aco__service_free(client, sizeof *client);
        aco__service_fail(EINVAL, call, "the options");
        return NULL;
    }
    return client;
}

void aco_http_client_destroy(aco_http_client_t *client)
{
    if (!client)
        return;
    while (client->kept) {
        peer_t *peer = client->kept;
        client->kept = peer->next;
        close_peer(peer);
    }
    aco__service_free(client, sizeof *client);
}

static int is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* What a redirect makes of the request. 1: it is to be sent; 0: the caller gets the response; -1 and errno. */
static int follow(const aco_http_client_t *client, step_t *step, const aco_http_response_t *response,
                  const url_t *first)
{
    const aco_http_client_options_t *options = &client->options;
    const url_t *url = step->url;
    int status = response->status;
    const char *to;
    if (!is_redirect(status) || options->max_redirects < 0 ||
        aco__http_find(response->headers, response->header_count, "Location", &to) != 1)
        return 0;
    if (status == 303 || (status < 303 && strcmp(step->method, "POST") == 0)) {
        step->method = strcmp(step->method, "HEAD") == 0 ? "HEAD" : "GET";
        step->has_body = 0;
        step->has_lost_body = 1;
    }
    if (step->has_body && step->call->read_body) /* it cannot be read once more */
        return 0;
    if (response->redirects == options->max_redirects)
        return aco__service_fail(ELOOP, call_name, "too many redirects");
    if (redirect(step->url, to, options->open != NULL) != 0)
        return -1;
    if (!aco__http_same(first->address, url->address) || strcmp(first->port, url->port) != 0 ||
        first->is_tls != url->is_tls)
        step->is_elsewhere = 1;
    return !(step->has_body && step->is_elsewhere) || options->sends_body_elsewhere;
}

/* The response to the last of the requests. NULL and errno. */
ACO__SWITCHES
static aco_http_response_t *exchange_all(aco_http_client_t *client, step_t *step, const url_t *first,
                                         const char *location)
{
    for (int redirects = 0;; redirects++) {
        peer_t *peer = exchange(client, step, location);
        int goes_on, error;
        if (!peer)
            return NULL;
        peer->is.redirects = redirects;
        goes_on = follow(client, step, &peer->is, first);
        if (goes_on == 0)
            return &peer->is;
        error = errno;
        aco_http_response_end(&peer->is);
        errno = error;
        if (goes_on < 0)
            return NULL;
    }
}

aco_http_response_t *aco_http_call_at(aco_http_client_t *client, const aco_http_call_t *call, const char *location)
{
    size_t sz = 2 * sizeof(url_t);
    url_t *urls; /* the first one, and that of the request under way */
    aco_http_response_t *response = NULL;
    if (!client || !call) {
        aco__service_fail(EINVAL, call_name, "the client or the call is NULL");
        return NULL;
    }
    if (check_call(call) != 0)
        return NULL;
    urls = aco__service_allocate(&sz, call_name); /* too large for a small stack */
    if (!urls)
        return NULL;
    if (parse_url(urls, call->url, client->options.open != NULL, 0) == 0) {
        step_t step = {call, &urls[1], call->method ? call->method : "GET", call->read_body || call->length > 0, 0, 0};
        urls[1] = urls[0];
        response = exchange_all(client, &step, urls, location);
    }
    aco__service_free(urls, sz);
    return response;
}

aco_http_response_t *aco_http_get_at(aco_http_client_t *client, const char *url, const char *location)
{
    aco_http_call_t call;
    memset(&call, 0, sizeof call);
    call.url = url;
    return aco_http_call_at(client, &call, location);
}

const char *aco_http_response_header(const aco_http_response_t *response, const char *name)
{
    const char *value;
    (void)aco__http_find(response->headers, response->header_count, name, &value);
    return value;
}

ssize_t aco_http_response_read_at(aco_http_response_t *response, void *p, size_t n, const char *location)
{
    return aco__http_read_body(&((peer_t *)(void *)response)->incoming, p, n, "aco_http_response_read", location);
}

void aco_http_response_end(aco_http_response_t *response)
{
    peer_t *peer = (peer_t *)(void *)response;
    aco__http_incoming_t *in;
    if (!peer)
        return;
    in = &peer->incoming;
    in->must_not_wait = 1;
    while (!in->has_all)
        if (aco__http_skip_body(in, "aco_http_response_end", NULL) <= 0)
            break;
    in->must_not_wait = 0;
    if (!in->has_all || !in->is_persistent || peer->link.is_broken || in->body_error) {
        close_peer(peer);
        return;
    }
    aco__http_message_end(in);
    if (peer->link.in.end > 0) { /* bytes that nobody asked for */
        close_peer(peer);
        return;
    }
    aco_io_reader_close(&peer->link.in);
    keep_peer(peer->client, peer);
}
