/* Handlers of the tests of gRPC (aco/grpc.h). */
#ifndef GRPC_TESTS_H
#define GRPC_TESTS_H

#include <aco/grpc.h>
#include "http_tests.h"

static inline int echo(aco_grpc_call_t *call, void *arg)
{
    const void *message;
    size_t n;
    (void)arg;
    if (aco_grpc_read_only(call, &message, &n) != 0)
        return ACO_GRPC_FROM_ERRNO;
    return aco_grpc_write(call, message, n) == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
}

/* Each message goes back at once, compressed if it came so; at the end, how many there were. */
static inline int chat(aco_grpc_call_t *call, void *arg)
{
    const void *message;
    char text[32];
    size_t n;
    int more, count = 0;
    (void)arg;
    while ((more = aco_grpc_read(call, &message, &n)) > 0) {
        count++;
        (void)aco_grpc_compress(call, aco_grpc_was_compressed(call));
        if (aco_grpc_write(call, message, n) != 0)
            return ACO_GRPC_FROM_ERRNO;
    }
    snprintf(text, sizeof text, "%d", count);
    return more == 0 && aco_grpc_add_trailer(call, "x-count", text, strlen(text)) == 0 ? ACO_GRPC_OK
                                                                                       : ACO_GRPC_FROM_ERRNO;
}

/* A message of one byte says how many come back. */
static inline int many(aco_grpc_call_t *call, void *arg)
{
    const void *message;
    size_t n;
    int count;
    (void)arg;
    if (aco_grpc_read_only(call, &message, &n) != 0 || n < 1)
        return ACO_GRPC_FROM_ERRNO;
    count = *(const unsigned char *)message;
    for (int i = 0; i < count; i++)
        if (aco_grpc_write(call, "message", 7) != 0)
            return ACO_GRPC_FROM_ERRNO;
    return ACO_GRPC_OK;
}

#endif
