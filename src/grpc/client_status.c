/* How a client's call ends: what the server says, and what the ends of HTTP mean. */
#include "grpc/grpc_client.h"

#include "aco/detail/for_grpc.h"

#include <stdio.h>
#include <string.h>

const char aco__grpc_late[] = "the deadline has passed";

int aco__grpc_end_with(aco__grpc_client_t *c, int status, const char *text)
{
    if (c->status < 0) {
        c->text = text && *text ? aco__grpc_keep_text(&c->call, text) : NULL;
        c->status = status;
        if (status == ACO_GRPC_OK)
            aco__grpc_call_succeeded(c->channel);
    }
    if (c->status == ACO_GRPC_OK)
        return 0;
    c->call.read_error = aco_grpc_errno_of_status(c->status);
    return aco__service_fail(c->call.read_error, "a gRPC call", c->text ? c->text : aco_grpc_status_name(c->status));
}

/* ---- Of HTTP ---- */

static int status_of_http(int status)
{
    switch (status) {
    case 400:
        return ACO_GRPC_INTERNAL;
    case 401:
        return ACO_GRPC_UNAUTHENTICATED;
    case 403:
        return ACO_GRPC_PERMISSION_DENIED;
    case 404:
        return ACO_GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return ACO_GRPC_UNAVAILABLE;
    default:
        return ACO_GRPC_UNKNOWN;
    }
}

enum { H2_REFUSED_STREAM = 7, H2_CANCEL = 8, H2_ENHANCE_YOUR_CALM = 11, H2_INADEQUATE_SECURITY = 12 };

static int status_of_reset(int64_t code)
{
    switch (code) {
    case H2_REFUSED_STREAM:
        return ACO_GRPC_UNAVAILABLE;
    case H2_CANCEL:
        return ACO_GRPC_CANCELLED;
    case H2_ENHANCE_YOUR_CALM:
        return ACO_GRPC_RESOURCE_EXHAUSTED;
    case H2_INADEQUATE_SECURITY:
        return ACO_GRPC_PERMISSION_DENIED;
    default:
        return ACO_GRPC_INTERNAL;
    }
}

/* `was_reached`: the call has a connection. */
static int status_of_failure(int error, int was_reached)
{
    switch (error) {
    case EBADMSG:
    case EPROTO:
        return was_reached ? ACO_GRPC_INTERNAL : ACO_GRPC_UNAVAILABLE;
    case EINVAL:
        return ACO_GRPC_INTERNAL;
    case EMSGSIZE:
        return ACO_GRPC_RESOURCE_EXHAUSTED;
    default:
        return ACO_GRPC_UNAVAILABLE;
    }
}

/* Whether the call itself goes on after this error: its task cannot, or may not any more. */
static int is_passing(int error)
{
    return error == ENOMEM || error == EPERM ||
           ((error == ETIMEDOUT || error == ECANCELED) && aco_check_cancelled() != 0);
}

/* A server that has hung up before it said anything was not reached: dialing it again has to wait. Other calls may have
 * learned so before, or dialed again since. Keeps aco_error_message(). */
static void note_unheard(const aco__grpc_client_t *c, int error)
{
    if (c->backend && c->news == c->backend->news && aco__http_response_is_heard(c->response) < 0)
        aco__grpc_not_reached(c->backend, error);
}

int aco__grpc_http_failed(aco__grpc_client_t *c, int error)
{
    const int64_t code = c->response ? aco_http_response_reset_code(c->response) : -1;
    const char *unreached = c->response ? "" : c->channel->reason;
    char text[160];
    if (aco_now() >= c->until) {
        (void)snprintf(text, sizeof text, "%s%s%s", aco__grpc_late, *unreached ? ": " : "", unreached);
        return aco__grpc_end_with(c, ACO_GRPC_DEADLINE_EXCEEDED, text);
    }
    if (is_passing(error)) {
        errno = error;
        return -1;
    }
    if (code < 0)
        note_unheard(c, error);
    c->was_refused = code == H2_REFUSED_STREAM;
    if (code < 0)
        return aco__grpc_end_with(c, status_of_failure(error, c->response != NULL), aco_error_message());
    (void)snprintf(text, sizeof text, "the server has reset the call: HTTP/2's error %d", (int)code);
    return aco__grpc_end_with(c, status_of_reset(code), text);
}

/* ---- What the server says ---- */

/* 0 to 16; any other number, or none, is UNKNOWN. */
static int status_of_text(const char *text)
{
    int status = 0;
    size_t i = 0;
    for (; i < 3 && text[i] >= '0' && text[i] <= '9'; i++)
        status = 10 * status + text[i] - '0';
    return i && !text[i] && status <= ACO_GRPC_UNAUTHENTICATED ? status : ACO_GRPC_UNKNOWN;
}

/* The status among these fields, if there is one. Whether there is. */
static int take_status(aco__grpc_client_t *c, const aco_http_header_t *fields, size_t count)
{
    const char *number = aco__grpc_find(&c->call, fields, count, "grpc-status", 0, NULL);
    const char *message = aco__grpc_find(&c->call, fields, count, "grpc-message", 0, NULL);
    if (!number)
        return 0;
    (void)aco__grpc_end_with(c, status_of_text(number), message ? aco__grpc_unescape(&c->call, message) : NULL);
    return 1;
}

static int result_of(const aco__grpc_client_t *c)
{
    if (c->status <= ACO_GRPC_OK)
        return 0;
    errno = c->call.read_error;
    return -1;
}

static int is_grpc(const char *type)
{
    static const char ours[] = "application/grpc";
    const size_t n = sizeof ours - 1;
    return type && strncmp(type, ours, n) == 0 && (!type[n] || type[n] == '+' || type[n] == ';');
}

int aco__grpc_take_head(aco__grpc_client_t *c)
{
    const aco_http_response_t *response = c->response;
    const char *type = aco_http_response_header(response, "content-type");
    const char *coding = aco_http_response_header(response, "grpc-encoding");
    size_t trailers;
    char text[160];
    c->has_head = 1;
    (void)aco__http_response_trailers(response, &trailers);
    c->is_alone = response->length == 0 && !trailers;
    if (is_grpc(type) && c->is_alone && take_status(c, response->headers, response->header_count))
        return result_of(c);
    c->is_alone = 0;
    if (response->status != 200 || !is_grpc(type)) {
        (void)snprintf(text, sizeof text, "the server speaks no gRPC: status %d of HTTP, type \"%.64s\"",
                       response->status, type ? type : "");
        return aco__grpc_end_with(c, status_of_http(response->status), text);
    }
    c->call.peer_compresses = aco_grpc_has_gzip() && coding && strcmp(coding, "gzip") == 0;
    return 0;
}

const aco_http_header_t *aco__grpc_trailers_of(const aco__grpc_client_t *c, size_t *count)
{
    if (!c->is_alone)
        return aco__http_response_trailers(c->response, count);
    *count = c->response->header_count;
    return c->response->headers;
}

int aco__grpc_take_trailers(aco__grpc_client_t *c)
{
    size_t count;
    const aco_http_header_t *trailers = aco__grpc_trailers_of(c, &count);
    if (take_status(c, trailers, count))
        return result_of(c);
    return aco__grpc_end_with(c, ACO_GRPC_UNKNOWN, "the server has sent no status");
}
