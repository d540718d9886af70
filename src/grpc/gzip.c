/* Compressed messages, by zlib: each is a stream of gzip of its own. zlib's state is some 300 kB, but nobody waits
 * while a message is packed or unpacked: so all calls of a server or a channel, which are on one thread, share one. */
#include "grpc/call.h"

#ifdef ACO_CONFIG_ZLIB
#include "http/coder_memory.h"

#include <zlib.h>

/* What zlib keeps between messages. */
typedef struct aco__grpc_gzip {
    z_stream packer, unpacker;
    unsigned char has_packer, has_unpacker;
    size_t sz;
} aco__grpc_gzip_t;

static void *gzip_allocate(void *arg, unsigned count, unsigned each)
{
    (void)arg;
    return aco__coder_allocate((size_t)count * each, "gRPC");
}

static void gzip_free(void *arg, void *p)
{
    (void)arg;
    aco__coder_free(p);
}

static aco__grpc_gzip_t *gzip_of(aco_grpc_call_t *call)
{
    size_t sz = sizeof(aco__grpc_gzip_t);
    aco__grpc_gzip_t *gzip = *call->gzip ? *call->gzip : aco__service_new(&sz, "gRPC");
    if (!gzip || *call->gzip)
        return gzip;
    gzip->sz = sz;
    gzip->packer.zalloc = gzip->unpacker.zalloc = gzip_allocate;
    gzip->packer.zfree = gzip->unpacker.zfree = gzip_free;
    return *call->gzip = gzip;
}

void aco__grpc_gzip_free(aco__grpc_gzip_t *gzip)
{
    if (!gzip)
        return;
    if (gzip->has_packer)
        (void)deflateEnd(&gzip->packer);
    if (gzip->has_unpacker)
        (void)inflateEnd(&gzip->unpacker);
    aco__service_free(gzip, gzip->sz);
}

static int no_memory(void)
{
    errno = ENOMEM;
    return -1;
}

int aco__grpc_pack(aco_grpc_call_t *call, const void *p, size_t n)
{
    aco__grpc_gzip_t *gzip = gzip_of(call);
    char *to;
    size_t room;
    if (!gzip)
        return -1;
    if (!gzip->has_packer && deflateInit2(&gzip->packer, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, MAX_MEM_LEVEL - 1,
                                          Z_DEFAULT_STRATEGY) != Z_OK)
        return no_memory();
    if (gzip->has_packer)
        (void)deflateReset(&gzip->packer);
    gzip->has_packer = 1;
    room = deflateBound(&gzip->packer, (uLong)n);
    call->packed.n = 0;
    call->packed.has_failed = 0;
    to = aco__grpc_room(&call->packed, room);
    if (!to)
        return -1;
    gzip->packer.next_in = (Bytef *)(uintptr_t)p;
    gzip->packer.avail_in = (uInt)n;
    gzip->packer.next_out = (Bytef *)to;
    gzip->packer.avail_out = (uInt)room;
    if (deflate(&gzip->packer, Z_FINISH) != Z_STREAM_END)
        return no_memory();
    call->packed.n = room - gzip->packer.avail_out;
    return 0;
}

/* Decompresses until the end, or until the room is used. What inflate() says. */
static int unpack_part(z_stream *z, aco__grpc_bytes_t *plain, size_t most)
{
    size_t room = plain->room - plain->n;
    int result;
    if (room > most + 1 - plain->n)
        room = most + 1 - plain->n;
    z->next_out = (Bytef *)plain->p + plain->n;
    z->avail_out = room < 1 << 30 ? (uInt)room : 1 << 30;
    room = z->avail_out;
    result = inflate(z, Z_NO_FLUSH);
    plain->n += room - z->avail_out;
    return result;
}

int aco__grpc_unpack(aco_grpc_call_t *call, const void *p, size_t n)
{
    aco__grpc_gzip_t *gzip = gzip_of(call);
    aco__grpc_bytes_t *plain = &call->plain;
    size_t most = call->max_message;
    int result = Z_OK;
    if (!gzip || (!gzip->has_unpacker && inflateInit2(&gzip->unpacker, 16 + MAX_WBITS) != Z_OK))
        return no_memory();
    if (gzip->has_unpacker)
        (void)inflateReset(&gzip->unpacker);
    gzip->has_unpacker = 1;
    plain->n = 0;
    plain->has_failed = 0;
    gzip->unpacker.next_in = (Bytef *)(uintptr_t)p;
    gzip->unpacker.avail_in = (uInt)n;
    while (result == Z_OK && plain->n <= most) {
        if (plain->n == plain->room && (!aco__grpc_room(plain, 1) || aco__grpc_count_held(call) != 0))
            return -1;
        result = unpack_part(&gzip->unpacker, plain, most);
    }
    errno = plain->n > most ? EMSGSIZE : result == Z_MEM_ERROR ? ENOMEM : EBADMSG;
    return result == Z_STREAM_END && plain->n <= most && !gzip->unpacker.avail_in ? 0 : -1;
}

int aco_grpc_has_gzip(void)
{
    return 1;
}

#else
int aco__grpc_pack(aco_grpc_call_t *call, const void *p, size_t n)
{
    (void)call;
    (void)p;
    (void)n;
    errno = ENOTSUP;
    return -1;
}

int aco__grpc_unpack(aco_grpc_call_t *call, const void *p, size_t n)
{
    (void)call;
    (void)p;
    (void)n;
    errno = EBADMSG;
    return -1;
}

void aco__grpc_gzip_free(struct aco__grpc_gzip *gzip)
{
    (void)gzip;
}

int aco_grpc_has_gzip(void)
{
    return 0;
}
#endif
