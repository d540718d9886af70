/* Bytes that grow, and the little of protobuf that the services of the library itself need. */
#include "grpc/call.h"

#include <string.h>

char *aco__grpc_room(aco__grpc_bytes_t *bytes, size_t n)
{
    size_t room = bytes->room < 128 ? 256 : 2 * bytes->room;
    char *larger;
    if (bytes->has_failed)
        return NULL;
    if (n <= bytes->room - bytes->n)
        return bytes->p + bytes->n;
    room = n > room - bytes->n ? bytes->n + n : room;
    larger = n < SIZE_MAX / 4 ? aco__service_allocate(&room, "gRPC") : NULL;
    if (!larger) {
        bytes->has_failed = 1;
        errno = ENOMEM;
        return NULL;
    }
    if (bytes->n)
        memcpy(larger, bytes->p, bytes->n);
    if (bytes->p)
        aco__service_free(bytes->p, bytes->room);
    bytes->p = larger;
    bytes->room = room;
    return larger + bytes->n;
}

void aco__grpc_free(aco__grpc_bytes_t *bytes)
{
    if (bytes->p)
        aco__service_free(bytes->p, bytes->room);
    memset(bytes, 0, sizeof *bytes);
}

static void put_varint(aco__grpc_bytes_t *bytes, uint64_t number)
{
    char *at = aco__grpc_room(bytes, 10);
    if (!at)
        return;
    for (; number > 127; number >>= 7, bytes->n++)
        *at++ = (char)(number | 128);
    *at = (char)number;
    bytes->n++;
}

void aco__grpc_put_number(aco__grpc_bytes_t *bytes, unsigned field, uint64_t number)
{
    put_varint(bytes, (uint64_t)field << 3);
    put_varint(bytes, number);
}

void aco__grpc_put_bytes(aco__grpc_bytes_t *bytes, unsigned field, const void *p, size_t n)
{
    char *at;
    put_varint(bytes, (uint64_t)field << 3 | 2);
    put_varint(bytes, n);
    at = aco__grpc_room(bytes, n);
    if (!at || !n)
        return;
    memcpy(at, p, n);
    bytes->n += n;
}

/* 0, or -1: it has no end. */
static int take_varint(const char **at, const char *end, uint64_t *number)
{
    *number = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        const unsigned char byte = (unsigned char)*(*at)++;
        *number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return 0;
    }
    return -1;
}

int aco__grpc_next_field(const char **at, const char *end, unsigned *field, const char **p, size_t *n)
{
    uint64_t key, value = 0;
    if (*at == end)
        return 0;
    if (take_varint(at, end, &key) != 0 || key >> 3 == 0 || key >> 32)
        return -1;
    *field = (unsigned)(key >> 3);
    *p = NULL;
    switch (key & 7) {
    case 0:
        if (take_varint(at, end, &value) != 0)
            return -1;
        *n = value > SIZE_MAX ? SIZE_MAX : (size_t)value;
        return 1;
    case 1:
    case 5:
        value = (key & 7) == 1 ? 8 : 4;
        break;
    case 2:
        if (take_varint(at, end, &value) != 0)
            return -1;
        break;
    default:
        return -1;
    }
    if (value > (size_t)(end - *at))
        return -1;
    *p = *at;
    *n = (size_t)value;
    *at += *n;
    return 1;
}
