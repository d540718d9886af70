/* Heads of requests of HTTP/2. nghttp2 has checked that the fields are those of a request, and their characters. */
#ifdef ACO_CONFIG_HTTP2

#include "http/http2.h"
#include "http/text.h"

#include <string.h>

enum {
    H2_BOMB = 4, /* times max_head: such a head is not read */
    H2_MEMORY = 1024, /* bytes of a request: with its fields, those of a plain call of gRPC */
    H2_MORE_MEMORY = 1024, /* then for text of the head, together */
    H2_FIELDS = 8 /* of which there is room at first */
};

/* ---- Records ---- */

static void h2_link(aco__http2_t *h, aco__http2_stream_t *s)
{
    s->next = h->first;
    s->place = &h->first;
    if (s->next)
        s->next->place = &s->next;
    h->first = s;
    h->streams++;
    h->server->streams++;
}

static void h2_unlink(aco__http2_stream_t *s)
{
    ACO__ASSERT(*s->place == s && (!s->next || s->next->place == &s->next));
    *s->place = s->next;
    if (s->next)
        s->next->place = s->place;
    s->h->streams--;
    s->h->ending -= s->is_ending;
    s->h->server->streams--;
}

void aco__http2_release(aco__http2_stream_t *s)
{
    aco__http2_t *h = s->h;
    if (s->is_open || s->has_task)
        return;
    h2_unlink(s);
    aco__http_request_end(&s->x);
    if (s->trailers)
        aco__service_free(s->trailers, s->trailers_room);
    h->server->buffered -= s->body.end - s->body.begin;
    aco__http2_free_buffer(&s->body);
    aco__http2_free_buffer(&s->data.out);
    aco__service_free(s, s->sz);
    if (h->streams)
        return;
    h->idle_since = aco_now();
    if (h->leaving || h->server->is_ending)
        aco__http2_wake_reader(h);
}

/* NULL: no memory. */
static aco__http2_stream_t *h2_new_stream(aco__http2_t *h, int32_t id)
{
    size_t sz = sizeof(aco__http2_stream_t) + H2_MEMORY;
    aco__http2_stream_t *s = aco__service_allocate(&sz, "aco_http_serve");
    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    s->sz = sz;
    s->h = h;
    s->id = id;
    s->headers = (aco_http_header_t *)(void *)(s + 1);
    s->most = H2_FIELDS;
    s->x.server = h->server;
    s->x.stream = s;
    aco__http_request_begin(&s->x, (char *)(s->headers + H2_FIELDS));
    s->x.end = (char *)s + sz;
    s->x.is.fd = h->c->link.own.fd;
    s->x.is.stream = h->c->link.stream;
    s->x.is.major = 2;
    h2_link(h, s);
    return s;
}

aco__http2_stream_t *aco__http2_begin_stream(aco__http2_t *h, int32_t id)
{
    const aco_http_server_options_t *options = &h->server->options;
    aco__http2_stream_t *s = NULL;
    if (h->streams - h->ending >= options->max_streams) /* handlers of streams that the client has reset count, too */
        return NULL;
    /* After a GOAWAY, even if it has not been sent yet, the client may ask others the same. */
    if (h->leaving != HTTP2_LEAVES &&
        (options->max_streams_in_all <= 0 || h->server->streams < (size_t)options->max_streams_in_all))
        s = h2_new_stream(h, id);
    if (!s) {
        h->refused++;
        return NULL;
    }
    s->is_open = 1;
    s->max_body = options->max_body;
    s->body_time = options->body_time;
    (void)nghttp2_session_set_stream_user_data(h->wire.session, id, s);
    if (options->max_requests > 0 && ++h->requests >= (unsigned)options->max_requests)
        aco__http2_leave(h);
    return s;
}

/* ---- Fields ---- */

static void h2_refuse(aco__http2_stream_t *s, int status)
{
    if (!s->refusal)
        s->refusal = status;
}

/* Memory of the request. NULL: there is none, and the request is refused. */
static void *h2_allocate(aco__http2_stream_t *s, size_t n)
{
    void *p = aco_http_request_allocate(&s->x.is, n);
    if (!p)
        h2_refuse(s, 503);
    return p;
}

/* Text with a 0 behind it, side by side with others. NULL: no memory. */
static char *h2_keep(aco__http2_stream_t *s, const char *text, size_t n)
{
    aco__http_exchange_t *x = &s->x;
    char *kept = x->at;
    if (n >= (size_t)(x->end - x->at)) {
        const size_t room = n < H2_MORE_MEMORY / 2 ? H2_MORE_MEMORY : n + 1;
        kept = h2_allocate(s, room);
        if (!kept)
            return NULL;
        x->end = kept + room;
    }
    *aco__http_put(kept, text, n) = 0;
    x->at = kept + n + 1;
    return kept;
}

/* Room for one more field. 0, or -1: the request is refused. */
static int h2_grow_headers(aco__http2_stream_t *s)
{
    const size_t limit = (size_t)s->h->server->options.max_headers, most = 2 * s->most < limit ? 2 * s->most : limit;
    aco_http_header_t *larger;
    if (s->count >= limit) {
        h2_refuse(s, 431);
        return -1;
    }
    if (s->count < s->most)
        return 0;
    larger = h2_allocate(s, most * sizeof *larger);
    if (!larger)
        return -1;
    memcpy(larger, s->headers, s->count * sizeof *larger);
    s->headers = larger;
    s->most = most;
    return 0;
}

static void h2_add_header(aco__http2_stream_t *s, const char *name, size_t name_n, const char *value, size_t value_n)
{
    if (h2_grow_headers(s) != 0)
        return;
    name = h2_keep(s, name, name_n);
    value = name ? h2_keep(s, value, value_n) : NULL;
    if (!value)
        return;
    s->headers[s->count].name = name;
    s->headers[s->count++].value = value;
}

/* nghttp2 knows these names, and lets no others pass: their lengths tell them apart, but for two. */
static void h2_add_pseudo(aco__http2_stream_t *s, const char *name, size_t name_n, const char *value, size_t value_n)
{
    const char **field = name_n == sizeof ":path" - 1        ? &s->x.is.target
                         : name_n == sizeof ":authority" - 1 ? &s->authority
                         : name_n == sizeof ":protocol" - 1  ? &s->protocol
                         : name[1] == 'm'                    ? &s->x.is.method
                                                             : NULL; /* ":scheme" */
    const char *kept = field ? h2_keep(s, value, value_n) : NULL;
    if (kept)
        *field = kept;
}

static int h2_keep_trailer(aco__http2_stream_t *s, const char *name, size_t name_n, const char *value, size_t value_n)
{
    aco__http_trailers_t *trailers = &s->x.trailers;
    return aco__http_add_trailer(trailers, name, name_n, HTTP_IN_NAME) == 0 &&
                   aco__http_add_trailer(trailers, value, value_n, HTTP_IN_VALUE) == 0 &&
                   aco__http_add_trailer(trailers, "", 0, HTTP_BEHIND_VALUE) == 0
               ? 0
               : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

int aco__http2_add_field(aco__http2_stream_t *s, const char *name, size_t name_n, const char *value, size_t value_n)
{
    size_t most = (size_t)s->h->server->options.max_head;
    s->head_n += name_n + value_n + HTTP2_FIELD; /* trailers count, too */
    if (s->head_n > H2_BOMB * most)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (s->head_n > most)
        h2_refuse(s, aco__http_is(name, name_n, ":path") ? 414 : 431);
    if (s->has_head) {
        if (s->head_n > most)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        return s->has_task ? h2_keep_trailer(s, name, name_n, value, value_n) : 0;
    }
    if (s->refusal)
        return 0;
    if (name_n && *name == ':')
        h2_add_pseudo(s, name, name_n, value, value_n);
    else
        h2_add_header(s, name, name_n, value, value_n);
    return 0;
}

/* ---- What they mean ---- */

/* A client may send its cookies in several fields; handlers see one (RFC 9113, 8.2.3). */
static void h2_join_cookies(aco__http2_stream_t *s)
{
    size_t n = 0, cookies = 0, kept = 0;
    char *whole, *at;
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->headers[i].name, "cookie") == 0) {
            n += strlen(s->headers[i].value) + 2;
            cookies++;
        }
    if (cookies < 2)
        return;
    whole = at = h2_allocate(s, n);
    if (!whole)
        return;
    for (size_t i = 0; i < s->count; i++) {
        aco_http_header_t header = s->headers[i];
        int is_cookie = strcmp(header.name, "cookie") == 0, is_first = is_cookie && at == whole;
        if (is_cookie)
            at = aco__http_put(at == whole ? at : HTTP_PUT(at, "; "), header.value, strlen(header.value));
        if (is_first)
            header.value = whole;
        if (!is_cookie || is_first)
            s->headers[kept++] = header;
    }
    *at = 0;
    s->count = kept;
}

/* The host, which handlers may also look for among the headers. 0; or the status with which to refuse the request. */
static int h2_take_host(aco__http2_stream_t *s)
{
    const char *host;
    size_t hosts = aco__http_find(s->headers, s->count, "host", &host);
    if (hosts > 1 || (hosts && s->authority && strcmp(host, s->authority) != 0))
        return 400;
    if (!hosts && s->authority)
        h2_add_header(s, "host", 4, s->authority, strlen(s->authority));
    s->x.is.host = s->authority ? s->authority : hosts ? host : "";
    if (!*s->x.is.host || !aco__http_is_authority(s->x.is.host, strlen(s->x.is.host)))
        return 400;
    return 0;
}

/* Also counts what nghttp2 has checked: the length is that of the data, or the stream is reset. */
static void h2_take_length(aco__http2_stream_t *s, int has_body)
{
    const char *length;
    s->x.is.length = has_body ? -1 : 0;
    if (!has_body || !aco__http_find(s->headers, s->count, "content-length", &length))
        return;
    s->x.is.length = 0;
    for (; *length >= '0' && *length <= '9'; length++)
        if (s->x.is.length <= (INT64_MAX - 9) / 10)
            s->x.is.length = 10 * s->x.is.length + *length - '0';
}

/* 0; or the status with which to refuse the request. */
static int h2_understand(aco__http2_stream_t *s)
{
    const aco_http_server_options_t *options = &s->h->server->options;
    aco__http_exchange_t *x = &s->x;
    const char *expect;
    size_t expects;
    int status;
    if (strcmp(x->is.method, "CONNECT") == 0) {
        if (!s->protocol || !aco__http_same(s->protocol, "websocket"))
            return 501;
        x->is.method = "GET"; /* as over HTTP/1.1: the same route */
        x->is_connect = 1;
    }
    if ((status = h2_take_host(s)) != 0)
        return status;
    if (options->max_body >= 0 && x->is.length > options->max_body)
        return 413;
    expects = aco__http_find(s->headers, s->count, "expect", &expect);
    if (expects && (expects > 1 || !aco__http_same(expect, "100-continue")))
        return 417;
    s->may_continue = expects && !s->has_all;
    if (*x->is.target != '/' && strcmp(x->is.target, "*") != 0)
        return 400;
    return aco__http_understand_target(x);
}

void aco__http2_end_head(aco__http2_stream_t *s, int has_body)
{
    s->has_head = 1;
    s->x.is_head = strcmp(s->x.is.method, "HEAD") == 0;
    h2_join_cookies(s);
    h2_take_length(s, has_body);
    if (!s->refusal)
        h2_refuse(s, h2_understand(s));
    s->x.is.headers = s->headers;
    s->x.is.header_count = s->count;
}

#else
typedef int aco__http2_head_is_empty;
#endif
