/* A client's call: where it goes, its head, its messages and its end. */
#include "grpc/grpc_client.h"
#include "grpc/seen.h"

#include "base/reserved.h"

#include "aco/detail/for_grpc.h"

#include <string.h>

enum { OWN_HEADERS = 9 };
static const char write_call[] = "aco_grpc_write";

static aco__grpc_client_t *client_of(aco_grpc_call_t *call)
{
    return (aco__grpc_client_t *)(void *)call;
}

/* ---- The head ---- */

static void put(aco_http_header_t *headers, size_t *n, const char *name, const char *value)
{
    headers[*n].name = name;
    headers[(*n)++].value = value;
}

static size_t count_fields(const aco__grpc_fields_t *fields)
{
    size_t n = 0;
    for (const aco__grpc_field_t *field = fields->first; field; field = field->next)
        n++;
    return n;
}

/* Of the call's span, unless the caller's metadata have the field. */
static void put_traced(aco_http_header_t *headers, size_t *n, const aco_grpc_call_t *call)
{
    for (size_t i = 0; call->seen && i < 2 && call->seen->traced.headers[i].name; i++) {
        const aco_http_header_t *own = &call->seen->traced.headers[i];
        const aco__grpc_field_t *field = call->metadata.first;
        while (field && strcmp(field->name, own->name) != 0)
            field = field->next;
        if (!field)
            put(headers, n, own->name, own->value);
    }
}

/* Sends the head to this backend. 0, or -1 and errno. */
ACO__SWITCHES static int send_head(aco__grpc_client_t *c, aco__grpc_backend_t *backend, const char *location)
{
    static const char *const numbers[] = {"0", "1", "2", "3", "4"};
    aco_grpc_call_t *call = &c->call;
    const size_t base = strlen(backend->url), path = strlen(call->method) + 1;
    const char *authority = c->channel->options.authority;
    aco_http_header_t *headers =
        aco__grpc_allocate(call, (OWN_HEADERS + count_fields(&call->metadata)) * sizeof *headers);
    char *url = aco__grpc_allocate(call, base + path), timeout[GRPC_TIMEOUT];
    aco_http_call_t http = {0};
    if (!headers || !url)
        return -1;
    memcpy(url, backend->url, base);
    memcpy(url + base, call->method, path);
    http.method = "POST";
    http.url = url;
    http.headers = headers;
    put(headers, &http.header_count, "content-type", "application/grpc");
    put(headers, &http.header_count, "te", "trailers");
    put(headers, &http.header_count, "user-agent", "grpc-c-acorn/" ACORN_VERSION_STRING);
    if (aco_grpc_has_gzip())
        put(headers, &http.header_count, "grpc-accept-encoding", "identity,gzip");
    if (call->compresses)
        put(headers, &http.header_count, "grpc-encoding", "gzip");
    if (c->until != ACO_FOREVER) {
        aco__grpc_put_timeout(timeout, c->until - aco_now());
        put(headers, &http.header_count, "grpc-timeout", timeout);
    }
    if (c->retries)
        put(headers, &http.header_count, "grpc-previous-rpc-attempts", numbers[c->retries]);
    put_traced(headers, &http.header_count, call);
    for (const aco__grpc_field_t *field = call->metadata.first; field; field = field->next)
        put(headers, &http.header_count, field->name, field->value);
    if (!authority)
        authority = backend->target->path ? backend->target->host : backend->target->text;
    c->response = aco__http_call_begin_as(backend->client, &http, authority, location);
    call->has_coding = call->compresses;
    return c->response ? 0 : -1;
}

/* Whether it is the connection that has failed, so that another one may do: not this call. */
static int is_of_connection(int error)
{
    return error != EINVAL && error != EMSGSIZE && error != ENOMEM && error != EPERM && aco_check_cancelled() == 0;
}

/* Finds a backend that can be reached, and sends the head there. 0, or -1 and errno. */
ACO__SWITCHES static int find_backend(aco__grpc_client_t *c, const char *location)
{
    const int64_t since = c->waits ? ACO_FOREVER : aco_now();
    aco__grpc_backend_t *backend;
    int error;
    while ((backend = aco__grpc_pick(c->channel, since, c->until, location)) != NULL) {
        if (send_head(c, backend, location) == 0) {
            if (aco__http_response_is_heard(c->response) > 0)
                aco__grpc_reached(backend);
            c->backend = backend;
            c->news = backend->news;
            return 0;
        }
        error = errno;
        if (!is_of_connection(error)) {
            aco__grpc_let_go(backend);
            errno = error;
            return -1;
        }
        aco__grpc_not_reached(backend, error);
        aco__grpc_let_go(backend);
    }
    return -1;
}

/* The call's deadline, from its first try on; and who looks sees it from there. */
static void set_deadline(aco__grpc_client_t *c)
{
    const int64_t timeout = c->policy ? c->policy->timeout : 0;
    if (c->has_deadline)
        return;
    c->has_deadline = 1;
    aco__grpc_see_begin(&c->call, GRPC_CALLS, c->call.method, c->channel->targets[0].text);
    c->until = aco_deadline();
    if (timeout && aco_after(timeout) < c->until)
        c->until = aco_after(timeout);
}

/* Begins a scope that ends with the call, if the task's own do not end before. 1, 0: there is none; -1 and errno. */
static int begin_limit(const aco__grpc_client_t *c, aco_scope_t *scope, const char *location)
{
    if (c->until >= aco_deadline())
        return 0;
    return aco_scope_begin_at(scope, c->until, location) == 0 ? 1 : -1;
}

/* Ends it, if it was begun. Keeps errno. */
static void end_limit(int was_begun, aco_scope_t *scope)
{
    const int error = errno;
    if (was_begun > 0)
        (void)aco_scope_end(scope);
    errno = error;
}

ACO__SWITCHES static int begin_call(aco__grpc_client_t *c, const char *location)
{
    aco_scope_t scope;
    int limit, result = -1;
    if (c->status > ACO_GRPC_OK)
        return aco__grpc_end_with(c, c->status, c->text);
    if (c->response)
        return 0;
    set_deadline(c);
    if (c->until <= aco_now())
        return aco__grpc_end_with(c, ACO_GRPC_DEADLINE_EXCEEDED, aco__grpc_late);
    limit = begin_limit(c, &scope, location);
    if (limit >= 0)
        result = find_backend(c, location);
    end_limit(limit, &scope);
    return result == 0 ? 0 : aco__grpc_http_failed(c, errno);
}

/* One task may write while another reads, and both may begin. */
ACO__SWITCHES static int client_begin(aco_grpc_call_t *call, const char *location)
{
    aco__grpc_client_t *c = client_of(call);
    int result;
    if (aco_mutex_lock_at(&c->beginning, location) != 0)
        return -1;
    result = begin_call(c, location);
    (void)aco_mutex_unlock(&c->beginning);
    return result;
}

/* ---- Writing ---- */

ACO__SWITCHES static int client_write(aco_grpc_call_t *call, const void *p, size_t n, const char *location)
{
    aco__grpc_client_t *c = client_of(call);
    aco_scope_t scope;
    int limit, result = -1;
    if (c->has_ended)
        return aco__service_fail(EINVAL, write_call, "the messages have ended");
    limit = begin_limit(c, &scope, location);
    if (limit >= 0)
        result = aco_http_call_write_at(c->response, p, n, location);
    end_limit(limit, &scope);
    return result == 0 || errno == EPIPE ? result : aco__grpc_http_failed(c, errno);
}

static int client_push(aco_grpc_call_t *call, const char *location)
{
    (void)call;
    (void)location;
    return 0;
}

int aco_grpc_write_end_at(aco_grpc_call_t *call, const char *location)
{
    aco__grpc_client_t *c = client_of(call);
    ACO__MAY_SWITCH("aco_grpc_write_end", location);
    if (c->has_ended)
        return 0;
    if (call->write_error) {
        errno = call->write_error;
        return -1;
    }
    if (aco__grpc_begin_once(call, location) != 0)
        return -1;
    if (aco_http_call_end(c->response, NULL, 0) != 0)
        return aco__grpc_http_failed(c, errno);
    c->has_ended = 1;
    return 0;
}

/* ---- Reading ---- */

int aco__grpc_await_head(aco__grpc_client_t *c, const char *location)
{
    aco_scope_t scope;
    int limit, result = -1;
    if (aco__grpc_begin_once(&c->call, location) != 0)
        return -1;
    if (c->status > ACO_GRPC_OK)
        return aco__grpc_end_with(c, c->status, c->text);
    if (c->has_head)
        return 0;
    limit = begin_limit(c, &scope, location);
    if (limit >= 0)
        result = aco_http_response_await_at(c->response, location);
    end_limit(limit, &scope);
    if (result != 0)
        return aco__grpc_http_failed(c, errno);
    aco__grpc_reached(c->backend);
    return aco__grpc_take_head(c);
}

ACO__SWITCHES static ssize_t client_read(aco_grpc_call_t *call, void *p, size_t n, const char *location)
{
    aco__grpc_client_t *c = client_of(call);
    aco_scope_t scope;
    ssize_t got = -1;
    int limit;
    if (aco__grpc_await_head(c, location) != 0)
        return -1;
    if (c->status == ACO_GRPC_OK)
        return 0;
    limit = begin_limit(c, &scope, location);
    if (limit >= 0)
        got = aco_http_response_read_at(c->response, p, n, location);
    end_limit(limit, &scope);
    if (got > 0)
        return got;
    return got == 0 ? aco__grpc_take_trailers(c) : aco__grpc_http_failed(c, errno);
}

static const aco_http_header_t *client_metadata(aco_grpc_call_t *call, size_t *count)
{
    const aco__grpc_client_t *c = client_of(call);
    *count = 0;
    if (!c->has_head || c->is_alone)
        return NULL;
    *count = c->response->header_count;
    return c->response->headers;
}

int aco_grpc_await_metadata_at(aco_grpc_call_t *call, const char *location)
{
    ACO__MAY_SWITCH("aco_grpc_await_metadata", location);
    return aco__grpc_await_head(client_of(call), location);
}

static const aco__grpc_side_t client_side = {client_read, client_begin,    client_write,
                                             client_push, client_metadata, NULL};

/* ---- The end ---- */

void aco__grpc_leave(aco__grpc_client_t *c)
{
    aco_http_response_end(c->response);
    c->response = NULL;
    if (c->backend)
        aco__grpc_let_go(c->backend);
    c->backend = NULL;
}

/* What came is wrong, whatever the server says. */
int aco_grpc_status(aco_grpc_call_t *call)
{
    aco__grpc_client_t *c = client_of(call);
    if (call->read_error && c->status <= ACO_GRPC_OK) {
        c->status = -1;
        (void)aco__grpc_end_with(c, aco__grpc_status_of(call, call->read_error), call->read_reason);
    }
    return c->status;
}

int aco_grpc_finish_at(aco_grpc_call_t *call, const char *location)
{
    aco__grpc_client_t *c = call ? client_of(call) : NULL;
    char dropped[256];
    ACO__MAY_SWITCH("aco_grpc_finish", location);
    if (!c)
        return errno ? aco_grpc_status_of_errno(errno) : ACO_GRPC_UNKNOWN;
    if (c->status < 0 && call->write_error && call->write_error != EPIPE && !c->has_ended) {
        (void)aco__grpc_end_with(c, aco_grpc_status_of_errno(call->write_error), "sending was cut");
    } else if (c->status < 0 && !call->read_error) {
        (void)aco_grpc_write_end_at(call, location);
        while (client_read(call, dropped, sizeof dropped, location) > 0)
            ;
    }
    if (aco_grpc_status(call) < 0) {
        const int status = aco_grpc_status_of_errno(errno);
        (void)aco__grpc_end_with(c, status,
                                 status == ACO_GRPC_DEADLINE_EXCEEDED ? aco__grpc_late : aco_error_message());
    }
    aco__grpc_see_end(call, c->status);
    return c->status;
}

const char *aco_grpc_message(const aco_grpc_call_t *call)
{
    const aco__grpc_client_t *c = (const aco__grpc_client_t *)(const void *)call;
    if (!c)
        return aco_error_message();
    return c->status >= 0 && c->text ? c->text : "";
}

const void *aco_grpc_details(aco_grpc_call_t *call, size_t *n)
{
    return aco_grpc_trailer(call, "grpc-status-details-bin", 0, n);
}

/* Of a call that has ended. */
static const aco_http_header_t *client_trailers(aco_grpc_call_t *call, size_t *count)
{
    const aco__grpc_client_t *c = client_of(call);
    *count = 0;
    return c->status >= 0 && c->response ? aco__grpc_trailers_of(c, count) : NULL;
}

const void *aco_grpc_trailer(aco_grpc_call_t *call, const char *name, size_t i, size_t *n)
{
    size_t count;
    const aco_http_header_t *fields = client_trailers(call, &count);
    return aco__grpc_find(call, fields, count, name, i, n);
}

const char *aco_grpc_next_trailer(aco_grpc_call_t *call, const char *name)
{
    size_t count;
    const aco_http_header_t *fields = client_trailers(call, &count);
    return aco__grpc_next_name(fields, count, name);
}

/* ---- Calls ---- */

static int is_free_of(const char *path, const char *characters)
{
    for (; *path; path++)
        if (*path <= ' ' || *path > '~' || strchr(characters, *path))
            return 0;
    return 1;
}

/* Of messages; `max_message` is what the program says of those that are read, or 0. */
static void set_limits(aco__grpc_client_t *c, int64_t max_message)
{
    const int64_t by_policy = c->policy ? c->policy->max_reply : 0;
    const int64_t most_written = c->policy ? c->policy->max_request : 0;
    if (by_policy && (max_message <= 0 || by_policy < max_message))
        max_message = by_policy;
    else if (!max_message)
        max_message = GRPC_MAX_MESSAGE;
    c->call.max_message = (uint64_t)max_message < SIZE_MAX / 2 ? (size_t)max_message : SIZE_MAX / 2;
    if (most_written && most_written < (int64_t)UINT32_MAX)
        c->call.max_written = (size_t)most_written;
}

aco_grpc_call_t *aco_grpc_call_new(aco_grpc_channel_t *channel, const char *path,
                                   const aco_grpc_call_options_t *options)
{
    static const char caller[] = "aco_grpc_call_new";
    static const aco_grpc_call_options_t none;
    size_t sz = sizeof(aco__grpc_client_t);
    aco__grpc_client_t *c;
    options = options ? options : &none;
    if (ACO__RESERVED_IS_SET(options) || !aco__grpc_is_path(path) || !is_free_of(path, "?#%\\") ||
        strlen(path) > 2048) {
        (void)aco__service_fail(EINVAL, caller, "a reserved field, or the path: \"/package.Service/Method\"");
        return NULL;
    }
    c = aco__service_new(&sz, caller);
    if (!c)
        return NULL;
    c->sz = sz;
    c->channel = channel;
    c->policy = aco__grpc_policy_of(channel, path);
    c->waits = options->wait_for_ready ? options->wait_for_ready > 0 : c->policy && c->policy->wait_for_ready;
    c->status = -1;
    c->until = ACO_FOREVER;
    c->call.side = &client_side;
    c->call.method = path;
    c->call.gzip = &channel->gzip;
    c->call.compresses = channel->options.compresses && aco_grpc_has_gzip();
    aco__grpc_call_begin(&c->call);
    set_limits(c, options->max_message ? options->max_message : channel->options.max_message);
    return &c->call;
}

void aco_grpc_call_destroy(aco_grpc_call_t *call)
{
    aco__grpc_client_t *c = client_of(call);
    const int error = errno;
    if (!call)
        return;
    if (aco_unlikely(call->seen != NULL))
        aco__grpc_see_end(call, aco_grpc_status(call) < 0 ? ACO_GRPC_CANCELLED : c->status);
    aco__grpc_leave(c);
    aco__grpc_call_end(call);
    aco__service_free(c, c->sz);
    errno = error;
}
