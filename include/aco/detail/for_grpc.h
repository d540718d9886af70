/* What acorn_http offers to acorn_grpc. Not for programs. */
#ifndef ACO_DETAIL_FOR_GRPC_H
#define ACO_DETAIL_FOR_GRPC_H

#include "../http.h"

ACO__BEGIN_C

/* What was written of the reply is sent as soon as the task waits or the handler returns. Over HTTP/1.1
 * it does nothing. */
ACO__SWITCHES ACO_API void aco__http_reply_push(aco_http_request_t *request);

/* As aco_http_drain_begin(), but the scope ends as soon as the server is stopped, before lame_time.
 * aco_http_drain_end() leaves it. */
ACO_API int aco__http_drain_begin_early(aco_http_request_t *request, const char *location);

/* Adds `n` bytes, which may be less than 0, to what the server counts for max_buffered. Returns 0; -1 with errno
 * ENOBUFS if it was more than 0, and is beyond now: it counts all the same. */
ACO_API int aco__http_count_buffered(aco_http_request_t *request, ptrdiff_t n);

/* The request's span (aco/detail/http_observer.h); NULL: none. */
ACO_API void *aco__http_request_span(const aco_http_request_t *request);
/* The client, of one thread, dials this unix socket, as aco_io_dial() takes it, for all hosts. The text must stay
 * valid. */
ACO_API void aco__http_client_dial_unix(aco_http_client_t *client, const char *path);

/* aco_http_call_begin(), with this authority in place of the URL's; NULL: the URL's. */
ACO__SWITCHES
ACO_API aco_http_response_t *aco__http_call_begin_as(aco_http_client_t *client, const aco_http_call_t *call,
                                                     const char *authority, const char *location);
/* All trailers of a response, as far as they have come: their number in *count. They are valid as the response. */
ACO_API const aco_http_header_t *aco__http_response_trailers(const aco_http_response_t *response, size_t *count);

/* Whether anything of the server has come by the response's connection. 1; 0: not yet; -1: nothing, and the connection
 * has ended. */
ACO_API int aco__http_response_is_heard(const aco_http_response_t *response);

ACO__END_C

#endif
