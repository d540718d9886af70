/* Clients: URLs, kept connections, redirects. */
#define _GNU_SOURCE
#include "http/http.h"

#include <stdio.h>

enum { CLIENT_HOST = 256, CLIENT_PORT = 6, CLIENT_TARGET = 4096, CLIENT_INTERIM = 16 };

typedef struct url {
    int is_tls;
    char host[CLIENT_HOST]; /* without brackets */
    char port[CLIENT_PORT];
    char target[CLIENT_TARGET];
} url_t;

typedef struct peer { /* a connection, and the response that comes on it */
    aco_http_response_t is; /* first */
    aco_http_client_t *client;
    struct peer *next;      /* that is kept */
    aco__http_link_t link;
    llhttp_t parser;
    aco__http_head_t head;
    int is_tls;
    char host[CLIENT_HOST], port[CLIENT_PORT]; /* the server's; without TLS, the proxy's if there is one */
    size_t sz;              /* of this record, the headers and the output behind it */
} peer_t;

struct aco_http_client_s {
    aco_http_client_options_t options;
    peer_t *kept; /* the last one first */
    int kept_count;
};

static const char call_name[] = "aco_http_call";

/* ---- URLs ---- */

static int wrong_url(const char *reason)
{
    return aco__http_fail(EINVAL, call_name, reason);
}

static int check_target(const url_t *url)
{
    for (const char *at = url->target; *at; at++)
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f)
            return wrong_url("the URL has a character that needs an escape");
    return 0;
}

/* 0, or -1 and errno. */
static int parse_url(url_t *url, const char *text, int may_be_tls)
{
    int is_tls = may_be_tls && strlen(text) > 8 && aco__http_is(text, 8, "https://");
    const char *host = text + 7 + is_tls, *end, *port;
    size_t host_n, n;
    if (!is_tls && (strlen(text) < 8 || !aco__http_is(text, 7, "http://")))
        return wrong_url(may_be_tls ? "the URL begins neither with http:// nor with https://"
                                    : "the URL does not begin with http://");
    url->is_tls = is_tls;
    end = host + strcspn(host, "/?#");
    if (*host == '[') {
        const char *bracket = memchr(host, ']', (size_t)(end - host));
        if (!bracket || !memchr(host, ':', (size_t)(bracket - host)))
            return wrong_url("the URL's host");
        host++;
        host_n = (size_t)(bracket - host);
        port = bracket + 1;
    } else {
        port = memchr(host, ':', (size_t)(end - host));
        port = port ? port : end;
        host_n = (size_t)(port - host);
    }
    if (host_n == 0 || host_n >= sizeof url->host || !aco__http_is_host(host, host_n) || (port < end && *port != ':'))
        return wrong_url("the URL's host");
    *aco__http_put(url->host, host, host_n) = 0;
    port += port < end;
    n = (size_t)(end - port);
    if (n >= sizeof url->port || strspn(port, "0123456789") < n)
        return wrong_url("the URL's port");
    memcpy(url->port, is_tls ? "443" : "80", is_tls ? 4 : 3);
    if (n)
        *aco__http_put(url->port, port, n) = 0;
    n = strcspn(end, "#");
    if (n + 2 > sizeof url->target)
        return wrong_url("the URL is too long");
    url->target[0] = '/';
    *aco__http_put(url->target + (*end != '/'), end, n) = 0;
    return check_target(url);
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

/* Where a redirect leads: the whole of it, or another path of the same host. */
static int redirect(url_t *url, const char *location_header, int may_be_tls)
{
    url_t before = *url;
    size_t n, before_n;
    char *slash;
    if (strncmp(location_header, "//", 2) == 0 || has_scheme(location_header)) {
        char text[CLIENT_TARGET];
        const char *scheme = *location_header != '/' ? "" : url->is_tls ? "https:" : "http:";
        int whole = snprintf(text, sizeof text, "%s%s", scheme, location_header);
        return whole < (int)sizeof text ? parse_url(url, text, may_be_tls) : wrong_url("the redirect is too long");
    }
    before.target[strcspn(before.target, "?")] = 0;
    slash = strrchr(before.target, '/');
    if (*location_header != '/' && *location_header != '?' && slash)
        slash[1] = 0;
    n = strcspn(location_header, "#");
    before_n = *location_header == '/' ? 0 : strlen(before.target);
    if (n >= sizeof url->target - before_n)
        return wrong_url("the redirect is too long");
    *aco__http_put(aco__http_put(url->target, before.target, before_n), location_header, n) = 0;
    remove_dots(url->target);
    return check_target(url);
}

/* ---- Connections ---- */

static void close_peer(peer_t *peer)
{
    aco__http_link_close(&peer->link);
    aco__poller_free(peer, peer->sz);
}

/* Whether nothing has come on a kept connection, not even its end. */
static int is_quiet(const peer_t *peer)
{
    const aco__http_link_t *link = &peer->link;
    char byte;
    if (link->transport && link->transport->has_input && link->transport->has_input(link->stream))
        return 0;
    return aco_io_recv(link->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

/* Where a connection for this URL leads. */
static const char *host_of(const aco_http_client_t *client, const url_t *url)
{
    return client->options.proxy_host && !url->is_tls ? client->options.proxy_host : url->host;
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
           (peer->is_tls != url->is_tls || strcmp(peer->host, host) != 0 || strcmp(peer->port, port) != 0))
        place = &peer->next;
    if (peer) {
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

/* A connection to the host, or to the proxy. NULL and errno. */
static peer_t *dial_peer(aco_http_client_t *client, const url_t *url, const char *location)
{
    const aco_http_client_options_t *options = &client->options;
    size_t headers = (size_t)options->max_headers * sizeof(aco_http_header_t);
    size_t sz = sizeof(peer_t) + headers + HTTP_OUT;
    const char *host = host_of(client, url), *port = port_of(client, url);
    int fd = aco_io_dial_at("tcp", options->proxy_host ? options->proxy_host : host,
                            options->proxy_host ? options->proxy_port : port, NULL, location);
    peer_t *peer = fd >= 0 ? aco__poller_allocate(&sz, call_name) : NULL;
    if (!peer) {
        if (fd >= 0)
            (void)aco_io_close(fd);
        return NULL;
    }
    memset(peer, 0, sizeof *peer);
    peer->client = client;
    peer->sz = sz;
    aco__http_link_open(&peer->link, fd, (size_t)options->max_head + HTTP_BEHIND_HEAD);
    aco__http_link_parse_by(&peer->link, &peer->parser, HTTP_RESPONSE);
    peer->link.out = (char *)(peer + 1) + headers;
    peer->link.most_body = UINT64_MAX;
    peer->link.write_time = ACO_FOREVER;
    peer->is_tls = url->is_tls;
    memcpy(peer->host, host, strlen(host) + 1);
    memcpy(peer->port, port, strlen(port) + 1);
    return peer;
}

/* ---- Requests ---- */

static int is_private(const char *name)
{
    return aco__http_same(name, "authorization") || aco__http_same(name, "cookie") ||
           aco__http_same(name, "proxy-authorization");
}

static int check_call(const aco_http_call_t *call)
{
    const char *method = call->method ? call->method : "GET";
    if (!call->url || !aco__http_is_token(method, strlen(method)) || strlen(method) > 32 ||
        strcmp(method, "CONNECT") == 0)
        return aco__http_fail(EINVAL, call_name, "the method or the URL");
    if (!call->read_body && call->length < 0)
        return aco__http_fail(EINVAL, call_name, "the body's length");
    for (size_t i = 0; i < call->header_count; i++) {
        const char *name = call->headers[i].name, *value = call->headers[i].value;
        if (!aco__http_is_token(name, strlen(name)) || !aco__http_is_value(value, strlen(value)) ||
            aco__http_same(name, "host") || aco__http_same(name, "content-length") ||
            aco__http_same(name, "transfer-encoding") || aco__http_same(name, "connection"))
            return aco__http_fail(EINVAL, call_name, "a header that HTTP does not allow, or the client sends itself");
    }
    return 0;
}

static int put_text(aco__http_link_t *link, const char *text, const char *location)
{
    size_t n = strlen(text);
    char *at = n <= HTTP_OUT ? aco__http_room(link, n, location) : NULL;
    if (n > HTTP_OUT)
        return aco__http_send(link, text, n, 0, location);
    if (!at)
        return -1;
    aco__http_put(at, text, n);
    link->out_n += n;
    return 0;
}

static int put_texts(aco__http_link_t *link, const char *const *texts, const char *location)
{
    for (; *texts; texts++)
        if (put_text(link, *texts, location) != 0)
            return -1;
    return 0;
}

/* "host:port"; the port only if it is needed. */
static int put_authority(aco__http_link_t *link, const url_t *url, int with_port, const char *location)
{
    int is_ip6 = strchr(url->host, ':') != NULL;
    int has_port = with_port || strcmp(url->port, url->is_tls ? "443" : "80") != 0;
    const char *const authority[] = {is_ip6 ? "[" : "",         url->host, is_ip6 ? "]" : "", has_port ? ":" : "",
                                     has_port ? url->port : "", NULL};
    return put_texts(link, authority, location);
}

/* 0, or -1 and errno. */
static int send_head(peer_t *peer, const aco_http_call_t *call, const char *method, const url_t *url, int has_body,
                     int is_elsewhere, const char *location)
{
    aco__http_link_t *link = &peer->link;
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
        if (!(is_elsewhere && is_private(header[0])) && put_texts(link, header, location) != 0)
            return -1;
    }
    link->left = has_body ? call->length : 0;
    link->is_chunked = link->left < 0;
    if (link->is_chunked)
        strcpy(framing, "Transfer-Encoding: chunked\r\n");
    else if (has_body || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0)
        snprintf(framing, sizeof framing, "Content-Length: %lld\r\n", (long long)link->left);
    return put_text(link, framing, location) != 0 ? -1 : put_text(link, "\r\n", location);
}

static int send_body(peer_t *peer, const aco_http_call_t *call, const char *location)
{
    aco__http_link_t *link = &peer->link;
    size_t sz = 4096;
    char *part;
    ssize_t n;
    if (!call->read_body)
        return aco__http_write_body(link, call->body, (size_t)call->length, call_name, location);
    part = aco__poller_allocate(&sz, call_name); /* too large for a small stack */
    if (!part)
        return -1;
    while ((n = call->read_body(call->read_arg, part, 4096)) > 0)
        if (aco__http_write_body(link, part, (size_t)n, call_name, location) != 0) {
            n = -1;
            break;
        }
    aco__poller_free(part, sz);
    return n < 0 ? -1 : 0;
}

/* Reads the head of the response; those of interim ones are dropped. 0; 1: nothing has come at all; -1 and errno. */
static int read_response(peer_t *peer, int is_head, const char *location)
{
    aco__http_link_t *link = &peer->link;
    size_t most = (size_t)peer->client->options.max_head;
    ssize_t n = aco__http_await(link, location);
    int parsed, left = CLIENT_INTERIM;
    if (n <= 0 && (n == 0 || errno == ECONNRESET || errno == EPIPE))
        return 1;
    if (n < 0)
        return -1;
    do {
        memset(&peer->head, 0, sizeof peer->head);
        peer->head.headers = (aco_http_header_t *)(void *)(peer + 1);
        peer->head.most = (size_t)peer->client->options.max_headers;
        link->gets_no_body = (unsigned char)is_head;
        aco__http_message_begin(link, &peer->head);
        while ((parsed = aco__http_parse_head(link)) == 0 && link->at - link->in.begin <= most)
            if ((n = aco__http_more_head(link, location)) <= 0)
                return n < 0 ? -1 : aco__http_fail(ECONNRESET, call_name, "the connection ended before the response");
        if (parsed <= 0 || link->keep - link->in.begin > most || link->parser->status_code == 101 ||
            link->parser->http_major != 1)
            return aco__http_fail(EBADMSG, call_name, "this is no response of HTTP/1, or its head is too long");
        if (peer->head.lengths > 1 || (peer->head.lengths && peer->head.encodings))
            return aco__http_fail(EBADMSG, call_name, "the response has two ends");
        if (link->parser->content_length > INT64_MAX && link->parser->flags & F_CONTENT_LENGTH)
            return aco__http_fail(EBADMSG, call_name, "the response's length");
        if (peer->head.encodings && (!peer->head.is_chunked || peer->head.encodings > 1 || !link->parser->http_minor))
            return aco__http_fail(EBADMSG, call_name, "the response's Transfer-Encoding");
        if (link->parser->status_code < 200) {
            char byte;
            if (!link->has_all && aco__http_read_body(link, &byte, 1, call_name, location) != 0)
                return aco__http_fail(EBADMSG, call_name, "an interim response has a body");
            aco__http_message_end(link);
        }
    } while (link->parser->status_code < 200 && --left > 0);
    return left > 0 ? 0 : aco__http_fail(EBADMSG, call_name, "too many interim responses");
}

/* Asks the proxy for a tunnel to the URL's host. 0, or -1 and errno. */
static int open_tunnel(peer_t *peer, const url_t *url, const char *location)
{
    aco__http_link_t *link = &peer->link;
    int result;
    if (put_text(link, "CONNECT ", location) != 0 || put_authority(link, url, 1, location) != 0 ||
        put_text(link, " HTTP/1.1\r\nHost: ", location) != 0 || put_authority(link, url, 1, location) != 0 ||
        put_text(link, "\r\n\r\n", location) != 0 || aco__http_send(link, NULL, 0, 0, location) != 0)
        return -1;
    result = read_response(peer, 1, location);
    if (result > 0)
        return aco__http_fail(ECONNRESET, call_name, "the proxy has ended the connection");
    if (result < 0)
        return -1;
    if (link->parser->status_code < 200 || link->parser->status_code > 299) {
        char reason[48];
        snprintf(reason, sizeof reason, "the proxy makes no tunnel: status %d", (int)link->parser->status_code);
        return aco__http_fail(ECONNREFUSED, call_name, reason);
    }
    aco__http_message_end(link);
    if (link->in.end > 0) /* before the handshake nobody may say anything */
        return aco__http_fail(EBADMSG, call_name, "the proxy has sent more than its response");
    aco_io_reader_close(&link->in);
    aco__http_link_parse_by(link, &peer->parser, HTTP_RESPONSE);
    return 0;
}

/* A new connection for this URL. NULL and errno. */
static peer_t *new_peer(aco_http_client_t *client, const url_t *url, const char *location)
{
    const aco_http_client_options_t *options = &client->options;
    peer_t *peer = dial_peer(client, url, location);
    aco__http_link_t *link = peer ? &peer->link : NULL;
    int error;
    if (!peer || !url->is_tls)
        return peer;
    if (!options->proxy_host || open_tunnel(peer, url, location) == 0) {
        link->stream = options->open(link->fd, url->host, &link->transport, options->open_arg);
        if (link->stream)
            return peer;
        link->transport = NULL;
        link->fd = -1;
    }
    error = errno;
    close_peer(peer);
    errno = error;
    return NULL;
}

static void fill_in(peer_t *peer)
{
    const aco__http_link_t *link = &peer->link;
    peer->is.status = link->parser->status_code;
    peer->is.minor = link->parser->http_minor;
    peer->is.headers = peer->head.headers;
    peer->is.header_count = peer->head.count;
    peer->is.length = -1;
    if (link->has_all)
        peer->is.length = 0;
    else if (link->parser->flags & F_CONTENT_LENGTH)
        peer->is.length = (int64_t)link->parser->content_length;
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
static peer_t *exchange(aco_http_client_t *client, const aco_http_call_t *call, const char *method, const url_t *url,
                        int has_body, int is_elsewhere, const char *location)
{
    int may_repeat = is_idempotent(method) && !call->read_body, is_again = 0, result, error;
    for (;; is_again = 1) {
        peer_t *peer = is_again ? NULL : kept_peer(client, url);
        int was_kept = peer != NULL;
        if (!peer && !(peer = new_peer(client, url, location)))
            return NULL;
        result = send_head(peer, call, method, url, has_body, is_elsewhere, location);
        if (result == 0 && has_body)
            result = send_body(peer, call, location);
        if (result == 0)
            result = aco__http_end_body(&peer->link, location);
        if (result == 0)
            result = aco__http_send(&peer->link, NULL, 0, 0, location);
        /* A server that refuses a body may have answered before it was sent. */
        if (result == 0 || (peer->link.is_broken && (errno == EPIPE || errno == ECONNRESET)))
            result = read_response(peer, strcmp(method, "HEAD") == 0, location);
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
            aco__http_fail(ECONNRESET, call_name, "the connection ended before the response");
            return NULL;
        }
    }
}

/* ---- The calls ---- */

aco_http_client_t *aco_http_client_new(const aco_http_client_options_t *options)
{
    static const char call[] = "aco_http_client_new";
    size_t sz = sizeof(aco_http_client_t);
    aco_http_client_t *client = aco__poller_allocate(&sz, call);
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
        (o->proxy_host &&
         (!o->proxy_port || strlen(o->proxy_host) >= CLIENT_HOST || strlen(o->proxy_port) >= CLIENT_PORT))) {
        aco__poller_free(client, sizeof *client);
        aco__http_fail(EINVAL, call, "the options");
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
    aco__poller_free(client, sizeof *client);
}

static int is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static aco_http_response_t *follow(aco_http_client_t *client, const aco_http_call_t *call, url_t *url,
                                   const char *location)
{
    const char *method = call->method ? call->method : "GET", *to;
    char first_host[CLIENT_HOST], first_port[CLIENT_PORT];
    int has_body = call->read_body || call->length > 0, is_elsewhere = 0, may_be_tls = client->options.open != NULL;
    int was_tls = url->is_tls;
    memcpy(first_host, url->host, strlen(url->host) + 1);
    memcpy(first_port, url->port, strlen(url->port) + 1);
    for (int redirects = 0;; redirects++) {
        peer_t *peer = exchange(client, call, method, url, has_body, is_elsewhere, location);
        int status = peer ? peer->is.status : 0, keeps_method = status == 307 || status == 308, failed;
        if (!peer)
            return NULL;
        peer->is.redirects = redirects;
        to = is_redirect(status) ? aco_http_response_header(&peer->is, "Location") : NULL;
        if (!to || client->options.max_redirects < 0 || (keeps_method && has_body && call->read_body))
            return &peer->is;
        failed = redirects == client->options.max_redirects ? aco__http_fail(ELOOP, call_name, "too many redirects")
                                                            : redirect(url, to, may_be_tls);
        if (failed) {
            int error = errno;
            aco_http_end(&peer->is);
            errno = error;
            return NULL;
        }
        aco_http_end(&peer->is);
        if (status == 303 ? strcmp(method, "HEAD") != 0 : !keeps_method && strcmp(method, "POST") == 0) {
            method = "GET";
            has_body = 0;
        }
        if (strcmp(first_host, url->host) != 0 || strcmp(first_port, url->port) != 0 || was_tls != url->is_tls)
            is_elsewhere = 1;
    }
}

aco_http_response_t *aco_http_call_at(aco_http_client_t *client, const aco_http_call_t *call, const char *location)
{
    size_t sz = sizeof(url_t);
    url_t *url;
    aco_http_response_t *response = NULL;
    if (!client || !call) {
        aco__http_fail(EINVAL, call_name, "the client or the call is NULL");
        return NULL;
    }
    if (check_call(call) != 0)
        return NULL;
    url = aco__poller_allocate(&sz, call_name); /* too large for a small stack */
    if (!url)
        return NULL;
    if (parse_url(url, call->url, client->options.open != NULL) == 0)
        response = follow(client, call, url, location);
    aco__poller_free(url, sz);
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
    for (size_t i = 0; i < response->header_count; i++)
        if (aco__http_same(response->headers[i].name, name))
            return response->headers[i].value;
    return NULL;
}

ssize_t aco_http_response_read_at(aco_http_response_t *response, void *p, size_t n, const char *location)
{
    return aco__http_read_body(&((peer_t *)(void *)response)->link, p, n, "aco_http_response_read", location);
}

void aco_http_end(aco_http_response_t *response)
{
    peer_t *peer = (peer_t *)(void *)response;
    aco_http_client_t *client;
    if (!peer)
        return;
    client = peer->client;
    peer->link.must_not_wait = 1;
    while (!peer->link.has_all)
        if (aco__http_skip_body(&peer->link, "aco_http_end", NULL) <= 0)
            break;
    peer->link.must_not_wait = 0;
    if (!peer->link.has_all || !peer->link.is_persistent || peer->link.is_broken || peer->link.body_error) {
        close_peer(peer);
        return;
    }
    aco__http_message_end(&peer->link);
    if (peer->link.in.end > 0 || client->kept_count >= client->options.max_idle) { /* bytes that nobody asked for */
        close_peer(peer);
        return;
    }
    aco_io_reader_close(&peer->link.in);
    peer->next = client->kept;
    client->kept = peer;
    client->kept_count++;
}
