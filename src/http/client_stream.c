/* Calls whose body the caller writes while the response comes, and trailers. */
#include "http/client_peer.h"
#include "http/text.h"

#include "aco/detail/for_grpc.h"

#include <string.h>

aco_http_response_t *aco__http_call_begin_as(aco_http_client_t *client, const aco_http_call_t *call,
                                             const char *authority, const char *location)
{
    const aco__http_step_t step = {.streams = 1, .authority = authority};
    if (call && (call->read_body || call->body || call->length || call->trailer_count || call->continue_time)) {
        aco__service_fail(EINVAL, "aco_http_call_begin", "the body and the trailers are written later");
        return NULL;
    }
    return aco__http_call_with(client, call, step, location);
}

aco_http_response_t *aco_http_call_begin_at(aco_http_client_t *client, const aco_http_call_t *call,
                                            const char *location)
{
    return aco__http_call_begin_as(client, call, NULL, location);
}

/* What is done within total_time, and the call that it belongs to. */
static int begin_until(aco_scope_t *scope, const aco__http_answer_t *answer, const char *location)
{
    return answer->until ? aco_scope_begin_at(scope, answer->until, location) : 0;
}

static void end_until(aco_scope_t *scope, const aco__http_answer_t *answer, int failed, const char *call)
{
    int error = errno;
    if (!answer->until)
        return;
    (void)aco_scope_end(scope);
    errno = error;
    if (failed && scope->error == ETIMEDOUT)
        (void)aco__service_fail(ETIMEDOUT, call, "total_time is over");
}

/* By which its body is written. NULL and errno. */
static struct aco__http2_call *written(aco_http_response_t *response, const char *call)
{
    struct aco__http2_call *s = aco__http_answer_of(response)->http2;
    if (!s)
        aco__service_fail(EINVAL, call, "the call was not begun by aco_http_call_begin()");
    return s;
}

int aco_http_call_write_at(aco_http_response_t *response, const void *p, size_t n, const char *location)
{
    static const char call[] = "aco_http_call_write";
    struct aco__http2_call *s = written(response, call);
    aco_scope_t scope;
    int result;
    if (!s || begin_until(&scope, aco__http_answer_of(response), location) != 0)
        return -1;
    result = aco__http2_write_call(s, p, n, call, location);
    end_until(&scope, aco__http_answer_of(response), result < 0, call);
    return result;
}

int aco_http_call_end(aco_http_response_t *response, const aco_http_header_t *trailers, size_t count)
{
    static const char call[] = "aco_http_call_end";
    struct aco__http2_call *s = written(response, call);
    if (!s || aco__http_check_trailers(trailers, count, call) != 0)
        return -1;
    return aco__http2_end_call_body(s, trailers, count, call);
}

int aco_http_response_await_at(aco_http_response_t *response, const char *location)
{
    static const char call[] = "aco_http_response_await";
    aco__http_answer_t *answer = aco__http_answer_of(response);
    aco_scope_t scope;
    int result;
    if (!answer->http2 || response->header_count || response->headers) /* it is there */
        return 0;
    if (begin_until(&scope, answer, location) != 0)
        return -1;
    result = aco__http2_await_response(answer->http2, 0, location);
    end_until(&scope, answer, result < 0, call);
    return result;
}

const aco_http_header_t *aco__http_response_trailers(const aco_http_response_t *response, size_t *count)
{
    const aco__http_answer_t *answer = (const aco__http_answer_t *)(const void *)response;
    *count = 0;
    return answer->http2 ? aco__http2_call_trailers(answer->http2, count) : NULL;
}

const char *aco_http_response_trailer(const aco_http_response_t *response, const char *name)
{
    const aco__http_answer_t *answer = (const aco__http_answer_t *)(const void *)response;
    const aco_http_header_t *trailers;
    const char *value = NULL;
    size_t count;
    if (!answer->http2)
        return aco__http_find_trailer(&((const aco__http_peer_t *)(const void *)answer)->trailers, name);
    trailers = aco__http_response_trailers(response, &count);
    if (trailers && !aco__http_must_come_first(name))
        (void)aco__http_find(trailers, count, name, &value);
    return value;
}

int aco__http_response_is_heard(const aco_http_response_t *response)
{
    const aco__http_answer_t *answer = (const aco__http_answer_t *)(const void *)response;
    return answer->http2 ? aco__http2_is_heard(answer->http2) : 1;
}

int64_t aco_http_response_reset_code(const aco_http_response_t *response)
{
    const aco__http_answer_t *answer = (const aco__http_answer_t *)(const void *)response;
    return answer->http2 ? aco__http2_reset_code(answer->http2) : -1;
}
