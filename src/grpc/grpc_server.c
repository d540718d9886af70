/* A server of gRPC: finds the method of a request, calls its handler in the scope of the deadline, and ends the reply
 * with the status. */
#include "grpc/grpc_server.h"
#include "grpc/seen.h"

#include "base/reserved.h"

#include "aco/detail/for_grpc.h"

#include <stdio.h>
#include <string.h>

static const char serve_place[] = "aco_grpc_serve";
static const char content_type[] = "application/grpc";

/* ---- A server's side of a call ---- */

ACO__SWITCHES static ssize_t server_read(aco_grpc_call_t *call, void *p, size_t n, const char *location)
{
    return aco_http_request_read_at(call->request, p, n, location);
}

ACO__SWITCHES static int server_begin(aco_grpc_call_t *call, const char *location)
{
    call->has_put = 1;
    if (call->compresses && call->may_compress) {
        if (aco_http_reply_header(call->request, "grpc-encoding", "gzip") != 0)
            return -1;
        call->has_coding = 1;
    }
    for (const aco__grpc_field_t *field = call->metadata.first; field; field = field->next)
        if (aco_http_reply_header(call->request, field->name, field->value) != 0)
            return -1;
    return aco_http_reply_begin_at(call->request, 200, content_type, -1, location);
}

ACO__SWITCHES static int server_write(aco_grpc_call_t *call, const void *p, size_t n, const char *location)
{
    return aco_http_reply_write_at(call->request, p, n, location);
}

ACO__SWITCHES static int server_push(aco_grpc_call_t *call, const char *location)
{
    (void)location;
    aco__http_reply_push(call->request);
    return 0;
}

static const aco_http_header_t *server_metadata(aco_grpc_call_t *call, size_t *count)
{
    *count = call->request->header_count;
    return call->request->headers;
}

static int server_count(aco_grpc_call_t *call, ptrdiff_t n)
{
    return aco__http_count_buffered(call->request, n);
}

static const aco__grpc_side_t server_side = {server_read, server_begin,    server_write,
                                             server_push, server_metadata, server_count};

/* ---- The status ---- */

int aco_grpc_fail(aco_grpc_call_t *call, int status, const char *message)
{
    call->message = aco__grpc_escape(call, message);
    return status;
}

int aco_grpc_set_details(aco_grpc_call_t *call, const void *details, size_t n)
{
    if (n > GRPC_DETAILS)
        return aco__service_fail(EINVAL, "aco_grpc_set_details", "more than 2 KiB");
    call->details = aco__grpc_base64(call, details, n);
    return call->details ? 0 : -1;
}

const aco_http_request_t *aco_grpc_request(const aco_grpc_call_t *call)
{
    return call->request;
}

typedef int (*aco__grpc_put_t)(aco_http_request_t *, const char *, const char *);

/* A part of the reply is lost, by errno: the client must not take the rest for all. */
static int status_of_loss(void)
{
    return errno == ENOMEM ? ACO_GRPC_RESOURCE_EXHAUSTED : ACO_GRPC_INTERNAL;
}

/* The fields that end a reply. If one is lost, the status tells: *sent is another one. 0; -1 and errno: no status. */
static int put_end(aco_grpc_call_t *call, int *sent, aco__grpc_put_t put)
{
    aco_http_request_t *request = call->request;
    const char *message = call->message;
    char number[16];
    int status = *sent, lost;
    lost = status != ACO_GRPC_OK && call->details && put(request, "grpc-status-details-bin", call->details) != 0;
    for (const aco__grpc_field_t *field = call->trailers.first; field && !lost; field = field->next)
        lost = put(request, field->name, field->value) != 0;
    if (lost) {
        status = status_of_loss();
        message = "details or trailers are lost";
    }
    if (status != ACO_GRPC_OK && message && put(request, "grpc-message", message) != 0)
        status = status_of_loss();
    (void)snprintf(number, sizeof number, "%d", status);
    *sent = status;
    return put(request, "grpc-status", number);
}

/* Ends the reply: with trailers, or with headers alone if an error is all there is. The status that the client gets. */
ACO__SWITCHES static int end_reply(aco_grpc_call_t *call, int status)
{
    int alone = !call->has_begun && status != ACO_GRPC_OK && (!call->metadata.first || call->has_put);
    if (!alone && !call->has_begun && call->side->begin(call, serve_place) != 0) {
        status = aco_grpc_fail(call, status_of_loss(), "the metadata are lost");
        alone = 1;
    }
    if (put_end(call, &status, alone ? aco_http_reply_header : aco_http_reply_trailer) != 0) {
        aco_http_reply_abort(call->request);
        return ACO_GRPC_INTERNAL;
    }
    if (alone)
        (void)aco_http_reply_at(call->request, 200, content_type, NULL, 0, serve_place);
    return status;
}

/* Which status a handler's result, and the errno it left, are. */
static int status_of(aco_grpc_call_t *call, int result, int error)
{
    if (result == ACO_GRPC_FROM_ERRNO) {
        result = error ? aco__grpc_status_of(call, error) : ACO_GRPC_UNKNOWN;
        if (!call->message)
            (void)aco_grpc_fail(call, result, strerror(error));
    }
    if (result != ACO_GRPC_OK && aco_check_cancelled() != 0) /* outside of the deadline: the server ends */
        return aco_grpc_fail(call, ACO_GRPC_UNAVAILABLE, "the server ends");
    return result >= ACO_GRPC_OK && result <= ACO_GRPC_UNAUTHENTICATED ? result : ACO_GRPC_UNKNOWN;
}

/* ---- Requests ---- */

static int compare(const char *path, const aco__grpc_method_t *method)
{
    return strcmp(path, method->path);
}

/* Where the method is, or would be. */
static size_t place_of(const aco_grpc_server_t *server, const char *path)
{
    size_t low = 0, high = server->count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (compare(path, &server->methods[mid]) <= 0)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

static const aco__grpc_method_t *method_of(const aco_grpc_server_t *server, const char *path)
{
    const size_t i = place_of(server, path);
    return i < server->count && compare(path, &server->methods[i]) == 0 ? &server->methods[i] : NULL;
}

/* Whether this is gRPC's: 0; or the HTTP status with which to refuse it. */
static int check_request(const aco_http_request_t *request)
{
    const char *type = aco_http_request_header(request, "content-type");
    const size_t n = sizeof content_type - 1;
    if (!type || strncmp(type, content_type, n) != 0 || (type[n] && type[n] != '+' && type[n] != ';'))
        return 415;
    return request->major == 2 ? 0 : 505;
}

/* What the client says of codings. 0; or the status with which to refuse the call. */
static int take_codings(aco_grpc_call_t *call, const aco_grpc_server_t *server)
{
    const char *coding = aco_http_request_header(call->request, "grpc-encoding");
    const int has_gzip = aco_grpc_has_gzip();
    call->may_compress =
        has_gzip && aco__grpc_lists_gzip(aco_http_request_header(call->request, "grpc-accept-encoding"));
    call->compresses = call->may_compress && server->options.compresses;
    if (!coding || strcmp(coding, "identity") == 0)
        return 0;
    call->peer_compresses = has_gzip && strcmp(coding, "gzip") == 0;
    if (call->peer_compresses)
        return 0;
    if (aco_http_reply_header(call->request, "grpc-accept-encoding", has_gzip ? "identity,gzip" : "identity") != 0)
        return aco_grpc_fail(call, ACO_GRPC_RESOURCE_EXHAUSTED, "no memory");
    return aco_grpc_fail(call, ACO_GRPC_UNIMPLEMENTED, "the grpc-encoding is not known");
}

ACO__SWITCHES static int call_handler(aco_grpc_call_t *call, const aco__grpc_method_t *method, int64_t timeout)
{
    const int64_t deadline = timeout < 0 ? ACO_FOREVER : aco_after(timeout);
    int result, error;
    if (aco_scope_begin_at(&call->deadline, deadline, serve_place) != 0)
        return ACO_GRPC_RESOURCE_EXHAUSTED;
    errno = 0;
    result = method->handler(call, method->arg);
    error = errno;
    (void)aco_scope_end(&call->deadline);
    if (result != ACO_GRPC_OK && (call->deadline.error == ETIMEDOUT || aco_now() >= deadline)) /* without a wait */
        return aco_grpc_fail(call, ACO_GRPC_DEADLINE_EXCEEDED, "the deadline has passed");
    return status_of(call, result, error);
}

ACO__SWITCHES static int answer(aco_grpc_call_t *call, const aco_grpc_server_t *server)
{
    const char *timeout_text = aco_http_request_header(call->request, "grpc-timeout");
    const int64_t timeout = timeout_text ? aco__grpc_timeout(timeout_text) : -1;
    const aco__grpc_method_t *method = method_of(server, call->method);
    int status;
    aco__grpc_see_begin(call, GRPC_SERVES, method ? method->path : NULL, NULL);
    if (!method)
        return aco_grpc_fail(call, ACO_GRPC_UNIMPLEMENTED, "the method is not known");
    if (timeout_text && timeout < 0)
        return aco_grpc_fail(call, ACO_GRPC_INTERNAL, "the grpc-timeout is wrong");
    status = take_codings(call, server);
    return status ? status : call_handler(call, method, timeout);
}

static void end_call(void *call)
{
    aco__grpc_see_end(call, ACO_GRPC_UNKNOWN); /* unless it has ended: its handler has ended the task */
    aco__grpc_call_end(call);
}

/* The handler of all requests, behind the middleware that notices that a client goes away. */
ACO__SWITCHES static void serve_request(aco_http_request_t *request, void *arg)
{
    aco_grpc_server_t *server = arg;
    const int refusal = check_request(request);
    aco_grpc_call_t *call;
    int status;
    if (refusal) {
        (void)aco_http_reply_at(request, refusal, NULL, NULL, 0, serve_place);
        return;
    }
    call = aco_http_request_allocate(request, sizeof *call);
    if (!call || aco_defer(end_call, call) != 0)
        return; /* 500 */
    memset(call, 0, sizeof *call - sizeof call->small);
    call->side = &server_side;
    call->method = request->path;
    call->request = request;
    call->gzip = &server->gzip;
    call->max_message =
        (uint64_t)server->options.max_message < SIZE_MAX / 2 ? (size_t)server->options.max_message : SIZE_MAX / 2;
    aco__grpc_call_begin(call);
    aco_http_request_limit_body(request, -1, -1); /* messages have their limits, calls their deadlines */
    status = answer(call, server);
    if (status == ACO_GRPC_OK && call->write_error)
        status =
            aco_grpc_status_of_errno(call->write_error); /* what was sent is not all, and the handler looked away */
    if (!aco_http_connection_error(request))
        status = end_reply(call, status);
    aco__grpc_see_end(call, status);
    (void)aco_defer_pop(1);
}

/* ---- Servers ---- */

aco_grpc_server_t *aco_grpc_server_new(const aco_grpc_server_options_t *options)
{
    static const char caller[] = "aco_grpc_server_new";
    size_t sz = sizeof(aco_grpc_server_t);
    aco_grpc_server_t *server;
    if (options && ACO__RESERVED_IS_SET(options)) {
        (void)aco__service_fail(EINVAL, caller, "a reserved field is set");
        return NULL;
    }
    if (!aco_http_has_http2()) {
        (void)aco__service_fail(ENOTSUP, caller, "acorn_http was built without HTTP/2");
        return NULL;
    }
    server = aco__service_new(&sz, caller);
    if (!server)
        return NULL;
    server->sz = sz;
    if (options)
        server->options = *options;
    if (!server->options.max_message)
        server->options.max_message = GRPC_MAX_MESSAGE;
    if (server->options.max_message < 0)
        server->options.max_message = INT64_MAX;
    server->routes[0] = (aco_http_route_t){"POST", "/{service}/{method}", serve_request, server};
    server->middleware[0] = (aco_http_middleware_t){aco_http_end_with_client, NULL};
    server->groups[0] = (aco_http_group_t){server->routes, server->middleware};
    return server;
}

void aco_grpc_server_destroy(aco_grpc_server_t *server)
{
    if (!server)
        return;
    if (server->health)
        server->free_health(server->health);
    if (server->reflection)
        server->free_reflection(server->reflection);
    aco__grpc_gzip_free(server->gzip);
    if (server->methods)
        aco__service_free(server->methods, server->room);
    aco__service_free(server, server->sz);
}

/* Room for one more method. 0, or -1 and errno. */
static int grow_methods(aco_grpc_server_t *server)
{
    size_t room = server->room ? 2 * server->room : 16 * sizeof *server->methods;
    aco__grpc_method_t *larger;
    if ((server->count + 1) * sizeof *server->methods <= server->room)
        return 0;
    larger = aco__service_allocate(&room, "aco_grpc_server_add");
    if (!larger)
        return -1;
    if (server->methods) {
        memcpy(larger, server->methods, server->count * sizeof *larger);
        aco__service_free(server->methods, server->room);
    }
    server->methods = larger;
    server->room = room;
    return 0;
}

int aco_grpc_server_add(aco_grpc_server_t *server, const char *path, aco_grpc_handler_t handler, void *arg)
{
    static const char caller[] = "aco_grpc_server_add";
    size_t i;
    if (!aco__grpc_is_path(path))
        return aco__service_fail(EINVAL, caller, "a path is \"/package.Service/Method\"");
    if (method_of(server, path))
        return aco__service_fail(EEXIST, caller, path);
    if (grow_methods(server) != 0)
        return -1;
    i = place_of(server, path);
    memmove(server->methods + i + 1, server->methods + i, (server->count - i) * sizeof *server->methods);
    server->methods[i] = (aco__grpc_method_t){path, handler, arg};
    server->count++;
    return 0;
}

const aco_http_group_t *aco_grpc_server_groups(aco_grpc_server_t *server)
{
    return server->groups;
}

int aco_grpc_serve_at(int listener, aco_grpc_server_t *server, const aco_http_server_options_t *options,
                      const char *location)
{
    aco_http_server_options_t http = {0};
    int error = 0;
    ACO__MAY_SWITCH("aco_grpc_serve", location);
    if (options)
        http = *options;
    if (http.routes || http.groups) {
        http.max_head = -1; /* which aco_http_serve() refuses */
        error = EINVAL;
    }
    http.groups = server->groups;
    http.max_body = http.max_body ? http.max_body : -1;
    (void)aco_http_serve_at(listener, &http, location);
    if (error)
        return aco__service_fail(error, serve_place, "`routes` and `groups` must be NULL");
    return -1;
}
