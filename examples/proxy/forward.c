/* A request's way to a backend and back. */
#include "proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_HEADERS = 100, MOST_KEPT = 64 << 10, PART = 16 << 10, MOST_URL = 4000, ADDED_HEADERS = 4, MOST_TRIES = 3 };

static _Thread_local aco_http_client_t *client; /* connections belong to a thread */

int forward_begin(void)
{
    static const aco_http_client_options_t options = {.max_idle = 256, .max_redirects = -1};
    client = aco_http_client_new(&options);
    return client ? 0 : -1;
}

void forward_end(void)
{
    aco_http_client_destroy(client);
}

/* ---- Headers ---- */

static int is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcasecmp(name, *names) == 0)
            return 1;
    return 0;
}

/* Whether a list such as "close, X-This" has the name. */
static int has_word(const char *list, const char *name)
{
    size_t n = strlen(name);
    while (list && *list) {
        list += strspn(list, " \t,");
        if (strncasecmp(list, name, n) == 0 && strcspn(list, " \t,") == n)
            return 1;
        list += strcspn(list, ",");
    }
    return 0;
}

/* Whether one of the headers with this name has the word in its list. */
static int is_listed(const aco_http_header_t *headers, size_t n, const char *name, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(headers[i].name, name) == 0 && has_word(headers[i].value, word))
            return 1;
    return 0;
}

/* Whether a header is for one connection only, as the `headers` say, or is written anew. */
static int is_dropped(const char *name, const aco_http_header_t *headers, size_t n)
{
    static const char *const names[] = {"Connection",
                                        "Keep-Alive",
                                        "Proxy-Connection",
                                        "Transfer-Encoding",
                                        "TE",
                                        "Trailer",
                                        "Upgrade",
                                        "Content-Length",
                                        "Host",
                                        "Expect",
                                        "X-Forwarded-For",
                                        "X-Forwarded-Host",
                                        "X-Forwarded-Proto",
                                        NULL};
    return is_one_of(name, names) || is_listed(headers, n, "Connection", name);
}

static int is_idempotent(const char *method)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", NULL};
    return is_one_of(method, methods);
}

/* The addresses of all X-Forwarded-For headers, and the client's. NULL: no memory, or the client has none. */
static const char *forwarded_for(aco_http_request_t *request)
{
    char peer[ACO_IO_ADDRESS_SIZE] = "", *from, *at, *end;
    size_t room = sizeof peer;
    for (size_t i = 0; i < request->header_count; i++)
        room += strlen(request->headers[i].value) + 2;
    if (aco_io_peer_address(request->fd, peer, sizeof peer) != 0 || !(from = aco_http_request_allocate(request, room)))
        return NULL;
    if ((end = strrchr(peer, ':')) != NULL)
        *end = 0;
    at = from;
    for (size_t i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, "X-Forwarded-For") == 0 && *request->headers[i].value)
            at += sprintf(at, "%s, ", request->headers[i].value);
    sprintf(at, "%s", peer);
    return *peer ? from : NULL;
}

static size_t request_headers(aco_http_request_t *request, aco_http_header_t *headers)
{
    const char *from = forwarded_for(request);
    size_t n = 0;
    for (size_t i = 0; i < request->header_count && n < MOST_HEADERS; i++)
        if (!is_dropped(request->headers[i].name, request->headers, request->header_count))
            headers[n++] = request->headers[i];
    if (from)
        headers[n++] = (aco_http_header_t){"X-Forwarded-For", from};
    if (*request->host)
        headers[n++] = (aco_http_header_t){"X-Forwarded-Host", request->host};
    headers[n++] = (aco_http_header_t){"X-Forwarded-Proto", "http"};
    headers[n++] = (aco_http_header_t){"Via", "1.1 acorn"};
    return n;
}

/* ---- The request's body ---- */

typedef struct body {
    aco_http_request_t *request;
    int has_begun; /* parts of it have been read, so the request cannot be sent again */
    int has_failed;
} body_t;

static ssize_t next_part(void *arg, void *p, size_t n)
{
    body_t *body = arg;
    ssize_t got = aco_http_request_read(body->request, p, n);
    body->has_begun = 1;
    body->has_failed |= got < 0;
    return got;
}

/* A short body is kept for another try, a long one is passed on as it comes. 0, or -1. */
static int take_body(aco_http_request_t *request, aco_http_call_t *call, body_t *body)
{
    size_t n = 0;
    call->length = request->length;
    if (request->length >= 0 && request->length <= MOST_KEPT) {
        call->body = request->length ? aco_http_request_read_all(request, MOST_KEPT, &n) : NULL;
        return request->length && !call->body ? -1 : 0;
    }
    call->read_body = next_part;
    call->read_arg = body;
    return 0;
}

/* ---- Tries ---- */

/* What goes to the backends. NULL: the target is none of ours. */
static const char *path_of(const char *target)
{
    const char *authority = strstr(target, "://");
    if (*target == '/')
        return target;
    if (!authority)
        return NULL;
    target = strpbrk(authority + 3, "/?");
    return target ? target : "/";
}

/* One try. NULL and errno. */
static aco_http_response_t *ask(backend_t *backend, aco_http_call_t *call, const char *path)
{
    char url[MOST_URL + 300];
    aco_scope_t limit;
    aco_http_response_t *response;
    int error;
    snprintf(url, sizeof url, "http://%s%s", backend->address, path);
    call->url = url;
    add(&backend->tries, 1);
    aco_scope_begin(&limit, call->read_body ? ACO_FOREVER : aco_after(proxy.try_time));
    response = aco_http_call(client, call);
    error = errno;
    aco_scope_end(&limit);
    errno = error;
    return response;
}

/* Whether the request was not even sent. */
static int has_not_connected(int error)
{
    return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EADDRNOTAVAIL;
}

/* Asks backends, one after the other, as long as it does no harm. NULL and errno; *asked: the one that answers. */
static aco_http_response_t *ask_all(aco_http_call_t *call, const char *path, const body_t *body, backend_t **asked)
{
    uint32_t tried = 0;
    int tries = 0;
    backend_t *backend = choose_backend(&tried);
    errno = ECONNREFUSED; /* there is none */
    while (backend) {
        aco_http_response_t *response;
        int error;
        atomic_fetch_add(&backend->in_flight, 1);
        response = ask(backend, call, path);
        error = errno;
        if (response) {
            *asked = backend;
            return response;
        }
        atomic_fetch_sub(&backend->in_flight, 1);
        if (aco_check_cancelled() == 0 && !body->has_failed && error != EINVAL)
            tell_backend(backend, 1);
        errno = error;
        if (aco_check_cancelled() != 0 || body->has_begun || error == EINVAL ||
            (!has_not_connected(error) && !is_idempotent(call->method)))
            return NULL;
        backend = ++tries < MOST_TRIES ? choose_backend(&tried) : NULL; /* it may be what kills them */
        if (backend)
            add(&proxy.retries, 1);
        errno = error;
    }
    return NULL;
}

/* ---- The answer ---- */

static int reply_error(aco_http_request_t *request, int error)
{
    if (error == ETIMEDOUT)
        return aco_http_reply(request, 504, "text/plain", "the backends did not answer in time\n", 36);
    if (has_not_connected(error))
        return aco_http_reply(request, 503, "text/plain", "no backend can be reached\n", 26);
    if (error == EINVAL)
        return aco_http_reply(request, 400, "text/plain", "this request cannot be passed on\n", 33);
    return aco_http_reply(request, 502, "text/plain", "the backend did not answer well\n", 32);
}

/* Sends the head. 0, or -1. */
static int begin(aco_http_request_t *request, const aco_http_response_t *response)
{
    const char *length = aco_http_response_header(response, "Content-Length");
    int64_t n = response->length;
    for (size_t i = 0; i < response->header_count; i++) {
        const aco_http_header_t *header = &response->headers[i];
        if (!is_dropped(header->name, response->headers, response->header_count) &&
            strcasecmp(header->name, "Content-Type") != 0 &&
            aco_http_reply_header(request, header->name, header->value) != 0)
            return -1;
    }
    if (strcmp(request->method, "HEAD") == 0)
        n = length ? strtoll(length, NULL, 10) : -1;
    return aco_http_reply_begin(request, response->status, aco_http_response_header(response, "Content-Type"), n);
}

/* Passes the answer on. 0; -1: the backend has failed in the middle of it. */
static int pass_on(aco_http_request_t *request, aco_http_response_t *response)
{
    char part[PART];
    ssize_t n;
    if (begin(request, response) != 0)
        return reply_error(request, EBADMSG), -1;
    do {
        aco_scope_t stall;
        aco_scope_begin(&stall, aco_after(proxy.stall_time));
        n = aco_http_response_read(response, part, sizeof part);
        aco_scope_end(&stall);
        if (n > 0 &&
            (aco_http_reply_write(request, part, (size_t)n) != 0 ||
             (response->length < 0 && aco_http_reply_flush(request) != 0)))
            return 0; /* the client is gone */
    } while (n > 0);
    if (n == 0)
        return 0;
    aco_http_reply_abort(request);
    add(&proxy.aborted, 1);
    return -1;
}

static void count_request(const aco_http_request_t *request)
{
    int64_t took = aco_now() - request->began;
    int i = 0;
    while (i < BUCKETS && took > bucket_limits[i])
        i++;
    add(&proxy.buckets[i], 1);
    add(&proxy.total_us, (uint64_t)took / 1000);
    add(&proxy.bytes, request->sent);
    add(&proxy.by_class[request->status / 100], 1);
}

static void answer(aco_http_request_t *request)
{
    aco_http_header_t headers[MOST_HEADERS + ADDED_HEADERS];
    aco_http_call_t call = {.method = request->method, .headers = headers};
    body_t body = {request, 0, 0};
    backend_t *backend = NULL;
    const char *path = path_of(request->target);
    aco_http_response_t *response;
    if (!path || strlen(path) > MOST_URL) {
        aco_http_reply(request, path ? 414 : 400, NULL, NULL, 0);
        return;
    }
    if (take_body(request, &call, &body) != 0)
        return; /* the server answers */
    call.header_count = request_headers(request, headers);
    response = ask_all(&call, path, &body, &backend);
    if (!response) {
        if (!body.has_failed)
            reply_error(request, errno);
        return;
    }
    tell_backend(backend, pass_on(request, response) != 0);
    aco_http_response_end(response);
    atomic_fetch_sub(&backend->in_flight, 1);
}

void forward(aco_http_request_t *request, void *arg)
{
    aco_scope_t limit;
    (void)arg;
    atomic_fetch_add(&proxy.in_flight, 1);
    aco_scope_begin(&limit, aco_after(proxy.request_time));
    answer(request);
    aco_scope_end(&limit);
    atomic_fetch_sub(&proxy.in_flight, 1);
    count_request(request);
}
