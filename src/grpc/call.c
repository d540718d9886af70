/* Messages of a call: five bytes and the message, one after the other, in the body. */
#include "grpc/seen.h"

#include <string.h>

/* ---- Memory ---- */

void aco__grpc_call_begin(aco_grpc_call_t *call)
{
    call->in = call->small;
    call->in_room = sizeof call->small;
    call->max_written = UINT32_MAX;
    call->metadata.end = &call->metadata.first;
    call->trailers.end = &call->trailers.first;
}

static void free_input(aco_grpc_call_t *call)
{
    if (call->in != call->small)
        aco__service_free(call->in, call->in_room);
    call->in = call->small;
    call->in_room = sizeof call->small;
    call->in_begin = call->in_end = 0;
}

void aco__grpc_call_end(aco_grpc_call_t *call)
{
    free_input(call);
    aco__grpc_free(&call->plain);
    (void)aco__grpc_count_held(call);
    aco__grpc_free(&call->packed);
    aco__blocks_free(&call->blocks);
}

const char *aco_grpc_method(const aco_grpc_call_t *call)
{
    return call->method;
}

/* ---- Reading ---- */

static const char buffered[] = "max_buffered of the server is reached";

static int fail_read(aco_grpc_call_t *call, int error, const char *reason)
{
    call->read_error = error;
    call->read_reason = reason;
    return aco__service_fail(error, "aco_grpc_read", reason);
}

/* A larger buffer, at last of more than `n` bytes. It grows only when it is full, so a peer that announces much and
 * sends little costs little. */
static int grow_input(aco_grpc_call_t *call, size_t n)
{
    size_t room = 4 * call->in_room > GRPC_LARGER ? 4 * call->in_room : GRPC_LARGER;
    char *larger;
    if (room > GRPC_LARGER && room > n + GRPC_PREFIX)
        room = n + GRPC_PREFIX;
    larger = aco__service_allocate(&room, "aco_grpc_read");
    if (!larger)
        return -1;
    memcpy(larger, call->in, call->in_end);
    if (call->in != call->small)
        aco__service_free(call->in, call->in_room);
    call->in = larger;
    call->in_room = room;
    return aco__grpc_count_held(call) == 0 ? 0 : fail_read(call, errno, buffered);
}

/* Waits for `n` bytes from in_begin on. 1; 0: the end comes before the first; -1 and errno. */
ACO__SWITCHES static int await_input(aco_grpc_call_t *call, size_t n, const char *location)
{
    while (call->in_end - call->in_begin < n) {
        ssize_t got;
        if (call->in_begin) {
            memmove(call->in, call->in + call->in_begin, call->in_end - call->in_begin);
            call->in_end -= call->in_begin;
            call->in_begin = 0;
        }
        if (call->in_end == call->in_room && grow_input(call, n) != 0)
            return -1;
        got = call->side->read(call, call->in + call->in_end, call->in_room - call->in_end, location);
        if (got < 0)
            return -1;
        call->is_drained = (size_t)got < call->in_room - call->in_end;
        if (!got && call->in_end == 0 && n == GRPC_PREFIX)
            return 0;
        if (!got)
            return fail_read(call, EBADMSG, "the messages end within one");
        call->in_end += (size_t)got;
    }
    return 1;
}

/* The caller is done with the last message. */
static void drop_taken(aco_grpc_call_t *call)
{
    call->in_begin += call->taken;
    call->taken = 0;
    if (call->in_begin == call->in_end)
        call->in_begin = call->in_end = 0;
    if (!call->in_end && (call->is_drained || call->in_room > GRPC_KEPT))
        free_input(call);
    aco__grpc_free(&call->plain);
    (void)aco__grpc_count_held(call);
}

static int check_prefix(aco_grpc_call_t *call, const unsigned char *prefix, size_t *n)
{
    *n = (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 | (size_t)prefix[3] << 8 | prefix[4];
    if (prefix[0] > 1 || (prefix[0] && !call->peer_compresses))
        return fail_read(call, EBADMSG, "a compressed message without a coding, or an unknown flag");
    if (*n > call->max_message)
        return fail_read(call, EMSGSIZE, "a message is too long");
    return 0;
}

/* The next message, not counted. */
ACO__SWITCHES static int read_message(aco_grpc_call_t *call, const void **message, size_t *n, const char *location)
{
    int result;
    size_t length;
    if (call->read_error) {
        errno = call->read_error;
        return -1;
    }
    drop_taken(call);
    result = await_input(call, GRPC_PREFIX, location);
    if (result <= 0)
        return result;
    if (check_prefix(call, (const unsigned char *)call->in + call->in_begin, &length) != 0 ||
        await_input(call, GRPC_PREFIX + length, location) < 0)
        return -1;
    *message = call->in + call->in_begin + GRPC_PREFIX;
    *n = length;
    call->taken = GRPC_PREFIX + length;
    if (!call->in[call->in_begin])
        return 1;
    if (aco__grpc_unpack(call, *message, length) != 0) {
        const int error = errno;
        call->taken = 0; /* without memory, the next call finds the message again */
        aco__grpc_free(&call->plain);
        (void)aco__grpc_count_held(call);
        if (error != ENOMEM)
            return fail_read(call, error, error == ENOBUFS ? buffered : "a compressed message is wrong, or too long");
        errno = ENOMEM;
        return -1;
    }
    *message = call->plain.p;
    *n = call->plain.n;
    return 1;
}

static void see_received(aco_grpc_call_t *call)
{
    aco__grpc_see_message(call, GRPC_RECEIVED, call->taken - GRPC_PREFIX);
}

int aco_grpc_read_at(aco_grpc_call_t *call, const void **message, size_t *n, const char *location)
{
    int result;
    ACO__MAY_SWITCH("aco_grpc_read", location);
    result = read_message(call, message, n, location);
    if (result > 0)
        see_received(call);
    return result;
}

static int fail_count(aco_grpc_call_t *call, const char *reason)
{
    call->is_miscounted = 1;
    return fail_read(call, EBADMSG, reason);
}

int aco__grpc_status_of(const aco_grpc_call_t *call, int error)
{
    return error == EBADMSG && call->is_miscounted ? ACO_GRPC_UNIMPLEMENTED : aco_grpc_status_of_errno(error);
}

int aco_grpc_was_compressed(const aco_grpc_call_t *call)
{
    return call->taken && call->in[call->in_begin];
}

/* The message stays where it is while the end is awaited: what comes behind it is an error. */
int aco_grpc_read_only_at(aco_grpc_call_t *call, const void **message, size_t *n, const char *location)
{
    char beyond;
    ssize_t got;
    int result;
    ACO__MAY_SWITCH("aco_grpc_read_only", location);
    result = read_message(call, message, n, location);
    if (result < 0)
        return -1;
    if (!result)
        return fail_count(call, "there is no message");
    got = call->in_end > call->in_begin + call->taken ? 1 : call->side->read(call, &beyond, 1, location);
    if (got > 0)
        return fail_count(call, "there is more than one message");
    if (got < 0)
        call->taken = 0; /* the next call finds the message again */
    else
        see_received(call);
    return (int)got;
}

/* ---- Writing ---- */

static int fail_write(aco_grpc_call_t *call)
{
    call->write_error = errno;
    return -1;
}

int aco_grpc_compress(aco_grpc_call_t *call, int on)
{
    if (on && !aco_grpc_has_gzip())
        return aco__service_fail(ENOTSUP, "aco_grpc_compress", "the library was built without gzip");
    call->compresses = on != 0;
    return 0;
}

int aco__grpc_begin_once(aco_grpc_call_t *call, const char *location)
{
    if (call->has_begun)
        return 0;
    if (call->side->begin(call, location) != 0)
        return -1;
    call->has_begun = 1;
    return 0;
}

ACO__SWITCHES
static int write_with_prefix(aco_grpc_call_t *call, int flag, const void *message, size_t n, const char *location)
{
    const unsigned char prefix[GRPC_PREFIX] = {(unsigned char)flag, (unsigned char)(n >> 24), (unsigned char)(n >> 16),
                                               (unsigned char)(n >> 8), (unsigned char)n};
    if (call->side->write(call, prefix, sizeof prefix, location) != 0 ||
        (n && call->side->write(call, message, n, location) != 0))
        return -1;
    return call->side->push(call, location);
}

int aco_grpc_write_at(aco_grpc_call_t *call, const void *message, size_t n, const char *location)
{
    int packs, result;
    ACO__MAY_SWITCH("aco_grpc_write", location);
    if (call->write_error) {
        errno = call->write_error;
        return -1;
    }
    if (n > call->max_written) {
        (void)aco__service_fail(EMSGSIZE, "aco_grpc_write", "a message is too long");
        return fail_write(call);
    }
    if (aco_check_cancelled() != 0 || aco__grpc_begin_once(call, location) != 0)
        return fail_write(call);
    packs = call->compresses && call->has_coding && n >= GRPC_LEAST_COMPRESSED;
    if (packs && aco__grpc_pack(call, message, n) != 0)
        return fail_write(call);
    packs = packs && call->packed.n < n;
    if (!packs)
        aco__grpc_free(&call->packed);
    n = packs ? call->packed.n : n;
    result = write_with_prefix(call, packs, packs ? call->packed.p : message, n, location);
    aco__grpc_free(&call->packed);
    if (result != 0)
        return fail_write(call);
    aco__grpc_see_message(call, GRPC_SENT, n);
    return 0;
}
