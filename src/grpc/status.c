/* What statuses are called, and which errno stands for which. */
#include "aco/grpc.h"

#include <errno.h>

const char *aco_grpc_status_name(int status)
{
    static const char *const names[] = {
        "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
        "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
        "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
        "DATA_LOSS", "UNAUTHENTICATED"};
    return names[status >= 0 && status <= ACO_GRPC_UNAUTHENTICATED ? status : ACO_GRPC_UNKNOWN];
}

/* The first errno of a status is the one that stands for it. */
static const struct {
    int error, status;
} pairs[] = {
    {ECANCELED, ACO_GRPC_CANCELLED},
    {ETIMEDOUT, ACO_GRPC_DEADLINE_EXCEEDED},
    {EINVAL, ACO_GRPC_INVALID_ARGUMENT},
    {EDOM, ACO_GRPC_INVALID_ARGUMENT},
    {ERANGE, ACO_GRPC_OUT_OF_RANGE},
    {ENOENT, ACO_GRPC_NOT_FOUND},
    {ESRCH, ACO_GRPC_NOT_FOUND},
    {EEXIST, ACO_GRPC_ALREADY_EXISTS},
    {EACCES, ACO_GRPC_PERMISSION_DENIED},
    {EPERM, ACO_GRPC_PERMISSION_DENIED},
    {ENOSYS, ACO_GRPC_UNIMPLEMENTED},
    {ENOTSUP, ACO_GRPC_UNIMPLEMENTED},
    {EOPNOTSUPP, ACO_GRPC_UNIMPLEMENTED},
    {ENOMEM, ACO_GRPC_RESOURCE_EXHAUSTED},
    {ENOSPC, ACO_GRPC_RESOURCE_EXHAUSTED},
    {ENOBUFS, ACO_GRPC_RESOURCE_EXHAUSTED},
    {EMFILE, ACO_GRPC_RESOURCE_EXHAUSTED},
    {ENFILE, ACO_GRPC_RESOURCE_EXHAUSTED},
    {EMSGSIZE, ACO_GRPC_RESOURCE_EXHAUSTED},
    {EFBIG, ACO_GRPC_RESOURCE_EXHAUSTED},
    {EBUSY, ACO_GRPC_FAILED_PRECONDITION},
    {ENOTEMPTY, ACO_GRPC_FAILED_PRECONDITION},
    {EDEADLK, ACO_GRPC_ABORTED},
    {ESTALE, ACO_GRPC_ABORTED},
    {EBADMSG, ACO_GRPC_INTERNAL},
    {EPROTO, ACO_GRPC_INTERNAL},
    {EFAULT, ACO_GRPC_INTERNAL},
    {EIO, ACO_GRPC_DATA_LOSS},
    {EAGAIN, ACO_GRPC_UNAVAILABLE},
    {EPIPE, ACO_GRPC_UNAVAILABLE},
    {ECONNREFUSED, ACO_GRPC_UNAVAILABLE},
    {ECONNRESET, ACO_GRPC_UNAVAILABLE},
    {ECONNABORTED, ACO_GRPC_UNAVAILABLE},
    {EHOSTUNREACH, ACO_GRPC_UNAVAILABLE},
    {ENETUNREACH, ACO_GRPC_UNAVAILABLE},
    {ENETDOWN, ACO_GRPC_UNAVAILABLE},
};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

int aco_grpc_status_of_errno(int error)
{
    for (int i = 0; i < PAIRS; i++)
        if (pairs[i].error == error)
            return pairs[i].status;
    return error ? ACO_GRPC_UNKNOWN : ACO_GRPC_OK;
}

int aco_grpc_errno_of_status(int status)
{
    if (status == ACO_GRPC_OK)
        return 0;
    for (int i = 0; i < PAIRS; i++)
        if (pairs[i].status == status)
            return pairs[i].error;
    return status == ACO_GRPC_UNAUTHENTICATED ? EACCES : EPROTO;
}
