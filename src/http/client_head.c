/* Heads of a client's requests and responses. */
#include "http/client_peer.h"
#include "http/cookie_jar_internal.h"
#include "http/text.h"

#include <stdio.h>
#include <string.h>

enum { CLIENT_INTERIM = 16 };

int aco__http_begin_time(aco_scope_t *scope, int64_t time, const char *location)
{
    return time ? aco_scope_begin_at(scope, aco_after(time), location) : 0;
}

void aco__http_end_time(aco_scope_t *scope, int64_t time, int failed, const char *reason)
{
    int error = errno;
    if (!time)
        return;
    (void)aco_scope_end(scope);
    errno = error;
    if (failed && scope->error == ETIMEDOUT)
        (void)aco__service_fail(ETIMEDOUT, CLIENT_CALL, reason);
}

/* ---- Requests ---- */

int aco__http_may_repeat(const aco__http_step_t *step)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(step->method, methods[i]) == 0)
            return !(step->has_body && step->call->read_body);
    return 0;
}

int aco__http_check_trailers(const aco_http_header_t *trailers, size_t count, const char *call)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = trailers[i].name, *value = trailers[i].value;
        if (!name || !value || !aco__http_is_token(name, strlen(name)) || !aco__http_is_value(value, strlen(value)) ||
            aco__http_must_come_first(name))
            return aco__service_fail(EINVAL, call, "a trailer that HTTP does not allow");
    }
    return 0;
}

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

int aco__http_is_sent(const aco__http_step_t *step, const char *name)
{
    return !(step->is_elsewhere && is_private(name)) && !(step->has_lost_body && is_of_body(name));
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

int aco__http_put_texts(aco__http_link_t *link, const char *const *texts, const char *location)
{
    for (; *texts; texts++)
        if (put_text(link, *texts, location) != 0)
            return -1;
    return 0;
}

/* "host:port"; the port only if it is needed. */
int aco__http_put_authority(aco__http_link_t *link, const aco__http_client_url_t *url, int with_port,
                            const char *location)
{
    int is_ip6 = strchr(url->host, ':') != NULL;
    int has_port = with_port || strcmp(url->port, url->is_tls ? "443" : "80") != 0;
    const char *const authority[] = {is_ip6 ? "[" : "",         url->host, is_ip6 ? "]" : "", has_port ? ":" : "",
                                     has_port ? url->port : "", NULL};
    return aco__http_put_texts(link, authority, location);
}

/* A header of the client itself, if the call has none of this name; NULL: none. */
ACO__SWITCHES static int put_own(aco__http_peer_t *peer, const aco__http_step_t *step, const char *name,
                                 const char *value, const char *location)
{
    const char *const header[] = {name, ": ", value, "\r\n", NULL};
    const char *own;
    if (!value || !*value || aco__http_find(step->call->headers, step->call->header_count, name, &own))
        return 0;
    return aco__http_put_texts(&peer->link, header, location);
}

/* Cookies of the jar, unless the call sends its own. */
ACO__SWITCHES static int put_cookies(aco__http_peer_t *peer, const aco__http_step_t *step, const char *location)
{
    aco_cookie_jar_t *jar = peer->answer.client->options.jar;
    size_t sz = HTTP_OUT;
    const char *own;
    char *text;
    int result;
    if (!jar || (!step->is_elsewhere && aco__http_find(step->call->headers, step->call->header_count, "Cookie", &own)))
        return 0;
    text = aco__service_allocate(&sz, CLIENT_CALL);
    if (!text)
        return -1;
    result = aco__cookie_jar_put(jar, step->url->text, text, sz) < 0 ? -1 : 0;
    if (result == 0 && *text) {
        const char *const header[] = {"Cookie: ", text, "\r\n", NULL};
        result = aco__http_put_texts(&peer->link, header, location);
    }
    aco__service_free(text, sz);
    return result;
}

/* 0, or -1 and errno. */
int aco__http_take_cookies(const aco_http_client_t *client, const aco__http_client_url_t *url,
                           const aco_http_response_t *response)
{
    aco_cookie_jar_t *jar = client->options.jar;
    for (size_t i = 0; jar && i < response->header_count; i++)
        if (aco__http_same(response->headers[i].name, "set-cookie") &&
            aco_cookie_jar_set(jar, url->text, response->headers[i].value) < 0)
            return -1;
    return 0;
}

int aco__http_wants_coded(const aco_http_client_t *client, const aco__http_step_t *step)
{
    const aco_http_call_t *call = step->call;
    const char *own;
    return client->options.decodes && !step->upgrade && /* what comes then is another protocol */
           !aco__http_find(call->headers, call->header_count, "Accept-Encoding", &own) &&
           !aco__http_find(call->headers, call->header_count, "Range", &own);
}

/* Begins to decode the response's body, if it has a coding that is known. 0, or -1 and errno. */
int aco__http_begin_decoding(aco__http_answer_t *answer, const aco__http_step_t *step)
{
    aco_http_response_t *r = &answer->is;
    const char *coding;
    if (!aco__http_wants_coded(answer->client, step) || r->length == 0 || r->status == 206 ||
        aco__http_find(r->headers, r->header_count, "Content-Encoding", &coding) != 1)
        return 0;
    answer->decoder_error = 0;
    answer->decoded = 0;
    answer->decoder = aco__http_decoder_new(coding);
    if (!answer->decoder)
        return errno ? -1 : 0;
    r->length = -1;
    r->is_decoded = 1;
    return 0;
}

/* The call's headers, and the client's own. */
ACO__SWITCHES static int put_headers(aco__http_peer_t *peer, const aco__http_step_t *step, int by_proxy,
                                     const char *location)
{
    const aco_http_call_t *call = step->call;
    for (size_t i = 0; i < call->header_count; i++) {
        const char *const header[] = {call->headers[i].name, ": ", call->headers[i].value, "\r\n", NULL};
        if (aco__http_is_sent(step, header[0]) && aco__http_put_texts(&peer->link, header, location) != 0)
            return -1;
    }
    if (put_cookies(peer, step, location) != 0 ||
        (!step->is_elsewhere && put_own(peer, step, "Authorization", step->authorization, location) != 0))
        return -1;
    if (aco__http_wants_coded(peer->answer.client, step) &&
        put_own(peer, step, "Accept-Encoding", aco__http_codings(), location) != 0)
        return -1;
    if (step->has_body && call->continue_time && put_own(peer, step, "Expect", "100-continue", location) != 0)
        return -1;
    for (size_t i = 0; step->traced && i < 2 && step->traced->headers[i].name; i++)
        if (put_own(peer, step, step->traced->headers[i].name, step->traced->headers[i].value, location) != 0)
            return -1;
    return by_proxy ? put_own(peer, step, "Proxy-Authorization", peer->answer.client->proxy_authorization, location)
                    : 0;
}

/* 0, or -1 and errno. */
int aco__http_send_head(aco__http_peer_t *peer, const aco__http_step_t *step, const char *location)
{
    aco__http_link_t *link = &peer->link;
    const aco__http_client_url_t *url = step->url;
    const char *method = step->method;
    const int64_t length = step->has_body ? step->call->length : 0;
    int by_proxy = peer->answer.client->options.proxy_host != NULL && !url->is_tls && !step->upgrade;
    const char *const begin[] = {method, by_proxy ? " http://" : " ", NULL};
    const char *const middle[] = {url->text + url->target_at, " HTTP/1.1\r\nHost: ", NULL};
    char framing[64] = "";
    if (aco__http_put_texts(link, begin, location) != 0 ||
        (by_proxy && aco__http_put_authority(link, url, 0, location) != 0) ||
        aco__http_put_texts(link, middle, location) != 0 || aco__http_put_authority(link, url, 0, location) != 0 ||
        put_text(link, "\r\n", location) != 0 || put_headers(peer, step, by_proxy, location) != 0 ||
        put_text(link, step->upgrade ? step->upgrade : "", location) != 0)
        return -1;
    aco__http_body_begin(&peer->outgoing, length, length < 0, 0);
    if (length < 0)
        strcpy(framing, "Transfer-Encoding: chunked\r\n");
    else if (step->has_body || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0)
        snprintf(framing, sizeof framing, "Content-Length: %lld\r\n", (long long)length);
    return put_text(link, framing, location) != 0 ? -1 : put_text(link, "\r\n", location);
}

/* ---- Responses ---- */

/* What is wrong with a head that was parsed; NULL: nothing. */
static const char *fault_of_head(const aco__http_peer_t *peer)
{
    const aco__http_incoming_t *in = &peer->incoming;
    if (aco__http_head_size(in) > (size_t)peer->answer.client->options.max_head || in->parser->http_major != 1 ||
        (in->parser->status_code == 101 && !peer->may_switch))
        return "this is no response of HTTP/1, or its head is too long";
    if (peer->head.lengths > 1 || (peer->head.lengths && peer->head.encodings))
        return "the response has two ends";
    if (in->parser->content_length > INT64_MAX && in->parser->flags & F_CONTENT_LENGTH)
        return "the response's length";
    if (peer->head.encodings && (!peer->head.is_chunked || peer->head.encodings > 1 || !in->parser->http_minor))
        return "the response's Transfer-Encoding";
    return NULL;
}

/* Drops an interim response. 0, or -1 and errno. */
ACO__SWITCHES static int drop_interim(aco__http_peer_t *peer, const char *location)
{
    aco__http_incoming_t *in = &peer->incoming;
    char byte;
    if (!in->has_all && aco__http_read_body(in, &byte, 1, CLIENT_CALL, location) != 0)
        return aco__service_fail(EBADMSG, CLIENT_CALL, "an interim response has a body");
    aco__http_message_end(in);
    return ++peer->interims < CLIENT_INTERIM ? 0
                                             : aco__service_fail(EBADMSG, CLIENT_CALL, "too many interim responses");
}

/* Reads the head of a response, also of an interim one, which is dropped. 0; 1: nothing has come at all; -1 and
 * errno. */
int aco__http_read_one_head(aco__http_peer_t *peer, int is_head, const char *location)
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
           aco__http_head_size(in) <= (size_t)peer->answer.client->options.max_head)
        if ((n = aco__http_more_head(in, location)) <= 0)
            return n < 0 ? -1 : aco__service_fail(ECONNRESET, CLIENT_CALL, "the connection ended before the response");
    fault = parsed <= 0 ? "this is no response of HTTP/1, or its head is too long" : fault_of_head(peer);
    if (fault)
        return aco__service_fail(EBADMSG, CLIENT_CALL, fault);
    return aco__http_is_interim(peer) ? drop_interim(peer, location) : 0;
}

/* Reads the head of the response, behind interim ones. As aco__http_read_one_head(). */
int aco__http_read_response(aco__http_peer_t *peer, int is_head, const char *location)
{
    int result;
    do
        result = aco__http_read_one_head(peer, is_head, location);
    while (result == 0 && aco__http_is_interim(peer));
    return result > 0 && peer->interims
               ? aco__service_fail(ECONNRESET, CLIENT_CALL, "the connection ended before the response")
               : result;
}
