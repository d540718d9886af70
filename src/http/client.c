/* Clients: kept connections, requests, redirects. */
#define _GNU_SOURCE
#include "base/reserved.h"
#include "http/base64.h"
#include "http/client_places.h"
#include "http/client_url.h"
#include "http/cookie_jar_internal.h"
#include "http/decoder.h"
#include "http/incoming.h"
#include "http/link.h"
#include "http/outgoing.h"
#include "http/text.h"

#include "aco/detail/descriptors.h"
#include "aco/url.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { CLIENT_INTERIM = 16 };

typedef aco__http_client_url_t url_t;

/* What has come before a request's body was sent, so that the rest is not: nothing; the response's head; the end. */
enum { EARLY_NOTHING, EARLY_RESPONSE, EARLY_END };

typedef struct peer { /* a connection, and the response that comes on it */
    aco_http_response_t is; /* first */
    aco_http_client_t *client;
    struct peer *next;      /* that is kept */
    aco__http_hop_t *hops;  /* of the response's call */
    aco__http_host_t *place; /* of the request; NULL: hosts have no limit */
    int interims;           /* responses before that of the request */
    unsigned char early;    /* EARLY_… */
    aco__http_decoder_t *decoder; /* of the body; NULL: it is read as it comes */
    int decoder_error;      /* with which decoding has ended; 0: it has not */
    int64_t decoded;        /* bytes */
    int64_t until;          /* for the response's body, too */
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
    aco__http_places_t places;
    char *proxy_authorization; /* its value; NULL: none */
    size_t proxy_authorization_sz;
};

static const char call_name[] = "aco_http_call";

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

static int leads_to(const peer_t *peer, const aco_http_client_t *client, const url_t *url)
{
    return peer->is_tls == url->is_tls && aco__http_same(peer->host, host_of(client, url)) &&
           strcmp(peer->port, port_of(client, url)) == 0;
}

/* Takes a connection for this URL's host out of the list; NULL: there is none. */
static peer_t *take_kept(aco_http_client_t *client, const url_t *url)
{
    peer_t **place = &client->kept, *peer;
    ACO__NO_SWITCH_BEGIN();
    while ((peer = *place) != NULL && !leads_to(peer, client, url))
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

/* Takes the connection that was not used for longest out of the list, which is not empty. */
static peer_t *take_last(aco_http_client_t *client)
{
    peer_t **place = &client->kept, *last;
    while ((*place)->next)
        place = &(*place)->next;
    last = *place;
    *place = NULL;
    client->kept_count--;
    return last;
}

/* Keeps a connection for further requests; if they are too many, the one that was not used for longest is closed. */
static void keep_peer(aco_http_client_t *client, peer_t *peer)
{
    peer_t *last = NULL;
    ACO__ASSERT(!peer->link.out_n && !peer->outgoing.left && !peer->link.in.buffer); /* nothing is under way */
    ACO__NO_SWITCH_BEGIN();
    peer->next = client->kept;
    client->kept = peer;
    if (++client->kept_count > client->options.max_idle)
        last = take_last(client);
    ACO__NO_SWITCH_END();
    if (last)
        close_peer(last);
}

static size_t kept_for(const aco_http_client_t *client, const url_t *url)
{
    size_t n = 0;
    for (const peer_t *peer = client->kept; peer; peer = peer->next)
        n += leads_to(peer, client, url);
    return n;
}

/* Closes kept connections, so that there may be another one: besides those in use, there are as many as free places. */
static void make_place(aco_http_client_t *client, const url_t *url, const aco__http_host_t *place)
{
    while (place && kept_for(client, url) > place->free.value)
        close_peer(take_kept(client, url));
    while (client->places.most && (size_t)client->kept_count > client->places.free.value)
        close_peer(take_last(client));
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
    const char *authorization; /* the value that the URL's user makes; "": none */
    aco__http_hop_t *hops;
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
    if (call->continue_time < 0)
        return aco__service_fail(EINVAL, call_name, "continue_time");
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

/* A header of the client itself, if the call has none of this name; NULL: none. */
ACO__SWITCHES static int put_own(peer_t *peer, const step_t *step, const char *name, const char *value,
                                 const char *location)
{
    const char *const header[] = {name, ": ", value, "\r\n", NULL};
    const char *own;
    if (!value || !*value || aco__http_find(step->call->headers, step->call->header_count, name, &own))
        return 0;
    return put_texts(&peer->link, header, location);
}

/* Cookies of the jar, unless the call sends its own. */
ACO__SWITCHES static int put_cookies(peer_t *peer, const step_t *step, const char *location)
{
    aco_cookie_jar_t *jar = peer->client->options.jar;
    size_t sz = HTTP_OUT;
    const char *own;
    char *text;
    int result;
    if (!jar || (!step->is_elsewhere && aco__http_find(step->call->headers, step->call->header_count, "Cookie", &own)))
        return 0;
    text = aco__service_allocate(&sz, call_name);
    if (!text)
        return -1;
    result = aco__cookie_jar_put(jar, step->url->text, text, sz) < 0 ? -1 : 0;
    if (result == 0 && *text) {
        const char *const header[] = {"Cookie: ", text, "\r\n", NULL};
        result = put_texts(&peer->link, header, location);
    }
    aco__service_free(text, sz);
    return result;
}

/* 0, or -1 and errno. */
static int take_cookies(const aco_http_client_t *client, const url_t *url, const aco_http_response_t *response)
{
    aco_cookie_jar_t *jar = client->options.jar;
    for (size_t i = 0; jar && i < response->header_count; i++)
        if (aco__http_same(response->headers[i].name, "set-cookie") &&
            aco_cookie_jar_set(jar, url->text, response->headers[i].value) < 0)
            return -1;
    return 0;
}

/* Whether the response may be coded, and is decoded: not if the call has an opinion, or asks for a part of it. */
static int wants_coded(const aco_http_client_t *client, const step_t *step)
{
    const aco_http_call_t *call = step->call;
    const char *own;
    return client->options.decodes && !aco__http_find(call->headers, call->header_count, "Accept-Encoding", &own) &&
           !aco__http_find(call->headers, call->header_count, "Range", &own);
}

/* Begins to decode the response's body, if it has a coding that is known. 0, or -1 and errno. */
static int begin_decoding(peer_t *peer, const step_t *step)
{
    aco_http_response_t *r = &peer->is;
    const char *coding;
    if (!wants_coded(peer->client, step) || peer->incoming.has_all || r->status == 206 ||
        aco__http_find(r->headers, r->header_count, "Content-Encoding", &coding) != 1)
        return 0;
    peer->decoder_error = 0;
    peer->decoded = 0;
    peer->decoder = aco__http_decoder_new(coding);
    if (!peer->decoder)
        return errno ? -1 : 0;
    r->length = -1;
    r->is_decoded = 1;
    return 0;
}

/* The call's headers, and the client's own. */
ACO__SWITCHES static int put_headers(peer_t *peer, const step_t *step, int by_proxy, const char *location)
{
    const aco_http_call_t *call = step->call;
    for (size_t i = 0; i < call->header_count; i++) {
        const char *const header[] = {call->headers[i].name, ": ", call->headers[i].value, "\r\n", NULL};
        if ((step->is_elsewhere && is_private(header[0])) || (step->has_lost_body && is_of_body(header[0])))
            continue;
        if (put_texts(&peer->link, header, location) != 0)
            return -1;
    }
    if (put_cookies(peer, step, location) != 0 ||
        (!step->is_elsewhere && put_own(peer, step, "Authorization", step->authorization, location) != 0))
        return -1;
    if (wants_coded(peer->client, step) && put_own(peer, step, "Accept-Encoding", aco__http_codings(), location) != 0)
        return -1;
    if (step->has_body && call->continue_time && put_own(peer, step, "Expect", "100-continue", location) != 0)
        return -1;
    return by_proxy ? put_own(peer, step, "Proxy-Authorization", peer->client->proxy_authorization, location) : 0;
}

/* 0, or -1 and errno. */
ACO__SWITCHES static int send_head(peer_t *peer, const step_t *step, const char *location)
{
    aco__http_link_t *link = &peer->link;
    const url_t *url = step->url;
    const char *method = step->method;
    const int64_t length = step->has_body ? step->call->length : 0;
    int by_proxy = peer->client->options.proxy_host != NULL && !url->is_tls;
    const char *const begin[] = {method, by_proxy ? " http://" : " ", NULL};
    const char *const middle[] = {url->text + url->target_at, " HTTP/1.1\r\nHost: ", NULL};
    char framing[64] = "";
    if (put_texts(link, begin, location) != 0 || (by_proxy && put_authority(link, url, 0, location) != 0) ||
        put_texts(link, middle, location) != 0 || put_authority(link, url, 0, location) != 0 ||
        put_text(link, "\r\n", location) != 0 || put_headers(peer, step, by_proxy, location) != 0)
        return -1;
    aco__http_body_begin(&peer->outgoing, length, length < 0, 0);
    if (length < 0)
        strcpy(framing, "Transfer-Encoding: chunked\r\n");
    else if (step->has_body || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0)
        snprintf(framing, sizeof framing, "Content-Length: %lld\r\n", (long long)length);
    return put_text(link, framing, location) != 0 ? -1 : put_text(link, "\r\n", location);
}

/* What is wrong with a head that was parsed; NULL: nothing. */
static const char *fault_of_head(const peer_t *peer)
{
    const aco__http_incoming_t *in = &peer->incoming;
    if (aco__http_head_size(in) > (size_t)peer->client->options.max_head || in->parser->status_code == 101 ||
        in->parser->http_major != 1)
        return "this is no response of HTTP/1, or its head is too long";
    if (peer->head.lengths > 1 || (peer->head.lengths && peer->head.encodings))
        return "the response has two ends";
    if (in->parser->content_length > INT64_MAX && in->parser->flags & F_CONTENT_LENGTH)
        return "the response's length";
    if (peer->head.encodings && (!peer->head.is_chunked || peer->head.encodings > 1 || !in->parser->http_minor))
        return "the response's Transfer-Encoding";
    return NULL;
}

static int is_interim(const peer_t *peer)
{
    return peer->parser.status_code < 200;
}

/* Drops an interim response. 0, or -1 and errno. */
ACO__SWITCHES static int drop_interim(peer_t *peer, const char *location)
{
    aco__http_incoming_t *in = &peer->incoming;
    char byte;
    if (!in->has_all && aco__http_read_body(in, &byte, 1, call_name, location) != 0)
        return aco__service_fail(EBADMSG, call_name, "an interim response has a body");
    aco__http_message_end(in);
    return ++peer->interims < CLIENT_INTERIM ? 0 : aco__service_fail(EBADMSG, call_name, "too many interim responses");
}

/* Reads the head of a response, also of an interim one, which is dropped. 0; 1: nothing has come at all; -1 and
 * errno. */
ACO__SWITCHES static int read_one_head(peer_t *peer, int is_head, const char *location)
{
    aco__http_incoming_t *in = &peer->incoming;
    const char *fault;
    ssize_t n = 1;
    int parsed;
    if (peer->link.in.begin == peer->link.in.end)
        n = aco__http_await(&peer->link, !in->has_all && !peer->interims, location);
    if (n <= 0 && (n == 0 || errno == ECONNRESET || errno == EPIPE))
        return 1;
    if (n < 0)
        return -1;
    in->gets_no_body = (unsigned char)is_head;
    aco__http_message_begin(in, &peer->head);
    while ((parsed = aco__http_parse_head(in)) == 0 &&
           aco__http_head_size(in) <= (size_t)peer->client->options.max_head)
        if ((n = aco__http_more_head(in, location)) <= 0)
            return n < 0 ? -1 : aco__service_fail(ECONNRESET, call_name, "the connection ended before the response");
    fault = parsed <= 0 ? "this is no response of HTTP/1, or its head is too long" : fault_of_head(peer);
    if (fault)
        return aco__service_fail(EBADMSG, call_name, fault);
    return is_interim(peer) ? drop_interim(peer, location) : 0;
}

/* Reads the head of the response, behind interim ones. As read_one_head(). */
ACO__SWITCHES static int read_response(peer_t *peer, int is_head, const char *location)
{
    int result;
    do
        result = read_one_head(peer, is_head, location);
    while (result == 0 && is_interim(peer));
    return result > 0 && peer->interims
               ? aco__service_fail(ECONNRESET, call_name, "the connection ended before the response")
               : result;
}

/* Asks the proxy for a tunnel to the URL's host. 0, or -1 and errno. */
ACO__SWITCHES static int open_tunnel(peer_t *peer, const url_t *url, const char *location)
{
    aco__http_link_t *link = &peer->link;
    const char *authorization = peer->client->proxy_authorization;
    const char *const rest[] = {authorization ? "\r\nProxy-Authorization: " : "", authorization ? authorization : "",
                                "\r\n\r\n", NULL};
    int result;
    if (put_text(link, "CONNECT ", location) != 0 || put_authority(link, url, 1, location) != 0 ||
        put_text(link, " HTTP/1.1\r\nHost: ", location) != 0 || put_authority(link, url, 1, location) != 0 ||
        put_texts(link, rest, location) != 0 || aco__http_send(link, NULL, 0, 0, location) != 0)
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

/* Connects for this URL. NULL and errno. */
ACO__SWITCHES static peer_t *connect_peer(aco_http_client_t *client, const url_t *url, const char *location)
{
    const aco_http_client_options_t *options = &client->options;
    peer_t *peer;
    aco__http_link_t *link;
    int error;
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

/* Begins a limit of `time`, if it is one. 0, or -1 and errno. */
static int begin_time(aco_scope_t *scope, int64_t time, const char *location)
{
    return time ? aco_scope_begin_at(scope, aco_after(time), location) : 0;
}

/* Ends it. `failed`: what it was for has failed, with errno. */
static void end_time(aco_scope_t *scope, int64_t time, int failed, const char *reason)
{
    int error = errno;
    if (!time)
        return;
    (void)aco_scope_end(scope);
    errno = error;
    if (failed && scope->error == ETIMEDOUT)
        (void)aco__service_fail(ETIMEDOUT, call_name, reason);
}

/* A new connection for this URL, within connect_time. NULL and errno. */
ACO__SWITCHES static peer_t *new_peer(aco_http_client_t *client, const url_t *url, const aco__http_host_t *place,
                                      const char *location)
{
    const int64_t time = client->options.connect_time;
    aco_scope_t scope;
    peer_t *peer;
    close_ended(client);
    make_place(client, url, place);
    if (begin_time(&scope, time, location) != 0)
        return NULL;
    peer = connect_peer(client, url, location);
    end_time(&scope, time, !peer, "connect_time is over");
    return peer;
}

/* The response's head, within head_time. As read_response(). */
ACO__SWITCHES static int await_response(peer_t *peer, int is_head, const char *location)
{
    const int64_t time = peer->client->options.head_time;
    aco_scope_t scope;
    int result;
    if (begin_time(&scope, time, location) != 0)
        return -1;
    result = read_response(peer, is_head, location);
    end_time(&scope, time, result < 0, "head_time is over");
    return result;
}

static void fill_in(peer_t *peer)
{
    const aco__http_incoming_t *in = &peer->incoming;
    peer->is.status = in->parser->status_code;
    peer->is.minor = in->parser->http_minor;
    peer->is.headers = peer->head.headers;
    peer->is.header_count = peer->head.count;
    peer->is.length = -1;
    peer->is.is_decoded = 0;
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

/* ---- Bodies, while the response may come ---- */

enum { BODY_PART = 4096, BODY_PIECE = 65536 }; /* of read_body; between two looks on a stream that is no socket */

/* As read_one_head(), while output is left, which must not be waited for: the server may not take any. */
ACO__SWITCHES static int read_head_first(peer_t *peer, const step_t *step, const char *location)
{
    const size_t out_n = peer->link.out_n;
    int result;
    peer->link.out_n = 0;
    result = read_one_head(peer, strcmp(step->method, "HEAD") == 0, location);
    peer->link.out_n = out_n;
    return result;
}

/* Reads a response that has come before the body was sent. 0: it was an interim one, or there is none; 1: the body is
 * not sent further, what has come is in peer->early; -1 and errno. */
ACO__SWITCHES static int take_early(peer_t *peer, const step_t *step, const char *location)
{
    while (peer->link.in.begin < peer->link.in.end || !is_quiet(peer)) {
        int result = read_head_first(peer, step, location);
        if (result < 0)
            return -1;
        if (result > 0 && peer->interims)
            return aco__service_fail(ECONNRESET, call_name, "the connection ended before the response");
        peer->early = result > 0 ? EARLY_END : EARLY_RESPONSE;
        if (result > 0 || !is_interim(peer))
            return 1;
    }
    return 0;
}

/* Waits until the socket takes more. As take_early(). */
ACO__SWITCHES static int await_room(peer_t *peer, const step_t *step, const char *location)
{
    struct pollfd look = {peer->link.own.fd, POLLIN | POLLOUT, 0};
    if (aco__io_poll(&look, 1, ACO_FOREVER, call_name, location) < 0)
        return -1;
    return look.revents & ~POLLOUT ? take_early(peer, step, location) : 0;
}

/* Sends what was collected, on a socket. As take_early(). */
ACO__SWITCHES static int drain_out(peer_t *peer, const step_t *step, const char *location)
{
    int result = 0;
    while (result == 0 && peer->link.out_n) {
        const size_t before = peer->link.out_n;
        aco__http_try_send(&peer->link);
        if (peer->link.out_n == before)
            result = await_room(peer, step, location);
    }
    return result;
}

/* Sends bytes of a body with a length, on a socket, without copying them. As take_early(). */
ACO__SWITCHES
static int send_directly(peer_t *peer, const step_t *step, const char *p, size_t n, const char *location)
{
    int result = drain_out(peer, step, location);
    while (result == 0 && n) {
        ssize_t sent = aco_io_send_at(peer->link.own.fd, p, n, MSG_DONTWAIT, location);
        if (sent > 0) {
            p += sent;
            n -= (size_t)sent;
            peer->outgoing.left -= sent;
        } else if (sent < 0 && errno != EAGAIN) {
            peer->link.is_broken = 1;
            return -1;
        } else
            result = await_room(peer, step, location);
    }
    return result;
}

/* Sends the next bytes of the body. As take_early(). */
ACO__SWITCHES
static int send_part(peer_t *peer, const step_t *step, const char *p, size_t n, const char *location)
{
    if (peer->link.is_plain && !peer->outgoing.is_chunked && n > HTTP_OUT / 2 && n <= (uint64_t)peer->outgoing.left)
        return send_directly(peer, step, p, n, location);
    while (n) {
        const size_t most = peer->link.is_plain ? BODY_PART : BODY_PIECE, piece = n < most ? n : most;
        int result = peer->link.is_plain ? drain_out(peer, step, location) : take_early(peer, step, location);
        if (result != 0)
            return result;
        if (aco__http_write_body(&peer->outgoing, p, piece, call_name, location) != 0)
            return -1;
        p += piece;
        n -= piece;
    }
    return 0;
}

/* Waits for "100 Continue", or another response, for some time. As take_early(). */
ACO__SWITCHES static int await_continue(peer_t *peer, const step_t *step, const char *location)
{
    const int64_t until = aco_after(step->call->continue_time);
    if (aco__http_send(&peer->link, NULL, 0, 0, location) != 0)
        return -1;
    if (is_quiet(peer) && aco_io_wait_readable_until_at(peer->link.own.fd, until, location) != 0)
        return errno == ETIMEDOUT && aco_now() >= until && aco_check_cancelled() == 0 ? 0 : -1;
    return take_early(peer, step, location);
}

/* Sends the body and its end. As take_early(). */
ACO__SWITCHES static int send_body(peer_t *peer, const step_t *step, const char *location)
{
    const aco_http_call_t *call = step->call;
    size_t sz = BODY_PART;
    int result = call->continue_time ? await_continue(peer, step, location) : 0;
    char *part;
    ssize_t n = 0;
    if (result != 0)
        return result;
    if (!call->read_body)
        return send_part(peer, step, call->body, (size_t)call->length, location);
    part = aco__service_allocate(&sz, call_name); /* too large for a small stack */
    if (!part)
        return -1;
    while ((result = take_early(peer, step, location)) == 0 &&
           (n = call->read_body(call->read_arg, part, BODY_PART)) > 0)
        if ((result = send_part(peer, step, part, (size_t)n, location)) != 0)
            break;
    aco__service_free(part, sz);
    return n < 0 ? -1 : result;
}

/* Sends a request. As take_early(). */
ACO__SWITCHES static int send_request(peer_t *peer, const step_t *step, const char *location)
{
    int result;
    peer->interims = 0;
    peer->early = EARLY_NOTHING;
    result = send_head(peer, step, location);
    if (result == 0 && step->has_body)
        result = send_body(peer, step, location);
    if (result == 0)
        result = aco__http_end_body(&peer->outgoing, location);
    return result == 0 ? aco__http_send(&peer->link, NULL, 0, 0, location) : result;
}

/* One request and its response, by somebody who has this place. NULL and errno. */
ACO__SWITCHES
static peer_t *exchange_at(aco_http_client_t *client, const step_t *step, const aco__http_host_t *place,
                           const char *location)
{
    int may_repeat = is_idempotent(step->method) && !(step->has_body && step->call->read_body);
    int is_again = 0, result, error;
    for (;; is_again = 1) {
        peer_t *peer = is_again ? NULL : kept_peer(client, step->url);
        int was_kept = peer != NULL;
        if (!peer && !(peer = new_peer(client, step->url, place, location)))
            return NULL;
        result = send_request(peer, step, location);
        if (result > 0)
            result = peer->early == EARLY_END;
        /* A server that refuses a body may have answered before it was sent. */
        else if (result == 0 || (peer->link.is_broken && (errno == EPIPE || errno == ECONNRESET)))
            result = await_response(peer, strcmp(step->method, "HEAD") == 0, location);
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

/* One request and its response. NULL and errno. */
ACO__SWITCHES static peer_t *exchange(aco_http_client_t *client, const step_t *step, const char *location)
{
    aco__http_host_t *place;
    peer_t *peer;
    if (aco__http_take_place(&client->places, step->url->is_tls, host_of(client, step->url), port_of(client, step->url),
                             &place, location) != 0)
        return NULL;
    peer = exchange_at(client, step, place, location);
    if (peer)
        peer->place = place;
    else
        aco__http_leave_place(&client->places, place);
    return peer;
}

/* ---- The calls ---- */

/* What is wrong with the options, of which those with defaults are set; NULL: nothing. */
static const char *fault_of_options(const aco_http_client_options_t *o)
{
    if (o->max_head < 64 || o->max_head > 1 << 20 || o->max_headers < 1 || o->max_headers > 1000)
        return "a limit";
    if (ACO__RESERVED_IS_SET(o))
        return "a reserved field is not 0";
    if (o->connect_time < 0 || o->head_time < 0 || o->total_time < 0 || o->max_decoded < 0)
        return "a time, or max_decoded";
    if (o->proxy_host &&
        (!o->proxy_port || strlen(o->proxy_host) >= CLIENT_HOST || strlen(o->proxy_port) >= CLIENT_PORT))
        return "the proxy";
    if (o->proxy_user && (!o->proxy_host || strchr(o->proxy_user, ':') || strlen(o->proxy_user) >= CLIENT_USER ||
                          (o->proxy_password && strlen(o->proxy_password) >= CLIENT_USER)))
        return "the proxy's user";
    return NULL;
}

/* Makes the header for the proxy. 0, or -1 and errno. */
static int authorize_proxy(aco_http_client_t *client)
{
    const aco_http_client_options_t *o = &client->options;
    char credentials[2 * CLIENT_USER];
    size_t n, sz;
    if (!o->proxy_user)
        return 0;
    n = (size_t)snprintf(credentials, sizeof credentials, "%s:%s", o->proxy_user,
                         o->proxy_password ? o->proxy_password : "");
    sz = HTTP_BASIC(n);
    client->proxy_authorization = aco__service_allocate(&sz, "aco_http_client_new");
    if (!client->proxy_authorization)
        return -1;
    client->proxy_authorization_sz = sz;
    aco__http_put_basic(client->proxy_authorization, credentials, n);
    return 0;
}

aco_http_client_t *aco_http_client_new(const aco_http_client_options_t *options)
{
    static const char call[] = "aco_http_client_new";
    size_t sz = sizeof(aco_http_client_t);
    aco_http_client_t *client = aco__service_allocate(&sz, call);
    aco_http_client_options_t *o;
    const char *fault;
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
    o->max_decoded = o->max_decoded ? o->max_decoded : 256 << 20;
    fault = fault_of_options(o);
    if (fault || authorize_proxy(client) != 0) {
        aco__service_free(client, sizeof *client);
        if (fault)
            aco__service_fail(EINVAL, call, fault);
        return NULL;
    }
    aco__http_places_open(&client->places, o->max_connections, o->max_per_host);
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
    if (client->proxy_authorization)
        aco__service_free(client->proxy_authorization, client->proxy_authorization_sz);
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
    if (aco__http_client_url_redirect(step->url, to, options->open != NULL) != 0)
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
        goes_on = aco__http_add_hop(&step->hops, step->url->text, peer->is.status);
        if (goes_on == 0)
            goes_on = take_cookies(client, step->url, &peer->is);
        if (goes_on == 0)
            goes_on = follow(client, step, &peer->is, first);
        if (goes_on == 0)
            goes_on = begin_decoding(peer, step);
        if (goes_on == 0) {
            peer->hops = step->hops;
            peer->is.url = peer->hops->url;
            return &peer->is;
        }
        error = errno;
        aco_http_response_end(&peer->is);
        errno = error;
        if (goes_on < 0)
            return NULL;
    }
}

/* The same, within total_time, which also the body has. */
ACO__SWITCHES
static aco_http_response_t *call_in_time(aco_http_client_t *client, step_t *step, const url_t *first,
                                         const char *location)
{
    const int64_t time = client->options.total_time, until = time ? aco_after(time) : 0;
    aco_http_response_t *response;
    aco_scope_t scope;
    if (begin_time(&scope, time, location) != 0)
        return NULL;
    response = exchange_all(client, step, first, location);
    end_time(&scope, time, !response, "total_time is over");
    if (response)
        ((peer_t *)(void *)response)->until = until;
    return response;
}

typedef struct call_memory { /* too large for a small stack */
    url_t first, now;
    char user[CLIENT_USER], authorization[HTTP_BASIC(CLIENT_USER)];
} call_memory_t;

/* Makes the value of Authorization of the URL's user. 0, or -1 and errno. */
static int authorize(call_memory_t *memory)
{
    char *user = memory->user;
    const char *colon = strchr(user, ':');
    ptrdiff_t n = aco__http_decode(user, user, strlen(user), 0);
    memory->authorization[0] = 0;
    if (n < 0)
        return aco__service_fail(EINVAL, call_name, "the URL's user");
    if (n && !colon)
        user[n++] = ':';
    if (n)
        aco__http_put_basic(memory->authorization, user, (size_t)n);
    return 0;
}

aco_http_response_t *aco_http_call_at(aco_http_client_t *client, const aco_http_call_t *call, const char *location)
{
    size_t sz = sizeof(call_memory_t);
    call_memory_t *memory;
    aco_http_response_t *response = NULL;
    if (!client || !call) {
        aco__service_fail(EINVAL, call_name, "the client or the call is NULL");
        return NULL;
    }
    if (check_call(call) != 0)
        return NULL;
    memory = aco__service_allocate(&sz, call_name);
    if (!memory)
        return NULL;
    if (aco__http_client_url_set(&memory->first, call->url, client->options.open != NULL, memory->user) == 0 &&
        authorize(memory) == 0) {
        step_t step = {.call = call, .url = &memory->now, .authorization = memory->authorization};
        step.method = call->method ? call->method : "GET";
        step.has_body = call->read_body || call->length > 0;
        memory->now = memory->first;
        response = call_in_time(client, &step, &memory->first, location);
        if (!response)
            aco__http_free_hops(step.hops);
    }
    aco__service_free(memory, sz);
    return response;
}

const char *aco_http_response_redirect(const aco_http_response_t *response, int i, int *status)
{
    const aco__http_hop_t *hop = ((const peer_t *)(const void *)response)->hops;
    if (i < 0 || i > response->redirects)
        return NULL;
    for (int at = response->redirects; at > i; at--)
        hop = hop->before;
    if (status)
        *status = hop->status;
    return hop->url;
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

static const char read_name[] = "aco_http_response_read";

static ssize_t decoding_fails(peer_t *peer, int error, const char *reason)
{
    peer->decoder_error = error;
    return aco__service_fail(error, read_name, reason);
}

/* What is decoded next. As aco_http_response_read(). */
ACO__SWITCHES static ssize_t read_decoded(peer_t *peer, void *p, size_t n, const char *location)
{
    const int64_t most = peer->client->options.max_decoded;
    ssize_t got = 0;
    if (n == 0)
        return 0;
    if (peer->decoder_error) {
        errno = peer->decoder_error;
        return -1;
    }
    while (got == 0) {
        char *room = aco__http_decoder_room(peer->decoder);
        ssize_t came = room ? aco__http_read_body(&peer->incoming, room, HTTP_CODED, read_name, location) : 0;
        if (came < 0)
            return -1;
        if (room)
            aco__http_decoder_filled(peer->decoder, (size_t)came);
        got = aco__http_decoded(peer->decoder, p, n);
        if (got == 0 && aco__http_decoder_is_done(peer->decoder))
            return 0;
    }
    if (got < 0)
        return errno == ENOMEM ? decoding_fails(peer, ENOMEM, "memory to decode the body")
                               : decoding_fails(peer, EBADMSG, "the body's Content-Encoding is wrong");
    peer->decoded += got;
    return peer->decoded <= most ? got : decoding_fails(peer, EFBIG, "the decoded body is beyond max_decoded");
}

ACO__SWITCHES static ssize_t read_response_body(peer_t *peer, void *p, size_t n, const char *location)
{
    return peer->decoder ? read_decoded(peer, p, n, location)
                         : aco__http_read_body(&peer->incoming, p, n, read_name, location);
}

ssize_t aco_http_response_read_at(aco_http_response_t *response, void *p, size_t n, const char *location)
{
    peer_t *peer = (peer_t *)(void *)response;
    aco_scope_t scope;
    ssize_t got;
    int error;
    if (!peer->until)
        return read_response_body(peer, p, n, location);
    if (aco_scope_begin_at(&scope, peer->until, location) != 0)
        return -1;
    got = read_response_body(peer, p, n, location);
    error = errno;
    (void)aco_scope_end(&scope);
    errno = error;
    if (got < 0 && scope.error == ETIMEDOUT)
        (void)aco__service_fail(ETIMEDOUT, read_name, "total_time is over");
    return got;
}

/* Keeps the connection if the response's end has come; else closes it. */
static void release_peer(peer_t *peer)
{
    aco__http_incoming_t *in = &peer->incoming;
    in->must_not_wait = 1;
    while (!in->has_all)
        if (aco__http_skip_body(in, "aco_http_response_end", NULL) <= 0)
            break;
    in->must_not_wait = 0;
    if (!in->has_all || !in->is_persistent || aco__http_is_cut(&peer->outgoing) || in->body_error) {
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

void aco_http_response_end(aco_http_response_t *response)
{
    peer_t *peer = (peer_t *)(void *)response;
    aco_http_client_t *client;
    aco__http_host_t *place;
    if (!peer)
        return;
    client = peer->client;
    place = peer->place;
    aco__http_free_hops(peer->hops);
    peer->hops = NULL;
    aco__http_decoder_free(peer->decoder);
    peer->decoder = NULL;
    peer->until = 0;
    release_peer(peer);
    aco__http_leave_place(&client->places, place);
}
