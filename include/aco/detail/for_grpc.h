/* What acorn_http offers to acorn_grpc. Not for programs. */
#ifndef ACO_DETAIL_FOR_GRPC_H
#define ACO_DETAIL_FOR_GRPC_H

#include "../http.h"

ACO__BEGIN_C

/* What was written of the reply is sent as soon as the task waits or the handler returns. Over HTTP/1.1
 * it does nothing. */
ACO__SWITCHES ACO_API void aco__http_reply_push(aco_http_request_t *request);

ACO__END_C

#endif
