/* Requests: what their heads mean, and the calls by which handlers look at them. */
#include "http/request.h"
#include "http/server.h"
#include "http/text.h"

#include "aco/detail/for_grpc.h"

#include <stdio.h>
#include <string.h>

/* ---- Memory ---- */

void aco__http_request_begin(aco__http_exchange_t *x, char *arena)
{
    ACO__ASSERT(!x->blocks && !x->trailers.bytes); /* nothing is left of the last request */
    memset(&x->is, 0, sizeof x->is);
    memset(&x->reply, 0, sizeof x->reply);
    x->is.method = x->is.target = x->is.path = x->is.query = x->is.host = "";
    x->is.began = aco_now();
    x->is_head = x->is_connect = x->is_seen = x->client_left = 0;
    x->match.param_count = x->match.allow_count = 0;
    x->match.in_handler = 1; /* until there is middleware */
    x->watch = NULL;
    x->drain = NULL;
    x->span = NULL;
    x->websocket = NULL;
    x->at = arena;
    x->end = arena + HTTP_ARENA;
    x->all = NULL;
    x->all_n = x->all_room = 0;
    x->trailers.at = HTTP_BEHIND_VALUE; /* of one that was cut there may be no bytes */
}

void aco__http_free_encoder(aco__http_exchange_t *x, aco__http_encoder_t *encoder)
{
    if (!encoder)
        return;
    aco__http_encoder_end(encoder);
    x->server->encoders--;
}

void aco__http_free_memory(aco__http_exchange_t *x)
{
    aco__http_drop_trailers(&x->trailers);
    aco__http_free_encoder(x, x->reply.encoder); /* it is in a block */
    x->reply.encoder = NULL;
    aco__blocks_free(&x->blocks);
}

static void *allocate(aco__http_exchange_t *x, size_t n, const char *call)
{
    const size_t align = sizeof(void *) * 2;
    char *p = x->at + (-(uintptr_t)x->at & (align - 1));
    ACO__ASSERT(x->at <= x->end);
    if (p <= x->end && n <= (size_t)(x->end - p)) {
        x->at = p + n;
        return p;
    }
    return aco__block_new(&x->blocks, n, call);
}

void *aco_http_request_allocate(aco_http_request_t *request, size_t n)
{
    return allocate(aco__http_exchange_of(request), n, "aco_http_request_allocate");
}

/* ---- The head ---- */

/* Takes "http://host" off the target, and stores the host. 0; or the status with which to refuse the request. */
static int take_authority(aco__http_exchange_t *x, const char **whole)
{
    const char *target = *whole;
    size_t scheme = aco__http_is(target, strlen(target) < 7 ? 0 : 7, "http://")    ? 7
                    : aco__http_is(target, strlen(target) < 8 ? 0 : 8, "https://") ? 8
                                                                                   : 0;
    const char *host = target + scheme;
    size_t n = strcspn(host, "/?");
    char *copy;
    if (!scheme || !n || !aco__http_is_authority(host, n))
        return 400;
    copy = allocate(x, n + 1, "aco_http_serve");
    if (!copy)
        return 500;
    *aco__http_put(copy, host, n) = 0;
    x->is.host = copy;
    *whole = host + n;
    return 0;
}

int aco__http_understand_target(aco__http_exchange_t *x)
{
    const char *target = x->is.target;
    size_t n;
    const unsigned has = aco__http_look_at_target(target, &n);
    ptrdiff_t decoded;
    char *path;
    int status;
    if (has & HTTP_TARGET_IS_WRONG)
        return 400;
    if (strcmp(target, "*") == 0) {
        x->is.path = target;
        x->is.query = "";
        return strcmp(x->is.method, "OPTIONS") == 0 ? 0 : 400;
    }
    if (*target != '/' && (status = take_authority(x, &target)) != 0)
        return status;
    n -= (size_t)(target - x->is.target);
    if (aco_unlikely(has & HTTP_TARGET_HAS_QUERY)) {
        n = strcspn(target, "?");
        x->is.query = target + n + 1;
    }
    path = allocate(x, n + 2, "aco_http_serve");
    if (!path)
        return 500;
    if (n == 0) { /* "http://host" */
        memcpy(path, "/", 2);
        x->is.path = path;
        return 0;
    }
    if (aco_likely(!(has & (HTTP_TARGET_HAS_ESCAPES | HTTP_TARGET_HAS_DOTS)))) {
        *aco__http_put(path, target, n) = 0;
        x->is.path = path;
        return 0;
    }
    decoded = aco__http_decode(path, target, n, 0);
    if (decoded < 0 || (x->server->options.no_escaped_slashes && aco__http_has_escaped_slash(target, n)))
        return 400;
    path[decoded] = 0;
    x->is.path = path;
    return aco__http_has_dots(path) ? 400 : 0;
}

/* ---- For handlers ---- */

const char *aco_http_request_header(const aco_http_request_t *request, const char *name)
{
    const char *value;
    (void)aco__http_find(request->headers, request->header_count, name, &value);
    return value;
}

const char *aco_http_request_query(aco_http_request_t *request, const char *name)
{
    static const char call[] = "aco_http_request_query";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    size_t name_n = strlen(name), n;
    char *value = NULL;
    for (const char *at = request->query; *at; at += n + (at[n] != 0)) {
        size_t key = strcspn(at, "=&");
        ptrdiff_t decoded;
        n = strcspn(at, "&");
        if (key < name_n)
            continue;
        if (!value && !(value = allocate(x, strlen(at), call))) /* for names, and then for the value and its end */
            return NULL;
        if (aco__http_decode(value, at, key, 1) != (ptrdiff_t)name_n || memcmp(value, name, name_n) != 0)
            continue;
        decoded = key < n ? aco__http_decode(value, at + key + 1, n - key - 1, 1) : 0;
        if (decoded < 0) {
            aco__service_fail(EINVAL, call, "the value has a wrong escape");
            return NULL;
        }
        value[decoded] = 0;
        return value;
    }
    errno = 0;
    return NULL;
}

/* ---- Trailers ---- */

const char *aco_http_request_trailer(const aco_http_request_t *request, const char *name)
{
    return aco__http_find_trailer(&aco__http_exchange_of(request)->trailers, name);
}

/* ---- The body ---- */

ssize_t aco_http_request_read_at(aco_http_request_t *request, void *p, size_t n, const char *location)
{
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    return x->version->read(x, p, n, "aco_http_request_read", location);
}

void aco_http_request_limit_body(aco_http_request_t *request, int64_t max_body, int64_t body_time)
{
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    x->version->limit_body(x, max_body, body_time < 0 ? ACO_FOREVER : body_time);
}

/* Makes room for more of the text, or for all of it if its length is known. 0, or -1 and errno. */
static int grow(aco__http_exchange_t *x, size_t most, const char *call)
{
    size_t room = x->all_room, wanted = room ? room < most / 2 ? 2 * room : most : most < 4096 ? most : 4096;
    char *larger;
    if (x->is.length >= 0)
        wanted = (size_t)x->is.length;
    larger = allocate(x, wanted + 1, call);
    if (!larger)
        return -1;
    if (x->all)
        aco__http_put(larger, x->all, x->all_n);
    x->all = larger;
    x->all_room = wanted;
    return 0;
}

/* Reads up to the end of the body, behind what an earlier call has got. 0; 1: it is too long; -1 and errno. */
ACO__SWITCHES static int read_all(aco__http_exchange_t *x, size_t most, const char *call, const char *location)
{
    char beyond;
    ssize_t part = 1;
    if (x->all_n > most || (x->is.length > 0 && (uint64_t)x->is.length > most))
        return 1;
    while (part > 0) {
        size_t room;
        if ((!x->all || (x->all_n == x->all_room && x->all_room < most && x->is.length < 0)) &&
            grow(x, most, call) != 0)
            return -1;
        ACO__ASSERT(x->all_n <= x->all_room);
        room = (x->all_room < most ? x->all_room : most) - x->all_n;
        part = x->version->read(x, room ? x->all + x->all_n : &beyond, room ? room : 1, call, location);
        if (part > 0 && !room)
            return 1;
        if (part > 0)
            x->all_n += (size_t)part;
    }
    return (int)part;
}

char *aco_http_request_read_all_at(aco_http_request_t *request, size_t most, size_t *n, const char *location)
{
    static const char call[] = "aco_http_request_read_all";
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    int result = read_all(x, most, call, location);
    if (result > 0) {
        x->version->fail_body(x, EFBIG);
        aco__service_fail(EFBIG, call, "the body is too long");
    }
    if (result != 0)
        return NULL;
    x->all[x->all_n] = 0;
    if (n)
        *n = x->all_n;
    return x->all;
}

/* ---- The connection ---- */

int aco_http_is_draining(const aco_http_request_t *request)
{
    return aco__http_exchange_of(request)->server->is_draining;
}

void *aco__http_request_span(const aco_http_request_t *request)
{
    return aco__http_exchange_of(request)->span;
}

int aco__http_count_buffered(aco_http_request_t *request, ptrdiff_t n)
{
    aco_http_server_t *server = aco__http_exchange_of(request)->server;
    const int64_t most = server->options.max_buffered;
    server->buffered += (size_t)n;
    if (n <= 0 || most < 0 || server->buffered <= (uint64_t)most)
        return 0;
    errno = ENOBUFS;
    return -1;
}

int aco_http_connection_error(const aco_http_request_t *request)
{
    const aco__http_exchange_t *x = aco__http_exchange_of(request);
    return x->version->error_of(x);
}
