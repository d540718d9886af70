/* Heads of a client's requests and responses in HTTP/2. nghttp2 has checked that the fields are those of a response. */
#ifdef ACO_CONFIG_HTTP2

#include "http/client_http2.h"
#include "http/cookie_jar_internal.h"
#include "http/text.h"

#include <stdio.h>
#include <string.h>

/* ---- Requests ---- */

enum { C2_OWN_FIELDS = 16 }; /* of the client itself, at most */

typedef struct c2_head {
    nghttp2_nv *fields;
    size_t n, room, sz, size; /* fields; at most; bytes of memory; bytes as HPACK counts them */
    char authority[CLIENT_HOST + CLIENT_PORT + 3], length[24];
    char cookies[HTTP_OUT];
} c2_head_t;

static void c2_put_part(c2_head_t *head, const char *name, size_t name_n, const char *value, size_t value_n)
{
    ACO__ASSERT(head->n < head->room);
    head->fields[head->n++] = aco__http2_field(name, name_n, value, value_n);
    head->size += name_n + value_n + HTTP2_FIELD;
}

static void c2_put(c2_head_t *head, const char *name, const char *value)
{
    c2_put_part(head, name, strlen(name), value, strlen(value));
}

/* Of the lines that ask for WebSocket by HTTP/1.1, those that HTTP/2 has, too (RFC 8441, 5). */
static void c2_put_upgrade(c2_head_t *head, const char *line)
{
    for (size_t n; line && *line; line += n + 2) {
        const char *value = strchr(line, ':') + 2;
        const size_t name_n = (size_t)(value - 2 - line);
        n = strcspn(line, "\r");
        if (!aco__http_is(line, name_n, "connection") && !aco__http_is(line, name_n, "upgrade") &&
            !aco__http_is(line, name_n, "sec-websocket-key"))
            c2_put_part(head, line, name_n, value, (size_t)(line + n - value));
    }
}

/* A header of the client itself, if the call has none of this name. */
static void c2_put_own(c2_head_t *head, const aco__http_step_t *step, const char *name, const char *value)
{
    const char *own;
    if (value && *value && !aco__http_find(step->call->headers, step->call->header_count, name, &own))
        c2_put(head, name, value);
}

static int c2_is_of_connection(const aco_http_header_t *header)
{
    return aco__http2_is_of_connection(header->name, strlen(header->name)) ||
           (aco__http_same(header->name, "te") && !aco__http_same(header->value, "trailers"));
}

/* 0, or -1 and errno. */
static int c2_put_cookies(c2_head_t *head, const aco_http_client_t *client, const aco__http_step_t *step)
{
    const aco_http_call_t *call = step->call;
    const char *own;
    if (!client->options.jar ||
        (!step->is_elsewhere && aco__http_find(call->headers, call->header_count, "Cookie", &own)))
        return 0;
    if (aco__cookie_jar_put(client->options.jar, step->url->text, head->cookies, sizeof head->cookies) < 0)
        return -1;
    if (*head->cookies)
        c2_put(head, "cookie", head->cookies);
    return 0;
}

/* The call's headers, and the client's own. 0, or -1 and errno. */
static int c2_put_headers(c2_head_t *head, const aco_http_client_t *client, const aco__http_step_t *step)
{
    const aco_http_call_t *call = step->call;
    for (size_t i = 0; i < call->header_count; i++)
        if (aco__http_is_sent(step, call->headers[i].name) && !c2_is_of_connection(&call->headers[i]))
            c2_put(head, call->headers[i].name, call->headers[i].value);
    c2_put_upgrade(head, step->upgrade);
    if (c2_put_cookies(head, client, step) != 0)
        return -1;
    if (!step->is_elsewhere)
        c2_put_own(head, step, "authorization", step->authorization);
    if (aco__http_wants_coded(client, step))
        c2_put_own(head, step, "accept-encoding", aco__http_codings());
    if (step->has_body && call->continue_time)
        c2_put_own(head, step, "expect", "100-continue");
    for (size_t i = 0; step->traced && i < 2 && step->traced->headers[i].name; i++)
        c2_put_own(head, step, step->traced->headers[i].name, step->traced->headers[i].value);
    return 0;
}

static void c2_put_pseudo(c2_head_t *head, const aco__http_step_t *step)
{
    const aco__http_client_url_t *url = step->url;
    int is_ip6 = strchr(url->host, ':') != NULL, has_port = strcmp(url->port, url->is_tls ? "443" : "80") != 0;
    (void)snprintf(head->authority, sizeof head->authority, "%s%s%s%s%s", is_ip6 ? "[" : "", url->host,
                   is_ip6 ? "]" : "", has_port ? ":" : "", has_port ? url->port : "");
    c2_put(head, ":method", step->upgrade ? "CONNECT" : step->method);
    if (step->upgrade)
        c2_put(head, ":protocol", "websocket");
    c2_put(head, ":scheme", url->is_tls ? "https" : "http");
    c2_put(head, ":authority", step->authority ? step->authority : head->authority);
    c2_put(head, ":path", url->text + url->target_at);
}

static void c2_put_length(c2_head_t *head, const aco__http_step_t *step, int64_t length)
{
    if (length < 0 || !(step->has_body || strcmp(step->method, "POST") == 0 || strcmp(step->method, "PUT") == 0))
        return;
    (void)snprintf(head->length, sizeof head->length, "%lld", (long long)length);
    c2_put(head, "content-length", head->length);
}

/* 0, or -1 and errno. */
static int c2_submit(aco__http2_call_t *s, const c2_head_t *head, nghttp2_data_source_read_callback give)
{
    nghttp2_data_provider provider = {{.ptr = s}, give};
    nghttp2_session *session = s->h->wire.session;
    if (head->size > nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE))
        return aco__service_fail(EMSGSIZE, CLIENT_CALL, "the headers are more than the server takes");
    s->id = nghttp2_submit_request(session, NULL, head->fields, head->n, give ? &provider : NULL, s);
    if (s->id < 0)
        return aco__service_fail(s->id == NGHTTP2_ERR_NOMEM ? ENOMEM : ECONNRESET, CLIENT_CALL,
                                 nghttp2_strerror(s->id));
    s->is_granted = 0;
    s->is_open = 1;
    s->is_whole = !give;
    return 0;
}

int aco__http2_submit_call(aco__http2_call_t *s, const aco__http_step_t *step, nghttp2_data_source_read_callback give)
{
    size_t fields = step->call->header_count + C2_OWN_FIELDS, sz = sizeof(c2_head_t) + fields * sizeof(nghttp2_nv);
    const int is_open = step->streams || step->upgrade;
    int64_t length = step->has_body ? step->call->length : is_open ? -1 : 0;
    c2_head_t *head = aco__service_allocate(&sz, CLIENT_CALL);
    int result;
    if (!head)
        return -1;
    head->sz = sz;
    head->room = fields;
    head->n = head->size = 0;
    head->fields = (nghttp2_nv *)(void *)(head + 1);
    c2_put_pseudo(head, step);
    c2_put_length(head, step, length);
    s->left = length;
    result = c2_put_headers(head, s->h->client, step);
    if (result == 0)
        result = c2_submit(s, head, step->has_body || is_open ? give : NULL);
    aco__service_free(head, head->sz);
    return result;
}

int aco__http2_keep_trailers(aco__http2_call_t *s, const aco_http_header_t *trailers, size_t n)
{
    size_t sz = n * sizeof(nghttp2_nv);
    char *text;
    if (!n)
        return 0;
    for (size_t i = 0; i < n; i++)
        sz += strlen(trailers[i].name) + strlen(trailers[i].value);
    s->own_trailers = aco__service_allocate(&sz, CLIENT_CALL);
    if (!s->own_trailers)
        return -1;
    s->own_trailers_sz = sz;
    text = (char *)(s->own_trailers + n);
    for (size_t i = 0; i < n; i++) {
        const size_t name_n = strlen(trailers[i].name), value_n = strlen(trailers[i].value);
        char *value = aco__http_put(text, trailers[i].name, name_n);
        s->own_trailers[i] = aco__http2_field(text, name_n, value, value_n);
        text = aco__http_put(value, trailers[i].value, value_n);
    }
    s->own_trailers_n = n;
    return 0;
}

/* ---- Responses ---- */

/* Text with a 0 behind it. NULL: no memory. */
static char *c2_keep(aco__http2_call_t *s, const char *text, size_t n)
{
    char *kept = s->text;
    if (n >= (size_t)(s->text_end - s->text)) {
        kept = aco__block_new(&s->more, n < HTTP2_TEXT ? 2 * HTTP2_TEXT : n + 1, CLIENT_CALL);
        if (!kept)
            return NULL;
        s->text_end = (char *)s->more + s->more->sz;
    }
    *aco__http_put(kept, text, n) = 0;
    s->text = kept + n + 1;
    return kept;
}

/* Room for one more field. The caller may have the array that there was. 0; -1: no memory. */
static int c2_grow_headers(aco__http2_call_t *s)
{
    const size_t count = s->count + s->trailers;
    aco_http_header_t *larger;
    if (count < s->most)
        return 0;
    larger = aco__block_new(&s->more, 2 * count * sizeof *larger, CLIENT_CALL);
    if (!larger)
        return -1;
    memcpy(larger, s->headers, count * sizeof *larger);
    s->headers = larger;
    s->most = 2 * count;
    return 0;
}

void aco__http2_begin_response(aco__http2_call_t *s)
{
    s->has_any = 1;
    if (s->has_head)
        return;
    s->count = 0; /* what an interim response had */
    s->answer.is.status = 0;
}

static int c2_status_of(const char *value, size_t n)
{
    int status = 0;
    for (size_t i = 0; i < n && i < 3 && value[i] >= '0' && value[i] <= '9'; i++)
        status = 10 * status + value[i] - '0';
    return status;
}

int aco__http2_add_response_field(aco__http2_call_t *s, const char *name, size_t name_n, const char *value,
                                  size_t value_n)
{
    const aco_http_client_options_t *options = &s->answer.client->options;
    aco_http_header_t header = {NULL, NULL};
    s->head_n += name_n + value_n + HTTP2_FIELD; /* interim responses and trailers count, too */
    if (s->head_n > (size_t)options->max_head)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (name_n && *name == ':') {
        s->answer.is.status = c2_status_of(value, value_n);
        return 0;
    }
    if (s->count + s->trailers == (size_t)options->max_headers)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (c2_grow_headers(s) == 0)
        header.name = c2_keep(s, name, name_n);
    header.value = header.name ? c2_keep(s, value, value_n) : NULL;
    if (!header.value) {
        aco__http2_call_fails(s, ENOMEM, "memory for the response");
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    s->headers[s->count + s->trailers] = header;
    if (s->has_head)
        s->trailers++;
    else
        s->count++;
    return 0;
}

int aco__http2_end_response_head(aco__http2_call_t *s)
{
    aco_http_response_t *r = &s->answer.is;
    if (s->has_head)
        return 0;
    if (r->status < 200) {
        s->may_send |= r->status == 100;
        return r->status < 100 || r->status == 101 ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
    }
    s->has_head = 1;
    return 0;
}

#else
typedef int aco__http_client_http2_head_is_empty;
#endif
