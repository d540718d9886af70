/* Clients: connecting, requests and redirects, reading bodies. */
#include "base/reserved.h"
#include "http/base64.h"
#include "http/client_dial.h"
#include "http/client_peer.h"
#include "http/text.h"

#include <stdio.h>
#include <string.h>

/* ---- Connections ---- */

/* A connection to the host, or to the proxy. NULL and errno. */
ACO__SWITCHES static aco__http_peer_t *dial_peer(aco_http_client_t *client, const aco__http_client_url_t *url,
                                                 const char *location)
{
    const aco_http_client_options_t *options = &client->options;
    size_t headers = (size_t)options->max_headers * sizeof(aco_http_header_t);
    size_t sz = sizeof(aco__http_peer_t) + headers + HTTP_OUT;
    const char *host = aco__http_host_of(client, url), *port = aco__http_port_of(client, url);
    int fd = client->unix_path ? aco_io_dial_at("unix", client->unix_path, NULL, NULL, location)
                               : aco_io_dial_at("tcp", options->proxy_host ? options->proxy_host : host,
                                                options->proxy_host ? options->proxy_port : port, NULL, location);
    aco__http_peer_t *peer = fd >= 0 ? aco__service_allocate(&sz, CLIENT_CALL) : NULL;
    if (!peer) {
        if (fd >= 0)
            (void)aco_io_close(fd);
        return NULL;
    }
    memset(peer, 0, sizeof *peer);
    peer->answer.client = client;
    peer->sz = sz;
    aco__http_link_open(&peer->link, fd, (size_t)options->max_head + HTTP_BEHIND_HEAD);
    aco__http_incoming_open(&peer->incoming, &peer->link);
    aco__http_parse_by(&peer->incoming, &peer->parser, HTTP_RESPONSE);
    peer->incoming.trailers = &peer->trailers;
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

/* Asks the proxy for a tunnel to the URL's host. 0, or -1 and errno. */
ACO__SWITCHES static int open_tunnel(aco__http_peer_t *peer, const aco__http_client_url_t *url, const char *location)
{
    aco__http_link_t *link = &peer->link;
    const char *authorization = peer->answer.client->proxy_authorization;
    const char *const begin[] = {"CONNECT ", NULL}, *const middle[] = {" HTTP/1.1\r\nHost: ", NULL};
    const char *const rest[] = {authorization ? "\r\nProxy-Authorization: " : "", authorization ? authorization : "",
                                "\r\n\r\n", NULL};
    int result;
    if (aco__http_put_texts(link, begin, location) != 0 || aco__http_put_authority(link, url, 1, location) != 0 ||
        aco__http_put_texts(link, middle, location) != 0 || aco__http_put_authority(link, url, 1, location) != 0 ||
        aco__http_put_texts(link, rest, location) != 0 || aco__http_send(link, NULL, 0, 0, location) != 0)
        return -1;
    result = aco__http_read_response(peer, 1, location);
    if (result > 0)
        return aco__service_fail(ECONNRESET, CLIENT_CALL, "the proxy has ended the connection");
    if (result < 0)
        return -1;
    if (peer->parser.status_code < 200 || peer->parser.status_code > 299) {
        char reason[48];
        snprintf(reason, sizeof reason, "the proxy makes no tunnel: status %d", (int)peer->parser.status_code);
        return aco__service_fail(ECONNREFUSED, CLIENT_CALL, reason);
    }
    aco__http_message_end(&peer->incoming);
    if (link->in.end > 0) /* before the handshake nobody may say anything */
        return aco__service_fail(EBADMSG, CLIENT_CALL, "the proxy has sent more than its response");
    aco__http_drop_input(link);
    aco__http_parse_by(&peer->incoming, &peer->parser, HTTP_RESPONSE);
    return 0;
}

/* Makes the stream of TLS. 0, or -1 and errno. */
ACO__SWITCHES static int begin_tls(aco__http_peer_t *peer, const aco__http_step_t *step)
{
    const aco_http_client_options_t *options = &peer->answer.client->options;
    aco__http_link_t *link = &peer->link;
    void *arg = step->needs_http1 && options->open_http1_arg ? options->open_http1_arg : options->open_arg;
    aco__http_link_use(link, options->open(link->own.fd, step->url->host, arg));
    return link->stream ? 0 : -1;
}

/* Finds out which version the server speaks. 0, or -1 and errno. */
static int choose_version(aco__http_peer_t *peer, const aco__http_step_t *step)
{
    aco_http_client_t *client = peer->answer.client;
    int is_http2 = client->options.prior_knowledge && !client->options.proxy_host && !step->needs_http1;
    if (peer->is_tls) {
        is_http2 = strcmp(aco_stream_protocol(peer->link.stream), "h2") == 0;
        if (!step->needs_http1)
            client->tls_is_http1 = !is_http2;
        else if (is_http2)
            return aco__service_fail(EPROTONOSUPPORT, CLIENT_CALL,
                                     "ALPN has chosen HTTP/2, the request needs HTTP/1.1");
    }
    return is_http2 ? aco__http2_speak(peer) : 0;
}

/* Connects for this request. NULL and errno. */
ACO__SWITCHES static aco__http_peer_t *connect_peer(aco_http_client_t *client, const aco__http_step_t *step,
                                                    const char *location)
{
    const aco__http_client_url_t *url = step->url;
    aco__http_peer_t *peer = dial_peer(client, url, location);
    int needs_tunnel = client->options.proxy_host && (url->is_tls || step->upgrade), error;
    if (!peer || ((!needs_tunnel || open_tunnel(peer, url, location) == 0) &&
                  (!url->is_tls || begin_tls(peer, step) == 0) && choose_version(peer, step) == 0))
        return peer;
    error = errno;
    aco__http_close_peer(peer);
    errno = error;
    return NULL;
}

/* A new connection for this request, within connect_time. NULL and errno. */
ACO__SWITCHES static aco__http_peer_t *new_peer(aco_http_client_t *client, const aco__http_step_t *step,
                                                const aco__http_host_t *place, const char *location)
{
    const int64_t time = client->options.connect_time;
    aco_scope_t scope;
    aco__http_peer_t *peer;
    aco__http_close_ended(client);
    aco__http_make_place(client, step->url, place);
    if (aco__http_begin_time(&scope, time, location) != 0)
        return NULL;
    peer = connect_peer(client, step, location);
    aco__http_end_time(&scope, time, !peer, "connect_time is over");
    return peer;
}

/* The response's head, within head_time. As aco__http_read_response(). */
ACO__SWITCHES static int await_response(aco__http_peer_t *peer, int is_head, const char *location)
{
    const int64_t time = peer->answer.client->options.head_time;
    aco_scope_t scope;
    int result;
    if (aco__http_begin_time(&scope, time, location) != 0)
        return -1;
    result = aco__http_read_response(peer, is_head, location);
    aco__http_end_time(&scope, time, result < 0, "head_time is over");
    return result;
}

static void fill_in(aco__http_peer_t *peer)
{
    const aco__http_incoming_t *in = &peer->incoming;
    peer->answer.is.status = in->parser->status_code;
    peer->answer.is.major = 1;
    peer->answer.is.minor = in->parser->http_minor;
    peer->answer.is.headers = peer->head.headers;
    peer->answer.is.header_count = peer->head.count;
    peer->answer.is.length = -1;
    peer->answer.is.is_decoded = 0;
    if (in->has_all)
        peer->answer.is.length = 0;
    else if (in->parser->flags & F_CONTENT_LENGTH)
        peer->answer.is.length = (int64_t)in->parser->content_length;
}

/* ---- Requests ---- */

static int check_call(const aco_http_call_t *call)
{
    const char *method = call->method ? call->method : "GET";
    if (!call->url || !aco__http_is_token(method, strlen(method)) || strlen(method) > 32 ||
        strcmp(method, "CONNECT") == 0)
        return aco__service_fail(EINVAL, CLIENT_CALL, "the method or the URL");
    if (!call->read_body && call->length < 0)
        return aco__service_fail(EINVAL, CLIENT_CALL, "the body's length");
    if (call->continue_time < 0)
        return aco__service_fail(EINVAL, CLIENT_CALL, "continue_time");
    if (ACO__RESERVED_IS_SET(call))
        return aco__service_fail(EINVAL, CLIENT_CALL, "a reserved field is not 0");
    if (call->trailer_count && aco__http_check_trailers(call->trailers, call->trailer_count, CLIENT_CALL) != 0)
        return -1;
    for (size_t i = 0; i < call->header_count; i++) {
        const char *name = call->headers[i].name, *value = call->headers[i].value;
        if (!aco__http_is_token(name, strlen(name)) || !aco__http_is_value(value, strlen(value)) ||
            aco__http_same(name, "host") || aco__http_same(name, "content-length") ||
            aco__http_same(name, "transfer-encoding") || aco__http_same(name, "connection"))
            return aco__service_fail(EINVAL, CLIENT_CALL,
                                     "a header that HTTP does not allow, or the client sends itself");
    }
    return 0;
}

/* One request and its response by HTTP/1. 0; 1: nothing has come before the end; -1 and errno. */
ACO__SWITCHES static int exchange_on(aco__http_peer_t *peer, const aco__http_step_t *step, const char *location)
{
    int result;
    peer->may_switch = step->upgrade != NULL;
    result = aco__http_send_request(peer, step, location);
    if (result > 0)
        result = peer->early == EARLY_END;
    /* A server that refuses a body may have answered before it was sent. */
    else if (result == 0 || (peer->link.is_broken && (errno == EPIPE || errno == ECONNRESET)))
        result = await_response(peer, strcmp(step->method, "HEAD") == 0, location);
    if (result == 0) {
        fill_in(peer);
        peer->incoming.is_persistent &= !step->upgrade;
    } else if (result > 0) {
        (void)aco__service_fail(ECONNRESET, CLIENT_CALL, "the connection ended before the response");
    }
    return result;
}

/* One request and its response on this connection, by somebody who has this place. As aco__http2_ask(). */
ACO__SWITCHES
static int ask_peer(aco__http_peer_t *peer, const aco__http_step_t *step, aco__http_host_t *place,
                    aco__http_answer_t **answer, const char *location)
{
    int result = -1, error;
    if (peer->http2)
        return aco__http2_ask(peer->http2, step, answer, location);
    if (step->streams)
        (void)aco__service_fail(EPROTONOSUPPORT, CLIENT_CALL, "the server does not speak HTTP/2");
    else
        result = exchange_on(peer, step, location);
    if (result == 0) {
        peer->place = place;
        *answer = &peer->answer;
        return 0;
    }
    error = errno;
    aco__http_close_peer(peer);
    errno = error;
    return result;
}

/* Whether a connection that is there may take it, also one of HTTP/2. */
static int may_be_http2(const aco__http_step_t *step)
{
    return !step->needs_http1 || (step->upgrade && !step->was_refused);
}

/* One request and its response by a connection of its own, by somebody who has this place. As aco__http2_ask(). */
ACO__SWITCHES
static int exchange_at(aco_http_client_t *client, const aco__http_step_t *step, aco__http_host_t *place,
                       aco__http_dial_t *dial, aco__http_answer_t **answer, const char *location)
{
    aco__http_peer_t *peer = may_be_http2(step) ? aco__http_kept_peer(client, step) : NULL;
    int was_kept = peer != NULL, is_http2, is_again, result;
    do {
        if (!peer)
            peer = new_peer(client, step, place, location);
        is_http2 = peer && peer->http2;
        if (is_http2)
            aco__http2_use(peer, place);
        if (dial)
            aco__http_end_dial(client, dial, peer ? 0 : errno);
        dial = NULL;
        result = peer ? ask_peer(peer, step, place, answer, location) : -1;
        if (is_http2)
            return result;
        is_again = result > 0 && was_kept && aco__http_may_repeat(step);
        was_kept = 0;
        peer = NULL;
    } while (is_again);
    if (result == 0)
        return 0;
    aco__http_leave_place(&client->places, place);
    return -1;
}

/* A connection that is in use, and takes this request, too; NULL: there is none. */
static aco__http2_peer_t *used_peer(const aco_http_client_t *client, const aco__http_step_t *step)
{
    aco__http2_peer_t *h = client->http2 && may_be_http2(step) ? aco__http2_used_peer(client, step->url) : NULL;
    return h && step->upgrade && !aco__http2_takes_websockets(h) ? NULL : h;
}

/* The same, by somebody who has no place yet. While it waits for one, another may make a connection for all. */
ACO__SWITCHES
static int exchange_apart(aco_http_client_t *client, const aco__http_step_t *step, aco__http_answer_t **answer,
                          const char *location)
{
    aco__http_dial_t *dial = NULL;
    aco__http_host_t *place;
    aco__http2_peer_t *h;
    int result = 0;
    while (!step->needs_http1 && aco__http_is_likely_http2(client, step->url) &&
           (result = aco__http_share_dial(client, step->url, &dial, location)) == 1)
        if ((h = used_peer(client, step)) != NULL)
            return aco__http2_ask(h, step, answer, location);
    if (result < 0)
        return -1;
    if (aco__http_take_place(&client->places, step->url->is_tls, aco__http_host_of(client, step->url),
                             aco__http_port_of(client, step->url), &place, location) != 0) {
        if (dial)
            aco__http_end_dial(client, dial, errno);
        return -1;
    }
    h = used_peer(client, step);
    if (!h)
        return exchange_at(client, step, place, dial, answer, location);
    aco__http_leave_place(&client->places, place);
    if (dial)
        aco__http_end_dial(client, dial, 0);
    return aco__http2_ask(h, step, answer, location);
}

/* Before the next of several tries: not all at once, and not for ever. 0, or -1 and errno. */
ACO__SWITCHES static int pause_between(int tries, const char *location)
{
    enum { MOST = 6, FIRST_MS = 10 };
    if (tries == MOST)
        return aco__service_fail(ECONNREFUSED, CLIENT_CALL, "the server refuses the request again and again");
    return tries > 1 ? aco_sleep_at(FIRST_MS * ACO_MILLISECOND << tries, location) : 0;
}

/* One request and its response. NULL and errno. */
ACO__SWITCHES static aco__http_answer_t *exchange(aco_http_client_t *client, aco__http_step_t *step,
                                                  const char *location)
{
    aco__http_answer_t *answer = NULL;
    int tries = 0, result;
    step->needs_http1 = step->upgrade != NULL;
    do {
        aco__http2_peer_t *h = used_peer(client, step);
        result = h ? aco__http2_ask(h, step, &answer, location) : exchange_apart(client, step, &answer, location);
        if (result == CLIENT_NEEDS_HTTP1)
            step->needs_http1 = step->was_refused = 1;
    } while (result > 0 && pause_between(++tries, location) == 0);
    return answer;
}

/* ---- The calls ---- */

static int is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* What a redirect makes of the request. 1: it is to be sent; 0: the caller gets the response; -1 and errno. */
static int follow(const aco_http_client_t *client, aco__http_step_t *step, const aco_http_response_t *response,
                  const aco__http_client_url_t *first)
{
    const aco_http_client_options_t *options = &client->options;
    const aco__http_client_url_t *url = step->url;
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
        return aco__service_fail(ELOOP, CLIENT_CALL, "too many redirects");
    if (aco__http_client_url_redirect(step->url, to, options->open != NULL) != 0)
        return -1;
    if (!aco__http_same(first->address, url->address) || strcmp(first->port, url->port) != 0 ||
        first->is_tls != url->is_tls)
        step->is_elsewhere = 1;
    return !(step->has_body && step->is_elsewhere) || options->sends_body_elsewhere;
}

/* Cookies, a redirect, decoding. 0; 1: the next request is to be made; -1 and errno. */
static int take_response(aco_http_client_t *client, aco__http_step_t *step, aco__http_answer_t *answer,
                         const aco__http_client_url_t *first)
{
    int goes_on = aco__http_take_cookies(client, step->url, &answer->is);
    if (goes_on == 0)
        goes_on = follow(client, step, &answer->is, first);
    return goes_on == 0 ? aco__http_begin_decoding(answer, step) : goes_on;
}

/* The response to the last of the requests. NULL and errno. */
ACO__SWITCHES
static aco_http_response_t *exchange_all(aco_http_client_t *client, aco__http_step_t *step,
                                         const aco__http_client_url_t *first, const char *location)
{
    for (int redirects = 0;; redirects++) {
        aco__http_answer_t *answer = exchange(client, step, location);
        int goes_on, error;
        if (!answer)
            return NULL;
        answer->is.redirects = redirects;
        goes_on = aco__http_add_hop(&step->hops, step->url->text, answer->is.status);
        if (goes_on == 0 && !step->streams)
            goes_on = take_response(client, step, answer, first);
        if (goes_on == 0) {
            answer->hops = step->hops;
            answer->is.url = answer->hops->url;
            return &answer->is;
        }
        error = errno;
        aco_http_response_end(&answer->is);
        errno = error;
        if (goes_on < 0)
            return NULL;
    }
}

/* The same, within total_time, which also the body has. */
ACO__SWITCHES
static aco_http_response_t *call_in_time(aco_http_client_t *client, aco__http_step_t *step,
                                         const aco__http_client_url_t *first, const char *location)
{
    const int64_t time = client->options.total_time, until = time ? aco_after(time) : 0;
    aco_http_response_t *response;
    aco_scope_t scope;
    if (aco__http_begin_time(&scope, time, location) != 0)
        return NULL;
    response = exchange_all(client, step, first, location);
    aco__http_end_time(&scope, time, !response, "total_time is over");
    if (response)
        aco__http_answer_of(response)->until = until;
    return response;
}

typedef struct call_memory { /* too large for a small stack */
    aco__http_client_url_t first, now;
    char user[CLIENT_USER], authorization[HTTP_BASIC(CLIENT_USER)];
    aco__http_traced_t traced; /* if somebody traces */
} call_memory_t;

/* Makes the value of Authorization of the URL's user. 0, or -1 and errno. */
static int authorize(call_memory_t *memory)
{
    char *user = memory->user;
    const char *colon = strchr(user, ':');
    ptrdiff_t n = aco__http_decode(user, user, strlen(user), 0);
    memory->authorization[0] = 0;
    if (n < 0)
        return aco__service_fail(EINVAL, CLIENT_CALL, "the URL's user");
    if (n && !colon)
        user[n++] = ':';
    if (n)
        aco__http_put_basic(memory->authorization, user, (size_t)n);
    return 0;
}

/* The same, told to who traces, if there is somebody. */
ACO__SWITCHES
static aco_http_response_t *call_traced(aco_http_client_t *client, aco__http_step_t *step, call_memory_t *memory,
                                        const char *location)
{
    const aco__http_tracer_t *tracer = __atomic_load_n(&aco__http_tracer, __ATOMIC_ACQUIRE);
    aco_http_response_t *response;
    if (aco_likely(!tracer))
        return call_in_time(client, step, &memory->first, location);
    memory->traced = (aco__http_traced_t){NULL, {{NULL, NULL}, {NULL, NULL}}, ""};
    tracer->call_begins(&memory->traced, step->method, memory->first.text, step->streams);
    step->traced = &memory->traced;
    response = call_in_time(client, step, &memory->first, location);
    tracer->call_ends(&memory->traced, response ? response->status : 0);
    return response;
}

aco_http_response_t *aco__http_call_with(aco_http_client_t *client, const aco_http_call_t *call, aco__http_step_t step,
                                         const char *location)
{
    size_t sz = sizeof(call_memory_t);
    call_memory_t *memory;
    aco_http_response_t *response = NULL;
    if (!client || !call) {
        aco__service_fail(EINVAL, CLIENT_CALL, "the client or the call is NULL");
        return NULL;
    }
    if (check_call(call) != 0)
        return NULL;
    client = aco__http_client_here(client);
    memory = client ? aco__service_allocate(&sz, CLIENT_CALL) : NULL;
    if (!memory)
        return NULL;
    if (aco__http_client_url_set(&memory->first, call->url, client->options.open != NULL, memory->user) == 0 &&
        authorize(memory) == 0) {
        step.call = call;
        step.url = &memory->now;
        step.authorization = memory->authorization;
        step.method = call->method ? call->method : "GET";
        step.has_body = !step.streams && (call->read_body || call->length > 0);
        memory->now = memory->first;
        response = call_traced(client, &step, memory, location);
        if (!response)
            aco__http_free_hops(step.hops);
    }
    aco__service_free(memory, sz);
    return response;
}

aco_http_response_t *aco_http_call_at(aco_http_client_t *client, const aco_http_call_t *call, const char *location)
{
    return aco__http_call_with(client, call, (aco__http_step_t){0}, location);
}

const char *aco_http_response_redirect(const aco_http_response_t *response, int i, int *status)
{
    const aco__http_hop_t *hop = ((const aco__http_answer_t *)(const void *)response)->hops;
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

static ssize_t decoding_fails(aco__http_answer_t *answer, int error, const char *reason)
{
    answer->decoder_error = error;
    return aco__service_fail(error, read_name, reason);
}

/* What comes. As aco_http_response_read(). */
ACO__SWITCHES static ssize_t read_coded(aco__http_answer_t *answer, void *p, size_t n, const char *location)
{
    if (answer->http2)
        return aco__http2_read_call(answer->http2, p, n, read_name, location);
    return aco__http_read_body(&((aco__http_peer_t *)(void *)answer)->incoming, p, n, read_name, location);
}

/* What is decoded next. As aco_http_response_read(). */
ACO__SWITCHES static ssize_t read_decoded(aco__http_answer_t *answer, void *p, size_t n, const char *location)
{
    const int64_t most = answer->client->options.max_decoded;
    ssize_t got = 0;
    if (n == 0)
        return 0;
    if (answer->decoder_error) {
        errno = answer->decoder_error;
        return -1;
    }
    while (got == 0) {
        char *room = aco__http_decoder_room(answer->decoder);
        ssize_t came = room ? read_coded(answer, room, HTTP_CODED, location) : 0;
        if (came < 0)
            return -1;
        if (room)
            aco__http_decoder_filled(answer->decoder, (size_t)came);
        got = aco__http_decoded(answer->decoder, p, n);
        if (got == 0 && aco__http_decoder_is_done(answer->decoder))
            return 0;
    }
    if (got < 0)
        return errno == ENOMEM ? decoding_fails(answer, ENOMEM, "memory to decode the body")
                               : decoding_fails(answer, EBADMSG, "the body's Content-Encoding is wrong");
    answer->decoded += got;
    return answer->decoded <= most ? got : decoding_fails(answer, EFBIG, "the decoded body is beyond max_decoded");
}

ACO__SWITCHES static ssize_t read_response_body(aco__http_answer_t *answer, void *p, size_t n, const char *location)
{
    return answer->decoder ? read_decoded(answer, p, n, location) : read_coded(answer, p, n, location);
}

ssize_t aco_http_response_read_at(aco_http_response_t *response, void *p, size_t n, const char *location)
{
    aco__http_answer_t *answer = aco__http_answer_of(response);
    aco_scope_t scope;
    ssize_t got;
    int error;
    if (!answer->until)
        return read_response_body(answer, p, n, location);
    if (aco_scope_begin_at(&scope, answer->until, location) != 0)
        return -1;
    got = read_response_body(answer, p, n, location);
    error = errno;
    (void)aco_scope_end(&scope);
    errno = error;
    if (got < 0 && scope.error == ETIMEDOUT)
        (void)aco__service_fail(ETIMEDOUT, read_name, "total_time is over");
    return got;
}

/* Keeps the connection if the response's end has come; else closes it. */
static void release_peer(aco__http_peer_t *peer)
{
    aco__http_incoming_t *in = &peer->incoming;
    in->must_not_wait = 1;
    while (!in->has_all)
        if (aco__http_skip_body(in, "aco_http_response_end", NULL) <= 0)
            break;
    in->must_not_wait = 0;
    if (!in->has_all || !in->is_persistent || aco__http_is_cut(&peer->outgoing) || in->body_error) {
        aco__http_close_peer(peer);
        return;
    }
    aco__http_message_end(in);
    aco__http_drop_trailers(&peer->trailers);
    if (peer->link.in.end > 0) { /* bytes that nobody asked for */
        aco__http_close_peer(peer);
        return;
    }
    aco__http_drop_input(&peer->link);
    aco__http_keep_peer(peer->answer.client, peer);
}

void aco_http_response_end(aco_http_response_t *response)
{
    aco__http_answer_t *answer = aco__http_answer_of(response);
    aco__http_peer_t *peer = (aco__http_peer_t *)(void *)response;
    aco_http_client_t *client;
    aco__http_host_t *place;
    if (!response)
        return;
    aco__http_free_hops(answer->hops);
    answer->hops = NULL;
    aco__http_decoder_free(answer->decoder);
    answer->decoder = NULL;
    answer->until = 0;
    if (answer->http2) {
        aco__http2_end_call(answer->http2);
        return;
    }
    client = answer->client;
    place = peer->place;
    release_peer(peer);
    aco__http_leave_place(&client->places, place);
}
